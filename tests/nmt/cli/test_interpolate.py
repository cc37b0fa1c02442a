"""nmt-interpolate, in process."""

import json
from pathlib import Path

import pytest

from nmt.cli import interpolate, ngram, perplexity
from nmt.runs.language_model import line_scorer

TEXTS = {
    "one": "a b c a b\nb c\na b c\n" * 20,
    "two": "c b a\nd d a\nc b\n" * 20,
    "dev": "a b c\nc b a\na b\n" * 40,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        Path(name).write_text(text)
    for name in ("one", "two"):
        assert (
            ngram.main(["-q", "-i", name, "-o", f"{name}.arpa", "--order", "2", "--estimator", "add-k"]) == 0
        )
    return tmp_path


def of_dev(model: str) -> float:
    assert perplexity.main([model, "-i", "dev", "-o", "table", "-q"]) == 0
    [row] = [row for row in Path("table").read_text().split("\n") if row.endswith("unknown ones as <unk>")]
    return float(row.split("\t")[0])


@pytest.mark.ci
def test_learned_weights_are_better_than_equal_ones_and_than_each_model(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    models = ["one.arpa", "two.arpa"]
    assert interpolate.main([*models, "-i", "dev", "-o", "deep/mix"]) == 0
    log = capfd.readouterr().err
    assert interpolate.main([*models, "--uniform", "-o", "equal", "-q"]) == 0
    cut = ["--contexts", "one", "--context-words", "1", "--bucket-words", "50"]
    assert interpolate.main([*models, "-i", "dev", "-o", "cut", "-q", *cut]) == 0
    weights = {name: json.loads(Path(name).read_text())["weights"] for name in ("deep/mix", "equal", "cut")}
    assert weights["equal"] == [[0.5, 0.5]] and len(weights["deep/mix"]) == 1 and len(weights["cut"]) > 1
    found = {model: of_dev(model) for model in (*models, *weights)}
    assert found["cut"] < found["deep/mix"] < found["equal"]
    assert found["deep/mix"] < min(found["one.arpa"], found["two.arpa"])
    both = f"{found['deep/mix']:.2f}, without unknown units {found['deep/mix']:.2f}, on dev"
    assert f"deep/mix: perplexity {both}" in log
    assert f"one.arpa: perplexity {found['one.arpa']:.2f}, weight {weights['deep/mix'][0][0]:.4f}" in log
    assert Path("cut.contexts.gz").exists() and "MixtureScorer" not in repr(line_scorer("cut"))


def test_what_is_refused(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert interpolate.main(["one.arpa", "-o", "mix", "-q"]) == 2
    assert "expected either --input, a development text, or --uniform" in capfd.readouterr().err
    assert interpolate.main(["one.arpa", "--uniform", "--contexts", "one", "-o", "mix", "-q"]) == 2
    assert "--contexts: weights that depend on the context are learned" in capfd.readouterr().err
    Path("empty").touch()
    assert interpolate.main(["one.arpa", "-i", "empty", "-o", "mix", "-q"]) == 2
    assert "empty: empty file" in capfd.readouterr().err and not Path("mix").exists()
    assert interpolate.main(["one.arpa", "-i", "dev", "--contexts", "one", "-o", "dev", "-q"]) == 2
    assert "is read too" in capfd.readouterr().err
