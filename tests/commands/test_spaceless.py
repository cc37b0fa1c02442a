"""A run whose target is written without blanks, from the training to the commands and Python."""

import shutil
from pathlib import Path

import pytest

from nmt.cli import score, translate
from nmt.errors import CheckpointError
from nmt.runs.run import Run
from nmt.training import config_file as config
from nmt.training.train import run_training
from smt_bridge.cli import rescore, score_table
from tests.commands.runs import equal_runs
from tests.spaceless import japanese

YAML = """
run: {folder}/run
threads: 1
matmul: mkl
data:
  train_source: {folder}/train.en
  train_target: {folder}/train.ja
  dev_source: {folder}/dev.en
  dev_target: {folder}/dev.ja
  unigram_sampling: 0.3
  source: {{language: en}}
  target: {{language: ja, case: keep}}
model: {{embedding: 12, hidden: 16, maxout: 8, encoder: birnn, attention: 8, init: glorot}}
training: {{optimizer: adam, learning_rate: 0.03, cost: word, batch_size: 16, max_steps: 40, dev_beam: 1,
  validate_every: 20, save_every: 5, keep: 9, tensorboard: false}}
"""


def train(folder: Path, *overrides: str) -> Path:
    run_training(config.load(str(folder / "train.yaml"), list(overrides)))
    return folder / "run"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of 200 pairs, and a run of 40 updates."""
    folder = tmp_path_factory.mktemp("spaceless")
    for name, count, seed in (("train", 200, 1), ("dev", 20, 2)):
        for side, language in enumerate(("en", "ja")):
            text = "".join(pair[side] + "\n" for pair in japanese(count, seed))
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    (folder / "train.yaml").write_text(YAML.format(folder=folder), encoding="utf-8")
    train(folder)
    return folder


def test_a_resumed_run_draws_the_same_cuts(folder: Path, tmp_path: Path) -> None:
    """Bit by bit, in the middle of an epoch."""
    for steps in (20, 40):
        train(folder, f"run={tmp_path}/run", f"training.max_steps={steps}")
    equal_runs(folder / "run", tmp_path / "run")


def test_text_goes_in_and_text_comes_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """nmt-translate, nmt-score and Python say the same; the dev text is known; a pair is worth what its
    n-best line says."""
    run = Run.load(folder / "run")
    sources = (folder / "dev.en").read_text(encoding="utf-8").splitlines()
    translations = run.translate(sources)
    assert translate.main([str(folder / "run"), "-i", str(folder / "dev.en"), "-q"]) == 0
    assert capsys.readouterr().out.splitlines() == translations
    assert not any(" " in line or "▁" in line for line in translations)
    pairs = list(zip(sources, translations, strict=True))
    scores = run.score(pairs)
    (folder / "out.ja").write_text("".join(line + "\n" for line in translations), encoding="utf-8")
    line = [str(folder / "run"), "--source", str(folder / "dev.en"), "--target", str(folder / "out.ja"), "-q"]
    assert score.main(line) == 0
    assert [float(value) for value in capsys.readouterr().out.split()] == pytest.approx(scores, abs=1e-4)
    for text in (folder / "dev.ja").read_text(encoding="utf-8").splitlines():
        units = run.target.units(text)
        assert run.target.text(units) == text and run.target_ids(text).count(2) == 0
    found = run.n_best(sources[:1])[0][0]
    assert all(target == 0 for _, target in found.alignment) and len(found.words) == 1


def test_a_long_line_is_translated_in_parts(folder: Path) -> None:
    """Whose translations have no blank between them."""
    run = Run.load(folder / "run")
    lines = ["The red dog sees the big cat .", "The old king buys the new fish ."]
    parts = run.translate(lines)
    assert run.translate([" ".join(lines)], max_line_words=8) == ["".join(parts)]


def test_the_model_belongs_to_the_run(folder: Path, tmp_path: Path) -> None:
    """A flipped bit is noticed, a missing file too."""
    shutil.copytree(folder / "run", tmp_path / "run")
    path = tmp_path / "run" / "target.spm"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(CheckpointError, match=r"target\.spm: damaged"):
        Run.load(tmp_path / "run")
    path.unlink()
    with pytest.raises(CheckpointError, match=r"target\.spm: not there"):
        Run.load(tmp_path / "run")


def test_segmented_words_are_joined_again(folder: Path, tmp_path: Path) -> None:
    """Characters are words, instead of SentencePiece, by request."""
    train(
        folder,
        f"run={tmp_path}/run",
        "data.target.segment=character",
        "data.unigram_sampling=0",
        "training.max_steps=2",
    )
    run = Run.load(tmp_path / "run")
    for text in (folder / "dev.ja").read_text(encoding="utf-8").splitlines():
        assert {"は", "。"} & set(units := run.target.units(text)) and run.target.text(units) == text
    assert not any(" " in line for line in run.translate(["The red dog sees the cat ."]))


def test_words_of_moses_are_not_its_text(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Scores of a table or a list would be those of another text: refused in one line, nothing is left."""
    (tmp_path / "table").write_text("the dog ||| 犬 ||| 1 1 1 1\n", encoding="utf-8")
    (tmp_path / "list").write_text("0 ||| 犬 。 ||| LM0= -1 ||| -1\n", encoding="utf-8")
    (tmp_path / "text").write_text("the dog .\n", encoding="utf-8")
    feature = ["--feature", f"translation={folder}/run", "-q", "-o", str(tmp_path / "out")]
    table = [str(tmp_path / "table"), *feature]
    nbest = [str(tmp_path / "list"), "--source", str(tmp_path / "text"), *feature]
    for main, argv in ((score_table.main, table), (rescore.main, nbest)):
        assert main(argv) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert f"{folder}/run: reads raw text" in line and "target" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["list", "table", "text"]
