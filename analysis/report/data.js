"use strict";
// What the report shows, as the program wrote it, and helpers to put text on the page. Nothing of a record is ever taken
// for markup: text goes in as text.
const data = JSON.parse(document.getElementById("data").textContent);
const points = data.points;
const pageRows = 200;
const printedRows = 1000;
const state = { filter: "", sort: "index", down: false, page: 0, rows: pageRows, chosen: null, shown: points };

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

// The visible mark that a figure is simulated: first, so that nothing can push it out. A figure of no points has the
// mark of the page.
const marked = (title, some) => ((some.length ? some : points).some((point) => point.simulated) ? "[SIMULATED] " + title : title);
const hasOption = (point, key) => key in point.options && point.options[key] !== "-";
const axisTitle = (key) => data.titles[key] || key;
const unitOf = (key) => (axisTitle(key).match(/\(([^)]*)\)$/) || ["", ""])[1];

// The words of a filter: "key=value" of a known option is that value and no other, all else is found anywhere.
function filterOf(text) {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return (point) => words.every((word) => {
    const at = word.indexOf("=");
    const key = at > 0 ? word.slice(0, at) : "";
    if (key in data.titles && hasOption(point, key)) return word.slice(at + 1).split(",").includes(point.options[key].toLowerCase());
    return point.words.includes(word);
  });
}

// What a chart says of the filter: that of the whole page holds for every chart.
const filterWords = () => (state.filter.trim() ? "only points with “" + state.filter.trim() + "”" : "");
