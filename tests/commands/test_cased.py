"""Raw text in, raw text out, in its own case: by the phrase-based path and by a run."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from nmt.cli import tokenize, train, truecase
from nmt.metrics import corpus_bleu
from nmt.runs import checkpoint
from smt_bridge.cli import decode
from smt_bridge.cli import train as train_system
from tests.conftest import write_corpus


def run(main: Callable[[list[str]], int], *words: object) -> None:
    assert main([*map(str, words), "-q"]) == 0


@pytest.mark.ci
def test_the_phrase_based_path_keeps_the_case(tmp_path: Path, grammar: ModuleType) -> None:
    """As docs/smt.md says it, on raw text of our grammar; decoding what it was trained on."""
    write_corpus(tmp_path, grammar, 300, seed=5)
    for side in ("en", "fr"):
        raw, tokens, model = (tmp_path / f"{name}.{side}" for name in ("train", "tokens", "truecase"))
        run(tokenize.main, "--escape", "-i", raw, "-o", tokens)
        run(truecase.main, "train", "-i", tokens, "-o", model)
        run(truecase.main, "apply", model, "-i", tokens, "-o", tmp_path / f"cased.{side}")
    source, target = tmp_path / "cased.en", tmp_path / "cased.fr"
    run(train_system.main, tmp_path / "model", "-s", source, "-t", target, "--order", 3)
    out, undone, plain = (tmp_path / name for name in ("out.fr", "undone.fr", "plain.fr"))
    run(decode.main, tmp_path / "model", "-i", source, "-o", out, "--no-cache")
    run(truecase.main, "undo", "-i", out, "-o", undone)
    run(tokenize.main, "--escape", "--detokenize", "-i", undone, "-o", plain)
    found, wanted = (
        path.read_text(encoding="utf-8").split("\n")[:-1] for path in (plain, tmp_path / "train.fr")
    )
    cased = corpus_bleu(found, [wanted], tokenize="13a")
    lower = corpus_bleu([line.lower() for line in found], [[line.lower() for line in wanted]], tokenize="13a")
    assert cased.score > 90 and cased.score > lower.score - 1  # 98.99, both
    assert all(line[:1].isupper() for line in found)


@pytest.mark.parametrize("overrides", [[], ["--preset", "small"]])
def test_a_run_keeps_the_case_by_default(overrides: list[str], tmp_path: Path, grammar: ModuleType) -> None:
    """The preset lower-cased everything: BLEU by sacreBLEU's command was 2.7 where the log said 23.65."""
    write_corpus(tmp_path, grammar, 40, seed=3)
    (tmp_path / "c.yaml").write_text(
        f"run: {tmp_path}/run\n"
        f"data: {{train_source: {tmp_path}/train.en, train_target: {tmp_path}/train.fr}}\n"
        "model: {embedding: 8, hidden: 8, encoder_hidden: 8, attention: 0, maxout: 4}\n"
        "training: {max_steps: 1, dev_beam: 0, metric: cost, tensorboard: false}\n"
    )
    run(train.main, tmp_path / "c.yaml", *overrides)
    saved = checkpoint.load(tmp_path / "run")
    for line in (tmp_path / "train.fr").read_text(encoding="utf-8").split("\n")[:-1]:
        words = saved.target.words(line)
        assert saved.target.line(words) == line
    assert (tmp_path / "run" / "target.truecase").exists() == bool(overrides)
