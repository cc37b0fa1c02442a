"""Modified Kneser-Ney against lmplz's file, a naive recount, and sums over words."""

import math
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import cast

import pytest

from nmt import files
from nmt.errors import ConfigError, DataError
from nmt.ngram import arpa, kneser_ney
from nmt.ngram.arpa import NgramModel
from nmt.ngram.kneser_ney import FALLBACK, KneserNeyConfig

Gram = tuple[str, ...]
Model = dict[Gram, tuple[float, float]]


def of(model: NgramModel) -> Model:
    """log10 p and log10 back-off of every n-gram."""
    found: Model = {}
    for n, level in enumerate(model.levels, 1):
        for gram, log10, backoff in zip(
            model.grams(n).tolist(), level.log10.tolist(), level.backoff.tolist(), strict=True
        ):
            found[tuple(model.words[word] for word in gram)] = log10, backoff
    return found


def prob(model: Model, context: Gram, word: str) -> float:
    """By the rule of ARPA files: the n-gram, or the back-off weight times the shorter one."""
    if (*context, word) in model:
        return float(10 ** model[(*context, word)][0])
    back = 10 ** model[context][1] if context in model else 1.0
    return float(back * prob(model, context[1:], word))


def some_text(seed: int = 1, count: int = 200) -> list[list[str]]:
    """Words of a Zipf distribution, as in text: discounts need many rare ones."""
    rng = random.Random(seed)
    return [[f"w{int(rng.paretovariate(0.9))}" for _ in range(rng.randrange(0, 8))] for _ in range(count)]


def naive(sentences: list[list[str]], order: int) -> Model:
    """Chen and Goodman's equations with dictionaries, n-gram by n-gram."""
    lines = [("<s>", *words, "</s>") for words in sentences]
    raw = [
        Counter(line[at : at + n] for line in lines for at in range(len(line) - n + 1))
        for n in range(1, order + 1)
    ]
    del raw[0][("<s>",)]
    lower: dict[Gram, float] = {}
    found: Model = {("<s>",): (0.0, 0.0)}
    gammas: dict[Gram, float] = {}
    for n, here in enumerate(raw, 1):
        left: dict[Gram, set[str]] = defaultdict(set)
        for gram in raw[n] if n < order else ():
            left[gram[1:]].add(gram[0])
        counts = {
            gram: count if n == order or gram[0] == "<s>" else len(left[gram]) for gram, count in here.items()
        }
        t = Counter(counts.values())
        y = t[1] / (t[1] + 2 * t[2])
        discount = [k - (k + 1) * y * t[k + 1] / t[k] for k in (1, 2, 3)]
        totals, taken = Counter[Gram](), defaultdict[Gram, float](float)
        for gram, count in counts.items():
            totals[gram[:-1]] += count
            taken[gram[:-1]] += discount[min(count, 3) - 1]
        now = {}
        for gram, count in counts.items():
            gamma = taken[gram[:-1]] / totals[gram[:-1]]
            below = lower[gram[1:]] if n > 1 else 1 / (len(here) + 1)
            now[gram] = (count - discount[min(count, 3) - 1]) / totals[gram[:-1]] + gamma * below
        if n == 1:
            now[("<unk>",)] = taken[()] / totals[()] / (len(here) + 1)
        gammas.update({context: taken[context] / totals[context] for context in totals})
        found.update({gram: (math.log10(p), 0.0) for gram, p in now.items()})
        lower = now
    return {gram: (p, math.log10(gammas[gram]) if gram in gammas else 0.0) for gram, (p, _) in found.items()}


@pytest.mark.parametrize("order", [1, 2, 4])
def test_equal_to_the_equations_written_out(order: int) -> None:
    ours, theirs = of(kneser_ney.estimate(some_text(), KneserNeyConfig(order))), naive(some_text(), order)
    assert ours.keys() == theirs.keys()
    for gram, numbers in theirs.items():
        assert ours[gram] == pytest.approx(numbers, abs=1e-9), gram


OPTIONS: list[dict[str, object]] = [
    {},
    {"prune": (0, 1)},
    {"prune": (0, 0, 2)},
    {"interpolate_unigrams": False},
    {"discount_fallback": FALLBACK},
]


@pytest.mark.parametrize(
    ("order", "options"),
    [
        (order, options)
        for order in (1, 2, 3)
        for options in OPTIONS
        if order >= len(cast(tuple[int, ...], options.get("prune", ())))
    ],
    ids=str,
)
def test_probabilities_sum_to_one_after_every_context(order: int, options: dict[str, object]) -> None:
    model = of(kneser_ney.estimate(some_text(), KneserNeyConfig(order, **options)))  # type: ignore[arg-type]
    words = [gram[0] for gram in model if len(gram) == 1 and gram != ("<s>",)]
    contexts = [gram for gram in model if len(gram) < order and gram[-1] != "</s>" and gram != ("<unk>",)]
    for context in [(), *contexts]:
        assert sum(prob(model, context, word) for word in words) == pytest.approx(1, abs=1e-9)


def test_pruning_leaves_out_what_is_rare_and_nothing_else() -> None:
    text = some_text()
    whole, pruned = (of(kneser_ney.estimate(text, KneserNeyConfig(3, prune))) for prune in ((0,), (0, 1, 2)))
    counts = Counter(
        line[at : at + n]
        for words in text
        for line in [("<s>", *words, "</s>")]
        for n in (2, 3)
        for at in range(len(line) - n + 1)
    )
    expected = {gram for gram in whole if len(gram) == 1 or counts[gram] > len(gram) - 1}
    assert set(pruned) == expected and len(pruned) < len(whole)
    assert all(gram[:-1] in pruned and gram[1:] in pruned for gram in pruned if len(gram) > 1)


def test_without_interpolation_the_unknown_word_gets_what_the_others_leave() -> None:
    model = of(kneser_ney.estimate(some_text(), KneserNeyConfig(1, interpolate_unigrams=False)))
    with_it = of(kneser_ney.estimate(some_text(), KneserNeyConfig(1)))
    assert 10 ** model[("<unk>",)][0] > 0.05 > 10 ** with_it[("<unk>",)][0]


def test_unknown_words_of_the_text_are_counted() -> None:
    """As in the Penn Treebank, where <unk> stands for rare words."""
    text = [["<unk>" if word.startswith("w1") else word for word in line] for line in some_text()]
    renamed = [["rare" if word == "<unk>" else word for word in line] for line in text]
    config = KneserNeyConfig(2, interpolate_unigrams=False, discount_fallback=FALLBACK)
    ours, theirs = (of(kneser_ney.estimate(lines, config)) for lines in (text, renamed))
    assert 10 ** ours[("<unk>", "</s>")][0] == pytest.approx(10 ** theirs[("rare", "</s>")][0], abs=1e-6)


def test_bad_text_and_options() -> None:
    with pytest.raises(DataError, match="no words"):
        kneser_ney.estimate([], KneserNeyConfig(2))
    with pytest.raises(
        DataError, match=r"too little text: no 1-gram occurs twice.*--discount-fallback takes 0.5, 1.0, 1.5"
    ):
        kneser_ney.estimate([["a"]], KneserNeyConfig(2))
    with pytest.raises(DataError, match="line 2: the text contains </s>"):
        kneser_ney.estimate([["a"], ["</s>"]], KneserNeyConfig(2))
    one, two = (
        of(kneser_ney.estimate(text, KneserNeyConfig(2, skip_symbols=True)))
        for text in (some_text(), [["<s>", *line] for line in some_text()])
    )
    assert one == two
    for prune in ((1,), (0, 2, 1), (0, 0, 0)):
        with pytest.raises(ConfigError, match="--prune"):
            KneserNeyConfig(2, prune).check()


@pytest.mark.ci
def test_equal_to_lmplz(nmt_data: Path) -> None:
    """The 5-gram model that lmplz made of the Multi30k training text: the same n-grams, the same numbers."""
    folder = nmt_data / "moses-multi30k"
    ours = of(
        kneser_ney.estimate(
            map(files.split_words, files.read_lines(folder / "corpus" / "train.tok.fr")), KneserNeyConfig(5)
        )
    )
    theirs = of(arpa.read(folder / "lm.fr.arpa.gz"))
    assert ours.keys() == theirs.keys() and len(ours) == 778387
    for gram, numbers in theirs.items():
        assert ours[gram] == pytest.approx(numbers, abs=2e-6), gram


def test_an_order_beyond_the_longest_sentence(tmp_path: Path) -> None:
    """Orders of no n-gram are left out; so are those of which all are pruned, and those that a file gives as
    0."""
    text = [["a", "b"], ["a", "c"]]
    long, short, pruned = (
        kneser_ney.estimate(text, KneserNeyConfig(order, prune, discount_fallback=FALLBACK))
        for order, prune in ((9, (0,)), (4, (0,)), (4, (0, 9)))
    )
    assert (long.order, short.order, pruned.order) == (4, 4, 1)
    assert [scores.tolist() for scores in long.scores(text)] == [
        scores.tolist() for scores in short.scores(text)
    ]
    arpa.write(short, tmp_path / "lm")
    whole = (tmp_path / "lm").read_text()
    (tmp_path / "lm").write_text(
        whole.replace("\n\n\\1-grams:", "\nngram 5=0\n\n\\1-grams:").replace("\\end", "\\5-grams:\n\n\\end")
    )
    assert arpa.read(tmp_path / "lm").order == 4


@pytest.mark.parametrize(
    "options",
    [
        {"order": 40},
        {"order": 0},
        {"prune": (0, -1)},
        {"discount_fallback": (0.5, 1.0, float("nan"))},
        {"discount_fallback": (9.0, 1.0, 1.0)},
    ],
)
def test_values_out_of_range(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=f"--{next(iter(options))}: .* is out of range, expected"):
        KneserNeyConfig(**options).check()  # type: ignore[arg-type]
