"""Runs and ensembles as engines of the server."""

import threading
import time
from collections import deque
from collections.abc import Generator, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from nmt.analysis import grconv_parse
from nmt.errors import DataError, UserError
from nmt.models.protocols import MergeGates, Source
from nmt.runs import constraints
from nmt.runs import directory as run_directory
from nmt.runs.constraints import ConstraintMaker, Constraints, Unmet
from nmt.runs.run import BeamTranslation, Run, join_translations
from nmt.search.beam import ContinuousSearch, FinishedHypothesis
from nmt.search.config import BeamConfig
from nmt.search.constraints import AnyConstraint, Demand
from nmt.search.steps import Reading
from nmt.serve import engine
from nmt.serve.config import EngineConfig
from nmt.serve.engine import EngineInfo, Hypothesis, Options, Parse, ParseNode, Translated, nothing
from nmt.text.vocab import EOS, UNK

# ---- the search for many lines -----------------------------------------------------------------------------
# Lines that a run searches together, and what is told of their translations.


# Each step looks at the units that the terms of a line require, for each hypothesis.
MOST_REQUIRED = 1000  # units, times the beam size
LEAST_REQUIRED = 20  # units that may be required with any beam size

# A step is short, whatever lines there are: the lines of other sessions wait for it.
MOST_BEGUN = 400  # source units that a step reads, unless a single part has more
MOST_SEEN = 25_000  # hypotheses of all parts in search, times their source units, unless it is a single part
MOST_TOLD = 0.01  # seconds that a step works on translations whose search is over


@dataclass
class LinePart:
    """A line, or a part of one that is too long."""

    line: str
    reading: Source
    constraints: Sequence[AnyConstraint]
    sentence: int | None = None  # of the search, once that has begun
    candidates: list[FinishedHypothesis] | None = None  # once it is finished; none without words

    @property
    def waits(self) -> bool:
        """Has its search not begun?"""
        return self.sentence is None and self.candidates is None


@dataclass
class LineTask:
    """A line in search."""

    options: Options
    parts: list[LinePart] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return all(part.candidates is not None for part in self.parts)

    @property
    def searched(self) -> bool:
        """Is a part of it in search?"""
        return any(part.sentence is not None for part in self.parts)

    @property
    def next(self) -> LinePart:
        """The next part whose search has not begun; there is one."""
        return next(part for part in self.parts if part.waits)

    @property
    def begun(self) -> bool:
        """Has the search of a part of it begun, or does none need one?"""
        return any(part.sentence is not None or part.candidates for part in self.parts) or self.done

    @property
    def required(self) -> int:
        """Units that its parts in search require, or the first that will be."""
        searched = [part for part in self.parts if part.sentence is not None]
        first = [part for part in self.parts if part.waits][:1]
        asked = [one for part in searched or first for one in part.constraints]
        return sum(demand.units for demand in asked if isinstance(demand, Demand))

    @property
    def unmet(self) -> bool:
        """Has the search of a part found nothing that meets what is asked for?"""
        asked = self.options.terms or self.options.avoid
        return bool(asked) and any(
            part.candidates and constraints.failed(part.candidates) for part in self.parts
        )


# Works on a translation, a little between two values; returns it at the end.
Telling = Generator[None, None, Translated | UserError]


class RunSession:
    """See `Session` in nmt/serve/engine.py."""

    def __init__(self, run: Run, config: BeamConfig) -> None:
        self.run, self.search = run, ContinuousSearch(run.model, config)
        self.tasks: dict[Hashable, LineTask] = {}
        self.owner: dict[int, Hashable] = {}  # sentence of the search -> key of its line
        self.over: dict[Hashable, Telling] = {}  # lines whose search is over

    @property
    def busy(self) -> bool:
        return bool(self.tasks)

    def wants(self) -> bool:
        required = sum(task.required * self.beam_size(task.options) for task in self.tasks.values())
        waiting = [task for task in self.tasks.values() if not task.begun]
        width = sum(self.width(task.options) for task in waiting)
        seen = self.seen() + sum(self.width(task.options) * len(task.next.reading) for task in waiting)
        return required < MOST_REQUIRED and seen < MOST_SEEN and self.search.wants(width + 1)

    def seen(self) -> int:
        """Hypotheses of each part in search, times its units."""
        return sum(
            self.width(task.options) * len(part.reading)
            for task in self.tasks.values()
            for part in task.parts
            if part.sentence is not None
        )

    def beam_size(self, options: Options) -> int:
        return options.beam_size or self.search.beam.config.beam_size

    def width(self, options: Options) -> int:
        """Hypotheses that a search with these options keeps."""
        return options.beam_size or max(options.n_best, self.search.beam.config.beam_size)

    def add(self, key: Hashable, line: str, options: Options) -> None:
        run, tokenized = self.run, options.tokenized
        lengths = run.source_lengths
        task = LineTask(options)
        for text in lengths.parts(line, tokenized, lengths.limit()):
            part = LinePart(text, run.read(text, tokenized), self.constraints_of(text, options))
            part.candidates = None if len(part.reading) else []
            task.parts.append(part)
        self.tasks[key] = task
        if task.done:
            self.over[key] = self.telling(task)

    def begin(self, key: Hashable) -> None:
        """Search the next part of a line."""
        task = self.tasks[key]
        part = task.next
        part.sentence = self.search.add(part.reading, self.width(task.options), part.constraints)
        self.owner[part.sentence] = key

    def fill(self) -> None:
        """Search more lines, and more parts of long ones, as far as there is room: a part of each in turn."""
        waiting = [(key, task) for key, task in self.tasks.items() if any(part.waits for part in task.parts)]
        turns = deque(sorted(waiting, key=lambda pair: pair[1].searched))
        units, seen = 0, self.seen()
        while turns:
            key, task = turns.popleft()
            width = self.width(task.options)
            room = self.search.wants(width) if task.searched else self.search.fits(width)
            size = len(task.next.reading)
            if not room or (self.search.busy and seen + width * size > MOST_SEEN):
                return
            if units and units + size > MOST_BEGUN:
                return
            self.begin(key)
            units, seen = units + size, seen + width * size
            if any(part.waits for part in task.parts):
                turns.append((key, task))

    def constraints_of(self, line: str, options: Options) -> Sequence[AnyConstraint]:
        """What the translation of a line has to meet. DataError for what it cannot."""
        maker = options.prepared
        if not isinstance(maker, ConstraintMaker) or maker.member is not self.run.members[0]:
            maker = constraint_maker(self.run, options)
        try:
            if maker is None:
                return ()
            most = max(LEAST_REQUIRED, MOST_REQUIRED // self.beam_size(options))
            return maker.of(line, "a line", most=most).constraints
        except Unmet as error:
            raise DataError(f"{error.problem}; {error.remedy}") from error

    def step(self) -> list[tuple[Hashable, Translated | UserError]]:
        self.fill()
        if self.search.busy:
            for sentence, candidates in self.search.step():
                key = self.owner.pop(sentence)
                task = self.tasks[key]
                part = next(part for part in task.parts if part.sentence == sentence)
                part.candidates, part.sentence = candidates, None
                if task.done:
                    self.over[key] = self.telling(task)
        return self.answers()

    def answers(self) -> list[tuple[Hashable, Translated | UserError]]:
        """The translations that are ready, after some more work on those whose search is over."""
        ready, end = list[tuple[Hashable, Translated | UserError]](), time.perf_counter() + MOST_TOLD
        for key, telling in list(self.over.items()):
            try:
                while True:
                    next(telling)
                    if time.perf_counter() >= end:
                        return ready
            except StopIteration as done:
                del self.over[key], self.tasks[key]
                ready.append((key, done.value))
        return ready

    def telling(self, task: LineTask) -> Telling:
        """The translation of a line whose parts have all been searched, or why it has none."""
        if task.unmet:
            return DataError(f"a line: {constraints.UNMET}; ask for less")
        return (yield from finish_task(self.run, task))

    def cancel(self, key: Hashable) -> None:
        for part in self.tasks.pop(key).parts:
            if part.sentence is not None:
                del self.owner[part.sentence]
                self.search.cancel(part.sentence)
        self.over.pop(key, None)


def constraint_maker(run: Run, options: Options) -> ConstraintMaker | None:
    """Makes the constraints of the lines of a request, if it has any. DataError for what cannot be met."""
    if not (options.terms or options.avoid):
        return None
    try:
        return run.maker(Constraints(terms=dict(options.terms), avoid=options.avoid), options.tokenized)
    except Unmet as error:
        raise DataError(f"{error.problem}; {error.remedy}") from error


# ---- results -----------------------------------------------------------------------------------------------


def finish_task(run: Run, task: LineTask) -> Generator[None, None, Translated]:
    """The translation of a line whose parts have all been searched; a little work between two values."""
    options = task.options
    parts = [part for part in task.parts if part.candidates]
    if not parts:
        return nothing()
    if len(task.parts) > 1:
        return join_parts(run, parts, options)
    (part,) = parts
    member = run.members[0]
    units = member.source.units(part.line, options.tokenized)
    candidates = (part.candidates or [])[: options.n_best]
    hypotheses = list[Hypothesis]()
    for one in candidates:
        yield
        hypotheses.append(hypothesis(run, run.translation(part.line, one, options.tokenized), options))
    if options.attention and member.model.attends:
        rows = yield from word_attention(run, part.line, candidates, options)
        for row, weights in zip(hypotheses, rows, strict=True):
            row.attention = weights
    return Translated(
        words=member.source.join(units),
        hypotheses=hypotheses,
        unknown=unknown_words(run, units),
        parse=parse(run, units) if options.parse else None,
    )


def join_parts(run: Run, parts: Sequence[LinePart], options: Options) -> Translated:
    """The translation of a line that was cut: its words count across the parts."""
    member, words, missing = run.members[0], list[str](), list[int]()
    for part in parts:
        units = member.source.units(part.line, options.tokenized)
        missing += [len(words) + place for place in unknown_words(run, units)]
        words += member.source.join(units)
    best = [run.translation(part.line, (part.candidates or [])[0], options.tokenized) for part in parts]
    whole = join_translations(best, run.target)
    whole.alignment = []
    return Translated(words, [hypothesis(run, whole, options)], missing, parts=len(parts))


def hypothesis(run: Run, found: BeamTranslation, options: Options) -> Hypothesis:
    """A translation as it is told."""
    return Hypothesis(
        text=run.text(found, options.tokenized),
        words=found.words,
        score=found.score,
        log_prob=found.log_prob,
        alignment=found.alignment,
    )


def unknown_words(run: Run, units: list[str]) -> list[int]:
    """The source words that have a unit which the (first) model does not know."""
    member = run.members[0]
    word_of = member.source.word_numbers(units)
    ids = member.source_words.encode(units)
    return sorted({word_of[place] for place, found in enumerate(ids) if found == UNK})


# ---- what models look at -----------------------------------------------------------------------------------


def word_attention(
    run: Run, line: str, candidates: Sequence[FinishedHypothesis], options: Options
) -> Generator[None, None, list[list[list[float]]]]:
    """For each hypothesis the weight of each source word for each target word: that of its units, added up
    on the source side, averaged on the target side. The end symbol, which gets the rest, is left out. A step
    of the model between two values."""
    member = run.members[0]
    reading = run.read(line, options.tokenized)
    source = reading.ids[0] if isinstance(reading, Reading) else reading
    columns = torch.tensor(member.source.word_numbers(member.source.units(line, options.tokenized)))
    longest = max(len(one.words) for one in candidates)
    given = torch.tensor([[*one.words, *[EOS] * (longest - len(one.words))] for one in candidates])
    with torch.no_grad():
        state, words, looked = member.model.start([source] * len(candidates)), None, list[Tensor]()
    for step in range(longest):
        yield
        with torch.no_grad():
            _, state = member.model.step(state, words)
            weights = member.model.attention(state)
        assert weights is not None
        looked.append(weights.double().cpu())
        words = given[:, step].to(member.model.device)
    found = list[list[list[float]]]()
    for row, one in enumerate(candidates):
        rows = torch.tensor(member.target.word_numbers(member.target_words.decode(one.words)))
        units = [step[row, : len(columns)] for step in looked[: len(rows)]]
        found.append(word_weights(torch.stack(units), rows, columns) if units else [])
    return found


def word_weights(weights: Tensor, rows: Tensor, columns: Tensor) -> list[list[float]]:
    """Weights of units (T, L) as weights of words, given the word of each unit: (T,), (L,)"""
    T, L = int(rows.max()) + 1, int(columns.max()) + 1
    added = weights.new_zeros(len(rows), L).index_add_(1, columns, weights)
    total = weights.new_zeros(T, L).index_add_(0, rows, added)
    sizes = torch.bincount(rows, minlength=T)[:, None]
    return cast(list[list[float]], (total / sizes).tolist())


def has_parse(run: Run) -> bool:
    """Does the (first) model build sentences up by merges?"""
    model = run.members[0].model
    return isinstance(model, MergeGates) and model.merge_gates([[UNK, UNK]]) is not None


@torch.no_grad()
def parse(run: Run, units: list[str]) -> Parse | None:
    """The soft parse of a source line, given as units."""
    member = run.members[0]
    if not isinstance(member.model, MergeGates):
        return None
    if len(units) < 2:
        return Parse(units, [])
    gates = member.model.merge_gates([member.source_words.encode(units)])
    if gates is None:
        return None
    nodes = grconv_parse.parse_nodes(gates[0].cpu().numpy())
    return Parse(
        units,
        [ParseNode(node.first, node.last, node.new, node.left, node.right) for node in nodes],
    )


# ---- runs as engines ---------------------------------------------------------------------------------------


class RunEngine:
    """A run, or several as an ensemble."""

    workers = 1  # session: many sentences are searched in one batch

    def __init__(self, run: Run, config: BeamConfig) -> None:
        self.run, self.config = run, run.fitted(config)
        member = run.members[0]
        can = [engine.N_BEST, engine.BEAM_SIZE, engine.TOKENIZED, engine.SCORE, engine.TERMS, engine.AVOID]
        if member.model.attends:
            can += [engine.ALIGNMENT, engine.ATTENTION]
        if has_parse(run):
            can.append(engine.PARSE)
        self.info = EngineInfo(
            kind="run" if len(run.members) == 1 else "ensemble",
            description=" + ".join(one.description for one in run.members),
            source=member.data.source.language,
            target=member.data.target.language,
            capabilities=tuple(can),
            beam_size=config.beam_size,
            tags=tuple(member.source.tags),
        )

    def session(self) -> RunSession:
        return RunSession(self.run, self.config)

    def translate(self, line: str, options: Options, stop: threading.Event) -> Translated:
        session = self.session()
        session.add(None, line, options)
        while not stop.is_set():
            for _, found in session.step():
                if isinstance(found, UserError):
                    raise found
                return found
        raise InterruptedError

    def prepare(self, options: Options) -> ConstraintMaker | None:
        return constraint_maker(self.run, options)

    def score(self, pairs: Sequence[tuple[str, str]], tokenized: bool) -> list[list[float]]:
        return self.run.word_scores(pairs, tokenized)

    def fit(self, line: str) -> float:
        """A word that is cut into k units counts as 1/k."""
        member = self.run.members[0]
        words = member.source.words(line)
        sizes = [len(word) for word in words]
        known = 0.0
        for word, size in zip(words, sizes, strict=True):
            units = member.source.cut([word])
            if UNK not in member.source_words.encode(units):
                known += size / max(1, len(units))
        return known / sum(sizes) if words else 0.0


class Runs:
    """The kind: a run directory, or several with commas between them."""

    def reads(self, path: str) -> bool:
        return all(run_directory.exists(Path(one)) for one in member_paths(path))

    def load(self, path: str, config: EngineConfig) -> RunEngine:
        run = Run.of(*member_paths(path), device=config.device)
        return RunEngine(run, BeamConfig(beam_size=config.beam_size))


def member_paths(path: str) -> list[str]:
    """a,b -> a b, unless there is a file of that name; a folder of nmt-init stands for its run"""
    paths = [path] if Path(path).exists() else [name for name in path.split(",") if name]
    return [str(run_directory.resolve(name)) for name in paths]
