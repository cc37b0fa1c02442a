"""Trained models from their run directories, weights as files, and the mean of several checkpoints;
nmt/runs/directory.py lists the files."""

import logging
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Generic, Protocol, TypeVar, cast

import torch
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor, nn

from nmt.compute import device as devices
from nmt.data.corpus import DataConfig
from nmt.errors import CheckpointError, ConfigError, DataError, UserError
from nmt.io import files, manifest
from nmt.io.numbers import shown
from nmt.lm import LANGUAGE_MODELS, language_model_class
from nmt.lm.base import LanguageModel, LMConfig, RunFile
from nmt.models.config import ModelConfig
from nmt.models.protocols import AlignedModel, TranslationModel
from nmt.models.registry import ALIGNED_MODELS, MODELS, AnyModel, make
from nmt.plugins import Registry, check_class
from nmt.runs import directory as run_directory
from nmt.runs.directory import CONFIG, back_ends_file, exists, resolve, weights_path
from nmt.runs.pair import LanguagePair, SavedModel, describe
from nmt.runs.text import Config, Section, damage_error, data_settings, fill_dataclass, load_side, read_yaml
from nmt.text import spelling
from nmt.text.pipeline import TextPipeline
from nmt.text.spelling import Spelling
from nmt.text.vocab import Vocab

# ---- weights -----------------------------------------------------------------------------------------------
# Weights and other tensors as files: written completely or not at all, read without running code from them.


class HasWeights(Protocol):
    """A model of any kind whose weights can be loaded and counted."""

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> object: ...


def save_tensors(value: object, path: Path) -> None:
    """Write a file with torch.save, under a temporary name that is then changed to `path`. CheckpointError if
    that fails, for example on a full disk."""
    unfinished = path.with_name(f"{path.name}.part{os.getpid()}")
    try:
        with open(unfinished, "wb") as stream:
            torch.save(value, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except (OSError, RuntimeError) as error:  # torch turns a full disk into a RuntimeError
        unfinished.unlink(missing_ok=True)
        raise CheckpointError(
            f"{path}: cannot write the checkpoint: {getattr(error, 'strerror', None) or 'is the disk full?'}"
        ) from error


def load_tensors(path: Path) -> Any:
    """Read a file written by `save_tensors`. CheckpointError for a file that is missing, damaged or of
    another kind. Never runs code from the file."""
    try:
        entries = manifest.read(path.parent)
        stream = manifest.open_verified(path.parent, path.name, entries)
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
    """Verify the checksums of the zip file that torch wrote: torch itself ignores them, and a run without a
    manifest has no others."""
    with zipfile.ZipFile(stream) as parts:
        if parts.testzip():
            raise zipfile.BadZipFile
    stream.seek(0)


def load_weights(model: HasWeights, path: Path) -> None:
    """Load weights from a file into a model. CheckpointError unless they fit, and as from `load_tensors`."""
    weights = load_tensors(path)
    try:
        model.load_state_dict(weights)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path}: the weights do not fit the model of config.yaml; was either replaced?"
        ) from error


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Average the weights of several checkpoints, in float64; the result is in float32. Tensors of other
    types, such as the tree of an output layer, must be equal. CheckpointError if they are not, if the
    checkpoints belong to different models, or as from `load_tensors`."""
    total: dict[str, Tensor] = {}
    for path in paths:
        weights = load_tensors(path)
        if not isinstance(weights, dict) or (
            total and {k: v.shape for k, v in weights.items()} != {k: v.shape for k, v in total.items()}
        ):
            raise CheckpointError(f"{path}: not a checkpoint of the same model as {paths[0]}")
        for name, value in weights.items():
            if not value.is_floating_point():  # the classes or the tree of an output layer
                if not torch.equal(value, total.setdefault(name, value)):
                    raise CheckpointError(
                        f"{path}: its {name} is not that of {paths[0]}: the tree of an output layer has "
                        "changed between them, so their weights cannot be averaged"
                    )
                continue
            total[name] = value.double() + total[name] if name in total else value.double()
    return {
        name: (value / len(paths)).to(torch.float32) if value.is_floating_point() else value
        for name, value in total.items()
    }


# ---- averaging ---------------------------------------------------------------------------------------------
# The mean of the weights of several checkpoints of a run, as a run of its own; of one checkpoint, a run that
# has nothing but what the model needs.


log = logging.getLogger(__name__)


def write_average(run: Path, output: Path, requested: Sequence[int] | None, last: int = 1) -> list[int]:
    """Average checkpoints of a run, and write the mean as a new run directory. `requested`: their updates;
    None for the `last` newest ones. Returns the updates, oldest first. CheckpointError as from
    `choose_checkpoints` and `average_weights`, UserError if the directory cannot be written."""

    def average() -> tuple[list[int], dict[str, Tensor]]:
        steps = choose_checkpoints(run, requested, last)
        return steps, average_weights([weights_path(run, step) for step in steps])

    steps, mean = run_directory.read_consistent(run, average)
    save_average(run, output, steps[-1], mean)
    return steps


def save_average(run: Path, output: Path, step: int, mean: dict[str, Tensor]) -> None:
    """Write a run directory whose only weights are `mean`, as those of update `step`; the other files that
    the model needs are copied from `run`."""
    with run_directory.writing(output) as new:
        run_directory.copy_texts(run, new)
        save_tensors(mean, run_directory.weights_path(new, step))
        run_directory.write_index(new, step, step)
    back_ends = run_directory.back_ends_file(run)
    if back_ends and back_ends.exists():
        files.write_text(output / back_ends.name, files.read_lines(back_ends))


def choose_checkpoints(run: Path, requested: Sequence[int] | None, last: int) -> list[int]:
    """Choose the checkpoints to average. `requested`: their updates; None or empty for the `last` newest
    ones, with a warning if there are fewer. Returns the updates, oldest first. CheckpointError if one is
    missing, or the run has none."""
    saved = run_directory.steps(run)
    if not saved:
        raise CheckpointError(f"{run}: no checkpoint yet; train it further")
    if missing := sorted(set(requested or []) - set(saved)):
        raise CheckpointError(
            f"{run}: update {missing[0]} requested, but the run holds updates {', '.join(map(str, saved))}; "
            "train with a larger training.keep"
        )
    if not requested and len(saved) < last:
        log.warning(
            "%s: holds %d checkpoint%s, not %d; training.keep sets how many a run keeps",
            run,
            len(saved),
            "s" * (len(saved) > 1),
            last,
        )
    return sorted(set(requested)) if requested else saved[-last:]


# ---- sections ----------------------------------------------------------------------------------------------
# The section of a configuration that says what a run trains: `model` for a translator, `lm` for a language
# model. Its `type` names a class, whose `Config` has its keys.


class Configured(Protocol):
    """A model class with a settings class, `Config`."""

    @property
    def Config(self) -> type[ModelConfig] | type[LMConfig]: ...


# Models that are neither translators nor given an alignment, by the names that `model.type` takes.
OTHER_MODELS: Registry[Configured] = Registry("other model", {})

# Base classes of what a plugin may add, by section, with those of their settings.
BASES: dict[str, Mapping[type, type]] = {
    "model": {TranslationModel: ModelConfig, AlignedModel: ModelConfig},
    "lm": {LanguageModel: LMConfig},
}

# Read whenever a configuration is, so that plugins may add to them.
SECTION_REGISTRIES: dict[str, Sequence[Mapping[str, Configured]]] = {
    "model": (MODELS, ALIGNED_MODELS, OTHER_MODELS),
    "lm": (LANGUAGE_MODELS,),
}


def config_class(section: str, kind: str) -> type[ModelConfig] | type[LMConfig]:
    """The dataclass of section `model` or `lm` for a type. ConfigError for an unknown type, and for a class
    of a plugin that cannot be used."""
    registries = SECTION_REGISTRIES[section]
    for registry in registries:
        if kind in registry:
            check_class(f"{section}.type", kind, registry[kind], BASES[section])
            return registry[kind].Config
    expected = f"expected one of {', '.join(map(repr, chain(*registries)))}"
    if not kind:
        raise ConfigError(f"{section}.type: missing; set {section}.type, {expected}")
    raise ConfigError(f"{section}.type: {shown(kind)} is unknown, {expected}, or a type of NMT_PLUGINS")


# ---- checkpoint --------------------------------------------------------------------------------------------


Trained = TypeVar("Trained", AnyModel, AlignedModel, nn.Module)


@dataclass
class SavedPair(LanguagePair, Generic[Trained]):
    """A trained translation model with the text pipelines of both languages."""

    directory: Path
    model: Trained
    source: TextPipeline
    target: TextPipeline
    source_words: Vocab
    target_words: Vocab
    data: DataConfig
    step: int  # the weights are those after this many updates
    kind: str = ModelConfig.type  # model.type

    @property
    def languages(self) -> tuple[str, str]:
        return self.data.source.language, self.data.target.language

    @property
    def max_length(self) -> int:
        return self.data.max_length

    @cached_property
    def target_spelling(self) -> Spelling:
        """The text that each target unit adds to a translation."""
        units = [self.target.spell(unit) for unit in self.target_words.words]
        return spelling.make_spelling(units, self.target.raw)

    @property
    def description(self) -> str:
        return describe(self, self.kind, parameter_count(self.model))


# A trained translator. nmt.runs.torch_run.TorchRun translates and scores with one or more of them.
SavedRun = SavedPair[AnyModel]
# What a translator may start from: another one, or a pre-trained encoder, which has no target.
Parent = SavedRun | SavedPair[nn.Module]


@dataclass
class SavedLM(SavedModel):
    """A trained language model with its text pipeline."""

    directory: Path
    model: LanguageModel
    text: TextPipeline
    words: Vocab
    config: LMConfig
    step: int
    language: str = ""

    def for_text(self, tokenized: bool) -> "SavedLM":
        """This model for raw lines, or for lines that are tokenized like the training text."""
        return replace(self, text=self.text.for_text(tokenized))

    def encode(self, texts: Sequence[Sequence[str]]) -> list[list[int]]:
        """Convert the units of each text to ids. Unknown units become UNK or, if the model reads them by
        their spelling, get ids beyond the vocabulary."""
        ids = [self.words.encode(text) for text in texts]
        lengths = [len(text) for text in texts]
        flat = iter(self.model.spelling_ids(list(chain(*texts)), list(chain(*ids))))
        return [list(islice(flat, length)) for length in lengths]

    @property
    def description(self) -> str:
        """A one-line description: name, type, language, vocabulary and size."""
        return (
            f"{self.name}: {self.config.type}{self.language and f' of {self.language}'}, "
            f"{len(self.words):,} units, {parameter_count(self.model)}"
        )


def parameter_count(model: HasWeights) -> str:
    """Format the number of a model's parameters for display."""
    return f"{sum(part.numel() for part in model.parameters()):,} parameters"


@dataclass
class SavedConfig:
    """Sections of a run's config.yaml that its model needs: `data`, and `model` or `lm`."""

    data: DataConfig
    model: ModelConfig | LMConfig


# ---- configuration -----------------------------------------------------------------------------------------


def read_config(directory: Path) -> SavedConfig:
    """Read the sections of a run's config.yaml that its model needs. CheckpointError if it is missing or
    damaged, or names an unknown type of model."""
    return parse_config(read_yaml(directory), directory / CONFIG)


def parse_config(sections: Section, path: Path) -> SavedConfig:
    """The sections of a configuration that a model needs. CheckpointError, which names `path`, if it is
    damaged or names an unknown type of model."""
    section = "lm" if sections.get("lm") else "model"
    data = data_settings(sections, path)
    try:
        kind = str(cast(Section, sections[section]).get("type", ModelConfig.type))
    except (KeyError, AttributeError) as error:
        raise damage_error(path, error) from error
    try:
        of_model = config_class(section, kind)
    except ConfigError as error:
        raise CheckpointError(f"{path}: {error}") from error
    try:
        config = fill_dataclass(of_model, sections[section])
        config.check()
    except (UserError, OmegaConfBaseException, ValueError, TypeError) as error:
        raise damage_error(path, error) from error
    return SavedConfig(data, config)


# ---- runs --------------------------------------------------------------------------------------------------


def load_run_files(directory: Path, kind: type[LanguageModel]) -> dict[str, RunFile]:
    """Read a kind of model's files besides its weights, by name. CheckpointError if one is damaged."""
    try:
        return {name: content.load(directory / name) for name, content in kind.run_files.items()}
    except DataError as error:
        raise CheckpointError(f"{directory}: damaged run directory: {error}") from error


def load(directory: str | Path, which: str = "best", device: str = "cpu") -> SavedRun:
    """Load a translator. `which`: best, last or a number of updates; `device`: cpu, cuda:N or auto, which is
    not checked: see `nmt.compute.device.set_up_device`. CheckpointError says in one line what is wrong with
    the directory."""

    def load_once(run: Path) -> SavedRun:
        config = checked_config(run)
        kind = config.model
        if isinstance(kind, LMConfig) or not kind.translates:
            raise CheckpointError(
                f"{run}: is {kind.noun}, expected a translator's run directory{kind.remedy}"
            )

        def build(source: Vocab, target: Vocab) -> AnyModel:
            return make(kind, len(source), len(target), fill=False, spelling=source.words)

        return load_pair(run, which, device, config, build)

    return load_consistent(directory, load_once)


def load_lm(directory: str | Path, which: str = "best", device: str = "cpu") -> SavedLM:
    """Load a language model; arguments as in `load`. CheckpointError says in one line what is wrong with the
    directory; ConfigError for a model that cannot compute on this device."""

    def load_once(run: Path) -> SavedLM:
        config = checked_config(run)
        lm = config.model
        if not isinstance(lm, LMConfig):
            raise CheckpointError(f"{run}: is {lm.noun}, expected a language model's run directory (lm.type)")
        kind = language_model_class(lm.type)
        on_device = devices.resolve_device(device, kind.cpu_only)
        if kind.cpu_only and on_device != "cpu":
            raise ConfigError(f"{run}: {config.model.type} models compute on the CPU only; use --device cpu")
        text, words = load_side(run, "target", config.data)
        step = run_directory.find_step(run, which)
        model = kind.build(lm, words.words, load_run_files(run, kind), fill=False)
        load_weights(model, weights_path(run, step))
        model.eval()
        return SavedLM(
            directory=run,
            model=model.to(on_device),
            text=text,
            words=words,
            config=lm,
            step=step,
            language=config.data.target.language,
        )

    return load_consistent(directory, load_once)


def load_consistent(directory: str | Path, read: Callable[[Path], Config]) -> Config:
    """Load a run with `read(directory)`, safely even while a training process is writing to it: `read` is
    called again if the run has changed meanwhile. Errors are those of `read`. May set the number of torch's
    threads: see `nmt.compute.device.settle_threads`."""
    devices.settle_threads()
    run = run_directory.resolve(directory)
    return run_directory.read_consistent(run, lambda: read(run))


def load_pair(
    directory: Path, which: str, device: str, config: SavedConfig, build: Callable[[Vocab, Vocab], Trained]
) -> SavedPair[Trained]:
    """Load a run of two languages: its texts, and the model that `build` creates from source and target
    vocabulary, with the saved weights. `which`, `device`: as in `load`; `config`: that of the run.
    CheckpointError if a file is missing or damaged."""
    source, source_words = load_side(directory, "source", config.data)
    target, target_words = load_side(directory, "target", config.data)
    step = run_directory.find_step(directory, which)
    model = build(source_words, target_words)
    load_weights(model, weights_path(directory, step))
    model.eval()
    return SavedPair(
        directory=directory,
        model=model.to(devices.resolve_device(device)),
        source=source,
        target=target,
        source_words=source_words,
        target_words=target_words,
        data=config.data,
        step=step,
        kind=config.model.type,
    )


def checked_config(directory: Path) -> SavedConfig:
    """Verify the files of a run, and read its configuration. CheckpointError if it is no run, or damaged."""
    run_directory.check_version(directory)
    run_directory.verify(directory)
    return read_config(directory)


# ---- set up ------------------------------------------------------------------------------------------------
# For Python programs that load a run: torch is set up as the commands do it.


def set_up_torch(directory: str | Path, device: str) -> None:
    """Check the device, and set torch's matrix back end in this process: the one that a run has recorded for
    this processor. Does nothing without a run. ConfigError for a device that is unknown or missing."""
    run = resolve(directory)
    if exists(run):
        devices.set_up_device(device, None, "auto", back_ends_file(run))
