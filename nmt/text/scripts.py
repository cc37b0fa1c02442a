"""Languages and their scripts: codes, lengths of lines in any script, words of scripts without blanks."""

import logging
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Protocol

import regex

from nmt.errors import ConfigError
from nmt.io import files
from nmt.io.numbers import shown

# ---- lengths and scripts of lines --------------------------------------------------------------------------
# How long a line is, whatever its script, and which script a text has.


# Languages written without blanks between words.
SPACELESS = frozenset({"bo", "cjk", "dz", "ja", "km", "lo", "my", "th", "yue", "zh"})

# Chinese characters, kana, their punctuation and full-width forms: about two make a word.
IDEOGRAPH = re.compile(
    "[\u3001-\u303f\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff]"
)
IDEOGRAPHS_A_WORD = 2
# Thai, Lao, Tibetan, Burmese, Khmer: about four make a word.
SPACELESS_LETTER = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f]")
LETTERS_A_WORD = 4

# A unit that is one byte of a character is a letter in private use wherever it is looked at as text.
FIRST_BYTE = 0xE000
BYTE_LETTER = re.compile("[\ue000-\ue0ff]")


def line_length(text: str) -> int:
    """The number of words of a line: of what blanks separate; where a script has none, two Chinese or
    Japanese characters count as a word, and four letters of Thai, Lao, Tibetan, Burmese or Khmer.

    Segmented text counts as its words.

    >>> line_length("The dog sees a cat ."), line_length("犬が猫を見る。"), line_length("犬 が 猫 を 見る 。")
    (6, 4, 6)
    """
    words = len(files.split_words(text))
    if text.isascii():
        return words
    rest, ideographs = IDEOGRAPH.subn(" ", text)
    rest, letters = SPACELESS_LETTER.subn(" ", rest)
    if not (ideographs or letters):
        return words
    estimate = (
        len(files.split_words(rest)) + -(-ideographs // IDEOGRAPHS_A_WORD) + -(-letters // LETTERS_A_WORD)
    )
    return max(words, estimate)


def character_length(text: str) -> int:
    """The number of characters of a line without its blanks."""
    return len(text) - text.count(" ") - text.count("\t")


def is_spaceless(language: str) -> bool:
    """Is a language written without blanks between words? `zh-TW` is zh."""
    return re.split("[-_]", language.lower())[0] in SPACELESS


@cache
def script_of(character: str) -> str:
    """The script of a letter, by its Unicode name: LATIN, CYRILLIC, CJK, HIRAGANA ..."""
    return unicodedata.name(character, "?").split(" ")[0]


def script_of_text(characters: Counter[str]) -> str:
    """The script of most letters of a text, by their Unicode names: LATIN, CYRILLIC, CJK ..."""
    totals: Counter[str] = Counter()
    for character, count in characters.items():
        if character.isalpha():
            totals[script_of(character)] += count
    return max(totals, key=lambda name: (totals[name], name), default="")


def byte_letter(byte: int) -> str:
    """The letter that stands for a unit that is one byte of a character; it is in private use."""
    return chr(FIRST_BYTE + byte)


# ---- language codes ----------------------------------------------------------------------------------------
# Language codes: the two letters of ISO 639-1, else the three of ISO 639-2, and those of Moses' own.


log = logging.getLogger(__name__)


def check_language_code(language: str, key: str = "language") -> None:
    """ConfigError for anything but a language code; a warning for a language that Moses has no rules for.
    `key`: what the message calls it."""
    if language not in languages_with_rules() | LANGUAGE_CODES:
        raise ConfigError(
            f"{key}: {shown(language)} is unknown; expected an ISO 639 code, of two letters where it has "
            "one: en, fr, de, zh, hsb ..."
        )
    warn_without_rules(language)


@cache
def warn_without_rules(language: str) -> None:
    """Say once that the tokenizer has no rules for a language."""
    if language not in languages_with_rules():
        log.warning(
            "language %s: the tokenizer has no list of its abbreviations, so English ones keep their dots, "
            "as in Moses",
            language,
        )


@cache
def languages_with_rules() -> frozenset[str]:
    """The languages that the tokenizer or the normalizer has rules for."""
    from sacremoses.corpus import NonbreakingPrefixes

    return frozenset(NonbreakingPrefixes().available_langs.values()) | OTHERS_WITH_RULES


def language_of_file(path: str) -> str:
    """The language that the ending of a file's name says, or nothing: corpus/train.tok.en.gz -> en"""
    name = Path(path).name.removesuffix(".gz").removesuffix(".txt")
    ending = Path(name).suffix.removeprefix(".")
    return ending if ending in LANGUAGE_CODES - AMBIGUOUS_ENDINGS or ending in languages_with_rules() else ""


OTHERS_WITH_RULES = {"cjk", "cz", "ko"} | SPACELESS  # rules of their own in the tokenizer or the normalizer
# They end the names of other files, too.
AMBIGUOUS_ENDINGS = set("art bin inc man map min new pro".split())
LANGUAGE_CODES = frozenset(
    """
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee
el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is
it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms
mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk
sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi
yo za zh zu ace ach ada ady afa afh ain akk ale alg alt ang anp apa arc arn arp art arw ast ath aus awa bad
bai bal ban bas bat bej bem ber bho bik bin bla bnt bra btk bua bug byn cad cai car cau ceb cel chb chg chk
chm chn cho chp chr chy cmc cnr cop cpe cpf cpp crh crp csb cus dak dar day del den dgr din doi dra dsb dua
dum dyu efi egy eka elx enm ewo fan fat fil fiu fon frm fro frr frs fur gaa gay gba gem gez gil gmh goh gon
gor got grb grc gsw gwi hai haw hil him hit hmn hsb hup iba ijo ilo inc ine inh ira iro jbo jpr jrb kaa kab
kac kam kar kaw kbd kha khi kho kmb kok kos kpe krc krl kro kru kum kut lad lah lam lez lol loz lua lui lun
luo lus mad mag mai mak man map mas mdf mdr men mga mic min mkh mnc mni mno moh mos mun mus mwl mwr myn myv
nah nai nap nds new nia nic niu nog non nqo nso nub nwc nym nyn nyo nzi osa ota oto paa pag pal pam pap pau
peo phi phn pon pra pro raj rap rar roa rom rup sad sah sai sal sam sas sat scn sco sel sem sga sgn shn sid
sio sit sla sma smi smj smn sms snk sog son srn srr ssa suk sus sux syc syr tai tem ter tet tig tiv tkl tlh
tli tmh tog tpi tsi tum tup tut tvl tyv udm uga umb vai vot wak wal war was wen xal yao yap ypk zap zbl zen
zgh znd zun zza
""".split()
)


# ---- segmenters --------------------------------------------------------------------------------------------
# Words of scripts that are written without spaces: characters, or the words of a dictionary.
#
# A segmenter cuts a run of such text, which holds no blank, into pieces that are the run when they are
# joined. Libraries are imported when they are needed, and read only the dictionaries that they bring.


class Segmenter(Protocol):
    """Cuts a run of text."""

    def __call__(self, run: str) -> list[str]: ...


# A grapheme cluster with all its marks, and the consonants below it in Burmese and Khmer.
CHARACTER = regex.compile(r"\X\p{M}*(?:(?<=[\u1039\u17d2])\X\p{M}*)*")


def characters(run: str) -> list[str]:
    """Split into grapheme clusters: no mark leaves its letter."""
    return list(map(str, CHARACTER.findall(run)))


# -- words of a dictionary -----------------------------------------------------------------------------------


def japanese_segmenter() -> Segmenter:
    """MeCab with its dictionary ipadic, as in sacreBLEU's tokenizer ja-mecab."""
    import ipadic
    import MeCab

    tagger = MeCab.Tagger(f"{ipadic.MECAB_ARGS} -Owakati")
    return lambda run: str(tagger.parse(run)).split()


def chinese_segmenter() -> Segmenter:
    """Load jieba with its dictionary and model."""
    import rjieba

    return lambda run: list(map(str, rjieba.cut(run)))


def thai_segmenter() -> Segmenter:
    """PyThaiNLP's newmm, the longest words of its dictionary. Nothing is fetched, or written to the user's
    home."""
    os.environ.setdefault("PYTHAINLP_OFFLINE", "1")
    if "PYTHAINLP_READ_MODE" not in os.environ:  # the former name; both together are an error
        os.environ.setdefault("PYTHAINLP_READ_ONLY", "1")
    from pythainlp.tokenize import word_tokenize

    return lambda run: list(map(str, word_tokenize(run, engine="newmm-safe")))


# Segmenters by language; the extra that installs the library has the same name.
DICTIONARIES: dict[str, Callable[[], Segmenter]] = {
    "ja": japanese_segmenter,
    "th": thai_segmenter,
    "zh": chinese_segmenter,
}


@cache
def dictionary_words(language: str) -> Segmenter:
    """The words of a dictionary. ConfigError for a language without one, or where its library is missing."""
    if language not in DICTIONARIES:
        raise ConfigError(
            f"segment: word needs a dictionary, which there is for {', '.join(DICTIONARIES)}, not for "
            f"{language or 'text without a language'}; use character"
        )
    try:
        split_run = DICTIONARIES[language]()
    except ImportError as error:
        raise ConfigError(
            f"segment: word needs a library for {language}: pip install 'nmt-smt[{language}]', or use "
            "character"
        ) from error
    return lambda run: complete_pieces(split_run(run), run)


def complete_pieces(pieces: list[str], run: str) -> list[str]:
    """The pieces that a library found in a run, no mark without its letter; characters if anything is
    missing."""
    if "".join(pieces) != run:
        return characters(run)
    complete: list[str] = []
    for piece in filter(None, pieces):
        if complete and regex.match(r"\p{M}", piece):
            complete[-1] += piece
        else:
            complete.append(piece)
    return complete


# -- the segmenter of a setting ------------------------------------------------------------------------------


def automatic_segmenter(language: str) -> Segmenter | None:
    """Characters, whatever is installed: the same text gives the same words everywhere."""
    return characters if is_spaceless(language) else None


# Values of `segment`, the default first. None: blanks and Moses' rules alone make words.
SEGMENTERS: dict[str, Callable[[str], Segmenter | None]] = {
    "auto": automatic_segmenter,
    "none": lambda language: None,
    "character": lambda language: characters,
    "word": dictionary_words,
}
WITHOUT_SEGMENTER = ("auto", "none")


def make_segmenter(kind: str, language: str, tokenize: bool) -> Segmenter | None:
    """The segmenter of a value of `segment`. ConfigError for one that cannot be, in a message that begins
    with the key."""
    if kind not in SEGMENTERS:
        raise ConfigError(f"segment: {kind!r} is unknown, expected one of {', '.join(SEGMENTERS)}")
    if not tokenize and kind not in WITHOUT_SEGMENTER:
        raise ConfigError(
            f"segment: {kind} is a part of tokenization; set tokenize: true, and subword: none or bpe, or "
            "leave segment out"
        )
    return SEGMENTERS[kind](language) if tokenize else None


# ---- tokenization without blanks ---------------------------------------------------------------------------
# Tokenization of text whose script has no spaces between words, and the way back.
#
# Runs of Chinese, Japanese, Thai, Lao, Tibetan, Khmer and Burmese letters are cut by a segmenter.
# What is between them, Latin words, numbers and punctuation, follows Moses' rules for
# English, but dashes, ellipses and curly quotes stay what they are. On the way back no blank is written
# beside such letters or their punctuation. In Chinese and Japanese blanks there get lost; in the other
# scripts, where a blank ends a phrase, it is the word `▁`. Zero-width spaces are removed.


BLANK_WORD = "▁"  # a blank that has to be written
NO_BLANKS = frozenset(("cjk", "ja", "yue", "zh"))  # languages whose blanks mean nothing
ZERO_WIDTH = "\u200b"

SCRIPT_PATTERN = "".join(
    rf"\p{{scx={script}}}"
    for script in ("Han", "Hiragana", "Katakana", "Bopomofo", "Thai", "Lao", "Tibetan", "Khmer", "Myanmar")
)
LETTER_PATTERN = rf"[[{SCRIPT_PATTERN}]--[\p{{Nd}}\p{{Zs}}\p{{M}}]]"
# Moses' normalization would make `- -` of a Chinese dash, and close with `"` what “ has opened.
MARK_PATTERN = r"[—…“”‘]|’(?!\p{Latin})"
LETTER_RUN = regex.compile(rf"(?:{LETTER_PATTERN}[\p{{M}}\u200c\u200d]*|{MARK_PATTERN})+", regex.V1)
# Beside these no blank is written: the letters, their punctuation, and all punctuation beyond ASCII.
TIGHT_WORD = regex.compile(rf"{LETTER_PATTERN}|[[\p{{P}}\p{{S}}]--\p{{ASCII}}]|{BLANK_WORD}", regex.V1)
LATIN_WORD = regex.compile(r"[A-Za-z0-9]+")


class Rules(Protocol):
    """Normalizes and tokenizes what is written with spaces, and puts it together."""

    def words(self, text: str) -> list[str]: ...
    def text(self, words: list[str]) -> str: ...


class SpacelessTokenizer:
    """Words of a line and back, by a segmenter for the letters without spaces and rules for the rest."""

    def __init__(self, language: str, segmenter: Segmenter, rules: Rules) -> None:
        self.segmenter, self.rules = segmenter, rules
        self.keep_blanks = language not in NO_BLANKS

    def words(self, line: str) -> list[str]:
        """`私はSony 3.5台` -> 私 は Sony 3.5 台, by characters or by words"""
        result: list[str] = []
        for words, after_blank in self.pieces(line.replace(ZERO_WIDTH, "")):
            if after_blank and self.keep_blanks and result:
                result.append(BLANK_WORD)
            result += words
        return result

    def pieces(self, line: str) -> Iterator[tuple[list[str], bool]]:
        """The words of each run of letters, and of what is between them; is there a blank before?"""
        end = 0
        for run in LETTER_RUN.finditer(line):
            yield from self.between(line[end : run.start()])
            yield self.segmenter(run[0]), line[run.start() - 1 : run.start()].isspace()
            end = run.end()
        yield from self.between(line[end:])

    def between(self, text: str) -> Iterator[tuple[list[str], bool]]:
        """Tokenize the text between two runs of letters; yields nothing for blanks alone."""
        if stripped := text.strip():
            words = [stripped] if LATIN_WORD.fullmatch(stripped) else self.rules.words(stripped)
            yield words, text[:1].isspace()

    def text(self, words: list[str]) -> str:
        """The line that `words` came from."""
        parts = []
        for tight, group in groupby(words, key=lambda word: bool(TIGHT_WORD.search(word))):
            members = list(group)
            parts.append("".join(members).replace(BLANK_WORD, " ") if tight else self.rules.text(members))
        return "".join(parts).strip(" ")
