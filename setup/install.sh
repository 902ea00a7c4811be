#!/usr/bin/env bash
# Puts the ll-loop program of this release on the runner and says where it is.
#
# The archive comes from the GitHub release and must have the SHA-256 that checksums.txt gives for it,
# a file of the very commit the workflow pinned. What is cached is the archive, not the program, and
# it is checked on every use: a cache that others can write to is no way in.
#
# A commit that is not a release, as on a branch, pins nothing: there the program is built from the source that the action
# came with. What was built is kept for the job and no longer, as nothing could tell it from what somebody else put there.
#
#   install.sh          writes the outputs `bin` and `version`
#   install.sh --path   also puts the program on PATH for the steps that follow
#
# Read from the environment:
#   LL_VERSION            the version wanted, or `source`; empty for the one this commit was released as
#   LL_LOOP_BINARY        a program that is already here: nothing is downloaded
#   LL_LOOP_DOWNLOAD_URL  a mirror of https://github.com/little-loops/ll-loop/releases/download
#   and of the runner: RUNNER_OS RUNNER_ARCH RUNNER_TEMP RUNNER_TOOL_CACHE GITHUB_OUTPUT GITHUB_PATH
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly CHECKSUMS=$HERE/checksums.txt
readonly RELEASES=https://github.com/little-loops/ll-loop/releases/download
readonly ATTEMPTS=4

main() {
  local binary version target asset archive
  if [[ -n ${LL_LOOP_BINARY:-} ]]; then
    binary=$LL_LOOP_BINARY
    [[ $binary == /* ]] || binary=$PWD/$binary
    [[ -f $binary && -x $binary ]] || fail "LL_LOOP_BINARY is \`$binary\`, which is not a program
Build it with \`cargo build --release\` and give its absolute path, or unset the variable."
    version=local
  else
    not_on_windows
    version=$(wanted_version)
    if [[ $version == source ]]; then
      binary=$(build)
    else
      target=$(target_of_runner)
      asset=ll-loop-$version-$target.tar.gz
      archive=$(fetch "$asset" "$version" "$target")
      binary=$(unpack "$archive" "$version")
    fi
  fi
  echo "ll-loop $version: $binary"
  printf 'bin=%s\nversion=%s\n' "$binary" "$version" >>"$GITHUB_OUTPUT"
  if [[ ${1:-} == --path ]]; then
    expose "$binary"
  fi
}

# One annotation that says what is wrong and what to do. On stderr, which the runner reads too, so
# that it is not swallowed by a command substitution.
fail() {
  echo "::error title=ll-loop was not installed::$(escaped "$1")" >&2
  exit 1
}

escaped() {
  local message=$1
  message=${message//'%'/%25}
  message=${message//$'\r'/%0D}
  message=${message//$'\n'/%0A}
  echo "$message"
}

not_on_windows() {
  [[ ${RUNNER_OS:-} != Windows ]] || fail "ll-loop does not run on Windows
Use a Linux or macOS runner, such as \`runs-on: ubuntu-24.04\`; on a machine of your own, WSL."
}

target_of_runner() {
  case ${RUNNER_OS:-}/${RUNNER_ARCH:-} in
    Linux/X64) echo x86_64-unknown-linux-musl ;;
    Linux/ARM64) echo aarch64-unknown-linux-musl ;;
    macOS/X64) echo x86_64-apple-darwin ;;
    macOS/ARM64) echo aarch64-apple-darwin ;;
    *)
      fail "there is no ll-loop for this runner (RUNNER_OS \`${RUNNER_OS:-}\`, RUNNER_ARCH \`${RUNNER_ARCH:-}\`)
Use a Linux or macOS runner with x86_64 or arm64, or build ll-loop yourself and set LL_LOOP_BINARY to it."
      ;;
  esac
}

# `1.2.3` and `v1.2.3` are the same version; without one it is the newest of checksums.txt, which
# stands first. The name becomes part of an address and of a path, so its form is checked.
wanted_version() {
  local version=${LL_VERSION:-}
  if [[ -z $version ]]; then
    version=$(newest_version)
    if [[ -z $version ]]; then
      echo "::notice title=ll-loop is built from its source::$(escaped "this commit of the action belongs to no release, and building takes minutes
A release, \`uses: little-loops/ll-loop@v…\`, is installed in seconds. \`version: source\` leaves out this notice.")" >&2
      version=source
    fi
  fi
  if [[ $version == source ]]; then
    echo "$version"
    return
  fi
  version=v${version#v}
  [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || fail "\`$version\` is not a version
Write it as \`v1.2.3\`, leave \`version\` out to get the one the action was released with, or build it: \`version: source\`."
  echo "$version"
}

newest_version() {
  local sum asset
  while read -r sum asset; do
    if [[ $sum =~ ^[0-9a-f]{64}$ && $asset =~ ^ll-loop-(v.+)-(x86_64|aarch64)-.+\.tar\.gz$ ]]; then
      echo "${BASH_REMATCH[1]}"
      return
    fi
  done <"$CHECKSUMS"
}

pinned_sum() {
  local sum asset
  while read -r sum asset; do
    if [[ $asset == "$1" && $sum =~ ^[0-9a-f]{64}$ ]]; then
      echo "$sum"
      return
    fi
  done <"$CHECKSUMS"
}

# Prints the path of the checked archive, from the tool cache or freshly downloaded.
fetch() {
  local asset=$1 version=$2 target=$3 pinned cached fresh
  pinned=$(pinned_sum "$asset")
  [[ -n $pinned ]] || fail "no checksum for \`$asset\` in setup/checksums.txt of this action, so it is not installed
The action knows the versions up to its own release: use a newer \`uses: little-loops/ll-loop@v…\`, or another \`version\`."

  cached=${RUNNER_TOOL_CACHE:-$RUNNER_TEMP}/ll-loop/$version/$target/$asset
  if [[ -f $cached && $(sha256 "$cached") == "$pinned" ]]; then
    echo "$cached"
    return
  fi

  fresh=$(mktemp "$RUNNER_TEMP/$asset.XXXXXX")
  download "$asset" "$version" "$fresh"
  local found
  found=$(sha256 "$fresh")
  if [[ $found != "$pinned" ]]; then
    rm -f "$fresh"
    fail "\`$asset\` was refused: it is not the file this action was released with
expected sha256 $pinned, downloaded $found
A proxy or mirror that answers with another file is the usual cause. If it comes from github.com unchanged, please report it."
  fi
  keep "$fresh" "$cached"
}

# A cache that cannot be written to (read-only, full) costs a download in the next job, no more.
# The rename makes the file appear whole, also to a job that installs at the same moment.
keep() {
  local fresh=$1 cached=$2
  if mkdir -p "${cached%/*}" 2>/dev/null && cp "$fresh" "$cached.$$" 2>/dev/null && mv -f "$cached.$$" "$cached"; then
    rm -f "$fresh"
    echo "$cached"
  else
    rm -f "$cached.$$"
    echo "$fresh"
  fi
}

sha256() {
  sum_of_input <"$1"
}

sum_of_input() {
  local sum
  if command -v sha256sum >/dev/null; then
    sum=$(sha256sum)
  else
    sum=$(shasum -a 256)
  fi
  echo "${sum%% *}"
}

download() {
  local asset=$1 version=$2 into=$3 base url attempt reason
  base=${LL_LOOP_DOWNLOAD_URL:-$RELEASES}
  case $base in
    https://* | http://127.0.0.1:*) ;;
    *) fail "LL_LOOP_DOWNLOAD_URL is \`$base\`, which is not an https address
Give a mirror with the layout of $RELEASES, or unset the variable." ;;
  esac
  url=${base%/}/$version/$asset
  for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
    if reason=$(request "$url" "$into" 2>&1); then
      return
    fi
    echo "download $attempt of $ATTEMPTS failed: $reason" >&2
    # Nothing will appear there by waiting.
    [[ $reason != *'error: 404'* ]] || break
    ((attempt == ATTEMPTS)) || sleep "$((attempt * attempt))"
  done
  rm -f "$into"
  fail "\`$url\` could not be downloaded
$reason
If the runner has no way to github.com, set LL_LOOP_DOWNLOAD_URL to a mirror of the releases, or LL_LOOP_BINARY to a program on the runner."
}

# The mirror on the loopback address of a test is the one place where plain http is accepted; a
# redirect never leads to it.
request() {
  local url=$1 into=$2
  if command -v curl >/dev/null; then
    curl --disable --proto '=https,http' --proto-redir '=https' --location --fail --silent --show-error \
      --connect-timeout 20 --max-time 300 --output "$into" "$url"
  elif command -v wget >/dev/null; then
    wget -q -T 60 -O "$into" "$url"
  else
    echo "neither curl nor wget is installed"
    return 1
  fi
}

# Unpacked anew for every job, into the job's own temporary directory.
unpack() {
  local archive=$1 version=$2 into
  into=$(mktemp -d "$RUNNER_TEMP/ll-loop-$version.XXXXXX")
  tar -xzf "$archive" -C "$into" ll-loop || fail "\`$archive\` has the right checksum but could not be unpacked
Is \`$RUNNER_TEMP\` full, or is tar or gzip missing on the runner?"
  chmod 755 "$into" "$into/ll-loop"
  echo "$into/ll-loop"
}

# Prints the path of the program, built from the action's own folder; for a second step of the job it is there already.
#
# It is built from a copy, in the job's own temporary directory: cargo obeys files in the directories above (`.cargo`,
# `rust-toolchain`), and above the folder may be what a pull request brought. Nor does it obey what the job set for its own
# builds. It is static, so that it runs in any image as well.
build() {
  local source digest place host flags='' needed
  source=$(cd "$HERE/.." && pwd)
  [[ -f $source/Cargo.toml && -d $source/src ]] || fail "there is no source of ll-loop in \`$source\` to build
Use the whole repository as the action, or a release."
  needed=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$source/Cargo.toml")
  if ! command -v cargo >/dev/null || ! command -v rustc >/dev/null; then
    fail "building ll-loop from its source needs Rust, and there is no cargo on PATH
Install Rust $needed or later in a step before (\`rustup toolchain install stable\`), use a release (\`uses: little-loops/ll-loop@v…\`), or set LL_LOOP_BINARY to a program."
  fi

  digest=$(packed "$source" | sum_of_input)
  place=$RUNNER_TEMP/ll-loop-source/$digest
  if [[ ! -x $place/ll-loop ]]; then
    rm -rf "$place"
    mkdir -p "$place/source"
    packed "$source" | tar -xf - -C "$place/source"
    host=$(cd "$place/source" && rustc -vV | sed -n 's/^host: //p')
    [[ $host != *-linux-* ]] || flags='-C target-feature=+crt-static'
    echo "::group::Build ll-loop from $source" >&2
    if ! compile "$place" "$host" "$flags" >&2; then
      echo "::endgroup::" >&2
      fail "ll-loop could not be built from its source; the log above says why
It needs Rust $needed or later and a C compiler. A release needs neither: \`uses: little-loops/ll-loop@v…\`."
    fi
    echo "::endgroup::" >&2
    mv "$place/target/$host/release/ll-loop" "$place/ll-loop"
    rm -rf "$place/source" "$place/target"
  fi
  echo "$place/ll-loop"
}

compile() (
  local place=$1 host=$2
  cd "$place/source" || exit
  unset RUSTC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER CARGO_ENCODED_RUSTFLAGS CARGO_INCREMENTAL \
    "${!CARGO_BUILD_@}" "${!CARGO_TARGET_@}" "${!CARGO_PROFILE_@}"
  export RUSTFLAGS=$3
  exec cargo build --release --locked --bin ll-loop --target "$host" --target-dir "$place/target"
)

# The source as a stream, without what git and cargo put beside it.
packed() (
  cd "$1"
  find . \( -name .git -o -name target \) -prune -o -type f -print0 | LC_ALL=C sort -z | tar --null -T - -cf -
)

# Only a directory can go on PATH, and the program may have another name there.
expose() {
  local binary=$1 directory
  directory=$(dirname "$binary")
  if [[ $(basename "$binary") != ll-loop ]]; then
    directory=$(mktemp -d "$RUNNER_TEMP/ll-loop-path.XXXXXX")
    ln -s "$binary" "$directory/ll-loop"
  fi
  echo "$directory" >>"$GITHUB_PATH"
}

main "$@"
