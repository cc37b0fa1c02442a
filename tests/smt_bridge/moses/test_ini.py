"""A moses.ini in memory: reading, refused files, and edits that change no other byte."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from smt_bridge.moses import ini as moses_ini
from tests.smt_bridge.decoder.models import write_model
from tests.smt_bridge.moses.systems import INI, write_system

# ---- test weights ------------------------------------------------------------------------------------------
# Weights by name: read from a file of their own or from a moses.ini, written so that they read back.


WEIGHTS = {"LM0": [0.5], "TM0": [0.2, -0.3, 1e-05], "UnknownWordPenalty0": [1.0]}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Weights have six digits, as Moses prints; written again the file has the same bytes."""
    moses_ini.write_weights(tmp_path / "w", {**WEIGHTS, "D": [1 / 3]}, ["BLEU 0.5", "of mine"])
    found = moses_ini.read_weights(tmp_path / "w")
    assert found == {**WEIGHTS, "D": [0.333333]}
    moses_ini.write_weights(tmp_path / "again", found, ["BLEU 0.5", "of mine"])
    assert (tmp_path / "again").read_bytes() == (tmp_path / "w").read_bytes()


def test_those_of_an_ini(tmp_path: Path) -> None:
    """Weights are read from [weight] to the next section."""
    (tmp_path / "moses.ini").write_text(INI)
    section = INI.partition("[weight]\n")[2].partition("[v]")[0]
    (tmp_path / "w").write_text(f"\n# of the ini\n{section}")
    assert moses_ini.read_weights(tmp_path / "moses.ini") == moses_ini.read_weights(tmp_path / "w")
    assert moses_ini.tuned_names(moses_ini.read_weights(tmp_path / "w")) == {
        "WordPenalty0",
        "TM0",
        "LR0",
        "LM0",
    }
    (tmp_path / "moses.ini").write_text(INI.partition("[weight]")[0])
    with pytest.raises(DataError, match=r"moses.ini: no weights, expected lines like 'LM0= 0.1'"):
        moses_ini.read_weights(tmp_path / "moses.ini")


def test_sections_of_weights_as_moses_reads_them(tmp_path: Path) -> None:
    """A header and a weight may have a comment, and a second [weight] continues the first."""
    path = tmp_path / "moses.ini"
    path.write_text(
        "[feature]\nKENLM name=LM0\n[weight] # tuned\nLM0= 0.5 # BLEU\n[v]\n0\n[weight]\nTM0= 1\n"
    )
    assert moses_ini.read_weights(path) == {"LM0": [0.5], "TM0": [1.0]} == moses_ini.read(str(path)).weights


def test_a_new_option_or_weight_file_keeps_the_line_end(tmp_path: Path) -> None:
    path = tmp_path / "moses.ini"
    path.write_bytes(
        b"[feature]\r\nKENLM name=LM0 path=lm\r\n[weight]\r\nLM0= 0.5 # tuned\r\n[weight-file]\r\nold\r\n"
    )
    ini = moses_ini.add_columns(moses_ini.read(str(path)), "LM0", [1])
    assert moses_ini.with_weight_file(ini, "new").lines[5:] == ["new\r", ""]
    lines = ini.lines
    assert lines[1] == "KENLM name=LM0 path=lm num-features=2\r" and lines[3] == "LM0= 0.5 1 # tuned\r"


def test_a_new_feature_needs_no_second_weight_section(tmp_path: Path) -> None:
    path = tmp_path / "moses.ini"
    path.write_text("[feature]\nWordPenalty\n[weight] # tuned\nWordPenalty0= -1\n")
    ini = moses_ini.add_feature(moses_ini.read(str(path)), "PhrasePenalty", [0.2])
    assert ini.lines[3:] == ["[weight] # tuned", "WordPenalty0= -1", "PhrasePenalty0= 0.2", ""]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("LM0 = 1", "w:2: 'LM0 = 1' is not a weight, expected 'Name= value value ...'"),
        ("LM0=1", "is not a weight"),
        ("= 1", "is not a weight"),
        ("A= 1", "w:2: A already has weights above"),
        ("LM0=", "w:2: LM0 has no weight"),
        ("LM0= 1 x", "w:2: a weight of LM0: 'x' is not a number"),
        ("LM0= nan", "w:2: a weight of LM0: 'nan' is not a number"),
    ],
)
def test_what_is_no_weight(line: str, message: str) -> None:
    with pytest.raises(DataError) as error:
        moses_ini.parse_weights([(1, "A= 1"), (2, line)], "w")
    assert message in str(error.value)


def test_what_moses_prints_instead_of_a_weight() -> None:
    assert moses_ini.parse_weights([(1, "UnknownWordPenalty0 UNTUNEABLE"), (2, "A= 1 2")], "w") == {
        "A": [1.0, 2.0]
    }


# ---- test ini ----------------------------------------------------------------------------------------------


@pytest.fixture
def system(tmp_path: Path) -> Path:
    return write_system(tmp_path)


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
    sparse = moses_ini.add_feature(ini, "WordTranslationFeature name=WT", [])
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: moses_ini.remove_column(ini, "TM0", 3), "there is no column 3"),
        (lambda: moses_ini.remove_column(ini, "LM0", 1), "has only this score"),
        (lambda: moses_ini.add_columns(ini, "XX", [1]), "no feature XX, expected one of"),
        (lambda: moses_ini.add_columns(sparse, "WT", [1]), "WT has only sparse values"),
        (lambda: moses_ini.remove_column(sparse, "WT", 1), "WT has only sparse values"),
        (lambda: moses_ini.add_feature(ini, "Foo\n", [1]), "is not a line of"),
        (lambda: moses_ini.add_feature(ini, "\nFoo", [1]), "is not a line of"),
        (lambda: moses_ini.add_feature(ini, "KENLM name=LM0 path=x", [1]), "feature LM0 exists already"),
        (lambda: moses_ini.add_feature(ini, "KENLM name=LM1 path=x", [1, 2]), "1 scores, but 2 weights"),
    ]
    for call, message in cases:
        with pytest.raises(ConfigError, match=message):
            call()


def test_features_without_a_name_keep_theirs() -> None:
    """Moses counts those of a kind; a new one comes after them, also where [weight] comes first."""
    lines = ["[weight]", "Foo0= 1", "Foo1= 2", "Foo2= 3", "[feature]", "Foo n=0", "Foo n=1", "Foo n=2", ""]
    ini = moses_ini.parse("ini", lines)
    more = moses_ini.add_feature(ini, "Foo n=3", [4])
    rest = moses_ini.remove_feature(more, "Foo1")
    assert {line.name: (line.options["n"], more.weights[line.name]) for line in more.features} == {
        f"Foo{n}": (str(n), [n + 1]) for n in range(4)
    }
    assert [(line.name, line.options["n"]) for line in rest.features] == [
        ("Foo0", "0"), ("Foo2", "2"), ("Foo3", "3")
    ]  # fmt: skip
    assert rest.weights == {"Foo0": [1], "Foo2": [3], "Foo3": [4]}


def test_names_that_are_not_utf8_have_no_place_in_an_ini() -> None:
    with pytest.raises(ConfigError, match="is not UTF-8"):
        moses_ini.with_options("KENLM name=LM0 path=lm", {"path": os.fsdecode(b"caf\xe9/lm")})
    assert (
        moses_ini.with_options("KENLM name=LM0 path=lm", {"path": "café/lm"}) == "KENLM name=LM0 path=café/lm"
    )


def test_comments_and_order(tmp_path: Path) -> None:
    """Comments after values, sections in any order, one of them twice: they are read as Moses reads them."""
    before = moses_ini.read(str(write_model(tmp_path, 1) / "moses.ini"))
    head, _, tail = (tmp_path / "moses.ini").read_text().partition("[weight]\n")
    lines = tail.split("\n")
    text = (
        "[weight] # first\n"
        + lines[0]
        + " # a weight\n"
        + head.replace("Distortion\n", "Distortion   # of jumps\n")
        + "[weight]\n"
        + "\n".join(lines[1:])
    )
    found = moses_ini.parse("ini", text.split("\n"))
    assert found.weights == before.weights and [line.name for line in found.features] == [
        line.name for line in before.features
    ]
    changed = moses_ini.set_weights(found, {"WordPenalty0": [0.5]})
    assert changed.weights["WordPenalty0"] == [0.5] and changed.lines[1].endswith(" # a weight")
    more = moses_ini.parse(
        "ini",
        [
            moses_ini.with_options(line, {"tuneable": "false"}) if line.startswith("Distortion ") else line
            for line in found.lines
        ],
    )
    assert more.feature("Distortion0").options == {"tuneable": "false"}


# ---- test ini paths ----------------------------------------------------------------------------------------


PATHS_INI = """[feature]
WordPenalty
PhraseDictionaryMemory name=TM0 num-features=1 path=tables/t input-factor=0
KENLM name=LM0 path=/there/lm order=3
PhraseDictionaryCompact name=TM1 num-features=1 path=compact
LexicalReordering name=R0 num-features=6 path=nowhere type=x
[weight]
TM0= 1
"""


def test_paths_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are resolved from the working directory, then from the ini's folder, with the endings that Moses
    adds; every other byte stays."""
    here, beside = tmp_path / "here", tmp_path / "beside"
    (here / "tables").mkdir(parents=True)
    beside.mkdir()
    (here / "tables" / "t.gz").touch()
    (beside / "compact.minphr").touch()
    monkeypatch.chdir(here)
    ini = moses_ini.parse("moses.ini", PATHS_INI.split("\n"))
    found = "\n".join(moses_ini.with_absolute_paths(ini, [".", beside]).lines)
    expected = PATHS_INI.replace("path=tables/t ", f"path={here}/tables/t ").replace(
        "path=compact", f"path={beside}/compact"
    )
    assert found == expected.replace("path=nowhere", f"path={here}/nowhere")


def test_a_blank_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "my model").mkdir()
    with pytest.raises(ConfigError, match="contains a blank"):
        moses_ini.with_absolute_paths(
            moses_ini.parse("moses.ini", PATHS_INI.split("\n")), [tmp_path / "my model"]
        )


def test_a_number_sign_would_cut_a_path(tmp_path: Path) -> None:
    """Moses reads # as the start of a comment anywhere in a line."""
    ini = moses_ini.parse("moses.ini", PATHS_INI.split("\n"))
    (tmp_path / "c#").mkdir()
    edits: list[Callable[[], object]] = [
        lambda: moses_ini.with_absolute_paths(ini, [tmp_path / "c#"]),
        lambda: moses_ini.set_path(ini, "LM0", "c#/lm"),
        lambda: moses_ini.with_weight_file(ini, "c#/weights"),
    ]
    for edit in edits:
        with pytest.raises(ConfigError, match="contains #"):
            edit()
    with pytest.raises(ConfigError, match="contains a blank"):
        moses_ini.set_path(ini, "LM0", "my lm")


def test_other_blanks_are_part_of_a_path(tmp_path: Path) -> None:
    """As in Moses, only blanks and tabs end an option: NBSP is a character like others."""
    ini = moses_ini.parse("moses.ini", PATHS_INI.split("\n"))
    (tmp_path / "mon\u00a0lm\u3000").touch()
    edited = moses_ini.set_path(ini, "LM0", "mon\u00a0lm\u3000")
    again = moses_ini.set_path(edited, "LM0", "x")
    assert edited.feature("LM0").options == again.feature("LM0").options | {"path": "mon\u00a0lm\u3000"}
    moved = moses_ini.with_absolute_paths(edited, [tmp_path])
    assert moved.feature("LM0").options["path"] == str(tmp_path / "mon\u00a0lm\u3000")
    last = moses_ini.parse("moses.ini", ["[feature]", "KENLM name=LM0 path=lm\u3000", "[weight]", "LM0= 1"])
    assert last.feature("LM0").options["path"] == "lm\u3000"
    longer = moses_ini.set_path(last, "LM0", "classes", "classes")
    assert longer.lines[1] == "KENLM name=LM0 path=lm\u3000 classes=classes"
    with pytest.raises(ConfigError, match="contains a blank"):
        moses_ini.set_path(last, "LM0", " lm")


def test_an_ini_that_moves_finds_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are resolved from the working directory, then from the ini's folder; missing files keep their
    path, and nothing changes if the ini stays in its folder."""
    model = tmp_path / "model"
    (model / "tables").mkdir(parents=True)
    (model / "tables" / "t.gz").touch()
    (tmp_path / "compact.minphr").touch()
    monkeypatch.chdir(tmp_path)
    ini = moses_ini.parse("model/moses.ini", PATHS_INI.split("\n"))
    assert moses_ini.with_moved_paths(ini, "model/other.ini").lines == ini.lines
    expected = PATHS_INI.replace("path=tables/t ", f"path={model}/tables/t ")
    expected = expected.replace("path=compact", f"path={tmp_path}/compact")
    assert "\n".join(moses_ini.with_moved_paths(ini, "elsewhere/moses.ini").lines) == expected
    assert moses_ini.folder_beside(ini) == "model"
    monkeypatch.chdir(model)
    assert moses_ini.folder_beside(moses_ini.parse("moses.ini", PATHS_INI.split("\n"))) == ""
