"""Small random models for tests, and texts for them."""

from collections.abc import Mapping

import torch

from nmt.data.affiliation import AlignedPair
from nmt.models.config import RNNConfig
from nmt.models.joint import JointConfig, JointModel
from nmt.models.rnn import RNNTranslator
from nmt.models.transformer import Transformer, TransformerConfig
from nmt.text.vocab import UNK

SOURCE, TARGET = 11, 12
PAIRS = [([3, 4, 5], [3]), ([6], [4, 5, 6, 7]), ([7, 8], [8, 9]), ([], [])]
SPELLING = ["<s>", "</s>", "<unk>", "a", "be", "bee", "cab", "deed", "e", "fa", "abracadabra"]
RNN_VARIANTS: list[dict[str, object]] = [
    {},
    {"cell": "lstm"},
    {"gate": "take_new", "bias": True},
    {"reset": "after"},
    {"reset": "after_with_context"},
    {"first_word": "initial"},
    {"first_word": "initial", "cell": "lstm"},
    {"summary": "tanh", "output_rank": 3},
    {"encoder": "birnn"},
    {"encoder": "birnn", "encoder_hidden": 3, "encoder_layers": 2, "decoder_layers": 2, "bias": True},
    {"encoder": "birnn", "encoder_hidden": 3, "attention": 6, "bias": True},
    {"encoder": "birnn", "encoder_layers": 2, "decoder_layers": 3, "attention": 6, "cell": "lstm"},
    {"attention": 6},
    {"attention": 6, "reset": "after", "encoder": "birnn"},
    {"attention": 6, "gate": "take_new", "encoder": "birnn"},
    {"attention": 6, "reverse": True},
    {"reverse": True},
    {"encoder_layers": 2, "decoder_layers": 2, "cell": "lstm"},
    {"cell": "vcrnn", "sharpness": 0.6, "encoder_layers": 2, "decoder_layers": 2},
    {"cell": "vcgru", "sharpness": 0.6, "encoder": "birnn", "first_word": "initial"},
    {"cell": "vcgru", "sharpness": 0.6, "encoder": "birnn", "attention": 6, "decoder_layers": 2},
    {"encoder": "grconv", "bias": True},
    {"encoder": "grconv", "encoder_hidden": 6, "summary": "tanh", "reverse": True},
    {"tied": "target", "output_rank": 4},
    {"tied": "target", "maxout": 4, "encoder": "birnn", "attention": 6},
    {"source_words": "characters"},
]
TRANSFORMER_VARIANTS: list[dict[str, object]] = [
    {},
    {"norm": "pre"},
    {"positions": "learned", "longest": 3},
    {"positions": "none"},
    {"positions": "sinusoidal-split", "activation": "swish"},
    {"activation": "gelu"},
    {"tied": "none", "heads": 4},
    {"encoder_layers": 1, "decoder_layers": 3, "feed_forward": 5},
]


def with_options(config: RNNConfig, options: Mapping[str, object]) -> RNNConfig:
    """The configuration with some of its values replaced."""
    for name, value in options.items():
        assert hasattr(config, name), name
        setattr(config, name, value)
    return config


def make_rnn(**options: object) -> RNNTranslator:
    torch.manual_seed(0)
    config = with_options(RNNConfig(embedding=4, hidden=5, maxout=3, init_scale=0.5), options)
    return RNNTranslator(config, SOURCE, TARGET, spelling=SPELLING).double().eval()


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
