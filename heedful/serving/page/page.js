// The page: what is chosen and typed, the call that comes of it, and its answer. No library, no build.
import { STARTS, WORDS } from "/page/words.js";

const $ = (id) => document.getElementById(id);
const state = { language: saved("language") || (navigator.language.startsWith("zh") ? "zh" : "en"), info: null, verb: null, key: "" };
const w = (name) => WORDS[state.language][name];

function saved(name) { try { return localStorage.getItem(name); } catch { return null; } }
function save(name, value) { try { localStorage.setItem(name, value); } catch { /* not allowed: forgotten, then */ } }

// An element with attributes and children; a text is only ever a text.
function el(tag, attributes = {}, ...children) {
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

// What each verb asks for: fields, and how they become an input.
const lines = (text) => text.split("\n").filter((line) => line.trim());
const both = (v) => (v.pair ? [v.text, v.pair] : v.text);
const VERBS = {
  tokenize: { fields: ["text", "pair"], inputs: (v) => [both(v)], show: showTokens },
  fill: { fields: ["mask", "pair", "top"], inputs: (v) => [v.pair ? [v.mask, v.pair] : v.mask], options: (v) => ({ top: v.top }), show: showMasks },
  classify: { fields: ["text", "pair"], inputs: (v) => [both(v)], show: (r) => bars(r.probabilities) },
  regress: { fields: ["text", "pair"], inputs: (v) => [both(v)], show: (r) => el("p", { class: "big" }, r.value.toFixed(4)) },
  tag: { fields: ["text"], inputs: (v) => [v.text], show: showEntities },
  answer: { fields: ["question", "context"], inputs: (v) => [{ question: v.question, context: v.context }], show: showAnswer },
  choose: { fields: ["text", "choices"], inputs: (v) => [{ context: v.text, choices: lines(v.choices) }], show: showChoice },
  translate: { fields: ["source", "beam", "n_best"], inputs: (v) => [v.source], options: (v) => ({ beam: v.beam, n_best: v.n_best, alignments: true }), show: showTranslation },
  generate: { fields: ["prompt", "max_tokens", "temperature"], inputs: (v) => [v.prompt], options: (v) => ({ max_tokens: v.max_tokens, ...(v.temperature > 0 ? { sample: true, temperature: v.temperature } : {}) }), streams: true },
  embed: { fields: ["texts", "pooling"], inputs: (v) => lines(v.texts), options: (v) => (v.pooling ? { pooling: v.pooling } : {}), show: showVectors, all: true },
  similarity: { fields: ["texts"], inputs: (v) => lines(v.texts), show: showSimilarity, all: true },
  search: { fields: ["query", "top"], inputs: (v) => [v.query], options: (v) => ({ top: v.top }), show: showLines },
  score: { fields: ["texts"], inputs: (v) => lines(v.texts), show: showScores, all: true },
  attention: { fields: ["text", "pair"], inputs: (v) => [both(v)], show: showAttention },
};
const PAIR_SCORE = { fields: ["source", "translation"], inputs: (v) => [[v.source, v.translation]], show: (r) => el("p", { class: "big" }, `${w("score")} ${r.log_probability.toFixed(3)}`) };
const LONG = ["prompt", "text", "mask", "texts", "context", "choices", "source", "translation"];
const NUMBERS = { top: [5, 1, 100], beam: [5, 1, 16], n_best: [2, 1, 16], max_tokens: [100, 1, 4096], temperature: [0.8, 0, 10, "any"] };
const POOLINGS = ["", "cls", "mean", "max", "mean-max", "last"];
const COLOURS = 6;

const model = () => state.info.models.find((one) => one.name === $("model").value);
const plan = () => (state.verb === "score" && model().kind === "translator" ? PAIR_SCORE : VERBS[state.verb]);

function field(name) {
  const start = STARTS[state.language][name] ?? "", id = `field-${name}`;
  let control;
  if (name in NUMBERS) {
    const [value, min, max, step] = NUMBERS[name];
    control = el("input", { id, name, type: "number", value, min, max, step, required: true });
  } else if (name === "pooling") {
    control = el("select", { id, name }, ...POOLINGS.map((one) => el("option", { value: one }, one || w("own"))));
  } else if (LONG.includes(name)) {
    control = el("textarea", { id, name, rows: name === "text" || name === "mask" || name === "source" ? 2 : 4, required: true, spellcheck: false });
    control.value = start;
  } else {
    control = el("input", { id, name, type: "text", value: start, required: name !== "pair" });
  }
  return el("label", { class: name in NUMBERS || name === "pooling" ? "short" : "long", for: id }, el("span", {}, w(name === "mask" ? "text" : name)), control);
}

function values() {
  const found = Object.fromEntries(new FormData($("inputs")));
  for (const name of Object.keys(NUMBERS)) if (name in found) found[name] = Number(found[name]);
  return found;
}

function drawVerbs() {
  const there = Object.keys(VERBS).filter((verb) => model().verbs.includes(verb));
  if (!there.includes(state.verb)) state.verb = there[0];
  const tab = (verb) => el("button", { type: "button", role: "tab", id: `verb-${verb}`, "aria-selected": String(verb === state.verb), "aria-controls": "inputs",
    tabindex: verb === state.verb ? "0" : "-1", onclick: () => choose(verb), onkeydown: (event) => arrow(event, there) }, w("verbs")[verb]);
  $("verbs").replaceChildren(...there.map(tab));
  drawForm();
}

function arrow(event, there) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  choose(there[(there.indexOf(state.verb) + step + there.length) % there.length]);
  $(`verb-${state.verb}`).focus();
}

function choose(verb) { state.verb = verb; drawVerbs(); }

function drawForm() {
  $("about").textContent = w("about")[state.verb];
  const run = el("button", { class: "run", id: "run" }, w("run"));
  $("inputs").replaceChildren(...plan().fields.map(field), run);
  $("answer").replaceChildren();
  drawCalls();
}

function body() {
  const v = values();
  return { inputs: plan().inputs(v), ...(plan().options ? plan().options(v) : {}) };
}

async function send(path, options = {}) {
  const headers = { ...(options.body ? { "content-type": "application/json" } : {}), ...(state.key ? { authorization: `Bearer ${state.key}` } : {}) };
  const response = await fetch(path, { ...options, headers });
  if (response.status === 401 && await askKey()) return send(path, options);
  return response;
}

function askKey() {
  return new Promise((done) => {
    const dialog = $("ask-key");
    dialog.addEventListener("close", () => { state.key = $("key").value; done(Boolean(state.key)); }, { once: true });
    dialog.showModal();
  });
}

async function run(event) {
  event.preventDefault();
  const answer = $("answer"), button = $("run"), started = performance.now();
  answer.setAttribute("aria-busy", "true");
  button.disabled = true;
  button.textContent = w("running");
  try {
    const response = await send(`/v1/models/${encodeURIComponent(model().name)}/${state.verb}`, { method: "POST", body: JSON.stringify({ ...body(), timing: true, ...(plan().streams ? { stream: true } : {}) }) });
    if (plan().streams && response.ok) return await showStream(response, answer, started);
    const told = await response.json();
    if (told.error) answer.replaceChildren(problem(told.error));
    else answer.replaceChildren(...shown(told), clocks(told.timing, performance.now() - started));
  } catch {
    answer.replaceChildren(problem({ message: w("unreachable") }));
  } finally {
    answer.setAttribute("aria-busy", "false");
    button.disabled = false;
    button.textContent = w("run");
  }
  drawCalls();
}

function shown(told) {
  const cut = told.truncated ? [el("p", { class: "soft" }, w("cut"))] : [];
  const one = (result, i) => (result.error ? problem(result.error) : plan().show(result, i));
  return [...cut, plan().all && !told.failed ? plan().show(told.results) : el("div", {}, ...told.results.map(one))];
}

const problem = (error) => el("p", { class: "problem", role: "alert" }, error.message, error.remedy ? el("span", { class: "soft" }, ` ${error.remedy}`) : null);

function clocks(timing, total) {
  const text = w("clocks").replace("{queue}", timing.queue_ms.toFixed(1)).replace("{tokenize}", timing.tokenize_ms.toFixed(1))
    .replace("{compute}", timing.compute_ms.toFixed(1)).replace("{total}", total.toFixed(1));
  return el("p", { class: "clocks soft" }, text);
}

// A text as it is written: server-sent events, read from the body of the answer.
async function showStream(response, answer, started) {
  const text = el("p", { class: "marked" }, el("span", { class: "soft" }, values().prompt)), reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  answer.replaceChildren(text);
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const events = (waiting + value).split("\n\n");
    waiting = events.pop();
    for (const event of events) {
      const told = JSON.parse(event.slice(event.indexOf("data: ") + 6));
      if (told.text) text.append(told.text);
      else if (told.error) answer.append(problem(told.error));
      else answer.append(clocks({ queue_ms: 0, tokenize_ms: 0, compute_ms: told.compute_ms }, performance.now() - started));
    }
  }
}

function bars(shares) {
  const row = ([name, share]) => {
    const bar = el("span", { class: "bar" });
    bar.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
    return el("li", {}, el("span", { class: "name" }, name), el("span", { class: "track" }, bar), el("span", { class: "share" }, share.toFixed(4)));
  };
  return el("ul", { class: "bars" }, ...Object.entries(shares).sort((a, b) => b[1] - a[1]).map(row));
}

function showTokens(r) {
  const chip = (token, i) => el("li", { class: `segment-${r.segments[i]}` }, el("b", {}, token), el("small", {}, String(r.ids[i])));
  return el("ol", { class: "tokens" }, ...r.tokens.map(chip));
}

function showMasks(r) {
  const one = (mask, i) => el("div", {}, r.masks.length > 1 ? el("h3", {}, `[MASK] ${i + 1}`) : null, bars(Object.fromEntries(mask.guesses.map((g) => [g.word, g.probability]))));
  return el("div", {}, ...r.masks.map(one));
}

// Offsets count code points, as Python does, and JavaScript's do not.
function marked(text, stretches) {
  const letters = Array.from(text), parts = [];
  let end = 0;
  for (const one of [...stretches].sort((a, b) => a.start - b.start)) {
    if (one.start < end) continue;
    parts.push(letters.slice(end, one.start).join(""), el("mark", { class: one.colour || "" }, letters.slice(one.start, one.end).join(""), one.label ? el("small", {}, one.label) : null));
    end = one.end;
  }
  return el("p", { class: "marked" }, ...parts, letters.slice(end).join(""));
}

function showEntities(r) {
  const kinds = [...new Set(r.entities.map((one) => one.type ?? one.label))];
  const text = values().text;
  const found = r.entities.map((one) => ({ ...one, label: one.type ?? one.label, colour: `c${kinds.indexOf(one.type ?? one.label) % COLOURS}` }));
  return el("div", {}, marked(text, found), found.length ? null : el("p", { class: "soft" }, w("nothing")));
}

function showAnswer(r) {
  const found = r.start === null ? [] : [{ start: r.start, end: r.end }];
  return el("div", {}, el("p", { class: "big" }, r.answer || w("no_answer")), marked(values().context, found), bars({ [r.answer || "—"]: r.probability }));
}

function showChoice(r) {
  const endings = lines(values().choices);
  const shares = Array.isArray(r.probabilities) ? Object.fromEntries(r.probabilities.map((share, i) => [endings[i], share])) : r.probabilities;
  return shares ? bars(shares) : el("p", { class: "big" }, r.ending);
}

function showTranslation(r) {
  const one = (t) => el("li", {}, t.text || "—", el("small", { class: "soft" }, ` ${t.score.toFixed(3)}`));
  return el("div", {}, el("ol", { class: "best" }, ...r.translations.map(one)), r.alignment ? matrix(r.alignment.target, r.alignment.source, r.alignment.weights) : null);
}

// Weights are shaded in proportion to the greatest one, which may be small where a head looks everywhere.
function matrix(rows, columns, weights, digits = 3) {
  const most = digits === 2 ? 1 : Math.max(...weights.flat()) || 1;
  const cell = (value, i, j) => {
    const made = el("td", { title: `${rows[i]} → ${columns[j]}: ${value.toFixed(digits)}` }, el("span", {}, digits === 2 ? value.toFixed(2) : ""));
    made.style.setProperty("--weight", Math.max(0, Math.min(1, value / most)).toFixed(3));
    return made;
  };
  const head = el("thead", {}, el("tr", {}, el("td"), ...columns.map((name) => el("th", { scope: "col" }, el("span", {}, name)))));
  const line = (name, i) => el("tr", {}, el("th", { scope: "row" }, name), ...weights[i].map((value, j) => cell(value, i, j)));
  return el("div", { class: "scroll", tabindex: "0" }, el("table", { class: `matrix ${digits === 2 ? "numbers" : ""}` }, head, el("tbody", {}, ...rows.map(line))));
}

function showVectors(results) {
  const texts = lines(values().texts);
  const one = (vector, i) => {
    const most = Math.max(...vector.map(Math.abs)) || 1, strip = el("div", { class: "strip", role: "img", "aria-label": w("dimensions").replace("{n}", vector.length) });
    for (const value of vector.slice(0, 96)) {
      const part = el("i", { class: value < 0 ? "below" : "" });
      part.style.opacity = (Math.abs(value) / most).toFixed(2);
      strip.append(part);
    }
    const few = vector.slice(0, 6).map((value) => value.toFixed(4)).join(", ");
    return el("div", { class: "vector" }, el("b", {}, texts[i]), strip, el("code", {}, `[${few}, …] `), el("small", { class: "soft" }, w("dimensions").replace("{n}", vector.length)));
  };
  return el("div", {}, ...results.map(one));
}

function showSimilarity(results) {
  const texts = lines(values().texts);
  return matrix(texts, texts.map((_, i) => String(i + 1)), results, 2);
}

function showLines(r) {
  const one = (line) => el("li", { value: line.line }, line.text || "—", el("small", { class: "soft" }, ` ${line.cosine.toFixed(4)}`));
  return el("ol", { class: "best" }, ...r.lines.map(one));
}

function showScores(results) {
  const texts = lines(values().texts);
  const kind = results.length && "pseudo_perplexity" in results[0] ? "pseudo_perplexity" : "perplexity";
  const row = (r, i) => el("tr", {}, el("th", { scope: "row" }, texts[i]), el("td", {}, r[kind] === null ? "—" : r[kind].toFixed(2)), el("td", {}, String(r.tokens)));
  const head = el("thead", {}, el("tr", {}, el("td"), el("th", { scope: "col" }, w(kind)), el("th", { scope: "col" }, w("tokens"))));
  return el("div", { class: "scroll" }, el("table", { class: "plain" }, head, el("tbody", {}, ...results.map(row))));
}

function showAttention(r) {
  const option = (value, name) => el("option", { value }, String(name));
  const layer = el("select", { id: "layer" }, ...r.layers.map((n, i) => option(i, n)));
  const head = el("select", { id: "head" }, option(-1, w("all_heads")), ...r.heads.map((n, i) => option(i, n)));
  layer.value = r.layers.length - 1;
  const at = el("ol", { class: "tokens looking" }), told = el("p", { class: "soft", "aria-live": "polite" }, w("hover")), grid = el("div");
  const weights = () => {
    const maps = r.weights[layer.value];
    if (head.value >= 0) return maps[head.value];
    return maps[0].map((row, i) => row.map((_, j) => maps.reduce((sum, map) => sum + map[i][j], 0) / maps.length));
  };
  const look = (from) => {
    const row = weights()[from], most = Math.max(...row) || 1;
    [...at.children].forEach((chip, i) => { chip.style.setProperty("--weight", (row[i] / most).toFixed(3)); chip.classList.toggle("from", i === from); });
    const best = row.map((value, i) => [value, i]).sort((a, b) => b[0] - a[0]).slice(0, 3);
    told.textContent = `${r.tokens[from]} ${w("looks_at")} ${best.map(([value, i]) => `${r.tokens[i]} ${value.toFixed(2)}`).join(", ")}`;
  };
  const chip = (token, i) => el("li", {}, el("button", { type: "button", class: "token", onmouseenter: () => look(i), onfocus: () => look(i) }, token));
  const draw = () => grid.replaceChildren(matrix(r.tokens, r.tokens, weights()));
  layer.addEventListener("change", draw);
  head.addEventListener("change", draw);
  at.append(...r.tokens.map(chip));
  draw();
  const pick = (name, control) => el("label", { class: "short" }, el("span", {}, w(name)), control);
  return el("div", {}, el("div", { class: "row" }, pick("layer", layer), pick("head", head)), at, told, grid);
}

// The same call elsewhere: what is typed is quoted as each language wants it.
const shell = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;
const python = (value) => JSON.stringify(value).replaceAll("true", "True").replaceAll("null", "None");

function snippets() {
  const given = body(), name = model().name, verb = state.verb, { inputs, ...options } = given, [first] = inputs;
  const path = `${location.origin}/v1/models/${name}/${verb}`, key = state.key ? ` -H "Authorization: Bearer $KEY"` : "";
  const more = Object.entries(options).map(([option, value]) => `, ${option}=${python(value)}`).join("");
  const texts = (Array.isArray(first) ? first : [first]).filter((one) => typeof one === "string");
  const commands = {
    embed: `printf '%s\\n' ${inputs.map(shell).join(" ")} | heedful embed MODEL - -o vectors.npy`,
    similarity: `heedful similarity MODEL ${inputs.map(shell).join(" ")}`,
    fill: `heedful fill MODEL ${shell(texts[0])}${texts[1] ? ` --pair ${shell(texts[1])}` : ""} --top ${options.top}`,
    score: model().kind === "translator" ? "heedful translate score MODEL pairs.tsv" : `printf '%s\\n' ${inputs.map(shell).join(" ")} | heedful score MODEL -`,
    translate: `echo ${shell(first)} | heedful translate run MODEL - --beam ${options.beam}`,
    tokenize: `heedful tokenizer show MODEL ${shell(texts[0])}${texts[1] ? ` --pair ${shell(texts[1])}` : ""}`,
    answer: `heedful predict MODEL ${shell(first.question)} --context ${shell(first.context)}`,
    generate: `heedful generate MODEL ${shell(texts[0])} --max-tokens ${options.max_tokens}${options.sample ? ` --sample --temperature ${options.temperature}` : ""}`,
    attention: `heedful look MODEL ${texts.map(shell).join(" ")} -o page.html`,
  };
  const predicted = texts.length ? `heedful predict MODEL ${shell(texts[0])}${texts[1] ? ` --pair ${shell(texts[1])}` : ""}` : "heedful predict MODEL inputs.jsonl";
  const found = {
    curl: `curl ${path}${key} -H 'Content-Type: application/json' -d ${shell(JSON.stringify(given))}`,
    [w("python")]: `from heedful.client import Client\n\nClient("${location.origin}", "${name}").call("${verb}", ${python(inputs)}${more})`,
  };
  if (verb !== "search") found[w("shell")] = commands[verb] || predicted;
  return found;
}

function drawCalls() {
  const one = ([name, text]) => {
    const copy = el("button", { type: "button", class: "copy", onclick: async () => { await navigator.clipboard.writeText(text); copy.textContent = w("copied"); } }, w("copy"));
    return el("figure", {}, el("figcaption", {}, name, copy), el("pre", { tabindex: "0" }, text));
  };
  $("snippets").replaceChildren(...Object.entries(snippets()).map(one));
  $("calls").hidden = false;
}

function speak() {
  document.documentElement.lang = state.language === "zh" ? "zh-CN" : "en";
  for (const one of document.querySelectorAll("[data-word]")) one.textContent = w(one.dataset.word);
  if (state.info) drawVerbs();
}

async function start() {
  speak();
  $("language").addEventListener("click", () => { state.language = state.language === "en" ? "zh" : "en"; save("language", state.language); speak(); });
  $("inputs").addEventListener("submit", run);
  $("inputs").addEventListener("input", drawCalls);
  $("model").addEventListener("change", drawVerbs);
  try {
    state.info = await (await send("/info")).json();
    $("model").replaceChildren(...state.info.models.map((one) => el("option", { value: one.name }, one.name)));
    drawVerbs();
  } catch {
    $("answer").replaceChildren(problem({ message: w("unreachable") }));
  }
}

start();
