"""What a tuning asks of the decoder."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.decoder.decoder import Decoder
from smt_bridge.moses import ini as moses_ini
from smt_bridge.tuning import pool as pools
from smt_bridge.tuning.decoding import decoded, whole_weights
from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden" / "0.5.0"


@pytest.fixture
def decoder(tmp_path: Path) -> Decoder:
    shutil.copytree(GOLDEN / "phrase-based", tmp_path / "model")
    return Decoder.load(str(tmp_path / "model"), cache=False)


def test_other_weights_decode_as_an_ini_that_has_them(decoder: Decoder) -> None:
    lines = ["the nurses hear her .", "a black girl sleeps ."]
    weights = {name: [-value for value in decoder.weights[name]] for name in decoder.system.sizes}
    found = [one.text for one in decoded(decoder, weights, lines, 1, "dev")]
    assert found == [one.text for one in Decoder(decoder.system, weights=weights).translate_all(lines)]
    assert found != [one.text for one in decoder.translate_all(lines)]


def test_the_weights_of_all_features_in_the_order_of_lists(decoder: Decoder) -> None:
    names = pools.columns(decoder.system.sizes)
    whole = whole_weights(decoder.system, names, np.arange(len(names)).astype(float))
    assert list(whole) == list(decoder.system.sizes)
    assert [value for values in whole.values() for value in values] == list(range(len(names)))
    moses_ini.set_weights(decoder.system.ini, whole)  # takes them
