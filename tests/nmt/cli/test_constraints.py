"""Files of constraints: what stands in them, and what nmt-translate makes of them."""

import argparse
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.cli import constraints
from nmt.errors import DataError
from nmt.formats import nbest
from tests.commands.runs import LINES

Command = Callable[..., subprocess.CompletedProcess[str]]


def options(folder: Path, **given: str) -> argparse.Namespace:
    """Options whose files hold the given texts."""
    paths: dict[str, str | None] = dict.fromkeys(constraints.BESIDE)
    for name, text in given.items():
        (folder / name).write_text(text)
        paths[name] = str(folder / name)
    return argparse.Namespace(**paths, read_ahead=2, escaped=False, tag=None)


def test_blocks_have_what_belongs_to_their_lines(tmp_path: Path) -> None:
    args = options(tmp_path, input="a\nb\nc\n", prefix="x\n\nz\n", constraints="p\tq\n\nr\n")
    constraints.check(args)
    found = list(constraints.blocks(args))
    assert [(block.first, block.lines, block.prefixes) for block in found] == [
        (0, ["a", "b"], ["x", ""]),
        (2, ["c"], ["z"]),
    ]
    assert [block.beside["constraints"] for block in found] == [["p\tq", ""], ["r"]]
    short = options(tmp_path, input="a\nb\n", avoid_lines="x\n")
    with pytest.raises(DataError, match=r"avoid_lines: 1 lines, but .* has 2"):
        constraints.check(short)


def test_phrases_and_escapes(tmp_path: Path) -> None:
    (tmp_path / "avoid").write_text("# a comment\n\nab c\n  \nde\n")
    assert constraints.phrases(str(tmp_path / "avoid")) == ["ab c", "de"]
    assert constraints.fields("a b\t\t c\t ") == ["a b", " c"]
    assert constraints.clean("l &apos;  a\t&amp;", True) == "l ' a\t&"
    assert constraints.clean("l &apos;  a", False) == "l &apos;  a"


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
    assert "--sample goes with none of" in refused(command(*line, "--sample", 2))


@pytest.mark.ci
def test_no_n_gram_twice(tiny: Path, command: Command) -> None:
    """A run that has hardly been trained repeats itself, unless it must not."""
    for order in (1, 2):
        found = translated(command, tiny / "run", "--no-repeat-ngram", order)
        for line in found:
            words = line.split()
            grams = [tuple(words[at : at + order]) for at in range(len(words) - order + 1)]
            assert len(set(grams)) == len(grams)
