"""smt-rescore where sentences are lost on a cluster."""

from pathlib import Path

import pytest

from nmt.jobs.executors import EXECUTORS
from smt_bridge.cli import rescore as rescore_command
from smt_bridge.nbest import rescore
from tests.nmt.jobs.lossy import Losing
from tests.smt_bridge.cli.scored_tables import ARPA
from tests.smt_bridge.nbest.lists import LIST, SOURCE


def test_lost_sentences_are_named_and_computed_by_a_resumed_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence a chunk; the second is lost."""
    monkeypatch.setattr(rescore, "SENTENCES", 1)
    monkeypatch.setitem(EXECUTORS, "lossy", Losing(1))
    (tmp_path / "n").write_text(LIST)
    (tmp_path / "s").write_text(SOURCE)
    (tmp_path / "lm.arpa").write_text(ARPA)

    def run(output: str, *options: str) -> int:
        nbest, source = str(tmp_path / "n"), str(tmp_path / "s")
        own = [nbest, "-q", "-s", source, "-f", f"lm={tmp_path / 'lm.arpa'}", "-o", str(tmp_path / output)]
        return rescore_command.main([*own, *options])

    assert run("whole") == 0
    assert run("o", "--executor", "lossy") == 2
    message = capsys.readouterr().err
    assert f"{tmp_path / 's'}: line 2: three workers died while they computed them; all others" in message
    assert not (tmp_path / "o").exists()
    assert run("o", "--resume") == 0
    assert (tmp_path / "o").read_bytes() == (tmp_path / "whole").read_bytes()
