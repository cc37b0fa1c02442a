"""Loading and averaging the weights of runs: complete directories, damaged and foreign files, averages."""

import json
import logging
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

from nmt.compute import device
from nmt.config.settings import number
from nmt.data.corpus import CorpusConfig, DataConfig
from nmt.errors import CheckpointError, ConfigError
from nmt.io import manifest
from nmt.models.config import ModelConfig
from nmt.models.registry import MODELS
from nmt.models.rnn import RNNTranslator
from nmt.models.transformer import TransformerConfig
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.checkpoint import choose_checkpoints, save_average
from nmt.runs.language_model import line_scorer, load_language_model
from nmt.runs.pair import SavedModel
from nmt.runs.run import Run
from nmt.runs.text import load_side
from nmt.text.pipeline import SideConfig
from nmt.text.vocab import Vocab
from nmt.training import config_file
from nmt.training.config import RunConfig

# ---- test checkpoint ---------------------------------------------------------------------------------------


@pytest.fixture
def run(tiny: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny / "run", tmp_path / "run")
    return tmp_path / "run"


def list_files(run: Path) -> None:
    """Write the manifest of a run as its files are now."""
    manifest.write(
        run,
        [
            path.name
            for path in run.iterdir()
            if path.suffix in (".yaml", ".pt", ".vocab") or path.name == "checkpoints.json"
        ],
    )


def test_sides_have_the_tags_of_their_corpora(tmp_path: Path) -> None:
    """The target too, where both sides have one vocabulary; only the source is read with them."""
    for side in ("source", "target"):
        Vocab({"a": 2}, 1).save(tmp_path / f"{side}.vocab")
    plain = SideConfig(normalize=False, tokenize=False)
    data = DataConfig(corpora=[CorpusConfig(tag="<bt>")], source=plain, target=plain)
    for shared in (False, True):
        data.shared_vocabulary = shared
        sides = [load_side(tmp_path, side, data) for side in ("source", "target")]
        assert [pipeline.tags for pipeline, _ in sides] == [("<bt>",), ()]
        assert [vocab.words[3:] for _, vocab in sides] == [["<bt>", "a"], ["<bt>", "a"] if shared else ["a"]]


def test_a_run_directory_is_complete(run: Path) -> None:
    loaded = checkpoint.load(run)
    assert loaded.step == json.loads((run / "checkpoints.json").read_text())["best"]
    assert loaded.source.words("The MAN sees.") == ["the", "man", "sees", "."]
    weights = torch.load(run / f"step-{loaded.step}.pt", weights_only=True)
    assert all(torch.equal(value, weights[name]) for name, value in loaded.model.state_dict().items())
    assert not list(run.glob("*.part*"))


def in_place_of(path: Path, harm: str) -> None:
    """Another kind of file under its name."""
    path.unlink(missing_ok=True)
    if harm == "pipe":
        os.mkfifo(path)
    elif harm == "device":
        path.symlink_to("/dev/zero")
    else:
        elsewhere = path.parent.parent / "secret"
        elsewhere.write_text("root:$6$SECRET:19000:0:99999:7:::\n" * 3)
        path.symlink_to(elsewhere)


def refusal(run: Path) -> str:
    """Why a run cannot be loaded; empty where it can."""
    try:
        checkpoint.load(run)
    except CheckpointError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("harm", ["pipe", "device", "link"])
def test_a_file_that_a_stranger_put_there(harm: str, run: Path) -> None:
    """In place of each file of a run: no pipe is waited for, no device read, and no line of a file elsewhere
    shown."""
    names = sorted(path.name for path in run.iterdir() if path.is_file() and path.name != ".lock")
    assert {"version", "config.yaml", "source.vocab", "checkpoints.json", "matmul.tsv"} <= set(names)
    for name in names:
        hostile = run.parent / "hostile"
        shutil.copytree(run, hostile)
        in_place_of(hostile / name, harm)
        if name == "matmul.tsv":
            assert run_directory.back_ends_file(hostile) is None
        message = refusal(hostile)
        assert "SECRET" not in message
        if harm != "link" or name.endswith(("version", ".yaml", ".vocab", "points.json", "manifest.json")):
            assert name in message
        shutil.rmtree(hostile)


def test_links_that_are_meant(run: Path) -> None:
    """Weights on another disk, a file that the manifest knows, and a link to the run itself."""
    best = f"step-{checkpoint.load(run).step}.pt"
    for name in (best, "source.vocab", "version"):
        (run / name).rename(run.parent / name)
        (run / name).symlink_to(run.parent / name)
    (run.parent / "link").symlink_to(run)
    assert checkpoint.load(run.parent / "link").source_words == Vocab.load(run / "source.vocab")


VERIFIED = ["step-*.pt", "source.vocab", "target.vocab", "config.yaml", "checkpoints.json"]


@pytest.mark.parametrize("name", VERIFIED)
@pytest.mark.ci
def test_truncated_files_give_one_clear_error(run: Path, name: str) -> None:
    """Cut at any byte: of a configuration at every one. Half of it is still YAML, and what is missing would
    get its default."""
    paths = list(run.glob(name))
    whole = {path: path.read_bytes() for path in paths}
    lengths = range(min(map(len, whole.values())))
    for length in lengths if name == "config.yaml" else (0, 1, len(lengths) // 2, len(lengths) - 1):
        for path in paths:
            path.write_bytes(whole[path][:length])
        with pytest.raises(CheckpointError) as error:
            checkpoint.read_config(run) if name == "config.yaml" and length % 500 else checkpoint.load(run)
        assert str(run / name.split("*")[0]) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("name", VERIFIED)
def test_a_flipped_bit_is_seen(run: Path, name: str) -> None:
    """Also where the file still reads as before: in a weight, a count, a blank of the configuration."""
    for path in run.glob(name):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    with pytest.raises(CheckpointError, match="damaged: size or checksum is not the one"):
        checkpoint.load(run)


def test_a_run_without_a_manifest_is_refused(run: Path) -> None:
    (run / "manifest.json").unlink()
    with pytest.raises(CheckpointError, match=r"manifest\.json: missing"):
        checkpoint.load(run)


def test_a_run_of_another_format_is_refused(run: Path) -> None:
    for old in (1, 3):
        (run / "version").write_text(f"nmt-run {old}\n")
        with pytest.raises(CheckpointError) as error:
            checkpoint.load(run)
        assert str(error.value) == (
            f"{run}/version: format 'nmt-run {old}', this version reads 'nmt-run 2': train again, or use "
            "the version that wrote it"
        )


def test_values_out_of_range_in_a_configuration_are_refused(run: Path) -> None:
    path = run / "config.yaml"
    text = path.read_text()
    for line, other in (
        ("hidden: 24", "hidden: -24"),
        ("vocabulary: 30000", "vocabulary: -5"),
        ("dropout: 0.1", "dropout: .nan"),
        ("hidden: 24", "hidden: ${oc.env:X}"),
    ):
        assert line in text
        path.write_text(text.replace(line, other))
        list_files(run)
        with pytest.raises(CheckpointError, match=r"config\.yaml: damaged configuration"):
            checkpoint.read_config(run)


def test_a_save_in_the_midst_of_loading_is_no_half_state(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A training takes away the weights that the index has just named: the newer ones are loaded, and no lock
    is needed."""
    find, saves = run_directory.find_step, iter([61, 62])

    def racing(directory: Path, which: str) -> int:
        step = find(directory, which)
        if newer := next(saves, 0):
            with run_directory.writing(directory, drop=(f"step-{step}.pt",)) as new:
                shutil.copy(directory / f"step-{step}.pt", new / f"step-{newer}.pt")
                run_directory.write_index(new, newer, newer)
        return step

    monkeypatch.setattr("nmt.runs.directory.find_step", racing)
    assert checkpoint.load(run).step == 62


def test_code_in_a_checkpoint_is_never_run(run: Path, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (open, (str(tmp_path / "evil"), "w"))  # type: ignore[return-value]

    for path in run.glob("step-*.pt"):
        torch.save({"x": Evil()}, path)
    list_files(run)
    with pytest.raises(CheckpointError, match="damaged or not a checkpoint"):
        checkpoint.load(run)
    assert not (tmp_path / "evil").exists()


def test_foreign_weights_are_refused(run: Path) -> None:
    for path in run.glob("step-*.pt"):
        checkpoint.save_tensors({"a": torch.zeros(1)}, path)
    list_files(run)
    with pytest.raises(CheckpointError, match="do not fit"):
        checkpoint.load(run)


def test_missing_things_are_named(run: Path, tmp_path: Path) -> None:
    for directory, message in (
        (tmp_path / "nosuch", "no such run directory"),
        (tmp_path, "not a run directory"),
        (Path(__file__), "is a file, expected a run directory"),
    ):
        with pytest.raises(CheckpointError, match=message):
            checkpoint.load(directory)
    with pytest.raises(CheckpointError, match=r"no checkpoint of update 7; it has those of 60 "):
        checkpoint.load(run, "7")
    with pytest.raises(CheckpointError, match="cannot find checkpoint 'newest'"):
        checkpoint.load(run, "newest")
    (run / "checkpoints.json").unlink()
    with pytest.raises(CheckpointError, match="no checkpoint yet"):
        checkpoint.load(run)


# ---- test saved --------------------------------------------------------------------------------------------
# What all trained models have in common.


def test_results_name_the_run_and_the_update_and_depend_on_their_files(tmp_path: Path) -> None:
    saved = SavedModel()
    saved.directory, saved.step = tmp_path / "en-fr", 20
    saved.directory.mkdir()
    for name in ("config.yaml", "source.vocab", "step-10.pt", "step-20.pt", "train.tsv"):
        (saved.directory / name).touch()
    assert saved.name == "en-fr@20"
    assert [path.name for path in saved.files()] == ["config.yaml", "source.vocab", "step-20.pt"]


# ---- test sections -----------------------------------------------------------------------------------------
# What a run trains is named by the type of its section, also where a plugin adds the type.


@dataclass
class ToyConfig(ModelConfig):
    """The section `model` of a toy."""

    width: int = number(4, least=1)


class Toy(RNNTranslator):
    """A model of a plugin."""

    Config = ToyConfig  # type: ignore[assignment]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "toy", Toy)


def load(folder: Path, text: str, *overrides: str) -> RunConfig:
    (folder / "c.yaml").write_text(text)
    return config_file.load(str(folder / "c.yaml"), overrides)


@pytest.mark.usefixtures("toy")
def test_the_keys_are_those_of_the_type(tmp_path: Path) -> None:
    found = load(tmp_path, "run: r\nmodel: {type: toy, width: 9}\n")
    assert found.model == ToyConfig(type="toy", width=9)
    assert load(tmp_path, config_file.to_yaml(found)) == found
    assert load(tmp_path, "run: r\n", "model.type=toy", "model.width=3").model == ToyConfig("toy", 3)
    with pytest.raises(
        ConfigError, match=r"c\.yaml:2: unknown key 'model\.widht', did you mean 'model\.width'"
    ):
        load(tmp_path, "run: r\nmodel: {type: toy, widht: 9}\n")
    with pytest.raises(ConfigError, match=r"c\.yaml:2: unknown key 'model\.hidden'"):
        load(tmp_path, "run: r\nmodel: {type: toy, hidden: 9}\n")
    with pytest.raises(ConfigError, match=r"^model\.width=0: model\.width: 0 is out of range"):
        load(tmp_path, "run: r\nmodel: {type: toy}\n", "model.width=0")


def test_a_preset_leaves_out_the_section_that_is_not_trained(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("run: r\nlm: {type: cslm}\n")
    found = config_file.load(str(tmp_path / "c.yaml"), preset="small")
    assert found.model is None and found.training.optimizer == "adam"
    assert load(tmp_path, "run: r\nlm: {type: cslm}\nmodel:\n").model is None  # an empty section is none


def test_a_preset_may_name_the_type(tmp_path: Path) -> None:
    """Its section is that of its type, whatever else the file gives; another type is refused by name."""
    (tmp_path / "c.yaml").write_text("run: r\nmodel: {feed_forward: 7}\n")
    found = config_file.load(str(tmp_path / "c.yaml"), preset="transformer-small")
    assert isinstance(found.model, TransformerConfig)
    assert (found.model.type, found.model.feed_forward, found.model.heads) == ("transformer", 7, 4)
    assert found.training.beta2 == 0.98 and found.training.keep == 10
    with pytest.raises(ConfigError, match=r"small\.yaml: unknown key 'model\.encoder'"):
        config_file.load(str(tmp_path / "c.yaml"), ["model.type=transformer"], preset="small")


def test_a_run_of_a_plugin_that_is_not_loaded_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(MODELS, "toy", Toy)
        made = load(tmp_path, "run: r\nmodel: {type: toy}\n")
        (tmp_path / "config.yaml").write_text(config_file.to_yaml(made))
        list_files(tmp_path)
        assert checkpoint.read_config(tmp_path).model == made.model
    with pytest.raises(CheckpointError, match=r"config\.yaml: model\.type: 'toy' is unknown.*NMT_PLUGINS"):
        checkpoint.read_config(tmp_path)


def test_a_configuration_from_python_is_checked_as_a_file_is() -> None:
    found = config_file.from_mapping({"run": "r", "model": {"hidden": 5}, "training": {"max_steps": 2}})
    assert isinstance(found.model, ModelConfig) and found.training.max_steps == 2
    for content, message in (
        ({"run": "r", "modle": {}}, "unknown key 'modle', did you mean 'model'"),
        ({"run": "r", "model": {"hidden": 0}}, "model.hidden: 0 is out of range"),
        ({"model": {}}, "run is missing"),
        ({"run": "r", "model": object()}, "configuration"),
    ):
        with pytest.raises(ConfigError, match=message):
            config_file.from_mapping(content)


# ---- test set up -------------------------------------------------------------------------------------------
# A Python program that loads a run computes as the commands do.


SAVED = Path(__file__).resolve().parents[2] / "models"


@pytest.mark.parametrize("back_end", ["mkl", "onednn"])
def test_a_loaded_run_computes_with_its_back_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back_end: str
) -> None:
    """As nmt-translate does: with the one that it remembers for this processor."""
    shutil.copytree(SAVED / "translator", tmp_path / "run")
    shutil.copytree(SAVED / "lm", tmp_path / "lm")
    before = device.back_end_in_use()
    try:
        for name, load in (("run", Run.load), ("lm", load_language_model)):
            (tmp_path / name / "matmul.tsv").unlink(missing_ok=True)
            device.remember_choice(tmp_path / name / "matmul.tsv", device.BackEndChoice(back_end))
            device.use_back_end("mkl" if back_end == "onednn" else "onednn")
            load(tmp_path / name)
            assert device.back_end_in_use() == back_end
            device.use_back_end("mkl" if back_end == "onednn" else "onednn")
        Run.of(tmp_path / "run"), line_scorer(tmp_path / "lm")  # commands have chosen
        assert device.back_end_in_use() != back_end
    finally:
        device.use_back_end(before)


def test_what_is_no_run_is_left_to_its_reader(tmp_path: Path) -> None:
    """An ARPA file, a folder that is missing: nothing is measured or written."""
    before = device.back_end_in_use()
    for path in (tmp_path, tmp_path / "lm.arpa"):
        checkpoint.set_up_torch(path, "nonsense")
    assert device.back_end_in_use() == before and not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="device: 'nonsense' is unknown"):
        Run.load(SAVED / "translator", device="nonsense")


# ---- test weights ------------------------------------------------------------------------------------------
# Weights as files: written whole, read as written, averaged exactly.


def test_what_is_written_is_read(tmp_path: Path) -> None:
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    checkpoint.save_tensors(model.state_dict(), tmp_path / "step-1.pt")
    checkpoint.load_weights(other, tmp_path / "step-1.pt")
    assert torch.equal(model.weight, other.weight) and torch.equal(model.bias, other.bias)
    assert [path.name for path in tmp_path.iterdir()] == ["step-1.pt"]  # no file beside it


def test_an_average_is_the_mean_in_double_precision(tmp_path: Path) -> None:
    """In float32 the sum of 2^24 and 1 is 2^24."""
    paths = [tmp_path / f"step-{number}.pt" for number in range(3)]
    for path, value in zip(paths, (2.0**24, 1.0, 1.0), strict=True):
        checkpoint.save_tensors({"a": torch.full((2,), value)}, path)
    expected = torch.tensor((2.0**24 + 2) / 3, dtype=torch.float64).to(torch.float32)
    assert checkpoint.average_weights(paths)["a"].tolist() == [expected.item()] * 2
    checkpoint.save_tensors({"a": torch.zeros(3)}, paths[1])
    with pytest.raises(CheckpointError, match="not a checkpoint of the same model"):
        checkpoint.average_weights(paths)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "step-1.pt"
    checkpoint.save_tensors({"a": torch.zeros(100)}, path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"step-1\.pt: damaged"):
        checkpoint.load_tensors(path)


def test_the_classes_of_an_output_layer_are_kept_and_have_no_mean(tmp_path: Path) -> None:
    first, second = ({"rows": torch.full((2,), float(n)), "leaf": torch.tensor([1, 0])} for n in (1, 3))
    for index, value in enumerate((first, second, {**second, "leaf": torch.tensor([0, 1])})):
        checkpoint.save_tensors(value, tmp_path / f"{index}.pt")
    paths = [tmp_path / f"{number}.pt" for number in range(3)]
    mean = checkpoint.average_weights(paths[:2])
    assert torch.equal(mean["leaf"], first["leaf"]) and mean["rows"].tolist() == [2, 2]
    with pytest.raises(CheckpointError, match=r"2\.pt: its leaf is not that of .*0\.pt"):
        checkpoint.average_weights(paths)


# ---- test averaging ----------------------------------------------------------------------------------------
# Which checkpoints are averaged.


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    for step in (5, 10, 20, 100):
        (tmp_path / f"step-{step}.pt").touch()
    return tmp_path


def test_the_newest_by_number_oldest_first(kept: Path) -> None:
    assert choose_checkpoints(kept, None, 3) == [10, 20, 100]
    assert choose_checkpoints(kept, None, 4) == [5, 10, 20, 100]


def test_those_that_are_named_each_once(kept: Path) -> None:
    assert choose_checkpoints(kept, [100, 5, 100], 99) == [5, 100]


def test_what_is_not_there_is_named_with_what_is(kept: Path) -> None:
    with pytest.raises(CheckpointError, match="update 7 requested, but the run holds updates 5, 10, 20, 100"):
        choose_checkpoints(kept, [5, 9, 7], 1)
    with pytest.raises(CheckpointError, match="empty: no checkpoint yet; train it further"):
        choose_checkpoints(kept / "empty", None, 5)


def test_fewer_than_asked_for_are_averaged_and_reported(
    kept: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("nmt"), "propagate", True)
    assert choose_checkpoints(kept, None, 5) == [5, 10, 20, 100]
    assert "holds 4 checkpoints, not 5" in caplog.text


def test_nothing_is_left_of_an_average_that_cannot_be_written(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(value: object, path: Path) -> None:
        raise CheckpointError("disk full")

    for name in ("version", "matmul.tsv"):
        (kept / name).write_text("nmt-run 2\n")
    monkeypatch.setattr("nmt.runs.checkpoint.save_tensors", full)
    output = tmp_path / "average"
    output.mkdir()
    with pytest.raises(CheckpointError, match="disk full"):
        save_average(kept, output, 5, {})
    assert not any(output.iterdir())
