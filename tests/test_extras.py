"""A missing extra is reported in one line, and an extra is imported only when it is used."""

import re
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from paths import ROOT

# MODULES: the modules that each extra installs. USES: (extra, missing module, program that needs it); the other extras
# are tested where they are used.
MODULES = {
    "cluster": ("distributed", "dask"),
    "hub": ("huggingface_hub", "jinja2"),
    "pandas": ("pandas",),
    "plots": ("matplotlib",),
    "serve": ("prometheus_client", "python_multipart", "starlette", "uvicorn"),
    "spacy": ("spacy",),
    "text": ("ufal.udpipe",),
    "transformers": ("transformers",),
    "vectors": ("gensim",),
}
USES = [
    ("pandas", "pandas", "mh4.Sentence(['a']).to_pandas()"),
    ("pandas", "pandas", "mh4.Document.from_pandas(None)"),
    ("spacy", "spacy", "mh4.Sentence(['a']).to_spacy()"),
    ("spacy", "spacy", "mh4.Document.from_spacy(None)"),
    ("spacy", "spacy", "import mh4.spacy"),
    ("serve", "uvicorn", "from mh4.__main__ import main; sys.argv = ['mh4', 'serve', 'x']; main()"),
    ("cluster", "distributed", "from mh4.service.cluster import silence_dask; silence_dask()"),
]


def run(program):
    return subprocess.run([sys.executable, "-c", f"import sys; {program}"], capture_output=True, text=True)


def test_all_extras_are_known():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert extras.keys() - {"dev"} <= MODULES.keys()


def test_every_constraint_pins_one_package():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines]  # pip older than 24.1 accepts lines that newer ones do not
    assert all(re.fullmatch(r"==[\w.]+", str(pin.specifier)) for pin in pins)
    assert len({canonicalize_name(pin.name) for pin in pins}) == len(lines)


def test_nothing_of_an_extra_is_imported_before_it_is_used():
    names = "import mh4; [getattr(mh4, name) for name in mh4.__all__]; mh4.Document([mh4.Sentence(['a'])]).to_json()"
    loaded = set(run(f"{names}; print(*sys.modules)").stdout.split())
    assert "mh4.parsers.base" in loaded
    assert not loaded & {module for modules in MODULES.values() for module in modules}


@pytest.mark.parametrize(("extra", "missing", "program"), USES)
def test_a_missing_extra_is_one_clear_line(extra, missing, program):
    ended = run(f"sys.modules[{missing!r}] = None; import mh4; {program}")
    assert ended.returncode != 0
    last = ended.stderr.strip().splitlines()[-1]
    assert "is not installed" in last or "needs" in last
    assert last.endswith(f"pip install 'mh4[{extra}]'")
