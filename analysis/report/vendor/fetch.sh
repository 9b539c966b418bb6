#!/bin/bash
# Fetches the chart library of the report, as package-lock.json has it: npm checks each package against the hash there. With
# it there already nothing is asked. For another version: `npm install --package-lock-only echarts@VERSION` here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

cmp -s package-lock.json node_modules/verbscope-fetched.json && exit 0
if ! command -v npm >/dev/null; then
  echo "fetch.sh: the chart library of the report needs npm (as root: apt-get install npm)" >&2
  exit 1
fi
npm ci --ignore-scripts --no-audit --no-fund
cp package-lock.json node_modules/verbscope-fetched.json
