"use strict";
// The charts. Each is drawn from the points that the filter leaves, when it is in view (drawing.js).
const maxCurves = 40;
const maxMarkers = 2000;
const maxBars = 60;
const maxTimed = 12;
const charts = {};

function draw(id, options) {
  if (!charts[id]) charts[id] = echarts.init(element(id));
  if (charts[id].getWidth() !== element(id).clientWidth) charts[id].resize();
  const text = color("--text"), line = color("--line");
  const axis = (one) => ({
    nameLocation: "middle", nameGap: 34, nameTextStyle: { color: text },
    axisLine: { lineStyle: { color: line } }, splitLine: { lineStyle: { color: line, opacity: 0.5 } }, ...one,
    axisLabel: { color: text, ...one.axisLabel },
  });
  charts[id].setOption({
    animation: false, color: palette, backgroundColor: color("--back"), textStyle: { color: text },
    grid: { left: 70, right: 30, top: 70, bottom: 60 },
    aria: { enabled: true },
    ...options,
    title: { text: options.heading, left: 0, textStyle: { color: text, fontSize: 14, width: charts[id].getWidth() - 10, overflow: "truncate" } },
    legend: { type: "scroll", top: 28, left: 0, textStyle: { color: text }, pageTextStyle: { color: text }, pageIconColor: text, pageIconInactiveColor: line, ...options.legend },
    tooltip: { renderMode: "richText", trigger: "item", confine: true, ...options.tooltip },
    xAxis: axis(options.xAxis), yAxis: axis(options.yAxis),
  }, true);
  element(id).dataset.series = JSON.stringify(options.series.map((series) => series.id || series.name));
}

function curveName(point, keys) {
  const name = keys.map((key) => key + "=" + optionValue(point, key)).join(" ");
  return (point.simulated ? "[SIM] " : "") + point.fabric + (name ? " " + name : "");
}

function curvesOf(some, option) {
  const keys = varyingOptions(some).filter((key) => key !== option);
  const curves = new Map();
  for (const point of some) {
    const x = Number(optionValue(point, option));
    if (!Number.isFinite(x) || point.rate === null) continue;
    const name = curveName(point, keys);
    if (!curves.has(name)) curves.set(name, new Map());
    const repeated = curves.get(name);
    if (!repeated.has(x)) repeated.set(x, []);
    repeated.get(x).push(point);
  }
  // Those with the most points first: they are what the option was swept for.
  return [...curves].map(([name, repeated]) => [name, [...repeated].map(meanAt).sort((a, b) => a.x - b.x)]).sort(([, a], [, b]) => b.length - a.length);
}

// The repetitions of a point: their mean and its interval by Student's t. One run is its own mean, and has no interval.
function meanAt([x, repeated]) {
  const n = repeated.length;
  const mean = repeated.reduce((sum, point) => sum + point.rate, 0) / n;
  const squares = repeated.reduce((sum, point) => sum + (point.rate - mean) ** 2, 0);
  const factors = data.interval_factors;
  const reach = n > 1 ? factors[Math.min(n - 1, factors.length) - 1] * Math.sqrt(squares / (n - 1) / n) : 0;
  return { x, mean, reach, n, point: repeated[0] };
}

// Upright strokes with a cap at each end, one line with gaps.
const intervalStrokes = (curve) => curve.filter(({ n }) => n > 1).flatMap(({ x, mean, reach }) => [[x, mean - reach], [x, mean + reach], [x, null]]);

// A curve, its model bound and its published figures: one name, so that the legend switches them together.
function curveSeries(name, curve, i, markers) {
  const own = palette[i % palette.length];
  const series = [{ id: name, name, type: "line", symbol: markers ? symbols[i % symbols.length] : "none", symbolSize: 8, sampling: "lttb",
    itemStyle: { color: own }, lineStyle: { color: own }, data: curve.map(({ x, mean, reach, n }) => [x, mean, reach, n]) }];
  if (markers && curve.some(({ n }) => n > 1)) {
    series.push({ id: name + ", interval", name, type: "line", symbol: "rect", symbolSize: [9, 1.5], silent: true, tooltip: { show: false },
      itemStyle: { color: own }, lineStyle: { color: own, width: 1.5 }, data: intervalStrokes(curve) });
  }
  if (element("bounds").checked) {
    series.push({ id: name + ", model bound", name, type: "line", symbol: "none", sampling: "lttb", lineStyle: { type: "dashed", color: own, width: 1.5 },
      data: curve.filter(({ point }) => point.bound !== null).map(({ x, point }) => [x, point.bound]) });
  }
  const known = curve.filter(({ point }) => point.published && point.published.compare === "equals" && point.published.metric === "rate_mops");
  if (element("published").checked && known.length) {
    series.push({ id: name + ", published", name, type: "scatter", symbol: "diamond", symbolSize: 14,
      itemStyle: { color: "transparent", borderColor: own, borderWidth: 2 }, data: known.map(({ x, point }) => [x, point.published.value]) });
  }
  return series;
}

// Of a mean: [x, mean, reach of its interval, repetitions].
const repetitionWords = ([, , reach, n]) => (n > 1 ? " ± " + digits(reach) + " (" + data.confidence_percent + " %), mean of " + n : "");

function drawRate() {
  const benchmark = element("benchmark").value, option = element("option").value;
  const some = state.shown.filter((point) => point.benchmark === benchmark);
  const curves = curvesOf(some, option);
  const drawn = curves.slice(0, maxCurves);
  const markers = drawn.reduce((sum, [, curve]) => sum + curve.length, 0) <= maxMarkers;
  const series = drawn.flatMap(([name, curve], i) => curveSeries(name, curve, i, markers));
  const long = drawn.filter(([, curve]) => curve.length > 1);
  const listed = long.length ? long : drawn;
  const logarithmic = element("log").checked && series.every((one) => one.data.every(([x]) => x > 0));
  draw("rate-chart", {
    heading: marked("Rate of " + benchmark + ", Mops", some), series, legend: { data: listed.map(([name]) => name) },
    xAxis: { type: logarithmic ? "log" : "value", name: option, scale: true }, yAxis: { type: "value", name: "Mops" },
    tooltip: { formatter: (at) => at.seriesId + "\n" + option + " = " + at.value[0] + ": " + digits(at.value[1]) + " Mops" + repetitionWords(at.value) },
  });
  const notes = ["Dashed: the model's bound. Open diamonds: published."];
  if (drawn.some(([, curve]) => curve.some(({ n }) => n > 1))) {
    notes.push("Of repetitions the mean" + (markers ? ", with its interval of " + data.confidence_percent + " %." : "."));
  }
  if (listed.length < drawn.length) notes.push("Curves of a single point are not in the legend: point at them.");
  if (curves.length > maxCurves) notes.push("The " + maxCurves + " longest of " + curves.length + " curves: filter the points to see others.");
  if (!markers) notes.push("More than " + maxMarkers + " points: filter them to see each.");
  element("rate-note").textContent = notes.join(" ");
}

function shortName(point) {
  return (point.simulated ? "[SIM] " : "") + point.id;
}
function named(point) {
  return shortName(point) + "\n" + point.fabric + " " + point.title;
}

// The names stand clear below the lowest figure of the other axis.
const pointAxis = (some) => ({ type: "category", data: some.map(shortName), name: "point", axisLabel: { margin: 14 } });

const firstOf = (most, all) => (all.length > most ? ", first " + most + " of " + all.length + " points" : "");

function drawBytes() {
  const counted = state.shown.filter((point) => point.bytes);
  const some = counted.slice(0, maxBars);
  draw("bytes-chart", {
    heading: marked("PCIe bytes of an operation" + firstOf(maxBars, counted), some),
    series: data.byte_kinds.map((kind, k) => ({ name: kind, type: "bar", stack: "bytes", itemStyle: { color: palette[k] },
      data: some.map((point) => point.bytes[k]) })),
    xAxis: pointAxis(some), yAxis: { type: "value", name: "bytes" },
    tooltip: { formatter: (at) => named(some[at.dataIndex]) + "\n" + at.seriesName + ": " + digits(at.value) + " B" },
  });
}

const difference = ([measured, modelled]) => (measured === null || modelled === null ? null : measured - modelled);

// The points that differ most, those with something to say of it first.
function mostDiffering() {
  const farthest = (point) => Math.max(...point.events.map((pair) => Math.abs(difference(pair))));
  const known = state.shown.filter((point) => point.events.some((pair) => difference(pair) !== null));
  const ranked = known.map((point) => ({ point, says: Math.min(1, point.residuals.length), far: farthest(point) }));
  ranked.sort((a, b) => b.says - a.says || b.far - a.far);
  return ranked.map(({ point }) => point);
}

function drawResiduals() {
  const known = mostDiffering();
  const some = known.slice(0, maxBars);
  draw("residual-chart", {
    heading: marked("Counted less modelled, an operation" + (known.length > maxBars ? ", the " + maxBars + " of " + known.length + " points that differ most" : ""), some),
    series: data.event_groups.map((group, g) => ({ name: group, type: "bar", itemStyle: { color: palette[g] }, data: some.map((point) => difference(point.events[g])) })),
    xAxis: pointAxis(some), yAxis: { type: "value", name: "lines, writes" },
    tooltip: { formatter: (at) => named(some[at.dataIndex]) + "\n" + at.seriesName + ": " + digits(at.value) },
  });
}

function listResiduals() {
  const lines = mostDiffering().slice(0, maxBars).flatMap((point) => point.residuals.map((residual) => shortName(point) + " " + point.title + ": " + residual));
  element("residuals").replaceChildren(...lines.map((line) => make("li", line)));
}

// [microseconds, share of the trips that take at most so long in percent], from none on.
function cumulated(histogram) {
  const total = histogram.reduce((all, [, count]) => all + count, 0);
  let sum = 0;
  const shares = histogram.map(([ns, count]) => { sum += count; return [ns / 1000, (100 * sum) / total]; });
  return shares.length ? [[shares[0][0], 0], ...shares] : [];
}

function drawLatency() {
  const timed = state.shown.filter((point) => point.latency.length > 0);
  const some = timed.slice(0, maxTimed);
  const keys = varyingOptions(some).filter((key) => key !== "size");
  const series = some.flatMap((point) => point.latency.map((one) => ({
    name: [shortName(point), one.name, ...keys.map((key) => key + "=" + optionValue(point, key))].join(" "),
    type: "line", step: "end", symbol: "none", data: cumulated(one.histogram) })));
  series.forEach((one, i) => {
    one.lineStyle = { color: palette[i % palette.length], type: ["solid", "dashed", "dotted"][Math.floor(i / palette.length) % 3] };
  });
  const times = series.flatMap((one) => one.data.map(([us]) => us));
  const wide = Math.max(...times) > 10 * Math.min(...times) && Math.min(...times) > 0;
  draw("latency-chart", {
    heading: marked("Share of trips that take at most so long" + firstOf(maxTimed, timed), some), series,
    xAxis: { type: wide ? "log" : "value", name: "microseconds", scale: true }, yAxis: { type: "value", name: "%", min: 0, max: 100 },
    tooltip: { formatter: (at) => at.seriesName + "\n" + digits(at.value[1]) + " % within " + digits(at.value[0]) + " us" },
  });
}

function drawLoads() {
  if (element("loads-chart").hidden) return;
  const loads = [...state.chosen.loads].reverse();
  const left = Math.min(330, element("loads-chart").clientWidth * 0.45);
  draw("loads-chart", {
    heading: marked("Load of each resource, %", [state.chosen]), grid: { left, right: 40, top: 60, bottom: 50 },
    series: [
      { name: "machine under test", type: "bar", data: loads.map(([, load]) => 100 * load) },
      { name: "busiest client", type: "bar", data: loads.map(([, , peer]) => (peer === null ? null : 100 * peer)) },
    ],
    xAxis: { type: "value", name: "%", min: 0, max: 100 },
    yAxis: { type: "category", data: loads.map(([resource]) => data.resources[resource]), nameGap: 0, axisLabel: { width: left - 10, overflow: "break", lineHeight: 12, interval: 0 } },
    tooltip: { formatter: (at) => at.name + ", " + at.seriesName + ": " + digits(at.value) + " %" },
  });
}
