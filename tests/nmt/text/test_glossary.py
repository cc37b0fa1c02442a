"""Terms of a glossary are found in sentences, and a mistake in the file is named with its line."""

import random
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.text import glossary
from nmt.text.glossary import Glossary, Term


def of(*terms: str) -> Glossary:
    return Glossary({tuple(term.split()): Term([term.upper()], term.upper()) for term in terms})


def found(terms: Glossary, text: str) -> list[str]:
    words = text.split()
    matches = terms.find(words, glossary.sentence_starts(words))
    return [" ".join(words[match.start : match.end]) for match in matches]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b c d", ["b c d"]),  # the longest wins, not the first
        ("a b c", ["a b"]),  # of equally long ones the first
        ("a b a b", ["a b", "a b"]),
        ("A b . A b : a B", ["A b", "A b"]),  # where sentences begin
        ('" A b', ["A b"]),
        ("x A b", []),
        ("x Us us", ["Us"]),
        ("us", []),
        ("iPhone , IPhone", ["iPhone"]),
        ("IPhone", ["IPhone"]),
        ("", []),
    ],
)
def test_terms_of_a_sentence(text: str, expected: list[str]) -> None:
    assert found(of("a b", "b c", "b c d", "Us", "iPhone"), text) == expected


def test_matches_never_overlap() -> None:
    rng = random.Random(1)
    terms = of(*{" ".join(rng.choice("abc") for _ in range(rng.randint(1, 4))) for _ in range(12)})
    for _ in range(100):
        words = [rng.choice("abcd") for _ in range(12)]
        taken: set[int] = set()
        matches = terms.find(words, glossary.sentence_starts(words))
        for match in matches:
            place = set(range(match.start, match.end))
            assert place and not place & taken and tuple(words[match.start : match.end]) in terms.terms
            taken |= place
        for begin in range(12):  # none is left out
            for end in range(begin + 1, 13):
                if tuple(words[begin:end]) in terms.terms:
                    assert taken & set(range(begin, end))


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "terms").write_text("# a\tb\n\n  \nheat pump\t pompe  à chaleur \na\ta\na\ta\n #1\tno 1\n")
    made = glossary.read_tokenized(str(tmp_path / "terms"))
    assert {" ".join(words): term.raw for words, term in made.terms.items()} == {
        "heat pump": "pompe  à chaleur",
        "a": "a",
        "#1": "no 1",
    }
    assert made.terms["heat", "pump"].words == ["pompe", "à", "chaleur"] and made.sizes == [2, 1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a b", "expected a term, a tab and its translation"),
        ("a\tb\tc", "expected a term, a tab"),
        ("a\t", "expected a term, a tab"),
        ("\tb", "expected a term, a tab"),
        ("x\tz", "'x' is 'z' here, but 'y' in"),
    ],
)
def test_mistakes_are_named(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "terms"
    path.write_text(f"# terms\nx\ty\n{line}\n")
    with pytest.raises(DataError) as error:
        glossary.read_tokenized(str(path))
    assert str(error.value).startswith(f"{path}:3: ") and message in str(error.value)


def test_a_side_without_words() -> None:
    with pytest.raises(DataError, match=r"terms:1: .*no words"):
        glossary.from_rows([("terms:1", "x", "y")], lambda term: [()], str.split)
