"use strict";
// A chart is drawn when it comes into view, so that a page of thousands of points opens and filters at once; all are
// drawn before the page is printed.
const drawings = { "figure-chart": drawFigure, "rate-chart": drawRate, "bytes-chart": drawBytes, "residual-chart": drawResiduals, "latency-chart": drawLatency, "loads-chart": drawLoads };
const outdated = new Set(), inView = new Set();
let beforePrint = null, chartWatcher = null;

function drawOutdated(ids) {
  for (const id of ids) {
    if (outdated.delete(id) && element(id)) drawings[id]();
  }
}

// A place for a chart: the chart, what is said when there is none, its legend.
function makePlot(id, words) {
  const plot = make("div", undefined, { class: "plot" });
  plot.append(make("div", undefined, { id, class: "chart", role: "img", "aria-label": words }), make("p", "", { id: id + "-empty", class: "empty", role: "status" }),
    make("div", undefined, { id: id + "-legend", class: "legend", "aria-label": "legend" }));
  return plot;
}

// What these charts show has changed.
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

// Paper is light, narrow and has no buttons: the table is given whole, or its first thousand rows.
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
