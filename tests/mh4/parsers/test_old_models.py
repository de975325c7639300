"""Models written by earlier versions load and parse as they did: the folders hold what 0.1.0 wrote, and its output."""

import pytest
from paths import GOLDEN_FOLDER

from mh4.parsers.registry import load_parser


@pytest.mark.parametrize("kind", ["chart", "greedy", "perceptron"])
def test_models_of_earlier_versions_parse_as_they_did(kind, tmp_path):
    folder = GOLDEN_FOLDER / "models" / kind
    load_parser(folder, device="cpu", threads=1).parse_file(folder / "dev.conllu", tmp_path / "out.conllu")
    assert (tmp_path / "out.conllu").read_bytes() == (folder / "dev.conllu").read_bytes()
