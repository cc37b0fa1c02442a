"""Sets up a training job from its configuration: model, batches and development set. Creates the directory
of a new run."""

import json
import logging
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import torch
from torch import nn

from nmt.compute import device
from nmt.data import running
from nmt.data.aligned import AlignedStream
from nmt.data.batches import BatchStream
from nmt.data.binarized import Corpus
from nmt.data.corpus import ALIGNMENTS, VECTORS, DataConfig, check_config, check_text_config
from nmt.data.tokenized import TokenizedText
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.io import files, manifest
from nmt.io.manifest import Stamp
from nmt.layers.output import OutputLayer
from nmt.lm import LANGUAGE_MODELS, language_model_class
from nmt.lm.base import NO_FILES, LanguageModel, LMConfig, RunFile
from nmt.models.config import ModelConfig
from nmt.models.registry import ALIGNED_MODELS, MODELS, AnyModel, make
from nmt.plugins import Registry
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.checkpoint import Configured, Parent
from nmt.runs.directory import INPUTS
from nmt.runs.joint import load_aligned
from nmt.runs.pair import SavedModel
from nmt.runs.text import load_side
from nmt.text.pipeline import TextPipeline
from nmt.text.vocab import Vocab
from nmt.training import alignment, config_file, prepare
from nmt.training.config import RunConfig, check_languages, get_value, side_paths, text_sides
from nmt.training.job import TrainingJob
from nmt.training.prepare import LearningSide, ParallelData, check_sides
from nmt.training.protocols import Stream
from nmt.training.transfer import apply_vectors, check_vectors, transfer_weights
from nmt.training.validation import validate_aligned, validate_language_model, validate_translator

log = logging.getLogger(__name__)


Side = tuple[TextPipeline, Vocab]
Part = TypeVar("Part")


def set_up_translator(job: TrainingJob) -> None:
    """Set up a job for an encoder-decoder: its model, batches and development set. Creates the directory of a
    new run. ConfigError, DataError and CheckpointError for settings, texts and runs that cannot be used."""
    config, training, settings = job.config, job.training, cast(ModelConfig, job.config.model)
    data = parallel_data(job, bool(training.guided_alignment))
    vocabs = data.vocabs
    corpus = prepare.make_corpus(data)
    dev = prepare.make_dev(data, training.bleu_tokenizer)
    torch.manual_seed(config.seed)
    model = make(settings, len(vocabs[0]), len(vocabs[1]), fill=job.fresh, spelling=vocabs[0].words)
    model = model.to(job.device)
    if job.fresh:
        fit_output_layers(model, corpus)
    if job.fresh and config.init_from:
        copy_parent_weights(model, vocabs, config.init_from)
    apply_vectors(config, model, sides(*vocabs), job.fresh)
    cut = prepare.make_cut(data)
    counts = prepare.epoch_counts(config.data, corpus)
    pairs = BatchStream(
        corpus, training.batch_size, training.pool, config.seed, cut, counts, training.batch_tokens
    )
    stream: Stream = pairs
    if weight := training.guided_alignment:
        stream = alignment.guided_stream(data, pairs, weight)
    validate = None
    if dev:
        validate = partial(validate_translator, model, dev, training.dev_beam, training.metric == "chrf")
    job.set_up(model, stream, validate)


def set_up_aligned_model(job: TrainingJob) -> None:
    """Set up a job for a model that reads the word alignment: its model, batches and development set. Creates
    the directory of a new run; errors as in `set_up_translator`."""
    config, training, settings = job.config, job.training, cast(ModelConfig, job.config.model)
    data = parallel_data(job, aligned=True)
    vocabs = data.vocabs
    torch.manual_seed(config.seed)
    make_model = ALIGNED_MODELS[settings.type]
    model = make_model(settings, len(vocabs[0]), len(vocabs[1]), fill=job.fresh).to(job.device)
    corpus = alignment.make_aligned_corpus(data, model.within)
    dev = alignment.make_aligned_dev(data, model.within)
    if job.fresh:
        fit_output_layers(model, corpus)
    apply_vectors(config, model, sides(*vocabs), job.fresh)
    stream = AlignedStream(
        corpus, training.batch_size, training.pool, config.seed, model.shape, training.batch_tokens
    )
    job.set_up(model, stream, partial(validate_aligned, model, dev) if dev else None)


def set_up_language_model(job: TrainingJob) -> None:
    """Set up a job for a language model: its model, batches and development text. Creates the directory of a
    new run. Errors as in `set_up_translator`; ConfigError also for a model that trains on the CPU only."""
    config, training, settings = job.config, job.training, cast(LMConfig, job.config.lm)
    kind = language_model_class(settings.type)
    if kind.cpu_only and job.device != "cpu":
        raise ConfigError(
            f"device: {job.device!r}: {settings.type} models train on the CPU only; set device: cpu"
        )
    text = prepare.training_text(config.data, job.directory, job.show_bar)
    pipeline, vocab = lm_text(config, kind, text)
    remember_back_end(job.directory)
    corpus = prepare.make_running(config.data, corpus_folder(config), pipeline, vocab, text, job.team.first)
    dev = prepare.make_dev_text(config.data, pipeline, vocab)
    torch.manual_seed(config.seed)
    run_files = checkpoint.load_run_files(job.directory, kind)
    model = kind.build(settings, vocab.words, run_files, job.fresh).to(job.device)
    if job.fresh:
        fit_output_layers(cast(nn.Module, model), corpus)
    apply_vectors(config, model, {"target": vocab}, job.fresh)
    stream: Stream = BatchStream(
        corpus, training.batch_size, training.pool, config.seed, tokens=training.batch_tokens
    )
    if model.carries:
        steps: int = getattr(settings, "bptt")  # noqa: B009  # of models that carry their state
        stream = running.ChunkStream(running.join_sentences(corpus), training.batch_size, steps)
    job.set_up(model, stream, partial(validate_language_model, model, dev) if dev else None)


def sides(source: Part, target: Part) -> dict[str, Part]:
    """Put the parts of both sides into a dict with keys `source` and `target`."""
    return {"source": source, "target": target}


def corpus_folder(config: RunConfig) -> Path:
    """The folder of the binarized corpus."""
    return Path(config.data.cache or Path(config.run, run_directory.DATA))


def parallel_data(job: TrainingJob, aligned: bool) -> ParallelData:
    """Open the texts of a run with its text pipelines and vocabularies. For a new run, first learn these from
    the training text and create the run directory. `aligned`: training reads a word alignment, which is
    checked before a new run learns anything. Errors as in `set_up_translator`."""
    config, data, directory = job.config, job.config.data, job.directory
    text = prepare.training_text(data, directory, job.show_bar)
    if job.fresh and aligned:
        alignment.check_links(data, text)
    if not run_directory.exists(directory):
        stamps = take_stamps(data)
        pipelines, vocabs = prepare.make_sides(data, text)
        check_vectors(config, sides(*vocabs))
        create(config, sides(*zip(pipelines, vocabs, strict=True)), stamps)
    source, source_vocab = load_side(directory, "source", data)
    target, target_vocab = load_side(directory, "target", data)
    remember_back_end(directory)
    vocabs = source_vocab, target_vocab
    return ParallelData(data, (source, target), vocabs, text, corpus_folder(config), job.team.first)


def lm_text(config: RunConfig, kind: type[LanguageModel], text: TokenizedText) -> Side:
    """Load the text pipeline and vocabulary of a language model. For a new run, first learn them and the
    other files of this `kind` from `text`, and create the run directory. Errors as in `set_up_translator`."""
    data, directory = config.data, Path(config.run)
    if not run_directory.exists(directory):
        stamps = take_stamps(data)
        pipeline, vocab = prepare.make_text(data, text)
        check_vectors(config, {"target": vocab})
        run_files = {
            name: content.learn(config.lm, prepare.vocabulary_units(pipeline, vocab, text), text.show_bar)
            for name, content in kind.run_files.items()
        }
        create(config, {"target": (pipeline, vocab)}, stamps, run_files)
    return load_side(directory, "target", data)


def create(
    config: RunConfig,
    sides: Mapping[str, Side],
    stamps: dict[str, Stamp],
    run_files: Mapping[str, RunFile] = NO_FILES,
) -> None:
    """Create a run directory without weights. `sides`: text pipeline and vocabulary by side; `stamps`: of the
    input files, by key; `run_files`: others of this kind of model. UserError if it cannot be written."""
    with run_directory.writing(Path(config.run)) as new:
        text = config_file.to_yaml(config)
        files.write_text(new / run_directory.CONFIG, text.rstrip("\n").split("\n"))
        for name, (pipeline, vocab) in sides.items():
            pipeline.save(new, name)
            vocab.save(new / f"{name}.vocab")
        for name, content in run_files.items():
            content.save(new / name)
        save_stamps(stamps, new)
        run_directory.write_version(new)


def remember_back_end(directory: Path) -> None:
    """Record the matrix back end of this processor in the run, unless it has one already."""
    choices = directory / run_directory.BACK_ENDS
    if not device.recall_choice(choices):
        device.remember_choice(choices, device.BackEndChoice(device.back_end_in_use()))


def fit_output_layers(model: nn.Module, corpus: Corpus) -> None:
    """Let output layers that adapt to the training text learn from its target side; changes these layers."""
    layers = [part for part in model.modules() if isinstance(part, OutputLayer) and part.learns_text]
    if layers:
        text = running.join_sentences(corpus)
        for layer in layers:
            layer.learn(text)


def load_parent(directory: str | Path) -> Parent:
    """Load a run to initialize a translator from. CheckpointError if that is impossible."""
    path = run_directory.resolve(directory)
    config = run_directory.read_consistent(path, lambda: checkpoint.checked_config(path))
    kind = trainable_kind(config.model)
    return cast(Parent, kind.load(path)) if kind.starts_translators else checkpoint.load(path)


def copy_parent_weights(model: AnyModel, vocabs: tuple[Vocab, Vocab], parent: str) -> None:
    """Copy the weights of another run into a model, as far as they fit, and log how many did. `parent`: its
    directory; CheckpointError and ConfigError as from `load_parent` and `transfer_weights`."""
    report = transfer_weights(model, vocabs, load_parent(parent))
    log.info(
        "from %s: %s of %s parameters; %s of %s source words, %s of %s target words", parent,
        f"{report.copied:,}", f"{report.total:,}",
        f"{report.source_words:,}", f"{len(vocabs[0]):,}", f"{report.target_words:,}", f"{len(vocabs[1]):,}",
    )  # fmt: skip
    if report.left:
        log.warning("%d parameters do not fit and start afresh: %s", len(report.left), ", ".join(report.left))


# ---- files that training reads -----------------------------------------------------------------------------
# None of these files lies in the run directory. A run is resumed only if those of STAMPED_KEYS and of
# data.corpora have not changed; it keeps what it has taken from the others.


STAMPED_KEYS = (
    "train_source", "train_target", "phrase_table", "dev_source", "dev_target", "train_text", "dev_text",
    *ALIGNMENTS, *VECTORS,
)  # fmt: skip
PATH_KEYS = (
    "init_from",
    *(f"data.{key}" for key in STAMPED_KEYS),
    *(f"data.{side}.{key}" for side in ("source", "target") for key in ("vocab_file", "codes")),
)


def named_files(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Yield key below `data` and path of each input file of a configuration, missing ones too; no pipes."""
    values = [(item.name, getattr(config, item.name)) for item in fields(config) if item.name in STAMPED_KEYS]
    for key, path in (*values, *listed_files(config)):
        if path and path != "-" and (not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode)):
            yield key, path


def listed_files(config: DataConfig) -> Iterator[tuple[str, str]]:
    """Yield the key below `data` and the path of the files in `data.corpora`."""
    for index, corpus in enumerate(config.corpora):
        for key in ("source", "target", "alignment"):
            yield f"corpora[{index}].{key}", getattr(corpus, key)


def take_stamps(config: DataConfig) -> dict[str, Stamp]:
    """A stamp of each input file, by its key below `data`. DataError for a file that cannot be read."""
    return {key: manifest.stamp(path) for key, path in named_files(config)}


def save_stamps(stamps: dict[str, Stamp], new: Path) -> None:
    """Write the stamps to inputs.json in the folder `new`. UserError if that fails."""
    files.write_text(new / INPUTS, [json.dumps(stamps, indent=1)])


def check_inputs(config: DataConfig, directory: Path) -> None:
    """Compare the input files of a run with their stamps. DataError for a file that has changed since the run
    was started or cannot be read, and for stamps that are missing or do not fit the manifest; CheckpointError
    for stamps that cannot be parsed."""
    try:
        with manifest.open_verified(directory, INPUTS, manifest.load(directory)) as stream:
            recorded = dict(json.load(stream))
        changed = [
            (key, path)
            for key, path in named_files(config)
            if key in recorded and not manifest.unchanged(path, recorded[key])
        ]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{directory / INPUTS}: damaged; copy it again") from error
    if changed:
        key, path = changed[0]
        raise DataError(
            f"{path}: has changed since {directory} was started with it (data.{key}); bring it back, or "
            "start another run"
        )


def check_new_run(config: RunConfig, config_path: str) -> None:
    """Check a configuration before its run is created: no input lies in the run's folder, languages and
    subword settings fit together, the run to start from exists. `config_path`: its file, or empty.
    ConfigError, CheckpointError for the run to start from, DataError for malformed subwords."""
    if config.init_from:
        run_directory.check_version(run_directory.resolve(config.init_from))
    inputs = {"CONFIG.yaml": config_path, **{key: str(get_value(config, key)) for key in PATH_KEYS}}
    inputs |= {f"data.{key}": path for key, path in listed_files(config.data)}
    for key, path in inputs.items():
        if path and is_inside(path, config.run):
            raise ConfigError(
                f"{key} {path}: lies in the run directory {config.run}, which this command makes; name "
                "another directory with run="
            )
    check_languages(config)
    names = text_sides(config)
    if all(config.data.phrase_table or side_paths(config.data, name) for name in names):
        check_sides(config.data, *(LearningSide.of(name, config.data) for name in names))


def is_inside(path: str, folder: str) -> bool:
    """Whether `path` is `folder` or lies below it, with symbolic links resolved."""
    return Path(folder).resolve() in (Path(path).resolve(), *Path(path).resolve().parents)


# ---- kinds -------------------------------------------------------------------------------------------------
# What nmt-train can train: how the data is checked, a job put together and a run loaded.


@dataclass(frozen=True)
class TrainableKind:
    """A kind of model that nmt-train trains."""

    section: str  # section of the configuration: model | lm
    types: Mapping[str, Configured]  # model classes, by the value of `type` in this section
    check_data: Callable[[RunConfig, bool], None]  # checks the files; the flag: also read all text
    build: Callable[[TrainingJob], None]  # sets up model, batches and development set of a job
    load: Callable[[Path], SavedModel]  # loads the best weights of a run
    starts_translators: bool = False  # whether `init_from` may name such a run


def check_pairs(config: RunConfig, fresh: bool) -> None:
    """Check the files of a translator, with its word alignment for guided alignment. `fresh`: also read all
    text. ConfigError and DataError as from `nmt.data.corpus.check_config`."""
    check = alignment.check_guided if config.training.guided_alignment else check_config
    check(config.data, fresh)


KINDS: Registry[TrainableKind] = Registry(
    "trainable",
    {
        "translator": TrainableKind("model", MODELS, check_pairs, set_up_translator, checkpoint.load, True),
        "language model": TrainableKind(
            "lm",
            LANGUAGE_MODELS,
            lambda config, fresh: check_text_config(config.data, fresh),
            set_up_language_model,
            checkpoint.load_lm,
        ),
        "aligned model": TrainableKind(
            "model",
            ALIGNED_MODELS,
            lambda config, fresh: alignment.check_aligned(config.data, fresh),
            set_up_aligned_model,
            load_aligned,
        ),
    },
)


def trainable_kind(settings: ModelConfig | LMConfig) -> TrainableKind:
    """The kind of model that a section `model` or `lm` describes. Its `type` must be one in KINDS."""
    section = "lm" if isinstance(settings, LMConfig) else "model"
    return next(kind for kind in KINDS.values() if kind.section == section and settings.type in kind.types)
