"""Languages and their scripts: language codes, line lengths in any script, segmentation of scripts without
blanks, and language identification."""

import logging
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import regex

from nmt.errors import ConfigError
from nmt.io import files
from nmt.io.numbers import shown
from nmt.text import moses

# ---- lengths and scripts of lines --------------------------------------------------------------------------

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

# In text, a unit of one byte of a character is represented by a private-use letter.
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
    """Whether a language is written without blanks between words; `zh-TW` counts as zh."""
    return re.split("[-_]", language.lower())[0] in SPACELESS


@cache
def letter_script(character: str) -> str:
    """The script of a letter, by its Unicode name: LATIN, CYRILLIC, CJK, HIRAGANA ...; `?` without a name."""
    return unicodedata.name(character, "?").split(" ")[0]


def script_counts(characters: Counter[str]) -> Counter[str]:
    """The number of letters of each script, from counts of characters."""
    totals: Counter[str] = Counter()
    for character, count in characters.items():
        if character.isalpha():
            totals[letter_script(character)] += count
    return totals


def most_frequent(counts: Counter[str]) -> str:
    """The name with the highest count, of equal ones the last in the alphabet; empty without any."""
    return max(counts, key=lambda name: (counts[name], name), default="")


def script_of_text(characters: Counter[str]) -> str:
    """The script of most letters, from counts of characters: LATIN, CYRILLIC, CJK ...; or empty."""
    return most_frequent(script_counts(characters))


def byte_letter(byte: int) -> str:
    """The private-use letter that stands for a unit of one byte of a character."""
    return chr(FIRST_BYTE + byte)


# ---- language codes ----------------------------------------------------------------------------------------
# Language codes: the two letters of ISO 639-1, else the three of ISO 639-2, and those of Moses' own.

log = logging.getLogger(__name__)


def check_language_code(language: str, key: str = "language") -> None:
    """ConfigError for anything but a language code; warns of a language without rules in Moses. `key`: what
    the message calls the setting."""
    if language not in languages_with_rules() | LANGUAGE_CODES:
        raise ConfigError(
            f"{key}: {shown(language)} is unknown; expected an ISO 639 code, of two letters where it has "
            "one: en, fr, de, zh, hsb ..."
        )
    warn_without_rules(language)


@cache
def warn_without_rules(language: str) -> None:
    """Warn once that the tokenizer has no rules for a language."""
    if language not in languages_with_rules():
        log.warning(
            "language %s: the tokenizer has no list of its abbreviations, so English ones keep their dots, "
            "as in Moses",
            language,
        )


def languages_with_rules() -> frozenset[str]:
    """Languages for which the tokenizer or the normalizer has rules."""
    return moses.languages_with_abbreviations() | OTHERS_WITH_RULES


def language_of_file(path: str) -> str:
    """The language code at the end of a file name, or an empty string: corpus/train.tok.en.gz -> en"""
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

Segmenter = Callable[[str], list[str]]  # cuts a run of text
# A grapheme cluster with all its marks, and the consonants below it in Burmese and Khmer.
CHARACTER = regex.compile(r"\X\p{M}*(?:(?<=[\u1039\u17d2])\X\p{M}*)*")


def characters(run: str) -> list[str]:
    """Split a run of text into grapheme clusters: no mark is separated from its letter."""
    return list(map(str, CHARACTER.findall(run)))


def japanese_segmenter() -> Segmenter:
    """Load MeCab with its dictionary ipadic, as in sacreBLEU's tokenizer ja-mecab."""
    import ipadic
    import MeCab

    tagger = MeCab.Tagger(f"{ipadic.MECAB_ARGS} -Owakati")
    return lambda run: str(tagger.parse(run)).split()


def chinese_segmenter() -> Segmenter:
    """Load jieba with its dictionary and model."""
    import rjieba

    return lambda run: list(map(str, rjieba.cut(run)))


def thai_segmenter() -> Segmenter:
    """Load PyThaiNLP's newmm, a longest-match segmenter. Downloads nothing, writes nothing to the home."""
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
    """Load a language's dictionary segmenter. ConfigError if it has none, or its library is missing."""
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
    """The pieces into which a library split a run, each mark attached to its letter; single characters if the
    pieces do not add up to the run."""
    if "".join(pieces) != run:
        return characters(run)
    complete: list[str] = []
    for piece in filter(None, pieces):
        if complete and regex.match(r"\p{M}", piece):
            complete[-1] += piece
        else:
            complete.append(piece)
    return complete


# Values of `segment`, the default first. None: blanks and Moses' rules alone make words. `auto` does not
# depend on what is installed: the same text gives the same words everywhere.
SEGMENTERS: dict[str, Callable[[str], Segmenter | None]] = {
    "auto": lambda language: characters if is_spaceless(language) else None,
    "none": lambda language: None,
    "character": lambda language: characters,
    "word": dictionary_words,
}
WITHOUT_SEGMENTER = ("auto", "none")


def make_segmenter(kind: str, language: str, tokenize: bool) -> Segmenter | None:
    """Create the segmenter that the setting `segment` names. `kind`: the value of the setting; `tokenize`:
    whether the text is tokenized. None if blanks and Moses' rules alone make words. ConfigError for an
    unknown or unusable value; the message begins with the key."""
    if kind not in SEGMENTERS:
        raise ConfigError(f"segment: {kind!r} is unknown, expected one of {', '.join(SEGMENTERS)}")
    if not tokenize and kind not in WITHOUT_SEGMENTER:
        raise ConfigError(
            f"segment: {kind} is a part of tokenization; set tokenize: true, and subword: none or bpe, or "
            "leave segment out"
        )
    return SEGMENTERS[kind](language) if tokenize else None


# ---- language ----------------------------------------------------------------------------------------------
# Which script a text has, and which language it probably is: by the script where only one language has it,
# else by its most frequent function words. Nothing is downloaded; without enough evidence no language is
# named.

WORD = regex.compile(r"\p{L}[\p{L}\p{M}]*")
LINES_READ, SAMPLED_EVERY = 2000, 20  # the sample: all of the first lines, then each twentieth
# Share of running words that are function words of a language; in texts of the language it is 0.2 to 0.5.
LEAST_FUNCTION_WORDS = 0.08
CLEAR_RATIO = 1.3  # times the share of the next language

EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "BOPOMOFO")
KANA = 0.05  # Japanese has more than this share of kana
ONE_LANGUAGE = {
    "ARMENIAN": "hy", "BENGALI": "bn", "ETHIOPIC": "am", "GEORGIAN": "ka", "GREEK": "el", "GUJARATI": "gu",
    "GURMUKHI": "pa", "HANGUL": "ko", "HEBREW": "he", "KANNADA": "kn", "KHMER": "km", "LAO": "lo",
    "MALAYALAM": "ml", "MYANMAR": "my", "ORIYA": "or", "SINHALA": "si", "TAMIL": "ta", "TELUGU": "te",
    "THAI": "th", "TIBETAN": "bo",
}  # fmt: skip
FUNCTION_WORDS = {
    "ca": "el la els les de i que un una per amb en és no del al ha són aquest més",
    "cs": "a je se v na že to s z do o i ve pro jsem ale jako za by tak",
    "da": "og i at det en er til på som med de af for ikke den har et jeg var vi",
    "de": "der die und in den das ist von zu mit ein eine nicht des auf sich dem im für es",
    "en": "the of and to in a is that for it on with as was are this be at by an i you he she we not do my",
    "es": "de la el que y en los un una se las por con del no para su al es lo",
    "et": "ja on ei et see ta ma ka oli mis kui aga oma siis või mida nii selle nad",
    "eu": "eta da ez du dira bat dute hau zen baina den izan bere dela ere zuen",
    "fi": "ja on ei se että hän oli mutta joka ovat kun myös niin tai olen sen mitä jos ole",
    "fr": "de la le et les des en un une du que est pour dans il à qui sur pas l d",
    "ga": "an na agus ar i is a go le sé bhí tá ag do mar ní na nach siad",
    "hr": "i je u na se da su za od s ne to kao koji što ali će bi nije sam",
    "hu": "a az és hogy nem is egy ez volt de meg azt csak van ha már mint el vagy",
    "id": "yang dan di itu dengan untuk tidak ini dari dalam akan pada saya ke ada adalah mereka kami bisa",
    "is": "og að í á er sem til um það við en ekki var með af hann ég fyrir þú",
    "it": "di e che la il un a per in una è non si con i le da sono del della",
    "lt": "ir kad yra į su tai iš ne o bet jis apie kaip buvo už po nuo jo per",
    "lv": "un ir ka no ar uz par tas bet kas es nav vai viņš lai pie bija to ko",
    "nb": "og i det er på en som til å ikke har med for jeg av var at vi de han",
    "nl": "de het een van en in is dat op te zijn met die voor niet aan er om ik ook",
    "pl": "i w na się z a nie że do to jest o po jak za ale co od przez dla są",
    "pt": "de a o que e do da em um uma para os com não no se na as por mais",
    "ro": "de și a în la cu că nu o pe un care din este pentru mai sunt se au ce",
    "sk": "a je sa v na že to s z do o aj vo pre som ale ako za by tak",
    "sl": "in je v na se da so za pa ki ne to s tudi kot bi z sem iz ali",
    "sq": "të e në dhe që për një me nga është si u nuk do por ka së i më",
    "sv": "och i att det en är som på för av med den inte till har de jag om ett var",
    "tr": "ve bir bu da de için ne ile çok daha gibi o ama olarak var ben mi her kadar",
    "vi": "và của là có không được một những các cho với trong tôi người đã này để khi nhưng anh",
    "be": "і у не на што з як да ён гэта але па яго за я ад мы было так яна",
    "bg": "на и да се от в за не че е са по с ще си това но като има до",
    "kk": "және мен бұл үшін бір да де деп осы ол емес еді бар болды керек туралы",
    "mk": "на и да во се од е за не што со ќе како го ги но по ја тоа беше",
    "ru": "и в не на что с он я как это по но из у за то от для к было",
    "sr": "и је у на се да су за од не са као који што али ће то би није",
    "uk": "і в не на що з та у до це як я за він але від про його є для",
    "ar": "في من على أن إلى هذا التي كان عن ما لا مع الذي هذه لم كل قد بعد هو أو",
    "fa": "و در به از که این را با است برای آن یک می ها بود شد تا خود هم ما",
    "ur": "کے کی میں ہے اور سے کا کو اس یہ پر نے ہیں کہ نہیں بھی تھا ہو ان",
    "hi": "के है में की और से का को हैं यह पर ने कि नहीं भी था एक हो इस",
    "mr": "आहे आणि या व हे तो ते मी नाही होते का की होता त्या मध्ये आहेत एक",
    "ne": "छ र मा को का लाई ले यो हो पनि गर्न भएको छन् एक त्यो गर्ने तर गरेको",
}
LANGUAGES: dict[str, list[str]] = {}  # of each function word
for _language, _words in FUNCTION_WORDS.items():
    for _word in _words.split():
        LANGUAGES.setdefault(_word, []).append(_language)


@dataclass(frozen=True)
class Guess:
    """Probable script and language of a text. `languages`: one if clear, two if too similar, else none."""

    script: str = ""  # by its Unicode name: LATIN, CYRILLIC ...; empty for a text without letters
    languages: tuple[str, ...] = ()

    @property
    def language(self) -> str:
        """The language if it is clear, else an empty string."""
        return self.languages[0] if len(self.languages) == 1 else ""

    def __str__(self) -> str:
        """The guess in words: `Latin script, probably fr`."""
        if not self.script:
            return "no letters"
        if not self.languages:
            return f"{script_name(self.script)} script; the language cannot be determined"
        return f"{script_name(self.script)} script, probably {' or '.join(self.languages)}"


def script_name(script: str) -> str:
    return "Chinese or Japanese" if script == "CJK" else script.capitalize()


@dataclass
class LanguageCounts:
    """Counts of letters and of frequent function words from which a language is guessed."""

    letters: Counter[str] = field(default_factory=Counter)  # of each script
    words: int = 0
    function_words: Counter[str] = field(default_factory=Counter)  # of each language
    lines: int = 0

    def add(self, line: str) -> None:
        """Count a line, if it is in the sample."""
        self.lines += 1
        if self.lines > LINES_READ and self.lines % SAMPLED_EVERY:
            return
        self.letters.update(script_counts(Counter(line)))
        for word in WORD.findall(line.lower()):
            self.words += 1
            for language in LANGUAGES.get(word, ()):
                self.function_words[language] += 1

    def guess(self) -> Guess:
        grouped = group_scripts(self.letters)
        if not grouped:
            return Guess()
        script = most_frequent(grouped)
        if script == "CJK":
            kana = self.letters["HIRAGANA"] + self.letters["KATAKANA"]
            return Guess(script, ("ja",) if kana > KANA * grouped[script] else ("zh",))
        if script in ONE_LANGUAGE:
            return Guess(script, (ONE_LANGUAGE[script],))
        return Guess(script, self.guess_by_function_words())

    def guess_by_function_words(self) -> tuple[str, ...]:
        """The language with the most function words, or two if both have about as many; empty if they are too
        few or more than two languages are close."""
        ranked = [
            (count, name)
            for name, count in self.function_words.items()
            if count >= LEAST_FUNCTION_WORDS * self.words
        ]
        ranked.sort(key=lambda candidate: (-candidate[0], candidate[1]))
        near = [name for count, name in ranked if count * CLEAR_RATIO > ranked[0][0]]
        return tuple(near) if len(near) <= 2 else ()


def group_scripts(counts: Counter[str]) -> Counter[str]:
    """Counts by script, with those of Chinese characters and kana as one script, CJK."""
    grouped: Counter[str] = Counter()
    for name, count in counts.items():
        grouped["CJK" if name in EAST_ASIAN else name] += count
    return grouped


def script_of_line(line: str) -> str:
    """The script of most letters of a line, CJK for Chinese characters and kana; empty without letters."""
    if line.isascii():
        return "LATIN" if any(map(str.isalpha, line)) else ""
    return most_frequent(group_scripts(script_counts(Counter(line))))
