#!/usr/bin/env bash
# Installs bubblewrap, which confines what agents do, where the runner lacks it and lets us. Where it does not, that is
# said and no failure: the run decides what it means.
set -euo pipefail

main() {
  if [[ $(uname -s) != Linux ]] || command -v bwrap >/dev/null; then
    return
  fi
  local -a as_root=()
  if [[ $(id -u) != 0 ]]; then
    as_root=(sudo -n)
  fi
  if command -v apt-get >/dev/null; then
    install ${as_root[@]+"${as_root[@]}"} apt-get install --yes --no-install-recommends bubblewrap ||
      { install ${as_root[@]+"${as_root[@]}"} apt-get update && install ${as_root[@]+"${as_root[@]}"} apt-get install --yes --no-install-recommends bubblewrap; }
  elif command -v dnf >/dev/null; then
    install ${as_root[@]+"${as_root[@]}"} dnf install --assumeyes bubblewrap
  elif command -v apk >/dev/null; then
    install ${as_root[@]+"${as_root[@]}"} apk add bubblewrap
  else
    echo "bubblewrap is not here, and no package manager that is known"
  fi
}

install() {
  DEBIAN_FRONTEND=noninteractive "$@" >/dev/null 2>&1
}

main || echo "bubblewrap cannot be installed on this runner"
