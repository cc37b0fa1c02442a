"""smt-ini: features and weights move together, nothing else moves; what Moses would get wrong is told."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses import weights
from smt_bridge.moses.check import problems

Command = Callable[..., subprocess.CompletedProcess[str]]
INI = """# made by hand

[input-factors]
0
[feature]
UnknownWordPenalty
WordPenalty
PhraseDictionaryMemory name=TM0  num-features=2 path=t input-factor=0 output-factor=0
LexicalReordering name=LR0 num-features=6 type=x path=r
KENLM name=LM0 factor=0 path=lm order=5

[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
TM0= 0.2  0.3
LR0= 0.1 0.1 0.1 0.1 0.1 0.1
LM0= 0.5
[v]
0
"""
TABLE = "a ||| b ||| 0.5 0.25 ||| 0-0\n"
REORDERING = "a ||| b ||| 0.1 0.2 0.7 0.1 0.2 0.7\n"


@pytest.fixture
def system(tmp_path: Path) -> Path:
    for name, text in (("moses.ini", INI), ("t", TABLE), ("r", REORDERING), ("lm", "x")):
        (tmp_path / name).write_text(text)
    return tmp_path


def changed_lines(before: str, after: str) -> list[tuple[str, str]]:
    return [pair for pair in zip(before.split("\n"), after.split("\n"), strict=True) if pair[0] != pair[1]]


def test_add_and_remove_a_column(system: Path, command: Command) -> None:
    done = command(
        "smt-ini",
        "add-feature",
        system / "moses.ini",
        "--name",
        "TM0",
        "--weight",
        "0.05",
        "--path",
        "new.gz",
        "-o",
        system / "new.ini",
    )
    assert done.returncode == 0, done.stderr
    text = (system / "new.ini").read_text()
    assert changed_lines(INI, text) == [
        (
            "PhraseDictionaryMemory name=TM0  num-features=2 path=t input-factor=0 output-factor=0",
            "PhraseDictionaryMemory name=TM0  num-features=3 path=new.gz input-factor=0 output-factor=0",
        ),
        ("TM0= 0.2  0.3", "TM0= 0.2 0.3 0.05"),
    ]
    back = command(
        "smt-ini", "remove-feature", system / "new.ini", "--name", "TM0", "--column", 3, "--path", "t"
    ).stdout
    assert back == INI.replace("TM0= 0.2  0.3", "TM0= 0.2 0.3")


def test_add_and_remove_a_whole_feature(system: Path, command: Command) -> None:
    done = command(
        "smt-ini",
        "add-feature",
        system / "moses.ini",
        "--line",
        "KENLM name=LM1 factor=0 path=lm",
        "--weight",
        0.1,
        "-o",
        system / "new.ini",
    )
    assert done.returncode == 0, done.stderr
    text = (system / "new.ini").read_text()
    assert text == INI.replace("order=5\n", "order=5\nKENLM name=LM1 factor=0 path=lm\n").replace(
        "LM0= 0.5\n", "LM0= 0.5\nLM1= 0.1\n"
    )
    assert command("smt-ini", "remove-feature", system / "new.ini", "--name", "LM1").stdout == INI


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.removesuffix("\n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text + "\n\n",
    ],
)
def test_ends_of_lines_stay(change: Callable[[str], str], system: Path, command: Command) -> None:
    (system / "moses.ini").write_bytes(change(INI).encode())
    text = command("smt-ini", "add-feature", system / "moses.ini", "--name", "TM0", "--weight", "0.05").stdout
    assert text == change(
        INI.replace("num-features=2", "num-features=3").replace("TM0= 0.2  0.3", "TM0= 0.2 0.3 0.05")
    )


@pytest.mark.ci
def test_set_weights(system: Path, command: Command, refused: Callable[..., str]) -> None:
    (system / "w").write_text("# BLEU 0.5\nTM0= 0.125 -0.25\nLM0= 1e-05\n")
    text = command("smt-ini", "set-weights", system / "moses.ini", "-w", system / "w").stdout
    assert changed_lines(INI, text) == [("TM0= 0.2  0.3", "TM0= 0.125 -0.25"), ("LM0= 0.5", "LM0= 1e-05")]
    assert weights.read(system / "moses.ini")["TM0"] == [0.2, 0.3]
    for line, message in (
        ("XX0= 1", "no feature XX0"),
        ("TM0= 1", "TM0 has 2 scores, but 1 weights"),
        ("TM0=1 2", "is not a weight"),
        ("TM0= a", "not a number"),
    ):
        (system / "w").write_text(line + "\n")
        assert message in refused(command("smt-ini", "set-weights", system / "moses.ini", "-w", system / "w"))


PROBLEMS = {
    "columns": (("num-features=2", "num-features=3"), "TM0 has num-features=3, but t has 2 scores per line"),
    "weights": (("TM0= 0.2  0.3", "TM0= 0.2"), "TM0 has 1 weights, but num-features=2"),
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
    count = 2 if case in ("columns", "no UnknownWordPenalty") else 1  # the weights do not fit either
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


def test_check_of_a_multi_model(system: Path) -> None:
    """Its tables need no weights of their own, and the reordering table has the pairs of all; a table that is
    not there is reported."""
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
    assert list(problems(ini, str(system))) == []
    ini = moses_ini.parse("moses.ini", text.replace("components=TM0,TM1", "components=TM0,TM2").split("\n"))
    found = list(problems(ini, str(system)))
    assert found[0].endswith("all weights of TM1 are 0; Moses ignores the feature (remove it, or tune)")
    assert found[1].startswith("moses.ini:10: MM combines TM2, which is not a feature")
    (system / "t2").write_text("a ||| c ||| 0.5 x ||| 0-0\n")
    ini = moses_ini.parse("moses.ini", text.split("\n"))
    with pytest.raises(DataError, match="t2:1: score x is not a number"):
        list(problems(ini, str(system)))


def test_show(system: Path, command: Command) -> None:
    rows = [line.split("\t") for line in command("smt-ini", "show", system / "moses.ini").stdout.split("\n")]
    assert ["TM0", "PhraseDictionaryMemory", "2", "0.2 0.3", "t"] in rows and [
        "WordPenalty0",
        "WordPenalty",
        "1",
        "-1",
        "",
    ] in rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ttable-file]\n0 0 0 5 x\n", "convert-moses-ini-to-v2.perl"),
        ("hello\n", "expected a moses.ini"),
        (INI.replace("factor=0 path=lm", "factor=0 path=lm factor=1"), "moses.ini:10: factor is given twice"),
        (
            INI.replace("factor=0 path=lm", "factor path=lm"),
            "moses.ini:10: 'factor' does not have the form key=value",
        ),
    ],
)
def test_refused_files(text: str, message: str, system: Path) -> None:
    (system / "moses.ini").write_text(text)
    with pytest.raises(DataError, match=message):
        moses_ini.read(str(system / "moses.ini"))


def test_edits_that_make_no_sense(system: Path) -> None:
    ini = moses_ini.read(str(system / "moses.ini"))
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: moses_ini.remove_column(ini, "TM0", 3), "there is no column 3"),
        (lambda: moses_ini.remove_column(ini, "LM0", 1), "has only this score"),
        (lambda: moses_ini.add_columns(ini, "XX", [1]), "no feature XX, expected one of"),
        (lambda: moses_ini.add_feature(ini, "KENLM name=LM0 path=x", [1]), "feature LM0 exists already"),
        (lambda: moses_ini.add_feature(ini, "KENLM name=LM1 path=x", [1, 2]), "1 scores, but 2 weights"),
    ]
    for call, message in cases:
        with pytest.raises(ConfigError, match=message):
            call()


@pytest.mark.ci
def test_real_ini(nmt_data: Path, command: Command) -> None:
    folder = nmt_data / "moses-multi30k"
    done = command("smt-ini", "check", "moses.tuned.ini", cwd=folder)
    assert done.returncode == 0 and done.stdout == "moses.tuned.ini: nothing wrong\n", done.stdout
    text = (folder / "moses.tuned.ini").read_text()
    assert (
        command("smt-ini", "set-weights", folder / "moses.tuned.ini", "-w", folder / "moses.tuned.ini").stdout
        == text
    )


def test_names_that_are_not_utf8_have_no_place_in_an_ini() -> None:
    with pytest.raises(ConfigError, match="is not UTF-8"):
        moses_ini.with_options("KENLM name=LM0 path=lm", {"path": os.fsdecode(b"caf\xe9/lm")})
    assert (
        moses_ini.with_options("KENLM name=LM0 path=lm", {"path": "café/lm"}) == "KENLM name=LM0 path=café/lm"
    )
