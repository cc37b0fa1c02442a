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
