"""Options of the tokenizer and of formats."""

import pytest
from serving import running

from mh4.data.document import Document
from mh4.service.served_models import ServedModels

LINES = "1\tTe\t_\t_\t_\t_\t_\t_\t_\t_\n2\tnofe\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
TEXT = "Te nofe  mihevode.\nZvai te.\n\nKve yeni takomero."


@pytest.fixture(scope="module")
def client(text_model):
    with running(ServedModels([f"ulvari={text_model}"])) as client:
        yield client


def test_formats_have_the_options_of_udpipe(client):
    given = client.process(TEXT, tokenizer="", output="conllu=v2").json
    assert given == client.process(TEXT, tokenizer="").json
    assert client.process(LINES, input="conllu=v2").json == client.process(LINES).json
    found = client.process(TEXT, tokenizer="", output="plaintext=normalized_spaces").json
    texts = [sentence.text for sentence in Document.from_conllu(given["result"])]
    assert (found["result"].replace("\n\n", "\n"), "warnings" in found) == ("".join(f"{own}\n" for own in texts), False)
    assert found["result"].count("\n\n") == TEXT.count("\n\n")
    found = client.process(TEXT, tokenizer="", output="vertical=paragraphs").json
    assert found["warnings"] == ["unknown options of the output format 'vertical', ignored: 'paragraphs'"]
    assert found["result"] == client.process(TEXT, tokenizer="", output="vertical").result


def test_options_of_the_tokenizer(client):
    ranged = Document.from_conllu(client.process(TEXT, tokenizer="ranges").result)
    tokens = [token for sentence in ranged for token in sentence.tokens]
    spans = [dict(entry.partition("=")[::2] for entry in token.misc.split("|"))["TokenRange"] for token in tokens]
    assert [TEXT[slice(*map(int, span.split(":")))] for span in spans] == [token.form for token in tokens]
    lines = "Te nofe. Zvai te.\n \nKve yeni.\n"
    found = Document.from_conllu(client.process(lines, tokenizer="presegmented;ranges").result)
    assert [sentence.text for sentence in found] == ["Te nofe. Zvai te.", "Kve yeni."]
    assert [sentence.sent_id for sentence in found] == ["1", "2"]
    begun = [[line for line in sentence.comments if line.startswith("# new")] for sentence in found]
    assert begun == [["# newdoc", "# newpar"], []]
    spans = [entry for sentence in found for token in sentence.tokens for entry in token.misc.split("|")]
    spans = [entry[11:].split(":") for entry in spans if entry.startswith("TokenRange=")]
    assert "".join(lines[int(start) : int(end)] for start, end in spans) == lines.replace(" ", "").replace("\n", "")
    spaced = client.process(TEXT, tokenizer="").result
    assert "SpacesAfter=\\s\\s" in spaced
    plain = client.process(TEXT, tokenizer="normalized_spaces").result
    assert "Spaces" not in plain
    assert "SpaceAfter=No" in plain


def test_offsets_are_those_of_the_given_text(client):
    text = "Te   nofe\n\nmihevode."
    found = client.process(text, tokenizer="ranges;normalized_spaces", output="json").result
    tokens = [token for sentence in found for token in sentence["tokens"]]
    assert [text[token["start_char"] : token["end_char"]] for token in tokens] == [token["text"] for token in tokens]
    for token in tokens:
        assert f"TokenRange={token['start_char']}:{token['end_char']}" in token["misc"]
        assert "Spaces" not in token["misc"]
    for token in client.process(text, tokenizer="normalized_spaces", output="json").result[0]["tokens"]:
        assert token.get("misc") != "_"


def test_unknown_options_of_the_tokenizer_are_ignored_with_a_warning(client):
    lines = "Te nofe. Zvai te.\nKve yeni.\n"
    expected = client.process(lines, tokenizer="presegmented").json
    assert "warnings" not in expected
    assert client.process(lines, tokenizer="presegmented=1; ;yes").json == expected
    found = client.process(lines, tokenizer="presegmented;range=1;x", parser="").json
    assert found["warnings"] == [
        "unknown option of the tokenizer, ignored: 'range'; known: presegmented, ranges, normalized_spaces"
    ]
    assert "# text = Te nofe. Zvai te.\n" in found["result"]


def test_blank_lines_between_presegmented_lines_stay(client):
    data = "\ufeff\nTe nofe.\n\n \n Zvai te."
    assert client.process(data, tokenizer="presegmented", output="plaintext").result == data.removeprefix("\ufeff")
    found = Document.from_conllu(client.process(data, tokenizer="presegmented;ranges").result)
    assert found[1].misc[0] == "SpacesBefore=\\n\\s\\n\\s|TokenRange=15:19"


def test_presegmented_lines_end_with_line_feeds_alone(client):
    data = "Te nofe.\u2028Zvai\x85te\x0c.\r\nKve\n"
    found = client.process(data, tokenizer="presegmented;ranges", output="json").result
    assert [one["text"] for one in found] == ["Te nofe. Zvai te .", "Kve"]
    assert found[1]["tokens"][0]["misc"].split("TokenRange=")[1] == f"{data.index('Kve')}:{len(data) - 1}"
