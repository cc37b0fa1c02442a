"""Pools of n-best lists: statistics are those of sacreBLEU, repeated entries count once, and pools that
cannot be tuned are refused."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.formats import nbest
from nmt.io import files
from nmt.metrics import BleuStatistics
from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.bleu import COLUMNS, BleuReferences, bleu, grams
from smt_bridge.tuning.pool import write_moses

# ---- test bleu ---------------------------------------------------------------------------------------------
# Statistics of a hypothesis against several references, and BLEU of their sums.


def test_counts_are_clipped_by_the_reference_that_has_most() -> None:
    references = BleuReferences([["a", "a", "b"], ["a", "b", "b", "c"]])
    row = references.statistics(["a", "a", "a", "b"])
    assert row == [3, 4, 2, 3, 1, 2, 0, 1, 4]  # a twice, b once; aa, ab; aab


def test_the_closest_length_and_of_equals_the_shorter() -> None:
    references = BleuReferences([["x"] * 2, ["x"] * 6])
    assert [references.statistics(["x"] * size)[-1] for size in (1, 3, 4, 5, 9)] == [2, 2, 2, 6, 6]


def test_a_short_hypothesis_has_no_long_grams() -> None:
    assert grams(["a", "b"]) == {("a",): 1, ("b",): 1, ("a", "b"): 1}
    assert BleuReferences([["a", "b"]]).statistics(["a", "b"]) == [2, 2, 1, 1, 0, 0, 0, 0, 2]


def test_bleu_of_sums() -> None:
    whole = np.array([4, 4, 3, 3, 2, 2, 1, 1, 4.0])
    assert bleu(whole) == pytest.approx(1.0)
    longer = whole.copy()
    longer[-1] = 8
    assert bleu(longer) == pytest.approx(np.exp(1 - 8 / 4))  # brevity penalty
    assert bleu(np.stack([whole, longer, np.zeros(COLUMNS)])).tolist()[2] == 0


# ---- test pool ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", ["", "1 2"])
def test_a_sparse_feature_has_one_value(values: str, tmp_path: Path) -> None:
    files.write_text(tmp_path / "list", [f"0 ||| a ||| LM0= -1 X_y= {values} ||| -1"])
    files.write_text(tmp_path / "reference", ["a"])
    with pytest.raises(DataError, match=f"list: sentence 0: {len(values.split())} values of X_y"):
        pools.read_nbest([str(tmp_path / "list")], [str(tmp_path / "reference")])


def test_statistics_are_sacrebleus() -> None:
    hypotheses = ["the cat sat on the mat", "a", "the the the the", "x y z w v"]
    references = [
        ["the cat is on the mat", "a b", "the the cat", "x y z w v"],
        ["there is a cat on the mat .", "c", "the dog", "q"],
    ]
    theirs = BleuStatistics(hypotheses, references, "none").rows
    for hypothesis, row, *others in zip(hypotheses, theirs, *references, strict=True):
        ours = BleuReferences([other.split() for other in others]).statistics(hypothesis.split())
        assert ours[0:8:2] == row[:4].tolist() and ours[1:8:2] == row[4:8].tolist() and ours[8] == row[9]


def test_corpus_bleu_is_sacrebleus() -> None:
    hypotheses, references = (
        ["the cat sat on the mat today", "a b c d e f"],
        ["the cat sat on the mat", "a b c d e g h i"],
    )
    rows = [
        BleuReferences([reference.split()]).statistics(hypothesis.split())
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    expected = BleuStatistics(hypotheses, [references], "none").bleu().score
    assert 100 * float(bleu(np.sum(np.array(rows, float), 0))) == pytest.approx(expected, abs=1e-9)
    assert bleu(np.array([[1, 2, 0, 1, 0, 0, 0, 0, 2.0]]))[0] == 0


def write(
    folder: Path, rows: list[tuple[int, str, str]], references: list[str]
) -> tuple[list[str], list[str]]:
    (folder / "n").write_text(
        "".join(f"{number} ||| {text} ||| {features} ||| 0\n" for number, text, features in rows)
    )
    (folder / "r").write_text("".join(line + "\n" for line in references))
    return [str(folder / "n")], [str(folder / "r")]


GOOD = [(0, "a b c d", "A= 1 B= 2 3"), (0, "a b", "A= 1 B= 5 6"), (1, "x y z w", "A= 0 B= 1 1")]


def test_union_and_names(tmp_path: Path) -> None:
    lists, references = write(tmp_path, [*GOOD, GOOD[-1]], ["a b c d", "x y z w"])
    pool = pools.read_nbest(lists, references).pool()
    assert pool.names == ["A_0", "B_0", "B_1"]
    assert pool.starts.tolist() == [0, 2, 3]  # the repeated entry counts once
    assert pools.to_weights(pool.names, np.array([1.0, 2.0, 3.0])) == {"A": [1.0], "B": [2.0, 3.0]}
    assert pools.from_weights(pool.names, {"B": [2.0, 3.0]}).tolist() == [0, 2, 3]
    with pytest.raises(DataError, match="1 weights for B, which has 2 values"):
        pools.from_weights(pool.names, {"B": [2.0]})
    assert pool.bleu(np.array([0, -1.0, 0])) == pytest.approx(1.0)
    assert pool.constant().tolist() == [True, False, False]


BAD = {
    "no reference": (
        [*GOOD, (2, "q", "A= 1 B= 2 3")],
        ["a b c d", "x y z w"],
        "sentence 2, but .*r has 2 lines",
    ),
    "no hypotheses": (GOOD, ["a b c d", "x y z w", "z"], "no hypotheses for sentence 2"),
    "no BLEU": (GOOD, ["q q q q", "r r r r"], "BLEU is 0 whatever the weights"),
    "other features": (
        [*GOOD, (1, "x", "A= 1 C= 2 3")],
        ["a b c d", "x y z w"],
        "n:4: features A.1. C.2., but the lines above",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_pools_that_cannot_be_tuned(case: str, tmp_path: Path) -> None:
    rows, references, message = BAD[case]
    with pytest.raises(DataError, match=message):
        pools.read_nbest(*write(tmp_path, rows, references)).pool()


def test_warnings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pool = pools.read_nbest(*write(tmp_path, GOOD, ["a b c d", "x y z w"])).pool()
    pools.warn_of_few(pool.sentences, len(pool.names))
    messages = " ".join(record.getMessage() for record in caplog.records)
    assert "2 sentences are few for 3 weights" in messages and "weights stay 0: A_0" in messages


@pytest.mark.ci
def test_statistics_of_the_real_extractor(nmt_data: Path) -> None:
    """Every row of Moses' regression test mert.extractor-txt: all entries so far after each of five lists,
    repeated ones once."""
    folder = nmt_data / "moses-regression" / "tests" / "mert.extractor-txt"
    truth = [
        line.partition("=")[2]
        for line in files.read_lines(folder / "truth" / "results.txt")
        if line.startswith("STDOUT_")
    ]
    starts = [row for row, line in enumerate(truth) if line.startswith("SCORES_TXT_BEGIN")]
    blocks = [
        [
            [int(word) for word in line.split()]
            for line in truth[row + 1 : row + 1 + int(truth[row].split()[2])]
        ]
        for row in starts
    ]
    references = [BleuReferences([line.split()]) for line in files.read_lines(folder / "data" / "reference")]
    # of each sentence: features and statistics -> statistics, in order
    entries: list[dict[str, list[int]]] = [{} for _ in references]
    ours = []
    for number in range(1, 6):
        for hypothesis in nbest.read(folder / "data" / f"nbest.{number}.gz"):
            row = references[hypothesis.sentence].statistics(hypothesis.text)
            entries[hypothesis.sentence].setdefault(f"{hypothesis.features} {row}", row)
        ours += [list(found.values()) for found in entries]
    assert len(blocks) == 50 and sum(map(len, blocks)) > 14000
    # it keeps another of two equal rows
    assert [sorted(rows) for rows in ours] == [sorted(rows) for rows in blocks]


# ---- test moses pool ---------------------------------------------------------------------------------------
# The files of Moses' extractor: read, written byte for byte, and refused where they are damaged.


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
        (FEATURES, SCORES + SCORES.replace("0 0 2 9", "0 1 2 9"), "s: the block of sentence 1 is not in"),
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


@pytest.mark.parametrize(
    ("lists", "kept"),
    [
        (["ab", "cd"], [0, 1, 2, 3]),
        (["ab", "ac"], [0, 1, 3]),
        (["ab", "acd"], [0, 1, 4, 3]),  # the last row of the lists so far takes its place
        (["aab", "b"], [0, 2]),
        (["ab", "ba", "c"], [0, 1, 4]),
    ],
)
def test_a_repeated_row_counts_once(lists: list[str], kept: list[int]) -> None:
    assert pools.distinct_rows([row.encode() for row in "".join(lists)], [*map(len, lists)]) == kept


def exported(folder: Path, lists: pools.HypothesisRows) -> tuple[str, str]:
    write_moses(str(folder / "ef"), str(folder / "es"), lists.names, lists.blocks())
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


@pytest.mark.ci
def test_export_is_what_moses_writes(nmt_data: Path, tmp_path: Path) -> None:
    """Equal byte for byte to the files of Moses' extractor: those of its regression test, with one to five
    lists, and those of a real tuning."""
    folder = nmt_data / "moses-regression" / "tests" / "mert.extractor-txt"
    truth = [
        line.partition("=")[2]
        for line in files.read_lines(folder / "truth" / "results.txt")
        if line.startswith("STDOUT_")
    ]
    paths, ours = [], []
    for number in range(1, 6):
        paths.append(str(tmp_path / str(number)))
        lines = files.read_lines(folder / "data" / f"nbest.{number}.gz")
        files.write_text(paths[-1], (line.replace("|||", " |||") for line in lines))
        for path in exported(tmp_path, pools.read_nbest(paths, [str(folder / "data" / "reference")])):
            ours += list(files.read_lines(path))
    assert ours == truth and len(ours) > 29000
    real = nmt_data / "moses-multi30k" / "mert"
    given = str(real / "run1.features.dat.gz"), str(real / "run1.scores.dat.gz")
    for made, path in zip(exported(tmp_path, pools.read_moses(given[:1], given[1:])), given, strict=True):
        assert Path(made).read_bytes() == gzip.open(path).read()


def test_a_weight_of_zero_has_no_sign() -> None:
    """The line 'Best point' has 0, not -0, for a feature that --drop leaves out."""
    assert [f"{weight:g}" for weight in pools.normalize(np.array([-0.0, -3.0, 1.0]))] == [
        "0",
        "-0.75",
        "0.25",
    ]
