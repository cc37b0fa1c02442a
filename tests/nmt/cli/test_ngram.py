"""nmt-ngram, in process: it writes the model that nmt.ngram.kneser_ney estimates."""

import gzip
from pathlib import Path

import pytest

from nmt.cli import ngram
from nmt.ngram import arpa, kneser_ney, smoothing
from nmt.ngram.kneser_ney import FALLBACK, KneserNeyConfig
from nmt.ngram.smoothing import ESTIMATORS, SmoothingConfig

TEXT = ["a b c", "a b", "b b a <unk>"]


def test_the_file_is_the_estimate(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in TEXT))
    common = ["-i", str(tmp_path / "text"), "-q", "--order", "2", "--discount-fallback"]
    assert ngram.main([*common, "-o", str(tmp_path / "lm")]) == 0
    config = KneserNeyConfig(order=2, discount_fallback=FALLBACK)
    expected = kneser_ney.estimate([line.split(" ") for line in TEXT], config)
    assert (tmp_path / "lm").read_text() == "".join(f"{line}\n" for line in arpa.lines(expected))
    assert ngram.main([*common, "-o", str(tmp_path / "other"), "--no-interpolate-unigrams"]) == 0
    assert (tmp_path / "other").read_text() != (tmp_path / "lm").read_text()


def test_the_size_of_a_text(tmp_path: Path) -> None:
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"a b\n"))
    assert ngram.size(str(tmp_path / "t.gz")) == 4 * (tmp_path / "t.gz").stat().st_size
    assert ngram.size("-") == 0 and ngram.memory() > 0.1


def test_too_large_for_memory(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "text").write_text("a b\n")
    assert ngram.main(["-i", str(tmp_path / "text"), "-q", "--memory", "1e-9"]) == 2
    assert "are allowed (--memory); install KenLM's lmplz" in capfd.readouterr().err


def test_other_estimators(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("".join(f"{line}\n" for line in TEXT))
    common = ["-i", "text", "--order", "2", "--discount-fallback"]
    for kind in ESTIMATORS:
        assert ngram.main([*common, "-q", "-o", kind, "--estimator", kind]) == 0
        config = SmoothingConfig(order=2, discount_fallback=FALLBACK)
        expected = smoothing.estimate([line.split(" ") for line in TEXT], config, kind)
        assert Path(kind).read_text() == "".join(f"{line}\n" for line in arpa.lines(expected))
    assert "stupid-backoff has scores that do not sum to 1" in capfd.readouterr().err
    assert ngram.main([*common, "--estimator", "katz", "--prune", "0", "1"]) == 2
    assert "--prune: for Kneser-Ney models only, not for --estimator katz" in capfd.readouterr().err
