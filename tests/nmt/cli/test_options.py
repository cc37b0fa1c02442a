"""The parser of every command, and the options that commands share; those of nmt-serve."""

import argparse
import logging
import shutil
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from docs.site import man_pages
from nmt.cli import messages, options, serve
from nmt.cli.options import Parser
from nmt.compute.resources import bounded_threads
from nmt.errors import ConfigError
from tests.conftest import Command, refusal
from tests.nmt.serve.engines import TRANSLATOR

# ---- test options ------------------------------------------------------------------------------------------


def test_as_many_threads_as_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """More are cut to four a processor, with one line; sixteen always work, so that no result of a larger
    machine depends on this one."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(6)), raising=False)
    assert [bounded_threads(count) for count in (1, 16, 24, 25, 100_000)] == [1, 16, 24, 24, 24]
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0}, raising=False)
    assert [bounded_threads(count) for count in (16, 17)] == [16, 16]
    parser = options.Parser("a-command", "")
    options.add_compute(parser)
    parser.add_argument("--workers", type=options.positive, default=1)
    args = parser.parse_args(["--threads", "100000", "--workers", "16"])
    assert (args.threads, args.workers) == (16, 16)
    assert (
        capsys.readouterr().err == "a-command: --threads 100,000: more than this machine can use; using 16\n"
    )


def test_without_torch_a_command_says_where_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    """And a module of ours that is missing is an error of ours."""

    def missing(name: str) -> int:
        def command(argv: Sequence[str] | None) -> None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        return options.run(command, [])

    assert missing("torch") == 2
    told = capsys.readouterr().err
    assert "torch is not installed" in told and "whl/cpu" in told and told.count("\n") == 1
    with pytest.raises(ModuleNotFoundError):
        missing("nmt.nosuch")


def test_both_packages_write_to_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    options.start_log("a-command", Namespace(quiet=True))
    for package in messages.PACKAGES:
        logging.getLogger(f"{package}.x").info("not shown")
        logging.getLogger(f"{package}.x").warning("two\nlines")
    assert capsys.readouterr().err == "a-command: two lines\n" * 2


@pytest.mark.ci
def test_threads_of_a_configuration() -> None:
    """A run of another machine goes on with fewer; without the bound this is a segmentation fault."""
    script = (
        "import argparse; from nmt.cli import options; options.start_log('x', argparse.Namespace()); "
        "print(options.set_up_torch('cpu', 10**6, "
        "'mkl')); import torch; torch.randn(999, 999).sum()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0 and done.stderr.startswith(
        "x: threads: 1,000,000: more than this machine can use; using "
    ), done
    assert f" {bounded_threads(10**6)} threads" in done.stdout


def test_int8_off_the_processor_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's product of int8 crashes on a GPU for a beam's few rows."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    for device in ("cuda", "cuda:1", "auto"):
        with pytest.raises(ConfigError) as error:
            options.precision_contexts("int8", [], device)
        assert str(error.value) == "--precision int8: computes on the CPU only; use bf16, or --device cpu"
    assert options.precision_contexts("int8", [], "cpu") == []


@pytest.mark.parametrize(("argv", "frozen"), [("None", True), ("[]", False)])
def test_nothing_is_searched_for_garbage_when_a_process_ends(argv: str, frozen: bool) -> None:
    """A command called from Python leaves the collector alone."""
    script = f"import gc; from nmt.cli import options; options.run(lambda argv: None, {argv}); "
    script += "print(gc.get_freeze_count() > 0)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{frozen}\n"


# ---- test parser -------------------------------------------------------------------------------------------
# What all commands say about themselves, and about typing mistakes.


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


# ---- nmt-serve ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "the following arguments are required: NAME=PATH"),
        (["path"], "'path': expected NAME=PATH"),
        (["a=x", "b=y", "a=z"], "a: two engines"),
        (
            ["a=x", "--host", "0.0.0.0", "--port", "0"],
            "--host 0.0.0.0: other machines can reach this address",
        ),
        (["a=x", "--token", "/nowhere"], "/nowhere: "),
        (["a=/nowhere", "--port", "0"], "/nowhere: does not exist; expected a run directory"),
        (["a=x", "--port", "70000"], "70000 is out of range, expected 0 to 65535"),
    ],
)
def test_what_is_refused(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refusal(serve.main, capsys, *options, "--matmul", "mkl")


def test_the_first_run_directory_decides_on_matrix_products() -> None:
    runs = str(TRANSLATOR)
    assert serve.first_run([("a", "/nowhere"), ("b", f"{runs},{runs}")]) == runs
    assert serve.first_run([("a", "/nowhere")]) is None


@pytest.mark.ci
def test_without_its_libraries_it_says_how_to_install_them() -> None:
    code = (
        "import sys; sys.modules['starlette'] = None; from nmt.cli.serve import main; sys.exit(main(['a=x']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "pip install 'nmt-smt[serve]'" in done.stderr
    assert done.stderr.count("\n") == 1
