"""The description of our own interface in the form of OpenAPI 3.1."""

from collections.abc import Sequence

from nmt import __version__
from nmt.serve.config import ServeConfig

Schema = dict[str, object]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": ["number", "null"], "description": "null: not finite"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean", "default": False}
WORDS: Schema = {"type": "array", "items": TEXT}
SPAN: Schema = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
ERROR: Schema = {"type": "object", "required": ["error"], "properties": {"error": TEXT}}

ERRORS = {
    "400": "the request is wrong: the message says how",
    "401": "the token is missing or wrong",
    "408": "the body did not arrive in time",
    "413": "the body is too large",
    "429": "too many lines are waiting; Retry-After says when to try again",
    "503": "the server is about to stop",
    "504": "the translation took too long",
}


def description(config: ServeConfig, engines: Sequence[str]) -> Schema:
    """The description, with the limits and the engines of this server."""
    line: Schema = {"type": "string", "maxLength": config.max_line}
    lines: Schema = {"type": "array", "items": line, "maxItems": config.max_lines}
    engine: Schema = {"type": "string", "enum": list(engines), "description": "the first one by default"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "nmt-serve", "version": __version__},
        "paths": {
            "/api/translate": post(
                "Translate lines", translate_request(config, engine, lines), translations()
            ),
            "/api/score": post("Score given translations", score_request(engine, lines), scores()),
            "/api/engines": {"get": operation("The engines and their limits", engine_list())},
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


def operation(summary: str, answer: Schema) -> Schema:
    """An operation whose good answer is 200."""
    good = {"description": "OK", "content": {"application/json": {"schema": answer}}}
    failures = {status: {"$ref": f"#/components/responses/{status}"} for status in ERRORS}
    return {"summary": summary, "responses": {"200": good, **failures}}


def post(summary: str, request: Schema, answer: Schema) -> Schema:
    """A path that takes a JSON object."""
    body = {"required": True, "content": {"application/json": {"schema": request}}}
    return {"post": {**operation(summary, answer), "requestBody": body}}


def record(required: Sequence[str], **properties: Schema) -> Schema:
    """An object of known fields."""
    return {"type": "object", "required": list(required), "properties": properties}


def translate_request(config: ServeConfig, engine: Schema, lines: Schema) -> Schema:
    most = config.max_lines * (config.max_line + 1)
    found = record(
        [],
        engine=engine,
        text={"type": "string", "maxLength": most, "description": "one line or several; \\n ends a line"},
        lines={**lines, "description": "instead of text"},
        n_best={"type": "integer", "minimum": 1, "maximum": config.max_n_best, "default": 1},
        beam_size={"type": "integer", "minimum": 1, "maximum": config.max_beam_size},
        tokenized={**FLAG, "description": "words between blanks, in and out"},
        distinct={**FLAG, "description": "hypotheses of different texts only"},
        attention={**FLAG, "description": "add attention weights"},
        parse={**FLAG, "description": "add the soft parse"},
        terms={
            "type": "object",
            "additionalProperties": TEXT,
            "description": "source terms and the translations that they must have; with avoid at most "
            f"{config.max_terms} characters",
        },
        avoid={**WORDS, "description": "phrases that no translation may contain"},
        plain={
            **FLAG,
            "description": "text in and out, also where the engine is tokenized_only",
        },
        split_sentences={
            **FLAG,
            "description": "translate each sentence of a line by itself; what stands between them stays",
        },
    )
    return {
        **found,
        "additionalProperties": False,
        "oneOf": [{"required": ["text"]}, {"required": ["lines"]}],
    }


def score_request(engine: Schema, lines: Schema) -> Schema:
    found = record(
        ["source", "target"], engine=engine, source=lines, target=lines, tokenized=FLAG, word_scores=FLAG
    )
    return {**found, "additionalProperties": False}


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
