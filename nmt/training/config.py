"""The settings of a training: optimizer, schedule, limits, validation. Without torch."""

from dataclasses import dataclass

from nmt import settings
from nmt.errors import ConfigError
from nmt.search.config import BEAM_SIZE
from nmt.settings import choice, name_in, number, setting
from nmt.training.schedules import LINEAR, SCHEDULES

AUTO = "auto"


@dataclass
class TrainingConfig:
    """The section `training` of a configuration."""

    optimizer: str = choice("adadelta", "adam", "sgd", help="adadelta is that of the papers")
    learning_rate: float = number(1.0, least=0, most=1000, help="1 for adadelta; about 0.001 for adam")
    warmup: int = number(0, least=0, help="updates over which the rate grows linearly to learning_rate")
    schedule: str = name_in(
        SCHEDULES,
        help="after the warm-up; inverse_sqrt: learning_rate √(warmup / updates); linear: down to 0 at "
        "the end, by max_steps, max_epochs or max_minutes, whichever comes first. See also decay",
    )
    rho: float = number(0.95, least=0, below=1, help="adadelta only")
    eps: float = number(1e-6, above=0, help="adadelta only")
    beta1: float = number(0.9, least=0, below=1, help="adam only: share of the mean gradient that is kept")
    beta2: float = number(
        0.999, least=0, below=1, help="adam only: the same of its square; transformers want 0.98"
    )
    clip: float = number(
        1.0, least=0, most=1_000_000, help="largest total norm of a gradient; 0: no clipping"
    )
    cost: str = choice(
        "sentence",
        "word",
        "sum",
        help="what the gradient is of: the mean over sentences (eq. 4.4), the mean over words, the sum "
        "(authors' code)",
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
        help="keep the vectors that words have from data.source_vectors, data.target_vectors as they are; "
        "words without one are learned",
    )
    batch_size: int = number(64, least=1, help="sentences of a batch")
    batch_tokens: int = number(
        0,
        least=0,
        help="instead of batch_size: a batch holds as many sentences as have at most so many units (words or "
        "subwords, end symbols included) on either side; a longer sentence is a batch of its own. 0: by "
        "batch_size",
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
        0, least=0, help="updates; 0: no limit. One of the limits or `patience` has to end the training"
    )
    max_epochs: int = number(0, least=0, help="0: no limit")
    max_minutes: float = number(
        0.0, least=0, help="wall time over all starts of the run, the last validation included; 0: no limit"
    )
    log_every: int = number(100, least=1, help="updates")
    validate_every: int = number(
        1000, least=0, help="updates; 0: at the end of each epoch. Validation also saves"
    )
    save_every: int = number(
        0, least=0, help="updates; 0: only when validating. Saving more often loses less when a machine dies"
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
        "model sees, as until version 0.5",
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
    decay_patience: int = number(1, least=1, help="validations")
    decay_below: float = number(
        0.0,
        least=0,
        help="instead: the rate decays at each validation whose perplexity fell by less than this since the "
        "one before; 1 is the rule of the sub-word thesis, with sgd, decay 0.5, a validation each epoch",
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
