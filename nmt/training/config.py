"""The configuration of nmt-train as dataclasses: settings, which of them exclude each other, and the
languages of the texts; nmt/training/config_file.py reads it from files."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from nmt.config import settings
from nmt.config.settings import choice, name_in, number, setting
from nmt.data.corpus import VECTORS, DataConfig
from nmt.errors import ConfigError
from nmt.layers.output import OutputSettings, refuse
from nmt.lm.base import LMConfig
from nmt.models.config import TEXT, ModelConfig
from nmt.search.config import BEAM_SIZE
from nmt.text import scripts
from nmt.text.pipeline import check_language, check_segment, needs_language
from nmt.text.scripts import is_spaceless
from nmt.training.optimizers import LINEAR, SCHEDULES

AUTO = "auto"
TOKENIZED = "tokenized"  # training.bleu_tokenizer: BLEU of the words that the model sees


@dataclass
class TrainingConfig:
    """The section `training` of a configuration."""

    optimizer: str = choice(
        "adadelta",
        "adam",
        "sgd",
        help="adadelta (Zeiler 2012) trained the models of Cho et al. 2014a and 2014b",
    )
    learning_rate: float = number(1.0, least=0, most=1000, help="1 for adadelta; about 0.001 for adam")
    warmup: int = number(0, least=0, help="updates over which the rate grows linearly to learning_rate")
    schedule: str = name_in(
        SCHEDULES,
        help="after the warm-up; inverse_sqrt: learning_rate √(warmup / updates); linear: down to 0 at "
        "the end, by max_steps, max_epochs or max_minutes, whichever comes first. See also decay",
    )
    rho: float = number(0.95, least=0, below=1, help="adadelta only: share of its mean squares that is kept")
    eps: float = number(1e-6, least=1e-30, help="adadelta only: what is added to its mean squares")
    beta1: float = number(0.9, least=0, below=1, help="adam only: share of the mean gradient that is kept")
    beta2: float = number(
        0.999,
        least=0,
        below=1,
        help="adam only: share of the mean squared gradient that is kept; transformers want 0.98",
    )
    clip: float = number(
        1.0, least=0, most=1_000_000, help="largest total norm of a gradient; 0: no clipping"
    )
    cost: str = choice(
        "sentence",
        "word",
        "sum",
        help="gradient of the mean cost over sentences (van Merriënboer 2018, eq. 4.4), of the mean "
        "over words, or of the sum (the code of Cho et al. 2014a)",
    )
    label_smoothing: float = number(
        0.0,
        least=0,
        below=1,
        help="share of each word's probability mass spread over the vocabulary; 0.1 helps small corpora. "
        "Development costs are without it",
    )
    guided_alignment: float = number(
        0.0,
        least=0,
        help="weight of the cross-entropy between attention and the word alignment data.alignment, which is "
        "added to the cost (Chen et al. 2016); 0: off; 0.05 and 0.1 are usual",
    )
    freeze_vectors: str = choice(
        "none",
        "source",
        "target",
        "both",
        help="do not update the vectors from data.source_vectors and data.target_vectors; "
        "the others are learned",
    )
    batch_size: int = number(64, least=1, help="sentences of a batch")
    batch_tokens: int = number(
        0,
        least=0,
        help="instead of batch_size: maximum number of units on either side of a batch (words or subwords, "
        "end symbols included); a longer sentence is a batch of its own. 0: use batch_size",
    )
    accumulate: int = number(
        1,
        least=1,
        help="batches of a process whose gradients are added for one update, for batches larger than memory",
    )
    update_batches: int = number(
        0,
        least=0,
        help="batches of one update, however many processes of torchrun share them, instead of accumulate; "
        "0: accumulate x the processes that the run was started with",
    )
    pool: int = number(20, least=1, help="batches sorted by length together")
    max_steps: int = number(
        0,
        least=0,
        help="most updates; 0: no limit. Without any limit, training goes on until `patience` or a signal "
        "ends it",
    )
    max_epochs: int = number(0, least=0, help="most passes over the training data; 0: no limit")
    max_minutes: float = number(
        0.0,
        least=0,
        help="most minutes of wall time over all starts of the run, the last validation included; 0: no "
        "limit",
    )
    log_every: int = number(100, least=1, help="updates between two lines of the log")
    validate_every: int = number(
        1000, least=0, help="updates between two validations, which also save; 0: at the end of each epoch"
    )
    save_every: int = number(
        0,
        least=0,
        help="updates between two saves; 0: only when validating. Saving more often loses less when a "
        "machine dies",
    )
    dev_beam: int = number(
        BEAM_SIZE,
        least=0,
        most=10_000,
        help="beam size for BLEU and chrF on the development set; 0: neither. The default is that of "
        "nmt-translate, so that it gives the same score",
    )
    metric: str = choice(
        "bleu",
        "chrf",
        "cost",
        help="the development score that decides which weights are best; while it is 0.00, the cost decides",
    )
    bleu_tokenizer: str = setting(
        AUTO,
        help="sacreBLEU's tokenizer for the development set; auto: by the target language, none where "
        "data.target.tokenize is false, and the run remembers which; tokenized: score the words that the "
        "model sees",
    )
    patience: int = number(
        10, least=0, help="stop after this many validations without a better score; 0: never"
    )
    decay: float = number(
        1.0,
        above=0,
        most=1,
        help="factor of the rate after `decay_patience` validations without a better score; 0.5 halves it "
        "on a plateau",
    )
    decay_patience: int = number(1, least=1, help="validations without a better score before `decay`")
    decay_below: float = number(
        0.0,
        least=0,
        help="instead: the rate decays at each validation whose perplexity fell by less than this since the "
        "one before; 1 is the rule of Jernite 2018, with sgd, decay 0.5, a validation each epoch",
    )
    ema: float = number(
        0.0,
        least=0,
        below=1,
        help="keep an exponential moving average of the weights, of which an update keeps this share, less "
        "at the beginning. The average is validated, saved and loaded; training goes on with the weights "
        "themselves. 0: off; 0.999 suits a few thousand updates",
    )
    keep: int = number(1, least=1, help="newest checkpoints kept, besides the best")
    # The last key: a config.yaml without it was cut off.
    tensorboard: bool = setting(True, help="write curves for TensorBoard, where it is installed")

    def check(self) -> None:
        """ConfigError for a value out of range, and for values that do not go together."""
        settings.check(self, "training.")
        if self.schedule == "inverse_sqrt" and not self.warmup:
            raise ConfigError("training.schedule: inverse_sqrt needs warmup of 1 or more")
        ends = self.max_steps > self.warmup if self.max_steps else self.max_epochs or self.max_minutes
        if self.schedule == LINEAR and not ends:
            raise ConfigError(
                "training.schedule: linear needs max_steps, the update at which the rate is 0, above warmup, "
                "or max_epochs or max_minutes without it"
            )
        if self.decay_below and self.decay == 1:
            raise ConfigError("training.decay_below: needs training.decay below 1, for example 0.5")
        if self.metric != "cost" and not self.dev_beam:
            raise ConfigError(f"training.metric: {self.metric} needs dev_beam of 1 or more")


# ---- run config --------------------------------------------------------------------------------------------
# The whole configuration as a dataclass; nmt/training/config_file.py reads it from files.


@dataclass
class RunConfig:
    """The configuration of nmt-train, which creates or resumes a run. Either `model` or `lm` is given."""

    run: str = setting("", help="the run directory that training makes or resumes")
    seed: int = number(1, least=0, help="seed of the parameters, the order of sentences and dropout")
    device: str = setting("cpu", help="cpu, cuda, cuda:1 ..., auto (a GPU if there is one)")
    threads: int = number(0, least=0, help="CPU threads; 0: torch decides")
    init_from: str = setting(
        "", help="a run whose weights are the start, as far as they fit; words are matched by their spelling"
    )
    precision: str = choice(
        "fp32",
        "bf16",
        help="precision of matrix products in training; bf16 is about twice as fast on processors with "
        "avx512_bf16",
    )
    matmul: str = choice("auto", "mkl", "onednn", help="back end of matrix products on the CPU")
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig | None = None  # of a translator
    lm: LMConfig | None = None  # of a language model
    training: TrainingConfig = field(default_factory=TrainingConfig)

    @property
    def settings(self) -> ModelConfig | LMConfig:
        """The section `model` or `lm`, whichever is given; a default `ModelConfig` if neither is."""
        return self.lm or self.model or ModelConfig()

    @property
    def monolingual(self) -> bool:
        """Whether the model learns from `data.train_text`, which is processed as `data.target` says."""
        return self.settings.reads == TEXT


# Keys that may differ when a run is resumed: limits, and settings that do not affect the result.
FREE_KEYS = {"run", "threads", "data.cache", "data.workers"} | {
    f"training.{key}"
    for key in ("max_steps", "max_epochs", "max_minutes", "patience", "keep", "tensorboard", "update_batches")
}

# Settings whose value `auto` is resolved when a run is created; its config.yaml has the resolved value.
DERIVED_KEYS = {"training.bleu_tokenizer"}


def get_value(config: RunConfig, key: str) -> object:
    """The value of a dotted key, such as `training.clip`. AttributeError for an unknown key."""
    value: object = config
    for part in key.split("."):
        value = getattr(value, part)
    return value


# ---- combinations ------------------------------------------------------------------------------------------
# Settings of different sections of a configuration that do not go together. Messages begin with a key.


def check_combinations(config: RunConfig) -> None:
    """ConfigError for the first pair of settings that exclude each other."""
    check_output(config)
    check_guided(config)
    check_vectors(config)


def check_output(config: RunConfig) -> None:
    """ConfigError for label smoothing with an output layer that does not compute all words, and for averaged
    weights with a layer whose weights change their meaning during training."""
    section, settings = "lm" if config.lm else "model", config.lm or config.model
    if isinstance(settings, OutputSettings):
        for name in ("label_smoothing", "ema"):
            if getattr(config.training, name):
                refuse(cast(OutputSettings, settings), section, name, f"training.{name}")


def check_guided(config: RunConfig) -> None:
    """ConfigError for guided alignment of a model without attention over the source."""
    if config.training.guided_alignment and not (config.model and config.model.attends):
        kind = config.model.type if config.model else "a language model"
        remedy = "; set model.attention" if kind == "rnn" else ""
        raise ConfigError(f"training.guided_alignment: {kind} has no attention over the source here{remedy}")


def check_vectors(config: RunConfig) -> None:
    """ConfigError for word vectors without a table to put them into, for two files but one table (tied: all),
    and for frozen vectors without a file."""
    settings, has_vectors = config.lm or config.model, dict[str, bool]()
    for key in VECTORS:
        side = key.removesuffix("_vectors")
        has_vectors[side] = bool(getattr(config.data, key))
        if has_vectors[side] and side not in (settings.vector_sides if settings else ()):
            kind = settings.type if settings else ""
            raise ConfigError(f"data.{key}: {kind} has no table of {side} word vectors here; leave it out")
    if all(has_vectors.values()) and getattr(settings, "tied", "") == "all":
        raise ConfigError(
            "data.source_vectors: model.tied: all has one table for both sides; give data.target_vectors "
            "alone"
        )
    frozen = config.training.freeze_vectors
    for side in ("source", "target"):
        if frozen in (side, "both") and not has_vectors[side]:
            raise ConfigError(
                f"training.freeze_vectors: {frozen} needs data.{side}_vectors; give them, or freeze less"
            )


# ---- side languages ----------------------------------------------------------------------------------------
# The languages of the texts of a run: as the configuration says, else as the names of its files end.


# Keys of the files of each side; the first file whose name ends in a language decides.
LANGUAGE_FILES = {
    "source": ("train_source", "dev_source"),
    "target": ("train_target", "train_text", "dev_target", "dev_text"),
}


def text_sides(config: RunConfig) -> tuple[str, ...]:
    """The sides that have text: source and target, or `target` alone for monolingual text."""
    return ("target",) if config.monolingual else ("source", "target")


def set_languages(config: RunConfig) -> None:
    """Fill in the language of each side from its file names if none is set. For scripts without spaces, which
    have no case, truecasing is switched off even if a preset asks for it. ConfigError for corpora of several
    languages whose settings need the rules of one."""
    for name in text_sides(config):
        side = getattr(config.data, name)
        if not side.language and not has_several_languages(config.data, name):
            languages = (scripts.language_of_file(path) for path in side_paths(config.data, name))
            side.language = next(filter(None, languages), "")
        if side.case == "truecase" and side.segment == "auto" and is_spaceless(side.language):
            side.case = "keep"


def has_several_languages(data: DataConfig, name: str) -> bool:
    """Whether the corpora of a side, source or target, are in several languages. ConfigError if they are,
    although the settings of the side need the rules of a single language."""
    languages = sorted({scripts.language_of_file(getattr(corpus, name)) for corpus in data.corpora} - {""})
    if len(languages) > 1 and needs_language(getattr(data, name)):
        raise ConfigError(
            f"data.{name}.language: missing, and the corpora are of several languages, {', '.join(languages)}"
            "; set it to the language whose rules apply to all of them, or set "
            f"data.{name}.subword: unigram, which needs none"
        )
    return len(languages) > 1


def check_languages(config: RunConfig) -> None:
    """ConfigError for a language that is unknown, or that is missing although its rules are needed, and for
    a segmentation that a side does not support. DataError for a file of subwords that cannot be read."""
    for name in text_sides(config):
        side, key = getattr(config.data, name), f"data.{name}.language"
        paths = side_paths(config.data, name) or list(filter(None, [config.data.phrase_table]))
        if not paths:
            continue  # without text nothing is trained, and its absence is the mistake to name
        if not side.language and needs_language(side):
            files = list(dict.fromkeys(Path(path).name for path in paths))
            verb = "does" if len(files) == 1 else "do"
            raise ConfigError(
                f"{key}: missing, and {', '.join(files)} {verb} not end in the code of a language, as "
                f"train.en does; set it, e.g. {key}: de"
            )
        check_language(side, key)
        try:
            check_segment(side)
        except ConfigError as error:
            raise ConfigError(f"data.{name}.{error}") from error


def side_paths(data: DataConfig, side: str) -> list[str]:
    """The files of a side whose names may end in its language; not a phrase table, which has both."""
    listed = [getattr(corpus, side) for corpus in data.corpora]
    return listed + [path for key in LANGUAGE_FILES[side] if (path := str(getattr(data, key)))]


def describe_languages(config: RunConfig) -> str:
    """Format the languages for the log: `en -> fr`, or the one language of monolingual text."""
    return " -> ".join(getattr(config.data, name).language or "not set" for name in text_sides(config))
