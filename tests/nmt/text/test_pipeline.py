"""The text pipeline of one language."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.text import truecase
from nmt.text.pipeline import SideConfig, TextPipeline, kind_of
from nmt.text.subwords import Learning, TrainingText, bpe
from nmt.text.subwords.unigram import Unigram
from nmt.text.tokenize import Tokenizer
from tests.spaceless import japanese

FRENCH = "L'homme n'a pas « vu » les enfants, aujourd'hui."


def test_a_saved_pipeline_is_the_same(tmp_path: Path) -> None:
    config = SideConfig(language="fr", case="truecase")
    tokenizer = Tokenizer("fr", case="truecase")
    tokenizer.truecaser = truecase.MosesTruecaser([{"les": 3, "Les": 1}])
    pipeline = TextPipeline(tokenizer, bpe.BPE(bpe.learn(bpe.count_words([["les", "les", "lesté"]]), 2)))
    pipeline.save(tmp_path, "source")
    again = TextPipeline.load(tmp_path, "source", config)
    assert (
        again.units("Les lestés.") == pipeline.units("Les lestés.") == ["les", *pipeline.cut(["lestés"]), "."]
    )
    assert again.text(again.units("Les lestés.")) == "Les lestés."


def test_tokenized_skips_all_but_subwords() -> None:
    pipeline = TextPipeline(Tokenizer("en"), bpe.BPE(["#version: 0.2", "a b</w>"]))
    assert pipeline.units("Ab ab x'y", tokenized=True) == ["A@@", "b", "ab", "x@@", "'@@", "y"]
    assert pipeline.text(["a@@", "b", "."], tokenized=True) == "ab ."


def test_unit_counts_are_those_of_the_text() -> None:
    pipeline = TextPipeline(Tokenizer("en"), bpe.BPE(["#version: 0.2", "a b</w>"]))
    lines = [["ab", "b"], ["cab", "ab"]]
    assert pipeline.unit_counts(bpe.count_words(lines)) == bpe.count_words(
        pipeline.cut(words) for words in lines
    )


def test_escapes_of_moses_are_undone_and_put_back() -> None:
    pipeline = TextPipeline.of(SideConfig(tokenize=False, normalize=False, case="keep", escaped=True))
    line = "l&apos; homme &quot; &amp; &#124; a"
    assert (
        pipeline.words(line) == ["l'", "homme", '"', "&", "|", "a"]
        and pipeline.text(pipeline.units(line)) == line
    )
    assert pipeline.text(pipeline.units(line), tokenized=True) == line
    assert (
        TextPipeline.of(SideConfig(tokenize=False, normalize=False, case="keep")).words(line)[0] == "l&apos;"
    )


def test_languages_without_blanks_have_sentencepiece(tmp_path: Path) -> None:
    """Unless a file or a setting says otherwise; what it reads is neither tokenized nor normalized."""
    bpe.BPE(["#version: 0.2", "a b</w>"]).save(tmp_path / "codes")
    learned = TrainingText(sentences=True)
    for source, target in japanese(50):
        learned.add([source, target])
    unigram = Unigram.learn(learned, Learning(0, 0, True, "identity"))
    unigram.save(tmp_path / "spm")
    codes, model = str(tmp_path / "codes"), str(tmp_path / "spm")
    kinds = {
        "ja": "unigram",
        "zh": "unigram",
        "th": "unigram",
        "zh-TW": "unigram",
        "en": "none",
        "ko": "none",
    }
    assert {language: kind_of(SideConfig(language)) for language in kinds} == kinds
    assert [kind_of(SideConfig(language), merges=9) for language in ("en", "ja")] == ["bpe", "unigram"]
    assert kind_of(SideConfig("ja", codes=codes)) == kind_of(SideConfig("ja", subword="bpe"), 9) == "bpe"
    assert kind_of(SideConfig("en", codes=model)) == kind_of(SideConfig("en", subword="unigram")) == "unigram"
    assert kind_of(SideConfig("ja", characters=True)) == "none" == kind_of(SideConfig("ja", subword="none"))
    line = "「ＡＢＣ」は 犬--が..好き’です"
    for pipeline in (
        TextPipeline.of(SideConfig("en", case="keep", codes=model)),
        TextPipeline.of(SideConfig("ja", case="keep", codes=model)),
    ):
        assert pipeline.text(pipeline.units(line)) == line == " ".join(pipeline.words(line))
        pipeline.save(tmp_path, "source")
        again = TextPipeline.load(tmp_path, "source", SideConfig("ja", case="keep"))
        assert again.units(line) == pipeline.units(line) and again.text(again.units(line)) == line
    lower = TextPipeline.of(SideConfig("ja", case="lower", codes=model))
    assert lower.text(lower.units("犬はDog")) == "犬はdog"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            SideConfig("en", subword="unigram", case="truecase"),
            "case: truecase needs words, and SentencePiece reads raw text",
        ),
        (SideConfig("en", subword="bpe"), "subword: bpe needs data.bpe_merges, or a file of codes"),
        (SideConfig("en", subword="unigram", characters=True), "exclude each other"),
    ],
)
def test_contradictions_are_told(config: SideConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TextPipeline.of(config)


def test_codes_of_another_kind_are_told(tmp_path: Path) -> None:
    bpe.BPE(["#version: 0.2", "a b</w>"]).save(tmp_path / "codes")
    for subword in ("unigram", "none"):
        with pytest.raises(ConfigError, match=f"codes: holds bpe units, but subword is '{subword}'"):
            TextPipeline.of(SideConfig("en", codes=str(tmp_path / "codes"), subword=subword))


def test_who_asks_for_a_segmentation_gets_words() -> None:
    """Else SentencePiece reads the raw text of these languages."""
    assert kind_of(SideConfig("ja")) == kind_of(SideConfig("ja"), 100) == "unigram"
    segmented = SideConfig("ja", segment="character")
    assert (kind_of(segmented), kind_of(segmented, 100)) == ("none", "bpe")
    pipeline = TextPipeline.of(segmented)
    assert pipeline.units("私はSony製") == ["私", "は", "Sony", "製"]
    assert pipeline.text(pipeline.units("私はSony製")) == "私はSony製"


def test_a_run_without_subwords_stays_so(tmp_path: Path) -> None:
    """Whole words of a language without blanks, as version 0.5 trained: what the run holds counts."""
    pipeline = TextPipeline.load(tmp_path, "target", SideConfig("ja", case="keep"))
    assert pipeline.subwords is None and pipeline.units("犬が、好き。") == Tokenizer("ja", case="keep").words(
        "犬が、好き。"
    )
