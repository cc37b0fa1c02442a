"""What n-gram networks inside the search have in common: hypotheses that remember their last words, and the
n-grams of many candidates.

N candidates, G n-grams; n order.
"""

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nmt.errors import ConfigError
from nmt.text.pipeline import TextPipeline
from nmt.text.vocab import BOS, EOS, Vocab
from smt_bridge.decoder.arrays import Floats, Int32s, Int64s
from smt_bridge.decoder.automaton import MIX
from smt_bridge.decoder.compiled import njit
from smt_bridge.decoder.features.protocol import Candidates
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.moses.words import units

END = -1  # in NGrams.place: the end symbol, which is no word of an option


class WordNumbers:
    """A network's ids of words, which are unescaped; several threads may ask."""

    def __init__(self, path: str, text: TextPipeline, vocab: Vocab) -> None:
        """`path`: of the run, for messages."""
        self.path, self.text, self.vocab = path, text, vocab
        self.ids: dict[str, int] = {}
        self.lock = threading.Lock()

    def __call__(self, word: str) -> int:
        """ConfigError for a network of subwords."""
        with self.lock:
            found = self.ids.get(word)
            if found is None:
                of_word = units([word], self.text)
                if len(of_word) != 1:
                    raise ConfigError(
                        f"{self.path}: splits words into subwords; searching needs a model of whole words"
                    )
                found = self.ids[word] = int(self.vocab.encode(of_word)[0])
        return found


class NGrams(NamedTuple):
    """The n-grams of candidates, or of derivations."""

    contexts: Int64s  # (G, n - 1)
    words: Int64s  # (G,)
    owner: Int64s  # (G,) whose it is
    place: Int64s  # (G,) of the word in Sentence.text; END for the end symbol

    def sums(self, scores: Floats, count: int) -> Floats:
        """Scores of the n-grams summed for each of their owners: (G,) -> (count, 1)"""
        return np.bincount(self.owner, scores, count).astype(np.float64)[:, None]


class Histories:
    """The last n - 1 words of the hypotheses of a sentence. A state is a row; hypotheses recombine where
    these words are equal."""

    def __init__(self, sentence: Sentence, ids: Int32s, order: int) -> None:
        """`ids`: Sentence.text in the network's vocabulary."""
        self.sentence, self.ids = sentence, ids
        self.rows = np.full((256, order - 1), BOS, np.int64)  # row 0: before the first word
        self.used = 1

    def extended(self, candidates: Candidates) -> tuple[NGrams, Int64s, Int64s]:
        """The n-grams of candidates, their states, and keys, equal for equal last words: (N,), (N,)"""
        sentence, option = self.sentence, candidates.option
        count, size = len(option), self.rows.shape[1]
        while self.used + count > len(self.rows):
            self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
        ngrams = int(sentence.length[option].sum()) + (count if candidates.complete else 0)
        found = NGrams(np.empty((ngrams, size), np.int64), *np.empty((3, ngrams), np.int64))
        states, keys = np.arange(self.used, self.used + count), np.empty(count, np.int64)
        gather(self.rows, candidates.state, states, option, sentence.start, sentence.length, self.ids,
            EOS if candidates.complete else -1, found.contexts, found.words, found.owner, found.place,
            keys)  # fmt: skip
        self.used += count
        return found, states, keys

    def of_derivations(self, paths: Sequence[Int32s]) -> NGrams:
        """All n-grams of derivations, given by their options in target order."""
        size, before = self.rows.shape[1], self.rows[0]
        places = [
            np.concatenate([np.arange(one.start, one.stop) for one in self.sentence.places(path)])
            for path in paths
        ]
        lines = [np.concatenate([before, self.ids[place], [EOS]]) for place in places]
        windows = [np.lib.stride_tricks.sliding_window_view(line[:-1], size) for line in lines]
        return NGrams(
            np.concatenate(windows),
            np.concatenate([line[size:] for line in lines]),
            np.repeat(np.arange(len(lines)), [len(line) - size for line in lines]),
            np.concatenate([part for place in places for part in (place, [END])]).astype(np.int64),
        )


@njit
def gather(histories: Int64s, before: Int64s, after: Int64s, option: Int64s, start: Int32s, length: Int32s,
ids: Int32s, last: int, contexts: Int64s, words: Int64s, owner: Int64s, place: Int64s,
keys: Int64s) -> None:  # fmt: skip
    """The n-grams of candidates: contexts (G, n - 1), words, candidates and places (G,). The words remembered
    after candidate i go to histories[after[i]], their hash to keys[i]. `last`: the end symbol, -1 for
    none."""
    size = histories.shape[1]
    line = np.empty(size + 64, np.int64)
    count = 0
    for number in range(len(option)):
        first, many = start[option[number]], length[option[number]]
        if size + many + 1 > len(line):
            line = np.empty(size + 2 * many + 64, np.int64)
        line[:size] = histories[before[number]]
        for word in range(many):
            line[size + word] = ids[first + word]
        line[size + many] = last
        for word in range(many + 1 if last >= 0 else many):
            contexts[count] = line[word : word + size]
            words[count] = line[word + size]
            owner[count] = number
            place[count] = first + word if word < many else np.int64(-1)
            count += 1
        histories[after[number]] = line[many : many + size]
        key = np.int64(0)
        for column in range(size):
            key = (key ^ (key >> np.int64(31))) * MIX + line[many + column] + np.int64(1)
        keys[number] = key
