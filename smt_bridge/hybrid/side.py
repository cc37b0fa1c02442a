"""Text processing for one side of a hybrid system: converts raw lines to Moses' words (tokenized, cased,
escaped) and back."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from nmt.text import truecase
from nmt.text.pipeline import SideConfig
from nmt.text.tokenize import Span, Tokenizer, escape_raw, unescape
from nmt.text.truecase import Truecaser


class TextSide:
    """The text processing of one side. `words(line)` converts raw text to what tables and networks read, and
    `text(words)` converts it back.

    >>> from nmt.text.pipeline import SideConfig
    >>> from smt_bridge.hybrid.side import TextSide
    >>> english = TextSide(SideConfig(language="en"))
    >>> english.words("See <b>it</b> at https://example.org/a?b=1&c.")
    ['See', '&lt;b&gt;', 'it', '&lt;/b&gt;', 'at', 'https://example.org/a?b=1&amp;c', '.']
    >>> english.text(["I", "don", "&apos;t", "see", "&lt;b&gt;", "it", "&lt;/b&gt;", "."])
    "I don't see <b>it</b>."
    """

    def __init__(self, config: SideConfig, truecaser: Truecaser | None = None) -> None:
        """`truecaser`: must have been trained on the output of `split`; without one, truecased text keeps its
        case. ConfigError for a segmentation that the language does not support."""
        case = "keep" if config.case == "truecase" and not truecaser else config.case
        self.language, self.case, self.truecaser = config.language, config.case, truecaser
        self.tokenizer = Tokenizer(
            config.language, config.normalize, config.tokenize, case, config.segment, protect=True
        )
        self.tokenizer.truecaser = truecaser

    def split(self, line: str) -> list[str]:
        """Tokenize a raw line, keeping its case and without escapes. Protected text is not split."""
        return self.tokenizer.split_cased(line)

    def apply_case(self, words: list[str]) -> list[str]:
        """Convert words of a line, as `split` returns them, to the system's case. Tags, URLs and other words
        that are copied stay unchanged."""
        return self.tokenizer.apply_case(self.tokenizer.lower(words))

    def phrase(self, text: str) -> list[str]:
        """Split part of a sentence into words without escapes. They are lower-cased in a lower-cased system,
        and otherwise keep their case, even the first."""
        return self.tokenizer.split(text)

    def words(self, line: str) -> list[str]:
        """Convert a raw line to words as tables and networks read them."""
        return escape_words(self.tokenizer.words(line))

    def text(self, words: Sequence[str], exact: Mapping[Span, str] | None = None) -> str:
        """Convert words to raw text. `exact`: span -> raw text that replaces its words verbatim; spans must
        not overlap. ValueError for an empty span."""
        return self.tokenizer.text(list(map(unescape, words)), exact)


def escape_words(words: Sequence[str]) -> list[str]:
    """Escape words as Moses does in the files of a model."""
    return [escape_raw(word) for word in words]


def load(config: SideConfig, path: Path) -> TextSide:
    """Create a side's text processing. `path`: its truecase model, which is read only if text is truecased.
    DataError for a file that is missing or not a truecase model; ConfigError for a segmentation that the
    language does not support."""
    return TextSide(config, truecase.load(path) if config.case == "truecase" else None)
