import math
import random
from pathlib import Path

import pytest

from nmt import files
from nmt.errors import DataError
from nmt.lm import kneser_ney


def read(lines: list[str]) -> dict[str, tuple[float, float]]:
    rows = [line.split("\t") for line in lines if "\t" in line]
    return {row[1]: (float(row[0]), float(row[2]) if len(row) > 2 else 0.0) for row in rows}


def prob(model: dict[str, tuple[float, float]], context: list[str], word: str) -> float:
    """By the rule of ARPA files: the n-gram, or the back-off weight times the shorter one."""
    gram = " ".join([*context, word])
    if gram in model:
        return float(10 ** model[gram][0])
    back = 10 ** model[" ".join(context)][1] if " ".join(context) in model else 1.0
    return float(back * prob(model, context[1:], word))


def some_text() -> list[list[str]]:
    """Words of a Zipf distribution, as in text: discounts need many rare ones."""
    rng = random.Random(1)
    return [[f"w{int(rng.paretovariate(0.9))}" for _ in range(rng.randrange(1, 8))] for _ in range(200)]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_probabilities_sum_to_one_after_every_context(order: int) -> None:
    model = read(list(kneser_ney.estimate(some_text(), order)))
    words = [gram for gram in model if " " not in gram and gram != "<s>"]
    contexts = [gram.split() for gram in model if len(gram.split()) < order and not gram.endswith("</s>") and gram != "<unk>"]
    for context in [[], *contexts]:
        assert sum(prob(model, context, word) for word in words) == pytest.approx(1, abs=1e-5)


def test_too_little_text() -> None:
    with pytest.raises(DataError, match="no words"):
        list(kneser_ney.estimate([], 2))
    with pytest.raises(DataError, match="too little text"):
        list(kneser_ney.estimate([["a"]], 2))


def test_equal_to_lmplz(nmt_data: Path) -> None:
    """The 5-gram model that lmplz made of the Multi30k training text: the same n-grams, the same numbers."""
    folder = nmt_data / "moses-multi30k"
    ours = read(list(kneser_ney.estimate(map(files.split_words, files.read_lines(folder / "corpus" / "train.tok.fr")), 5)))
    theirs = read(list(files.read_lines(folder / "lm.fr.arpa.gz")))
    assert ours.keys() == theirs.keys() and len(ours) == 778387
    for gram, numbers in theirs.items():
        assert math.isclose(ours[gram][0], numbers[0], abs_tol=2e-6) and math.isclose(ours[gram][1], numbers[1], abs_tol=2e-6)
