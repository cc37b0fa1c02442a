"""Several CSLMs in one search: their columns are what smt-rescore computes, and a weight of 0 changes
nothing."""

from pathlib import Path

import numpy as np
import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.formats import nbest
from nmt.io import files
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.features.protocol import Candidates
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.features.base import Values, WordPairs
from smt_bridge.features.registry import FeatureSettings, FeatureSpec
from smt_bridge.features.torch_features import NeuralLM
from tests.conftest import Command
from tests.smt_bridge.decoder.models import (
    SOURCE,
    add_feature,
    check_totals,
    check_unpruned,
    decoder,
    sentence,
    train_cslm,
    values,
    write_model,
)

pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'"),
]

Line = tuple[Path, bool, float]  # run, normalized, weight


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, command: Command) -> tuple[Path, Path]:
    """Two CSLMs of different orders and sizes."""
    folder = tmp_path_factory.mktemp("cslms")
    return train_cslm(folder / "first", command), train_cslm(folder / "second", command, order=3, layers=[5])


def model(folder: Path, seed: int, *lines: Line) -> Path:
    """A random system with CSLM0, CSLM1 ..."""
    write_model(folder, seed)
    for number, (run, normalized, weight) in reversed([*enumerate(lines)]):
        line = f"CSLM name=CSLM{number} factor=0 path={run} normalized={str(normalized).lower()}"
        add_feature(folder, line, f"CSLM{number}= {weight}")
    return folder


def scores(run: Path, targets: list[list[str]], normalized: bool, whole: bool) -> Values:
    """What smt-rescore (whole sentences) and smt-score-table (phrases) compute."""
    feature = NeuralLM.load(
        FeatureSpec("neural-lm", "CSLM", str(run)), FeatureSettings(assume_normalized=normalized)
    )
    return feature.score(WordPairs([["a"]], targets, [0] * len(targets), whole=whole))


def printed(made: Decoder, found: PhraseTranslation, name: str) -> list[float]:
    """A feature's value of each derivation."""
    return [values(made, found, place)[name][0] for place in range(len(found.derivations))]


def outputs(made: Decoder, lines: list[str]) -> list[list[tuple[str, float]]]:
    """Texts and totals of the lists."""
    found = [made.translate_line(line).derivations for line in lines]
    return [[(" ".join(one.text), one.total) for one in derivations] for derivations in found]


def test_columns_are_those_of_smt_rescore(runs: tuple[Path, Path], tmp_path: Path) -> None:
    """For every derivation of the lists; totals are features x weights."""
    lines: tuple[Line, ...] = (runs[0], True, 0.5), (runs[1], False, 0.3), (runs[0], False, -0.1)
    made = decoder(model(tmp_path, 1, *lines), stack=30, neural_beam=20, nbest=20)
    for line in (sentence(number, 5) for number in range(5)):
        found = made.translate_line(line)
        texts = [derivation.text for derivation in found.derivations]
        for number, (run, normalized, _) in enumerate(lines):
            expected = scores(run, texts, normalized, whole=True)
            np.testing.assert_allclose(printed(made, found, f"CSLM{number}"), expected, atol=1e-4)
        check_totals(made, found, 1e-4)


def test_the_first_phrase_gains_what_a_column_of_the_table_says(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    made = decoder(model(tmp_path, 2, (runs[0], True, 0.5), (runs[1], False, 0.3)))
    task = made.task(made.parse_line(" ".join(SOURCE)), made.listing)
    options = np.arange(task.sentence.size, dtype=np.int64)
    for (run, normalized), scorer in zip(((runs[0], True), (runs[1], False)), task.scorers, strict=True):
        gains = scorer.gains(Candidates(options, np.full(len(options), scorer.start_state), complete=False))
        expected = scores(run, task.sentence.targets(), normalized, whole=False)
        np.testing.assert_allclose(gains.values[:, 0], expected, atol=1e-4)


@pytest.mark.parametrize("beam", [3, 0])
def test_a_weight_of_zero_changes_nothing(beam: int, runs: tuple[Path, Path], tmp_path: Path) -> None:
    """Lists and totals equal those of a system without the network, even with small stacks; its column is
    written, so that it can be tuned."""
    first: Line = (runs[0], True, 0.5)
    zero: Line = (runs[1], False, 0.0)
    lines = [sentence(number, 2 + number % 6) for number in range(25)]
    for number, (with_it, without) in enumerate((((zero,), ()), ((first, zero), (first,)))):
        config = {"stack": 8, "neural_beam": beam, "nbest": 5}
        silent = decoder(model(tmp_path / f"{number}a", 3, *with_it), **config)
        absent = decoder(model(tmp_path / f"{number}b", 3, *without), **config)
        assert outputs(silent, lines) == outputs(absent, lines)
        plain = [decoder(tmp_path / f"{number}{system}", True, **config) for system in "ab"]
        assert outputs(plain[0], lines[:3]) == outputs(plain[1], lines[:3])
        found = silent.translate_line(lines[4])
        expected = scores(runs[1], [derivation.text for derivation in found.derivations], False, whole=True)
        np.testing.assert_allclose(printed(silent, found, f"CSLM{len(without)}"), expected, atol=1e-4)


def test_nothing_pruned_is_immediate(runs: tuple[Path, Path], tmp_path: Path) -> None:
    check_unpruned(model(tmp_path, 4, (runs[0], True, 0.5), (runs[1], False, 0.3)), 12)


def test_the_commands_agree(runs: tuple[Path, Path], tmp_path: Path, command: Command) -> None:
    """smt-decode with one and two workers writes the same bytes; smt-rescore of its list gives the columns
    again."""
    model(tmp_path, 6, (runs[0], True, 0.5), (runs[1], True, 0.3))
    (tmp_path / "text").write_text("".join(sentence(number, 1 + number % 6) + "\n" for number in range(12)))
    for workers in "12":
        given = ["-i", "text", "-q", "--n-best", "10", "--workers", workers, "--no-cache"]
        out = ["--n-best-list", f"list{workers}", "-o", f"out{workers}"]
        done = command("smt-decode", "moses.ini", *given, *out, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    for name in ("list", "out"):
        assert (tmp_path / f"{name}1").read_bytes() == (tmp_path / f"{name}2").read_bytes()
    features = [f"neural-lm:Again{number}={run}" for number, run in enumerate(runs)]
    given = ["-f", features[0], "-f", features[1], "--assume-normalized", "-s", "text", "-o", "again", "-q"]
    done = command("smt-rescore", "list1", *given, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [one.features for one in nbest.read(tmp_path / "again")]
    assert len(rows) == len(list(files.read_lines(tmp_path / "list1"))) > 30
    for number in range(2):
        again = [row[f"Again{number}"][0] for row in rows]
        np.testing.assert_allclose([row[f"CSLM{number}"][0] for row in rows], again, rtol=2e-5, atol=1e-4)
