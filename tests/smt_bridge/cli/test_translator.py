"""Blocks of lines as smt-decode computes them."""

from pathlib import Path

import pytest

from smt_bridge.cli import decode, decoding, translator
from smt_bridge.cli.translator import Block, PhraseTranslator
from smt_bridge.hybrid import folder
from smt_bridge.moses import ini as moses_ini
from tests.smt_bridge.decoder.models import sentence, write_model

LINES = [sentence(number, 4) for number in range(1, 4)] + [""]


def made(model: Path, *words: object) -> PhraseTranslator:
    args = decode.parser().parse_args([str(model), "--no-cache", *map(str, words)])
    hybrid = translator.hybrid_of(args)
    ini = moses_ini.read(hybrid.ini if hybrid else str(model / "moses.ini"))
    return translator.load(args, decoding.elsewhere(ini, bool(hybrid)))


def test_lines_of_each_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are those of the input; the header of a table comes before its first line."""
    monkeypatch.chdir(write_model(tmp_path, 1))
    work = made(tmp_path, "--n-best-list", "list", "--n-best", 2, "--explain", "table")
    marked = list(work.decoder.all_marked(LINES, "in"))
    lines = list(translator.split_lines(work.args, work.hybrid, LINES))
    texts, entries, table = work.lines(Block(0, lines, marked))
    assert texts == work.decoder.translate(LINES)
    assert {entry.split(" ||| ")[0] for entry in entries} == {"0", "1", "2", "3"}
    parts = [
        work.lines(Block(first, lines[first : first + 2], marked[first : first + 2])) for first in (0, 2)
    ]
    assert [texts, entries, table] == [a + b for a, b in zip(*parts, strict=True)]


def test_the_files_of_a_model(tmp_path: Path) -> None:
    write_model(tmp_path, 1)
    names = {path.name for path in made(tmp_path).models()}
    assert {"moses.ini", "table", "lm0"} <= names


def test_the_files_of_a_system(hybrid_system: Path) -> None:
    names = {path.name for path in made(hybrid_system).models()}
    assert {folder.FILE, *(Path(name).name for name in folder.read(hybrid_system).parts)} == names
