"""Engines of the server that translate with trained runs and ensembles."""

import time
from collections import deque
from collections.abc import Generator, Hashable, Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor

from nmt.analysis.soft_parse import parse_nodes
from nmt.errors import DataError, UserError
from nmt.models.protocols import Source
from nmt.runs import constraints
from nmt.runs.constraints import ConstraintMaker, Constraints, Unmet
from nmt.runs.torch_run import TorchRun
from nmt.search import FinishedHypothesis
from nmt.search.beam import ContinuousSearch
from nmt.search.config import BeamConfig
from nmt.search.constraints import AnyConstraint
from nmt.search.steps import Reading
from nmt.serve import engine
from nmt.serve.config import EngineConfig
from nmt.serve.engine import AnyRunEngine, TranslatedLine, TranslateOptions
from nmt.text.vocab import EOS, UNK

# ---- the search for many lines -----------------------------------------------------------------------------

# Required units are those of the terms that a translation has to contain. Each step looks for them in every
# hypothesis, so their number times the beam size is limited.
MAX_REQUIRED = 1000  # limit of required units times the beam size
MIN_REQUIRED = 20  # units that a line may require with any beam size

# These limits keep every step short, since the lines of other sessions wait for it.
MAX_STARTED = 400  # source units of the parts that a step starts, unless the first one has more
# Hypotheses of all parts in search times the source units of the longest; a single part may have more.
MAX_ATTENDED = 25_000
MAX_FINISHING = 0.01  # seconds that a step works on translations whose search is over


@dataclass
class LinePart:
    """A line, or a part of a line that is too long."""

    line: str
    reading: Source
    constraints: Sequence[AnyConstraint]
    sentence: int | None = None  # its number in the search, while it is being searched
    candidates: list[FinishedHypothesis] | None = None  # set after its search; empty for a part without words


@dataclass
class LineTask:
    """A line with its parts, until it is answered."""

    options: TranslateOptions
    parts: list[LinePart] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return all(part.candidates is not None for part in self.parts)

    @property
    def in_search(self) -> list[LinePart]:
        """The parts that are being searched."""
        return [part for part in self.parts if part.sentence is not None]

    @property
    def waiting(self) -> list[LinePart]:
        """The parts whose search has not started."""
        return [part for part in self.parts if part.sentence is None and part.candidates is None]

    @property
    def started(self) -> bool:
        """Whether the search of a part has started, or no part needs one."""
        return any(part.sentence is not None or part.candidates for part in self.parts) or self.done

    @property
    def required(self) -> int:
        """The number of units required in the parts being searched or, if there are none, in the next."""
        parts = self.in_search or self.waiting[:1]
        return sum(constraint.units for part in parts for constraint in part.constraints)

    @property
    def unmet(self) -> bool:
        """Whether the search of a part found no translation that meets the constraints."""
        return self.options.constrained and any(
            part.candidates and constraints.has_failed(part.candidates) for part in self.parts
        )


# Works on a translation in small steps, yielding between them, and returns the translation.
Finishing = Generator[None, None, TranslatedLine | UserError]


class RunSession:
    """Translates many lines at once: their searches share one batch; see `Session` in nmt/serve/engine.py."""

    def __init__(self, run: TorchRun, config: BeamConfig) -> None:
        self.run, self.search = run, ContinuousSearch(run.model, config)
        self.tasks: dict[Hashable, LineTask] = {}
        self.owner: dict[int, Hashable] = {}  # sentence in the search -> key of its line
        self.finishing: dict[Hashable, Finishing] = {}  # lines whose search is over, by key

    @property
    def busy(self) -> bool:
        return bool(self.tasks)

    def has_room(self) -> bool:
        required = sum(task.required * self.beam_size(task.options) for task in self.tasks.values())
        waiting = [task for task in self.tasks.values() if not task.started]
        width = sum(self.width(task.options) for task in waiting)
        searched, longest = self.searched_size()
        longest = max([longest, *(len(task.waiting[0].reading) for task in waiting)])
        attended = (searched + width) * longest
        return required < MAX_REQUIRED and attended < MAX_ATTENDED and self.search.has_room(width + 1)

    def searched_size(self) -> tuple[int, int]:
        """Return the number of hypotheses of the parts being searched, and the source units of the longest
        part, to whose length the encoded sources of all are padded."""
        width = longest = 0
        for task in self.tasks.values():
            for part in task.in_search:
                width, longest = width + self.width(task.options), max(longest, len(part.reading))
        return width, longest

    def beam_size(self, options: TranslateOptions) -> int:
        return options.beam_size or self.search.beam.config.beam_size

    def width(self, options: TranslateOptions) -> int:
        """The number of hypotheses that a search with these options keeps."""
        return options.beam_size or max(options.n_best, self.search.beam.config.beam_size)

    def add(self, key: Hashable, line: str, options: TranslateOptions) -> None:
        run = self.run.for_text(options.tokenized)
        task = LineTask(options)
        for text in run.source_lengths.parts(line, run.source_lengths.limit()):
            part = LinePart(text, run.read(text), self.line_constraints(run, text, options))
            part.candidates = None if len(part.reading) else []
            task.parts.append(part)
        self.tasks[key] = task
        if task.done:
            self.finishing[key] = finish_task(self.run.for_text(task.options.tokenized), task)

    def start_search(self, key: Hashable) -> None:
        """Start the search of the next part of a line."""
        task = self.tasks[key]
        part = task.waiting[0]
        part.sentence = self.search.add(part.reading, self.width(task.options), part.constraints)
        self.owner[part.sentence] = key

    def fill(self) -> None:
        """Start the search of waiting parts while there is room, one part of each line in turn."""
        waiting = [(key, task) for key, task in self.tasks.items() if task.waiting]
        turns = deque(sorted(waiting, key=lambda pair: bool(pair[1].in_search)))
        units, (searched, longest) = 0, self.searched_size()
        while turns:
            key, task = turns.popleft()
            width = self.width(task.options)
            room = self.search.has_room(width) if task.in_search else self.search.may_start(width)
            size = len(task.waiting[0].reading)
            searched, longest = searched + width, max(longest, size)
            if not room or (self.search.busy and searched * longest > MAX_ATTENDED):
                return
            if units and units + size > MAX_STARTED:
                return
            self.start_search(key)
            units += size
            if task.waiting:
                turns.append((key, task))

    def line_constraints(
        self, run: TorchRun, line: str, options: TranslateOptions
    ) -> Sequence[AnyConstraint]:
        """Return the constraints on the translation of a line, empty if the request has none. `run`: reads
        the kind of text that the request has, raw or tokenized. DataError if one of them cannot be met."""
        maker = options.prepared
        if not isinstance(maker, ConstraintMaker) or maker.member is not run.members[0]:
            maker = constraint_maker(run, options)
        try:
            if maker is None:
                return ()
            most = max(MIN_REQUIRED, MAX_REQUIRED // self.beam_size(options))
            return maker.for_line(line, "a line", most=most).constraints
        except Unmet as error:
            raise DataError(f"{error.problem}; {error.remedy}") from error

    def step(self) -> list[tuple[Hashable, TranslatedLine | UserError]]:
        self.fill()
        if self.search.busy:
            for sentence, candidates in self.search.step():
                key = self.owner.pop(sentence)
                task = self.tasks[key]
                part = next(part for part in task.parts if part.sentence == sentence)
                part.candidates, part.sentence = candidates, None
                if task.done:
                    self.finishing[key] = finish_task(self.run.for_text(task.options.tokenized), task)
        return self.answers()

    def answers(self) -> list[tuple[Hashable, TranslatedLine | UserError]]:
        """Work briefly on the lines whose search is over; returns the keys and answers of finished ones."""
        ready, end = list[tuple[Hashable, TranslatedLine | UserError]](), time.perf_counter() + MAX_FINISHING
        for key, finishing in list(self.finishing.items()):
            try:
                while True:
                    next(finishing)
                    if time.perf_counter() >= end:
                        return ready
            except StopIteration as done:
                del self.finishing[key], self.tasks[key]
                ready.append((key, done.value))
        return ready

    def cancel(self, key: Hashable) -> None:
        for part in self.tasks.pop(key).in_search:
            assert part.sentence is not None
            del self.owner[part.sentence]
            self.search.cancel(part.sentence)
        self.finishing.pop(key, None)


def constraint_maker(run: TorchRun, options: TranslateOptions) -> ConstraintMaker | None:
    """Return the maker of a request's constraints for `run`, which reads the request's kind of text; None
    without constraints. DataError if one of them cannot be met."""
    if not options.constrained:
        return None
    try:
        return run.maker(Constraints(terms=dict(options.terms), avoid=options.avoid))
    except Unmet as error:
        raise DataError(f"{error.problem}; {error.remedy}") from error


# ---- results -----------------------------------------------------------------------------------------------


def finish_task(run: TorchRun, task: LineTask) -> Finishing:
    """Build the translation of a line whose search is over; returns it, or the error. Yields None between
    small steps of the work. `run`: reads the kind of text that the request has."""
    if task.unmet:
        return DataError(f"a line: {constraints.UNMET}; ask for less")
    options = task.options
    parts = [part for part in task.parts if part.candidates]
    if not parts:
        return engine.empty_translation()
    if len(task.parts) > 1:
        return engine.join_parts(run, [(part.line, (part.candidates or [])[0]) for part in parts])
    (part,) = parts
    member = run.members[0]
    units = member.source.units(part.line)
    candidates = (part.candidates or [])[: options.n_best]
    hypotheses = list[engine.LineHypothesis]()
    for candidate in candidates:
        yield
        hypotheses.append(engine.to_hypothesis(run, run.translation(part.line, candidate)))
    if options.attention and member.model.attends:
        rows = yield from word_attention(run, part.line, candidates)
        for row, weights in zip(hypotheses, rows, strict=True):
            row.attention = weights
    return TranslatedLine(
        words=member.source.join(units),
        hypotheses=hypotheses,
        unknown=engine.unknown_words(member, units),
        parse=soft_parse(run, units) if options.parse else None,
    )


# ---- attention and parses ----------------------------------------------------------------------------------


def word_attention(
    run: TorchRun, line: str, candidates: Sequence[FinishedHypothesis]
) -> Generator[None, None, list[list[list[float]]]]:
    """Compute the attention of each hypothesis in the first model: (T, L), a row for each target word with
    the weights of the source words.

    Weights of units are summed on the source side and averaged on the target side. The weight of the source's
    end symbol is left out. Yields None before each step of the model; returns the weights of all hypotheses.
    """
    member = run.members[0]
    reading = run.read(line)
    source = reading.ids[0] if isinstance(reading, Reading) else reading
    columns = torch.tensor(member.source.word_numbers(member.source.units(line)))
    longest = max(len(candidate.words) for candidate in candidates)
    targets = torch.tensor(
        [[*candidate.words, *[EOS] * (longest - len(candidate.words))] for candidate in candidates]
    )
    with torch.no_grad():
        state, words, steps = member.model.start([source] * len(candidates)), None, list[Tensor]()
    for step in range(longest):
        yield
        with torch.no_grad():
            _, state = member.model.step(state, words)
            weights = member.model.attention(state)
        assert weights is not None
        steps.append(weights.double().cpu())
        words = targets[:, step].to(member.model.device)
    attention = list[list[list[float]]]()
    for row, candidate in enumerate(candidates):
        rows = torch.tensor(member.target.word_numbers(member.target_words.decode(candidate.words)))
        units = [step[row, : len(columns)] for step in steps[: len(rows)]]
        attention.append(word_weights(torch.stack(units), rows, columns) if units else [])
    return attention


def word_weights(weights: Tensor, rows: Tensor, columns: Tensor) -> list[list[float]]:
    """Turn attention weights of units (M, N) into weights of words (T, L). `rows` (M,) and `columns` (N,):
    the index of the word to which each target unit and each source unit belongs."""
    T, L = int(rows.max()) + 1, int(columns.max()) + 1
    added = weights.new_zeros(len(rows), L).index_add_(1, columns, weights)
    total = weights.new_zeros(T, L).index_add_(0, rows, added)
    sizes = torch.bincount(rows, minlength=T)[:, None]
    return cast(list[list[float]], (total / sizes).tolist())


def has_parse(run: TorchRun) -> bool:
    """Whether the first model of an ensemble has merge gates, from which a soft parse is read."""
    model = run.members[0].model
    return model.merge_gates([[UNK, UNK]]) is not None


@torch.no_grad()
def soft_parse(run: TorchRun, units: list[str]) -> engine.SoftParse | None:
    """Compute the soft parse of a source line, given as units, in the first model. It has no nodes for fewer
    than two units. None for a model without merge gates."""
    member = run.members[0]
    if len(units) < 2:
        return engine.SoftParse(units, []) if has_parse(run) else None
    gates = member.model.merge_gates([member.source_words.encode(units)])
    if gates is None:
        return None
    nodes = parse_nodes(gates[0].cpu().numpy())
    return engine.SoftParse(
        units,
        [engine.SoftParseNode(node.first, node.last, node.new, node.left, node.right) for node in nodes],
    )


# ---- runs as engines ---------------------------------------------------------------------------------------


class RunEngine(AnyRunEngine):
    """An engine that translates with a run or an ensemble. A session searches many sentences in one batch."""

    run: TorchRun

    def __init__(self, run: TorchRun, config: BeamConfig) -> None:
        self.run, self.config = run, run.fitted(config)
        capabilities = [*engine.ALL_RUNS, engine.TERMS, engine.AVOID]
        if run.members[0].model.attends:
            capabilities += [engine.ALIGNMENT, engine.ATTENTION]
        if has_parse(run):
            capabilities.append(engine.PARSE)
        self.info = self.describe(config.beam_size, *capabilities)

    def session(self) -> RunSession:
        return RunSession(self.run, self.config)

    def prepare(self, options: TranslateOptions) -> ConstraintMaker | None:
        return constraint_maker(self.run.for_text(options.tokenized), options)


def load_run(paths: Sequence[str], config: EngineConfig) -> RunEngine:
    """Load an engine from a run, or from several as an ensemble. UserError for one that cannot be used."""
    run = TorchRun.of(*paths, device=config.device)
    return RunEngine(run, BeamConfig(beam_size=config.beam_size))
