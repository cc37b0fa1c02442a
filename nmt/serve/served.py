"""The engines of a server, by name."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path

from nmt.errors import ConfigError, UserError
from nmt.serve.config import EngineConfig, ServeConfig
from nmt.serve.engine import (
    Engine,
    EngineInfo,
    EngineKind,
    Options,
    Preparing,
    Scoring,
    Translated,
    languages_in_name,
)
from nmt.serve.queue import Answer, LineQueue, QueueClosed, Scores, Sender, WaitingLine, Work, Workers
from nmt.serve.runs import Runs

# ---- kinds of engines --------------------------------------------------------------------------------------
# The kinds of engines: those of this package, and those that installed packages name in their entry points
# `nmt.engines`.


ENTRY_POINT_GROUP = "nmt.engines"
ENGINES: dict[str, EngineKind] = {"run": Runs()}


def engine_kinds() -> Mapping[str, EngineKind]:
    """All kinds by name. ConfigError for an entry point that cannot be imported."""
    found = dict(ENGINES)
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            found.setdefault(entry.name, entry.load()())
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"entry point {entry.name} of {ENTRY_POINT_GROUP}: {error}; install its package again"
            ) from error
    return found


def load_engine(path: str, config: EngineConfig) -> Engine:
    """The engine of a path. UserError, in one line, for what is no engine or cannot be loaded."""
    known = engine_kinds()
    for kind in known.values():
        if kind.reads(path):
            return kind.load(path, config)
    first = path.split(",")[0]
    what = "is no engine" if Path(first).exists() else "not there"
    raise ConfigError(
        f"{path}: {what}; expected a run directory, several with commas between them, a moses.ini, its "
        f"folder, or the folder of a hybrid system (kinds: {', '.join(known)})"
    )


# ---- engines by name ---------------------------------------------------------------------------------------


log = logging.getLogger(__name__)

SCORED_CHARACTERS = 250  # characters that are scored together: a search goes on between two parts
MOST_SCORED_PAIRS = 4  # pairs that are scored together
FIRST_LINE = "a b c ."  # the line that an engine translates before any other

Load = Callable[[str, EngineConfig], Engine]


class ServedEngine:
    """An engine under its name. It can be loaded anew: what it has in hand is finished by the old one."""

    def __init__(self, name: str, load: Callable[[], Engine], config: ServeConfig) -> None:
        self.name, self.load, self.config = name, load, config
        self.workers = self.start(load())
        self.preparing = ThreadPoolExecutor(1, "prepare")
        self.reloading = threading.Lock()

    def start(self, engine: Engine) -> Workers:
        return Workers(engine, self.config.queue, self.config.gather)

    @property
    def engine(self) -> Engine:
        return self.workers.engine

    @property
    def info(self) -> EngineInfo:
        return self.engine.info

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target: what the engine says, else what its name does; empty where neither does."""
        info = self.info
        source, target = languages_in_name(self.name)
        return info.source or source, info.target or target

    @property
    def plain(self) -> bool:
        """Whether it reads text, if need be by the text rules of its languages."""
        return not self.info.tokenized_only or all(self.languages)

    @property
    def closed(self) -> bool:
        """Is the server about to stop?"""
        return self.workers.queue.closed

    @property
    def waiting(self) -> int:
        """Lines in the queue."""
        return self.workers.queue.size

    @property
    def live(self) -> int:
        """Lines in hand."""
        return self.workers.queue.live

    async def translate(self, sender: Sender, lines: Sequence[str], options: Options) -> list[Translated]:
        """The translations of lines. QueueFull where too many wait; UserError for a line that cannot be
        translated. When the caller is cancelled, the lines are given up."""
        engine = self.engine
        if isinstance(engine, Preparing) and (options.terms or options.avoid):
            work = partial(engine.prepare, options)
            prepared = await asyncio.get_running_loop().run_in_executor(self.preparing, work)
            options = replace(options, prepared=prepared)
        return await self.answers([WaitingLine[Translated](sender, line, options) for line in lines])

    async def score(
        self, sender: Sender, pairs: Sequence[tuple[str, str]], tokenized: bool
    ) -> list[list[float]]:
        """Natural log p of the units of each translation. Errors as from `translate`; ConfigError for an
        engine that does not score."""
        engine = self.engine
        if not isinstance(engine, Scoring):
            raise ConfigError(f"{self.name}: an engine of the kind {self.info.kind} gives no scores")
        lines = [
            WaitingLine[Scores](sender, compute=partial(engine.score, part, tokenized))
            for part in scored_parts(pairs)
        ]
        return [row for rows in await self.answers(lines) for row in rows]

    async def answers(self, lines: Sequence[WaitingLine[Answer]]) -> list[Answer]:
        """The answers of the lines of a request, in order."""
        queue = self.put(lines)  # type: ignore[arg-type]
        try:
            return [await asyncio.wrap_future(line.answer) for line in lines]
        finally:
            queue.give_up(lines)  # type: ignore[arg-type]

    def put(self, lines: Sequence[Work]) -> LineQueue:
        """Let lines wait; returns the queue that they are in."""
        while True:
            queue = self.workers.queue
            try:
                queue.put(lines)
                return queue
            except QueueClosed:  # it has just been replaced
                if self.closed:
                    raise

    def reload(self) -> None:
        """Load it anew. UserError when that fails; the old one goes on then."""
        with self.reloading:
            new = self.start(self.load())
            old, self.workers = self.workers, new
        old.queue.close()
        log.info("%s: loaded anew: %s", self.name, self.info.description)

    def close(self) -> None:
        """No more lines; those in hand are finished."""
        self.workers.queue.close()

    def join(self, seconds: float) -> None:
        """After `close`: wait until its threads have ended, at most so many seconds."""
        self.workers.join(seconds)


class ServedEngines(Mapping[str, ServedEngine]):
    """In the order of the command line; the first is the default."""

    def __init__(self, engines: Sequence[ServedEngine]) -> None:
        self.engines = {engine.name: engine for engine in engines}

    def __getitem__(self, name: str) -> ServedEngine:
        return self.engines[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.engines)

    def __len__(self) -> int:
        return len(self.engines)

    @property
    def first(self) -> ServedEngine:
        return next(iter(self.engines.values()))

    @property
    def languages(self) -> list[str]:
        """The languages of engines that say both of theirs, source languages first."""
        pairs = [one.languages for one in self.engines.values() if all(one.languages)]
        return list(dict.fromkeys([source for source, _ in pairs] + [target for _, target in pairs]))

    def of_languages(self, source: str, target: str) -> ServedEngine | None:
        """The first engine of two languages."""
        return next((one for one in self.engines.values() if one.languages == (source, target)), None)


def warm_up(engine: Engine) -> Engine:
    """An engine that has translated a line: what is compiled or made at first need is there."""
    with suppress(UserError):
        engine.translate(FIRST_LINE, Options(n_best=2), threading.Event())
    return engine


def load_engines(
    named: Sequence[tuple[str, str]], engines: EngineConfig, config: ServeConfig, load: Load = load_engine
) -> ServedEngines:
    """The engines of (name, path). UserError, in one line, for one that cannot be loaded."""
    found = []
    for name, path in named:
        found.append(ServedEngine(name, lambda path=path: warm_up(load(path, engines)), config))  # type: ignore[misc]
        source, target = found[-1].languages
        pair = f" from {source} to {target}" if source and target else ""
        log.info("%s%s: %s", name, pair, found[-1].info.description)
    return ServedEngines(found)


def scored_parts(pairs: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Pairs that are scored together: a few, and fewer of long ones, because translations wait meanwhile."""
    groups, room = list[list[tuple[str, str]]](), 0
    for pair in pairs:
        size = sum(map(len, pair)) + SCORED_CHARACTERS // MOST_SCORED_PAIRS
        if size > room:
            groups.append([])
            room = SCORED_CHARACTERS
        groups[-1].append(pair)
        room -= size
    return groups
