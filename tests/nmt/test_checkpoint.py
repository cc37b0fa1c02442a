import json
import shutil
from pathlib import Path

import pytest
import torch

from nmt import checkpoint
from nmt.errors import CheckpointError


@pytest.fixture
def run(tiny: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny / "run", tmp_path / "run")
    return tmp_path / "run"


def test_a_run_directory_is_complete(run: Path) -> None:
    loaded = checkpoint.load(run)
    assert loaded.step == json.loads((run / "checkpoints.json").read_text())["best"]
    assert loaded.source.words("The MAN sees.") == ["the", "man", "sees", "."]
    weights = torch.load(run / f"step-{loaded.step}.pt", weights_only=True)
    assert all(torch.equal(value, weights[name]) for name, value in loaded.model.state_dict().items())
    assert not list(run.glob("*.part*"))


def damage(run: Path, name: str) -> None:
    path = next(run.glob(name))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("name", ["step-*.pt", "source.vocab", "config.yaml"])
def test_truncated_files_give_one_clear_error(run: Path, name: str) -> None:
    for path in run.glob("step-*.pt") if name == "step-*.pt" else [run / name]:
        damage(run, path.name)
    with pytest.raises(CheckpointError) as error:
        checkpoint.load(run)
    assert str(run) in str(error.value) and "\n" not in str(error.value)


def test_other_versions_are_refused(run: Path) -> None:
    (run / "version").write_text("nmt-run 2\n")
    with pytest.raises(CheckpointError, match="format 'nmt-run 2', expected 'nmt-run 1'"):
        checkpoint.load(run)


def test_code_in_a_checkpoint_is_never_run(run: Path, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (open, (str(tmp_path / "evil"), "w"))  # type: ignore[return-value]

    for path in run.glob("step-*.pt"):
        torch.save({"x": Evil()}, path)
    with pytest.raises(CheckpointError, match="damaged or not a checkpoint"):
        checkpoint.load(run)
    assert not (tmp_path / "evil").exists()


def test_foreign_weights_are_refused(run: Path) -> None:
    for path in run.glob("step-*.pt"):
        checkpoint.save_tensors({"a": torch.zeros(1)}, path)
    with pytest.raises(CheckpointError, match="do not fit"):
        checkpoint.load(run)


def test_missing_things_are_named(run: Path, tmp_path: Path) -> None:
    for directory, message in ((tmp_path / "nosuch", "no such run directory"), (tmp_path, "not a run directory")):
        with pytest.raises(CheckpointError, match=message):
            checkpoint.load(directory)
    with pytest.raises(CheckpointError, match=r"step-7\.pt: not there"):
        checkpoint.load(run, "7")
    with pytest.raises(CheckpointError, match="cannot find checkpoint 'newest'"):
        checkpoint.load(run, "newest")
    (run / "checkpoints.json").unlink()
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        checkpoint.load(run)
