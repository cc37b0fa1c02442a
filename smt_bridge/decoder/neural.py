"""Neural n-gram models inside the search (section 4.4.1: n-grams are gathered, and scored in one product when
a stack is pruned).

Two stages a stack. First every candidate is scored without the network, the count model standing in for it,
and the best
`neural_beam` survive. Then the n-grams of the survivors, each once, are scored together; survivors recombine,
the same last words now among what must agree, and are ranked again. With an unlimited beam this is immediate
scoring, whatever the buffer holds.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt import checkpoint
from nmt.checkpoint import SavedLM
from nmt.data.vocab import BOS, EOS
from nmt.errors import ConfigError
from nmt.lm.cslm import ngrams
from nmt.lm.protocols import NgramNetwork, NgramScores, NormalizedScores
from nmt.text.escapes import unescape
from smt_bridge.decoder.compiled import go_on, njit
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.search import CANDIDATES, FULL, MIX, Limits, State, add, begin, expand_from
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.system import System

Int64s = NDArray[np.int64]


@dataclass
class Network:
    """A CSLM of an ini. Words are unescaped, and each is one unit of the model."""

    name: str
    run: SavedLM
    scores: NgramScores
    ids: dict[str, int]

    @property
    def order(self) -> int:
        return self.scores.order

    def number(self, word: str) -> int:
        found = self.ids.get(word)
        if found is None:
            units = self.run.text.cut([unescape(word)])
            if len(units) != 1:
                raise ConfigError(
                    f"{self.run.directory}: splits words into subwords; searching needs a model of whole "
                    "words"
                )
            found = self.ids[word] = self.run.words.encode(units)[0]
        return found

    def score(self, contexts: Int64s, words: Int64s) -> NDArray[np.float64]:
        return self.scores.score(contexts, words)


def load(system: System) -> list[Network]:
    """The networks of a system. ConfigError for a run that is no CSLM."""
    found = []
    for line in system.neural:
        run = checkpoint.load_lm(line.path, "best", "cpu")
        if not isinstance(run.model, NgramNetwork):
            raise ConfigError(
                f"{line.path}: {line.name} has to be a CSLM; use other language models to rescore n-best "
                "lists (smt-rescore)"
            )
        if line.normalized and not (isinstance(run.model, NormalizedScores) and run.model.normalizer):
            raise ConfigError(
                f"{line.path}: normalized=true, but this model was not trained with lm.normalizer"
            )
        scores = run.model.ngram_scores(line.normalized, keep_tables=True)
        found.append(Network(name=line.name, run=run, scores=scores, ids={}))
    return found


class Neural:
    """The networks of a decoder with their weights."""

    def __init__(self, networks: Sequence[Network], weights: Sequence[float], config: DecoderConfig) -> None:
        self.networks, self.weights, self.config = networks, weights, config
        self.stand_in = float(sum(weights))
        self.longest = max(network.order for network in networks) - 1
        self.lock = threading.Lock()  # of the dictionaries of words

    # ---- one stack after the other -------------------------------------------------------------------------

    def search(
        self, state: State, sentence: Sentence, limits: Limits, decoder: Any, stop: threading.Event | None
    ) -> None:
        """Fill the stacks. `state.counters[FULL]` tells when memory was too small."""
        options = sentence.options
        words = self.words_of(sentence, decoder)
        begin(state, options, decoder.automata, limits)
        room = np.zeros(len(decoder.automata), np.int32)
        for stack in range(limits.words + 1):
            if stack:
                self.settle(state, sentence, limits, decoder, words, stack)
            if state.counters[FULL] or stack == limits.words:
                return
            rank = 0
            while rank >= 0:
                go_on(stop)
                rank = expand_from(
                    state,
                    options,
                    decoder.automata,
                    decoder.lm_weights,
                    limits,
                    stack,
                    rank,
                    room,
                    decoder.slice,
                )
            if state.counters[FULL]:
                return

    def words_of(self, sentence: Sentence, decoder: Any) -> NDArray[np.int32]:
        """The option words of a sentence in each network: (networks, W)"""
        vocabulary = decoder.system.table.vocabulary
        known = len(vocabulary)
        distinct, where = np.unique(sentence.text, return_inverse=True)
        texts = [
            vocabulary[word] if word < known else sentence.outside[word - known] for word in distinct.tolist()
        ]
        with self.lock:
            return np.array(
                [[network.number(text) for text in texts] for network in self.networks], np.int32
            )[:, where]

    def settle(
        self,
        state: State,
        sentence: Sentence,
        limits: Limits,
        decoder: Any,
        words: NDArray[np.int32],
        stack: int,
    ) -> None:
        """Candidates of a stack: the best ones are scored by the networks and become hypotheses."""
        count = int(state.counters[CANDIDATES])
        chosen = np.flatnonzero(state.c_stack[:count] == stack).astype(np.int64)
        beam = self.config.neural_beam
        if 0 < beam < len(chosen):
            chosen = np.sort(chosen[np.argpartition(-state.c_total[chosen], beam)[:beam]])
        options = sentence.options
        gains = np.zeros(len(chosen))
        hashes = np.zeros(len(chosen), np.int64)
        for network, weight, ids in zip(self.networks, self.weights, words, strict=True):
            size = int(options.length[state.c_option[chosen]].sum()) + (
                len(chosen) if stack == limits.words else 0
            )
            contexts, asked, owner = (
                np.empty((size, network.order - 1), np.int64),
                np.empty(size, np.int64),
                np.empty(size, np.int64),
            )
            gather(
                state,
                options.start,
                options.length,
                ids,
                chosen,
                stack == limits.words,
                BOS,
                EOS,
                contexts,
                asked,
                owner,
                hashes,
            )
            scores = np.empty(size)
            for at in range(0, size, self.config.buffer):
                part = slice(at, at + self.config.buffer)
                scores[part] = network.score(contexts[part], asked[part])
            gains += weight * np.bincount(owner, scores, len(chosen))
        add_all(state, options.forward_id, decoder.automata, limits, chosen, gains, hashes)

    # ---- for the plain search ------------------------------------------------------------------------------

    def start(self) -> tuple[tuple[int, ...], ...]:
        return tuple((BOS,) * (network.order - 1) for network in self.networks)

    def at_once(
        self, history: tuple[tuple[int, ...], ...], words: Sequence[str], complete: bool
    ) -> tuple[float, tuple[tuple[int, ...], ...]]:
        """The weighted score of words after a history, and the history after them."""
        total, after = 0.0, []
        for network, weight, past in zip(self.networks, self.weights, history, strict=True):
            ids = [network.number(word) for word in words]
            asked = [*ids, EOS] if complete else ids
            line, size = [*past, *asked], network.order - 1
            contexts = np.array([line[place : place + size] for place in range(len(asked))], np.int64)
            total += weight * float(network.score(contexts, np.array(asked, np.int64)).sum())
            after.append(tuple([*past, *ids][len(ids) :]))
        return total, tuple(after)

    def features(self, texts: Sequence[Sequence[str]]) -> dict[str, Any]:
        """log p of whole translations, natural: name -> (N, 1)"""
        found = {}
        for network in self.networks:
            with self.lock:
                lines = [[network.number(word) for word in text] for text in texts]
            contexts, words = ngrams(lines, network.order)
            owner = np.repeat(np.arange(len(lines)), [len(line) + 1 for line in lines])
            found[network.name] = np.bincount(owner, network.score(contexts, words), len(lines))[:, None]
        return found


@njit
def gather(
    state: Any,
    start: Any,
    length: Any,
    ids: Any,
    chosen: Any,
    complete: bool,
    first: int,
    last: int,
    contexts: Any,
    asked: Any,
    owner: Any,
    hashes: Any,
) -> None:
    """The n-grams of candidates: contexts (G, order - 1), words (G,), candidate (G,). `hashes`: of the words
    remembered after each."""
    size = contexts.shape[1]
    past = np.empty(size + 64, np.int64)
    count = 0
    for number in range(len(chosen)):
        candidate = chosen[number]
        option = state.c_option[candidate]
        many = length[option]
        if size + many + 1 > len(past):
            past = np.empty(size + 2 * many + 64, np.int64)
        place, here = size - 1, state.c_parent[candidate]
        while place >= 0:  # backwards through the phrases before
            if here == 0:
                past[place] = first
                place -= 1
                continue
            before = state.option[here]
            for back in range(length[before] - 1, -1, -1):
                if place < 0:
                    break
                past[place] = ids[start[before] + back]
                place -= 1
            here = state.parent[here]
        for word in range(many + 1 if complete else many):
            past[size + word] = ids[start[option] + word] if word < many else last
            for column in range(size):
                contexts[count, column] = past[word + column]
            asked[count] = past[size + word]
            owner[count] = number
            count += 1
        mixed = hashes[number]
        for column in range(size):
            mixed = (mixed ^ (mixed >> np.int64(31))) * MIX + past[many + column] + np.int64(1)
        hashes[number] = mixed


@njit
def add_all(state: Any, forward_id: Any, lms: Any, limits: Any, chosen: Any, gains: Any, hashes: Any) -> None:
    for number in range(len(chosen)):
        candidate = chosen[number]
        parent, coverage = state.c_parent[candidate], state.c_coverage[candidate]
        score = state.c_score[candidate] + gains[number]
        total = score + state.future[coverage]
        if total < state.worst[state.covered[coverage]]:
            continue
        add(
            state, lms, limits, forward_id, parent, state.c_option[candidate], coverage,
            state.c_begin[candidate], state.c_end[candidate], score, total,
            state.c_context[candidate], hashes[number], score - state.score[parent],
        )  # fmt: skip
        if state.counters[FULL]:
            return
