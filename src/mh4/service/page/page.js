// The page: text in, trees out; a head that the user chooses is kept, and the best tree around it is found.

import { asSentence, toConllu } from "./conllu.js";
import "./sentence-tree.js";

const byId = (id) => document.getElementById(id);
const [ask, text, model, status, trees, undo] = ["ask", "text", "model", "status", "trees", "undo"].map(byId);

let known = null; // what /models says
let parsed = []; // {tree, sentence, kept, changing}; changing is the promise of the latest choice of a head
const history = []; // {one, sentence, kept} before each change
let asking = new AbortController(); // of all requests under way

function say(message, problem = false) {
  status.textContent = message;
  status.classList.toggle("problem", problem);
}

function abandon() {
  asking.abort();
  asking = new AbortController();
}

async function process(parameters, signal) {
  const body = new URLSearchParams({ model: model.value, ...parameters });
  const answer = await fetch("process", { method: "POST", body, signal });
  if (!answer.ok) throw new Error((await answer.text()).trim());
  const { result } = await answer.json();
  return parameters.output === "json" ? result.map(asSentence) : result;
}

/** Run what a user has asked for; what goes wrong is told beside the buttons. */
async function attempt(action) {
  try {
    await action();
  } catch (error) {
    if (error.name !== "AbortError") say(error instanceof TypeError ? "the server does not answer" : error.message, true);
  }
}

const can = (ability) => known.extensions[model.value].includes(ability);
const confidence = () => (can("confidence") ? { confidence: "1" } : {});

async function parseText() {
  abandon();
  if (!text.value.trim()) return say("");
  say("…");
  const cut = known.models[model.value].includes("tokenizer") ? { tokenizer: "" } : { input: "horizontal" };
  const start = performance.now();
  const asked = { data: text.value, tagger: "", parser: "", output: "json", ...cut, ...confidence() };
  const sentences = await process(asked, asking.signal);
  abandon(); // choices of heads in the trees that are replaced now
  showAll(sentences);
  const words = sentences.reduce((sum, sentence) => sum + sentence.words.length, 0);
  say(`${words} words, ${Math.round(performance.now() - start)} ms`);
}

function showAll(sentences) {
  history.length = 0;
  undo.disabled = true;
  parsed = sentences.map((sentence) => ({ tree: document.createElement("sentence-tree"), sentence, kept: new Map() }));
  trees.replaceChildren(
    ...parsed.map((one) => {
      const { tree, sentence } = one;
      const article = document.createElement("article");
      const line = document.createElement("p");
      line.dir = "auto";
      line.textContent = sentence.text;
      tree.addEventListener("headchange", (event) => attempt(() => chooseHead(one, event.detail)));
      article.append(line, tree);
      return article;
    }),
  );
  for (const { tree, sentence } of parsed) tree.show(sentence);
  byId("tools").hidden = parsed.length === 0;
  byId("hint").hidden = parsed.length === 0 || !can("keep_heads");
}

/** The kept heads and a new one, which wins over those that it forbids: another root, the last link of a cycle. */
function withHead(earlier, word, head) {
  const kept = new Map([...earlier].filter(([, other]) => other !== 0 || head !== 0));
  kept.delete(word);
  if (head === null) return kept;
  for (let above = head; kept.has(above); above = kept.get(above)) {
    if (kept.get(above) === word) kept.delete(above);
  }
  return kept.set(word, head);
}

/** Change heads of a sentence in the order of the choices: the next one includes those that are under way. */
function chooseHead(one, choice) {
  if (!can("keep_heads")) return say(`${model.value} cannot keep heads; choose a model with a decoder`, true);
  const { signal } = asking;
  const earlier = one.changing?.catch(() => {});
  one.changing = (async () => {
    await earlier;
    signal.throwIfAborted();
    await changeHead(one, choice, signal);
  })();
  return one.changing;
}

/** Keep a head, or let it go, and parse the sentence around all that are kept. */
async function changeHead(one, { word, head }, signal) {
  const kept = withHead(one.kept, word, head);
  const start = performance.now();
  const asked = { data: toConllu(one.sentence, kept), parser: "", keep_heads: "1", output: "json", ...confidence() };
  const [sentence] = await process(asked, signal);
  history.push({ one, sentence: one.sentence, kept: one.kept });
  undo.disabled = false;
  show(one, sentence, kept);
  say(`${Math.round(performance.now() - start)} ms`);
}

function show(one, sentence, kept) {
  const before = one.sentence.words;
  const differs = (word, i) => word.head !== before[i].head || word.deprel !== before[i].deprel;
  const changed = new Set(sentence.words.filter(differs).map((word) => word.id));
  Object.assign(one, { sentence, kept });
  one.tree.show(sentence, kept, changed);
}

function takeBack() {
  abandon(); // an answer would bring back what is taken back now
  const last = history.pop();
  undo.disabled = history.length === 0;
  if (last) show(last.one, last.sentence, last.kept);
}

function download(content, name, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

const allLines = () => parsed.map(({ sentence }) => toConllu(sentence)).join("");

ask.addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(parseText);
});
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask.requestSubmit();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") for (const { tree } of parsed) tree.cancel();
  if (event.key.toLowerCase() !== "z" || !(event.ctrlKey || event.metaKey) || event.target === text) return;
  event.preventDefault();
  takeBack();
});
undo.addEventListener("click", takeBack);
byId("conllu").addEventListener("click", () => download(allLines(), "trees.conllu", "text/plain"));
byId("svg").addEventListener("click", () =>
  attempt(async () => {
    const { signal } = asking;
    for (const [i, { sentence }] of parsed.entries()) {
      const picture = await process({ data: toConllu(sentence), output: "svg" }, signal);
      download(picture, `tree-${i + 1}.svg`, "image/svg+xml");
    }
  }),
);
byId("link").addEventListener("click", () =>
  attempt(async () => {
    const link = `#${new URLSearchParams({ model: model.value, text: text.value })}`;
    window.history.replaceState(null, "", link); // setting location.hash would parse the text again
    const copying = navigator.clipboard?.writeText(location.href); // missing without HTTPS, refused without permission
    const copied = await copying?.then(() => true, () => false);
    say(copied ? "link copied" : "the address bar has the link");
  }),
);

/** Show the text of the link in the address bar, if it has one. */
async function openLink() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (Object.hasOwn(known.models, given.get("model"))) model.value = given.get("model");
  if (!given.get("text")) return;
  text.value = given.get("text");
  await parseText();
}

attempt(async () => {
  known = await (await fetch("models")).json();
  model.replaceChildren(...Object.keys(known.models).map((name) => new Option(name, name)));
  model.value = known.default_model;
  addEventListener("hashchange", () => attempt(openLink));
  await openLink();
});
