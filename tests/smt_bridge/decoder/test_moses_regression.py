"""Moses' own regression tests of its decoder: each case gives the expected output, or is refused with one
line."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nmt.formats import nbest
from nmt.formats.nbest import Hypothesis
from nmt.io import files
from smt_bridge.decoder import system
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder

Command = Callable[..., subprocess.CompletedProcess[str]]

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
    """Outputs, totals, and every entry of the lists with its values; entries that share their total with the
    last may be others."""
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
        entries = [
            nbest.parse(made.entry(number, translation, derivation), "ours")
            for derivation in translation.derivations
        ]
        np.testing.assert_allclose(
            [entry.total for entry in entries], [entry.total for entry in theirs], atol=1.1e-3
        )
        ours = {(tuple(entry.text), entry.rest[0]): entry for entry in entries}
        for other in theirs:
            mine = ours.get((tuple(other.text), other.rest[0]))
            if mine is None:
                assert abs(other.total - theirs[-1].total) < 1.1e-3, (number, other)
                continue
            assert list(mine.features) == list(other.features)
            for feature, values in other.features.items():
                np.testing.assert_allclose(mine.features[feature], values, atol=1.1e-3)


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
