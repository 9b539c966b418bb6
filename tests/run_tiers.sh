#!/bin/bash
# run_tiers.sh check|test|long [CMAKE_OPTION...]: builds and runs the tests of `make -f Makefile.cluster check`, `test` or
# `test-long` (docs/testing.md), one step after another, and ends with what did not pass and a line for each step. A step
# that fails does not keep the later ones from running. With CI=true a test that is skipped is a failure.
# The options go to every cmake configuration.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mode=${1:?run_tiers.sh check|test|long}
began=$(date +%s)
shift
configure_options=("$@")
jobs=$(nproc)
summary=()
not_passed=()
failed=0

preset_folder() { [[ $1 == release ]] && echo build || echo "build-$1"; }

# build PRESET CMAKE_OPTION...: configures and builds what the preset builds. Tests that run beside it go first.
build() {
  local preset=$1
  shift
  echo "=== $preset: build"
  SECONDS=0
  if cmake --preset "$preset" "${configure_options[@]}" "$@" && nice cmake --build --preset "$preset"; then
    summary+=("$(printf '%-12s built; %d s' "$preset" "$SECONDS")")
  else
    did_not_pass "$preset" 'could not be built'
    return 1
  fi
}

# did_not_pass NAME WHY: a step that ended before it could be counted.
did_not_pass() {
  summary+=("$(printf '%-12s %s' "$1" "$2")")
  failed=1
}

# count NAME FILE: the number in attribute NAME of the first test suite of a JUnit file.
count() { sed -n "s/^.*[[:space:]]$1=\"\([0-9]*\)\".*$/\1/p" "$2" | head -n 1; }

# start_tests NAME PRESET CTEST_ARGUMENT...: begins to run the tests of a build that the arguments select, as step NAME.
declare -A pid_of preset_of
start_tests() {
  local name=$1 preset=$2
  shift 2
  preset_of[$name]=$preset
  rm -f "$PWD/$(preset_folder "$preset")/$name".{xml,log,seconds}
  # The end of what a failed test printed is kept, and enough of it to find the case.
  (
    SECONDS=0
    ctest --test-dir "$(preset_folder "$preset")" --parallel "$jobs" --output-on-failure --no-tests=error \
      --test-output-size-failed 4000000 --test-output-truncation head \
      --output-junit "$PWD/$(preset_folder "$preset")/$name.xml" "$@" >"$(preset_folder "$preset")/$name.log" 2>&1
    status=$?
    echo "$SECONDS" >"$(preset_folder "$preset")/$name.seconds"
    exit "$status"
  ) &
  pid_of[$name]=$!
}

# end_tests NAME: waits for the tests of step NAME, where they were started, prints what they printed, and counts them.
end_tests() {
  local name=$1 folder junit status tests failures skipped text
  [[ -n ${pid_of[$name]:-} ]] || return 0
  folder=$(preset_folder "${preset_of[$name]}")
  junit=$PWD/$folder/$name.xml
  wait "${pid_of[$name]}"
  status=$?
  echo "=== $name: tests"
  cat "$folder/$name.log"
  if [[ ! -s $junit ]]; then
    did_not_pass "$name" 'its tests did not run'
    return
  fi
  tests=$(count tests "$junit") failures=$(count failures "$junit")
  skipped=$(($(count skipped "$junit") + $(count disabled "$junit")))
  summary+=("$(printf '%-12s %4d tests: %4d passed, %d failed, %d skipped; %d s' "$name" "$tests" \
    $((tests - failures - skipped)) "$failures" "$skipped" "$(cat "$folder/$name.seconds")")")
  text=$(tests/failed_tests.py "$name" "$junit")
  [[ -z $text ]] || not_passed+=("$text")
  ((status == 0)) || failed=1
  if ((skipped > 0)) && [[ ${CI:-} == true ]]; then failed=1; fi
}

# run_tests NAME PRESET CTEST_ARGUMENT...: runs the tests of a build that the arguments select, as step NAME.
run_tests() {
  start_tests "$@"
  end_tests "$1"
}

# step NAME COMMAND...: runs a command, and tells whether it passed, with the last line that it said.
step() {
  local name=$1 verdict=passed said
  shift
  echo "=== $name"
  SECONDS=0
  said=$("$@" 2>&1) || verdict='did not pass' failed=1
  echo "$said"
  summary+=("$(printf '%-12s %s: %.100s; %d s' "$name" "$verdict" "$(tail -n 1 <<<"$said")" "$SECONDS")")
}

# same_records COUNT SEED: the same points with the programs of both compilers.
same_records() {
  step records tests/records/same_records.py --count "$1" --seed "$2" --jobs "$jobs" build/bin build-asan-ubsan/bin
}

case $mode in
check)
  if build release; then run_tests release release --label-regex '^(unit|sim)$'; fi
  ;;
test)
  # A test is built and run once in the gate, but for those that say EVERY_BUILD: unit tests under the sanitizers, those that
  # run programs with optimised ones (`check` has both in the release build, `test-long` both under the sanitizers). The
  # emulated machines wait most of their time, and the last tests leave a core free: builds go on beside both.
  if build release -DVERBSCOPE_TEST_TIERS=sim -DVERBSCOPE_EMULATED_CHECKS=each_kind; then
    run_tests release release --label-exclude 'softroce|timed|roots'
    start_tests softroce release --label-regex softroce
  fi
  if build asan-ubsan -DVERBSCOPE_TEST_TIERS=unit; then
    start_tests asan-ubsan asan-ubsan --label-exclude 'callgrind|static|softroce|fuzz' --exclude-regex '^slurm$'
  fi
  if build tsan; then start_tests tsan tsan --label-regex threads; fi
  end_tests asan-ubsan
  if [[ -n ${pid_of[asan-ubsan]:-} ]]; then
    same_records 40 1
    run_tests fuzz asan-ubsan --label-regex fuzz
  fi
  end_tests tsan
  end_tests softroce
  ;;
long)
  build alone
  if build release; then
    step rates tests/records/random_rates.py build/bin --count 2000 --seed 2
    step size_rates tests/microbench/sizes_test.py build/bin rates --long
    step size_latencies tests/microbench/sizes_test.py build/bin latencies --long
    step perftest tests/simulate/beside_own.py build/bin
    step rdma_core tests/simulate/rdma_core_suite.py build/bin
    step limits tests/analysis/attribution.py build/bin --count 200 --seed 2
    step advice tests/analysis/advice_exhaustive.py build/bin --count 200 --seed 2
    step targets tests/analysis/explain_target.py build/bin --count 50 --seed 2
    step consistency tests/analysis/explain_consistency.py build/bin --count 500 --seed 2
    step hostile tests/hostile/hostile_test.py build/bin . --drawn 10000 --seed 2
    step loads tests/perf/load_budgets.py build/bin/bench_simulator
    step validate build/bin/verbscope validate
    step commands tests/docs/commands_test.py build/bin --long
    run_tests timed release --label-regex timed
    run_tests roots release --label-regex roots
    run_tests softroce release --label-regex softroce
  fi
  if [[ -x build/bin/verbscope ]] && build asan-ubsan -DVERBSCOPE_FUZZ_SECONDS=300; then
    run_tests asan-ubsan asan-ubsan --label-exclude 'callgrind|static|fuzz'
    same_records 2000 2
    run_tests fuzz asan-ubsan --label-regex fuzz
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
# Of the children that have ended: proc(5), cutime and cstime.
echo "in all       $(($(date +%s) - began)) s by the clock, $(awk '{print int(($16 + $17) / 100)}' "/proc/$$/stat") s of processors"
exit "$failed"
