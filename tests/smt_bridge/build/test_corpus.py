"""The texts of a build: from raw text to the words of tables and networks."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from nmt.errors import ConfigError, DataError
from smt_bridge.build import corpus
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.build.corpus import COUNTS, BuildTexts
from tests.smt_bridge.build.builds import config, small_plan

Begin = Callable[[], Callable[[list[str]], Sequence[str]]]


def prepared(given: BuildConfig) -> BuildTexts:
    made = Build(given, small_plan())
    corpus.prepare(made)
    return BuildTexts(made.work)


def test_what_is_trained_is_what_will_be_translated(tmp_path: Path, grammar: ModuleType) -> None:
    """The system converts the raw text to the training text, and back."""
    given = config(tmp_path, grammar)
    texts = prepared(given)
    for side, name, language in zip(texts.sides(given), ("source", "target"), ("en", "fr"), strict=True):
        raw = (tmp_path / f"dev.{language}").read_text().split("\n")[:-1]
        assert texts.lines(f"dev.{name}") == [" ".join(side.words(line)) for line in raw]
        assert texts.lines(f"raw.{name}") == raw
        assert [side.text(line.split(" ")) for line in texts.lines(f"dev.{name}")] == raw
    assert len(texts.lines("train.source")) == len(texts.lines("train.target")) > 100
    assert "l&apos;" in " ".join(texts.lines("train.target"))


def test_bad_pairs_and_duplicates_are_dropped_and_counted(tmp_path: Path, grammar: ModuleType) -> None:
    given = config(tmp_path, grammar)
    for name in ("source", "target"):
        path = Path(getattr(given, name))
        lines = sorted(set(path.read_text().split("\n")[:-1]))[:50] if name == "source" else ["Un mot ."] * 50
        path.write_text("".join(f"{line}\n" for line in [*lines, lines[0], "", "a " * 81]))
    texts = prepared(given)
    counts = json.loads(texts.path(COUNTS).read_text())
    assert counts["pairs read"] == 53 and counts["pairs kept"] == len(texts.lines("train.source")) == 50
    assert counts["pairs dropped: duplicate"] == counts["pairs dropped: empty"] == 1
    assert counts["pairs dropped: long"] == 1


def test_lines_with_too_many_words_after_tokenization_are_dropped(
    tmp_path: Path, grammar: ModuleType
) -> None:
    """n-best lists, and thus tuning, refuse very long lines."""
    given = config(tmp_path, grammar)
    with open(given.dev_source, "a") as source, open(given.dev_target, "a") as target:
        source.write("a,b,c,d,e,f(g)h " * 40 + "\n")
        target.write("x " * 40 + "\n")
    texts = prepared(given)
    assert len(texts.lines("dev.source")) == len(texts.lines("raw.target")) == 20


def test_the_survey_counts_about_the_words_that_there_will_be(tmp_path: Path, grammar: ModuleType) -> None:
    given = config(tmp_path, grammar, monolingual=str(tmp_path / "train.fr"))
    found, texts = corpus.survey(given), prepared(given)
    assert found.pairs == len(texts.lines("train.source")) and found.dev_pairs == 20
    words = sum(len(line.split(" ")) for line in texts.lines("train.target"))
    assert 0.8 < found.target_words / words < 1.25
    assert found.monolingual_lines == 200  # duplicates included
    assert texts.lines("lm.target")[: found.pairs] == texts.lines("train.target")
    assert len(texts.lines("lm.target")) == found.pairs + 200 and texts.lm() == "corpus/lm.target"


def test_monolingual_lines_without_words_are_dropped(tmp_path: Path, grammar: ModuleType) -> None:
    """Tokenization removes control characters and special blanks."""
    (tmp_path / "more.fr").write_text("\x01\nUn chat .\n\u3000\n", encoding="utf-8")
    texts = prepared(config(tmp_path, grammar, monolingual=str(tmp_path / "more.fr")))
    assert len(list(texts.monolingual())) == 1 and "" not in texts.lines("lm.target")


def test_workers_change_nothing(tmp_path: Path, grammar: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    given = config(tmp_path, grammar, workers=2)
    chunks: list[int] = []

    def convert(begin: Begin, lines: Iterable[str], workers: int) -> Sequence[str]:
        chunks.append(workers)
        return begin()(list(lines))

    monkeypatch.setattr(corpus, "convert_lines", convert)
    monkeypatch.setattr(corpus, "PARALLEL_PAIRS", 1)
    prepared(given)
    assert set(chunks) == {2}


def test_scripts_without_case_have_no_truecase_model(tmp_path: Path) -> None:
    for name in ("train", "dev"):
        (tmp_path / f"{name}.en").write_text("The cat eats fish.\n")
        (tmp_path / f"{name}.ja").write_text("猫が魚を食べる。\n")
    source, target, dev, other = (
        str(tmp_path / f"{text}.{end}") for text in ("train", "dev") for end in ("en", "ja")
    )
    given = BuildConfig(source, target, dev, other, str(tmp_path / "system"))
    texts = prepared(given)
    assert texts.lines("train.target") == ["猫 が 魚 を 食 べ る 。"]
    assert not texts.path("truecase.target").exists() and texts.path("truecase.source").exists()
    assert corpus.survey(given).target_words == 8


def test_languages_come_from_names_or_options(tmp_path: Path) -> None:
    given = BuildConfig("train.en", "train", "dev", "dev.fr", "system")
    assert [one.language for one in corpus.sides(given)] == ["en", "fr"]
    given = BuildConfig("train.en", "train", "dev", "dev", "system", target_language="de")
    assert [one.language for one in corpus.sides(given)] == ["en", "de"]
    with pytest.raises(ConfigError, match="--target-language: missing, and train does not end in the code"):
        corpus.sides(BuildConfig("train.en", "train", "dev", "dev", "system"))
    with pytest.raises(ConfigError, match="--source-language: 'xx' is unknown"):
        corpus.sides(BuildConfig("train.en", "train.fr", "dev", "dev", "system", source_language="xx"))


def test_a_glossary_is_read_as_decoding_will_read_it(tmp_path: Path, grammar: ModuleType) -> None:
    """Two terms that are equal after normalization are refused."""
    (tmp_path / "terms").write_text("don’t\tne pas\ndon't\tpas\n", encoding="utf-8")
    given = config(tmp_path, grammar, glossary=str(tmp_path / "terms"))
    with pytest.raises(DataError, match="terms:2: "):
        corpus.check_glossary(given)
    (tmp_path / "terms").write_text("don’t\tne pas\n", encoding="utf-8")
    corpus.check_glossary(given)


def test_nothing_left_is_an_error(tmp_path: Path, grammar: ModuleType) -> None:
    given = config(tmp_path, grammar)
    Path(given.dev_source).write_text("\n" * 20)
    with pytest.raises(DataError, match=r"dev\.en: no pair is left after cleaning"):
        corpus.survey(given)
