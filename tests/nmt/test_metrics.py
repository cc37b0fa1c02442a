import random
import sys

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU as Reference
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from nmt.cli import analyze
from nmt.errors import ConfigError, DataError
from nmt.metrics import (
    BleuStatistics,
    ChrfStatistics,
    References,
    TerStatistics,
    check_tokenizer,
    corpus_bleu,
    ter_scores,
)

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


@pytest.mark.parametrize("tokenize", ["13a", "none", "char"])
def test_references_that_are_kept_give_the_same_scores(tokenize: str) -> None:
    kept = References(sentences(1, 60), tokenize)
    for seed in (0, 2):
        hypotheses = sentences(seed, 60)
        assert kept.bleu(hypotheses) == corpus_bleu(hypotheses, [kept.lines], tokenize)
        assert kept.chrf(hypotheses) == ChrfStatistics(hypotheses, [kept.lines]).chrf()


def test_a_subset_is_scored_from_the_kept_statistics() -> None:
    hypotheses, reference = sentences(0, 60), sentences(9, 60)
    which = np.arange(60) % 3 == 0
    expected = Reference().corpus_score(hypotheses[::3], [reference[::3]])
    assert BleuStatistics(hypotheses, [reference]).bleu(which).score == pytest.approx(
        expected.score, abs=1e-9
    )


@pytest.mark.parametrize("count", [1, 2])
def test_chrf_of_any_group_is_sacrebleus(count: int) -> None:
    hypotheses, references = sentences(0, 20), [sentences(1 + n, 20) for n in range(count)]
    statistics = ChrfStatistics(hypotheses, references)
    assert statistics.chrf().score == pytest.approx(CHRF().corpus_score(hypotheses, references).score)
    mask = np.arange(20) % 2 == 0
    expected = CHRF().corpus_score(hypotheses[::2], [reference[::2] for reference in references])
    assert statistics.chrf(mask).score == pytest.approx(expected.score)
    alone = CHRF().corpus_score(hypotheses[1:2], [reference[1:2] for reference in references])
    assert statistics.by_sentence()[1] == pytest.approx(alone.score)
    assert statistics.chrf().signature.startswith(f"nrefs:{count}|case:mixed|eff:yes|nc:6")


@pytest.mark.parametrize("count", [1, 2])
def test_ter_of_any_group_is_sacrebleus(count: int) -> None:
    """Also of sentences whose references are empty."""
    hypotheses = ["", "A b", *sentences(0, 20)]
    references = [["", "", *sentences(1 + n, 20)] for n in range(count)]
    statistics = TerStatistics(hypotheses, references)
    groups = [slice(None), slice(3, 9), *(slice(n, n + 1) for n in range(22))]
    expected = [
        TER().corpus_score(hypotheses[group], [reference[group] for reference in references]).score
        for group in groups
    ]
    scores = [float(ter_scores(statistics.rows[group].sum(0))) for group in groups]
    assert scores == pytest.approx(expected) and expected[2:4] == [0, 100]
    assert ter_scores(statistics.rows).tolist() == pytest.approx(expected[2:])
    assert statistics.signature.startswith(f"nrefs:{count}|case:lc|tok:tercom")


@pytest.mark.parametrize("statistics", [BleuStatistics, ChrfStatistics, TerStatistics])
def test_unequal_lengths_are_refused(
    statistics: type[BleuStatistics] | type[ChrfStatistics] | type[TerStatistics],
) -> None:
    with pytest.raises(DataError, match="reference 2: 1 line, expected 2, one for each"):
        statistics(["a", "b"], [["a", "b"], ["a"]])


def test_unknown_tokenizer_is_refused() -> None:
    with pytest.raises(ConfigError, match="nosuch"):
        corpus_bleu(["a"], [["a"]], "nosuch")


@pytest.mark.parametrize("name", ["ja-mecab", "ko-mecab", "spm", "flores200", "nonsense", "x" * 5000])
def test_a_tokenizer_that_is_not_there_is_refused_before_any_work(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing is downloaded, whatever is installed."""
    for package in ("MeCab", "mecab_ko"):
        monkeypatch.setitem(
            sys.modules, f"sacrebleu.tokenizers.tokenizer_{'ja' if package == 'MeCab' else 'ko'}_mecab", None
        )
    # sentencepiece is there, its models are not
    monkeypatch.setattr("nmt.metrics.find_spec", lambda name: True)
    monkeypatch.setattr("nmt.metrics.SACREBLEU_DIR", "/nonexistent")
    with pytest.raises(ConfigError, match="BLEU tokenizer"):
        check_tokenizer(name)
    argv = ["compare", "-r", "no", "--baseline", "such", "--hypothesis", "files", "--bleu-tokenize", name]
    assert analyze.main(argv) == 2
    message = capsys.readouterr().err
    assert message.startswith("analyze: BLEU tokenizer") and message.count("\n") == 1 and len(message) < 500


def test_tokenizers_that_are_there_are_accepted() -> None:
    for name in ("none", "13a", "intl", "char", "zh"):
        check_tokenizer(name)
