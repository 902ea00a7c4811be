#!/usr/bin/env bash
# What the scripts of a release have in common. It is sourced by them, and docs/releasing.md says how they fit together.

# What fails in $(…) fails the script as well.
shopt -s inherit_errexit

readonly REPOSITORY=little-loops/ll-loop

# shellcheck disable=SC2034 # read by the scripts that source this one
readonly TARGETS=(
  x86_64-unknown-linux-musl
  aarch64-unknown-linux-musl
  x86_64-apple-darwin
  aarch64-apple-darwin
)

# One annotation that says what is wrong and what to do.
fail() {
  local message=$1
  message=${message//'%'/%25}
  message=${message//$'\n'/%0A}
  echo "::error title=no release::$message" >&2
  exit 1
}

is_version() {
  local number='(0|[1-9][0-9]*)'
  [[ $1 =~ ^v$number\.$number\.$number(-[0-9A-Za-z.]+)?$ ]]
}

is_final() {
  is_version "$1" && [[ $1 != *-* ]]
}

# Whether the final version $1 comes after the final version $2.
is_after() {
  local one two part
  IFS=. read -ra one <<<"${1#v}"
  IFS=. read -ra two <<<"${2#v}"
  for part in 0 1 2; do
    ((one[part] == two[part])) || return $((one[part] < two[part]))
  done
  return 1
}

# The repository as the release's deploy key reaches it. The token of the job is not enough: GitHub refuses a push that
# changes workflows from it, and no `permissions:` can allow it.
connect() {
  local key known_hosts
  [[ -n ${RELEASE_KEY:-} ]] || fail "the secret RELEASE_KEY is missing
Add a deploy key with write access, and its private half as RELEASE_KEY to the environment \`release\`: docs/releasing.md#once"
  key=$(mktemp "$RUNNER_TEMP/release-key.XXXXXX")
  # shellcheck disable=SC2064 # the path of now
  trap "rm -f '$key'" EXIT
  printf '%s\n' "$RELEASE_KEY" >"$key"
  known_hosts=$(dirname "${BASH_SOURCE[0]}")/known_hosts
  export GIT_SSH_COMMAND="ssh -i '$key' -o IdentitiesOnly=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile='$known_hosts'"
  readonly REMOTE=git@github.com:$REPOSITORY.git
}

# The commit that a tag of the remote leads to; nothing where there is no such tag.
remote_commit() {
  local lines
  # The line of an annotated tag's commit, `^{}`, comes after that of the tag itself.
  lines=$(git ls-remote "$REMOTE" "refs/tags/$1" "refs/tags/$1^{}")
  [[ -z $lines ]] || tail -n 1 <<<"$lines" | cut -f 1
}

# All versions that have a tag on the remote.
remote_versions() {
  local lines tag
  lines=$(git ls-remote --refs --tags "$REMOTE" 'v*')
  while read -r _ tag; do
    ! is_version "${tag#refs/tags/}" || echo "${tag#refs/tags/}"
  done <<<"$lines"
}
