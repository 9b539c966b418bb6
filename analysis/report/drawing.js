"use strict";
// A chart is drawn when it comes into view, so that a page of thousands of points opens and filters at once; all are
// drawn before the page is printed.
const drawings = { "rate-chart": drawRate, "bytes-chart": drawBytes, "residual-chart": drawResiduals, "latency-chart": drawLatency, "loads-chart": drawLoads };
const outdated = new Set(), inView = new Set();
let beforePrint = null;

function drawOutdated(ids) {
  for (const id of ids) {
    if (outdated.delete(id)) drawings[id]();
  }
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
  for (const id of Object.keys(drawings)) watcher.observe(element(id));
}

// Paper is light, narrow and has no buttons: the table is given whole, or its first thousand rows.
function startPrint() {
  beforePrint = { dark: isDark(), page: state.page };
  state.page = 0;
  state.rows = printedRows;
  drawTable();
  document.documentElement.dataset.printing = "true";
  setTheme(false);
  drawOutdated(Object.keys(drawings).filter((id) => !element(id).closest("[hidden]")));
}

function endPrint() {
  state.page = beforePrint.page;
  state.rows = pageRows;
  drawTable();
  delete document.documentElement.dataset.printing;
  setTheme(beforePrint.dark);
}
