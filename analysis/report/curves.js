"use strict";
// Points as curves against one option: which belong together, what they are called, the mean of repetitions. The names
// are those of `verbscope plot` (analysis/curves.hpp).

// Points of one family differ in options only.
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

// Groups of the points that have one name: [{name, key, cluster, simulated, points}], in the order of the points. A name
// has the file, the benchmark and the cluster only where they tell groups apart; `key` is the name without the cluster.
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

// The curves of result `y` against `option`, those with the most points first: they are what the option was swept for.
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

// The repetitions of a point: their mean and its interval by Student's t. One run is its own mean, and has no interval.
function meanAt([x, repeated], y) {
  const n = repeated.length;
  const mean = repeated.reduce((sum, point) => sum + point.values[y], 0) / n;
  const squares = repeated.reduce((sum, point) => sum + (point.values[y] - mean) ** 2, 0);
  const factors = data.interval_factors;
  const reach = n > 1 ? factors[Math.min(n - 1, factors.length) - 1] * Math.sqrt(squares / (n - 1) / n) : 0;
  return { x, mean, reach, n, point: repeated[0] };
}

// Whether values are spread more evenly on a logarithmic axis than on a linear one: as in `verbscope plot`
// (analysis/axis.hpp).
function isGeometric(values) {
  const rising = [...new Set(values)].sort((a, b) => a - b);
  if (rising.length < 3 || rising[0] <= 0 || rising[rising.length - 1] < 8 * rising[0]) return false;
  const unevenness = (all) => {
    const mean = (all[all.length - 1] - all[0]) / (all.length - 1);
    return Math.sqrt(all.slice(1).reduce((sum, one, i) => sum + (one - all[i] - mean) ** 2, 0) / (all.length - 1)) / mean;
  };
  return unevenness(rising.map(Math.log)) < unevenness(rising);
}

// The text at a tick: "64k" for bytes, else the number.
function tickText(value, bytes) {
  for (const [unit, letter] of bytes ? [[2 ** 30, "G"], [2 ** 20, "M"], [2 ** 10, "k"]] : []) if (value >= unit && value % unit === 0) return value / unit + letter;
  return String(value);
}
