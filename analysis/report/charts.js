"use strict";
// The charts. Each is drawn from the points that the filter leaves.
const maxCurves = 40;
const maxBars = 60;
const charts = {};

function draw(id, options) {
  if (!charts[id]) charts[id] = echarts.init(element(id));
  const text = color("--text"), line = color("--line");
  const axis = (one) => ({
    nameLocation: "middle", nameGap: 34, axisLabel: { color: text }, nameTextStyle: { color: text },
    axisLine: { lineStyle: { color: line } }, splitLine: { lineStyle: { color: line, opacity: 0.5 } }, ...one,
  });
  charts[id].setOption({
    animation: false, color: palette, backgroundColor: color("--back"), textStyle: { color: text },
    grid: { left: 70, right: 30, top: 90, bottom: 60 },
    aria: { enabled: true },
    ...options,
    title: { text: options.heading, left: 0, textStyle: { color: text, fontSize: 14 } },
    legend: { type: "scroll", top: 28, left: 0, textStyle: { color: text }, ...options.legend },
    tooltip: { renderMode: "richText", trigger: "item", confine: true, ...options.tooltip },
    xAxis: axis(options.xAxis), yAxis: axis(options.yAxis),
  }, true);
  element(id).dataset.series = JSON.stringify(options.series.map((series) => series.name));
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
    if (!curves.has(name)) curves.set(name, []);
    curves.get(name).push({ x, point });
  }
  for (const curve of curves.values()) curve.sort((a, b) => a.x - b.x);
  return curves;
}

function drawRate() {
  const some = state.shown.filter((point) => point.benchmark === element("benchmark").value);
  const option = element("option").value;
  const curves = curvesOf(some, option);
  const series = [];
  let i = 0;
  for (const [name, curve] of curves) {
    if (i === maxCurves) break;
    const look = { symbol: symbols[i % symbols.length], symbolSize: 8, itemStyle: { color: palette[i % palette.length] } };
    series.push({ name, type: "line", ...look, lineStyle: { color: palette[i % palette.length] },
      data: curve.map(({ x, point }) => ({ value: [x, point.rate], id: point.id })) });
    if (element("bounds").checked) {
      series.push({ name: name + ", model bound", type: "line", symbol: "none", lineStyle: { type: "dashed", color: palette[i % palette.length], width: 1 },
        data: curve.filter(({ point }) => point.bound !== null).map(({ x, point }) => [x, point.bound]) });
    }
    if (element("published").checked) {
      const known = curve.filter(({ point }) => point.published && point.published.metric === "rate_mops");
      if (known.length) {
        series.push({ name: name + ", published", type: "scatter", symbol: "diamond", symbolSize: 14,
          itemStyle: { color: "transparent", borderColor: palette[i % palette.length], borderWidth: 2 },
          data: known.map(({ x, point }) => [x, point.published.value]) });
      }
    }
    ++i;
  }
  const logarithmic = element("log").checked && series.every((one) => one.data.every((d) => (d.value || d)[0] > 0));
  draw("rate-chart", {
    heading: marked("Rate, Mops", some), series,
    xAxis: { type: logarithmic ? "log" : "value", name: option, scale: true }, yAxis: { type: "value", name: "Mops" },
    tooltip: { formatter: (at) => at.seriesName + "\n" + option + " = " + at.value[0] + ": " + digits(at.value[1]) + " Mops" },
  });
  element("rate-note").textContent = curves.size > maxCurves ? "The first " + maxCurves + " of " + curves.size + " curves: filter the points to see others." : "";
}

function shortName(point) {
  return (point.simulated ? "[SIM] " : "") + point.id;
}
function named(point) {
  return shortName(point) + "\n" + point.fabric + " " + point.title;
}

function drawBytes() {
  const some = state.shown.filter((point) => point.bytes).slice(0, maxBars);
  const kinds = data.byte_kinds;
  draw("bytes-chart", {
    heading: marked("PCIe bytes of an operation" + (state.shown.length > maxBars ? " (first " + maxBars + " points)" : ""), some),
    series: kinds.map((kind, k) => ({ name: kind, type: "bar", stack: "bytes", itemStyle: { color: palette[k] },
      data: some.map((point) => point.bytes[k]) })),
    xAxis: { type: "category", data: some.map(shortName), name: "point" }, yAxis: { type: "value", name: "bytes" },
    tooltip: { formatter: (at) => named(some[at.dataIndex]) + "\n" + at.seriesName + ": " + digits(at.value) + " B" },
  });
}

function drawResiduals() {
  const some = state.shown.filter((point) => point.events).slice(0, maxBars);
  draw("residual-chart", {
    heading: marked("Counted less modelled, an operation", some),
    series: data.event_groups.map((group, g) => ({ name: group, type: "bar", itemStyle: { color: palette[g] },
      data: some.map((point) => { const [measured, modelled] = point.events[g]; return measured === null || modelled === null ? null : measured - modelled; }) })),
    xAxis: { type: "category", data: some.map(shortName), name: "point" }, yAxis: { type: "value", name: "lines, writes" },
    tooltip: { formatter: (at) => named(some[at.dataIndex]) + "\n" + at.seriesName + ": " + digits(at.value) },
  });
  const list = element("residuals");
  list.replaceChildren();
  for (const point of some) {
    for (const residual of point.residuals) list.append(make("li", shortName(point) + " " + point.title + ": " + residual));
  }
}

function drawLatency() {
  const some = state.shown.filter((point) => point.latency.length > 0).slice(0, 12);
  element("latency-section").hidden = !points.some((point) => point.latency.length > 0);
  if (element("latency-section").hidden) return;
  const series = [];
  for (const point of some) {
    for (const one of point.latency) {
      let sum = 0;
      const total = one.histogram.reduce((all, [, count]) => all + count, 0);
      series.push({ name: shortName(point) + " " + one.name, type: "line", step: "end", symbol: "none",
        lineStyle: { color: palette[series.length % palette.length], type: ["solid", "dashed", "dotted"][Math.floor(series.length / palette.length) % 3] },
        data: one.histogram.map(([ns, count]) => { sum += count; return [ns / 1000, (100 * sum) / total]; }) });
    }
  }
  draw("latency-chart", {
    heading: marked("Share of trips that take at most so long", some), series,
    xAxis: { type: "log", name: "microseconds" }, yAxis: { type: "value", name: "%", min: 0, max: 100 },
    tooltip: { formatter: (at) => at.seriesName + "\n" + digits(at.value[1]) + " % within " + digits(at.value[0]) + " us" },
  });
}

function drawLoads() {
  const point = state.chosen;
  const loads = point ? [...point.loads].reverse() : [];
  element("loads-chart").hidden = loads.length === 0;
  if (loads.length === 0) return;
  draw("loads-chart", {
    heading: marked("Load of each resource, %", [point]), grid: { left: 330, right: 40, top: 70, bottom: 50 },
    series: [
      { name: "machine under test", type: "bar", data: loads.map((load) => 100 * load.load) },
      { name: "busiest client", type: "bar", data: loads.map((load) => (load.peer === null ? null : 100 * load.peer)) },
    ],
    xAxis: { type: "value", name: "%", min: 0, max: 100 }, yAxis: { type: "category", data: loads.map((load) => load.words), nameGap: 0 },
    tooltip: { formatter: (at) => at.name + ", " + at.seriesName + ": " + digits(at.value) + " %" },
  });
}

function drawAll() {
  drawRate();
  drawBytes();
  drawResiduals();
  drawLatency();
  drawLoads();
}
