"""nmt-mrf, in process: train, score, mistakes."""

from pathlib import Path

import pytest

from nmt.papers.mrf import command

MRF_TEXT = "l&apos; eau est froide\n\nle vin est rouge\nl&apos; eau est froide\n"


def run(*words: object) -> int:
    return command.main([*map(str, words), "-q", "--threads", "1"])


@pytest.mark.ci
@pytest.mark.parametrize("objective", ["pseudo-likelihood", "bound"])
def test_the_way_of_a_model(tmp_path: Path, objective: str) -> None:
    text, model, out = tmp_path / "text", tmp_path / "new" / "model", tmp_path / "out"
    text.write_text(MRF_TEXT)
    made = ["train", "-i", text, "-o", model, "--objective", objective, "--epochs", 30, "--rounds", 4]
    assert run(*made, "--learning-rate", 0.1, "--dimension", 4) == 0
    text.write_text("l' eau est froide\nl&apos; eau est froide\nfroide est eau l&apos;\n\nzzz\n")
    assert run("score", model, "-i", text, "-o", out) == 0
    values = [float(line) for line in out.read_text().splitlines()]
    assert len(values) == 5 and values[0] == values[1] > values[2] + 1 and max(values) < 0


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text").write_text("\n\n")
    assert run("train", "-i", tmp_path / "text", "-o", tmp_path / "model") == 2
    assert "no words, expected a training text" in capsys.readouterr().err
    assert run("score", tmp_path / "text", "-i", tmp_path / "text") == 2
    assert "damaged or not a checkpoint" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text"]
