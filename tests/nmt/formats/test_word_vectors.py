"""Word vectors are read as they were written; what is wrong is said with its line."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.formats import word_vectors

WORDS = ["le", "été", "12", "</w>", "a@@"]


def read(path: Path, wanted: object = frozenset(WORDS), size: int = 3) -> dict[str, word_vectors.Vector]:
    return dict(word_vectors.read(path, wanted, size, "model.embedding"))  # type: ignore[arg-type]


def test_written_vectors_are_read_bit_by_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(5, 3)) * 10.0 ** rng.integers(-30, 30, (5, 3))).astype(np.float32)
    word_vectors.write(tmp_path / "v", WORDS, vectors.tolist())
    assert (tmp_path / "v").read_text(encoding="utf-8").startswith("5 3\nle ")
    found = read(tmp_path / "v")
    assert list(found) == WORDS and np.array_equal(np.stack(list(found.values())), vectors)
    word_vectors.write(tmp_path / "none", [], [])
    assert (tmp_path / "none").read_text() == "0 0\n"


def test_files_of_all_makers_are_the_same(tmp_path: Path) -> None:
    """word2vec ends lines with a blank, GloVe has no header and words with blanks, and gzip is fine."""
    lines = ["le 1 2 -3", "été 0.5 1e-3 4"]
    (tmp_path / "glove").write_text("\n".join([*lines, ". . . 1 2 3", "at me@x.org 1 2 3"]) + "\n", "utf-8")
    (tmp_path / "word2vec").write_text("2 3\n" + "".join(f"{line} \n" for line in lines), "utf-8")
    (tmp_path / "packed").write_bytes(gzip.compress((tmp_path / "word2vec").read_bytes()))
    one = read(tmp_path / "glove")
    assert {word: vector.tolist() for word, vector in one.items()} == {
        "le": [1, 2, -3], "été": [0.5, np.float32(1e-3), 4]
    }  # fmt: skip
    for name in ("word2vec", "packed"):
        other = read(tmp_path / name)
        assert list(one) == list(other) and all(np.array_equal(one[word], other[word]) for word in one)


def test_only_wanted_words_are_read(tmp_path: Path) -> None:
    """Others may even be no numbers, and occur twice."""
    (tmp_path / "v").write_text("x a b c\nle 1 2 3\nx 1 2 3\n")
    assert list(read(tmp_path / "v")) == ["le"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("2 4\nle 1 2 3 4\n", "v:1: a vector of 4 numbers, expected 3 as model.embedding says"),
        ("le 1 2 3\nla 1 2\n", "v:2: a vector of 2 numbers, expected 3"),
        ("le 1 2 3\nla 1 2 3 4\n", "v:2: a vector of 4 numbers, expected 3"),
        ("x 1 2 3\nle 1 two 3\n", "v:2: 'two' is not a finite number"),
        ("x 1 2 3\nle 1 nan 3\n", "v:2: 'nan' is not a finite number"),
        ("x 1 2 3\nle 1 2 1e39\n", "v:2: '1e39' is not a finite number"),
        ("le 1 2 3\nx 1 2 3\nle 1 2 3\n", "v:3: 'le' occurs twice"),
        ("3 3\nle 1 2 3\nx 1 2 3\n", "v: 2 words, but its first line promises 3"),
        ("", "v: empty file"),
        ("le\n", "v:1: a vector of 0 numbers"),
        (b"le 1 2 3\n\xff 1 2 3\n", "v:2: "),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, content: str | bytes, message: str) -> None:
    (tmp_path / "v").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as error:
        read(tmp_path / "v")
    assert str(error.value).startswith(f"{tmp_path}/{message}")
