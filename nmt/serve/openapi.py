"""The description of the interfaces in the form of OpenAPI 3.1: our own, and that of LibreTranslate."""

from collections.abc import Sequence
from typing import cast

from nmt import __version__
from nmt.serve.config import ServeConfig

# ---- parts of descriptions ---------------------------------------------------------------------------------
# Parts of which descriptions of interfaces in the form of OpenAPI 3.1 are made.


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
    "403": "a page of another site sent it, or api_key is wrong",
    "408": "the body did not arrive in time",
    "413": "the body is too large",
    "429": "too many lines are waiting; Retry-After says when to try again",
    "503": "the server is about to stop",
    "504": "the translation took too long",
}


def operation(summary: str, answer: Schema, *errors: str) -> Schema:
    """An operation whose good answer is 200. `errors`: the other ones, see ERRORS."""
    good = {"description": "OK", "content": {"application/json": {"schema": answer}}}
    failures = {status: {"$ref": f"#/components/responses/{status}"} for status in errors}
    return {"summary": summary, "responses": {"200": good, **failures}}


def post_operation(summary: str, request: Schema, answer: Schema, *errors: str, form: bool = False) -> Schema:
    """A path that takes a JSON object, or a form as well."""
    kinds = ["application/json", *(["application/x-www-form-urlencoded"] if form else [])]
    body = {"required": True, "content": {kind: {"schema": request} for kind in kinds}}
    return {"post": {**operation(summary, answer, *errors), "requestBody": body}}


def object_schema(required: Sequence[str], **properties: Schema) -> Schema:
    """An object of known fields."""
    return {"type": "object", "required": list(required), "properties": properties}


def optional_schema(schema: Schema) -> Schema:
    """A field that may be null, which is as good as missing."""
    with_null: Schema = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        with_null["enum"] = [*cast(list[object], schema["enum"]), None]
    return with_null


# ---- LibreTranslate ----------------------------------------------------------------------------------------
# The description of LibreTranslate's interface, as far as it is ours, in the form of OpenAPI 3.1.


LIBRETRANSLATE_ERRORS = ("400", "403", "408", "413", "429", "503", "504")


def libretranslate_paths(config: ServeConfig, languages: Sequence[str]) -> Schema:
    """The paths, with the limits of this server and the codes of its languages."""
    settings = object_schema(["apiKeys", "charLimit", "keyRequired", "language"], charLimit=COUNT)
    health = object_schema(["status"], status=TEXT)
    return {
        "/translate": post_operation(
            "Translate texts",
            libretranslate_request(config, languages),
            libretranslate_translation(),
            *LIBRETRANSLATE_ERRORS,
            form=True,
        ),
        "/detect": post_operation(
            "Detect the language of a text",
            detect_request(config),
            detected_languages(),
            *LIBRETRANSLATE_ERRORS,
            form=True,
        ),
        "/languages": {
            "get": operation("The languages, and what they are translated into", languages_list())
        },
        "/frontend/settings": {"get": operation("What a page needs to know", settings)},
        "/health": {"get": operation("Whether requests are taken", health, "503")},
    }


def libretranslate_text(config: ServeConfig) -> Schema:
    most = config.max_lines * (config.max_line + 1)
    return {"type": "string", "minLength": 1, "maxLength": most}


def libretranslate_request(config: ServeConfig, languages: Sequence[str]) -> Schema:
    query = libretranslate_text(config)
    texts = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": config.max_lines}
    code: Schema = {"type": "string", "enum": list(languages)}
    return object_schema(
        ["q", "source", "target"],
        q={"anyOf": [query, texts], "description": "a text, or several"},
        source={"type": "string", "enum": ["auto", *languages]},
        target=code,
        format=optional_schema(
            {"type": "string", "enum": ["text", "html", ""], "description": "text by default"}
        ),
        alternatives=optional_schema({"type": "integer", "minimum": 0, "maximum": config.max_n_best - 1}),
        api_key=optional_schema({**TEXT, "description": "the token"}),
    )


def detect_request(config: ServeConfig) -> Schema:
    return object_schema(["q"], q=libretranslate_text(config), api_key=optional_schema(TEXT))


def libretranslate_translation() -> Schema:
    texts: Schema = {"type": "array", "items": TEXT}
    several: Schema = {"type": "array", "items": texts}
    return object_schema(
        ["translatedText"],
        translatedText={"anyOf": [TEXT, texts]},
        detectedLanguage={"anyOf": [detected_language(), {"type": "array", "items": detected_language()}]},
        alternatives={"anyOf": [texts, several]},
    )


def detected_language() -> Schema:
    return object_schema(["confidence", "language"], confidence={"type": "number"}, language=TEXT)


def detected_languages() -> Schema:
    return {"type": "array", "items": detected_language(), "minItems": 1}


def languages_list() -> Schema:
    targets: Schema = {"type": "array", "items": TEXT}
    return {
        "type": "array",
        "items": object_schema(["code", "name", "targets"], code=TEXT, name=TEXT, targets=targets),
    }


# ---- the whole ---------------------------------------------------------------------------------------------


NULL: Schema = {"type": "null"}


def description(config: ServeConfig, engines: Sequence[str], languages: Sequence[str] = ()) -> Schema:
    """The description, with the limits, the engines and the languages of this server."""
    line: Schema = {"type": "string", "maxLength": config.max_line}
    lines: Schema = {"type": "array", "items": line, "maxItems": config.max_lines}
    engine: Schema = optional_schema(
        {"type": "string", "enum": [*engines, ""], "description": "the first one by default"}
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "nmt-serve", "version": __version__},
        "paths": {
            "/api/translate": post_operation(
                "Translate lines", translate_request(config, engine, lines), translations(), *ERRORS
            ),
            "/api/score": post_operation(
                "Score given translations", score_request(engine, lines), scores(), *ERRORS
            ),
            "/api/engines": {"get": operation("The engines and their limits", engine_list(), "401", "503")},
            **libretranslate_paths(config, languages),
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
    request = object_schema(
        [],
        engine=engine,
        text=optional_schema({**text, "description": "one line or several; \\n ends a line"}),
        lines=optional_schema({**lines, "description": "instead of text"}),
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


def score_request(engine: Schema, lines: Schema) -> Schema:
    flag = optional_schema(FLAG)
    request = object_schema(
        ["source", "target"], engine=engine, source=lines, target=lines, tokenized=flag, word_scores=flag
    )
    return {**request, "additionalProperties": False}


def translations() -> Schema:
    hypothesis = object_schema(
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
            "items": object_schema(["source", "target"], source=SPAN, target=SPAN),
            "description": "phrases in target order, with the first and the last word on either side",
        },
        features={"type": "object", "additionalProperties": {"type": "array", "items": NUMBER}},
    )
    node = object_schema(
        ["first", "last", "new", "left", "right"],
        first=COUNT,
        last=COUNT,
        new=NUMBER,
        left=NUMBER,
        right=NUMBER,
    )
    one = object_schema(
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
        parse=object_schema(["units", "nodes"], units=WORDS, nodes={"type": "array", "items": node}),
    )
    return object_schema(
        ["engine", "translations", "seconds"],
        engine=TEXT,
        translations={"type": "array", "items": one},
        seconds={"type": "number"},
    )


def scores() -> Schema:
    one = object_schema(["log_prob"], log_prob=NUMBER, word_scores={"type": "array", "items": NUMBER})
    return object_schema(["engine", "scores"], engine=TEXT, scores={"type": "array", "items": one})


def engine_list() -> Schema:
    feature = object_schema(
        ["name", "what", "scores", "weights"],
        name=TEXT,
        what=TEXT,
        scores={**WORDS, "description": "a name of each score; empty where nobody says it"},
        weights={"type": "array", "items": {"type": "number"}},
    )
    engine = object_schema(
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
    return object_schema(
        ["version", "engines", "limits"],
        version=TEXT,
        engines={"type": "array", "items": engine},
        limits={"type": "object", "additionalProperties": COUNT},
    )
