"""Small random Transformers for tests."""

import torch

from nmt.models.transformer import Transformer, TransformerConfig

SOURCE, TARGET = 11, 12
PAIRS = [([3, 4, 5], [3]), ([6], [4, 5, 6, 7]), ([7, 8], [8, 9]), ([], [])]


def make(**options: object) -> Transformer:
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
