// The page: what is chosen and typed, the call that comes of it, and its answer. No library, no build.
import * as answers from "/page/answers.js";
import { calls, copy } from "/page/calls.js";
import { el, problem } from "/page/elements.js";
import { starts, spoken, w } from "/page/words.js";

const $ = (id) => document.getElementById(id);
// What was typed stays, whatever model, verb or language is chosen next.
const state = { info: null, verb: null, key: "", typed: {}, running: null };

function saved(name) { try { return localStorage.getItem(name); } catch { return null; } }
function save(name, value) { try { localStorage.setItem(name, value); } catch { /* not allowed: forgotten, then */ } }

// What each verb asks for: fields, and how they become an input. The first that a model has is shown first.
const { lines } = answers;
const both = (v) => (v.pair ? [v.text, v.pair] : v.text);
const VERBS = {
  classify: { fields: ["text", "pair"], inputs: (v) => [both(v)], show: answers.showLabels },
  regress: { fields: ["text", "pair"], inputs: (v) => [both(v)], show: answers.showNumber },
  tag: { fields: ["text"], inputs: (v) => [v.text], show: answers.showEntities },
  answer: { fields: ["question", "context"], inputs: (v) => [{ question: v.question, context: v.context }], show: answers.showAnswer },
  choose: { fields: ["start", "choices"], inputs: (v) => [{ context: v.start, choices: lines(v.choices) }], show: answers.showChoice },
  predict: { fields: ["text", "pair"], inputs: (v) => [both(v)], show: answers.showAnything },
  translate: { fields: ["source", "beam", "n_best"], inputs: (v) => [v.source], options: (v) => ({ beam: v.beam, n_best: v.n_best, alignments: true }), show: answers.showTranslation },
  generate: { fields: ["prompt", "max_tokens", "temperature"], inputs: (v) => [v.prompt], options: (v) => ({ max_tokens: v.max_tokens, ...(v.temperature > 0 ? { sample: true, temperature: v.temperature } : {}) }), streams: true },
  fill: { fields: ["mask", "pair", "top"], inputs: (v) => [v.pair ? [v.mask, v.pair] : v.mask], options: (v) => ({ top: v.top }), show: answers.showMasks },
  embed: { fields: ["texts", "pooling"], inputs: (v) => lines(v.texts), options: (v) => (v.pooling ? { pooling: v.pooling } : {}), show: answers.showVectors, all: true },
  similarity: { fields: ["texts"], inputs: (v) => lines(v.texts), show: answers.showSimilarity, all: true },
  search: { fields: ["query", "top"], inputs: (v) => [v.query], options: (v) => ({ top: v.top }), show: answers.showLines },
  score: { fields: ["texts"], inputs: (v) => lines(v.texts), show: answers.showScores, all: true },
  tokenize: { fields: ["text", "pair"], inputs: (v) => [both(v)], show: answers.showTokens },
  attention: { fields: ["text", "pair"], inputs: (v) => [both(v)], show: answers.showAttention },
};
// A task of somebody's own has no name here, and is seen as it is.
const TASKS = ["classify", "regress", "tag", "answer", "choose"];
// What a translator is asked about a source and its translation.
const ofPair = (show) => ({ fields: ["source", "translation"], inputs: (v) => [[v.source, v.translation]], show });
const OF_PAIRS = { score: ofPair(answers.showPairScore), attention: ofPair(answers.showAttentions) };
const LONG = { prompt: 3, text: 2, start: 2, mask: 2, texts: 4, context: 4, choices: 4, source: 2, translation: 2 };
const NUMBERS = { top: [5, 1, 100], beam: [5, 1, 16], n_best: [2, 1, 16], max_tokens: [100, 1, 4096], temperature: [0.8, 0, 10, "any"] };
const POOLINGS = ["", "cls", "mean", "max", "mean-max", "weighted-mean", "last"];

const model = () => state.info.models.find((one) => one.name === $("model").value);
const translates = () => model().kind === "translator";
const plan = () => (translates() && OF_PAIRS[state.verb]) || VERBS[state.verb];
// A fine-tuned model takes pairs or single texts, as it was trained; of any other one may try both.
const trained = () => (["classify", "regress", "predict"].includes(state.verb) ? model().pairs : null);
const fields = () => plan().fields.filter((name) => name !== "pair" || trained() !== false);

function field(name) {
  const needed = name !== "pair" || trained() === true, id = `field-${name}`;
  const first = name === "pair" && !needed ? "" : starts(model().mask)[name] ?? "";
  const value = state.typed[name] ?? (name in NUMBERS ? NUMBERS[name][0] : first);
  let control;
  if (name in NUMBERS) {
    const [, min, max, step] = NUMBERS[name];
    control = el("input", { id, name, type: "number", min, max, step, required: true });
  } else if (name === "pooling") {
    control = el("select", { id, name }, ...POOLINGS.map((one) => el("option", { value: one }, one || w("own"))));
  } else if (name in LONG) {
    control = el("textarea", { id, name, rows: LONG[name], required: true, spellcheck: "false" });
  } else {
    control = el("input", { id, name, type: "text", required: needed });
  }
  control.value = value;
  const label = { mask: "text", start: "text", pair: needed ? "second" : "pair" }[name] ?? name;
  return el("label", { class: name in NUMBERS || name === "pooling" ? "short" : "long", for: id }, el("span", {}, w(label)), control);
}

function values() {
  const found = Object.fromEntries(new FormData($("inputs")));
  for (const name of Object.keys(NUMBERS)) if (name in found) found[name] = Number(found[name]);
  return found;
}

function drawVerbs() {
  const has = (verb) => model().verbs.includes(verb) && (verb !== "predict" || !TASKS.some((task) => model().verbs.includes(task)));
  const there = Object.keys(VERBS).filter(has);
  if (!there.includes(state.verb)) state.verb = there[0];
  const tab = (verb) => el("button", { type: "button", role: "tab", id: `verb-${verb}`, "aria-selected": String(verb === state.verb), "aria-controls": "panel",
    tabindex: verb === state.verb ? "0" : "-1", onclick: () => choose(verb), onkeydown: (event) => arrow(event, there) }, w("verbs")[verb]);
  $("verbs").replaceChildren(...there.map(tab));
  $("verbs").setAttribute("aria-label", w("what"));
  $("panel").setAttribute("aria-labelledby", `verb-${state.verb}`);
  drawForm();
}

function arrow(event, there) {
  const at = there.indexOf(state.verb), to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: there.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  choose(there[(to + there.length) % there.length]);
}

function choose(verb) {
  state.verb = verb;
  drawVerbs();
  $(`verb-${verb}`).focus();
}

function drawForm() {
  state.running?.abort(); // nobody waits for the answer to what is no longer there
  state.running = null;
  $("answer").setAttribute("aria-busy", "false");
  $("about").textContent = (translates() && w("about_pair")[state.verb]) || w("about")[state.verb];
  $("inputs").replaceChildren(...fields().map(field), el("button", { class: "run", id: "run" }, w("run")));
  $("answer").setAttribute("aria-label", w("answer"));
  $("answer").replaceChildren();
  $("status").textContent = "";
  drawCalls();
}

function body(v) { return { inputs: plan().inputs(v), ...(plan().options ? plan().options(v) : {}) }; }

async function send(path, options = {}) {
  const headers = { ...(options.body ? { "content-type": "application/json" } : {}), ...(state.key ? { authorization: `Bearer ${state.key}` } : {}) };
  const response = await fetch(path, { ...options, headers });
  if (response.status === 401 && await askKey()) return send(path, options);
  return response;
}

function askKey() {
  return new Promise((done) => {
    const dialog = $("ask-key");
    $("key").value = dialog.returnValue = "";
    dialog.addEventListener("close", () => { state.key = dialog.returnValue && $("key").value; done(Boolean(state.key)); }, { once: true });
    dialog.showModal();
  });
}

// A second press while it runs is for stopping.
async function run(event) {
  event.preventDefault();
  if (state.running) return state.running.abort();
  const mine = state.running = new AbortController(), asked = values(), started = performance.now();
  const answer = $("answer"), button = $("run"), how = plan();
  answer.setAttribute("aria-busy", "true");
  button.textContent = w("stop");
  $("status").textContent = w("running");
  try {
    const request = { ...body(asked), timing: true, ...(how.streams ? { stream: true } : {}) };
    const response = await send(`/v1/models/${encodeURIComponent(model().name)}/${state.verb}`, { method: "POST", body: JSON.stringify(request), signal: mine.signal });
    if (how.streams && response.ok) await showStream(response, answer, asked, started);
    else {
      const told = await response.json();
      if (mine.signal.aborted) return;
      if (told.error) answer.replaceChildren(problem(told.error));
      else answer.replaceChildren(...shown(how, told, asked), clocks(told.timing, performance.now() - started));
    }
    $("status").textContent = w("ready");
  } catch (error) {
    if (state.running === mine) $("status").textContent = "";
    if (!mine.signal.aborted) answer.replaceChildren(problem({ message: error instanceof TypeError ? w("unreachable") : String(error) }));
  } finally {
    if (state.running === mine) {
      state.running = null;
      answer.setAttribute("aria-busy", "false");
      button.textContent = w("run");
    }
  }
}

function shown(how, told, asked) {
  const cut = told.truncated || told.results.some((one) => one.cut) ? [el("p", { class: "soft" }, w("cut"))] : [];
  const one = (result) => (result.error ? problem(result.error) : how.show(result, asked));
  return [...cut, how.all && !told.failed ? how.show(told.results, asked) : el("div", {}, ...told.results.map(one))];
}

function clocks(timing, total) {
  const known = { queue: timing.queue_ms, tokenize: timing.tokenize_ms, compute: timing.compute_ms, total };
  const parts = w("clocks").map((part) => el("span", {}, part.replace(/\{(\w+)\}/, (_, name) => known[name].toFixed(1))));
  return el("p", { class: "clocks soft" }, ...parts);
}

// A text as it is written: server-sent events, read from the body of the answer.
async function showStream(response, answer, asked, started) {
  const text = el("p", { class: "marked" }, el("span", { class: "soft" }, asked.prompt)), reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  answer.replaceChildren(text);
  answer.setAttribute("aria-busy", "false"); // from here on it can be read
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
      else answer.append(clocks(told.timing, performance.now() - started));
    }
  }
}

function drawCalls() {
  const one = ([name, text]) => {
    const shownText = el("pre", { tabindex: "0", role: "group", "aria-label": w(name) }, text);
    const button = el("button", { type: "button", class: "copy", "aria-label": `${w("copy")}: ${w(name)}`, onclick: async () => {
      if (await copy(shownText)) button.textContent = $("status").textContent = w("copied");
    } }, w("copy"));
    return el("figure", {}, el("figcaption", {}, w(name), button), shownText);
  };
  $("snippets").replaceChildren(...Object.entries(calls(model(), state.verb, body(values()), state.key, plan().streams)).map(one));
  $("calls").hidden = false;
}

function speak() {
  document.documentElement.lang = spoken.language === "zh" ? "zh-CN" : "en";
  for (const one of document.querySelectorAll("[data-word]")) one.textContent = w(one.dataset.word);
  $("language").lang = spoken.language === "zh" ? "en" : "zh-CN";
  if (state.info) drawVerbs();
}

// A server listens before its models are loaded; until then it says so, and is asked again.
async function infoOnceLoaded() {
  for (;;) {
    const response = await send("/info");
    if (response.status !== 503) return response.json();
    $("answer").replaceChildren(el("p", { class: "soft", role: "status" }, w("loading")));
    await new Promise((done) => setTimeout(done, 1000));
  }
}

async function start() {
  spoken.language = saved("language") || (navigator.language.startsWith("zh") ? "zh" : "en");
  speak();
  $("language").addEventListener("click", () => { spoken.language = spoken.language === "en" ? "zh" : "en"; save("language", spoken.language); speak(); });
  $("inputs").addEventListener("submit", run);
  $("inputs").addEventListener("input", (event) => { state.typed[event.target.name] = event.target.value; drawCalls(); });
  $("model").addEventListener("change", drawVerbs);
  try {
    const told = await infoOnceLoaded();
    if (told.error) return $("answer").replaceChildren(problem(told.error));
    state.info = told;
    $("model").replaceChildren(...told.models.map((one) => el("option", { value: one.name }, one.name)));
    drawVerbs();
  } catch {
    $("answer").replaceChildren(problem({ message: w("unreachable") }));
  }
}

start();
