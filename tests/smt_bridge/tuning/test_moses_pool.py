"""The files of Moses' extractor: read, written byte for byte, and refused where they are damaged."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from nmt import files
from nmt.errors import DataError
from smt_bridge.tuning import moses_pool
from smt_bridge.tuning import pool as pools
from tests.smt_bridge.tuning.test_pool import GOOD, write

FEATURES = "FEATURES_TXT_BEGIN_0 0 2 2 A_0 B_0 \n1 2 \n3 4 \nFEATURES_TXT_END_0\n"


SCORES = "SCORES_TXT_BEGIN_0 0 2 9 BLEU\n4 4 3 3 2 2 1 1 4 \n1 4 0 3 0 2 0 1 4 \nSCORES_TXT_END_0\n"


def test_moses_files(tmp_path: Path) -> None:
    (tmp_path / "f.gz").write_bytes(gzip.compress(FEATURES.encode()))
    (tmp_path / "s").write_text(SCORES)
    pool = pools.read_moses([str(tmp_path / "f.gz")], [str(tmp_path / "s")]).pool()
    assert pool.names == ["A_0", "B_0"] and pool.features.tolist() == [[1, 2], [3, 4]]
    assert pool.bleu(np.array([-1.0, 0])) == 1 and pool.bleu(np.array([1.0, 0])) == 0


@pytest.mark.parametrize(
    ("features", "scores", "message"),
    [
        (FEATURES.replace("3 4 \n", ""), SCORES, "is not 2 rows of 2 numbers"),
        (FEATURES.replace("3 4", "3 nan"), SCORES, "nan or inf"),
        (FEATURES, SCORES.replace("0 0 2 9", "0 1 2 9"), "block of sentence 0 is missing"),
        (FEATURES, SCORES.replace("BLEU", "PER"), "expected 9 BLEU statistics"),
        ("x\n", SCORES, "as Moses' extractor writes"),
        ("", SCORES, "empty file"),
    ],
)
def test_damaged_moses_files(features: str, scores: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(features)
    (tmp_path / "s").write_text(scores)
    with pytest.raises(DataError, match=message):
        pools.read_moses([str(tmp_path / "f")], [str(tmp_path / "s")]).pool()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("3 4", "3 4_0"),
        ("3 4", "3 ²"),
        ("3 4", "3 \x0c4"),
        ("3 4", "3 1e999"),
        (" 2 2 A", " ² 2 A"),
        (" 0 2 2", f" {'9' * 5000} 2 2"),
        (" 0 2 2", " 99999999999999999 2 2"),
    ],
)
def test_numbers_of_moses_files(old: str, new: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(FEATURES.replace(old, new))
    (tmp_path / "s").write_text(
        SCORES.replace(" 0 2 9", " 99999999999999999 2 9") if "99999999999999999" in new else SCORES
    )
    with pytest.raises(DataError) as error:
        pools.read_moses([str(tmp_path / "f")], [str(tmp_path / "s")]).pool()
    assert len(str(error.value)) < 500 + len(str(tmp_path))


def test_a_block_without_rows(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("FEATURES_TXT_BEGIN_0 0 0 2 A_0 B_0 \nFEATURES_TXT_END_0\n")
    (tmp_path / "s").write_text("SCORES_TXT_BEGIN_0 0 0 9 BLEU\nSCORES_TXT_END_0\n")
    with pytest.raises(DataError, match="no hypotheses for sentence 0"):
        pools.read_moses([str(tmp_path / "f")], [str(tmp_path / "s")]).pool()


def exported(folder: Path, lists: pools.Lists) -> tuple[str, str]:
    moses_pool.write(str(folder / "ef"), str(folder / "es"), lists.names, lists.blocks())
    return str(folder / "ef"), str(folder / "es")


def test_what_is_exported_is_read(tmp_path: Path) -> None:
    lists = pools.read_nbest(
        *write(tmp_path, [GOOD[0], *GOOD, (1, "x y", "A= -0.25 B= 1e-07 123457")], ["a b c d", "x y z w"])
    )
    features, scores = exported(tmp_path, lists)
    before, after = lists.pool(), pools.read_moses([features], [scores]).pool()
    assert before.names == after.names and before.starts.tolist() == after.starts.tolist()
    assert (before.features == after.features).all() and (before.stats == after.stats).all()
    text = (tmp_path / "ef").read_bytes(), (tmp_path / "es").read_bytes()
    exported(tmp_path, pools.read_moses([features], [scores]))
    assert text == ((tmp_path / "ef").read_bytes(), (tmp_path / "es").read_bytes())


def test_export_is_what_moses_writes(nmt_data: Path, tmp_path: Path) -> None:
    """Byte for byte the files of Moses' extractor: of its own regression test, one to five lists together,
    and of a real tuning."""
    folder = nmt_data / "moses-regression" / "tests" / "mert.extractor-txt"
    truth = [
        line.partition("=")[2]
        for line in files.read_lines(folder / "truth" / "results.txt")
        if line.startswith("STDOUT_")
    ]
    paths, ours = [], []
    for number in range(1, 6):
        paths.append(str(tmp_path / str(number)))
        files.write_text(
            paths[-1],
            (
                line.replace("|||", " |||")
                for line in files.read_lines(folder / "data" / f"nbest.{number}.gz")
            ),
        )
        for path in exported(tmp_path, pools.read_nbest(paths, [str(folder / "data" / "reference")])):
            ours += list(files.read_lines(path))
    assert ours == truth and len(ours) > 29000
    real = nmt_data / "moses-multi30k" / "mert"
    given = str(real / "run1.features.dat.gz"), str(real / "run1.scores.dat.gz")
    for made, path in zip(exported(tmp_path, pools.read_moses(given[:1], given[1:])), given, strict=True):
        assert Path(made).read_bytes() == gzip.open(path).read()
