"""The decoder from lines to translations: workers, long lines, unknown words, interrupts, and the second
search."""

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.compute.compiled import Stopped
from nmt.errors import DataError
from nmt.formats import nbest
from nmt.text import sentences
from smt_bridge.decoder import system, translation
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.features.registry import SEARCH_FEATURES
from smt_bridge.decoder.model import Listing
from smt_bridge.decoder.translation import Derivation, PhraseTranslation, alignment
from smt_bridge.decoder.xml_input import ForcedTranslation, MarkedLine
from tests.smt_bridge.decoder.features.test_protocol import Few
from tests.smt_bridge.decoder.models import (
    add_feature,
    decoder,
    full_scores,
    range_of,
    sentence,
    values,
    write_model,
)

# ---- test decoder ------------------------------------------------------------------------------------------


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


@pytest.mark.ci
@pytest.mark.parametrize("plain", [False, True])
def test_nobody_waits_for_a_stopped_search(plain: bool, tmp_path: Path) -> None:
    """Threads of a translation that is stopped end before their sentences are finished."""
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


def test_unknown_words_and_empty_lines(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 0))
    assert made.translate_line("").text == [] and made.translate_line("  ").text == []
    translation = made.translate_line("xy\u00a0z e")
    assert sorted(translation.text) == sorted(["xy\u00a0z", "e"])  # e has no option in any model
    assert translation.derivations[0].total < -200


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
    np.testing.assert_allclose(
        found[1].derivations[0].features, sum(one.derivations[0].features for one in alone)
    )
    lister = decoder(folder, stack=5, nbest=3, max_line_words=6)
    with pytest.raises(
        DataError, match=r"^in\.en:2: 48 words, more than --max-line-words 6: too long for an n-best list"
    ):
        list(lister.translate_all(iter(lines), 1, "in.en"))
    tagged = decoder(folder, stack=5, max_line_words=6, xml_input="exclusive")
    with pytest.raises(DataError, match="too long for tags"):
        tagged.translate_line(f'<x translation="p">a</x> {lines[1]}')
    assert tagged.translate_line(lines[1]).text == found[1].text


# ---- test translation --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_entries_read_back(seed: int, tmp_path: Path) -> None:
    """Text, features and total; segments contain the source and the target in order, and alignment points are
    those of the phrases."""
    made = decoder(write_model(tmp_path, seed), nbest=8)
    for number in range(6):
        found = made.translate_line(sentence(number, 6) + " zz")
        part = found.sentence
        assert part
        for place, derivation in enumerate(found.derivations):
            read = nbest.parse(made.entry(number, found, derivation), "list")
            assert read.sentence == number and read.words == derivation.text
            assert abs(read.total - derivation.total) <= 1e-5 * abs(derivation.total)
            for name, expected in values(made, found, place).items():
                np.testing.assert_allclose(read.features[name], expected, rtol=1e-5, atol=1e-6)
            segments = [piece.split("=") for piece in read.rest[0].split()]
            sources = [word for one, _ in segments for word in range_of(one)]
            assert sorted(sources) == list(range(7))
            assert [word for _, one in segments for word in range_of(one)] == list(range(len(read.words)))
            points = set[str]()
            at = 0
            for option in derivation.options.tolist():
                begin = int(part.first[option])
                points |= {f"{begin + source}-{at + target}" for source, target in part.points(option)}
                at += len(part.target(option))
            assert set(read.rest[1].split()) == points


def test_a_line_in_parts_is_aligned_as_a_whole(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1))
    lines = [sentence(number, 4) for number in range(3)]
    parts = [made.translate_line(line) for line in lines]
    found = translation.join_parts(parts)
    assert found.source == " ".join(lines).split(" ")
    expected, target = [], 0
    for place, part in enumerate(parts):
        expected += [(4 * place + one, target + other) for one, other in translation.alignment(part)]
        target += len(part.text)
    assert translation.alignment(found) == expected
    assert translation.alignment(translation.empty(3)) == []


# ---- test lines --------------------------------------------------------------------------------------------
# Lines of tokenized text, and long lines in parts.


@pytest.mark.parametrize("limit", [1, 3, 5, 100])
def test_a_line_without_terms_is_cut_as_any_text(limit: int) -> None:
    words = "a b , c d . e f g h i ! j k l m n".split()
    found = translation.cut_line(MarkedLine(words), limit)
    assert [part.words for part in found] == sentences.line_parts(words, limit)


def test_terms_are_not_cut() -> None:
    words = [str(number) for number in range(10)]
    terms = [
        ForcedTranslation(2, 4, ["x"], 0.0, True),
        ForcedTranslation(7, 7, ["y"], 0.0, True),
        ForcedTranslation(8, 9, ["z"], 0.0, True),
    ]
    found = translation.cut_line(MarkedLine(words, terms), 3)
    assert [part.words for part in found] == [["0", "1"], ["2", "3", "4"], ["5", "6", "7"], ["8", "9"]]
    places = [[(one.first, one.last, one.words) for one in part.forced] for part in found]
    assert places == [[], [(0, 2, ["x"])], [(2, 2, ["y"])], [(0, 1, ["z"])]]
    # one that is longer than a part is dropped
    assert [part.forced for part in translation.cut_line(MarkedLine(words, terms[:1]), 2)] == [[]] * 5


def test_a_long_line_keeps_its_terms(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1), max_line_words=5)
    line = MarkedLine(sentence(1, 23).split(" "), [ForcedTranslation(4, 6, ["x", "y"], 0.0, True)])
    found = made.translate_line(line)
    assert found.text.count("x") == 1 and found.text[found.text.index("x") + 1] == "y"
    assert found.source == line.words and len(found.parts) > 4


# ---- second search -----------------------------------------------------------------------------------------


NARROW: dict[str, Any] = {"stack": 3, "neural_beam": 2}  # so that the search with the network loses much
SIZE = 12
WEIGHT = 0.6
LINES = [sentence(number, 3 + number % 6) for number in range(40)]


def marked(line: str) -> str:
    """The line with a forced translation, a zone and walls."""
    first, second, third, *others = line.split()
    return f'{first} <zone> {second} <np translation="q q||s">{third}</np> </zone> {" <wall/> ".join(others)}'


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    SEARCH_FEATURES["Few"] = Few
    yield
    del SEARCH_FEATURES["Few"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return add_feature(write_model(tmp_path, 3), "Few name=Few0", f"Few0= {WEIGHT}")


def without_network(folder: Path, nbest: int, distinct: bool = True, **config: Any) -> Decoder:
    """A decoder that does not search with the network; the first language model stands in for it."""
    loaded = system.load(str(folder), use_cache=False)
    lm = [loaded.weights["LM0"][0] + Few.stand_in * WEIGHT]
    weights = loaded.tuneable_weights() | {"LM0": lm, "Few0": [0.0]}
    settings = DecoderConfig(nbest=nbest, distinct=distinct, **(NARROW | config))
    return Decoder(loaded, settings, weights)


def merged(first: list[Derivation], second: list[tuple[Derivation, float]], distinct: bool) -> list[float]:
    """Totals of the union of two lists, best first, computed naively."""
    best: dict[tuple[object, ...], float] = {}
    for item, total in [*((item, item.total) for item in first), *second]:
        key = tuple(item.text) if distinct else tuple(item.options.tolist())
        best[key] = max(total, best.get(key, total))
    return sorted(best.values(), reverse=True)


def test_the_search_is_compiled_once_for_all_systems(folder: Path, tmp_path: Path) -> None:
    """Compiled code is made for the types of its arguments: each further combination takes half a minute."""
    decoders = [decoder(folder), without_network(folder, 0), decoder(folder, True, nbest=3, beam_threshold=0)]
    decoders += [decoder(write_model(tmp_path / "other", 1), search="cube")]
    parameters = [each.task(MarkedLine(["a", "b"]), Listing(0, False, 0)).parameters for each in decoders]
    types = [[float if isinstance(value, float) else type(value) for value in each] for each in parameters]
    assert all(each == types[0] for each in types)


@pytest.mark.parametrize("markup", [False, True])
@pytest.mark.ci
def test_the_better_of_both_searches_is_taken(folder: Path, markup: bool) -> None:
    """The total is the higher one of the first search's translation and of the list without the network; for
    many lines the second search wins."""
    policy: dict[str, Any] = {"xml_input": "exclusive"} if markup else {}
    both = decoder(folder, second_search=SIZE, **NARROW, **policy)
    first = decoder(folder, **NARROW, **policy)
    second = without_network(folder, SIZE, **policy)
    won = 0
    for line in map(marked, LINES) if markup else LINES:
        listed = second.translate_line(line)
        best, alone = max(full_scores(first, listed)), first.translate_line(line).derivations[0].total
        (chosen,) = both.translate_line(line).derivations
        assert chosen.total == pytest.approx(max(best, alone), abs=1e-6), line
        won += best > alone + 1e-6
    assert won >= (2 if markup else 5)


@pytest.mark.parametrize("distinct", [False, True])
def test_lists_are_the_union(folder: Path, distinct: bool) -> None:
    """Each text, or derivation, is listed once, sorted by the full score; the list has the required
    length."""
    config = {**NARROW, "nbest": 8, "distinct": distinct}
    first, both = decoder(folder, **config), decoder(folder, second_search=SIZE, **config)
    second = without_network(folder, SIZE)
    for line in LINES:
        listed = second.translate_line(line)
        scored = list(zip(listed.derivations, full_scores(first, listed).tolist(), strict=True))
        expected = merged(first.translate_line(line).derivations, scored, distinct)[:8]
        ours = both.translate_line(line).derivations
        assert [item.total for item in ours] == pytest.approx(expected, abs=1e-6), line
        keys = [tuple(item.text) if distinct else tuple(item.options.tolist()) for item in ours]
        assert len({*keys}) == len(keys)


def test_without_a_network_or_a_second_search_nothing_changes(folder: Path, tmp_path: Path) -> None:
    plain = write_model(tmp_path / "plain", 3)
    for model, size in ((plain, SIZE), (folder, 0)):
        usual, other = (
            decoder(model, nbest=5, **NARROW),
            decoder(model, nbest=5, second_search=size, **NARROW),
        )
        for line in LINES[:10]:
            entries = [
                [made.entry(0, result, item) for item in result.derivations]
                for made in (usual, other)
                for result in [made.translate_line(line)]
            ]
            assert entries[0] == entries[1]


@pytest.mark.parametrize("weight", [WEIGHT, -2.0])
def test_plain_search_lists_the_same(weight: float, tmp_path: Path) -> None:
    """Also with a negative weight of the network, which reduces that of the language model."""
    folder = add_feature(write_model(tmp_path, 3), "Few name=Few0", f"Few0= {weight}")
    made, plain = (decoder(folder, way, second_search=SIZE, **NARROW) for way in (False, True))
    for line in LINES[:12]:
        lists = []
        for one in (made, plain):
            assert one.second
            task = made.task(made.parse_line(line), made.listing)
            lists.append([path.tolist() for path in one.second.paths(task)])
        assert lists[0] == lists[1], line


def test_threads_give_the_same(folder: Path) -> None:
    made = decoder(folder, second_search=SIZE, nbest=6, **NARROW)
    lists = [
        [[(item.text, item.total) for item in result.derivations] for result in results]
        for results in (
            map(made.translate_line, LINES),
            *(made.translate_all(iter(LINES), n) for n in (1, 2)),
        )
    ]
    assert lists[0] == lists[1] == lists[2]


def test_a_chosen_translation_is_explained_and_aligned(folder: Path) -> None:
    made = decoder(folder, second_search=SIZE, explain=True, **NARROW)
    for line in LINES[:10]:
        result = made.translate_line(line)
        (chosen,) = result.derivations
        assert chosen.shares is not None and chosen.shares.sum() == pytest.approx(chosen.total, abs=1e-6)
        assert result.sentence and result.sentence.derivation_words(chosen.options) == chosen.text
        words = {source for source, _ in alignment(result)}
        assert words <= set(range(len(line.split())))


def test_a_long_line_is_searched_twice_in_each_of_its_parts(folder: Path) -> None:
    config = {**NARROW, "second_search": SIZE}
    line = " ".join(LINES[:4])
    parts = decoder(folder, max_line_words=6, **config).translate_line(line).parts
    assert len(parts) > 1
    whole = decoder(folder, **config)
    for part in parts:
        assert part.sentence
        alone = whole.translate_line(" ".join(part.sentence.words)).derivations[0]
        assert part.derivations[0].total == pytest.approx(alone.total)
