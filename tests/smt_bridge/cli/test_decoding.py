"""smt-decode and smt-tune: no output is a file that the ini names, and numbers have the ranges of the
configuration."""

from pathlib import Path

import pytest

from nmt.cli import options
from smt_bridge.cli import decode, decoding, tune
from smt_bridge.cli.decoding import LineBlock, PhraseTranslator
from smt_bridge.hybrid import folder
from smt_bridge.moses import ini as moses_ini
from tests.smt_bridge.decoder.models import sentence, write_model

# ---- test decoding -----------------------------------------------------------------------------------------


INI = """[feature]
UnknownWordPenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=table
KENLM name=LM0 factor=0 path=lm.arpa order=3

[weight]
TranslationModel0= 1 1 1 1
LM0= 1
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder whose table is called table.gz, as Moses finds it too."""
    for name, text in (
        ("moses.ini", INI),
        ("table.gz", "a"),
        ("lm.arpa", "b"),
        ("in", "c\n"),
        ("ref", "d\n"),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", ["moses.ini", "table.gz", "lm.arpa"])
@pytest.mark.parametrize("option", ["--output", "--n-best-list", "smt-tune --output"])
def test_files_of_the_model_are_no_outputs(
    model: Path, name: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    if option.startswith("smt-tune"):
        status = tune.main(
            [str(model), "-s", str(model / "in"), "-r", str(model / "ref"), "-o", str(model / name)]
        )
    else:
        status = decode.main([str(model), "-i", str(model / "in"), option, str(model / name)])
    assert status == 2 and f"{name}: is read too (MODEL " in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before


@pytest.mark.parametrize(
    "given",
    [
        ["--stack", "-1"],
        ["--stack", "\u00b2"],
        ["--beam-threshold", "nan"],
        ["--distortion-limit", "-2"],
        ["--buffer", "0"],
    ],
)
def test_numbers_out_of_range(model: Path, given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        decode.main([str(model), *given])
    assert stop.value.code == 2 and f"argument {given[0]}: " in capsys.readouterr().err


def test_who_decodes() -> None:
    parser = options.Parser("test", "")
    decoding.add_search(parser)
    for words, threads in (
        ([], True),
        (["--workers", "3"], True),
        (["--executor", "local"], True),
        (["--executor", "processes"], False),
        (["--cluster", "127.0.0.1:8786"], False),
    ):
        assert decoding.uses_threads(parser.parse_args(words)) == threads


def test_an_ini_for_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is tried from here, then beside it; of a system only beside it."""
    write_model(tmp_path / "model", 1)
    (tmp_path / "table").touch()
    monkeypatch.chdir(tmp_path)
    ini = moses_ini.read("model/moses.ini")
    for beside, table in ((False, tmp_path / "table"), (True, tmp_path / "model" / "table")):
        made = decoding.absolute_ini(ini, beside)
        found = {line.options["path"] for line in made.features if "path" in line.options}
        assert str(table) in found and str(tmp_path / "model" / "lm0") in found


# ---- test translator ---------------------------------------------------------------------------------------
# Blocks of lines as smt-decode computes them.


LINES = [sentence(number, 4) for number in range(1, 4)] + [""]


def made(model: Path, *words: object) -> PhraseTranslator:
    args = decode.parser().parse_args([str(model), "--no-cache", *map(str, words)])
    hybrid = decoding.load_hybrid(args)
    ini = moses_ini.read(hybrid.ini if hybrid else str(model / "moses.ini"))
    return decoding.load_translator(args, decoding.absolute_ini(ini, bool(hybrid)))


def test_lines_of_each_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are those of the input; the header of a table comes before its first line."""
    monkeypatch.chdir(write_model(tmp_path, 1))
    work = made(tmp_path, "--n-best-list", "list", "--n-best", 2, "--explain", "table")
    marked = list(work.decoder.all_marked(LINES, "in"))
    lines = list(decoding.split_lines(work.args, work.hybrid, LINES))
    texts, entries, table = work.lines(LineBlock(0, lines, marked))
    assert texts == work.decoder.translate(LINES)
    assert {entry.split(" ||| ")[0] for entry in entries} == {"0", "1", "2", "3"}
    parts = [
        work.lines(LineBlock(first, lines[first : first + 2], marked[first : first + 2])) for first in (0, 2)
    ]
    assert [texts, entries, table] == [a + b for a, b in zip(*parts, strict=True)]


def test_the_files_of_a_model(tmp_path: Path) -> None:
    write_model(tmp_path, 1)
    names = {path.name for path in made(tmp_path).models()}
    assert {"moses.ini", "table", "lm0"} <= names


def test_the_files_of_a_system(hybrid_system: Path) -> None:
    names = {path.name for path in made(hybrid_system).models()}
    assert {folder.FILE, *(Path(name).name for name in folder.read(hybrid_system).parts)} == names
