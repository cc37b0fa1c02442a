"""Katz, stupid back-off and add-k against their equations written out, sums over words, and the slides' toy
numbers."""

import logging
import math
from collections import Counter

import pytest

from nmt.errors import DataError
from nmt.ngram import smoothing
from nmt.ngram.kneser_ney import FALLBACK
from nmt.ngram.smoothing import SmoothingConfig
from tests.nmt.ngram.test_kneser_ney import Gram, Model, of, prob, some_text

SLIDES = [["we", *rest.split()] for rest in ("sat in the house", "sat here we two and we said")] + [
    "how we wish we had something to do".split()
]


def estimated(sentences: list[list[str]], kind: str, **options: object) -> Model:
    return of(smoothing.estimate(sentences, SmoothingConfig(**options), kind))  # type: ignore[arg-type]


def counts(sentences: list[list[str]], order: int) -> Counter[Gram]:
    lines = [("<s>", *words, "</s>") for words in sentences]
    return Counter(
        line[at : at + n] for line in lines for n in range(order + 1) for at in range(len(line) - n + 1)
    )


def contexts_of(model: Model, order: int) -> list[Gram]:
    return [(), *(gram for gram in model if len(gram) < order and gram[-1] != "</s>")]


def words_of(model: Model) -> list[str]:
    return [gram[0] for gram in model if len(gram) == 1 and gram != ("<s>",)]


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize(
    "options", [{}, {"katz_cutoff": 2}, {"discount_fallback": FALLBACK, "katz_cutoff": 50}], ids=str
)
def test_katz_sums_to_one(order: int, options: dict[str, object]) -> None:
    model = estimated(some_text(count=3000), "katz", order=order, **options)
    contexts = contexts_of(model, order)
    for context in contexts[:: max(1, len(contexts) // 100)]:
        assert sum(prob(model, context, word) for word in words_of(model)) == pytest.approx(1, abs=1e-9)


def test_katz_by_hand() -> None:
    """Bigrams of some_text: p = d c / c(h) of those seen, d by Good and Turing up to a count of 3; α for
    others."""
    text = some_text(count=3000)
    model, found = estimated(text, "katz", order=2, katz_cutoff=3), counts(text, 2)
    t = Counter(count for gram, count in found.items() if len(gram) == 2)
    A = 4 * t[4] / t[1]
    least = Counter[Gram]()
    for gram, count in found.items():
        if len(gram) == 2:
            least[gram[:1]] = min(count, least[gram[:1]] or count)
    for gram, count in found.items():
        if len(gram) == 2:
            more = least[gram[:1]] > 3  # nothing is discounted after this word
            d = ((count + 1) * t[count + 1] / t[count] / count - A) / (1 - A) if count <= 3 else 1.0
            assert 10 ** model[gram][0] == pytest.approx(d * count / (found[gram[:1]] + more)), gram
    seen = [gram for gram in found if gram[:1] == ("w1",) and len(gram) == 2]
    alpha = (1 - sum(10 ** model[gram][0] for gram in seen)) / (
        1 - sum(10 ** model[gram[1:]][0] for gram in seen)
    )
    assert 10 ** model[("w1",)][1] == pytest.approx(alpha)
    single = Counter(count for gram, count in found.items() if len(gram) == 1 and gram != ("<s>",))
    total = sum(count for gram, count in found.items() if len(gram) == 1 and gram != ("<s>",))
    assert 10 ** model[("<unk>",)][0] == pytest.approx(single[1] / total), (
        "what Good-Turing gives to unseen words"
    )


def test_katz_of_a_context_that_discounts_leave_whole() -> None:
    """`q` is always followed by `r`, more often than the cutoff: one word is added to its count."""
    text = [*some_text(count=3000), *([["q", "r"]] * 9)]
    model = estimated(text, "katz", order=2)
    assert 10 ** model[("q", "r")][0] == pytest.approx(9 / 10)
    assert sum(prob(model, ("q",), word) for word in words_of(model)) == pytest.approx(1, abs=1e-9)


def test_too_little_text_for_katz(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(
        DataError, match=r"too little text for Good-Turing's discounts of 2-grams; --discount-"
    ):
        estimated([["a", "b"]], "katz", order=2)
    with caplog.at_level(logging.WARNING):
        assert estimated([["a", "b"]], "katz", order=4, discount_fallback=FALLBACK)
    assert "1-grams: subtracting 0.5, 1, 1.5" in caplog.text


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("k", [1.0, 0.05])
def test_add_k_is_its_equation_and_sums_to_one(order: int, k: float) -> None:
    text = some_text()
    model, found = estimated(text, "add-k", order=order, add=k), counts(text, order)
    words, total = words_of(model), sum(len(line) + 1 for line in text)
    contexts = [gram for gram in found if len(gram) < order and gram[-1:] != ("</s>",)]
    contexts = [gram for gram in contexts if len(gram) == order - 1 or gram[:1] == ("<s>",)]
    assert contexts
    if order > 1:
        contexts.append(("<unk>", *["w1"] * (order - 2)))
    for context in [*contexts, *([("w1", "w1", "never")[: order - 1]] if order > 1 else [])]:
        followed = total if not context else found[context]
        values = [prob(model, context, word) for word in words]
        expected = [(found[(*context, word)] + k) / (followed + k * len(words)) for word in words]
        assert values == pytest.approx(expected, rel=1e-9) and sum(values) == pytest.approx(1, abs=1e-9)


def test_stupid_backoff_is_its_equation_and_does_not_sum_to_one() -> None:
    text = some_text()
    model, found = estimated(text, "stupid-backoff", order=3), counts(text, 3)
    total = sum(len(line) + 1 for line in text)

    def score(context: Gram, word: str) -> float:
        if found[(*context, word)]:
            return found[(*context, word)] / (found[context] if context else total)
        return 0.4 * score(context[1:], word) if context else 0.0

    contexts = [gram for gram in found if 0 < len(gram) < 3 and gram[-1] != "</s>"]
    for context in contexts[:200]:
        values = [prob(model, context, word) for word in words_of(model)]
        assert values == pytest.approx([score(context, word) for word in words_of(model)], abs=1e-12)
        assert len([value for value in values if value]) == 1 or sum(values) > 1.0001
    assert prob(model, (), "<unk>") == pytest.approx(0, abs=1e-90)


def test_toy_numbers_of_the_slides() -> None:
    model = estimated(SLIDES, "stupid-backoff", order=2)
    assert prob(model, ("we",), "sat") == pytest.approx(2 / 6)  # .33 on the slide
    assert prob(model, ("we",), "wish") == pytest.approx(1 / 6)  # .17
    assert prob(model, ("sat",), "in") == pytest.approx(0.5)


def restaurant() -> list[list[str]]:
    """Sentences with the counts of the Berkeley restaurant corpus that the slides show, and a vocabulary of
    1,446."""
    pairs = [("i", "want", 827), ("i", "x", 1706), ("want", "chinese", 6), ("want", "x", 94)]
    pairs += [("chinese", "food", 82), ("chinese", "x", 70)]
    text = [[first, second] for first, second, count in pairs for _ in range(count)]
    more = [[f"y{number}"] for number in range(1446 - 7)]  # besides 5 words, </s> and <unk>
    return [*text, *more, *([["x"]] * (4 * 2533 - len(text) - len(more)))]


def test_restaurant_of_the_slides() -> None:
    model = estimated(restaurant(), "stupid-backoff", order=2)
    chain = [prob(model, (first,), second) for first, second in
             (("<s>", "i"), ("i", "want"), ("want", "chinese"), ("chinese", "food"))]  # fmt: skip
    assert [float(f"{p:.2g}") for p in chain] == [0.25, 0.33, 0.0065, 0.52]
    assert math.prod(float(f"{p:.2g}") for p in chain) == pytest.approx(0.00027885)
    added = estimated(restaurant(), "add-k", order=2)
    assert len(words_of(added)) == 1446
    assert prob(added, ("i",), "want") == pytest.approx(0.21, abs=0.005)
