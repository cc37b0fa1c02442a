"""The cost model gives back the costs that a table was made of."""

import subprocess
import sys
from pathlib import Path

import pytest

SCALE = Path(__file__).with_name("scale.py")
NAMES = "round by workers chunks pairs seconds client scheduler computing survey moved".split()


def row(chunks: int, by: str = "cluster") -> list[object]:
    """A worker: 3 s and 1 s a chunk; the client: 2 s and 25 ms, of which 5 ms are the survey; the scheduler:
    10 ms a chunk."""
    client, scheduler = 2 + chunks * 0.025, chunks * 0.010
    return [
        0,
        by,
        1,
        chunks,
        4000 * chunks,
        0,
        client,
        scheduler,
        3 + chunks,
        chunks * 0.005,
        400_000 * chunks,
    ]


@pytest.mark.ci
def test_costs_and_what_they_predict(tmp_path: Path) -> None:
    rows = ["\t".join(map(str, cells)) for cells in (row(10), row(40), row(100), row(70, "processes"))]
    (tmp_path / "t").write_text("\n".join(["\t".join(NAMES), *rows, ""]))
    words = [sys.executable, str(SCALE), str(tmp_path / "t"), "--pairs", "4e6", "--workers", "1", "10", "100"]
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split("\n")
    assert lines[0].split()[1:] == ["0.000", "CPU", "s", "a", "job", "5.000", "ms", "a", "chunk"]
    assert lines[3].split()[1:] == ["3.000", "CPU", "s", "a", "job", "1000.000", "ms", "a", "chunk"]
    assert lines[4].split()[-4:] == ["100.0", "bytes", "a", "pair"]
    assert lines[6] == "4,000 pairs a second of a worker; 50 workers are the most"
    # 1,000 chunks: 5 s of survey; then 1,003 s of a worker, 103 s of ten, or 22 s of the client.
    assert [line.split() for line in lines[10:13]] == [
        ["1", "0.28", "1.0", "workers"],
        ["10", "0.03", "9.3", "workers"],
        ["100", "0.01", "37.3", "client"],
    ]
