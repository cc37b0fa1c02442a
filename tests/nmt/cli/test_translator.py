"""What nmt-translate computes, with prefixes and constraints."""

import argparse
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt import Run
from nmt.cli import translate, translator
from nmt.cli.translator import LineTranslator, TranslationBlock
from nmt.errors import DataError
from nmt.formats import nbest
from tests.commands.runs import LINES
from tests.conftest import ROOT

# ---- test translator ---------------------------------------------------------------------------------------


RUN = ROOT / "tests" / "models" / "translator"


@pytest.fixture(scope="module")
def made() -> Callable[..., LineTranslator]:
    return lambda *words: translator.load_translator(
        translate.parser().parse_args([str(RUN), *map(str, words)])
    )


def test_a_block_is_translated_as_python_does(made: Callable[..., LineTranslator]) -> None:
    found = made("--beam-size", 3).lines(TranslationBlock(0, [*LINES, ""], {}))
    assert found == [Run.load(RUN).translate([*LINES, ""], beam_size=3)]


def test_lists_count_the_lines_of_the_input(made: Callable[..., LineTranslator]) -> None:
    [lines] = made("--beam-size", 3, "--n-best", 2).lines(TranslationBlock(7, LINES, {}))
    assert [nbest.parse(line, "list").sentence for line in lines] == [7, 7, 8, 8, 9, 9, 10, 10]


def test_alignments_are_another_output(made: Callable[..., LineTranslator]) -> None:
    """A line for each line; empty ones for lines without words."""
    work = made("--beam-size", 2, "--alignments", "points", "--tokenized")
    translations, points = work.lines(TranslationBlock(0, [LINES[0], ""], {}))
    assert len(translations) == len(points) == 2 and points[1] == ""
    pairs = [point.split("-") for point in points[0].split()]
    assert pairs and {int(word) for _, word in pairs} == set(range(len(translations[0].split())))


def test_a_translation_depends_on_the_run_and_on_files_beside_it(
    made: Callable[..., LineTranslator], tmp_path: Path
) -> None:
    (tmp_path / "avoid").write_text("rouge\n")
    plain, avoiding = (
        {path.name for path in one.models()} for one in (made(), made("--avoid", tmp_path / "avoid"))
    )
    assert avoiding == {*plain, "avoid"} and {"config.yaml", "source.vocab", "target.vocab"} <= plain


def test_sentences_of_a_line_are_translated_one_by_one(made: Callable[..., LineTranslator]) -> None:
    """What stands between them stays; a line is a line, and no sentence is lost."""
    line, gap = LINES[0] + "\u2003 " + LINES[2], "\u2003 "
    [lines] = made("--beam-size", 3, "--split-sentences").lines(TranslationBlock(0, [line, "", LINES[1]], {}))
    first, second, third = Run.load(RUN).translate([LINES[0], LINES[2], LINES[1]], beam_size=3)
    assert lines == [first + gap + second, "", third]
    assert Run.load(RUN).translate([line], beam_size=3, split_sentences=True) == lines[:1]
    assert Run.load(RUN).translate([line], beam_size=3) != lines[:1]


def test_a_message_names_the_line_of_a_sentence(
    made: Callable[..., LineTranslator], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = "--input", tmp_path / "in", "--max-line-words", 5, "--split-sentences"
    long = " ".join(["dog"] * 2000)
    made(*words).warn(TranslationBlock(0, [f"{LINES[0]} {LINES[2]}", f"{LINES[0]} The {long}."], {}))
    [record] = caplog.records
    assert f"{tmp_path}/in:2: " in record.getMessage()


def test_the_first_line_of_several_sentences_gets_a_warning(
    made: Callable[..., LineTranslator], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    block, words = (
        TranslationBlock(0, [LINES[0], f"{LINES[0]} {LINES[2]}", f"{LINES[0]} {LINES[2]}"], {}),
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


# ---- test constraints --------------------------------------------------------------------------------------
# Files of constraints: what stands in them, and what nmt-translate makes of them.


Command = Callable[..., subprocess.CompletedProcess[str]]


def options(folder: Path, **given: str) -> argparse.Namespace:
    """Options whose files hold the given texts."""
    paths: dict[str, str | None] = dict.fromkeys(translator.LINE_FILES)
    for name, text in given.items():
        (folder / name).write_text(text)
        paths[name] = str(folder / name)
    return argparse.Namespace(**paths, read_ahead=2, escaped=False, tag=None)


def test_blocks_have_what_belongs_to_their_lines(tmp_path: Path) -> None:
    args = options(tmp_path, input="a\nb\nc\n", prefix="x\n\nz\n", constraints="p\tq\n\nr\n")
    translator.check_line_files(args)
    found = list(translator.read_blocks(args))
    assert [(block.first, block.lines, block.prefixes) for block in found] == [
        (0, ["a", "b"], ["x", ""]),
        (2, ["c"], ["z"]),
    ]
    assert [block.side_lines["constraints"] for block in found] == [["p\tq", ""], ["r"]]
    short = options(tmp_path, input="a\nb\n", avoid_lines="x\n")
    with pytest.raises(DataError, match=r"avoid_lines: 1 lines, but .* has 2"):
        translator.check_line_files(short)


def test_phrases_and_escapes(tmp_path: Path) -> None:
    (tmp_path / "avoid").write_text("# a comment\n\nab c\n  \nde\n")
    assert translator.read_phrases(str(tmp_path / "avoid")) == ["ab c", "de"]
    assert translator.split_phrases("a b\t\t c\t ") == ["a b", " c"]
    assert translator.unescape_line("l &apos;  a\t&amp;", True) == "l ' a\t&"
    assert translator.unescape_line("l &apos;  a", False) == "l &apos;  a"


# ---- the command -------------------------------------------------------------------------------------------

TEXT = "\n".join([*(line.lower().replace(".", " .") for line in LINES), ""]) + "\n"  # tokenized


def translated(command: Command, run: Path, *more: object, text: str = TEXT) -> list[str]:
    done = command("nmt-translate", run, "-q", "--tokenized", *more, input=text)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split("\n")[:-1]


def frequent(tiny: Path, side: str, count: int) -> list[str]:
    """Words that the run knows, the most frequent first."""
    rows = (tiny / "run" / f"{side}.vocab").read_text().split("\n")[1:]
    return [row.split("\t")[0] for row in rows if row[:1].isalpha()][:count]


@pytest.mark.ci
@pytest.mark.parametrize("allocation", ["dynamic", "grid"])
def test_lists_meet_their_constraints(allocation: str, tiny: Path, command: Command, tmp_path: Path) -> None:
    """Every entry has every phrase and nothing that is avoided, with the score of nmt-score; alone or
    together; the line without constraints is as before."""
    words = frequent(tiny, "target", 40)
    required = [f"{words[20]} {words[30]}\t{words[7]}", f"{words[25]}\t{words[25]}", "", words[9], ""]
    (tmp_path / "required").write_text("\n".join(required) + "\n")
    (tmp_path / "avoided").write_text(f"{words[0]}\n{words[1]}\t{words[2]}\n\n\n\n")
    (tmp_path / "in").write_text(TEXT)
    given = ["--input", tmp_path / "in", "--constraints", tmp_path / "required", "-b", 6]
    given += ["--avoid-lines", tmp_path / "avoided", "--allocation", allocation]
    found = [nbest.parse(line, "x") for line in translated(command, tiny / "run", *given, "--n-best", 6)]
    for entry in found:
        text = f" {' '.join(entry.words)} "
        for phrase in required[entry.sentence].split("\t"):
            times = required[entry.sentence].split("\t").count(phrase)
            assert not phrase or len(re.findall(f"(?= {re.escape(phrase)} )", text)) >= times, text
        assert entry.sentence != 0 or words[0] not in entry.words
        assert entry.sentence != 1 or not {words[1], words[2]} & {*entry.words}
    plain = translated(command, tiny / "run", "-b", 6, "--n-best", 6)
    for sentence in (2, 4):
        assert [nbest.write(one) for one in found if one.sentence == sentence] == [
            line for line in plain if line.startswith(f"{sentence} ")
        ]
    single = translated(command, tiny / "run", *given, "--n-best", 6, "--read-ahead", 1)
    alone = [nbest.parse(line, "x") for line in single]
    assert [(one.sentence, one.words) for one in alone] == [(one.sentence, one.words) for one in found]
    full = [one for one in found if one.words]
    (tmp_path / "s").write_text("".join(f"{TEXT.split(chr(10))[one.sentence]}\n" for one in full))
    (tmp_path / "t").write_text("".join(f"{' '.join(one.words)}\n" for one in full))
    done = command("nmt-score", tiny / "run", "-q", "--tokenized", "-s", tmp_path / "s", "-t", tmp_path / "t")
    scores = [float(line) for line in done.stdout.split()]
    assert scores == pytest.approx([one.features["NMT0"][0] for one in full], abs=1e-4)


@pytest.mark.ci
def test_terms_and_what_cannot_be_met(
    tiny: Path, command: Command, tmp_path: Path, refused: Callable[..., str]
) -> None:
    words = frequent(tiny, "target", 40)
    (tmp_path / "terms").write_text(f"the dog\t{words[20]} {words[30]}\nnurse\t{words[11]}\n")
    found = translated(command, tiny / "run", "--terms", tmp_path / "terms")
    assert f" {words[20]} {words[30]} " in f" {found[0]} " and words[11] in found[2].split()
    assert [found[1], found[3]] == [translated(command, tiny / "run")[row] for row in (1, 3)]
    (tmp_path / "terms").write_text(f"dog\t{words[3]}\nnurse\tqqqq\n")
    run = ["nmt-translate", tiny / "run", "-q", "--tokenized"]
    line = [*run, "--terms", tmp_path / "terms", "--output", tmp_path / "out"]
    assert "terms:2: 'qqqq' cannot be required; leave it out" in refused(command(*line, input=TEXT))
    assert not (tmp_path / "out").exists()
    done = command(*line, "--unmet", "warn", input=TEXT)
    assert done.returncode == 0 and done.stderr.count("\n") == 1 and "terms:2: 'qqqq'" in done.stderr
    assert words[3] in (tmp_path / "out").read_text().split("\n")[0].split()
    (tmp_path / "required").write_text(f"\n{words[5]}\t{words[5]}\n\n\n\n")
    (tmp_path / "in").write_text(TEXT)
    line = [*run, "--input", tmp_path / "in", "--constraints", tmp_path / "required", "--no-repeat-ngram", 1]
    assert "required:2: no translation has all that is required" in refused(command(*line))
    (tmp_path / "required").write_text("\nqqqq\n\n\n\n")
    assert "required:2: 'qqqq' cannot be required" in refused(command(*line))
    assert "--sample does not go with any of" in refused(command(*line, "--sample", 2))


@pytest.mark.ci
def test_no_n_gram_twice(tiny: Path, command: Command) -> None:
    """A run that has hardly been trained repeats itself, unless it must not."""
    for order in (1, 2):
        found = translated(command, tiny / "run", "--no-repeat-ngram", order)
        for line in found:
            words = line.split()
            grams = [tuple(words[at : at + order]) for at in range(len(words) - order + 1)]
            assert len(set(grams)) == len(grams)
