"""The notebooks of the documentation run in an empty folder, from top to bottom, and store no outputs."""

import json
import os
from pathlib import Path

import pytest

from tests.conftest import BIN, HANG

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
# What their outputs contain, beside what is written for a terminal.
SHOWN = {
    "train-and-look": ["<Run attention@400: rnn from en to fr", "<svg", "<table><tr><th>", "L'homme"],
    "tables-and-lists": ["Correlation(pairs=", "RNN0= -", "sentences have another first translation"],
}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_has_no_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert path.stat().st_size < 16_000
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


@pytest.mark.ci
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra docs")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra docs")
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=HANG, kernel_name="python3", resources=place).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    text = "".join(
        "".join([output.get("text", ""), *map(str, output.get("data", {}).values())]) for output in outputs
    )
    assert [part for part in SHOWN[path.stem] if part not in text] == []
