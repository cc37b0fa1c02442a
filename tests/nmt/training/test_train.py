"""Training from Python: runs are made, resumed and refused; models and batches of a configuration; the files
that a training reads."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar, cast

import pytest
import torch

import nmt
from nmt.analysis import history
from nmt.cli import train
from nmt.compute import device
from nmt.data.batches import BatchStream
from nmt.data.corpus import CorpusConfig, DataConfig
from nmt.data.running import ChunkStream
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.io import manifest
from nmt.models.config import RNNConfig
from nmt.models.registry import MODELS
from nmt.models.rnn import RNNTranslator
from nmt.runs import directory as run_directory
from nmt.text.pipeline import SideConfig
from nmt.training import build, config_file
from nmt.training.config import RunConfig
from nmt.training.job import TrainingJob, TrainingProgress
from nmt.training.protocols import Callback
from nmt.training.state import Clock
from nmt.training.train import report_end, run_training
from tests.nmt.training.jobs import make_job

TINY = {"embedding": 4, "hidden": 4, "maxout": 4}


@pytest.fixture
def data(tmp_path: Path) -> dict[str, object]:
    for name in ("source", "target"):
        (tmp_path / name).write_text("a b c\nb c\nc a\nb\n" * 5)
    sides = {"source": {"language": "en"}, "target": {"language": "fr"}}
    return {"train_source": str(tmp_path / "source"), "train_target": str(tmp_path / "target"), **sides}


def settings(data: dict[str, object], tmp_path: Path, steps: int) -> dict[str, object]:
    training = {"max_steps": steps, "batch_size": 4, "tensorboard": False}
    return {"run": str(tmp_path / "run"), "data": data, "model": TINY, "training": training, "matmul": "mkl"}


@pytest.mark.ci
def test_a_run_is_made_resumed_and_made_afresh(data: dict[str, object], tmp_path: Path) -> None:
    assert nmt.train(settings(data, tmp_path, 3)).members[0].step == 3
    run = nmt.train(settings(data, tmp_path, 5))
    assert run.members[0].step == 5 and len(run.translate(["a b", ""])) == 2
    assert nmt.train(settings(data, tmp_path, 2), overwrite=True).members[0].step == 2
    with pytest.raises(ConfigError, match=r"was started with other settings: model\.hidden=5"):
        nmt.train({**settings(data, tmp_path, 4), "model": {**TINY, "hidden": 5}})
    assert (tmp_path / "run" / "version").read_text() == "nmt-run 2\n"


@pytest.mark.ci
@pytest.mark.parametrize("model", ["rnn", "lm"])
def test_batches_by_tokens_are_resumed_exactly(data: dict[str, object], tmp_path: Path, model: str) -> None:
    """Stopped in the middle of an epoch, and at its end: the same weights as of a run that never stopped."""
    given = settings(data, tmp_path, 0)
    training = {"batch_tokens": 9, "pool": 3, "max_epochs": 3, "validate_every": 0, "tensorboard": False}
    if model == "lm":
        text = {"train_text": data["train_target"], "target": data["target"]}
        lm = {"type": "cslm", "embedding": 4, "layers": [4], "order": 3}
        given = {"data": text, "lm": lm, "matmul": "mkl"}
    found = []
    for run, limits in (("whole", [0]), ("parts", [1, 4, 9, 0])):
        for limit in limits:
            place = {"run": str(tmp_path / run), "training": {**training, "max_steps": limit}}
            (nmt.train if model == "rnn" else nmt.train_language_model)({**given, **place})
        (weights,) = (tmp_path / run).glob("step-*.pt")
        found.append((weights.name, torch.load(weights, weights_only=True)))
    assert found[0][0] == found[1][0] and found[0][1].keys() == found[1][1].keys()
    assert all(torch.equal(value, found[1][1][name]) for name, value in found[0][1].items())


def test_stop_ends_a_training_with_a_save(data: dict[str, object], tmp_path: Path) -> None:
    asked: list[bool] = []

    def stop() -> bool:
        asked.append(len(asked) == 2)
        return asked[-1]

    assert nmt.train(settings(data, tmp_path, 50), stop=stop).members[0].step == 3


def test_callbacks_get_what_the_logs_have(data: dict[str, object], tmp_path: Path) -> None:
    """Also of a resumed run, only its own part; `nmt.analysis.history` reads the same."""
    data |= {"dev_source": data["train_source"], "dev_target": data["train_target"]}
    seen: list[tuple[str, int, dict[str, float]]] = []

    def follow(kind: str, step: int, values: Mapping[str, float]) -> None:
        seen.append((kind, step, dict(values)))

    for steps in (4, 6):
        given = settings(data, tmp_path, steps)
        given["training"] = {
            "max_steps": steps, "batch_size": 4, "tensorboard": False, "log_every": 1, "validate_every": 2,
            "dev_beam": 2, "bleu_tokenizer": "none",
        }  # fmt: skip
        nmt.train(given, callbacks=[follow], progress=False)
    (curves,) = history(nmt.Run.load(tmp_path / "run")).curves.values()
    for kind, name, curve in (
        ("train", "cost", "train cost"), ("dev", "cost", "dev cost"), ("dev", "bleu", "dev BLEU"),
    ):  # fmt: skip
        points = [(step, values[name]) for seen_kind, step, values in seen if seen_kind == kind]
        assert [step for step, _ in points] == ([1, 2, 3, 4, 5, 6] if kind == "train" else [2, 4, 6])
        assert [value for _, value in points] == pytest.approx([y for _, y in curves[curve]], abs=1e-4)
    assert set(seen[0][2]) == {"cost", "norm", "rate", "words_per_second"}


def test_an_error_of_a_callback_ends_a_training_that_can_go_on(
    data: dict[str, object], tmp_path: Path
) -> None:
    def fail(kind: str, step: int, values: Mapping[str, float]) -> None:
        raise RuntimeError("the service is gone")

    given = settings(data, tmp_path, 3)
    given["training"] = {"max_steps": 3, "batch_size": 4, "tensorboard": False, "log_every": 2}
    with pytest.raises(RuntimeError, match="the service is gone"):
        nmt.train(given, callbacks=[fail])
    assert nmt.train(given).members[0].step == 3


def test_a_limit_is_not_reached_before_the_last_update_is_validated(
    data: dict[str, object], tmp_path: Path
) -> None:
    """A signal saves without a validation."""
    data |= {"dev_source": data["train_source"], "dev_target": data["train_target"]}
    given = settings(data, tmp_path, 3)
    given["training"] = {"max_steps": 3, "dev_beam": 0, "metric": "cost", "tensorboard": False}
    nmt.train(given, stop=partial(next, iter([False, False, True])))
    rows = (tmp_path / "run" / "dev.tsv").read_text
    assert rows().count("\n") == 1
    nmt.train(given)
    assert rows().count("\n") == 2 and rows().split("\n")[1].startswith("3\t")


class Listening(RNNTranslator, Callback):
    """A model that notes what the training loop tells it."""

    said: ClassVar[list[int]] = []

    def on_start(self, epoch_updates: int) -> None:
        self.said.append(-epoch_updates)

    def on_update(self, step: int) -> None:
        self.said.append(step)


def test_a_model_is_told_of_each_start_and_update(
    data: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20 pairs in batches of 4, and a start that goes on."""
    monkeypatch.setitem(MODELS, "rnn", Listening)
    monkeypatch.setattr(Listening, "said", list[int]())
    for steps in (2, 3):
        nmt.train(settings(data, tmp_path, steps))
    assert Listening.said == [-5, 1, 2, -5, 3]


class HalfASecond(Clock):
    """A clock on which each update takes half a second."""

    def __init__(self, before: float, words: int = 0) -> None:
        super().__init__(0, words)
        self.earlier = before

    def seconds(self) -> float:
        return self.earlier + 0.5 * self.updates


@pytest.mark.ci
def test_a_rate_that_follows_the_clock_is_resumed_exactly(
    data: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time that has passed is a part of the saved state; the rate has fallen to 0 when it is over."""
    monkeypatch.setattr("nmt.training.state.Clock", HalfASecond)
    timed = {"schedule": "linear", "max_minutes": 0.1, "batch_size": 4, "log_every": 1, "tensorboard": False}
    weights = []
    for run, stops in (("whole", []), ("parts", [2, 7])):
        given = {**settings(data, tmp_path, 0), "run": str(tmp_path / run), "training": timed}
        for update in [*stops, 99]:
            nmt.train(given, stop=partial(next, iter([False] * (update - 1) + [True])))
        weights.append(torch.load(tmp_path / run / "step-12.pt", weights_only=True))
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())
    rows = [line.split("\t") for line in (tmp_path / "parts" / "train.tsv").read_text().splitlines()[1:]]
    assert [float(row[5]) for row in rows] == pytest.approx(
        [1 - update / 12 for update in range(12)], abs=1e-5
    )


@pytest.mark.parametrize("limit", ["max_minutes", "max_steps"])
def test_a_training_that_is_over_loads_nothing(
    limit: str, data: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = settings(data, tmp_path, 3)
    nmt.train(given)
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").glob("[a-z]*.*")}
    broken = replace(build.KINDS["translator"], build=cast(Callable[[TrainingJob], None], None))
    monkeypatch.setitem(build.KINDS, "translator", broken)
    limits = {"max_steps": 3} if limit == "max_steps" else {"max_steps": 0, "max_minutes": 1e-9}
    again = {**given, "training": {"batch_size": 4, "tensorboard": False, **limits}}
    assert run_training(config_file.from_mapping(again)).startswith(limit)
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "run").glob("[a-z]*.*")}
    with pytest.raises(TypeError, match="not callable"):  # there is something left to do
        nmt.train(settings(data, tmp_path, 4))


def test_what_is_wrong_is_one_line_before_any_work(data: dict[str, object], tmp_path: Path) -> None:
    good = settings(data, tmp_path, 3)
    text = {"data": {"train_text": data["train_source"]}, "lm": {"type": "cslm"}, "run": good["run"]}
    with pytest.raises(ConfigError, match="a language model; train it by train_language_model"):
        nmt.train(text)
    with pytest.raises(ConfigError, match=r"a translator; train it by train$"):
        nmt.train_language_model(good)
    with pytest.raises(ConfigError, match="a joint model; train it by nmt-train"):
        nmt.train_language_model({**good, "model": {"type": "joint"}})
    with pytest.raises(DataError, match="none"):
        nmt.train({**good, "data": {**data, "train_source": str(tmp_path / "none")}})
    with pytest.raises(ConfigError, match="is the run directory; name a folder of its own"):
        nmt.train({**good, "data": {**data, "cache": good["run"]}})
    assert not (tmp_path / "run").exists()


# ---- models and batches ------------------------------------------------------------------------------------
# Made once with the run directory, found again when a training is resumed.


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
    assert build.corpus_folder(config) == folder / "cache"
    assert (folder / "cache").is_dir() and not (folder / "run" / run_directory.DATA).exists()
    config.data.cache = ""
    assert build.corpus_folder(config) == folder / "run" / run_directory.DATA


@pytest.mark.parametrize(
    ("progress", "end"),
    [
        (TrainingProgress(step=9), ""),
        (TrainingProgress(step=9, best=-2.5, best_step=6), ", best 2.5000 cost at update 6"),
    ],
)
def test_only_a_validation_has_an_update_of_its_own(
    progress: TrainingProgress, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="nmt"):
        report_end(make_job(metric="cost"), progress, "max_epochs 3")
    assert caplog.messages[0] == f"stopped at update 9 (max_epochs 3){end}"


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


@pytest.mark.ci
def test_a_resumed_child_needs_its_parent_no_more(folder: Path) -> None:
    def train_run(name: str, steps: int, parent: str = "") -> None:
        training = {"max_steps": steps, "tensorboard": False, "dev_beam": 0, "metric": "cost"}
        nmt.train(config_of(folder, name, training=training, init_from=parent, matmul="mkl"))

    parent = folder / "parent"
    train_run("parent", 1)
    train_run("child", 1, str(parent))
    parent.rename(folder / "gone")
    train_run("child", 2, str(parent))
    assert (folder / "child" / "step-2.pt").exists()


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


# ---- files that a training reads ---------------------------------------------------------------------------


@pytest.fixture
def stamped(tmp_path: Path) -> DataConfig:
    for name in ("s", "t", "d", "e"):
        (tmp_path / name).write_text(f"{name}\n")
    config = DataConfig(
        train_source=str(tmp_path / "s"),
        train_target=str(tmp_path / "t"),
        dev_source=str(tmp_path / "d"),
        dev_target=str(tmp_path / "e"),
    )
    with run_directory.writing(tmp_path / "run") as new:
        build.save_stamps(build.take_stamps(config), new)
    return config


@pytest.mark.parametrize("name", ["s", "t", "d", "e"])
def test_another_text_is_refused(name: str, stamped: DataConfig, tmp_path: Path) -> None:
    build.check_inputs(stamped, tmp_path / "run")
    os.utime(tmp_path / name, ns=(5, 5))
    build.check_inputs(stamped, tmp_path / "run")  # copied or touched: the text is the same
    (tmp_path / name).write_text("X\n")
    with pytest.raises(
        DataError,
        match=rf"/{name}: has changed since .*run was started with it \(data\.(train|dev)_(source|target)\)",
    ):
        build.check_inputs(stamped, tmp_path / "run")
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=f"/{name}: cannot read"):
        build.check_inputs(stamped, tmp_path / "run")


def test_the_corpora_of_a_list_are_noted_too(tmp_path: Path) -> None:
    for name in ("s", "t", "a", "u", "v", "b"):
        (tmp_path / name).write_text(f"{name}\n")
    first, second = (
        CorpusConfig(
            source=str(tmp_path / source), target=str(tmp_path / target), alignment=str(tmp_path / links)
        )
        for source, target, links in ("sta", "uvb")
    )
    config = DataConfig(corpora=[first, second])
    with run_directory.writing(tmp_path / "run") as new:
        build.save_stamps(build.take_stamps(config), new)
    build.check_inputs(config, tmp_path / "run")
    for name, key in (("b", "alignment"), ("v", "target")):
        (tmp_path / name).write_text("X\n")
        with pytest.raises(DataError, match=rf"/{name}: has changed since .* \(data\.corpora\[1\]\.{key}\)"):
            build.check_inputs(config, tmp_path / "run")


def test_damaged_stamps_are_refused(stamped: DataConfig, tmp_path: Path) -> None:
    for text in ("", "[]", "5", '{"train_source": 5}', "[" * 9000):
        (tmp_path / "run" / "inputs.json").write_text(text)
        manifest.write(tmp_path / "run", ["inputs.json"])
        if text != "[]":
            with pytest.raises(CheckpointError, match=r"inputs\.json: damaged"):
                build.check_inputs(stamped, tmp_path / "run")


def test_of_pipes_nothing_is_noted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert build.take_stamps(DataConfig(train_text=str(tmp_path / "pipe"), dev_text="-")) == {}


# ---- new run -----------------------------------------------------------------------------------------------
# Nothing that nmt-train reads is in the folder that it makes.


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    for name in ("text", "run/text", "run/config.yaml", "config.yaml"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "run" / "text")
    return tmp_path


TEXT_KEYS = (
    "train_source train_target dev_source dev_target phrase_table train_text dev_text alignment dev_alignment"
).split()


@pytest.mark.parametrize("key", TEXT_KEYS)
@pytest.mark.parametrize("name", ["run/text", "link", "run"])
def test_no_text_lies_in_the_folder_that_is_made(run_folder: Path, key: str, name: str) -> None:
    data = DataConfig()
    setattr(data, key, str(run_folder / name))
    config = RunConfig(run=str(run_folder / "run"), data=data)
    with pytest.raises(ConfigError, match=f"data.{key} .*lies in the run directory"):
        build.check_new_run(config, str(run_folder / "config.yaml"))


def test_nor_do_the_corpora_of_a_list(run_folder: Path) -> None:
    good = CorpusConfig(source=str(run_folder / "text"), target=str(run_folder / "text"))
    inside = CorpusConfig(source=str(run_folder / "text"), target=str(run_folder / "run" / "text"))
    config = RunConfig(run=str(run_folder / "run"), data=DataConfig(corpora=[good, inside]))
    with pytest.raises(ConfigError, match=r"data\.corpora\[1\]\.target .*lies in the run directory"):
        build.check_new_run(config, str(run_folder / "config.yaml"))


def test_nor_do_vocabularies_codes_weights_and_the_configuration(run_folder: Path) -> None:
    inside, run = str(run_folder / "run" / "text"), str(run_folder / "run")
    for data in (
        DataConfig(source=SideConfig(vocab_file=inside)),
        DataConfig(target=SideConfig(codes=f"{run}/none")),
    ):
        with pytest.raises(ConfigError, match="lies in the run directory"):
            build.check_new_run(RunConfig(run=run, data=data), str(run_folder / "config.yaml"))
    (run_folder / "run" / "version").write_text("nmt-run 2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="init_from"):
        build.check_new_run(RunConfig(run=run, init_from=run), str(run_folder / "config.yaml"))
    with pytest.raises(CheckpointError, match="no such run directory"):
        build.check_new_run(
            RunConfig(run=run, init_from=str(run_folder / "none")), str(run_folder / "config.yaml")
        )
    with pytest.raises(ConfigError, match=r"CONFIG\.yaml"):
        build.check_new_run(RunConfig(run=run), str(run_folder / "run" / "config.yaml"))
    build.check_new_run(
        RunConfig(run=run, data=DataConfig(source=SideConfig("en"), train_source=str(run_folder / "text"))),
        str(run_folder / "config.yaml"),
    )


@pytest.mark.parametrize("option", [[], ["--overwrite"]])
def test_the_command_leaves_what_it_refuses_to_read(
    run_folder: Path, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The user's configuration in the folder of the run would be replaced by the resolved one."""
    given = run_folder / "run" / "config.yaml"
    given.write_text(
        f"run: {run_folder}/run\n"
        f"data: {{train_source: {run_folder}/text, train_target: {run_folder}/text}}\n",
        encoding="utf-8",
    )
    before = given.read_bytes()
    assert train.main([str(given), *option]) == 2
    assert (
        "lies in the run directory" in capsys.readouterr().err
        and given.read_bytes() == before
        and (run_folder / "run" / "text").exists()
    )
