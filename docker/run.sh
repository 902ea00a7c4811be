#!/usr/bin/env bash
# Runs the loop inside a container image, for the input `image` of action.yml.
#
# What the container gets is listed here and is all it gets: ll-loop itself, the workspace, a home and
# a temporary directory of its own, the event, and a directory in which it leaves outputs and summary.
# No docker socket, no token but the one with which ll-loop reports the run and which it keeps from the
# actions, and no file that the runner reads: the program outside checks what the container left and hands it
# over. It also reads the log of the container, which may hold no command but groups and annotations.
#
# Paths are the same inside and outside, so that what the loop prints and puts out is true in both.
#
# `run.sh save` is for the step after it: what a container left that was killed is read in another one of the same
# image, without network and token, because links in it lead to nothing of the runner's there.
#
# Read from the environment:
#   LL_BIN                      the program, a static one
#   LL_IMAGE LL_NETWORK LL_ENV  the inputs `image`, `network`, `env`
#   LL_TOKEN LL_TEAM_TOKEN      the inputs `token`, `team-token`
#   INPUT_…                     the other inputs, passed on as they are
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# What the runner tells a step about itself, without GITHUB_TOKEN and the files that the runner reads.
readonly FACTS=(
  CI GITHUB_ACTIONS
  GITHUB_ACTION GITHUB_ACTION_REF GITHUB_ACTION_REPOSITORY GITHUB_ACTOR GITHUB_ACTOR_ID GITHUB_API_URL
  GITHUB_BASE_REF GITHUB_EVENT_NAME GITHUB_EVENT_PATH GITHUB_GRAPHQL_URL GITHUB_HEAD_REF GITHUB_JOB
  GITHUB_REF GITHUB_REF_NAME GITHUB_REF_PROTECTED GITHUB_REF_TYPE GITHUB_REPOSITORY
  GITHUB_REPOSITORY_ID GITHUB_REPOSITORY_OWNER GITHUB_REPOSITORY_OWNER_ID GITHUB_RETENTION_DAYS
  GITHUB_RUN_ATTEMPT GITHUB_RUN_ID GITHUB_RUN_NUMBER GITHUB_SERVER_URL GITHUB_SHA
  GITHUB_TRIGGERING_ACTOR GITHUB_WORKFLOW GITHUB_WORKFLOW_REF GITHUB_WORKFLOW_SHA GITHUB_WORKSPACE
  RUNNER_ARCH RUNNER_DEBUG RUNNER_ENVIRONMENT RUNNER_NAME RUNNER_OS
  INPUT_COMMAND INPUT_LOOP INPUT_PLAN INPUT_LEG INPUT_INPUT INPUT_PARAMS INPUT_CONTEXT INPUT_ARGS INPUT_WORKING_DIRECTORY INPUT_STRICT INPUT_ON_CHANGE
  INPUT_DEADLINE INPUT_LOCK INPUT_NOTIFY INPUT_REPORT_DIR INPUT_CHANGED_SINCE INPUT_STATUS INPUT_KEY INPUT_STATUS_CONTEXT INPUT_CHECK
  INPUT_COMMENT INPUT_SHA INPUT_ALLOW_UNTRUSTED INPUT_ON_HANDOFF INPUT_CHAIN_DEPTH INPUT_MAX_CHAIN
  INPUT_RESUME_FROM INPUT_ANSWER INPUT_LLM INPUT_MAX_COST INPUT_MAX_TOKENS INPUT_MAX_LLM_CALLS INPUT_SANDBOX INPUT_ENVIRONMENT
  INPUT_CHECKPOINT_EVERY
  INPUT_UPLOAD INPUT_RETENTION_DAYS INPUT_DELIVERS INPUT_RUN
)

main() {
  local part=contain image name scratch left
  local -a action=(action)
  if [[ ${1:-} == save ]]; then
    part=save
    action+=(save)
    # How the run ended is known: what is left to do has nothing to do with the container.
    if [[ -z ${INPUT_RUN:-} || -n ${INPUT_OUTCOME:-} ]]; then
      exec "$LL_BIN" action save
    fi
    LL_NETWORK=none
  fi
  command -v docker >/dev/null || fail "\`image\` needs docker, and it is not on this runner
Use a Linux runner with docker, and no \`container:\` on the job; or leave \`image\` out."
  image=$(wanted_image)
  check_network
  check_report_dir

  # Known to the next step before the container exists, so that a container left behind can be found.
  name=ll-loop-${GITHUB_RUN_ID:-0}-${GITHUB_RUN_ATTEMPT:-0}-$$-$RANDOM
  echo "container=$name" >>"$GITHUB_OUTPUT"

  scratch=$(mktemp -d "$RUNNER_TEMP/ll-loop-container.XXXXXX")
  mkdir -p "$scratch/home" "$scratch/temp/ll-loop"
  # A mount of its own, so that the container cannot put another directory in its place.
  left=$(mktemp -d "$RUNNER_TEMP/ll-loop-left.XXXXXX")
  # In which the steps of a job that run loops count them.
  mkdir -p "$RUNNER_TEMP/ll-loop"

  # No --init: ll-loop is its own. No --tty and no --interactive: the log is not a terminal. --user: what
  # the loop makes belongs to the runner's user, whom the image need not know.
  local options=(
    --rm --name "$name"
    --user "$(id -u):$(id -g)"
    --security-opt no-new-privileges
    --workdir "$GITHUB_WORKSPACE"
    --entrypoint /usr/local/bin/ll-loop
    --mount "$(bind "$LL_BIN" /usr/local/bin/ll-loop),readonly"
    --mount "$(bind "$GITHUB_WORKSPACE")"
    --mount "$(bind "$scratch")"
    --mount "$(bind "$RUNNER_TEMP/ll-loop" "$scratch/temp/ll-loop")"
    --mount "$(bind "$left")"
    --env "GITHUB_OUTPUT=$left/output"
    --env "GITHUB_STEP_SUMMARY=$left/summary"
    --env "HOME=$scratch/home"
    --env "RUNNER_TEMP=$scratch/temp"
  )
  if [[ -f ${GITHUB_EVENT_PATH:-} ]]; then
    options+=(--mount "$(bind "$GITHUB_EVENT_PATH"),readonly")
  fi
  if [[ -n ${LL_NETWORK:-} ]]; then
    options+=(--network "$LL_NETWORK")
  fi
  # Without a network nobody can be told, and it would only be tried for a while.
  if [[ ${LL_NETWORK:-} != none ]]; then
    options+=(--env LL_TOKEN --env LL_TEAM_TOKEN)
  fi

  # Names only: the values go through docker's own environment and stay out of the process list.
  local variable extra
  extra=$(extra_variables)
  for variable in "${FACTS[@]}" $extra; do
    options+=(--env "$variable")
  done

  # SIGINT and SIGTERM go on to docker, and from there to the process in the container; the exit code comes back.
  LL_LEFT=$left exec "$LL_BIN" action "$part" -- docker run "${options[@]}" "$image" "${action[@]}"
}

fail() {
  local message=$1
  message=${message//'%'/%25}
  message=${message//$'\r'/%0D}
  message=${message//$'\n'/%0A}
  echo "::error title=ll-loop did not start a container::$message" >&2
  exit 1
}

# docker would take a reference that begins with a hyphen for an option.
wanted_image() {
  local image=$LL_IMAGE
  if [[ $image == default ]]; then
    image=$(sed -n 's#^  image: docker://##p' "$HERE/action.yml")
    [[ -n $image ]] || fail "\`image: default\` is the image of a release, and this commit of the action is none
Use a released version, \`uses: little-loops/ll-loop@v…\`, or name an image."
  fi
  [[ $image =~ ^[A-Za-z0-9][A-Za-z0-9._:/@-]*$ ]] || fail "\`$image\` is not a reference to an image
Write it as \`registry/name:tag\` or \`registry/name@sha256:…\`."
  echo "$image"
}

check_network() {
  [[ ${LL_NETWORK:-} =~ ^([A-Za-z0-9][A-Za-z0-9_.-]*)?$ ]] || fail "\`$LL_NETWORK\` is not the name of a network
Write \`none\`, \`host\`, \`bridge\` or the name of a network that exists on the runner."
}

check_report_dir() {
  case ${INPUT_REPORT_DIR:-} in
    "$GITHUB_WORKSPACE"/*) ;;
    /*)
      fail "\`report-dir\` is \`$INPUT_REPORT_DIR\`, which the container does not see
With \`image\` the reports have to be in the workspace: give a path relative to it."
      ;;
  esac
}

# Names separated by blanks of any kind. Nothing else may get through to the command line.
extra_variables() {
  local names variable
  read -r -d '' -a names <<<"${LL_ENV:-}" || true
  for variable in ${names[@]+"${names[@]}"}; do
    [[ $variable =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || fail "\`$variable\` in \`env\` is not the name of an environment variable
Only names go there; give the values with \`env:\` of the step or the job."
    echo "$variable"
  done
}

# A bind mount for --mount, whose format is CSV: quoted, so that commas in a path are not separators.
bind() {
  local source=$1 target=${2:-$1}
  printf 'type=bind,"source=%s","target=%s"' "${source//\"/\"\"}" "${target//\"/\"\"}"
}

main "$@"
