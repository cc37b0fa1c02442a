"""Commands given damaged files: exit status 0 or 2, a last line that says why, no traceback, nothing
half-written."""

import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given

from tests.fuzz.cases import options
from tests.fuzz.files import NBEST, TABLE, text
from tests.fuzz.mutations import mutated
from tests.fuzz.smt_readers import INI
from tests.fuzz.test_readers import bounded

LINES = ("the cat sat", "", "a b c d e", "été \u2028 l' homme")
Make = Callable[[Path], object]

# A command line in which `<` is the damaged file and `>` the output.
COMMANDS: dict[str, tuple[Make, str]] = {
    "nmt.cli.vocab": (text(*LINES), "-i < -o >"),
    "nmt.cli.tokenize": (text(*LINES), "-l fr -i < -o >"),
    "nmt.cli.subword": (text("#version: 0.2", "l o", "lo w</w>"), "apply < -i ok -o >"),
    "nmt.cli.clean": (text(*LINES), "-s < -t ok --output-source > --output-target other"),
    "nmt.cli.ngram": (text(*LINES), "--order 2 --discount-fallback --skip-symbols -i < -o >"),
    "nmt.papers.multiscale.command": (text("#version: 1 dictionary size=2", "a\t5", "b\t3"), "table < -o >"),
    "nmt.cli.analyze": (text("-1.5", "-2", "-0.25", "-1"), "scores --first < --second numbers"),
    "smt_bridge.cli.ini": (text(*INI), "show <"),
    "smt_bridge.cli.filter_table": (text(*TABLE), "< -i ok -o >"),
    "smt_bridge.cli.tune_nbest": (text(*NBEST), "--n-best < -r ok --method kbmira -o >"),
}


def fuzz(name: str, folder: Path, cases: int) -> None:
    make, line = COMMANDS[name]
    make(folder)
    (folder / "ok").write_text("".join(row + "\n" for row in LINES), encoding="utf-8")
    (folder / "numbers").write_text("-1\n-2\n-3\n-4\n", encoding="utf-8")
    damaged = folder / "file"
    names = {"<": "file", ">": "out", "ok": "ok", "numbers": "numbers", "other": "other"}
    argv = [str(folder / names[word]) if word in names else word for word in line.split()]
    main = import_module(name).main

    @options(cases)
    @given(mutated(damaged.read_bytes()))
    def each(data: bytes) -> None:
        damaged.write_bytes(data)
        told = io.StringIO()
        with bounded(), redirect_stderr(told), redirect_stdout(io.TextIOWrapper(io.BytesIO())):
            try:
                status = main(argv)
            except SystemExit as stop:
                status = stop.code
        assert status in (0, 2), told.getvalue()
        if status == 2:
            last = told.getvalue().rstrip("\n").split("\n")[-1]
            assert "Traceback" not in told.getvalue() and ":" in last and len(last) < 2000
        assert not [path for path in folder.rglob("*") if ".part" in path.name]

    each()


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_end_with_0_or_2(name: str, tmp_path: Path) -> None:
    fuzz(name, tmp_path, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_end_with_0_or_2_in_500_cases(name: str, tmp_path: Path) -> None:
    fuzz(name, tmp_path, 500)
