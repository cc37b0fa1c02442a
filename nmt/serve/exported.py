"""Engines of the server that translate with runs exported to CTranslate2, without torch."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from nmt.errors import UserError
from nmt.runs.exported import ExportedRun
from nmt.search import FinishedHypothesis
from nmt.search.config import BeamConfig
from nmt.serve import engine
from nmt.serve.config import EngineConfig
from nmt.serve.engine import AnyRunEngine, TranslatedLine, TranslateOptions

# Source units of the parts that a step translates, unless the first one has more: a step cannot be
# interrupted, and the lines of other sessions wait for it.
MAX_UNITS = 1000
MAX_PARTS = 16  # the most parts that a step translates


@dataclass
class ExportedPart:
    """A line, or a part of a line that is too long."""

    text: str
    units: Sequence[str]
    candidates: list[FinishedHypothesis] | None = None  # set once searched; empty for a part without words
    error: UserError | None = None  # the search failed


@dataclass
class ExportedTask:
    """A line with its parts, until it is answered."""

    run: ExportedRun  # for the kind of text of the request
    options: TranslateOptions
    parts: list[ExportedPart] = field(default_factory=list)

    @property
    def waiting(self) -> list[ExportedPart]:
        """The parts that have not been searched."""
        return [part for part in self.parts if part.candidates is None and part.error is None]


class ExportedSession:
    """Translates many lines with an exported run, one batch per step; see `Session` in nmt/serve/engine.py. A
    batch contains parts of lines with the same kind of text and number of hypotheses, starting with the
    oldest line that waits."""

    def __init__(self, run: ExportedRun, config: BeamConfig) -> None:
        self.run, self.config = run, config
        self.tasks: dict[Hashable, ExportedTask] = {}

    @property
    def busy(self) -> bool:
        return bool(self.tasks)

    def has_room(self) -> bool:
        waiting = [part for task in self.tasks.values() for part in task.waiting]
        return len(waiting) < MAX_PARTS and sum(len(part.units) for part in waiting) < MAX_UNITS

    def width(self, options: TranslateOptions) -> int:
        """The number of hypotheses that a search with these options keeps."""
        return options.beam_size or max(options.n_best, self.config.beam_size)

    def add(self, key: Hashable, line: str, options: TranslateOptions) -> None:
        run = self.run.for_text(options.tokenized)
        task = ExportedTask(run, options)
        for text in run.source_lengths.parts(line, run.source_lengths.limit()):
            units = run.read(text)
            task.parts.append(ExportedPart(text, units, None if units else []))
        self.tasks[key] = task

    def step(self) -> list[tuple[Hashable, TranslatedLine | UserError]]:
        batch = self.next_batch()
        if batch:
            task, parts = batch
            self.search(task, parts)
        finished = [(key, task) for key, task in self.tasks.items() if not task.waiting]
        for key, _ in finished:
            del self.tasks[key]
        return [(key, answer(task)) for key, task in finished]

    def search(self, task: ExportedTask, parts: Sequence[ExportedPart]) -> None:
        """Search parts together, and set the candidates of each. If that fails, search them one by one, so
        that a bad line does not fail the others, and set the error of those that fail."""
        config = replace(self.config, beam_size=self.width(task.options))
        readings = [part.units for part in parts]
        try:
            lists = task.run.search_readings(
                readings, config, prefixes=None, constraints=None, attention=True
            )
        except UserError as error:
            if len(parts) == 1:
                parts[0].error = error
                return
            for part in parts:
                self.search(task, [part])
            return
        for part, candidates in zip(parts, lists, strict=True):
            part.candidates = candidates

    def next_batch(self) -> tuple[ExportedTask, list[ExportedPart]] | None:
        """The task of the first part that waits, and the parts that the next step searches together with it,
        itself included; None if none waits."""
        first: ExportedTask | None = None
        parts, units = list[ExportedPart](), 0
        for task in self.tasks.values():
            if not task.waiting:
                continue
            first = first or task
            if (task.run, self.width(task.options)) != (first.run, self.width(first.options)):
                continue
            for part in task.waiting:
                if parts and (len(parts) == MAX_PARTS or units + len(part.units) > MAX_UNITS):
                    return first, parts
                parts.append(part)
                units += len(part.units)
        return (first, parts) if first else None

    def cancel(self, key: Hashable) -> None:
        del self.tasks[key]


def answer(task: ExportedTask) -> TranslatedLine | UserError:
    """The translation of a line whose parts have all been searched, or the error of one of them."""
    for part in task.parts:
        if part.error is not None:
            return part.error
    parts = [(part.text, part.candidates) for part in task.parts if part.candidates]
    if not parts:
        return engine.empty_translation()
    if len(task.parts) > 1:
        return engine.join_parts(task.run, [(text, candidates[0]) for text, candidates in parts])
    [(text, candidates)] = parts
    member = task.run.members[0]
    units = member.source.units(text)
    return TranslatedLine(
        words=member.source.join(units),
        hypotheses=[
            engine.to_hypothesis(task.run, task.run.translation(text, candidate))
            for candidate in candidates[: task.options.n_best]
        ],
        unknown=engine.unknown_words(member, units),
    )


class ExportedEngine(AnyRunEngine):
    """An engine that translates with an exported run."""

    run: ExportedRun

    def __init__(self, run: ExportedRun, config: BeamConfig) -> None:
        self.run, self.config = run, config
        self.info = self.describe(config.beam_size, *engine.ALL_RUNS, engine.ALIGNMENT)

    def session(self) -> ExportedSession:
        return ExportedSession(self.run, self.config)


def load_run(paths: Sequence[str], config: EngineConfig) -> ExportedEngine:
    """Load an engine from a folder written by nmt-export. UserError for a folder that cannot be used, and for
    more than one, since CTranslate2 has no ensembles."""
    run = ExportedRun.of(*paths, device=config.device, threads=config.threads)
    return ExportedEngine(run, BeamConfig(beam_size=config.beam_size))
