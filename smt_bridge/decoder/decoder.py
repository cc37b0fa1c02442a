"""The phrase-based decoder: translates sentences to their best derivations."""

import logging
import math
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import count, islice
from typing import Self

import numpy as np

from nmt.errors import ConfigError, DataError, check_lines
from nmt.io.numbers import shown
from nmt.text import sentences
from nmt.text.sentences import whole_lines
from smt_bridge.decoder import feature_values, plain, translation
from smt_bridge.decoder import system as systems
from smt_bridge.decoder.arrays import Int32s, SearchParameters
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.compiled_search import Paths, compiled_search
from smt_bridge.decoder.config import CUBE, WIDEST, DecoderConfig, search_settings
from smt_bridge.decoder.features.protocol import SearchFeature, SparseFeature, SparseSum, StatefulFeature
from smt_bridge.decoder.model import Listing, SearchModel, SearchTask, WeightedFeature
from smt_bridge.decoder.options import OptionBuilder
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.system import PhraseBasedSystem
from smt_bridge.decoder.translation import Derivation, Lines, PhraseTranslation
from smt_bridge.decoder.xml_input import MarkedLine, Markup
from smt_bridge.moses.ini import Weights
from smt_bridge.moses.reordering import HIER

log = logging.getLogger(__name__)

UNLIMITED_FACTOR = 1000  # what [n-best-factor] 0 means in Moses
AHEAD = 8  # sentences queued per worker


class Decoder:
    """A phrase-based system that is ready to translate. Several threads may share one.

    >>> from smt_bridge.decoder.decoder import Decoder
    >>> decoder = Decoder.load("model")
    >>> decoder.translate(["the nurses hear her ."])
    ["les infirmières l' entendent ."]
    >>> [" ".join(derivation.text) for derivation in decoder.nbest(["the nurses"], 2, distinct=True)[0]]
    ['les infirmières', 'le infirmières']
    """

    def __init__(
        self,
        system: PhraseBasedSystem,
        config: DecoderConfig | None = None,
        weights: Weights | None = None,
        features: Sequence[SearchFeature] | None = None,
        lines: Lines | None = None,
    ) -> None:
        """`weights`: override those of the ini. `features`: reuse the loaded features of another decoder of
        the same system. `lines`: converts text to words and back; by default for tokenized text.

        ConfigError for settings out of range, for weights that do not fit the system, and for cube pruning
        with networks; UserError for a feature that cannot be loaded.
        """
        self.system, self.config = system, config or DecoderConfig()
        self.lines = lines or Lines()
        self.config.check()
        self.settings = search_settings(self.config, system.search)
        self.listing = self.make_listing(self.config.nbest, self.config.distinct)
        self.weights = dict(system.weights) if weights is None else system.with_weights(weights)
        self.features = system.load_features(self.config) if features is None else features
        sparse_weights = system.with_sparse_weights(weights or {})
        in_search = [
            SparseSum(item, sparse_weights) if isinstance(item, SparseFeature) else item
            for item in self.features
        ]
        weighted = [WeightedFeature(item, np.array(self.weights[item.name])) for item in in_search]
        self.model = SearchModel(
            word_lms=system.word_lms,
            lm_weights=np.array([self.weights[name][0] for name in system.lm_names] or [0.0]),
            # A feature with weight 0 must neither prevent recombination nor prune.
            stateful=[
                WeightedFeature(item.feature, item.weights)
                for item in weighted
                if isinstance(item.feature, StatefulFeature) and item.weights.any()
            ],
            beam=self.config.neural_beam,
        )
        if self.model.stateful and self.settings.search == CUBE:
            raise ConfigError(
                f"cube pruning takes no networks and no operation sequence model inside the search: "
                f"{self.model.stateful[0].feature.name}; give --search stack, or rescore an n-best list"
            )
        printed = set(system.sparse)
        self.sparse = [
            item for item in self.features if isinstance(item, SparseFeature) and item.name in printed
        ]
        self.options = OptionBuilder(system, self.settings, self.weights, self.model, weighted)
        self.compiled = compiled_search(self.model)
        self.markup = Markup(
            self.settings.xml_input, self.settings.xml_brackets, self.settings.max_phrase_length
        )

    @classmethod
    def load(
        cls,
        model: str,
        config: DecoderConfig | None = None,
        weights: Weights | None = None,
        cache: bool | Cache = True,
    ) -> Self:
        """Load a model directory of smt-train, or a moses.ini. `config`: options that override those of the
        ini; `weights`: override its weights; `cache`: where parsed tables and language models are kept for
        the next time, True for the user's cache folder, False for none.

        UserError, in one line, for a model that the engine cannot use, and for settings or weights that do
        not fit.
        """
        return cls(systems.load(model, cache), config, weights)

    def make_listing(self, nbest: int, distinct: bool) -> Listing:
        """The listing of `nbest` derivations, or of the best one if it is 0."""
        return Listing(nbest, distinct, self.settings.nbest_factor or UNLIMITED_FACTOR)

    # ---- texts ---------------------------------------------------------------------------------------------

    def translate(self, lines: Iterable[str], workers: int = 1, split_sentences: bool = False) -> list[str]:
        """Translate each line of text. `workers`: number of threads, which does not affect the result.
        `split_sentences`: translate each sentence of a line of raw text on its own.

        ConfigError if tokenized text is to be split, DataError as in `parse_line`, TypeError for a str
        instead of a list of lines."""
        check_lines(lines)
        split = self.lines.sentences(lines) if split_sentences else whole_lines(lines)
        numbers = [index + 1 for index in split.numbers]
        results = self.translate_all(split.sentences, workers, numbers=numbers)
        return split.join(map(self.lines.text, results))

    def nbest(self, lines: Iterable[str], count: int, distinct: bool = False) -> list[list[Derivation]]:
        """The `count` best derivations of each line, best first. `distinct`: list each text only once.
        DataError as in `parse_line`, TypeError for a str instead of a list of lines."""
        check_lines(lines)
        listing = self.make_listing(count, distinct)
        marked = [self.parse_line(line, f"input:{number}", count) for number, line in enumerate(lines, 1)]
        return [self.translate_part(line, listing=listing).derivations for line in marked]

    def translate_all(
        self,
        lines: Iterable[str],
        workers: int = 1,
        name: str = "input",
        numbers: Iterable[int] | None = None,
    ) -> Generator[PhraseTranslation]:
        """Translate lines with `workers` threads, yielding results in order; the compiled search does not
        hold the GIL. `name`, `numbers`: name of the file and numbers of its lines, for messages; by default
        the lines are counted from 1. Raises the DataError of `parse_line` when it comes to the line."""
        marked = self.parse_lines(lines, name, numbers)
        if workers == 1:
            yield from map(self.translate_line, marked)
            return
        stop = threading.Event()
        with ThreadPoolExecutor(workers) as crew:
            try:
                waiting: list[Future[PhraseTranslation]] = [
                    crew.submit(self.translate_line, line, stop) for line in islice(marked, AHEAD * workers)
                ]
                while waiting:
                    yield waiting.pop(0).result()
                    waiting += [crew.submit(self.translate_line, line, stop) for line in islice(marked, 1)]
            finally:  # also after an interrupt, or if the caller stops early
                stop.set()
                crew.shutdown(wait=False, cancel_futures=True)

    def parse_lines(
        self, lines: Iterable[str], name: str, numbers: Iterable[int] | None = None
    ) -> Iterator[MarkedLine]:
        """Parse the markup of all lines. Logs a warning for the first line that will be translated in parts.
        `name`, `numbers`: as in `translate_all`; raises the DataError of `parse_line`."""
        warned, limit = False, self.config.max_line_words
        for number, line in zip(numbers or count(1), lines, strict=False):
            marked = self.parse_line(line, f"{name}:{number}", self.config.nbest)
            if not warned and len(marked.words) > limit:
                log.warning("%s", sentences.long_line_warning(f"{name}:{number}", len(marked.words), limit))
                warned = True
            yield marked

    # ---- one line ------------------------------------------------------------------------------------------

    def parse_line(
        self, line: str, location: str = "input", nbest: int | None = None, lines: Lines | None = None
    ) -> MarkedLine:
        """Parse the markup of a line. `location`: of the line, for messages; `nbest`: size of the n-best
        list, 0 for none, by default the configured one; `lines`: in place of the decoder's own. DataError for
        a mistake in the markup, and for a line that is too long but cannot be translated in parts, because of
        an n-best list or of its tags."""
        nbest = self.config.nbest if nbest is None else nbest
        try:
            parsed = (lines or self.lines).parse_line(line, self.markup)
        except ValueError as error:
            raise DataError(f"{location}: {error}") from error
        bound = parsed.walls or parsed.zones or not all(option.exclusive for option in parsed.forced)
        if len(parsed.words) > self.config.max_line_words and (nbest or bound):
            tags = "tags, which may not be parted from the words around them"
            what = "an n-best list" if nbest else tags
            raise sentences.long_line_error(location, len(parsed.words), self.config.max_line_words, what)
        return parsed

    def translate_line(
        self, line: str | MarkedLine, stop: threading.Event | None = None
    ) -> PhraseTranslation:
        """Translate a line to its best derivation, or to the `config.nbest` best ones. A line that is too
        long is translated in parts, to the best derivation. The translation of an empty line is empty.
        DataError as in `parse_line` for a str. Raises Stopped once `stop` is set."""
        marked = self.parse_line(line) if isinstance(line, str) else line
        if len(marked.words) > self.config.max_line_words:
            parts = translation.cut_line(marked, self.config.max_line_words)
            return translation.join_parts([self.translate_part(part, stop) for part in parts])
        return self.translate_part(marked, stop)

    def translate_part(
        self, marked: MarkedLine, stop: threading.Event | None = None, listing: Listing | None = None
    ) -> PhraseTranslation:
        """Translate a line of at most `config.max_line_words` words. `listing`: by default that of the
        settings. Logs a warning if walls and zones allow no translation, which is then monotone. Raises
        Stopped once `stop` is set."""
        if not marked.words:
            return translation.empty(sum(self.system.sizes.values()))
        listing = listing or self.listing
        task = self.task(marked, listing, stop)
        paths, totals = self.search(task, listing, stop)
        if not paths:
            log.warning(
                "walls and zones allow no translation within these limits, translated monotonically: %s",
                shown(" ".join(marked.words)),
            )
            task = replace(task, parameters=self.parameters(task.sentence, listing, distortion=0))
            paths, totals = self.search(task, listing, stop)
        return PhraseTranslation(task.sentence, self.derivations(task, paths, totals))

    def derivations(
        self, task: SearchTask, paths: Sequence[Int32s], totals: Sequence[float]
    ) -> list[Derivation]:
        """Compute the feature values of derivations, best first. If the search approximated a feature, totals
        are recomputed from exact values. `paths`: options of at least one derivation, in target order;
        `totals`: total scores by the search, best first. ConfigError if a feature gives values of another
        shape, or that are not finite."""
        columns = feature_values.derivation_scores(self.options, task, paths)
        exact = any(item.feature.lossy for item in self.model.stateful)
        if exact:
            totals = feature_values.totals(self.options, columns).tolist()
        features = feature_values.printed_values(self.options, columns)
        sparse = feature_values.sparse_values(self.sparse, task.sentence, paths)
        listed = [
            Derivation(path, translation.output(task.sentence, path, self.settings), row, total, sparse=named)
            for path, row, total, named in zip(paths, features, totals, sparse, strict=True)
        ]
        if exact:
            listed.sort(key=lambda item: -item.total)
        if self.config.explain:
            listed[0].shares = feature_values.phrase_shares(self.options, task, listed[0].options)
        return listed

    def task(self, marked: MarkedLine, listing: Listing, stop: threading.Event | None = None) -> SearchTask:
        """Prepare a line with at least one word for the search: gather and score its options. `listing`: what
        the search will list. Raises Stopped once `stop` is set; ConfigError as `OptionBuilder.score`."""
        sentence = self.options.gather(marked)
        return SearchTask(
            sentence=sentence,
            options=self.options.score(sentence, marked, stop),
            parameters=self.parameters(sentence, listing, self.settings.distortion_limit),
            model=self.model,
            scorers=[weighted.feature.start(sentence) for weighted in self.model.stateful],
        )

    def parameters(self, sentence: Sentence, listing: Listing, distortion: int) -> SearchParameters:
        """Search parameters for a sentence. `distortion`: distortion limit in words, -1 for none. For a
        sentence of more than WIDEST words it is at most WIDEST, as coverages cannot represent longer
        jumps."""
        settings, words, reordering = self.settings, len(sentence.words), self.system.reordering
        hierarchical = bool(self.system.reordering_name) and reordering.model == HIER
        if words > WIDEST and not 0 <= distortion <= WIDEST:
            distortion = WIDEST
        return SearchParameters(
            words=words,
            longest=sentence.longest,
            stack=settings.stack,
            beam=math.log(settings.beam_threshold) if settings.beam_threshold else -math.inf,
            distortion=distortion,
            distortion_weight=self.system.weight("Distortion", self.weights),
            early=settings.early_distortion_cost,
            reordering=bool(self.system.reordering_name),
            edges=listing.nbest > 0,
            deferred=bool(self.model.stateful),
            stand_in=self.model.stand_in,
            pops=settings.pop_limit if settings.search == CUBE else 0,
            diversity=settings.diversity,
            score_of=reordering.score_of,
            regions=hierarchical and reordering.backward,
            hierarchical=hierarchical and reordering.forward,
        )

    def search(self, task: SearchTask, listing: Listing, stop: threading.Event | None = None) -> Paths:
        """Search with the compiled search, or else the plain one. Returns option paths and totals, best
        first; none if walls and zones leave no way to translate the whole sentence. Raises Stopped once
        `stop` is set."""
        if self.compiled is None:
            plain_search = plain.cube_search if task.parameters.pops else plain.search
            return plain_search(task, listing, stop)
        return self.compiled.search(task, listing, stop)

    def entry(self, number: int, result: PhraseTranslation, derivation: Derivation) -> str:
        """Format an entry of an n-best list as Moses does, with segmentation and alignment. `number`: number
        of the sentence, from 0."""
        return translation.entry(number, result.sentence, derivation, self.system.sizes)
