"""The decoder gives the same outputs, lists and values as real Moses, line by line."""

import itertools
import math
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.formats import nbest
from nmt.formats.nbest import Hypothesis
from nmt.io import files
from smt_bridge.decoder import system
from smt_bridge.decoder.config import DecoderConfig, read_search_settings
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.moses import ini as moses_ini

# ---- test moses regression ---------------------------------------------------------------------------------
# Moses' own regression tests of its decoder: each case gives the expected output, or is refused with one
# line.


Command = Callable[..., subprocess.CompletedProcess[str]]


def entries_of(made: Decoder, number: int, translation: PhraseTranslation) -> list[Hypothesis]:
    """The n-best list of a sentence as it is written."""
    written = (made.entry(number, translation, derivation) for derivation in translation.derivations)
    return [nbest.parse(entry, "ours") for entry in written]


def assert_close(ours: Hypothesis, theirs: Hypothesis, atol: float = 1.1e-3, rtol: float = 0.0) -> None:
    """Assert that features and total are equal to the digits that Moses prints."""
    assert list(ours.features) == list(theirs.features)
    for name, values in theirs.features.items():
        np.testing.assert_allclose(ours.features[name], values, rtol, atol, err_msg=name)
    np.testing.assert_allclose(ours.total, theirs.total, rtol, atol)


CASES = {  # folder: why it is refused; empty where it decodes
    "phrase.early-distortion-cost.kenlm": "",
    "phrase.nbest-with-alignment": "moses.ini:8: [input-factors] '1': the engine reads one factor, 0",
}


def case(nmt_data: Path, name: str, folder: Path) -> Path:
    """The ini of a case with its paths filled in."""
    root = nmt_data / "moses-regression"
    text = (root / "tests" / name / "moses.ini").read_text()
    ini = folder / "moses.ini"
    ini.write_text(
        text.replace("${TEST_PATH}", str(root / "tests" / name)).replace(
            "${MODEL_PATH}", str(root / "models")
        )
    )
    return ini


def expected(path: Path) -> tuple[list[str], list[float], dict[int, list[Hypothesis]]]:
    """Outputs, totals and n-best lists of truth/results.txt."""
    outputs, totals, lists = [], [], dict[int, list[Hypothesis]]()
    for line in files.read_lines(path):
        name, _, value = line.partition("=")
        kind, _, rest = name.strip().partition("_")
        if kind == "SCORE":
            totals.append(float(value))
        elif kind == "TRANSLATION" and "NBEST" in rest:
            number = int(rest.split("_")[0])
            lists.setdefault(number, []).append(nbest.parse(f"{number} ||| {value}", "truth"))
        elif kind == "TRANSLATION":
            outputs.append(value.strip(" "))
    return outputs, totals, lists


def test_all_cases_are_listed(nmt_data: Path) -> None:
    assert sorted(
        path.parent.name for path in (nmt_data / "moses-regression" / "tests").glob("*/moses.ini")
    ) == sorted(CASES)


@pytest.mark.parametrize("name", [name for name, reason in CASES.items() if not reason])
def test_decoded(name: str, nmt_data: Path, tmp_path: Path) -> None:
    """Outputs, totals, and every list entry with its values; entries with the same total as the last one may
    differ."""
    folder = nmt_data / "moses-regression" / "tests" / name
    outputs, totals, lists = expected(folder / "truth" / "results.txt")
    made = Decoder(
        system.load(str(case(nmt_data, name, tmp_path)), use_cache=False),
        DecoderConfig(nbest=max(map(len, lists.values()))),
    )
    for number, translation in enumerate(made.translate_all(files.read_lines(folder / "to-translate.txt"))):
        assert " ".join(translation.text) == outputs[number]
        assert abs(translation.derivations[0].total - totals[number]) < 1.1e-3
        theirs = lists[number]
        entries = entries_of(made, number, translation)
        np.testing.assert_allclose(
            [entry.total for entry in entries], [entry.total for entry in theirs], atol=1.1e-3
        )
        ours = {(tuple(entry.text), entry.rest[0]): entry for entry in entries}
        for other in theirs:
            mine = ours.get((tuple(other.text), other.rest[0]))
            if mine is None:
                assert abs(other.total - theirs[-1].total) < 1.1e-3, (number, other)
                continue
            assert_close(mine, other)


@pytest.mark.parametrize("name", [name for name, reason in CASES.items() if reason])
def test_refused(
    name: str, nmt_data: Path, tmp_path: Path, command: Command, refused: Callable[..., str]
) -> None:
    ini = case(nmt_data, name, tmp_path)
    message = refused(
        command(
            "smt-decode",
            ini,
            "-i",
            nmt_data / "moses-regression" / "tests" / name / "to-translate.txt",
            "-o",
            tmp_path / "out",
            "--no-cache",
        )
    )
    assert CASES[name] in message and not (tmp_path / "out").exists()


# ---- test real moses ---------------------------------------------------------------------------------------


def real(nmt_data: Path, folder: Path) -> Path:
    """Links to the real model, so that no cache is written beside it."""
    for path in (nmt_data / "moses-multi30k").iterdir():
        (folder / path.name).symlink_to(path)
    (folder / "moses.ini").symlink_to(nmt_data / "moses-multi30k" / "moses.tuned.ini")
    return folder


@pytest.mark.ci
def test_real_moses_line_by_line(nmt_data: Path, tmp_path: Path) -> None:
    """With a stack of 200 and the tables, model and weights of the real system, 997 of its 1,000 outputs are
    equal; this test compares the first 150 lines, all of which are, and feature values to the digits
    printed."""
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
        for mine in entries_of(lister, number, lister.translate_line(line)):
            if other := entries.get((number, tuple(mine.text), mine.rest[0])):
                shared += 1
                assert mine.rest == other.rest
                assert_close(mine, other)
    assert shared > 0.9 * len(entries)


@pytest.mark.ci
@pytest.mark.slow
def test_real_moses_whole(nmt_data: Path, tmp_path: Path) -> None:
    """All 1,000 lines; if texts differ, the total is at least as high as the one that Moses printed."""
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


@pytest.mark.ci
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


# ---- test moses settings -----------------------------------------------------------------------------------
# Each setting of a moses.ini as real Moses honors it.


SETTINGS = [
    "baseline", "default-scores", "distortion-0", "drop-unknown", "early-distortion-cost", "mark-unknown",
    "max-phrase-length", "msd-bidirectional-fe",
    "no-reordering", "oov-feature", "stack-beam", "ttable-limit", "tuneable-components",
    "two-language-models", "unknown-weight",
]  # fmt: skip


@pytest.fixture(scope="module")
def moses(nmt_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Links to the settings of real Moses, whose ini files name the real language model relative to their
    folder."""
    folder = tmp_path_factory.mktemp("moses")
    for name in ("moses-settings", "moses-multi30k"):
        (folder / name).mkdir()
        for path in (nmt_data / name).iterdir():
            (folder / name / path.name).symlink_to(path)
    return folder / "moses-settings"


@pytest.mark.ci
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
        mine = entries_of(made, number, translation)
        ours, theirs = (
            {(tuple(entry.words), *entry.rest): entry for entry in entries}
            for entries in (mine, lists[number])
        )
        assert ours.keys() == theirs.keys() and len(mine) == len(lists[number])
        for key, entry in theirs.items():
            assert_close(ours[key], entry, 1.1e-5, 1.1e-5)


@pytest.mark.slow
def test_marked_lines_as_real_moses(nmt_data: Path) -> None:
    """40 marked lines under each policy, and 40 with walls and zones: outputs are those of Moses, and lists
    of five equal its lists to the digits printed."""
    folder = nmt_data / "moses-settings"
    loaded = system.load(str(folder / "baseline.ini"), use_cache=False)
    for name in ("exclusive", "inclusive", "constraint", "ignore", "pass-through", "walls"):
        ini = read_search_settings(moses_ini.read(str(folder / f"xml-{name}.ini")))
        made = Decoder(replace(loaded, search=ini), DecoderConfig(nbest=5))
        theirs: dict[int, list[nbest.Hypothesis]] = {}
        for hypothesis in nbest.read(folder / f"xml-{name}.nbest"):
            theirs.setdefault(hypothesis.sentence, []).append(hypothesis)
        outputs = [line.strip(" ") for line in files.read_lines(folder / f"xml-{name}.out")]
        lines = files.read_lines(folder / ("in.walls.en" if name == "walls" else "in.xml.en"))
        for number, translation in enumerate(made.translate_all(lines)):
            assert " ".join(translation.text) == outputs[number], (name, number)
            ours = {
                (tuple(entry.text), *entry.rest): entry for entry in entries_of(made, number, translation)
            }
            for other in theirs[number]:
                mine = ours[(tuple(other.text), *other.rest)]
                assert_close(mine, other, 1.1e-5, 1.1e-5)
