from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.text.vocab import BOS, EOS, UNK, Vocab

LINES = [["b", "a", "b"], ["c", "a", "</s>"], ["b", "d\xa0x"]]


def test_order_is_by_count_then_word() -> None:
    vocab = Vocab.count(LINES, size=3)
    assert vocab.words == ["<s>", "</s>", "<unk>", "b", "a", "c"]
    assert vocab.encode(["b", "c", "d\xa0x", "zzz"]) == [3, 5, UNK, UNK]
    assert vocab.decode([3, 4]) == ["b", "a"]


def test_ties_do_not_hang_on_the_order_of_the_text() -> None:
    assert (
        Vocab.count([["z", "y", "x"]], 2).words[3:]
        == Vocab.count([["y", "x", "z"]], 2).words[3:]
        == ["x", "y"]
    )


def test_text_never_produces_a_special() -> None:
    assert Vocab.count([["</s>", "<s>", "<unk>", "a"]], 10).encode(["</s>", "<s>", "<unk>"]) == [UNK] * 3
    assert (BOS, EOS, UNK) == (0, 1, 2)


def test_coverage() -> None:
    assert Vocab.count(LINES, size=2).coverage() == 5 / 7  # b 3 times and a twice; </s> is no word


def test_file_keeps_all_counts(tmp_path: Path) -> None:
    vocab = Vocab.count(LINES, size=2)
    vocab.save(tmp_path / "v")
    assert (tmp_path / "v").read_text(
        encoding="utf-8"
    ) == "#version: 1 vocabulary size=2\nb\t3\na\t2\nc\t1\nd\xa0x\t1\n"
    assert Vocab.load(tmp_path / "v") == vocab


@pytest.mark.parametrize("text", ["a 2\nb 0\n", "#version: 1 vocabulary size=2\na\t2\nb\t0\n"])
def test_a_word_that_a_file_lists_has_an_id_whatever_its_count(text: str, tmp_path: Path) -> None:
    (tmp_path / "v").write_text(text)
    assert Vocab.load(tmp_path / "v").words[3:] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the cat 3\n", "v:1: expected"),
        ("#version: 1 vocabulary 1\na\t3\n", "v:1: expected"),
        ("the 3\na\t2\n", "v:2: expected 'unit count'"),
        ("the 3\nthe 2\n", "v:2: 'the' occurs twice"),
        ("<unk>\t0\n<s>\t0\n▁the\t-3.1\n", "is a list of SentencePiece's units, without counts"),
        ("#version: 1 vocabulary size=1\na 3\n", "v:2: expected"),
        ("#version: 1 vocabulary size=2\na\t3\n", "1 word, but"),
        ("#version: 1 vocabulary size=-1\na\t3\n", "v:1: expected"),
        ("#version: 1 vocabulary size=²\na\t3\n", "v:1: expected"),
        (f"#version: 1 vocabulary size={'9' * 5000}\na\t3\n", "v:1: expected"),
        ("#version: 1 vocabulary size=1\na\t²\n", "v:2: expected"),
        (f"#version: 1 vocabulary size=1\na\t{'9' * 5000}\n", "v:2: expected"),
        ("#version: 1 vocabulary size=1\na\t3\na\t2\n", "v:3: 'a' occurs twice"),
    ],
)
def test_foreign_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "v").write_text(text)
    with pytest.raises(DataError, match=message):
        Vocab.load(tmp_path / "v")


def test_min_count() -> None:
    assert Vocab.count(LINES, size=10, min_count=2).words[3:] == ["b", "a"]


def test_a_vocabulary_of_subword_nmt_is_read(tmp_path: Path) -> None:
    """As `subword-nmt get-vocab` and `--write-vocabulary` write it."""
    (tmp_path / "v").write_text("the 31\ner@@ 12\ncat 12\n")
    vocab = Vocab.load(tmp_path / "v")
    assert vocab.counts == {"the": 31, "cat": 12, "er@@": 12} and vocab.word_count == 3
