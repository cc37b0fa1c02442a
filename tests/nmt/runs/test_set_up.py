"""A Python program that loads a run computes as the commands do."""

import shutil
from pathlib import Path

import pytest

from nmt.compute import matmul
from nmt.errors import ConfigError
from nmt.runs import set_up
from nmt.runs.language_model import line_scorer, load_language_model
from nmt.runs.run import Run

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "0.5.0"


@pytest.mark.parametrize("back_end", ["mkl", "onednn"])
def test_a_loaded_run_computes_with_its_back_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back_end: str
) -> None:
    """As nmt-translate does: with the one that it remembers for this processor."""
    shutil.copytree(GOLDEN / "translator", tmp_path / "run")
    shutil.copytree(GOLDEN / "lm", tmp_path / "lm")
    before = matmul.in_use()
    try:
        for name, load in (("run", Run.load), ("lm", load_language_model)):
            (tmp_path / name / "matmul.tsv").unlink(missing_ok=True)
            matmul.remember(tmp_path / name / "matmul.tsv", matmul.Choice(back_end))
            matmul.use("mkl" if back_end == "onednn" else "onednn")
            load(tmp_path / name)
            assert matmul.in_use() == back_end
            matmul.use("mkl" if back_end == "onednn" else "onednn")
        Run.of(tmp_path / "run"), line_scorer(tmp_path / "lm")  # commands have chosen
        assert matmul.in_use() != back_end
    finally:
        matmul.use(before)


def test_what_is_no_run_is_left_to_its_reader(tmp_path: Path) -> None:
    """An ARPA file, a folder that is missing: nothing is measured or written."""
    before = matmul.in_use()
    for path in (tmp_path, tmp_path / "lm.arpa"):
        set_up.as_commands_do(path, "nonsense")
    assert matmul.in_use() == before and not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="device: 'nonsense' is unknown"):
        Run.load(GOLDEN / "translator", device="nonsense")
