"""Contexts are counted, and arcs among them."""

from candidate_counts import count_attachments

from mh4.data.conllu import read_conllu
from mh4.parsers.config import PerceptronConfig
from mh4.training.perceptron import fit


def test_attachments_of_lr_spine_parsing(small_treebanks):
    sentences = list(read_conllu(small_treebanks[0], trees="required"))
    parser = fit(PerceptronConfig("lr-spine", "dynamic", iterations=1), sentences)
    parser.predict(sentences)
    lengths, counts = count_attachments(parser, sentences)
    shifts = sum(max(len(s) - 2, 0) for s in sentences)  # decided on or not
    assert counts.min() >= 1
    assert lengths.max() == max(map(len, sentences))
    assert sum(map(len, sentences)) <= len(counts) <= sum(map(len, sentences)) + shifts
    assert counts.mean() > 1
