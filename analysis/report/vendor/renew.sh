#!/bin/bash
# Fetches the chart library of package.json anew (npm checks its integrity against package-lock.json). For another version:
# `npm install --package-lock-only echarts@VERSION` here first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp package.json package-lock.json "$scratch"
npm ci --prefix "$scratch" --ignore-scripts --no-audit --no-fund
cp "$scratch/node_modules/echarts/dist/echarts.common.min.js" .
cp "$scratch/node_modules/echarts/LICENSE" echarts.LICENSE
cp "$scratch/node_modules/echarts/NOTICE" echarts.NOTICE
sha256sum echarts.common.min.js > SHA256SUMS
