"use strict";
// Appearance of curves and published figures, and the legends. A legend is text of the page below its chart, so it
// wraps, prints, and never covers an axis.

// Colours of Okabe and Ito, for all kinds of colour vision. The forms of the marks distinguish curves without colour.
const palette = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c7a00", "#6b6b6b"];
const forms = ["circle", "rect", "triangle", "diamond", "arrow", "pin"];
const cross = "path://M-1,-0.8L-0.8,-1L0,-0.2L0.8,-1L1,-0.8L0.2,0L1,0.8L0.8,1L0,0.2L-0.8,1L-1,0.8L-0.2,0Z";

// Kinds of published figures by their value as evidence: a figure that a parameter was calibrated on proves nothing, a
// predicted one does.
const publishedKinds = {
  calibrated: { symbol: cross, size: 11, words: "published, calibrated: the simulator was fitted to it" },
  predicted: { symbol: "circle", size: 18, hollow: true, words: "published, predicted: not fitted" },
  at_least: { symbol: "triangle", size: 12, hollow: true, words: "published: at least" },
  at_most: { symbol: "triangle", size: 12, rotate: 180, hollow: true, words: "published: at most" },
};
const kindOf = (published) => (published.compare === "equals" ? published.use : published.compare);

// Curves of one cluster differ in colour and form; the same curve of another cluster differs in whether its marks are
// filled. If there is only one curve on several clusters, each cluster has its own colour and form.
function looksOf(curves) {
  const keys = [], clusters = [];
  const placeOf = (known, text) => (known.includes(text) ? known.indexOf(text) : known.push(text) - 1);
  if (new Set(curves.map((curve) => curve.key)).size === 1) return curves.map((curve, i) => ({ color: palette[i % palette.length], form: forms[i % forms.length], hollow: false }));
  return curves.map((curve) => {
    const at = placeOf(keys, curve.key), cluster = placeOf(clusters, curve.cluster);
    return { color: palette[at % palette.length], form: forms[(at + 3 * Math.floor(cluster / 2)) % forms.length], hollow: cluster % 2 === 1 };
  });
}
const markStyle = ({ color: own, hollow }) => ({ color: hollow ? color("--back") : own, borderColor: own, borderWidth: 2 });

const shapes = {
  circle: "M-4,0A4,4 0 1 0 4,0A4,4 0 1 0 -4,0Z", rect: "M-4,-4H4V4H-4Z", triangle: "M0,-5L5,4H-5Z", diamond: "M0,-5L5,0L0,5L-5,0Z",
  arrow: "M0,-5L4,5L0,2L-4,5Z", pin: "M0,5L-4,-1A4,4 0 1 1 4,-1Z",
};

// An icon of a line with its mark.
function swatch({ own, form, hollow, line, rotate, path, large }) {
  const make = (name, attributes) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    return node;
  };
  const picture = make("svg", { viewBox: "-14 -7 28 14", width: 28, height: 14, "aria-hidden": "true" });
  if (line) picture.append(make("path", { d: "M-14,0H14", stroke: own, "stroke-width": 2, "stroke-dasharray": line === "dashed" ? "5 4" : "none", fill: "none" }));
  if (form || path) {
    const transform = (path ? "scale(6) " : large ? "scale(1.5) " : "") + (rotate ? "rotate(" + rotate + ")" : "");
    picture.append(make("path", { d: path || shapes[form], transform, fill: hollow ? "var(--back)" : own, stroke: path ? "none" : own, "stroke-width": large ? 1.2 : 2 }));
  }
  return picture;
}

function markSwatch(mark) {
  const path = mark.symbol && mark.symbol.startsWith("path://") ? mark.symbol.slice(7) : undefined;
  return swatch({ own: mark.color || color("--text"), form: path ? undefined : mark.symbol, path, hollow: mark.hollow, rotate: mark.rotate, line: mark.line, large: mark.size > 14 });
}

// The legend of a chart. `curves` are buttons that hide their curves; `marks` explain other lines and marks.
function showLegend(id, curves, marks, redraw) {
  const hidden = hiddenCurves(id);
  const entries = curves.map(({ name, look }) => {
    const button = make("button", undefined, { type: "button", "aria-pressed": String(!hidden.has(name)), "data-curve": name });
    button.append(swatch({ own: look.color, form: look.form, hollow: look.hollow, line: look.line === undefined ? "solid" : look.line }), make("span", name));
    button.addEventListener("click", () => {
      if (!hidden.delete(name)) hidden.add(name);
      redraw();
    });
    return button;
  });
  for (const mark of marks) {
    const entry = make("span", undefined, { class: "mark" });
    entry.append(markSwatch(mark), make("span", mark.words));
    entries.push(entry);
  }
  element(id + "-legend").replaceChildren(...entries);
}

// Names of the curves that the user switched off in the legend, per chart.
const hiddenByChart = {};
function hiddenCurves(id) {
  if (!hiddenByChart[id]) hiddenByChart[id] = new Set();
  return hiddenByChart[id];
}
