"use strict";
// The table of points with filter, sorting and pages, and the details of the chosen point.
const columns = [
  { key: "id", head: "point", value: (point) => point.id },
  { key: "file", head: "file", value: (point) => point.file },
  { key: "benchmark", head: "benchmark", value: (point) => point.benchmark },
  { key: "fabric", head: "fabric", value: (point) => point.fabric + (point.simulated ? " (SIMULATED)" : "") },
  { key: "label", head: "label", value: (point) => point.label, text: true },
  { key: "title", head: "options", value: (point) => point.title.slice(point.benchmark.length + 1), text: true },
  { key: "rate", head: "Mops", value: (point) => point.rate, number: digits },
  { key: "bound", head: "bound by PCIe and wire", value: (point) => point.bound, number: digits },
  { key: "published", head: "published", value: (point) => (point.published ? point.published.value : null), number: digits },
  { key: "use", head: "parameters", value: (point) => (point.published ? point.published.use : "") },
  { key: "deviation", head: "deviation", value: (point) => (point.published ? point.published.deviation : null), number: percent },
  { key: "limit", head: "limit", value: (point) => (point.failed ? "FAILED: " + point.failed : point.limit), text: true },
];

function compareValues(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return typeof a === "number" ? a - b : String(a).localeCompare(String(b));
}

function applyFilter() {
  state.shown = points.filter(filterOf(state.filter));
  const column = columns.find((one) => one.key === state.sort);
  if (column) {
    const sign = state.down ? -1 : 1;
    state.shown.sort((a, b) => sign * compareValues(column.value(a), column.value(b)));
  }
}

// Columns that have a value for some point.
let used = null;
const usedColumns = () => used || (used = columns.filter((column) => !["file", "label", "use", "published", "deviation"].includes(column.key) || points.some((point) => column.value(point) !== null && column.value(point) !== "")));

function drawHead() {
  const row = make("tr");
  for (const column of usedColumns()) {
    const sorted = state.sort === column.key;
    const head = make("th", undefined, { scope: "col", "aria-sort": sorted ? (state.down ? "descending" : "ascending") : "none" });
    head.className = (column.number ? "number " : "") + "column-" + column.key;
    const button = make("button", column.head + (sorted ? (state.down ? " ▼" : " ▲") : ""), { type: "button", "data-key": column.key });
    button.addEventListener("click", () => {
      state.down = sorted ? !state.down : Boolean(column.number);
      state.sort = column.key;
      update();
      document.querySelector('th button[data-key="' + column.key + '"]').focus();
    });
    head.append(button);
    row.append(head);
  }
  element("table").tHead.replaceChildren(row);
}

function drawTable() {
  drawHead();
  const pages = Math.max(1, Math.ceil(state.shown.length / state.rows));
  state.page = Math.min(state.page, pages - 1);
  const body = element("table").tBodies[0];
  body.replaceChildren();
  for (const point of state.shown.slice(state.page * state.rows, (state.page + 1) * state.rows)) {
    const row = make("tr", undefined, { tabindex: "0", "data-id": point.id, "data-index": point.index, "aria-selected": String(point === state.chosen) });
    for (const column of usedColumns()) {
      const value = column.value(point);
      const cell = make("td", column.number ? column.number(value) : value);
      cell.className = (column.number ? "number " : column.text ? "text " : "") + "column-" + column.key;
      row.append(cell);
    }
    row.addEventListener("click", () => choose(point));
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(point); }
    });
    body.append(row);
  }
  if (state.shown.length === 0) body.append(make("tr"));
  if (state.shown.length === 0) body.lastChild.append(make("td", "No point has “" + state.filter.trim() + "”.", { colspan: usedColumns().length }));
  element("count").textContent = state.shown.length + " of " + points.length + " points; the filter is for every chart and the table";
  element("clear").hidden = state.filter.trim() === "";
  element("shown").textContent = state.shown.length + " of " + points.length + " points" + (state.filter.trim() ? " have “" + state.filter.trim() + "”" : "") +
    (pages > 1 ? ", page " + (state.page + 1) + " of " + pages : "");
  placeDetails();
  element("before").hidden = element("after").hidden = pages === 1;
  element("before").disabled = state.page === 0;
  element("after").disabled = state.page === pages - 1;
}

// The row of a point. The details of the chosen point are below its row; choosing the point again closes them.
const rowOf = (point) => [...element("table").tBodies[0].rows].find((row) => row.dataset.index === String(point.index));

function choose(point) {
  state.chosen = state.chosen === point ? null : point;
  placeDetails();
}

function placeDetails() {
  if (charts["loads-chart"]) charts["loads-chart"].dispose();
  delete charts["loads-chart"];
  element("details")?.remove();
  const point = state.chosen;
  for (const row of element("table").tBodies[0].rows) {
    if (row.dataset.id) row.setAttribute("aria-selected", String(point !== null && row.dataset.index === String(point.index)));
  }
  const row = point && rowOf(point);
  if (!row) return;
  const details = make("tr", undefined, { id: "details" }), cell = make("td", undefined, { colspan: usedColumns().length });
  const panel = make("div", undefined, { id: "point", class: "panel" });
  panel.style.width = element("points").clientWidth - 30 + "px";
  panel.append(...wordsOf(point));
  if (point.loads.length) panel.append(makePlot("loads-chart", "How much of each resource the point uses"));
  cell.append(panel);
  details.append(cell);
  row.after(details);
  if (!point.loads.length) return;
  if (chartWatcher) chartWatcher.observe(element("loads-chart"));
  outdate(["loads-chart"]);
}

// The details of a point.
function wordsOf(point) {
  const words = [make("h3", point.id + (point.simulated ? " (SIMULATED)" : "")), make("p", point.fabric + " " + point.title)];
  if (point.failed) return [...words, make("p", "FAILED: " + point.failed)];
  words.push(make("p", digits(point.rate) + " Mops. " + point.sentence));
  if (point.bound !== null) words.push(make("p", "Model bound: PCIe and wire allow " + digits(point.bound) + " Mops at most, by " + point.bound_by + "."));
  if (point.published) words.push(make("p", publishedWords(point.published)));
  const list = make("ul");
  for (const advice of point.advice) list.append(make("li", advice));
  return [...words, list];
}

// Shows a point's row with its details, on any page of the table. Clears the filter if it hides the point.
function showPoint(point) {
  if (!state.shown.includes(point)) {
    element("filter").value = state.filter = "";
    update();
  }
  state.page = Math.floor(state.shown.indexOf(point) / state.rows);
  state.chosen = point;
  drawTable();
  rowOf(point).scrollIntoView({ block: "center" });
  rowOf(point).focus({ preventScroll: true });
}

function update() {
  applyFilter();
  drawTable();
  listResiduals();
  outdate();
}
