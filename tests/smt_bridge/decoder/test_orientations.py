"""Types of reordering models: orientations of phrases in whole derivations by their definition, relative to
the longest blocks of phrases in a hierarchical model; the search finds the best of all derivations, compiled
as in plain Python."""

import itertools
import math
import random
from pathlib import Path
from typing import Self

import numpy as np
import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.errors import DataError
from smt_bridge.decoder import system
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.feature_values import derivation_scores, totals
from smt_bridge.decoder.features.protocol import Candidates, Gains, SentenceScorer, StatefulFeature
from smt_bridge.decoder.orientations import path_orientations
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.moses.ini import FeatureLine
from smt_bridge.moses.reordering import ReorderingType
from tests.smt_bridge.decoder.models import UNLIMITED, cuts, decoder, edit, same_lists, sentence, write_model
from tests.smt_bridge.decoder.test_search import every_path

Spans = list[tuple[int, int]]
KINDS = {"msd": "MSDD", "mslr": "MSLR", "monotonicity": "MNNN", "leftright": "RLLR"}
ORDER = {"msd": "MSD", "mslr": "MSLR", "monotonicity": "MN", "leftright": "RL"}
TYPES = """
    hier-mslr-bidirectional-fe-allff wbe-mslr-bidirectional-fe-allff phrase-monotonicity-bidirectional-fe
    hier-leftright-bidirectional-fe hier-msd-backward-fe hier-mslr-forward-fe mslr-backward-fe
    wbe-msd-forward-fe hier-mslr-bidirectional-fe-collapseff wbe-leftright-bidirectional-fe-allff
""".split()


def is_block(spans: Spans) -> bool:
    """Whether phrases make a block: a single phrase, or two adjacent blocks one after the other."""
    if len(spans) == 1:
        return True
    for cut in range(1, len(spans)):
        left, right = spans[:cut], spans[cut:]
        adjacent = max(left)[1] + 1 == min(right)[0] or max(right)[1] + 1 == min(left)[0]
        if adjacent and is_block(left) and is_block(right):
            return True
    return False


def letter(first: int, last: int, before: tuple[int, int]) -> str:
    if first == before[1] + 1:
        return "M"
    return "S" if last + 1 == before[0] else "R" if first > before[1] else "L"


def naive_letters(spans: Spans, hierarchical: bool) -> list[tuple[str, str]]:
    """Both orientations of each phrase of a derivation: relative to what precedes, and as the phrase before
    it sees it."""
    rows = []
    for number, (first, last) in enumerate(spans):
        before = spans[number - 1] if number else (-2, -1)
        block = before
        if hierarchical and number:
            longest = min(start for start in range(number) if is_block(spans[start:number]))
            block = (min(spans[longest:number])[0], max(spans[longest:number])[1])
        ahead = letter(first, last, before)
        covered = {word for a, b in spans[:number] for word in range(a, b + 1)}
        if hierarchical and ahead == "R" and before[1] + 1 not in covered:
            ahead = "M"
        if hierarchical and ahead == "L" and before[0] - 1 not in covered:
            ahead = "S"
        rows.append((letter(first, last, block), ahead))
    return rows


def random_spans(rng: random.Random, words: int) -> Spans:
    """A random order of phrases that cover a sentence."""
    cut = sorted({0, words, *(rng.randrange(words + 1) for _ in range(words))})
    spans = [(a, b - 1) for a, b in itertools.pairwise(cut)]
    rng.shuffle(spans)
    return spans


def test_orientations_by_definition() -> None:
    rng = random.Random(1)
    paths = [random_spans(rng, rng.randint(1, 9)) for _ in range(400)]
    first, last = (np.array([span[end] for spans in paths for span in spans], np.int32) for end in (0, 1))
    opening = np.array([number == 0 for spans in paths for number in range(len(spans))])
    for hierarchical in (False, True):
        both = path_orientations(first, last, opening, hierarchical)
        ours = [("MSLR"[back], "MSLR"[ahead]) for back, ahead in zip(*both, strict=True)]
        theirs = [pair for spans in paths for pair in naive_letters(spans, hierarchical)]
        assert [back for back, _ in ours] == [back for back, _ in theirs]
        assert [a for (_, a), opens in zip(ours, opening, strict=True) if not opens] == [
            a for (_, a), opens in zip(theirs, opening, strict=True) if not opens
        ]


def naive_scores(made: Decoder, part: Sentence, path: tuple[int, ...]) -> list[float]:
    """The reordering scores of a derivation, from the rows of the table."""
    model, kinds, direction = made.system.reordering.name.split("-")[:3]
    spans = [(int(part.first[option]), int(part.last[option])) for option in path]
    size, collapsed = len(ORDER[kinds]), made.system.reordering.collapsed
    rows = [
        made.system.table.log_reordering(np.array([part.rows[option]]))[0].tolist()
        if part.rows[option] >= 0
        else [0.0] * made.system.reordering.probabilities
        for option in path
    ]
    score = [0.0] * (made.system.reordering.scores)
    for number, letters in enumerate(naive_letters(spans, model == "hier")):
        back, ahead = (ORDER[kinds].index(KINDS[kinds]["MSLR".index(one)]) for one in letters)
        if direction != "forward":
            score[0 if collapsed else back] += rows[number][back]
        if direction != "backward" and number:
            shift = size if direction == "bidirectional" else 0
            score[(1 if shift else 0) if collapsed else shift + ahead] += rows[number - 1][shift + ahead]
    return score


@pytest.mark.parametrize("kind", TYPES)
def test_the_best_of_all_derivations(kind: str, tmp_path: Path) -> None:
    """The scores of every derivation by definition, and the list of the best ones under unlimited stacks: no
    recombination loses or changes a derivation."""
    made = decoder(
        write_model(tmp_path, 5, options=1, longest=2, kind=kind),
        nbest=400,
        distortion_limit=-1,
        **(UNLIMITED | {"table_limit": 1}),
    )
    for seed, words in ((1, 3), (4, 5)):
        task = made.task(made.parse_line(sentence(seed, words)), made.listing)
        paths = every_path(task.sentence, -1)
        values = derivation_scores(made.options, task, [np.array(path, np.int32) for path in paths])
        name = made.system.reordering_name
        naive = [naive_scores(made, task.sentence, path) for path in paths]
        np.testing.assert_allclose(values[name], naive, atol=1e-6)
        best = sorted(totals(made.options, values).tolist(), reverse=True)[:400]
        listed = made.translate_line(sentence(seed, words)).derivations
        np.testing.assert_allclose([derivation.total for derivation in listed], best, atol=1e-9)


@pytest.mark.parametrize("plain", [False, pytest.param(True, marks=pytest.mark.ci)])
def test_recombination_looks_below_the_uppermost_region(plain: bool, tmp_path: Path) -> None:
    """Of six words some orders have the same coverage, last phrase and last words, and other regions below:
    the whole list is there, with the totals of its derivations."""
    made = decoder(
        write_model(tmp_path, 5, options=1, longest=1, kind="hier-mslr-backward-fe"),
        plain, nbest=2000, distortion_limit=-1, **(UNLIMITED | {"table_limit": 1}),
    )  # fmt: skip
    task = made.task(made.parse_line("a b c d a c"), made.listing)
    paths = [np.array(path, np.int32) for path in every_path(task.sentence, -1)]
    best = sorted(totals(made.options, derivation_scores(made.options, task, paths)).tolist(), reverse=True)
    listed = made.translate_line("a b c d a c").derivations
    np.testing.assert_allclose([derivation.total for derivation in listed], best, atol=1e-9)


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
@pytest.mark.parametrize("search", ["stack", "cube"])
@pytest.mark.parametrize("kind", [TYPES[0], TYPES[1], TYPES[5], TYPES[8]])
@pytest.mark.ci
def test_compiled_is_plain(kind: str, search: str, tmp_path: Path) -> None:
    """Small stacks, so that pruning matters; rows that the reordering table lacks have default scores."""
    folder, reordering = write_model(tmp_path, 3, kind=kind), ReorderingType.parse(kind)
    rows = (folder / "reordering").read_text().split("\n")[:-1]
    (folder / "reordering").write_text("".join(f"{row}\n" for row in rows[::2] + rows[1::4]))
    if not reordering.collapsed:
        default = ",".join(f"{0.9 / (1 + score):.3f}" for score in range(reordering.probabilities))
        edit(folder, ("path=reordering", f"path=reordering default-scores={default}"))
    settings = {
        "stack": 6,
        "table_limit": 3,
        "nbest": 8,
        "distortion_limit": 4,
        "search": search,
        "pop_limit": 40,
    }
    one, other = decoder(folder, **settings), decoder(folder, True, **settings)
    for number in range(25):
        line = sentence(number, 1 + number % 9)
        ours, theirs = one.translate_line(line), other.translate_line(line)
        if cuts(one):  # ways into hypotheses below the cut are not listed
            del ours.derivations[1:], theirs.derivations[1:]
        same_lists(ours, theirs, line)


class LastOption(StatefulFeature):
    """A stateful feature that scores pairs of options."""

    arguments = frozenset[str]()
    scores = 1
    stand_in = 0.0
    name = "Pairs0"

    @classmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        return cls()

    def start(self, sentence: Sentence) -> SentenceScorer:
        return LastOptionScorer()


class LastOptionScorer(SentenceScorer):
    def gains(self, candidates: Candidates) -> Gains:
        values = np.sin(candidates.state * 1.7 + candidates.option * 0.3)[:, None]
        return Gains(values, candidates.option % 3)


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
def test_compiled_is_plain_with_a_stateful_feature(tmp_path: Path) -> None:
    """Candidates that wait for their scores keep their regions."""
    loaded = system.load(str(write_model(tmp_path, 4, kind=TYPES[0])), use_cache=False)
    loaded.weights["Pairs0"], loaded.printed["Pairs0"] = [0.4], [0]
    one, other = (
        Decoder(loaded, DecoderConfig(stack=7, neural_beam=0, nbest=5), features=[LastOption()])
        for _ in range(2)
    )
    other.compiled = None
    for number in range(12):
        line = sentence(number, 1 + number % 7)
        same_lists(one.translate_line(line), other.translate_line(line), line)


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
def test_room_for_regions_grows(tmp_path: Path) -> None:
    one, other = (decoder(write_model(tmp_path, 3, kind=TYPES[0]), stack=30, nbest=4) for _ in range(2))
    line = sentence(3, 7)
    assert one.compiled and other.compiled
    state = other.compiled.thread_state(other.task(other.parse_line(line), other.listing))
    other.compiled.memory.state = state._replace(regions=state.regions[:5].view(np.recarray))
    ours, theirs = (made.translate_line(line) for made in (one, other))
    assert [(d.text, d.total) for d in ours.derivations] == [(d.text, d.total) for d in theirs.derivations]
    assert other.compiled.memory.factor == 2 and one.compiled.memory.factor == 1


def test_a_table_of_another_type(tmp_path: Path) -> None:
    """The number of probabilities has to be that of the type."""
    folder = write_model(tmp_path, 1, kind="hier-mslr-bidirectional-fe")
    edit(
        folder,
        ("num-features=8 type=hier-mslr-", "num-features=6 type=hier-msd-"),
        ("LexicalReordering0= ", "LexicalReordering0= 1 1 1 1 1 1\n# "),
    )
    with pytest.raises(DataError, match=r"moses.ini:\d+: type=hier-msd.* has 6 probabilities .* has 8; give"):
        system.load(str(folder), use_cache=False)


def test_names_of_types() -> None:
    for text in TYPES:
        kind = ReorderingType.parse(text)
        assert ReorderingType.parse(kind.option) == kind and kind.option.startswith(kind.name)
        assert (
            len(kind.descriptions) == kind.scores
            and len(kind.spread([1.0] * kind.scores)) == kind.probabilities
        )
        assert math.prod([kind.size, 1 + (kind.direction == "bidirectional")]) == kind.probabilities
