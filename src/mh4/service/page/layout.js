// Where everything of a tree stands. Pixels; y grows downwards, words stand on the baseline.

export const MARGIN = 24;
const WORD_GAP = 20;
const LEVEL = 28;
const PORT = 8; // between two arcs at a word
const LABEL_ROOM = 44; // of an arc, beside its label
const ARROW = 6;
const LABEL_HEIGHT = 14;

const ends = (arc) => [Math.min(arc.head, arc.dependent), Math.max(arc.head, arc.dependent)];

/** Which arcs another one crosses; the arc from the root comes from the left of all words. */
function crossedArcs(arcs) {
  const spans = arcs.map(ends);
  return arcs.map((_, i) => {
    const [a, b] = spans[i];
    return spans.some(([c, d]) => (a < c && c < b && b < d) || (c < a && a < d && d < b));
  });
}

/** Height of each arc, by dependent: above all shorter ones that it shares a stretch of words with. */
function arcLevels(arcs) {
  const levels = new Map();
  const placed = [];
  const rooted = arcs.filter((arc) => arc.head === 0);
  const inner = arcs.filter((arc) => arc.head !== 0);
  const length = (arc) => Math.abs(arc.head - arc.dependent);
  inner.sort((one, other) => length(one) - length(other) || one.dependent - other.dependent);
  for (const arc of inner) {
    const [left, right] = ends(arc);
    let level = 1;
    for (const other of placed) {
      if (other.left < right && left < other.right) level = Math.max(level, other.level + 1);
    }
    placed.push({ left, right, level });
    levels.set(arc.dependent, level);
  }
  const top = Math.max(0, ...levels.values()) + 1;
  for (const arc of rooted) levels.set(arc.dependent, top);
  return levels;
}

/** x of the centre of each word, by ID, and the width of all. */
function centresOf(widths, arcs, labelWidth) {
  const centres = [0];
  const needed = new Map();
  for (const arc of arcs) {
    if (arc.head === 0) continue;
    const [left, right] = ends(arc);
    if (!needed.has(right)) needed.set(right, []);
    needed.get(right).push([left, labelWidth(arc.label) + LABEL_ROOM]);
  }
  for (let d = 1; d < widths.length; d++) {
    let x = d === 1 ? MARGIN + widths[1] / 2 : centres[d - 1] + (widths[d - 1] + widths[d]) / 2 + WORD_GAP;
    for (const [left, room] of needed.get(d) ?? []) x = Math.max(x, centres[left] + room);
    centres.push(x);
  }
  return { centres, width: centres.at(-1) + widths.at(-1) / 2 + MARGIN };
}

/** x where an arc meets a word; arcs of a word do not cross each other. */
function portsOf(arcs, levels, centres) {
  const slots = centres.map(() => []);
  for (const arc of arcs) {
    for (const word of new Set([arc.head, arc.dependent])) {
      if (word === 0) continue;
      const other = arc.head + arc.dependent - word;
      const side = arc.head === 0 ? 0 : Math.sign(other - word);
      slots[word].push({ arc, side, order: -side * levels.get(arc.dependent) });
    }
  }
  const ports = new Map();
  slots.forEach((own, word) => {
    own.sort((one, other) => one.side - other.side || one.order - other.order || one.arc.dependent - other.arc.dependent);
    own.forEach(({ arc }, i) => ports.set(`${arc.dependent}/${word}`, centres[word] + (i - (own.length - 1) / 2) * PORT));
  });
  return (arc, word) => ports.get(`${arc.dependent}/${word}`);
}

function curve(start, end, baseline, top) {
  const way = end > start ? 1 : -1;
  const bend = way * Math.min(Math.abs(end - start) / 2, 10 + 0.3 * (baseline - top));
  const rise = top + 0.25 * (baseline - top);
  return (
    `M${start} ${baseline}C${start} ${rise} ${start + 0.3 * bend} ${top} ${start + bend} ${top}` +
    `H${end - bend}C${end - 0.3 * bend} ${top} ${end} ${rise} ${end} ${baseline - ARROW}`
  );
}

/** x of the label of an arc: its middle, or the nearest place that no rising part of a higher arc runs through. */
function labelPlace(start, end, rising, width) {
  const [left, right] = [Math.min(start, end), Math.max(start, end)];
  const half = width / 2 + 10;
  for (const shift of [0, 0.06, -0.06, 0.12, -0.12, 0.18, -0.18, 0.24, -0.24, 0.3, -0.3]) {
    const x = (left + right) / 2 + shift * (right - left);
    if (left + half < x && x < right - half && rising.every((other) => Math.abs(x - other) > half)) return x;
  }
  return (left + right) / 2;
}

/**
 * The places of a tree's words and arcs.
 *
 * @param {number[]} widths of the words, by ID; the first entry is not used
 * @param {{head: number, dependent: number, label: string}[]} arcs
 * @param {(label: string) => number} labelWidth
 * @param {boolean} mirrored for text from right to left
 */
export function layOut(widths, arcs, labelWidth, mirrored) {
  const levels = arcLevels(arcs);
  const ports = (word) => PORT * arcs.filter((arc) => arc.head === word).length;
  const rooms = widths.map((width, word) => Math.max(width, 2 * (ports(word) - WORD_GAP))); // not nearer to other words
  const { centres, width } = centresOf(rooms, arcs, labelWidth);
  const port = portsOf(arcs, levels, centres);
  const crossed = crossedArcs(arcs);
  const baseline = MARGIN + LABEL_HEIGHT + Math.max(1, ...levels.values()) * LEVEL;
  const turned = (x) => Math.round(10 * (mirrored ? width - x : x)) / 10;
  const places = arcs.map((arc, i) => {
    const top = baseline - levels.get(arc.dependent) * LEVEL;
    const end = turned(port(arc, arc.dependent));
    if (arc.head === 0) {
      const path = `M${end} ${top}V${baseline - ARROW}`;
      return { ...arc, crossed: crossed[i], path, end, label_x: end, label_y: top - 5 };
    }
    const start = turned(port(arc, arc.head));
    const path = curve(start, end, baseline, top);
    const higher = arcs.filter((other) => levels.get(other.dependent) > levels.get(arc.dependent));
    const feet = (other) => [other.head, other.dependent].filter((word) => word !== 0).map((word) => turned(port(other, word)));
    const label_x = labelPlace(start, end, higher.flatMap(feet), labelWidth(arc.label));
    return { ...arc, crossed: crossed[i], path, end, label_x, label_y: top + 4 };
  });
  return { arcs: places, centres: centres.map(turned), width: Math.ceil(width), baseline };
}

/** A dashed arc below the words, from one centre to another, or from below for the root. */
export function pathBelow(start, end, top) {
  if (start === null) return `M${end} ${top + 26}V${top}`;
  const bottom = top + 22;
  const way = end > start ? 1 : -1;
  const bend = way * Math.min(Math.abs(end - start) / 2, 14);
  return `M${start} ${top}Q${start} ${bottom} ${start + bend} ${bottom}H${end - bend}Q${end} ${bottom} ${end} ${top}`;
}
