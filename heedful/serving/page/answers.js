// The answer of each verb as it is seen; every function gets a result and what was asked.
import { bars, cosines, el, marked, matrix, scrolled } from "/page/elements.js";
import { number, w } from "/page/words.js";

const COLOURS = 6;
const DRAWN = 96; // numbers of a vector
export const lines = (text) => text.split("\n").filter((line) => line.trim());
const soft = (text) => el("p", { class: "soft" }, text);
const big = (text) => el("p", { class: "big" }, text);

export function showLabels(r) {
  return bars(Object.entries(r.probabilities), r.labels ?? [r.label]);
}

export function showNumber(r) { return big(r.value.toFixed(4)); }

export function showAnything(r) { return el("pre", {}, JSON.stringify(r, null, 2)); }

export function showTokens(r) {
  const chip = (token, i) => el("li", { class: `segment-${r.segments[i]}` }, el("b", {}, token), el("small", {}, String(r.ids[i])));
  return el("div", {}, el("ol", { class: "tokens" }, ...r.tokens.map(chip)), soft(w("pieces").replace("{n}", r.tokens.length)));
}

export function showMasks(r) {
  const one = (mask, i) => el("div", {}, r.masks.length > 1 ? el("h3", {}, `${w("gap")} ${i + 1}`) : null, bars(mask.guesses.map((g) => [g.word, g.probability])));
  return el("div", {}, ...r.masks.map(one));
}

export function showEntities(r, v) {
  const kinds = [...new Set(r.entities.map((one) => one.type ?? one.label))];
  const found = r.entities.map((one) => ({ ...one, label: one.type ?? one.label, colour: `c${kinds.indexOf(one.type ?? one.label) % COLOURS}` }));
  return el("div", {}, marked(v.text, found), found.length ? null : soft(w("nothing")));
}

export function showAnswer(r, v) {
  const found = r.start === null ? [] : [{ start: r.start, end: r.end }];
  return el("div", {}, big(r.answer || w("no_answer")), marked(v.context, found), bars([[w("probability"), r.probability]]));
}

export function showChoice(r, v) {
  const endings = lines(v.choices);
  return bars(r.probabilities.map((share, i) => [endings[i], share]), [r.ending]);
}

export function showTranslation(r) {
  const one = (t) => el("li", {}, t.text || "—", el("small", { class: "soft" }, ` ${t.score.toFixed(3)}`));
  return el("div", {}, el("ol", { class: "best" }, ...r.translations.map(one)), r.alignment ? matrix(r.alignment.target, r.alignment.source, r.alignment.weights) : null);
}

export function showPairScore(r) { return big(`${w("score")} ${r.log_probability.toFixed(3)}`); }

export function showVectors(results, v) {
  const texts = lines(v.texts);
  const one = (vector, i) => {
    const most = Math.max(...vector.map(Math.abs)) || 1, size = w(vector.length > DRAWN ? "dimensions_drawn" : "dimensions").replace("{n}", vector.length).replace("{drawn}", DRAWN);
    const strip = el("div", { class: "strip", role: "img", "aria-label": size });
    for (const value of vector.slice(0, DRAWN)) {
      const part = el("i", { class: value < 0 ? "below" : "" });
      part.style.opacity = (Math.abs(value) / most).toFixed(2);
      strip.append(part);
    }
    const few = vector.slice(0, 6).map((value) => value.toFixed(4)).join(", ");
    return el("div", { class: "vector" }, el("b", {}, texts[i]), strip, el("code", {}, `[${few}, …] `), el("small", { class: "soft" }, size));
  };
  return el("div", {}, ...results.map(one));
}

export function showSimilarity(results, v) {
  const texts = lines(v.texts);
  return cosines(texts.map((text, i) => `${text} (${i + 1})`), texts.map((_, i) => String(i + 1)), results);
}

export function showLines(r) {
  const one = (line) => el("li", {}, el("small", { class: "soft" }, String(line.line)), el("span", {}, line.text || "—"), el("small", { class: "soft" }, line.cosine.toFixed(4)));
  return el("ol", { class: "best nearest" }, ...r.lines.map(one));
}

export function showScores(results, v) {
  const texts = lines(v.texts);
  const kind = results.length && "pseudo_perplexity" in results[0] ? "pseudo_perplexity" : "perplexity";
  const row = (r, i) => el("tr", {}, el("th", { scope: "row" }, texts[i]), el("td", {}, r[kind] === null ? "—" : number(r[kind])), el("td", {}, number(r.tokens)));
  const head = el("thead", {}, el("tr", {}, el("td"), el("th", { scope: "col" }, w(kind)), el("th", { scope: "col" }, w("tokens"))));
  return scrolled(w("about").score, el("table", { class: "plain" }, head, el("tbody", {}, ...results.map(row))));
}

const pick = (name, control) => el("label", { class: "short" }, el("span", {}, w(name)), control);
const option = (value, name) => el("option", { value }, String(name));

// A token that is pointed at colours those that it looks at: the same ones, or those of the other text.
export function showAttention(r) {
  const layer = el("select", { id: "layer" }, ...r.layers.map((n, i) => option(i, n)));
  const head = el("select", { id: "head" }, option(-1, w("all_heads")), ...r.heads.map((n, i) => option(i, n)));
  layer.value = r.layers.length - 1;
  const looking = el("ol", { class: "tokens looking" }), told = el("p", { class: "soft", "aria-live": "polite" }, w("hover")), grid = el("div");
  const seen = r.at ?? r.tokens, at = r.at ? el("ol", { class: "tokens looked-at" }, ...r.at.map((token) => el("li", {}, el("span", { class: "token" }, token)))) : looking;
  let watched = null;
  const weights = () => {
    const maps = r.weights[layer.value];
    if (head.value >= 0) return maps[head.value];
    return maps[0].map((row, i) => row.map((_, j) => maps.reduce((sum, map) => sum + map[i][j], 0) / maps.length));
  };
  const look = (from) => {
    watched = from;
    const row = weights()[from], most = Math.max(...row) || 1;
    [...at.children].forEach((chip, i) => chip.style.setProperty("--weight", (row[i] / most).toFixed(3)));
    [...looking.children].forEach((chip, i) => chip.classList.toggle("from", i === from));
    const best = row.map((value, i) => [value, i]).sort((a, b) => b[0] - a[0]).slice(0, 3);
    told.textContent = `${r.tokens[from]} ${w("looks_at")} ${best.map(([value, i]) => `${seen[i]} ${value.toFixed(2)}`).join(", ")}`;
  };
  const chip = (token, i) => el("li", {}, el("button", { type: "button", class: "token", onmouseenter: () => look(i), onfocus: () => look(i) }, token));
  const draw = () => {
    grid.replaceChildren(matrix(r.tokens, seen, weights()));
    if (watched !== null) look(watched);
  };
  layer.addEventListener("change", draw);
  head.addEventListener("change", draw);
  looking.append(...r.tokens.map(chip));
  draw();
  return el("div", {}, el("div", { class: "row" }, pick("layer", layer), pick("head", head)), looking, at === looking ? null : at, told, grid);
}

// The three attentions of a Transformer that translates, one at a time.
export function showAttentions(r) {
  const which = el("select", { id: "which" }, ...Object.keys(r).map((name) => option(name, w("attentions")[name]))), place = el("div");
  const draw = () => place.replaceChildren(showAttention(r[which.value]));
  which.value = "cross";
  which.addEventListener("change", draw);
  draw();
  return el("div", {}, el("div", { class: "row" }, pick("which", which)), place);
}
