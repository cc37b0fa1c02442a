"""The settings of a piece of work that may be resumed."""

from pathlib import Path

from nmt import locks
from nmt.jobs import begun


def test_what_is_written_is_read(tmp_path: Path) -> None:
    place = tmp_path / "settings.json"
    assert begun.read(place) is None
    begun.write(place, {"shard": (1, 2), "name": "é"})
    assert begun.read(place) == {"shard": [1, 2], "name": "é"}


def test_a_start_that_was_killed_can_be_repeated(tmp_path: Path) -> None:
    """Settings are written under another name first; a kill at that moment leaves them there."""
    folder = tmp_path / "work"
    assert begun.is_ours(folder, "settings.json")
    folder.mkdir()
    for name in (locks.FILE, "settings.json.part12-1"):
        (folder / name).touch()
        assert begun.is_ours(folder, "settings.json")
    (folder / "novel.txt").touch()
    assert not begun.is_ours(folder, "settings.json")
    (folder / "settings.json").touch()
    assert begun.is_ours(folder, "settings.json")
    assert not begun.is_ours(folder / "novel.txt", "settings.json")


def test_changes_are_named() -> None:
    before = {"shard": [1, 2], "a": 1, "gone": 3}
    assert begun.changed(before, {"shard": (1, 2), "a": 1}) == []
    assert begun.changed(before, {"shard": (1, 3), "a": 1, "new": None, "other": 0}) == ["shard", "other"]
