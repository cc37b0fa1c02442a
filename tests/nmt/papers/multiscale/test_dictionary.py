"""Adapted byte-pair encoding against a naive recount, plain byte-pair encoding, and the document's own
example."""

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.papers.multiscale import command, dictionary
from nmt.papers.multiscale.dictionary import STALL, Dictionary
from tests.conftest import refusal

Token = tuple[str, ...]


def merged(line: list[Token], left: Token, right: Token) -> list[Token]:
    found: list[Token] = []
    for token in line:
        if found and found[-1] == left and token == right:
            # marked: a token just made is not the left half of another pair of the same merge
            found[-1] = ("", *left, *right)
        else:
            found.append(token)
    return [token[1:] if token[0] == "" else token for token in found]


def naive(lines: list[str], size: int, removals: str) -> list[Token]:
    """Algorithm 3 as corrected, with everything counted again after each change."""
    text: list[list[Token]] = [[(symbol,) for symbol in line] for line in lines]
    order: list[Token] = []  # tokens by age, those that are gone too
    for line in text:
        order += [token for token in dict.fromkeys(line) if token not in order]
    parts: dict[Token, tuple[Token, Token]] = {}
    alive = set(order)

    def pair_counts() -> Counter[tuple[Token, Token]]:
        counts: Counter[tuple[Token, Token]] = Counter()
        for line in text:
            at = dict.fromkeys(pairwise(line), -2)
            for place, pair in enumerate(pairwise(line)):
                if pair[0] != pair[1] or at[pair] < place - 1:
                    counts[pair] += 1
                    at[pair] = place
        return counts

    def apart(token: Token) -> list[Token]:
        return [token] if token in alive else [piece for part in parts[token] for piece in apart(part)]

    largest, stalled = len(alive), 0
    while len(alive) < size and stalled < STALL:
        counts = pair_counts()
        if not counts:
            break
        left, right = min(
            counts, key=lambda pair: (-counts[pair], order.index(pair[0]), order.index(pair[1]))
        )
        if counts[left, right] < 2:
            break
        new = left + right
        if new not in order:
            order.append(new)
            parts[new] = left, right
        alive.add(new)
        text = [merged(line, left, right) for line in text]
        if removals != "none":
            found = Counter(token for line in text for token in line)
            rare = {
                token
                for token in alive
                if len(token) > 1
                and found[token] < found[new]
                and (removals == "all" or token in (left, right))
            }
            alive -= rare
            text = [[piece for token in line for piece in apart(token)] for line in text]
        stalled = 0 if len(alive) > largest else stalled + 1
        largest = max(largest, len(alive))
    return [token for token in order if token in alive]


@pytest.mark.ci
@pytest.mark.parametrize("removals", dictionary.REMOVALS)
@pytest.mark.parametrize("letters", ["ab", "abc", "abcdefgh"])
def test_equal_to_a_naive_recount(letters: str, removals: str) -> None:
    for seed in range(12):
        rng = random.Random(f"{letters} {seed}")
        words = ["".join(rng.choice(letters) for _ in range(rng.randrange(1, 5))) for _ in range(6)]
        lines = ["".join(rng.choice(words) for _ in range(rng.randrange(0, 12))) for _ in range(8)]
        if not any(lines):
            continue
        for size in (4, 9, 25):
            found = dictionary.learn(lines, size, removals)
            assert found.tokens == naive(lines, size, removals), (seed, size)
            text = Counter(token for line in lines for token in dictionary.segment(found, line))
            assert set(text) <= set(found.tokens)


def check_abc(found: Dictionary) -> None:
    assert ["".join(token) for token in found.tokens][:4] == ["a", "b", "c", "abc"] and "ab" not in map(
        "".join, found.tokens
    )


def test_of_abcabc_the_whole_stays_and_its_beginning_goes() -> None:
    for removals in ("parts", "all"):
        check_abc(dictionary.learn(["abc" * 50], 6, removals))
    plain = dictionary.learn(["abc" * 50], 5, removals="none")
    assert ["".join(token) for token in plain.tokens] == ["a", "b", "c", "ab", "abc"]


def test_overlapping_pairs_count_once() -> None:
    """`aaa` has one pair a a, `abab` has two pairs a b."""
    assert dictionary.learn(["aaa"], 9).tokens == [("a",)]
    found = dictionary.learn(["aaaaa", "abab", "ab"], 3)
    assert found.tokens == [("a",), ("b",), ("a", "b")], "a b three times, a a twice"


def test_no_token_crosses_a_line() -> None:
    assert dictionary.learn(["ab", "ab", "ba"] * 20, 9).tokens == [("a",), ("b",), ("a", "b"), ("b", "a")]


def test_segments_are_as_few_as_can_be_and_make_the_text_again() -> None:
    tokens = [("a",), ("b",), ("c",), ("a", "b"), ("b", "c"), ("a", "b", "c"), ("c", "a")]
    model = Dictionary(tokens, [1] * len(tokens))
    assert dictionary.segment(model, "abcabc") == [("a", "b", "c"), ("a", "b", "c")]
    assert dictionary.segment(model, "bcab") == [("b", "c"), ("a", "b")]
    rng = random.Random(1)
    for _ in range(50):
        text = [rng.choice("abc") for _ in range(rng.randrange(0, 15))]
        assert [symbol for token in dictionary.segment(model, text) for symbol in token] == text
    assert dictionary.segment(model, "") == []


def test_a_line_is_segmented_without_a_walk_over_all_tokens() -> None:
    """Which took longer than the line, for each of a million lines."""
    model = Dictionary([("a",), ("b",), ("a", "b")], [1] * 3)
    model.tokens = []
    assert dictionary.segment(model, "ab") == [("a", "b")]


def test_a_symbol_that_the_dictionary_lacks_is_a_segment() -> None:
    tokens = [("a",), ("b",), ("c",), ("a", "b"), ("b", "c", "c")]
    model = Dictionary(tokens, [1] * len(tokens))
    assert dictionary.segment(model, "abcc?") == [("a",), ("b", "c", "c"), ("?",)]
    assert dictionary.segment(Dictionary([], []), "ab") == [("a",), ("b",)]


def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text").write_text("a b\n")
    monkeypatch.setattr(dictionary, "learn", lambda *_: pytest.fail("learned"))
    given = ["learn", "-i", tmp_path / "text", "-o", tmp_path / "text" / "d"]
    assert "text" in refusal(command.main, capsys, *given)


def test_files(tmp_path: Path) -> None:
    found = dictionary.learn(["the cat the hat".replace(" ", "_")] * 3, 12)
    found.save(tmp_path / "d")
    again = Dictionary.load(tmp_path / "d")
    assert again == found and dictionary.table(again)[0][0] == 1
    text = (tmp_path / "d").read_text()
    for changed, message in [
        (text.replace("#version: 1", "#version: 2"), "is this a dictionary of this version?"),
        (
            "\n".join(text.split("\n")[:-2]) + "\n",
            f"but its first line promises {len(found)}; was it copied whole?",
        ),
        (text.replace("\t", " ", 1), "d:2: expected symbols separated by blanks"),
        (text.replace("t\t", "q\t", 1), "a symbol that is not a token itself"),
        ("", "d:1: expected"),
        (text.replace(f"size={len(found)}", "size=²"), "d:1: expected"),
        (text.replace("\t", "\t²", 1), "d:2: expected"),
        (text.replace("\t", "\t" + "9" * 5000, 1), "d:2: expected"),
    ]:
        (tmp_path / "d").write_text(changed)
        with pytest.raises(DataError) as error:
            Dictionary.load(tmp_path / "d")
        assert message in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(DataError, match="no symbols"):
        dictionary.learn([""], 9)
