"""n-best lists, word alignments and word vectors: read as they were written, and errors name the line."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.formats import nbest, pharaoh, word_vectors
from nmt.formats.nbest import Hypothesis
from nmt.io import files


def test_read_of_write_is_the_same() -> None:
    hypotheses = [
        Hypothesis(0, ["un", "ho|mme"], {"NMT0": [-1.25]}, -0.5),
        Hypothesis(1, [], {"A0": [1.0, -2.5], "B": []}, 0.0, ["0-1=0-1", "0-0"]),
    ]
    assert [nbest.parse(nbest.write(hypothesis), "x:1") for hypothesis in hypotheses] == hypotheses


def test_moses_form() -> None:
    assert (
        nbest.write(Hypothesis(3, ["a", "b"], {"NMT0": [-1.77]}, -0.59))
        == "3 ||| a b ||| NMT0= -1.77 ||| -0.59"
    )


@pytest.mark.parametrize(
    "line",
    [
        "0 ||| a ||| b",
        "x ||| a ||| N= 1 ||| 0",
        "0 ||| a ||| N= 1 N= 2 ||| 0",
        "0 ||| a ||| N= nan ||| 0",
        "0 ||| a ||| N= one ||| 0",
    ],
)
def test_malformed_lines_are_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "n").write_text(f"0 ||| a ||| N= 1 ||| 0\n{line}\n")
    with pytest.raises(DataError, match="n:2: "):
        list(nbest.read(tmp_path / "n"))


def test_labels_that_moses_would_misread(tmp_path: Path) -> None:
    for features, message in (("RNN: -3.2", "before version 2"), ("RNN=-3.2", "no blank after '='")):
        with pytest.raises(DataError, match=message):
            nbest.parse(f"0 ||| a ||| {features} ||| 0", "n:1")


# Every variant of the notes on Moses: two blanks, no labels, an empty hypothesis, segmentation, alignment,
# both, old spacing.
VARIANTS = [
    "0 ||| un xylophone .  ||| LM0= -40.5725 TM0= -0.65 -1.78 ||| -113.133",
    "0 ||| un xylophone .  ||| -40.5725 -0.65 -1.78 ||| -113.133",
    "1 |||  ||| LM0= 0 TM0= 0 0 ||| 0",
    "2 ||| a b  ||| LM0= -1 TM0= -2 -3 ||| -4 ||| 0-1=0-1",
    "2 ||| a b  ||| LM0= -1 TM0_rnn= -19.2 TM0= -2 -3 ||| -4 ||| 0-1=0 2=1 ||| 0-0 1-1 2-2 ",
    "0||| mr president , \u2028x \xa0 ||| d= 0 -3.3 w= -14 ||| -9.26049",
]


@pytest.mark.parametrize("line", VARIANTS)
def test_variants_keep_their_bytes(line: str) -> None:
    hypothesis = nbest.parse(line, "n:1")
    assert nbest.extend_line(hypothesis, {}) == line
    longer = nbest.extend_line(hypothesis, {"RNN0": [-3.25]}, -7.5)
    again = nbest.parse(longer, "n:1")
    assert again.features == {**hypothesis.features, "RNN0": [-3.25]} and again.total == -7.5
    assert (again.words, again.rest, again.sentence) == (
        hypothesis.words,
        hypothesis.rest,
        hypothesis.sentence,
    )
    assert [part for place, part in enumerate(longer.split("|||")) if place not in (2, 3)] == [
        part for place, part in enumerate(line.split("|||")) if place not in (2, 3)
    ]


def test_segmentation() -> None:
    assert nbest.segmentation(nbest.parse(VARIANTS[4], "n:1"), "n") == [((0, 1), (0, 0)), ((2, 2), (1, 1))]
    assert nbest.segmentation(nbest.parse(VARIANTS[2], "n:1"), "n") == []
    with pytest.raises(DataError, match="-include-segmentation-in-n-best"):
        nbest.segmentation(nbest.parse(VARIANTS[0], "n:1"), "n")


BAD_LISTS = {
    "features differ": (
        "0 ||| a ||| A= 1 B= 2 ||| 0\n0 ||| b ||| A= 1 ||| 0\n",
        r"n:2: features A\(1\), but the lines above have A\(1\) B\(1\)",
    ),
    "features swapped": ("0 ||| a ||| A= 1 B= 2 ||| 0\n0 ||| b ||| B= 1 A= 2 ||| 0\n", "n:2: "),
    "ids fall": ("1 ||| a ||| A= 1 ||| 0\n0 ||| b ||| A= 1 ||| 0\n", "n:2: id 0 after id 1"),
    "empty": ("", "empty file"),
}


@pytest.mark.parametrize("case", BAD_LISTS)
def test_lists_that_tuners_would_mix_up(case: str, tmp_path: Path) -> None:
    text, message = BAD_LISTS[case]
    (tmp_path / "n").write_text(text)
    with pytest.raises(DataError, match=message):
        list(nbest.by_sentence(tmp_path / "n"))


def test_groups() -> None:
    assert nbest.format_features({nbest.UNLABELED: [1.0, 2.0]}) == "1 2"


@pytest.mark.ci
def test_real_moses_lists(nmt_data: Path) -> None:
    """All real lists: read and written again they are the same bytes, and their values survive our own
    writer."""
    count = 0
    for path in sorted((nmt_data / "moses-multi30k" / "out").glob("*nb*.gz")) + sorted(
        (nmt_data / "moses-multi30k" / "out").glob("*100best*.gz")
    ):
        for hypothesis, line in zip(nbest.read(path), files.read_lines(path), strict=True):
            assert nbest.extend_line(hypothesis, {}) == line
            count += 1
            if count % 50 == 0:
                assert nbest.parse(nbest.write(hypothesis), "x") == hypothesis
    assert count > 140000


GOOD_ENTRY = "0 ||| a ||| A= 1 B= 2 ||| -1.5"
NUMBERS = [
    "nan", "inf", "-inf", "1_0", "²", "１", "1e999", "0x10", "1\x0c", "9" * 5000, "infinity", "1 2\x0b",
]  # fmt: skip


@pytest.mark.parametrize("text", NUMBERS)
@pytest.mark.parametrize("place", ["0 |||", "-1.5", "A= 1"])
def test_numbers_are_plain_and_finite(place: str, text: str) -> None:
    """Ids, totals and values; a message is never as long as the token."""
    with pytest.raises(DataError, match=r"^n:1: ") as error:
        nbest.parse(
            GOOD_ENTRY.replace(place, {"0 |||": f"{text} |||", "-1.5": text, "A= 1": f"A= {text}"}[place]),
            "n:1",
        )
    assert len(str(error.value)) < 300


def test_fast_reading_of_values_is_strict() -> None:
    """Names with `_`, tabs and words of any script do not make numbers less strict."""
    assert nbest.parse_features("A_b= 1 C= -2.5e-3\t+.5", "n:1") == {"A_b": [1.0], "C": [-0.0025, 0.5]}
    assert nbest.parse_features("é= 1e4", "n:1") == {"é": [10000.0]}
    for text in ("A_b= 1_0", "é= ²", "A=\t1\x1c"):
        with pytest.raises(DataError):
            nbest.parse_features(text, "n:1")


# ---- word alignments in Pharaoh's format -------------------------------------------------------------------


def test_points_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("0-0 1-2\n\n2-1 2-1\n")
    assert list(pharaoh.read(tmp_path / "a")) == [{(0, 0), (1, 2)}, set(), {(2, 1)}]
    for wrong in ("1?2", "1p2", "1-", "-1-2", "1-2-3", "1234567890-1"):
        with pytest.raises(DataError, match=r"^f:3: '.*' is not an alignment point"):
            pharaoh.parse(f"0-0 {wrong}", "f:3")


def test_points_outside_the_sentences() -> None:
    pharaoh.check_points(frozenset([(0, 0), (2, 1)]), 3, 2, "a:1")
    for wrong in ((3, 0), (0, 2)):
        with pytest.raises(DataError, match=r"^a:1: point \d-\d is outside"):
            pharaoh.check_points(frozenset([(0, 0), wrong]), 3, 2, "a:1")


def test_written_points_are_read_again() -> None:
    links = frozenset([(10, 2), (2, 10), (2, 1)])
    assert pharaoh.format_links(links) == "2-1 2-10 10-2"
    assert pharaoh.parse(pharaoh.format_links(links), "") == links and pharaoh.format_links(frozenset()) == ""


def test_gold_links() -> None:
    """A sure link is possible, too; some sets count from 1 and write p."""
    assert pharaoh.parse_gold("0-0 1?2", "f:1") == pharaoh.parse_gold("1-1 2p3 1-1", "f:1", first=1)
    assert pharaoh.parse_gold("0-0 1?2", "") == pharaoh.GoldLinks(
        frozenset([(0, 0)]), frozenset([(0, 0), (1, 2)])
    )
    for wrong, first in (("0-1", 1), ("1!2", 0), ("1-", 0), ("-1", 0)):
        with pytest.raises(DataError, match=r"^f:3: '.*' is not a point of a gold alignment"):
            pharaoh.parse_gold(f"1-1 {wrong}", "f:3", first)


# ---- word vectors ------------------------------------------------------------------------------------------

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
    for words, rows in (([], [[1.0]]), (["a"], [])):
        with pytest.raises(ValueError):
            word_vectors.write(tmp_path / "none", words, rows)


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
