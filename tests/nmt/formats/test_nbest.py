from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.formats import nbest
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
    assert nbest.extended(hypothesis, {}) == line
    longer = nbest.extended(hypothesis, {"RNN0": [-3.25]}, -7.5)
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


def test_real_moses_lists(nmt_data: Path) -> None:
    """All real lists: read and written again they are the same bytes, and their values survive our own
    writer."""
    count = 0
    for path in sorted((nmt_data / "moses-multi30k" / "out").glob("*nb*.gz")) + sorted(
        (nmt_data / "moses-multi30k" / "out").glob("*100best*.gz")
    ):
        for hypothesis, line in zip(nbest.read(path), files.read_lines(path), strict=True):
            assert nbest.extended(hypothesis, {}) == line
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
