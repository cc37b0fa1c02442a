"""A run as an engine."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from nmt.analysis.attention import attend
from nmt.errors import UserError
from nmt.runs.constraints import Constraints
from nmt.runs.torch_run import TorchRun
from nmt.search.config import BeamConfig
from nmt.serve import runs as run_session
from nmt.serve.engine import ATTENTION, AVOID, TERMS, TranslatedLine, TranslateOptions, empty_translation
from nmt.serve.runs import RunEngine, RunSession
from nmt.serve.served import RunKind, member_paths
from tests.nmt.serve.engines import TRANSLATOR, trained_engine

# ---- test runs ---------------------------------------------------------------------------------------------


GO = threading.Event()
LINE = "A boy does not follow the man."


@pytest.fixture(scope="module")
def engine() -> RunEngine:
    found = trained_engine(beam_size=3)
    assert isinstance(found, RunEngine)
    return found


def test_it_says_what_it_is(engine: RunEngine) -> None:
    assert (engine.info.source, engine.info.target, engine.info.beam_size) == ("en", "fr", 3)
    assert ATTENTION in engine.info.capabilities


def test_a_line_is_translated_as_the_run_does(engine: RunEngine) -> None:
    (expected,) = engine.run.n_best([LINE], BeamConfig(beam_size=3))
    found = engine.translate(LINE, TranslateOptions(n_best=2), GO).hypotheses
    assert [one.words for one in found] == [one.words for one in expected[:2]]
    assert [one.score for one in found] == pytest.approx([one.score for one in expected[:2]], abs=1e-5)
    assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in expected[:2]], abs=1e-5)
    assert [one.alignment for one in found] == [one.alignment for one in expected[:2]]
    assert found[0].text == engine.run.translate([LINE], beam_size=3)[0]


def test_scores_are_those_of_the_search(engine: RunEngine) -> None:
    best = engine.translate(LINE, TranslateOptions(), GO).hypotheses[0]
    (words,) = engine.score([(LINE, best.text)], False)
    assert sum(score for _, score in words) == pytest.approx(best.log_prob, abs=1e-4)
    assert [unit for unit, _ in words] == engine.run.target_units(best.text)


def test_terms_and_what_is_to_be_avoided(engine: RunEngine) -> None:
    assert {TERMS, AVOID} <= set(engine.info.capabilities)
    asked = TranslateOptions(n_best=3, terms=(("man", "fille"),), avoid=("garçon",))
    found = engine.translate(LINE, asked, GO).hypotheses
    assert len(found) == 3
    for one in found:
        assert "fille" in one.words and "garçon" not in one.text.lower()
    strict = RunEngine(engine.run, BeamConfig(beam_size=3, no_repeat_ngram=1))
    with pytest.raises(UserError, match="a line: no translation contains all"):
        strict.translate("The man sees the man.", TranslateOptions(terms=(("man", "fille"),)), GO)


def test_a_stopped_translation_raises(engine: RunEngine) -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(InterruptedError):
        engine.translate(LINE, TranslateOptions(), stopped)


def test_text_of_its_language_fits_best(engine: RunEngine) -> None:
    fits = [engine.fit(text) for text in (LINE, "The 你好", "你好吗", "")]
    assert fits[0] > fits[1] > fits[2] == fits[3] == 0


def test_several_paths_are_an_ensemble(tmp_path: Path) -> None:
    assert member_paths("a,b") == ["a", "b"]
    (tmp_path / "a,b").mkdir()
    assert member_paths(str(tmp_path / "a,b")) == [str(tmp_path / "a,b")]
    kind = RunKind()
    assert kind.reads(f"{TRANSLATOR},{TRANSLATOR}") and not kind.reads(f"{TRANSLATOR},{tmp_path}")


def test_an_ensemble_of_equals_is_the_run(engine: RunEngine) -> None:
    twice = RunEngine(TorchRun.of(TRANSLATOR, TRANSLATOR), BeamConfig(beam_size=3))
    one, other = (found.translate(LINE, TranslateOptions(attention=True), GO) for found in (engine, twice))
    assert one.hypotheses[0].text == other.hypotheses[0].text and one.words == other.words
    assert one.hypotheses[0].log_prob == pytest.approx(other.hypotheses[0].log_prob, abs=1e-5)
    assert one.hypotheses[0].attention[0] == pytest.approx(other.hypotheses[0].attention[0], abs=1e-5)


# ---- test run session --------------------------------------------------------------------------------------
# Lines that a run searches together.


SOURCE = (Path(__file__).resolve().parents[2] / "models" / "source.en").read_text(encoding="utf-8")
SESSION_LINES = ["", *SOURCE.split("\n")[:12], "  "]
SESSION_CONFIG = BeamConfig(beam_size=3)


@pytest.fixture(scope="module")
def run() -> TorchRun:
    return TorchRun.of(TRANSLATOR)


def finish(session: RunSession) -> dict[object, TranslatedLine]:
    """The lines that are translated; UserError for one that cannot be."""
    found: dict[object, TranslatedLine] = {}
    while session.busy:
        for key, one in session.step():
            if isinstance(one, UserError):
                raise one
            found[key] = one
    return found


def translated(
    run: TorchRun, line: str, options: TranslateOptions, config: BeamConfig = SESSION_CONFIG
) -> TranslatedLine:
    """A line in a session of its own."""
    session = RunSession(run, config)
    session.add(0, line, options)
    return finish(session)[0]


def test_lines_that_come_at_different_times_are_translated_as_alone(run: TorchRun) -> None:
    session, found = RunSession(run, SESSION_CONFIG), dict[object, TranslatedLine]()
    for number, line in enumerate(SESSION_LINES):
        session.add(number, line, TranslateOptions())
        found |= {key: one for key, one in session.step() if isinstance(one, TranslatedLine)}
    found |= finish(session)
    expected = run.translate(SESSION_LINES, SESSION_CONFIG)
    assert [found[number].hypotheses[0].text for number in range(len(SESSION_LINES))] == expected
    assert found[0] == empty_translation()
    assert not session.tasks and not session.owner


def test_a_step_is_short(run: TorchRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads a few lines only, and works a little on one translation, whatever there is to do."""
    monkeypatch.setattr("nmt.serve.runs.MAX_STARTED", 20)
    monkeypatch.setattr("nmt.serve.runs.MAX_FINISHING", 0.0)
    session, lines = RunSession(run, SESSION_CONFIG), SESSION_LINES[1:13]
    for number, line in enumerate(lines):
        session.add(number, line, TranslateOptions(n_best=2, attention=True))
    searched, longest = [0], max(len(run.read(line)) for line in lines)
    found = dict[object, TranslatedLine]()
    while session.busy:
        found |= {key: one for key, one in session.step() if isinstance(one, TranslatedLine)}
        searched.append(sum(task.started for task in session.tasks.values()) + len(found))
    assert searched[1] < len(lines) == searched[-1] and searched == sorted(searched)
    begun = [later - earlier for earlier, later in pairwise(searched)]
    assert 1 <= max(begun) <= 20 and longest < 20 * max(begun)
    assert [found[number].hypotheses[0].text for number in range(12)] == run.translate(lines, SESSION_CONFIG)
    assert all(one.attention for each in found.values() for one in each.hypotheses if one.words)


def test_a_wide_line_begins_when_there_is_room(run: TorchRun) -> None:
    session = RunSession(run, replace(SESSION_CONFIG, rows=10))
    session.add("first", SESSION_LINES[1], TranslateOptions())
    session.step()
    session.add("wide", SESSION_LINES[2], TranslateOptions(beam_size=10))
    session.add("next", SESSION_LINES[3], TranslateOptions())
    session.step()
    assert not session.has_room()
    assert [len(task.in_search) for task in session.tasks.values()] == [1, 0, 0]
    assert set(finish(session)) == {"first", "wide", "next"}


def test_the_memory_that_a_step_attends_to_is_bounded(run: TorchRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is padded to the longest sentence: beside a long one there is room for fewer short ones."""
    lines = [" ".join([LINE] * 4), LINE, LINE, LINE]
    longest, short = (len(run.read(line)) for line in lines[:2])
    monkeypatch.setattr("nmt.serve.runs.MAX_ATTENDED", SESSION_CONFIG.beam_size * 2 * longest)
    assert longest + 3 * short <= 2 * longest
    session = RunSession(run, SESSION_CONFIG)
    for number, line in enumerate(lines):
        session.add(number, line, TranslateOptions())
    session.step()
    assert not session.has_room()
    assert [len(task.in_search) for task in session.tasks.values()] == [1, 1, 0, 0]
    assert set(finish(session)) == set(range(4))


def test_a_cancelled_line_is_gone(run: TorchRun) -> None:
    session = RunSession(run, SESSION_CONFIG)
    session.add("gone", SESSION_LINES[1], TranslateOptions())
    session.add("empty", "", TranslateOptions())
    session.add("stays", SESSION_LINES[2], TranslateOptions())
    session.cancel("gone")
    session.cancel("empty")
    assert list(finish(session)) == ["stays"] and not session.owner


def test_a_line_may_be_cancelled_when_its_search_is_over(
    run: TorchRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.serve.runs.MAX_FINISHING", 0.0)
    session = RunSession(run, SESSION_CONFIG)
    session.add("gone", SESSION_LINES[1], TranslateOptions(attention=True))
    while not session.finishing:
        assert not session.step()
    session.cancel("gone")
    assert not session.busy and not session.step()


def test_a_long_line_is_translated_in_parts(run: TorchRun) -> None:
    line = " ".join([SESSION_LINES[1]] * 40)
    found = translated(run, line, TranslateOptions(n_best=3, attention=True))
    assert found.parts > 1 and len(found.hypotheses) == 1
    assert found.hypotheses[0].text == run.translate([line], SESSION_CONFIG)[0]
    words = [word.lower() for word in run.members[0].source.words(SESSION_LINES[1])]
    assert [word.lower() for word in found.words] == words * 40 and not found.hypotheses[0].alignment


def test_tokenized_lines(run: TorchRun) -> None:
    (one,) = translated(run, "the man .", TranslateOptions(tokenized=True)).hypotheses
    expected = run.for_text(tokenized=True).translate(["the man ."], SESSION_CONFIG)[0]
    assert one.text == " ".join(one.words) == expected


ASKED = [
    Constraints(terms={"rich island": "garçon garçon", "run": "fille"}),
    Constraints(),
    Constraints(avoid=["un", "les", "l'"]),
    Constraints(terms={"girl": "homme"}, avoid=["ne"]),
]


def options_of(asked: Constraints, tokenized: bool = False) -> TranslateOptions:
    """The same, as a request has it."""
    assert not isinstance(asked.terms, str)
    return TranslateOptions(terms=tuple(asked.terms.items()), avoid=tuple(asked.avoid), tokenized=tokenized)


@pytest.mark.parametrize("tokenized", [False, True])
def test_each_request_has_its_own_terms(run: TorchRun, tokenized: bool) -> None:
    """Lines that are searched together, one a request in turn, are translated as the run does alone."""
    lines = [" ".join(run.members[0].source.words(line)) if tokenized else line for line in SESSION_LINES]
    session = RunSession(run, SESSION_CONFIG)
    for number, line in enumerate(lines):
        session.add(number, line, options_of(ASKED[number % 4], tokenized))
    found = finish(session)
    changed, alone = [], run.for_text(tokenized)
    for turn, asked in enumerate(ASKED):
        some = lines[turn::4]
        expected = alone.translate(some, SESSION_CONFIG, constraints=asked)
        assert [found[number].hypotheses[0].text for number in range(turn, len(lines), 4)] == expected
        changed.append(expected != alone.translate(some, SESSION_CONFIG))
    assert changed == [True, False, True, True]


def test_terms_hold_in_each_part_of_a_long_line(run: TorchRun) -> None:
    line, asked = " ".join([SESSION_LINES[1]] * 40), Constraints(avoid=["un"])
    found = translated(run, line, options_of(asked))
    assert found.parts > 1
    assert found.hypotheses[0].text == run.translate([line], SESSION_CONFIG, constraints=asked)[0]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Constraints(terms={"man": "你"}), "terms, 'man': '你' cannot be required.*leave it out$"),
        (Constraints(terms={"man": ""}), "terms, 'man': .*one side has no words"),
        (Constraints(terms={"man": "fille"}, avoid=["fille"]), "a line: .* is required, but contains"),
        (Constraints(terms={"man": "fille"}), "a line: no translation contains all.*; ask for less$"),
    ],
)
def test_what_cannot_be_met(run: TorchRun, asked: Constraints, message: str) -> None:
    """Said of the line, and other lines go on."""
    session = RunSession(run, replace(SESSION_CONFIG, no_repeat_ngram=1))
    session.add("other", SESSION_LINES[1], TranslateOptions())
    with pytest.raises(UserError, match=message):
        session.add("line", "The man follows the man.", options_of(asked))
        raise next(one for key, one in iter_steps(session) if key == "line" and isinstance(one, UserError))
    while session.busy:
        session.step()
    assert not session.tasks and not session.owner


@pytest.mark.parametrize(
    ("terms", "beam_size"),
    [
        ({"man": "fille " * 1600}, 0),  # one request of 10 kB
        ({"man": "fille garçon"}, 0),
        ({"man": "fille"}, 50),
        ({f"man {'follows ' * number}man": "fille " * 20 for number in range(30)}, 0),
    ],
    ids=["one long term", "one short term", "a wide beam", "many terms"],
)
def test_the_units_that_a_line_requires_are_bounded(
    run: TorchRun, terms: dict[str, str], beam_size: int
) -> None:
    """2,500 terms of 3,300 units took a minute a step, for everybody."""
    session, line = RunSession(run, SESSION_CONFIG), "man " * 240 + " ".join(terms)
    options = replace(options_of(Constraints(terms=terms)), beam_size=beam_size)
    session.add("other", SESSION_LINES[1], TranslateOptions())
    with pytest.raises(UserError, match=r"its terms require \d+ units, at most \d+ can be"):
        session.add("line", line, options)
    session.add("fewer", "The man.", replace(options, terms=(("man", "fille"),)))
    assert set(finish(session)) == {"other", "fewer"}


def test_a_session_is_full_when_its_lines_require_much(run: TorchRun) -> None:
    session = RunSession(run, SESSION_CONFIG)
    terms = {"man": " ".join(["fille", "garçon", "homme"] * 35)}
    rooms = list[bool]()
    for number in range(2):
        session.add(number, "The man.", options_of(Constraints(terms=terms)))
        rooms.append(session.has_room())
    assert rooms == [True, False] and session.search.has_room()
    session.cancel(0)
    assert session.has_room()


def test_what_was_prepared_for_another_run_is_not_used(run: TorchRun) -> None:
    """Engines may be loaded anew between the preparation and the search."""
    options = options_of(Constraints(avoid=["un", "une", "les", "l'"]))
    other = run_session.constraint_maker(TorchRun.of(TRANSLATOR), options_of(Constraints()))
    assert other is None
    old = run_session.constraint_maker(TorchRun.of(TRANSLATOR), options_of(Constraints(avoid=["x"])))
    mine = run_session.constraint_maker(run, options)
    texts = []
    for prepared in (None, old, mine):
        found = translated(run, SESSION_LINES[1], replace(options, prepared=prepared))
        texts.append(found.hypotheses[0].text)
    assert len({*texts}) == 1 and texts[0] != run.translate([SESSION_LINES[1]], SESSION_CONFIG)[0]


def iter_steps(session: RunSession) -> Iterator[tuple[object, TranslatedLine | UserError]]:
    while session.busy:
        yield from session.step()


def test_unknown_words_are_counted_in_words(run: TorchRun) -> None:
    found = translated(run, "The man 你好 follows 吗.", TranslateOptions())
    assert [found.words[place] for place in found.unknown] == ["你", "好", "吗"]


@pytest.mark.parametrize("line", SESSION_LINES[1:5])
def test_attention_is_that_of_the_map_summed_over_the_units_of_words(run: TorchRun, line: str) -> None:
    one, _ = translated(run, line, TranslateOptions(n_best=2, attention=True), BeamConfig()).hypotheses
    found = attend(run, line)
    source_of = run.members[0].source.word_numbers(found.source[:-1])
    target_of = run.members[0].target.word_numbers(found.target[:-1])
    assert len(one.attention) == len(one.words)
    for place, row in enumerate(one.attention):
        units = [unit for unit, word in enumerate(target_of) if word == place]
        for word, weight in enumerate(row):
            columns = [unit for unit, number in enumerate(source_of) if number == word]
            assert weight == pytest.approx(found.weights[units][:, columns].sum(1).mean(), abs=1e-5)


def test_weights_of_units_become_weights_of_words() -> None:
    weights = torch.tensor([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.0, 0.5, 0.5]])
    found = run_session.word_weights(weights, torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]))
    assert found == [pytest.approx([0.2, 0.4]), pytest.approx([0.0, 1.0])]


def test_a_model_without_merges_has_no_parse(run: TorchRun) -> None:
    assert not run_session.has_parse(run)
    assert run_session.soft_parse(run, ["a", "b"]) is None and run_session.soft_parse(run, ["a"]) is None
