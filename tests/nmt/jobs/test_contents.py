"""Files that have to be the same wherever a job is computed."""

import platform
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.jobs import contents


def test_the_same_files_are_accepted_and_others_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).write_text(name)
    found = contents.of(["a", tmp_path / "b"])
    assert list(found) == [str(tmp_path / "a"), str(tmp_path / "b")]
    contents.check(found)
    Path("b").write_text("c")
    with pytest.raises(DataError, match=f"b: is another file on {platform.node()} than where the job was"):
        contents.check(found)
    Path("a").unlink()
    with pytest.raises(DataError, match=f"a: cannot read: No such file or directory on {platform.node()}; "):
        contents.check(found)
