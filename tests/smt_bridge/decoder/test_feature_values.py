"""Feature values of derivations: multiplied by the weights they give the total, and each equals its
definition."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder import feature_values
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.moses.reordering import ReorderingType
from tests.smt_bridge.decoder.models import (
    check_totals,
    decoder,
    edit,
    range_of,
    sentence,
    values,
    write_model,
)

# ---- test feature values -----------------------------------------------------------------------------------


def test_features_make_up_the_total(tmp_path: Path) -> None:
    made = decoder(write_model(tmp_path, 1), nbest=20, distinct=True)
    for number in range(20):
        translation = made.translate_line(sentence(number, 6))
        texts = [tuple(derivation.text) for derivation in translation.derivations]
        assert len(set(texts)) == len(texts)
        check_totals(made, translation)


def test_end_behind_a_dropped_word(tmp_path: Path) -> None:
    """As in Moses, the end of the sentence is not scored if the last phrase has no words."""
    made = decoder(write_model(tmp_path, 0, reordering=False), drop_unknown=True, distortion_limit=0, nbest=1)
    lm = made.model.word_lms[0]
    for line, complete in (("a zz", False), ("zz a", True)):
        translation = made.translate_line(line)
        expected = lm.sentence([lm.number(word) for word in translation.text], complete)
        assert math.isclose(values(made, translation)["LM0"][0], expected, abs_tol=1e-9)


def jumps(spans: list[tuple[int, int]]) -> int:
    """Early distortion cost by its definition: the four cases of Moore and Quirk (2007), as in Moses."""
    total, covered, before = 0, set[int](), -1
    for begin, last in spans:
        prefix = (
            next(word for word in range(100) if word not in covered) - 1
        )  # end of what is translated without a gap
        length = last - begin + 1
        if begin == prefix + 1:
            pass
        elif last < before:
            total += 2 * length
        elif before <= prefix:
            total += 2 * (begin - prefix - 1 + length)
        else:
            total += 2 * (begin - before - 1 + length)
        covered |= set(range(begin, last + 1))
        before = last
    return total


def test_early_distortion_cost(tmp_path: Path) -> None:
    made = decoder(
        write_model(tmp_path, 2),
        early_distortion_cost=True,
        distortion_limit=-1,
        nbest=50,
        beam_threshold=0.0,
    )
    moved = 0
    for number in range(6):
        translation = made.translate_line(sentence(number, 6))
        part = translation.sentence
        assert part
        for place, derivation in enumerate(translation.derivations):
            spans = [(int(part.first[option]), int(part.last[option])) for option in derivation.options]
            assert values(made, translation, place)["Distortion0"] == [-jumps(spans)]
            moved += jumps(spans) > 0
    assert moved > 20


def test_phrases_one_by_one(tmp_path: Path) -> None:
    """Distortion and the six reordering scores of each phrase, computed from the phrase and the previous
    one."""
    made = decoder(write_model(tmp_path, 2), nbest=30)
    task = made.task(made.parse_line(sentence(3, 6)), made.listing)
    part = task.sentence
    paths, _ = made.search(task, made.listing)
    found = feature_values.path_phrases(part, paths)
    values = np.random.default_rng(1).normal(size=(len(found.option), 6))
    six, jumps = (
        feature_values.reorderings(found, values, ReorderingType()),
        feature_values.distortions(found, False),
    )
    place, ways = 0, set[int]()
    for number, path in enumerate(paths):
        before = (-2, -1)
        for step, option in enumerate(path.tolist()):
            span = (int(part.first[option]), int(part.last[option]))
            assert found.owner[place] == number and found.opening[place] == (step == 0)
            assert (found.before_first[place], found.before_last[place]) == before
            assert jumps[place, 0] == -abs(span[0] - before[1] - 1)
            way = 0 if span[0] == before[1] + 1 else 1 if span[1] == before[0] - 1 else 2
            ways.add(way)
            expected = np.zeros(6)
            expected[way] = values[place, way]
            if step:
                expected[3 + way] = values[place - 1, 3 + way]
            np.testing.assert_array_equal(six[place], expected)
            before, place = span, place + 1
    assert place == len(found.option) and ways == {0, 1, 2}


# ---- test explain ------------------------------------------------------------------------------------------
# What phrases add to a total: together the total, feature by feature; and its table.


def explained(folder: Path, seed: int, **config: object) -> Decoder:
    edit(
        write_model(folder, seed, lms=2),
        ("path=lm1 order=3", "path=lm1 order=3 oov-feature=1"),
        ("LM1= ", "LM1= -0.7 "),
    )
    return decoder(folder, True, **{"distortion_limit": -1, "explain": True, "stack": 20, **config})


@pytest.mark.parametrize("config", [{}, {"early_distortion_cost": True}, {"drop_unknown": True, "nbest": 3}])
@pytest.mark.parametrize("seed", [1, 2])
def test_shares_add_up_to_the_total(seed: int, config: dict[str, object], tmp_path: Path) -> None:
    made = explained(tmp_path, seed, **config)
    for number in range(3):
        line = f"{sentence(number, 6)} zz"
        best = made.translate_line(line).derivations[0]
        assert best.shares is not None and best.shares.shape[0] == len(best.options) + 1
        assert math.isclose(best.shares.sum(), best.total, abs_tol=1e-9)
        task = made.task(made.parse_line(line), made.listing)
        whole = feature_values.derivation_scores(made.options, task, [best.options])
        parts = feature_values.phrase_values(made.options, task, best.options)
        assert set(parts) == set(whole) == set(made.weights)
        for name, rows in parts.items():
            np.testing.assert_allclose(rows.sum(0), whole[name][0], atol=1e-9)


def test_each_phrase_has_its_own(tmp_path: Path) -> None:
    """Penalties count the words of the phrase, the language model scores them after the previous phrases, and
    the end symbol is scored in the last row."""
    made = explained(tmp_path, 1)
    line = sentence(4, 7)
    best = made.translate_line(line).derivations[0]
    task = made.task(made.parse_line(line), made.listing)
    found, lm = feature_values.phrase_values(made.options, task, best.options), made.model.word_lms[0]
    lengths = task.sentence.length[best.options].tolist()
    assert (-found["WordPenalty0"][:-1, 0]).tolist() == lengths and found["WordPenalty0"][-1] == 0
    assert found["PhrasePenalty0"][:, 0].tolist() == [1.0] * len(lengths) + [0.0]
    table, rows = task.sentence.table, task.sentence.rows[best.options]
    expected = [table.scores[row] if row >= 0 else np.zeros(4) for row in rows]
    np.testing.assert_allclose(found["TranslationModel0"][:-1], expected)
    ids, ends = [lm.number(word) for word in best.text], np.cumsum([0, *lengths])
    scores = [lm.sentence(ids[:end], False) for end in ends] + [lm.sentence(ids)]
    np.testing.assert_allclose(found["LM0"][:, 0], [b - a for a, b in pairwise(scores)], atol=1e-9)


def test_the_table(tmp_path: Path) -> None:
    """A row is the sum of its cells, and the last row the sum of the others; the same holds for a line in
    parts."""
    made = explained(tmp_path, 1, max_line_words=4)
    names, weights = feature_values.explain_header(made.weights)
    assert (
        names[:6] == list(feature_values.EXPLAIN_COLUMNS)
        and "TranslationModel0.4" in names
        and "LM0" in names
    )
    assert len(weights) == len(names)
    assert [float(cell) for cell in weights[6:]] == [one for row in made.weights.values() for one in row]
    lines = [sentence(1, 4), sentence(2, 9), ""]
    tables = [
        list(feature_values.explain_rows(n, found)) for n, found in enumerate(made.translate_all(lines), 1)
    ]
    assert tables[2] == []
    for line, table, found in zip(lines[:2], tables, made.translate_all(lines), strict=False):
        *phrases, last = table
        assert last[1:5] == ["sum", "", line, " ".join(found.text)]
        assert math.isclose(float(last[5]), found.derivations[0].total, abs_tol=1e-6)
        assert " ".join(row[4] for row in phrases if row[4]) == " ".join(found.text)
        spans = [range_of(row[2]) for row in phrases if row[1] == "phrase"]
        assert sorted(word for span in spans for word in span) == list(range(len(line.split())))
        for row in table:
            assert math.isclose(float(row[5]), sum(map(float, row[6:])), abs_tol=2e-5)
        for column in zip(*([float(cell) for cell in row[5:]] for row in table), strict=True):
            assert math.isclose(sum(column[:-1]), column[-1], abs_tol=2e-5)
    assert [row[1] for row in tables[1]].count("end") == 3
