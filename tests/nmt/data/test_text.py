from pathlib import Path

import pytest

from nmt.data import subword
from nmt.data.text import SideConfig, TextPipeline
from nmt.data.tokenize import Tokenizer, learn_truecase, load_truecase, save_truecase
from nmt.errors import ConfigError, DataError

FRENCH = "L'homme n'a pas « vu » les enfants, aujourd'hui."


def test_tokenize_lower_and_back() -> None:
    tokenizer = Tokenizer("fr", case="keep")
    words = tokenizer.words("L'homme n'a pas vu l'arbre, hier.")
    assert words == ["L'", "homme", "n'", "a", "pas", "vu", "l'", "arbre", ",", "hier", "."]
    assert tokenizer.text(words) == "L'homme n'a pas vu l'arbre, hier."
    assert Tokenizer("fr", case="lower").words("L'Été") == ["l'", "été"]


def test_no_escapes_are_written() -> None:
    assert Tokenizer("en").words('a & b\'s [c] | "d"') == [
        "a",
        "&",
        "b",
        "'s",
        "[",
        "c",
        "]",
        "|",
        '"',
        "d",
        '"',
    ]


@pytest.mark.parametrize("line", ["", "   ", "\u2028", "\xa0 \x85", "a\u2028b", "c\x0cd\re"])
def test_words_never_contain_a_blank_or_line_end(line: str) -> None:
    for case in ("keep", "lower"):
        for word in Tokenizer("en", case=case).words(line):
            assert word and not set(word) & set(" \t\n")


def test_truecase_lowers_only_what_is_lower_elsewhere(tmp_path: Path) -> None:
    model = learn_truecase([["The", "man", "sees", "Anna"], ["Anna", "sees", "the", "man"], ["the", "the"]])
    save_truecase(model, tmp_path / "model")
    assert load_truecase(tmp_path / "model") == model
    tokenizer = Tokenizer("en", case="truecase")
    tokenizer.truecaser = model
    assert tokenizer.words("The Anna") == ["the", "Anna"]
    assert tokenizer.words("Anna sleeps") == ["Anna", "sleeps"]
    assert tokenizer.text(["the", "Anna"]) == "The Anna"


def test_a_cut_truecase_model_is_refused(tmp_path: Path) -> None:
    for line in ("paris", "paris\tParis\tx"):
        (tmp_path / "model").write_text(f"#version: 1 truecase\nx\tX\n{line}")
        with pytest.raises(DataError, match="model:3: expected a lower-cased word"):
            load_truecase(tmp_path / "model")


def test_a_form_that_ends_with_a_carriage_return_survives_its_file(tmp_path: Path) -> None:
    model = learn_truecase([["x", "Paris\r", "is", "Lyon"]] * 2)
    save_truecase(model, tmp_path / "model")
    assert load_truecase(tmp_path / "model") == model and model["lyon"] == "Lyon"


def test_truecase_without_a_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="truecase model"):
        Tokenizer("en", case="truecase").words("a")
    with pytest.raises(ConfigError, match="expected one of keep, lower, truecase"):
        Tokenizer("en", case="upper")


def test_bpe_there_and_back() -> None:
    counts = subword.count_words([["low"] * 5, ["lower"] * 2, ["newest"] * 6, ["widest"] * 3])
    codes = subword.Subwords(subword.learn(counts, 4))
    units = codes.apply(["lowest", "newest"])
    assert len(units) > 2 and subword.undo(units) == ["lowest", "newest"]
    assert subword.undo(["a@@", "b", "c", "d@@"]) == ["ab", "c", "d"]


def test_first_merges_are_the_most_frequent_pairs() -> None:
    """`e s` and `s t` stand in newest (6) and widest (3): 9 times; of equals the larger pair comes first. The
    last letter holds the end."""
    counts = subword.count_words([["low"] * 5, ["lower"] * 2, ["newest"] * 6, ["widest"] * 3])
    assert subword.learn(counts, 2)[1:] == ["s t</w>", "e st</w>"]


def test_bad_codes_are_named(tmp_path: Path) -> None:
    (tmp_path / "codes").write_text("#version: 0.2\na b\na b c\n")
    with pytest.raises(DataError, match="codes:3: 'a b c' is not two symbols"):
        subword.load(tmp_path / "codes")


def test_a_saved_pipeline_is_the_same(tmp_path: Path) -> None:
    config = SideConfig(language="fr", case="truecase")
    tokenizer = Tokenizer("fr", case="truecase")
    tokenizer.truecaser = {"les": "les"}
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
