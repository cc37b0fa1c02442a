"""Sparse features in pools and batch MIRA: the same as dense features with the same values."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import ConfigError
from smt_bridge.cli import rescore, tune_nbest
from smt_bridge.moses import ini
from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.bleu import COLUMNS
from smt_bridge.tuning.kbmira import Kbmira
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.pool import Pool
from smt_bridge.tuning.sparse_vectors import SparseVectors
from smt_bridge.tuning.tuner import check_sparse

NAMES = ["WT_a~b", "WT_=~=", "PL_s1", "TWI_5", "TWI_é"]
Values = dict[str, float]


def random_values(count: int, seed: int) -> list[Values]:
    rng = np.random.default_rng(seed)
    rows = np.maximum(rng.integers(-2, 4, (count, len(NAMES))), 0)
    return [{name: float(value) for name, value in zip(NAMES, row, strict=True) if value} for row in rows]


def dense(values: list[Values], names: list[str]) -> np.ndarray:
    return np.array([[row.get(name, 0.0) for name in names] for row in values])


def both_pools(sentences: int = 30, size: int = 8) -> tuple[Pool, Pool]:
    """A pool with sparse features, and the pool of the same hypotheses in which they are dense."""
    rng, vectors = np.random.default_rng(1), SparseVectors()
    values = random_values(sentences * size, 2)
    numbers = np.array([vectors.add(row) for row in values])
    stats = np.zeros((len(values), COLUMNS))
    stats[:, 1:8:2], stats[:, 8] = [10, 9, 8, 7], 10
    stats[:, 0:8:2] = np.sort(rng.integers(1, 8, (len(values), 4)))[:, ::-1]
    features = rng.normal(size=(len(values), 2))
    starts = np.arange(0, len(values) + 1, size)
    columns = vectors.columns(numbers)
    sparse = Pool(["A_0", "B_0"], features, stats, starts, columns)
    together = np.hstack([features, dense(values, list(columns.names))])
    return sparse, Pool(["A_0", "B_0", *columns.names], together, stats, starts)


def test_columns_are_those_of_the_whole_matrix() -> None:
    values, vectors = random_values(200, 1), SparseVectors()
    numbers = np.array([vectors.add(row) for row in values])
    assert 1 < len(vectors.vectors) < 200  # equal rows are stored once
    columns = vectors.columns(numbers)
    matrix, weights = dense(values, list(columns.names)), np.random.default_rng(3).normal(size=len(NAMES))
    np.testing.assert_allclose(columns.dot(weights), matrix @ weights, atol=1e-12)
    some = np.array([5, 3, 3, 199])
    np.testing.assert_allclose(columns.rows(some).dot(weights), matrix[some] @ weights, atol=1e-12)
    starts = np.array([0, 7, 8, 200])
    for group, first, last in zip(columns.groups(starts), starts[:-1], starts[1:], strict=True):
        np.testing.assert_allclose(group.dot(weights), matrix[first:last] @ weights, atol=1e-12)
        total = np.zeros(len(NAMES))
        group.add_to(total, last - first - 1, 2.0)
        assert (total == 2 * matrix[last - 1]).all()


def test_what_is_saved_in_parts_is_read() -> None:
    vectors, other = SparseVectors({"X_y": 0}), SparseVectors({"X_y": 0})
    values, done = random_values(60, 4), (1, 0)
    parts: list[list[Values]] = [values[:20], values[20:], [{}]]
    for rows in parts:
        for row in rows:
            vectors.add(row)
        other.extend(vectors.since(*done))
        done = len(vectors.names), len(vectors.vectors)
    assert other.names == vectors.names and other.vectors == vectors.vectors
    saved = vectors.since(0, 0)
    for damaged in (saved.cut[:2], saved.cut + 1, saved.cut[::-1]):
        saved.cut = damaged
        with pytest.raises(ValueError, match="do not fit together"):
            SparseVectors().extend(saved)
    with pytest.raises(ValueError, match="without a name"):
        SparseVectors().extend(vectors.since(3, 0))


def test_batch_mira_is_that_of_dense_features() -> None:
    sparse, whole = both_pools()
    found, expected = (Kbmira(passes=5).tune(pool, None, 1) for pool in (sparse, whole))
    assert found.bleu == pytest.approx(expected.bleu) and np.abs(found.weights[2:]).max() > 0.01
    np.testing.assert_allclose(pools.normalize(found.weights), expected.weights, atol=1e-9)
    assert np.abs(found.weights[:2]).sum() == pytest.approx(1)  # sparse weights do not change the scale
    part = [4, 1]
    assert sparse.part(part).bleu(found.weights) == pytest.approx(whole.part(part).bleu(found.weights))


def test_mert_refuses_sparse_features() -> None:
    check_sparse(Kbmira(), NAMES, "kbmira")
    check_sparse(Mert(), [], "mert")
    with pytest.raises(ConfigError, match=r"mert does not tune sparse features such as WT_a~b; .* kbmira"):
        check_sparse(Mert(), NAMES, "mert")


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    """Good and bad translations of 30 sentences; a sparse feature marks the good ones."""
    lines = []
    for number in range(30):
        lines += [
            f"{number} ||| z b c d e ||| A= {number % 2} PL_s1= 2 ||| 0",
            f"{number} ||| a b c d e{number} ||| A= {1 - number % 2} WT_a~a= 1 PL_s1= 1 ||| 0",
        ]
    (tmp_path / "n").write_text("".join(line + "\n" for line in lines))
    (tmp_path / "r").write_text("".join(f"a b c d e{number}\n" for number in range(30)))
    (tmp_path / "s").write_text("x\n" * 30)
    return tmp_path


def test_lists_with_sparse_features_are_tuned_and_rescored(dev: Path) -> None:
    line = ["--n-best", f"{dev}/n", "-r", f"{dev}/r", "--method", "kbmira", "-q"]
    assert tune_nbest.main([*line, "-o", f"{dev}/w"]) == 0
    weights = ini.read_weights(dev / "w")
    assert weights["WT_a~a"][0] > 0 > weights["PL_s1"][0]
    assert tune_nbest.main([*line, "--init", f"{dev}/w", "-o", f"{dev}/again"]) == 0
    given = [f"{dev}/n", "-q", "-s", f"{dev}/s", "-w", f"{dev}/w", "--best", f"{dev}/b"]
    assert rescore.main(given) == 0
    assert (dev / "b").read_text() == (dev / "r").read_text()


def test_lists_with_sparse_features_alone(dev: Path) -> None:
    text = (dev / "n").read_text().replace("A= 0 ", "").replace("A= 1 ", "")
    (dev / "n").write_text(text)
    line = ["--n-best", f"{dev}/n", "-r", f"{dev}/r", "--method", "kbmira", "-q", "-o", f"{dev}/w"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tune_nbest.main(line) == 0
    assert ini.read_weights(dev / "w")["WT_a~a"][0] > 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--method", "mert"], "mert does not tune sparse features such as PL_s1"),
        (["--export-features", "f", "--export-scores", "g"], "not written in the form of Moses' extractor"),
    ],
)
def test_sparse_features_that_are_refused(
    more: list[str],
    message: str,
    dev: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(dev)
    assert tune_nbest.main(["--n-best", "n", "-r", "r", "-q", *more]) == 2
    assert message in capsys.readouterr().err
