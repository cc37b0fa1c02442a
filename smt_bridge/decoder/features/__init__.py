"""Features inside the phrase-based search: the protocol, ours, and the registry."""

from typing import TYPE_CHECKING

from nmt.errors import ConfigError

if TYPE_CHECKING:
    from smt_bridge.decoder.features.cslm import Network


def load_network(name: str, path: str, normalized: bool) -> "Network":
    """The n-gram network of a run directory with its text pipeline. torch is loaded here and not before, so
    that systems without a network start at once. ConfigError for a run that is not a CSLM."""
    from nmt.lm.protocols import NgramNetwork, NormalizedScores
    from nmt.runs import checkpoint
    from smt_bridge.decoder.features.cslm import Network

    run = checkpoint.load_lm(path, "best", "cpu")
    model = run.model
    if not isinstance(model, NgramNetwork):
        raise ConfigError(
            f"{path}: {name} has to be a CSLM; use other language models to rescore n-best lists "
            "(smt-rescore)"
        )
    if normalized and not (isinstance(model, NormalizedScores) and model.normalizer):
        raise ConfigError(f"{path}: normalized=true, but this model was not trained with lm.normalizer")
    scores = model.ngram_scores(normalized, keep_tables=True)
    return Network(order=scores.order, score=scores.score, text=run.text, vocab=run.words)
