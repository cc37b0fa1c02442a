"""The text pipeline of one language."""

from pathlib import Path

from nmt.text import subword, truecase
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.tokenize import Tokenizer

FRENCH = "L'homme n'a pas « vu » les enfants, aujourd'hui."


def test_a_saved_pipeline_is_the_same(tmp_path: Path) -> None:
    config = SideConfig(language="fr", case="truecase")
    tokenizer = Tokenizer("fr", case="truecase")
    tokenizer.truecaser = truecase.MosesTruecaser([{"les": 3, "Les": 1}])
    pipeline = TextPipeline(
        tokenizer, subword.Subwords(subword.learn(subword.count_words([["les", "les", "lesté"]]), 2))
    )
    pipeline.save(tmp_path, "source")
    again = TextPipeline.load(tmp_path, "source", config)
    assert (
        again.units("Les lestés.") == pipeline.units("Les lestés.") == ["les", *pipeline.cut(["lestés"]), "."]
    )
    assert again.text(again.units("Les lestés.")) == "Les lestés."


def test_tokenized_skips_all_but_subwords() -> None:
    pipeline = TextPipeline(Tokenizer("en"), subword.Subwords(["#version: 0.2", "a b</w>"]))
    assert pipeline.units("Ab ab x'y", tokenized=True) == ["A@@", "b", "ab", "x@@", "'@@", "y"]
    assert pipeline.text(["a@@", "b", "."], tokenized=True) == "ab ."


def test_unit_counts_are_those_of_the_text() -> None:
    pipeline = TextPipeline(Tokenizer("en"), subword.Subwords(["#version: 0.2", "a b</w>"]))
    lines = [["ab", "b"], ["cab", "ab"]]
    assert pipeline.unit_counts(subword.count_words(lines)) == subword.count_words(
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
