"""Sentences in, best derivations out: a system with weights, ready to translate. Several threads may share
one decoder.

decoder = Decoder(system.load("model"), DecoderConfig(stack=100))
decoder.translate("ein haus").text
"""

import logging
import math
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt import nbest
from nmt.data import long_lines
from nmt.errors import DataError
from nmt.nbest import Hypothesis
from nmt.numbers import shown
from smt_bridge.decoder import automaton, feature_values, forced, plain, xml_input
from smt_bridge.decoder.compiled import HAVE_NUMBA, go_on
from smt_bridge.decoder.config import WIDEST, DecoderConfig, search_settings
from smt_bridge.decoder.constraints import constraints
from smt_bridge.decoder.derivations import best_option_path, derivations
from smt_bridge.decoder.feature_lines import UNKNOWN
from smt_bridge.decoder.feature_values import sums
from smt_bridge.decoder.search import FULL, SLICE, Int32s, Limits, Options, State, allocate, search, select
from smt_bridge.decoder.sentence import (
    UNKNOWN_WORD,
    Extra,
    Gathered,
    Sentence,
    future_costs,
    pairs,
    places,
    spans,
    target_words,
)
from smt_bridge.decoder.system import CountLM, System, nothing
from smt_bridge.decoder.xml_input import Marked, Markup
from smt_bridge.weights import Weights

log = logging.getLogger("nmt.decode")

Floats = NDArray[np.float64]
NO_ROWS = np.zeros(0, np.int64)
DIGITS = set("0123456789")
EPSILON = "*EPS*"  # Moses' empty word: dropped where the table does not have it
UNLIMITED_FACTOR = 1000  # what Moses takes for [n-best-factor] 0
AHEAD = 8  # sentences in hand for each worker


@dataclass
class Derivation:
    """One way to translate a sentence."""

    options: NDArray[np.int32]  # of the sentence, in target order
    text: list[str]
    features: Floats  # (D,) in the order of System.sizes
    total: float


@dataclass
class Translation:
    """What became of a sentence: derivations, best first. An empty sentence has one, without words."""

    sentence: Sentence | None
    derivations: list[Derivation]

    @property
    def text(self) -> list[str]:
        return self.derivations[0].text


class Decoder:
    def __init__(
        self,
        system: System,
        config: DecoderConfig,
        weights: Weights | None = None,
        networks: Sequence[Any] = (),
    ) -> None:
        """`weights`: instead of the ini's. `networks`: the neural language models of the system, see
        neural.load.

        ConfigError for weights that do not fit the system.
        """
        config.check()
        self.system, self.config = system, config
        self.settings = search_settings(config, system.search)
        self.listing = plain.Listing(
            config.nbest, config.distinct, self.settings.nbest_factor or UNLIMITED_FACTOR
        )
        self.weights = dict(system.weights) if weights is None else system.with_weights(weights)
        table = system.table
        self.compiled = HAVE_NUMBA and all(isinstance(lm, CountLM) for lm in system.lms)
        self.longest = min(
            self.settings.max_phrase_length, max(source.count(b" ") + 1 for source in table.sources)
        )
        self.markup = Markup(
            self.settings.xml_input, self.settings.xml_brackets, self.settings.max_phrase_length
        )
        self.models = system.lms or [nothing()]
        self.lm_weights = np.array([self.weights[name][0] for name in system.lm_names] or [0.0])
        self.oov_weights = {
            model: self.weights[name][1]
            for model, name in enumerate(system.lm_names)
            if len(self.weights[name]) > 1
        }
        self.neural: Any = None
        self.networks = networks
        if networks:
            from smt_bridge.decoder.neural import Neural

            self.neural = Neural(networks, [self.weights[network.name][0] for network in networks], config)
        self.set_up_words()
        self.set_up_rows()
        self.local = threading.local()
        self.slice = SLICE

    def set_up_words(self) -> None:
        """The table's words in each language model."""
        self.automata: tuple[Any, ...] = ()
        self.word_of: list[plain.WordLM] = [plain.of(model) for model in self.models]
        self.numbers = {word: number for number, word in enumerate(self.system.table.vocabulary)}
        self.word_ids = np.array(
            [[lm.number(word) for word in self.system.table.vocabulary] for lm in self.word_of], np.int32
        ).reshape(len(self.models), -1)
        if self.compiled:
            self.automata = tuple(model.automaton for model in self.models)

    def set_up_rows(self) -> None:
        """What the weights make of each row, and the rows that the table limit leaves of each source, best
        first."""
        table, weight = self.system.table, self.weight
        lengths = np.diff(table.cut)[table.target]
        self.row_score = (
            table.scores @ np.array(self.weights[self.system.table_name])
            - weight("WordPenalty") * lengths
            + weight("PhrasePenalty")
        )
        self.row_score += self.set_up_oov()[table.target]
        estimates, bounds = np.zeros(len(table.cut) - 1), np.zeros(len(table.cut) - 1)
        for model, (lm, lm_weight) in enumerate(zip(self.word_of, self.lm_weights, strict=True)):
            ids = self.word_ids[model][table.words]
            alone, most = (
                automaton.phrase_scores(self.automata[model], ids, table.cut)
                if self.compiled
                else lm.phrases(ids, table.cut)
            )
            estimates += (
                lm_weight + (self.neural.stand_in if self.neural is not None and model == 0 else 0.0)
            ) * alone
            bounds += (
                lm_weight * most if lm_weight >= 0 else math.inf
            )  # a negative weight rewards unlikely words: no bound
        self.row_bound = np.maximum(bounds, estimates)[table.target]
        self.row_estimate = self.row_score + estimates[table.target]
        self.set_up_reordering()
        limit = min(
            (limit for limit in (self.settings.table_limit, self.settings.max_options) if limit),
            default=table.rows,
        )
        source_of = np.repeat(np.arange(len(table.starts) - 1), np.diff(table.starts))
        order = np.lexsort((-self.row_estimate, source_of))
        rank = np.arange(len(order)) - table.starts[source_of]  # `order` keeps sources together
        self.kept = order[rank < limit]
        kept_of = np.minimum(np.diff(table.starts), limit)
        self.kept_starts = np.concatenate([[0], np.cumsum(kept_of)])

    def set_up_oov(self) -> Floats:
        """What oov-feature=1 makes of each target phrase, weighted: words that a language model does not
        know, counted."""
        table, total = self.system.table, np.zeros(len(self.system.table.cut) - 1)
        for model, weight in self.oov_weights.items():
            knows = self.word_of[model].knows
            outside = np.array([not knows(word) for word in table.vocabulary], bool)
            counted = np.concatenate([[0], np.cumsum(outside[table.words])])
            total += weight * (counted[table.cut[1:]] - counted[table.cut[:-1]])
        return total

    def set_up_reordering(self) -> None:
        """Reordering of each row, as it is and weighted; `default_reordering` where the reordering table has
        no row."""
        table, system = self.system.table, self.system
        self.default_reordering = np.array(system.default_reordering)
        self.reordering: Any = (
            table.reordering if system.reordering_name else np.zeros((table.rows, 6), np.float32)
        )
        if self.default_reordering.any():
            self.reordering = np.where((table.forward < 0)[:, None], self.default_reordering, self.reordering)
        self.reordering_weights = (
            np.array(self.weights[system.reordering_name]) if system.reordering_name else np.zeros(6)
        )
        self.row_reordering = (self.reordering * self.reordering_weights).astype(np.float64)

    def weight(self, kind: str) -> float:
        """The weight of the one feature of a kind that has one score; 0 without it."""
        name = self.system.name(kind)
        return self.weights[name][0] if name else 0.0

    # ---- one sentence --------------------------------------------------------------------------------------

    def options(self, line: Marked, stop: threading.Event | None = None) -> Sentence:
        """The options of a line with at least one word."""
        longest = min(
            max([self.longest, *(option.last - option.begin + 1 for option in line.forced)]), len(line.words)
        )
        return self.scored(line, self.gathered(line, longest), longest, stop)

    def gathered(self, line: Marked, longest: int) -> Gathered:
        """Which options there are: rows of the table, translations that the line gives, and for a word
        without either the word itself."""
        found = Gathered()
        for begin, last, text in spans(line.words, longest):
            rows, extras = self.rows_of(text), list[Extra]()
            if line.forced:
                rows, extras = forced.options(
                    line.forced, self.markup.policy, self.system.table, text, begin, last, rows
                )
            if begin == last and not len(rows) and not extras:
                extras = [self.unknown_word(line.words[begin])]
            found.add(begin, last, rows, extras)
        return found

    def rows_of(self, source: bytes) -> NDArray[np.int64]:
        """The rows of a source phrase that the table limit leaves."""
        number = self.system.table.sources.get(source)
        return (
            NO_ROWS if number is None else self.kept[self.kept_starts[number] : self.kept_starts[number + 1]]
        )

    def unknown_word(self, word: str) -> Extra:
        """The word itself, or nothing where unknown words are dropped; numbers never are."""
        if word in ("", EPSILON) or (self.settings.drop_unknown and not DIGITS & set(word)):
            return Extra([], [])
        return Extra([word], [(0, 0)])

    def scored(
        self, line: Marked, gathered: Gathered, longest: int, stop: threading.Event | None = None
    ) -> Sentence:
        """Gathered options with their scores, as the search takes them."""
        table, extras, n = self.system.table, gathered.extras, len(line.words)
        rows = np.concatenate(gathered.rows)
        first, number, begin, last = places(gathered, n, longest)
        outside, extra_ids = self.word_numbers(extras)
        extra_cut = np.cumsum([0, *(len(extra.words) for extra in extras)])
        start, length, text = target_words(rows, table.target, table.cut, table.words, extra_cut, extra_ids)
        known = rows >= 0
        at = np.where(known, rows, 0)
        score, bound, estimate = self.row_score[at], self.row_bound[at], self.row_estimate[at]
        pair = pairs(rows, extras)
        paired, pair = pair >= 0, np.maximum(pair, 0)
        reordering = np.where(
            paired[:, None], self.row_reordering[pair], self.default_reordering * self.reordering_weights
        )
        lm_words = self.lm_words(text, outside)
        for option in np.flatnonzero(~known):
            score[option] = self.extra_score(extras[-1 - rows[option]])
            estimate[option] = score[option] + self.lm_estimate(
                lm_words[:, start[option] : start[option] + length[option]]
            )
            bound[option] = 0.0 if (self.lm_weights >= 0).all() else math.inf
        options = Options(
            score, bound, reordering[:, :3].copy(), reordering[:, 3:].copy(),
            np.where(paired, table.forward[pair], -1).astype(np.int32), start, length,
            lm_words, first, number, future_costs(n, longest, first, number, estimate, stop),
            constraints(n, line.walls, line.zones),
        )  # fmt: skip
        return Sentence(line.words, options, rows, extras, text, begin, last, outside, longest)

    def word_numbers(self, extras: Sequence[Extra]) -> tuple[list[str], Int32s]:
        """The words of extras that the vocabulary does not have, and the numbers of all their words, one
        after the other."""
        known, outside = self.numbers, dict[str, int]()
        ids = [
            known[word] if word in known else len(known) + outside.setdefault(word, len(outside))
            for extra in extras
            for word in extra.words
        ]
        return list(outside), np.array(ids, np.int32)

    def extra_score(self, extra: Extra) -> float:
        """The weighted score of an option outside the table, without language models."""
        score = self.weight("PhrasePenalty") - self.weight("WordPenalty") * len(extra.words)
        if extra.unknown:
            score += UNKNOWN_WORD * self.weight(UNKNOWN)
        for model, weight in self.oov_weights.items():
            score += weight * sum(not self.word_of[model].knows(word) for word in extra.words)
        if extra.scores is not None:
            score += float(extra.scores @ np.array(self.weights[self.system.table_name]))
        return score

    def lm_estimate(self, ids: Int32s) -> float:
        """What the language models give a phrase without context, weighted: (L, words) -> score"""
        alone = [lm.phrase(words.tolist()) for lm, words in zip(self.word_of, ids, strict=True)]
        return float(np.dot(self.lm_weights, alone)) + (
            self.neural.stand_in * alone[0] if self.neural is not None else 0.0
        )

    def lm_words(self, text: Any, outside: Sequence[str]) -> Any:
        """Words of the sentence's options in each language model: (L, W)"""
        vocabulary = len(self.system.table.vocabulary)
        ids = (
            self.word_ids[:, np.minimum(text, max(0, vocabulary - 1))]
            if vocabulary
            else np.zeros((len(self.models), len(text)), np.int32)
        )
        beyond = np.flatnonzero(text >= vocabulary)
        for model, lm in enumerate(self.word_of):
            ids[model, beyond] = [lm.number(outside[word]) for word in text[beyond] - vocabulary]
        return ids

    def limits(self, sentence: Sentence) -> Limits:
        """The limits of a sentence. An unlimited jump in a sentence too long for that becomes the longest
        that can be."""
        n, settings = len(sentence.words), self.settings
        distortion = settings.distortion_limit
        if n > WIDEST and not 0 <= distortion <= WIDEST:
            distortion = WIDEST
        return Limits(
            words=n,
            longest=sentence.longest,
            stack=settings.stack,
            beam=math.log(settings.beam_threshold) if settings.beam_threshold else -math.inf,
            distortion=distortion,
            distortion_weight=self.weight("Distortion"),
            early=settings.early_distortion_cost,
            reordering=bool(self.system.reordering_name),
            edges=self.config.nbest > 0,
            deferred=self.neural is not None,
            stand_in=self.neural.stand_in if self.neural is not None else 0.0,
        )

    def marked(self, line: str, where: str = "input") -> Marked:
        """A line with its markup understood. DataError for a mistake in it."""
        try:
            found = xml_input.parse(line, self.markup)
        except ValueError as error:
            raise DataError(f"{where}: {error}") from error
        if len(found.words) > self.config.max_line_words and (
            self.config.nbest or found.forced or found.walls or found.zones
        ):
            what = (
                "an n-best list"
                if self.config.nbest
                else "tags, which may not be parted from the words around them"
            )
            raise long_lines.refusal(where, len(found.words), self.config.max_line_words, what)
        return found

    def translate(self, line: str | Marked, stop: threading.Event | None = None) -> Translation:
        """The best derivation of a tokenized line, or the n best. An empty line has an empty translation.
        Stopped once `stop` is set."""
        marked = self.marked(line) if isinstance(line, str) else line
        if len(marked.words) > self.config.max_line_words:
            parts = long_lines.parts(marked.words, self.config.max_line_words)
            return joined([self.translate_part(Marked(part), stop) for part in parts])
        return self.translate_part(marked, stop)

    def translate_part(self, marked: Marked, stop: threading.Event | None = None) -> Translation:
        """As `translate`, of a line that is not too long."""
        if not marked.words:
            return Translation(
                None, [Derivation(np.zeros(0, np.int32), [], np.zeros(sum(self.system.sizes.values())), 0.0)]
            )
        sentence = self.options(marked, stop)
        limits = self.limits(sentence)
        paths, totals = self.find(sentence, limits, stop)
        if not paths:
            log.warning(
                "walls and zones leave no way to the end with these limits, translated in order: %s",
                shown(" ".join(marked.words)),
            )
            paths, totals = self.find(sentence, limits._replace(distortion=0), stop)
        features = self.features(sentence, paths)
        return Translation(sentence, [
            Derivation(path, self.output(sentence, path), row, total) for path, row,
            total in zip(paths, features, totals, strict=True)
        ])  # fmt: skip

    def find(
        self, sentence: Sentence, limits: Limits, stop: threading.Event | None = None
    ) -> tuple[list[Any], list[float]]:
        """Paths and totals, best first; none where walls and zones let no hypothesis come to the end."""
        return (
            self.search(sentence, limits, stop)
            if self.compiled
            else plain.search(sentence, limits, self, self.listing, stop)
        )

    def search(
        self, sentence: Sentence, limits: Limits, stop: threading.Event | None = None
    ) -> tuple[list[Any], list[float]]:
        """Compiled search with memory of this thread, which grows where a sentence asks for more."""
        state = self.memory(limits)
        while True:
            if self.neural is not None:
                self.neural.search(state, sentence, limits, self, stop)
            else:
                stack = rank = 0
                while stack < limits.words and not (stack and state.counters[FULL]):
                    go_on(stop)
                    stack, rank = search(
                        state,
                        sentence.options,
                        self.automata,
                        self.lm_weights,
                        limits,
                        stack,
                        rank,
                        self.slice,
                    )
            if not state.counters[FULL]:
                break
            self.local.factor *= 2
            state = self.memory(limits, True)
        if not self.config.nbest:
            finals = select(state, limits, limits.words)
            if not len(finals):
                return [], []
            return [best_option_path(state, finals[0])], [float(state.score[finals[0]])]
        options = sentence.options
        chosen, ends, totals = derivations(
            state, limits, *self.listing, options.start, options.length, sentence.text
        )
        return np.split(chosen, ends[:-1]), totals.tolist()

    def memory(self, limits: Limits, new: bool = False) -> State:
        local = self.local
        if not hasattr(local, "factor"):
            local.factor = 1
        if new or not hasattr(local, "state") or len(local.state.head) <= limits.words:
            f = local.factor
            words = max(limits.words, 100)
            edges, candidates = (
                (60_000 * f if self.config.nbest else 0),
                (60_000 * f if self.neural is not None else 0),
            )
            local.state = allocate(
                30_000 * f, edges, 6_000 * f, 60_000 * f, candidates, len(self.models), words
            )
        state: State = local.state
        return state

    def text(self, sentence: Sentence, path: Any) -> list[str]:
        """The target words of a derivation."""
        vocabulary, options = self.system.table.vocabulary, sentence.options
        known = len(vocabulary)
        ids = [
            int(word)
            for option in path
            for word in sentence.text[options.start[option] : options.start[option] + options.length[option]]
        ]
        return [vocabulary[word] if word < known else sentence.outside[word - known] for word in ids]

    def output(self, sentence: Sentence, path: Any) -> list[str]:
        """The target words of a derivation as they are written: unknown ones marked, where that is asked
        for."""
        if not self.settings.mark_unknown:
            return self.text(sentence, path)
        words = []
        for option in path:
            row, phrase = sentence.rows[option], self.text(sentence, [option])
            unknown = row < 0 and sentence.extras[-1 - row].unknown
            words += (
                [f"{self.settings.unknown_prefix}{word}{self.settings.unknown_suffix}" for word in phrase]
                if unknown
                else phrase
            )
        return words

    def features(self, sentence: Sentence, paths: Sequence[Any]) -> Floats:
        """Feature values of derivations: (N, D), those that n-best lists print in their order. Natural
        logarithms."""
        system, options, count = self.system, sentence.options, len(paths)
        found = feature_values.phrases(sentence, paths)
        rows = sentence.rows[found.option]
        extras = {place: sentence.extras[-1 - rows[place]] for place in np.flatnonzero(rows < 0).tolist()}
        known, at = (rows >= 0)[:, None], np.maximum(rows, 0)
        scores = np.where(known, system.table.scores[at], 0.0)
        unknown = np.zeros((len(rows), 1))
        for place, extra in extras.items():
            unknown[place] = UNKNOWN_WORD if extra.unknown else 0.0
            if extra.scores is not None:
                scores[place] = extra.scores
        columns: dict[str, Any] = {
            system.table_name: sums(scores, found.owner, count),
            system.name(UNKNOWN): sums(unknown, found.owner, count),
        }
        columns[system.name("Distortion")] = sums(
            feature_values.distortions(found, self.settings.early_distortion_cost), found.owner, count
        )
        columns[system.name("WordPenalty")] = sums(-options.length[found.option][:, None], found.owner, count)
        columns[system.name("PhrasePenalty")] = np.bincount(found.owner, minlength=count)[:, None]
        if system.reordering_name:
            pair = pairs(rows, sentence.extras)
            values = np.where(
                (pair >= 0)[:, None], self.reordering[np.maximum(pair, 0)], self.default_reordering
            )
            columns[system.reordering_name] = sums(
                feature_values.reorderings(found, values), found.owner, count
            )
        for model, name in enumerate(system.lm_names):
            columns[name] = np.array([self.lm_features(model, sentence, path) for path in paths])
        if self.neural is not None:
            columns.update(self.neural.features([self.text(sentence, path) for path in paths]))
        return np.hstack(
            [columns[name][:, scores] for name, scores in system.printed.items()] or [np.zeros((count, 0))]
        ).astype(np.float64)

    def lm_features(self, model: int, sentence: Sentence, path: Any) -> list[float]:
        """log p of a derivation, and with oov-feature=1 how many of its words the model does not know.

        As in Moses the end of the sentence costs nothing behind a phrase without words.
        """
        options, ids = sentence.options, sentence.options.words[model]
        words = [
            int(word)
            for option in path
            for word in ids[options.start[option] : options.start[option] + options.length[option]]
        ]
        complete = bool(options.length[path[-1]])
        if self.compiled:
            found = [
                float(automaton.sentence_score(self.automata[model], np.array(words, np.int32), complete))
            ]
        else:
            found = [self.word_of[model].sentence(words, complete)]
        if model in self.oov_weights:
            found.append(sum(not self.word_of[model].knows(word) for word in self.text(sentence, path)))
        return found

    # ---- a text --------------------------------------------------------------------------------------------

    def translate_all(
        self, texts: Iterator[str], workers: int = 1, name: str = "input"
    ) -> Generator[Translation]:
        """The translations of lines, in order, by several threads: search runs without the interpreter's
        lock. The result is that of one.

        `name` is that of the file, for errors in its markup.
        """
        lines = self.all_marked(texts, name)
        if workers == 1:
            yield from map(self.translate, lines)
            return
        stop = threading.Event()
        with ThreadPoolExecutor(workers) as crew:
            try:
                waiting: list[Future[Translation]] = [
                    crew.submit(self.translate, line, stop) for line in islice(lines, AHEAD * workers)
                ]
                while waiting:
                    yield waiting.pop(0).result()
                    waiting += [crew.submit(self.translate, line, stop) for line in islice(lines, 1)]
            finally:  # after an interrupt, too, or when the caller wants no more
                stop.set()
                crew.shutdown(wait=False, cancel_futures=True)

    def all_marked(self, texts: Iterable[str], name: str) -> Iterator[Marked]:
        """The lines of a text; the first one that will be translated in parts is told."""
        warned = False
        for number, line in enumerate(texts, 1):
            marked = self.marked(line, f"{name}:{number}")
            if not warned and len(marked.words) > self.config.max_line_words:
                log.warning(
                    "%s",
                    long_lines.warning(f"{name}:{number}", len(marked.words), self.config.max_line_words),
                )
                warned = True
            yield marked

    # ---- n-best lists --------------------------------------------------------------------------------------

    def entry(self, number: int, translation: Translation, derivation: Derivation) -> str:
        """A line of an n-best list, as Moses writes it with segmentation and alignment."""
        values = iter(derivation.features.tolist())
        features = {name: list(islice(values, size)) for name, size in self.system.sizes.items()}
        segments, points = [], []
        at = 0
        sentence = translation.sentence
        for option in derivation.options if sentence else ():
            assert sentence
            length = int(sentence.options.length[option])
            begin, last, row = (
                int(sentence.begin[option]),
                int(sentence.last[option]),
                int(sentence.rows[option]),
            )
            segments.append(f"{span(begin, last)}={span(at, at + max(1, length) - 1)}")
            points += [
                (begin + s, at + t)
                for s, t in (
                    sorted(self.system.table.points(row)) if row >= 0 else sentence.extras[-1 - row].points
                )
            ]
            at += length
        written = Hypothesis(
            number,
            derivation.text,
            features,
            derivation.total,
            [" ".join(segments), " ".join(f"{s}-{t}" for s, t in points)],
        )
        return nbest.write(written)


def joined(parts: Sequence[Translation]) -> Translation:
    """Translations of the parts of a line, each the best one, as one: texts side by side, features and totals
    added up."""
    best = [part.derivations[0] for part in parts]
    text = [word for derivation in best for word in derivation.text]
    return Translation(
        None,
        [
            Derivation(
                np.zeros(0, np.int32),
                text,
                np.sum([one.features for one in best], 0),
                sum(one.total for one in best),
            )
        ],
    )


def span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
