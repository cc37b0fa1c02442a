"""Moses' rules: punctuation is normalized, text is split into tokens, and tokens are joined to text.

The rules are those of normalize-punctuation.perl, tokenizer.perl and detokenizer.perl as sacremoses ports
them, and results are the same. Most words are looked up, since what Moses' tokenizer makes of a word depends
on its neighbors only at periods, commas and apostrophes.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum, auto
from functools import cache, cached_property, partial
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from operator import methodcaller
from types import ModuleType
from typing import TypeVar

CACHED_WORDS = 1 << 16  # at most, and none longer than CACHED_LENGTH
CACHED_LENGTH = 64

Key = TypeVar("Key")


# ---- data --------------------------------------------------------------------------------------------------


@cache
def corpus() -> ModuleType:
    """Load sacremoses.corpus: the lists of characters and abbreviations. The rest of the package is not
    imported, since joblib, asyncio and its own patterns would take 0.3 s."""
    loaded = sys.modules.get("sacremoses")
    if loaded is None and (spec := find_spec("sacremoses")):
        sys.modules["sacremoses"] = module_from_spec(spec)
    try:
        return import_module("sacremoses.corpus")
    finally:
        if loaded is None:
            sys.modules.pop("sacremoses", None)


@cache
def characters(category: str) -> str:
    """The characters with one of Perl's Unicode properties: IsAlpha, IsN, Han ..."""
    return "".join(corpus().Perluniprops().chars(category))


@cache
def abbreviations(language: str | None) -> tuple[str, ...]:
    """Moses' list of abbreviations for a language. A language without a list uses the English one; None uses
    all. Abbreviations that count only before a number end in `#NUMERIC_ONLY#`."""
    return tuple(word.strip() for word in corpus().NonbreakingPrefixes().words(language))


@cache
def languages_with_abbreviations() -> frozenset[str]:
    """Codes of the languages that have a list of abbreviations."""
    return frozenset(corpus().NonbreakingPrefixes().available_langs.values())


@cache
def letters() -> frozenset[str]:
    """The characters that are letters to the tokenizer."""
    return frozenset(characters("IsAlpha") + INDIC_MARKS)


def character_ranges(members: Iterable[str]) -> str:
    """Build the inside of a character class, as ranges, which compile three times as fast as characters."""
    codes = sorted(set(map(ord, members)))
    starts = [code for index, code in enumerate(codes) if not index or codes[index - 1] != code - 1]
    ends = [
        code for index, code in enumerate(codes) if index + 1 == len(codes) or codes[index + 1] != code + 1
    ]
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(starts, ends, strict=True))


# Viramas and nuktas of the scripts of India and their relatives, which belong to their letters.
INDIC_MARKS = (
    "\u093c\u094d\u09bc\u09cd\u0a3c\u0a4d\u0abc\u0acd\u0afd\u0afe\u0aff\u0b3c\u0b4d\u0bcd\u0c4d\u0cbc\u0ccd"
    "\u0d3b\u0d3c\u0d4d\u0dca\u0eba\u1039\u1714\u1bab\u1c37\ua8c4\ua8f3\ua8f4\ua953\uaaf6\U00010a3f\U00011046"
    "\U000110b9\U000110ba\U00011133\U00011173\U000111c0\U000111ca\U00011235\U00011236\U000112e9\U000112ea"
    "\U0001133c\U0001134d\U00011442\U00011446\U000114c2\U000114c3\U000115bf\U000115c0\U0001163f\U000116b6"
    "\U000116b7\U00011839\U0001183a\U000119e0\U00011a34\U00011c3f\U00011d42\U00011d45\U00011d97\U0001e94a"
)
# Scripts whose characters are letters in texts of these languages; elsewhere each is a token.
CJK_SCRIPTS = {
    "ko": ("Hangul",),
    "zh": ("Han",),
    "ja": ("Hiragana", "Katakana", "Han"),
    "cjk": ("Hangul", "Han", "Hiragana", "Katakana"),
}


# ---- normalization -----------------------------------------------------------------------------------------
# Rules in Moses' order: (what a text must hold, pattern, replacement). Without a pattern, what the text holds
# is replaced.

Rule = tuple[str, str, str]
Substitution = tuple[str, Callable[[str], str]]  # what a text must hold, and a function of the text
BLANKS: Rule = ("  ", " +", " ")
RULES: list[Rule] = [
    ("\r", "", ""),
    ("(", "", " ("),
    (")", "", ") "),
    BLANKS,
    (") ", r"\) ([.!:?;,])", r")\1"),
    ("( ", "", "("),
    (" )", "", ")"),
    (" %", r"(\d) %", r"\1%"),
    (" :", "", ":"),
    (" ;", "", ";"),
    ("`", "", "'"),
    ("''", "", ' " '),
    ("„", "", '"'),
    ("“", "", '"'),
    ("”", "", '"'),
    ("–", "", "-"),
    ("—", "", " - "),
    BLANKS,
    ("´", "", "'"),
    ("‘", "([a-zA-Z])‘([a-zA-Z])", r"\1'\2"),
    ("’", "([a-zA-Z])’([a-zA-Z])", r"\1'\2"),
    ("‘", "", "'"),
    ("‚", "", "'"),
    ("’", "", "'"),
    ("''", "", '"'),
    ("…", "", "..."),
    ("\xa0«\xa0", "", '"'),
    ("«\xa0", "", '"'),
    ("«", "", '"'),
    ("\xa0»\xa0", "", '"'),
    ("\xa0»", "", '"'),
    ("»", "", '"'),
    ("\xa0%", "", "%"),
    ("nº\xa0", "", "nº "),
    ("\xa0:", "", ":"),
    ("\xa0ºC", "", " ºC"),
    ("\xa0cm", "", " cm"),
    ("\xa0?", "", "?"),
    ("\xa0!", "", "!"),
    ("\xa0;", "", ";"),
    (",\xa0", "", ", "),
    BLANKS,
]
# A comma or period before or after the closing quotation mark, and what stands between groups of digits.
ENGLISH_QUOTES: list[Rule] = [('"', r'"([,.]+)', r'\1"')]
CONTINENTAL_QUOTES: list[Rule] = [(',"', "", '",'), ('."', r'(\.+)(?:(")(\s*[^<]))?', r"\2\1\3")]
QUOTES = {"en": ENGLISH_QUOTES, **dict.fromkeys(("de", "es", "fr"), CONTINENTAL_QUOTES)}
DIGITS_APART = r"(\d)\xa0(\d)"
DECIMAL_COMMA = ("de", "es", "cz", "cs", "fr")
# A text with none of these is changed by no rule, but for blanks in a row.
CHANGEABLE = re.compile("[\r():;%`'\"„“”–—´‘‚’…«»\xa0]")


class Normalizer:
    """Normalizes punctuation for one language as Moses' normalize-punctuation does."""

    def __init__(self, language: str) -> None:
        digits = r"\1,\2" if language in DECIMAL_COMMA else r"\1.\2"
        rules = [*RULES, *QUOTES.get(language, ()), ("\xa0", DIGITS_APART, digits)]
        self.rules: list[Substitution] = [(rule[0], substitution(*rule)) for rule in rules]
        self.ascii_rules = [(needle, replace) for needle, replace in self.rules if needle.isascii()]

    def __call__(self, text: str) -> str:
        """Normalize the punctuation of a line, and strip it. Repeated blanks stay if no rule applies."""
        if CHANGEABLE.search(text):
            for needle, replace in self.ascii_rules if text.isascii() else self.rules:
                if needle in text:
                    text = replace(text)
        return text.strip()


def substitution(needle: str, pattern: str, replacement: str) -> Callable[[str], str]:
    """Build the function that applies a rule to a text."""
    if pattern:
        return partial(re.compile(pattern).sub, replacement)
    return methodcaller("replace", needle, replacement)


# ---- tokenization ------------------------------------------------------------------------------------------

CONTROL = re.compile(r"[\0-\37]")
DOTS = re.compile(r"\.{2,}")
DOTS_MARKER = re.compile(r"(?:DOT)+MULTI")
# What may follow a word that ends in a period; None is the end of the line.
NEXT_LOWER, NEXT_DIGIT, NEXT_OTHER = "x", "1", "X"
FIRST_WORD = "x"


class MosesTokenizer:
    """Splits text of one language into tokens as Moses' tokenizer does, without escapes."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.letters, self.lower = letters(), frozenset(characters("IsLower"))
        scripts = CJK_SCRIPTS.get(language, ())
        self.alnum = frozenset("".join(map(characters, ("IsAlnum", *scripts))) + INDIC_MARKS)
        words = abbreviations(language)
        self.before_numbers = frozenset(
            word.rpartition(" ")[0] for word in words if re.search(r"\s#NUMERIC_ONLY#", word)
        )
        self.abbreviations = frozenset(words) - self.before_numbers
        self.inside: dict[str, list[str]] = {}  # tokens of words that do not depend on their neighbors
        self.in_context: dict[
            tuple[str, bool, str | None], list[str]
        ] = {}  # of the others: (word, first, next)

    @cached_property
    def rules(self) -> list[Substitution]:
        """Rules for text of any characters."""
        return token_rules(
            self.language, *map(character_ranges, (self.letters, self.alnum, characters("IsN")))
        )

    @cached_property
    def ascii_rules(self) -> list[Substitution]:
        """Rules for text of ASCII characters; their patterns are compiled in a tenth of the time."""
        return token_rules(self.language, "A-Za-z", "A-Za-z0-9", "0-9")

    def __call__(self, text: str) -> list[str]:
        """Split a line of raw or normalized text into tokens."""
        words = text.split()
        tokens: list[str] = []
        for index, word in enumerate(words):
            if (cached := self.inside.get(word)) is not None:
                tokens += cached
            elif (result := self.tokens(words, index)) is not None:
                tokens += result
            else:
                return self.tokenize_line(" ".join(words))
        return tokens

    def tokens(self, words: list[str], index: int) -> list[str] | None:
        """The tokens of the word number `index`, from the caches if they have it; None if they depend on more
        of the line than the neighbors."""
        word = words[index]
        if word[0] not in ",'" and word[-1] not in ".,'":
            if self.alnum.issuperset(word) and "MULTI" not in word:
                return store(self.inside, word, [word])
            if CONTROL.search(word):
                return None
            return store(self.inside, word, self.tokenize_line(f"{FIRST_WORD} {word} {NEXT_OTHER}")[1:-1])
        # Of `5' '6` only one apostrophe becomes a token: the rule needs the blank between them.
        if index and word[0] == "'" == words[index - 1][-1]:
            return None
        following = self.stand_in(words[index + 1]) if index + 1 < len(words) else None
        key = (word, index == 0, following)
        if (cached := self.in_context.get(key)) is not None:
            return cached
        if CONTROL.search(word):
            return None
        line = " ".join(filter(None, (FIRST_WORD if index else None, word, following)))
        tokens = self.tokenize_line(line)[index > 0 :]
        return store(self.in_context, key, tokens[:-1] if following else tokens)

    def stand_in(self, word: str) -> str:
        """A one-letter word that has the same effect as `word` on a period before it."""
        if word[0] in self.lower:
            return NEXT_LOWER
        return NEXT_DIGIT if word[0] in "0123456789" else NEXT_OTHER

    def tokenize_line(self, text: str) -> list[str]:
        """Split a line, with single blanks between words, by applying Moses' rules one after the other."""
        text = CONTROL.sub("", text).strip()
        for needle, replace in self.ascii_rules if text.isascii() else self.rules:
            if needle in text:
                text = replace(text)
        tokens = self.split_periods(text.split())
        if tokens and tokens[-1].endswith(".'"):
            tokens[-1:] = [*filter(None, [tokens[-1][:-2]]), ".", "'"]
        if "MULTI" in text:
            tokens = [DOTS_MARKER.sub(dots, token) for token in tokens]
        return tokens

    def split_periods(self, words: list[str]) -> list[str]:
        """Split off the periods at the ends of words, except after abbreviations and before lower case."""
        tokens: list[str] = []
        for index, word in enumerate(words):
            prefix = word[:-1]
            following = words[index + 1][0] if index + 1 < len(words) else ""
            if (
                not word.endswith(".")
                or not prefix
                or ("." in prefix and not self.letters.isdisjoint(prefix))
                or prefix in self.abbreviations
                or (following and following in self.lower)
                or (prefix in self.before_numbers and following and following in "0123456789")
            ):
                tokens.append(word)
            else:
                tokens += (prefix, ".")
        return tokens


def store(cached: dict[Key, list[str]], key: Key, tokens: list[str]) -> list[str]:
    """Cache the tokens of a word, unless they are long, and return them; a full cache is emptied first."""
    if sum(map(len, tokens)) <= CACHED_LENGTH:
        if len(cached) >= CACHED_WORDS:
            cached.clear()
        cached[key] = tokens
    return tokens


def token_rules(language: str, letters: str, alnum: str, numbers: str) -> list[Substitution]:
    """Build Moses' rules that apply before periods are split off. `letters`, `alnum`, `numbers`: the insides
    of the character classes of letters, of letters and digits, and of digits."""
    rules: list[tuple[str, str, str | Callable[[re.Match[str]], str]]] = [
        ("", rf"([^{alnum}\s.'`,\-])", r" \1 "),
        ("..", DOTS.pattern, dots_marker),
        (",", rf"([^{numbers}]),", r"\1 , "),
        (",", rf",([^{numbers}])", r" , \1"),
        (",", rf"([{numbers}]),$", r"\1 , "),
    ]
    if language == "en":
        rules += [
            ("'", rf"([^{letters}])'([^{letters}])", r"\1 ' \2"),
            ("'", rf"([^{letters}{numbers}])'([{letters}])", r"\1 ' \2"),
            ("'", rf"([{letters}])'([^{letters}])", r"\1 ' \2"),
            ("'", rf"([{letters}])'([{letters}])", r"\1 '\2"),
            ("'", rf"([{numbers}])'(s)", r"\1 '\2"),
        ]
    elif language in ("fr", "it"):
        rules += [
            ("'", rf"([^{letters}])'([^{letters}])", r"\1 ' \2"),
            ("'", rf"([^{letters}])'([{letters}])", r"\1 ' \2"),
            ("'", rf"([{letters}])'([^{letters}])", r"\1 ' \2"),
            ("'", rf"([{letters}])'([{letters}])", r"\1' \2"),
        ]
    else:
        rules.append(("'", "'", " ' "))
    return [(needle, partial(re.compile(pattern).sub, replacement)) for needle, pattern, replacement in rules]


def dots_marker(match: re.Match[str]) -> str:
    """The word that stands for several dots in a row while single periods are split off."""
    return f" {'DOT' * len(match[0])}MULTI "


def dots(match: re.Match[str]) -> str:
    """The dots that a marker stands for."""
    return "." * (len(match[0]) // 3 - 1)


# ---- detokenization ----------------------------------------------------------------------------------------

CJK_CHARACTER = re.compile(
    "[\u1100-\u11ff\u2e80-\ua4cf\ua840-\ua87f\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff65-\uffdc"
    "\U00016fe0-\U00018aff\U0001b000-\U0001b12f\U0001b170-\U0001b2ff\U00020000-\U0002ffff]"
)
PUNCTUATION = re.compile(r"[,.?!:;\\%}\])]+")
QUOTE = re.compile("['\"„“`]+")
DOUBLE_QUOTE = re.compile("[„“]+")
SPACED_IN_FRENCH = frozenset("?!:;\\%")
ELIDING = ("fr", "ga", "it")  # a word may end in an apostrophe and belong to the next one


class TokenKind(Enum):
    """The role of a token in detokenization."""

    WORD = auto()
    CJK = auto()
    OPENING = auto()  # a currency symbol or an opening bracket
    PUNCTUATION = auto()
    CONTRACTION = auto()  # English: 's
    NUMBER = auto()  # Czech: digits only
    ELISION = auto()  # French: l'
    QUOTE = auto()


class MosesDetokenizer:
    """Joins tokens to text of one language as Moses' detokenizer does."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.letters = frozenset(characters("IsAlpha"))
        self.opening = frozenset(characters("IsSc") + "([{¿¡")
        self.kinds: dict[str, TokenKind] = {}

    def __call__(self, words: list[str]) -> str:
        """Join the tokens of a line; ` @-@ `, which Moses can write for a hyphen, becomes one."""
        tokens = f" {' '.join(words)} ".replace(" @-@ ", "-").split()
        kinds = [self.kinds.get(token) or self.find_kind(token) for token in tokens]
        # As in sacremoses, the end of a line decides whether its numbers are decimals of Czech.
        decimals = kinds[-2:-1] == [TokenKind.NUMBER] and tokens[-1] in (".", ",")
        quotes: Counter[str] = Counter()
        text: list[str] = []
        blank = ""
        for index, (token, kind) in enumerate(zip(tokens, kinds, strict=True)):
            next_blank = " "
            if kind is TokenKind.WORD:
                pass
            elif kind is TokenKind.PUNCTUATION:
                blank = " " if self.language == "fr" and token in SPACED_IN_FRENCH else ""
            elif kind is TokenKind.QUOTE:
                if self.opens(token, tokens[index - 1] if index else "", quotes):
                    next_blank = ""
                else:
                    blank = ""
            elif kind is TokenKind.OPENING:
                next_blank = ""
            elif kind is TokenKind.CONTRACTION:
                blank = ""
            elif kind is TokenKind.ELISION:
                next_blank = (
                    "" if self.letters.issuperset("".join(tokens[index + 1 : index + 2])[:1] or " ") else " "
                )
            elif kind is TokenKind.CJK:
                if index and CJK_CHARACTER.match(tokens[index - 1][-1]):
                    blank = ""
            elif decimals and index > 1:
                blank = ""
            text += (blank, token)
            blank = next_blank
        return "".join(text).strip()

    def find_kind(self, token: str) -> TokenKind:
        """Determine the kind of a token, and cache it."""
        kind = TokenKind.WORD
        if CJK_CHARACTER.match(token) and self.language != "ko":
            kind = TokenKind.CJK
        elif self.opening.issuperset(token):
            kind = TokenKind.OPENING
        elif PUNCTUATION.fullmatch(token):
            kind = TokenKind.PUNCTUATION
        elif self.language == "en" and token[0] == "'" and token[1:2] in self.letters:
            kind = TokenKind.CONTRACTION
        elif self.language == "cs" and re.fullmatch("[0-9]+", token):
            kind = TokenKind.NUMBER
        elif self.language in ELIDING and token[-1] == "'" and token[-2:-1] in self.letters:
            kind = TokenKind.ELISION
        elif QUOTE.fullmatch(token):
            kind = TokenKind.QUOTE
        if len(self.kinds) >= CACHED_WORDS:
            self.kinds.clear()
        self.kinds[token] = kind
        return kind

    def opens(self, token: str, previous: str, quotes: Counter[str]) -> bool:
        """Whether a quotation mark opens a quotation, so that the next token is attached to it. `previous`:
        the token before it; `quotes`: the number of each mark in the line so far, which is updated."""
        mark = '"' if DOUBLE_QUOTE.fullmatch(token) else token
        if self.language == "cs" and token in ("„", "“"):
            quotes[mark] = int(token == "“")
        opens = quotes[mark] % 2 == 0
        if opens and self.language == "en" and token == "'" and previous.endswith("s"):
            return False  # the Jones' house
        quotes[mark] += 1
        return opens
