"use strict";
// Groups points into curves against one option, names the curves, and computes the mean of repetitions. The names are
// those of `verbscope plot` (analysis/plot.hpp).

// Points of a family differ only in options.
const familyOf = (point) => [point.file, point.benchmark, point.cluster, point.label].join("\n");

// The options other than `option` that differ within each family.
function differingOptions(some, option) {
  const families = new Map();
  for (const point of some) {
    const family = familyOf(point);
    if (!families.has(family)) families.set(family, new Map());
    const values = families.get(family);
    for (const key of Object.keys(point.options)) {
      if (key === option) continue;
      if (!values.has(key)) values.set(key, new Set());
      values.get(key).add(point.options[key]);
    }
  }
  return new Map([...families].map(([family, values]) => [family, [...values].filter(([, set]) => set.size > 1).map(([key]) => key)]));
}

// Groups points that have the same name, in the order of the points: [{name, key, cluster, simulated, points}]. A name
// contains the file, the benchmark and the cluster only if they distinguish groups. `key` is the name without the
// cluster.
function namedGroups(some, option) {
  const differing = differingOptions(some, option);
  const groups = new Map();
  for (const point of some) {
    const parts = differing.get(familyOf(point)).filter((key) => hasOption(point, key)).map((key) => key + "=" + point.options[key]);
    const rest = [point.label, ...parts].filter((part) => part !== "").join(" ");
    const place = [point.file, point.benchmark, point.cluster, rest].join("\n");
    if (!groups.has(place)) groups.set(place, { file: point.file, benchmark: point.benchmark, cluster: point.cluster, rest, simulated: point.simulated, points: [] });
    groups.get(place).points.push(point);
  }
  const all = [...groups.values()];
  const clusters = new Set(all.map((group) => group.cluster)), benchmarks = new Set(all.map((group) => group.benchmark));
  const areApart = (parts) => new Set(all.map((group) => parts.map((part) => group[part]).join("\n"))).size === all.length;
  const toldByRest = all.every((group) => group.rest) && areApart(["file", "cluster", "rest"]);
  const toldWithoutFile = areApart(["benchmark", "cluster", "rest"]);
  for (const group of all) {
    const benchmark = (benchmarks.size > 1 && !toldByRest) || (clusters.size === 1 && !group.rest) ? group.benchmark : "";
    const file = toldWithoutFile ? "" : group.file;
    group.key = [file, benchmark, group.rest].filter((part) => part !== "").join(" ");
    group.name = [group.simulated ? "[SIM]" : "", file, benchmark, clusters.size > 1 ? group.cluster : "", group.rest].filter((part) => part !== "").join(" ");
  }
  return all;
}

// The curves of result `y` against `option`. Those with the most points are first, because the sweep was made for them.
function curvesOf(some, option, y) {
  const drawn = some.filter((point) => hasOption(point, option) && Number.isFinite(Number(point.options[option])) && Number.isFinite(point.values[y]));
  const curves = namedGroups(drawn, option);
  for (const curve of curves) {
    const repeated = new Map();
    for (const point of curve.points) {
      const x = Number(point.options[option]);
      if (!repeated.has(x)) repeated.set(x, []);
      repeated.get(x).push(point);
    }
    curve.spots = [...repeated].map((at) => meanAt(at, y)).sort((a, b) => a.x - b.x);
  }
  return curves.sort((a, b) => b.spots.length - a.spots.length);
}

// Mean of a point's repetitions with its interval by Student's t. A single run is its own mean and has no interval.
function meanAt([x, repeated], y) {
  const n = repeated.length;
  const mean = repeated.reduce((sum, point) => sum + point.values[y], 0) / n;
  const squares = repeated.reduce((sum, point) => sum + (point.values[y] - mean) ** 2, 0);
  const factors = data.interval_factors;
  const reach = n > 1 ? factors[Math.min(n - 1, factors.length) - 1] * Math.sqrt(squares / (n - 1) / n) : 0;
  return { x, mean, reach, n, point: repeated[0] };
}

// True if the values suit a logarithmic axis better, as in `verbscope plot` (analysis/axis.hpp).
function isGeometric(values) {
  const rising = [...new Set(values)].sort((a, b) => a - b);
  if (rising.length < 3 || rising[0] <= 0 || rising[rising.length - 1] < 8 * rising[0]) return false;
  const unevenness = (all) => {
    const mean = (all[all.length - 1] - all[0]) / (all.length - 1);
    return Math.sqrt(all.slice(1).reduce((sum, one, i) => sum + (one - all[i] - mean) ** 2, 0) / (all.length - 1)) / mean;
  };
  return unevenness(rising.map(Math.log)) < unevenness(rising);
}

// Tick label: "64k" for bytes, else the plain number.
function tickText(value, bytes) {
  for (const [unit, letter] of bytes ? [[2 ** 30, "G"], [2 ** 20, "M"], [2 ** 10, "k"]] : []) if (value >= unit && value % unit === 0) return value / unit + letter;
  return String(value);
}
