"""README and each tutorial as they stand: the blocks of commands, one after the other, pasted into a shell in
an empty folder."""

import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.conftest import BIN, HANG

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]


def script(page: Path) -> str:
    """The commands of a page."""
    return "".join(re.findall(r"(?ms)^```sh\n(.*?)^```$", page.read_text(encoding="utf-8")))


def test_each_page_begins_with_the_sample_corpus() -> None:
    assert all(script(page).startswith("nmt-init corpus --sample-corpus") for page in PAGES)


@pytest.mark.ci
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_as_it_stands(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    with (tmp_path / "log").open("w") as log:
        shell = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script(page)],
            cwd=folder,
            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = shell.wait(HANG)
        finally:  # servers that a page started
            with suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
    assert status == 0, (tmp_path / "log").read_text(errors="replace")[-4000:]
