"""Checks of what a language model of the user's own returns."""

from torch import Tensor

from nmt.data.batches import Batch
from nmt.layers.result_checks import ResultChecks
from nmt.lm.base import LanguageModel, SoftmaxLM


class CheckedLM(ResultChecks, LanguageModel):
    """Mixin for the language model of a plugin, see `ResultChecks`."""

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Tensor:
        loss = super().loss(batch, smoothing)
        self._check_loss(loss)
        return loss

    def token_log_probs(self, batch: Batch) -> Tensor:
        log_probs = super().token_log_probs(batch)
        self._check_token_log_probs(log_probs, len(batch.target.ids))
        return log_probs


class CheckedSoftmaxLM(CheckedLM, SoftmaxLM):
    """`CheckedLM` for a model with a softmax over the vocabulary."""

    def read(self, batch: Batch) -> Tensor:
        features: object = super().read(batch)
        tokens = len(batch.target.ids)
        if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != tokens:
            raise self._wrong("read", features, f"a tensor of shape ({tokens}, K), features of each token")
        return features
