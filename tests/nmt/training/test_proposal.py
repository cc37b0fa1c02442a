"""Configurations for texts of every kind: each is one that nmt-train accepts. Which preset a text gets."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.text.inspection import PairReport, inspect_pairs
from nmt.training import config_file, presets
from nmt.training.config import RunConfig
from nmt.training.presets import Suited, choose_preset, preset_file
from nmt.training.proposal import ParallelTexts, by_size, propose, quoted

EN = ["The man sleeps in the house.", "A dog is in the car, and the man is not."] * 9
FR = ["L'homme dort dans la maison.", "Un chien est dans la voiture, et l'homme non."] * 9


def inspected(folder: Path, source: list[str], target: list[str]) -> PairReport:
    for name, lines in (("train.en", source), ("train.fr", target)):
        (folder / name).write_text("\n".join(lines) + "\n")
    return inspect_pairs(str(folder / "train.en"), str(folder / "train.fr"))


def config_of(
    folder: Path, report: PairReport, languages: tuple[str, str] = ("en", "fr"), preset: str = ""
) -> RunConfig:
    """The proposal, as nmt-train reads it."""
    texts = ParallelTexts(("a b/train.en", "c.txt"), ("dev.en", "dev.txt"), languages)
    lines = list(propose(report, texts, str(folder / "run"), preset).lines())
    (folder / "config.yaml").write_text("\n".join(lines) + "\n")
    return config_file.load(str(folder / "config.yaml"))


def test_raw_text(tmp_path: Path) -> None:
    """What the preset has, and what was seen."""
    report = inspected(tmp_path, EN, FR)
    config = config_of(tmp_path, report)
    preset = config_file.from_mapping({"run": "x", "device": "auto"}, "small")
    assert config.training == preset.training and config.model == preset.model
    assert (config.data.source.language, config.data.target.language) == ("en", "fr")
    assert config.data.source.case == "truecase" and config.data.source.min_count == 1
    assert config.data.bpe_merges == 2000 and config.data.max_length == 60 and config.device == "auto"
    assert (config.data.train_source, config.data.dev_target) == ("a b/train.en", "dev.txt")
    text = (tmp_path / "config.yaml").read_text()
    assert "max_length: 60  # units; 99% of the lines have at most 11 words\n" in text
    assert "  train_source: 'a b/train.en'\n" in text


def test_tokenized_escaped_lower_cased_text(tmp_path: Path) -> None:
    source = [line.lower().replace(",", " ,").replace(".", " .") for line in EN]
    report = inspected(tmp_path, [line.replace("is", "&apos;s") for line in source], FR)
    side = config_of(tmp_path, report).data.source
    assert not side.tokenize and not side.normalize and side.escaped and side.case == "keep"
    assert config_of(tmp_path, report).data.target.tokenize


def test_words_are_cut(tmp_path: Path) -> None:
    words = "abcdefghijklmnopqrstuvwxyz"
    source = [f"the {one}{two}{two}x of {two}{one}y" for one in words for two in words[:9]]
    report = inspected(tmp_path, source, source)
    assert config_of(tmp_path, report).data.bpe_merges == 2000
    assert "  # 50.0% of the running words occur once;" in (tmp_path / "config.yaml").read_text()


def test_a_time_limit(tmp_path: Path) -> None:
    """The rate falls to 0 at its end, whatever the preset's schedule; a warm-up is a part of it."""
    report = inspected(tmp_path, EN, FR)
    texts = ParallelTexts(("train.en", "train.fr"), ("dev.en", "dev.fr"), ("en", "fr"))
    for preset, warmup in (("small", 0), ("transformer-small", 20), ("large", 20)):
        proposal = propose(report, texts, str(tmp_path / "run"), preset, 7.5)
        assert proposal.fit_warmup(2000 if warmup else 0, 100) == bool(warmup)
        (tmp_path / "config.yaml").write_text("\n".join(proposal.lines()) + "\n")
        training = config_file.load(str(tmp_path / "config.yaml")).training
        assert (training.schedule, training.max_minutes, training.warmup) == ("linear", 7.5, warmup)
    assert not propose(report, texts, "run", "small", 7.5).fit_warmup(20, 100)


def test_text_that_is_cut_already(tmp_path: Path) -> None:
    report = inspected(tmp_path, [line.replace("ee", "e@@ e") for line in EN], FR)
    side = config_of(tmp_path, report).data.source
    assert side.subword == "none" and not side.tokenize and side.case == "keep"


def test_other_scripts_and_languages_that_nobody_knows(tmp_path: Path) -> None:
    report = inspected(tmp_path, ["猫が魚を食べる。", "犬が猫を見る。"] * 9, ["xylo quux", "zorp mug"] * 9)
    config = config_of(tmp_path, report, ("ja", ""))
    assert config.data.source.subword == "auto" and config.data.source.case == "keep"
    assert config.data.target.subword == "unigram" and not config.data.target.language
    russian = inspected(tmp_path, EN, ["Это дом и не кот."] * 18)
    config = config_of(tmp_path, russian, ("en", "ru"), "large")
    assert config.data.bpe_merges == 2000 and not config.data.bpe_joint
    assert config.training.max_epochs == 20 and config.training.patience == 10
    config = config_of(tmp_path, russian, ("en", "ru"), "transformer-small")
    assert config.data.shared_vocabulary and config.model is not None and config.model.type == "transformer"


def test_the_preset_for_pairs_and_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last row whose pairs and minutes are reached; without a limit none that asks for minutes."""
    assert all(preset_file(row.preset).exists() for row in presets.SUITED)
    assert [choose_preset(pairs, minutes) for pairs in (30, 199_999, 200_000) for minutes in (0, 999)] == [
        "small", "small", "small", "small", "large", "large",
    ]  # fmt: skip
    rows = (Suited("a"), Suited("b", pairs=100, minutes=30), Suited("c", pairs=1000))
    monkeypatch.setattr(presets, "SUITED", rows)
    reached = [(99, 60), (100, 29), (100, 30), (999, 0), (1000, 0), (1000, 60)]
    assert [choose_preset(*row) for row in reached] == ["a", "a", "b", "a", "c", "c"]
    with pytest.raises(ConfigError, match="--preset tiny: unknown, expected one of large, small"):
        preset_file("tiny")


def test_sizes_and_strings() -> None:
    assert [by_size({0: 1, 10: 2, 20: 3}, pairs) for pairs in (0, 9, 10, 19, 99)] == [1, 1, 2, 2, 3]
    assert [quoted(text) for text in ("a/b.en", "a b", "it's", "-x", "#x")] == [
        "a/b.en", "'a b'", "'it''s'", "'-x'", "'#x'",
    ]  # fmt: skip
