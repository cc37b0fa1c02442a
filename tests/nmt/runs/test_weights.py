"""Weights as files: written whole, read as written, averaged exactly."""

import logging
from pathlib import Path

import pytest
import torch
from torch import nn

from nmt.errors import CheckpointError
from nmt.runs import weights
from nmt.runs.weights import choose_checkpoints, save_average

# ---- test weights ------------------------------------------------------------------------------------------


def test_what_is_written_is_read(tmp_path: Path) -> None:
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    weights.save_tensors(model.state_dict(), tmp_path / "step-1.pt")
    weights.load_weights(other, tmp_path / "step-1.pt")
    assert torch.equal(model.weight, other.weight) and torch.equal(model.bias, other.bias)
    assert [path.name for path in tmp_path.iterdir()] == ["step-1.pt"]  # no file beside it


def test_an_average_is_the_mean_in_double_precision(tmp_path: Path) -> None:
    """In float32 the sum of 2^24 and 1 is 2^24."""
    paths = [tmp_path / f"step-{number}.pt" for number in range(3)]
    for path, value in zip(paths, (2.0**24, 1.0, 1.0), strict=True):
        weights.save_tensors({"a": torch.full((2,), value)}, path)
    expected = torch.tensor((2.0**24 + 2) / 3, dtype=torch.float64).to(torch.float32)
    assert weights.average_weights(paths)["a"].tolist() == [expected.item()] * 2
    weights.save_tensors({"a": torch.zeros(3)}, paths[1])
    with pytest.raises(CheckpointError, match="not of the same model"):
        weights.average_weights(paths)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "step-1.pt"
    weights.save_tensors({"a": torch.zeros(100)}, path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"step-1\.pt: damaged"):
        weights.load_tensors(path)


def test_the_classes_of_an_output_layer_are_kept_and_have_no_mean(tmp_path: Path) -> None:
    first, second = ({"rows": torch.full((2,), float(n)), "leaf": torch.tensor([1, 0])} for n in (1, 3))
    for number, value in enumerate((first, second, {**second, "leaf": torch.tensor([0, 1])})):
        weights.save_tensors(value, tmp_path / f"{number}.pt")
    paths = [tmp_path / f"{number}.pt" for number in range(3)]
    mean = weights.average_weights(paths[:2])
    assert torch.equal(mean["leaf"], first["leaf"]) and mean["rows"].tolist() == [2, 2]
    with pytest.raises(CheckpointError, match=r"2\.pt: its leaf is not that of .*0\.pt"):
        weights.average_weights(paths)


# ---- test averaging ----------------------------------------------------------------------------------------
# Which checkpoints are averaged.


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for step in (5, 10, 20, 100):
        (tmp_path / f"step-{step}.pt").touch()
    return tmp_path


def test_the_newest_by_number_oldest_first(run: Path) -> None:
    assert choose_checkpoints(run, None, 3) == [10, 20, 100]
    assert choose_checkpoints(run, None, 4) == [5, 10, 20, 100]


def test_those_that_are_named_each_once(run: Path) -> None:
    assert choose_checkpoints(run, [100, 5, 100], 99) == [5, 100]


def test_what_is_not_there_is_named_with_what_is(run: Path) -> None:
    with pytest.raises(CheckpointError, match="update 7 asked for, but it holds updates 5, 10, 20, 100"):
        choose_checkpoints(run, [5, 9, 7], 1)
    with pytest.raises(CheckpointError, match="checkpoints asked for, but it holds updates none"):
        choose_checkpoints(run / "empty", None, 5)


def test_fewer_than_asked_for_are_averaged_and_reported(
    run: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("nmt"), "propagate", True)
    assert choose_checkpoints(run, None, 5) == [5, 10, 20, 100]
    assert "holds 4 checkpoints, not 5" in caplog.text


def test_nothing_is_left_of_an_average_that_cannot_be_written(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(value: object, path: Path) -> None:
        raise CheckpointError("disk full")

    for name in ("version", "matmul.tsv"):
        (run / name).write_text("nmt-run 2\n")
    monkeypatch.setattr("nmt.runs.weights.save_tensors", full)
    output = tmp_path / "average"
    output.mkdir()
    with pytest.raises(CheckpointError, match="disk full"):
        save_average(run, output, 5, {})
    assert not any(output.iterdir())
