"""Runs exported to CTranslate2 as engines of the server."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from nmt.errors import DataError, UserError
from nmt.serve.config import EngineConfig
from nmt.serve.engine import TranslatedLine, TranslateOptions
from nmt.serve.served import RunKind
from tests.nmt.runs.test_exported import LINES, exported, make_run

pytest.importorskip("ctranslate2")

from nmt.search.config import BeamConfig
from nmt.serve.exported import MAX_PARTS, MAX_UNITS, ExportedEngine, ExportedSession

BEAM = BeamConfig(beam_size=3)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> ExportedEngine:
    return ExportedEngine(exported(make_run(), tmp_path_factory.mktemp("runs") / "exported"), BEAM)


def finish(session: ExportedSession) -> dict[object, TranslatedLine | UserError]:
    """The answers to all lines of a session."""
    answers: dict[object, TranslatedLine | UserError] = {}
    while session.busy:
        answers.update(session.step())
    return answers


def texts(answer: TranslatedLine | UserError | None) -> list[str]:
    assert isinstance(answer, TranslatedLine)
    return [hypothesis.text for hypothesis in answer.hypotheses]


def test_requests_of_all_kinds_are_answered_as_the_run_does(engine: ExportedEngine) -> None:
    """More lines than a batch, of several beam sizes and kinds of text, empty ones among them."""
    session, expected = engine.session(), dict[object, list[str]]()
    kinds = [TranslateOptions(), TranslateOptions(n_best=2), TranslateOptions(beam_size=1, tokenized=True)]
    for number in range(2 * MAX_PARTS):
        line, options = LINES[number % len(LINES)], kinds[number % len(kinds)]
        session.add(number, line, options)
        run = engine.run.for_text(options.tokenized)
        beam = BeamConfig(beam_size=options.beam_size or 3)
        [translations] = run.n_best([line], beam)
        expected[number] = [run.text(best) for best in translations[: options.n_best]]
    assert not session.has_room()
    answers = finish(session)
    assert {key: texts(answer) for key, answer in answers.items()} == expected


@pytest.mark.ci
def test_a_step_takes_a_batch_and_the_oldest_lines_first(engine: ExportedEngine) -> None:
    session = engine.session()
    for number in range(MAX_PARTS + 1):
        assert session.has_room() == (number < MAX_PARTS)
        session.add(number, "w1 w2", TranslateOptions())
    assert [key for key, _ in session.step()] == list(range(MAX_PARTS))
    assert session.busy and session.has_room()
    session.cancel(MAX_PARTS)
    assert finish(session) == {}
    long = " ".join(["w3"] * (MAX_UNITS // 8))
    for number in range(9):
        session.add(number, long, TranslateOptions(beam_size=1))
    assert not session.has_room()
    assert [key for key, _ in session.step()] == list(range(8))


@pytest.mark.ci
def test_a_line_that_is_too_long_is_translated_in_parts(engine: ExportedEngine) -> None:
    words = [f"w{number % 30}" for number in range(300)]
    answer = engine.translate(" ".join(words), TranslateOptions(n_best=2), threading.Event())
    assert answer.parts == 2 and answer.words == words and len(answer.hypotheses) == 1
    assert answer.hypotheses[0].text == engine.run.translate([" ".join(words)], beam_size=3)[0]


def test_only_the_line_that_fails_gets_the_error(
    engine: ExportedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = engine.run.search_readings

    def fail(readings, config, **rest):  # type: ignore[no-untyped-def]
        if any("w8" in reading for reading in readings):
            raise DataError("a sentence: too long")
        return search(readings, config, **rest)

    monkeypatch.setattr(engine.run, "search_readings", fail)
    session = engine.session()
    for line in ("w1 w2", "w8", "w3"):
        session.add(line, line, TranslateOptions())
    answers = finish(session)
    assert isinstance(answers.pop("w8"), DataError) and len(answers) == 2
    assert all(texts(answer) for answer in answers.values())


@pytest.mark.ci
def test_the_server_loads_it_without_torch(engine: ExportedEngine) -> None:
    folder: Path = engine.run.members[0].directory
    assert isinstance(RunKind().load(str(folder), EngineConfig()), ExportedEngine)
    code = (
        "import sys, threading; from nmt.serve import served, server\n"
        "from nmt.serve.config import EngineConfig\n"
        "from nmt.serve.engine import TranslateOptions\n"
        "path = sys.argv[1]; assert not served.need_torch([path], EngineConfig())\n"
        "engine = served.load_engine(path, EngineConfig())\n"
        "print(engine.translate('w1 w2', TranslateOptions(), threading.Event()).hypotheses[0].text)\n"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == engine.run.translate(["w1 w2"])[0]
