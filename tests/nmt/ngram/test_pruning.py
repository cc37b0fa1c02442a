"""Entropy pruning against Stolcke's formula written out word by word; every context still sums to 1."""

import math
from itertools import pairwise
from pathlib import Path

import pytest

from nmt.cli import ngram
from nmt.errors import DataError
from nmt.ngram import count_models, estimators
from nmt.ngram.count_models import NgramModel
from nmt.ngram.estimators import SmoothingConfig
from nmt.ngram.pruning import prune_by_entropy
from tests.nmt.ngram.test_count_models import TEXT, write
from tests.nmt.ngram.test_estimators import Gram, Model, estimate_smoothed, prob, probabilities, some_text

THRESHOLDS = [0.0, 1e-6, 1e-4, 1e-3, 1e-2, 1.0]


def some_model(kind: str = "kneser-ney", order: int = 4, seed: int = 1) -> NgramModel:
    config = SmoothingConfig(order, discount_fallback=(0.5, 1.0, 1.5))
    if kind == "kneser-ney":
        return estimators.estimate_kneser_ney(some_text(seed), config)
    return estimate_smoothed(some_text(seed), config, kind)


def words_after(model: Model) -> list[str]:
    return [gram[0] for gram in model if len(gram) == 1 and gram != ("<s>",)]


def naive_increase(model: Model, gram: Gram, history: Model) -> float:
    """e^D - 1, where D is the sum of p(h) p(w | h) ln(p / p2) over all words w after the context h, p2 is the
    model without the n-gram, and p(h) that of another."""
    context, lower = gram[:-1], gram[1:-1]
    explicit = [word for word in words_after(model) if (*context, word) in model and (*context, word) != gram]
    mass = 1 - sum(prob(model, context, word) for word in explicit)
    weight = mass / (1 - sum(prob(model, lower, word) for word in explicit))
    joint, entropy = 1.0, 0.0
    known = tuple(word if (word,) in history else "<unk>" for word in context)
    for at, word in enumerate(known):
        joint *= prob(history, (), "</s>") if word == "<s>" else prob(history, known[:at], word)
    for word in words_after(model):
        before = prob(model, context, word)
        after = before if word in explicit else weight * prob(model, lower, word)
        entropy += joint * before * math.log(before / after)
    return math.expm1(entropy)


def naive_grams(model: Model, order: int, threshold: float, history: Model) -> set[Gram]:
    kept: set[Gram] = {gram for gram in model if len(gram) == 1}
    for n in range(order, 1, -1):
        for gram in [gram for gram in model if len(gram) == n]:
            is_context = any(longer[:n] == gram for longer in kept if len(longer) == n + 1)
            if is_context or naive_increase(model, gram, history) >= threshold:
                kept.add(gram)
    return kept


@pytest.mark.parametrize("kind", ["kneser-ney", "katz"])
def test_equal_to_the_formula_word_by_word(kind: str) -> None:
    model = some_model(kind, 3)
    naive = naive_grams(probabilities(model), 3, 3e-4, probabilities(model))
    assert set(probabilities(prune_by_entropy(model, 3e-4))) == naive
    assert len(naive) < 0.8 * model.size


def test_probabilities_of_contexts_from_another_model() -> None:
    """Which has other words and a lower order."""
    model, katz = some_model(order=3), some_model("katz", 2, seed=2)
    naive = naive_grams(probabilities(model), 3, 3e-4, probabilities(katz))
    assert set(probabilities(prune_by_entropy(model, 3e-4, katz))) == naive
    assert naive != set(probabilities(prune_by_entropy(model, 3e-4)))
    assert set(probabilities(prune_by_entropy(model, 3e-4, model))) == set(
        probabilities(prune_by_entropy(model, 3e-4))
    )


@pytest.mark.parametrize("kind", ["kneser-ney", "katz", "add-k"])
def test_probabilities_sum_to_one_after_every_context(kind: str) -> None:
    """Also after a second pruning, of a model that lacks the ends of some n-grams."""
    twice = prune_by_entropy(prune_by_entropy(some_model(kind), 1e-4), 1e-3)
    for pruned in (prune_by_entropy(some_model(kind), 1e-3), twice):
        model = probabilities(pruned)
        for context in [(), *(gram for gram in model if len(gram) < 4 and gram[-1] != "</s>")]:
            total = sum(prob(model, context, word) for word in words_after(model))
            assert total == pytest.approx(1, abs=1e-9), context


def test_a_larger_threshold_keeps_a_part() -> None:
    model = some_model()
    kept = [probabilities(prune_by_entropy(model, threshold)) for threshold in THRESHOLDS]
    assert prune_by_entropy(model, 0) is model
    for more, less in pairwise(kept):
        assert less.keys() < more.keys()
        assert all(less[gram][0] == more[gram][0] for gram in less)  # p of an n-gram that stays
        assert all(gram[:-1] in less for gram in less if len(gram) > 1)
    assert len(kept[-1]) == len(model.words)  # unigrams stay


def test_models_without_sums_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError, match=r"the probabilities after .* sum to"):
        prune_by_entropy(some_model("stupid-backoff"), 1e-6)
    arguments = ["prune", str(write(tmp_path, TEXT)), "-o", str(tmp_path / "out"), "-q"]
    assert ngram.main([*arguments, "--threshold", "1e-6"]) == 2
    assert f"{tmp_path / 'lm'}: the probabilities after" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_CACHE", str(tmp_path / "cache"))
    count_models.write_arpa(some_model(), tmp_path / "lm")
    arguments = ["prune", str(tmp_path / "lm"), "-q"]
    assert ngram.main([*arguments, "--threshold", "0", "-o", str(tmp_path / "same")]) == 0
    assert (tmp_path / "same").read_bytes() == (tmp_path / "lm").read_bytes()
    assert ngram.main([*arguments, "--threshold", "1e-3", "-o", str(tmp_path / "small")]) == 0
    model = count_models.read_arpa(tmp_path / "lm")
    count_models.write_arpa(prune_by_entropy(model, 1e-3), tmp_path / "expected")
    assert (tmp_path / "small").read_bytes() == (tmp_path / "expected").read_bytes()
    count_models.write_arpa(some_model("katz"), tmp_path / "katz")
    assert ngram.main(["compile", str(tmp_path / "katz"), "-o", str(tmp_path / "trie"), "-q"]) == 0
    for history in ("katz", "trie"):
        arguments += ["--threshold", "1e-3", "--history-lm", str(tmp_path / history)]
        assert ngram.main([*arguments, "-o", str(tmp_path / f"by-{history}")]) == 0
    assert (tmp_path / "by-katz").read_bytes() == (tmp_path / "by-trie").read_bytes()
    assert (tmp_path / "by-katz").read_bytes() != (tmp_path / "small").read_bytes()
