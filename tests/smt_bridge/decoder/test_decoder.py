"""The decoder from lines to translations: workers, long lines, unknown words, interrupts, and the second
search."""

import itertools
import threading
from pathlib import Path

import numpy as np
import pytest

from nmt.compute.compiled import Stopped
from nmt.errors import DataError
from nmt.formats import nbest
from nmt.text import sentences
from smt_bridge.decoder import system, translation
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.features.registry import SEARCH_FEATURES
from smt_bridge.decoder.model import Listing
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.decoder.xml_input import ForcedTranslation, MarkedLine
from tests.smt_bridge.decoder.features.test_protocol import Few
from tests.smt_bridge.decoder.models import (
    add_feature,
    decoder,
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


# ---- compilation -------------------------------------------------------------------------------------------


def test_the_search_is_compiled_once_for_all_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code is made for the types of its arguments: each further combination takes half a minute."""
    monkeypatch.setitem(SEARCH_FEATURES, "Few", Few)
    folder = add_feature(write_model(tmp_path, 3), "Few name=Few0", "Few0= 0.6")
    loaded = system.load(str(folder), use_cache=False)
    weightless = Decoder(loaded, weights=loaded.tuneable_weights() | {"Few0": [0.0]})
    decoders = [decoder(folder), weightless, decoder(folder, True, nbest=3, beam_threshold=0)]
    decoders += [decoder(write_model(tmp_path / "other", 1), search="cube")]
    parameters = [each.task(MarkedLine(["a", "b"]), Listing(0, False, 0)).parameters for each in decoders]
    types = [[float if isinstance(value, float) else type(value) for value in each] for each in parameters]
    assert all(each == types[0] for each in types)
