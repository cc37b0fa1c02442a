"""Arguments of commands: numbers in their range; no output is an input, a part of one, or another output."""

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations, product
from pathlib import Path
from types import ModuleType

import pytest

from nmt.cli import arguments, options, train, translate
from nmt.cli.analyze import ANALYSES
from nmt.cli.arguments import check_separate, names_file
from nmt.config.settings import number
from nmt.errors import ConfigError
from nmt.io import manifest
from tests import fork_server
from tests.conftest import refusal

# Each command line as words: `<name` is a file or folder that is read, `>name` one that is written.
LINES = {
    "vocab": ["--input <text --output >out"],
    "clean": [
        "--source <a --target <b --output-source >x --output-target >y --report >report",
        "--parallel <a <b --output-source >x --output-target >y --report >report",
    ],
    "init": [
        ">folder --source <a --target <b --dev-source <c --dev-target <d",
        ">folder --parallel <a <b --dev-parallel <c <d",
    ],
    "tokenize": ["--input <text --output >out --language en"],
    "truecase": [
        "train --input <text --output >out",
        "apply <model --input <text --output >out",
        "undo --input <text --output >out",
    ],
    "subword": [
        "learn --input <a <b --output >out",
        "apply <codes --input <text --output >out",
        "undo --input <text --output >out",
    ],
    "ngram": ["--input <text --word-classes <classes --output >out --work >work"],
    "dictionary": [
        "learn --input <text --output >out",
        "table <dictionary --output >out",
        "segment <dictionary --input <text --output >out",
        "arcs <dictionary --input <text --output >out",
    ],
    "perplexity": ["<model --backoff <arpa --input <text --output >out"],
    "interpolate": ["<model <model2 --input <dev --contexts <train --output >out"],
    "sample": ["<run --output >out"],
    "score": [
        "<run <other --source <a --target <b --alignment <points --output >out --alignments >links",
        "<model --input <text --backoff <arpa --output >out",
    ],
    "translate": [
        (
            "<run <other --input <text --prefix <prefixes --shortlist <lex --lexicon <lex2 --replace-unknown "
            "--terms <t --constraints <c --avoid <v --avoid-lines <w --output >out --alignments >points"
        ),
        "<run --document <document.txt --terms <t --output >out",
    ],
    "average": ["<run --output >out"],
    "analyze": [
        "vectors <run --output >out",
        "report <run <text --source <a --reference <r <r2 --vocabulary <v <v2 --train <t <t2 --output >page",
    ],
}
FIGURES = {
    "by-length": "--source <a --reference <r --hypothesis <h <h2",
    "by-unknown": "--source <a --reference <r --hypothesis <h --vocabulary <v <v2",
    "by-rare": "--source <a --reference <r --hypothesis <h --train <t <t2",
    "by-segmented": "--source <a --reference <r --hypothesis <h --run <run",
    "by-frequency": "--reference <r --hypothesis <h --train <t",
    "ngrams": "--reference <r --hypothesis <h <h2",
    "differences": "--source <a --reference <r --hypothesis <h <h2 --comet-model <model",
    "ngram-counts": "--input <text --dev <other",
    "alignment-error": "--gold <gold --hypothesis <a <b",
    "subsets": "--source <a --reference <r --hypothesis <h --vocabulary <v <v2 --train <t <t2",
    "compare": "--source <a --reference <r <r2 --baseline <b --hypothesis <h --comet-model <model",
    "samples": "--source <a --reference <r --hypothesis <h --vocabulary <v <v2",
    "scores": "--first <a --second <b",
    "phrases": "<run --table <table",
    "words": "<run",
    "neighbors": "<run --words word",
    "phrase-map": "<run --input <text",
    "parse": "<run --input <text",
    "computation": "<run <text",
    "attention": "<run --input <text",
    "curves": "<run <run2",
}
Capture = pytest.CaptureFixture[str]
ALL = [(f"nmt-{name}", f"{line} --log >log") for name, lines in LINES.items() for line in lines]


def told(folder: Path, capsys: Capture, command: str, words: Sequence[str], link: str = "") -> str:
    """The one line with which a command refuses its words; in `folder`, where it runs, nothing changes. The
    inputs are written there; `link`: an input to which the links soft and hard lead."""
    with chdir(folder):
        for given in (word[1:] for word in words if word.startswith("<")):
            Path(given).write_text(f"text of {given}\n", encoding="utf-8")
        for name, make in (("soft", os.symlink), ("hard", os.link)):
            Path(name).unlink(missing_ok=True)
            if link:
                make(link, name)
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        message = refusal(command_module(command).main, capsys, *(word.lstrip("<>") for word in words))
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    return message


def check_inputs(folder: Path, capsys: Capture, command: str, line: str) -> None:
    """No output may be one of the inputs, by whatever name."""
    words = line.split()
    inputs = [word[1:] for word in words if word.startswith("<")]
    for place, given in product(places_of_outputs(words), inputs):
        for same in (given, f"../{folder.name}/{given}", "soft", "hard"):
            message = told(folder, capsys, command, [*words[:place], same, *words[place + 1 :]], given)
            assert "is also read" in message and given in message, (words[place], same, message)


def check_outputs(folder: Path, capsys: Capture, command: str, line: str) -> None:
    """No output may be another one."""
    words = line.split()
    for place, other in combinations(places_of_outputs(words), 2):
        same = f"../{folder.name}/{words[other][1:]}"
        message = told(folder, capsys, command, [*words[:place], same, *words[place + 1 :]])
        assert "is also written" in message, (words[place], words[other])


def places_of_outputs(words: Sequence[str]) -> list[int]:
    return [place for place, word in enumerate(words) if word.startswith(">")]


def command_module(name: str) -> ModuleType:
    """The module of a command, by the entry points of setup.cfg."""
    return import_module(fork_server.entry_points()[name.replace("_", "-")].module)


@pytest.mark.parametrize(("command", "line"), ALL)
def test_no_output_of_any_command_is_one_of_its_inputs(
    command: str, line: str, tmp_path: Path, capsys: Capture
) -> None:
    check_inputs(tmp_path, capsys, command, line)


@pytest.mark.parametrize(("command", "line"), ALL)
def test_no_output_of_any_command_is_another_output(
    command: str, line: str, tmp_path: Path, capsys: Capture
) -> None:
    check_outputs(tmp_path, capsys, command, line)


@pytest.mark.parametrize(("kind", "line"), FIGURES.items())
@pytest.mark.ci
def test_no_figure_or_table_replaces_what_is_analyzed(
    kind: str, line: str, tmp_path: Path, capsys: Capture
) -> None:
    for name in ("tsv", "png", "svg"):
        for given in (word for word in line.split() if word.startswith("<")):
            words = [f"<{kind}.{name}" if word == given else word for word in line.split()]
            message = told(tmp_path, capsys, "nmt-analyze", [kind, *words, "--output", "."])
            assert "is also read" in message


class Built(Exception):
    pass


@pytest.fixture
def parsers(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[argparse.ArgumentParser]]:
    """The parsers of a command, those of its sub-commands too, as it makes them."""

    def stop(parser: options.Parser, args: object = None, namespace: object = None) -> None:
        raise Built(parser)

    def of(name: str) -> list[argparse.ArgumentParser]:
        with monkeypatch.context() as patch:
            for method in ("parse_known_args", "parse_known_intermixed_args"):
                patch.setattr(options.Parser, method, stop)
            with pytest.raises(Built) as built:
                command_module(f"nmt-{name}").command([])
        return list(walk(built.value.args[0]))

    return of


def walk(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from walk(below)


@pytest.mark.parametrize("name", LINES)
def test_the_table_above_names_every_file_of_every_command(
    name: str, parsers: Callable[[str], list[argparse.ArgumentParser]]
) -> None:
    lines = [*LINES[name], *(FIGURES.values() if name == "analyze" else ())]
    given = {"--log", *(word for line in lines for word in line.split())}
    for parser in parsers(name):
        for action in parser._actions:
            if names_file(action) and action.option_strings:
                assert given & set(action.option_strings), action.option_strings
            named = {"FILE", "DIR", "RUN_DIR", "LEX", "ARPA"} & set(str(action.metavar).split("|"))
            assert not named or names_file(action) or (name == "analyze" and action.dest == "output"), action


@pytest.mark.parametrize("name", [*LINES, "train"])
def test_numbers_of_every_command_are_strict(
    name: str, parsers: Callable[[str], list[argparse.ArgumentParser]]
) -> None:
    """No int() or float() of Python's: digits of other scripts, nan and numbers without end are refused."""
    for parser in parsers(name):
        for action in parser._actions:
            assert action.type not in (int, float, complex), action
            if callable(action.type) and action.type is not str and not names_file(action):
                for text in ("²", "nan", "9" * 5000, "1_0", "", "--"):
                    with pytest.raises(argparse.ArgumentTypeError) as refused:
                        action.type(text)
                    assert len(str(refused.value)) < 200


def test_options_between_the_values_of_a_configuration(tmp_path: Path, capsys: Capture) -> None:
    """nmt-train takes options anywhere; they are checked as those of other commands."""
    config = tmp_path / "train.yaml"
    config.write_text("run: x\n", encoding="utf-8")
    assert "is also read" in refusal(train.main, capsys, config, "--log", config, "seed=1")
    assert config.read_text("utf-8") == "run: x\n"
    assert "unrecognized" not in refusal(train.main, capsys, config, "--init_from", tmp_path / "no", "seed=1")
    assert "did you mean --preset?" in refusal(train.main, capsys, config, "--prset", "small", "seed=1")


def test_every_kind_of_analysis_is_in_the_table() -> None:
    assert set(ANALYSES) == {*FIGURES, "report", "vectors"}


@pytest.mark.parametrize("listed", [True, False])
def test_parts_of_a_run_that_is_read_are_no_outputs(listed: bool, tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "source.vocab").write_text("words", encoding="utf-8")
    (run / "version").write_text("nmt-run 2", encoding="utf-8")
    if listed:
        manifest.write(run, ["source.vocab"])
    words = [run, "--input", os.devnull, "--output", run / "source.vocab"]
    assert "is part of" in refusal(translate.main, capsys, *words)
    assert (run / "source.vocab").read_text(encoding="utf-8") == "words"


def test_redirected_streams_are_compared_by_their_files(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("a\n", encoding="utf-8")
    saved = os.dup(0)
    try:
        with open(text, "rb") as stream:
            os.dup2(stream.fileno(), 0)
        with pytest.raises(ConfigError, match="is also read"):
            check_separate([("--input", "-")], [("--output", str(text))])
        check_separate([("--input", "-")], [("--output", str(tmp_path / "other"))])
    finally:
        os.dup2(saved, 0)
        os.close(saved)


def test_one_stream_is_read_or_written_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="only one of them can be stdin"):
        check_separate([("--source", "-"), ("--target", "-")], [])
    with pytest.raises(ConfigError, match="is also written"):
        check_separate([], [("--output", "-"), ("--alignments", "-")])
    check_separate(
        [("--source", "a"), ("--target", "a")], [("--output", os.devnull), ("--alignments", os.devnull)]
    )  # what is written nowhere


@dataclass
class Config:
    size: int = number(5, least=1, most=20)
    share: float = number(0.5, above=0, below=1)
    sizes: tuple[int, ...] = number((0,), least=0)


@pytest.mark.parametrize(
    "argv",
    [
        ["--size", "0"],
        ["--size", "21"],
        ["--size", "1.5"],
        ["--share", "0"],
        ["--share", "1"],
        ["--sizes", "1", "-1"],
    ],
)
def test_options_have_the_range_of_their_field(argv: list[str], capsys: Capture) -> None:
    parser = options.Parser("test", "")
    arguments.add_setting(parser, Config, "size")
    arguments.add_setting(parser, Config, "share")
    arguments.add_setting(parser, Config, "sizes", nargs="+")
    assert arguments.parse_settings(Config, parser.parse_args([])) == Config()
    with pytest.raises(SystemExit):
        parser.parse_args(argv)
    assert "expected" in capsys.readouterr().err


def test_a_checkpoint_is_best_last_or_a_number() -> None:
    assert [arguments.checkpoint(text) for text in ("best", "last", "007")] == ["best", "last", "7"]
    for text in ("²", "-1", "1" * 5000, "beste"):
        with pytest.raises(
            argparse.ArgumentTypeError, match="expected best, last or the number of an update"
        ):
            arguments.checkpoint(text)
