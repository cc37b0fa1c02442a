"""Checks of what a language model of the user's own returns."""

from torch import Tensor

from nmt.data.batches import Batch
from nmt.layers.result_checks import ResultChecks
from nmt.lm.base import LanguageModel, SoftmaxLM


class CheckedLM(ResultChecks, LanguageModel):
    """Mixin for the language model of a plugin, see `ResultChecks`."""


class CheckedSoftmaxLM(CheckedLM, SoftmaxLM):
    """`CheckedLM` for a model with a softmax over the vocabulary."""

    def read(self, batch: Batch) -> Tensor:
        features: object = super().read(batch)
        tokens = len(batch.target.ids)
        if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != tokens:
            raise self._wrong("read", features, f"a tensor of shape ({tokens}, K), features of each token")
        return features
