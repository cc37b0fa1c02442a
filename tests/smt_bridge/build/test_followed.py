"""Messages of other processes."""

import logging
from pathlib import Path

import pytest

from smt_bridge.build.followed import Followed


def test_only_new_and_whole_lines_are_shown_with_their_level(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("smt_bridge"), "propagate", True)
    caplog.set_level(logging.INFO)
    path = tmp_path / "joint.log"
    path.write_text("[2026-01-01 10:00:00] INFO old\n")
    followed = Followed(tmp_path)
    with open(path, "a", encoding="utf-8") as out:
        out.write("[2026-01-01 10:00:01] WARNING take [care]\n[2026-01-01 10:00:02] INFO ha")
    (tmp_path / "cslm.log").write_text("[2026-01-01 10:00:01] INFO begun\n")
    followed.show()
    with open(path, "a", encoding="utf-8") as out:
        out.write("lf\n")
    followed.show()
    followed.show()
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("INFO", "cslm: begun"), ("WARNING", "joint: take [care]"), ("INFO", "joint: half"),
    ]  # fmt: skip


def test_nothing_to_follow(tmp_path: Path) -> None:
    Followed(tmp_path / "none").show()
