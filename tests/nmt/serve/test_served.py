"""Engines by name."""

import asyncio
import logging
import threading
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.serve import engine, served
from nmt.serve.config import EngineConfig, ServeConfig
from nmt.serve.engine import EngineInfo, TranslatedLine, TranslateOptions
from nmt.serve.queue import QueueClosed, QueueFull, Sender, WaitingLine
from nmt.serve.served import ServedEngine
from tests.nmt.serve.engines import TRANSLATOR, Batch, Upper, serving

# ---- test served -------------------------------------------------------------------------------------------


ME = Sender("me", "1")


def test_the_first_is_the_default_and_languages_find_theirs() -> None:
    one, other = Upper(), Upper(EngineInfo("fake", "", "de", "en"))
    engines = serving(one, other)
    assert list(engines) == ["upper", "other"] and engines.first.engine is one
    found = engines.for_languages("de", "en")
    assert found and found.engine is other and engines.for_languages("de", "fr") is None


def test_the_name_says_what_the_engine_does_not() -> None:
    engines = serving(Upper(EngineInfo("fake", "")), Upper(), names=["de-en", "de-it"])
    assert [one.languages for one in engines.values()] == [("de", "en"), ("en", "fr")]


def test_lines_come_back_in_order() -> None:
    engine = serving(Batch()).first
    found = asyncio.run(engine.translate(ME, ["a b c", "d", "e f"], TranslateOptions()))
    assert [one.words for one in found] == [["a", "b", "c"], ["d"], ["e", "f"]]


def test_a_full_queue() -> None:
    engine = serving(Upper(), config=ServeConfig(queue=2)).first

    async def fill() -> None:
        first = asyncio.ensure_future(engine.translate(ME, ["wait"], TranslateOptions()))
        while not engine.live:
            await asyncio.sleep(0.001)
        others = asyncio.ensure_future(engine.translate(ME, ["a", "b"], TranslateOptions()))
        await asyncio.sleep(0.01)
        with pytest.raises(QueueFull):
            await engine.translate(ME, ["c"], TranslateOptions())
        first.cancel()
        assert len(await others) == 2

    asyncio.run(fill())
    assert engine.waiting == 0


def test_reload_loses_nothing_that_is_in_hand() -> None:
    made = [Upper(), Upper()]
    engine = ServedEngine("upper", iter(made).__next__, ServeConfig())

    async def through() -> None:
        before = asyncio.ensure_future(engine.translate(ME, ["wait", "a"], TranslateOptions()))
        while not engine.live:
            await asyncio.sleep(0.001)
        await asyncio.to_thread(engine.reload)
        assert [one.words for one in await engine.translate(ME, ["b"], TranslateOptions())] == [["b"]]
        made[0].go.set()
        assert [one.words for one in await before] == [["wait"], ["a"]]

    asyncio.run(through())
    assert [one.seen for one in made] == [["wait", "a"], ["b"]] and engine.engine is made[1]


def test_when_loading_fails_the_old_engine_goes_on() -> None:
    made = iter([Upper()])

    def load() -> Upper:
        for one in made:
            return one
        raise ConfigError("gone")

    engine = ServedEngine("upper", load, ServeConfig())
    with pytest.raises(ConfigError, match="gone"):
        engine.reload()
    assert asyncio.run(engine.translate(ME, ["a"], TranslateOptions()))[0].words == ["a"]


def test_after_close_there_is_no_more_work() -> None:
    engine = serving(Upper()).first
    engine.close()
    with pytest.raises(QueueClosed):
        asyncio.run(engine.translate(ME, ["a"], TranslateOptions()))


def test_join_waits_for_what_is_in_hand_but_no_longer_than_is_said() -> None:
    upper = Upper()
    engine = serving(upper).first
    job = WaitingLine[TranslatedLine](ME, "wait")
    engine.put([job])
    engine.close()
    engine.join(0.05)
    assert not job.answer.done()
    upper.go.set()
    engine.join(30)
    assert job.answer.done() and not any(thread.is_alive() for thread in engine.workers.threads)


class Prepares(Upper):
    """Says in which thread terms are prepared, and what its lines come with."""

    def __init__(self) -> None:
        super().__init__()
        self.threads, self.options = list[str](), list[TranslateOptions]()

    def prepare(self, options: TranslateOptions) -> object:
        self.threads.append(threading.current_thread().name)
        return len(self.threads)

    def translate(self, line: str, options: TranslateOptions, stop: threading.Event) -> TranslatedLine:
        self.options.append(options)
        return super().translate(line, options, stop)


def test_terms_are_prepared_once_for_a_request_beside_the_engine() -> None:
    engine = Prepares()
    served = serving(engine).first
    for options in (
        TranslateOptions(avoid=("x",)),
        TranslateOptions(),
        TranslateOptions(terms=(("a", "b"),)),
    ):
        asyncio.run(served.translate(ME, ["a", "b"], options))
    assert [options.prepared for options in engine.options] == [1, 1, None, None, 2, 2]
    assert all(name.startswith("prepare") for name in engine.threads)


def test_many_scores_are_computed_in_parts_and_keep_their_order() -> None:
    pairs = [("", "x" * number) for number in range(1, 40)]
    found = asyncio.run(serving(Upper()).first.score(ME, pairs, False))
    assert found == [[("x" * number, -float(number))] for number in range(1, 40)]


def test_long_pairs_are_scored_in_smaller_parts() -> None:
    assert [len(part) for part in served.group_pairs([("a", "b")] * 20)] == [3] * 6 + [2]
    assert [len(part) for part in served.group_pairs([("a" * 600, "b" * 600)] * 3)] == [1, 1, 1]
    pairs = [("a" * (97 * number % 700), str(number)) for number in range(50)]
    assert [pair for part in served.group_pairs(pairs) for pair in part] == pairs and served.group_pairs(
        []
    ) == []


def test_scores_come_from_engines_that_have_them() -> None:
    assert asyncio.run(serving(Upper()).first.score(ME, [("a", "bc d")], False)) == [
        [("bc", -2.0), ("d", -1.0)]
    ]


def test_loading_says_what_is_served(caplog: pytest.LogCaptureFixture) -> None:
    def load(path: str, config: EngineConfig) -> Upper:
        assert path in ("x", "y")
        return Upper()

    with caplog.at_level(logging.INFO, "nmt"):
        engines = served.load_engines([("one", "x"), ("two", "y")], EngineConfig(), ServeConfig(), load)
    assert list(engines) == ["one", "two"]
    assert "one from en to fr: upper case" in caplog.text


def test_an_engine_has_translated_a_line_before_it_is_served() -> None:
    engine = Upper()
    assert served.warm_up(engine) is engine and engine.seen == [served.FIRST_LINE]


# ---- test registry -----------------------------------------------------------------------------------------
# Which engine a path is.


def test_runs_are_known_and_the_engines_of_smt_bridge_are_found() -> None:
    assert {"run", "hybrid", "phrase-based"} <= set(served.engine_kinds())


def test_a_run_and_an_ensemble() -> None:
    assert served.load_engine(str(TRANSLATOR), EngineConfig()).info.kind == "run"
    assert served.load_engine(f"{TRANSLATOR},{TRANSLATOR}", EngineConfig()).info.kind == "ensemble"


@pytest.mark.parametrize(("name", "message"), [("", "not an engine"), ("nothing", "does not exist")])
def test_what_is_no_engine(name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{message}; expected a run directory"):
        served.load_engine(str(tmp_path / name), EngineConfig())


def test_an_entry_point_that_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("mine", "no_such_module:Mine", served.ENTRY_POINT_GROUP)
    monkeypatch.setattr("nmt.serve.served.entry_points", lambda group: [broken])
    with pytest.raises(ConfigError, match=r"entry point mine of nmt\.engines: .*no_such_module"):
        served.engine_kinds()


# ---- test names --------------------------------------------------------------------------------------------
# Names of engines.


def test_a_name_may_say_the_languages() -> None:
    assert engine.languages_in_name("en-fr") == ("en", "fr")
    assert engine.languages_in_name("de-en.small") == ("de", "en")
    assert (
        engine.languages_in_name("en-french")
        == engine.languages_in_name("xx-yy")
        == engine.languages_in_name("best")
        == ("", "")
    )


def test_name_and_path() -> None:
    assert engine.parse_engine_name("en-fr=runs/a,runs/b=c") == ("en-fr", "runs/a,runs/b=c")


@pytest.mark.parametrize(
    "text", ["path", "=path", "a b=path", "name=", "../x=path", "<b>=path", "n" * 65 + "=p"]
)
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        engine.parse_engine_name(text)
