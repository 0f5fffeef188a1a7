// The same call elsewhere: what is typed is quoted as each language wants it.
const shell = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;

export function python(value) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([key, one]) => `${python(key)}: ${python(one)}`).join(", ")}}`;
  return JSON.stringify(value);
}

const printed = (texts) => `printf '%s\\n' ${texts.map(shell).join(" ")}`;

// MODEL stands for the folder, of which a server tells nothing but the name.
const COMMANDS = {
  embed: (inputs, o) => `${printed(inputs)} | heedful embed MODEL - -o vectors.npy${o.pooling ? ` --pooling ${o.pooling}` : ""}`,
  similarity: (inputs) => `heedful similarity MODEL ${inputs.map(shell).join(" ")}`,
  search: ([query], o) => `heedful search index --model MODEL --add lines.txt\nheedful search index ${shell(query)} --top ${o.top}`,
  fill: ([given], o) => `heedful fill MODEL ${pair(given)} --top ${o.top}`,
  score: (inputs) => `${printed(inputs)} | heedful score MODEL -`,
  translate: ([text], o) => `${printed([text])} | heedful translate run MODEL - --beam ${o.beam} --n-best ${o.n_best} --alignments looks.html`,
  tokenize: ([given]) => `heedful tokenizer show MODEL ${pair(given)}`,
  answer: ([given]) => `heedful predict MODEL ${shell(given.question)} --context ${shell(given.context)}`,
  choose: ([given]) => `${printed([JSON.stringify(given)])} > inputs.jsonl\nheedful predict MODEL inputs.jsonl`,
  generate: ([prompt], o) => `heedful generate MODEL ${shell(prompt)} --max-tokens ${o.max_tokens}${o.sample ? ` --sample --temperature ${o.temperature}` : ""}`,
  attention: ([given]) => `heedful look MODEL ${[given].flat().map(shell).join(" ")} -o page.html`,
  predict: ([given]) => `heedful predict MODEL ${pair(given)}`,
};
const pairScore = ([[source, translation]]) => `${printed([source])} > source.txt\n${printed([translation])} > translation.txt\nheedful translate score MODEL source.txt translation.txt`;

function pair(given) {
  const [first, second] = [given].flat();
  return shell(first) + (second ? ` --pair ${shell(second)}` : "");
}

// A name for each way to ask, and what to write there. What is `streamed` curl shows as it comes, as the page does.
export function calls(model, verb, given, keyed, streamed) {
  const { inputs, ...options } = given, origin = location.origin;
  const more = Object.entries(options).map(([option, value]) => `, ${option}=${python(value)}`).join("");
  const command = verb === "score" && model.kind === "translator" ? pairScore : COMMANDS[verb] || COMMANDS.predict;
  const key = keyed ? [` -H "Authorization: Bearer $KEY"`, "import os\n\n", `, api_key=os.environ["KEY"]`] : ["", "", ""];
  return {
    curl: `curl ${streamed ? "-N " : ""}${origin}/v1/models/${model.name}/${verb}${key[0]} -H 'Content-Type: application/json' -d ${shell(JSON.stringify(streamed ? { ...given, stream: true } : given))}`,
    python: `${key[1]}from heedful.client import Client\n\nClient("${origin}", "${model.name}"${key[2]}).call("${verb}", ${python(inputs)}${more})`,
    shell: command(inputs, options),
  };
}

// Without https the clipboard is not there for scripts; then what is selected can still be copied.
export async function copy(shown) {
  try {
    await navigator.clipboard.writeText(shown.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(shown);
    return document.execCommand("copy");
  }
}
