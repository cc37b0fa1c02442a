"""Search: unlimited = exhaustive, compiled = plain, totals = features x weights; the automaton = the model;
real Moses line by line."""

import itertools
import math
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt import files, signals
from nmt.errors import DataError
from nmt.lm import arpa, count, kneser_ney
from nmt.lm.arpa import NgramModel
from smt_bridge.decoder import automaton, system
from smt_bridge.decoder.compiled import HAVE_NUMBA, Compiled, Stopped
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.plain import AutomatonLM
from smt_bridge.decoder.search import WORK, search
from smt_bridge.decoder.system import CountLM
from smt_bridge.decoder.xml_input import Marked
from tests.smt_bridge.decoder.models import sentence, write_model

UNLIMITED = {"stack": 0, "table_limit": 0, "beam_threshold": 0.0}


def decoder(folder: Path, plain: bool = False, **config: Any) -> Decoder:
    made = Decoder(system.load(str(folder), use_cache=False), DecoderConfig(**config))
    if plain:
        made.compiled = False
    return made


def all_weights(made: Decoder) -> Any:
    return np.array([value for name in made.system.sizes for value in made.weights[name]])


def exhaustive(made: Decoder, line: str) -> dict[tuple[int, ...], float]:
    """The total of every derivation, from its features alone: any order of phrases that the distortion limit
    allows."""
    part = made.options(Marked(line.split(" ")))
    n, limit = len(part.words), made.settings.distortion_limit
    found: dict[tuple[int, ...], float] = {}

    def extend(path: tuple[int, ...], covered: frozenset[int], end: int) -> None:
        if len(covered) == n:
            unknown = sum(part.rows[option] < 0 for option in path)
            found[path] = (
                float(made.features(part, [np.array(path, np.int32)])[0] @ all_weights(made)) - 100 * unknown
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
        found = [derivation.total for derivation in made.translate(line).derivations]
        # Recombination keeps every derivation: what the list holds is the head of the whole.
        np.testing.assert_allclose(found, totals[: len(found)], atol=1e-9)
        assert len(found) == min(100, len(totals))


def same_lists(ours: Any, theirs: Any, line: str, close: float = 1e-9) -> None:
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
    settings: dict[str, Any] = {"stack": 4, "table_limit": 3, "nbest": 10 * (seed % 2), "distinct": seed == 3}
    one, other = decoder(folder, **settings), decoder(folder, plain=True, **settings)
    for number in range(100):
        line = sentence(number, 1 + number % 8)
        ours, theirs = one.translate(line), other.translate(line)
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
        same_lists(one.translate(line), other.translate(line), line)
        state = one.local.state
        dropped += int((state.listed[: state.counters[0]] == 0).sum())
    assert dropped > 20


def test_negative_weights(tmp_path: Path) -> None:
    """No bound may drop what a language model of negative weight likes."""
    folder = write_model(tmp_path, 1)
    one, other = (decoder(folder, plain, stack=3) for plain in (False, True))
    for made in (one, other):
        made.weights["LM0"] = [-0.5]
        made.lm_weights = np.array([-0.5])
        made.set_up_rows()
    for number in range(60):
        line = sentence(number, 2 + number % 6)
        same_lists(one.translate(line), other.translate(line), line)


def test_future_cost_is_admissible(tmp_path: Path) -> None:
    """Without reordering and with a language model of weight 0 nothing does better than the future cost, and
    the best does as well."""
    folder = write_model(tmp_path, 3, reordering=False)
    made = decoder(folder, nbest=50, **UNLIMITED)
    made.weights.update({"LM0": [0.0], "Distortion0": [0.0]})
    made = Decoder(made.system, made.config, made.weights)
    for number in range(20):
        line = sentence(number, 5)
        bound = made.options(Marked(line.split(" "))).options.future[0, -1]
        totals = [derivation.total for derivation in made.translate(line).derivations]
        assert max(totals) <= bound + 1e-9
        assert math.isclose(totals[0], bound, abs_tol=1e-9)


def test_features_make_up_the_total(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1), nbest=20, distinct=True)
    for number in range(20):
        translation = made.translate(sentence(number, 6))
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
    translation = made.translate(sentence(1, 150))
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
    other.slice = 40
    for words in (1, 7, 100):
        ours, theirs = (made.translate(sentence(words, words)) for made in (one, other))
        assert [(d.text, d.total) for d in ours.derivations] == [
            (d.text, d.total) for d in theirs.derivations
        ]
    part = one.options(one.marked(sentence(5, 100)))
    limits, calls, place = one.limits(part), 0, (0, 0)
    state = one.memory(limits)
    while place[0] < 100:
        before = int(state.counters[WORK]) if calls else 0
        place = search(state, part.options, one.automata, one.lm_weights, limits, *place, 500)
        calls += 1
        most = 1 + int(part.options.number.sum())  # of one hypothesis
        assert int(state.counters[WORK]) - before <= 1000 + most
    assert calls > 20


@pytest.mark.parametrize("plain", [False, True])
def test_nobody_waits_for_a_stopped_search(plain: bool, tmp_path: Path) -> None:
    """Threads of a translation that is given up end before their sentences do."""
    made, seen = decoder(write_model(tmp_path, 2), plain, stack=20), []
    made.slice = 1000
    stop = threading.Event()
    stop.is_set = lambda: bool(seen.append(1)) or len(seen) > 5  # type: ignore[method-assign]
    with pytest.raises(Stopped):
        made.translate(sentence(1, 80), stop)
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
    assert made.translate("").text == [] and made.translate("  ").text == []
    translation = made.translate("xy\u00a0z e")
    assert sorted(translation.text) == sorted(["xy\u00a0z", "e"])  # e has no option in any model
    assert translation.derivations[0].total < -200


def test_automaton_is_the_model(tmp_path: Path) -> None:
    """log p of every sentence as the arrays have it, by the compiled steps and by the plain ones; orders 1 to
    4."""
    rng = random.Random(3)
    texts = [[rng.choice("abcdef") for _ in range(rng.randint(1, 9))] for _ in range(80)]
    for order in (1, 2, 4):
        model = kneser_ney.estimate(
            texts, kneser_ney.KneserNeyConfig(order, discount_fallback=kneser_ney.FALLBACK)
        )
        check_automaton(model, [[*text[:4], "zz", *text[4:]] for text in texts[:40]] + [[]])


def test_automaton_of_a_model_with_holes(tmp_path: Path) -> None:
    """A pruned model in which `b c a` is not there although `a b c a` is, and contexts have back-off weights
    but no longer n-gram."""
    text = (
        "\\data\\\nngram 1=6\nngram 2=4\nngram 3=1\nngram 4=1\n\n"
        "\\1-grams:\n-1\t<unk>\t0\n-99\t<s>\t-0.3\n-0.9\t</s>\t0\n-0.7\ta\t-0.2\n-0.8\tb\t-0.4\n-0.6\tc\t-0.5\n\n"
        "\\2-grams:\n-0.4\ta b\t-0.25\n-0.3\t<s> a\t-0.15\n-0.2\tc a\t-0.35\n-0.5\tb c\t-0.1\n\n"
        "\\3-grams:\n-0.1\ta b c\t-0.45\n\n\\4-grams:\n-0.05\ta b c a\n\n\\end\\\n"
    )
    (tmp_path / "lm").write_text(text)
    model = arpa.read(tmp_path / "lm")
    check_automaton(
        model, [list(words) for size in range(6) for words in itertools.product("abcx", repeat=size)]
    )


def check_automaton(model: NgramModel, texts: list[list[str]]) -> None:
    built = automaton.build(model)
    plain = AutomatonLM(CountLM(model.words, *built))
    for text, scores in zip(texts, model.scores(texts), strict=True):
        ids = np.array(model.encode(text), np.int32)
        assert math.isclose(automaton.sentence_score(built, ids), scores.sum(), abs_tol=1e-9), text
        assert math.isclose(plain.sentence(ids.tolist()), scores.sum(), abs_tol=1e-9), text
    assert (built.most[: len(model.words)] <= 1e-12).all()
    for word in range(len(model.words)):
        for state in {int(value) for value in built.state}:
            assert automaton.step(built, state, word)[0] <= built.most[word] + 1e-12


def test_equal_futures_recombine(tmp_path: Path) -> None:
    """Two histories that no n-gram tells apart lead to one state, as in KenLM."""
    model = kneser_ney.estimate(
        [list("abc"), list("xbc")], kneser_ney.KneserNeyConfig(2, discount_fallback=kneser_ney.FALLBACK)
    )
    built = automaton.build(model)
    states = set()
    for first in "ax":
        state = built.begin
        for word in (first, "b"):
            _, state = automaton.step(built, state, model.ids[word])
        states.add(int(state))
    assert len(states) == 1


def test_kenlm_through_the_package(tmp_path: Path) -> None:
    """KenLM's own states and probabilities, word by word: the plain search finds what the automaton finds."""
    pytest.importorskip("kenlm", reason="needs kenlm: pip install 'nmt-smt[kenlm]'")
    folder = write_model(tmp_path, 1)
    one, loaded = decoder(folder, stack=5, nbest=3), system.load(str(folder), use_cache=False)
    loaded.lms = [count.KenLM(str(folder / "lm0"))]
    other = Decoder(loaded, DecoderConfig(stack=5, nbest=3))
    assert not other.compiled
    for number in range(15):
        line = sentence(number, 1 + number % 6)
        same_lists(one.translate(line), other.translate(line), line, 1e-5)


def test_tables_in_any_order(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Unsorted tables whose rows do not match line by line are the same model; a missing reordering row costs
    nothing, and is told."""
    folder = write_model(tmp_path, 2)
    lines = [sentence(number, 4) for number in range(20)]
    expected = [decoder(folder, stack=10).translate(line).derivations[0].total for line in lines]
    rows = (folder / "table").read_text().split("\n")[:-1]
    (folder / "table").write_text("".join(f"{row}\n" for row in reversed(rows)))
    found = [decoder(folder, stack=10).translate(line).derivations[0].total for line in lines]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    others = (folder / "reordering").read_text().split("\n")[:-1]
    (folder / "reordering").write_text("".join(f"{row}\n" for row in others[1:]))
    with caplog.at_level("WARNING", logger="nmt"):
        table = decoder(folder).system.table
    assert "no row for 1 pairs" in caplog.text
    source, target = (part.encode() for part in others[0].split(" ||| ")[:2])
    row = next(row for row in table.of(source) if " ".join(table.text(row)).encode() == target)
    assert (table.reordering[row] == 0).all() and (np.delete(table.reordering, row, 0) < 0).all()


# ---- the real system ---------------------------------------------------------------------------------------


def real(nmt_data: Path, folder: Path) -> Path:
    """Links to the real model, so that no cache is written beside it."""
    for path in (nmt_data / "moses-multi30k").iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "moses.ini").symlink_to(nmt_data / "moses-multi30k" / "moses.tuned.ini")
    return folder


@pytest.mark.ci
def test_real_moses_line_by_line(nmt_data: Path, tmp_path: Path) -> None:
    """Stack 200, tables, model and weights of the real system: 997 of its 1,000 outputs; here the first 150
    lines, all of them.

    And the feature values of its own lists, to the digits they are printed with.
    """
    from nmt import nbest

    folder = real(nmt_data, tmp_path)
    loaded = system.load(str(folder), use_cache=False)
    lines = list(itertools.islice(files.read_lines(folder / "corpus/test_2016_flickr.tok.en"), 150))
    theirs = [
        line.strip(" ")
        for line in itertools.islice(files.read_lines(folder / "out/test_2016_flickr.tuned.fr"), 150)
    ]
    made = Decoder(loaded, DecoderConfig(stack=200))
    ours = [" ".join(made.translate(line).text) for line in lines]
    assert ours == theirs
    lister = Decoder(loaded, DecoderConfig(stack=200, nbest=100, distinct=True))
    entries = {}
    for hypothesis in nbest.read(folder / "out/test_2016_flickr.100best.segalign.gz"):
        if hypothesis.sentence >= 20:
            break
        entries[hypothesis.sentence, tuple(hypothesis.text), hypothesis.rest[0]] = hypothesis
    shared = 0
    for number, line in enumerate(lines[:20]):
        translation = lister.translate(line)
        for derivation in translation.derivations:
            mine = nbest.parse(lister.entry(number, translation, derivation), "mine")
            other = entries.get((number, tuple(mine.text), mine.rest[0]))
            if other:
                shared += 1
                assert list(mine.features) == list(other.features) and mine.rest == other.rest
                assert abs(mine.total - other.total) < 1.1e-3
                for name, values in mine.features.items():
                    np.testing.assert_allclose(values, other.features[name], atol=1.1e-3)
    assert shared > 0.9 * len(entries)


@pytest.mark.slow
def test_real_moses_whole(nmt_data: Path, tmp_path: Path) -> None:
    """All 1,000 lines; where the texts differ our total is at least as good as Moses' printed one."""
    from nmt import nbest

    folder = real(nmt_data, tmp_path)
    made = Decoder(system.load(str(folder), use_cache=False), DecoderConfig(stack=200))
    best: dict[int, float] = {}
    for hypothesis in nbest.read(folder / "out/test_2016_flickr.100best.segalign.gz"):
        best.setdefault(hypothesis.sentence, hypothesis.total)
    theirs = [line.strip(" ") for line in files.read_lines(folder / "out/test_2016_flickr.tuned.fr")]
    different = []
    for number, translation in enumerate(
        made.translate_all(files.read_lines(folder / "corpus/test_2016_flickr.tok.en"), 2)
    ):
        if " ".join(translation.text) != theirs[number]:
            different.append(number)
            assert translation.derivations[0].total >= best[number] - 2e-3 * abs(best[number]), number
    assert len(different) <= 15


@pytest.mark.slow
def test_compiled_is_plain_on_500_real_sentences(nmt_data: Path, tmp_path: Path) -> None:
    folder = real(nmt_data, tmp_path)
    loaded = system.load(str(folder), use_cache=False)
    one, other = (Decoder(loaded, DecoderConfig(stack=10)) for _ in range(2))
    other.compiled = False
    for line in itertools.islice(files.read_lines(folder / "corpus/val.tok.en"), 500):
        ours, theirs = one.translate(line), other.translate(line)
        assert ours.text == theirs.text and math.isclose(
            ours.derivations[0].total, theirs.derivations[0].total, abs_tol=1e-9
        )


# ---- long lines --------------------------------------------------------------------------------------------


def test_long_lines_are_translated_in_parts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write_model(tmp_path, 4)
    made = decoder(folder, stack=5, max_line_words=6)
    parts = [f"{sentence(number, 5)} ." for number in range(8)]
    lines = [parts[0], " ".join(parts), "", parts[1]]
    alone = [made.translate(part) for part in parts]
    for workers in (1, 2):
        caplog.clear()
        with caplog.at_level("WARNING", logger="nmt"):
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
        tagged.translate(f'<x translation="p">a</x> {lines[1]}')
    assert tagged.translate(lines[1]).text == found[1].text
