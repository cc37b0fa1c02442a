"""Real Moses on a real system, line by line: the same outputs, lists and values."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from nmt.formats import nbest
from nmt.io import files
from smt_bridge.decoder import system
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder

pytestmark = pytest.mark.ci


def real(nmt_data: Path, folder: Path) -> Path:
    """Links to the real model, so that no cache is written beside it."""
    for path in (nmt_data / "moses-multi30k").iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "moses.ini").symlink_to(nmt_data / "moses-multi30k" / "moses.tuned.ini")
    return folder


def test_real_moses_line_by_line(nmt_data: Path, tmp_path: Path) -> None:
    """Stack 200, tables, model and weights of the real system: 997 of its 1,000 outputs; here the first 150
    lines, all of them.

    And the feature values of its own lists, to the digits they are printed with.
    """
    folder = real(nmt_data, tmp_path)
    loaded = system.load(str(folder), use_cache=False)
    lines = list(itertools.islice(files.read_lines(folder / "corpus/test_2016_flickr.tok.en"), 150))
    theirs = [
        line.strip(" ")
        for line in itertools.islice(files.read_lines(folder / "out/test_2016_flickr.tuned.fr"), 150)
    ]
    made = Decoder(loaded, DecoderConfig(stack=200))
    ours = [" ".join(made.translate_line(line).text) for line in lines]
    assert ours == theirs
    lister = Decoder(loaded, DecoderConfig(stack=200, nbest=100, distinct=True))
    entries = {}
    for hypothesis in nbest.read(folder / "out/test_2016_flickr.100best.segalign.gz"):
        if hypothesis.sentence >= 20:
            break
        entries[hypothesis.sentence, tuple(hypothesis.text), hypothesis.rest[0]] = hypothesis
    shared = 0
    for number, line in enumerate(lines[:20]):
        translation = lister.translate_line(line)
        for derivation in translation.derivations:
            mine = nbest.parse(lister.entry(number, translation, derivation), "mine")
            other = entries.get((number, tuple(mine.text), mine.rest[0]))
            if other:
                shared += 1
                assert list(mine.features) == list(other.features) and mine.rest == other.rest
                assert abs(mine.total - other.total) < 1.1e-3
                for name, values in mine.features.items():
                    np.testing.assert_allclose(values, other.features[name], atol=1.1e-3)
    assert shared > 0.9 * len(entries)


@pytest.mark.slow
def test_real_moses_whole(nmt_data: Path, tmp_path: Path) -> None:
    """All 1,000 lines; where the texts differ our total is at least as good as Moses' printed one."""
    folder = real(nmt_data, tmp_path)
    made = Decoder(system.load(str(folder), use_cache=False), DecoderConfig(stack=200))
    best: dict[int, float] = {}
    for hypothesis in nbest.read(folder / "out/test_2016_flickr.100best.segalign.gz"):
        best.setdefault(hypothesis.sentence, hypothesis.total)
    theirs = [line.strip(" ") for line in files.read_lines(folder / "out/test_2016_flickr.tuned.fr")]
    different = []
    for number, translation in enumerate(
        made.translate_all(files.read_lines(folder / "corpus/test_2016_flickr.tok.en"), 2)
    ):
        if " ".join(translation.text) != theirs[number]:
            different.append(number)
            assert translation.derivations[0].total >= best[number] - 2e-3 * abs(best[number]), number
    assert len(different) <= 15


@pytest.mark.slow
def test_compiled_is_plain_on_500_real_sentences(nmt_data: Path, tmp_path: Path) -> None:
    folder = real(nmt_data, tmp_path)
    loaded = system.load(str(folder), use_cache=False)
    one, other = (Decoder(loaded, DecoderConfig(stack=10)) for _ in range(2))
    other.compiled = None
    for line in itertools.islice(files.read_lines(folder / "corpus/val.tok.en"), 500):
        ours, theirs = one.translate_line(line), other.translate_line(line)
        assert ours.text == theirs.text and math.isclose(
            ours.derivations[0].total, theirs.derivations[0].total, abs_tol=1e-9
        )
