#!/bin/bash
# Builds and runs every tier of tests, one ctest run after another, and ends with what did not pass and a line of counts for
# each. A failing run does not keep the later ones from running. With CI=true a test that is skipped is a failure.
# Arguments go to every cmake configuration.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

configure_options=("$@")
jobs=$(nproc)
summary=()
not_passed=()
failed=0

# count NAME FILE: the number in attribute NAME of the first test suite of a JUnit file.
count() { sed -n "s/^.*[[:space:]]$1=\"\([0-9]*\)\".*$/\1/p" "$2" | head -n 1; }

# record_run NAME STATUS FILE: adds the line of a ctest run to the summary.
record_run() {
  local name=$1 status=$2 junit=$3 tests failures skipped disabled text
  if [[ ! -s $junit ]]; then
    summary+=("$(printf '%-12s did not run' "$name")") failed=1
    return
  fi
  tests=$(count tests "$junit") failures=$(count failures "$junit")
  skipped=$(count skipped "$junit") disabled=$(count disabled "$junit")
  summary+=("$(printf '%-12s %4d tests: %4d passed, %d failed, %d skipped, %4d s' "$name" "$tests" \
    $((tests - failures - skipped - disabled)) "$failures" $((skipped + disabled)) "$SECONDS")")
  text=$(tests/failed_tests.py "$name" "$junit")
  [[ -z $text ]] || not_passed+=("$text")
  ((status == 0)) || failed=1
  if ((skipped + disabled > 0)) && [[ ${CI:-} == true ]]; then failed=1; fi
}

# tier PRESET CTEST_ARGUMENT...: configures, builds and runs the tests that the arguments select.
tier() {
  local preset=$1 folder junit status=1
  shift
  SECONDS=0
  folder=$(preset_folder "$preset")
  junit=$PWD/$folder/ctest.xml
  rm -f "$junit"
  echo "=== $preset"
  if cmake --preset "$preset" "${configure_options[@]}" && cmake --build --preset "$preset"; then
    ctest --test-dir "$folder" --parallel "$jobs" --output-on-failure --no-tests=error --output-junit "$junit" "$@"
    status=$?
  fi
  record_run "$preset" "$status" "$junit"
}

preset_folder() { [[ $1 == release ]] && echo build || echo "build-$1"; }

# The grids and the curves run the same code in a thousand configurations: a matter of figures, not of memory.
grids='^(Atc16|ModelGridTest|OneSidedGridTest|ReadGridTest)\.'

tier release
tier asan-ubsan --label-exclude 'callgrind|static' --exclude-regex "$grids"
tier tsan --label-regex threads
tier fuzz --label-regex fuzz

if ((${#not_passed[@]} > 0)); then printf '%s\n' "=== not passed" "${not_passed[@]}"; fi
echo "=== summary"
printf '%s\n' "${summary[@]}"
exit "$failed"
