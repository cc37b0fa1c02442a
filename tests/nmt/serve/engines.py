"""Small engines for tests of the server, and clients of it."""

import socket
import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import uvicorn
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from nmt.errors import DataError, UserError
from nmt.io.files import split_words
from nmt.serve.config import EngineConfig, ServeConfig
from nmt.serve.engine import (
    ALIGNMENT,
    N_BEST,
    SCORE,
    Engine,
    EngineInfo,
    LineHypothesis,
    Segment,
    TranslatedLine,
    TranslateOptions,
    empty_translation,
)
from nmt.serve.limits import Token
from nmt.serve.monitoring import Lifecycle, RequestRecord
from nmt.serve.served import RunKind, ServedEngine, ServedEngines
from nmt.serve.server import application, uvicorn_settings

TRANSLATOR = Path(__file__).resolve().parents[2] / "models" / "translator"
SECRET = "correct horse battery"
BEARER = {"Authorization": f"Bearer {SECRET}"}
INFO = EngineInfo("fake", "upper case", "en", "fr", (N_BEST, ALIGNMENT, SCORE), 5)


class Upper(Engine):
    """Translates into upper case, and so many times as hypotheses are asked for. The line `fail` cannot be
    translated, `crash` breaks it, and `wait` takes until `go` is set, or nobody waits."""

    def __init__(self, info: EngineInfo = INFO) -> None:
        self.info, self.go, self.seen = info, threading.Event(), list[str]()

    def translate(self, line: str, options: TranslateOptions, stop: threading.Event) -> TranslatedLine:
        self.seen.append(line)
        if line == "fail":
            raise DataError("line 1: cannot be translated")
        if line == "crash":
            raise RuntimeError("secret")
        while line == "wait" and not self.go.wait(0.01):
            if stop.is_set():
                raise InterruptedError
        words = split_words(line)
        if not words:
            return empty_translation()
        upper = [word.upper() for word in words]
        places = [(place, place) for place in range(len(words))]
        found = [
            LineHypothesis(
                text=" ".join([*upper, *["!"] * number]),
                words=[*upper, *["!"] * number],
                score=-float(number),
                alignment=places,
                segments=[Segment((place, place), (place, place)) for place in range(len(words))],
                features={"F0": [1.0, float(number)]},
            )
            for number in range(options.n_best)
        ]
        unknown = [place for place, word in enumerate(words) if not word.isalpha()]
        return TranslatedLine(words, found, unknown)

    def fit(self, line: str) -> float:
        return 1.0 if line.isascii() else 0.0

    def score(self, pairs: Sequence[tuple[str, str]], tokenized: bool) -> list[list[tuple[str, float]]]:
        return [[(word, -float(len(word))) for word in target.split()] for _, target in pairs]


class Threads(Upper):
    """The same in two threads."""

    workers = 2


class Batch(Upper):
    """The same, many lines at a time: a line takes as many steps as it has words. `most` counts the lines
    that were in search together. That the line `late` cannot be translated is found by the search."""

    continuous = True

    def __init__(self, room: int = 4) -> None:
        super().__init__()
        self.room, self.most, self.cancelled = room, 0, list[str]()

    def session(self) -> "BatchSession":
        return BatchSession(self)


class BatchSession:
    def __init__(self, engine: Batch) -> None:
        self.engine = engine
        self.lines: dict[Hashable, tuple[str, TranslateOptions, int]] = {}

    @property
    def busy(self) -> bool:
        return bool(self.lines)

    def has_room(self) -> bool:
        return len(self.lines) < self.engine.room

    def add(self, key: Hashable, line: str, options: TranslateOptions) -> None:
        if line == "fail":
            raise DataError("line 1: cannot be translated")
        self.lines[key] = line, options, len(line.split())
        self.engine.most = max(self.engine.most, len(self.lines))

    def step(self) -> list[tuple[Hashable, TranslatedLine | UserError]]:
        done = list[tuple[Hashable, TranslatedLine | UserError]]()
        for key, (line, options, left) in list(self.lines.items()):
            if line == "crash":
                raise RuntimeError("secret")
            waits = line == "wait" and not self.engine.go.wait(0.01)
            self.lines[key] = line, options, left if waits else left - 1
            if left <= 1 and not waits:
                del self.lines[key]
                if line == "late":
                    done.append((key, DataError("found late")))
                else:
                    done.append((key, self.engine.translate(line, options, threading.Event())))
        return done

    def cancel(self, key: Hashable) -> None:
        self.engine.cancelled.append(self.lines.pop(key)[0])


def serving(
    *engines: Engine, names: Sequence[str] = ("upper", "other"), config: ServeConfig | None = None
) -> ServedEngines:
    """Engines under names."""
    config = config or ServeConfig(gather=0.0)
    return ServedEngines(
        [
            ServedEngine(name, lambda one=one: one, config)  # type: ignore[misc]
            for name, one in zip(names, engines, strict=False)
        ]
    )


@contextmanager
def client(
    *engines: Engine,
    names: Sequence[str] = ("upper", "other"),
    token: str = "",
    life: Lifecycle | None = None,
    records: list[RequestRecord] | None = None,
    **settings: object,
) -> Iterator[TestClient]:
    """A client of a server with these engines, which adds to `records`."""
    config = replace(ServeConfig(gather=0.0), **settings)  # type: ignore[arg-type]
    served = serving(*engines, names=names, config=config)
    done = (records if records is not None else []).append
    app = application(served, config, Token(token) if token else None, life, done)
    yield TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)
    for one in served.values():
        one.close()


@contextmanager
def listening(app: ASGIApp, config: ServeConfig | None = None) -> Iterator[str]:
    """A real server of an application on the loopback address; its URL."""
    server = uvicorn.Server(uvicorn_settings(app, config or ServeConfig()))
    with socket.create_server(("127.0.0.1", 0)) as place:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{place.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def trained_engine(**settings: object) -> Engine:
    """The saved translator as an engine."""
    return RunKind().load(str(TRANSLATOR), replace(EngineConfig(), **settings))  # type: ignore[arg-type]
