"""Reading treebanks for training."""

import pytest

from mh4.data.conllu import read_conllu
from mh4.data.errors import DataError
from mh4.training.treebanks import read_gold


def test_heads_may_be_missing_where_that_is_said(tmp_path, caplog):
    caplog.set_level("INFO")
    path = tmp_path / "t.conllu"
    word = "{0}\ta\ta\tX\t_\t_\t{1}\tdep\t_\t_\n".format
    path.write_text(word(1, "_") + word(2, 1) + "\n" + word(1, "_") + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="HEAD of word 1 is missing"):
        read_gold(path)
    assert [sentence.heads.tolist() for sentence in read_gold(path, trees="partial")] == [[-1, 1], [-1]]
    assert "1 of 3 words have a head" in caplog.text
    path.write_text(word(1, "_") + word(2, 3) + word(3, 2) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="cycle"):
        read_gold(path, trees="partial")
    path.write_text(word(1, "_") + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="no word has a HEAD"):
        read_gold(path, trees="partial")


@pytest.mark.parametrize("form", ["_", "a"])
def test_missing_words_are_a_warning(form, tmp_path, caplog):
    """Some treebanks are distributed without their words, for their licence."""
    path = tmp_path / "t.conllu"
    path.write_text(f"1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n2\t{form}\t_\tX\t_\t_\t1\tdep\t_\t_\n\n")
    read_gold(path)
    assert ("every FORM is _" in caplog.text) == (form == "_")


def test_several_roots_and_bad_sentences_are_counted(small_treebanks, tmp_path, caplog):
    good = small_treebanks[0].read_text(encoding="utf-8")
    two_roots = "1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n2\tb\tb\tX\t_\t_\t0\troot\t_\t_\n\n"
    cycle = "1\ta\ta\tX\t_\t_\t2\tdep\t_\t_\n2\tb\tb\tX\t_\t_\t1\tdep\t_\t_\n\n"
    path = tmp_path / "t.conllu"
    path.write_text(good + two_roots + cycle, encoding="utf-8")
    with pytest.raises(DataError, match=r"t\.conllu:\d+: sentence 42"):
        read_gold(path)
    assert len(read_gold(path, errors="skip")) == len(list(read_conllu(small_treebanks[0], trees="required"))) + 1
    assert "1 bad sentence skipped" in caplog.text
    assert "1 of 41 sentences have several roots" in caplog.text
