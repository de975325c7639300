"""Licences of treebanks, as README and LICENSE files name them."""

from pathlib import Path

import pytest

from mh4.data.licences import find_licence, is_non_commercial, licence_in

METADATA = """# Licensing of everything
<pre>
=== Machine-readable metadata (DO NOT REMOVE!) ===
Data available since: UD v1.0
License: {}
Includes text: yes
</pre>
"""


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("CC BY-NC-SA 3.0", "CC BY-NC-SA 3.0"),
        ("cc by 4.0", "CC BY 4.0"),
        ("Creative Commons Attribution-NonCommercial-ShareAlike 4.0 License.", "CC BY-NC-SA 4.0"),
        ("the Creative Commons Attribution-Share Alike 3.0 Unported License", "CC BY-SA 3.0"),
        ("Attribution-NoDerivatives 4.0 International", "CC BY-ND 4.0"),
        ("see https://creativecommons.org/licenses/by-nc/2.5/de/", "CC BY-NC 2.5"),
        (
            "Creative Commons Attribution-ShareAlike 4.0,\nhttps://creativecommons.org/licenses/by-sa/4.0/\n",
            "CC BY-SA 4.0",
        ),
        ("Trees: CC BY 4.0. Texts: CC BY-NC 4.0.", "CC BY 4.0 and CC BY-NC 4.0"),
        ("GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007", "GPL 3"),
        ("GNU Lesser General Public License, version 2.1", "LGPL 2"),
        ("\n  Ask the authors.\nThen wait.", "Ask the authors."),
        ("", None),
    ],
)
def test_licences_are_recognised(text, licence):
    assert licence_in(text) == licence


def test_of_an_unknown_licence_the_first_line_is_enough_and_not_all_of_a_long_one():
    assert licence_in("\n  Ask us first.  \nThen go on.\n") == "Ask us first."
    assert licence_in("Ask. " * 100) == ("Ask. " * 100)[:100]


@pytest.mark.parametrize(
    ("licence", "forbidden"),
    [
        ("CC BY-NC-SA 3.0", True),
        ("CC BY 4.0 and CC BY-NC 4.0", True),
        ("for non-commercial purposes", True),
        ("Academic use only", True),
        ("CC BY-SA 4.0", False),
        ("GPL 3", False),
    ],
)
def test_what_forbids_commercial_use(licence, forbidden):
    assert is_non_commercial(licence) is forbidden


def test_a_readme_is_asked_before_a_licence_file_and_only_for_what_it_states(tmp_path):
    treebank = tmp_path / "xx-ud-train.conllu"
    assert find_licence(treebank) is None
    (tmp_path / "LICENSE.txt").write_text("Attribution 4.0 International\n")
    (tmp_path / "README.md").write_text("There is a paper under CC BY-SA 2.0.\n")
    assert find_licence(treebank) == "CC BY 4.0"
    (tmp_path / "README.md").write_text(METADATA.format("CC BY-NC-SA 3.0"))
    assert find_licence(treebank) == "CC BY-NC-SA 3.0"
    assert find_licence(tmp_path / "nowhere" / "train.conllu") is None


@pytest.mark.parametrize("treebank", ["-", Path("-"), "/dev/stdin"])
def test_nothing_is_beside_standard_input(treebank, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("License: GPL 3\n")
    assert find_licence(treebank) is None
    assert find_licence("./-") == "GPL 3"
