#!/bin/bash
# run_tiers.sh check|test|long [CMAKE_OPTION...]: builds and runs the tests of `make -f Makefile.cluster check`, `test` or
# `test-long` (docs/testing.md), one step after another, and ends with what did not pass and a line for each step. A step
# that fails does not keep the later ones from running. With CI=true a test that is skipped is a failure.
# The options go to every cmake configuration.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=${1:?run_tiers.sh check|test|long}
shift
configure_options=("$@")
jobs=$(nproc)
summary=()
not_passed=()
failed=0

preset_folder() { [[ $1 == release ]] && echo build || echo "build-$1"; }

# build PRESET CMAKE_OPTION...: configures and builds what the preset builds; the time goes to build_seconds.
build() {
  local preset=$1 status
  shift
  echo "=== $preset: build"
  SECONDS=0
  cmake --preset "$preset" "${configure_options[@]}" "$@" && cmake --build --preset "$preset"
  status=$?
  build_seconds=$SECONDS
  return "$status"
}

# did_not_pass NAME WHY: a step that ended before it could be counted.
did_not_pass() {
  summary+=("$(printf '%-12s %s' "$1" "$2")")
  failed=1
}

# count NAME FILE: the number in attribute NAME of the first test suite of a JUnit file.
count() { sed -n "s/^.*[[:space:]]$1=\"\([0-9]*\)\".*$/\1/p" "$2" | head -n 1; }

# run_tests PRESET CTEST_ARGUMENT...: runs the tests of a build that the arguments select.
run_tests() {
  local preset=$1 junit status tests failures skipped text
  shift
  junit=$PWD/$(preset_folder "$preset")/ctest.xml
  rm -f "$junit"
  echo "=== $preset: tests"
  SECONDS=0
  # The end of what a failed test printed is kept, and enough of it to find the case.
  ctest --test-dir "$(preset_folder "$preset")" --parallel "$jobs" --output-on-failure --no-tests=error \
    --test-output-size-failed 4000000 --test-output-truncation head --output-junit "$junit" "$@"
  status=$?
  if [[ ! -s $junit ]]; then
    did_not_pass "$preset" 'its tests did not run'
    return
  fi
  tests=$(count tests "$junit") failures=$(count failures "$junit")
  skipped=$(($(count skipped "$junit") + $(count disabled "$junit")))
  summary+=("$(printf '%-12s %4d tests: %4d passed, %d failed, %d skipped; build %d s, tests %d s' "$preset" "$tests" \
    $((tests - failures - skipped)) "$failures" "$skipped" "$build_seconds" "$SECONDS")")
  text=$(tests/failed_tests.py "$preset" "$junit")
  [[ -z $text ]] || not_passed+=("$text")
  ((status == 0)) || failed=1
  if ((skipped > 0)) && [[ ${CI:-} == true ]]; then failed=1; fi
}

# tier PRESET CTEST_ARGUMENT...: builds, then runs the tests that the arguments select.
tier() {
  if build "$1"; then run_tests "$@"; else did_not_pass "$1" 'could not be built'; fi
}

# same_records COUNT SEED: the same points with the programs of both compilers.
same_records() {
  local said
  echo "=== records"
  SECONDS=0
  said=$(tests/records/same_records.py --count "$1" --seed "$2" --jobs "$jobs" build/bin build-asan-ubsan/bin 2>&1) || failed=1
  echo "$said"
  summary+=("$(printf '%-12s %s, %d s' records "$(tail -n 1 <<<"$said")" "$SECONDS")")
}

# The grids and the curves run the same code in a thousand configurations: a matter of figures, not of memory.
grids='*Atc16.*:*ModelGridTest.*:*OneSidedGridTest.*:*ReadGridTest.*'

case $mode in
check)
  tier release --label-regex '^(unit|sim)'
  ;;
test)
  tier release
  GTEST_FILTER="-$grids" tier asan-ubsan --label-exclude 'callgrind|static|softroce'
  same_records 40 1
  tier tsan --label-regex threads
  tier fuzz --label-regex fuzz
  ;;
long)
  if build alone; then
    summary+=("$(printf '%-12s each source compiles alone; build %d s' alone "$build_seconds")")
  else
    did_not_pass alone 'a source does not compile alone'
  fi
  if build release; then
    tier asan-ubsan --label-exclude 'callgrind|static'
    same_records 2000 2
  else
    did_not_pass release 'could not be built'
  fi
  if build fuzz -DVERBSCOPE_FUZZ_SECONDS=300; then
    run_tests fuzz --label-regex fuzz
  else
    did_not_pass fuzz 'could not be built'
  fi
  ;;
*)
  echo "run_tiers.sh: expected check, test or long, got \"$mode\"" >&2
  exit 2
  ;;
esac

if ((${#not_passed[@]} > 0)); then printf '%s\n' "=== not passed" "${not_passed[@]}"; fi
echo "=== summary"
printf '%s\n' "${summary[@]}"
exit "$failed"
