"""Each setting of a moses.ini as real Moses honors it."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from nmt.formats import nbest
from nmt.io import files
from smt_bridge.decoder import system
from smt_bridge.decoder.compiled import HAVE_NUMBA
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder

pytestmark = pytest.mark.ci

SETTINGS = [
    "baseline", "default-scores", "distortion-0", "drop-unknown", "early-distortion-cost", "mark-unknown",
    "max-phrase-length", "msd-bidirectional-fe",
    "no-reordering", "oov-feature", "stack-beam", "ttable-limit", "tuneable-components",
    "two-language-models", "unknown-weight",
]  # fmt: skip


@pytest.fixture(scope="module")
def moses(nmt_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Links to real Moses' settings, whose ini files name the real language model beside their folder."""
    folder = tmp_path_factory.mktemp("moses")
    for name in ("moses-settings", "moses-multi30k"):
        (folder / name).mkdir()
        for path in (nmt_data / name).iterdir():
            (folder / name / path.name).symlink_to(path)
    return folder / "moses-settings"


@pytest.mark.skipif(not HAVE_NUMBA, reason="the plain decoder is too slow here")
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("count", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_as_real_moses(name: str, count: int, moses: Path) -> None:
    """The output, and the 5-best list with segmentation, alignment, features and totals.

    Numbers agree to one unit of the sixth digit, which is the last one printed: Moses adds up in single
    precision, we in double. For the same reason neighbors whose totals are printed alike may change places;
    lists are compared without their order.
    """
    made = Decoder(system.load(str(moses / f"{name}.ini")), DecoderConfig(nbest=5))
    outputs = [line.rstrip(" ") for line in files.read_lines(moses / f"{name}.out")]
    lists = dict(nbest.by_sentence(moses / f"{name}.nbest"))
    for number, line in enumerate(itertools.islice(files.read_lines(moses / "in.en"), count)):
        translation = made.translate_line(line)
        assert " ".join(translation.text) == outputs[number]
        mine = [
            nbest.parse(made.entry(number, translation, derivation), "mine")
            for derivation in translation.derivations
        ]
        ours, theirs = (
            {(tuple(entry.words), *entry.rest): entry for entry in entries}
            for entries in (mine, lists[number])
        )
        assert ours.keys() == theirs.keys() and len(mine) == len(lists[number])
        for key, entry in theirs.items():
            assert list(ours[key].features) == list(entry.features)
            for feature, expected in entry.features.items():
                np.testing.assert_allclose(
                    ours[key].features[feature], expected, rtol=1.1e-5, atol=1.1e-5, err_msg=feature
                )
            assert math.isclose(ours[key].total, entry.total, rel_tol=1.1e-5, abs_tol=1.1e-5)
