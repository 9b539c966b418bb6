#!/bin/bash
# check_format.sh [--fix]: fails, with the places, when a C++ source is not as .clang-format wants it; with --fix formats
# them in place. Exit 77: there is no clang-format (a failure when CI=true).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if ! command -v clang-format >/dev/null; then
  echo "skipped: no clang-format (make -f Makefile.cluster deps-test installs it)"
  [[ ${CI:-} == true ]] && exit 1 || exit 77
fi
sources=$(find common wire drivers_patch counters pcie_model exchange machine verbs nic_sim microbench lookups systems analysis harness tools tests -name '*.cpp' -o -name '*.hpp' | sort)
if [[ ${1:-} == --fix ]]; then
  xargs clang-format -i <<<"$sources"
elif ! complaints=$(xargs clang-format --dry-run -Werror <<<"$sources" 2>&1); then
  echo "not formatted (make -f Makefile.cluster format does it):"
  grep -o '^[^ :]*:[0-9]*' <<<"$complaints" | sort -u -t: -k1,1
  exit 1
fi
