"""The notebook in the documentation runs and draws its figures."""

import sys

import nbformat
import pytest
from paths import ROOT

NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """The outputs of each code cell by MIME type."""
    nbclient = pytest.importorskip("nbclient")
    kernels = tmp_path_factory.mktemp("jupyter") / "kernels" / "python3"
    kernels.mkdir(parents=True)
    command = f'["{sys.executable}", "-m", "ipykernel_launcher", "-f", "{{connection_file}}"]'
    (kernels / "kernel.json").write_text(f'{{"argv": {command}, "display_name": "Python 3", "language": "python"}}')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(kernels.parent.parent))
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [{kind: text for one in cell.outputs for kind, text in one.get("data", {}).items()} for cell in cells]


def test_drawings_are_there(outputs):
    sentence, document = outputs[1:3]
    assert sentence["image/svg+xml"].startswith("<svg")
    assert "mihevode" in sentence["image/svg+xml"]
    assert document["text/html"].count("<svg") == 3
    assert any("<table" in one.get("text/html", "") for one in outputs[3:])
    assert "'text': 'Te'" in outputs[-1]["text/plain"]


def test_the_notebook_is_kept_without_outputs():
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert cell.cell_type != "code" or (not cell.outputs and cell.execution_count is None)
