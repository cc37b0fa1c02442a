"""Translations of lines that were cut into parts."""

from nmt.runs.translation import BeamTranslation, joined
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
