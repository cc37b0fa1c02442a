"""Moses' rules of text, there and back, and truecasing."""

from pathlib import Path

import pytest

from nmt.data.tokenize import Tokenizer, learn_truecase, load_truecase, save_truecase
from nmt.errors import ConfigError, DataError

TEXTS = ["L'homme n'a pas vu l'arbre.", "Oui, « non ».", "", "3,5 % d'eau"]


@pytest.mark.parametrize("case", ["keep", "lower"])
def test_words_are_a_fixed_point_of_their_text(case: str) -> None:
    tokenizer = Tokenizer("fr", case=case)
    for text in TEXTS:
        words = tokenizer.words(text)
        assert tokenizer.words(tokenizer.text(words)) == words
        assert not any(set(word) & set(" \t\n\u2028\xa0") for word in words) and "" not in words


def test_words_by_hand() -> None:
    assert Tokenizer("fr").words('C\'est "ça".') == ["c'", "est", '"', "ça", '"', "."]
    plain = Tokenizer("fr", normalize=False, tokenize=False, case="keep")
    assert plain.words(" C'est  ça. ") == ["C'est", "ça."] and plain.text(["C'est", "ça."]) == "C'est ça."


def test_truecase_is_learned_away_from_the_start(tmp_path: Path) -> None:
    sentences = [["The", "old", "Paris"], ["Paris", "the", "end"], *[["Old", "the", "Paris"]] * 30]
    model = learn_truecase(sentences)
    assert (model["the"], model["old"], model["paris"]) == ("the", "old", "Paris")
    save_truecase(model, tmp_path / "case")
    assert load_truecase(tmp_path / "case") == model
    tokenizer = Tokenizer("en", case="truecase")
    with pytest.raises(ConfigError, match="needs a truecase model"):
        tokenizer.words("The end")
    tokenizer.truecaser = model
    assert tokenizer.words("The Paris") == ["the", "Paris"] and tokenizer.words("Unseen The")[0] == "Unseen"
    assert tokenizer.text(["the", "Paris"]) == "The Paris" and tokenizer.words("") == []


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="case: 'x' is unknown, expected one of keep, lower, truecase"):
        Tokenizer(case="x")
    for text, message in (
        ("the\tthe\n", ":1: expected '#version"),
        ("#version: 1 truecase\nthe the\n", ":2: "),
    ):
        (tmp_path / "case").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=message):
            load_truecase(tmp_path / "case")
