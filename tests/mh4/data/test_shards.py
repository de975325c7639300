"""A file in shards has the same sentences, errors and output as the whole file."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError, Errors
from mh4.data.shards import cut_shards, read_shard
from mh4.parsers.chart import ChartParser
from mh4.service.cluster import parse_shard

WORD = "{}\tforma\t_\tX\t_\t_\t_\t_\t_\t_\n"
GOOD = [
    WORD.format(1),
    "# sent_id = a\n" + WORD.format(1) + WORD.format(2),
    "1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n" + WORD.format(1) + WORD.format(2) + "2.1\te\t_\t_\t_\t_\t_\t_\t_\t_\n",
    "\ufeff" + WORD.format(1),
    WORD.format(1).replace("\n", "\r\n"),
]
BAD = ["# only a comment\n", "1 no tabs\n", WORD.format(2)]
BLANKS = ["\n", "\n\n\n", " \n", "\r\n", "\n\ufeff\n"]

files = st.lists(st.tuples(st.sampled_from(GOOD + BAD), st.sampled_from(BLANKS)), max_size=8)


def everything(sentence):
    """Return the content of a sentence in comparable form."""
    return sentence.to_bytes(), sentence.heads.tolist(), sentence.layout


@given(files, st.sampled_from(["", "\n\n", " \n"]), st.booleans(), st.integers(1, 6))
def test_shards_hold_the_sentences_and_errors_of_the_file(tmp_path_factory, blocks, lead, closed, words):
    path = tmp_path_factory.mktemp("shards") / "file.conllu"
    text = lead + "".join(block + blank for block, blank in blocks)
    path.write_bytes((text if closed else text.rstrip("\r\n \ufeff")).encode())
    expected_errors, errors = [], []
    expected = list(read_conllu(path, errors=expected_errors.append))
    shards = list(cut_shards(path, words))
    sentences = [s for shard in shards for s in read_shard(shard, errors=errors.append)]
    assert list(map(everything, sentences)) == list(map(everything, expected))
    assert list(map(str, errors)) == list(map(str, expected_errors))
    assert sum(shard.sentences for shard in shards) == len(expected) + len(errors)
    assert all(before.stop == after.start for before, after in pairwise(shards))


def test_a_shard_ends_with_the_sentence_that_fills_it(tmp_path):
    path = tmp_path / "file.conllu"
    path.write_text("\n".join([GOOD[1]] * 7) + "\n", encoding="utf-8")
    assert [shard.sentences for shard in cut_shards(path, 3)] == [2, 2, 2, 1]
    assert [shard.sentences for shard in cut_shards(path, 4)] == [2, 2, 2, 1]
    assert [shard.sentences for shard in cut_shards(path)] == [7]


def test_multiword_tokens_and_empty_nodes_do_not_fill_a_shard(tmp_path):
    path = tmp_path / "file.conllu"
    words = "".join(f"{name}\tx" + 8 * "\t_" + "\n" for name in ("1-2", "1", "2", "2.1"))
    path.write_text(f"{words}\n" * 3, encoding="utf-8")
    assert [shard.sentences for shard in cut_shards(path, 3)] == [2, 1]


def test_an_empty_file_has_no_shards(tmp_path):
    path = tmp_path / "empty.conllu"
    path.write_bytes(b"\n \n")
    assert list(cut_shards(path)) == []


def test_parts_join_to_the_whole_output(small_model, small_treebanks, tmp_path, monkeypatch):
    monkeypatch.setattr("mh4.parsers.sources.WINDOW_WORDS", 100)
    parser = ChartParser.load(small_model, device="cpu")
    parser.parse_file(small_treebanks[0], tmp_path / "whole.conllu")
    parts = []
    for number, shard in enumerate(cut_shards(small_treebanks[0], 100)):
        result = parse_shard(parser, shard, tmp_path / f"{number}.conllu")
        parts.append((tmp_path / f"{number}.conllu").read_bytes())
        assert result.size == len(parts[-1])
    assert len(parts) > 2
    assert b"".join(parts) == (tmp_path / "whole.conllu").read_bytes()


@pytest.mark.parametrize(
    "later",
    [WORD.format(1), "\n".join([WORD.format(1)] * 2), "# shorter by a sentence\n" + WORD.format(1) * 2],
    ids=["shorter", "cut off", "other sentences"],
)
def test_a_file_that_changed_is_noticed(tmp_path, later):
    path = tmp_path / "file.conllu"
    path.write_text("\n".join([WORD.format(1)] * 3) + "\n", encoding="utf-8")
    (shard,) = cut_shards(path)
    path.write_text(later, encoding="utf-8")
    with pytest.raises(DataError, match="changed while it was being parsed"):
        list(read_shard(shard, errors=Errors("skip")))
