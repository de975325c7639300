"""Counts of contexts, of arcs among candidates, and of decisions with two correct transitions."""

from candidate_counts import count_attachments, share_of_ambiguous

from mh4.data.conllu import read_conllu
from mh4.data.sentence import Sentence
from mh4.parsers.config import PerceptronConfig
from mh4.training.perceptron import fit


def test_attachments_of_lr_spine_parsing(small_treebanks):
    sentences = list(read_conllu(small_treebanks[0], trees="required"))
    parser = fit(PerceptronConfig("lr-spine", "dynamic", iterations=1), sentences)
    parser.predict(sentences)
    lengths, counts = count_attachments(parser, sentences)
    shifts = sum(max(len(s) - 2, 0) for s in sentences)  # an upper bound on those decided
    assert counts.min() >= 1
    assert lengths.max() == max(map(len, sentences))
    assert sum(map(len, sentences)) <= len(counts) <= sum(map(len, sentences)) + shifts
    assert counts.mean() > 1


def test_two_correct_transitions():
    """In 1 ← 2 → 3, the first arc may be made before or after the other one; all other steps have no alternative."""
    sentence = Sentence(["a", "b", "c"], upos=["X"] * 3, heads=[2, 0, 2], relations=["l", "root", "r"])
    parser = fit(PerceptronConfig("lr-spine", "dynamic", iterations=1), [sentence])
    assert share_of_ambiguous(parser, [sentence]) in (1 / 3, 1 / 4)
