"""The interface of LibreTranslate (https://libretranslate.com/docs), for clients that speak it."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nmt.documents import formats, html_text
from nmt.documents.html_text import HtmlDocument
from nmt.documents.inline import AlignedTranslation
from nmt.serve import engine_access, http_api
from nmt.serve.config import ServeConfig
from nmt.serve.engine import TranslatedLine, TranslateOptions
from nmt.serve.engine_access import EngineAccess
from nmt.serve.http_api import (
    COUNT,
    TEXT,
    WORDS,
    BadRequest,
    Endpoint,
    Fields,
    Schema,
    list_schema,
    object_schema,
    optional_schema,
    record_schema,
)
from nmt.serve.limits import Token
from nmt.serve.monitoring import Lifecycle
from nmt.serve.served import ServedEngine, ServedEngines
from nmt.text.sentences import whole_lines

# ---- language detection ------------------------------------------------------------------------------------

DETECTED_CHARACTERS = 1000  # characters of a text by which its language is detected


class LanguageDetector:
    """Rates how well a text fits the source languages of the engines.

    A single thread serves all requests in turn, so that translations go on meanwhile.
    """

    def __init__(self, engines: ServedEngines) -> None:
        self.engines, self.thread = engines, ThreadPoolExecutor(1, "detect")

    async def candidates(self, text: str) -> list[tuple[str, float]]:
        """List the languages that a text may be in, likeliest first, with the percentage of the text that is
        known (`Engine.fit`). Languages at 0 are left out, except one if all are.

        BadRequest if the languages of no engine are known.
        """
        fits = await asyncio.get_running_loop().run_in_executor(self.thread, self.fits, text)
        if not fits:
            raise BadRequest("no engine of this server declares its languages")
        ordered = sorted(fits, key=lambda language: -fits[language])
        likely = [language for language in ordered if fits[language] > 0] or ordered[:1]
        return [(language, round(100 * fits[language], 1)) for language in likely]

    def fits(self, text: str) -> dict[str, float]:
        """Rate how well a text fits each source language, as the best engine of that language rates it."""
        line, fits = text[:DETECTED_CHARACTERS].replace("\n", " "), dict[str, float]()
        for served in self.engines.values():
            source, target = served.languages
            if source and target:
                fits[source] = max(served.engine.fit(line), fits.get(source, 0.0))
        return fits


# ---- names of languages ------------------------------------------------------------------------------------

ENGLISH_NAMES = dict(
    name.split(" ", 1)
    for name in (
        "af Afrikaans, am Amharic, ar Arabic, az Azerbaijani, be Belarusian, bg Bulgarian, bn Bengali, "
        "bs Bosnian, ca Catalan, cs Czech, cy Welsh, da Danish, de German, el Greek, en English, "
        "eo Esperanto, es Spanish, et Estonian, eu Basque, fa Persian, fi Finnish, fr French, ga Irish, "
        "gl Galician, gu Gujarati, ha Hausa, he Hebrew, hi Hindi, hr Croatian, hsb Upper Sorbian, "
        "hu Hungarian, hy Armenian, id Indonesian, ig Igbo, is Icelandic, it Italian, ja Japanese, "
        "ka Georgian, kk Kazakh, km Khmer, kn Kannada, ko Korean, ku Kurdish, ky Kyrgyz, la Latin, "
        "lb Luxembourgish, lo Lao, lt Lithuanian, lv Latvian, mg Malagasy, mi Maori, mk Macedonian, "
        "ml Malayalam, mn Mongolian, mr Marathi, ms Malay, mt Maltese, my Burmese, nb Norwegian Bokmål, "
        "ne Nepali, nl Dutch, nn Norwegian Nynorsk, no Norwegian, pa Punjabi, pl Polish, ps Pashto, "
        "pt Portuguese, ro Romanian, ru Russian, si Sinhala, sk Slovak, sl Slovenian, so Somali, "
        "sq Albanian, sr Serbian, sv Swedish, sw Swahili, ta Tamil, te Telugu, tg Tajik, th Thai, "
        "tk Turkmen, tl Tagalog, tr Turkish, tt Tatar, ug Uyghur, uk Ukrainian, ur Urdu, uz Uzbek, "
        "vi Vietnamese, xh Xhosa, yi Yiddish, yo Yoruba, zh Chinese, zu Zulu"
    ).split(", ")
)


def english_name(code: str) -> str:
    """The English name of a language, or its code if it is not in the table."""
    return ENGLISH_NAMES.get(code, code)


# ---- handlers ----------------------------------------------------------------------------------------------


AUTO = "auto"
TEXT_ERRORS = ("400", "403", "408", "413", "429", "503", "504")  # statuses of requests with a text
URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"


@dataclass
class QueryText:
    """A text of a request, and the lines of it to translate."""

    lines: list[str]
    size: int  # characters
    document: HtmlDocument | None = None  # for HTML only
    source: str = ""  # language
    confidence: float = 100.0  # percent, of the detected language

    def render(self, lines: Sequence[TranslatedLine]) -> str:
        """Render the text with each line replaced by its best translation."""
        if self.document is not None:
            return self.document.render(list(map(best_aligned, lines)))
        return "\n".join(line.hypotheses[0].text for line in lines)

    @property
    def detected(self) -> dict[str, object]:
        return {"confidence": self.confidence, "language": self.source}


class LibreTranslate:
    """The handlers of LibreTranslate's interface. It offers only engines whose languages are known."""

    def __init__(
        self, engines: ServedEngines, config: ServeConfig, token: Token | None, life: Lifecycle
    ) -> None:
        self.engines, self.config, self.token, self.life = engines, config, token, life
        self.access, self.detector = EngineAccess(config), LanguageDetector(engines)

    def endpoints(self) -> list[Endpoint]:
        config, languages = self.config, self.engines.languages
        settings = object_schema(["apiKeys", "charLimit", "keyRequired", "language"], charLimit=COUNT)
        return [
            Endpoint(
                path="/translate",
                handler=self.translate,
                summary="Translate texts",
                request=translate_request(config, languages),
                form=True,
                answer=translate_answer(),
                errors=TEXT_ERRORS,
            ),
            Endpoint(
                path="/detect",
                handler=self.detect,
                summary="Detect the language of a text",
                request=object_schema(["q"], q=text_schema(config), api_key=optional_schema(TEXT)),
                form=True,
                answer=list_schema(detected_language(), minItems=1),
                errors=TEXT_ERRORS,
            ),
            Endpoint(
                path="/languages",
                handler=self.languages,
                summary="The languages, and what they are translated into",
                answer=list_schema(record_schema(code=TEXT, name=TEXT, targets=WORDS)),
            ),
            Endpoint("/frontend/settings", self.settings, "Settings for a web page", settings),
            Endpoint(
                path="/health",
                handler=self.health,
                summary="Whether requests are accepted",
                answer=record_schema(status=TEXT),
                errors=["503"],
            ),
        ]

    async def translate(self, request: Request) -> Response:
        fields = await self.read_fields(request)
        single = not isinstance(fields.values.get("q"), list)
        queries = [required_text(fields, "q")] if single else fields.texts("q")
        source, target = required_text(fields, "source"), required_text(fields, "target")
        form = fields.text("format", "") or "text"
        count = fields.number("alternatives", 0, 0, self.config.max_n_best - 1)
        if not queries:
            raise BadRequest("Invalid request: missing q parameter")
        if form not in ("text", "html"):
            raise BadRequest(f"{form} format is not supported")
        self.check_languages(source, target)
        texts = await self.access.run_text_work(
            request, sum(map(len, queries)), partial(self.split_queries, queries, form)
        )
        await self.access.answer(request, self.set_languages(texts, source))
        translations = await self.translate_texts(request, texts, target, count)
        answer: dict[str, object] = {"translatedText": [versions[0] for versions in translations]}
        if source == AUTO:
            answer["detectedLanguage"] = [text.detected for text in texts]
        if count:
            answer["alternatives"] = [versions[1:] for versions in translations]
        if single:
            answer = {name: values[0] for name, values in answer.items() if isinstance(values, list)}
        return JSONResponse(answer)

    async def detect(self, request: Request) -> Response:
        values = await self.read_fields(request)
        candidates = await self.access.answer(request, self.detector.candidates(required_text(values, "q")))
        return JSONResponse([{"confidence": percent, "language": code} for code, percent in candidates])

    async def languages(self, request: Request) -> Response:
        answer = []
        for code in self.engines.languages:
            targets = dict.fromkeys(target for source, target in self.engines.pairs if source == code)
            answer.append({"code": code, "name": english_name(code), "targets": list(targets)})
        return JSONResponse(answer)

    async def settings(self, request: Request) -> Response:
        target = next((target for _, target in self.engines.pairs), "")
        return JSONResponse(
            {
                "apiKeys": self.token is not None,
                # Characters, while max_request is bytes: of a text that is not ASCII fewer characters pass.
                "charLimit": self.config.max_request,
                "filesTranslation": True,
                "frontendTimeout": 500,
                "keyRequired": self.token is not None,
                "language": {
                    "source": {"code": AUTO, "name": "Auto Detect"},
                    "target": {"code": target, "name": english_name(target)},
                },
                "suggestions": False,
                "supportedFilesFormat": formats.endings(),
            }
        )

    async def health(self, request: Request) -> Response:
        if self.life.stopping:
            return JSONResponse({"status": "stopping"}, 503)
        return JSONResponse({"status": "ok"})

    # ---- requests ------------------------------------------------------------------------------------------

    async def read_fields(self, request: Request) -> Fields:
        """Read the fields of a JSON object or a form, and those of the query string.

        The body wins over the query string. HTTPException 403 if the token is neither in a header nor the
        field `api_key`; BadRequest for a body or query string that cannot be parsed.
        """
        values = dict[str, object](http_api.parse_form(request.scope["query_string"]))
        kind = http_api.media_type(request)
        body = await request.body()
        if kind == MULTIPART:
            http_api.check_charset(request)
            http_api.decode_form(body)  # Starlette would read anything else as Latin-1
            async with request.form(
                max_files=0, max_fields=http_api.MAX_FIELDS, max_part_size=self.config.max_request
            ) as form:
                values |= {name: value for name, value in form.items() if isinstance(value, str)}
        elif kind == URLENCODED:
            values |= http_api.parse_form(body)
        elif body:
            values |= http_api.parse_json(body).values
        if kind in (MULTIPART, URLENCODED) and isinstance(text := values.get("q"), str):
            values["q"] = text.replace("\r\n", "\n")
        request_fields = Fields(values, lenient=True)
        self.check_key(request, request_fields)
        return request_fields

    def check_key(self, request: Request, fields: Fields) -> None:
        """HTTPException 403 if the token is neither in a header nor the field `api_key`."""
        key = fields.text("api_key", "")
        if self.token and not request.state.authorized and not self.token.matches(key):
            raise HTTPException(403, "Invalid API key")

    def check_languages(self, source: str, target: str) -> None:
        """BadRequest for a language that no engine has. `source` may be `auto`."""
        for code in (source, target):
            if code != AUTO and code not in self.engines.languages:
                raise BadRequest(f"{code} is not supported")
        if source == AUTO and target not in [language for _, language in self.engines.pairs]:
            raise BadRequest(f"{target} is not supported")

    def split_queries(self, queries: Sequence[str], form: str) -> list[QueryText]:
        """Split the texts of a request into lines. `form`: `text` or `html`. BadRequest for too many texts or
        lines, lines that are too long, and HTML that is nested too deeply."""
        if len(queries) > self.config.max_lines:
            raise BadRequest(f"{len(queries)} texts, expected at most {self.config.max_lines}")
        texts = list[QueryText]()
        for query in queries:
            document = None if form == "text" else html_text.parse_html(query)
            texts.append(
                QueryText(
                    document.lines if document else http_api.split_all_lines(query), len(query), document
                )
            )
        self.access.check_lines([line for text in texts for line in text.lines])
        return texts

    async def set_languages(self, texts: Sequence[QueryText], source: str) -> None:
        """Set the language of each text to `source`, or detect it if `source` is auto. BadRequest as in
        `LanguageDetector.candidates`."""
        for text in texts:
            text.source = source
            if source == AUTO:
                text.source, text.confidence = (await self.detector.candidates(" ".join(text.lines)))[0]

    # ---- translations --------------------------------------------------------------------------------------

    async def translate_texts(
        self, request: Request, texts: Sequence[QueryText], target: str, count: int
    ) -> list[list[str]]:
        """Translate each text into the language `target`; returns its best translation, then up to `count`
        others.

        Each engine gets its lines together. BadRequest for a language pair without an engine; other errors as
        from `EngineAccess.translate`.
        """
        groups: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            groups.setdefault(self.find_engine(text.source, target).name, []).append(number)
        options = TranslateOptions(n_best=count + 1, distinct=count > 0)
        translations: dict[int, list[str]] = {}
        for name, numbers in groups.items():
            lines = [line for number in numbers for line in texts[number].lines]
            translated = iter(await self.translate_sentences(request, self.engines[name], lines, options))
            for number in numbers:
                text = texts[number]
                rows = versions([next(translated) for _ in text.lines], count)
                translations[number] = await self.access.run_text_work(
                    request, text.size * len(rows), partial(list, map(text.render, rows))
                )
        return [translations[number] for number in range(len(texts))]

    async def translate_sentences(
        self, request: Request, served: ServedEngine, lines: Sequence[str], options: TranslateOptions
    ) -> list[TranslatedLine]:
        """Translate lines, whose number is not limited; the sentences of a line are translated separately.
        Only for an engine of tokenized text whose languages are unknown are lines words between blanks.
        BadRequest for a sentence that is too long; other errors as from `EngineAccess.translate`."""
        raw, access = served.plain, self.access
        text = await access.cut_sentences(request, served, lines) if raw else whole_lines(lines)
        for sentence in text.sentences:
            if len(sentence) > self.config.max_line:
                raise BadRequest(
                    f"a sentence of {len(sentence)} characters, expected at most {self.config.max_line}; "
                    "split it"
                )
        translate = access.translate_raw if raw else access.translate
        parts = await translate(request, served, text.sentences, options)
        join = partial(engine_access.join_sentences, text, parts, options.n_best)
        return await access.run_text_work(request, sum(map(len, lines)) * options.n_best, join)

    def find_engine(self, source: str, target: str) -> ServedEngine:
        """Return the engine of a language pair. BadRequest if there is none."""
        served = self.engines.for_languages(source, target)
        if served is None:
            raise BadRequest(
                f"{english_name(target)} ({target}) is not available as a target language "
                f"from {english_name(source)} ({source})"
            )
        return served


def best_aligned(line: TranslatedLine) -> AlignedTranslation:
    """The best translation of a line, for a document."""
    best = line.hypotheses[0]
    return AlignedTranslation(best.text, line.words, best.words, best.alignment)


def versions(lines: Sequence[TranslatedLine], count: int) -> list[list[TranslatedLine]]:
    """List the best version of a text's translated lines, then up to `count` others. Version k has the k-th
    best hypothesis of each line, or the last of a line that has fewer; a version with the same text as an
    earlier one is left out."""
    by_text = dict[tuple[str, ...], list[TranslatedLine]]()
    for rank in range(max((len(line.hypotheses) for line in lines), default=1)):
        best = [line.hypotheses[min(rank, len(line.hypotheses) - 1)] for line in lines]
        if len(by_text) <= count:
            rows = [
                replace(line, hypotheses=[hypothesis]) for line, hypothesis in zip(lines, best, strict=True)
            ]
            by_text.setdefault(tuple(hypothesis.text for hypothesis in best), rows)
    return list(by_text.values())


def required_text(values: Fields, name: str) -> str:
    """Read a string. BadRequest, worded like LibreTranslate's, if it is missing or empty."""
    text = values.text(name, "")
    if not text:
        raise BadRequest(f"Invalid request: missing {name} parameter")
    return text


# ---- schemas -----------------------------------------------------------------------------------------------


def text_schema(config: ServeConfig) -> Schema:
    most = config.max_lines * (config.max_line + 1)
    return {"type": "string", "minLength": 1, "maxLength": most}


def translate_request(config: ServeConfig, languages: Sequence[str]) -> Schema:
    texts = list_schema(TEXT, minItems=1, maxItems=config.max_lines)
    code: Schema = {"type": "string", "enum": list(languages)}
    return object_schema(
        ["q", "source", "target"],
        q={"anyOf": [text_schema(config), texts], "description": "a text, or several"},
        source={"type": "string", "enum": [AUTO, *languages]},
        target=code,
        format=optional_schema(
            {"type": "string", "enum": ["text", "html", ""], "description": "text by default"}
        ),
        alternatives=optional_schema({"type": "integer", "minimum": 0, "maximum": config.max_n_best - 1}),
        api_key=optional_schema({**TEXT, "description": "the token"}),
    )


def translate_answer() -> Schema:
    return object_schema(
        ["translatedText"],
        translatedText={"anyOf": [TEXT, WORDS]},
        detectedLanguage={"anyOf": [detected_language(), list_schema(detected_language())]},
        alternatives={"anyOf": [WORDS, list_schema(WORDS)]},
    )


def detected_language() -> Schema:
    return record_schema(confidence={"type": "number"}, language=TEXT)
