"""The check of a system: each problem is reported with its line."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.errors import DataError
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.check import first_difference, problems
from tests.smt_bridge.moses.systems import INI, REORDERING, TABLE, write_system

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def system(tmp_path: Path) -> Path:
    return write_system(tmp_path)


PROBLEMS = {
    "columns": (("num-features=2", "num-features=3"), "TM0 has num-features=3, but t has 2 scores per line"),
    "weights": (("TM0= 0.2  0.3", "TM0= 0.2"), "TM0 has 1 weight, but num-features=2"),
    "no weights": (("TM0= 0.2  0.3\n", ""), "TM0 has no line in [weight]; Moses silently uses 1"),
    "name": (("TM0", "Translation_Model0"), "split names at '_'"),
    "path": (("path=lm", "path=nowhere"), "path=nowhere of LM0 does not exist"),
    "orphan": (("LM0= 0.5", "LM0= 0.5\nLM9= 1"), "weights of LM9, but there is no such feature"),
    "no UnknownWordPenalty": (
        ("UnknownWordPenalty\n", ""),
        "no feature UnknownWordPenalty: Moses crashes at the first word",
    ),
    "tuneable reordering": (
        ("type=x", "type=x tuneable=false"),
        "moses.ini:9: LexicalReordering has no tuneable=",
    ),
    "type of reordering": (
        ("type=x", "type=wbe-msd-backward-fe"),
        "LR0 has num-features=6, but a model of type=wbe-msd-backward-fe has 3 scores",
    ),
    "reordering components": (
        ("type=x", "type=x tuneable-components=1,1,1,1,1,0"),
        "moses.ini:9: LexicalReordering has no tuneable-components=",
    ),
    "section": (
        ("[v]", "[distortion_limit]"),
        "moses.ini:18: section 'distortion_limit' is unknown, and Moses stops at it",
    ),
    "abbreviation": (
        ("[v]", "[dl]"),
        (
            "moses.ini:18: Moses knows [dl] on its command line only, and ignores it here; write "
            "[distortion-limit]"
        ),
    ),
    "probing": (
        ("PhraseDictionaryMemory", "ProbingPT"),
        "moses.ini:8: ProbingPT reads the folder that Moses' CreateProbingPT2 makes, but t is a file",
    ),
    "operation sequence model": (
        ("KENLM name=LM0 factor=0 path=lm order=5", "OpSequenceModel name=LM0 num-features=1 path=lm"),
        "moses.ini:10: LM0 has num-features=1, but 5 scores; Moses crashes at it",
    ),
    "all zero": (("LM0= 0.5", "LM0= 0"), "all weights of LM0 are 0"),
}


@pytest.mark.ci
@pytest.mark.parametrize("case", PROBLEMS)
def test_check(case: str, system: Path, command: Command) -> None:
    (before, after), message = PROBLEMS[case]
    assert (
        command("smt-ini", "check", system / "moses.ini", "--root", system).stdout
        == f"{system / 'moses.ini'}: nothing wrong\n"
    )
    (system / "moses.ini").write_text(INI.replace(before, after))
    done = command("smt-ini", "check", "moses.ini", "--root", ".", cwd=system)
    assert done.returncode == 2 and message in done.stdout, done.stdout
    # the weights, or the rows of the table, do not fit either
    count = 2 if case in ("columns", "no UnknownWordPenalty", "type of reordering") else 1
    assert (
        done.stdout.count("\n") == count
        and f"{count} problem{'s' * (count > 1)}, listed above" in done.stderr
    )


@pytest.mark.ci
def test_check_of_rows(system: Path, command: Command) -> None:
    (system / "t").write_text(TABLE + "a ||| c ||| 0.5 0.25\n")
    done = command("smt-ini", "check", "moses.ini", cwd=system)
    assert done.returncode == 2 and "r:2: a different phrase pair than in line 2 of t" in done.stdout
    assert command("smt-ini", "check", "moses.ini", "--quick", cwd=system).returncode == 0
    (system / "r").write_text(
        REORDERING + REORDERING.replace("||| b", "||| d")
    )  # as many rows, another target
    assert "r:2: a different phrase pair" in command("smt-ini", "check", "moses.ini", cwd=system).stdout


@pytest.mark.parametrize(
    ("phrases", "reordering", "first"),
    [("ab", "ab", 0), ("abc", "cab", 0), ("ab", "bb", 1), ("ab", "a", 2), ("abc", "acc", 2), ("a", "ab", 2)],
)
def test_rows_are_compared_in_any_order(phrases: str, reordering: str, first: int, tmp_path: Path) -> None:
    """As Moses looks them up. A row that comes twice is not another one."""
    for name, words, scores in (("t", phrases, "0.5"), ("r", reordering, "0.2 0.3")):
        (tmp_path / name).write_text("".join(f"{word} ||| x ||| {scores}\n" for word in words))
    assert first_difference(tmp_path / "t", tmp_path / "r") == first


def test_a_table_in_another_order_is_no_problem(system: Path) -> None:
    """Moses' text loader takes it."""
    for name, text in (("t", TABLE), ("r", REORDERING)):
        (system / name).write_text(text.replace("a", "b") + text)
    assert list(problems(moses_ini.parse("moses.ini", INI.split("\n")), [str(system)])) == []


def test_check_of_a_multi_model(system: Path) -> None:
    """Its tables need no weights of their own, and the reordering table has the pairs of all of them; a
    missing table is reported."""
    table = "PhraseDictionaryMemory name=TM0  num-features=2 path=t input-factor=0 output-factor=0"
    other = "PhraseDictionaryMemory name=TM1 num-features=2 path=t2 tuneable=false"
    both = (
        "PhraseDictionaryMultiModel name=MM num-features=2 mode=interpolate lambda=0.3,0.7 components=TM0,TM1"
    )
    text = INI.replace(table, f"{table} tuneable=false\n{other}\n{both}").replace(
        "TM0= 0.2  0.3", "TM0= 0 0\nTM1= 0 0\nMM= 0.2 0.3"
    )
    (system / "t2").write_text("a ||| c ||| 0.5 0.25 ||| 0-0\n")
    (system / "r").write_text(REORDERING + REORDERING.replace("||| b", "||| c"))
    ini = moses_ini.parse("moses.ini", text.split("\n"))
    assert list(problems(ini, [str(system)])) == []
    ini = moses_ini.parse("moses.ini", text.replace("components=TM0,TM1", "components=TM0,TM2").split("\n"))
    found = list(problems(ini, [str(system)]))
    assert found[0].endswith("all weights of TM1 are 0; Moses ignores the feature (remove it, or tune)")
    assert found[1].startswith("moses.ini:10: MM combines TM2, which is not a feature")
    (system / "t2").write_text("a ||| c ||| 0.5 x ||| 0-0\n")
    ini = moses_ini.parse("moses.ini", text.split("\n"))
    with pytest.raises(DataError, match="t2:1: score x is not a number"):
        list(problems(ini, [str(system)]))
