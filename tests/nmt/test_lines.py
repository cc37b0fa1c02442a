"""A str where a list of lines is expected is refused wherever lines are taken."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.analysis import paired_bootstrap, read_systems
from nmt.metrics import BleuStatistics, ChrfStatistics, corpus_bleu
from nmt.runs.language_model import LineScorer, line_scorer
from nmt.runs.run import Run, TranslationRequest
from nmt.search.config import BeamConfig
from smt_bridge.decoder.decoder import Decoder

MODELS = Path(__file__).resolve().parents[1] / "models"
LINES, PAIRS = "A man sleeps.", ("A man sleeps.", "Un homme dort.")


@pytest.fixture(scope="module")
def run() -> Run:
    return Run.of(MODELS / "translator")


@pytest.fixture(scope="module")
def lm() -> LineScorer:
    return line_scorer(MODELS / "lm")


@pytest.mark.parametrize(
    "call",
    [
        lambda run: run.translate(LINES),
        lambda run: run.n_best(LINES),
        lambda run: run.best(LINES, BeamConfig()),
        lambda run: TranslationRequest(LINES),
        lambda run: TranslationRequest([LINES], prefixes="Un"),
        lambda run: run.score(LINES),
        lambda run: run.score(PAIRS),
        lambda run: run.word_scores(list(PAIRS)),
    ],
)
def test_of_a_run(run: Run, call: Callable[[Run], object]) -> None:
    with pytest.raises(TypeError, match=r"expected a list of (lines|pairs|prefixes), found a str; write \["):
        call(run)


def test_of_language_models(lm: LineScorer) -> None:
    for call in (lm.score, lm.log_z):
        with pytest.raises(TypeError, match="expected a list of lines, found a str"):
            call(LINES)


@pytest.mark.parametrize(
    "call",
    [
        lambda: corpus_bleu("a b", [["a b"]]),
        lambda: corpus_bleu(["a b"], ["a b"]),
        lambda: BleuStatistics(["a b"], "a b"),
        lambda: ChrfStatistics("a b", [["a b"]]),
        lambda: paired_bootstrap(["x", "y"], ["a b", "a c"], [["a b"]]),
        lambda: paired_bootstrap(["x", "y"], [["a b"], ["a c"]], ["a b"]),
        lambda: read_systems("dev.en", "dev.fr", ["out.fr"]),
        lambda: read_systems("dev.en", ["dev.fr"], "out.fr"),
    ],
)
def test_of_measures(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"expected a list of .*, found a str; write \["):
        call()


def test_of_the_phrase_based_decoder() -> None:
    decoder = Decoder.load(str(MODELS / "phrase-based"))
    with pytest.raises(TypeError, match="expected a list of lines"):
        decoder.translate(LINES)
    with pytest.raises(TypeError, match="expected a list of lines"):
        decoder.nbest(LINES, 2)
