#!/usr/bin/env bash
# Puts together what users download: the archives, the packages that were made of them, the schemas of loop and test files, the
# list of what is in the program, the script that installs it, and the checksums of all of them.
#
#   assets.sh VERSION ARCHIVES PACKAGES SBOM ASSETS NOTES
#
#   ARCHIVES   directory with the archives
#   PACKAGES   directory with what packages.py made
#   SBOM       the list, in CycloneDX's JSON
#   ASSETS     directory that is made anew
#   NOTES      file for the text of the release
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.github/release/common.sh
source .github/release/common.sh

main() {
  local version=$1 archives=$2 packages=$3 sbom=$4 assets=$5 notes=$6 target kind count
  is_version "$version" || fail "\`$version\` is not a version"
  rm -rf "$assets"
  mkdir -p "$assets"
  for target in "${TARGETS[@]}"; do
    cp "$archives/ll-loop-$version-$target.tar.gz" "$assets"
  done
  for kind in ".whl ${#TARGETS[@]}" ".tgz $((${#TARGETS[@]} + 1))" "-shell.tar.gz 1"; do
    count=$(find "$packages" -type f -name "*${kind% *}" | grep -c .) || true
    ((count == ${kind#* })) || fail "$packages has $count packages *${kind% *}, and not ${kind#* }"
  done
  cp "$packages"/* "$assets"
  cp schema/loop.schema.json schema/test.schema.json schema/policy.schema.json schema/verdict.schema.json \
    schema/verdict-policy.schema.json schema/board.schema.json "$assets"
  [[ $(jq '.bomFormat == "CycloneDX" and (.components | length > 0)' "$sbom") == true ]] ||
    fail "$sbom is not a list of components in CycloneDX's JSON"
  cp "$sbom" "$assets/ll-loop-$version.cdx.json"
  installer "$version" "$assets" >"$assets/install.sh"
  chmod 755 "$assets/install.sh"
  (cd "$assets" && LC_ALL=C && sha256sum -- *) >"$assets.sums"
  mv "$assets.sums" "$assets/SHA256SUMS"
  text "$version" >"$notes"
}

# The template, with the version and the checksums of its archives in it.
installer() {
  local version=$1 assets=$2 line
  local archives=("${TARGETS[@]/#/ll-loop-$version-}")
  while IFS= read -r line; do
    case $line in
      "VERSION=''") echo "VERSION='$version'" ;;
      "CHECKSUMS=''") printf "CHECKSUMS='%s'\n" "$(cd "$assets" && sha256sum -- "${archives[@]/%/.tar.gz}")" ;;
      *) printf '%s\n' "$line" ;;
    esac
  done <.github/release/install.sh
}

# What CHANGELOG.md says of the version; a pre-release has what is not released yet.
text() {
  local version=$1 heading=${1#v}
  grep -qF "## [$heading]" CHANGELOG.md || heading=Unreleased
  # Links of the file are relative to the repository, and the page of a release is elsewhere.
  awk -v heading="## [$heading]" 'index($0, "## [") == 1 { on = index($0, heading) == 1; next } on' CHANGELOG.md |
    sed -E "s|\]\(([^):]+)\)|](https://github.com/$REPOSITORY/blob/$version/\1)|g"
  cat <<END

[How to install and how to verify it](https://github.com/$REPOSITORY/blob/$version/docs/install.md)
END
}

main "$@"
