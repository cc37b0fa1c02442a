"""Commands of language models: nmt-ngram, nmt-interpolate, nmt-sample."""

import gzip
import json
from pathlib import Path

import pytest

from nmt.cli import interpolate, ngram, perplexity, sample
from nmt.ngram import count_models, disk_counts, estimators
from nmt.ngram.estimators import ESTIMATORS, FALLBACK_DISCOUNTS, KneserNeyConfig, SmoothingConfig
from nmt.runs.language_model import line_scorer
from tests.nmt.ngram.test_estimators import estimate_smoothed

# ---- test ngram --------------------------------------------------------------------------------------------
# nmt-ngram, in process: it writes the model that nmt.ngram.kneser_ney estimates.


TEXT = ["a b c", "a b", "b b a <unk>"]


def test_the_file_is_the_estimate(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in TEXT))
    common = ["-i", str(tmp_path / "text"), "-q", "--order", "2", "--discount-fallback"]
    assert ngram.main([*common, "-o", str(tmp_path / "lm")]) == 0
    config = KneserNeyConfig(order=2, discount_fallback=FALLBACK_DISCOUNTS)
    expected = estimators.estimate_kneser_ney([line.split(" ") for line in TEXT], config)
    blocks = [block for _, block in count_models.arpa_blocks(expected)]
    assert (tmp_path / "lm").read_bytes() == b"".join(blocks)
    assert ngram.main([*common, "-o", str(tmp_path / "other"), "--no-interpolate-unigrams"]) == 0
    assert (tmp_path / "other").read_text() != (tmp_path / "lm").read_text()


def test_the_size_of_a_text(tmp_path: Path) -> None:
    (tmp_path / "t.gz").write_bytes(gzip.compress(b"a b\n"))
    assert disk_counts.text_size(str(tmp_path / "t.gz")) == 4 * (tmp_path / "t.gz").stat().st_size
    assert disk_counts.text_size("-") == 0


def test_other_estimators(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("".join(f"{line}\n" for line in TEXT))
    common = ["-i", "text", "--order", "2", "--discount-fallback"]
    for kind in ESTIMATORS:
        assert ngram.main([*common, "-q", "-o", kind, "--estimator", kind]) == 0
        config = SmoothingConfig(order=2, discount_fallback=FALLBACK_DISCOUNTS)
        expected = estimate_smoothed([line.split(" ") for line in TEXT], config, kind)
        assert Path(kind).read_bytes() == b"".join(block for _, block in count_models.arpa_blocks(expected))
    assert "stupid-backoff has scores that do not sum to 1" in capfd.readouterr().err
    assert ngram.main([*common, "--estimator", "katz", "--prune", "0", "1"]) == 2
    assert "--prune: only for Kneser-Ney models, not for --estimator katz" in capfd.readouterr().err


# ---- test interpolate --------------------------------------------------------------------------------------
# nmt-interpolate, in process.


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
    assert "expected either --input" in capfd.readouterr().err
    assert interpolate.main(["one.arpa", "--uniform", "--contexts", "one", "-o", "mix", "-q"]) == 2
    assert "--contexts: weights that depend on the context" in capfd.readouterr().err
    Path("mix.contexts.gz").write_bytes(gzip.compress(Path("one").read_bytes()))  # the counts go there
    for option in ("--context-words", "--bucket-words"):
        assert interpolate.main(["one.arpa", "-i", "dev", option, "9", "-o", "mix", "-q"]) == 2
        assert f"{option} goes with --contexts FILE; give that, too" in capfd.readouterr().err
    words = ["one.arpa", "-i", "dev", "--contexts", "mix.contexts.gz", "-o", "mix", "-q"]
    assert interpolate.main(words) == 2
    assert "mix.contexts.gz: is also read" in capfd.readouterr().err
    Path("empty").touch()
    assert interpolate.main(["one.arpa", "-i", "empty", "-o", "mix", "-q"]) == 2
    assert "empty: empty file" in capfd.readouterr().err and not Path("mix").exists()
    assert interpolate.main(["one.arpa", "-i", "empty", "--contexts", "one", "-o", "new", "-q"]) == 2
    assert "empty: empty file" in capfd.readouterr().err and not Path("new.contexts.gz").exists()
    assert interpolate.main(["one.arpa", "-i", "dev", "--contexts", "one", "-o", "dev", "-q"]) == 2
    assert "is also read" in capfd.readouterr().err


def test_a_compiled_model_in_the_working_folder_has_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ngram.main(["compile", "one.arpa", "-o", "compiled", "-q"]) == 0
    monkeypatch.chdir(folder / "compiled")
    assert line_scorer(".").name == "compiled"


# ---- test sample -------------------------------------------------------------------------------------------
# nmt-sample, in process.


RUN = Path(__file__).resolve().parents[2] / "models" / "lm"


def test_lines_are_those_of_the_seed(tmp_path: Path) -> None:
    texts = []
    for name in ("a", "b"):
        out = tmp_path / name
        argv = [str(RUN), "-n", "3", "--max-length", "5", "-o", str(out), "-q", "--threads", "1"]
        assert sample.main(argv) == 0
        texts.append(out.read_text(encoding="utf-8"))
    assert texts[0] == texts[1] and texts[0].count("\n") == 3


def test_boundaries_need_tokens(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert sample.main([str(RUN), "--boundaries", "|", "-o", str(out), "-q", "--threads", "1"]) == 2
    assert "--boundaries: " in capfd.readouterr().err and not out.exists()
