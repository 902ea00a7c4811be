#!/usr/bin/env bash
# Writes into the tree what a release pins: the checksums of its archives, the digest of its image, and its own tag in the
# workflows that use the action. release.sh commits the result, and that commit gets the tag.
#
#   pin.sh VERSION IMAGE ARCHIVES [EARLIER]
#
#   VERSION    v1.2.3
#   IMAGE      registry/name@sha256:…
#   ARCHIVES   directory with the ll-loop-VERSION-*.tar.gz of every target
#   EARLIER    file with checksums of other releases, in any order and as often as they come
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.github/release/common.sh
source .github/release/common.sh

main() {
  local version=$1 image=$2 archives=$3 earlier=${4:-/dev/null} target
  is_version "$version" || fail "\`$version\` is not a version"
  [[ $image =~ ^[a-z0-9./_-]+@sha256:[0-9a-f]{64}$ ]] || fail "\`$image\` is not an image with a digest"
  for target in "${TARGETS[@]}"; do
    [[ -f $archives/ll-loop-$version-$target.tar.gz ]] || fail "$archives has no archive for $target"
  done
  pin_checksums "$version" "$archives" "$earlier"
  pin_image "$image"
  pin_uses "$version"
}

# The entries of this release go on top: setup/install.sh takes the first for the version of the commit. The others stay,
# so that \`version:\` can name them.
pin_checksums() {
  local version=$1 archives=$2 earlier=$3 comment others twice target
  comment=$(grep '^#' setup/checksums.txt)
  others=$(cat setup/checksums.txt "$earlier" | grep -E '^[0-9a-f]{64}  ll-loop-v' | grep -vF "  ll-loop-$version-" | LC_ALL=C sort -u -k 2Vr -k 1 || true)
  twice=$(awk '{ print $2 }' <<<"$others" | grep . | uniq -d || true)
  [[ -z $twice ]] || fail "the commits of earlier releases have two checksums for ${twice//$'\n'/, }
An archive never changes: find out which tag was moved before anything is released."
  {
    echo "$comment"
    for target in "${TARGETS[@]}"; do
      (cd "$archives" && sha256sum "ll-loop-$version-$target.tar.gz")
    done
    [[ -z $others ]] || echo "$others"
  } >setup/checksums.txt.new
  mv setup/checksums.txt.new setup/checksums.txt
}

pin_image() {
  local image=$1
  sed "s|^  image: .*|  image: docker://$image|" docker/action.yml >docker/action.yml.new
  grep -q "^  image: docker://$image\$" docker/action.yml.new || fail "docker/action.yml has no \`image:\` to replace"
  mv docker/action.yml.new docker/action.yml
}

# A commit cannot name itself, as its id follows from its content. The tag of its version is the next best: nothing moves it.
pin_uses() {
  local version=$1 file changed=
  for file in .github/workflows/*.yml action.yml */action.yml; do
    grep -Eq "uses: $REPOSITORY(/[^@ ]*)?@" "$file" || continue
    sed -E "s|(uses: $REPOSITORY(/[^@ ]*)?)@[^ ]+|\1@$version|" "$file" >"$file.new"
    mv "$file.new" "$file"
    changed=yes
  done
  [[ -n $changed ]] || fail "no workflow uses $REPOSITORY, so there is nothing to pin to $version"
}

main "$@"
