"""Figures: the same data give the same file, and their texts are what they were."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from nmt.analysis import plots
from nmt.analysis.buckets import Bucket

BUCKETS = [Bucket(key=n, first=n, last=n, sentences=n, bleu=10.0 * n, ratio=1, chrf=1) for n in (1, 2)]


def test_a_figure_keeps_its_texts_and_is_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        paths = [folder / "x.svg", folder / "x.png"]
        plots.bucket_curves({"source": BUCKETS}, plots.LABELS, "x", "title & <odd> $5", paths)
    assert (tmp_path / "a" / "x.svg").read_bytes() == (tmp_path / "b" / "x.svg").read_bytes()
    text = " ".join(ElementTree.parse(tmp_path / "a" / "x.svg").getroot().itertext())
    assert "title & <odd> $5" in text and "source length" in text
    assert (tmp_path / "a" / "x.png").read_bytes().startswith(b"\x89PNG")


def test_labels_are_printable_and_short() -> None:
    assert plots.printable("a\tb\x07") == r"a\tb\x07"
    assert plots.printable("x" * 999) == "x" * plots.MAX_LABEL + "..."
    assert plots.plain_text("$5") == r"\$5"


def test_points_are_split_into_coordinates() -> None:
    assert plots.split_points([(1, 2), (3, 4)]) == ([1, 3], [2, 4])
