"""The networks of runs: their own probabilities; runs that the search cannot use are refused."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import CheckpointError, ConfigError
from nmt.lm.cslm import CSLM
from nmt.runs import checkpoint
from nmt.text.vocab import BOS
from smt_bridge.decoder.features import load_network, load_translator
from tests.conftest import ROOT
from tests.nmt.lm.models import model_of
from tests.nmt.models.test_registry import Unigram, UnigramConfig

MODELS = ROOT / "tests" / "models"


def test_n_grams_are_those_of_the_texts() -> None:
    """log p of a text, word by word, by the contexts that the words have in it."""
    run = checkpoint.load_lm(MODELS / "lm")
    assert isinstance(run.model, CSLM)
    network = load_network("CSLM0", str(MODELS / "lm"), normalized=False)
    text = [5, 9, 4, 4, 7]
    line = [BOS] * (network.order - 1) + text
    contexts = np.array([line[place : place + network.order - 1] for place in range(len(text))])
    found = network.score(contexts, np.array(text))
    np.testing.assert_allclose(found, run.model.score_texts([text])[0][:-1], atol=1e-5)
    assert network.vocab.words == run.words.words and network.text.cut(["a"]) == run.text.cut(["a"])


@dataclass
class Text:
    """A text pipeline of words."""

    raw = False


@dataclass
class Saved:
    """A run of another kind."""

    model: object
    text: object = Text


def test_what_the_search_cannot_use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nowhere"):
        load_network("CSLM0", str(tmp_path / "nowhere"), normalized=False)
    for kind, message in (
        ("cslm", r"^run: normalized=true, but this model was not trained with lm\.normalizer$"),
        ("lstm", r"^run: CSLM0 has to be a CSLM; use other language models to rescore"),
    ):
        monkeypatch.setattr("nmt.runs.checkpoint.load_lm", lambda *given, kind=kind: Saved(model_of(kind)))
        with pytest.raises(ConfigError, match=message):
            load_network("CSLM0", "run", normalized=True)


def test_a_translator_reads_words_of_the_table() -> None:
    """Unescaped, cut into the run's units, as a line of text is."""
    run = checkpoint.load(MODELS / "translator")
    network = load_translator("NMT0", str(MODELS / "translator"), restricted=False)
    words = "l' homme n&apos; entend pas la petite fille .".split()
    line = run.for_text(tokenized=True).target_ids(" ".join(words).replace("&apos;", "'"))
    assert network.target(words) == line and len(line) > len(words)
    assert [unit for word in words for unit in network.target([word])] == line
    assert network.source(["the", "man"]) == run.source_words.encode(run.source.cut(["the", "man"]))


def test_translators_that_the_search_cannot_use(monkeypatch: pytest.MonkeyPatch) -> None:
    run = checkpoint.load(MODELS / "translator")
    run.model = Unigram(UnigramConfig(), 5, 9)  # it can only step
    monkeypatch.setattr("nmt.runs.checkpoint.load", lambda *given: run)
    with pytest.raises(
        ConfigError, match=r"^run: restricted=true, but a model of its type has no short-lists$"
    ):
        load_translator("NMT0", "run", True)
