"""The run directory: everything a trained model needs, and the state of its training apart from it.

    version                  `nmt-run 1`
    config.yaml              the resolved configuration
    source.vocab target.vocab, source.codes target.codes, source.truecase target.truecase    the text pipeline
    checkpoints.json         which weights are `best` and `last`
    step-N.pt                weights of step N (torch, loadable with weights_only=True)
    training.pt              optimizer, random state and counters of the last save
    train.tsv dev.tsv        logs

Every file is written beside and renamed; training.pt is the last word: what it names is there, whole.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf
from torch import nn

from nmt import files
from nmt.data.corpus import DataConfig
from nmt.data.text import TextPipeline
from nmt.data.vocab import Vocab
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.lm.config import LMConfig
from nmt.lm.dictionary import Dictionary
from nmt.lm.model import FILE as DICTIONARY
from nmt.lm.model import LanguageModel, make
from nmt.models.config import ModelConfig
from nmt.models.translator import Translator

VERSION = "nmt-run 1"


@dataclass
class SavedRun:
    """A trained model with its text pipeline. nmt.run.Run translates and scores with one or more of them."""

    directory: Path
    model: Translator
    source: TextPipeline
    target: TextPipeline
    source_words: Vocab
    target_words: Vocab
    data: DataConfig
    step: int  # the weights are those after this many updates

    @property
    def name(self) -> str:
        """How results name the model that made them."""
        return f"{self.directory.name}@{self.step}"


@dataclass
class SavedLM:
    """A trained language model with its text pipeline."""

    directory: Path
    model: LanguageModel
    text: TextPipeline
    words: Vocab
    config: LMConfig
    step: int

    @property
    def name(self) -> str:
        return f"{self.directory.name}@{self.step}"


def save_tensors(value: object, path: Path) -> None:
    """torch.save, beside and renamed. CheckpointError when the disk is full."""
    beside = path.with_name(f"{path.name}.part{os.getpid()}")
    try:
        with open(beside, "wb") as stream:
            torch.save(value, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
    except (OSError, RuntimeError) as error:  # torch turns a full disk into a RuntimeError
        beside.unlink(missing_ok=True)
        raise CheckpointError(f"{path}: cannot write the checkpoint: {getattr(error, 'strerror', None) or 'is the disk full?'}") from error


def load_tensors(path: Path) -> Any:
    """CheckpointError for a file that is missing, truncated or not made by save_tensors. Never runs code from the file."""
    if not path.exists():
        raise CheckpointError(f"{path}: not there; is this a whole run directory?")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises half a dozen kinds for a damaged file
        raise CheckpointError(f"{path}: damaged or not a checkpoint ({type(error).__name__}); copy it again, or name another step") from error


def check_version(directory: Path) -> None:
    path = directory / "version"
    if not directory.is_dir():
        raise CheckpointError(f"{directory}: no such run directory; nmt-train makes one")
    try:
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{directory}: not a run directory (it has no readable file 'version')") from error
    if found != VERSION:
        raise CheckpointError(f"{path}: format {found[:40]!r}, expected {VERSION!r}; use the version of the toolkit that made it")


def create(directory: Path, config: str, sides: dict[str, tuple[TextPipeline, Vocab]]) -> None:
    """A new run directory without weights; `config` is the resolved YAML, `sides` are source and target, of a language model target alone.

    The file `version` comes last.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.cannot_write(directory, error) from error
    files.write_text(directory / "config.yaml", config.rstrip("\n").split("\n"))
    for name, (pipeline, vocab) in sides.items():
        pipeline.save(directory, name)
        vocab.save(directory / f"{name}.vocab")
    files.write_text(directory / "version", [VERSION])


def weights_path(directory: Path, step: int) -> Path:
    return directory / f"step-{step}.pt"


def save_index(directory: Path, best: int, last: int) -> None:
    files.write_text(directory / "checkpoints.json", [json.dumps({"best": best, "last": last})])


def find_step(directory: Path, which: str) -> int:
    """`best`, `last` or a number of updates -> the step whose weights exist."""
    if which.isdigit():
        return int(which)
    path = directory / "checkpoints.json"
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
        return int(index[which])
    except FileNotFoundError as error:
        raise CheckpointError(f"{directory}: no checkpoint yet; train it further") from error
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: cannot find checkpoint {which!r}; expected best, last or a step") from error


def read_config(directory: Path) -> tuple[DataConfig, ModelConfig, LMConfig]:
    """The data, model and lm sections of a run's config.yaml."""
    path = directory / "config.yaml"
    try:
        config: Any = OmegaConf.load(path)
        data = OmegaConf.merge(OmegaConf.structured(DataConfig), config["data"])
        model = OmegaConf.merge(OmegaConf.structured(ModelConfig), config["model"])
        lm = OmegaConf.merge(OmegaConf.structured(LMConfig), config.get("lm", {}))  # before version 0.4 there was none
        result = OmegaConf.to_object(data), OmegaConf.to_object(model), OmegaConf.to_object(lm)
    except Exception as error:  # YAML and OmegaConf each have a family of errors
        message = str(error).split("\n")[0]
        raise CheckpointError(f"{path}: damaged configuration ({message})") from error
    return result  # type: ignore[return-value]


def load(directory: str | Path, which: str = "best", device: str = "cpu") -> SavedRun:
    """A run ready to translate or score. CheckpointError says in one line what is wrong with the directory."""
    directory = Path(directory)
    check_version(directory)
    data, model_config, lm = read_config(directory)
    if lm.type:
        raise CheckpointError(f"{directory}: is a language model, expected a translator's run directory")
    try:
        source_words, target_words = Vocab.load(directory / "source.vocab"), Vocab.load(directory / "target.vocab")
        source = TextPipeline.load(directory, "source", data.source)
        target = TextPipeline.load(directory, "target", data.target)
    except DataError as error:
        raise CheckpointError(f"{directory}: damaged run directory: {error}") from error
    step = find_step(directory, which)
    model = Translator(model_config, len(source_words), len(target_words), fill=False, spelling=source_words.words)
    load_weights(model, weights_path(directory, step))
    model.eval()
    return SavedRun(directory, model.to(device), source, target, source_words, target_words, data, step)


def load_lm(directory: str | Path, which: str = "best", device: str = "cpu") -> SavedLM:
    """A language model ready to score. CheckpointError says in one line what is wrong with the directory, ConfigError what it cannot do."""
    directory = Path(directory)
    check_version(directory)
    data, _, config = read_config(directory)
    if not config.type:
        raise CheckpointError(f"{directory}: is a translator, expected a language model's run directory (lm.type)")
    if config.type == "multiscale" and device != "cpu":
        raise ConfigError(f"{directory}: multiscale models compute on the CPU only; use --device cpu")
    try:
        words = Vocab.load(directory / "target.vocab")
        text = TextPipeline.load(directory, "target", data.target)
    except DataError as error:
        raise CheckpointError(f"{directory}: damaged run directory: {error}") from error
    step = find_step(directory, which)
    try:
        dictionary = Dictionary.load(directory / DICTIONARY) if config.type == "multiscale" else None
    except DataError as error:
        raise CheckpointError(f"{directory}: damaged run directory: {error}") from error
    model = make(config, words.words, fill=False, dictionary=dictionary)
    load_weights(model, weights_path(directory, step))
    model.eval()
    return SavedLM(directory, model.to(device), text, words, config, step)


def average(paths: Sequence[Path]) -> dict[str, torch.Tensor]:
    """The mean of the weights of several checkpoints, added in float64. CheckpointError when they are not of one model."""
    total: dict[str, torch.Tensor] = {}
    for path in paths:
        weights = load_tensors(path)
        if not isinstance(weights, dict) or (total and {k: v.shape for k, v in weights.items()} != {k: v.shape for k, v in total.items()}):
            raise CheckpointError(f"{path}: not of the same model as {paths[0]}")
        for name, value in weights.items():
            total[name] = value.double() + total[name] if name in total else value.double()
    return {name: (value / len(paths)).to(torch.float32) for name, value in total.items()}


def load_weights(model: nn.Module, path: Path) -> None:
    weights = load_tensors(path)
    try:
        model.load_state_dict(weights)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path}: the weights do not fit the model of config.yaml; was either replaced?") from error
