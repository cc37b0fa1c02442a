"""From raw text to sacreBLEU's own command, in languages that differ from English in what counts: case and
compounds, diacritics and endings, no blanks, right to left. Nothing is set but the names of the files and the
sizes of a small model."""

import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from tests.conftest import Command
from tests.languages.corpus import LANGUAGES, write

BEAM = 3

YAML = """
run: {folder}/run
threads: 1
matmul: mkl
data:
  train_source: {folder}/train.en
  train_target: {folder}/train.{language}
  dev_source: {folder}/dev.en
  dev_target: {folder}/dev.{language}
model: {{encoder: birnn, attention: 48, embedding: 48, hidden: 64, maxout: 32, bias: true, init: glorot}}
training: {{optimizer: adam, learning_rate: 0.01, cost: word, batch_size: 32, max_epochs: 6,
  validate_every: 0, dev_beam: {beam}, tensorboard: false}}
"""


def sacrebleu(reference: Path, output: Path, tokenizer: str) -> float:
    """What sacreBLEU's command prints, with four digits."""
    files = [str(reference), "-i", str(output)]
    line = [sys.executable, "-m", "sacrebleu", *files, "-b", "-w", "4", "-tok", tokenizer]
    return float(subprocess.run(line, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_corpora(language: str, tmp_path: Path) -> None:
    """The same seed gives the same text; nothing of dev is in train; a script is what it should be."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, language, train=300, dev=40)
    texts = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "a").iterdir()}
    assert all((tmp_path / "b" / name).read_text(encoding="utf-8") == text for name, text in texts.items())
    assert not set(texts["dev.en"].split("\n")[:-1]) & set(texts["train.en"].split("\n"))
    target = texts[f"train.{language}"]
    assert target.count("\n") == texts["train.en"].count("\n") == 300
    letters = {name.split(" ")[0] for name in map(unicodedata.name, set(filter(str.isalpha, target)))}
    expected = {"ar": {"ARABIC"}, "ja": {"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"}}
    assert letters == expected.get(language, {"LATIN"})
    assert (" " in target) == (language != "ja")
    assert all(
        mark in target for mark in {"ar": "،؟", "cs": "ěščřž", "de": "äöüß", "ja": "、。か？"}[language]
    )


@pytest.mark.ci
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_dev_score_is_that_of_sacrebleus_command(language: str, tmp_path: Path, command: Command) -> None:
    write(tmp_path, language, train=2000, dev=100)
    (tmp_path / "train.yaml").write_text(YAML.format(folder=tmp_path, language=language, beam=BEAM))
    done = command("nmt-train", tmp_path / "train.yaml")
    assert done.returncode == 0, done.stderr
    header, *lines = (tmp_path / "run" / "dev.tsv").read_text().rstrip("\n").split("\n")
    rows = [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]
    best = max(rows, key=lambda row: float(row["bleu"]))
    assert json.loads((tmp_path / "run" / "checkpoints.json").read_text())["best"] == int(best["step"])
    assert f"BLEU {float(best['bleu']):.2f}, best so far" in done.stderr
    assert done.stderr.count(best["signature"]) == 1
    config = (tmp_path / "run" / "config.yaml").read_text()
    tokenizer = config.partition("bleu_tokenizer: ")[2].partition("\n")[0]
    assert tokenizer in ("ja-mecab", "char") if language == "ja" else tokenizer == "13a"
    scores = {}
    for which, row in (("best", best), ("last", rows[-1])):
        arguments = ("--checkpoint", which, "--beam-size", BEAM, "-i", tmp_path / "dev.en", "-q")
        found = command("nmt-translate", tmp_path / "run", *arguments, "-o", tmp_path / which)
        assert found.returncode == 0, found.stderr
        scores[which] = sacrebleu(tmp_path / f"dev.{language}", tmp_path / which, tokenizer)
        assert float(row["bleu"]) == pytest.approx(scores[which], abs=0.01)
    assert scores["best"] >= scores["last"] and scores["best"] > 50
    assert "case:mixed" in best["signature"] and f"tok:{tokenizer}" in best["signature"]
