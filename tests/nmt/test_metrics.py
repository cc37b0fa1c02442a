import random

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU as Reference

from nmt.errors import ConfigError, DataError
from nmt.metrics import SentenceStatistics, corpus_bleu

WORDS = "a b c d e f . ,".split()


def sentences(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 12))) for _ in range(count)]


@pytest.mark.parametrize("tokenize", ["13a", "none"])
@pytest.mark.parametrize("references", [1, 3])
def test_equals_sacrebleu(tokenize: str, references: int) -> None:
    hypotheses, refs = sentences(0, 60), [sentences(1 + n, 60) for n in range(references)]
    metric = Reference(tokenize=tokenize)
    expected = metric.corpus_score(hypotheses, refs)
    ours = corpus_bleu(hypotheses, refs, tokenize)
    assert ours.score == pytest.approx(expected.score, abs=1e-9)
    assert ours.signature == metric.get_signature().format()


def test_a_subset_is_scored_from_the_kept_statistics() -> None:
    hypotheses, reference = sentences(0, 60), sentences(9, 60)
    which = np.arange(60) % 3 == 0
    expected = Reference().corpus_score(hypotheses[::3], [reference[::3]])
    assert SentenceStatistics(hypotheses, [reference]).bleu(which).score == pytest.approx(expected.score, abs=1e-9)


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="reference 2: 1 lines, but 2 hypotheses"):
        corpus_bleu(["a", "b"], [["a", "b"], ["a"]])


def test_unknown_tokenizer_is_refused() -> None:
    with pytest.raises(ConfigError, match="nosuch"):
        corpus_bleu(["a"], [["a"]], "nosuch")
