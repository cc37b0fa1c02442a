"""A CSLM inside the search: two stages with nothing pruned = scoring at once; buffers and threads change
nothing; what cannot be used is refused."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder.compiled import HAVE_NUMBA
from tests.conftest import Command
from tests.smt_bridge.decoder.models import decoder, same_lists, sentence, write_model
from tests.smt_bridge.decoder.networks import train_cslm

pytestmark = pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")


@pytest.fixture(scope="module")
def cslm(tmp_path_factory: pytest.TempPathFactory, command: Command) -> Path:
    return train_cslm(tmp_path_factory.mktemp("cslm"), command)


def model(folder: Path, run: Path, seed: int, normalized: bool = False, weight: float = 0.7) -> Path:
    write_model(folder, seed)
    ini = (folder / "moses.ini").read_text(encoding="utf-8")
    line = f"CSLM name=CSLM0 factor=0 path={run} normalized={str(normalized).lower()}"
    (folder / "moses.ini").write_text(
        ini.replace("Distortion\n", f"Distortion\n{line}\n").replace(
            "[weight]\n", f"[weight]\nCSLM0= {weight}\n"
        )
    )
    return folder


@pytest.mark.ci
@pytest.mark.parametrize(
    ("seed", "buffer", "normalized"), [(0, 8192, False), (1, 1, False), (2, 7, True), (3, 64, True)]
)
def test_nothing_pruned_is_immediate(
    seed: int, buffer: int, normalized: bool, cslm: Path, tmp_path: Path
) -> None:
    folder = model(tmp_path, cslm, seed, normalized)
    one = decoder(folder, stack=6, neural_beam=0, buffer=buffer, nbest=5)
    other = decoder(folder, True, stack=6, nbest=5)
    for number in range(12):
        line = sentence(number, 1 + number % 5)
        ours, theirs = one.translate_line(line), other.translate_line(line)
        same_lists(ours, theirs, line, 1e-5)


@pytest.mark.ci
def test_unlimited_stacks_find_the_best_of_all(cslm: Path, tmp_path: Path) -> None:
    """With everything unlimited no derivation of the list is better than the first, and features x weights
    are the totals."""
    made = decoder(
        model(tmp_path, cslm, 4), stack=0, neural_beam=0, beam_threshold=0.0, table_limit=0, nbest=200
    )
    weights = np.array([value for name in made.system.sizes for value in made.weights[name]])
    for number in range(6):
        translation = made.translate_line(sentence(number, 4))
        assert translation.sentence
        totals = [derivation.total for derivation in translation.derivations]
        assert totals == sorted(totals, reverse=True)
        for derivation in translation.derivations:
            unknown = sum(translation.sentence.rows[option] < 0 for option in derivation.options)
            assert math.isclose(derivation.features @ weights - 100 * unknown, derivation.total, abs_tol=1e-5)


def test_a_wider_beam_is_no_worse_in_the_end(cslm: Path, tmp_path: Path) -> None:
    folder = model(tmp_path, cslm, 5)
    lines = [sentence(number, 6) for number in range(15)]
    totals = []
    for beam in (3, 30, 0):
        made = decoder(folder, stack=30, neural_beam=beam)
        totals.append(sum(made.translate_line(line).derivations[0].total for line in lines))
    assert totals[0] < totals[2] and totals[1] <= totals[2] + 1e-6


def test_threads_change_nothing(cslm: Path, tmp_path: Path) -> None:
    made = decoder(model(tmp_path, cslm, 6), stack=10, neural_beam=20)
    lines = [sentence(number, 1 + number % 7) for number in range(30)]
    alone = [(t.text, t.derivations[0].total) for t in made.translate_all(iter(lines))]
    assert alone == [(t.text, t.derivations[0].total) for t in made.translate_all(iter(lines), 3)]


@pytest.mark.ci
def test_refused(
    cslm: Path, tiny: Path, tmp_path: Path, command: Command, refused: Callable[..., str]
) -> None:
    folder = model(tmp_path, tiny / "run", 0)
    assert "language model" in refused(command("smt-decode", folder, "--quiet", input="a\n"))
    ini = (folder / "moses.ini").read_text()
    (folder / "moses.ini").write_text(ini.replace(str(tiny / "run"), "nowhere"))
    assert "nowhere is there neither from here nor beside the ini" in refused(
        command("smt-decode", folder, input="a\n")
    )
