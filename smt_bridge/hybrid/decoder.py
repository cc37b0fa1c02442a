"""Decoding with hybrid systems: raw text in, raw text out. Terms of a glossary get their translations."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, overload

from nmt.errors import ConfigError, DataError
from nmt.runs.run import Run
from nmt.text import glossary, tokenize
from nmt.text.glossary import NOTHING, Glossary, Match
from nmt.text.sentences import SplitText, split_text
from nmt.text.tokenize import BLANK, Placeholders, Span, unescape
from smt_bridge.decoder import system as systems
from smt_bridge.decoder import xml_input
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.translation import Lines, PhraseTranslation
from smt_bridge.decoder.xml_input import SEPARATOR, AvoidedPhrases, ForcedTranslation, MarkedLine, Markup, Tag
from smt_bridge.hybrid import folder
from smt_bridge.hybrid.folder import Hybrid
from smt_bridge.hybrid.side import TextSide, escape_words
from smt_bridge.moses import ini

# ---- lines -------------------------------------------------------------------------------------------------
# Conversion of lines for a decoder: raw text of a hybrid system, and tokenized text with a glossary.


LONGEST_TERM = 30  # maximum words of a term in a request: all spans up to the longest term are looked up
TEXTS = ("translation", "english")  # attributes of tags that contain text in the target language


class GlossaryLines(Lines):
    """Converts lines of tokenized text, in which terms of a glossary get its translations."""

    def __init__(self, terms: Glossary) -> None:
        self.terms = terms

    def parse_line(self, line: str, markup: Markup) -> MarkedLine:
        parsed = super().parse_line(line, markup)
        force_matches(parsed, self.terms.find(parsed.words, glossary.sentence_starts(parsed.words)))
        return parsed


class RawLines(Lines):
    """Converts raw source text to words, and translations to raw target text."""

    def __init__(self, source: TextSide, target: TextSide, longest: int, terms: Glossary = NOTHING) -> None:
        """`longest`: maximum words of a line; longer lines are translated in parts. `terms`: the glossary."""
        self.source, self.target, self.longest, self.terms = source, target, longest, terms
        self.avoided, self.avoided_text = xml_input.NOTHING_AVOIDED, xml_input.NOTHING_AVOIDED

    def extend(self, terms: Sequence[tuple[str, str]], avoid: Sequence[str]) -> "RawLines":
        """Make a copy with additional terms, which override the glossary's, and with phrases that
        translations must avoid, in place of those before. `terms`: pairs of term and translation, raw text
        like `avoid`. DataError for a term or translation without words, and for a term that is too long or
        has two translations."""
        rows = [("terms", term, translation) for term, translation in terms]
        more = make_glossary(rows, self.source, self.target)
        if more.longest > LONGEST_TERM:
            raise DataError(f"terms: a term has {more.longest} words, expected at most {LONGEST_TERM}")
        lines = RawLines(self.source, self.target, self.longest, Glossary({**self.terms.terms, **more.terms}))
        lines.avoided = AvoidedPhrases(map(self.target_words, avoid))
        lines.avoided_text = AvoidedPhrases(map(self.target.split, avoid))
        return lines

    def sentences(self, lines: Iterable[str]) -> SplitText:
        return split_text(lines, self.source.language, self.target.language)

    def is_allowed(self, words: Sequence[str], text: str) -> bool:
        """Whether a translation contains none of the phrases to avoid, neither in the system's words `words`
        nor in the raw text `text`, where sentences start with a capital letter."""
        return not (self.avoided.occurs(words) or self.avoided_text.occurs(self.target.split(text)))

    def parse_line(self, line: str, markup: Markup) -> MarkedLine:
        """Split a line into the system's words, and force translations for terms of the glossary and for
        words that are copied, such as URLs. Under the policy `pass-through`, tags are copied too, and words
        stay within the tags that enclose them unless the line is too long. ValueError for a mistake in the
        markup under any other policy."""
        if markup.policy == "pass-through":
            words = self.source.split(line)
            parsed = MarkedLine(escape_words(self.source.apply_case(words)))
            if len(words) <= self.longest:
                enclose(parsed, tokenize.tag_pairs(words))
        else:
            words, parsed = self.parse_tags(line, markup)
        force_matches(parsed, self.terms.find(words, tokenize.sentence_starts(words)))
        force_matches(
            parsed,
            [copy_match(position, word) for position, word in enumerate(words) if tokenize.is_copied(word)],
        )
        parsed.avoided = self.avoided
        return parsed

    def parse_tags(self, line: str, markup: Markup) -> tuple[list[str], MarkedLine]:
        """Parse a line whose tags are markup. Returns its words without the tags, in their original case and
        without escapes, and the parsed line. ValueError for a mistake in the markup."""
        placeholders, text = Placeholders(line), list[str]()
        for token in xml_input.tokens(line.strip(xml_input.BLANKS), *markup.brackets):
            if xml_input.is_tag(token, markup.brackets[0]):
                text += [" ", placeholders.add(self.convert_tag(token, markup.brackets)), " "]
            else:
                text.append(unescape(token))
        mixed = placeholders.split(self.source.split("".join(text)))
        words = [word for word in mixed if word not in placeholders.hidden]
        cased = iter(escape_words(self.source.apply_case(words)))
        hidden = placeholders.hidden
        tokens = [hidden[word] if word in hidden else next(cased) for word in mixed]
        return words, xml_input.parse_markup(" ".join(tokens), markup)

    def convert_tag(self, token: str, brackets: tuple[str, str]) -> str:
        """Convert the translations in a tag from raw text to the system's target words, and return the tag.
        `token`: the tag with its brackets. ValueError for an attribute that Moses would misread."""
        content = token[len(brackets[0]) : -len(brackets[1])].strip(xml_input.BLANKS)
        name = content.partition(" ")[0]
        for key in TEXTS:
            value = xml_input.attribute(Tag(name, 0, content), key)
            if value:
                converted = SEPARATOR.join(
                    " ".join(self.target_words(unescape(part.replace('\\"', '"'))))
                    for part in value.split(SEPARATOR)
                )
                token = token.replace(f'{key}="{value}"', f'{key}="{converted}"')
        return token

    def target_words(self, text: str) -> list[str]:
        """Convert a part of a sentence, in raw text, to the system's target words."""
        return escape_words(self.target.phrase(text))

    def text(self, translation: PhraseTranslation) -> str:
        """Convert a translation to raw text."""
        exact, at = dict[Span, str](), 0
        for sentence, derivation in translation.searched:
            for option in derivation.options:
                size, extra = int(sentence.length[option]), sentence.extra(option)
                if extra is not None and extra.raw is not None:
                    exact[at, at + size] = extra.raw
                at += size
        return self.target.text(translation.text, exact)


def copy_match(position: int, word: str) -> Match:
    """A match that copies the word at `position` of a line, as `TextSide.split` returns it."""
    return Match(position, position + 1, glossary.Term(escape_words([word]), word.replace(BLANK, " ")))


def force_matches(line: MarkedLine, matches: Sequence[Match]) -> None:
    """Add the translations of matched terms to `line.forced`, except for matches with a word for which the
    line already forces a translation. The matches must not overlap."""
    taken = {word for option in line.forced for word in range(option.first, option.last + 1)}
    line.forced += [
        forced_translation(match) for match in matches if taken.isdisjoint(range(match.start, match.end))
    ]


def forced_translation(match: Match) -> ForcedTranslation:
    """The exclusive translation of a term, with log p = 0 and all source and target words aligned."""
    term, source = match.term, range(match.end - match.start)
    points = tuple(
        (source_word, target_word) for source_word in source for target_word in range(len(term.words))
    )
    return ForcedTranslation(match.start, match.end - 1, term.words, 0.0, True, points, term.raw)


def enclose(line: MarkedLine, pairs: Sequence[Span]) -> None:
    """Add zones and walls to a line, so that words between an opening and a closing tag stay between the two.
    `pairs`: positions of the tags of each pair."""
    for opening, closing in pairs:
        line.zones.append((opening, closing))
        line.walls += [opening, closing - 1]
    line.walls = sorted(set(line.walls))


def read_glossary(path: str, source: TextSide, target: TextSide) -> Glossary:
    """Read a glossary file of raw text. DataError, with the line, for a mistake, and for a missing file."""
    return make_glossary(glossary.read_rows(path), source, target)


def make_glossary(rows: Iterable[tuple[str, str, str]], source: TextSide, target: TextSide) -> Glossary:
    """Convert rows of raw text (location for messages, term, translation) to a glossary. DataError for a term
    or translation without words, and for a term with two translations."""
    return glossary.from_rows(
        rows,
        lambda term: glossary.tokenizations(term, source.split),
        lambda text: escape_words(target.phrase(text)),
    )


# ---- decoder -----------------------------------------------------------------------------------------------


@overload
def load(
    path: str,
    config: DecoderConfig | None = None,
    glossary: str = "",
    cache: bool | Cache = True,
    quality: Literal["best"] = "best",
) -> Decoder: ...


@overload
def load(
    path: str,
    config: DecoderConfig | None = None,
    glossary: str = "",
    cache: bool | Cache = True,
    *,
    quality: Literal["fast"],
) -> Run: ...


def load(
    path: str,
    config: DecoderConfig | None = None,
    glossary: str = "",
    cache: bool | Cache = True,
    quality: Literal["best", "fast"] = "best",
) -> Decoder | Run:
    """Load the decoder of a hybrid system from its folder: raw text in, raw text out.

    >>> import smt_bridge
    >>> system = smt_bridge.load("system")
    >>> system.translate(["the nurses hear her."])
    ["les infirmières l'entendent."]

    `config`: search settings that replace the system's own. `glossary`: a file of terms that replaces the
    system's. `cache`: see `Decoder.load`. `quality`: `fast` loads the system's student instead, or else its
    attention model, a run of nmt, which takes neither. UserError, in one line, for a folder that is
    incomplete or damaged, a model that the engine cannot use, or a mistake in the glossary; ConfigError for a
    system without such a run, and for another `quality`.
    """
    if quality not in ("best", "fast"):
        raise ConfigError(f"quality: {quality!r} is unknown, expected 'best' or 'fast'")
    if quality == "fast":
        if config or glossary:
            raise ConfigError("quality: fast takes no settings of the search and no glossary")
        return Run.load(folder.fast_run(folder.read(Path(path))))
    return make_decoder(folder.read(Path(path)), config, glossary, cache)


def make_decoder(
    hybrid: Hybrid, config: DecoderConfig | None = None, glossary: str = "", cache: bool | Cache = True
) -> Decoder:
    """Create the decoder of a hybrid system. For the other arguments and for errors see `load`."""
    config = config or hybrid.decoder_config()
    system = systems.load_ini(ini.read(hybrid.ini), cache)
    return Decoder(system, config, lines=make_lines(hybrid, config.max_line_words, glossary))


def make_lines(hybrid: Hybrid, longest: int, path: str = "") -> RawLines:
    """Create the converter of a system's lines. `longest`: maximum words of a line; longer lines are
    translated in parts. `path`: a glossary that replaces the system's. Errors as in `read_glossary`."""
    path = path or hybrid.glossary
    terms = read_glossary(path, hybrid.source, hybrid.target) if path else NOTHING
    return RawLines(hybrid.source, hybrid.target, longest, terms)
