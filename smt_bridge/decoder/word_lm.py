"""Language models word by word, for plain search; probabilities are natural logarithms."""

import threading
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from nmt.ngram.arpa import LN10
from nmt.ngram.count_model import KenLM
from smt_bridge.decoder.arrays import Floats, Int32s
from smt_bridge.decoder.automaton import Automaton, CachedNgramModel, phrase_scores, sentence_score

State = TypeVar("State")  # what of a history is remembered; hashable


class WordLM(Protocol[State]):
    """A language model word by word. Words have ids of the model's own."""

    @property
    def automaton(self) -> Automaton | None:
        """Arrays for compiled search; None if the model has none."""
        ...

    def number(self, word: str) -> int: ...

    def knows(self, word: str) -> bool: ...

    def begin(self) -> State:
        """State at the start of a sentence, after <s>."""
        ...

    def nowhere(self) -> State:
        """State of a phrase without context."""
        ...

    def step(self, state: State, word: int) -> tuple[float, State]:
        """log p of a word, and the state after it."""
        ...

    def end(self, state: State) -> tuple[float, State]:
        """Log p of the end of the sentence, and a state for recombination."""
        ...

    def phrases(self, ids: Int32s, starts: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Log p of phrases ids[starts[i] : starts[i + 1]] without context, and an upper bound of it in any
        context: (N,), (N,)"""
        ...

    def sentence(self, words: Sequence[int], complete: bool = True) -> float:
        """log p of a sentence; without its end where it is not `complete`."""
        ...


AnyWordLM = WordLM[Any]  # whatever its states are


def walk(lm: WordLM[State], state: State, words: Sequence[int]) -> tuple[float, State]:
    """Log p of words after a state, and the state after them."""
    total = 0.0
    for word in words:
        more, state = lm.step(state, word)
        total += more
    return total, state


def phrase_score(lm: WordLM[State], words: Sequence[int]) -> float:
    """Log p of words without context."""
    return walk(lm, lm.nowhere(), words)[0]


class AutomatonLM:
    """An n-gram model in the arrays of an automaton."""

    def __init__(self, model: CachedNgramModel) -> None:
        self.model, self.automaton = model, model.automaton
        self.ids = {word: number for number, word in enumerate(model.vocabulary)}
        self.nodes: dict[int, int] | None = None

    def number(self, word: str) -> int:
        return self.ids.get(word, self.automaton.unknown)

    def knows(self, word: str) -> bool:
        return self.number(word) != self.automaton.unknown

    def begin(self) -> int:
        return int(self.automaton.begin)

    def nowhere(self) -> int:
        return int(self.automaton.root)

    def step(self, state: int, word: int) -> tuple[float, int]:
        """Look up the word in a dictionary; same result as `automaton.step`."""
        lm, total = self.automaton, 0.0
        if self.nodes is None:
            occupied = lm.keys >= 0
            self.nodes = dict(zip(lm.keys[occupied].tolist(), lm.values[occupied].tolist(), strict=True))
        node = None
        while node is None and state != lm.root:
            node = self.nodes.get(state * lm.words + word)
            if node is None:
                total += float(lm.backoff[state])
                state = int(lm.shorter[state])
        node = word if node is None else node
        return total + float(lm.log_prob[node]), int(lm.state[node])

    def end(self, state: int) -> tuple[float, int]:
        return self.step(state, self.automaton.end)

    def phrases(self, ids: Int32s, starts: NDArray[np.int64]) -> tuple[Floats, Floats]:
        return phrase_scores(self.automaton, ids, starts)

    def sentence(self, words: Sequence[int], complete: bool = True) -> float:
        return float(sentence_score(self.automaton, np.array(words, np.int32), complete))


class KenLMWords:
    """A binary model of KenLM, whose states compare as they should."""

    automaton = None

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

    def phrases(self, ids: Int32s, starts: NDArray[np.int64]) -> tuple[Floats, Floats]:
        scores = np.array([phrase_score(self, ids[a:b].tolist()) for a, b in pairwise(starts)])
        return scores, np.zeros(len(scores))

    def sentence(self, words: Sequence[int], complete: bool = True) -> float:
        total, state = walk(self, self.begin(), words)
        return total + self.end(state)[0] if complete else total
