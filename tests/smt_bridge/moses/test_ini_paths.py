from pathlib import Path

import pytest

from nmt.errors import ConfigError
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses import ini_paths

INI = """[feature]
WordPenalty
PhraseDictionaryMemory name=TM0 num-features=1 path=tables/t input-factor=0
KENLM name=LM0 path=/there/lm order=3
PhraseDictionaryCompact name=TM1 num-features=1 path=compact
LexicalReordering name=R0 num-features=6 path=nowhere type=x
[weight]
TM0= 1
"""


def test_paths_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here, else from beside the ini; endings that Moses adds count; every other byte stays."""
    here, beside = tmp_path / "here", tmp_path / "beside"
    (here / "tables").mkdir(parents=True)
    beside.mkdir()
    (here / "tables" / "t.gz").touch()
    (beside / "compact.minphr").touch()
    monkeypatch.chdir(here)
    ini = moses_ini.parse("moses.ini", INI.split("\n"))
    found = "\n".join(ini_paths.whole(ini, [".", beside]).lines)
    expected = INI.replace("path=tables/t ", f"path={here}/tables/t ").replace(
        "path=compact", f"path={beside}/compact"
    )
    assert found == expected.replace("path=nowhere", f"path={here}/nowhere")


def test_a_blank_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "my model").mkdir()
    with pytest.raises(ConfigError, match="contains a blank"):
        ini_paths.whole(moses_ini.parse("moses.ini", INI.split("\n")), [tmp_path / "my model"])


def test_an_ini_that_moves_finds_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From here, else from beside it; what is nowhere stays, and so does everything where it does not
    move."""
    model = tmp_path / "model"
    (model / "tables").mkdir(parents=True)
    (model / "tables" / "t.gz").touch()
    (tmp_path / "compact.minphr").touch()
    monkeypatch.chdir(tmp_path)
    ini = moses_ini.parse("model/moses.ini", INI.split("\n"))
    assert ini_paths.moved(ini, "model/other.ini").lines == ini.lines
    expected = INI.replace("path=tables/t ", f"path={model}/tables/t ")
    expected = expected.replace("path=compact", f"path={tmp_path}/compact")
    assert "\n".join(ini_paths.moved(ini, "elsewhere/moses.ini").lines) == expected
    assert ini_paths.beside_alone(ini) == "model"
    monkeypatch.chdir(model)
    assert ini_paths.beside_alone(moses_ini.parse("moses.ini", INI.split("\n"))) == ""
