"use strict";
// Charts of curves: a result against an option, and the figures of papers.
const maxCurves = 40;
const maxMarkers = 2000;

// Vertical strokes, as one line with gaps.
const intervalStrokes = (spots) => spots.filter(({ n }) => n > 1).flatMap(({ x, mean, reach }) => [[x, mean - reach], [x, mean + reach], [x, null]]);

// The published figure of a spot, if it is for the drawn result.
const publishedOf = ({ point }, y) => (point.published && point.published.metric === y ? point.published : null);

// A curve with its model bounds and published figures. `shown`: as in drawCurves, plus `markers`.
function curveSeries({ name, spots, look }, shown) {
  const own = look.color;
  const at = ({ x, mean, reach, n, point }) => [x, mean, reach, n, point.index];
  const series = [{ id: name, name, type: "line", symbol: shown.markers ? look.form : "none", symbolSize: 9, sampling: "lttb",
    itemStyle: markStyle(look), lineStyle: { color: own, width: 2 }, data: spots.map(at) }];
  if (shown.markers && spots.some(({ n }) => n > 1)) {
    series.push({ id: name + ", interval", name, type: "line", symbol: "rect", symbolSize: [9, 1.5], silent: true, tooltip: { show: false },
      itemStyle: { color: own }, lineStyle: { color: own, width: 1.5 }, data: intervalStrokes(spots) });
  }
  if (shown.bounds && shown.y === "rate_mops") {
    const bounded = spots.filter(({ point }) => point.bound !== null);
    if (bounded.length) {
      series.push({ id: name + ", model bound", name, type: "line", symbol: bounded.length === 1 ? "rect" : "none", symbolSize: [14, 2], sampling: "lttb", clip: true,
        itemStyle: { color: own }, lineStyle: { type: look.hollow ? [2, 4] : "dashed", color: own, width: 1.5 }, data: bounded.map(({ x, point, n }) => [x, point.bound, 0, n, point.index]) });
    }
  }
  if (shown.published) {
    for (const [kind, mark] of Object.entries(publishedKinds)) {
      const known = spots.filter((spot) => publishedOf(spot, shown.y) && kindOf(publishedOf(spot, shown.y)) === kind);
      if (!known.length) continue;
      series.push({ id: name + ", published, " + kind, name, type: "scatter", z: 5, symbol: mark.symbol, symbolSize: mark.size, symbolRotate: mark.rotate || 0, symbolKeepAspect: true,
        itemStyle: mark.hollow ? { color: "transparent", borderColor: color("--text"), borderWidth: 1.5 } : { color: color("--text"), borderColor: color("--back"), borderWidth: 0.5 },
        data: known.map((spot) => [spot.x, publishedOf(spot, shown.y).value, 0, spot.n, spot.point.index]) });
    }
  }
  return series;
}

// Text for a mean: [x, mean, half of its interval, repetitions, a point].
const repetitionWords = ([, , reach, n]) => (n > 1 ? " ± " + digits(reach) + " (" + data.confidence_percent + " %), mean of " + n : "");

function publishedWords(published) {
  const relation = { equals: "", at_least: "at least ", at_most: "at most " }[published.compare];
  return "published: " + relation + published.value + " (" + published.use + "; " + published.where + "), off by " + percent(published.deviation);
}

function curveTooltip(at, option, y) {
  const point = points[at.value[4]];
  const own = at.seriesId === at.seriesName;
  const unit = unitOf(y);
  const lines = [at.seriesId, axisTitle(option) + " " + at.value[0] + ": " + digits(at.value[1]) + (unit ? " " + unit : "") + (own ? repetitionWords(at.value) : "")];
  if (point.bound !== null) lines.push("model bound: " + digits(point.bound) + " Mops by " + point.bound_by + " (PCIe and wire allow no more)");
  lines.push("limit: " + point.limit);
  if (point.published) lines.push(publishedWords(point.published));
  lines.push("point " + point.id + (at.value[3] > 1 ? " and its repetitions" : "") + (own ? ": click for its loads" : ""));
  return lines.join("\n");
}

// Upper end of the rate axis. Bounds far above all measured and published values are cut off, because they would
// flatten the curves.
function topOf(curves, shown) {
  const values = curves.flatMap(({ spots }) => spots.flatMap((spot) => {
    const published = shown.published ? publishedOf(spot, shown.y) : null;
    return published ? [spot.mean + spot.reach, published.value] : [spot.mean + spot.reach];
  }));
  const highest = Math.max(...values), bounds = curves.flatMap(({ spots }) => spots.map(({ point }) => point.bound || 0));
  if (!shown.bounds || shown.y !== "rate_mops" || Math.max(...bounds) <= 1.4 * highest) return undefined;
  const step = 10 ** Math.floor(Math.log10(1.4 * highest)) / 2;
  return Math.ceil((1.4 * highest) / step) * step;
}

// Axis of an option. Ticks are at the measured values, unless there are too many. A logarithmic axis ends at the first
// and the last value, a linear one slightly beyond them (but not below 0 unless a value is negative).
const maxTicks = 40;
function optionAxis(option, xs, logarithmic) {
  const rising = [...new Set(xs)].sort((a, b) => a - b), least = rising[0], most = rising[rising.length - 1];
  const margin = most > least ? 0.03 * (most - least) : Math.max(Math.abs(most) / 2, 1);
  const ticks = rising.length <= maxTicks ? rising : undefined;
  return {
    type: logarithmic ? "log" : "value", logBase: 2, name: axisTitle(option), axisTick: { customValues: ticks },
    min: logarithmic ? least / (most > least ? 1 : 2) : least >= 0 ? Math.max(0, least - margin) : least - margin,
    max: logarithmic ? most * (most > least ? 1 : 2) : most + margin,
    axisLabel: { customValues: ticks, hideOverlap: true, formatter: (x) => tickText(x, unitOf(option) === "bytes") },
  };
}

// Draws `some` points as curves. `shown` has option, y, log, logY, bounds and published. Returns the notes to the
// chart.
function drawCurves(id, heading, some, shown, empty) {
  const all = curvesOf(some, shown.option, shown.y);
  const drawn = all.slice(0, maxCurves);
  const looks = looksOf(drawn);
  drawn.forEach((curve, i) => { curve.look = looks[i]; });
  shown.markers = drawn.reduce((sum, { spots }) => sum + spots.length, 0) <= maxMarkers;
  const visible = drawn.filter(({ name }) => !hiddenCurves(id).has(name));
  const series = visible.flatMap((curve) => curveSeries(curve, shown));
  const logarithmic = shown.log && series.every((one) => one.data.every(([x]) => x > 0));
  const logY = shown.logY && series.every((one) => one.data.every(([, y]) => y === null || y > 0));
  const top = logY || !visible.length ? undefined : topOf(visible, shown);
  draw(id, {
    heading: marked(heading, drawn.flatMap((curve) => curve.points)), series, empty: drawn.length ? switchedOff : nothingLeft() || empty,
    xAxis: optionAxis(shown.option, series.flatMap((one) => one.data.map(([x]) => x)), logarithmic),
    yAxis: { type: logY ? "log" : "value", name: axisTitle(shown.y), nameGap: 48, max: top },
    tooltip: { formatter: (at) => curveTooltip(at, shown.option, shown.y) },
  });
  if (charts[id]) charts[id].off("click").on("click", (at) => showPoint(points[at.value[4]]));
  const long = drawn.filter(({ spots }) => spots.length > 1);
  const listed = long.length ? long : drawn;
  const marks = [];
  if (series.some((one) => one.id.endsWith(", model bound"))) marks.push({ line: "dashed", words: "model bound: PCIe and wire allow no more" });
  for (const [kind, mark] of Object.entries(publishedKinds)) if (series.some((one) => one.id.endsWith(", published, " + kind))) marks.push(mark);
  showLegend(id, listed, marks, drawings[id]);
  return curveNotes({ all, drawn, listed, shown, top });
}

function curveNotes({ all, drawn, listed, shown, top }) {
  const notes = [];
  if (drawn.some(({ spots }) => spots.some(({ n }) => n > 1))) {
    notes.push("Of repetitions the mean" + (shown.markers ? ", with its interval of " + data.confidence_percent + " %." : "."));
  }
  if (top !== undefined) notes.push("Model bounds above " + top + " Mops are beyond the axis.");
  if (listed.length < drawn.length) notes.push("Curves of a single point are not in the legend: point at them.");
  if (all.length > maxCurves) notes.push("The " + maxCurves + " longest of " + all.length + " curves: filter the points to see others.");
  if (!shown.markers) notes.push("More than " + maxMarkers + " points: filter them to see each.");
  return notes;
}

function drawRate() {
  const benchmark = element("benchmark").value, option = element("option").value, y = element("result").value;
  const some = ofBenchmark(state.shown, benchmark), words = benchmark || "all benchmarks";
  const shown = { option, y, log: element("log").checked, logY: element("log-y").checked, bounds: element("bounds").checked, published: element("published").checked };
  const heading = words + ": " + axisTitle(y) + " against " + axisTitle(option);
  const empty = some.length === 0 ? "the filter leaves no point of " + words + "." : "no point has numbers for both.";
  element("rate-note").textContent = drawCurves("rate-chart", heading, some, shown, empty).join(" ");
}

// The chosen figure of a paper, with its table.
const chosenFigure = () => data.figures[Number(element("figure").value)];

function fillFigure() {
  const figure = chosenFigure();
  if (!figure) return;
  element("figure-result").replaceChildren(...figure.results.map((key) => make("option", axisTitle(key), { value: key })));
  const rows = figure.rows.map((row) => {
    const line = make("tr");
    const ours = row.ours === null ? row.why : digits(row.ours);
    const off = row.deviation === null ? "-" : percent(row.deviation);
    for (const [text, kind] of [[row.where, "text"], [row.what, "text"], [row.cluster, ""], [row.published, "number"], [ours, row.ours === null ? "text" : "number"], [off, "number"]]) line.append(make("td", text, { class: kind }));
    const use = make("td", undefined, { class: "use" });
    const mark = publishedKinds[row.use];
    use.append(markSwatch(mark), make("span", row.use));
    line.append(use);
    if (row.point !== null) {
      const button = make("button", points[row.point].id, { type: "button" });
      button.addEventListener("click", () => showPoint(points[row.point]));
      line.append(make("td"));
      line.lastChild.append(button);
    } else line.append(make("td", "-"));
    return line;
  });
  element("figure-rows").tBodies[0].replaceChildren(...rows);
  element("figure-rows").hidden = rows.length === 0;
  element("figure-note").textContent = rows.length ? "" : "The table of published figures (configs/published.json) has none for this figure.";
  element("figure-plot").hidden = element("figure-shows").hidden = !figure.along;
}

function drawFigure() {
  const figure = chosenFigure();
  if (!figure || !figure.along) return;
  const y = element("figure-result").value;
  const some = state.shown.filter((point) => point.figure === figure.id);
  const shown = { option: figure.along, y, log: isGeometric(valuesOf(some, figure.along)), logY: false, bounds: true, published: true };
  element("figure-notes").textContent = drawCurves("figure-chart", figure.title + ": " + axisTitle(y) + " against " + axisTitle(figure.along), some, shown, "no point has numbers for both.").join(" ");
}
