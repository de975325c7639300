// <sentence-tree>: draws the tree of a sentence and lets the user choose heads. It knows nothing of the page around it.
//
// Properties: `sentence` (of `asSentence`), `kept` (Map of word to head: chosen by the user), `changed` (Set of
// words whose arcs are new). Event "headchange" with detail {word, head}; head is null when a kept head is let go.

import { isRightToLeft } from "./conllu.js";
import { layOut, pathBelow } from "./layout.js";

const SVG = "http://www.w3.org/2000/svg";
const FONT = '"Source Sans 3", "Segoe UI", "Helvetica Neue", Arial, sans-serif';
const WORD = `17px ${FONT}`;
const SMALL = `12px ${FONT}`;
const SURE = 0.9;
const DRAG = 5; // pixels until a press is a drag

const STYLE = `
:host { display: block; }
.scroll { overflow-x: auto; }
svg { display: block; direction: ltr; }
text { font: ${SMALL}; fill: var(--soft, #52687d); text-anchor: middle; user-select: none; }
.form { font: ${WORD}; fill: var(--ink, #1f2933); }
.word { cursor: grab; outline: none; }
.word rect { fill: transparent; rx: 6px; }
.word:hover rect, .word.target rect { fill: var(--mark, #e8eefc); }
.word.selected rect { fill: var(--mark, #e8eefc); stroke: var(--kept, #1d4ed8); stroke-width: 1.5; }
.word:focus-visible rect { stroke: var(--kept, #1d4ed8); stroke-width: 2; }
.arc { fill: none; stroke: var(--arc, #52687d); stroke-width: 1.5; }
.tip { fill: var(--arc, #52687d); stroke: none; }
.crossed .arc { stroke: var(--crossed, #c2410c); stroke-dasharray: 6 3.5; }
.crossed .tip, .crossed text { fill: var(--crossed, #c2410c); }
.changed .arc { stroke: var(--changed, #0f766e); stroke-width: 2.2; }
.changed .tip, .changed text { fill: var(--changed, #0f766e); }
.kept .arc { stroke: var(--kept, #1d4ed8); stroke-width: 2.5; }
.kept .tip, .kept text { fill: var(--kept, #1d4ed8); }
.ground { fill: var(--surface, #ffffff); }
.drag, .other { fill: none; stroke: var(--kept, #1d4ed8); stroke-width: 1.5; stroke-dasharray: 3 3; pointer-events: none; }
.other { stroke: var(--soft, #52687d); }
p { min-height: 1.5em; margin: 0.1rem 1.1rem 0.7rem; color: var(--soft, #52687d); font: 14px/1.5 ${FONT}; }
b { color: var(--ink, #1f2933); }
`;

const measure = document.createElement("canvas").getContext("2d");
const widths = new Map();

function widthOf(text, font) {
  const key = `${font}\n${text}`;
  if (!widths.has(key)) {
    measure.font = font;
    widths.set(key, measure.measureText(text).width);
  }
  return widths.get(key);
}

function element(name, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

export class SentenceTree extends HTMLElement {
  #sentence = null;
  #kept = new Map();
  #changed = new Set();
  #selected = null;
  #pressed = null; // {word, x, y, dragged} while a pointer is down
  #layout = null;
  #svg = null;
  #details = null;

  constructor() {
    super();
    const root = this.attachShadow({ mode: "open" });
    const style = new CSSStyleSheet();
    style.replaceSync(STYLE);
    root.adoptedStyleSheets = [style];
    const scroll = document.createElement("div");
    scroll.className = "scroll";
    this.#details = document.createElement("p");
    this.#details.setAttribute("aria-live", "polite");
    root.append(scroll, this.#details);
    root.addEventListener("keydown", (event) => this.#onKey(event));
    root.addEventListener("pointerdown", (event) => this.#onPress(event));
    root.addEventListener("pointermove", (event) => this.#onMove(event));
    root.addEventListener("pointerup", (event) => this.#onRelease(event));
    root.addEventListener("pointercancel", () => this.#endDrag());
    root.addEventListener("focusin", (event) => this.#describe(this.#wordAt(event.target)));
    root.addEventListener("pointerover", (event) => this.#describe(this.#wordAt(event.target) ?? this.#selected));
  }

  get sentence() {
    return this.#sentence;
  }

  /** Show a tree; `kept` and `changed` are about it. */
  show(sentence, kept = new Map(), changed = new Set()) {
    const focused = this.#wordAt(this.shadowRoot.activeElement);
    this.#sentence = sentence;
    this.#kept = kept;
    this.#changed = changed;
    this.#selected = null;
    this.#draw();
    if (focused !== null) this.#wordElement(focused)?.focus();
  }

  /** Take back the choice of a word. */
  cancel() {
    this.#select(null);
  }

  #draw() {
    const { words } = this.#sentence;
    const rightToLeft = isRightToLeft(this.#sentence.text);
    const arcs = words
      .filter((word) => word.head !== undefined)
      .map((word) => ({ head: word.head, dependent: word.id, label: word.deprel ?? "" }));
    const sizes = words.map((word) => Math.max(widthOf(word.text, WORD), widthOf(word.upos ?? "", SMALL)) + 10);
    const labelWidth = (label) => widthOf(label, SMALL);
    this.#layout = layOut([0, ...sizes], arcs, labelWidth, rightToLeft);
    const { width, baseline, centres } = this.#layout;
    const tagged = words.some((word) => word.upos !== undefined);
    const doubtful = words.some((word) => (word.head_confidence ?? 1) < SURE);
    const below = baseline + 30 + (tagged ? 16 : 0);
    const height = below + (doubtful ? 50 : 32);
    const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group" });
    svg.setAttribute("aria-label", this.#sentence.text);
    svg.dataset.below = below;
    for (const place of this.#layout.arcs) svg.append(this.#arc(place, labelWidth));
    words.forEach((word, i) => svg.append(this.#word(word, centres[word.id], sizes[i], tagged, rightToLeft)));
    this.#svg = svg;
    const scroll = this.shadowRoot.querySelector(".scroll");
    scroll.dir = rightToLeft ? "rtl" : "ltr"; // the first word is seen first
    scroll.replaceChildren(svg);
    this.#describe(null);
  }

  #arc(place, labelWidth) {
    const word = this.#sentence.words[place.dependent - 1];
    const kinds = ["crossed", "changed", "kept"];
    const holds = [place.crossed, this.#changed.has(word.id), this.#kept.has(word.id)];
    const group = element("g", { class: kinds.filter((_, i) => holds[i]).join(" ") });
    group.dataset.head = place.head;
    group.dataset.dependent = place.dependent;
    const sure = word.head_confidence ?? 1;
    const arc = element("path", { class: "arc", d: place.path });
    if (sure < SURE && !this.#kept.has(word.id)) {
      arc.style.strokeWidth = 0.6 + 0.9 * sure;
      arc.style.opacity = 0.35 + 0.65 * sure;
    }
    group.append(arc, element("path", { class: "tip", d: `M${place.end} ${this.#layout.baseline}l-4 -8q4 2 8 0z` }));
    if (place.label) {
      const half = labelWidth(place.label) / 2 + 3;
      const box = { class: "ground", x: place.label_x - half, y: place.label_y - 11, width: 2 * half, height: 14 };
      group.append(element("rect", box), element("text", { x: place.label_x, y: place.label_y }, place.label));
    }
    return group;
  }

  #word(word, x, width, tagged, rightToLeft) {
    const { baseline } = this.#layout;
    const group = element("g", { class: "word", tabindex: word.id === 1 ? 0 : -1, role: "button" });
    group.dataset.word = word.id;
    group.setAttribute("aria-label", this.#spoken(word));
    group.append(element("rect", { x: x - width / 2, y: baseline + 2, width, height: tagged ? 44 : 28 }));
    const form = element("text", { class: "form", x, y: baseline + 22 }, word.text);
    if (rightToLeft) form.setAttribute("direction", "rtl");
    group.append(form);
    if (word.upos) group.append(element("text", { x, y: baseline + 39 }, word.upos));
    const sure = word.head_confidence ?? 1;
    if (sure < SURE && !this.#kept.has(word.id)) {
      group.append(element("text", { class: "note", x, y: Number(this.#below) + 14 }, `${Math.round(100 * sure)}%`));
    }
    return group;
  }

  get #below() {
    const tagged = this.#sentence.words.some((word) => word.upos !== undefined);
    return this.#layout.baseline + 30 + (tagged ? 16 : 0);
  }

  #name(id) {
    return id === 0 ? "the root" : this.#sentence.words[id - 1].text;
  }

  #spoken(word) {
    const head = word.head === undefined ? "no head" : `${word.deprel ?? "dependent"} of ${this.#name(word.head)}`;
    return `${word.text}, ${head}${this.#kept.has(word.id) ? ", kept" : ""}`;
  }

  /** The line below the tree: what is known of a word. */
  #describe(id) {
    this.#svg?.querySelector(".other")?.remove();
    if (id === null || id === undefined) {
      this.#details.replaceChildren();
      return;
    }
    const word = this.#sentence.words[id - 1];
    const form = document.createElement("b");
    form.textContent = word.text;
    const parts = [word.lemma, word.upos, word.xpos, word.feats?.replaceAll("|", " ")].filter(Boolean);
    if (word.head !== undefined) parts.push(this.#spoken(word).slice(word.text.length + 2));
    if (word.head_confidence !== undefined) parts.push(`${Math.round(100 * word.head_confidence)}% certain`);
    const next = word.next_head;
    if (next !== undefined) {
      parts.push(`next best: ${this.#name(next)}`);
      const start = next === 0 ? null : this.#layout.centres[next];
      const path = pathBelow(start, this.#layout.centres[id], this.#below + 18);
      this.#svg.append(element("path", { class: "other", d: path }));
    }
    this.#details.replaceChildren(form, ` ${parts.join(" · ")}`);
  }

  #wordAt(target) {
    const found = target?.closest?.(".word");
    return found ? Number(found.dataset.word) : null;
  }

  #wordElement(id) {
    return this.#svg?.querySelector(`.word[data-word="${id}"]`);
  }

  #select(id) {
    this.#svg?.querySelector(".word.selected")?.classList.remove("selected");
    this.#selected = id;
    this.#wordElement(id)?.classList.add("selected");
    this.#describe(id);
  }

  /** Click or Enter: the first time the dependent, the second time its head. */
  #choose(id) {
    if (this.#selected === null) this.#select(id);
    else this.#decide(this.#selected, id === this.#selected ? 0 : id);
  }

  #decide(word, head) {
    this.#select(null);
    this.dispatchEvent(new CustomEvent("headchange", { detail: { word, head }, bubbles: true, composed: true }));
  }

  #onKey(event) {
    const id = this.#wordAt(event.target);
    if (id === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const forward = isRightToLeft(this.#sentence.text) ? -1 : 1;
    const steps = { ArrowRight: forward, ArrowLeft: -forward, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      const next = Math.min(Math.max(id + steps[event.key], 1), this.#sentence.words.length);
      this.#wordElement(id).setAttribute("tabindex", -1);
      this.#wordElement(next).setAttribute("tabindex", 0);
      this.#wordElement(next).focus();
    } else if (event.key === "Enter" || event.key === " ") {
      this.#choose(id);
    } else if (event.key === "Escape") {
      this.cancel();
    } else if (event.key.toLowerCase() === "r") {
      this.#decide(this.#selected ?? id, 0);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      if (this.#kept.has(id)) this.#decide(id, null);
    } else {
      return;
    }
    event.preventDefault();
  }

  #onPress(event) {
    const word = this.#wordAt(event.target);
    if (word === null || event.button !== 0) return;
    this.#pressed = { word, x: event.clientX, y: event.clientY, dragged: false };
  }

  #onMove(event) {
    if (this.#pressed === null) return;
    const { word, x, y } = this.#pressed;
    if (!this.#pressed.dragged && Math.hypot(event.clientX - x, event.clientY - y) < DRAG) return;
    this.#pressed.dragged = true;
    const box = this.#svg.getBoundingClientRect();
    const line = this.#svg.querySelector(".drag") ?? this.#svg.appendChild(element("path", { class: "drag" }));
    const start = `${this.#layout.centres[word]} ${this.#layout.baseline + 18}`;
    line.setAttribute("d", `M${start}L${event.clientX - box.left} ${event.clientY - box.top}`);
    this.#svg.querySelector(".word.target")?.classList.remove("target");
    const over = this.#wordAt(this.shadowRoot.elementFromPoint(event.clientX, event.clientY));
    if (over !== null && over !== word) this.#wordElement(over).classList.add("target");
  }

  #onRelease(event) {
    const pressed = this.#pressed;
    this.#endDrag();
    if (pressed === null) return;
    const over = this.#wordAt(this.shadowRoot.elementFromPoint(event.clientX, event.clientY));
    if (!pressed.dragged) this.#choose(pressed.word);
    else if (over !== null && over !== pressed.word) this.#decide(pressed.word, over);
  }

  #endDrag() {
    this.#pressed = null;
    this.#svg?.querySelector(".drag")?.remove();
    this.#svg?.querySelector(".word.target")?.classList.remove("target");
  }
}

customElements.define("sentence-tree", SentenceTree);
