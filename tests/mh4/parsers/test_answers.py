"""Annotations, errors and warnings as values, for services that parse for several clients together."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from paths import GOLDEN_FOLDER

import mh4
from mh4.data.annotation import Annotation
from mh4.data.errors import DataError
from mh4.parsers.answers import Answers

MODELS = GOLDEN_FOLDER / "models"
CYCLE = mh4.Sentence.from_conllu("1\ta\t_\t_\t_\t_\t2\t_\t_\t_\n2\tb\t_\t_\t_\t_\t1\t_\t_\t_\n\n")


class Service:
    """Answers many clients with one call of the parser."""

    def __init__(self, parser, request):
        self.parser, self.request = parser, request

    def answer(self, clients):
        """Return the CoNLL-U or error of each sentence of each client, and the warnings."""
        sentences = [sentence for own in clients for sentence in own]
        answers = self.parser.attempt(sentences, self.request)
        lines = [
            str(answers.errors[i]) if i in answers.errors else sentence.annotated(answers.annotations[i]).to_conllu()
            for i, sentence in enumerate(sentences)
        ]
        rest = iter(lines)
        return [[next(rest) for _ in own] for own in clients], answers.warnings


@pytest.fixture(scope="module")
def parser():
    return mh4.load(MODELS / "chart", device="cpu", threads=1)


def test_a_service_answers_clients_together(parser, caplog, monkeypatch):
    monkeypatch.setattr("mh4.parsers.base.LONGEST", 20)
    good, long = mh4.Sentence(["A", "kutya", "ugat"]), mh4.Sentence(["a", "b", "."] * 9)
    service = Service(parser, mh4.Request(predict="heads"))
    (first, second), warnings = service.answer([[good, long], [good]])
    assert first[0] == second[0] == parser(good, predict="heads").to_conllu()
    assert len(first[1].splitlines()) == len(long) + 1
    assert [warning.partition("of 27 words, ")[2].partition(",")[0] for warning in warnings] == ["more than 20"]
    assert not caplog.messages


def test_errors_stand_where_their_sentences_do(parser):
    good = mh4.Sentence(["A", "kutya"])
    answers = parser.attempt([good, CYCLE, good], mh4.Request(keep_heads=True))
    assert list(answers.errors) == [1]
    assert "form a cycle" in str(answers.errors[1])
    assert answers.annotations[1] == mh4.data.annotation.Annotation()
    assert answers.annotations[0].heads.tolist() == answers.annotations[2].heads.tolist()
    with pytest.raises(mh4.DataError, match="form a cycle"):
        answers.checked()


def test_several_models_give_the_first_error(parser):
    pair = mh4.load(MODELS / "chart", MODELS / "perceptron", device="cpu", threads=1)
    tagged, bare = mh4.Sentence(["A"], upos=["DET"]), mh4.Sentence(["A"])
    answers = pair.attempt([tagged, bare, tagged])
    assert list(answers.errors) == [1]
    assert "has no UPOS" in str(answers.errors[1])
    assert answers.annotations[0].heads.tolist() == answers.annotations[2].heads.tolist() == [0]


def test_columns_that_a_model_lacks_are_a_warning_each_time(parser, caplog):
    request = mh4.Request(predict="heads,upos")
    sentences = [mh4.Sentence(["A", "kutya"])]
    for _ in range(2):
        (warning,) = parser.attempt(sentences, request).warnings
        assert "does not predict UPOS" in warning
    assert not caplog.messages
    with pytest.raises(ValueError, match="does not predict UPOS"):
        parser.attempt(sentences, mh4.Request(predict="upos"))


def test_threads_attempt_at_the_same_time(parser):
    sentences = list(mh4.read_conllu(MODELS / "chart" / "dev.conllu"))
    alone = [one.heads.tolist() for one in parser.attempt(sentences).checked()]
    with ThreadPoolExecutor(4) as pool:
        for answers in pool.map(lambda _: parser.attempt(sentences), range(8)):
            assert [one.heads.tolist() for one in answers.annotations] == alone


def test_nothing_is_wrong_with_no_sentences(parser):
    assert parser.attempt([]) == Answers([])


def test_the_error_of_the_first_sentence_is_raised():
    errors = {place: DataError(f"sentence {place}") for place in (2, 1)}
    with pytest.raises(DataError, match="sentence 1"):
        Answers([Annotation()] * 3, errors).checked()
