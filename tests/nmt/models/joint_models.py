"""Small joint models for tests, and aligned pairs for them."""

import torch

from nmt.data.aligned import AlignedPair
from nmt.models.joint import JointConfig, JointModel
from nmt.text.vocab import UNK

SOURCE, TARGET = 7, 8  # words of the vocabularies
PAIRS = [
    AlignedPair([3, 4, 5, 6], [3, 4, 5], [0, 2, 3]),
    AlignedPair([5], [UNK, 7], [0, 0]),
    AlignedPair([6, 6, UNK], [], []),
    AlignedPair([3, 4, 5, 6], [3, 4, 6, 7, 7], [3, 2, 1, 0, 0]),
    AlignedPair([], [3], [0]),
]


def joint(seed: int = 0, **options: object) -> JointModel:
    """A model in double precision whose biases are not 0."""
    torch.manual_seed(seed)
    given = {"order": 3, "window": 5, "embedding": 3, "layers": [5, 4], "init_scale": 1.0, **options}
    model = JointModel(JointConfig(**given), SOURCE, TARGET).double().eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.5)
    return model
