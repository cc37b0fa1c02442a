"""Which script a text has, and which language it probably is: by the script where only one language has it,
else by its most frequent little words. Nothing is downloaded, and what cannot be told is not guessed."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cache

import regex

from nmt.text.scripts import script_of

WORD = regex.compile(r"\p{L}[\p{L}\p{M}]*")
ALL, EVERY = 2000, 20  # the first lines are all looked at, then each twentieth
LEAST = 0.08  # share of running words that are little ones; of a language's own text it is 0.2 to 0.5
CLEARLY = 1.3  # times the share of the next language

EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "BOPOMOFO")
KANA = 0.05  # Japanese has more than this share of kana
ONE_LANGUAGE = {
    "ARMENIAN": "hy", "BENGALI": "bn", "ETHIOPIC": "am", "GEORGIAN": "ka", "GREEK": "el", "GUJARATI": "gu",
    "GURMUKHI": "pa", "HANGUL": "ko", "HEBREW": "he", "KANNADA": "kn", "KHMER": "km", "LAO": "lo",
    "MALAYALAM": "ml", "MYANMAR": "my", "ORIYA": "or", "SINHALA": "si", "TAMIL": "ta", "TELUGU": "te",
    "THAI": "th", "TIBETAN": "bo",
}  # fmt: skip
LITTLE_WORDS = {
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
LANGUAGES: dict[str, list[str]] = {}  # of each little word
for _language, _words in LITTLE_WORDS.items():
    for _word in _words.split():
        LANGUAGES.setdefault(_word, []).append(_language)


@dataclass(frozen=True)
class Guess:
    """Probable script and language of a text. `languages`: one if clear, two if they are too similar, none
    where nothing can be said."""

    script: str = ""  # by its Unicode name: LATIN, CYRILLIC ...; empty for a text without letters
    languages: tuple[str, ...] = ()

    @property
    def language(self) -> str:
        """The language if it is clear."""
        return self.languages[0] if len(self.languages) == 1 else ""

    def __str__(self) -> str:
        """The guess in words: `Latin script, probably fr`."""
        if not self.script:
            return "no letters"
        if not self.languages:
            return f"{shown(self.script)} script; which language cannot be told"
        return f"{shown(self.script)} script, probably {' or '.join(self.languages)}"


def shown(script: str) -> str:
    """The name of a script, for people."""
    return "Chinese or Japanese" if script == "CJK" else script.capitalize()


@dataclass
class LanguageCounts:
    """Counts of letters and of frequent little words from which a language is guessed."""

    letters: Counter[str] = field(default_factory=Counter)  # of each script
    words: int = 0
    little: Counter[str] = field(default_factory=Counter)  # of each language
    lines: int = 0

    def add(self, line: str) -> None:
        """Count a line, if it is among those that are looked at."""
        self.lines += 1
        if self.lines > ALL and self.lines % EVERY:
            return
        for character, count in Counter(line).items():
            if character.isalpha():
                self.letters[script_of(character)] += count
        for word in WORD.findall(line.lower()):
            self.words += 1
            for language in LANGUAGES.get(word, ()):
                self.little[language] += 1

    def guess(self) -> Guess:
        """Guess script and language from the counts so far."""
        grouped: Counter[str] = Counter()
        for name, count in self.letters.items():
            grouped[grouped_script(name)] += count
        if not grouped:
            return Guess()
        script = max(grouped, key=lambda name: (grouped[name], name))
        if script == "CJK":
            kana = self.letters["HIRAGANA"] + self.letters["KATAKANA"]
            return Guess(script, ("ja",) if kana > KANA * grouped[script] else ("zh",))
        if script in ONE_LANGUAGE:
            return Guess(script, (ONE_LANGUAGE[script],))
        return Guess(script, self.by_little_words())

    def by_little_words(self) -> tuple[str, ...]:
        """The language of most little words, or the two of most, if there are enough of them."""
        ranked = [(count, name) for name, count in self.little.items() if count >= LEAST * self.words]
        ranked.sort(key=lambda candidate: (-candidate[0], candidate[1]))
        near = [name for count, name in ranked if count * CLEARLY > ranked[0][0]]
        return tuple(near) if len(near) <= 2 else ()


@cache
def grouped_script(name: str) -> str:
    """Chinese characters and kana are one script here."""
    return "CJK" if name in EAST_ASIAN else name


def script_of_line(line: str) -> str:
    """The script of most letters of a line; empty where it has none."""
    if line.isascii():
        return "LATIN" if any(map(str.isalpha, line)) else ""
    scripts: Counter[str] = Counter()
    for character, count in Counter(line).items():
        if character.isalpha():
            scripts[grouped_script(script_of(character))] += count
    return max(scripts, key=lambda name: (scripts[name], name), default="")
