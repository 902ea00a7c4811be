#!/usr/bin/env bash
# Writes into the tree what a release pins: the checksums of its archives and the digest of its image.
# The release workflow commits the result and tags that commit.
#
#   pin.sh VERSION IMAGE ARCHIVES
#
#   VERSION    v1.2.3
#   IMAGE      registry/name@sha256:…
#   ARCHIVES   directory with the ll-loop-VERSION-*.tar.gz of every target
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly TARGETS=(
  x86_64-unknown-linux-musl
  aarch64-unknown-linux-musl
  x86_64-apple-darwin
  aarch64-apple-darwin
)

main() {
  local version=$1 image=$2 archives=$3
  [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || fail "\`$version\` is not a version"
  [[ $image =~ ^[a-z0-9./_-]+@sha256:[0-9a-f]{64}$ ]] || fail "\`$image\` is not an image with a digest"
  local target
  for target in "${TARGETS[@]}"; do
    [[ -f $archives/ll-loop-$version-$target.tar.gz ]] || fail "$archives has no archive for $target"
  done
  pin_checksums "$version" "$archives"
  pin_image "$image"
}

fail() {
  echo "pin.sh: $1" >&2
  exit 1
}

# New entries go on top: setup/install.sh takes the first for the version of the commit. Older ones
# stay, so that `version:` can name them.
pin_checksums() {
  local version=$1 archives=$2 target comment older
  ! grep -q "  ll-loop-$version-" setup/checksums.txt || fail "setup/checksums.txt has $version already"
  comment=$(grep '^#' setup/checksums.txt)
  older=$(grep -v '^#' setup/checksums.txt || true)
  {
    echo "$comment"
    for target in "${TARGETS[@]}"; do
      (cd "$archives" && sha256sum "ll-loop-$version-$target.tar.gz")
    done
    [[ -z $older ]] || echo "$older"
  } >setup/checksums.txt.new
  mv setup/checksums.txt.new setup/checksums.txt
}

pin_image() {
  local image=$1
  sed "s|^  image: .*|  image: docker://$image|" docker/action.yml >docker/action.yml.new
  grep -q "^  image: docker://$image\$" docker/action.yml.new || fail "docker/action.yml has no \`image:\` to replace"
  mv docker/action.yml.new docker/action.yml
}

main "$@"
