"""Compiled search = plain search, under any settings."""

import math
import random
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder.compiled import HAVE_NUMBA
from tests.smt_bridge.decoder.models import REORDERING, cuts, decoder, edit, same_lists, sentence, write_model


def random_model(folder: Path, seed: int, rng: random.Random) -> None:
    """A model with random features, weights and settings."""
    lms = rng.randint(1, 2)
    write_model(folder, seed, reordering=seed % 4 != 3, lms=lms)
    edit(
        folder,
        ("UnknownWordPenalty\n", "UnknownWordPenalty tuneable=true\n"),
        ("[weight]\n", f"[weight]\nUnknownWordPenalty0= {rng.uniform(0.01, 1):.2f}\n"),
    )
    if rng.random() < 0.6:
        last = next(
            line
            for line in (folder / "moses.ini").read_text().split("\n")
            if line.startswith(f"LM{lms - 1}=")
        )
        edit(
            folder,
            (f"path=lm{lms - 1}", f"path=lm{lms - 1} oov-feature=1"),
            (last, f"{last} {rng.uniform(-1, 0.2):.2f}"),
        )
    if seed % 4 != 3:
        (folder / "reordering").write_text(
            "".join(
                f"{row}\n"
                for row in (folder / "reordering").read_text().split("\n")[:-1]
                if rng.random() < 0.7
            )
        )
        edit(
            folder,
            (
                REORDERING,
                (
                    "type=msd-bidirectional-fe "
                    f"default-scores={','.join(f'{rng.uniform(0.01, 1):.2f}' for _ in range(6))}"
                ),
            ),
        )
    edit(
        folder,
        ("[distortion-limit]\n3\n", f"[distortion-limit]\n{rng.randint(-1, 4)}\n"),
        stack=str(rng.randint(2, 8)),
        beam_threshold="0.001",
    )
    flags = {
        name: str(rng.random() < 0.6).lower()
        for name in ("early_distortion_cost", "drop_unknown", "mark_unknown")
    }
    edit(folder, **flags, max_phrase_length=str(rng.randint(1, 3)), n_best_factor="3")


@pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'")
@pytest.mark.parametrize("seed", [*range(8), 11, 23])
def test_compiled_is_plain_with_any_settings(seed: int, tmp_path: Path) -> None:
    """Random settings, small stacks: the same texts, totals and lists; features x weights are the totals.

    Where a stack was cut while it filled, the compiled search, as Moses, no longer lists ways into hypotheses
    that are worse than what the cut left; the plain one lists them all. There only the best derivations are
    compared.
    """
    rng = random.Random(seed)
    random_model(tmp_path, seed, rng)
    one, other = (decoder(tmp_path, slow, nbest=6, distinct=seed % 2 == 1) for slow in (False, True))
    weights = np.array([value for name in one.system.sizes for value in one.weights[name]])
    whole = 0
    for number in range(40):
        line = " ".join(
            word if rng.random() < 0.8 else rng.choice(["zz", "z7", "p"])
            for word in sentence(number, 1 + number % 7).split()
        )
        ours, theirs = one.translate_line(line), other.translate_line(line)
        cut = cuts(one) > 0
        whole += not cut
        if cut:
            del ours.derivations[1:], theirs.derivations[1:]
        same_lists(ours, theirs, line)
        for derivation in [*ours.derivations, *theirs.derivations]:
            assert math.isclose(derivation.features @ weights, derivation.total, abs_tol=1e-9)
    assert whole > 20


@pytest.mark.parametrize("seed", range(5))
def test_compiled_is_plain(seed: int, tmp_path: Path) -> None:
    """100 sentences a model: the same text, total and list of ten; with stacks so small that pruning
    decides."""
    if not HAVE_NUMBA:
        pytest.skip("needs numba: pip install 'nmt-smt[smt]'")
    folder = write_model(tmp_path, seed, reordering=seed != 1, lms=2 if seed == 2 else 1)
    settings: dict[str, object] = {
        "stack": 4,
        "table_limit": 3,
        "nbest": 10 * (seed % 2),
        "distinct": seed == 3,
    }
    one, other = decoder(folder, **settings), decoder(folder, True, **settings)
    for number in range(100):
        line = sentence(number, 1 + number % 8)
        ours, theirs = one.translate_line(line), other.translate_line(line)
        same_lists(ours, theirs, line)
