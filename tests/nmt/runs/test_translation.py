"""Translations of lines that were cut into parts; the one of minimum Bayes risk."""

from nmt.runs.translation import BeamTranslation, joined, least_risk
from nmt.text.pipeline import SideConfig, TextPipeline


def test_parts_are_joined_in_order_and_their_scores_added() -> None:
    parts = [
        BeamTranslation(words=["a", "b"], log_prob=-1.0, score=-0.5, alignment=[(0, 0)]),
        BeamTranslation(words=["c"], log_prob=-2.0, score=-2.0),
    ]
    target = TextPipeline.of(SideConfig("fr"))
    whole = joined(parts, target)
    assert (whole.words, whole.log_prob, whole.score, whole.alignment) == (["a", "b", "c"], -3.0, -2.5, [])
    assert joined(parts[:1], target) is parts[0]


def test_least_risk() -> None:
    """At a large scale the best; else what many agree on, draws counted alike by a scale of 0."""
    scores = {"p q r s": -1.0, "a b c d": -1.2, "a b c e": -1.3}
    found = [
        BeamTranslation(words=text.split(), log_prob=3 * score, score=score) for text, score in scores.items()
    ]
    for metric in ("bleu", "chrf"):
        assert least_risk(found, metric, 100.0) is found[0]
        assert least_risk(found, metric, 1.0) is found[1]
        assert least_risk([found[2], found[2], *found], metric, 0.0) is found[2]
        assert least_risk(found[2:], metric, 1.0) is found[2]
