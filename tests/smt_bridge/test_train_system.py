"""The folder of smt-train: one process at a time, nobody else's files."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.io import locks
from nmt.work.executors import ExecutorConfig
from smt_bridge import train_system
from smt_bridge.config import TrainConfig
from smt_bridge.extraction.config import ExtractConfig, PruneConfig
from smt_bridge.tables.filter import Filtering
from smt_bridge.tables.pruning import prune_tables
from smt_bridge.train_system import EXTRACTION, REORDERING, TABLE, UNPRUNED, record_settings, train
from tests.smt_bridge.extraction.test_tables import random_corpus, write


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    for name in ("source", "target"):
        (tmp_path / name).write_text("a b\n")
    return TrainConfig(str(tmp_path / "source"), str(tmp_path / "target"))


def test_one_process_at_a_time(config: TrainConfig, tmp_path: Path) -> None:
    with (
        locks.locked(tmp_path / "model", "smt-train"),
        pytest.raises(UserError, match="model: in use by smt-train, process"),
    ):
        train(tmp_path / "model", config)
    assert not (tmp_path / "model").exists()


def test_nobody_elses_folder_is_touched(config: TrainConfig, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.part1").write_text("x")
    with pytest.raises(ConfigError, match="is not empty, and not a folder of smt-train"):
        train(tmp_path / "mine", config)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.part1"]


def test_only_its_own_parts_are_swept(config: TrainConfig, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    record_settings(model, config)
    for name in ("notes.part1", "phrase-table.gz.part.gz.part7-1", "lm.arpa.gz.part7-0"):
        (model / name).write_text("x")
    record_settings(model, config)
    assert sorted(path.name for path in model.iterdir()) == ["notes.part1", "train.json"]


def test_other_settings_and_texts_are_refused(config: TrainConfig, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    record_settings(model, config)
    record_settings(model, replace(config, extract=ExtractConfig(memory=2.0)))  # affects no result
    with pytest.raises(ConfigError, match=f"{model}: was started with another order, extract; name"):
        record_settings(model, replace(config, order=2, extract=ExtractConfig(max_length=3)))
    Path(config.source).write_text("a c\n")
    with pytest.raises(ConfigError, match="was started with another source; name"):
        record_settings(model, config)


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000])
def test_damaged_settings(text: str, config: TrainConfig, tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text(text)
    with pytest.raises(DataError, match=r"train\.json: damaged; remove"):
        record_settings(tmp_path, config)


def test_settings_out_of_range(config: TrainConfig, tmp_path: Path) -> None:
    config.extract = ExtractConfig(max_length=9)
    with pytest.raises(ConfigError, match=r"extract\.max_length: 9 is out of range, expected 1 to 8"):
        train(tmp_path / "model", config)
    assert not (tmp_path / "model").exists()


def pruned_config(folder: Path) -> TrainConfig:
    inputs = write([(["a", "b"], ["x", "y"], [(0, 0), (1, 1)]), (["b"], ["y"], [(0, 0)])] * 3, folder)
    return TrainConfig(
        inputs.source, inputs.target, inputs.alignment, order=2, prune=PruneConfig(prune_significance="1")
    )


def tables(folder: Path) -> list[bytes]:
    return [gzip.decompress((folder / name).read_bytes()) for name in (TABLE, REORDERING)]


def test_pruned_tables_are_those_of_filtering(tmp_path: Path) -> None:
    """And the unpruned ones are gone."""
    config = pruned_config(tmp_path)
    train(tmp_path / "pruned", config)
    train(tmp_path / "full", replace(config, prune=PruneConfig()))
    full = tmp_path / "full"
    paths = Filtering(full / TABLE, full / "t.gz", full / REORDERING, full / "r.gz")
    kept = prune_tables(paths, None, config.prune, (config.source, config.target))
    assert 0 < kept < tables(full)[0].count(b"\n")
    assert tables(tmp_path / "pruned") == [
        gzip.decompress((full / name).read_bytes()) for name in ("t.gz", "r.gz")
    ]
    assert not list((tmp_path / "pruned").glob("*unpruned*"))
    with pytest.raises(ConfigError, match="was started with another prune"):
        train(tmp_path / "pruned", replace(config, prune=PruneConfig(prune_count=2)))


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_pruned_training_resumes_after_any_step(
    steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same bytes; tables that are not needed are removed even if training was killed before."""
    config = pruned_config(tmp_path)
    train(tmp_path / "whole", config)

    class Killed(BaseException):
        pass

    left = iter(range(steps))

    def kill() -> None:
        if next(left) == steps - 1:
            raise Killed

    with monkeypatch.context() as changed:
        changed.setattr(train_system, "remove_unpruned", lambda folder: None)
        with pytest.raises(Killed):
            train(tmp_path / "model", config, on_step=kill)
    assert (tmp_path / "model" / UNPRUNED).exists() == (steps > 1)
    train(tmp_path / "model", config)
    names = sorted(path.name for path in (tmp_path / "whole").iterdir() if path.name != locks.FILE)
    assert names == sorted(path.name for path in (tmp_path / "model").iterdir() if path.name != locks.FILE)
    for name in names:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "model" / name).read_bytes(), name


def test_nothing_is_left_of_a_table(tmp_path: Path) -> None:
    config = replace(pruned_config(tmp_path), prune=PruneConfig(prune_significance="99"))
    with pytest.raises(DataError, match=r"phrase-table\.unpruned\.gz: no pair is left after pruning"):
        train(tmp_path / "model", config)
    assert not (tmp_path / "model" / TABLE).exists()
    config.prune.prune_significance = "b"
    with pytest.raises(ConfigError, match="prune_significance: 'b'"):
        train(tmp_path / "new", config)
    assert not (tmp_path / "new").exists()


@pytest.mark.ci
def test_several_workers_make_the_same_model(tmp_path: Path) -> None:
    """Also where they were killed, and one process alone resumes: here with a folder that is just begun."""
    inputs = write(random_corpus(3, 40, 8), tmp_path)
    config = TrainConfig(inputs.source, inputs.target, inputs.alignment, order=2)
    train(tmp_path / "one", config)
    train(tmp_path / "two", config, ExecutorConfig(workers=2))
    (tmp_path / "two" / TABLE).unlink()
    (tmp_path / "two" / EXTRACTION).mkdir()
    train(tmp_path / "two", config)
    names = [path.name for path in (tmp_path / "one").iterdir()]
    assert sorted(names) == sorted(path.name for path in (tmp_path / "two").iterdir())
    for name in names:
        if not name.startswith("."):
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
