"""The feature of a translation model: escapes, and words that its training corpus lacks."""

import math
from pathlib import Path

import pytest

from nmt.formats import phrase_table
from nmt.runs import checkpoint
from smt_bridge.features.base import WordPairs, of_phrases
from smt_bridge.features.spec import FeatureSettings
from smt_bridge.features.translation import CorpusShares, Translation


def test_the_model_sees_no_escapes(tiny: Path) -> None:
    run = checkpoint.load(tiny / "run")
    run.source_words.ids["'s"], run.target_words.ids['"'] = 5, 6  # known words, which the tiny corpus lacks
    pairs = [
        (b"&apos;s dog", b"x &quot;"),
        (b"'s dog", b'x "'),
        (b"unknown dog", b"x &quot;"),
        (b"&apos;s dog", b"x unknown"),
    ]
    escaped, plain, other_source, other_target = Translation(run).score(
        of_phrases([phrase_table.parse(b"%s ||| %s ||| 1" % pair, "t:1") for pair in pairs])
    )
    assert escaped == pytest.approx(plain, abs=1e-5)
    assert abs(escaped - other_source) > 1e-3 and abs(escaped - other_target) > 1e-3


def test_unknown_split_sums_to_one(tiny: Path) -> None:
    """Over the full vocabulary, the words that the training corpus lacks counted as one."""
    run = checkpoint.load(tiny / "run")
    known = dict(list(run.target_words.ids.items())[:10])
    run.target_words.words, run.target_words.ids = run.target_words.words[: 3 + len(known)], known
    shares = CorpusShares(run.target_words)
    unknown = [word for word in run.target_words.counts if word not in known]
    assert len(unknown) > 5
    assert sum(math.exp(shares.log([word])) for word in [*unknown, "never seen"]) == pytest.approx(1)
    assert shares.log(["le", *unknown[:2]]) == pytest.approx(
        shares.log([unknown[0]]) + shares.log([unknown[1]])
    )
    most, least = (
        max(unknown, key=lambda word: run.target_words.counts[word]),
        min(unknown, key=lambda word: run.target_words.counts[word]),
    )
    assert shares.log([most]) >= shares.log([least]) >= shares.log(["never seen"])
    pairs = WordPairs(sources=[["the"]], targets=[["le", "never-seen"], ["le"]], source_of=[0, 0])
    plain, split = (
        Translation(run, settings=FeatureSettings(unknown=mode)).score(pairs) for mode in ("plain", "split")
    )
    assert split[0] == pytest.approx(plain[0] + shares.log(["never-seen"])) and split[1] == plain[1]
