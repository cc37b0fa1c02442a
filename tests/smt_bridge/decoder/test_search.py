"""The search: without limits it finds the best of all derivations; compiled search equals plain search; cube
pruning."""

import itertools
import math
import random
from pathlib import Path

import numpy as np
import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.errors import ConfigError
from smt_bridge.decoder import system
from smt_bridge.decoder.arrays import (
    CANDIDATES,
    EDGES,
    FULL,
    NOTHING,
    WORK,
    SearchParameters,
    SearchState,
    StateSizes,
    allocate,
)
from smt_bridge.decoder.compiled_search import best_candidates, best_indices, prepend_digest
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.feature_values import derivation_scores, printed_values
from smt_bridge.decoder.search import note_candidate, option_gains, push, search, select, stack_members
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.xml_input import MarkedLine
from tests.smt_bridge.decoder.models import (
    REORDERING,
    UNLIMITED,
    Stateful,
    all_weights,
    cuts,
    decoder,
    edit,
    same_lists,
    sentence,
    weight_line,
    write_model,
)

# ---- test search -------------------------------------------------------------------------------------------


def exhaustive(made: Decoder, line: str) -> dict[tuple[int, ...], float]:
    """The total of every derivation, computed from its features."""
    task = made.task(MarkedLine(line.split(" ")), made.listing)
    paths = every_path(task.sentence, made.settings.distortion_limit)
    scores = derivation_scores(made.options, task, [np.array(path, np.int32) for path in paths])
    values = printed_values(made.options, scores)
    unknown = [sum(task.sentence.rows[option] < 0 for option in path) for path in paths]
    totals = values @ all_weights(made) - 100 * np.array(unknown)
    return dict(zip(paths, totals.tolist(), strict=True))


def every_path(part: Sentence, limit: int) -> list[tuple[int, ...]]:
    """The options of every derivation: all orders of phrases that the distortion limit allows."""
    n, found = len(part.words), list[tuple[int, ...]]()

    def extend(path: tuple[int, ...], covered: frozenset[int], end: int) -> None:
        if len(covered) == n:
            found.append(path)
            return
        gap = min(set(range(n)) - covered)
        for option in range(len(part.rows)):
            begin, last = int(part.first[option]), int(part.last[option])
            span = set(range(begin, last + 1))
            if span & covered or (
                limit >= 0 and (abs(begin - end - 1) > limit or (begin != gap and last + 1 - gap > limit))
            ):
                continue
            extend((*path, option), covered | span, last)

    extend((), frozenset(), -1)
    return found


@pytest.mark.ci
@pytest.mark.parametrize("seed", range(6))
def test_unlimited_stacks_are_exhaustive(seed: int, tmp_path: Path) -> None:
    """The best total of all derivations, and the hundred best derivations in order."""
    folder = write_model(
        tmp_path, seed, options=2, reordering=seed % 2 == 0, columns=4 + seed % 3, lms=1 + seed % 2
    )
    made = decoder(folder, nbest=100, distortion_limit=-1 if seed == 5 else 2, **UNLIMITED)
    for words in (1, 3, 4):
        line = sentence(seed, words)
        totals = sorted(exhaustive(made, line).values(), reverse=True)
        found = [derivation.total for derivation in made.translate_line(line).derivations]
        # Recombination keeps every derivation: what the list holds is the head of the whole.
        np.testing.assert_allclose(found, totals[: len(found)], atol=1e-9)
        assert len(found) == min(100, len(totals))


def test_negative_weights(tmp_path: Path) -> None:
    """A bound must not drop options that a language model with negative weight prefers."""
    folder = write_model(tmp_path, 1)
    one, other = (decoder(folder, plain, stack=3) for plain in (False, True))
    one, other = (Decoder(made.system, made.config, {**made.weights, "LM0": [-0.5]}) for made in (one, other))
    other.compiled = None
    for number in range(60):
        line = sentence(number, 2 + number % 6)
        same_lists(one.translate_line(line), other.translate_line(line), line)


# ---- test stacks -------------------------------------------------------------------------------------------
# Stacks: what recombines, what a cut drops.


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.ci
def test_full_stacks_are_cut_in_time(seed: int, tmp_path: Path) -> None:
    """A stack gets so many hypotheses that it is pruned several times while it fills; what is dropped would
    not have been extended anyway."""
    folder = write_model(tmp_path, seed, options=25, longest=2)
    one, other = (
        decoder(folder, plain, stack=12, table_limit=0, distortion_limit=4) for plain in (False, True)
    )
    dropped = 0  # by a cut
    for number in range(8):
        line = sentence(number, 9)
        same_lists(one.translate_line(line), other.translate_line(line), line)
        dropped += cuts(one)
    assert dropped > 20


def small_state(hypotheses: int, coverages: int) -> SearchState:
    """An empty search with one stack, in which each of C coverages has translated one word."""
    state = allocate(StateSizes(hypotheses, 4000, coverages, 1, 0, 2, 0, 0, 1, 0))
    state.table[:] = state.stacks.head[:] = -1
    state.stacks.worst[:] = state.stacks.best[:] = NOTHING
    state.coverages.covered[:] = 1
    return state


def parameters(stack: int, beam: float, reordering: bool = False) -> SearchParameters:
    return SearchParameters(
        words=2, longest=1, stack=stack, beam=beam, distortion=-1, distortion_weight=0.0, early=False,
        reordering=reordering, edges=True, deferred=False, stand_in=0.0, pops=0, diversity=0,
    )  # fmt: skip


@pytest.mark.parametrize(("stack", "beam"), [(0, -math.inf), (5, -math.inf), (12, -3.0), (0, -2.0)])
@pytest.mark.parametrize("reordering", [False, True])
@pytest.mark.ci
def test_what_is_extended_is_the_best_of_each_kind(stack: int, beam: float, reordering: bool) -> None:
    """Compared with a dictionary: hypotheses of the same coverage, end, context and key (with reordering also
    first word, forward scores and regions) recombine, and the best in stack and beam are extended."""
    rng = random.Random(stack)
    given = parameters(stack, beam, reordering)._replace(regions=reordering)
    # A hash table so full that places collide: only 432 kinds are possible.
    state = small_state(432, 3)._replace(table=np.full(512, -1, np.int32))
    forward_id = np.array([0, 1, 1, 2], np.int32)
    best: dict[tuple[int, ...], float] = {}
    for _ in range(600):
        option, coverage, begin, end, word, key = (rng.randrange(size) for size in (4, 3, 2, 2, 3, 2))
        total, top = rng.gauss(0, 2), rng.randrange(2)
        push(state, given, forward_id, 0, option, coverage, begin, end, total, total, word, top, key, total)
        kind: tuple[int, ...] = (coverage, end, word, key)
        if reordering:
            kind += (begin, int(forward_id[option]), top)
        best[kind] = max(total, best.get(kind, NOTHING))
    totals = sorted(best.values(), reverse=True)
    expected = [total for total in totals[: stack or None] if total >= totals[0] + beam]
    found = state.hypotheses.total[select(state, given, 1)]
    assert found.tolist() == expected
    assert not stack or len(stack_members(state, 1)) < 2 * stack + 50  # it was cut while it filled
    assert state.counters[EDGES] == 600  # every way is kept for lists


@pytest.mark.ci
def test_hypotheses_of_other_regions_stay_apart_where_places_collide() -> None:
    given = parameters(0, -math.inf, True)._replace(regions=True)
    state, forward_id = small_state(400, 1)._replace(table=np.full(512, -1, np.int32)), np.zeros(1, np.int32)
    made = [push(state, given, forward_id, 0, 0, 0, 0, 0, 0.0, 0.0, 0, top, 5, 0.0) for top in range(400)]
    assert made == list(range(400)) and state.hypotheses.regions[:400].tolist() == made
    assert push(state, given, forward_id, 0, 0, 0, 0, 0, 1.0, 1.0, 0, 7, 5, 0.0) == 7  # better than the equal


@pytest.mark.ci
def test_no_room_for_a_hypothesis_is_told() -> None:
    given, state, forward_id = parameters(0, -math.inf), small_state(2, 1), np.zeros(1, np.int32)
    made = [push(state, given, forward_id, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0, key, 0.0) for key in (5, 6, 7)]
    assert made == [0, 1, -1] and state.counters[FULL]


# ---- test plain --------------------------------------------------------------------------------------------
# Compiled search = plain search, under any settings.


def random_model(folder: Path, seed: int, rng: random.Random) -> None:
    """A model with random features, weights and settings."""
    lms = rng.randint(1, 2)
    write_model(folder, seed, reordering=seed % 4 != 3, lms=lms)
    edit(
        folder,
        ("UnknownWordPenalty\n", "UnknownWordPenalty tuneable=true\n"),
        ("[weight]\n", f"[weight]\nUnknownWordPenalty0= {rng.uniform(0.01, 1):.2f}\n"),
    )
    if rng.random() < 0.6:
        last, line = lms - 1, weight_line(folder, f"LM{lms - 1}")
        changes = (line, f"{line} {rng.uniform(-1, 0.2):.2f}")
        edit(folder, (f"path=lm{last}", f"path=lm{last} oov-feature=1"), changes)
    if seed % 4 != 3:
        rows = (folder / "reordering").read_text().split("\n")[:-1]
        (folder / "reordering").write_text("".join(f"{row}\n" for row in rows if rng.random() < 0.7))
        default = ",".join(f"{rng.uniform(0.01, 1):.2f}" for _ in range(6))
        edit(folder, (REORDERING, f"type=msd-bidirectional-fe default-scores={default}"))
    edit(
        folder,
        ("[distortion-limit]\n3\n", f"[distortion-limit]\n{rng.randint(-1, 4)}\n"),
        stack=str(rng.randint(2, 8)),
        beam_threshold="0.001",
    )
    flags = {
        name: str(rng.random() < 0.6).lower()
        for name in ("early_distortion_cost", "drop_unknown", "mark_unknown")
    }
    edit(folder, **flags, max_phrase_length=str(rng.randint(1, 3)), n_best_factor="3")


@pytest.mark.ci
@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
@pytest.mark.parametrize("seed", [*range(8), 11, 23])
def test_compiled_is_plain_with_any_settings(seed: int, tmp_path: Path) -> None:
    """Random settings, small stacks: the same texts, totals and lists; features x weights are the totals.

    Where a stack was cut while it filled, the compiled search, as Moses, no longer lists ways into hypotheses
    that are worse than what the cut left; the plain one lists them all. There only the best derivations are
    compared.
    """
    rng = random.Random(seed)
    random_model(tmp_path, seed, rng)
    one, other = (decoder(tmp_path, slow, nbest=6, distinct=seed % 2 == 1) for slow in (False, True))
    weights = np.array([value for name in one.system.sizes for value in one.weights[name]])
    whole = 0
    for number in range(40):
        line = " ".join(
            word if rng.random() < 0.8 else rng.choice(["zz", "z7", "p"])
            for word in sentence(number, 1 + number % 7).split()
        )
        ours, theirs = one.translate_line(line), other.translate_line(line)
        cut = cuts(one) > 0
        whole += not cut
        if cut:
            del ours.derivations[1:], theirs.derivations[1:]
        same_lists(ours, theirs, line)
        for derivation in [*ours.derivations, *theirs.derivations]:
            assert math.isclose(derivation.features @ weights, derivation.total, abs_tol=1e-9)
    assert whole > 20


@pytest.mark.parametrize("seed", range(5))
def test_compiled_is_plain(seed: int, tmp_path: Path) -> None:
    """100 sentences for each model: equal texts, totals and lists of ten, with stacks so small that pruning
    matters."""
    if not HAVE_NUMBA:
        pytest.skip("needs numba: pip install 'nmt-smt[smt]'")
    folder = write_model(tmp_path, seed, reordering=seed != 1, lms=2 if seed == 2 else 1)
    settings: dict[str, object] = {
        "stack": 4,
        "table_limit": 3,
        "nbest": 10 * (seed % 2),
        "distinct": seed == 3,
    }
    one, other = decoder(folder, **settings), decoder(folder, True, **settings)
    for number in range(100):
        line = sentence(number, 1 + number % 8)
        ours, theirs = one.translate_line(line), other.translate_line(line)
        same_lists(ours, theirs, line)


# ---- test compiled search ----------------------------------------------------------------------------------
# Slices and memory of the compiled search: whatever their size, it finds the same.


@pytest.mark.parametrize("nbest", [0, 4])
def test_search_in_slices(nbest: int, tmp_path: Path) -> None:
    """Compiled search returns to Python often enough for signals, and finds the same; no call does more than
    two slices of work."""
    if not HAVE_NUMBA:
        pytest.skip("needs numba: pip install 'nmt-smt[smt]'")
    one, other = (decoder(write_model(tmp_path, 3), stack=30, nbest=nbest) for _ in range(2))
    assert other.compiled
    other.compiled.piece = 40
    for words in (1, 7, 100):
        ours, theirs = (made.translate_line(sentence(words, words)) for made in (one, other))
        assert [(d.text, d.total) for d in ours.derivations] == [
            (d.text, d.total) for d in theirs.derivations
        ]
    assert one.compiled
    task, calls, place = one.task(one.parse_line(sentence(5, 100)), one.listing), 0, (0, 0)
    state, parameters = one.compiled.thread_state(task), task.parameters
    gains = option_gains(task.options, parameters)
    while place[0] < 100:
        before = int(state.counters[WORK]) if calls else 0
        place = search(
            state, task.options, gains, one.compiled.lms, one.model.lm_weights, parameters, *place, 500
        )
        calls += 1
        most = 1 + int(task.options.number.sum())  # of one hypothesis
        assert int(state.counters[WORK]) - before <= 1000 + most
    assert calls > 20


def test_compiled_once_for_any_number_of_language_models(tmp_path: Path) -> None:
    """numba compiles for types: those of a task with one language model are those of a task with three."""
    numba = pytest.importorskip("numba")
    kinds = set()
    for models in (1, 2, 3):
        made = decoder(write_model(tmp_path / str(models), models, lms=models))
        assert made.compiled
        task = made.task(made.parse_line(sentence(1, 5)), made.listing)
        state = made.compiled.thread_state(task)
        arguments = (state, task.options, made.compiled.lms, made.model.lm_weights, task.parameters)
        kinds.add(tuple(map(numba.typeof, arguments)))
    assert len(kinds) == 1


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
@pytest.mark.parametrize("short", ["hypotheses", "edges", "coverages", "moves", "contexts"])
def test_more_memory_where_it_is_needed(short: str, tmp_path: Path) -> None:
    """A search that runs out of memory is repeated with twice as much, and finds the same."""
    one, other = (decoder(write_model(tmp_path, 3), stack=30, nbest=4) for _ in range(2))
    assert other.compiled
    room = StateSizes(20_000, 40_000, 4000, 40_000, 0, 100, 20_000, 40_000, 1, 0)
    other.compiled.memory.state = allocate(room._replace(**{short: 12}))
    line = sentence(3, 7)
    ours, theirs = (made.translate_line(line) for made in (one, other))
    assert [(d.text, d.total) for d in ours.derivations] == [(d.text, d.total) for d in theirs.derivations]
    assert other.compiled.memory.factor == 2 and one.compiled and one.compiled.memory.factor == 1


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
@pytest.mark.parametrize(("scores", "factor"), [(12, 1), (1, 2)])
def test_forgotten_scores_are_computed_again(scores: int, factor: int, tmp_path: Path) -> None:
    """Language model scores that do not fit into memory are computed again; only one span has to fit."""
    one, other = (decoder(write_model(tmp_path, 3), stack=30, nbest=4) for _ in range(2))
    assert other.compiled
    room = StateSizes(20_000, 40_000, 4000, 40_000, 0, 100, 20_000, scores, 1, 0)
    other.compiled.memory.state = allocate(room)
    for line in (sentence(3, 7), sentence(4, 6)):
        ours, theirs = (made.translate_line(line) for made in (one, other))
        assert [(d.text, d.total) for d in ours.derivations] == [
            (d.text, d.total) for d in theirs.derivations
        ]
    assert other.compiled.memory.factor == factor


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
def test_memory_is_used_again(tmp_path: Path) -> None:
    """Memory is reused unless a sentence is longer, or a list needs arrays that the best derivation does
    not."""
    made = decoder(write_model(tmp_path, 1))
    assert made.compiled

    def room(words: int, nbest: int) -> SearchState:
        assert made.compiled
        listing = made.make_listing(nbest, False)
        return made.compiled.thread_state(made.task(made.parse_line(sentence(1, words)), listing))

    first = room(5, 0)
    assert room(100, 0) is first and not len(first.edges)
    listing = room(5, 3)
    assert listing is not first and len(listing.edges) and room(5, 0) is listing
    assert len(room(101, 0).stacks) == 102


def test_the_best_candidates_in_their_order() -> None:
    rng = np.random.default_rng(1)
    state = allocate(StateSizes(1, 0, 1, 0, 60, 3, 0, 0, 1, 0))
    state.counters[CANDIDATES] = 50
    state.candidates.stack[:], state.candidates.total[:] = rng.integers(1, 4, 60), rng.normal(size=60)
    for stack in (1, 2, 3):
        there = [number for number in range(50) if state.candidates.stack[number] == stack]
        assert best_candidates(state, stack, 0).tolist() == there
        for beam in (1, 5, 100):
            best = sorted(there, key=lambda number: -state.candidates.total[number])[:beam]
            assert best_candidates(state, stack, beam).tolist() == sorted(best)


def test_of_equal_candidates_the_oldest_are_the_best() -> None:
    assert best_indices(np.array([1.0, 2.0, 1.0, 2.0, 1.0]), 3).tolist() == [0, 1, 3]


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
@pytest.mark.parametrize("scored", [1, 2, 5, 12])
@pytest.mark.ci
def test_the_threshold_of_candidates_is_the_worst_that_can_still_be_scored(scored: int) -> None:
    """Until there are as many, it is lower than any score."""
    totals = np.random.default_rng(scored).integers(0, 9, 40).astype(float)  # some are equal
    state = allocate(StateSizes(1, 0, 1, 0, 60, 3, 0, 0, 1, 0, scored=scored))
    state.stacks.candidate_worst[:] = NOTHING
    for number, total in enumerate(totals, 1):
        note_candidate(state, 2, total)
        best = sorted(totals[:number])[-scored:]
        assert state.stacks.candidate_worst[2] == (best[0] if number >= scored else NOTHING)
        assert sorted(state.candidate_best[2, : state.stacks.noted[2]]) == best
    assert not state.stacks.noted[[0, 1, 3]].any()


# ---- test derivations --------------------------------------------------------------------------------------
# Lists of derivations: a shorter list is the head of a longer one, a list of texts the first of each.


@pytest.mark.parametrize("seed", [1, 2])
def test_heads_and_firsts(seed: int, tmp_path: Path) -> None:
    """No derivation is listed twice, the first is that of a search without a list, and `distinct` lists each
    text once as far as the factor allows."""
    made = decoder(write_model(tmp_path, seed), stack=30)
    for number in range(5):
        line = sentence(number, 5)
        (whole,) = made.nbest([line], 300)
        assert whole[0].options.tolist() == made.translate_line(line).derivations[0].options.tolist()
        paths = [tuple(one.options.tolist()) for one in whole]
        assert len(set(paths)) == len(paths)
        assert [one.total for one in whole] == sorted((one.total for one in whole), reverse=True)
        (head,) = made.nbest([line], 7)
        assert [tuple(one.options.tolist()) for one in head] == paths[:7]
        firsts = {tuple(one.text): one.total for one in reversed(whole)}
        (texts,) = made.nbest([line], 10, distinct=True)
        assert [tuple(one.text) for one in texts] == sorted(firsts, key=lambda text: -firsts[text])[:10]


def test_the_factor_ends_a_list_of_texts(tmp_path: Path) -> None:
    """With factor 1, at most as many derivations are examined as are listed."""
    made = decoder(write_model(tmp_path, 1), stack=30, nbest_factor=1)
    shorter = 0
    for number in range(5):
        line = sentence(number, 5)
        (looked,), (texts,) = made.nbest([line], 20), made.nbest([line], 20, distinct=True)
        assert {tuple(one.text) for one in looked} == {tuple(one.text) for one in texts}
        shorter += len(texts) < len(looked)
    assert shorter


def test_the_hash_of_a_text_does_not_depend_on_its_phrases() -> None:
    """Prepending words in any portions gives the hash of the whole text; other texts have other hashes."""
    seen = {}
    for text in itertools.product(range(3), repeat=4):
        words = np.array(text, np.int32)
        whole = prepend_digest(np.uint64(0), 0, words)
        for cut in range(5):
            tail = prepend_digest(np.uint64(0), 0, words[cut:])
            assert prepend_digest(np.uint64(tail), 4 - cut, words[:cut]) == whole
        seen[int(whole)] = text
    assert len(seen) == 81


# ---- cube pruning ------------------------------------------------------------------------------------------


needs_numba = pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")


@needs_numba
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.ci
def test_compiled_cubes_are_plain_ones(seed: int, tmp_path: Path) -> None:
    """With few pops, so that their order matters, and various settings: reordering, language models,
    distortion limits, early cost, diversity and lists."""
    rng = random.Random(seed)
    folder = write_model(tmp_path, seed, reordering=seed != 1, lms=1 + seed % 2)
    settings: dict[str, object] = {
        "search": "cube",
        "stack": rng.choice([5, 20]),
        "pop_limit": rng.randint(2, 30),
        "diversity": seed % 3,
        "distortion_limit": rng.choice([-1, 1, 3]),
        "early_distortion_cost": seed % 4 == 0,
        "beam_threshold": rng.choice([1e-5, 0.01]),
        "nbest": 6 * (seed % 2),
    }
    one, other = decoder(folder, **settings), decoder(folder, True, **settings)
    for number in range(30):
        line = sentence(number, 1 + number % 8)
        ours, theirs = one.translate_line(line), other.translate_line(line)
        if cuts(one):  # ways into hypotheses below the cut are not listed
            del ours.derivations[1:], theirs.derivations[1:]
        same_lists(ours, theirs, line)


@needs_numba
@pytest.mark.ci
def test_walls_and_zones(tmp_path: Path) -> None:
    folder = write_model(tmp_path, 2)
    settings: dict[str, object] = {"search": "cube", "pop_limit": 20, "xml_input": "exclusive"}
    one, other = decoder(folder, **settings), decoder(folder, True, **settings)
    for line in ("a b <wall/> c d a", "<zone>a b c</zone> d a", "a <zone>b <wall/> c</zone> d <wall/> a b"):
        same_lists(one.translate_line(line), other.translate_line(line), line)


@pytest.mark.parametrize("plain", [pytest.param(False, marks=pytest.mark.ci), True])
def test_all_pops_are_stack_search(plain: bool, tmp_path: Path) -> None:
    """With enough pops for every cell, cube pruning equals stack search; with fewer it finds nothing
    better."""
    folder = write_model(tmp_path, 3, options=2)
    stack = decoder(folder, plain, nbest=20, **UNLIMITED)
    whole, few = (
        decoder(folder, plain, nbest=20, search="cube", pop_limit=pops, **UNLIMITED) for pops in (100_000, 3)
    )
    worse = 0
    for number in range(6):
        line = sentence(number, 1 + number % 4)
        best = stack.translate_line(line)
        same_lists(whole.translate_line(line), best, line)
        total = few.translate_line(line).derivations[0].total
        assert total <= best.derivations[0].total + 1e-9
        worse += total < best.derivations[0].total - 1e-9
    assert worse


@needs_numba
@pytest.mark.ci
def test_memory_and_slices(tmp_path: Path) -> None:
    """Translations stay the same if memory runs out, if a call does one pop, and if arrays are reused."""
    folder = write_model(tmp_path, 3)
    one, other = (decoder(folder, search="cube", pop_limit=60, nbest=4) for _ in range(2))
    assert other.compiled
    other.compiled.piece = 10
    other.compiled.memory.state = allocate(StateSizes(20, 60, 12, 30, 0, 100, 30, 40, 1, 0))
    for number in range(4):
        line = sentence(number, 4 + number)
        ours, theirs = (made.translate_line(line) for made in (one, other))
        assert [(d.text, d.total) for d in ours.derivations] == [
            (d.text, d.total) for d in theirs.derivations
        ]
    assert other.compiled.memory.factor > 1


def test_sections_of_an_ini(tmp_path: Path) -> None:
    """Moses' sections set cube pruning, and options override them."""
    sections = {"search_algorithm": "1", "cube_pruning_pop_limit": "7", "cube_pruning_diversity": "2"}
    folder = edit(write_model(tmp_path, 1), **sections)
    made = decoder(folder)
    assert (made.settings.search, made.settings.pop_limit, made.settings.diversity) == ("cube", 7, 2)
    parameters = made.task(made.parse_line("a b"), made.listing).parameters
    assert (parameters.pops, parameters.diversity) == (7, 2)
    assert decoder(folder, search="stack").task(made.parse_line("a b"), made.listing).parameters.pops == 0
    assert decoder(folder, pop_limit=9).settings.pop_limit == 9


def test_networks_are_refused(tmp_path: Path) -> None:
    loaded = system.load(str(write_model(tmp_path, 1)), use_cache=False)
    loaded.weights["NMT0"] = [1.0]
    with pytest.raises(ConfigError, match="NMT0; give --search stack"):
        Decoder(loaded, DecoderConfig(search="cube"), features=[Stateful("NMT0")])
