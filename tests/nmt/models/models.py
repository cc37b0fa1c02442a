"""Configurations from the options of parametrized tests."""

from collections.abc import Mapping

import torch

from nmt.data.aligned import AlignedPair
from nmt.models.config import RNNConfig
from nmt.models.joint import JointConfig, JointModel
from nmt.models.transformer import Transformer, TransformerConfig
from nmt.text.vocab import UNK

# ---- options -----------------------------------------------------------------------------------------------
# Configurations from the options of parametrized tests.


def with_options(config: RNNConfig, options: Mapping[str, object]) -> RNNConfig:
    """The configuration with some of its values replaced."""
    for name, value in options.items():
        assert hasattr(config, name), name
        setattr(config, name, value)
    return config


# ---- transformer models ------------------------------------------------------------------------------------
# Small random Transformers for tests.


SOURCE, TARGET = 11, 12
PAIRS = [([3, 4, 5], [3]), ([6], [4, 5, 6, 7]), ([7, 8], [8, 9]), ([], [])]


def make_transformer(**options: object) -> Transformer:
    """In double precision; biases and gains are not the zeros and ones of a fresh model."""
    torch.manual_seed(0)
    sizes: dict[str, object] = {
        "embedding": 8, "feed_forward": 12, "heads": 2, "encoder_layers": 2, "decoder_layers": 2,
    }  # fmt: skip
    model = Transformer(TransformerConfig(**{**sizes, **options}), SOURCE, TARGET)  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model.double().eval()


# ---- joint models ------------------------------------------------------------------------------------------
# Small joint models for tests, and aligned pairs for them.


JOINT_SOURCE, JOINT_TARGET = 7, 8  # words of the vocabularies
ALIGNED = [
    AlignedPair([3, 4, 5, 6], [3, 4, 5], [0, 2, 3]),
    AlignedPair([5], [UNK, 7], [0, 0]),
    AlignedPair([6, 6, UNK], [], []),
    AlignedPair([3, 4, 5, 6], [3, 4, 6, 7, 7], [3, 2, 1, 0, 0]),
    AlignedPair([], [3], [0]),
]


def make_joint(seed: int = 0, **options: object) -> JointModel:
    """A model in double precision whose biases are not 0."""
    torch.manual_seed(seed)
    given = {"order": 3, "window": 5, "embedding": 3, "layers": [5, 4], "init_scale": 1.0, **options}
    model = JointModel(JointConfig(**given), JOINT_SOURCE, JOINT_TARGET).double().eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.5)
    return model
