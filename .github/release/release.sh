#!/usr/bin/env bash
# The steps of a release that others can see. Each can be repeated, alone or with those before it, and comes to the same
# end: what is there already and is right stays, and what is there and is different is refused.
#
#   release.sh pin       makes the commit of the release, here; HEAD is that commit afterwards
#   release.sh draft     puts the assets into a draft
#   release.sh tag       pushes the tag
#   release.sh publish   publishes the draft
#   release.sh move      moves v1.2 and v1 to the release, unless they are further
#
# Read from the environment:
#   VERSION       v1.2.3
#   IMAGE DIGEST  registry/name, and sha256:…            (pin)
#   ARCHIVES      directory with the archives            (pin)
#   ASSETS        directory with everything that users download, and NOTES, the text   (draft, publish)
#   RELEASE_KEY   the private half of the deploy key     (pin, tag, publish, move)
#   GH_TOKEN      the token of the job                   (draft, publish)
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.github/release/common.sh
source .github/release/common.sh

readonly ATTEMPTS=10
: "${VERSION:?}"

main() {
  is_version "$VERSION" || fail "\`$VERSION\` is not a version"
  case ${1:-} in
    pin | draft | tag | publish | move) "$1" ;;
    *) fail "release.sh: pin, draft, tag, publish or move" ;;
  esac
}

# Everything in the commit follows from the commit that is released and from the archives, its date too. So the same
# release is the same commit, and one that is not is known by its id.
pin() {
  local earlier existing date commit versions version
  connect
  git fetch --quiet --force "$REMOTE" 'refs/tags/v*:refs/tags/v*'
  existing=$(remote_commit "$VERSION")
  earlier=$(mktemp "$RUNNER_TEMP/checksums.XXXXXX")
  if [[ -n $existing ]]; then
    # What it knew when it was made; there may be later releases by now.
    git show "$existing:setup/checksums.txt" >"$earlier"
  else
    versions=$(remote_versions)
    for version in $versions; do
      git show "refs/tags/$version:setup/checksums.txt" >>"$earlier"
    done
  fi
  .github/release/pin.sh "$VERSION" "$IMAGE@$DIGEST" "$ARCHIVES" "$earlier"
  date=$(git show --no-patch --format=%cI HEAD)
  git add --update
  GIT_AUTHOR_DATE=$date GIT_COMMITTER_DATE=$date git \
    -c user.name='github-actions[bot]' -c user.email='41898282+github-actions[bot]@users.noreply.github.com' \
    -c commit.gpgSign=false commit --quiet --message "Release $VERSION"
  commit=$(git rev-parse HEAD)
  if [[ -n $existing && $existing != "$commit" ]]; then
    git --no-pager diff --stat "$existing" "$commit"
    fail "the tag $VERSION exists with other content: $existing is not $commit
A tag never changes once others have seen it. Release the next version."
  fi
  echo "$VERSION is $commit"
}

draft() {
  local flags=() state
  state=$(release_state)
  case $state in
    none)
      is_final "$VERSION" || flags+=(--prerelease)
      # Without --target, which GitHub refuses from the token of a job where the commit changes workflows.
      gh release create "$VERSION" --draft --title "$VERSION" --notes-file "$NOTES" "${flags[@]+"${flags[@]}"}"
      ;;
    published)
      echo "$VERSION is published already"
      return
      ;;
  esac
  gh release upload "$VERSION" --clobber "$ASSETS"/*
}

tag() {
  local commit found
  connect
  commit=$(git rev-parse HEAD)
  # An empty value after the colon: the remote takes it only if it has no such tag. The answer may be lost, so it is the
  # remote that is asked for the end of it.
  git push "$REMOTE" "--force-with-lease=refs/tags/$VERSION:" "$commit:refs/tags/$VERSION" || true
  found=$(remote_commit "$VERSION")
  [[ $found == "$commit" ]] || fail "the tag $VERSION could not be pushed, or exists with other content
Re-run this job; if it fails again, compare the tag with $commit."
}

publish() {
  local flags=(--latest=false) state found latest
  connect
  state=$(release_state)
  case $state in
    none) fail "there is no draft of $VERSION
Re-run this job." ;;
    published)
      echo "$VERSION is published already"
      return
      ;;
  esac
  found=$(remote_commit "$VERSION")
  [[ $found == "$(git rev-parse HEAD)" ]] || fail "the tag $VERSION is not on the commit of this release
Re-run this job."
  expect_assets
  latest=$(latest_of v)
  [[ $latest != "$VERSION" ]] || flags=(--latest)
  gh release edit "$VERSION" --draft=false --verify-tag "${flags[@]}"
}

move() {
  local minor
  if ! is_final "$VERSION"; then
    echo "$VERSION is a pre-release: no tag moves to it"
    return
  fi
  connect
  minor=${VERSION%.*}
  advance "$minor"
  advance "${minor%.*}"
}

# --- Parts of them ---

# none, draft or published. Drafts are not found by their tag, so all releases are listed.
release_state() {
  local states
  states=$(gh release list --limit 1000 --json tagName,isDraft |
    jq --raw-output --arg tag "$VERSION" '.[] | select(.tagName == $tag) | if .isDraft then "draft" else "published" end')
  case $states in
    "") echo none ;;
    draft | published) echo "$states" ;;
    *) fail "there is more than one release for $VERSION
Delete the drafts on the page of the releases, and re-run this job." ;;
  esac
}

# The draft has what was built, whole, and nothing else.
expect_assets() {
  local wanted found
  wanted=$(cd "$ASSETS" && for file in *; do echo "$file $(($(wc -c <"$file")))"; done | LC_ALL=C sort)
  found=$(gh release view "$VERSION" --json assets | jq --raw-output '.assets[] | "\(.name) \(.size)"' | LC_ALL=C sort)
  [[ $found == "$wanted" ]] || fail "the draft of $VERSION has other assets than this run made
wanted: ${wanted//$'\n'/, }
found: ${found//$'\n'/, }
Re-run this job; delete by hand what is too much."
}

# Moves a tag to HEAD, unless it stands at the same version or a later one. What was read is what the remote compares with
# when it moves the tag. If another release was faster, the tag is read again.
advance() {
  local series=$1 commit attempt lines old at
  commit=$(git rev-parse HEAD)
  for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
    lines=$(git ls-remote "$REMOTE" "refs/tags/$series" "refs/tags/$series^{}")
    old=$(head -n 1 <<<"$lines" | cut -f 1)
    if [[ -n $old ]]; then
      at=$(version_of "$(tail -n 1 <<<"$lines" | cut -f 1)" "$series")
      if ! is_after "$VERSION" "$at"; then
        echo "$series stays at $at"
        return
      fi
    else
      at=$(latest_of "$series.")
      [[ $at == "$VERSION" ]] || fail "the tag $series is gone, and $at is later than $VERSION
Put it back on $at by hand, and re-run this job."
    fi
    if git push "$REMOTE" "--force-with-lease=refs/tags/$series:$old" "$commit:refs/tags/$series"; then
      echo "$series is at $VERSION now"
      return
    fi
  done
  fail "$series could not be moved to $VERSION in $ATTEMPTS attempts
Re-run this job."
}

# The version whose tag is on the commit that a series is at.
version_of() {
  local commit=$1 series=$2 lines tag
  lines=$(git ls-remote --tags "$REMOTE" "refs/tags/$series.*" | grep "^$commit" || true)
  while read -r _ tag; do
    tag=${tag#refs/tags/}
    tag=${tag%'^{}'}
    if is_final "$tag"; then
      echo "$tag"
      return
    fi
  done <<<"$lines"
  fail "$series is on $commit, which is not a release of it
Find out who moved it. To go on, put it on the latest release by hand, and re-run this job."
}

# The latest final version whose name begins with $1.
latest_of() {
  local versions version latest=
  versions=$(remote_versions)
  for version in $versions; do
    if is_final "$version" && [[ $version == "$1"* ]] && { [[ -z $latest ]] || is_after "$version" "$latest"; }; then
      latest=$version
    fi
  done
  echo "$latest"
}

main "$@"
