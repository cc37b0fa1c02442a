"""Trained models from their run directories, and weights as files; which files there are stands in
nmt/run_directory.py."""

import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import torch
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt import manifest, run_directory, settings, yaml_text
from nmt.data.corpus import DataConfig
from nmt.data.text import TextPipeline
from nmt.data.vocab import Vocab
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.lm.config import LMConfig
from nmt.lm.dictionary import Dictionary
from nmt.lm.protocols import LanguageModel
from nmt.lm.registry import AllKeys, language_model_class
from nmt.models import registry
from nmt.models.config import RNNConfig
from nmt.models.registry import AnyModel
from nmt.run_directory import CONFIG, DICTIONARY, weights_path
from nmt.yaml_text import reason

LAST_KEY = "training.tensorboard"  # every version has written it as the last line of config.yaml


@dataclass
class SavedRun:
    """A trained model with its text pipeline. nmt.run.Run translates and scores with one or more of them."""

    directory: Path
    model: AnyModel
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
        raise CheckpointError(
            f"{path}: cannot write the checkpoint: {getattr(error, 'strerror', None) or 'is the disk full?'}"
        ) from error


def load_tensors(path: Path) -> Any:
    """CheckpointError for a file that is missing, damaged or not made by save_tensors. Never runs code from
    the file."""
    try:
        entries = manifest.read(path.parent)
        stream = manifest.opened(path.parent, path.name, entries)
    except DataError as error:
        raise CheckpointError(str(error)) from error
    with stream:
        try:
            if entries is None:
                check_sums(stream)
            return torch.load(stream, map_location="cpu", weights_only=True)
        except Exception as error:  # torch raises half a dozen kinds for a damaged file
            raise CheckpointError(
                f"{path}: damaged or not a checkpoint ({type(error).__name__}); copy it again, or name "
                "another step"
            ) from error


def check_sums(stream: BinaryIO) -> None:
    """torch writes a zip file, whose own checksums it does not look at: of a run without a manifest they are
    all there is."""
    with zipfile.ZipFile(stream) as parts:
        if parts.testzip():
            raise zipfile.BadZipFile
    stream.seek(0)


def read_yaml(directory: Path) -> Any:
    """The sections of a run's config.yaml. CheckpointError when it is damaged or cut off: a key that is not
    there would get its default."""
    path = directory / CONFIG
    try:
        entries = manifest.read(directory)
        with manifest.opened(directory, CONFIG, entries) as stream:
            text = stream.read().decode("utf-8")
        if entries is None and not text.endswith("\n"):
            raise ValueError("its end is missing")
        config = yaml_text.parse(text)
        if entries is None and OmegaConf.select(config, LAST_KEY) is None:
            raise ValueError("its end is missing")
    except DataError as error:
        raise CheckpointError(str(error)) from error
    except (ValueError, AttributeError, OmegaConfBaseException) as error:
        raise CheckpointError(f"{path}: damaged configuration ({reason(error)}); copy it again") from error
    return config


def read_config(directory: Path) -> tuple[DataConfig, RNNConfig, LMConfig]:
    """The data, model and lm sections of a run's config.yaml."""
    config, path = read_yaml(directory), directory / CONFIG
    try:
        data = OmegaConf.merge(OmegaConf.structured(DataConfig), config["data"])
        model = OmegaConf.merge(OmegaConf.structured(RNNConfig), config["model"])
        lm = OmegaConf.merge(
            OmegaConf.structured(AllKeys), config.get("lm", {})
        )  # before version 0.4 there was none
        result: Any = OmegaConf.to_object(data), OmegaConf.to_object(model), OmegaConf.to_object(lm)
        settings.check(result[0], "data.")
        result[2].check() if result[2].type else result[1].check()
    except Exception as error:  # OmegaConf has a family of errors
        raise CheckpointError(f"{path}: damaged configuration ({reason(error)}); copy it again") from error
    return result  # type: ignore[no-any-return]


def load_side(directory: Path, side: str, data: DataConfig) -> tuple[TextPipeline, Vocab]:
    """The text pipeline and the vocabulary of one side. CheckpointError when a file is missing or damaged."""
    config = data.source if side == "source" else data.target
    try:
        if (data.bpe_merges or config.codes) and not (directory / f"{side}.codes").exists():
            raise DataError(
                f"{directory / f'{side}.codes'}: not there, but the run has subwords; was it copied whole?"
            )
        return TextPipeline.load(directory, side, config), Vocab.load(directory / f"{side}.vocab")
    except DataError as error:
        raise CheckpointError(f"{directory}: damaged run directory: {error}") from error


def load_dictionary(directory: Path, config: LMConfig) -> Dictionary | None:
    """That of a model which needs one."""
    if not language_model_class(config.type).needs_dictionary:
        return None
    try:
        return Dictionary.load(directory / DICTIONARY)
    except DataError as error:
        raise CheckpointError(f"{directory}: damaged run directory: {error}") from error


def load(directory: str | Path, which: str = "best", device: str = "cpu") -> SavedRun:
    """A run ready to translate or score. CheckpointError says in one line what is wrong with the
    directory."""
    directory = Path(directory)
    return run_directory.settled(directory, lambda: load_once(directory, which, device))


def load_once(directory: Path, which: str, device: str) -> SavedRun:
    run_directory.check_version(directory)
    run_directory.verify(directory)
    data, model_config, lm = read_config(directory)
    if lm.type:
        raise CheckpointError(f"{directory}: is a language model, expected a translator's run directory")
    source, source_words = load_side(directory, "source", data)
    target, target_words = load_side(directory, "target", data)
    step = run_directory.find_step(directory, which)
    model = registry.make(
        model_config, len(source_words), len(target_words), fill=False, spelling=source_words.words
    )
    load_weights(model, weights_path(directory, step))
    model.eval()
    return SavedRun(directory, model.to(device), source, target, source_words, target_words, data, step)


def load_lm(directory: str | Path, which: str = "best", device: str = "cpu") -> SavedLM:
    """A language model ready to score. CheckpointError says in one line what is wrong with the directory,
    ConfigError what it cannot do."""
    directory = Path(directory)
    return run_directory.settled(directory, lambda: load_lm_once(directory, which, device))


def load_lm_once(directory: Path, which: str, device: str) -> SavedLM:
    run_directory.check_version(directory)
    run_directory.verify(directory)
    data, _, config = read_config(directory)
    if not config.type:
        raise CheckpointError(
            f"{directory}: is a translator, expected a language model's run directory (lm.type)"
        )
    kind = language_model_class(config.type)
    if kind.cpu_only and device != "cpu":
        raise ConfigError(f"{directory}: {config.type} models compute on the CPU only; use --device cpu")
    text, words = load_side(directory, "target", data)
    step = run_directory.find_step(directory, which)
    config = config.typed()  # type: ignore[attr-defined]
    model = kind.build(config, words.words, load_dictionary(directory, config), fill=False)
    load_weights(model, weights_path(directory, step))
    model.eval()
    return SavedLM(directory, model.to(device), text, words, config, step)


def average(paths: Sequence[Path]) -> dict[str, torch.Tensor]:
    """The mean of the weights of several checkpoints, added in float64. CheckpointError when they are not of
    one model."""
    total: dict[str, torch.Tensor] = {}
    for path in paths:
        weights = load_tensors(path)
        if not isinstance(weights, dict) or (
            total and {k: v.shape for k, v in weights.items()} != {k: v.shape for k, v in total.items()}
        ):
            raise CheckpointError(f"{path}: not of the same model as {paths[0]}")
        for name, value in weights.items():
            total[name] = value.double() + total[name] if name in total else value.double()
    return {name: (value / len(paths)).to(torch.float32) for name, value in total.items()}


class Loadable(Protocol):
    """What weights are loaded into: an nn.Module."""

    def load_state_dict(self, state_dict: Mapping[str, torch.Tensor]) -> object: ...


def load_weights(model: Loadable, path: Path) -> None:
    """Weights into a model. CheckpointError where they do not fit."""
    weights = load_tensors(path)
    try:
        model.load_state_dict(weights)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path}: the weights do not fit the model of config.yaml; was either replaced?"
        ) from error
