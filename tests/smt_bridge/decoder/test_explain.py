"""What phrases add to a total: together the total, feature by feature; and its table."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder import explain, feature_values
from smt_bridge.decoder.decoder import Decoder
from tests.smt_bridge.decoder.models import decoder, edit, sentence, write_model


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
        task = made.task(made.marked(line), made.listing)
        whole = feature_values.columns(made.options, task, [best.options])
        parts = explain.values(made.options, task, best.options)
        assert set(parts) == set(whole) == set(made.weights)
        for name, values in parts.items():
            np.testing.assert_allclose(values.sum(0), whole[name][0], atol=1e-9)


def test_each_phrase_has_its_own(tmp_path: Path) -> None:
    """Penalties count the words of the phrase, the language model scores them after those before, the end
    has the end symbol."""
    made = explained(tmp_path, 1)
    line = sentence(4, 7)
    best = made.translate_line(line).derivations[0]
    task = made.task(made.marked(line), made.listing)
    found, lm = explain.values(made.options, task, best.options), made.model.word_lms[0]
    lengths = task.sentence.length[best.options].tolist()
    assert (-found["WordPenalty0"][:-1, 0]).tolist() == lengths and found["WordPenalty0"][-1] == 0
    assert found["PhrasePenalty0"][:, 0].tolist() == [1.0] * len(lengths) + [0.0]
    table, rows = task.sentence.table, task.sentence.rows[best.options]
    expected = [table.scores[row] if row >= 0 else np.zeros(4) for row in rows]
    np.testing.assert_allclose(found["TranslationModel0"][:-1], expected)
    ids, ends = [lm.number(word) for word in best.text], np.cumsum([0, *lengths])
    scores = [lm.sentence(ids[:end], False) for end in ends] + [lm.sentence(ids)]
    np.testing.assert_allclose(found["LM0"][:, 0], [b - a for a, b in pairwise(scores)], atol=1e-9)


def test_nothing_is_computed_unless_it_is_asked_for(tmp_path: Path) -> None:
    assert decoder(write_model(tmp_path, 1)).translate_line("a b").derivations[0].shares is None


def test_the_table(tmp_path: Path) -> None:
    """A row is the sum of its cells, a column the sum of its rows; of a line in parts, too."""
    made = explained(tmp_path, 1, max_line_words=4)
    names, weights = explain.header(made.weights)
    assert names[:6] == list(explain.HEAD) and "TranslationModel0.4" in names and "LM0" in names
    assert len(weights) == len(names)
    assert [float(cell) for cell in weights[6:]] == [one for row in made.weights.values() for one in row]
    lines = [sentence(1, 4), sentence(2, 9), ""]
    tables = [list(explain.rows(n, found)) for n, found in enumerate(made.translate_all(lines), 1)]
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


def range_of(span: str) -> range:
    first, _, last = span.partition("-")
    return range(int(first), int(last or first) + 1)
