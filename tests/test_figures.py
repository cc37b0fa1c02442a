"""The drawn figures are those that docs/site/figures.py draws, and a page shows each."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs.site import figures

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", figures.FIGURES)
def test_a_file_is_what_the_program_draws(name: str) -> None:
    drawn = figures.FIGURES[name]()
    assert (ROOT / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8") == drawn
    pages = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    assert f"(images/{name}.svg)" in pages


@pytest.mark.parametrize("name", figures.FIGURES)
def test_nothing_is_drawn_outside_of_the_panel(name: str) -> None:
    svg = ElementTree.fromstring(figures.FIGURES[name]())
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    for shape in svg.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, wide, high = (float(shape.attrib[key]) for key in ("x", "y", "width", "height"))
        assert min(x, y) >= 0 and x + wide <= width and y + high <= height
    for words in svg.iter("{http://www.w3.org/2000/svg}text"):
        half = 4 * len(words.text or "")  # 8 units a letter are more than any font takes
        x, anchor = float(words.attrib["x"]), words.attrib["text-anchor"]
        left = {"start": x, "middle": x - half, "end": x - 2 * half}[anchor]
        assert left >= 0 and left + 2 * half <= width and 0 < float(words.attrib["y"]) < height, words.text
