"""The options of a sentence: unknown words, and scores that are those of the features."""

import math
from pathlib import Path

import numpy as np
import pytest

from nmt.formats import nbest
from smt_bridge.decoder.xml_input import Marked
from tests.smt_bridge.decoder.models import decoder, edit, values, write_model


def test_unknown_words(tmp_path: Path) -> None:
    """Copied, marked, or dropped unless they have digits; what is dropped has no word, no alignment, and
    still pays the penalty."""
    write_model(tmp_path, 0)
    copied = decoder(tmp_path, distortion_limit=0).translate_line("zz a z7")
    marked = decoder(
        edit(tmp_path, mark_unknown="true", unknown_word_prefix="<<", unknown_word_suffix=">>"),
        distortion_limit=0,
        nbest=1,
    )
    found = marked.translate_line("zz a z7")
    assert [word.strip("<>") for word in found.text] == copied.text
    assert (
        found.text[0] == "<<zz>>"
        and found.text[-1] == "<<z7>>"
        and math.isclose(found.derivations[0].total, copied.derivations[0].total)
    )
    assert "<<zz>>" in marked.entry(0, found, found.derivations[0])
    dropper = decoder(tmp_path, distortion_limit=0, drop_unknown=True, mark_unknown=False, nbest=1)
    dropped = dropper.translate_line("zz a z7")
    assert dropped.text == copied.text[1:]
    entry = nbest.parse(dropper.entry(0, dropped, dropped.derivations[0]), "entry")
    assert entry.rest[0].startswith("0=0 1=0") and entry.rest[1].startswith(
        "1-0"
    )  # as Moses writes a phrase without words
    assert entry.features["WordPenalty0"] == [-len(dropped.text)] and entry.features["PhrasePenalty0"] == [3]
    assert (
        dropper.translate_line("zz zz").text == []
        and dropper.translate_line("zz zz").derivations[0].features[1] == 0
    )  # not even an end of sentence


def test_unknown_word_penalty(tmp_path: Path) -> None:
    """Its weight counts, and with tuneable=true it is printed."""
    line = "zz a zz b"
    before = decoder(write_model(tmp_path, 1), distortion_limit=0).translate_line(line).derivations[0].total
    edit(tmp_path, ("[weight]\n", "[weight]\nUnknownWordPenalty0= 0.1\n"))
    assert math.isclose(
        decoder(tmp_path, distortion_limit=0).translate_line(line).derivations[0].total,
        before + 180,
        abs_tol=1e-9,
    )
    made = decoder(
        edit(tmp_path, ("UnknownWordPenalty\n", "UnknownWordPenalty tuneable=true\n")), distortion_limit=0
    )
    assert values(made, made.translate_line(line))["UnknownWordPenalty0"] == [-200]
    assert list(made.system.sizes)[-4:] == [
        "UnknownWordPenalty0",
        "WordPenalty0",
        "PhrasePenalty0",
        "TranslationModel0",
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_options_one_by_one(seed: int, tmp_path: Path) -> None:
    """Each option's score is that of its features without language models; its words and its span are found
    where the search looks for them."""
    made = decoder(write_model(tmp_path, seed, lms=2))
    builder, weights = made.options, made.weights
    line = made.marked("a zz b c a e")
    task = made.task(line, made.listing)
    part, options = task.sentence, task.options
    unknown = 0
    for option in range(part.size):
        words, extra = part.target(option), part.extra(option)
        score = weights["PhrasePenalty0"][0] - weights["WordPenalty0"][0] * len(words)
        if extra is None:
            score += float(part.table.scores[part.rows[option]] @ np.array(weights["TranslationModel0"]))
        else:
            unknown += 1
            score -= 100
        assert math.isclose(options.score[option], score, abs_tol=1e-5)
        place = slice(options.start[option], options.start[option] + options.length[option])
        for lm, ids in zip(made.model.word_lms, options.words, strict=True):
            assert ids[place].tolist() == [lm.number(word) for word in words]
        row = int(part.rows[option])
        reordering = builder.rows.row_reordering[row] if extra is None else np.zeros(6)
        assert [*options.backward[option], *options.forward[option]] == reordering.tolist()
        assert options.forward_id[option] == (part.table.forward[row] if extra is None else -1)
        span = int(part.begin[option]) * part.longest + int(part.last[option] - part.begin[option])
        assert options.first[span] <= option < options.first[span] + options.number[span]
    assert unknown == 2 and options.number.sum() == part.size


def test_gathered_rows_are_those_of_the_spans(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 3), max_phrase_length=2, table_limit=0)
    words = "a b c zz d a".split()
    part = made.options.gather(Marked(words))
    expected = [
        (begin, last, row)
        for begin in range(len(words))
        for last in range(begin, min(len(words), begin + 2))
        for row in made.system.table.of(" ".join(words[begin : last + 1]).encode())
    ]
    found = list(zip(part.begin.tolist(), part.last.tolist(), part.rows.tolist(), strict=True))
    assert sorted(triple for triple in found if triple[2] >= 0) == sorted(expected)
    assert [triple[:2] for triple in found if triple[2] < 0] == [(3, 3)]


@pytest.mark.parametrize(
    ("word", "dropped", "expected"),
    [("zz", False, ["zz"]), ("zz", True, []), ("z7", True, ["z7"]), ("*EPS*", False, []), ("", True, [])],
)
def test_an_unknown_word(word: str, dropped: bool, expected: list[str], tmp_path: Path) -> None:
    extra = decoder(write_model(tmp_path, 1), drop_unknown=dropped).options.unknown_word(word)
    assert extra.words == expected and extra.points == [(0, 0)] * len(expected) and extra.unknown
