"use strict";
// Points as curves against one option: which belong together, what they are called, the mean of repetitions. The names
// are those of `verbscope plot` (analysis/curves.hpp).

// Points of one family differ in options only.
const familyOf = (point) => [point.benchmark, point.cluster, point.label].join("\n");

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
// has the benchmark and the cluster only where they tell groups apart; `key` is the name without the cluster.
function namedGroups(some, option) {
  const differing = differingOptions(some, option);
  const groups = new Map();
  for (const point of some) {
    const parts = differing.get(familyOf(point)).filter((key) => hasOption(point, key)).map((key) => key + "=" + point.options[key]);
    const rest = [point.label, ...parts].filter((part) => part !== "").join(" ");
    const place = [point.benchmark, point.cluster, rest].join("\n");
    if (!groups.has(place)) groups.set(place, { benchmark: point.benchmark, cluster: point.cluster, rest, simulated: point.simulated, points: [] });
    groups.get(place).points.push(point);
  }
  const all = [...groups.values()];
  const clusters = new Set(all.map((group) => group.cluster)), benchmarks = new Set(all.map((group) => group.benchmark));
  const toldByRest = all.every((group) => group.rest) && new Set(all.map((group) => group.cluster + "\n" + group.rest)).size === all.length;
  for (const group of all) {
    const benchmark = (benchmarks.size > 1 && !toldByRest) || (clusters.size === 1 && !group.rest) ? group.benchmark : "";
    group.key = [benchmark, group.rest].filter((part) => part !== "").join(" ");
    group.name = [group.simulated ? "[SIM]" : "", benchmark, clusters.size > 1 ? group.cluster : "", group.rest].filter((part) => part !== "").join(" ");
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
