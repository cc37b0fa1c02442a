"""The engines of a server: their kinds, their names, and how they are reloaded."""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import cast

from nmt.errors import ConfigError, UserError
from nmt.lazy import LazyPart
from nmt.runs import directory as run_directory
from nmt.serve import export_cache
from nmt.serve.config import TORCH, EngineConfig, ServeConfig
from nmt.serve.engine import (
    SCORE,
    Engine,
    EngineInfo,
    EngineKind,
    SeveralEngines,
    TorchUse,
    TranslatedLine,
    TranslateOptions,
    check_names,
    languages_in_name,
)
from nmt.serve.queue import (
    Answer,
    AnyLine,
    EngineWorkers,
    LineQueue,
    QueueClosed,
    Scores,
    Sender,
    WaitingLine,
)

log = logging.getLogger(__name__)

# ---- kinds of engines --------------------------------------------------------------------------------------

RUN = LazyPart("nmt.serve.runs:load_run")  # imports torch
EXPORTED = LazyPart("nmt.serve.exported:load_run")


class RunKind:
    """The kind `run`: a run directory, or several with commas between them."""

    def reads(self, path: str) -> bool:
        return all(run_directory.exists(Path(member)) for member in member_paths(path))

    def needs_torch(self, path: str, config: EngineConfig) -> bool:
        paths = member_paths(path)
        if any(map(run_directory.is_exported, paths)):
            return False
        return export_cache.choose_engine(paths, config)[0] == TORCH

    def load(self, path: str, config: EngineConfig) -> Engine:
        paths, part = member_paths(path), EXPORTED
        if not any(map(run_directory.is_exported, paths)):
            name, reason = export_cache.choose_engine(paths, config)
            if name == TORCH:
                part = RUN
                if config.engine != TORCH:
                    log.info("%s: computed by torch: %s", path, reason)
            else:
                paths = [str(export_cache.find_or_export(Path(paths[0]), config))]
        load_run = cast(Callable[[Sequence[str], EngineConfig], Engine], part.load())
        return load_run(paths, config)


def member_paths(path: str) -> list[str]:
    """Split `a,b` at the commas unless a file has this name; a folder of nmt-init is replaced by its run."""
    paths = [path] if Path(path).exists() else [name for name in path.split(",") if name]
    return [str(run_directory.resolve(name)) for name in paths]


ENTRY_POINT_GROUP = "nmt.engines"
ENGINES: dict[str, EngineKind] = {"run": RunKind()}


def engine_kinds() -> Mapping[str, EngineKind]:
    """All kinds of engines by name, including those of entry points. ConfigError if an import fails."""
    kinds = dict(ENGINES)
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            kinds.setdefault(entry.name, entry.load()())
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"entry point {entry.name} of {ENTRY_POINT_GROUP}: {error}; install its package again"
            ) from error
    return kinds


def load_engine(path: str, config: EngineConfig) -> Engine:
    """Load the engine at a path. UserError for a path that is no engine or cannot be loaded."""
    return find_kind(path).load(path, config)


def need_torch(paths: Sequence[str], config: EngineConfig) -> bool:
    """Whether any engine at these paths computes with torch. UserError for a path that is no engine."""
    kinds = [(find_kind(path), path) for path in paths]
    return any(not isinstance(kind, TorchUse) or kind.needs_torch(path, config) for kind, path in kinds)


def find_kind(path: str) -> EngineKind:
    """The kind of the engine at a path. UserError for a path that is no engine."""
    kinds = engine_kinds()
    for kind in kinds.values():
        if kind.reads(path):
            return kind
    first = path.split(",")[0]
    what = "not an engine" if Path(first).exists() else "does not exist"
    raise ConfigError(
        f"{path}: {what}; expected a run directory, several with commas between them, a moses.ini, its "
        f"folder, or the folder of a hybrid system (kinds: {', '.join(kinds)})"
    )


def offered_engines(named: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """All engines, (name, path) each, that are served for those of the command line: a folder that holds
    several offers the further ones as NAME.ENDING. ConfigError if two have the same name, UserError for a
    path that is no engine."""
    offered = list[tuple[str, str]]()
    for name, path in named:
        offered.append((name, path))
        kind = find_kind(path)
        if isinstance(kind, SeveralEngines):
            offered += [(f"{name}.{ending}", further) for ending, further in kind.more(path).items()]
    check_names([name for name, _ in offered])
    return offered


# ---- engines by name ---------------------------------------------------------------------------------------


# Pairs are scored in small groups, between which the searches go on.
GROUP_SIZE = 250  # limit of the characters of a group, with PAIR_SIZE added for each pair
PAIR_SIZE = 62  # so that a group has at most 4 pairs, however short
FIRST_LINE = "a b c ."  # what `warm_up` translates

EngineLoader = Callable[[str, EngineConfig], Engine]


class ServedEngine:
    """An engine with its name. After a reload the old engine still translates the lines in its queue."""

    def __init__(self, name: str, load: Callable[[], Engine], config: ServeConfig) -> None:
        """Load the engine and start its threads. `load`: loads it, now and at reloads; its errors pass."""
        self.name, self.load, self.config = name, load, config
        self.workers = self.start(load())
        self.preparing = ThreadPoolExecutor(1, "prepare")
        self.reloading = threading.Lock()

    def start(self, engine: Engine) -> EngineWorkers:
        return EngineWorkers(engine, self.config.queue, self.config.gather)

    @property
    def engine(self) -> Engine:
        return self.workers.engine

    @property
    def info(self) -> EngineInfo:
        return self.engine.info

    @property
    def languages(self) -> tuple[str, str]:
        """The (source, target) languages, stated by the engine or else by its name; empty if unknown."""
        info = self.info
        source, target = languages_in_name(self.name)
        return info.source or source, info.target or target

    @property
    def plain(self) -> bool:
        """Whether it translates raw text, by itself or with the text rules of its languages."""
        return not self.info.tokenized_only or all(self.languages)

    @property
    def waiting(self) -> int:
        """The number of lines in the queue."""
        return self.workers.queue.size

    @property
    def live(self) -> int:
        """The number of lines being translated."""
        return self.workers.queue.live

    async def translate(
        self, sender: Sender, lines: Sequence[str], options: TranslateOptions
    ) -> list[TranslatedLine]:
        """Translate lines. If the caller is cancelled, they are removed from the queue.

        QueueFull if too many lines wait, QueueClosed while the server stops, UserError for a line that cannot
        be translated or options that cannot be met.
        """
        if options.constrained:
            work = partial(self.engine.prepare, options)
            prepared = await asyncio.get_running_loop().run_in_executor(self.preparing, work)
            options = replace(options, prepared=prepared)
        return await self.answers([WaitingLine[TranslatedLine](sender, line, options) for line in lines])

    async def score(self, sender: Sender, pairs: Sequence[tuple[str, str]], tokenized: bool) -> Scores:
        """Compute natural log p of the units of each pair's target, and of its end symbol. `tokenized`: the
        lines are words between blanks.

        Raises what `translate` raises; ConfigError for an engine that does not score.
        """
        engine = self.engine
        if SCORE not in engine.info.capabilities:
            raise ConfigError(
                f"{self.name}: an engine of the kind {engine.info.kind} gives no scores; ask a run of "
                "nmt-train"
            )
        lines = [
            WaitingLine[Scores](sender, compute=partial(engine.score, part, tokenized))
            for part in group_pairs(pairs)
        ]
        return [row for rows in await self.answers(lines) for row in rows]

    async def answers(self, lines: Sequence[WaitingLine[Answer]]) -> list[Answer]:
        """Put the lines of a request into the queue, and await their answers, in order."""
        queue = self.put(lines)
        try:
            return [await asyncio.wrap_future(line.answer) for line in lines]
        finally:
            queue.give_up(lines)

    def put(self, lines: Sequence[AnyLine]) -> LineQueue:
        """Put lines into the queue of the current engine; if it has just been reloaded, of the new one.
        Returns this queue, whose `give_up` removes the lines. QueueFull if too many lines wait, QueueClosed
        while the server stops."""
        while True:
            queue = self.workers.queue
            try:
                queue.put(lines)
                return queue
            except QueueClosed:  # the engine has just been reloaded
                if self.workers.queue.closed:  # the server is stopping
                    raise

    def reload(self) -> None:
        """Load the engine again. UserError if that fails; the old engine then remains in use."""
        with self.reloading:
            new = self.start(self.load())
            old, self.workers = self.workers, new
        old.queue.close()
        log.info("%s: reloaded: %s", self.name, self.info.description)

    def close(self) -> None:
        """Accept no more lines; those in the queue are still processed."""
        self.workers.queue.close()

    def join(self, seconds: float) -> None:
        """After `close`, wait up to `seconds` for the threads to end."""
        self.workers.join(seconds)


class ServedEngines(dict[str, ServedEngine]):
    """Engines by name, in the order of the command line; the first is the default."""

    def __init__(self, engines: Sequence[ServedEngine]) -> None:
        super().__init__((engine.name, engine) for engine in engines)

    @property
    def first(self) -> ServedEngine:
        return next(iter(self.values()))

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The (source, target) languages of the engines whose languages are known."""
        return [served.languages for served in self.values() if all(served.languages)]

    @property
    def languages(self) -> list[str]:
        """The languages of `pairs`: all source languages, then the other targets."""
        pairs = self.pairs
        return list(dict.fromkeys([source for source, _ in pairs] + [target for _, target in pairs]))

    def for_languages(self, source: str, target: str) -> ServedEngine | None:
        """The first engine of a language pair; None if there is none."""
        return next((served for served in self.values() if served.languages == (source, target)), None)


def warm_up(engine: Engine) -> Engine:
    """Translate a line, so that all is compiled and loaded before the first request; returns `engine`. A
    UserError is ignored."""
    with suppress(UserError):
        engine.translate(FIRST_LINE, TranslateOptions(n_best=2), threading.Event())
    return engine


def load_engines(
    named: Sequence[tuple[str, str]],
    engines: EngineConfig,
    config: ServeConfig,
    load: EngineLoader = load_engine,
) -> ServedEngines:
    """Load engines and start their threads. `named`: (name, path) of each; `load`: loads the engine at a
    path. UserError if one of them cannot be loaded."""
    served = []
    for name, path in named:
        served.append(ServedEngine(name, lambda path=path: warm_up(load(path, engines)), config))  # type: ignore[misc]
        source, target = served[-1].languages
        pair = f" from {source} to {target}" if source and target else ""
        log.info("%s%s: %s", name, pair, served[-1].info.description)
    return ServedEngines(served)


def group_pairs(pairs: Sequence[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Group pairs for scoring, in order. The characters of a group and PAIR_SIZE for each of its pairs are at
    most GROUP_SIZE, unless it has a single pair: translations wait while a group is scored."""
    groups, room = list[list[tuple[str, str]]](), 0
    for pair in pairs:
        size = sum(map(len, pair)) + PAIR_SIZE
        if size > room:
            groups.append([])
            room = GROUP_SIZE
        groups[-1].append(pair)
        room -= size
    return groups
