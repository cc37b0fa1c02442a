"""Kept models of word alignment: exact on the text that they were trained on; a plain twin; unknown words."""

import math
import random
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.extraction import fast_align, kept_model
from smt_bridge.extraction.fast_align import NULL
from smt_bridge.extraction.kept_model import UNSEEN, KeptModel
from smt_bridge.extraction.packed_corpus import PackedText, pack_text


def texts(seed: int, pairs: int, words: int) -> tuple[PackedText, PackedText]:
    """Sentences whose words are translated by their numbers, in part, around the same positions."""
    rng = random.Random(seed)
    sources = [[int(words * rng.random() ** 2) for _ in range(rng.randint(1, 12))] for _ in range(pairs)]
    targets = [
        [word if rng.random() < 0.8 else rng.randrange(words) for word in source if rng.random() < 0.9] or [0]
        for source in sources
    ]
    return pack_text([[f"s{word}" for word in row] for row in sources]), pack_text(
        [[f"t{word}" for word in row] for row in targets]
    )


@pytest.mark.ci
def test_links_of_its_own_text(tmp_path: Path) -> None:
    sources, targets = texts(1, 300, 60)
    links = kept_model.train(sources, targets, tmp_path)
    model = kept_model.load(tmp_path)
    assert links == fast_align.best_links(sources, targets)
    assert links == kept_model.align(model, sources, targets)
    assert 60 < len(model.sources) < 60 * 60  # unlikely pairs of words are not kept
    assert all(
        fast_align.probability(*of) > UNSEEN
        for of in zip(model.logs, model.totals[model.sources], strict=True)
    )


def naive(model: KeptModel, source: list[str], target: list[str]) -> frozenset[tuple[int, int]]:
    """The best source word of each target word, from the formulas of Dyer et al. 2013."""
    tension, links = model.tension[0], set[tuple[int, int]]()
    known, translated = list(model.source_words), list(model.target_words)
    for j, word in enumerate(target):
        t = translated.index(word) if word in translated else None
        scores: dict[int | None, float] = {None: NULL * (UNSEEN if t is None else model.null[t])}
        prior = [
            math.exp(-tension * abs((i + 1) / len(source) - (j + 1) / len(target)))
            for i in range(len(source))
        ]
        for i, other in enumerate(source):
            p = UNSEEN
            if other not in known:
                p = 1 / len(translated)
            elif t is not None:
                s = known.index(other)
                entries = range(model.starts[t], model.starts[t + 1])
                p = next(
                    (
                        fast_align.probability(model.logs[e], model.totals[s])
                        for e in entries
                        if model.sources[e] == s
                    ),
                    UNSEEN,
                )
            scores[i] = p * (1 - NULL) * prior[i] / sum(prior)
        best = max(scores, key=scores.__getitem__)
        if best is not None:
            links.add((best, j))
    return frozenset(links)


def test_new_text_with_unknown_words(tmp_path: Path) -> None:
    kept_model.train(*texts(2, 120, 40), tmp_path)
    model, (sources, targets) = kept_model.load(tmp_path), texts(3, 100, 60)
    links = kept_model.align(model, sources, targets)
    assert list(links) == [naive(model, *pair) for pair in zip(sources, targets, strict=True)]
    unknown = set(targets.words) - set(model.target_words)
    assert unknown and set(sources.words) - set(model.source_words)


def test_new_names_are_aligned(tmp_path: Path) -> None:
    """An unknown word with the unknown one, not with the known one that is nearer to the diagonal."""
    kept_model.train(*texts(2, 120, 5), tmp_path)
    links = kept_model.align(
        kept_model.load(tmp_path), pack_text([["Ann", "s1", "s2"]]), pack_text([["t1", "t2", "Anne"]])
    )
    assert (0, 2) in links[0]


def test_soundness() -> None:
    """Of sizes, indices and types."""
    one = KeptModel(
        ["a"], ["x", "y"], np.array([0, 1, 1]), np.zeros(1, np.int32), np.zeros(1, np.float32), np.zeros(1),
        np.zeros(2), np.zeros(1),
    )  # fmt: skip
    assert one.is_sound()
    for other in (
        one._replace(starts=np.array([0, 2, 1])), one._replace(starts=np.array([0, 1])),
        one._replace(sources=np.ones(1, np.int32)), one._replace(sources=-np.ones(1, np.int32)),
        one._replace(logs=np.zeros(2, np.float32)), one._replace(logs=np.zeros(1)),  # type: ignore[arg-type]
        one._replace(null=np.zeros(1)), one._replace(tension=np.zeros(2)), one._replace(source_words=[]),
    ):  # fmt: skip
        assert not other.is_sound(), other
