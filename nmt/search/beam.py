"""Beam search as in section 6.4.2, over many sentences at once: the result for a sentence does not depend on
the others.

At each step the s best continuations of a sentence are kept; each one that ends is set aside and reduces s by
one; the search of a sentence stops at s = 0 or at its maximum length, 3 words for each source word. UNK is
never produced unless it is allowed. The finished hypotheses are ranked by log probability over length. If
none has finished, the best unfinished ones are ended where they are.

Sentences are searched side by side, each at its own step: when some have finished, others take their rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic

import torch
from torch import Tensor

from nmt.layers.output import BestWords
from nmt.models.protocols import Layered, Source, State, StepModel, Widening
from nmt.search.config import BeamConfig, length_normalizer
from nmt.search.constraints.protocol import AnyConstraint
from nmt.search.constraints.rows import Constrained, Marks
from nmt.search.hypotheses import Expansion, History, choose_expansion, expand
from nmt.text.vocab import BOS, EOS, UNK

# ---- finder ------------------------------------------------------------------------------------------------
# The best next words by an output layer that finds them without log p of all: a hierarchy of few levels over
# many words (nmt/layers/output/hierarchy.py).


NEVER_WORDS = 3  # words at most that may not follow: <s>, UNK and, in short hypotheses, the end symbol


@dataclass
class Finder(Generic[State]):
    """A model and its output layer."""

    model: Layered[State]
    layer: BestWords

    def features(self, state: State, token_ids: Tensor | None) -> tuple[Tensor, State]:
        """See Layered."""
        return self.model.features(state, token_ids)

    def best(
        self, features: Tensor, count: int, too_short: Tensor, allow_unknown: bool
    ) -> tuple[Tensor, Tensor]:
        """Log p and words of the `count` best that may follow, the best first, -inf where there are none:
        (R, K), (R,) -> (R, count) twice"""
        values, words = self.layer.best_words(features, count + NEVER_WORDS)
        never = (words < 0) | (words == BOS) | ((words == EOS) & too_short[:, None])
        if not allow_unknown:
            never |= words == UNK
        values, place = values.masked_fill(never, -math.inf).topk(count, 1)
        return values, words.gather(1, place).clamp(min=0)

    def end(self, features: Tensor, row: int) -> float:
        """Log p of the end symbol after a row."""
        rows, ends = (torch.tensor([one], device=features.device) for one in (row, EOS))
        return float(self.layer.log_probs_of_words(features, rows, ends)[0])


def finder_of(model: StepModel[State]) -> Finder[State] | None:
    """None for a model that is asked for all words."""
    if not isinstance(model, Layered):
        return None
    layer = model.output_layer
    return Finder(model, layer) if isinstance(layer, BestWords) and layer.finds_best_sooner else None


# ---- beam --------------------------------------------------------------------------------------------------


End = Callable[[int], float]  # log p of the end symbol after a row

ROWS = 100  # keeps the scores of 30k words in the processor's cache
REFILL = 0.7  # new sentences are started when less than this share of the rows is in use


@dataclass
class Candidate:
    """A finished hypothesis: ids without the end symbol, natural log p with it, and the score it is ranked
    by."""

    words: list[int]
    log_prob: float
    score: float
    complete: bool = True  # false: the fallback, ended by the length limit
    looked_at: list[int] = field(
        default_factory=list
    )  # with attention: source position of most weight, by word


@dataclass
class Rows(Generic[State]):
    """R live hypotheses; those of a sentence are adjacent, the best first."""

    state: State
    sentence: Tensor  # (R,) index of its sentence
    totals: Tensor  # (R,) log p so far, float64
    nodes: Tensor  # (R,) in the history; -1 before the first word
    words: Tensor | None  # (R,) ids to be read next; None: no word so far
    marks: list[Marks]  # of the constraints, one for each row; empty while no sentence has any


class BeamSearch(Generic[State]):
    """The sentences of one search and their state. A sentence is known by its place, which another one may
    take once it is released."""

    def __init__(self, model: StepModel[State], config: BeamConfig) -> None:
        self.model, self.config, self.device = model, config, model.device
        self.sources: list[Source | None] = []
        self.prefixes: list[list[int]] = []
        self.finished: list[list[Candidate]] = []
        self.free: list[int] = []  # places
        self.forced = False
        self.constrained = Constrained(config)
        self.lengths = torch.zeros(0, dtype=torch.long, device=self.device)
        self.longest, self.shortest, self.widths = (self.lengths.clone() for _ in range(3))
        self.steps = self.lengths.clone()  # words of each sentence's hypotheses
        self.history = History()
        self.finder = finder_of(model)
        self.rank: Callable[[float, int], float] = length_normalizer(config.normalize)

    def add(
        self,
        sources: Sequence[Source],
        prefixes: Sequence[Sequence[int]] | None = None,
        widths: Sequence[int] | None = None,
        constraints: Sequence[Sequence[AnyConstraint]] | None = None,
    ) -> list[int]:
        """The places of more sentences. `widths`: the beam size of each, if it is not the configured one."""
        begun = [list(prefix) for prefix in prefixes] if prefixes else [[] for _ in sources]
        self.forced = self.forced or any(begun)
        places = [self.free.pop() if self.free else self.grow() for _ in sources]
        for place, source, prefix in zip(places, sources, begun, strict=True):
            self.sources[place], self.prefixes[place], self.finished[place] = source, prefix, []
        if missing := len(self.sources) - len(self.widths):
            more = torch.zeros(missing, dtype=torch.long, device=self.device)
            self.lengths, self.longest, self.shortest, self.widths, self.steps = (
                torch.cat([one, more])
                for one in (self.lengths, self.longest, self.shortest, self.widths, self.steps)
            )
        index = torch.tensor(places, dtype=torch.long, device=self.device)
        sizes = [len(source) for source in sources]
        needed = [
            self.constrained.add(place, given, prefix)
            for place, given, prefix in zip(places, constraints or [()] * len(sizes), begun, strict=True)
        ]
        longest = [
            max(self.config.longest(size), len(prefix), least)
            for size, prefix, least in zip(sizes, begun, needed, strict=True)
        ]
        for tensor, values in (
            (self.lengths, sizes),
            (self.longest, longest),
            (self.shortest, [self.config.shortest(size) for size in sizes]),
            (self.widths, widths or [self.config.beam_size] * len(sizes)),
        ):
            tensor[index] = torch.tensor(values, dtype=torch.long, device=self.device)
        self.steps[index] = 0
        return places

    def grow(self) -> int:
        """A new place."""
        self.sources.append(None)
        self.prefixes.append([])
        self.finished.append([])
        return len(self.sources) - 1

    def release(self, place: int) -> list[Candidate]:
        """The finished hypotheses of a sentence, best first; its place is free again."""
        found = ranked(self.finished[place])
        self.sources[place], self.prefixes[place], self.finished[place] = None, [], []
        self.free.append(place)
        return found

    def begin(self, sentences: Sequence[int]) -> Rows[State]:
        """A row for each of some sentences."""
        index = torch.tensor(sentences, device=self.device)
        totals = torch.zeros(len(index), dtype=torch.float64, device=self.device)
        return Rows(
            state=self.start(sentences),
            sentence=index,
            totals=totals,
            nodes=torch.full_like(index, -1),
            words=None,
            marks=self.constrained.begin(sentences),
        )

    def start(self, sentences: Sequence[int]) -> State:
        """The model after some sources. A short-list has the words that must be there."""
        sources = [self.sources[i] for i in sentences]
        if (self.forced or self.constrained) and isinstance(self.model, Widening):
            words = [{*self.prefixes[i], *self.constrained.vocabulary(i)} for i in sentences]
            state: State = self.model.start_with(sources, words)
            return state
        return self.model.start(sources)

    def step(self, rows: Rows[State]) -> Rows[State]:
        """One more word for every hypothesis; those that end, and those of finished sentences, leave."""
        sentence, step = rows.sentence, self.steps[rows.sentence]
        of_all = self.finder is None or self.forced or self.constrained
        best, end, state = self.best_of_all(rows, step) if of_all else self.best_found(rows, step)
        looks = self.looks(self.model.attention(state), sentence)
        ended = best.parent[best.ends]
        for row, total in zip(ended.tolist(), best.total[best.ends].tolist(), strict=True):
            self.finished[int(sentence[row])].append(self.candidate(int(rows.nodes[row]), total))
        self.widths.index_add_(0, sentence[ended], torch.full_like(ended, -1))
        at_limit = self.longest[sentence] <= step
        for index in sentence[at_limit].unique().tolist():
            if not self.finished[index]:
                self.finished[index] = self.fallback(rows, end, sentence == index)
        live = ~best.ends & ~at_limit[best.parent] & (self.widths[sentence[best.parent]] > 0)
        parent, words = best.parent[live], best.word[live]
        self.steps[sentence.unique()] += 1
        nodes = self.history.append(words, rows.nodes[parent], None if looks is None else looks[parent])
        places = sentence.tolist() if self.constrained else []
        return Rows(
            state=self.model.reorder(state, parent),
            sentence=sentence[parent],
            totals=best.total[live],
            nodes=nodes,
            words=words,
            marks=self.constrained.follow(marks_of(rows), places, parent.tolist(), words.tolist())
            if places
            else [],
        )

    def best_of_all(self, rows: Rows[State], step: Tensor) -> tuple[Expansion, End, State]:
        """The continuations that are kept, log p of an end, and the state after the words of the rows, whose
        steps are `step` (R,)."""
        log_probs, state = self.model.step(rows.state, rows.words)  # (R, V)
        sentence = rows.sentence
        forced = self.forced_words(log_probs, sentence.tolist(), step.tolist()) if self.forced else []
        log_probs = forbid(log_probs, step < self.shortest[sentence], self.config.allow_unknown)
        places, marks = sentence.tolist() if self.constrained else [], marks_of(rows)
        if self.constrained:
            self.constrained.forbid(log_probs, marks, places, (self.longest[sentence] - step).tolist())
        for row, word, value in forced:
            log_probs[row] = -math.inf
            log_probs[row, word] = value
        best = expand(log_probs, rows.totals, sentence, self.widths)
        if self.constrained:
            best = self.constrained.choose(best, log_probs, rows.totals, marks, places, self.widths)
        return best, lambda row: float(log_probs[row, EOS]), state

    def best_found(self, rows: Rows[State], step: Tensor) -> tuple[Expansion, End, State]:
        """As `best_of_all`, by an output layer that finds the best words without the others."""
        finder, sentence = self.finder, rows.sentence
        assert finder is not None
        features, state = finder.features(rows.state, rows.words)
        count = int(self.widths[sentence].max())
        too_short = step < self.shortest[sentence]
        values, words = finder.best(features, count, too_short, self.config.allow_unknown)
        best = choose_expansion(values, words, rows.totals, sentence, self.widths)
        return best, lambda row: -math.inf if too_short[row] else finder.end(features, row), state

    def forced_words(
        self, log_probs: Tensor, sentence: Sequence[int], step: Sequence[int]
    ) -> list[tuple[int, int, float]]:
        """Row, word and log p for each row inside its prefix: only that word may follow, even UNK."""
        where = [
            (row, self.prefixes[index][at])
            for row, (index, at) in enumerate(zip(sentence, step, strict=True))
            if at < len(self.prefixes[index])
        ]
        return [(row, word, float(log_probs[row, word])) for row, word in where]

    def looks(self, weights: Tensor | None, sentence: Tensor) -> Tensor | None:
        """The source position of most weight, the end symbol excluded."""
        if weights is None:
            return None
        behind = torch.arange(weights.shape[1], device=self.device) >= self.lengths[sentence][:, None]
        return weights.masked_fill(behind, -1.0).argmax(1)

    def candidate(self, node: int, total: float, complete: bool = True) -> Candidate:
        """The hypothesis that ends in a node."""
        words, looks = self.history.read(node)
        return Candidate(
            words=words,
            log_prob=total,
            score=self.rank(total, len(words) + 1),
            complete=complete,
            looked_at=[] if -1 in looks else looks,
        )

    def fallback(self, rows: Rows[State], end: End, mine: Tensor) -> list[Candidate]:
        """All rows of one sentence, ended where they are, the probability of that end included; none that
        constraints forbid to end."""
        where = mine.nonzero()[:, 0].tolist()
        found = [
            self.candidate(int(rows.nodes[row]), float(rows.totals[row]) + end(row), complete=False)
            for row in where
        ]
        return [one for one in found if one.log_prob > -math.inf] if self.constrained else found

    def join(self, first: Rows[State], second: Rows[State]) -> Rows[State]:
        """The rows of both."""
        if not len(first.sentence) or not len(second.sentence):
            return first if len(first.sentence) else second
        assert first.words is not None and second.words is not None
        pairs = (
            (first.sentence, second.sentence),
            (first.totals, second.totals),
            (first.nodes, second.nodes),
            (first.words, second.words),
        )
        sentence, totals, nodes, words = (torch.cat(pair) for pair in pairs)
        return Rows(
            state=self.model.join([first.state, second.state]),
            sentence=sentence,
            totals=totals,
            nodes=nodes,
            words=words,
            marks=first.marks + second.marks,
        )


@torch.no_grad()
def search(
    model: StepModel[State],
    sources: Sequence[Source],
    config: BeamConfig,
    prefixes: Sequence[Sequence[int]] | None = None,
    constraints: Sequence[Sequence[AnyConstraint]] | None = None,
) -> list[list[Candidate]]:
    """The finished hypotheses of each sentence, best first, between one and `beam_size` of them; sentences in
    the order of the sources.

    `prefixes`: for each sentence the ids that its translation has to begin with; `constraints`: what it has
    to keep to. A sentence whose constraints cannot be met has one hypothesis, of probability 0. About `rows`
    hypotheses are live at a time; the longest sentences are searched first. ConfigError for a setting out of
    range.
    """
    config.check()
    work = BeamSearch(model, config)
    work.add(sources, prefixes, constraints=constraints)
    waiting = sorted(range(len(sources)), key=lambda index: len(sources[index]))  # the next one is last
    room_in_all = config.rows or ROWS
    rows: Rows[State] | None = None
    while waiting or (rows is not None and len(rows.sentence)):
        alive = 0 if rows is None else len(rows.sentence)
        if not alive or (waiting and alive <= REFILL * room_in_all - config.beam_size):
            room = max(1, (room_in_all - alive) // config.beam_size)
            begun = work.step(work.begin([waiting.pop() for _ in range(min(len(waiting), room))]))
            rows = begun if rows is None else work.join(rows, begun)
            continue
        assert rows is not None
        rows = work.step(rows)
    return [ranked(candidates) for candidates in work.finished]


def marks_of(rows: Rows[State]) -> list[Marks]:
    """The marks of rows, empty ones where the rows began before any sentence had constraints."""
    return rows.marks or [()] * len(rows.sentence)


def ranked(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Best first; an empty one of probability 0 where no score was a number."""
    nothing = [Candidate(words=[], log_prob=-math.inf, score=-math.inf, complete=False)]
    return sorted(candidates, key=lambda candidate: -candidate.score) or nothing


def forbid(log_probs: Tensor, too_short: Tensor, allow_unknown: bool = False) -> Tensor:
    """<s> and UNK never follow; the end symbol does not in rows that are too short: (R, V), (R,) -> (R, V)"""
    log_probs[:, [BOS] if allow_unknown else [BOS, UNK]] = -math.inf
    log_probs[too_short, EOS] = -math.inf
    return log_probs


# ---- continuous --------------------------------------------------------------------------------------------
# Beam search that never ends: sentences are added while others are being searched, and each leaves as soon
# as it is finished. A server searches the sentences of all its clients together in this way; the result for a
# sentence is that of `beam.search`.


FORGET_NODES = 20_000  # nodes of a history that is never cleared


class ContinuousSearch(Generic[State]):
    """A sentence is known by its number from `add` until `step` returns it, or `cancel` is called with it."""

    def __init__(self, model: StepModel[State], config: BeamConfig) -> None:
        """There is room for about `config.rows` hypotheses at a time. ConfigError for a setting out of
        range."""
        config.check()
        self.work = BeamSearch(model, config)
        self.rows: Rows[State] | None = None
        self.added: list[int] = []  # since the last step
        self.capacity = config.rows or ROWS
        self.longest_history = FORGET_NODES

    @property
    def live(self) -> int:
        """Hypotheses in the batch."""
        return 0 if self.rows is None else len(self.rows.sentence)

    @property
    def busy(self) -> bool:
        """Is any sentence not finished?"""
        return bool(self.added) or self.live > 0

    def wants(self, width: int = 1) -> bool:
        """Is there room for one more sentence, of so many hypotheses?"""
        return self.planned + width <= self.room()

    def fits(self, width: int) -> bool:
        """May a sentence of so many hypotheses begin although others end soon? Any may begin alone."""
        return not self.busy or self.planned + width <= self.capacity - self.live

    @property
    def planned(self) -> int:
        """Hypotheses of the sentences that were added since the last step."""
        return sum(self.width(sentence) for sentence in self.added)

    def room(self) -> int:
        """Rows that new sentences may take; none as long as most rows are in use."""
        alive = self.live
        beam = self.work.config.beam_size
        return 0 if alive and alive > REFILL * self.capacity - beam else self.capacity - alive

    def width(self, sentence: int) -> int:
        return int(self.work.widths[sentence])

    def add(self, source: Source, beam_size: int = 0, constraints: Sequence[AnyConstraint] = ()) -> int:
        """The number of a new sentence, which has at least one word; the next step begins with it, whether
        there is room or not. `beam_size`: 0: the configured one."""
        width = beam_size or self.work.config.beam_size
        (place,) = self.work.add([source], widths=[width], constraints=[constraints])
        self.added.append(place)
        return place

    @torch.no_grad()
    def step(self) -> list[tuple[int, list[Candidate]]]:
        """One more word for all sentences. Returns the finished ones with their hypotheses, best first."""
        before = {*self.added, *([] if self.rows is None else self.rows.sentence.tolist())}
        if self.added:
            started = self.work.step(self.work.begin(self.added))
            self.added = []
            rest = self.rows if self.rows is None or not self.live else self.work.step(self.rows)
            self.rows = started if rest is None else self.work.join(rest, started)
        elif self.rows is not None and self.live:
            self.rows = self.work.step(self.rows)
        after = set() if self.rows is None else set(self.rows.sentence.tolist())
        found = [(place, self.work.release(place)) for place in sorted(before - after)]
        self.forget()
        return found

    def cancel(self, sentence: int) -> None:
        """Stop searching a sentence."""
        if sentence in self.added:
            self.added.remove(sentence)
        elif self.rows is not None:
            self.keep(torch.nonzero(self.rows.sentence != sentence)[:, 0])
        self.work.release(sentence)

    def keep(self, kept: torch.Tensor) -> None:
        """Drop all rows but these (K,)."""
        assert self.rows is not None
        if not len(kept):
            self.rows = None
            return
        rows = self.rows
        self.rows = Rows(
            state=self.work.model.reorder(rows.state, kept),
            sentence=rows.sentence[kept],
            totals=rows.totals[kept],
            nodes=rows.nodes[kept],
            words=None if rows.words is None else rows.words[kept],
            marks=[rows.marks[row] for row in kept.tolist()] if rows.marks else [],
        )

    def forget(self) -> None:
        """Free what finished sentences have left, once that may be half of the history."""
        history = self.work.history
        if not self.live:
            self.rows = None
            history.forget(torch.zeros(0, dtype=torch.long))
        elif len(history) > self.longest_history and self.rows is not None:
            self.rows = replace(self.rows, nodes=history.forget(self.rows.nodes))
            self.longest_history = max(FORGET_NODES, 2 * len(history))
