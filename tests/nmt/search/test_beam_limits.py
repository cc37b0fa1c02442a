"""What a search must keep to: bounds of length, forced prefixes, unknown words, settings in range."""

import math
from dataclasses import replace
from typing import Any

import pytest

from nmt.errors import ConfigError
from nmt.scoring import word_scores
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.text.vocab import EOS, UNK
from tests.nmt.search.models import SOURCES, Scripted, make


def test_nothing_finished_ends_where_the_limit_stands() -> None:
    endless = {tuple([3] * n): {3: 0.9, EOS: 0.1} for n in range(50)}
    found = search(Scripted(endless), [[3, 3], [3]], BeamConfig(beam_size=1))
    assert [(c.words, c.complete) for candidates in found for c in candidates] == [
        ([3] * 6, False),
        ([3] * 3, False),
    ]
    assert found[0][0].log_prob == pytest.approx(6 * math.log(0.9) + math.log(0.1), abs=1e-6)


def test_minimum_length() -> None:
    found = search(make(words=20), SOURCES, BeamConfig(beam_size=4, min_length_factor=1.0))
    assert all(
        len(candidate.words) >= len(source)
        for source, candidates in zip(SOURCES, found, strict=True)
        for candidate in candidates
    )


def test_lengths() -> None:
    model = make(words=20)
    for config, least, most in (
        (BeamConfig(3, min_length=4), 4, 99),
        (BeamConfig(3, max_length=2), 0, 2),
        (BeamConfig(3, min_length=2, max_length=2), 2, 2),
    ):
        for candidates in search(model, SOURCES, config):
            assert all(least <= len(candidate.words) <= most for candidate in candidates)
    with pytest.raises(ConfigError, match="minimum"):
        BeamConfig(min_length=5, max_length=4).check()


def test_a_forced_prefix() -> None:
    """Every translation begins with its prefix, an unknown word included, and has the scorer's probability;
    no prefix, no change."""
    model = make(words=20)
    prefixes = [[4, 5], [], [UNK, 3], [7] * 8, []]
    free = search(model, SOURCES, BeamConfig(4))
    for row, candidates in enumerate(search(model, SOURCES, BeamConfig(4), prefixes)):
        assert all(candidate.words[: len(prefixes[row])] == prefixes[row] for candidate in candidates)
        scores = word_scores(model, [(SOURCES[row], candidate.words) for candidate in candidates])
        assert [candidate.log_prob for candidate in candidates] == pytest.approx(
            [sum(values) for values in scores], abs=1e-10
        )
        if not prefixes[row]:
            assert [candidate.words for candidate in candidates] == [
                candidate.words for candidate in free[row]
            ]
    best = free[0][0].words
    assert search(model, SOURCES[:1], BeamConfig(4), [best[:2]])[0][0].words == best


def test_unknown_words_where_they_are_allowed() -> None:
    model = Scripted({(): {UNK: 0.9, 3: 0.1}})
    assert [candidate.words for candidate in search(model, [[3]], BeamConfig(2))[0]] == [[3]]
    assert [candidate.words for candidate in search(model, [[3]], BeamConfig(2, allow_unknown=True))[0]] == [
        [UNK],
        [3],
    ]


def test_bad_options_are_refused() -> None:
    for config in (
        BeamConfig(beam_size=0),
        BeamConfig(normalize="wu"),
        BeamConfig(max_length_factor=0),
        BeamConfig(min_length_factor=4),
    ):
        with pytest.raises(ConfigError):
            config.check()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("beam_size", 0), ("beam_size", 10**9), ("normalize", "x"), ("max_length", -1)],
        *[("max_length_factor", math.nan), ("max_length_factor", 0), ("min_length_factor", -1)],
    ],
)
def test_settings_out_of_range_are_refused_before_any_work(name: str, value: Any) -> None:
    config = replace(BeamConfig(), **{name: value})
    with pytest.raises(ConfigError, match=name):
        search(None, [[3]], config)  # type: ignore[arg-type]


def test_contradictions_of_lengths_are_refused() -> None:
    for config in (
        BeamConfig(max_length=2, min_length=3),
        BeamConfig(max_length_factor=1, min_length_factor=2),
    ):
        with pytest.raises(ConfigError, match="is above the maximum"):
            config.check()
