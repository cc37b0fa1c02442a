"""The description of LibreTranslate's interface, as far as it is ours, in the form of OpenAPI 3.1."""

from collections.abc import Sequence

from nmt.serve.config import ServeConfig
from nmt.serve.openapi_schemas import COUNT, TEXT, Schema, operation, optional, post, record

ERRORS = ("400", "403", "408", "413", "429", "503", "504")


def paths(config: ServeConfig, languages: Sequence[str]) -> Schema:
    """The paths, with the limits of this server and the codes of its languages."""
    settings = record(["apiKeys", "charLimit", "keyRequired", "language"], charLimit=COUNT)
    health = record(["status"], status=TEXT)
    return {
        "/translate": post(
            "Translate texts", translate_request(config, languages), translation(), *ERRORS, form=True
        ),
        "/detect": post(
            "Detect the language of a text", detect_request(config), detection(), *ERRORS, form=True
        ),
        "/languages": {
            "get": operation("The languages, and what they are translated into", languages_list())
        },
        "/frontend/settings": {"get": operation("What a page needs to know", settings)},
        "/health": {"get": operation("Whether requests are taken", health, "503")},
    }


def text(config: ServeConfig) -> Schema:
    most = config.max_lines * (config.max_line + 1)
    return {"type": "string", "minLength": 1, "maxLength": most}


def translate_request(config: ServeConfig, languages: Sequence[str]) -> Schema:
    query = text(config)
    texts = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": config.max_lines}
    code: Schema = {"type": "string", "enum": list(languages)}
    return record(
        ["q", "source", "target"],
        q={"anyOf": [query, texts], "description": "a text, or several"},
        source={"type": "string", "enum": ["auto", *languages]},
        target=code,
        format=optional({"type": "string", "enum": ["text", "html", ""], "description": "text by default"}),
        alternatives=optional({"type": "integer", "minimum": 0, "maximum": config.max_n_best - 1}),
        api_key=optional({**TEXT, "description": "the token"}),
    )


def detect_request(config: ServeConfig) -> Schema:
    return record(["q"], q=text(config), api_key=optional(TEXT))


def translation() -> Schema:
    texts: Schema = {"type": "array", "items": TEXT}
    several: Schema = {"type": "array", "items": texts}
    return record(
        ["translatedText"],
        translatedText={"anyOf": [TEXT, texts]},
        detectedLanguage={"anyOf": [detected(), {"type": "array", "items": detected()}]},
        alternatives={"anyOf": [texts, several]},
    )


def detected() -> Schema:
    return record(["confidence", "language"], confidence={"type": "number"}, language=TEXT)


def detection() -> Schema:
    return {"type": "array", "items": detected(), "minItems": 1}


def languages_list() -> Schema:
    targets: Schema = {"type": "array", "items": TEXT}
    return {
        "type": "array",
        "items": record(["code", "name", "targets"], code=TEXT, name=TEXT, targets=targets),
    }
