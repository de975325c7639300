"""Random sentences with all features of CoNLL-U."""

from itertools import product
from typing import Any

from hypothesis import strategies as st

from mh4.data.sentence import Sentence
from mh4.data.values import DEPREL, FORM, LEMMA, MISC, XPOS, value_problem

_TEXTS = ["".join(letters) for size in (1, 2, 3) for letters in product("aő1_|=: \u00a0\u2028-", repeat=size)]
_VALUES = {
    column: st.just("_") | st.sampled_from([text for text in _TEXTS if value_problem(text, column) is None])
    for column in (FORM, LEMMA, XPOS, DEPREL, MISC)
}


@st.composite
def sentences(draw: Any) -> Sentence:
    """Sentences with arbitrary or no heads, multiword tokens, empty nodes, comments, and every column."""
    n = draw(st.integers(1, 6))
    misc = st.sampled_from(["_", "SpaceAfter=No", r"SpacesAfter=\n\s", "A=b|C"]) | _VALUES[MISC]
    lines = [f"# {comment}" for comment in draw(st.lists(st.sampled_from(_TEXTS), max_size=2))]
    lines += draw(st.sampled_from([[], ["# text = a"], ["# sent_id = s", "# text = ő a"]]))

    def line(name: str, head: str) -> str:
        form, lemma, relation = (draw(_VALUES[column]) for column in (FORM, LEMMA, DEPREL))
        tags = [draw(_VALUES[XPOS]) for _ in range(3)]
        dependencies = draw(st.sampled_from(["_", "0:root", f"{n}.1:x|1:y"]))
        return "\t".join((name, form, lemma, *tags, head, relation, dependencies, draw(misc)))

    end = 0
    lines += [line(f"0.{empty}", "_") for empty in range(1, draw(st.integers(0, 2)) + 1)]
    for word in range(1, n + 1):
        if end < word < n and draw(st.booleans()):
            end = draw(st.integers(word + 1, n))
            lines.append(line(f"{word}-{end}", "_"))
        lines.append(line(str(word), draw(st.sampled_from(["_", *map(str, range(n + 1))]))))
        lines += [line(f"{word}.{empty}", "_") for empty in range(1, draw(st.sampled_from([0, 0, 2])) + 1)]
    return Sentence.from_conllu("\n".join(lines) + "\n\n")
