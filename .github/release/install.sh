#!/bin/sh
# Installs ll-loop: downloads the archive of this release for this machine, checks it, and puts the program into a
# directory. The script is part of a release, and knows the checksums of that release.
#
#   install.sh [--to DIR] [--require-attestation]
#
#   --to DIR                 where to; ~/.local/bin without it
#   --require-attestation    refuse to go on where GitHub's CLI cannot check who built the archive
#
# LL_LOOP_DOWNLOAD_URL is a mirror of https://github.com/little-loops/ll-loop/releases/download; the checksums still hold.
set -eu

# Filled in by the release.
VERSION=''
CHECKSUMS=''

REPOSITORY=little-loops/ll-loop

main() {
  to=${HOME:+$HOME/.local/bin} required=
  while [ $# -gt 0 ]; do
    case $1 in
      --to)
        [ $# -ge 2 ] || fail "--to needs a directory"
        to=$2
        shift
        ;;
      --require-attestation) required=yes ;;
      *) fail "unknown argument \`$1\`; there are --to DIR and --require-attestation" ;;
    esac
    shift
  done
  [ -n "$to" ] || fail "HOME is not set, so say where to: --to DIR"
  [ -n "$VERSION" ] || fail "this is the template of install.sh, and knows no release
Take the one of a release: https://github.com/$REPOSITORY/releases"

  asset=ll-loop-$VERSION-$(target).tar.gz
  pinned=$(printf '%s\n' "$CHECKSUMS" | sed -n "s/^\([0-9a-f]\{64\}\)  $asset\$/\1/p")
  [ -n "$pinned" ] || fail "this script has no checksum for $asset"
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  echo "this downloads $asset, checks it, and puts ll-loop into $to"
  download "$asset" "$scratch/$asset"
  found=$(sha256 "$scratch/$asset")
  [ "$found" = "$pinned" ] || fail "$asset was refused: it is not the file of this release
expected sha256 $pinned, downloaded $found"
  attested "$scratch/$asset" "$required"

  tar -xzf "$scratch/$asset" -C "$scratch" ll-loop
  chmod 755 "$scratch/ll-loop"
  mkdir -p "$to"
  fresh=$to/.ll-loop.$$
  cp "$scratch/ll-loop" "$fresh"
  if ! "$fresh" version >/dev/null; then
    rm -f "$fresh"
    fail "$asset does not run on this machine, or nothing may be run from $to"
  fi
  # The rename replaces a program that is running.
  mv -f "$fresh" "$to/ll-loop"
  echo "ll-loop $VERSION is installed as $to/ll-loop"
  case ":$PATH:" in
    *":$to:"*) ;;
    *) echo "$to is not on PATH: export PATH=\"$to:\$PATH\"" ;;
  esac
}

fail() {
  printf 'install.sh: %s\n' "$1" >&2
  exit 1
}

target() {
  case $(uname -s)/$(uname -m) in
    Linux/x86_64 | Linux/amd64) echo x86_64-unknown-linux-musl ;;
    Linux/aarch64 | Linux/arm64) echo aarch64-unknown-linux-musl ;;
    Darwin/x86_64) echo x86_64-apple-darwin ;;
    Darwin/arm64) echo aarch64-apple-darwin ;;
    MINGW*/* | MSYS*/* | CYGWIN*/* | Windows*/*) fail "ll-loop does not run on Windows
Install it inside of WSL (https://learn.microsoft.com/windows/wsl), where this script works." ;;
    *) fail "there is no ll-loop for $(uname -s) on $(uname -m)
With Rust it can be built there: https://github.com/$REPOSITORY#on-a-fresh-machine" ;;
  esac
}

download() {
  base=${LL_LOOP_DOWNLOAD_URL:-https://github.com/$REPOSITORY/releases/download}
  case $base in
    https://* | http://127.0.0.1:*) ;;
    *) fail "LL_LOOP_DOWNLOAD_URL is \`$base\`, which does not begin with https://" ;;
  esac
  url=${base%/}/$VERSION/$1
  if command -v curl >/dev/null; then
    curl --disable --proto '=https,http' --proto-redir '=https' --location --fail --silent --show-error --retry 3 \
      --connect-timeout 20 --max-time 300 --output "$2" "$url" || fail "$url could not be downloaded"
  elif command -v wget >/dev/null; then
    wget -q -T 60 -O "$2" "$url" || fail "$url could not be downloaded"
  else
    fail "neither curl nor wget is installed"
  fi
}

sha256() {
  if command -v sha256sum >/dev/null; then
    sha256sum <"$1" | cut -d ' ' -f 1
  else
    shasum -a 256 <"$1" | cut -d ' ' -f 1
  fi
}

# Who built it. Only GitHub's CLI can tell, and it asks GitHub, for which it has to be logged in.
attested() {
  if command -v gh >/dev/null && gh attestation verify --help >/dev/null 2>&1 && gh auth status >/dev/null 2>&1; then
    gh attestation verify "$1" --repo "$REPOSITORY" --signer-workflow "$REPOSITORY/.github/workflows/release.yml" >/dev/null ||
      fail "$asset was refused: GitHub has no attestation that the release workflow of $REPOSITORY built it"
    echo "attestation: built by the release workflow of $REPOSITORY"
  elif [ -n "$2" ]; then
    fail "the attestation cannot be checked: that needs GitHub's CLI \`gh\`, 2.49 or later, logged in (\`gh auth login\`)"
  else
    echo "checksum: as in this script. Who built it was not checked, for which \`gh\` has to be installed and logged in"
  fi
}

# Last, so that a script that was cut off in the download does nothing.
main "$@"
