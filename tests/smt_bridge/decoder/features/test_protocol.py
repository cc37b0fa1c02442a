"""Features that are registered in SEARCH_FEATURES, stateless and stateful: their scores are part of every
total in both searches, and columns of n-best lists."""

import math
from collections.abc import Callable, Iterator, Set
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.errors import ConfigError
from nmt.formats import nbest
from smt_bridge.decoder import compiled_search, feature_values, system
from smt_bridge.decoder.arrays import CANDIDATES, Floats, Int64s, SearchState, allocate
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.features.protocol import (
    Candidates,
    Gains,
    SearchFeature,
    SentenceScorer,
    StatefulFeature,
    check_gains,
)
from smt_bridge.decoder.features.registry import SEARCH_FEATURES
from smt_bridge.decoder.model import SearchTask
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.moses.ini import FeatureLine
from tests.smt_bridge.decoder.models import (
    add_feature,
    check_totals,
    decoder,
    same_lists,
    sentence,
    values,
    write_model,
)

UNLIMITED = {"stack": 0, "table_limit": 0, "beam_threshold": 0.0, "neural_beam": 0}


class Letters(SearchFeature):
    """A stateless feature with two scores: the numbers of p and q in the target."""

    arguments: ClassVar[Set[str]] = frozenset({"times"})
    scores: int = 2

    def __init__(self, name: str, times: float) -> None:
        self.name, self.times = name, times

    @classmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        return cls(line.name, float(line.options.get("times", "1")))

    def of_options(self, sentence: Sentence) -> Floats:
        return np.array([[self.times * target.count(word) for word in "pq"] for target in sentence.targets()])


class Aligned(StatefulFeature):
    """A stateful feature: whether the source word that is aligned with a target word follows, or repeats, the
    previous one. Its states are rows of its own memory, its keys the last source words; the end of the
    sentence is scored too."""

    arguments: ClassVar[Set[str]] = frozenset()
    scores: int = 1
    stand_in: ClassVar[float] = 0.0

    def __init__(self, name: str) -> None:
        self.name = name
        self.batches: list[int] = []

    @classmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        return cls(line.name)

    def start(self, sentence: Sentence) -> "AlignedScorer":
        return AlignedScorer(self, sentence)


class AlignedScorer(SentenceScorer):
    def __init__(self, feature: Aligned, sentence: Sentence) -> None:
        self.feature, self.sentence = feature, sentence
        self.memory = ["<s>"]

    def gains(self, candidates: Candidates) -> Gains:
        values, states = [], []
        self.feature.batches.append(len(candidates.option))
        for option, state in zip(candidates.option.tolist(), candidates.state.tolist(), strict=True):
            before, total = self.memory[state], 0.0
            for source, _ in sorted(self.sentence.points(option)):
                word = self.sentence.source(option)[source]
                total += 0.5 if word == before else 0.1 if word > before else -0.3
                before = word
            values.append([total + (ord(before[0]) / 100 if candidates.complete else 0.0)])
            states.append(len(self.memory))
            self.memory.append(before)
        keys = [hash(self.memory[state]) % 1000 for state in states]
        return Gains(np.array(values), np.array(states), np.array(keys))


class Few(Aligned):
    """The same feature with a beam of five candidates of a stack."""

    stand_in: ClassVar[float] = 0.5
    beam = 5


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    SEARCH_FEATURES.update(Letters=Letters, Aligned=Aligned, Few=Few)
    yield
    for name in ("Letters", "Aligned", "Few"):
        del SEARCH_FEATURES[name]


def model(folder: Path, seed: int, features: str, weights: str) -> Path:
    return add_feature(write_model(folder, seed), features, weights)


LETTERS = "Letters name=Letters0 num-features=2", "Letters0= 0.3 -0.2"
ALIGNED = "Aligned name=Aligned0", "Aligned0= 0.6"
BOTH = "\n".join([LETTERS[0], ALIGNED[0]]), "\n".join([LETTERS[1], ALIGNED[1]])


@pytest.mark.parametrize("lines", [LETTERS, ALIGNED, BOTH])
def test_compiled_is_plain(lines: tuple[str, str], tmp_path: Path) -> None:
    """Without pruning before the batch is scored, both searches give the same lists of ten."""
    folder = model(tmp_path, 3, *lines)
    one, other = (decoder(folder, plain, stack=6, neural_beam=0, nbest=10) for plain in (False, True))
    for number in range(20):
        line = sentence(number, 1 + number % 6)
        same_lists(one.translate_line(line), other.translate_line(line), line)


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
@pytest.mark.parametrize("beam", [1, 4, 20])
def test_candidates_that_are_dropped_early_would_not_have_been_scored(
    beam: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lists are those of a search that keeps every candidate until its stack is scored."""
    folder = add_feature(write_model(tmp_path, 3), *ALIGNED)
    sources = [sentence(seed, 6) for seed in range(8)]

    def lists() -> tuple[list[list[tuple[list[str], float]]], int]:
        made, candidates = decoder(folder, neural_beam=beam), 0
        results = []
        for line in sources:
            results.append([(row.text, row.total) for row in made.nbest([line], 20)[0]])
            assert made.compiled and made.compiled.memory.state
            candidates += int(made.compiled.memory.state.counters[CANDIDATES])
        return results, candidates

    results, candidates = lists()
    monkeypatch.setattr(compiled_search, "allocate", lambda sizes: allocate(sizes._replace(scored=0)))
    all_results, all_candidates = lists()
    assert results == all_results and candidates < all_candidates


@pytest.mark.parametrize("lines", [LETTERS, BOTH])
def test_a_feature_is_a_part_of_the_total(lines: tuple[str, str], tmp_path: Path) -> None:
    """Totals are values x weights of all columns, and the values are those computed from the text."""
    made = decoder(model(tmp_path, 1, *lines), nbest=100, **UNLIMITED)
    places = list(made.system.sizes)
    assert (places[0] == "Aligned0") == (lines is BOTH)  # stateful features come first
    for number in range(6):
        found = made.translate_line(sentence(number, 4))
        check_totals(made, found)
        for derivation in found.derivations:
            written = nbest.parse(made.entry(number, found, derivation), "list").features
            assert written["Letters0"] == [derivation.text.count("p"), derivation.text.count("q")]


def test_a_class_without_the_base_class_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a stateful feature would be treated as a stateless one without a message."""
    own = {name: value for name, value in vars(Aligned).items() if name not in ("__dict__", "__weakref__")}
    monkeypatch.setitem(SEARCH_FEATURES, "Aligned", type("Own", (), own))
    with pytest.raises(ConfigError, match=r"moses\.ini:[0-9]+: .*Aligned derives neither"):
        decoder(model(tmp_path, 2, *ALIGNED))


def test_one_batch_a_stack(tmp_path: Path) -> None:
    """A stateful feature is called once for each stack, and then for the derivations of the list."""
    made = decoder(model(tmp_path, 2, *ALIGNED), stack=50)
    (feature,) = made.features
    assert isinstance(feature, Aligned)
    found = made.translate_line(sentence(3, 5))
    assert len(feature.batches) == 5 + len(found.derivations[0].options)
    assert max(feature.batches) > 10


def test_without_a_weight_a_stateful_feature_stays_out_of_the_search(tmp_path: Path) -> None:
    """With weight 0 the lists equal those of a system without the feature, even with small stacks; its column
    is still written."""
    config = {"stack": 4, "neural_beam": 2, "nbest": 5}
    weighted = decoder(model(tmp_path / "a", 2, *ALIGNED), **UNLIMITED, nbest=500)
    silent = decoder(model(tmp_path / "b", 2, ALIGNED[0], "Aligned0= 0"), **config)
    absent = decoder(write_model(tmp_path / "c", 2), **config)
    for number in range(10):
        line = sentence(number, 1 + number % 5)
        found = silent.translate_line(line)
        without = absent.translate_line(line)
        assert [(one.text, one.total) for one in found.derivations] == [
            (one.text, one.total) for one in without.derivations
        ]
        columns = {
            tuple(one.options.tolist()): values(weighted, everything, place)["Aligned0"]
            for everything in [weighted.translate_line(line)]
            for place, one in enumerate(everything.derivations)
        }
        known = [
            (values(silent, found, place)["Aligned0"], columns[tuple(one.options.tolist())])
            for place, one in enumerate(found.derivations)
            if tuple(one.options.tolist()) in columns
        ]
        assert known and all(ours == theirs for ours, theirs in known)


@pytest.mark.parametrize("first", ["Few", "Aligned"])
def test_a_costly_feature_scores_the_best_of_what_others_leave(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feature with a beam scores last, whatever the order of the lines, and gets the best five candidates
    by the scores of the other features."""
    lines = {"Few": ("Few name=Few0", "Few0= 0.4"), "Aligned": ALIGNED}
    order = sorted(lines, key=lambda name: name != first)
    made = decoder(
        model(tmp_path, 2, *("\n".join(lines[name][part] for name in order) for part in (0, 1))), stack=50
    )
    seen: list[tuple[str, list[int], list[float]]] = []
    scores: list[list[float]] = []
    gains, expected = AlignedScorer.gains, compiled_search.expected_totals

    def seen_gains(scorer: AlignedScorer, candidates: Candidates) -> Gains:
        found = gains(scorer, candidates)
        seen.append((type(scorer.feature).__name__, candidates.option.tolist(), found.values[:, 0].tolist()))
        return found

    def seen_expected(state: SearchState, task: SearchTask, chosen: Int64s, missing: float) -> Floats:
        found = expected(state, task, chosen, missing)
        made = state.candidates
        spoken = made.total[chosen] - made.score[chosen] - state.coverages.future[made.coverage[chosen]]
        assert missing == task.model.stand_in == 0.2 and spoken.min() < -0.1  # its own, for it is missing
        np.testing.assert_allclose(found, made.total[chosen])
        scores.append(found.tolist())
        return found

    monkeypatch.setattr(AlignedScorer, "gains", seen_gains)
    monkeypatch.setattr("smt_bridge.decoder.compiled_search.expected_totals", seen_expected)
    task = made.task(made.parse_line(sentence(3, 5)), made.listing)
    made.search(task, made.listing)
    assert [name for name, _, _ in seen] == ["Aligned", "Few"] * 5 and scores
    pruned = [
        (many, few) for many, few in zip(seen[::2], seen[1::2], strict=True) if len(few[1]) < len(many[1])
    ]
    for ((_, options, gained), (_, few, _)), totals in zip(pruned, scores, strict=True):
        ranked = sorted(range(len(options)), key=lambda row: -(totals[row] + 0.6 * gained[row]))
        assert few == [options[row] for row in sorted(ranked[:5])]


def test_a_static_feature_leaves_the_search_alone(tmp_path: Path) -> None:
    made = decoder(model(tmp_path, 2, *LETTERS), stack=50)
    task = made.task(made.parse_line("a b c"), made.listing)
    assert not task.parameters.deferred and not task.scorers
    before = decoder(write_model(tmp_path, 2), stack=50)
    without = before.task(before.parse_line("a b c"), before.listing)
    for option, target in enumerate(task.sentence.targets()):
        assert math.isclose(
            task.options.score[option] - without.options.score[option],
            0.3 * target.count("p") - 0.2 * target.count("q"),
            abs_tol=1e-9,
        )


@pytest.mark.parametrize(
    ("line", "weights", "wrong"),
    [
        ("Letters name=Letters0", "Letters0= 1", "Letters has 2 scores"),
        ("Letters name=Letters0 num-features=2 size=3", "Letters0= 1 1", "no argument 'size' here"),
        ("Lettres name=Letters0", "Letters0= 1", "it has .*, CSLM, .*Letters, Aligned, Few, "),
    ],
)
def test_refused(line: str, weights: str, wrong: str, tmp_path: Path) -> None:
    folder = model(tmp_path, 1, line, weights)
    with pytest.raises(ConfigError, match=wrong):
        system.load(str(folder), use_cache=False)


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (lambda sentence: np.zeros(sentence.size), "gives scores of shape"),
        (lambda sentence: np.full((sentence.size, 2), np.nan), "not a finite number"),
    ],
)
def test_wrong_scores(
    made: Callable[[Sentence], Floats], wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Letters, "of_options", lambda self, sentence: made(sentence))
    with pytest.raises(ConfigError, match=wrong):
        decoder(model(tmp_path, 1, *LETTERS)).translate(["a"])


def test_gains_that_are_none() -> None:
    with pytest.raises(ConfigError, match="Letters0: its gains returned tuple, expected Gains"):
        check_gains(Letters("Letters0", 1), (np.zeros((1, 1)), np.zeros(1)))


def test_other_weights_need_no_loading(tmp_path: Path) -> None:
    """As in tuning: the same loaded features with other weights."""
    made = decoder(model(tmp_path, 1, *BOTH))
    other = Decoder(made.system, made.config, {**made.weights, "Aligned0": [-0.6]}, made.features)
    assert other.features is made.features
    lines = [sentence(number, 6) for number in range(10)]
    assert made.translate(lines) != other.translate(lines)


def test_what_each_phrase_gains_adds_up(tmp_path: Path) -> None:
    """Stateless scores are those of the phrase, and a stateful feature continues where the previous phrase
    ended."""
    made = decoder(model(tmp_path, 1, *BOTH), explain=True, distortion_limit=-1)
    for number in range(6):
        line = sentence(number, 6)
        best = made.translate_line(line).derivations[0]
        assert best.shares is not None and math.isclose(best.shares.sum(), best.total, abs_tol=1e-9)
        task = made.task(made.parse_line(line), made.listing)
        found = feature_values.phrase_values(made.options, task, best.options)
        for option, row in zip(best.options, found["Letters0"], strict=False):
            assert row.tolist() == [task.sentence.target(option).count(word) for word in "pq"]
        assert found["Aligned0"][-1, 0] >= ord("a") / 100  # the end of the sentence


@pytest.mark.parametrize("kind", SEARCH_FEATURES)
def test_an_ini_counts_the_scores_of_each_kind(kind: str) -> None:
    """Without num-features= as the class of the feature does, which smt_bridge/moses cannot ask."""
    line = FeatureLine(0, kind, "X0", {}, "ini:1")
    assert line.scores == SEARCH_FEATURES[kind].count_scores(line)
