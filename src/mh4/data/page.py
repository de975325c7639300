"""An HTML page with the trees of many sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from .drawing import draw_svg, is_right_to_left, printable
from .sentence import Sentence

_HEAD = """<!doctype html>
<html lang="">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ margin: 2rem; color: #1f2933; font-family: 'Source Sans 3', 'Segoe UI', 'Helvetica Neue', Arial, sans-serif; }}
section {{ margin-bottom: 2.5rem; overflow-x: auto; }}
svg {{ direction: ltr; }}
h2 {{ margin: 0; font-size: 0.9rem; font-weight: normal; color: #52687d; }}
p {{ margin: 0.3rem 0 0.6rem; }}
</style>
</head>
<body>
"""


def draw_page(sentences: Iterable[Sentence], title: str) -> Iterator[str]:
    """Yield the page piece by piece: for each sentence its ID, its text and, if its heads are a tree, its drawing."""
    from mh4.decoders.trees import is_tree  # loads Numba

    yield _HEAD.format(title=escape(printable(title)))
    for place, sentence in enumerate(sentences, start=1):
        text, label = escape(printable(sentence.text)), escape(printable(sentence.label))
        tree = "<p>(no tree)</p>\n"
        if is_tree(sentence.padded_heads):
            tree = draw_svg(sentence.forms, sentence.padded_heads, sentence.relations, sentence.confidence)
        direction = "rtl" if is_right_to_left(sentence.text) else "ltr"  # where a wide picture is scrolled to at first
        yield f'<section id="{place}" dir="{direction}">\n<h2>{label}</h2>\n<p>{text}</p>\n{tree}</section>\n'
    yield "</body>\n</html>\n"
