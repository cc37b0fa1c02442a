"""The same search in plain Python: the oracle of the compiled one, and the decoder where numba is missing or
a model is binary.

Everything is done the obvious way: candidates are scored at once, recombined in a dictionary, sorted, and
cut.
"""

import heapq
import itertools
import math
import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from nmt.lm.arpa import LN10
from nmt.lm.count import KenLM
from smt_bridge.decoder.compiled import go_on
from smt_bridge.decoder.constraints import Constraints
from smt_bridge.decoder.search import Limits, early_distortion
from smt_bridge.decoder.sentence import Sentence


class WordLM(Protocol):
    """A language model word by word; probabilities are natural logarithms."""

    def number(self, word: str) -> int: ...

    def knows(self, word: str) -> bool: ...

    def begin(self) -> Hashable: ...

    def step(self, state: Any, word: int) -> tuple[float, Hashable]: ...

    def end(self, state: Any) -> float: ...

    def phrase(self, words: Sequence[int]) -> float: ...

    def phrases(self, ids: Any, starts: Any) -> tuple[Any, Any]: ...

    def sentence(self, words: Sequence[int], complete: bool = True) -> float: ...


class Stepping:
    """What follows from single steps."""

    def phrase(self: Any, words: Sequence[int]) -> float:
        """log p of words without context."""
        return self.walk(self.nowhere(), words)[0]

    def phrases(self: Any, ids: Any, starts: Any) -> tuple[Any, Any]:
        found = np.array([self.phrase(ids[a:b].tolist()) for a, b in pairwise(starts)])
        return found, np.zeros(len(found))

    def sentence(self: Any, words: Sequence[int], complete: bool = True) -> float:
        total, state = self.walk(self.begin(), words)
        return total + self.end(state) if complete else total

    def walk(self: Any, state: Any, words: Sequence[int]) -> tuple[float, Any]:
        total = 0.0
        for word in words:
            more, state = self.step(state, word)
            total += more
        return total, state


class AutomatonLM(Stepping):
    def __init__(self, model: Any) -> None:
        self.lm = model.automaton
        self.ids = {word: number for number, word in enumerate(model.vocabulary)}
        self.nodes: dict[int, int] | None = None

    def number(self, word: str) -> int:
        return self.ids.get(word, self.lm.unknown)

    def knows(self, word: str) -> bool:
        return self.number(word) != self.lm.unknown

    def begin(self) -> Hashable:
        return int(self.lm.begin)

    def nowhere(self) -> Hashable:
        return int(self.lm.root)

    def step(self, state: Any, word: int) -> tuple[float, Hashable]:
        lm, total = self.lm, 0.0
        if self.nodes is None:
            there = lm.keys >= 0
            self.nodes = dict(zip(lm.keys[there].tolist(), lm.values[there].tolist(), strict=True))
        while state != lm.root:
            node = self.nodes.get(state * lm.words + word)
            if node is not None:
                break
            total += float(lm.backoff[state])
            state = int(lm.shorter[state])
        else:
            node = word
        return total + float(lm.log_prob[node]), int(lm.state[node])

    def end(self, state: Any) -> float:
        return self.step(state, self.lm.end)[0]


class KenLMWords(Stepping):
    """A binary model of KenLM; its states compare as they should."""

    def __init__(self, model: KenLM) -> None:
        self.kenlm, self.model = model.kenlm, model.model
        self.words: list[str] = []
        self.ids: dict[str, int] = {}
        self.lock = threading.Lock()

    def number(self, word: str) -> int:
        if word not in self.ids:
            with self.lock:  # two threads must not take one number
                if word not in self.ids:
                    self.words.append(word)
                    self.ids[word] = len(self.words) - 1
        return self.ids[word]

    def knows(self, word: str) -> bool:
        return word in self.model

    def begin(self) -> Hashable:
        state = self.kenlm.State()
        self.model.BeginSentenceWrite(state)
        return state  # type: ignore[no-any-return]

    def nowhere(self) -> Hashable:
        state = self.kenlm.State()
        self.model.NullContextWrite(state)
        return state  # type: ignore[no-any-return]

    def step(self, state: Any, word: int) -> tuple[float, Hashable]:
        after = self.kenlm.State()
        return LN10 * self.model.BaseScore(state, self.words[word], after), after

    def end(self, state: Any) -> float:
        return float(LN10 * self.model.BaseScore(state, "</s>", self.kenlm.State()))


def of(model: Any) -> WordLM:
    return KenLMWords(model) if isinstance(model, KenLM) else AutomatonLM(model)


class Listing(NamedTuple):
    """Which derivations an n-best list has."""

    nbest: int  # 0: only the best
    distinct: bool  # of different texts
    factor: int  # at most so many derivations looked at for each one listed, where they are to be distinct


@dataclass
class Node:
    """A hypothesis: `ways` are all (total score, edge score, parent, option) that lead to it, the best one in
    `score`."""

    covered: frozenset[int]
    begin: int
    end: int
    states: tuple[Any, ...]
    history: tuple[str, ...]  # last words, as far as a neural language model remembers
    score: float
    total: float
    parent: "Node | None" = None
    option: int = -1
    ways: list[tuple[float, float, "Node", int]] = field(default_factory=list)


def future(sentence: Sentence, covered: frozenset[int]) -> float:
    """Best scores of the untranslated stretches."""
    total, begin, n = 0.0, 0, len(sentence.words)
    while begin < n:
        if begin in covered:
            begin += 1
            continue
        end = begin
        while end + 1 < n and end + 1 not in covered:
            end += 1
        total += float(sentence.options.future[begin, end])
        begin = end + 1
    return total


def first_gap(node: Node) -> int:
    """The first untranslated word."""
    return next(word for word in itertools.count() if word not in node.covered)


def allowed(node: Node, begin: int, last: int, limit: int) -> bool:
    """May a span be translated next? It must be free, near enough, and leave the first gap within reach."""
    if any(word in node.covered for word in range(begin, last + 1)):
        return False
    gap = first_gap(node)
    return limit < 0 or (abs(begin - node.end - 1) <= limit and (begin == gap or last + 1 - gap <= limit))


def permitted(node: Node, begin: int, last: int, limit: int, constraints: Constraints) -> bool:
    """May a span be translated next, for all that walls and zones ask? Told as the rules are, without the
    order of words in an array."""
    gap = next(word for word in range(begin + 1) if word not in node.covered)
    beyond = {word for word in node.covered if word > gap}
    if begin == gap and not beyond:
        return True
    if begin > gap and any(constraints.wall[gap:last]):
        return False
    span = set(range(begin, last + 1))
    for number, (first, end) in enumerate(constraints.zones.tolist()):
        zone = set(range(first, end + 1))
        missing = zone - node.covered
        entered = missing != zone
        if not missing or not (span & zone or entered):
            continue
        if not span & zone:
            return False
        if begin > gap and 0 <= limit <= end - gap:
            return False
        if begin <= first:
            continue
        if last > end and not missing <= span:
            return False
        if last <= end:
            left = [word for word in missing if word < begin]
            if left and any(constraints.local[word] == number for word in range(min(left), min(end, last))):
                return False
    return True


def extend(
    node: Node, option: int, sentence: Sentence, limits: Limits, decoder: Any
) -> tuple[tuple[Any, ...], Node]:
    """The hypothesis that an option makes of another, and what it recombines by."""
    options = sentence.options
    begin, last = int(sentence.begin[option]), int(sentence.last[option])
    covered = node.covered | set(range(begin, last + 1))
    jump = (
        early_distortion(begin, last, node.end, first_gap(node))
        if limits.early
        else abs(begin - node.end - 1)
    )
    gain = float(options.score[option]) - jump * limits.distortion_weight
    way = 0 if begin == node.end + 1 else 1 if last + 1 == node.begin else 2
    if limits.reordering:
        gain += float(options.backward[option, way]) + (
            float(options.forward[node.option, way]) if node.parent else 0.0
        )
    words = slice(int(options.start[option]), int(options.start[option] + options.length[option]))
    states = []
    complete = len(covered) == len(sentence.words)
    for weight, lm, ids, state in zip(
        decoder.lm_weights, decoder.word_of, options.words, node.states, strict=True
    ):
        log_prob, state = lm.walk(state, ids[words].tolist())
        ends = complete and options.length[option] > 0
        gain += weight * (log_prob + (lm.end(state) if ends else 0.0))
        states.append(lm.step(state, lm.lm.end)[1] if ends and hasattr(lm, "lm") else state)
    history = node.history
    if decoder.neural is not None:
        more, history = decoder.neural.at_once(history, decoder.text(sentence, [option]), complete)
        gain += more
    score = node.score + gain
    made = Node(
        covered, begin, last, tuple(states), history, score, score + future(sentence, covered), node, option
    )
    key = (
        covered,
        last,
        tuple(states),
        history,
        begin if limits.reordering else 0,
        int(options.forward_id[option]) if limits.reordering else 0,
    )
    return key, made


def search(
    sentence: Sentence, limits: Limits, decoder: Any, listing: Listing, stop: threading.Event | None = None
) -> tuple[list[Any], list[float]]:
    """Option paths and totals, best first: one, or the n best."""
    n, sizes, first, held = (
        limits.words,
        sentence.options.number,
        sentence.options.first,
        sentence.options.constraints,
    )
    empty: frozenset[int] = frozenset()
    history = decoder.neural.start() if decoder.neural is not None else ()
    begin = Node(
        empty, -2, -1, tuple(lm.begin() for lm in decoder.word_of), history, 0.0, future(sentence, empty)
    )
    stacks: list[dict[Any, Node]] = [{} for _ in range(n + 1)]
    stacks[0][()] = begin
    best = [-math.inf] * (n + 1)
    places = [
        (a, b, a * limits.longest + b - a) for a in range(n) for b in range(a, min(n, a + limits.longest))
    ]
    for stack in stacks[:-1]:
        for node in survivors(stack, limits):
            go_on(stop)
            for a, b, span in places:
                if (
                    sizes[span]
                    and allowed(node, a, b, limits.distortion)
                    and (not held.active or permitted(node, a, b, limits.distortion, held))
                ):
                    for option in range(first[span], first[span] + sizes[span]):
                        key, made = extend(node, option, sentence, limits, decoder)
                        number = len(made.covered)
                        if (
                            made.total >= best[number] + limits.beam
                        ):  # as Moses: what is below does not even recombine
                            put(stacks[number], key, made)
                            best[number] = max(best[number], made.total)
    finals = survivors(stacks[-1], limits)
    if not finals:
        return [], []
    if not listing.nbest:
        return [path_of(finals[0])], [finals[0].score]
    return best_paths(finals, sentence, listing)


def put(stack: dict[Any, Node], key: tuple[Any, ...], made: Node) -> None:
    assert made.parent
    way = (made.score, made.score - made.parent.score, made.parent, made.option)
    held = stack.setdefault(key, made)
    held.ways.append(way)
    if made.score > held.score:
        held.score, held.total, held.parent, held.option = made.score, made.total, made.parent, made.option


def survivors(stack: dict[Any, Node], limits: Limits) -> list[Node]:
    """The best of a stack, best first; of equals the oldest first."""
    nodes = sorted(stack.values(), key=lambda node: -node.total)
    nodes = nodes[: limits.stack] if limits.stack else nodes
    return [node for node in nodes if node.total >= nodes[0].total + limits.beam or math.isinf(limits.beam)]


def path_of(node: Node) -> Any:
    path = []
    while node.parent:
        path.append(node.option)
        node = node.parent
    return np.array(path[::-1], np.int32)


def best_paths(finals: Sequence[Node], sentence: Sentence, listing: Listing) -> tuple[list[Any], list[float]]:
    """Complete derivations, best first, from the graph of recombined hypotheses."""
    heap: list[tuple[float, int, Node, tuple[int, ...], float]] = []
    for age, node in enumerate(finals):
        heap.append((-node.score, age, node, (), 0.0))
    heapq.heapify(heap)
    age, looked = len(heap), 0
    seen: set[tuple[int, ...]] = set()
    paths: list[Any] = []
    totals = []
    while heap and len(paths) < listing.nbest:
        negative, _, node, path, tail = heapq.heappop(heap)
        if not node.parent:
            looked += 1
            if listing.distinct and looked > listing.nbest * listing.factor:
                break
            options = sentence.options
            text = tuple(
                int(word)
                for option in path
                for word in sentence.text[
                    options.start[option] : options.start[option] + options.length[option]
                ]
            )
            if not listing.distinct or text not in seen:
                seen.add(text)
                paths.append(np.array(path, np.int32))
                totals.append(-negative)
            continue
        for _, edge, parent, option in node.ways:
            age += 1
            heapq.heappush(heap, (-(parent.score + edge + tail), age, parent, (option, *path), tail + edge))
    return paths, totals
