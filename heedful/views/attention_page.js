"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const main = document.querySelector("main");
const el = (tag, name, ...children) => { const made = document.createElement(tag); if (name) made.className = name; made.append(...children); return made; };
const svg = (tag, attributes) => { const made = document.createElementNS("http://www.w3.org/2000/svg", tag); for (const [k, v] of Object.entries(attributes)) made.setAttribute(k, v); return made; };
const unpack = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const colour = getComputedStyle(document.documentElement).getPropertyValue("--c0").trim() || "#1d6fd1";

// A canvas with a pixel for each weight, as large as it is told to be.
function heat(bytes, start, rows, columns) {
  const canvas = el("canvas"), [r, g, b] = rgb(colour);
  canvas.width = columns; canvas.height = rows;
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  for (let i = 0; i < rows * columns; i++) image.data.set([r, g, b, bytes[start + i]], 4 * i);
  context.putImageData(image, 0, 0);
  return canvas;
}
function rgb(text) { const probe = el("canvas").getContext("2d"); probe.fillStyle = text; const hex = probe.fillStyle; return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)); }

function draw(picture) {
  const bytes = unpack(picture.bytes), rows = picture.rows.length, columns = picture.columns.length, size = rows * columns;
  const chosen = { layer: picture.layers - 1, head: 0, token: null };
  const start = () => (chosen.layer * picture.heads + chosen.head) * size;
  const view = el("div", "card scroll"), table = el("div", "card scroll"), told = el("p", "aside"), grid = el("div", "glance");
  told.setAttribute("aria-live", "polite");
  for (let layer = 0; layer < picture.layers; layer++) {
    const line = el("div", "line", el("span", "tick", String(layer + 1)));
    for (let head = 0; head < picture.heads; head++) {
      const button = el("button", "", heat(bytes, (layer * picture.heads + head) * size, rows, columns));
      button.type = "button";
      button.title = button.ariaLabel = `layer ${layer + 1}, head ${head}`;
      button.addEventListener("click", () => { Object.assign(chosen, { layer, head }); show(); });
      line.append(button);
    }
    grid.append(line);
  }
  function show() {
    [...grid.querySelectorAll("button")].forEach((one, i) => one.setAttribute("aria-pressed", String(i === chosen.layer * picture.heads + chosen.head)));
    heading.textContent = `Layer ${chosen.layer + 1}, head ${chosen.head}`;
    view.replaceChildren(lines());
    table.replaceChildren(matrix());
  }
  function lines() {
    const step = rows > 40 || columns > 40 ? 17 : 24, wide = 640, left = 190, right = wide - 190;
    const whole = svg("svg", { viewBox: `0 0 ${wide} ${step * Math.max(rows, columns) + 12}`, class: "lines", role: "img", "aria-label": "lines from each token to what it looks at" });
    const curves = [];
    for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) {
      const weight = bytes[start() + i * columns + j] / 255;
      if (weight < 0.02) continue;
      const curve = svg("line", { x1: left, y1: step * (i + 0.5) + 6, x2: right, y2: step * (j + 0.5) + 6, "stroke-width": (0.5 + 3 * weight).toFixed(2), opacity: weight.toFixed(3) });
      curves.push([i, curve]); whole.append(curve);
    }
    picture.rows.forEach((token, i) => {
      const label = svg("text", { x: left - 8, y: step * (i + 0.5) + 11, "text-anchor": "end", tabindex: 0, class: "from" });
      label.textContent = token;
      const look = () => {
        for (const [from, curve] of curves) curve.style.display = from === i ? "" : "none";
        const best = picture.columns.map((name, j) => [bytes[start() + i * columns + j] / 255, name]).sort((a, b) => b[0] - a[0]).slice(0, 4);
        told.textContent = `${token} → ${best.map(([weight, name]) => `${name} ${weight.toFixed(2)}`).join(", ")}`;
      };
      const all = () => { for (const [, curve] of curves) curve.style.display = ""; };
      label.addEventListener("mouseenter", look); label.addEventListener("focus", look); label.addEventListener("mouseleave", all); label.addEventListener("blur", all);
      whole.append(label);
    });
    picture.columns.forEach((token, j) => { const label = svg("text", { x: right + 8, y: step * (j + 0.5) + 11 }); label.textContent = token; whole.append(label); });
    return whole;
  }
  function matrix() {
    const cell = columns > 60 ? 11 : columns > 30 ? 15 : 24, whole = el("div", "matrix"), names = el("div", "names"), heads = el("div", "heads");
    whole.style.setProperty("--cell", `${cell}px`);
    picture.rows.forEach((token) => names.append(el("span", "", token)));
    picture.columns.forEach((token) => heads.append(el("span", "", el("b", "", token))));
    const canvas = heat(bytes, start(), rows, columns);
    canvas.style.width = `${cell * columns}px`; canvas.style.height = `${cell * rows}px`;
    canvas.addEventListener("mousemove", (event) => {
      const i = Math.floor(event.offsetY / cell), j = Math.floor(event.offsetX / cell);
      if (i < rows && j < columns) told.textContent = `${picture.rows[i]} → ${picture.columns[j]}: ${(bytes[start() + i * columns + j] / 255).toFixed(2)}`;
    });
    whole.append(el("span"), heads, names, canvas);
    return whole;
  }
  const heading = el("h3");
  main.append(el("section", "", el("h2", "", picture.title), el("p", "aside", "All layers (downwards) and heads (to the right) at a glance; choose one. A row of a square looks, a column is looked at."), el("div", "card scroll", grid), heading, told, el("div", "two", view, table)));
  show();
}

function drawNeighbours(known) {
  const list = el("div", "card"), buttons = el("p", "chips"), several = new Set(known.texts).size > 1;
  const name = (i) => `${known.tokens[i]}${several ? ` (${known.texts[i] + 1})` : ""}`;
  function show(token) {
    const rows = known.nearest.map((layer, number) => {
      const cells = layer[token].map(([other, cosine]) => el("td", "", `${name(other)} `, el("small", "", cosine.toFixed(2))));
      return el("tr", "", el("th", "", number ? `layer ${number}` : "embeddings"), ...cells);
    });
    list.replaceChildren(el("h3", "", name(token)), el("table", "", el("tbody", "", ...rows)));
    [...buttons.children].forEach((one, i) => one.setAttribute("aria-pressed", String(i === token)));
  }
  known.tokens.forEach((_, i) => { const one = el("button", "", name(i)); one.type = "button"; one.addEventListener("click", () => show(i)); buttons.append(one); });
  main.append(el("section", "", el("h2", "", "Nearest neighbours through the layers"), el("p", "aside", "Choose a token: the tokens of these texts whose states are nearest to its own, by cosine, from the embeddings to the last layer."), buttons, list));
  show(Math.min(1, known.tokens.length - 1));
}

function drawPositions(known) {
  const canvas = heat(unpack(known.bytes), 0, known.size, known.size);
  canvas.className = "positions"; canvas.setAttribute("role", "img"); canvas.ariaLabel = "cosines of position vectors";
  main.append(el("section", "", el("h2", "", "How alike positions are"), el("p", "aside", `The cosines of the first ${known.size} position vectors: neighbours are alike, the strongest colour is 1.`), el("div", "card", canvas)));
}

data.pictures.forEach(draw);
if (data.neighbours) drawNeighbours(data.neighbours);
if (data.positions) drawPositions(data.positions);
