"""The settings of a piece of work that may be resumed."""

from pathlib import Path

from smt_bridge.jobs import begun


def test_what_is_written_is_read(tmp_path: Path) -> None:
    place = tmp_path / "settings.json"
    assert begun.read(place) is None
    begun.write(place, {"shard": (1, 2), "name": "é"})
    assert begun.read(place) == {"shard": [1, 2], "name": "é"}


def test_changes_are_named() -> None:
    before = {"shard": [1, 2], "a": 1, "gone": 3}
    assert begun.changed(before, {"shard": (1, 2), "a": 1}) == []
    assert begun.changed(before, {"shard": (1, 3), "a": 1, "new": None, "other": 0}) == ["shard", "other"]
