"""What all commands say about themselves, and about typing mistakes."""

import argparse
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from nmt.cli.parser import Action, Parser
from tests.conftest import Command
from tests.tools import man_pages


@cache
def commands() -> dict[str, Parser]:
    """The parser of every installed command."""
    return {parser.prog: parser for parser in man_pages.parsers()}


def parsers() -> Iterator[Parser]:
    """Those of all commands and their actions."""
    for parser in commands().values():
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices.values()


def test_manual_pages(tmp_path: Path) -> None:
    """Each names its command, and has all options; groff finds nothing to complain about."""
    man_pages.main(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == set(commands()) and len(commands()) > 20
    for parser in parsers():
        text = (tmp_path / f"{parser.prog.split()[0]}.1").read_text().replace("\\-", "-")
        names = {name for action in parser._actions for name in action.option_strings} - {"-h", "--help"}
        assert all(name in text for name in names), parser.prog
    if shutil.which("groff"):
        line = ["groff", "-man", "-Tutf8", "-ww", "-z", *sorted(map(str, tmp_path.iterdir()))]
        told = subprocess.run(line, capture_output=True, text=True, check=True).stderr
        assert not [row for row in told.splitlines() if "adjust" not in row and "break" not in row]


def test_a_letter_has_one_meaning() -> None:
    """Over all commands; former letters too, which are not taken for something else."""
    meanings: dict[str, set[str]] = {}
    for parser in parsers():
        for action in parser._actions:
            short = [name for name in action.option_strings if not name.startswith("--")]
            for name in short:
                long = next(option for option in action.option_strings if option.startswith("--"))
                meanings.setdefault(name, set()).add(long)
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}
    assert meanings["-b"] == {"--beam-size"} and meanings["-t"] == {"--target"}


def test_former_names_lead_to_options_that_exist() -> None:
    for parser in parsers():
        known = {name for action in parser._actions for name in action.option_strings}
        assert set(parser.renamed.values()) <= known and not set(parser.renamed) & known, parser.prog


def test_help_is_whole_and_shows_no_empty_default() -> None:
    for parser in parsers():
        text = " ".join(parser.format_help().split())
        for nothing in ("None", "False", ")", "[]", "()", "(0,)"):
            assert f"default: {nothing}" not in text, parser.prog
        for action in parser._actions:
            named = action.help or isinstance(action, argparse._SubParsersAction)
            assert named, f"{parser.prog}: {action.dest} has no help"


TYPOS = [
    (["nmt-train", "--versoin"], "nmt-train: unrecognized arguments: --versoin; did you mean --version?"),
    (["nmt-train", "x.yaml", "--prset", "small"], "--prset; did you mean --preset?"),
    (["nmt-translate", "run", "--beam_sise=3"], "--beam-sise=3; did you mean --beam-size?"),
    (["nmt-translate", "--frobnicate"], "nmt-translate: unrecognized arguments: --frobnicate; see"),
    (["smt-ini", "--versoin"], "smt-ini: unrecognized arguments: --versoin; did you mean --version?"),
    (
        ["smt-ini", "check", "--rot", "x"],
        "smt-ini check: unrecognized arguments: --rot; did you mean --root?",
    ),
    (["smt-ini", "chek", "x"], "; did you mean check?"),
    (["nmt-analyze", "by-lenght"], "; did you mean by-length?"),
    (["nmt-translate", "run", "--normalize", "lenght"], "; did you mean length?"),
]


@pytest.mark.parametrize(("line", "message"), TYPOS)
def test_a_typo_is_named(line: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        commands()[line[0]].parse_args(line[1:])
    told = capsys.readouterr().err
    assert stop.value.code == 2 and message in told and told.count("\n") == 1


def test_prefixes_values_and_what_follows_two_dashes_are_no_typos() -> None:
    parser = Parser("x", "About.")
    parser.add_argument("--source")
    parser.add_argument("rest", nargs="*")
    found = parser.parse_args(["--sou", "a", "--", "--nosuch"])
    assert found.source == "a" and found.rest == ["--nosuch"]
    assert parser.parse_args(["--source=--x"]).source == "--x"


def test_a_former_letter_with_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    parser = Action("x y")
    parser.add_argument("--best")
    parser.renamed = {"-b": "--best"}
    for line in (["-b", "5"], ["-b5"], ["-b=5"]):
        assert parser.parse_args(line).best == "5"
        assert capsys.readouterr().err == "x y: -b is now --best; the next version drops the old name\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_options_actions_and_files(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        commands()["smt-ini"].parse_args(["--print-completion", shell])
    script = capsys.readouterr().out
    assert stop.value.code == 0 and "smt-ini" in script
    assert all(word in script for word in ("check", "add-feature", "root"))


@pytest.mark.ci
def test_bash_completes(tmp_path: Path, command: Command) -> None:
    """As bash itself would ask."""
    done = command("smt-ini", "--print-completion", "bash")
    (tmp_path / "moses.ini").touch()
    ask = (
        "f=$(complete -p smt-ini | sed 's/.*-F \\([^ ]*\\).*/\\1/');"
        "COMP_WORDS=(smt-ini {words}); COMP_CWORD={place}; $f; printf '%s ' ${{COMPREPLY[@]}};"
    )
    asked = [("che", 1, "check"), ("add-feature --we", 2, "--weight"), ("check mos", 2, "moses.ini")]
    for words, place, answer in asked:
        text = done.stdout + ask.format(words=words, place=place)
        found = subprocess.run(["bash", "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert answer in found.stdout.split(), found
