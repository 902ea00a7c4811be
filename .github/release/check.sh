#!/usr/bin/env bash
# Refuses a release before anything is built for it: of a version that is none, that exists, or that the branch is not at.
#
#   check.sh VERSION    in a checkout that has the tags
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.github/release/common.sh
source .github/release/common.sh

main() {
  local version=$1 crate=${1#v}
  is_version "$version" || fail "\`$version\` is not a version
Write it as \`v1.2.3\`, or \`v1.2.3-rc.1\` for a pre-release."
  # Users would have to write `@v0`, and change it for the first version that promises them anything.
  if is_final "$version" && [[ $version == v0.* ]]; then
    fail "$version is below v1.0.0, and only pre-releases are
The first release is v1.0.0. To try it before, release v1.0.0-rc.1."
  fi
  [[ ${GITHUB_REF_TYPE:-branch} == branch ]] || fail "a release is made from a branch, not from the tag ${GITHUB_REF_NAME:-}
Start the workflow on main, or on the branch of a backport: docs/releasing.md#a-backport"
  if git rev-parse --quiet --verify "refs/tags/$version" >/dev/null; then
    fail "the tag $version exists already
If its release is still a draft, re-run the failed jobs of the run that made it: they go on where it stopped. Otherwise release the next version."
  fi
  [[ $(of_package Cargo.toml) == "$crate" ]] || fail "Cargo.toml has the version $(of_package Cargo.toml), not $crate
Change it on the branch first: docs/releasing.md#a-release"
  [[ $(of_package Cargo.lock) == "$crate" ]] || fail "Cargo.lock has the version $(of_package Cargo.lock), not $crate
Run \`cargo update --workspace\` and commit what it changes."
  if is_final "$version" && ! grep -q "^## \[${crate//./\\.}\]" CHANGELOG.md; then
    fail "CHANGELOG.md has no heading \`## [$crate]\`
Give what is under \`Unreleased\` that heading, with the date: it becomes the text of the release."
  fi
  echo "$version can be released from $(git rev-parse HEAD)"
}

# The version of ll-loop in a manifest or a lock file, which comes right after its name.
of_package() {
  awk '$0 == "name = \"ll-loop\"" { getline; gsub(/^version = "|"$/, ""); print; exit }' "$1"
}

main "$@"
