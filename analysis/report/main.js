"use strict";
// Starts the page: choices, buttons, provenance, first drawing.
// Points of one benchmark, or of all for "".
const ofBenchmark = (some, benchmark) => some.filter((point) => benchmark === "" || point.benchmark === benchmark);
// The numeric values of an option.
const valuesOf = (some, key) => some.filter((point) => hasOption(point, key)).map((point) => Number(point.options[key])).filter(Number.isFinite);
// The common main result of the points' benchmarks; "" if there is none.
function mainOf(some) {
  const keys = new Set(some.filter((point) => !point.failed).map((point) => point.main));
  return keys.size === 1 ? [...keys][0] : "";
}

// If all benchmarks have the same main result, the first chart shows all of them: READ, WRITE and SEND of one sweep.
function fillChoices() {
  const benchmarks = [...new Set(points.map((point) => point.benchmark))];
  const all = benchmarks.length > 1 ? [make("option", "all in one chart", { value: "" })] : [];
  element("benchmark").replaceChildren(...all, ...benchmarks.map((name) => make("option", name, { value: name })));
  element("benchmark").value = all.length && mainOf(points) !== "" ? "" : benchmarks[0];
  fillOptions();
}

function fillOptions() {
  const some = ofBenchmark(points, element("benchmark").value);
  const different = (key) => new Set(some.map((point) => point.options[key])).size;
  const all = [...new Set(some.flatMap((point) => Object.keys(point.options)))].filter((key) => valuesOf(some, key).length > 0);
  const varying = all.filter((key) => different(key) > 1);
  const keys = varying.length ? varying : all;
  // First the option that the sweeps vary, then the one with the most values.
  const swept = (key) => some.filter((point) => point.along === key).length;
  keys.sort((a, b) => swept(b) - swept(a) || different(b) - different(a));
  element("option").replaceChildren(...keys.map((key) => make("option", axisTitle(key) + (axisTitle(key) === key ? "" : ", " + key), { value: key })));
  const results = [...new Set(some.flatMap((point) => Object.keys(point.values)))], main = mainOf(some) || "rate_mops";
  results.sort((a, b) => (b === main) - (a === main));
  element("result").replaceChildren(...results.map((key) => make("option", axisTitle(key), { value: key })));
  chooseAxis();
}

// Selects the axis that suits the values of the chosen option. The check box overrides it.
function chooseAxis() {
  element("log").checked = isGeometric(valuesOf(ofBenchmark(points, element("benchmark").value), element("option").value));
}

function fillFigures() {
  element("figures").hidden = data.figures.length === 0;
  element("figure").replaceChildren(...data.figures.map((figure, i) => make("option", figure.title, { value: i })));
  fillFigure();
}

function fillSummary() {
  element("simulated").hidden = !points.some((point) => point.simulated);
  element("latency-section").hidden = !points.some((point) => point.latency.length > 0);
  for (const line of data.summary) element("summary").append(make("li", line));
  for (const one of data.provenance) {
    const list = make("dl");
    for (const [key, value] of Object.entries(one)) list.append(make("dt", key), make("dd", typeof value === "string" ? value : JSON.stringify(value)));
    element("provenance").append(list);
  }
}

const isDark = () => document.documentElement.dataset.theme === "dark";
function setTheme(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  element("theme").setAttribute("aria-pressed", String(dark));
  outdate();
}

function download() {
  const link = make("a", "", { download: "records.jsonl" });
  link.href = URL.createObjectURL(new Blob([element("records").textContent], { type: "application/jsonl" }));
  document.body.append(link);
  link.click();
  link.remove();
  URL.revokeObjectURL(link.href);
}

function start() {
  points.forEach((point, index) => {
    point.index = index;
    point.words = [point.id, point.file, point.fabric, point.label, point.title, point.limit, point.failed ? "failed" : ""].join(" ").toLowerCase();
  });
  for (const place of document.querySelectorAll("[data-chart]")) place.replaceWith(makePlot(place.dataset.chart, place.dataset.words));
  setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches);
  fillSummary();
  fillChoices();
  fillFigures();
  element("benchmark").addEventListener("change", () => { fillOptions(); outdate(["rate-chart"]); });
  element("figure").addEventListener("change", () => { fillFigure(); outdate(["figure-chart"]); });
  element("figure-result").addEventListener("change", () => outdate(["figure-chart"]));
  element("option").addEventListener("change", chooseAxis);
  for (const id of ["option", "result", "log", "log-y", "bounds", "published"]) element(id).addEventListener("change", () => outdate(["rate-chart"]));
  element("filter").addEventListener("input", () => { state.filter = element("filter").value; state.page = 0; update(); });
  element("clear").addEventListener("click", () => { element("filter").value = state.filter = ""; state.page = 0; update(); });
  element("before").addEventListener("click", () => { --state.page; drawTable(); });
  element("after").addEventListener("click", () => { ++state.page; drawTable(); });
  element("theme").addEventListener("click", () => setTheme(!isDark()));
  element("print").addEventListener("click", () => window.print());
  if (data.records_left_out) {
    element("download").disabled = true;
    element("download").textContent = data.records_left_out;
  }
  element("download").addEventListener("click", download);
  window.addEventListener("resize", () => { placeDetails(); outdate(); });
  window.addEventListener("beforeprint", startPrint);
  window.addEventListener("afterprint", endPrint);
  update();
  watchCharts();
}

start();
