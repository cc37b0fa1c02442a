"""The parts of a training: made once with its run directory, found again when it is resumed."""

from pathlib import Path

import pytest
import torch

import nmt
from nmt.compute import device
from nmt.data.batches import BatchStream
from nmt.data.running import ChunkStream
from nmt.errors import ConfigError
from nmt.models.config import RNNConfig
from nmt.runs import directory as run_directory
from nmt.training import build, config_file
from nmt.training.config import RunConfig
from nmt.training.job import TrainingJob

LINES = "a b c\nb c\nc a\nb\n" * 5


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("s.en", "t.fr", "dev.en", "dev.fr"):
        (tmp_path / name).write_text(LINES)
    return tmp_path


def config_of(folder: Path, run: str = "run", dev: bool = True, **more: object) -> RunConfig:
    data = {"train_source": str(folder / "s.en"), "train_target": str(folder / "t.fr")}
    if dev:
        data |= {"dev_source": str(folder / "dev.en"), "dev_target": str(folder / "dev.fr")}
    sizes = {"embedding": 4, "hidden": 4, "maxout": 4}
    training = {"bleu_tokenizer": "none"}  # as resolved when a run begins
    return config_file.from_mapping(
        {"run": str(folder / run), "seed": 3, "data": data, "model": sizes, "training": training, **more}
    )


def lm_config(folder: Path, **lm: object) -> RunConfig:
    return config_file.from_mapping(
        {"run": str(folder / "lm"), "data": {"train_text": str(folder / "t.fr")}, "lm": lm}
    )


def built(config: RunConfig, fresh: bool = True) -> TrainingJob:
    job = TrainingJob(config, config.device, fresh=fresh)
    build.trainable_kind(config.settings).build(job)
    return job


def weights(job: TrainingJob) -> dict[str, torch.Tensor]:
    return dict(job.model.state_dict())


def test_a_translator_is_made_once(folder: Path) -> None:
    """The same seed gives the same weights in another folder; vocabularies are read from the run, not counted
    again."""
    config = config_of(folder)
    job = built(config)
    other = built(config_of(folder, "other"))
    assert all(torch.equal(value, weights(other)[name]) for name, value in weights(job).items())
    assert isinstance(job.stream, BatchStream) and job.validate
    assert job.validate().cost == pytest.approx(other.validate().cost if other.validate else 0)
    assert config_file.load(str(folder / "run" / run_directory.CONFIG)).seed == 3
    (folder / "run" / "source.vocab").write_text(
        (folder / "run" / "source.vocab").read_text().replace("a\t", "q\t"), encoding="utf-8"
    )
    source, target = build.parallel_data(TrainingJob(config), aligned=False).vocabs
    assert "q" in source.ids and "a" not in source.ids and "a" in target.ids


def test_what_is_left_out(folder: Path) -> None:
    """No development set, no validation; another folder for the ids."""
    config = config_of(folder, dev=False)
    config.data.cache = str(folder / "cache")
    job = built(config)
    assert job.validate is None
    assert build.cache_of(config) == folder / "cache"
    assert (folder / "cache").is_dir() and not (folder / "run" / run_directory.DATA).exists()
    config.data.cache = ""
    assert build.cache_of(config) == folder / "run" / run_directory.DATA


def test_weights_of_another_run_are_the_start(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """All of them where the texts are the same; those of another size start afresh, and are named."""
    training = {"max_steps": 2, "batch_size": 4, "tensorboard": False, "dev_beam": 0, "metric": "cost"}
    parent = nmt.train(config_of(folder, "parent", training=training, matmul="mkl")).members[0]
    child = config_of(folder, "child", init_from=str(folder / "parent"))
    found = weights(built(child))
    assert all(torch.equal(value, found[name]) for name, value in parent.model.state_dict().items())
    fresh = weights(built(child, fresh=False))
    assert not all(torch.equal(value, found[name]) for name, value in fresh.items())  # a resumed run
    wider = config_of(folder, "wider", init_from=str(folder / "parent"))
    assert isinstance(wider.model, RNNConfig)
    wider.model.maxout = 6
    with caplog.at_level("WARNING", logger="nmt"):
        built(wider)
    assert "parameters do not fit and start afresh: decoder.output." in caplog.text


@pytest.mark.parametrize(
    ("kind", "stream"),
    [
        ({"type": "cslm", "order": 3, "layers": [4]}, BatchStream),
        ({"type": "recurrent", "hidden": 4, "carry": True, "bptt": 3}, ChunkStream),
        ({"type": "recurrent", "hidden": 4, "carry": False}, BatchStream),
        ({"type": "multiscale", "hidden": 4}, BatchStream),
    ],
)
def test_a_language_model_and_its_batches(kind: dict[str, object], stream: type, folder: Path) -> None:
    config = lm_config(folder, embedding=4, **kind)
    job = built(config)
    assert isinstance(job.stream, stream) and job.stream.count(0) > 0 and job.validate is None
    batch = next(job.stream.batches(0))
    cost, _ = job.model.cost(batch, 0.0, None)
    assert float(cost.detach()) > 0
    assert (folder / "lm" / "dictionary").exists() == (kind["type"] == "multiscale")


def test_a_model_of_the_cpu(folder: Path) -> None:
    config = lm_config(folder, type="multiscale")
    config.device = "cuda"
    with pytest.raises(ConfigError, match="multiscale models train on the CPU only"):
        built(config)
    assert not (folder / "lm").exists()


def test_the_back_end_of_a_processor_is_noted_once(tmp_path: Path) -> None:
    memory = tmp_path / run_directory.BACK_ENDS
    build.remember_back_end(tmp_path)
    found = device.recall_choice(memory)
    assert found and found.back_end == device.back_end_in_use()
    before = memory.read_bytes()
    build.remember_back_end(tmp_path)
    assert memory.read_bytes() == before
