"""A run as an engine."""

import threading
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.runs.run import Run
from nmt.search.config import BeamConfig
from nmt.serve.engine import ATTENTION, AVOID, TERMS, Options
from nmt.serve.runs import RunEngine, Runs, members
from tests.nmt.serve.engines import TRANSLATOR, golden

GO = threading.Event()
LINE = "A boy does not follow the man."


@pytest.fixture(scope="module")
def engine() -> RunEngine:
    found = golden(beam_size=3)
    assert isinstance(found, RunEngine)
    return found


def test_it_says_what_it_is(engine: RunEngine) -> None:
    assert (engine.info.source, engine.info.target, engine.info.beam_size) == ("en", "fr", 3)
    assert ATTENTION in engine.info.capabilities


def test_a_line_is_translated_as_the_run_does(engine: RunEngine) -> None:
    (expected,) = engine.run.n_best([LINE], BeamConfig(beam_size=3))
    found = engine.translate(LINE, Options(n_best=2), GO).hypotheses
    assert [one.words for one in found] == [one.words for one in expected[:2]]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected[:2]], abs=1e-5)
    assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in expected[:2]], abs=1e-5)
    assert [one.alignment for one in found] == [one.alignment for one in expected[:2]]
    assert found[0].text == engine.run.translate([LINE], beam_size=3)[0]


def test_scores_are_those_of_the_search(engine: RunEngine) -> None:
    best = engine.translate(LINE, Options(), GO).hypotheses[0]
    (words,) = engine.score([(LINE, best.text)], False)
    assert sum(words) == pytest.approx(best.log_prob, abs=1e-4)


def test_terms_and_what_is_to_be_avoided(engine: RunEngine) -> None:
    assert {TERMS, AVOID} <= set(engine.info.capabilities)
    asked = Options(n_best=3, terms=(("man", "fille"),), avoid=("garçon",))
    found = engine.translate(LINE, asked, GO).hypotheses
    assert len(found) == 3
    for one in found:
        assert "fille" in one.words and "garçon" not in one.text.lower()
    strict = RunEngine(engine.run, BeamConfig(beam_size=3, no_repeat_ngram=1))
    with pytest.raises(UserError, match="a line: no translation has all that is required"):
        strict.translate("The man sees the man.", Options(terms=(("man", "fille"),)), GO)


def test_a_stopped_translation_raises(engine: RunEngine) -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(InterruptedError):
        engine.translate(LINE, Options(), stopped)


def test_text_of_its_language_fits_best(engine: RunEngine) -> None:
    fits = [engine.fit(text) for text in (LINE, "The 你好", "你好吗", "")]
    assert fits[0] > fits[1] > fits[2] == fits[3] == 0


def test_several_paths_are_an_ensemble(tmp_path: Path) -> None:
    assert members("a,b") == ["a", "b"]
    (tmp_path / "a,b").mkdir()
    assert members(str(tmp_path / "a,b")) == [str(tmp_path / "a,b")]
    kind = Runs()
    assert kind.reads(f"{TRANSLATOR},{TRANSLATOR}") and not kind.reads(f"{TRANSLATOR},{tmp_path}")


def test_an_ensemble_of_equals_is_the_run(engine: RunEngine) -> None:
    twice = RunEngine(Run.of(TRANSLATOR, TRANSLATOR), BeamConfig(beam_size=3))
    one, other = (found.translate(LINE, Options(attention=True), GO) for found in (engine, twice))
    assert one.hypotheses[0].text == other.hypotheses[0].text and one.words == other.words
    assert one.hypotheses[0].log_prob == pytest.approx(other.hypotheses[0].log_prob, abs=1e-5)
    assert one.hypotheses[0].attention[0] == pytest.approx(other.hypotheses[0].attention[0], abs=1e-5)
