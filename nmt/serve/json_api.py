"""Our own interface: POST /api/translate, POST /api/score, GET /api/engines, GET /api/openapi.json."""

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from nmt import __version__
from nmt.serve import fields, openapi, request_text
from nmt.serve.answers import EngineAccess
from nmt.serve.config import ServeConfig
from nmt.serve.engine import AVOID, SCORE, TERMS, Hypothesis, Options, Translated
from nmt.serve.fields import BadRequest, Fields
from nmt.serve.request_text import PlainText
from nmt.serve.served import ServedEngine, ServedEngines
from nmt.text.sentences import whole_lines

TRANSLATE = (
    "engine", "text", "lines", "n_best", "beam_size", "tokenized", "distinct", "attention", "parse",
    "terms", "avoid", "plain", "split_sentences",
)  # fmt: skip
MOST_CELLS = 2_000_000  # of the automaton that looks for phrases: its states times its characters
SCORED = ("engine", "source", "target", "tokenized", "word_scores")


class JsonApi:
    """The handlers of our own interface."""

    def __init__(self, engines: ServedEngines, config: ServeConfig) -> None:
        self.engines, self.config, self.access = engines, config, EngineAccess(config)
        self.plain_texts = dict[str, PlainText]()  # of engines that read words between blanks

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/api/translate", self.translate, methods=["POST"]),
            Route("/api/score", self.score, methods=["POST"]),
            Route("/api/engines", self.list_engines),
            Route("/api/openapi.json", self.describe),
        ]

    async def translate(self, request: Request) -> Response:
        begin = time.perf_counter()
        given = fields.of_json(await request.body())
        given.only(TRANSLATE)
        served = self.engine(given)
        lines = lines_of(given)
        options = self.options(given)
        for name in (TERMS, AVOID):
            if getattr(options, name) and name not in served.info.capabilities:
                raise BadRequest(
                    f"engine {served.name} does not take the field {name}; see capabilities in /api/engines"
                )
        plain, split = given.flag("plain"), given.flag("split_sentences")
        if split and (options.tokenized or (served.info.tokenized_only and not plain)):
            raise BadRequest(
                "split_sentences: words between blanks have no sentences to split; send plain text"
            )
        self.access.check(lines)
        size = sum(map(len, lines))
        cut = partial(request_text.cut_sentences, lines, served.languages, served.info.tags)
        text = await self.access.beside(request, size, cut) if split else whole_lines(lines)
        results = await self.translated(request, served, text.sentences, options, plain)

        def answer() -> Response:
            joined = request_text.join_sentences(text, results, options.n_best)
            return JSONResponse(
                {
                    "engine": served.name,
                    "translations": [
                        translation(line, whole) for line, whole in zip(lines, joined, strict=True)
                    ],
                    "seconds": round(time.perf_counter() - begin, 6),
                }
            )

        return await self.access.beside(request, size * options.n_best, answer)

    async def translated(
        self, request: Request, served: ServedEngine, lines: Sequence[str], options: Options, plain: bool
    ) -> list[Translated]:
        """The translations of lines that were checked, or of their sentences. `plain`: of text, also by an
        engine that reads words between blanks."""
        if not (plain and served.info.tokenized_only):
            return await self.access.translate_checked(request, served, lines, options)
        if not served.plain:
            raise BadRequest(
                f"plain: engine {served.name} does not say its languages; give it a name like en-fr, or send "
                "words between blanks"
            )
        rules = await asyncio.to_thread(self.rules, served)
        words = await asyncio.to_thread(rules.lines, lines)
        found = await self.access.translate_checked(request, served, words, options)
        return [rules.translation(line, whole) for line, whole in zip(lines, found, strict=True)]

    def rules(self, served: ServedEngine) -> PlainText:
        """The text rules of an engine, which take a moment to make."""
        if served.name not in self.plain_texts:
            self.plain_texts[served.name] = PlainText(
                *served.languages, lambda word: served.engine.fit(word) > 0
            )
        return self.plain_texts[served.name]

    async def score(self, request: Request) -> Response:
        given = fields.of_json(await request.body())
        given.only(SCORED)
        served = self.engine(given)
        sources, targets = given.texts("source"), given.texts("target")
        if len(sources) != len(targets):
            raise BadRequest(f"{len(sources)} sources, but {len(targets)} targets")
        if SCORE not in served.info.capabilities:
            raise BadRequest(f"engine {served.name} gives no scores; see capabilities in /api/engines")
        words = given.flag("word_scores")
        pairs = list(zip(sources, targets, strict=True))
        found = await self.access.score(request, served, pairs, given.flag("tokenized"))
        rows: list[dict[str, object]] = [{"log_prob": finite(math.fsum(one))} for one in found]
        if words:
            for row, one in zip(rows, found, strict=True):
                row["word_scores"] = [finite(value) for value in one]
        return JSONResponse({"engine": served.name, "scores": rows})

    async def list_engines(self, request: Request) -> Response:
        config = self.config
        limits = {
            "max_request": config.max_request,
            "max_lines": config.max_lines,
            "max_line": config.max_line,
            "max_terms": config.max_terms,
            "max_n_best": config.max_n_best,
            "max_beam_size": config.max_beam_size,
        }
        return JSONResponse(
            {
                "version": __version__,
                "engines": [described(one) for one in self.engines.values()],
                "limits": limits,
            }
        )

    async def describe(self, request: Request) -> Response:
        return JSONResponse(openapi.description(self.config, list(self.engines), self.engines.languages))

    def engine(self, given: Fields) -> ServedEngine:
        """The engine that is asked for, the first one by default."""
        name = given.text("engine", "")
        if name and name not in self.engines:
            raise BadRequest(f"engine: unknown name, expected one of {', '.join(self.engines)}")
        return self.engines[name] if name else self.engines.first

    def options(self, given: Fields) -> Options:
        """What is asked for each line. BadRequest for terms and phrases that are too long together."""
        terms = given.pairs("terms")
        avoid = given.texts("avoid") if "avoid" in given else []
        size = sum(map(len, (*avoid, *(text for pair in terms for text in pair))))
        if size > self.config.max_terms:
            raise BadRequest(f"terms, avoid: {size} characters, expected at most {self.config.max_terms}")
        letters = "".join(avoid)
        if len(letters) * len({*letters}) > MOST_CELLS:
            raise BadRequest("avoid: too many different characters; give fewer phrases")
        return Options(
            n_best=given.number("n_best", 1, 1, self.config.max_n_best),
            beam_size=given.number("beam_size", 0, 1, self.config.max_beam_size),
            tokenized=given.flag("tokenized"),
            distinct=given.flag("distinct"),
            attention=given.flag("attention"),
            parse=given.flag("parse"),
            terms=tuple(terms),
            avoid=tuple(avoid),
        )


def lines_of(given: Fields) -> list[str]:
    """The lines of `text`, or `lines`."""
    if ("text" in given) == ("lines" in given):
        raise BadRequest("expected one of the fields text and lines")
    return fields.lines_of(given.text("text")) if "text" in given else given.texts("lines")


def described(served: ServedEngine) -> dict[str, object]:
    """An engine in the list."""
    info = served.info
    source, target = served.languages
    return {
        "name": served.name,
        "kind": info.kind,
        "description": info.description,
        "source": source,
        "target": target,
        "capabilities": list(info.capabilities),
        "beam_size": info.beam_size,
        "tokenized_only": info.tokenized_only,
        "plain": served.plain,
        "features": [asdict(feature) for feature in info.features],
    }


def translation(line: str, found: Translated) -> dict[str, object]:
    """A line and its translations."""
    made: dict[str, object] = {
        "source": line,
        "words": found.words,
        "unknown": found.unknown,
        "parts": found.parts,
        "hypotheses": [hypothesis(one) for one in found.hypotheses],
    }
    if found.parse is not None:
        made["parse"] = asdict(found.parse)
    return made


def hypothesis(found: Hypothesis) -> dict[str, object]:
    """A hypothesis; what the engine does not have is left out."""
    made: dict[str, object] = {"text": found.text, "words": found.words, "score": finite(found.score)}
    if found.log_prob is not None:
        made["log_prob"] = finite(found.log_prob)
    if found.features:
        made["features"] = {
            name: [finite(value) for value in values] for name, values in found.features.items()
        }
    if found.segments:
        made["segments"] = [{"source": one.source, "target": one.target} for one in found.segments]
    if found.attention:
        made["attention"] = [[round(weight, 6) for weight in row] for row in found.attention]
    made["alignment"] = found.alignment
    return made


def finite(value: float) -> float | None:
    """A number that JSON has; null for an infinite one."""
    return value if math.isfinite(value) else None


def error(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """An error, as all interfaces but XML-RPC give it."""
    return JSONResponse({"error": message or HTTPStatus(status).phrase}, status, headers)
