"""Language models that score word by word, and the model, task and listing of a search, which compiled and
plain search share."""

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from nmt.io import files, mapped
from nmt.ngram import count_models, trie, trie_build
from nmt.ngram.count_models import KenLM
from nmt.ngram.text_scorer import LN10
from nmt.ngram.trie import TrieModel, WordIds
from nmt.ngram.word_classes import WordClasses
from smt_bridge.decoder.arrays import Floats, Int32s, OptionArrays, SearchParameters
from smt_bridge.decoder.automaton import (
    Automaton,
    PlainNodes,
    build_automaton,
    phrase_scores,
    plain_nodes,
    read_only,
    sentence_score,
)
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.features.protocol import SearchFeature, SentenceScorer, StatefulFeature
from smt_bridge.decoder.sentence import Sentence

# ---- language models ---------------------------------------------------------------------------------------

State = TypeVar("State")  # the part of the history that the model needs; hashable


class WordLM(ABC, Generic[State]):
    """A language model that scores word by word, in natural logarithms. It has its own word ids, from
    `number`. Several threads may share one."""

    automaton: Automaton | None = None  # arrays for compiled search, if the model has them

    @abstractmethod
    def number(self, word: str) -> int:
        """The id of a word; that of <unk> for an unknown word, if the model has one id for all."""

    @abstractmethod
    def knows(self, word: str) -> bool:
        """Whether a word is in the vocabulary."""

    @abstractmethod
    def start(self) -> State:
        """The state at the start of a sentence, after <s>."""

    @abstractmethod
    def nowhere(self) -> State:
        """The state without any context, not even the start of a sentence."""

    @abstractmethod
    def step(self, state: State, word: int) -> tuple[float, State]:
        """Log p of a word in a state; also returns the state after it."""

    @abstractmethod
    def end(self, state: State) -> tuple[float, State]:
        """Log p of the end of the sentence; also returns a state for recombination."""

    def walk(self, state: State, words: Sequence[int]) -> tuple[float, State]:
        """Log p of words read one after the other from a state; also returns the state after them."""
        total = 0.0
        for word in words:
            more, state = self.step(state, word)
            total += more
        return total, state

    def phrase(self, words: Sequence[int]) -> float:
        """Log p of words without context."""
        return self.walk(self.nowhere(), words)[0]

    def phrases(self, ids: Int32s, starts: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Log p of the phrases ids[starts[i] : starts[i + 1]] without context; also returns upper bounds for
        any context: (N,), (N,)"""
        scores = np.array([self.phrase(ids[a:b].tolist()) for a, b in pairwise(starts)])
        return scores, np.zeros(len(scores))

    def sentence(self, words: Sequence[int], complete: bool = True) -> float:
        """Log p of a sentence. `complete`: include its end."""
        total, state = self.walk(self.start(), words)
        return total + self.end(state)[0] if complete else total


AnyWordLM = WordLM[Any]  # with any type of state


class AutomatonLM(WordLM[int]):
    """An n-gram model as an automaton, for compiled and plain search."""

    automaton: Automaton

    def __init__(self, model: TrieModel) -> None:
        self.model, self.automaton = model, build_automaton(model)
        self.most = read_only(model.most)
        self.ids = WordIds(model.pool, model.unknown)

    def number(self, word: str) -> int:
        return self.ids[word]

    def knows(self, word: str) -> bool:
        return self.number(word) != self.automaton.unknown

    def start(self) -> int:
        return int(self.automaton.start_state)

    def nowhere(self) -> int:
        return 0

    @cached_property
    def nodes(self) -> PlainNodes:
        """The model as lists, converted when plain search first needs it."""
        return plain_nodes(self.model)

    def step(self, state: int, word: int) -> tuple[float, int]:
        """Like `automaton.step`, but uses a dictionary, which is faster in plain Python."""
        nodes, total = self.nodes, 0.0
        node = None
        while node is None and state:
            node = nodes.children.get(state * self.automaton.words + word)
            if node is None:
                total += nodes.backoff[state]
                state = nodes.link[state]
        node = word + 1 if node is None else node
        return total + nodes.log_prob[node], nodes.state[node]

    def end(self, state: int) -> tuple[float, int]:
        return self.step(state, self.automaton.end)

    def phrase(self, words: Sequence[int]) -> float:
        return float(self.phrases(np.array(words, np.int32), np.array([0, len(words)]))[0][0])

    def phrases(self, ids: Int32s, starts: NDArray[np.int64]) -> tuple[Floats, Floats]:
        return phrase_scores(self.automaton, self.most, ids, starts)

    def sentence(self, words: Sequence[int], complete: bool = True) -> float:
        return float(sentence_score(self.automaton, np.array(words, np.int32), complete))


class ClassLM(AutomatonLM):
    """An n-gram model of word classes (Brown et al. 1992): the id of a word is that of its class. A word
    without a class, or of a class that the model lacks, is <unk>."""

    def __init__(self, model: TrieModel, classes: WordClasses) -> None:
        super().__init__(model)
        numbers = {index: self.ids[str(index)] for index in set(classes.values())}
        self.numbers = {word: numbers[index] for word, index in classes.items()}

    def number(self, word: str) -> int:
        return self.numbers.get(word, self.automaton.unknown)


class KenLMWords(WordLM[Hashable]):
    """A binary model of KenLM, which only plain search can use. Its states can be compared and hashed, as
    recombination requires."""

    def __init__(self, model: KenLM) -> None:
        self.kenlm, self.model = model.kenlm, model.model
        self.words: list[str] = []
        self.ids: dict[str, int] = {}
        self.lock = threading.Lock()

    def number(self, word: str) -> int:
        if word not in self.ids:
            with self.lock:  # two threads must not assign the same number
                if word not in self.ids:
                    self.words.append(word)
                    self.ids[word] = len(self.words) - 1
        return self.ids[word]

    def knows(self, word: str) -> bool:
        return word in self.model

    def start(self) -> Hashable:
        state: Hashable = self.kenlm.State()
        self.model.BeginSentenceWrite(state)
        return state

    def nowhere(self) -> Hashable:
        state: Hashable = self.kenlm.State()
        self.model.NullContextWrite(state)
        return state

    def step(self, state: Hashable, word: int) -> tuple[float, Hashable]:
        after: Hashable = self.kenlm.State()
        return LN10 * self.model.BaseScore(state, self.words[word], after), after

    def end(self, state: Hashable) -> tuple[float, Hashable]:
        return float(LN10 * self.model.BaseScore(state, "</s>", self.kenlm.State())), state


def load_lm(path: str, cache: Cache | None = None) -> AnyWordLM:
    """Load an ARPA file or a folder of nmt-ngram compile as an automaton, or a binary file of KenLM, which
    only plain search can use. `cache`: None to parse an ARPA file each time. DataError for anything else,
    ConfigError for a KenLM binary if kenlm is not installed, UserError if the disk of the cache is full."""
    model = load_trie(path, cache)
    if model is None:
        return KenLMWords(cast(KenLM, count_models.load_count_model(path)))
    return AutomatonLM(model)


def load_trie(path: str, cache: Cache | None) -> TrieModel | None:
    """Load an ARPA file or a folder of nmt-ngram compile, else None. `cache`, errors: see `load_lm`."""
    if mapped.is_mapped(path):
        return trie.load_trie(path)
    if not Path(path).is_file() or not count_models.is_arpa(path):
        return None

    def make() -> TrieModel:
        if cache is None:
            return trie_build.compile_model(count_models.read_arpa(path))
        with files.naming_unwritten(cache.folder):
            storage = cache.storage([path])
            return trie_build.compile_model(count_models.read_arpa(path, storage), 0, storage)

    return cache.keep([path], make, TrieModel) if cache else make()


# ---- model and task ----------------------------------------------------------------------------------------

F = TypeVar("F", bound=SearchFeature)


@dataclass(frozen=True)
class WeightedFeature(Generic[F]):
    """A feature and its weights (K,)."""

    feature: F
    weights: Floats


@dataclass(frozen=True)
class SearchModel:
    """The language models and stateful features with their weights: all scores that depend on the previous
    words. Stateful features with weight 0 are left out."""

    word_lms: Sequence[AnyWordLM]
    lm_weights: Floats  # (L,)
    stateful: Sequence[WeightedFeature[StatefulFeature]]
    beam: int  # candidates of a stack that stateful features score; 0: all

    @property
    def automata(self) -> tuple[Automaton, ...] | None:
        """The language models in the form for compiled search; None unless all of them are automata."""
        automata = tuple(lm.automaton for lm in self.word_lms if lm.automaton is not None)
        return automata if len(automata) == len(self.word_lms) else None

    @property
    def stand_in(self) -> float:
        """Additional weight of the first language model while it stands in for stateful features that have
        not scored yet: the sum of their `stand_in` x weight."""
        return sum(map(self.stand_in_weight, range(len(self.stateful))), 0.0)  # float: compiled code is typed

    @cached_property
    def early_weights(self) -> Floats:
        """Weights of the language models (L,) before stateful features have scored, `stand_in` included."""
        weights = self.lm_weights.copy()
        weights[0] += self.stand_in
        return weights

    def stand_in_weight(self, number: int) -> float:
        """The contribution of the stateful feature of index `number` to `stand_in`."""
        weighted = self.stateful[number]
        return float(weighted.feature.stand_in * weighted.weights[0])

    @cached_property
    def order(self) -> list[int]:
        """Indices of the stateful features in the order in which they score: widest beam first."""
        beams = [weighted.feature.beam or math.inf for weighted in self.stateful]
        return sorted(range(len(beams)), key=lambda number: -beams[number])


@dataclass(frozen=True)
class SearchTask:
    """A sentence prepared for the search."""

    sentence: Sentence
    options: OptionArrays
    parameters: SearchParameters
    model: SearchModel
    scorers: Sequence[SentenceScorer]  # one for each of model.stateful


class Listing(NamedTuple):
    """Number and kind of the derivations to list."""

    nbest: int  # size of the n-best list; 0: only the best derivation
    distinct: bool  # whether to list each text only once
    factor: int  # with `distinct`: examine at most nbest x factor derivations
