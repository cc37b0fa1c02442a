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


def test_sentences_of_a_line_are_translated_one_by_one(made: Callable[..., Translator]) -> None:
    """What stands between them stays; a line is a line, and no sentence is lost."""
    line, gap = LINES[0] + "\u2003 " + LINES[2], "\u2003 "
    [lines] = made("--beam-size", 3, "--split-sentences").lines(Block(0, [line, "", LINES[1]], {}))
    first, second, third = Run.load(RUN).translate([LINES[0], LINES[2], LINES[1]], beam_size=3)
    assert lines == [first + gap + second, "", third]
    assert Run.load(RUN).translate([line], beam_size=3, split_sentences=True) == lines[:1]
    assert Run.load(RUN).translate([line], beam_size=3) != lines[:1]


def test_a_message_names_the_line_of_a_sentence(
    made: Callable[..., Translator], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = "--input", tmp_path / "in", "--max-line-words", 5, "--split-sentences"
    long = " ".join(["dog"] * 2000)
    made(*words).warn(Block(0, [f"{LINES[0]} {LINES[2]}", f"{LINES[0]} The {long}."], {}))
    [record] = caplog.records
    assert f"{tmp_path}/in:2: " in record.getMessage()


def test_the_first_line_of_several_sentences_gets_a_warning(
    made: Callable[..., Translator], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    block, words = (
        Block(0, [LINES[0], f"{LINES[0]} {LINES[2]}", f"{LINES[0]} {LINES[2]}"], {}),
        ("-i", tmp_path),
    )
    for options in (["--split-sentences"], ["--tokenized"], ["--n-best", 2]):
        made(*words, *options).warn(block)
    assert not caplog.records
    work = made(*words)
    work.warn(block)
    work.warn(block)
    [record] = caplog.records
    assert record.getMessage().startswith(f"{tmp_path}:2: ") and "--split-sentences" in record.getMessage()


@pytest.mark.parametrize(
    "options",
    ["--tokenized", "--escaped", "--n-best 2", "--mbr bleu", "--sample 1", "--alignments points"]
    + [f"--{name} lines" for name in ("prefix", "constraints", "avoid-lines")],
)
def test_sentences_do_not_go_with_what_speaks_of_whole_lines(
    options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("in", "lines"):
        (tmp_path / name).write_text("A man.\n")
    assert translate.main([str(RUN), "-i", "in", "--split-sentences", *options.split()]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and options.split()[0] in captured.err and not captured.out
    assert "--split-sentences" in captured.err
