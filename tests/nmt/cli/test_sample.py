"""nmt-sample, in process."""

from pathlib import Path

import pytest

from nmt.cli import sample

RUN = Path(__file__).resolve().parents[2] / "golden" / "0.5.0" / "lm"


def test_lines_are_those_of_the_seed_and_the_old_name_of_the_option_works(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    texts = []
    for name, option in (("a", "--max-length"), ("b", "--longest")):
        out = tmp_path / name
        assert sample.main([str(RUN), "-n", "3", option, "5", "-o", str(out), "-q", "--threads", "1"]) == 0
        texts.append(out.read_text(encoding="utf-8"))
    assert texts[0] == texts[1] and texts[0].count("\n") == 3
    assert "--longest is now --max-length" in capfd.readouterr().err


def test_boundaries_need_tokens(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert sample.main([str(RUN), "--boundaries", "|", "-o", str(out), "-q", "--threads", "1"]) == 2
    assert "only multiscale models have tokens" in capfd.readouterr().err and not out.exists()
