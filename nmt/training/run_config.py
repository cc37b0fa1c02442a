"""The configuration of a training as a dataclass; nmt/training/config_file.py reads it from files."""

from dataclasses import dataclass, field

from nmt.data.corpus import DataConfig
from nmt.lm.config import LMConfig
from nmt.models.config import ModelConfig
from nmt.models.registry import ALIGNED_MODELS, PRETRAINED
from nmt.settings import choice, number, setting
from nmt.training.config import TrainingConfig


@dataclass
class RunConfig:
    """The configuration of a training, which makes or resumes a run. Either `model` or `lm` is given."""

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
    def aligned(self) -> bool:
        """Does it train a model that is given the alignment?"""
        return self.model is not None and self.model.type in ALIGNED_MODELS

    @property
    def pretrains(self) -> bool:
        """Does it train an encoder for translators to start from?"""
        return self.model is not None and self.model.type in PRETRAINED

    @property
    def monolingual(self) -> bool:
        """Does it read `data.train_text`, by the rules of `data.target`?"""
        return self.lm is not None or self.pretrains


# What may differ when a run is resumed: limits, and what does not affect the result.
FREE = {"run", "threads", "data.cache", "data.workers"} | {
    f"training.{key}"
    for key in ("max_steps", "max_epochs", "max_minutes", "patience", "keep", "tensorboard", "update_batches")
}

# Settings of which `auto` is resolved when a run is made; its config.yaml has the value.
DERIVED = {"training.bleu_tokenizer"}


def value_of(config: RunConfig, key: str) -> object:
    """The value of a dotted key."""
    found: object = config
    for part in key.split("."):
        found = getattr(found, part)
    return found
