"""The text of one language of a hybrid system: raw lines -> Moses' words, tokenized, cased, escaped; and
back."""

from collections.abc import Mapping, Sequence

from nmt.text import truecase, units
from nmt.text.escapes import escape_raw, unescape
from nmt.text.pipeline import SideConfig
from nmt.text.tokenize import Tokenizer
from nmt.text.truecase import Truecaser
from smt_bridge.hybrid import protect
from smt_bridge.hybrid.protect import Placeholders

Span = tuple[int, int]  # the first word of some, and the one after their last
BLANK = "\u00a0"  # stands for blanks inside a tag: a word of a tokenized line has none


class Side:
    """`words(line)` are what tables and networks read; `text(words)` is for people.

    >>> from nmt.text.pipeline import SideConfig
    >>> from smt_bridge.hybrid.side import Side
    >>> english = Side(SideConfig(language="en"))
    >>> english.words("See <b>it</b> at https://example.org/a?b=1&c.")
    ['See', '&lt;b&gt;', 'it', '&lt;/b&gt;', 'at', 'https://example.org/a?b=1&amp;c', '.']
    >>> english.text(["I", "don", "&apos;t", "see", "&lt;b&gt;", "it", "&lt;/b&gt;", "."])
    "I don't see <b>it</b>."
    """

    def __init__(self, config: SideConfig, truecaser: Truecaser | None = None) -> None:
        """`truecaser`: learned from what `split` gives; without one truecased text keeps its case.
        ConfigError for a segmentation that the language does not have."""
        self.case, self.truecaser = config.case, truecaser
        self.language, self.blank = config.language, "" if units.is_spaceless(config.language) else " "
        self.rules = Tokenizer(
            config.language, config.normalize, config.tokenize, segment=config.segment
        ).rules

    def split(self, line: str) -> list[str]:
        """The words of a raw line in its own case, without escapes. Protected ones are whole."""
        hidden, places = protect.hide(line, self.blank)
        words = places.split(self.rules.words(hidden))
        return [places.original(word).replace(" ", BLANK).replace("\t", BLANK) for word in words]

    def cased(self, words: Sequence[str]) -> list[str]:
        """The words of `split` in the case that the system reads. What is copied keeps its case."""
        made = iter(self.in_text_case([word for word in words if not protect.is_tag(word)]))
        cased = [word if protect.is_tag(word) else next(made) for word in words]
        return [old if protect.is_copied(old) else new for old, new in zip(words, cased, strict=True)]

    def in_text_case(self, words: list[str]) -> list[str]:
        """The words without tags in the case that the system reads."""
        if self.case == "lower":
            return [word.lower() for word in words]
        return self.truecaser.apply(words) if self.case == "truecase" and self.truecaser else words

    def phrase(self, text: str) -> list[str]:
        """The words of a part of a sentence, without escapes: its first word keeps its case where text is
        truecased."""
        words = self.split(text)
        return self.cased(words) if self.case == "lower" else words

    def words(self, line: str) -> list[str]:
        """The words of a raw line as tables and networks read them."""
        return escaped(self.cased(self.split(line)))

    def text(self, words: Sequence[str], exact: Mapping[Span, str] | None = None) -> str:
        """The words as a line of raw text. `exact`: what stands in it, unchanged, in place of the words of a
        span; spans do not overlap."""
        spans = {begin: (end, kept) for (begin, end), kept in (exact or {}).items()}
        places = Placeholders(" ".join([*words, *(kept for _, kept in spans.values())]))
        shown, at = list[str](), 0
        while at < len(words):
            word = unescape(words[at])
            if at in spans:
                at, kept = spans[at]
                shown.append(places.add(kept))
            else:
                shown.append(places.add(word.replace(BLANK, " ")) if protect.is_copied(word) else word)
                at += 1
        return restored(self.rules.text(self.in_sentence_case(shown, places)), places)

    def in_sentence_case(self, words: list[str], places: Placeholders) -> list[str]:
        """The words with capitals at the starts of sentences, where the system is truecased. Tags do not
        count as words."""
        if self.case != "truecase" or not self.truecaser:
            return words
        tags = [bool(protect.is_tag(places.original(word))) for word in words]
        made = iter(self.truecaser.undo([word for word, tag in zip(words, tags, strict=True) if not tag]))
        return [word if tag else next(made) for word, tag in zip(words, tags, strict=True)]


def escaped(words: Sequence[str]) -> list[str]:
    """Words as they stand in the files of a model."""
    return [escape_raw(word) for word in words]


def restored(text: str, places: Placeholders) -> str:
    """A detokenized line with what its placeholders stand for. There is no blank after an opening tag that is
    closed in the line, nor before the tag that closes it."""
    parts = places.pattern.split(text)  # text, placeholder, text ...
    whole = [places.original(part) for part in parts]
    for first, last in protect.tag_pairs(whole):
        whole[first + 1] = whole[first + 1].removeprefix(" ")
        whole[last - 1] = whole[last - 1].removesuffix(" ")
    return "".join(whole).strip(" ")


def load(config: SideConfig, path: str) -> Side:
    """A side with the truecase model of a file, which is read where the text is truecased. DataError for a
    file that is no such model."""
    return Side(config, truecase.load(path) if config.case == "truecase" else None)
