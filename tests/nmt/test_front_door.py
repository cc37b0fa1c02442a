"""The names of the Python API."""

import doctest
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import nmt
import smt_bridge
from nmt import analysis, lazy
from nmt.analysis import paired_bootstrap, read_systems
from nmt.metrics import BleuStatistics, ChrfStatistics, corpus_bleu
from nmt.runs.language_model import LineScorer, line_scorer
from nmt.runs.run import Run, TranslationRequest
from nmt.search.config import BeamConfig
from smt_bridge.decoder.decoder import Decoder

# ---- test front door ---------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_that_of_the_changelog() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n")
    number, _, state = (
        next(line for line in lines if line.startswith("## ")).removeprefix("## ").partition(" ")
    )
    assert nmt.__version__ == (f"{number}.dev0" if state == "(unreleased)" else number)


def test_every_public_name_is_there_with_an_example() -> None:
    for name in set(nmt.__all__) - {"__version__"}:
        found = doctest.DocTestFinder().find(getattr(nmt, name), name)
        assert any(part.examples for part in found), f"nmt.{name} has no example"
    assert set(nmt.__all__) <= set(dir(nmt)) and set(nmt.MODULES) == set(nmt.__all__) - {"__version__"}
    with pytest.raises(AttributeError, match="'nmt' has no attribute 'nothing'"):
        nmt.nothing  # noqa: B018


# ---- test lazy ---------------------------------------------------------------------------------------------
# Names of a package that are loaded when they are first used.


def test_a_name_is_that_of_its_module() -> None:
    getattribute, listed = lazy.names("nmt", {"loads": "json", "Decoder": "json.decoder"})
    assert getattribute("loads") is json.loads and "Decoder" in listed() and "loads" in listed()
    with pytest.raises(AttributeError, match="module 'nmt' has no attribute 'nowhere'"):
        getattribute("nowhere")


@pytest.mark.parametrize("package", [nmt, smt_bridge, analysis], ids=lambda package: package.__name__)
def test_public_names_are_there_and_listed(package: ModuleType) -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None and name in dir(package)


def test_nothing_is_loaded_before_it_is_used() -> None:
    """In a process of its own, since this one has loaded everything."""
    code = "import sys; import nmt, smt_bridge; print('torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


# ---- test lines --------------------------------------------------------------------------------------------
# A str where a list of lines is expected is refused wherever lines are taken.

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


@pytest.mark.parametrize("pair", [("a",), ("a", "b", "c")])
def test_a_pair_is_two_texts(run: Run, pair: tuple[str, ...]) -> None:
    with pytest.raises(TypeError, match=f"expected pairs .source, target., found a tuple of {len(pair)}"):
        run.score([pair])


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
