"""Scores through tries of prefixes are those of one pair at a time."""

import itertools
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.data import prefix_tree
from nmt.formats import phrase_table
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.runs import checkpoint
from nmt.scoring import pair_scores, word_scores
from nmt.text.vocab import UNK
from tests.nmt.models.models import RNN_VARIANTS, SOURCE, TARGET, make_rnn


def some_pairs(count: int, seed: int) -> tuple[list[list[int]], list[list[int]], list[int]]:
    rng = random.Random(seed)
    sources = [[rng.randrange(3, SOURCE) for _ in range(rng.randrange(5))] for _ in range(count // 4)]
    targets = [[rng.randrange(3, 6) for _ in range(rng.randrange(5))] for _ in range(count)]
    return sources, targets, [rng.randrange(len(sources)) for _ in targets]


@pytest.mark.parametrize("options", RNN_VARIANTS, ids=str)
def test_equal_to_one_pair_at_a_time(options: dict[str, object]) -> None:
    model = make_rnn(**options)
    sources, targets, source_of = some_pairs(80, 5)
    expected = [
        sum(word_scores(model, [(sources[row], target)])[0])
        for row, target in zip(source_of, targets, strict=True)
    ]
    assert np.abs(pair_scores(model, sources, targets, source_of) - expected).max() < 1e-9


@pytest.mark.parametrize(("nodes", "rows"), [(1, 1), (7, 3)])
def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch, nodes: int, rows: int) -> None:
    model = make_rnn(output_rank=3)
    sources, targets, source_of = some_pairs(60, 6)
    whole = pair_scores(model, sources, targets, source_of)
    monkeypatch.setattr(prefix_tree.blocks, "__defaults__", (nodes,))
    monkeypatch.setattr("nmt.layers.batch_scores.SOFTMAX_ROWS", rows)
    assert np.abs(pair_scores(model, sources, targets, source_of) - whole).max() < 1e-9


def test_shared_reading_of_sources() -> None:
    model = make_rnn()
    sources = some_pairs(80, 7)[0]
    plain, shared = model.start(sources), model.start_by_prefix(sources)
    assert plain.sources.cell is not None and shared.sources.cell is not None
    assert torch.allclose(plain.hidden, shared.hidden, atol=1e-12)
    assert torch.allclose(plain.sources.cell, shared.sources.cell, atol=1e-12)


def test_single_precision_is_within_1e_4() -> None:
    """Sizes of which the sums are long; a fresh model."""
    torch.manual_seed(3)
    model = RNNTranslator(
        RNNConfig(embedding=32, hidden=128, maxout=64, output_rank=32, init="glorot"), SOURCE, TARGET
    ).eval()
    sources, targets, source_of = some_pairs(300, 8)
    expected = [
        sum(word_scores(model, [(sources[row], target)])[0])
        for row, target in zip(source_of, targets, strict=True)
    ]
    assert np.abs(pair_scores(model, sources, targets, source_of) - expected).max() < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("trained", [False, True])
def test_ten_thousand_real_pairs(trained: bool, nmt_data: Path, tiny: Path) -> None:
    """One pair at a time against tries, single precision: 1e-4. A fresh model far from uniform, and a trained
    one."""
    vocabs: tuple[dict[bytes, int], dict[bytes, int]] = ({}, {})
    if trained:
        run = checkpoint.load(tiny / "run")
        model = run.model
        vocabs = tuple(
            {word.encode(): number for word, number in vocab.ids.items()}
            for vocab in (run.source_words, run.target_words)
        )  # type: ignore[assignment]
    else:
        torch.manual_seed(1)
        fresh = RNNTranslator(
            RNNConfig(embedding=50, hidden=200, maxout=100, output_rank=50, init="glorot"), 12000, 12000
        )
        with torch.no_grad():
            fresh.decoder.output.words.normal_(0, 0.5)
            for name in ("encoder.embedding.weight", "decoder.embedding.weight"):
                fresh.get_parameter(name).normal_(0, 1)
        model = fresh.eval()

    def encode(phrase: bytes, ids: dict[bytes, int]) -> list[int]:
        return [
            ids.get(word, UNK) if trained else ids.setdefault(word, 3 + len(ids)) for word in phrase.split()
        ]

    table = phrase_table.read(nmt_data / "moses-multi30k" / "phrase-table.gz")
    pairs = [
        (encode(pair.source, vocabs[0]), encode(pair.target, vocabs[1]))
        for pair in itertools.islice(table, 300000, 310000)
    ]
    sources: dict[tuple[int, ...], int] = {}
    source_of = [sources.setdefault(tuple(source), len(sources)) for source, _ in pairs]
    found = pair_scores(model, list(sources), [target for _, target in pairs], source_of)
    expected = np.array([sum(word_scores(model, [pair])[0]) for pair in pairs])
    assert expected.std() > 2
    assert np.abs(found - expected).max() < 1e-4
