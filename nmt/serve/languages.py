"""Languages: which of those of the engines a text is in, and their English names."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from nmt.serve.endpoints import BadRequest
from nmt.serve.served import ServedEngines

# ---- which language a text is in ---------------------------------------------------------------------------
DETECTED_CHARACTERS = 1000  # characters of a text that are looked at


class LanguageDetector:
    """Rates how well a text fits the source languages of the engines.

    One thread does it for all requests in turn, so that translations go on meanwhile.
    """

    def __init__(self, engines: ServedEngines) -> None:
        self.engines, self.thread = engines, ThreadPoolExecutor(1, "detect")

    async def candidates(self, text: str) -> list[tuple[str, float]]:
        """List the languages that a text may be in, likeliest first, with the percentage of known words.

        BadRequest if no engine has known languages.
        """
        fits = await asyncio.get_running_loop().run_in_executor(self.thread, self.fits, text)
        if not fits:
            raise BadRequest("no engine of this server says its languages")
        ordered = sorted(fits, key=lambda language: -fits[language])
        likely = [language for language in ordered if fits[language] > 0] or ordered[:1]
        return [(language, round(100 * fits[language], 1)) for language in likely]

    def fits(self, text: str) -> dict[str, float]:
        """Rate how well a text fits each source language, by the best of the engines of that language."""
        line, fits = text[:DETECTED_CHARACTERS].replace("\n", " "), dict[str, float]()
        for served in self.engines.values():
            source, target = served.languages
            if source and target:
                fits[source] = max(served.engine.fit(line), fits.get(source, 0.0))
        return fits


# ---- names of languages ------------------------------------------------------------------------------------
ENGLISH_NAMES = dict(
    row.split(" ", 1)
    for row in """
af Afrikaans
am Amharic
ar Arabic
az Azerbaijani
be Belarusian
bg Bulgarian
bn Bengali
bs Bosnian
ca Catalan
cs Czech
cy Welsh
da Danish
de German
el Greek
en English
eo Esperanto
es Spanish
et Estonian
eu Basque
fa Persian
fi Finnish
fr French
ga Irish
gl Galician
gu Gujarati
ha Hausa
he Hebrew
hi Hindi
hr Croatian
hsb Upper Sorbian
hu Hungarian
hy Armenian
id Indonesian
ig Igbo
is Icelandic
it Italian
ja Japanese
ka Georgian
kk Kazakh
km Khmer
kn Kannada
ko Korean
ku Kurdish
ky Kyrgyz
la Latin
lb Luxembourgish
lo Lao
lt Lithuanian
lv Latvian
mg Malagasy
mi Maori
mk Macedonian
ml Malayalam
mn Mongolian
mr Marathi
ms Malay
mt Maltese
my Burmese
nb Norwegian Bokmål
ne Nepali
nl Dutch
nn Norwegian Nynorsk
no Norwegian
pa Punjabi
pl Polish
ps Pashto
pt Portuguese
ro Romanian
ru Russian
si Sinhala
sk Slovak
sl Slovenian
so Somali
sq Albanian
sr Serbian
sv Swedish
sw Swahili
ta Tamil
te Telugu
tg Tajik
th Thai
tk Turkmen
tl Tagalog
tr Turkish
tt Tatar
ug Uyghur
uk Ukrainian
ur Urdu
uz Uzbek
vi Vietnamese
xh Xhosa
yi Yiddish
yo Yoruba
zh Chinese
zu Zulu
""".strip().split("\n")
)


def english_name(code: str) -> str:
    """The name of a language; its code for a rare one."""
    return ENGLISH_NAMES.get(code, code)
