#!/usr/bin/env bash
# The one test command: everything that has to hold before a change is merged. CI runs exactly this.
#
#   format · lints · documentation · cargo test · dependency rules · unused dependencies · build · official MCP software around the gateway
#
# Needs the Rust toolchain of rust-toolchain.toml and a C compiler. Installs the rest by itself: cargo-deny and
# cargo-machete (built once for the machine, some minutes), packages from PyPI and npm, and on a machine without them make, jq and
# Python (by apt-get) and Node (from PyPI). Stops at the first step that fails, with exit code 1. The last line is the sum of all
# steps: `N passed, N failed`. SKIP_INTEROP=1 leaves out what needs Python and Node.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

passed=0
failed=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

finish() {
  printf '\ntotal: %d min %02d s\n' $((SECONDS / 60)) $((SECONDS % 60))
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
  exit
}

# step NAME COUNT COMMAND…: runs a command under a heading. COUNT says how its checks are counted:
#   one    the command is one check
#   rust   by the `test result:` lines of the Rust test harness
#   sum    by its last `N passed, N failed` line
step() {
  local name=$1 count=$2 began=$SECONDS code=0 good=0 bad=0
  shift 2
  printf '\n=== %s\n' "$name"
  "$@" 2>&1 | tee "$log" || code=$?
  case $count in
    one) [ $code = 0 ] && good=1 ;;
    rust) read -r good bad < <(awk '/^test result:/ { p += $4; f += $6 } END { print p + 0, f + 0 }' "$log") ;;
    sum) read -r good bad < <(awk '/^[0-9]+ passed, [0-9]+ failed$/ { p = $1; f = $3 } END { print p + 0, f + 0 }' "$log") ;;
  esac
  # A step that failed without naming a check (a crash, a compile error) is one failure.
  if [ $code != 0 ] && [ "$bad" = 0 ]; then bad=1; fi
  passed=$((passed + good))
  failed=$((failed + bad))
  printf -- '--- %s: %d passed, %d failed, %d s\n' "$name" "$good" "$bad" $((SECONDS - began))
  [ "$bad" = 0 ] || finish
}

# tool NAME VERSION: a cargo tool, built once for the machine.
tool() {
  command -v "cargo-$1" >/dev/null || cargo install --locked --quiet "cargo-$1@$2"
}

# program NAME: what the package of that name brings, where it is missing.
program() {
  command -v "$1" >/dev/null && return
  command -v apt-get >/dev/null || { echo "$1 is needed, and this machine has no apt-get to install it"; return 1; }
  local as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  "${as_root[@]}" apt-get update -qq && "${as_root[@]}" apt-get install -y -qq "$1"
}

step "format" one cargo fmt --check
step "make" one program make
step "lints" one cargo clippy --locked --all-targets --quiet -- -D warnings
step "documentation" one env RUSTDOCFLAGS="-D warnings" cargo doc --locked --quiet --no-deps --document-private-items
step "jq" one program jq
step "cargo test" rust cargo test --locked --quiet --no-fail-fast
step "tools" one eval 'tool deny 0.20.2 && tool machete 0.9.1 && cargo fetch --locked --quiet'
step "dependency rules" one cargo deny --offline --locked check bans licenses sources
step "unused dependencies" one cargo machete

if [ -n "${SKIP_INTEROP:-}" ]; then
  printf '\n=== interop\n--- skipped: SKIP_INTEROP is set\n'
else
  step "build" one cargo build --locked --quiet
  CONTRAFLOW_BIN="${CARGO_TARGET_DIR:-target}/debug/contraflow" step "interop" sum tests/interop/run.sh
fi
finish
