"""Search: unlimited = exhaustive, compiled = plain, totals = features x weights."""

import itertools
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from nmt import signals
from nmt.errors import DataError
from nmt.ngram import count_model as count
from smt_bridge.decoder import automaton, system
from smt_bridge.decoder.arrays import WORK, Floats
from smt_bridge.decoder.compiled import HAVE_NUMBA, Compiled, Stopped
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.feature_values import features
from smt_bridge.decoder.search import search
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.decoder.word_lm import KenLMWords
from smt_bridge.decoder.xml_input import Marked
from tests.smt_bridge.decoder.models import decoder, sentence, write_model

UNLIMITED = {"stack": 0, "table_limit": 0, "beam_threshold": 0.0}


def all_weights(made: Decoder) -> Floats:
    """Of the printed scores."""
    return np.array([value for name in made.system.sizes for value in made.weights[name]])


def exhaustive(made: Decoder, line: str) -> dict[tuple[int, ...], float]:
    """The total of every derivation, from its features alone: any order of phrases that the distortion limit
    allows."""
    task = made.task(Marked(line.split(" ")), made.listing)
    part = task.sentence
    n, limit = len(part.words), made.settings.distortion_limit
    found: dict[tuple[int, ...], float] = {}

    def extend(path: tuple[int, ...], covered: frozenset[int], end: int) -> None:
        if len(covered) == n:
            unknown = sum(part.rows[option] < 0 for option in path)
            found[path] = (
                float(features(made.options, task, [np.array(path, np.int32)])[0] @ all_weights(made))
                - 100 * unknown
            )
            return
        gap = min(set(range(n)) - covered)
        for option in range(len(part.rows)):
            begin, last = int(part.begin[option]), int(part.last[option])
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
    """The best total of all derivations, and the hundred best ones, in order."""
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


def cuts(made: Decoder) -> int:
    """Hypotheses of the last sentence that a full stack has dropped."""
    assert made.compiled and made.compiled.memory.state
    state = made.compiled.memory.state
    return int((state.listed[: state.counters[0]] == 0).sum())


def same_lists(ours: PhraseTranslation, theirs: PhraseTranslation, line: str, close: float = 1e-9) -> None:
    """The same totals; the same texts too, unless a total stands twice (whose order is nobody's business) or
    ends the list."""
    totals = [derivation.total for derivation in ours.derivations]
    np.testing.assert_allclose(totals, [derivation.total for derivation in theirs.derivations], atol=close)
    for place, (one, other) in enumerate(zip(ours.derivations, theirs.derivations, strict=True)):
        near = [totals[other] for other in (place - 1, place + 1) if 0 <= other < len(totals)]
        if not any(abs(total - one.total) < 10 * close for total in near) and (
            place + 1 < len(totals) or place == 0
        ):
            assert one.text == other.text, line


@pytest.mark.parametrize("seed", range(5))
def test_compiled_is_plain(seed: int, tmp_path: Path) -> None:
    """100 sentences a model: the same text, total and list of ten; with stacks so small that pruning
    decides."""
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


@pytest.mark.parametrize("seed", range(3))
def test_full_stacks_are_cut_in_time(seed: int, tmp_path: Path) -> None:
    """So many hypotheses that a stack is cut, again and again, while it fills: what the cut drops would not
    have been extended anyway."""
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


def test_negative_weights(tmp_path: Path) -> None:
    """No bound may drop what a language model of negative weight likes."""
    folder = write_model(tmp_path, 1)
    one, other = (decoder(folder, plain, stack=3) for plain in (False, True))
    one, other = (Decoder(made.system, made.config, {**made.weights, "LM0": [-0.5]}) for made in (one, other))
    other.compiled = None
    for number in range(60):
        line = sentence(number, 2 + number % 6)
        same_lists(one.translate_line(line), other.translate_line(line), line)


def test_future_cost_is_admissible(tmp_path: Path) -> None:
    """Without reordering and with a language model of weight 0 nothing does better than the future cost, and
    the best does as well."""
    folder = write_model(tmp_path, 3, reordering=False)
    made = decoder(folder, nbest=50, **UNLIMITED)
    made.weights.update({"LM0": [0.0], "Distortion0": [0.0]})
    made = Decoder(made.system, made.config, made.weights)
    for number in range(20):
        line = sentence(number, 5)
        bound = made.task(Marked(line.split(" ")), made.listing).options.future[0, -1]
        totals = [derivation.total for derivation in made.translate_line(line).derivations]
        assert max(totals) <= bound + 1e-9
        assert math.isclose(totals[0], bound, abs_tol=1e-9)


def test_features_make_up_the_total(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1), nbest=20, distinct=True)
    for number in range(20):
        translation = made.translate_line(sentence(number, 6))
        texts = [tuple(derivation.text) for derivation in translation.derivations]
        assert len(set(texts)) == len(texts)
        totals = [derivation.total for derivation in translation.derivations]
        assert totals == sorted(totals, reverse=True)
        for derivation in translation.derivations:
            assert translation.sentence
            unknown = sum(translation.sentence.rows[option] < 0 for option in derivation.options)
            assert math.isclose(
                derivation.features @ all_weights(made) - 100 * unknown, derivation.total, abs_tol=1e-9
            )


def test_any_number_of_workers(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 2), nbest=5)
    lines = [sentence(number, 1 + number % 9) for number in range(60)] + [""]
    alone = [
        made.entry(n, t, d) for n, t in enumerate(made.translate_all(iter(lines))) for d in t.derivations
    ]
    together = [
        made.entry(n, t, d) for n, t in enumerate(made.translate_all(iter(lines), 3)) for d in t.derivations
    ]
    assert alone == together and len(alone) > 200


@pytest.mark.parametrize("limit", [3, -1])
def test_sentences_of_any_length(limit: int, tmp_path: Path) -> None:
    """150 words: more than one machine word of coverage. What is translated is every word once, in spans."""
    made = decoder(write_model(tmp_path, 4), stack=5, distortion_limit=limit)
    translation = made.translate_line(sentence(1, 150))
    part = translation.sentence
    assert part
    spans = sorted(
        (int(part.begin[option]), int(part.last[option])) for option in translation.derivations[0].options
    )
    assert [word for begin, last in spans for word in range(begin, last + 1)] == list(range(150))


@pytest.mark.parametrize("nbest", [0, 4])
def test_search_in_slices(nbest: int, tmp_path: Path) -> None:
    """Compiled search returns to Python again and again, where signals are seen, and finds the same; no call
    does more than two slices."""
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
    task, calls, place = one.task(one.marked(sentence(5, 100)), one.listing), 0, (0, 0)
    state, parameters = one.compiled.room(task), task.parameters
    while place[0] < 100:
        before = int(state.counters[WORK]) if calls else 0
        place = search(
            state, task.options, one.compiled.automata, one.model.lm_weights, parameters, *place, 500
        )
        calls += 1
        most = 1 + int(task.options.number.sum())  # of one hypothesis
        assert int(state.counters[WORK]) - before <= 1000 + most
    assert calls > 20


@pytest.mark.parametrize("plain", [False, True])
def test_nobody_waits_for_a_stopped_search(plain: bool, tmp_path: Path) -> None:
    """Threads of a translation that is given up end before their sentences do."""
    made, asked = decoder(write_model(tmp_path, 2), plain, stack=20), itertools.count()
    if made.compiled:
        made.compiled.piece = 1000
    stop = threading.Event()
    stop.is_set = lambda: next(asked) > 5  # type: ignore[method-assign]
    with pytest.raises(Stopped):
        made.translate_line(sentence(1, 80), stop)
    found = made.translate_all(iter([sentence(number, 80) for number in range(40)]), 2)
    next(found)
    found.close()
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


def test_compiled_code_holds_signals() -> None:
    """In the main thread, the only one that sees them: an exception while numba unpacks arguments is a
    segmentation fault."""
    if not HAVE_NUMBA:
        pytest.skip("needs numba: pip install 'nmt-smt[smt]'")
    call = Compiled(
        type("Function", (), {"_numba_type_": None, "__call__": lambda self: signals.held.depth})()
    )
    call.ready = True
    assert call() == 1 and signals.held.depth == 0
    with ThreadPoolExecutor(1) as crew:
        assert crew.submit(call).result() == 0
    assert all(isinstance(function, Compiled) for function in (search, automaton.scores_of, automaton.fill))


def test_unknown_words_and_empty_lines(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 0))
    assert made.translate_line("").text == [] and made.translate_line("  ").text == []
    translation = made.translate_line("xy\u00a0z e")
    assert sorted(translation.text) == sorted(["xy\u00a0z", "e"])  # e has no option in any model
    assert translation.derivations[0].total < -200


def test_kenlm_through_the_package(tmp_path: Path) -> None:
    """KenLM's own states and probabilities, word by word: the plain search finds what the automaton finds."""
    pytest.importorskip("kenlm", reason="needs kenlm: pip install 'nmt-smt[kenlm]'")
    folder = write_model(tmp_path, 1)
    one, loaded = decoder(folder, stack=5, nbest=3), system.load(str(folder), use_cache=False)
    loaded.lms = [KenLMWords(count.KenLM(str(folder / "lm0")))]
    other = Decoder(loaded, DecoderConfig(stack=5, nbest=3))
    assert other.compiled is None
    for number in range(15):
        line = sentence(number, 1 + number % 6)
        same_lists(one.translate_line(line), other.translate_line(line), line, 1e-5)


def test_tables_in_any_order(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Unsorted tables whose rows do not match line by line are the same model; a missing reordering row costs
    nothing, and is told."""
    folder = write_model(tmp_path, 2)
    lines = [sentence(number, 4) for number in range(20)]
    expected = [decoder(folder, stack=10).translate_line(line).derivations[0].total for line in lines]
    rows = (folder / "table").read_text().split("\n")[:-1]
    (folder / "table").write_text("".join(f"{row}\n" for row in reversed(rows)))
    found = [decoder(folder, stack=10).translate_line(line).derivations[0].total for line in lines]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    others = (folder / "reordering").read_text().split("\n")[:-1]
    (folder / "reordering").write_text("".join(f"{row}\n" for row in others[1:]))
    with caplog.at_level("WARNING", logger="smt_bridge"):
        table = decoder(folder).system.table
    assert "no row for 1 pairs" in caplog.text
    source, target = (part.encode() for part in others[0].split(" ||| ")[:2])
    row = next(row for row in table.of(source) if " ".join(table.text(row)).encode() == target)
    assert (table.reordering[row] == 0).all() and (np.delete(table.reordering, row, 0) < 0).all()


def test_long_lines_are_translated_in_parts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write_model(tmp_path, 4)
    made = decoder(folder, stack=5, max_line_words=6)
    parts = [f"{sentence(number, 5)} ." for number in range(8)]
    lines = [parts[0], " ".join(parts), "", parts[1]]
    alone = [made.translate_line(part) for part in parts]
    found = list[PhraseTranslation]()
    for workers in (1, 2):
        caplog.clear()
        with caplog.at_level("WARNING", logger="smt_bridge"):
            found = list(made.translate_all(iter(lines), workers, "in.en"))
        assert [" ".join(one.text) for one in found] == [
            " ".join(word for part in group for word in part.text)
            for group in (alone[:1], alone, [], alone[1:2])
        ]
        assert [record.getMessage()[:20] for record in caplog.records] == ["in.en:2: 48 words, m"]
    np.testing.assert_allclose(found[1].derivations[0].total, sum(one.derivations[0].total for one in alone))
    assert found[1].derivations[0].features.shape == alone[0].derivations[0].features.shape
    lister = decoder(folder, stack=5, nbest=3, max_line_words=6)
    with pytest.raises(
        DataError, match=r"^in\.en:2: 48 words, more than --max-line-words 6: too long for an n-best list"
    ):
        list(lister.translate_all(iter(lines), 1, "in.en"))
    tagged = decoder(folder, stack=5, max_line_words=6, xml_input="exclusive")
    with pytest.raises(DataError, match="too long for tags"):
        tagged.translate_line(f'<x translation="p">a</x> {lines[1]}')
    assert tagged.translate_line(lines[1]).text == found[1].text
