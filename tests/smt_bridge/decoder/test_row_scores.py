"""What weights make of a table's rows: sums over features, and the rows that a limit keeps."""

import math
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.row_scores import RowScores
from smt_bridge.decoder.word_lm import phrase_score, walk
from smt_bridge.decoder.xml_input import Marked
from tests.smt_bridge.decoder.models import REORDERING, decoder, edit, write_model


def rows_of(made: Decoder) -> list[int]:
    """The options of `a b`, in their order."""
    return [int(row) for row in made.options.gather(Marked(["a", "b"])).rows]


def test_table_limits(tmp_path: Path) -> None:
    """table-limit= in the line of the table, and [max-trans-opt-per-coverage], leave the same best rows."""
    write_model(tmp_path, 4, options=9, longest=1)
    limited = [rows_of(decoder(tmp_path, table_limit=2))]
    edit(tmp_path, ("path=table", "path=table table-limit=2"))
    limited.append(rows_of(decoder(tmp_path)))
    edit(tmp_path, (" table-limit=2", ""), max_trans_opt_per_coverage="2")
    limited.append(rows_of(decoder(tmp_path, table_limit=0)))
    assert len(limited[0]) == 4 and limited[0] == limited[1] == limited[2]


def scored(folder: Path, **config: object) -> tuple[Decoder, RowScores]:
    made = decoder(folder, **config)
    return made, made.options.rows


@pytest.mark.parametrize("lms", [1, 2])
def test_rows_one_by_one(lms: int, tmp_path: Path) -> None:
    """The score of a row is its features times their weights, the estimate has the language models without
    context besides, and no context makes more of it than the bound says."""
    write_model(tmp_path, 2, lms=lms)
    last = f"LM{lms - 1}"
    line = next(row for row in (tmp_path / "moses.ini").read_text().split("\n") if row.startswith(f"{last}="))
    edit(tmp_path, (f"path=lm{lms - 1}", f"path=lm{lms - 1} oov-feature=1"), (line, f"{line} -0.4"))
    made, rows = scored(tmp_path)
    weights, table = made.weights, made.system.table
    for row in range(table.rows):
        words = table.text(row)
        score = float(table.scores[row] @ np.array(weights["TranslationModel0"]))
        score += weights["PhrasePenalty0"][0] - weights["WordPenalty0"][0] * len(words)
        unknown = sum(not made.model.word_lms[-1].knows(word) for word in words)
        assert math.isclose(rows.score[row], score - 0.4 * unknown, abs_tol=1e-5)
        alone = most = 0.0
        for lm, weight in zip(made.model.word_lms, made.model.lm_weights, strict=True):
            ids = [lm.number(word) for word in words]
            alone += weight * phrase_score(lm, ids)
            most += weight * walk(lm, lm.begin(), ids)[0]
        assert math.isclose(rows.estimate[row] - rows.score[row], alone, abs_tol=1e-9)
        assert max(alone, most) <= rows.bound[row] + 1e-9


def test_nothing_bounds_a_negative_weight(tmp_path: Path) -> None:
    write_model(tmp_path, 2)
    line = next(row for row in (tmp_path / "moses.ini").read_text().split("\n") if row.startswith("LM0="))
    assert np.isfinite(scored(tmp_path)[1].bound).all()
    assert (scored(edit(tmp_path, (line, "LM0= -0.5")))[1].bound == math.inf).all()


@pytest.mark.parametrize("limit", [0, 1, 2, 100])
def test_the_best_rows_of_each_source(limit: int, tmp_path: Path) -> None:
    made, rows = scored(write_model(tmp_path, 4, options=9, longest=1), table_limit=limit)
    for source in made.system.table.sources:
        whole = sorted(made.system.table.of(source), key=lambda row: -rows.estimate[row])
        assert rows.of(source).tolist() == whole[: limit or None]
    assert not len(rows.of(b"nowhere"))


def test_reordering_of_rows(tmp_path: Path) -> None:
    """Times its weights; the ini's default where the reordering table has no row."""
    write_model(tmp_path, 2)
    lines = (tmp_path / "reordering").read_text().split("\n")
    (tmp_path / "reordering").write_text("\n".join(row for row in lines if not row.startswith("a |||")))
    edit(tmp_path, (REORDERING, f"{REORDERING} default-scores=0.1,0.2,0.3,0.4,0.5,0.6"))
    made, rows = scored(tmp_path)
    table, weights = made.system.table, np.array(made.weights["LexicalReordering0"])
    default = np.log([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    missing = set(table.of(b"a"))
    assert missing
    for row in range(table.rows):
        values = default if row in missing else table.reordering[row]
        np.testing.assert_allclose(rows.row_reordering[row], values * weights, atol=1e-6)
