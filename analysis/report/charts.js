"use strict";
// Charts of single points: bytes, differences, latency, loads. A chart shows the points that the filter selects, and is
// drawn when it is in view (drawing.js).
const maxBars = 40;
const maxTimed = 12;
const charts = {};

// Draws a chart, or shows the reason why there is nothing to draw.
function draw(id, options) {
  const place = element(id);
  place.dataset.series = JSON.stringify(options.series.map((series) => series.id || series.name));
  const blank = options.series.every((series) => series.data.length === 0);
  place.classList.toggle("blank", blank);
  element(id + "-empty").textContent = blank ? options.heading + ": " + options.empty : "";
  if (blank) {
    if (charts[id]) charts[id].dispose();
    delete charts[id];
    element(id + "-legend").replaceChildren();
    return;
  }
  place.style.height = options.height ? options.height + "px" : "";
  if (!charts[id]) charts[id] = echarts.init(place);
  if (charts[id].getWidth() !== place.clientWidth || charts[id].getHeight() !== place.clientHeight) charts[id].resize();
  const text = color("--text"), line = color("--line");
  const axis = (one) => ({
    nameLocation: "middle", nameGap: 34, nameTextStyle: { color: text, fontSize: 13 },
    axisLine: { lineStyle: { color: text } }, splitLine: { lineStyle: { color: line, opacity: 0.6 } }, ...one,
    axisLabel: { color: text, fontSize: 12, ...one.axisLabel },
  });
  charts[id].setOption({
    animation: false, color: palette, backgroundColor: color("--back"), textStyle: { color: text },
    aria: { enabled: true }, ...options,
    grid: { left: 70, right: 30, top: filterWords() ? 62 : 44, bottom: 55, ...options.grid },
    title: { text: options.heading, subtext: filterWords(), left: 0, itemGap: 4, subtextStyle: { color: text, fontSize: 12 },
      textStyle: { color: text, fontSize: 14, width: charts[id].getWidth() - 10, overflow: "truncate" } },
    tooltip: { renderMode: "richText", trigger: "item", confine: true, textStyle: { fontSize: 12 }, ...options.tooltip },
    xAxis: axis(options.xAxis), yAxis: axis(options.yAxis),
  }, true);
}

const switchedOff = "everything is switched off in the legend.";
const nothingLeft = () => (state.shown.length === 0 ? "the filter leaves no point." : "");
const ofFirst = (most, all, what) => (all.length > most ? ", first " + most + " of " + all.length + " " + what : "");

// Mean value over the points of a group (its repetitions).
const meanOf = (group, value) => group.points.reduce((sum, point) => sum + value(point), 0) / group.points.length;
const pointIds = (group) => (group.points.length > 1 ? "mean of points " : "point ") + group.points.slice(0, 6).map((point) => point.id).join(", ") + (group.points.length > 6 ? ", ..." : "");

// Horizontal bars, one row per group, so that names have room. The chart's height depends on the number of rows.
function drawBars(id, { heading, groups, kinds, value, title, unit, stack, empty }) {
  const left = Math.min(420, element(id).clientWidth * 0.42);
  const rows = [...groups].reverse();
  const hidden = hiddenCurves(id);
  draw(id, {
    heading, empty: groups.length ? switchedOff : empty, height: 140 + groups.length * (stack ? 20 : 28), grid: { left, bottom: 60 },
    series: kinds.map((kind, k) => ({ kind, k })).filter(({ kind }) => !hidden.has(kind) || groups.length === 0).map(({ kind, k }) => ({
      name: kind, type: "bar", stack: stack ? "all" : undefined, itemStyle: { color: palette[k], borderColor: color("--back"), borderWidth: 0.5 },
      data: rows.map((group) => value(group, k)) })),
    xAxis: { type: "value", name: title },
    yAxis: { type: "category", data: rows.map((group) => group.name), axisLabel: { width: left - 12, overflow: "truncate", interval: 0 } },
    tooltip: { formatter: (at) => rows[at.dataIndex].name + "\n" + at.seriesName + ": " + digits(at.value) + " " + unit + "\n" + pointIds(rows[at.dataIndex]) },
  });
  if (groups.length) showLegend(id, kinds.map((name, k) => ({ name, look: { color: palette[k], form: "rect", line: null } })), [], drawings[id]);
}

function drawBytes() {
  const counted = namedGroups(state.shown.filter((point) => point.bytes), "");
  const groups = counted.slice(0, maxBars);
  drawBars("bytes-chart", {
    heading: marked("PCIe bytes per operation" + ofFirst(maxBars, counted, "points"), groups.flatMap((group) => group.points)),
    groups, kinds: data.byte_kinds, stack: true, title: "bytes per operation", unit: "B", value: (group, k) => meanOf(group, (point) => point.bytes[k]),
    empty: nothingLeft() || "nobody counted PCIe bytes of these points (--counter_sources).",
  });
}

const difference = ([measured, modelled]) => (measured === null || modelled === null ? null : measured - modelled);

// The points with the largest differences, those with residuals first.
function mostDiffering() {
  const farthest = (point) => Math.max(...point.events.map((pair) => Math.abs(difference(pair))));
  const known = state.shown.filter((point) => point.events.some((pair) => difference(pair) !== null));
  const ranked = known.map((point) => ({ point, says: Math.min(1, point.residuals.length), far: farthest(point) }));
  ranked.sort((a, b) => b.says - a.says || b.far - a.far);
  return ranked.map(({ point }) => point);
}

function drawResiduals() {
  const known = namedGroups(mostDiffering(), "");
  const groups = known.slice(0, maxBars);
  drawBars("residual-chart", {
    heading: marked("Counted less modelled, per operation" + (known.length > maxBars ? ", the " + maxBars + " of " + known.length + " points that differ most" : ""),
      groups.flatMap((group) => group.points)),
    groups, kinds: data.event_groups, stack: false, title: "lines or writes per operation, counted less modelled", unit: "per operation",
    value: (group, g) => meanOf(group, (point) => difference(point.events[g]) || 0),
    empty: nothingLeft() || "no point was both counted and modelled.",
  });
}

function listResiduals() {
  const lines = mostDiffering().slice(0, maxBars).flatMap((point) => point.residuals.map((residual) => pointName(point) + ": " + residual));
  element("residuals").replaceChildren(...lines.map((line) => make("li", line)));
}
const pointName = (point) => (point.simulated ? "[SIM] " : "") + point.cluster + " " + (point.label ? point.label + ", " : "") + point.title + " (" + (point.file ? point.file + " " : "") + point.id + ")";

// Cumulative distribution: [microseconds, percentage of the trips that take at most this long], starting at 0 %.
function cumulated(histogram) {
  const total = histogram.reduce((all, [, count]) => all + count, 0);
  let sum = 0;
  const shares = histogram.map(([ns, count]) => { sum += count; return [ns / 1000, (100 * sum) / total]; });
  return shares.length ? [[shares[0][0], 0], ...shares] : [];
}

// [{name, point, data}]: one distribution for each size of a point.
function distributions() {
  const timed = state.shown.filter((point) => point.latency.length > 0);
  return namedGroups(timed, "").flatMap((group) => group.points.flatMap((point, run) => point.latency.map((one) => ({
    name: [group.name, group.name.includes("size=") ? "" : one.name, group.points.length > 1 ? "run " + (run + 1) : ""].filter((part) => part !== "").join(", "),
    point, data: cumulated(one.histogram) }))));
}

function drawLatency() {
  const all = distributions();
  const some = all.slice(0, maxTimed);
  const hidden = hiddenCurves("latency-chart");
  const looks = some.map((one, i) => ({ color: palette[i % palette.length], line: ["solid", "dashed"][Math.floor(i / palette.length) % 2] }));
  const series = some.map(({ name, point, data: shares }, i) => ({ name, type: "line", step: "end", symbol: "none", triggerLineEvent: true, id: name, point,
    lineStyle: { color: looks[i].color, type: looks[i].line, width: 2 }, itemStyle: { color: looks[i].color }, data: shares })).filter(({ name }) => !hidden.has(name));
  const times = series.flatMap((one) => one.data.map(([us]) => us));
  const wide = Math.max(...times) > 10 * Math.min(...times) && Math.min(...times) > 0;
  draw("latency-chart", {
    heading: marked("Share of trips that take at most so long" + ofFirst(maxTimed, all, "distributions"), some.map(({ point }) => point)),
    series, empty: nothingLeft() || (some.length ? switchedOff : "no point has a distribution of latency."),
    xAxis: { type: wide ? "log" : "value", name: "latency (microseconds)", scale: true }, yAxis: { type: "value", name: "share of trips (%)", min: 0, max: 100 },
    tooltip: { formatter: (at) => at.seriesName + "\n" + digits(at.value[1]) + " % within " + digits(at.value[0]) + " us\npoint " + some.find(({ name }) => name === at.seriesName).point.id },
  });
  showLegend("latency-chart", some.map(({ name }, i) => ({ name, look: looks[i] })), [], drawLatency);
}

function drawLoads() {
  if (!state.chosen || !element("loads-chart")) return;
  const loads = [...state.chosen.loads].reverse();
  const left = Math.min(330, element("loads-chart").clientWidth * 0.45);
  draw("loads-chart", {
    heading: marked("Load of each resource", [state.chosen]), grid: { left, right: 40, bottom: 55 }, height: 130 + 26 * loads.length,
    empty: "the record of this point has no loads.",
    series: [
      { name: "machine under test", type: "bar", itemStyle: { color: palette[0] }, data: loads.map(([, load]) => 100 * load) },
      { name: "busiest client", type: "bar", itemStyle: { color: palette[1] }, data: loads.map(([, , peer]) => (peer === null ? null : 100 * peer)) },
    ],
    xAxis: { type: "value", name: "load (%)", min: 0, max: 100 },
    yAxis: { type: "category", data: loads.map(([resource]) => data.resources[resource]), nameGap: 0, axisLabel: { width: left - 10, overflow: "break", lineHeight: 12, interval: 0 } },
    tooltip: { formatter: (at) => at.name + ", " + at.seriesName + ": " + digits(at.value) + " %\npoint " + state.chosen.id },
  });
  if (loads.length) showLegend("loads-chart", [], ["machine under test", "busiest client"].map((words, k) => ({ symbol: "rect", color: palette[k], words })), drawLoads);
}
