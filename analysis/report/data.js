"use strict";
// The data of the report, as written by the program, and helpers that put text on the page. Texts of records are always
// inserted as text, never as markup.
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
  return value.toFixed(Math.min(15, Math.max(4, 2 - Math.floor(Math.log10(size)))));  // at least three significant ones
}
function percent(value) {
  if (value === null || value === undefined) return "-";
  const text = value.toFixed(1);
  return (Number(text) === 0 ? "0.0" : value > 0 ? "+" + text : text) + " %";
}
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Marks the title of a simulated figure, at the start, so that it stays visible. A figure without points gets the mark
// of the page.
const marked = (title, some) => ((some.length ? some : points).some((point) => point.simulated) ? "[SIMULATED] " + title : title);
const hasOption = (point, key) => key in point.options && point.options[key] !== "-";
const axisTitle = (key) => data.titles[key] || key;
const unitOf = (key) => (axisTitle(key).match(/\(([^)]*)\)$/) || ["", ""])[1];

// The words of a filter. "key=value" with a known option matches exactly this value; other words match anywhere.
function filterOf(text) {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return (point) => words.every((word) => {
    const at = word.indexOf("=");
    const key = at > 0 ? word.slice(0, at) : "";
    if (key in data.titles && hasOption(point, key)) return word.slice(at + 1).split(",").includes(point.options[key].toLowerCase());
    return point.words.includes(word);
  });
}

// A chart's note about the page's filter, which applies to every chart.
const filterWords = () => (state.filter.trim() ? "only points with “" + state.filter.trim() + "”" : "");
