"""The beam against exhaustive search, greedy search, the scorer and itself."""

import itertools
import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from nmt.data.batches import Ids
from nmt.data.vocab import BOS, EOS, UNK
from nmt.errors import ConfigError
from nmt.models.config import ModelConfig
from nmt.models.translator import Translator
from nmt.scoring import word_scores
from nmt.search import penalties
from nmt.search.beam import BeamConfig, Candidate, beam_search, expand, search

WORDS = 3  # ids 3, 4, 5
SOURCES = [[3, 4], [5], [3, 3, 4, 5], [6, 6], [4, 3, 5]]


def make(words: int = WORDS, seed: int = 0, **options: object) -> Translator:
    torch.manual_seed(seed)
    config = ModelConfig(embedding=6, hidden=7, maxout=4, init_scale=1.5, **options)  # type: ignore[arg-type]
    return Translator(config, 7, 3 + words).double().eval()


def exhaustive(model: Translator, source: Ids, longest: int, normalize: str) -> list[tuple[float, list[int]]]:
    """Every sentence of up to `longest` words, the best first: the slow twin."""
    texts = [list(text) for length in range(longest + 1) for text in itertools.product(range(3, 3 + WORDS), repeat=length)]
    rank = penalties.by_name(normalize)
    totals = [sum(scores) for scores in word_scores(model, [(source, text) for text in texts])]
    return sorted(((rank(total, len(text) + 1), text) for total, text in zip(totals, texts, strict=True)), reverse=True)


@pytest.mark.parametrize("normalize", list(penalties.NORMALIZE))
@pytest.mark.parametrize("options", [{}, {"cell": "lstm"}, {"first_word": "initial"}], ids=str)
def test_a_wide_beam_is_exhaustive(normalize: str, options: dict[str, object]) -> None:
    model = make(**options)
    config = BeamConfig(beam_size=500, normalize=normalize, max_length_factor=2)  # more than all 4-word beginnings times 4
    for source, found in zip(SOURCES[:2], search(model, SOURCES[:2], config), strict=True):
        expected = exhaustive(model, source, 2 * len(source), normalize)
        assert len(found) == len(expected) == sum(WORDS**n for n in range(2 * len(source) + 1))
        assert [candidate.words for candidate in found] == [words for _, words in expected]
        assert [candidate.score for candidate in found] == pytest.approx([score for score, _ in expected], abs=1e-10)


@torch.no_grad()
def greedy(model: Translator, source: Ids, limit: int) -> list[int]:
    state, words, text = model.start([source]), None, []
    while len(text) <= limit:
        log_probs, state = model.step(state, words)
        log_probs[:, [BOS, UNK]] = -math.inf
        best = int(log_probs.argmax())
        if best == EOS:
            break
        text.append(best)
        words = torch.tensor([best])
    return text[:limit]


def test_beam_of_one_is_greedy() -> None:
    model = make(words=20)
    found = search(model, SOURCES, BeamConfig(beam_size=1))
    assert [candidates[0].words for candidates in found] == [greedy(model, source, 3 * len(source)) for source in SOURCES]
    assert any(candidates[0].words for candidates in found)


@pytest.mark.parametrize("beam", [1, 3, 10])
@pytest.mark.parametrize("rows", [1, 7, 100])
def test_batches_equal_one_by_one(beam: int, rows: int) -> None:
    model = make(words=20, seed=4)
    config = BeamConfig(beam_size=beam, rows=rows)
    together = search(model, SOURCES, config)
    alone = [beam_search(model, [source], config)[0] for source in SOURCES]
    assert [[c.words for c in candidates] for candidates in together] == [[c.words for c in candidates] for candidates in alone]
    for a, b in zip(itertools.chain(*together), itertools.chain(*alone), strict=True):
        assert a.log_prob == pytest.approx(b.log_prob, abs=1e-10)


@pytest.mark.parametrize("normalize", list(penalties.NORMALIZE))
def test_log_probs_are_the_scorers(normalize: str) -> None:
    model = make(words=20, seed=5)
    for source, candidates in zip(SOURCES, search(model, SOURCES, BeamConfig(beam_size=6, normalize=normalize)), strict=True):
        scores = word_scores(model, [(source, candidate.words) for candidate in candidates])
        assert [candidate.log_prob for candidate in candidates] == pytest.approx([sum(row) for row in scores], abs=1e-10)
        ranks = [penalties.by_name(normalize)(c.log_prob, len(c.words) + 1) for c in candidates]
        assert [candidate.score for candidate in candidates] == ranks == sorted(ranks, reverse=True)


def test_at_most_beam_size_different_results_without_unknown_words() -> None:
    for candidates in search(make(words=20), SOURCES, BeamConfig(beam_size=6)):
        assert 1 <= len(candidates) <= 6
        assert len({tuple(candidate.words) for candidate in candidates}) == len(candidates)
        assert not {BOS, EOS, UNK} & {word for candidate in candidates for word in candidate.words}


class Scripted:
    """A model whose next-word probabilities are written by hand; its state is the step."""

    device = torch.device("cpu")

    def __init__(self, table: dict[tuple[int, ...], dict[int, float]]) -> None:
        self.table = table

    def start(self, sources: Sequence[Ids]) -> list[tuple[int, ...]]:
        return [()] * len(sources)

    def step(self, state: list[tuple[int, ...]], words: Tensor | None) -> tuple[Tensor, list[tuple[int, ...]]]:
        if words is not None:
            state = [(*text, word) for text, word in zip(state, words.tolist(), strict=True)]
        rows = torch.full((len(state), 6), -math.inf)
        for row, text in enumerate(state):
            for word, probability in self.table.get(text, {EOS: 1.0}).items():
                rows[row, word] = math.log(probability)
        return rows, state

    def reorder(self, state: list[tuple[int, ...]], rows: Tensor) -> list[tuple[int, ...]]:
        return [state[row] for row in rows.tolist()]


def test_the_beam_shrinks_by_one_with_each_end() -> None:
    """Beam 2: the empty sentence ends at once, so ONE continuation of [3] survives; a beam that did not shrink would keep [3, 5]."""
    model = Scripted({(): {EOS: 0.5, 3: 0.3, 4: 0.2}, (3,): {4: 0.6, 5: 0.4}})
    found = beam_search(model, [[3]], BeamConfig(beam_size=2, normalize="none"))[0]
    assert [(candidate.words, round(math.exp(candidate.log_prob), 6)) for candidate in found] == [([], 0.5), ([3, 4], 0.18)]


def test_length_normalization_prefers_the_longer() -> None:
    """log .4 / 1 = -.92 for the empty sentence, log .36 / 3 = -.34 for two words."""
    model = Scripted({(): {EOS: 0.4, 3: 0.6}, (3,): {3: 0.6, 4: 0.4}, (3, 3): {EOS: 1.0}})
    by = {name: beam_search(model, [[3]], BeamConfig(beam_size=4, normalize=name))[0][0].words for name in ("length", "none")}
    assert by == {"length": [3, 3], "none": []}


def test_nothing_finished_ends_where_the_limit_stands() -> None:
    endless = {tuple([3] * n): {3: 0.9, EOS: 0.1} for n in range(50)}
    found = beam_search(Scripted(endless), [[3, 3], [3]], BeamConfig(beam_size=1))
    assert [(c.words, c.complete) for candidates in found for c in candidates] == [([3] * 6, False), ([3] * 3, False)]
    assert found[0][0].log_prob == pytest.approx(6 * math.log(0.9) + math.log(0.1), abs=1e-6)


def test_minimum_length() -> None:
    found = search(make(words=20), SOURCES, BeamConfig(beam_size=4, min_length_factor=1.0))
    assert all(len(candidate.words) >= len(source) for source, candidates in zip(SOURCES, found, strict=True) for candidate in candidates)


def test_expand_by_hand() -> None:
    """Two sentences; the first has two rows and room for two, the second one row and room for one."""
    log_probs = torch.tensor([[-9.0, -1.0, -2.0], [-0.5, -3.0, -9.0], [-1.0, -2.0, -3.0]])
    best = expand(log_probs, torch.tensor([-1.0, -2.0, 0.0], dtype=torch.float64), torch.tensor([0, 0, 1]), torch.tensor([2, 1]))
    assert best.parent.tolist() == [0, 1, 2] and best.word.tolist() == [1, 0, 0]
    assert best.total.tolist() == [-2.0, -2.5, -1.0] and best.ends.tolist() == [True, False, False]


def test_scores_that_are_no_numbers_do_not_hang() -> None:
    model = make()
    with torch.no_grad():
        model.decoder.output.words.fill_(math.nan)
    assert search(model, [[3]], BeamConfig()) == [[Candidate([], -math.inf, -math.inf, complete=False)]]


def test_bad_options_are_refused() -> None:
    for config in (BeamConfig(beam_size=0), BeamConfig(normalize="wu"), BeamConfig(max_length_factor=0), BeamConfig(min_length_factor=4)):
        with pytest.raises(ConfigError):
            config.check()
