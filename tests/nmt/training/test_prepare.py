"""What training makes of a configuration's files."""

from collections import Counter

from nmt.data import subword
from nmt.data.subword import Subwords
from nmt.data.text import SideConfig, TextPipeline
from nmt.training.prepare import unit_counts


def test_every_unit_that_dropout_can_give_is_in_the_vocabulary() -> None:
    """With dropout the single characters and all merges too; without it only what the plain cut gives."""
    counts = Counter({"lower": 9, "lowest": 7})
    pipeline = TextPipeline.of(SideConfig())
    pipeline.subwords = Subwords(subword.learn(counts, 20))
    plain, dropped = unit_counts(pipeline, counts, 0.0), unit_counts(pipeline, counts, 0.1)
    assert set(plain) == set(pipeline.cut(["lower", "lowest"])) and {"l@@", "o@@", "t"} <= set(dropped)
    assert all(dropped[unit] == count for unit, count in plain.items())
