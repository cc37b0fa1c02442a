"""The command line of lmplz asks for the model that we would estimate."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.ngram import lmplz
from nmt.ngram.kneser_ney import FALLBACK, KneserNeyConfig


def test_arguments() -> None:
    config = KneserNeyConfig(order=3, prune=(0, 1), interpolate_unigrams=False, skip_symbols=True)
    found = " ".join(lmplz.arguments("lmplz", config, 2.5e9, "/tmp/x"))
    assert found == (
        "lmplz --order 3 --memory 2500M --temp_prefix /tmp/x/ --prune 0 1 --interpolate_unigrams 0 "
        "--skip_symbols"
    )
    own = lmplz.arguments("lmplz", KneserNeyConfig(discount_fallback=(0.1, 0.2, 0.3)), 1e9, "x")
    assert own[-4:] == ["--discount_fallback", "0.1", "0.2", "0.3"]
    assert (
        lmplz.arguments("lmplz", KneserNeyConfig(discount_fallback=FALLBACK), 1e9, "x")[-1]
        == "--discount_fallback"
    )


def test_without_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert lmplz.find() is None
    with pytest.raises(ConfigError, match="there is no lmplz on the PATH"):
        lmplz.estimate("text", str(tmp_path / "lm"), KneserNeyConfig(), 1e9)
