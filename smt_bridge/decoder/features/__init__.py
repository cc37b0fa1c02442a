"""Features of the phrase-based search. This file loads the networks of the neural ones; torch is imported
only then, so that systems without a network start fast."""

from functools import partial
from typing import TYPE_CHECKING

from nmt.errors import ConfigError
from smt_bridge.moses.words import check_detokenizes, check_reads_words, units

if TYPE_CHECKING:
    from smt_bridge.decoder.features import neural_translation
    from smt_bridge.decoder.features.ngram_networks import JointNetwork, TargetNetwork


def load_network(name: str, path: str, normalized: bool) -> "TargetNetwork":
    """Load the n-gram network of a run directory with its text pipeline. `name`: name of the feature, for
    messages; `normalized`: take log Z as 0. ConfigError for a language model that is not a CSLM, that reads
    raw text, or that was not trained with a normalizer although `normalized` is set. CheckpointError for any
    other folder."""
    from nmt.runs import checkpoint
    from smt_bridge.decoder.features.ngram_networks import TargetNetwork

    run = checkpoint.load_lm(path, "best", "cpu")
    model = run.model
    scores = model.ngram_scores(normalized, keep_tables=True)
    if scores is None:
        raise ConfigError(
            f"{path}: {name} has to be a CSLM; use other language models to rescore n-best lists "
            "(smt-rescore)"
        )
    check_reads_words(path, target=run.text.raw)
    if normalized and model.without_log_z() is None:
        raise ConfigError(
            f"{path}: normalized=true, but this model was not trained with lm.normalizer; remove the option"
        )
    return TargetNetwork(order=scores.order, score=scores.score, text=run.text, vocab=run.words)


def load_translator(path: str, restricted: bool) -> "neural_translation.TranslationNetwork":
    """Load the translator of a run directory with its text pipelines. As in smt-rescore, words of the phrase
    table are unescaped and cut into the run's units, and detokenized for a run of raw text. ConfigError for a
    run of raw text of an unknown language; if `restricted` is set, for a run that writes raw text, and for a
    model that cannot restrict its softmax to a short-list. CheckpointError for any other folder."""
    from nmt.models.protocols import Layered
    from nmt.runs import checkpoint
    from nmt.search.prefix_states import PrefixStates
    from smt_bridge.decoder.features.neural_translation import TranslationNetwork

    run = checkpoint.load(path, "best", "cpu")
    check_detokenizes(path, source=run.source, target=run.target)
    if restricted and run.target.raw:
        raise ConfigError(
            f"{path}: restricted=true, but this run writes raw text, whose units depend on the words "
            "around them; remove the option"
        )
    if restricted and not isinstance(run.model, Layered):
        raise ConfigError(
            f"{path}: restricted=true, but models of this type cannot use a short-list; remove the option"
        )
    return TranslationNetwork(
        source=lambda words: run.source_words.encode(units(words, run.source)),
        target=lambda words: run.target_words.encode(units(words, run.target)),
        prefixes=partial(PrefixStates, run.model),
        raw=run.target.raw,
    )


def load_joint(path: str, normalized: bool) -> "JointNetwork":
    """Load the joint model of a run directory with its text pipelines. `normalized`: take log Z as 0.
    ConfigError for a run that reads raw text or reads from right to left, and for one that was not trained
    with a normalizer if `normalized` is set. CheckpointError for any other folder."""
    from nmt.runs import joint
    from smt_bridge.decoder.features.ngram_networks import JointNetwork

    run = joint.load_aligned(path, "best", "cpu")
    check_reads_words(path, source=run.source.raw, target=run.target.raw)
    if normalized and not run.model.self_normalized:
        raise ConfigError(
            f"{path}: normalized=true, but this model was not trained with model.normalizer; remove the "
            "option"
        )
    if run.model.shape.backward:
        raise ConfigError(
            f"{path}: reads from right to left, and the search does not know the words that follow; use it "
            "to rescore n-best lists (smt-rescore --feature joint)"
        )
    scores = run.model.window_scores(normalized, keep_tables=True)
    return JointNetwork(scores, (run.source, run.source_words), (run.target, run.target_words))
