"""Truecasing by Moses' rules. The expected words are what its perl scripts write."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.text import truecase
from nmt.text.truecase import Truecaser

TEXT = [
    "The man sees Anna .",
    "Anna sees the man : The End .",
    '" The dog ( Rex ) sees The man . He sleeps !',
    "&quot; Yes , the the",
]
# train-truecaser.perl --model MODEL --corpus TEXT
MODEL = [
    ") (1/1)", ", (1/1)", ". (3/3)", ": (1/1)", "Anna (1/1)", "dog (1/1)", "End (1/1)", "( (1/1)",
    "man (3/3)", "Rex (1/1)", "sees (3/3)", "sleeps (1/1)", "the (3/4) The (1)", "! (1/1)",
]  # fmt: skip


def model() -> Truecaser:
    return truecase.learn(line.split() for line in TEXT)


def test_a_model_has_the_counts_of_moses(tmp_path: Path) -> None:
    truecase.save(model(), tmp_path / "model")
    lines = (tmp_path / "model").read_text().split("\n")[:-1]
    assert sorted(lines) == sorted(MODEL) and lines == list(truecase.load(tmp_path / "model").lines())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The Man : The End . The dog", "the man : the End . the dog"),  # Man: never seen like this
        ("I see The man", "I see The man"),  # a form that is known stays inside a sentence
        ("I see THE man", "I see the man"),
        ("&quot; ( The End", "&quot; ( the End"),  # a sentence starts behind brackets and quotes
        ('" . " The', '" . " the'),
        ("the ) The", "the ) The"),  # but not behind a closing one
        ("ANNA anna", "Anna Anna"),
        ("", ""),
    ],
)
def test_words_get_the_case_that_moses_gives(line: str, expected: str) -> None:
    assert " ".join(model().apply(line.split())) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("the man . he sleeps", "The man . He sleeps"),
        ("&quot; ( the man", "&quot; ( The man"),
        ("yes ! &apos; école : été", "Yes ! &apos; École : Été"),
        ("iPod", "IPod"),
    ],
)
def test_sentences_start_with_a_capital_again(line: str, expected: str) -> None:
    assert " ".join(model().undo(line.split())) == expected


WORDS = st.lists(st.sampled_from(["the", "The", "man", ".", ":", "(", '"', "Anna", "1", "&quot;", "İ", "ß"]))


@settings(deadline=None)
@given(st.lists(WORDS), WORDS)
def test_a_saved_model_gives_the_same_case(text: list[list[str]], words: list[str]) -> None:
    learned = truecase.learn(text)
    again = Truecaser(truecase.parse_forms(line, "x") for line in learned.lines())
    assert again.apply(words) == learned.apply(words) and list(again.lines()) == list(learned.lines())
    applied = learned.apply(words)
    assert [word.lower() for word in applied] == [word.lower() for word in words]
    assert learned.apply(applied) == applied, "twice is once"


def test_of_equally_frequent_forms_the_smaller_string_wins() -> None:
    assert truecase.learn([["x", "a", "A"], ["x", "b", "B", "b"]]).best == {"a": "A", "b": "b"}


def test_models_of_moses_with_tenths_are_read(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("Paris (1.1/1.2) paris (0.1)\nthe (3/3)\n")
    found = truecase.load(tmp_path / "model")
    assert found.apply(["PARIS", "The"]) == ["Paris", "the"]
    assert list(found.lines()) == ["Paris (1.1/1.2) paris (0.1)", "the (3/3)"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the (3/3)\nParis", "model:2: expected forms of a word"),
        ("the (3/3)\n\n", "model:2: expected forms of a word"),
        ("the (3/3) The", "model:1: expected forms of a word"),
        ("the (x/3)", "model:1: expected forms of a word"),
        ("the (-1)", "model:1: expected forms of a word"),
        ("the 3", "model:1: expected forms of a word"),
        ("the (0/3)", "model:1: expected forms of a word"),
        ("a (3/3)\nthe (12/5)", "model:2: impossible counts"),
        ("the (12/13) The (5)", "model:1: impossible counts"),
        ("the (1/3) the (2)", "model:1: impossible counts"),
        ("", "model: has no words"),
    ],
)
def test_what_is_no_model_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "model").write_text(text)
    with pytest.raises(DataError, match=message):
        list(truecase.load(tmp_path / "model").lines())


def test_a_run_of_text_without_words_inside_sentences_loads(tmp_path: Path) -> None:
    truecase.save(truecase.learn([["Ja"], ["Nein"]]), tmp_path / "model")
    assert truecase.load(tmp_path / "model", may_be_empty=True).apply(["Ja", "Wort"]) == ["Ja", "Wort"]


def test_the_model_of_a_run_is_parsed_when_it_is_needed(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("no model")
    model = truecase.load(tmp_path / "model", may_be_empty=True)
    assert model.undo(["ja"]) == ["Ja"]
    with pytest.raises(DataError, match="model:1: expected forms of a word"):
        model.apply(["ja"])


def test_a_form_that_ends_with_a_carriage_return_survives_its_file(tmp_path: Path) -> None:
    learned = truecase.learn([["x", "Paris\r", "is", "Lyon"]] * 2)
    truecase.save(learned, tmp_path / "model")
    assert truecase.load(tmp_path / "model").apply(["paris\r", "lyon"]) == ["Paris\r", "Lyon"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('<n translation="The House">The</n> MAN', '<n translation="The House">the</n> man'),
        ("The|DT Man|NN", "the|DT man|NN"),
        ("The  man\t<wall/> The|a|B |x", "the  man\t<wall/> The|a|B |x"),
        ("a < b > The MAN <b", "a < b > The man <b"),
        ("<<" * 9 + ">", "<<" * 9 + ">"),
    ],
)
def test_tags_factors_and_blanks_stay_as_they_are(line: str, expected: str) -> None:
    assert truecase.apply_to_line(model(), line) == expected


def test_tags_are_not_learned() -> None:
    assert truecase.plain_words('a <n x="The End">b</n> < c') == ["a", "b", "<", "c"]
