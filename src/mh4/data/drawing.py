"""Drawings of dependency trees, for the terminal (`draw_text`) and as pictures (`draw_svg`).

Both mark arcs that another arc crosses, the hallmark of non-projective trees: with double lines in the terminal, dashed
and in another colour in a picture. Given a parser's confidence, they also show how certain arcs are, and the next best
heads of doubtful words.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from bisect import bisect_right, insort
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from rich.cells import cell_len

from .confidence import Confidence
from .doubts import LEGEND, NOTE_SIZE, SURE, doubts, noted, strength, svg_below
from .guesses import DRAWING, Guided

# Soft hyphen, marks, embeddings, overrides and isolates of direction, zero-width spaces, word joiners, annotations.
_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")


class Drawing(Guided, str):
    """A drawn tree: a string for the terminal, which notebooks show as an SVG picture."""

    svg: str
    _guesses = DRAWING

    def __new__(cls, text: str, svg: str) -> Drawing:
        """Create a drawing from its text and its SVG source."""
        drawing = super().__new__(cls, text)
        drawing.svg = svg
        return drawing

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # for copy and pickle
        return str(self), self.svg

    def _repr_svg_(self) -> str:
        return self.svg


def draw_text(
    forms: Sequence[str],
    heads: np.ndarray | Sequence[int],
    relations: Sequence[str] | None = None,
    width: int | None = None,
    markup: bool = False,
    confidence: Confidence | None = None,
) -> str:
    """A tree in box-drawing characters, one word per line.

    A head carries a vertical line, its trunk, that starts with ┬, ┴ or ┼ in the line of the head; from there a
    horizontal line leads to each dependent and ends in an arrow. Where a trunk runs over a horizontal line (─│─), they
    do not touch. Arcs crossed by another arc have a double line (═); the arc from the root starts with ●. The heads can
    always be read off the drawing.

    Parameters
    ----------
    forms : n words
    heads : int (n + 1,)
        Padded heads: ``heads[d]`` is the head of word d, 0 for the root; ``heads[0] == -1``.
    relations : n relations, optional
        Shown behind the words.
    width : int, optional
        Preferred maximum length of a line: trunks move closer, then words are cut off, down to four columns.
    markup : bool
        Return console markup for `rich`, with crossed arcs in colour, instead of plain text.
    confidence : Confidence, optional
        Arcs to words whose head is doubtful are dashed (╌); their lines end with the probability of the head and, after
        another dash, the next best head.

    Raises
    ------
    ValueError
        The heads are not a tree, or the numbers of words, heads and relations differ.
    """
    heads, crossed = _checked(forms, heads, relations)
    words = [printable(form) for form in forms]
    labels = [""] * len(words) if relations is None else [printable(relation) for relation in relations]
    lanes, spans = _lanes(heads)
    count = max(lanes.values()) + 1  # lane 0 is next to the words; the root has the outermost
    label_space = max(map(cell_len, labels)) + 2 if any(labels) else 0
    word_space = max(map(cell_len, words))
    doubtful = {doubt.word: noted(doubt, words) for doubt in doubts(confidence)}
    spacing = 2
    if width is not None:
        if 2 * count + 2 + word_space + label_space > width:
            spacing = 1
        word_space = min(word_space, max(4, width - spacing * (count - 1) - 4 - label_space))
    starting: dict[int, list[int]] = {}
    for head, (top, _) in spans.items():
        starting.setdefault(top, []).append(head)
    passing: list[int] = []  # heads with a trunk in this line
    lines = []
    for d, (word, label) in enumerate(zip(words, labels, strict=True), 1):
        passing = [head for head in passing if spans[head][1] >= d] + starting.get(d, [])
        arc = _text_arc(d, heads, crossed, lanes, spans, passing, count, spacing)
        if d in doubtful:
            arc = arc.replace("─", "╌")
            label = f"{label}{' ' * (label_space - cell_len(label))}{doubtful[d]}" if label else doubtful[d]
        word = cut(word, word_space)
        padding = " " * (word_space - cell_len(word) + 2) if label else ""
        if markup:
            from rich.markup import escape as escape_markup

            # `escape` doubles a backslash at the very end, in case a tag follows; the final space prevents that.
            text = escape_markup(f"{word}{padding}{label} ")
            colour = "bold magenta" if crossed[d] else "cyan"
            lines.append(f"[{colour}]{arc}[/] {text}")
        else:
            lines.append(f"{arc} {word}{padding}{label}")
    return "\n".join(line.rstrip() for line in lines)


def _text_arc(
    d: int,
    heads: np.ndarray,
    crossed: np.ndarray,
    lanes: dict[int, int],
    spans: dict[int, tuple[int, int]],
    passing: Sequence[int],
    count: int,
    spacing: int,
) -> str:
    """The line of word d up to its arrow: passing trunks, the arc to d, and the joint with the trunk of d."""
    line = "═" if crossed[d] else "─"
    cells = [" "] * ((count - 1) * spacing + 2)  # the last cell, before the arrow, always shows the line style

    def column(lane: int) -> int:
        return (count - 1 - lane) * spacing

    start = column(lanes[heads[d]])
    cells[start:] = line * (len(cells) - start)
    for head in filter(None, passing):
        cells[column(lanes[head])] = "│"
    if heads[d] == 0:
        cells[start] = "●"
    else:
        top, bottom = spans[heads[d]]
        ends = "╒╘╞" if crossed[d] else "╭╰├"
        cells[start] = ends[0] if d == top else ends[1] if d == bottom else ends[2]
    if d in spans:
        top, bottom = spans[d]
        joints = "╤╧╪" if crossed[d] else "┬┴┼"
        cells[column(lanes[d])] = joints[0] if d == top else joints[1] if d == bottom else joints[2]
    return "".join(cells) + "▶"


def _lanes(heads: np.ndarray) -> tuple[dict[int, int], dict[int, tuple[int, int]]]:
    """Lane and extent (first and last line) of the trunk of each head.

    Trunks in a lane do not overlap, and a head's lane is outside those of its dependents, so that no line runs past
    the trunk it comes from.
    """
    spans: dict[int, tuple[int, int]] = {}
    for d, h in enumerate(heads.tolist()):
        if d:
            top, bottom = spans.get(h, (h, h) if h else (d, d))
            spans[h] = (min(top, d), max(bottom, d))
    lanes: dict[int, int] = {}
    occupied: list[list[tuple[int, int]]] = []
    dependents = _dependents(heads)
    order = [0]  # breadth first
    for h in order:
        order += dependents[h]
    for h in reversed(order):
        if h not in spans or h == 0:
            continue
        top, bottom = spans[h]
        lane = max((lanes[d] + 1 for d in dependents[h] if d in lanes), default=0)
        while lane < len(occupied) and _overlaps(occupied[lane], top, bottom):
            lane += 1
        while lane >= len(occupied):
            occupied.append([])
        insort(occupied[lane], (top, bottom))
        lanes[h] = lane
    lanes[0] = len(occupied)
    return lanes, spans


def _overlaps(occupied: list[tuple[int, int]], top: int, bottom: int) -> bool:
    """Whether any of some sorted extents, which do not overlap each other, overlaps another one."""
    place = bisect_right(occupied, (bottom, sys.maxsize))  # extents before it start at ``bottom`` or earlier
    return place > 0 and occupied[place - 1][1] >= top


def _dependents(heads: np.ndarray) -> list[list[int]]:
    """The dependents of the root and of each word, in order."""
    found: list[list[int]] = [[] for _ in heads]
    for d, h in enumerate(heads[1:].tolist(), start=1):
        found[h].append(d)
    return found


# Pictures: sizes in pixels, colours that keep their contrast on the light background.
WORD_SIZE, LABEL_SIZE = 17, 12
MARGIN, WORD_GAP, LEVEL = 28, 22, 30
ARROW, PORT, LABEL_ROOM = 6, 8, 46  # length of an arrowhead; distance between arcs at a word; arc beyond its label
BACKGROUND, INK, ARC, CROSSED = "#fdfcf9", "#1f2933", "#52687d", "#c2410c"
STYLE = f"""
text {{ font-family: 'Source Sans 3', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif; text-anchor: middle; }}
.word {{ font-size: {WORD_SIZE}px; fill: {INK}; }}
.label {{ font-size: {LABEL_SIZE}px; fill: {ARC}; }}
.label.crossed {{ fill: {CROSSED}; }}
.arc {{ fill: none; stroke: {ARC}; stroke-width: 1.5; }}
.arc.crossed {{ stroke: {CROSSED}; stroke-dasharray: 6 3.5; }}
.head {{ fill: {ARC}; }}
.head.crossed {{ fill: {CROSSED}; }}
.ground {{ fill: {BACKGROUND}; }}
.legend {{ font-size: {LABEL_SIZE}px; fill: {ARC}; text-anchor: start; }}
"""
STYLE_OF_DOUBTS = f""".other {{ fill: none; stroke: {ARC}; stroke-width: 1.2; stroke-dasharray: 2 3; }}
.tip {{ fill: {ARC}; }}
.note {{ font-size: {NOTE_SIZE}px; fill: {ARC}; }}
"""


def draw_svg(
    forms: Sequence[str],
    heads: np.ndarray | Sequence[int],
    relations: Sequence[str] | None = None,
    confidence: Confidence | None = None,
) -> str:
    """A tree as a stand-alone SVG picture, arcs above the words, for 1 to about 60 words.

    Every arc is a ``<path class="arc">`` with ``data-head`` and ``data-dependent``; class ``crossed`` marks arcs that
    another arc crosses, and a legend explains them. The less certain a doubtful word's head, the thinner and paler its
    arc; below the word, the picture shows the probability of the head and a dashed arc from the next best head, class
    ``other``. The first word stands on the right if the first letter belongs to a script written from right to left.
    For arguments and errors, see `draw_text`.
    """
    heads, crossed = _checked(forms, heads, relations)
    n = len(forms)
    words = [printable(form) for form in forms]
    labels = ["", *map(printable, relations)] if relations is not None else [""] * (n + 1)
    levels = _levels(heads)
    centres, right = _centres(words, heads, labels)
    ports = _ports(heads, levels, centres)
    mirrored = is_right_to_left("".join(words))
    if mirrored:
        centres = [right - x for x in centres]
        ports = {port: right - x for port, x in ports.items()}
    risers = np.array(sorted((x, levels[d]) for (_, d, _), x in ports.items()))
    baseline = MARGIN + LABEL_SIZE + max(levels) * LEVEL
    below: list[str] = []
    bottom = float(baseline + WORD_SIZE + 14)
    if doubtful := doubts(confidence):
        below, bottom = svg_below(doubtful, centres, bottom)
    legends = [("arc crossed", "crossed by another arc")] if crossed.any() else []
    legends += [("other", LEGEND)] if doubtful else []
    height = round(bottom) + MARGIN + 24 * len(legends)
    arcs: list[str] = []
    texts: list[str] = []
    for d in range(1, n + 1):
        h = int(heads[d])
        kind = " crossed" if crossed[d] else ""
        x, y = ports[h, d, d], baseline - levels[d] * LEVEL
        if h == 0:
            path, label_x, label_y = f"M{x:.1f} {y}V{baseline - ARROW}", x, y - 4
        else:
            path = _curve(ports[h, d, h], x, baseline, y)
            label_x, label_y = _label_place(d, heads, levels, ports, risers, labels), y + 4
        p = strength(confidence, d)
        weak = f' style="stroke-width:{0.6 + 0.9 * p:.2f};opacity:{0.35 + 0.65 * p:.2f}"' if p < SURE else ""
        arcs.append(f'<path class="arc{kind}" data-head="{h}" data-dependent="{d}"{weak} d="{path}"/>')
        arcs.append(f'<path class="head{kind}" d="M{x:.1f} {baseline}l-4 -{ARROW + 2}q4 2 8 0z"/>')
        if labels[d]:
            half = _extent(labels[d], LABEL_SIZE) / 2 + 3
            texts.append(
                f'<rect class="ground" x="{label_x - half:.1f}" y="{label_y - 11}" width="{2 * half:.1f}" height="14"/>'
                f'<text class="label{kind}" x="{label_x:.1f}" y="{label_y}">{escape(labels[d])}</text>'
            )
    direction = ' direction="rtl"' if mirrored else ""
    for word, x in zip(words, centres[1:], strict=True):
        texts.append(f'<text class="word"{direction} x="{x:.1f}" y="{baseline + WORD_SIZE + 5}">{escape(word)}</text>')
    for row, (kind, meaning) in enumerate(reversed(legends)):
        y = height - MARGIN + 6 - 24 * row
        texts.append(
            f'<path class="{kind}" d="M{MARGIN} {y - 4}h30"/>'
            f'<text class="legend" x="{MARGIN + 38}" y="{y}">{meaning}</text>'
        )
        right = max(right, 2 * MARGIN + 38 + _extent(meaning, LABEL_SIZE))
    size = f'width="{right:.0f}" height="{height}" viewBox="0 0 {right:.0f} {height}"'
    style = STYLE + STYLE_OF_DOUBTS if doubtful else STYLE
    body = "\n".join([*arcs, *below, *texts])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(" ".join(words))}>\n'
        f"<title>Dependency tree</title>\n<style>{style}</style>\n"
        f'<rect class="ground" width="100%" height="100%" rx="10"/>\n{body}\n</svg>\n'
    )


def is_right_to_left(text: str) -> bool:
    """Whether the first letter belongs to a script written from right to left."""
    return next((unicodedata.bidirectional(c) in ("R", "AL") for c in text if c.isalpha()), False)


def _levels(heads: np.ndarray) -> list[int]:
    """Level of the arc to each word: above all shorter arcs that overlap it; arcs from the root are on top."""
    n = len(heads) - 1
    levels = [0] * (n + 1)
    ends = {d: (min(int(heads[d]), d), max(int(heads[d]), d)) for d in range(1, n + 1) if heads[d] != 0}
    highest = np.zeros(n + 1, np.int64)  # level of the highest arc so far between each word and the next one
    for d in sorted(ends, key=lambda d: (ends[d][1] - ends[d][0], d)):
        between = highest[slice(*ends[d])]
        levels[d] = 1 + int(between.max())
        between[:] = levels[d]
    top = max(levels) + 1
    return [top if d and heads[d] == 0 else level for d, level in enumerate(levels)]


def _centres(words: list[str], heads: np.ndarray, labels: list[str]) -> tuple[list[float], float]:
    """x of the centre of each word (index 0 unused) and the width of the picture.

    Words move apart where an arc between them needs room for its label, and where the arcs to many dependents of a word
    would start nearer to another word.
    """
    dependents = _dependents(heads)
    widths = [0.0] + [
        max(_extent(word, WORD_SIZE), 2 * ARROW, 2 * (len(own) * PORT - WORD_GAP))
        for word, own in zip(words, dependents[1:], strict=True)
    ]
    centres = [0.0] * len(widths)
    for d in range(1, len(widths)):
        x = MARGIN + widths[1] / 2 if d == 1 else centres[d - 1] + (widths[d - 1] + widths[d]) / 2 + WORD_GAP
        for other, dependent in ((int(heads[d]), d), *((one, one) for one in dependents[d])):
            if 0 < other < d:
                x = max(x, centres[other] + _extent(labels[dependent], LABEL_SIZE) + LABEL_ROOM)
        centres[d] = x
    return centres, centres[-1] + widths[-1] / 2 + MARGIN


def _ports(heads: np.ndarray, levels: list[int], centres: list[float]) -> dict[tuple[int, int, int], float]:
    """x where each arc meets each of its words, by (head, dependent, word).

    From left to right, a word has the arcs to its left, low ones first, the arrow from the root, and the arcs to its
    right, high ones first. Thus the arcs of a word do not cross each other.
    """
    ports = {}
    dependents = _dependents(heads)
    for word in range(1, len(heads)):
        slots = []
        for d in (word, *dependents[word]):
            h = int(heads[d])
            other = h + d - word
            side = 0 if other == 0 else -1 if other < word else 1
            slots.append((side, -side * levels[d], h, d))
        slots.sort()
        for i, (_, _, h, d) in enumerate(slots):
            ports[h, d, word] = centres[word] + (i - (len(slots) - 1) / 2) * PORT
    return ports


def _curve(start: float, end: float, baseline: float, top: float) -> str:
    """SVG path of an arc: up from the head, along at y = ``top``, down to the dependent."""
    way = 1 if end > start else -1
    bend = way * min(abs(end - start) / 2, 10 + 0.3 * (baseline - top))
    rise = top + 0.25 * (baseline - top)
    return (
        f"M{start:.1f} {baseline}C{start:.1f} {rise:.1f} {start + 0.3 * bend:.1f} {top} {start + bend:.1f} {top}"
        f"H{end - bend:.1f}C{end - 0.3 * bend:.1f} {top} {end:.1f} {rise:.1f} {end:.1f} {baseline - ARROW}"
    )


def _label_place(
    d: int,
    heads: np.ndarray,
    levels: list[int],
    ports: dict[tuple[int, int, int], float],
    risers: np.ndarray,
    labels: list[str],
) -> float:
    """x of the label of an arc: the middle or, if a higher arc rises there, the nearest position where none does.

    ``risers``, float64 (P, 2), are x of each port and the level of its arc, from left to right.
    """
    h = int(heads[d])
    left, right = sorted((ports[h, d, h], ports[h, d, d]))
    below = risers[slice(*np.searchsorted(risers[:, 0], (left, right)))]
    rising = below[below[:, 1] > levels[d], 0]
    half = _extent(labels[d], LABEL_SIZE) / 2 + 10
    for shift in (0.0, 0.06, -0.06, 0.12, -0.12, 0.18, -0.18, 0.24, -0.24, 0.3, -0.3):
        x = (left + right) / 2 + shift * (right - left)
        if left + half < x < right - half and (abs(x - rising) > half).all():
            return x
    return (left + right) / 2


def _checked(
    forms: Sequence[str], heads: np.ndarray | Sequence[int], relations: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Check the arguments; return the heads as an array, and which arcs are crossed."""
    from mh4.decoders.trees import crossed_arcs  # loads Numba

    heads = np.asarray(heads, np.int32)
    if not forms or heads.shape != (len(forms) + 1,):
        raise ValueError(
            f"{len(forms)} words need heads of shape ({len(forms) + 1},), at least one word; got {heads.shape}"
        )
    if relations is not None and len(relations) != len(forms):
        raise ValueError(f"{len(forms)} words but {len(relations)} relations")
    return heads, crossed_arcs(heads)


def printable(text: str) -> str:
    """Replace control characters, which would break lines or XML, and make every kind of space a plain one.

    Invisible characters, such as soft hyphens and marks of direction, are left out unless nothing else is there.
    Joiners, and format characters that are seen or change what is seen, such as the tags of flags, stay.
    """

    def shown(c: str) -> str:
        if c.isprintable():
            return c
        if (category := unicodedata.category(c)) == "Cf":
            return "" if _INVISIBLE.match(c) else c
        return " " if category == "Zs" else "\N{REPLACEMENT CHARACTER}"

    return "".join(map(shown, text)) or "\N{REPLACEMENT CHARACTER}" * bool(text)


def cut(text: str, columns: int) -> str:
    """Shorten a text to a number of columns of a terminal; the last one is then "…"."""
    if cell_len(text) <= columns:
        return text
    size = 0
    for place, character in enumerate(text):
        size += cell_len(character)
        if size >= columns:
            return text[:place] + "…"
    return text


def _extent(text: str, size: int) -> float:
    """Approximate width of a text in a sans-serif font, in pixels."""
    return size * sum(_em(c) for c in text)


def _em(character: str) -> float:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if character in "ijlIftr.,:;'|!()[] “”":
        return 0.34
    return 0.88 if character in "mwMW@—…" else 0.68 if character.isupper() else 0.56
