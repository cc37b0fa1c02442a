"""BPE dropout: cuts that change, text that does not."""

import io
import random
from collections import Counter
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.io import files
from nmt.text.subwords import bpe
from nmt.text.vocab import UNK, Vocab


def test_dropped_merges_keep_the_text_and_follow_their_key() -> None:
    """All cuts join to the same words; the same key cuts alike, others differ; rate 0 is the plain cut; what
    was dropped is not remembered."""
    counts = Counter({"lower": 9, "lowest": 7, "newer": 5, "wide": 3})
    lines = bpe.learn(counts, 12)
    plain = bpe.BPE(lines)
    words = ["lower", "newer", "lowest", "wide"]
    units = Counter(plain.apply(words) + bpe.all_units(lines, "".join(counts)))
    vocab = Vocab(units, 999)
    ids = vocab.encode(plain.apply(words))
    dropped = bpe.DroppedMerges(lines, 0.5, vocab)
    cuts = [dropped(ids, f"1 2 {row}") for row in range(30)]
    assert all(bpe.undo(vocab.decode(cut)) == words and UNK not in cut for cut in cuts)
    assert len({tuple(cut) for cut in cuts}) > 10 and dropped(ids, "1 2 7") == cuts[7]
    assert bpe.DroppedMerges(lines, 0.0, vocab)(ids, "x") == ids
    assert plain.apply(words) == vocab.decode(ids)
    assert dropped([*ids, UNK], "1") == [*ids, UNK]
    state = random.getstate()
    dropped(ids, "y")
    assert random.getstate() == state


ODD = [
    "\r",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x85",
    "\xa0",
    "\u2028",
    "\u2029",
    "\u3000",
    "\ufeff",
]  # str.split() or splitlines() part words here


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_only_blanks_and_tabs_part_words(odd: str, tmp_path: Path) -> None:
    """A word with such a character in it, at its begin, at its end or alone is a word; codes that were
    learned with it survive their file."""
    words = [odd, f"a{odd}", f"{odd}a", f"a{odd}b", f"{odd}{odd}", f"ab{odd}ab{odd}", "ab", "abab"]
    counts = Counter(dict.fromkeys(words, 5))
    lines = bpe.learn(counts, 20)
    plain = bpe.BPE(lines)
    files.write_text(tmp_path / "codes", lines)
    units = plain.apply(words)
    assert bpe.undo(units) == words and bpe.load_codes(tmp_path / "codes").apply(words) == units
    assert plain.apply(["abab"]) == ["abab"]
    vocab = Vocab(Counter(units + bpe.all_units(lines, "".join(counts))), 999)
    vocab.save(tmp_path / "vocab")
    assert Vocab.load(tmp_path / "vocab") == vocab
    dropped = bpe.DroppedMerges(lines, 0.5, vocab)
    for key in "12345":
        assert bpe.undo(vocab.decode(dropped(vocab.encode(units), key))) == words


def test_words_of_one_character_have_no_merges() -> None:
    for counts in (Counter("abc"), Counter(), Counter({"a\rb": 3})):
        lines = bpe.learn(counts, 5)
        assert lines == ["#version: 0.2"] and bpe.BPE(lines).apply(["abc"]) == ["a@@", "b@@", "c"]


def test_cuts_are_those_of_subword_nmt() -> None:
    """On text without odd characters, in both versions of the format."""
    from subword_nmt.apply_bpe import BPE

    rng = random.Random(3)
    counts = Counter("".join(rng.choices("abcd", k=rng.randint(1, 8))) for _ in range(300))
    for version in ("0.1", "0.2"):
        lines = [f"#version: {version}", *bpe.learn(counts, 40)[1:]]
        theirs = BPE(io.StringIO("\n".join(lines) + "\n"))
        assert bpe.BPE(lines).apply(list(counts)) == theirs.segment_tokens(list(counts))


@pytest.mark.parametrize("line", ["#version: 0.3", "#version: ²", "#version:", "a", "a b c", ""])
def test_lines_that_are_no_codes_are_named(line: str) -> None:
    with pytest.raises(DataError, match="codes:1: "):
        bpe.BPE([line, "a b"], "codes")


def test_bpe_there_and_back() -> None:
    counts = bpe.count_words([["low"] * 5, ["lower"] * 2, ["newest"] * 6, ["widest"] * 3])
    codes = bpe.BPE(bpe.learn(counts, 4))
    units = codes.apply(["lowest", "newest"])
    assert len(units) > 2 and bpe.undo(units) == ["lowest", "newest"]
    assert bpe.undo(["a@@", "b", "c", "d@@"]) == ["ab", "c", "d"]


def test_first_merges_are_the_most_frequent_pairs() -> None:
    """`e s` and `s t` stand in newest (6) and widest (3): 9 times; of equals the larger pair comes first. The
    last letter holds the end."""
    counts = bpe.count_words([["low"] * 5, ["lower"] * 2, ["newest"] * 6, ["widest"] * 3])
    assert bpe.learn(counts, 2)[1:] == ["s t</w>", "e st</w>"]


def test_bad_codes_are_named(tmp_path: Path) -> None:
    (tmp_path / "codes").write_text("#version: 0.2\na b\na b c\n")
    with pytest.raises(DataError, match="codes:3: 'a b c' is not two symbols"):
        bpe.load_codes(tmp_path / "codes")


def test_units_belong_to_words() -> None:
    numbers = bpe.BPE(["#version: 0.2"]).word_numbers
    assert numbers(["lo@@", "w@@", "er", "case", "x@@"]) == [0, 0, 0, 1, 2] and numbers([]) == []
