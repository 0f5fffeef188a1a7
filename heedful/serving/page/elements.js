// The parts that answers are drawn with: elements, bars, marked texts and matrices.
import { w } from "/page/words.js";

// An element with attributes and children; a text is only ever a text.
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export const problem = (error) => el("p", { class: "problem", role: "alert" }, error.message, error.remedy ? el("span", { class: "soft" }, ` ${error.remedy}`) : null);

// Pairs of a name and a share, the largest first; what the model has decided for stands out.
export function bars(shares, chosen = []) {
  const row = ([name, share]) => {
    const bar = el("span", { class: "bar" });
    bar.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
    return el("li", { class: chosen.includes(name) ? "chosen" : "" }, el("span", { class: "name" }, name), el("span", { class: "track" }, bar), el("span", { class: "share" }, share.toFixed(4)));
  };
  return el("ul", { class: "bars" }, ...[...shares].sort((a, b) => b[1] - a[1]).map(row));
}

// Offsets count code points, as Python does, and JavaScript's do not.
export function marked(text, stretches) {
  const letters = Array.from(text), parts = [];
  let end = 0;
  for (const one of [...stretches].sort((a, b) => a.start - b.start)) {
    if (one.start < end) continue;
    parts.push(letters.slice(end, one.start).join(""), el("mark", { class: one.colour || "" }, letters.slice(one.start, one.end).join(""), one.label ? el("small", {}, one.label) : null));
    end = one.end;
  }
  return el("p", { class: "marked" }, ...parts, letters.slice(end).join(""));
}

// Weights are shaded in proportion to the greatest one, which may be small where a head looks everywhere. Their numbers
// are there for a pointer that rests on a cell, and for those who hear the page.
export function matrix(rows, columns, weights) {
  const most = Math.max(...weights.map((row) => Math.max(...row))) || 1;
  return grid("matrix", w("weights_about"), rows, columns, weights, (value) => [value / most, el("span", { class: "unseen" }, value.toFixed(2))]);
}

// Cosines are shaded as they are, and seen as numbers.
export function cosines(rows, columns, values) {
  return grid("matrix numbers", w("about").similarity, rows, columns, values, (value) => [value, value.toFixed(2)]);
}

function grid(kind, about, rows, columns, values, drawn) {
  const cell = (value, i, j) => {
    const [share, content] = drawn(value);
    const made = el("td", { title: `${rows[i]} → ${columns[j]}: ${value.toFixed(3)}` }, content);
    made.style.setProperty("--weight", Math.max(0, Math.min(1, share)).toFixed(3));
    return made;
  };
  const head = el("thead", {}, el("tr", {}, el("td"), ...columns.map((name) => el("th", { scope: "col" }, el("span", {}, name)))));
  const line = (name, i) => el("tr", {}, el("th", { scope: "row" }, name), ...values[i].map((value, j) => cell(value, i, j)));
  const table = el("table", { class: kind }, el("caption", { class: "unseen" }, about), head, el("tbody", {}, ...rows.map(line)));
  return scrolled(about, table);
}

// What may be wider than the screen can be reached, and moved, by keyboard.
export const scrolled = (about, ...children) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": about }, ...children);
