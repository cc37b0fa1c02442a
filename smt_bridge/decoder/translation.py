"""Translations and their n-best list entries; conversion between lines of text and the decoder's words, with
long lines in parts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from nmt.documents.inline import AlignedTranslation
from nmt.errors import ConfigError
from nmt.formats import nbest
from nmt.formats.nbest import Hypothesis
from nmt.text import sentences
from nmt.text.sentences import SplitText
from smt_bridge.decoder import xml_input
from smt_bridge.decoder.arrays import Floats, Int32s
from smt_bridge.decoder.config import SearchSettings
from smt_bridge.decoder.sentence import Sentence
from smt_bridge.decoder.xml_input import MarkedLine, Markup

# ---- translation -------------------------------------------------------------------------------------------


@dataclass
class Derivation:
    """One way to translate a sentence."""

    options: Int32s  # indices of its options in the Sentence, in target order
    text: list[str]
    features: Floats  # (D,) in the order of PhraseBasedSystem.sizes
    total: float  # weighted sum of all feature values, natural logarithm
    sparse: dict[str, float] = field(default_factory=dict)  # printed sparse values that are not 0, by name
    shares: Floats | None = None  # with DecoderConfig.explain: see feature_values.phrase_shares


@dataclass
class PhraseTranslation:
    """The derivations of a sentence, best first. An empty sentence has a single derivation without words."""

    sentence: Sentence | None  # None for an empty line, and for a line translated in parts
    derivations: list[Derivation]
    parts: list["PhraseTranslation"] = field(default_factory=list)  # if the line was too long

    @property
    def text(self) -> list[str]:
        """The words of the best derivation."""
        return self.derivations[0].text

    @property
    def searched(self) -> list[tuple[Sentence, Derivation]]:
        """The sentences that were searched, with their best derivations: one for each part of a long line,
        none for an empty line."""
        if self.sentence is not None:
            return [(self.sentence, self.derivations[0])]
        return [pair for part in self.parts for pair in part.searched]

    @property
    def source(self) -> list[str]:
        """The source words of the whole line."""
        return [word for sentence, _ in self.searched for word in sentence.words]


def empty(features: int) -> PhraseTranslation:
    """The translation of a line without words. `features`: number of feature values."""
    return PhraseTranslation(None, [Derivation(np.zeros(0, np.int32), [], np.zeros(features), 0.0)])


def join_parts(parts: Sequence[PhraseTranslation]) -> PhraseTranslation:
    """Join the best translations of the parts of a line: joins texts, sums features and totals."""
    best = [part.derivations[0] for part in parts]
    whole = Derivation(
        options=np.zeros(0, np.int32),
        text=[word for derivation in best for word in derivation.text],
        features=np.sum([derivation.features for derivation in best], 0),
        total=sum(derivation.total for derivation in best),
        sparse={
            name: sum(derivation.sparse.get(name, 0.0) for derivation in best)
            for name in dict.fromkeys(name for derivation in best for name in derivation.sparse)
        },
    )
    return PhraseTranslation(None, [whole], list(parts))


def output(sentence: Sentence, path: Iterable[int] | Int32s, settings: SearchSettings) -> list[str]:
    """The target words of a derivation as they are written, with unknown words marked if
    `settings.mark_unknown` is set. `path`: its options in target order."""
    if not settings.mark_unknown:
        return sentence.derivation_words(path)
    words = []
    for option in path:
        phrase, extra = sentence.target(option), sentence.extra(option)
        if extra is not None and extra.unknown:
            phrase = [f"{settings.unknown_prefix}{word}{settings.unknown_suffix}" for word in phrase]
        words += phrase
    return words


def entry(number: int, sentence: Sentence | None, derivation: Derivation, sizes: dict[str, int]) -> str:
    """Format an n-best list entry as Moses does, with segmentation and alignment; these are empty if
    `sentence` is None. `number`: number of the sentence, from 0; `sizes`: number of printed scores of each
    feature, in order."""
    values = iter(derivation.features.tolist())
    segments, points = [], []
    at = 0
    for option in derivation.options if sentence else ():
        assert sentence
        length, first = int(sentence.length[option]), int(sentence.first[option])
        segments.append(f"{span(first, int(sentence.last[option]))}={span(at, at + max(1, length) - 1)}")
        points += [f"{first + source}-{at + target}" for source, target in sentence.sorted_points(option)]
        at += length
    return nbest.write(
        Hypothesis(
            number,
            derivation.text,
            {name: list(islice(values, size)) for name, size in sizes.items()}
            | {name: [value] for name, value in derivation.sparse.items()},
            derivation.total,
            [" ".join(segments), " ".join(points)],
        )
    )


def alignment(translation: PhraseTranslation) -> list[tuple[int, int]]:
    """The sorted alignment points (source, target) of the best derivation, counted in the whole line."""
    points, sources, targets = list[tuple[int, int]](), 0, 0
    for sentence, derivation in translation.searched:
        for option in derivation.options:
            first = sources + int(sentence.first[option])
            points += [(first + source, targets + target) for source, target in sentence.points(option)]
            targets += int(sentence.length[option])
        sources += len(sentence.words)
    return sorted(points)


def span(first: int, last: int) -> str:
    """Format a span of words, both ends inclusive: 3, or 3-5."""
    return str(first) if first == last else f"{first}-{last}"


# ---- lines -------------------------------------------------------------------------------------------------


class Lines:
    """Converts lines of text to a decoder's words, and translations to lines. This class is for tokenized
    text, with words separated by blanks as in Moses; subclasses are for other text. Several threads may share
    one."""

    def parse_line(self, line: str, markup: Markup) -> MarkedLine:
        """Split a line into words and parse its markup. ValueError as in `parse_markup`."""
        return xml_input.parse_markup(line, markup)

    def text(self, translation: PhraseTranslation) -> str:
        """Format a translation as a line of text."""
        return " ".join(translation.text)

    def sentences(self, lines: Iterable[str]) -> SplitText:
        """Split lines of raw text into sentences. ConfigError in this class, which is for tokenized text."""
        raise ConfigError("split_sentences requires raw text: load the folder of a hybrid system")


def with_alignment(translation: PhraseTranslation, lines: Lines) -> AlignedTranslation:
    """The best derivation as text with its word alignment, for a document. `lines`: converts it to text."""
    return AlignedTranslation(
        lines.text(translation), translation.source, translation.text, alignment(translation)
    )


def cut_line(line: MarkedLine, limit: int) -> list[MarkedLine]:
    """Cut a line into parts of at most `limit` words, at punctuation if possible. Spans with a forced
    translation are not cut; a forced translation of more than `limit` source words is dropped, as are all
    walls and zones."""
    whole = {option.first: option.last + 1 for option in line.forced if option.last - option.first < limit}
    units, at = list[str](), 0
    while at < len(line.words):
        end = whole.get(at, at + 1)
        units.append(" ".join(line.words[at:end]))
        at = end
    parts, at = list[MarkedLine](), 0
    for part in sentences.line_parts(units, limit, lambda unit: unit.count(" ") + 1):
        words = [word for unit in part for word in unit.split(" ")]
        inside = [option for option in line.forced if at <= option.first and option.last < at + len(words)]
        parts.append(
            MarkedLine(
                words,
                [replace(option, first=option.first - at, last=option.last - at) for option in inside],
                avoided=line.avoided,
            )
        )
        at += len(words)
    return parts
