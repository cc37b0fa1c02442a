"""The server's own interface: /api/translate, /api/score, /api/engines, /api/openapi.json."""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from nmt import __version__
from nmt.serve import engine_access, http_api
from nmt.serve.config import ServeConfig
from nmt.serve.engine import AVOID, SCORE, TERMS, LineHypothesis, TranslatedLine, TranslateOptions
from nmt.serve.engine_access import EngineAccess
from nmt.serve.http_api import (
    COUNT,
    ERRORS,
    FLAG,
    NULL,
    NUMBER,
    SPAN,
    TEXT,
    WORDS,
    BadRequest,
    Endpoint,
    Fields,
    Schema,
    field_names,
    list_schema,
    object_schema,
    optional_schema,
    record_schema,
)
from nmt.serve.served import ServedEngine, ServedEngines
from nmt.text.sentences import whole_lines

LIMITS = ("max_request", "max_file", "max_lines", "max_line", "max_terms", "max_n_best", "max_beam_size")
MAX_CELLS = 2_000_000  # states times characters of the automaton that finds phrases to avoid


class JsonApi:
    """The handlers of the server's own interface."""

    def __init__(self, engines: ServedEngines, config: ServeConfig) -> None:
        self.engines, self.config, self.access = engines, config, EngineAccess(config)
        self.translate_request = translate_request(config, list(engines))
        self.score_request = score_request(config, list(engines))

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint(
                path="/api/translate",
                handler=self.translate,
                summary="Translate lines",
                request=self.translate_request,
                answer=translate_answer(),
                errors=[*ERRORS],
            ),
            Endpoint(
                path="/api/score",
                handler=self.score,
                summary="Score given translations",
                request=self.score_request,
                answer=score_answer(),
                errors=[*ERRORS],
            ),
            Endpoint(
                path="/api/engines",
                handler=self.list_engines,
                summary="The engines and their limits",
                answer=engines_answer(),
                errors=["401", "503"],
            ),
        ]

    async def translate(self, request: Request) -> Response:
        start = time.perf_counter()
        values = http_api.parse_json(await request.body())
        values.check_names(field_names(self.translate_request))
        served = find_engine(self.engines, values)
        lines = requested_lines(values)
        options = self.read_options(values)
        for name in (TERMS, AVOID):
            if getattr(options, name) and name not in served.info.capabilities:
                raise BadRequest(
                    f"engine {served.name} does not take the field {name}; see capabilities in /api/engines"
                )
        plain, split = values.flag("plain"), values.flag("split_sentences")
        if split and (options.tokenized or (served.info.tokenized_only and not plain)):
            raise BadRequest(
                "split_sentences: words between blanks have no sentences to split; send plain text"
            )
        self.access.check_lines(lines)
        text = await self.access.cut_sentences(request, served, lines) if split else whole_lines(lines)
        results = await self.translate_lines(request, served, text.sentences, options, plain)

        def answer() -> Response:
            translations = engine_access.join_sentences(text, results, options.n_best)
            return JSONResponse(
                {
                    "engine": served.name,
                    "translations": [
                        translation_json(line, translation)
                        for line, translation in zip(lines, translations, strict=True)
                    ],
                    "seconds": round(time.perf_counter() - start, 6),
                }
            )

        return await self.access.run_text_work(request, sum(map(len, lines)) * options.n_best, answer)

    async def translate_lines(
        self,
        request: Request,
        served: ServedEngine,
        lines: Sequence[str],
        options: TranslateOptions,
        plain: bool,
    ) -> list[TranslatedLine]:
        """Translate lines that passed `check_lines`, or their sentences; `plain`: they are raw text for any
        engine. BadRequest if an engine of tokenized text does not say for which languages; other errors as
        from `EngineAccess.translate`."""
        if not (plain and served.info.tokenized_only):
            return await self.access.translate(request, served, lines, options)
        if not served.plain:
            raise BadRequest(
                f"plain: engine {served.name} does not declare its languages; give it a name like en-fr, or "
                "send words between blanks"
            )
        return await self.access.translate_raw(request, served, lines, options)

    async def score(self, request: Request) -> Response:
        values = http_api.parse_json(await request.body())
        values.check_names(field_names(self.score_request))
        served = find_engine(self.engines, values)
        sources, targets = values.texts("source"), values.texts("target")
        if len(sources) != len(targets):
            raise BadRequest(f"{len(sources)} sources, but {len(targets)} targets; send a target for each")
        if SCORE not in served.info.capabilities:
            raise BadRequest(f"engine {served.name} gives no scores; see capabilities in /api/engines")
        words = values.flag("word_scores")
        pairs = list(zip(sources, targets, strict=True))
        scores = await self.access.score(request, served, pairs, values.flag("tokenized"))
        rows: list[dict[str, object]] = [
            {"log_prob": finite_or_none(math.fsum(score for _, score in row))} for row in scores
        ]
        if words:
            for row, units in zip(rows, scores, strict=True):
                row["units"] = [unit for unit, _ in units]
                row["word_scores"] = [finite_or_none(score) for _, score in units]
        return JSONResponse({"engine": served.name, "scores": rows})

    async def list_engines(self, request: Request) -> Response:
        return JSONResponse(
            {
                "version": __version__,
                "engines": [engine_json(served) for served in self.engines.values()],
                "limits": {name: getattr(self.config, name) for name in LIMITS},
            }
        )

    def read_options(self, values: Fields) -> TranslateOptions:
        """Read the options of a request. BadRequest for a wrong value, if its terms and phrases to avoid are
        too long in total, or if the phrases to avoid have too many different characters."""
        terms = values.pairs("terms")
        avoid = values.texts("avoid") if "avoid" in values else []
        size = sum(map(len, (*avoid, *(text for pair in terms for text in pair))))
        if size > self.config.max_terms:
            raise BadRequest(
                f"terms, avoid: {size} characters, expected at most {self.config.max_terms}; send fewer"
            )
        letters = "".join(avoid)
        if len(letters) * len({*letters}) > MAX_CELLS:
            raise BadRequest("avoid: too many different characters; give fewer phrases")
        return TranslateOptions(
            n_best=values.number("n_best", 1, 1, self.config.max_n_best),
            beam_size=values.number("beam_size", 0, 1, self.config.max_beam_size),
            tokenized=values.flag("tokenized"),
            distinct=values.flag("distinct"),
            attention=values.flag("attention"),
            parse=values.flag("parse"),
            terms=tuple(terms),
            avoid=tuple(avoid),
        )


def find_engine(engines: ServedEngines, values: Fields) -> ServedEngine:
    """Return the engine that a request names, the first one by default. BadRequest for an unknown name."""
    name = values.text("engine", "")
    if name and name not in engines:
        raise BadRequest(f"engine: unknown name, expected one of {', '.join(engines)}")
    return engines[name] if name else engines.first


def requested_lines(values: Fields) -> list[str]:
    """Read the lines of a request from `text` or `lines`. BadRequest unless it has one of these fields."""
    if ("text" in values) == ("lines" in values):
        raise BadRequest("expected one of the fields text and lines")
    return http_api.split_lines(values.text("text")) if "text" in values else values.texts("lines")


def engine_json(served: ServedEngine) -> dict[str, object]:
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


def translation_json(line: str, translation: TranslatedLine) -> dict[str, object]:
    answer: dict[str, object] = {
        "source": line,
        "words": translation.words,
        "unknown": translation.unknown,
        "parts": translation.parts,
        "hypotheses": [hypothesis_json(hypothesis) for hypothesis in translation.hypotheses],
    }
    if translation.parse is not None:
        answer["parse"] = asdict(translation.parse)
    return answer


def hypothesis_json(hypothesis: LineHypothesis) -> dict[str, object]:
    """Encode a hypothesis as a JSON object. Fields that the engine left empty are omitted, except
    `alignment`; numbers that are not finite become null."""
    answer: dict[str, object] = {
        "text": hypothesis.text,
        "words": hypothesis.words,
        "score": finite_or_none(hypothesis.score),
    }
    if hypothesis.log_prob is not None:
        answer["log_prob"] = finite_or_none(hypothesis.log_prob)
    if hypothesis.features:
        answer["features"] = {
            name: [finite_or_none(value) for value in values] for name, values in hypothesis.features.items()
        }
    if hypothesis.segments:
        answer["segments"] = [asdict(segment) for segment in hypothesis.segments]
    if hypothesis.attention:
        answer["attention"] = [[round(weight, 6) for weight in row] for row in hypothesis.attention]
    answer["alignment"] = hypothesis.alignment
    return answer


def finite_or_none(value: float) -> float | None:
    """Replace infinities and nan, which JSON lacks, by null."""
    return value if math.isfinite(value) else None


# ---- schemas -----------------------------------------------------------------------------------------------


def engine_schema(engines: Sequence[str]) -> Schema:
    return optional_schema(
        {"type": "string", "enum": [*engines, ""], "description": "the first one by default"}
    )


def lines_schema(config: ServeConfig) -> Schema:
    return list_schema({"type": "string", "maxLength": config.max_line}, maxItems=config.max_lines)


def translate_request(config: ServeConfig, engines: Sequence[str]) -> Schema:
    """The schema of a request. It needs `text` or `lines`; other fields may be missing or null."""
    text: Schema = {"type": "string", "maxLength": config.max_lines * (config.max_line + 1)}
    flags = {
        "tokenized": "words between blanks, in and out",
        "distinct": "hypotheses of different texts only",
        "attention": "add attention weights",
        "parse": "add the soft parse",
    }
    more_flags = {
        "plain": "text in and out, also where the engine is tokenized_only",
        "split_sentences": "translate each sentence of a line by itself; the spacing between them is kept",
    }
    terms: Schema = {
        "type": "object",
        "additionalProperties": TEXT,
        "description": "source terms and the translations that they must have; with avoid at most "
        f"{config.max_terms} characters",
    }
    request = object_schema(
        [],
        engine=engine_schema(engines),
        text=optional_schema({**text, "description": "one line or several; \\n ends a line"}),
        lines=optional_schema({**lines_schema(config), "description": "instead of text"}),
        n_best=optional_schema({"type": "integer", "minimum": 1, "maximum": config.max_n_best, "default": 1}),
        beam_size=optional_schema({"type": "integer", "minimum": 1, "maximum": config.max_beam_size}),
        **{name: optional_schema({**FLAG, "description": what}) for name, what in flags.items()},
        terms=optional_schema(terms),
        avoid=optional_schema({**WORDS, "description": "phrases that no translation may contain"}),
        **{name: optional_schema({**FLAG, "description": what}) for name, what in more_flags.items()},
    )
    either = [
        {"required": ["text"], "properties": {"text": {"type": "string"}, "lines": NULL}},
        {"required": ["lines"], "properties": {"lines": {"type": "array"}, "text": NULL}},
    ]
    return {**request, "additionalProperties": False, "oneOf": either}


def score_request(config: ServeConfig, engines: Sequence[str]) -> Schema:
    flag, lines = optional_schema(FLAG), lines_schema(config)
    request = object_schema(
        ["source", "target"],
        engine=engine_schema(engines),
        source=lines,
        target=lines,
        tokenized=flag,
        word_scores=flag,
    )
    return {**request, "additionalProperties": False}


def translate_answer() -> Schema:
    hypothesis = object_schema(
        ["text", "words", "score", "alignment"],
        text=TEXT,
        words=WORDS,
        score=NUMBER,
        log_prob=NUMBER,
        alignment=list_schema(SPAN, description="source word, target word, from 0"),
        attention=list_schema(
            list_schema({"type": "number"}), description="for each target word the weight of each source word"
        ),
        segments=list_schema(
            record_schema(source=SPAN, target=SPAN),
            description="phrases in target order, with the first and the last word on either side",
        ),
        features={"type": "object", "additionalProperties": list_schema(NUMBER)},
    )
    node = record_schema(first=COUNT, last=COUNT, new=NUMBER, left=NUMBER, right=NUMBER)
    line = object_schema(
        ["source", "words", "unknown", "parts", "hypotheses"],
        source=TEXT,
        words=WORDS,
        unknown=list_schema(COUNT, description="source words that the engine does not know"),
        parts={"type": "integer", "minimum": 1, "description": "a line that is too long is cut"},
        hypotheses=list_schema(hypothesis, minItems=1),
        parse=record_schema(units=WORDS, nodes=list_schema(node)),
    )
    return record_schema(engine=TEXT, translations=list_schema(line), seconds={"type": "number"})


def score_answer() -> Schema:
    pair = object_schema(["log_prob"], log_prob=NUMBER, units=WORDS, word_scores=list_schema(NUMBER))
    return record_schema(engine=TEXT, scores=list_schema(pair))


def engines_answer() -> Schema:
    feature = record_schema(
        name=TEXT,
        what=TEXT,
        scores={**WORDS, "description": "a name for each score; empty where unknown"},
        weights=list_schema({"type": "number"}),
    )
    engine = record_schema(
        name=TEXT,
        kind=TEXT,
        description=TEXT,
        source=TEXT,
        target=TEXT,
        capabilities=WORDS,
        beam_size=COUNT,
        tokenized_only={"type": "boolean"},
        plain={"type": "boolean", "description": "whether the field plain can be used"},
        features=list_schema(feature, description="of the totals of phrase-based engines"),
    )
    return record_schema(
        version=TEXT,
        engines=list_schema(engine),
        limits={"type": "object", "additionalProperties": COUNT},
    )
