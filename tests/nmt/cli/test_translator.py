"""Blocks of lines as nmt-translate computes them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt import Run
from nmt.cli import translate, translator
from nmt.cli.constraints import Block
from nmt.cli.translator import Translator
from nmt.formats import nbest
from tests.commands.runs import LINES
from tests.conftest import ROOT

RUN = ROOT / "tests" / "golden" / "0.5.0" / "translator"


@pytest.fixture(scope="module")
def made() -> Callable[..., Translator]:
    return lambda *words: translator.load(translate.parser().parse_args([str(RUN), *map(str, words)]))


def test_a_block_is_translated_as_python_does(made: Callable[..., Translator]) -> None:
    found = made("--beam-size", 3).lines(Block(0, [*LINES, ""], {}))
    assert found == [Run.load(RUN).translate([*LINES, ""], beam_size=3)]


def test_lists_count_the_lines_of_the_input(made: Callable[..., Translator]) -> None:
    [lines] = made("--beam-size", 3, "--n-best", 2).lines(Block(7, LINES, {}))
    assert [nbest.parse(line, "list").sentence for line in lines] == [7, 7, 8, 8, 9, 9, 10, 10]


def test_alignments_are_another_output(made: Callable[..., Translator]) -> None:
    """A line for each line; empty ones for lines without words."""
    work = made("--beam-size", 2, "--alignments", "points", "--tokenized")
    translations, points = work.lines(Block(0, [LINES[0], ""], {}))
    assert len(translations) == len(points) == 2 and points[1] == ""
    pairs = [point.split("-") for point in points[0].split()]
    assert pairs and {int(word) for _, word in pairs} == set(range(len(translations[0].split())))


def test_a_translation_depends_on_the_run_and_on_files_beside_it(
    made: Callable[..., Translator], tmp_path: Path
) -> None:
    (tmp_path / "avoid").write_text("rouge\n")
    plain, avoiding = (
        {path.name for path in one.models()} for one in (made(), made("--avoid", tmp_path / "avoid"))
    )
    assert avoiding == {*plain, "avoid"} and {"config.yaml", "source.vocab", "target.vocab"} <= plain
