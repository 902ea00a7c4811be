#!/usr/bin/env bash
# Puts the ll-loop program of this release on the runner and says where it is.
#
# The archive comes from the GitHub release and must have the SHA-256 that checksums.txt gives for it,
# a file of the very commit the workflow pinned. What is cached is the archive, not the program, and
# it is checked on every use: a cache that others can write to is no way in.
#
#   install.sh          writes the outputs `bin` and `version`
#   install.sh --path   also puts the program on PATH for the steps that follow
#
# Read from the environment:
#   LL_VERSION            the version wanted; empty for the one this commit was released as
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
    target=$(target_of_runner)
    version=$(wanted_version)
    asset=ll-loop-$version-$target.tar.gz
    archive=$(fetch "$asset" "$version" "$target")
    binary=$(unpack "$archive" "$version")
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
  local message=$1
  message=${message//'%'/%25}
  message=${message//$'\r'/%0D}
  message=${message//$'\n'/%0A}
  echo "::error title=ll-loop was not installed::$message" >&2
  exit 1
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
    [[ -n $version ]] || fail "this commit of the action pins no release: setup/checksums.txt has no entry
Use a released version, \`uses: little-loops/ll-loop@v…\`; branches carry no checksums. To run an unreleased ll-loop, build it and set LL_LOOP_BINARY."
  fi
  version=v${version#v}
  [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || fail "\`$version\` is not a version
Write it as \`v1.2.3\`, or leave \`version\` out to get the one the action was released with."
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
  local sum
  if command -v sha256sum >/dev/null; then
    sum=$(sha256sum <"$1")
  else
    sum=$(shasum -a 256 <"$1")
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
