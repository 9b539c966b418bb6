"use strict";
// Starts the page: choices, buttons, provenance, the first drawing.
function fillChoices() {
  const benchmarks = [...new Set(points.map((point) => point.benchmark))];
  element("benchmark").replaceChildren(...benchmarks.map((name) => make("option", name, { value: name })));
  fillOptions();
}

function fillOptions() {
  const some = points.filter((point) => point.benchmark === element("benchmark").value);
  const numeric = varyingOptions(some).filter((key) => some.some((point) => Number.isFinite(Number(optionValue(point, key)))));
  const keys = numeric.length ? numeric : Object.keys(some.length ? some[0].options : {});
  // The option that was swept most finely first.
  const values = (key) => new Set(some.map((point) => optionValue(point, key))).size;
  keys.sort((a, b) => values(b) - values(a));
  element("option").replaceChildren(...keys.map((key) => make("option", key, { value: key })));
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
  for (const point of points) point.words = (point.id + " " + point.fabric + " " + point.title + " " + (point.limit || "") + (point.failed ? " failed" : "")).toLowerCase();
  setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches);
  fillSummary();
  fillChoices();
  element("benchmark").addEventListener("change", () => { fillOptions(); outdate(["rate-chart"]); });
  for (const id of ["option", "log", "bounds", "published"]) element(id).addEventListener("change", () => outdate(["rate-chart"]));
  element("filter").addEventListener("input", () => { state.filter = element("filter").value; state.page = 0; update(); });
  element("before").addEventListener("click", () => { --state.page; drawTable(); });
  element("after").addEventListener("click", () => { ++state.page; drawTable(); });
  element("theme").addEventListener("click", () => setTheme(!isDark()));
  element("print").addEventListener("click", () => window.print());
  if (data.records_left_out) {
    element("download").disabled = true;
    element("download").textContent = data.records_left_out;
  }
  element("download").addEventListener("click", download);
  window.addEventListener("resize", () => outdate());
  window.addEventListener("beforeprint", startPrint);
  window.addEventListener("afterprint", endPrint);
  update();
  watchCharts();
}

start();
