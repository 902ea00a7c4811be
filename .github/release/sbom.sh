#!/usr/bin/env bash
# Writes the list of what is in the program (SBOM) in CycloneDX's JSON, with CycloneDX's own tool for cargo.
#
#   sbom.sh FILE
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=.github/release/common.sh
source .github/release/common.sh

readonly TOOL=0.5.9
readonly TOOL_SHA256=5d162f67705f0f5038759d73bf546a083bf30e8677c2e944b416bca48d9d69a8

main() {
  local file=$1 tool crate found
  tool=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/cyclonedx.XXXXXX")
  # Its own lock file has the checksums of everything below it.
  cargo install --quiet --locked --root "$tool" "cargo-cyclonedx@$TOOL"
  for crate in "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/"cargo-cyclonedx-$TOOL.crate"; do
    found=$(sha256sum <"$crate")
    [[ ${found%% *} == "$TOOL_SHA256" ]] || fail "$crate is not the cargo-cyclonedx that was looked at: ${found%% *}"
  done
  # With `all`, what any of the platforms has is in it. No tests, no tools: those are not in the program.
  "$tool/bin/cargo-cyclonedx" cyclonedx --format json --spec-version 1.5 --target all --override-filename sbom
  mv sbom.json "$file"
}

main "$@"
