"""The description of the interfaces in the form of OpenAPI 3.1: our own, and that of LibreTranslate."""

from collections.abc import Sequence

from nmt import __version__
from nmt.serve import openapi_libretranslate
from nmt.serve.config import ServeConfig
from nmt.serve.openapi_schemas import (
    COUNT,
    ERROR,
    ERRORS,
    FLAG,
    NUMBER,
    SPAN,
    TEXT,
    WORDS,
    Schema,
    operation,
    optional,
    post,
    record,
)

NULL: Schema = {"type": "null"}


def description(config: ServeConfig, engines: Sequence[str], languages: Sequence[str] = ()) -> Schema:
    """The description, with the limits, the engines and the languages of this server."""
    line: Schema = {"type": "string", "maxLength": config.max_line}
    lines: Schema = {"type": "array", "items": line, "maxItems": config.max_lines}
    engine: Schema = optional(
        {"type": "string", "enum": [*engines, ""], "description": "the first one by default"}
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "nmt-serve", "version": __version__},
        "paths": {
            "/api/translate": post(
                "Translate lines", translate_request(config, engine, lines), translations(), *ERRORS
            ),
            "/api/score": post("Score given translations", score_request(engine, lines), scores(), *ERRORS),
            "/api/engines": {"get": operation("The engines and their limits", engine_list(), "401", "503")},
            **openapi_libretranslate.paths(config, languages),
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {
                status: {
                    "description": text,
                    "content": {"application/json": {"schema": ERROR}},
                }
                for status, text in ERRORS.items()
            },
        },
        "security": [{}, {"token": []}],
    }


def translate_request(config: ServeConfig, engine: Schema, lines: Schema) -> Schema:
    """All but `text` and `lines` may be missing or null; of those one has to be there."""
    text: Schema = {"type": "string", "maxLength": config.max_lines * (config.max_line + 1)}
    flags = {
        "tokenized": "words between blanks, in and out",
        "distinct": "hypotheses of different texts only",
        "attention": "add attention weights",
        "parse": "add the soft parse",
    }
    more_flags = {
        "plain": "text in and out, also where the engine is tokenized_only",
        "split_sentences": "translate each sentence of a line by itself; what stands between them stays",
    }
    terms: Schema = {
        "type": "object",
        "additionalProperties": TEXT,
        "description": "source terms and the translations that they must have; with avoid at most "
        f"{config.max_terms} characters",
    }
    request = record(
        [],
        engine=engine,
        text=optional({**text, "description": "one line or several; \\n ends a line"}),
        lines=optional({**lines, "description": "instead of text"}),
        n_best=optional({"type": "integer", "minimum": 1, "maximum": config.max_n_best, "default": 1}),
        beam_size=optional({"type": "integer", "minimum": 1, "maximum": config.max_beam_size}),
        **{name: optional({**FLAG, "description": what}) for name, what in flags.items()},
        terms=optional(terms),
        avoid=optional({**WORDS, "description": "phrases that no translation may contain"}),
        **{name: optional({**FLAG, "description": what}) for name, what in more_flags.items()},
    )
    either = [
        {"required": ["text"], "properties": {"text": {"type": "string"}, "lines": NULL}},
        {"required": ["lines"], "properties": {"lines": {"type": "array"}, "text": NULL}},
    ]
    return {**request, "additionalProperties": False, "oneOf": either}


def score_request(engine: Schema, lines: Schema) -> Schema:
    flag = optional(FLAG)
    request = record(
        ["source", "target"], engine=engine, source=lines, target=lines, tokenized=flag, word_scores=flag
    )
    return {**request, "additionalProperties": False}


def translations() -> Schema:
    hypothesis = record(
        ["text", "words", "score", "alignment"],
        text=TEXT,
        words=WORDS,
        score=NUMBER,
        log_prob=NUMBER,
        alignment={"type": "array", "items": SPAN, "description": "source word, target word, from 0"},
        attention={
            "type": "array",
            "items": {"type": "array", "items": {"type": "number"}},
            "description": "for each target word the weight of each source word",
        },
        segments={
            "type": "array",
            "items": record(["source", "target"], source=SPAN, target=SPAN),
            "description": "phrases in target order, with the first and the last word on either side",
        },
        features={"type": "object", "additionalProperties": {"type": "array", "items": NUMBER}},
    )
    node = record(
        ["first", "last", "new", "left", "right"],
        first=COUNT,
        last=COUNT,
        new=NUMBER,
        left=NUMBER,
        right=NUMBER,
    )
    one = record(
        ["source", "words", "unknown", "parts", "hypotheses"],
        source=TEXT,
        words=WORDS,
        unknown={
            "type": "array",
            "items": COUNT,
            "description": "source words that the engine does not know",
        },
        parts={"type": "integer", "minimum": 1, "description": "a line that is too long is cut"},
        hypotheses={"type": "array", "items": hypothesis, "minItems": 1},
        parse=record(["units", "nodes"], units=WORDS, nodes={"type": "array", "items": node}),
    )
    return record(
        ["engine", "translations", "seconds"],
        engine=TEXT,
        translations={"type": "array", "items": one},
        seconds={"type": "number"},
    )


def scores() -> Schema:
    one = record(["log_prob"], log_prob=NUMBER, word_scores={"type": "array", "items": NUMBER})
    return record(["engine", "scores"], engine=TEXT, scores={"type": "array", "items": one})


def engine_list() -> Schema:
    feature = record(
        ["name", "what", "scores", "weights"],
        name=TEXT,
        what=TEXT,
        scores={**WORDS, "description": "a name of each score; empty where nobody says it"},
        weights={"type": "array", "items": {"type": "number"}},
    )
    engine = record(
        [
            "name",
            "kind",
            "description",
            "source",
            "target",
            "capabilities",
            "beam_size",
            "tokenized_only",
            "plain",
            "features",
        ],
        name=TEXT,
        kind=TEXT,
        description=TEXT,
        source=TEXT,
        target=TEXT,
        capabilities=WORDS,
        beam_size=COUNT,
        tokenized_only={"type": "boolean"},
        plain={"type": "boolean", "description": "whether the field plain can be used"},
        features={"type": "array", "items": feature, "description": "of the totals of phrase-based engines"},
    )
    return record(
        ["version", "engines", "limits"],
        version=TEXT,
        engines={"type": "array", "items": engine},
        limits={"type": "object", "additionalProperties": COUNT},
    )
