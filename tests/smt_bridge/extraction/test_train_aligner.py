"""A training in a process of its own ends with the process that started it."""

import subprocess
import sys
from pathlib import Path

import pytest

from nmt.jobs import shards
from smt_bridge.extraction import train_aligner
from smt_bridge.extraction.alignment import ALIGNERS


def test_links_instead_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an aligner that cannot keep one; the source word first."""

    class Corner:
        """The last word of the first text with the first word of the second."""

        def check(self) -> None:
            pass

        def align(
            self, sources: list[list[str]], targets: list[list[str]]
        ) -> list[frozenset[tuple[int, int]]]:
            return [frozenset([(len(source) - 1, 0)]) for source in sources]

    monkeypatch.setitem(ALIGNERS, "corner", Corner())
    (tmp_path / "s").write_text("a b c\nd\n")
    (tmp_path / "t").write_text("x y\nz\n")
    shards.cut(tmp_path, [str(tmp_path / "s"), str(tmp_path / "t")], 1)
    for way, expected in ((0, "2-0\n0-0\n"), (1, "0-1\n0-0\n")):
        train_aligner.train(tmp_path, "corner", way, str(tmp_path / "out"))
        assert (tmp_path / f"out{train_aligner.LINKS}").read_text() == expected


@pytest.mark.ci
def test_it_ends_with_its_parent() -> None:
    code = "import time; from smt_bridge.extraction import train_aligner as t; import threading; "
    code += "threading.Thread(target=t.follow_parent, daemon=True).start(); time.sleep(300)"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    assert process.stdin
    process.stdin.close()
    assert process.wait(timeout=120) == 1
