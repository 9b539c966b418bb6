"use strict";
// Charts are drawn when they come into view, so that a page with thousands of points opens and filters quickly. All
// charts are drawn before the page is printed.
const drawings = { "figure-chart": drawFigure, "rate-chart": drawRate, "bytes-chart": drawBytes, "residual-chart": drawResiduals, "latency-chart": drawLatency, "loads-chart": drawLoads };
const outdated = new Set(), inView = new Set();
let beforePrint = null, chartWatcher = null;

function drawOutdated(ids) {
  for (const id of ids) {
    if (outdated.delete(id) && element(id)) drawings[id]();
  }
}

// Container of a chart: the chart, the text if there is none, and its legend.
function makePlot(id, words) {
  const plot = make("div", undefined, { class: "plot" });
  plot.append(make("div", undefined, { id, class: "chart", role: "img", "aria-label": words }), make("p", "", { id: id + "-empty", class: "empty", role: "status" }),
    make("div", undefined, { id: id + "-legend", class: "legend", "aria-label": "legend" }));
  return plot;
}

// Call it when the data of these charts changed.
function outdate(ids = Object.keys(drawings)) {
  for (const id of ids) outdated.add(id);
  drawOutdated(inView);
}

function watchCharts() {
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) inView.add(entry.target.id);
      else inView.delete(entry.target.id);
    }
    drawOutdated(inView);
    document.documentElement.dataset.ready = "true";
  }, { rootMargin: "100px" });
  for (const id of Object.keys(drawings)) if (element(id)) watcher.observe(element(id));
  chartWatcher = watcher;
}

// For paper: light colours, a narrow page, no buttons, and the whole table or its first thousand rows.
function startPrint() {
  beforePrint = { dark: isDark(), page: state.page };
  state.page = 0;
  state.rows = printedRows;
  document.documentElement.dataset.printing = "true";
  drawTable();
  setTheme(false);
  drawOutdated(Object.keys(drawings).filter((id) => element(id) && !element(id).closest("[hidden]")));
}

function endPrint() {
  state.page = beforePrint.page;
  state.rows = pageRows;
  delete document.documentElement.dataset.printing;
  drawTable();
  setTheme(beforePrint.dark);
}
