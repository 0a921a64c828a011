#!/usr/bin/env bash
# Judges the gateway with software we did not write: official SDKs of both eras on both sides, the conformance suite,
# loads of questions, and hostile tokens of a real identity provider. README.md beside this file says what each part does.
#
# Usage: tests/interop/run.sh [matrix] [eras] [oldest] [policy] [everything] [transports] [conformance] [load] [parked] [abandoned] [chaos] [idp]
# (default: all; idp only with a gateway)
# CONTRAFLOW_BIN names the gateway; without it everything runs directly against the servers, which judges the judges.
# Ends with a line `N passed, N failed`; exit code 1 when something failed.
set -euo pipefail

INTEROP=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -n "${CONTRAFLOW_BIN:-}" ]; then
  CONTRAFLOW_BIN=$(realpath -e "$CONTRAFLOW_BIN") || { echo "interop: CONTRAFLOW_BIN does not exist" >&2; exit 1; }
  export CONTRAFLOW_BIN
fi
cd "$INTEROP"
. ./install.sh

declare -A SCRIPTS=(
  [matrix]=judge/matrix.mjs
  [eras]=judge/eras.mjs
  [oldest]=judge/oldest.mjs
  [policy]=judge/policy.mjs
  [everything]=judge/everything.mjs
  [transports]=judge/transports.mjs
  [conformance]=conformance/compare.mjs
  [load]=load/questions.mjs
  [parked]=load/parked.mjs
  [abandoned]=load/abandoned.mjs
  [chaos]=load/chaos.mjs
  [idp]=judge/idp.mjs
)
passed=0
failed=0
parts=("$@")
if [ $# = 0 ]; then
  parts=(matrix eras oldest policy everything transports conformance load parked abandoned chaos)
  if [ -n "${CONTRAFLOW_BIN:-}" ] && [ -e idp/hostile.mjs ]; then parts+=(idp); fi
fi
# Logs of old runs; a run that is still going is younger.
[ ! -d .work/runs ] || find .work/runs -mindepth 1 -maxdepth 1 -mmin +120 -exec rm -rf {} +

for part in "${parts[@]}"; do
  [ -n "${SCRIPTS[$part]:-}" ] || { echo "interop: no part is called $part" >&2; exit 2; }
  echo "--- interop: $part"
  last=
  while IFS= read -r line; do
    [ -z "$last" ] || printf '%s\n' "$last"
    last=$line
  done < <(node "${SCRIPTS[$part]}" 2>&1)
  if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    echo "$part: $last"
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
  else
    echo "$last"
    echo "FAIL  $part ended without a count"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
