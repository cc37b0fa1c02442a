"""nmt-import: from a folder to a run, in one line what is wrong, and nothing half-written."""

from pathlib import Path
from types import ModuleType

import pytest

from nmt.cli import score, translate
from nmt.cli.importing import main
from tests.nmt.training.marian_folders import Shape, write_folder


@pytest.mark.ci
def test_a_run_of_a_folder(grammar: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, run = write_folder(tmp_path / "model", grammar, Shape(layers=(1, 1))), tmp_path / "run"
    arguments = ["marian", str(model), "-o", str(run)]
    assert main([*arguments, "--languages", "eng", "fra"]) == 0
    assert "license cc-by-4.0" in capsys.readouterr().err
    assert "language: eng\n" in (run / "config.yaml").read_text(encoding="utf-8")
    for name in ("text", "target"):
        (tmp_path / name).write_text("The dog sees the cat.\n\n", encoding="utf-8")
    source, output = str(tmp_path / "text"), str(tmp_path / "out")
    options = ["--ended", "refill", "--min-length", "2", "--max-length", "9", "-q", "-i", source]
    assert translate.main([str(run), *options, "-o", output]) == 0
    first, second, _ = (tmp_path / "out").read_text(encoding="utf-8").split("\n")
    assert first and not second
    assert score.main([str(run), "-s", source, "-t", str(tmp_path / "target"), "-o", output, "-q"]) == 0
    capsys.readouterr()
    assert main(arguments) == 2
    assert "exists already" in capsys.readouterr().err
    (model / "vocab.json").unlink()
    assert main([*arguments[:-1], str(tmp_path / "other")]) == 2
    [line] = capsys.readouterr().err.strip().split("\n")
    assert line.endswith("vocab.json: missing, expected with every Marian model; copy the whole folder")
    assert not (tmp_path / "other").exists()
