"""Pools of n-best lists: statistics are sacreBLEU's, entries count once, what cannot be tuned is told."""

from pathlib import Path

import numpy as np
import pytest

from nmt import files
from nmt.errors import DataError
from nmt.formats import nbest
from nmt.metrics import BleuStatistics
from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.bleu import References, bleu


def test_statistics_are_sacrebleus() -> None:
    hypotheses = ["the cat sat on the mat", "a", "the the the the", "x y z w v"]
    references = [
        ["the cat is on the mat", "a b", "the the cat", "x y z w v"],
        ["there is a cat on the mat .", "c", "the dog", "q"],
    ]
    theirs = BleuStatistics(hypotheses, references, "none").rows
    for hypothesis, row, *others in zip(hypotheses, theirs, *references, strict=True):
        ours = References([other.split() for other in others]).statistics(hypothesis.split())
        assert ours[0:8:2] == row[:4].tolist() and ours[1:8:2] == row[4:8].tolist() and ours[8] == row[9]


def test_corpus_bleu_is_sacrebleus() -> None:
    hypotheses, references = (
        ["the cat sat on the mat today", "a b c d e f"],
        ["the cat sat on the mat", "a b c d e g h i"],
    )
    rows = [
        References([reference.split()]).statistics(hypothesis.split())
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
    assert pool.names == ["A_0", "B_0", "B_1"] and pool.starts.tolist() == [
        0,
        2,
        3,
    ]  # the repeated entry counts once
    assert pools.to_weights(pool.names, np.array([1.0, 2.0, 3.0])) == {"A": [1.0], "B": [2.0, 3.0]}
    assert pools.from_weights(pool.names, {"B": [2.0, 3.0]}).tolist() == [0, 2, 3]
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
    "sparse": ([(0, "a b c d", "A= 1 B_x= 2")], ["a b c d"], "sparse feature B_x"),
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
    pools.read_nbest(*write(tmp_path, GOOD, ["a b c d", "x y z w"])).pool()
    messages = " ".join(record.getMessage() for record in caplog.records)
    assert "2 sentences are few for 3 weights" in messages and "weights stay 0: A_0" in messages


def test_statistics_of_the_real_extractor(nmt_data: Path) -> None:
    """Every row of Moses' regression test mert.extractor-txt: after each of five lists all entries so far,
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
    references = [References([line.split()]) for line in files.read_lines(folder / "data" / "reference")]
    entries: list[dict[str, list[int]]] = [
        {} for _ in references
    ]  # features and statistics -> statistics, in order
    ours = []
    for number in range(1, 6):
        for hypothesis in nbest.read(folder / "data" / f"nbest.{number}.gz"):
            row = references[hypothesis.sentence].statistics(hypothesis.text)
            entries[hypothesis.sentence].setdefault(f"{hypothesis.features} {row}", row)
        ours += [list(found.values()) for found in entries]
    assert len(blocks) == 50 and sum(map(len, blocks)) > 14000
    assert [sorted(rows) for rows in ours] == [
        sorted(rows) for rows in blocks
    ]  # it keeps another of two equal rows
