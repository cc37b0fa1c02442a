"""Text: tokens, subwords, case, languages, scripts without spaces."""

import json
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from nmt.cli import score, tokenize, train, translate, truecase
from nmt.errors import CheckpointError
from nmt.metrics import corpus_bleu
from nmt.runs import checkpoint
from nmt.runs.run import Run
from nmt.training import config_file
from nmt.training.train import run_training
from smt_bridge.cli import decode, rescore
from smt_bridge.cli import train as train_system
from tests.commands.runs import equal_runs
from tests.conftest import Command, Refused, write_corpus
from tests.languages.corpus import LANGUAGES, write
from tests.spaceless import japanese

# ---- test text ---------------------------------------------------------------------------------------------


@pytest.mark.ci
def test_tokenize_there_and_back(command: Command) -> None:
    text = "L'homme n'a pas vu l'arbre.\n\n«\xa0Oui\xa0»\n"
    words = command("nmt-tokenize", "-l", "fr", input=text)
    assert words.stdout.split("\n")[:2] == ["L' homme n' a pas vu l' arbre .", ""]
    back = command("nmt-tokenize", "-l", "fr", "--detokenize", input=words.stdout)
    assert back.stdout.split("\n")[0] == "L'homme n'a pas vu l'arbre." and back.stdout.count("\n") == 3
    assert command("nmt-tokenize", "-l", "en", "--lower", input="A B").stdout == "a b\n"


@pytest.mark.parametrize("odd", ["\u2028", "\x85", "\x0c", "\xa0", "\r"])
def test_tokenize_keeps_the_number_of_lines(command: Command, odd: str) -> None:
    done = command("nmt-tokenize", "-l", "en", input=f"a{odd}b\nc\n{odd}\n")
    assert done.returncode == 0 and done.stdout.count("\n") == 3


def test_subword_learn_apply_undo(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("low low low lower\n")
    (tmp_path / "b").write_text("newest newest widest\n")
    assert (
        command(
            "nmt-subword", "learn", "-q", "--input", tmp_path / "a", tmp_path / "b", "--merges", 6, "-o",
            tmp_path / "codes",
        ).returncode
        == 0
    )  # fmt: skip
    assert (tmp_path / "codes").read_text().startswith("#version: 0.2\n")
    text = "lowest  newer\n\nnew\u2028est\n"
    units = command("nmt-subword", "apply", tmp_path / "codes", input=text)
    assert "@@ " in units.stdout and units.stdout.count("\n") == 3
    assert command("nmt-subword", "undo", input=units.stdout).stdout == "lowest newer\n\nnew\u2028est\n"


def test_vocab_counts_and_reports_coverage(command: Command, tmp_path: Path) -> None:
    done = command("nmt-vocab", "--size", 1, "--output", tmp_path / "v", input="b a b\nb c\n")
    assert (tmp_path / "v").read_text() == "#version: 1 vocabulary size=1\nb\t3\na\t1\nc\t1\n"
    assert "1 of 3 words kept; they cover 60.00% of 5 running words" in done.stderr


def test_vocab_unescapes(command: Command) -> None:
    text = "l&apos; a &amp; &#124;\n"
    assert command("nmt-vocab", "--unescape", input=text).stdout.split("\n")[1:-1] == [
        "&\t1",
        "a\t1",
        "l'\t1",
        "|\t1",
    ]
    assert "l&apos;\t1" in command("nmt-vocab", input=text).stdout


@pytest.mark.ci
def test_text_commands_refuse(command: Command, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "codes").write_text("one two three\n")
    assert "codes:1:" in refused(command("nmt-subword", "apply", tmp_path / "codes", input="a\n"))
    assert "<stdin>: no words" in refused(command("nmt-subword", "learn", input=""))
    assert "<stdin>:2: byte 0xff" in refused(command("nmt-tokenize", "-l", "en", input=b"a\n\xff\n"))
    assert "<stdin>:1: NUL" in refused(command("nmt-vocab", "-q", input="\0"))
    assert "cannot read" in refused(command("nmt-vocab", "--input", tmp_path))
    assert "No space left" in refused(
        command("nmt-tokenize", "-l", "en", "--output", "/dev/full", input="a\n")
    )


SOURCES = ["a b c d", "a b c d e", "a b c d e f"]
REFERENCES = ["x y z w", "x y z w v", "p q r s t u"]
OTHERS = ["x y z", "x y z w", "p q r s t"]
HYPOTHESES = ["x y z w", "x y z w w", "p q r s t t"]


@pytest.fixture
def system(tmp_path: Path) -> Path:
    for name, lines in (("s", SOURCES), ("r", REFERENCES), ("r2", OTHERS), ("h", HYPOTHESES)):
        (tmp_path / name).write_text("".join(line + "\n" for line in lines))
    return tmp_path


@pytest.mark.ci
def test_by_length_writes_table_and_figures(command: Command, system: Path) -> None:
    """The sentence of 4 words is right: 100. That of 5 has 4/5, 3/4, 2/3, 1/2 n-grams right: (0.2)^(1/4) =
    66.87."""
    files = ["--source", system / "s", "--reference", system / "r", "--hypothesis", system / "h"]
    done = command(
        "nmt-analyze", "by-length", *files, "--window", 1, "--least", 1, "--output", system / "out",
        "--bleu-tokenize", "none",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in (system / "out" / "by-length.tsv").read_text().split("\n")]
    assert rows[1][:7] == ["source", "4", "4", "4", "1", "100.0000", "1.0000"]
    assert rows[2][:7] == ["source", "5", "5", "5", "1", "66.8740", "1.0000"] and rows[2][8] == "h"
    assert done.stdout.split("\n")[0] == str(corpus_bleu(HYPOTHESES, [REFERENCES], "none"))
    assert done.stdout.split("\n")[1].startswith("chrF2 = ")
    svg = " ".join(ElementTree.parse(system / "out" / "by-length.svg").getroot().itertext())
    assert "sentence length" in svg and "the longer side" in svg and "tok:none" in svg
    assert (system / "out" / "by-length.png").read_bytes().startswith(b"\x89PNG")


def test_by_length_to_stdout_with_two_references(command: Command, system: Path) -> None:
    done = command(
        "nmt-analyze", "by-length", "--source", system / "s", "--reference", system / "r", system / "r2",
        "--hypothesis", system / "h",
    )  # fmt: skip
    assert done.stdout.startswith("by\tlength\t") and "nrefs:2" in done.stderr
    assert str(corpus_bleu(HYPOTHESES, [REFERENCES, OTHERS])) in done.stderr


@pytest.mark.ci
def test_by_length_refuses(command: Command, system: Path, refused: Refused) -> None:
    (system / "short").write_text("x\n")
    (system / "empty").write_text("")
    base = [
        "nmt-analyze", "by-length", "-q", "--source", system / "s", "--reference", system / "r",
        "--hypothesis",
    ]  # fmt: skip
    assert "short: 1 line, but" in refused(command(*base, system / "short", "--output", system / "out"))
    assert "nosuch" in refused(command(*base, system / "h", "--bleu-tokenize", "nosuch"))
    empty = system / "empty"
    assert "empty file" in refused(
        command(
            "nmt-analyze", "by-length", "-q", "--source", empty, "--reference", empty, "--hypothesis", empty
        )
    )
    assert not (system / "out").exists()


# ---- test cased --------------------------------------------------------------------------------------------
# Raw text in, raw text out, in its own case: by the phrase-based path and by a run.


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
@pytest.mark.ci
def test_a_run_keeps_the_case_by_default(overrides: list[str], tmp_path: Path, grammar: ModuleType) -> None:
    """The preset lower-cased everything: BLEU by sacreBLEU's command was 2.7 where the log said 23.65."""
    write_corpus(tmp_path, grammar, 40, seed=3)
    (tmp_path / "c.yaml").write_text(
        f"run: {tmp_path}/run\n"
        f"data: {{train_source: {tmp_path}/train.en, train_target: {tmp_path}/train.fr}}\n"
        "model: {embedding: 8, hidden: 8, encoder_hidden: 8, attention: 0, maxout: 4}\n"
        "training: {max_steps: 1, dev_beam: 0, metric: cost, tensorboard: false}\n"
        "matmul: mkl\n"
    )
    run(train.main, tmp_path / "c.yaml", *overrides)
    saved = checkpoint.load(tmp_path / "run")
    for line in (tmp_path / "train.fr").read_text(encoding="utf-8").split("\n")[:-1]:
        words = saved.target.words(line)
        assert saved.target.line(words) == line
    assert (tmp_path / "run" / "target.truecase").exists() == bool(overrides)


# ---- test languages ----------------------------------------------------------------------------------------
# From raw text to sacreBLEU's own command, in languages that differ from English in what counts: case and
# compounds, diacritics and endings, no blanks, right to left. Nothing is set but the names of the files and
# the sizes of a small model.


BEAM = 3

LANGUAGES_YAML = """
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
    (tmp_path / "train.yaml").write_text(LANGUAGES_YAML.format(folder=tmp_path, language=language, beam=BEAM))
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


# ---- test spaceless ----------------------------------------------------------------------------------------
# A run whose target is written without blanks, from the training to the commands and Python.


SPACELESS_YAML = """
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


def train_spaceless(folder: Path, *overrides: str) -> Path:
    run_training(config_file.load(str(folder / "train.yaml"), list(overrides)))
    return folder / "run"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of 200 pairs, and a run of 40 updates."""
    folder = tmp_path_factory.mktemp("spaceless")
    for name, count, seed in (("train", 200, 1), ("dev", 20, 2)):
        for side, language in enumerate(("en", "ja")):
            text = "".join(pair[side] + "\n" for pair in japanese(count, seed))
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    (folder / "train.yaml").write_text(SPACELESS_YAML.format(folder=folder), encoding="utf-8")
    train_spaceless(folder)
    return folder


@pytest.mark.ci
def test_a_resumed_run_draws_the_same_cuts(folder: Path, tmp_path: Path) -> None:
    """Bit by bit, in the middle of an epoch."""
    for steps in (20, 40):
        train_spaceless(folder, f"run={tmp_path}/run", f"training.max_steps={steps}")
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
    with pytest.raises(CheckpointError, match=r"target\.spm: missing"):
        Run.load(tmp_path / "run")


def test_segmented_words_are_joined_again(folder: Path, tmp_path: Path) -> None:
    """Characters are words, instead of SentencePiece, by request."""
    train_spaceless(
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


def test_words_of_moses_become_its_text(folder: Path, tmp_path: Path) -> None:
    """Entries of an n-best list are scored as the text that their words are joined to."""
    entries = ["犬 。", "赤い 犬 は 猫 を見る 。"]
    rows = "".join(f"0 ||| {entry} ||| LM0= -1 ||| -1\n" for entry in entries)
    (tmp_path / "list").write_text(rows, encoding="utf-8")
    (tmp_path / "text").write_text("the dog .\n", encoding="utf-8")
    line = [str(tmp_path / "list"), "--source", str(tmp_path / "text"), "--feature"]
    line += [f"translation={folder}/run", "-q", "-o", str(tmp_path / "out")]
    assert rescore.main(line) == 0
    scored = (tmp_path / "out").read_text(encoding="utf-8").splitlines()
    values = [float(row.split(" ||| ")[2].split()[-1]) for row in scored]
    pairs = [("the dog.", entry.replace(" ", "")) for entry in entries]
    assert values == pytest.approx(Run.load(folder / "run").score(pairs), abs=1e-4)
