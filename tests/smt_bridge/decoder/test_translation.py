"""What became of a sentence: texts, marks, and lines of n-best lists that read back."""

from pathlib import Path

import numpy as np
import pytest

from nmt.formats import nbest
from nmt.text import sentences
from smt_bridge.decoder import translation
from smt_bridge.decoder.config import SearchSettings
from smt_bridge.decoder.translation import span
from smt_bridge.decoder.xml_input import ForcedTranslation, MarkedLine
from tests.smt_bridge.decoder.models import decoder, sentence, values, write_model

# ---- test translation --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2])
def test_entries_read_back(seed: int, tmp_path: Path) -> None:
    """Text, features and total; the segments are the source and the target in order, the alignment points
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
                begin = int(part.begin[option])
                points |= {f"{begin + source}-{at + target}" for source, target in part.points(option)}
                at += len(part.target(option))
            assert set(read.rest[1].split()) == points


def range_of(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def test_span() -> None:
    assert [span(3, 3), span(3, 5)] == ["3", "3-5"]


def test_nothing_to_translate(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1))
    found = translation.empty(sum(made.system.sizes.values()))
    assert found.text == [] and found.derivations[0].total == 0.0
    read = nbest.parse(made.entry(3, found, found.derivations[0]), "list")
    assert read.sentence == 3 and not any(any(row) for row in read.features.values())


def test_parts_are_added_up(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1))
    parts = [made.translate_line(sentence(number, 4)) for number in range(3)]
    found = translation.join_parts(parts)
    assert found.text == [word for part in parts for word in part.text]
    assert found.derivations[0].total == sum(part.derivations[0].total for part in parts)
    np.testing.assert_array_equal(
        found.derivations[0].features, sum(part.derivations[0].features for part in parts)
    )


def test_only_unknown_words_are_marked(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1), distortion_limit=0)
    found = made.translate_line("a zz b")
    assert found.sentence
    path = found.derivations[0].options
    settings = SearchSettings(mark_unknown=True, unknown_prefix="<", unknown_suffix=">")
    marked = translation.output(found.sentence, path, settings)
    assert [word if word != "zz" else "<zz>" for word in found.text] == marked
    assert translation.output(found.sentence, path, SearchSettings(unknown_prefix="<")) == found.text


def test_the_alignment_of_a_line_is_that_of_its_list(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1), distortion_limit=-1)
    for number in range(6):
        found = made.translate_line(sentence(number, 6) + " zz")
        points = nbest.parse(made.entry(0, found, found.derivations[0]), "list").rest[1].split()
        assert sorted(points) == sorted(f"{one}-{other}" for one, other in translation.alignment(found))
        assert translation.alignment(found) == sorted(translation.alignment(found))


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
    places = [[(one.begin, one.last, one.words) for one in part.forced] for part in found]
    assert places == [[], [(0, 2, ["x"])], [(2, 2, ["y"])], [(0, 1, ["z"])]]
    # one that is longer than a part is dropped
    assert [part.forced for part in translation.cut_line(MarkedLine(words, terms[:1]), 2)] == [[]] * 5


def test_a_long_line_keeps_its_terms(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1), max_line_words=5)
    line = MarkedLine(sentence(1, 23).split(" "), [ForcedTranslation(4, 6, ["x", "y"], 0.0, True)])
    found = made.translate_line(line)
    assert found.text.count("x") == 1 and found.text[found.text.index("x") + 1] == "y"
    assert found.source == line.words and len(found.parts) > 4
