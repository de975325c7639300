"""The spaCy component, and conversion between documents of mh4 and of spaCy."""

import multiprocessing
import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import mh4
from mh4.data.document import Document
from mh4.data.errors import DataError
from mh4.data.sentence import Sentence
from mh4.data.text import Span, sentence_of, text_of
from mh4.decoders.trees import is_projective

spacy = pytest.importorskip("spacy")
srsly = pytest.importorskip("srsly")
mh4_spacy = pytest.importorskip("mh4.spacy")

TEXT = "Te nofe  mihevode.\nZvai te.\n\nKve yeni takomero."


def seen(doc):
    return [(t.text, t.head.i, t.dep_, t.tag_, t.pos_, str(t.morph), t.lemma_, t.is_sent_start) for t in doc]


@pytest.fixture(scope="module")
def nlp(text_model):
    return mh4_spacy.load(text_model, confidence=True)


def random_heads(rng, n):
    """Return the heads (n,) of a random tree with one root, projective or not."""
    order = rng.permutation(n)
    heads = np.zeros(n, int)
    for place in range(1, n):
        heads[order[place]] = order[rng.integers(place)] + 1
    return heads


def test_a_pipeline_parses_as_the_parser_does(nlp, text_model):
    doc, expected = nlp(TEXT), mh4.load(text_model)(TEXT, confidence=True)
    assert doc.text == TEXT
    words = [token for token in doc if not token.is_space]
    assert [token.text for token in words] == [form for sentence in expected for form in sentence.forms]
    assert len(list(doc.sents)) == len(expected)
    found = mh4_spacy.from_doc(doc)
    for one, other in zip(found, expected, strict=True):
        assert (one.heads.tolist(), one.relations) == (other.heads.tolist(), other.relations)
    for token, word in zip(words, (word for sentence in expected for word in sentence), strict=True):
        assert token._.mh4_confidence == word.confidence
        assert token._.mh4_head_confidence == word.head_confidence
    assert doc._.conllu == found.to_conllu()
    assert [doc.text for doc in nlp.pipe([TEXT, "Zvai.", ""])] == [TEXT, "Zvai.", ""]


def test_tags_and_lemmas_are_set(annotating_model):
    nlp = spacy.blank("xx")
    nlp.add_pipe("mh4", config={"model": str(annotating_model)})
    doc = nlp("Te nofe hivon")
    expected = mh4.load(annotating_model)(["Te", "nofe", "hivon"])
    found = mh4_spacy.from_doc(doc)[0]
    for name in ("heads", "relations", "upos", "xpos", "feats", "lemmas"):
        assert list(getattr(found, name)) == list(getattr(expected, name)), name
    assert [token.pos_ for token in doc] == list(expected.upos)
    assert doc[0]._.mh4_confidence is None  # only on request
    tagged = nlp.make_doc(doc.text)
    for token in tagged:
        token.pos_, token.tag_, token.lemma_ = "X", "x", "x"
    assert seen(nlp.get_pipe("mh4")(tagged)) == seen(doc)  # tags of the document give way


def test_confidences_that_are_unknown_take_no_room(nlp, text_model):
    plain = mh4_spacy.load(text_model)
    assert not plain(TEXT).user_data
    doc = plain.get_pipe("mh4")(nlp(TEXT))  # parsed again, now without confidences
    assert {token._.mh4_confidence for token in doc} == {token._.mh4_head_confidence for token in doc} == {None}
    sentence = Sentence(["a", "b"], heads=[0, 1], relations=["root", "dep"])
    assert not sentence.to_spacy().user_data


def test_the_device_and_threads_of_a_pipeline(text_model, tmp_path, monkeypatch):
    made = mh4_spacy.load(text_model, device="cpu", threads=1)
    made.to_disk(tmp_path / "nlp")
    added = spacy.blank("xx")
    added.add_pipe("mh4", config={"model": str(text_model), "device": "cpu", "threads": 1})
    again = spacy.blank("xx", config={"nlp": {"tokenizer": {"@tokenizers": "mh4.Tokenizer.v1"}}})
    again.add_pipe("mh4", config={"threads": 1}).from_bytes(made.get_pipe("mh4").to_bytes())
    for nlp in (made, spacy.load(tmp_path / "nlp"), added, again, pickle.loads(pickle.dumps(made))):
        parser = nlp.get_pipe("mh4").parser
        assert (parser.threads, parser.device.type) == (1, "cpu")
    with pytest.raises(ValueError, match="unknown device 'tpu'"):
        added.add_pipe("mh4", "second", config={"device": "tpu"})
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    third = added.add_pipe("mh4", "third", config={"model": str(text_model), "device": "cuda"})
    for load in (lambda: third.parser, lambda: mh4_spacy.load(text_model, device="cuda")):
        with pytest.raises(ValueError, match="no CUDA device"):
            load()


@pytest.mark.parametrize(("language", "found"), [("hu", "hu"), ("no such one", "xx"), (None, "xx")])
def test_a_pipeline_has_the_language_and_the_parser_of_its_model(language, found, monkeypatch):
    loaded = []

    def load(model, **options):
        loaded.append((model, options))
        return SimpleNamespace(meta={"language": language}, cut=lambda text: None)

    monkeypatch.setattr(mh4_spacy, "load_parser", load)
    nlp = mh4_spacy.load("m", device="cpu", threads=3)
    assert nlp.lang == found
    assert nlp.get_pipe("mh4").parser.meta["language"] == language
    assert loaded == [("m", {"device": "cpu", "threads": 3})]


def test_documents_are_parsed_in_batches(monkeypatch):
    component, sizes = spacy.blank("xx").add_pipe("mh4"), []
    monkeypatch.setattr(component, "_parse", lambda docs: sizes.append(len(docs)))
    assert len(list(component.pipe([None] * 5, batch_size=2))) == 5
    assert sizes == [2, 2, 1]


def test_files_of_a_model_stay_in_its_folder():
    component = spacy.blank("xx").add_pipe("mh4")
    with pytest.raises(ValueError, match="is not the name of a file of a model"):
        component.from_bytes(srsly.msgpack_dumps({"../x": b""}))


def test_sentences_of_the_document_stay(text_model):
    nlp = spacy.blank("xx")
    nlp.add_pipe("mh4", config={"model": str(text_model)})
    doc = spacy.tokens.Doc(nlp.vocab, ["a", "b", "c", "d"], sent_starts=[True, False, True, False])
    doc = nlp.get_pipe("mh4")(doc)
    assert [span.text for span in doc.sents] == ["a b", "c d"]
    assert [token.dep_ for token in doc].count("ROOT") == 2
    without = nlp("Te nofe mihevode. Zvai te.")  # no boundaries: the segmenter finds them
    assert len(list(without.sents)) == len(mh4.load(text_model).cut("Te nofe mihevode. Zvai te."))


def test_the_segmenter_decides_where_the_document_does_not(text_model):
    nlp = spacy.blank("xx")
    component = nlp.add_pipe("mh4", config={"model": str(text_model)})
    text = "Te nofe mihevode. Zvai te. Kve yeni takomero."
    found = [span.start for span in nlp(text).sents]
    assert len(found) > 2
    doc = nlp.make_doc(text)
    doc[1].is_sent_start, doc[found[1]].is_sent_start = True, False
    assert [span.start for span in component(doc).sents] == [0, 1, *found[2:]]


def test_without_a_segmenter_a_document_is_one_sentence(small_model):
    nlp = spacy.blank("xx")
    nlp.add_pipe("mh4", config={"model": str(small_model)})
    assert len(list(nlp("a b. c d.").sents)) == 1
    doc = nlp.make_doc("a b. c d.")
    doc[1].is_sent_start = True
    assert [span.start for span in nlp.get_pipe("mh4")(doc).sents] == [0, 1]
    with pytest.raises(ValueError, match="cannot split text"):
        mh4_spacy.load(small_model)


def test_empty_and_blank_documents(nlp):
    for text in ("", " ", "\n\n", "  a"):
        assert nlp(text).text == text


def test_a_saved_pipeline_has_its_model(nlp, tmp_path, small_model):
    expected = seen(nlp(TEXT))
    nlp.to_disk(tmp_path / "nlp")
    assert seen(spacy.load(tmp_path / "nlp")(TEXT)) == expected
    again = spacy.blank(nlp.lang, config={"nlp": {"tokenizer": {"@tokenizers": "mh4.Tokenizer.v1"}}})
    again.add_pipe("mh4")
    with pytest.raises(ValueError, match="the component has no model"):
        again("a")
    assert seen(again.from_bytes(nlp.to_bytes())(TEXT)) == expected


def test_the_first_component_cuts_text(text_model, small_model):
    nlp = mh4_spacy.load(text_model)
    expected = [token.text for token in nlp.make_doc(TEXT)]
    nlp.add_pipe("mh4", name="second", config={"model": str(small_model)})
    assert [token.text for token in nlp.make_doc(TEXT)] == expected
    nlp.remove_pipe("mh4")
    with pytest.raises(ValueError, match="cannot split text"):
        nlp.make_doc(TEXT)


def test_a_saved_pipeline_is_loaded_without_importing_mh4(nlp, tmp_path):
    """spaCy finds the component and the tokenizer by the entry points of the installed package."""
    nlp.to_disk(tmp_path / "nlp")
    program = f"import spacy; print(len(spacy.load({str(tmp_path / 'nlp')!r})({TEXT!r})))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (found.stdout, found.returncode) == (f"{len(nlp(TEXT))}\n", 0), found.stderr


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes(nlp, start, monkeypatch):
    monkeypatch.setattr(multiprocessing.context._default_context, "_actual_context", multiprocessing.get_context(start))
    monkeypatch.setattr(nlp.get_pipe("mh4"), "_error_handler", spacy.util.raise_error)
    monkeypatch.setattr(nlp, "default_error_handler", spacy.util.raise_error)
    nlp.set_error_handler(spacy.util.ignore_error)
    texts = [TEXT, "Zvai te.", "a\0b", "Kve yeni."] * 3
    found = [seen(doc) for doc in nlp.pipe(texts, n_process=2, batch_size=3)]
    assert found == [seen(doc) for doc in nlp.pipe(text for text in texts if "\0" not in text)]


def test_spacy_can_read_the_types_of_the_factory():
    """Earlier releases, such as 3.8.2, do not evaluate annotations that are strings, and failed."""
    types = mh4_spacy.make_component.__annotations__.values()
    assert not any(isinstance(one, str) for one in types)


def test_a_pipeline_is_evaluated(nlp):
    doc = nlp("Te nofe mihevode. Zvai te.")  # spaCy never counts the arcs of white space as found
    scores = nlp.evaluate([spacy.training.Example(nlp.make_doc(doc.text), doc)])
    assert {scores[name] for name in ("dep_uas", "dep_las", "sents_f")} == {1}
    assert {"tag_acc", "pos_acc", "morph_acc", "lemma_acc"} <= scores.keys()


def test_random_trees_survive():
    rng = np.random.default_rng(0)
    vocab = spacy.blank("xx").vocab
    crossing = 0
    for _ in range(300):
        n = int(rng.integers(1, 12))
        sentences = []
        for _ in range(int(rng.integers(1, 4))):
            heads = random_heads(rng, n)
            crossing += not is_projective(np.concatenate([[-1], heads]).astype(np.int32))
            relations = ["root" if h == 0 else f"r{rng.integers(3)}" for h in heads]
            upos = rng.choice(["NOUN", "VERB", "_"], n).tolist()
            feats = rng.choice(["Case=Nom|Number=Sing", "_"], n).tolist()
            lemmas = rng.choice(["x", "_"], n).tolist()
            columns = {"upos": upos, "feats": feats, "lemmas": lemmas, "xpos": rng.choice(["N", "_"], n).tolist()}
            sentences.append(Sentence([f"w{i}" for i in range(n)], heads=heads, relations=relations, **columns))
        doc = mh4_spacy.to_doc(Document(sentences), vocab)
        assert mh4_spacy.from_doc(doc) == Document(sentences)
        copied = spacy.tokens.Doc(vocab).from_bytes(doc.to_bytes())
        assert mh4_spacy.from_doc(copied) == Document(sentences)
    assert crossing > 100


def test_multiword_tokens_keep_their_surface():
    conllu = (
        "# text = vamos al mar\n1\tvamos\t_\t_\t_\t_\t0\troot\t_\t_\n2-3\tal\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "2\ta\t_\t_\t_\t_\t4\tcase\t_\t_\n3\tel\t_\t_\t_\t_\t4\tdet\t_\t_\n4\tmar\t_\t_\t_\t_\t1\tobl\t_\t_\n\n"
    )
    doc = mh4_spacy.to_doc(Sentence.from_conllu(conllu), spacy.blank("es").vocab)
    assert [token.text for token in doc] == ["vamos", "a", "el", "mar"]
    assert [token._.mh4_surface for token in doc] == [None, "al", None, None]
    assert [token.head.i for token in doc] == [0, 3, 3, 0]


def test_multiword_tokens_come_back():
    conllu = (
        "1-2\tIm\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n1\tIn\t_\t_\t_\t_\t3\tcase\t_\t_\n2\tdem\t_\t_\t_\t_\t3\tdet\t_\t_\n"
        "3\tHaus\t_\t_\t_\t_\t0\troot\t_\tSpaceAfter=No\n4-5\tzum\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "4\tzu\t_\t_\t_\t_\t6\tcase\t_\t_\n5\tdem\t_\t_\t_\t_\t6\tdet\t_\t_\n6\tSee\t_\t_\t_\t_\t3\tnmod\t_\t_\n\n"
    )
    document = Document.from_conllu(conllu + conllu)
    doc = document.to_spacy(spacy.blank("de").vocab)
    assert doc._.conllu == mh4_spacy.from_doc(doc).to_conllu() == document.to_conllu()
    copied = spacy.tokens.Doc(doc.vocab).from_bytes(doc.to_bytes())
    assert mh4_spacy.from_doc(copied) == document
    doc[0]._.mh4_surface_words = 50  # more than the sentence has
    assert mh4_spacy.from_doc(doc)[0].forms == document[0].forms


def test_no_head_is_invented_for_arcs_between_sentences():
    sentence = Sentence(["a", "b", "c"], heads=[0, 0, 1], relations=["root", "root", "x"])
    found = Document.from_spacy(Document([sentence]).to_spacy())
    assert [one.forms for one in found] == [("a",), ("b", "c")]
    assert [one.heads.tolist() for one in found] == [[0], [0, -1]]


@pytest.mark.parametrize(("first", "last"), [(1, 3), (2, 4)])
def test_merged_words_leave_no_multiword_token(first, last):
    conllu = (
        "1\tmar\t_\t_\t_\t_\t0\troot\t_\t_\n2-3\tdel\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "2\tde\t_\t_\t_\t_\t4\tcase\t_\t_\n3\tel\t_\t_\t_\t_\t4\tdet\t_\t_\n4\tsur\t_\t_\t_\t_\t1\tnmod\t_\t_\n"
        "5\t.\t_\t_\t_\t_\t1\tpunct\t_\t_\n\n"
    )
    doc = mh4_spacy.to_doc(Sentence.from_conllu(conllu), spacy.blank("es").vocab)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[first:last])
    (sentence,) = mh4_spacy.from_doc(doc)
    assert [(token.first, token.last) for token in sentence.tokens] == [(n, n) for n in (1, 2, 3, 4)]
    assert sentence.text == doc.text.strip()


def test_without_a_vocab_white_space_is_known(text_model):
    document = mh4.load(text_model)(TEXT)
    doc = document.to_spacy(text=TEXT)
    assert [token.text for token in doc if token.is_space] == [" ", "\n", "\n\n"]
    assert (doc[0].is_alpha, doc[0].lower_) == (True, "te")
    assert len(list(doc.sents)) == len(document)
    assert [one.forms for one in Document.from_spacy(doc)] == [one.forms for one in document]


def test_white_space_before_the_first_word_stays():
    vocab = spacy.blank("de").vocab
    doc = spacy.tokens.Doc(vocab, words=["\n ", "Im", "dem", "See"], spaces=[False, False, False, False])
    assert Document.from_spacy(doc)[0].misc[0] == "SpaceAfter=No|SpacesBefore=\\n\\s"
    doc[1]._.mh4_surface, doc[1]._.mh4_surface_words = "Im", 2
    document = Document.from_spacy(doc)
    assert "".join(text_of(document)) == "\n ImSee"
    assert Document.from_spacy(spacy.tokens.Doc(vocab, words=["\n "])) == Document([])


def test_features_are_in_the_order_of_ud():
    feats = "Number=Sing|Number[psor]=Plur|NumType=Ord"
    sentence = Sentence(["a"], feats=[feats], heads=[0], relations=["root"])
    assert Sentence.from_spacy(sentence.to_spacy()).feats == (feats,)


@pytest.mark.parametrize("text", ["A b.  A b.", "A b, A b.", "A", ""])
def test_another_text_than_that_of_the_sentences_is_an_error(text):
    lines = "1\tA\t_\t_\t_\t_\t0\troot\t_\t_\n2\tb\t_\t_\t_\t_\t1\tdep\t_\tSpaceAfter=No\n"
    sentence = Sentence.from_conllu(f"{lines}3\t.\t_\t_\t_\t_\t1\tpunct\t_\t_\n\n")
    assert Document([sentence]).to_spacy(text="A b.\n").text == "A b.\n"
    with pytest.raises(ValueError, match="text is not what the sentences were cut from"):
        Document([sentence, sentence]).to_spacy(text=text)


@pytest.mark.parametrize("feats", ["A=b=c", "Ab", "A=b|"])
def test_features_that_spacy_cannot_hold_are_an_error_with_their_place(feats):
    sentence = Sentence.from_conllu(f"1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n2\tb\t_\t_\t_\t{feats}\t1\tdep\t_\t_\n\n")
    with pytest.raises(DataError, match=r"text:2: sentence 1: spaCy takes FEATS such as .*, not '"):
        sentence.to_spacy()


def test_documents_that_cannot_be_parsed_go_to_the_error_handler(text_model):
    nlp = spacy.blank("xx")
    nlp.add_pipe("mh4", config={"model": str(text_model)})

    def docs():
        return [spacy.tokens.Doc(nlp.vocab, words) for words in (["te"], ["a\0b"], ["nofe", "te"])]

    with pytest.raises(mh4.DataError, match=r"Doc 'a\\x00b ': .*line break or NUL"):
        list(nlp.pipe(docs()))
    failed = []
    nlp.set_error_handler(lambda name, component, docs, error: failed.append((name, docs[0].text, str(error))))
    assert [(doc.text, doc.has_annotation("DEP")) for doc in nlp.pipe(docs())] == [("te ", True), ("nofe te ", True)]
    ((name, text, message),) = failed
    assert (name, text) == ("mh4", "a\0b ")
    assert message.startswith("Doc 'a\\x00b ': ")
    assert nlp.get_pipe("mh4").get_error_handler() is nlp.default_error_handler


def test_texts_that_cannot_be_cut_go_to_the_error_handler(text_model):
    nlp = mh4_spacy.load(text_model)
    texts = ["Te nofe.", "a\0b c", "Zvai te."]
    with pytest.raises(mh4.DataError, match="NUL"):
        nlp(texts[1])
    with pytest.raises(mh4.DataError, match="lone surrogate"):
        nlp("a\ud800")
    with pytest.raises(mh4.DataError, match=r"Doc 'a\\x00b c': .*NUL"):
        list(nlp.pipe(texts))
    failed = []
    nlp.set_error_handler(lambda name, component, docs, error: failed.append((name, docs[0].text, str(error))))
    assert [doc.text for doc in nlp.pipe(texts)] == [texts[0], texts[2]]
    ((name, text, message),) = failed
    assert (name, text, "NUL" in message) == ("mh4", texts[1], True)


def test_columns_that_the_model_does_not_predict_are_those_of_the_document(small_treebanks, tmp_path):
    parser = mh4.train(*small_treebanks, tmp_path / "model", system="arc-eager", scorer="perceptron", iterations=1)
    nlp = spacy.blank("xx")
    component = nlp.add_pipe("mh4", config={"model": str(tmp_path / "model")})
    sentence = next(iter(mh4.read_conllu(small_treebanks[1])))
    doc = component(sentence.to_spacy(nlp.vocab))
    expected = parser(sentence)
    assert [token.head.i if token.dep_ != "ROOT" else -1 for token in doc] == [h - 1 for h in expected.heads]
    assert [token.pos_ for token in doc] == list(sentence.upos)
    with pytest.raises(mh4.DataError, match="has no UPOS"):
        nlp("te nofe")


def test_displacy_draws_it(nlp):
    svg = spacy.displacy.render(nlp("Te nofe mihevode."), style="dep", jupyter=False)
    assert svg.startswith("<svg")
    assert "mihevode" in svg


def test_unknown_parts_of_speech_are_x():
    sentence = Sentence(["a", "b"], heads=[0, 1], relations=["root", "dep"], upos=["FOO", "NOUN"])
    doc = mh4_spacy.to_doc(sentence, spacy.blank("xx").vocab)
    assert [token.pos_ for token in doc] == ["X", "NOUN"]


def test_a_sentence_that_begins_with_white_space_begins_with_its_first_word(small_model):
    nlp = spacy.blank("xx")
    component = nlp.add_pipe("mh4", config={"model": str(small_model)})
    doc = spacy.tokens.Doc(nlp.vocab, ["Te", " ", "nofe", "yeni", "\n"], sent_starts=[True, True, False, True, True])
    assert [sentence.text.strip() for sentence in component(doc).sents] == ["Te", "nofe", "yeni"]


def test_white_space_is_no_sentence(nlp):
    for words, starts in (([" \n"], None), (["\n", "a", " "], [True, True, True])):
        doc = spacy.tokens.Doc(nlp.vocab, words, sent_starts=starts)
        assert [sentence.forms for sentence in mh4_spacy.from_doc(doc)] == [("a",)] * ("a" in words)


def test_unknown_lemmas_are_blank():
    sentence = Sentence(["a", "_", "b"], lemmas=["_", "_", "be"], heads=[0, 1, 1], relations=["root", "dep", "dep"])
    doc = sentence.to_spacy()
    assert [token.lemma_ for token in doc] == ["", "_", "be"]
    assert mh4_spacy.from_doc(doc)[0].lemmas == sentence.lemmas


def test_a_relative_folder_is_that_of_the_time_when_it_was_named(small_model, tmp_path, monkeypatch):
    monkeypatch.chdir(small_model.parent)
    nlp = spacy.blank("xx")
    nlp.add_pipe("mh4", config={"model": small_model.name})
    monkeypatch.chdir(tmp_path)
    assert nlp("Te nofe").has_annotation("DEP")


def test_a_byte_order_mark_is_no_sentence(text_model):
    nlp = spacy.blank("xx")
    nlp.add_pipe("mh4", config={"model": str(text_model)})
    expected = [len(sentence) for sentence in nlp(TEXT).sents]
    assert [len(sentence) for sentence in nlp(f"\ufeff{TEXT}").sents] == expected


@pytest.mark.parametrize("heads", [[-1, -1], [2, -1]])
def test_columns_need_no_trees(heads):
    sentence = Sentence(["a", "b"], heads=heads, upos=["DET", "NOUN"], lemmas=["a", "_"], feats=["_", "Case=Nom"])
    doc = Document([sentence, sentence]).to_spacy()
    assert not doc.has_annotation("DEP")
    assert Document.from_spacy(doc) == Document([sentence.replace(heads=[-1, -1])] * 2)
    bare = Document([Sentence(["a"]), Sentence(["b"])])
    assert Document.from_spacy(bare.to_spacy()) == bare


def test_documents_are_changed_together_or_not_at_all():
    nlp = spacy.blank("xx")
    component = nlp.add_pipe("mh4")
    parsed = [Sentence(["a"], heads=[0], relations=["root"], feats=[feats]) for feats in ("A=b", "Ab")]
    component._parser = SimpleNamespace(annotates=(), segmenter=None, parse=lambda words, **_: parsed[-len(words) :])
    docs = [spacy.tokens.Doc(nlp.vocab, ["a"]) for _ in parsed]
    with pytest.raises(mh4.DataError, match="spaCy takes FEATS such as"):
        component._parse(docs)
    assert [(doc.has_annotation("DEP"), str(doc[0].morph)) for doc in docs] == [(False, "")] * 2


@pytest.mark.parametrize("start", ["\ufeff", "\ufeff\t", "\ufeff \n\n", "\ufeff\ufeff"])
def test_a_byte_order_mark_is_no_word(nlp, start):
    text = f"{start}{TEXT}"
    doc = nlp(text)
    assert doc.text == text
    assert doc[0].sent == next(doc.sents)
    assert doc[0].head.i == 1
    expected = [(one.forms, one.misc) for one in nlp.get_pipe("mh4").parser.cut(text)]
    assert [(one.forms, one.misc) for one in Document.from_spacy(doc)] == expected
    assert len(Document.from_spacy(nlp("\ufeff"))) == 0


def test_white_space_in_a_word_is_kept():
    text = "Hà\n Nội   đẹp  lắm."
    spans = [Span(0, 7), Span(10, 18), Span(18, 19)]
    sentence = sentence_of(text, spans, len(text), "", (), "text", 1, 0)
    doc = sentence.to_spacy(text=text)
    assert doc.text == text
    assert [token.text for token in doc if not token.is_space] == ["Hà\n Nội", "đẹp  lắm", "."]
    assert Sentence.from_spacy(doc) == sentence.replace(comments=())
    assert sentence.to_spacy().text == "Hà Nội đẹp lắm."


def test_a_token_with_a_line_break_is_a_word(small_model):
    nlp = spacy.blank("xx")
    component = nlp.add_pipe("mh4", config={"model": str(small_model)})
    doc = spacy.tokens.Doc(nlp.vocab, ["Te\nnofe", "yeni"], lemmas=["te\nnofe", "yeni"])
    found = mh4_spacy.from_doc(component(doc))[0]
    assert (found.forms, found.lemmas) == (("Te nofe", "yeni"), ("te nofe", "yeni"))
    assert found.misc[0] == r"SpacesInToken=Te\nnofe"
    assert list(text_of([found])) == ["", "Te\nnofe", " ", "", "yeni", " "]


def test_words_below_white_space_belong_to_the_next_word_above():
    words, relations = ["a", " ", "b", "c"], ["det", "dep", "ROOT", "obj"]
    doc = spacy.tokens.Doc(spacy.blank("xx").vocab, words, heads=[1, 2, 2, 1], deps=relations)
    assert Sentence.from_spacy(doc).heads.tolist() == [2, 0, 2]


def test_options_of_an_evaluation_reach_the_scorers():
    """The only mistake is the head of the full stop, which is left out of the scores unless nothing is."""
    vocab, words = spacy.blank("xx").vocab, {"words": ["a", "b", "."], "deps": ["ROOT", "obj", "punct"]}
    found, gold = (spacy.tokens.Doc(vocab, heads=heads, **words) for heads in ([0, 0, 1], [0, 0, 0]))
    component = spacy.blank("xx").add_pipe("mh4")
    for options, right in (({}, 1), ({"ignore_labels": ()}, 2 / 3)):
        scores = component.score([spacy.training.Example(found, gold)], **options)
        assert scores["dep_uas"] == pytest.approx(right)
