"use strict";
// What the report shows, as the program wrote it, and helpers to put text on the page. Nothing of a record is ever taken
// for markup: text goes in as text.
const data = JSON.parse(document.getElementById("data").textContent);
const points = data.points;
const pageRows = 200;
const printedRows = 1000;
const state = { filter: "", sort: "index", down: false, page: 0, rows: pageRows, chosen: null, shown: points };

// Okabe and Ito's colours, apart for every kind of colour vision; forms and dashes tell curves apart as well.
const palette = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c7a00", "#6b6b6b"];
const symbols = ["circle", "rect", "triangle", "diamond", "pin", "arrow", "emptyCircle", "emptyRect"];

const element = (id) => document.getElementById(id);
function make(name, text, attributes) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  return node;
}
function digits(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  if (size >= 1 || size === 0) return value.toFixed(size >= 100 ? 1 : 2);
  return value.toFixed(Math.min(15, Math.max(4, 2 - Math.floor(Math.log10(size)))));  // three significant ones at least
}
function percent(value) {
  if (value === null || value === undefined) return "-";
  const text = value.toFixed(1);
  return (Number(text) === 0 ? "0.0" : value > 0 ? "+" + text : text) + " %";
}
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// The visible mark that a figure is simulated: first, as a narrow chart cuts its title at the end.
const marked = (title, some) => (some.some((point) => point.simulated) ? "[SIMULATED] " + title : title);
const optionValue = (point, key) => (key in point.options ? point.options[key] : "-");

// The options of some points that take more than one value.
function varyingOptions(some) {
  const values = new Map();
  for (const point of some) {
    for (const [key, value] of Object.entries(point.options)) {
      if (!values.has(key)) values.set(key, new Set());
      values.get(key).add(value);
    }
  }
  return [...values].filter(([key, set]) => set.size > 1 || some.some((point) => !(key in point.options))).map(([key]) => key);
}
