"""An encoder-decoder as a feature of the search, with or without attention (Junczys-Dowmunt et al. 2016): log
p of a phrase's target words given the source sentence and the previous target words.

NeuralTranslation name=NMT0 path=RUN_DIR [neural-recombine=false] [neural-beam=50] [restricted=true]

O: number of options of a sentence; U: units of the longest option.
"""

import logging
import threading
from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from nmt.text.vocab import EOS, UNK
from smt_bridge.decoder.arrays import Floats, Int32s, Int64s
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.features import load_translator
from smt_bridge.decoder.features.protocol import Candidates, Gains, SentenceScorer, StatefulFeature
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.table import PhraseTable
from smt_bridge.moses.ini import FeatureLine

if TYPE_CHECKING:
    from nmt.search.prefix_states import PrefixStates

log = logging.getLogger(__name__)

COVERED = 0.9  # minimum share of the table's target words that a run should know


class TranslationNetwork(NamedTuple):
    """A translator with its text pipelines."""

    source: Callable[[list[str]], Sequence[int]]  # words of a sentence -> ids
    target: Callable[[list[str]], list[int]]  # target words -> ids
    # source ids, allowed target ids, whether the softmax is restricted to these -> prefix states
    prefixes: Callable[[Sequence[int], Sequence[int], bool], "PrefixStates[Any]"]
    raw: bool  # whether it writes raw text: units depend on the words before and after


class NeuralTranslation(StatefulFeature):
    """An encoder-decoder as a feature of the search. It is `lossy` if hypotheses are recombined even where
    the network has read different words, or if the softmax is restricted."""

    arguments: ClassVar[Set[str]] = frozenset({"path", "neural-recombine", "neural-beam", "restricted"})
    scores: int = 1
    # Knowing the source, the network gives words higher probabilities than a language model does. With 0.5, a
    # beam of 50 finds translations with higher totals than with 0 or 0.3 (Multi30k, network of perplexity 8).
    stand_in: ClassVar[float] = 0.5
    needs_torch: ClassVar[bool] = True

    def __init__(self, line: FeatureLine, network: TranslationNetwork) -> None:
        self.name, self.path, self.network = line.name, line.options["path"], network
        self.recombine = line.truth("neural-recombine", True)
        self.restricted = line.truth("restricted")
        self.beam = line.count("neural-beam")
        self.lossy = self.recombine or self.restricted
        self.units: dict[str, list[int]] = {}
        self.checked = False
        self.lock = threading.Lock()  # guards `units` and `checked`

    @classmethod
    def load(cls, line: FeatureLine, config: DecoderConfig) -> Self:
        """Load the translator of a feature line. Raises the errors of `load_translator`."""
        return cls(line, load_translator(line.options["path"], line.truth("restricted")))

    def start(self, sentence: Sentence) -> SentenceScorer:
        with self.lock:
            if not self.checked:
                self.checked = True
                self.check_coverage(sentence.table)
        return RawTextScorer(self, sentence) if self.network.raw else NeuralTranslationScorer(self, sentence)

    def unit_ids(self, word: str) -> list[int]:
        """The ids of a target word's units, cached."""
        with self.lock:
            ids = self.units.get(word)
            if ids is None:
                ids = self.units[word] = self.network.target([word])
        return ids

    def check_coverage(self, table: PhraseTable) -> None:
        """Warn if the run lacks many target words of the table: another language, case or tokenization."""
        counts = np.bincount(table.target_word[1:], minlength=len(table.words))
        missing = np.zeros(len(counts), bool)
        for word in np.flatnonzero(counts).tolist():
            missing[word] = UNK in self.network.target([table.words[word]])
        share = 1 - float(counts[missing].sum()) / max(1, int(counts.sum()))
        if share < COVERED:
            log.warning(
                "%s: %s knows %.0f%% of the target words of the phrase table, all others are UNK to it; were "
                "both made of text with the same tokenization and case?",
                self.name,
                self.path,
                100 * share,
            )


class NeuralTranslationScorer(SentenceScorer):
    """Scores one sentence. A state is the number of a prefix, the target words so far, in `prefixes`."""

    def __init__(self, feature: NeuralTranslation, sentence: Sentence) -> None:
        self.feature = feature
        self.source = feature.network.source(sentence.words)
        distinct, inverse = np.unique(sentence.text, return_inverse=True)
        of_word = [feature.unit_ids(sentence.word(word)) for word in distinct.tolist()]
        self.token_ids = sorted({EOS}.union(*of_word))
        column_of = {token: column for column, token in enumerate(self.token_ids)}
        columns = [[column_of[unit] for unit in units] for units in of_word]
        text = inverse.tolist()
        self.units = grid(
            [
                [column for word in text[part] for column in columns[word]]
                for part in sentence.slices(range(sentence.size))
            ]
        )
        self.prefixes = feature.network.prefixes(self.source, self.token_ids, feature.restricted)
        self.exact: PrefixStates[Any] | None = None if feature.restricted else self.prefixes

    def gains(self, candidates: Candidates) -> Gains:
        values, states = self.prefixes.follow(
            candidates.state, self.units[candidates.option], candidates.complete
        )
        return Gains(values[:, None], states, np.zeros_like(states) if self.feature.recombine else None)

    def preview(self, candidates: Candidates) -> tuple[Floats, Floats]:
        """Score only the first unit of each candidate, which is cheap: its distribution depends only on the
        parent hypothesis, so that candidates share it. The stand-in represents the other units, and the end
        of the sentence."""
        units = self.units[candidates.option]
        values, _ = self.prefixes.follow(candidates.state, units[:, :1], False)
        lengths = (units >= 0).sum(1) + candidates.complete
        return values[:, None], 1 - 1 / np.maximum(lengths, 1)

    def of_derivations(self, paths: Sequence[Int32s]) -> Floats:
        """Log p of the derivations under the full softmax, as smt-rescore computes it: (derivations, 1)"""
        if self.exact is None:
            self.exact = self.feature.network.prefixes(self.source, self.token_ids, False)
        texts = [self.units[path] for path in paths]
        units = grid([text[text >= 0].tolist() for text in texts])
        values, _ = self.exact.follow(np.full(len(paths), self.exact.root), units, True)
        return values[:, None]


ENDED = -1  # in place of a word: the text is complete


class RawTextScorer(SentenceScorer):
    """Scores one sentence with a network that writes raw text. A state is the number of a sequence of words.

    The units of some words depend on their neighbors: a comma joins the word before, `l'` the word after, and
    SentencePiece may cut what is joined in another way. So a hypothesis is worth log p of the units of its
    words, detokenized as if nothing followed, and a candidate gains the difference to its parent. At the end
    of the sentence the differences add up to log p of the whole text."""

    def __init__(self, feature: NeuralTranslation, sentence: Sentence) -> None:
        self.feature, self.sentence = feature, sentence
        self.source = feature.network.source(sentence.words)
        self.phrases = [tuple(sentence.text[part].tolist()) for part in sentence.slices(range(sentence.size))]
        self.alone = [feature.network.target(list(map(sentence.word, phrase))) for phrase in self.phrases]
        self.numbers: dict[tuple[int, ...], int] = {(): self.start_state}
        self.texts: list[tuple[int, ...]] = [()]  # of each state: its words
        self.values = [0.0]  # of each state: natural log p of its units
        self.use_units({EOS}.union(*self.alone))

    def use_units(self, token_ids: Set[int]) -> None:
        """Begin new prefixes, in which these units may occur."""
        self.columns = {token: column for column, token in enumerate(sorted(token_ids))}
        self.prefixes = self.feature.network.prefixes(self.source, list(self.columns), False)
        self.nodes: dict[int, int] = {}  # of states: the prefix of their units

    def log_probs(self, texts: Sequence[tuple[int, ...]], end: bool) -> tuple[Floats, Int64s]:
        """Natural log p of the units of texts, (N,), and their prefixes, (N,). `end`: with the end symbol."""
        word, target = self.sentence.word, self.feature.network.target
        of_text = [target(list(map(word, text))) for text in texts]
        if not self.columns.keys() >= (needed := set[int]().union(*of_text)):
            self.use_units(self.columns.keys() | needed)
        units = grid([[self.columns[unit] for unit in units] for units in of_text])
        return self.prefixes.follow(np.full(len(texts), self.prefixes.root), units, end)

    def gains(self, candidates: Candidates) -> Gains:
        parents = candidates.state.tolist()
        texts = [
            self.texts[parent] + self.phrases[option]
            for parent, option in zip(parents, candidates.option.tolist(), strict=True)
        ]
        values, nodes = self.log_probs(texts, candidates.complete)
        if candidates.complete:
            texts = [(*text, ENDED) for text in texts]
        rows = zip(texts, values.tolist(), nodes.tolist(), strict=True)
        states = np.array([self.number(text, value, node) for text, value, node in rows], np.int64)
        totals = np.array(self.values)
        keys = np.zeros_like(states) if self.feature.recombine else None
        return Gains((totals[states] - totals[candidates.state])[:, None], states, keys)

    def number(self, text: tuple[int, ...], value: float, node: int) -> int:
        """The number of a state, which is new if no state has these words. `value`: log p of its units;
        `node`: their prefix."""
        number = self.numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
            self.values.append(value)
        self.nodes[number] = node
        return number

    def preview(self, candidates: Candidates) -> tuple[Floats, Floats]:
        """Score only the first unit of each candidate, as if it began after a blank. The stand-in represents
        the other units, and the end of the sentence."""
        parents = candidates.state.tolist()
        missing = sorted({parent for parent in parents if parent not in self.nodes})
        if missing:
            _, nodes = self.log_probs([self.texts[parent] for parent in missing], False)
            self.nodes.update(zip(missing, nodes.tolist(), strict=True))
        alone = [self.alone[option] for option in candidates.option.tolist()]
        first = grid([[self.columns[unit] for unit in units[:1]] for units in alone])
        after = np.array([self.nodes[parent] for parent in parents], np.int64)
        values, _ = self.prefixes.follow(after, first, False)
        lengths = np.array([len(units) for units in alone]) + candidates.complete
        return values[:, None], 1 - 1 / np.maximum(lengths, 1)

    def of_derivations(self, paths: Sequence[Int32s]) -> Floats:
        """Log p of the derivations' detokenized texts, as smt-rescore computes it: (derivations, 1)"""
        texts = [tuple(word for option in path for word in self.phrases[option]) for path in paths]
        return self.log_probs(texts, True)[0][:, None]


def grid(texts: Sequence[Sequence[int]]) -> Int64s:
    """Stack sequences of ids as rows padded with -1: (texts, length of the longest)"""
    lengths = np.array([len(text) for text in texts])
    rows = np.full((len(texts), int(lengths.max(initial=0))), -1, np.int64)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = [unit for text in texts for unit in text]
    return rows
