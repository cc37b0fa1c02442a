"""Beam search (van Merriënboer 2018, section 6.4.2) over many sentences at once, each independent of the
others.

Each step keeps the s best continuations of a sentence; one that ends is set aside and reduces s by one. The
search of a sentence stops at s = 0 or at its maximum length, by default 3 words for each source word. UNK is
never produced unless it is allowed or forced. The finished hypotheses are ranked by log probability, by
default over length. If none has finished, the unfinished ones are ended at the limit.

With `ended: refill` the beam of a sentence stays s wide, as in the library `transformers` (generate, with
early_stopping=False): a continuation that ends is set aside if it is among the s best ones, and of all that
were set aside the s best are kept; the s best continuations that do not end go on. The search of a sentence
stops when s have ended and the best one that goes on, ranked by its length, is no better than any of them.

Sentences are searched side by side, each at its own step: when some have finished, others take their rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic

import torch
from torch import Tensor

from nmt.errors import ConfigError
from nmt.layers.output import OutputLayer
from nmt.models.protocols import Layered, Source, State, StepModel, Widening
from nmt.search import FinishedHypothesis
from nmt.search import config as settings
from nmt.search.config import BeamConfig, length_normalizer
from nmt.search.constraints import AnyConstraint, ConstraintStates, SearchConstraints
from nmt.search.hypotheses import Expansion, History, choose_expansion, expand, refill_mask
from nmt.text.vocab import BOS, EOS, UNK

MOST_BANNED = 3  # words that may not follow: <s>, UNK and, in short hypotheses, the end symbol


@dataclass
class BestWordFinder(Generic[State]):
    """Finds the best next words without log p of all words, where the output layer can: a hierarchy of few
    levels over many words (nmt/layers/output/hierarchy.py)."""

    model: Layered[State]
    layer: OutputLayer

    def best(
        self, features: Tensor, count: int, too_short: Tensor, allow_unknown: bool
    ) -> tuple[Tensor, Tensor]:
        """Find natural log p and ids of the `count` best words that may follow, best first, with log p -inf
        where there are fewer: features (R, K), `too_short` (R,): whether each row must not end yet -> (R,
        count) twice. UNK may follow only with `allow_unknown`."""
        values, words = self.layer.best_words(features, count + MOST_BANNED)
        banned = (words < 0) | (words == BOS) | ((words == EOS) & too_short[:, None])
        if not allow_unknown:
            banned |= words == UNK
        values, columns = values.masked_fill(banned, -math.inf).topk(count, 1)
        return values, words.gather(1, columns).clamp(min=0)

    def end(self, features: Tensor, rows: Tensor) -> Tensor:
        """Natural log p of the end symbol after some of the R rows: features (R, K), `rows` (n,) -> (n,)"""
        return self.layer.log_probs_of_words(features, rows, torch.full_like(rows, EOS))


def best_word_finder(model: StepModel[State]) -> BestWordFinder[State] | None:
    """Create a finder for a model; None for a model that computes log p of all words."""
    if isinstance(model, Layered) and model.output_layer.finds_best_sooner:
        return BestWordFinder(model, model.output_layer)
    return None


EndLogProbs = Callable[[Tensor], Tensor]  # natural log p of the end symbol after rows, by their indices

ROWS = 100  # live hypotheses by default: scores of 30k words for each stay in the processor's cache
LIVE_SHARE = 0.7  # of the rows; new sentences are started when fewer are in use


@dataclass
class Rows(Generic[State]):
    """R live hypotheses; those of the same sentence are adjacent, best first."""

    state: State
    sentence: Tensor  # (R,) slot of its sentence
    totals: Tensor  # (R,) log p so far, float64
    nodes: Tensor  # (R,) in the history; -1 before the first word
    words: Tensor | None  # (R,) ids to be read next; None before the first word
    constraint_states: list[ConstraintStates]  # by row


class BeamSearch(Generic[State]):
    """The sentences of one search and their state. Each has a slot, which is reused once it is released."""

    def __init__(self, model: StepModel[State], config: BeamConfig) -> None:
        self.model, self.config, self.device = model, config, model.device
        self.sources: list[Source | None] = []
        self.prefixes: list[list[int]] = []
        self.finished: list[list[FinishedHypothesis]] = []
        self.free: list[int] = []  # slots without a sentence
        self.forced = False  # whether any sentence has a prefix
        self.constrained = SearchConstraints(config)
        self.lengths = torch.zeros(0, dtype=torch.long, device=self.device)
        self.longest, self.shortest, self.widths = (self.lengths.clone() for _ in range(3))
        self.steps = self.lengths.clone()  # words of each sentence's hypotheses
        self.history = History()
        self.finder = best_word_finder(model)
        self.rank: Callable[[float, int], float] = length_normalizer(config.normalize)
        self.refills = config.ended == settings.REFILL

    def add(
        self,
        sources: Sequence[Source],
        prefixes: Sequence[Sequence[int]] | None = None,
        widths: Sequence[int] | None = None,
        constraints: Sequence[Sequence[AnyConstraint]] | None = None,
    ) -> list[int]:
        """Add sentences and return their slots. `prefixes`: ids with which each translation begins; `widths`:
        the beam size of each, by default the configured one; `constraints`: those of each translation,
        besides the configured ones. ConfigError for constraints with `ended: refill`."""
        if self.refills and (self.constrained or any(constraints or ())):
            raise ConfigError("ended: refill cannot be combined with constraints; leave one of them out")
        starts = [list(prefix) for prefix in prefixes] if prefixes else [[] for _ in sources]
        self.forced = self.forced or any(starts)
        slots = [self.free.pop() if self.free else self.new_slot() for _ in sources]
        for slot, source, prefix in zip(slots, sources, starts, strict=True):
            self.sources[slot], self.prefixes[slot], self.finished[slot] = source, prefix, []
        if missing := len(self.sources) - len(self.widths):
            padding = torch.zeros(missing, dtype=torch.long, device=self.device)
            self.lengths, self.longest, self.shortest, self.widths, self.steps = (
                torch.cat([values, padding])
                for values in (self.lengths, self.longest, self.shortest, self.widths, self.steps)
            )
        index = torch.tensor(slots, dtype=torch.long, device=self.device)
        sizes = [len(source) for source in sources]
        needed = [
            self.constrained.add(*arguments)
            for arguments in zip(slots, constraints or [()] * len(sizes), starts, strict=True)
        ]
        longest = [
            max(self.config.longest(size), len(prefix), least)
            for size, prefix, least in zip(sizes, starts, needed, strict=True)
        ]
        for tensor, values in (
            (self.lengths, sizes),
            (self.longest, longest),
            (self.shortest, [self.config.shortest(size) for size in sizes]),
            (self.widths, widths or [self.config.beam_size] * len(sizes)),
        ):
            tensor[index] = torch.tensor(values, dtype=torch.long, device=self.device)
        self.steps[index] = 0
        return slots

    def new_slot(self) -> int:
        self.sources.append(None)
        self.prefixes.append([])
        self.finished.append([])
        return len(self.sources) - 1

    def release(self, slot: int) -> list[FinishedHypothesis]:
        """Free the slot of a sentence and return its finished hypotheses, best first."""
        finished = rank_candidates(self.finished[slot])
        self.sources[slot], self.prefixes[slot], self.finished[slot] = None, [], []
        self.free.append(slot)
        return finished

    def open_rows(self, sentences: Sequence[int]) -> Rows[State]:
        """Create one row, before the first word, for each sentence of these slots."""
        index = torch.tensor(sentences, device=self.device)
        totals = torch.zeros(len(index), dtype=torch.float64, device=self.device)
        return Rows(
            state=self.start(sentences),
            sentence=index,
            totals=totals,
            nodes=torch.full_like(index, -1),
            words=None,
            constraint_states=self.constrained.start(sentences),
        )

    def start(self, sentences: Sequence[int]) -> State:
        """Let the model read the sources. Short-lists include the words of prefixes and constraints."""
        sources = [self.sources[i] for i in sentences]
        if (self.forced or self.constrained) and isinstance(self.model, Widening):
            words = [{*self.prefixes[i], *self.constrained.vocabulary(i)} for i in sentences]
            state: State = self.model.start_with(sources, words)
            return state
        return self.model.start(sources)

    def step(self, rows: Rows[State]) -> Rows[State]:
        """Extend every hypothesis by a word. Those that end are moved to `finished`; the others of a sentence
        that is done are dropped, so that it has no row in the result."""
        sentence, step = rows.sentence, self.steps[rows.sentence]
        all_words = self.finder is None or self.forced or self.constrained
        best, end, state = (
            self.expand_all_words(rows, step) if all_words else self.expand_best_words(rows, step)
        )
        if self.refills:
            best = best.select(refill_mask(best, sentence, self.widths))
        attended = self.attended(self.model.attention(state), sentence)
        ended = best.parent[best.ends]
        columns = sentence[ended], rows.nodes[ended], best.total[best.ends]
        for index, node, total in zip(*(column.tolist() for column in columns), strict=True):
            self.finished[index].append(self.hypothesis(node, total))
        if self.refills:
            self.stop_refilling(best, sentence, step)
        else:
            self.widths.index_add_(0, sentence[ended], torch.full_like(ended, -1))
        at_limit = self.longest[sentence] <= step
        stopped = [index for index in sentence[at_limit].unique().tolist() if not self.finished[index]]
        if stopped:
            self.end_at_limit(rows, end, stopped)
        live = ~best.ends & ~at_limit[best.parent] & (self.widths[sentence[best.parent]] > 0)
        parent, words = best.parent[live], best.word[live]
        self.steps[sentence.unique()] += 1
        nodes = self.history.append(words, rows.nodes[parent], None if attended is None else attended[parent])
        slots = sentence.tolist() if self.constrained else []
        return Rows(
            state=self.model.reorder(state, parent),
            sentence=sentence[parent],
            totals=best.total[live],
            nodes=nodes,
            words=words,
            constraint_states=self.constrained.follow(
                rows.constraint_states, slots, parent.tolist(), words.tolist()
            )
            if slots
            else [()] * len(parent),
        )

    @property
    def candidates(self) -> Tensor:
        """The number of continuations of each sentence to look at, by slot."""
        return self.widths * 2 if self.refills else self.widths

    def stop_refilling(self, best: Expansion, sentence: Tensor, step: Tensor) -> None:
        """Keep the best finished hypotheses of each sentence with a new one, and give a sentence that is done
        a beam of size 0. `best`: the continuations; `sentence`, `step` (R,): as in `step`."""
        parent = best.parent[~best.ends].flip(0)
        columns = sentence[parent], step[parent], best.total[~best.ends].flip(0)
        live = {  # the first of each sentence stays
            index: self.rank(total, words + 1)
            for index, words, total in zip(*(column.tolist() for column in columns), strict=True)
        }
        present = sentence.unique()
        for index, width in zip(present.tolist(), self.widths[present].tolist(), strict=True):
            finished = sorted(self.finished[index], key=lambda candidate: -candidate.score)[:width]
            self.finished[index] = finished
            if len(finished) == width and live.get(index, -math.inf) <= finished[-1].score:
                self.widths[index] = 0

    def expand_all_words(self, rows: Rows[State], step: Tensor) -> tuple[Expansion, EndLogProbs, State]:
        """Expand hypotheses by computing log p of all words. Returns the best continuations, a function that
        gives log p of ending a row, and the state after the rows' words. `step` (R,): words of each row."""
        log_probs, state = self.model.step(rows.state, rows.words)  # (R, V)
        sentence = rows.sentence
        forced = self.forced_words(log_probs, sentence.tolist(), step.tolist()) if self.forced else []
        log_probs = mask_forbidden(log_probs, step < self.shortest[sentence], self.config.allow_unknown)
        slots = sentence.tolist() if self.constrained else []
        if self.constrained:
            left = (self.longest[sentence] - step).tolist()
            self.constrained.forbid(log_probs, rows.constraint_states, slots, left)
        for row, word, value in forced:
            log_probs[row] = -math.inf
            log_probs[row, word] = value
        best = expand(log_probs, rows.totals, sentence, self.candidates)
        if self.constrained:
            best = self.constrained.choose(
                best, log_probs, rows.totals, rows.constraint_states, slots, self.widths
            )
        return best, lambda row: log_probs[row, EOS], state

    def expand_best_words(self, rows: Rows[State], step: Tensor) -> tuple[Expansion, EndLogProbs, State]:
        """Expand as `expand_all_words` does, but by the best words that the output layer finds."""
        finder, sentence = self.finder, rows.sentence
        assert finder is not None
        features, state = finder.model.features(rows.state, rows.words)
        count = int(self.candidates[sentence].max())
        too_short = step < self.shortest[sentence]
        values, words = finder.best(features, count, too_short, self.config.allow_unknown)
        best = choose_expansion(values, words, rows.totals, sentence, self.candidates)
        return best, lambda row: finder.end(features, row), state

    def forced_words(
        self, log_probs: Tensor, sentence: Sequence[int], step: Sequence[int]
    ) -> list[tuple[int, int, float]]:
        """Row, word and log p of each row inside its prefix: only that word may follow, even UNK. `log_probs`
        (R, V); `sentence`, `step`: slot and number of words of each row."""
        rows = enumerate(zip(sentence, step, strict=True))
        words = [(row, self.prefixes[i][t]) for row, (i, t) in rows if t < len(self.prefixes[i])]
        return [(row, word, float(log_probs[row, word])) for row, word in words]

    def attended(self, weights: Tensor | None, sentence: Tensor) -> Tensor | None:
        """The source position with the most attention in each row, the end symbol excluded: weights (R, L) of
        L source positions, `sentence` (R,) slots -> (R,); None without weights."""
        if weights is None:
            return None
        past_end = torch.arange(weights.shape[1], device=self.device) >= self.lengths[sentence][:, None]
        return weights.masked_fill(past_end, -1.0).argmax(1)

    def hypothesis(self, node: int, total: float, complete: bool = True) -> FinishedHypothesis:
        words, attended = self.history.read(node)
        return FinishedHypothesis(
            words=words,
            log_prob=total,
            score=self.rank(total, len(words) + 1),
            complete=complete,
            looked_at=[] if -1 in attended else attended,
        )

    def end_at_limit(self, rows: Rows[State], end: EndLogProbs, sentences: Sequence[int]) -> None:
        """End the hypotheses of the sentences in these slots at their length limit, unless constraints forbid
        it; their probabilities include that of the end symbol. `end`: log p of ending rows."""
        slots = torch.tensor(sentences, device=self.device)
        index = torch.isin(rows.sentence, slots).nonzero()[:, 0]
        columns = rows.sentence[index], rows.nodes[index], rows.totals[index] + end(index)
        for slot, node, total in zip(*(column.tolist() for column in columns), strict=True):
            if total > -math.inf or not self.constrained:
                self.finished[slot].append(self.hypothesis(node, total, complete=False))

    def join(self, first: Rows[State], second: Rows[State]) -> Rows[State]:
        """Concatenate the rows of two batches."""
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
            constraint_states=first.constraint_states + second.constraint_states,
        )


@torch.no_grad()
def search(
    model: StepModel[State],
    sources: Sequence[Source],
    config: BeamConfig,
    prefixes: Sequence[Sequence[int]] | None = None,
    constraints: Sequence[Sequence[AnyConstraint]] | None = None,
) -> list[list[FinishedHypothesis]]:
    """Find up to `beam_size` finished hypotheses of each sentence, best first.

    `prefixes`: ids that each translation has to begin with; `constraints`: those of each translation. A
    sentence whose constraints cannot be met has one hypothesis, of probability 0. About `config.rows`
    hypotheses are live at a time (0: 100, on a GPU up to 5,120); the longest sentences are searched first.
    ConfigError for a setting out of range, and for constraints with `ended: refill`.
    """
    config.check()
    beam = BeamSearch(model, config)
    beam.add(sources, prefixes, constraints=constraints)
    waiting = sorted(range(len(sources)), key=lambda index: len(sources[index]))  # the next one is last
    capacity = config.rows or default_rows(model)
    rows: Rows[State] | None = None
    while waiting or (rows is not None and len(rows.sentence)):
        alive = 0 if rows is None else len(rows.sentence)
        if not alive or (waiting and alive <= LIVE_SHARE * capacity - config.beam_size):
            room = max(1, (capacity - alive) // config.beam_size)
            opened = beam.step(beam.open_rows([waiting.pop() for _ in range(min(len(waiting), room))]))
            rows = opened if rows is None else beam.join(rows, opened)
            continue
        assert rows is not None
        rows = beam.step(rows)
    return [rank_candidates(candidates) for candidates in beam.finished]


def default_rows(model: StepModel[State]) -> int:
    """The number of live hypotheses that suits the device of a model and, on a GPU, its vocabulary."""
    if model.device.type == "cpu":
        return ROWS
    words = model.output_layer.vocab_size if isinstance(model, Layered) else 1
    return BeamConfig().fitted(words, on_gpu=True).rows


def rank_candidates(candidates: Sequence[FinishedHypothesis]) -> list[FinishedHypothesis]:
    """Sort hypotheses by score, best first. Without any, returns a single empty one of probability 0."""
    nothing = [FinishedHypothesis(words=[], log_prob=-math.inf, score=-math.inf, complete=False)]
    return sorted(candidates, key=lambda candidate: -candidate.score) or nothing


def mask_forbidden(log_probs: Tensor, too_short: Tensor, allow_unknown: bool = False) -> Tensor:
    """Set log p (R, V) in place to -inf for <s>, for UNK unless it is allowed, and for the end symbol in rows
    that are too short, (R,); returns `log_probs`."""
    log_probs[:, BOS] = -math.inf
    if not allow_unknown:
        log_probs[:, UNK] = -math.inf
    log_probs[:, EOS].masked_fill_(too_short, -math.inf)
    return log_probs


FORGET_NODES = 20_000  # size up to which a history is not compacted


class ContinuousSearch(Generic[State]):
    """Beam search that never ends: sentences join while others are being searched, and each leaves when it is
    finished. A server searches the sentences of all its clients together in this way.

    Results are those of `search`. A sentence is identified by its slot from `add` until `step` returns it or
    `cancel` is called.
    """

    def __init__(self, model: StepModel[State], config: BeamConfig) -> None:
        """About `config.rows` hypotheses fit (0: 100, on a GPU up to 5,120). ConfigError for bad settings."""
        config.check()
        self.beam = BeamSearch(model, config)
        self.rows: Rows[State] | None = None
        self.added: list[int] = []  # since the last step
        self.capacity = config.rows or default_rows(model)
        self.longest_history = FORGET_NODES

    @property
    def live(self) -> int:
        """Number of hypotheses in the batch."""
        return 0 if self.rows is None else len(self.rows.sentence)

    @property
    def busy(self) -> bool:
        """Whether any sentence is unfinished."""
        return bool(self.added) or self.live > 0

    def has_room(self, width: int = 1) -> bool:
        """Whether to accept one more sentence with a beam of `width`: false if fewer rows are free, and while
        most rows are in use, so that several sentences start together."""
        if self.live and self.live > LIVE_SHARE * self.capacity - self.beam.config.beam_size:
            return False
        return width <= self.free_rows

    def may_start(self, width: int) -> bool:
        """Whether a sentence with a beam of `width` fits beside those in the batch. Any may start alone."""
        return not self.busy or width <= self.free_rows

    @property
    def free_rows(self) -> int:
        """Rows that neither the batch nor the sentences added since the last step will take."""
        added = sum(int(self.beam.widths[sentence]) for sentence in self.added)
        return self.capacity - self.live - added

    def add(self, source: Source, beam_size: int = 0, constraints: Sequence[AnyConstraint] = ()) -> int:
        """Add a sentence of at least one word and return its slot. The next step starts it, whether there is
        room or not. `beam_size`: 0 = the configured one. ConfigError as in `BeamSearch.add`."""
        width = beam_size or self.beam.config.beam_size
        (slot,) = self.beam.add([source], widths=[width], constraints=[constraints])
        self.added.append(slot)
        return slot

    @torch.no_grad()
    def step(self) -> list[tuple[int, list[FinishedHypothesis]]]:
        """Extend all sentences by a word. Returns (slot, hypotheses, best first) of those that this finishes,
        and frees their slots."""
        searched = {*self.added, *([] if self.rows is None else self.rows.sentence.tolist())}
        if self.added:
            started = self.beam.step(self.beam.open_rows(self.added))
            self.added = []
            extended = self.rows if self.rows is None or not self.live else self.beam.step(self.rows)
            self.rows = started if extended is None else self.beam.join(extended, started)
        elif self.rows is not None and self.live:
            self.rows = self.beam.step(self.rows)
        unfinished = set() if self.rows is None else set(self.rows.sentence.tolist())
        finished = [(slot, self.beam.release(slot)) for slot in sorted(searched - unfinished)]
        self.trim_history()
        return finished

    def cancel(self, sentence: int) -> None:
        """Drop the sentence in this slot from the search, and free the slot."""
        if sentence in self.added:
            self.added.remove(sentence)
        elif self.rows is not None:
            self.keep_rows(torch.nonzero(self.rows.sentence != sentence)[:, 0])
        self.beam.release(sentence)

    def keep_rows(self, indices: torch.Tensor) -> None:
        """Drop all rows but `indices` (K,)."""
        assert self.rows is not None
        if not len(indices):
            self.rows = None
            return
        rows = self.rows
        self.rows = Rows(
            state=self.beam.model.reorder(rows.state, indices),
            sentence=rows.sentence[indices],
            totals=rows.totals[indices],
            nodes=rows.nodes[indices],
            words=None if rows.words is None else rows.words[indices],
            constraint_states=[rows.constraint_states[row] for row in indices.tolist()],
        )

    def trim_history(self) -> None:
        """Drop the words of finished sentences once they may be half of the history."""
        history = self.beam.history
        if not self.live:
            self.rows = None
            history.forget(torch.zeros(0, dtype=torch.long))
        elif len(history) > self.longest_history and self.rows is not None:
            self.rows = replace(self.rows, nodes=history.forget(self.rows.nodes))
            self.longest_history = max(FORGET_NODES, 2 * len(history))
