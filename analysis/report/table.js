"use strict";
// The table of points: filter, sort, pages; and what is said of the chosen point.
const columns = [
  { key: "id", head: "point", value: (point) => point.id },
  { key: "benchmark", head: "benchmark", value: (point) => point.benchmark },
  { key: "fabric", head: "fabric", value: (point) => point.fabric + (point.simulated ? " (SIMULATED)" : "") },
  { key: "title", head: "options", value: (point) => point.title.slice(point.benchmark.length + 1), text: true },
  { key: "rate", head: "Mops", value: (point) => point.rate, number: digits },
  { key: "bound", head: "model bound", value: (point) => point.bound, number: digits },
  { key: "published", head: "published", value: (point) => (point.published ? point.published.value : null), number: digits },
  { key: "deviation", head: "deviation", value: (point) => (point.published ? point.published.deviation : null), number: percent },
  { key: "limit", head: "limit", value: (point) => (point.failed ? "FAILED: " + point.failed : point.limit || "not decided"), text: true },
];

function compareValues(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return typeof a === "number" ? a - b : String(a).localeCompare(String(b));
}

function applyFilter() {
  const words = state.filter.toLowerCase().split(/\s+/).filter((word) => word !== "");
  state.shown = points.filter((point) => words.every((word) => point.words.includes(word)));
  const column = columns.find((one) => one.key === state.sort);
  if (column) {
    const sign = state.down ? -1 : 1;
    state.shown.sort((a, b) => sign * compareValues(column.value(a), column.value(b)));
  }
}

function drawHead() {
  const row = make("tr");
  for (const column of columns) {
    const sorted = state.sort === column.key;
    const head = make("th", undefined, { scope: "col", "aria-sort": sorted ? (state.down ? "descending" : "ascending") : "none" });
    if (column.number) head.className = "number";
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
    const row = make("tr", undefined, { tabindex: "0", "data-id": point.id, "aria-selected": String(point === state.chosen) });
    for (const column of columns) {
      const value = column.value(point);
      const cell = make("td", column.number ? column.number(value) : value);
      cell.className = column.number ? "number" : column.text ? "text" : "";
      row.append(cell);
    }
    row.addEventListener("click", () => choose(point));
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(point); }
    });
    body.append(row);
  }
  element("shown").textContent = state.shown.length + " of " + points.length + " points" + (state.filter.trim() ? " have “" + state.filter.trim() + "”" : "") +
    (pages > 1 ? ", page " + (state.page + 1) + " of " + pages : "");
  element("before").hidden = element("after").hidden = pages === 1;
  element("before").disabled = state.page === 0;
  element("after").disabled = state.page === pages - 1;
}

function choose(point) {
  state.chosen = point;
  for (const row of element("table").tBodies[0].rows) row.setAttribute("aria-selected", String(row.dataset.id === point.id));
  const place = element("point");
  place.replaceChildren(make("h3", point.id + (point.simulated ? " (SIMULATED)" : "")), make("p", point.fabric + " " + point.title));
  if (point.failed) {
    place.append(make("p", "FAILED: " + point.failed));
  } else {
    place.append(make("p", digits(point.rate) + " Mops. " + point.sentence + " " + point.next));
    const list = make("ul");
    for (const advice of point.advice) list.append(make("li", advice));
    place.append(list);
  }
  element("loads-chart").hidden = point.loads.length === 0;
  outdate(["loads-chart"]);
}

function update() {
  applyFilter();
  drawTable();
  listResiduals();
  outdate();
}
