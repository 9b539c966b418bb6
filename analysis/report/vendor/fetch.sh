#!/bin/bash
# Fetches the report's chart library in the version of package-lock.json; npm verifies the hash of each package. Does
# nothing if it is already there. To change the version, run here: `npm install --package-lock-only echarts@VERSION`
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

cmp -s package-lock.json node_modules/verbscope-fetched.json && exit 0
if ! command -v npm >/dev/null; then
  echo "fetch.sh: the chart library of the report needs npm (as root: apt-get install npm)" >&2
  exit 1
fi
npm ci --ignore-scripts --no-audit --no-fund
cp package-lock.json node_modules/verbscope-fetched.json
