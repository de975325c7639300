"""The published sets of feature templates, one for each greedy system. `templates` explains the notation."""

from collections.abc import Iterable, Mapping, Sequence

from mh4.transitions.arrays import arc_hybrid


def written(text: str) -> tuple[str, ...]:
    """Split a text into templates at semicolons."""
    return tuple(" ".join(template.split()) for template in text.split(";"))


def renamed(templates: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Rename the tokens of templates; names of dependents, such as s0l, follow the name of their token."""

    def new_name(atom: str) -> str:
        token, dot, attribute = atom.partition(".")
        return f"{names.get(token) or names[token[:2]] + token[2:]}.{attribute}" if dot else atom

    return tuple(" ".join(map(new_name, template.split())) for template in templates)


def select(templates: Iterable[str], tokens: Sequence[str]) -> tuple[str, ...]:
    """The templates that use only the given tokens."""
    return tuple(
        template
        for template in templates
        if all(atom == "d" or atom.partition(".")[0] in tokens for atom in template.split())
    )


def distinct(templates: Iterable[str]) -> tuple[str, ...]:
    """Drop templates that repeat the atoms of an earlier one, in any order."""
    found: dict[frozenset[str], str] = {}
    for template in templates:
        found.setdefault(frozenset(template.split()), template)
    return tuple(found.values())


ZHANG_NIVRE = written("""
    s0.w s0.p; s0.w; s0.p; n0.w n0.p; n0.w; n0.p; n1.w n1.p; n1.w; n1.p; n2.w n2.p; n2.w; n2.p;
    s0.w s0.p n0.w n0.p; s0.w s0.p n0.w; s0.w n0.w n0.p; s0.w s0.p n0.p; s0.p n0.w n0.p; s0.w n0.w; s0.p n0.p;
    n0.p n1.p; n0.p n1.p n2.p; s0.p n0.p n1.p; s0h.p s0.p n0.p; s0.p s0l.p n0.p; s0.p s0r.p n0.p; s0.p n0.p n0l.p;
    s0.w d; s0.p d; n0.w d; n0.p d; s0.w n0.w d; s0.p n0.p d;
    s0.w s0.vr; s0.p s0.vr; s0.w s0.vl; s0.p s0.vl; n0.w n0.vl; n0.p n0.vl;
    s0h.w; s0h.p; s0.l; s0l.w; s0l.p; s0l.l; s0r.w; s0r.p; s0r.l; n0l.w; n0l.p; n0l.l;
    s0h2.w; s0h2.p; s0h.l; s0l2.w; s0l2.p; s0l2.l; s0r2.w; s0r2.p; s0r2.l; n0l2.w; n0l2.p; n0l2.l;
    s0.p s0l.p s0l2.p; s0.p s0r.p s0r2.p; s0.p s0h.p s0h2.p; n0.p n0l.p n0l2.p;
    s0.w s0.sr; s0.p s0.sr; s0.w s0.sl; s0.p s0.sl; n0.w n0.sl; n0.p n0.sl
""")
"""Zhang & Nivre (2011), Tables 1 and 2, for arc-eager parsing: s0 is the topmost stack element, n0 the next word."""

MERGED = (
    *renamed(ZHANG_NIVRE, {"s0": "s2", "n0": "s1", "n1": "q1", "n2": "q2", "s0h": "gp", "s0h2": "gg"}),
    # right dependents of s1, as of s2
    *("s1.p s1r.p s2.p", "s1.w s1.vr", "s1.p s1.vr", "s1r.w", "s1r.p", "s1r.l", "s1r2.w", "s1r2.p", "s1r2.l"),
    *("s1.p s1r.p s1r2.p", "s1.w s1.sr", "s1.p s1.sr"),
    # s3, and the relations of tokens that have a head already
    *("s3.w", "s3.p", "s3.w s3.p", "s3.p s2.p s1.p", "s1.l"),
    # top-down, for left arcs
    "s1.p gp.p gg.p",
)
"""The merged templates of Sartorio et al. (2013), section 4.3, with the paper's names of tokens; see `select`.

The paper describes the set without listing it: the templates of Zhang & Nivre with s2 for s0, s1 for n0, q1 and q2 for
n1 and n2, and gp and gg for the head of s0 and the head of that; right dependents of s1; top-down features of left
arcs. Tokens such as s1l2 are dependents: l and r are the outermost ones on the left and right, l2 and r2 the second
outermost. The paper names s3 as a token, but not the templates that use it; this choice is ours.
"""


def _pair(first: str, second: str, third: str, fourth: str) -> tuple[str, ...]:
    """Zhang & Nivre's templates for two tokens of arc-hybrid parsing, and for the two tokens after the second."""
    tokens = arc_hybrid.TOKENS
    moved = renamed(ZHANG_NIVRE, {"s0": first, "n0": second, "n1": third, "n2": fourth, "s0h": "h", "s0h2": "h"})
    known = (template for template in select(moved, tokens) if f"{first}.l" not in template.split())
    return tuple(template for template in known if (first, second) == tokens[:2] or "d" not in template.split())


ARC_HYBRID = distinct(
    (
        *_pair("s0", "b0", "b1", "b2"),
        *_pair("s1", "s0", "b0", "b1"),
        *written("s2.w; s2.p; s2.w s2.p; s2.p s1.p s0.p; s1.p s0.p b0.p"),
    )
)
"""Zhang & Nivre (2011) for both pairs of words that arc-hybrid parsing can join.

The pair of s0 and b0 has the templates of arc-eager parsing, except those that use heads of stack elements, since words
in the stack have no head yet. The pair of s1 and s0 has the same templates shifted by one token, without distances. The
templates of s2 follow those that Sartorio et al. (2013) have for s3.
"""

MH4 = distinct(
    (
        *ARC_HYBRID,
        *_pair("s1", "b0", "b1", "b2"),
        *_pair("s2", "s0", "b0", "b1"),
        *written("s2.w s1.w; s2.w s1.p; s2.p s1.w; s2.p s1.p; s2.p s1.p s0.p b0.p"),
    )
)
"""The same with two more pairs, s1 with b0 and s2 with s0, and conjunctions with s2 for the pair of s2 and s1."""

COVINGTON = written(
    """
    L0.w; L0.p; L0.w L0.p; L0.l; L0h.w; L0h.p; L0h.l; L0h2.w; L0h2.p; L0h2.l;
    L0l.w; L0l.p; L0l.l; L0l'.w; L0l'.p; L0l'.l; L0r.w; L0r.p; L0r.l; L0r'.w; L0r'.p; L0r'.l;
    L0.w d; L0.p d; L0.w L0.vr; L0.p L0.vr; L0.w L0.vl; L0.p L0.vl;
    L0.w L0.sl; L0.p L0.sl; L0.w L0.sr; L0.p L0.sr; L1.w; L1.p; L1.w L1.p;
    R0.w; R0.p; R0.w R0.p; R0l.w; R0l.p; R0l.l; R0l'.w; R0l'.p; R0l'.l;
    R0.w d; R0.p d; R0.w R0.vl; R0.p R0.vl; R0.w R0.sl; R0.p R0.sl; R1.w; R1.p; R1.w R1.p; R2.w; R2.p; R2.w R2.p;
    CL.w; CL.p; CL.w CL.p; CR.w; CR.p; CR.w CR.p;
    L0.w L0.p R0.w R0.p; L0.w L0.p R0.w; L0.w R0.w R0.p; L0.w L0.p R0.p; L0.p R0.w R0.p; L0.w R0.w; L0.p R0.p;
    R0.p R1.p; L0.w R0.w d; L0.p R0.p d;
    R0.p R1.p R2.p; L0.p R0.p R1.p; L0h.p L0.p R0.p; L0.p L0l'.p R0.p; L0.p L0r'.p R0.p; L0.p R0.p R0l'.p;
    L0.p L0l'.p L0l.p; L0.p L0r'.p L0r.p; L0.p L0h.p L0h2.p; R0.p R0l'.p R0l.p
    """
)
"""Gómez-Rodríguez and Fernández-González (2015), Table 1: L0 and R0 are the focus words; l and r stand for the farthest
dependents, l' and r' for the closest; CL and CR are the first and the last word between the focus words with a head
outside that span, or without a head. Where the printed table does not distinguish l from l', this follows Zhang & Nivre
(2011): word, part of speech and relation of both dependents.
"""
