"""Lines of tokenized text, and long lines in parts."""

from pathlib import Path

import pytest

from nmt.text import long_lines
from smt_bridge.decoder import lines
from smt_bridge.decoder.xml_input import Forced, Marked
from tests.smt_bridge.decoder.models import decoder, sentence, write_model


@pytest.mark.parametrize("limit", [1, 3, 5, 100])
def test_a_line_without_terms_is_cut_as_any_text(limit: int) -> None:
    words = "a b , c d . e f g h i ! j k l m n".split()
    found = lines.parts(Marked(words), limit)
    assert [part.words for part in found] == long_lines.parts(words, limit)


def test_terms_are_not_cut() -> None:
    words = [str(number) for number in range(10)]
    terms = [Forced(2, 4, ["x"], 0.0, True), Forced(7, 7, ["y"], 0.0, True), Forced(8, 9, ["z"], 0.0, True)]
    found = lines.parts(Marked(words, terms), 3)
    assert [part.words for part in found] == [["0", "1"], ["2", "3", "4"], ["5", "6", "7"], ["8", "9"]]
    places = [[(one.begin, one.last, one.words) for one in part.forced] for part in found]
    assert places == [[], [(0, 2, ["x"])], [(2, 2, ["y"])], [(0, 1, ["z"])]]
    # one that is longer than a part is dropped
    assert [part.forced for part in lines.parts(Marked(words, terms[:1]), 2)] == [[]] * 5


def test_a_long_line_keeps_its_terms(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1), max_line_words=5)
    line = Marked(sentence(1, 23).split(" "), [Forced(4, 6, ["x", "y"], 0.0, True)])
    found = made.translate_line(line)
    assert found.text.count("x") == 1 and found.text[found.text.index("x") + 1] == "y"
    assert found.source == line.words and len(found.parts) > 4
