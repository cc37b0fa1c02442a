"""Moses' tokenization and casing."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.text.tokenize import Tokenizer, learn_truecase, load_truecase, save_truecase


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
