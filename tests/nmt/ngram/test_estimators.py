"""Modified Kneser-Ney against lmplz's file, a naive recount, and sums over words."""

import logging
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import pytest

from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.ngram import count_models, estimators
from nmt.ngram.count_models import NgramModel
from nmt.ngram.counting import CountSettings, count_lines
from nmt.ngram.estimators import FALLBACK_DISCOUNTS, KneserNeyConfig, SmoothingConfig, smoothed_model

# ---- test kneser ney ---------------------------------------------------------------------------------------

Gram = tuple[str, ...]
Model = dict[Gram, tuple[float, float]]


def probabilities(model: NgramModel) -> Model:
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


def naive_model(sentences: list[list[str]], order: int) -> Model:
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
    ours, theirs = (
        probabilities(estimators.estimate_kneser_ney(some_text(), KneserNeyConfig(order))),
        naive_model(some_text(), order),
    )
    assert ours.keys() == theirs.keys()
    for gram, numbers in theirs.items():
        assert ours[gram] == pytest.approx(numbers, abs=1e-9), gram


def test_blocks_of_contexts_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = probabilities(estimators.estimate_kneser_ney(some_text(), KneserNeyConfig(3)))
    for size in (1, 7):
        monkeypatch.setattr(estimators, "BLOCK", size)
        assert probabilities(estimators.estimate_kneser_ney(some_text(), KneserNeyConfig(3))) == expected


OPTIONS: list[dict[str, object]] = [
    {},
    {"prune": (0, 1)},
    {"prune": (0, 0, 2)},
    {"interpolate_unigrams": False},
    {"discount_fallback": FALLBACK_DISCOUNTS},
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
    model = probabilities(estimators.estimate_kneser_ney(some_text(), KneserNeyConfig(order, **options)))  # type: ignore[arg-type]
    words = [gram[0] for gram in model if len(gram) == 1 and gram != ("<s>",)]
    contexts = [gram for gram in model if len(gram) < order and gram[-1] != "</s>" and gram != ("<unk>",)]
    for context in [(), *contexts]:
        assert sum(prob(model, context, word) for word in words) == pytest.approx(1, abs=1e-9)


def test_a_discount_of_0_leaves_nothing_to_other_words() -> None:
    config = KneserNeyConfig(2, discount_fallback=(0.0, 0.0, 0.0))
    model = probabilities(estimators.estimate_kneser_ney([["a", "b"], ["b", "a"]], config))
    for context in ("<s>", "a", "b"):
        total = sum(prob(model, (context,), word) for word in ("a", "b", "</s>", "<unk>"))
        assert total == pytest.approx(1, abs=1e-9)


def test_pruning_leaves_out_what_is_rare_and_nothing_else() -> None:
    text = some_text()
    whole, pruned = (
        probabilities(estimators.estimate_kneser_ney(text, KneserNeyConfig(3, prune)))
        for prune in ((0,), (0, 1, 2))
    )
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
    model = probabilities(
        estimators.estimate_kneser_ney(some_text(), KneserNeyConfig(1, interpolate_unigrams=False))
    )
    with_it = probabilities(estimators.estimate_kneser_ney(some_text(), KneserNeyConfig(1)))
    assert 10 ** model[("<unk>",)][0] > 0.05 > 10 ** with_it[("<unk>",)][0]


def test_unknown_words_of_the_text_are_counted() -> None:
    """As in the Penn Treebank, where <unk> stands for rare words."""
    text = [["<unk>" if word.startswith("w1") else word for word in line] for line in some_text()]
    renamed = [["rare" if word == "<unk>" else word for word in line] for line in text]
    config = KneserNeyConfig(2, interpolate_unigrams=False, discount_fallback=FALLBACK_DISCOUNTS)
    ours, theirs = (probabilities(estimators.estimate_kneser_ney(lines, config)) for lines in (text, renamed))
    assert 10 ** ours[("<unk>", "</s>")][0] == pytest.approx(10 ** theirs[("rare", "</s>")][0], abs=1e-6)


def test_bad_text_and_options() -> None:
    with pytest.raises(DataError, match="no words"):
        estimators.estimate_kneser_ney([], KneserNeyConfig(2))
    with pytest.raises(
        DataError, match=r"too little text: no 1-gram occurs twice.*--discount-fallback takes 0.5, 1.0, 1.5"
    ):
        estimators.estimate_kneser_ney([["a"]], KneserNeyConfig(2))
    with pytest.raises(DataError, match="line 2: the text contains </s>"):
        estimators.estimate_kneser_ney([["a"], ["</s>"]], KneserNeyConfig(2))
    one, two = (
        probabilities(estimators.estimate_kneser_ney(text, KneserNeyConfig(2, skip_symbols=True)))
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
    ours = probabilities(
        estimators.estimate_kneser_ney(
            map(files.split_words, files.read_lines(folder / "corpus" / "train.tok.fr")), KneserNeyConfig(5)
        )
    )
    theirs = probabilities(count_models.read_arpa(folder / "lm.fr.arpa.gz"))
    assert ours.keys() == theirs.keys() and len(ours) == 778387
    for gram, numbers in theirs.items():
        assert ours[gram] == pytest.approx(numbers, abs=2e-6), gram


def test_an_order_beyond_the_longest_sentence(tmp_path: Path) -> None:
    """Orders of no n-gram are left out; so are those of which all are pruned, and those that a file gives as
    0."""
    text = [["a", "b"], ["a", "c"]]
    long, short, pruned = (
        estimators.estimate_kneser_ney(
            text, KneserNeyConfig(order, prune, discount_fallback=FALLBACK_DISCOUNTS)
        )
        for order, prune in ((9, (0,)), (4, (0,)), (4, (0, 9)))
    )
    assert (long.order, short.order, pruned.order) == (4, 4, 1)
    assert [scores.tolist() for scores in long.scores(text)] == [
        scores.tolist() for scores in short.scores(text)
    ]
    count_models.write_arpa(short, tmp_path / "lm")
    whole = (tmp_path / "lm").read_text()
    (tmp_path / "lm").write_text(
        whole.replace("\n\n\\1-grams:", "\nngram 5=0\n\n\\1-grams:").replace("\\end", "\\5-grams:\n\n\\end")
    )
    assert count_models.read_arpa(tmp_path / "lm").order == 4


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


# ---- test smoothing ----------------------------------------------------------------------------------------
# Katz, stupid back-off and add-k against their equations written out, sums over words, and the slides' toy
# numbers.

SLIDES = [["we", *rest.split()] for rest in ("sat in the house", "sat here we two and we said")] + [
    "how we wish we had something to do".split()
]


def estimate_smoothed(sentences: Iterable[Sequence[str]], config: SmoothingConfig, kind: str) -> NgramModel:
    """Estimate a model from sentences. `kind`: a name in ESTIMATORS."""
    counts = count_lines(map(" ".join, sentences), CountSettings(config.order, config.skip_symbols))
    return smoothed_model(*counts, config, kind)


def estimated(sentences: list[list[str]], kind: str, **options: object) -> Model:
    return probabilities(estimate_smoothed(sentences, SmoothingConfig(**options), kind))  # type: ignore[arg-type]


def ngram_counts(sentences: list[list[str]], order: int) -> Counter[Gram]:
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
    "options", [{}, {"katz_cutoff": 2}, {"discount_fallback": FALLBACK_DISCOUNTS, "katz_cutoff": 50}], ids=str
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
    model, found = estimated(text, "katz", order=2, katz_cutoff=3), ngram_counts(text, 2)
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
        assert estimated([["a", "b"]], "katz", order=4, discount_fallback=FALLBACK_DISCOUNTS)
    assert "1-grams: subtracting 0.5, 1, 1.5" in caplog.text


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("k", [1.0, 0.05])
def test_add_k_is_its_equation_and_sums_to_one(order: int, k: float) -> None:
    text = some_text()
    model, found = estimated(text, "add-k", order=order, add=k), ngram_counts(text, order)
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
    model, found = estimated(text, "stupid-backoff", order=3), ngram_counts(text, 3)
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


# ---- test lmplz --------------------------------------------------------------------------------------------
# The command line of lmplz asks for the model that we would estimate.


def test_arguments() -> None:
    config = KneserNeyConfig(order=3, prune=(0, 1), interpolate_unigrams=False, skip_symbols=True)
    found = " ".join(estimators.lmplz_arguments("lmplz", config, 2.5e9, "/tmp/x"))
    assert found == (
        "lmplz --order 3 --memory 2500M --temp_prefix /tmp/x/ --prune 0 1 --interpolate_unigrams 0 "
        "--skip_symbols"
    )
    own = estimators.lmplz_arguments("lmplz", KneserNeyConfig(discount_fallback=(0.1, 0.2, 0.3)), 1e9, "x")
    assert own[-4:] == ["--discount_fallback", "0.1", "0.2", "0.3"]
    assert (
        estimators.lmplz_arguments("lmplz", KneserNeyConfig(discount_fallback=FALLBACK_DISCOUNTS), 1e9, "x")[
            -1
        ]
        == "--discount_fallback"
    )


def test_without_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="there is no lmplz on the PATH"):
        estimators.estimate_with_lmplz("text", str(tmp_path / "lm"), KneserNeyConfig(), 1e9)
