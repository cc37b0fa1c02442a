"""What a validation measures: scores of nmt-translate's output, against the lines of the file; the cost of a
word, however the text is cut."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.data import running
from nmt.data.batches import make_batch
from nmt.data.binarized import open_corpus
from nmt.data.corpus import DataConfig
from nmt.errors import ConfigError
from nmt.lm.recurrent import RecurrentLM
from nmt.models.config import RNNConfig
from nmt.models.rnn import RNNTranslator
from nmt.runs.torch_run import TorchRun
from nmt.search.config import BeamConfig
from nmt.text.pipeline import SideConfig
from nmt.text.vocab import Vocab
from nmt.training import validation
from nmt.training.config import TOKENIZED
from nmt.training.prepare import ParallelData, make_dev, training_text
from nmt.training.validation import (
    DevScore,
    DevSet,
    bleu_tokenizer,
    dev_cost,
    evaluating,
    running_cost,
    translations,
    validate_language_model,
    validate_translator,
)
from tests.nmt.lm.models import TEXTS, model_of

RUN = Path(__file__).resolve().parents[2] / "models" / "translator"

SOURCE = [
    "A boy does not follow the man.",
    "",
    "She sees the dog; " * 70 + "the nurses hear her.",
    "A girl runs.",
]
TARGET = [
    "Un garçon ne suit pas l'homme.",
    "",
    "Elle voit le chien ; " * 70 + "Ils l'entendent.",
    "Une fille court. ",
]


def run_and_dev_set(folder: Path, tokenizer: str) -> tuple[TorchRun, DevSet]:
    """A trained run, and a development set with an empty line and one that is translated in parts."""
    for name, lines in (("source", SOURCE), ("target", TARGET)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    run = TorchRun.of(RUN)
    [member] = run.members
    config = replace(member.data, dev_source=str(folder / "source"), dev_target=str(folder / "target"))
    pipelines, vocabs = (member.source, member.target), (member.source_words, member.target_words)
    dev = make_dev(ParallelData(config, pipelines, vocabs, training_text(config), folder), tokenizer)
    assert dev
    return run, dev


def test_the_score_is_that_of_what_translate_writes(tmp_path: Path) -> None:
    run, dev = run_and_dev_set(tmp_path, "13a")
    written = run.translate(SOURCE, BeamConfig(beam_size=2))
    assert len(dev.sources[2]) > 1 and written[1] == ""
    assert translations(run.members[0].model, dev, 2) == written
    score = validate_translator(run.members[0].model, dev, 2, chrf=True)
    assert score.bleu == pytest.approx(BLEU().corpus_score(written, [TARGET]).score, abs=1e-9)
    assert score.chrf == pytest.approx(CHRF().corpus_score(written, [TARGET]).score, abs=1e-9)
    assert score.signature.startswith("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert " chrF2|nrefs:1|case:mixed|eff:yes|nc:6|" in score.signature


def test_the_score_of_tokenized_text(tmp_path: Path) -> None:
    """The words that the model sees on both sides, and the search of whole lines."""
    run, dev = run_and_dev_set(tmp_path, TOKENIZED)
    assert dev.references.lines[0] == "un garçon ne suit pas l' homme ."
    lines = translations(run.members[0].model, dev, 2)
    assert lines[0] == " ".join(run.n_best(SOURCE[:1], BeamConfig(beam_size=2))[0][0].words)
    assert [len(parts) for parts in dev.sources] == [1, 1, 1, 1]
    score = validate_translator(run.members[0].model, dev, 2)
    expected = BLEU(tokenize="none").corpus_score(lines, [dev.references.lines])
    assert score.bleu == pytest.approx(expected.score, abs=1e-9) and "|tok:none|" in score.signature


def tokenizer(language: str, wish: str = "auto", **options: object) -> str:
    side = SideConfig(language=language, **options)  # type: ignore[arg-type]
    return bleu_tokenizer(wish, DataConfig(target=side))


def test_the_tokenizer_follows_the_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.metrics.is_usable", lambda name: not name.endswith("mecab"))
    expected = {"fr": "13a", "cs": "13a", "zh": "zh", "ja": "char", "ko": "char", "th": "char", "my": "char"}
    assert {code: tokenizer(code) for code in expected} == expected
    assert tokenizer("fr", tokenize=False) == tokenizer("ja", tokenize=False, subword="none") == "none"
    assert tokenizer("ja", tokenize=False) == "char"  # SentencePiece by default, which reads raw text
    assert tokenizer("ja", "intl", tokenize=False, subword="none") == "intl"
    monkeypatch.setattr("nmt.metrics.is_usable", lambda name: True)
    assert tokenizer("ja") == "ja-mecab"


def test_a_tokenizer_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected one of none, zh, 13a"):
        run_and_dev_set(tmp_path, "13b")


def test_a_score_of_zero_is_below_any_other_and_the_cost_decides_between_them() -> None:
    """As it is printed: 0.004 is 0.00."""
    scores = [DevScore(*pair) for pair in ((3.0, 0.0), (2.0, 0.0), (1.5, 0.004), (9.0, 0.01), (9, 7))]
    assert sorted(scores, key=lambda score: score.value("bleu")) == scores
    assert [score.is_zero("bleu") for score in scores] == [True, True, True, False, False]
    assert DevScore(9.0, 7.0).value("cost") == -9 and not DevScore(9.0).is_zero("cost")
    assert DevScore(9.0, 7.0, chrf=0.0).value("chrf") == -9 and DevScore(9.0, 0.0, 7.0).value("chrf") == 7


PAIRS = [([3, 4, 5], [3]), ([6], [4, 5, 6]), ([7, 8], [7, 8]), ([], []), ([3], [4, 4, 4, 4])]


def translator(dropout: float = 0.0) -> RNNTranslator:
    torch.manual_seed(0)
    config = RNNConfig(embedding=4, hidden=5, maxout=3, init_scale=0.8, dropout=dropout)
    return RNNTranslator(config, 9, 9).double()


@pytest.mark.parametrize("size", [1, 2, 64])
def test_the_cost_of_a_word(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentence by sentence, however they are batched."""
    monkeypatch.setattr(validation, "BATCH", size)
    model = translator().eval()
    with torch.no_grad():
        total = sum(float(model.loss(make_batch([source], [target]))) for source, target in PAIRS)
    words = sum(len(target) + 1 for _, target in PAIRS)
    assert dev_cost(model, PAIRS) == pytest.approx(total / words, abs=1e-12)


@pytest.mark.parametrize("training", [True, False])
def test_dropout_is_off_meanwhile(training: bool) -> None:
    model = translator(dropout=0.5).train(training)
    with evaluating(model):
        found = dev_cost(model, PAIRS)
    assert model.training == training and found == dev_cost(model.eval(), PAIRS)
    with pytest.raises(MemoryError), evaluating(model.train(training)):
        raise MemoryError
    assert model.training == training


@pytest.mark.parametrize("tracks", [1, 3])
def test_running_text_in_tracks(tracks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each track is read from a fresh state, however it is cut into chunks."""
    model = model_of("lstm")
    assert isinstance(model, RecurrentLM)
    vocab = Vocab.count([list("abcde")], 5)
    running.binarize([vocab.decode(text) for text in TEXTS], vocab, tmp_path / "data", "stamp")
    corpus = open_corpus(tmp_path / "data", len(vocab))
    text = running.join_sentences(corpus)
    length = len(text) // tracks
    total = 0.0
    for track in range(tracks):
        alone = running.ChunkStream(text[track * length : (track + 1) * length], 1, 1000)
        scores, _ = model.score_running(next(alone.batches(0)), None)
        total -= float(scores.sum())
    for steps in (1, 2, 100):
        monkeypatch.setattr(validation, "STEPS", steps)
        found = running_cost(model, corpus, tracks)
        assert found == pytest.approx(total / (length * tracks), abs=1e-10)


@pytest.mark.parametrize("carry", [True, False])
def test_a_language_model_reads_as_it_was_trained(carry: bool, tmp_path: Path) -> None:
    """With the state carried, or sentence by sentence."""
    vocab = Vocab.count([list("abcde")], 5)
    running.binarize([vocab.decode(text) for text in TEXTS], vocab, tmp_path / "data", "stamp")
    corpus = open_corpus(tmp_path / "data", len(vocab))
    model = model_of("lstm", carry=carry)
    found = validate_language_model(model, corpus)
    pairs = [(list[int](), list(text)) for text in TEXTS]
    assert isinstance(model, RecurrentLM)
    expected = running_cost(model, corpus) if carry else dev_cost(model, pairs)
    assert found.cost == pytest.approx(expected, abs=1e-10) and math.isnan(found.bleu)


def test_perplexity() -> None:
    assert DevScore(cost=math.log(8), bleu=math.nan).perplexity == pytest.approx(8)
    assert DevScore(cost=1e6, bleu=0).perplexity == pytest.approx(math.exp(700))
