"""The interface of LibreTranslate (https://libretranslate.com/docs), for clients that speak it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from nmt.serve import fields, html_text, request_text
from nmt.serve.access import Token
from nmt.serve.answers import EngineAccess
from nmt.serve.config import ServeConfig
from nmt.serve.engine import Options, Translated
from nmt.serve.fields import BadRequest, Fields
from nmt.serve.html_text import Document
from nmt.serve.languages import LanguageDetector, english_name
from nmt.serve.monitoring import Life
from nmt.serve.served import ServedEngine, ServedEngines
from nmt.text.sentences import whole_lines

AUTO = "auto"
URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"


@dataclass
class Text:
    """A text of a request, and the lines of it that are translated."""

    lines: list[str]
    size: int  # characters
    document: Document | None = None  # of HTML
    source: str = ""  # language
    confidence: float = 100.0

    def whole(self, lines: Sequence[Translated]) -> str:
        """The text with its lines translated: with the best hypothesis of each."""
        if self.document is not None:
            return self.document.translated(lines)
        return "\n".join(line.hypotheses[0].text for line in lines)

    @property
    def detected(self) -> dict[str, object]:
        return {"confidence": self.confidence, "language": self.source}


class LibreTranslate:
    """Its handlers. Engines whose languages are not known are not seen here."""

    def __init__(self, engines: ServedEngines, config: ServeConfig, token: Token | None, life: Life) -> None:
        self.engines, self.config, self.token, self.life = engines, config, token, life
        self.access, self.detector = EngineAccess(config), LanguageDetector(engines)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/translate", self.translate, methods=["POST"]),
            Route("/detect", self.detect, methods=["POST"]),
            Route("/languages", self.languages),
            Route("/frontend/settings", self.settings),
            Route("/health", self.health),
        ]

    async def translate(self, request: Request) -> Response:
        given = await self.fields(request)
        one = not isinstance(given.values.get("q"), list)
        queries = [required(given, "q")] if one else given.texts("q")
        source, target = required(given, "source"), required(given, "target")
        form = given.text("format", "") or "text"
        count = given.number("alternatives", 0, 0, self.config.max_n_best - 1)
        if not queries:
            raise BadRequest("Invalid request: missing q parameter")
        if form not in ("text", "html"):
            raise BadRequest(f"{form} format is not supported")
        self.check_languages(source, target)
        texts = await self.access.beside(request, sum(map(len, queries)), partial(self.texts, queries, form))
        await self.access.answer(request, self.set_languages(texts, source))
        found = await self.translated(request, texts, target, count)
        answer: dict[str, object] = {"translatedText": [versions[0] for versions in found]}
        if source == AUTO:
            answer["detectedLanguage"] = [text.detected for text in texts]
        if count:
            answer["alternatives"] = [versions[1:] for versions in found]
        if one:
            answer = {name: values[0] for name, values in answer.items() if isinstance(values, list)}
        return JSONResponse(answer)

    async def detect(self, request: Request) -> Response:
        given = await self.fields(request)
        candidates = await self.access.answer(request, self.detector.candidates(required(given, "q")))
        return JSONResponse([{"confidence": percent, "language": code} for code, percent in candidates])

    async def languages(self, request: Request) -> Response:
        pairs = [one.languages for one in self.engines.values() if all(one.languages)]
        return JSONResponse(
            [
                {
                    "code": code,
                    "name": english_name(code),
                    "targets": list(dict.fromkeys(target for source, target in pairs if source == code)),
                }
                for code in self.engines.languages
            ]
        )

    async def settings(self, request: Request) -> Response:
        languages = [one.languages[1] for one in self.engines.values() if all(one.languages)]
        target = languages[0] if languages else ""
        return JSONResponse(
            {
                "apiKeys": self.token is not None,
                "charLimit": self.config.max_request,
                "filesTranslation": False,
                "frontendTimeout": 500,
                "keyRequired": self.token is not None,
                "language": {
                    "source": {"code": AUTO, "name": "Auto Detect"},
                    "target": {"code": target, "name": english_name(target)},
                },
                "suggestions": False,
                "supportedFilesFormat": [],
            }
        )

    async def health(self, request: Request) -> Response:
        if self.life.stopping:
            return JSONResponse({"status": "stopping"}, 503)
        return JSONResponse({"status": "ok"})

    # ---- requests ------------------------------------------------------------------------------------------

    async def fields(self, request: Request) -> Fields:
        """The fields of a JSON object or a form, and those of the query string. HTTPException 403 for a wrong
        key."""
        values = dict[str, object](fields.of_form(request.scope["query_string"]))
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        body = await request.body()
        if kind == MULTIPART:
            fields.decoded(body)  # Starlette takes what is no UTF-8 for Latin-1
            async with request.form(
                max_files=0, max_fields=fields.MOST_FIELDS, max_part_size=self.config.max_request
            ) as form:
                values |= {name: value for name, value in form.items() if isinstance(value, str)}
        elif kind == URLENCODED:
            values |= fields.of_form(body)
        elif body:
            values |= fields.of_json(body).values
        if kind in (MULTIPART, URLENCODED) and isinstance(text := values.get("q"), str):
            values["q"] = text.replace("\r\n", "\n")
        given = Fields(values, lenient=True)
        if self.token and not request.state.authorized and not self.token.matches(given.text("api_key", "")):
            raise HTTPException(403, "Invalid API key")
        return given

    def check_languages(self, source: str, target: str) -> None:
        """BadRequest for languages that no engine has."""
        pairs = [one.languages for one in self.engines.values() if all(one.languages)]
        for code in (source, target):
            if code != AUTO and not any(code in pair for pair in pairs):
                raise BadRequest(f"{code} is not supported")
        if source == AUTO and target not in [there for _, there in pairs]:
            raise BadRequest(f"{target} is not supported")

    def texts(self, queries: Sequence[str], form: str) -> list[Text]:
        """The texts of a request, cut into lines. BadRequest for too many, before any work is done."""
        if len(queries) > self.config.max_lines:
            raise BadRequest(f"{len(queries)} texts, expected at most {self.config.max_lines}")
        texts = list[Text]()
        for query in queries:
            document = None if form == "text" else html_text.parse(query)
            texts.append(Text(document.lines if document else fields.split(query), len(query), document))
        self.access.check([line for text in texts for line in text.lines])
        return texts

    async def set_languages(self, texts: Sequence[Text], source: str) -> None:
        """Say of each text what language it is in; `source` may be auto."""
        for text in texts:
            text.source = source
            if source == AUTO:
                text.source, text.confidence = (await self.detector.candidates(" ".join(text.lines)))[0]

    # ---- translations --------------------------------------------------------------------------------------

    async def translated(
        self, request: Request, texts: Sequence[Text], target: str, count: int
    ) -> list[list[str]]:
        """For each text its translation, and up to `count` others. An engine is called once."""
        groups: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            groups.setdefault(self.engine(text.source, target).name, []).append(number)
        options = Options(n_best=count + 1, distinct=count > 0)
        found: dict[int, list[str]] = {}
        for name, numbers in groups.items():
            lines = [line for number in numbers for line in texts[number].lines]
            answers = iter(await self.sentence_by_sentence(request, self.engines[name], lines, options))
            for number in numbers:
                rows = versions([next(answers) for _ in texts[number].lines], count)
                write = partial(written, texts[number], rows)
                found[number] = await self.access.beside(request, texts[number].size * len(rows), write)
        return [found[number] for number in range(len(texts))]

    async def sentence_by_sentence(
        self, request: Request, served: ServedEngine, lines: Sequence[str], options: Options
    ) -> list[Translated]:
        """The translations of lines; sentences of a raw line are translated by themselves."""
        self.access.check(lines)
        size = sum(map(len, lines))
        cut = partial(request_text.cut_sentences, lines, served.languages, served.info.tags)
        text = (
            whole_lines(lines) if served.info.tokenized_only else await self.access.beside(request, size, cut)
        )
        parts = await self.access.translate_checked(request, served, text.sentences, options)
        join = partial(request_text.join_sentences, text, parts, options.n_best)
        return await self.access.beside(request, size * options.n_best, join)

    def engine(self, source: str, target: str) -> ServedEngine:
        """The engine of two languages. BadRequest where there is none."""
        found = self.engines.of_languages(source, target)
        if found is None:
            raise BadRequest(
                f"{english_name(target)} ({target}) is not available as a target language "
                f"from {english_name(source)} ({source})"
            )
        return found


def written(text: Text, versions: Sequence[Sequence[Translated]]) -> list[str]:
    """A text in each of its translations."""
    return [text.whole(lines) for lines in versions]


def versions(lines: Sequence[Translated], count: int) -> list[list[Translated]]:
    """The best translation of a text, line by line, and up to `count` others that differ from it: the second
    best of each line, and so on. Each line has one hypothesis."""
    found = dict[tuple[str, ...], list[Translated]]()
    for rank in range(max((len(line.hypotheses) for line in lines), default=1)):
        best = [line.hypotheses[min(rank, len(line.hypotheses) - 1)] for line in lines]
        if len(found) <= count:
            rows = [replace(line, hypotheses=[one]) for line, one in zip(lines, best, strict=True)]
            found.setdefault(tuple(one.text for one in best), rows)
    return list(found.values())


def required(given: Fields, name: str) -> str:
    """A text that has to be there, in LibreTranslate's words."""
    found = given.text(name, "")
    if not found:
        raise BadRequest(f"Invalid request: missing {name} parameter")
    return found
