"""The XML-RPC interface of mosesserver: method `translate` at /RPC2 (the first engine) and /RPC2/NAME.

{"text": "the nurses hear her .", "nbest": 2} -> {"text": "les infirmières l' entendent .", "nbest": [...]}

Source and translations are tokenized text, and fields have Moses' names
(moses/server/TranslationRequest.cpp). A request with a document type is refused, so that no entity expands.
"""

import re
import xmlrpc.client
from collections.abc import Mapping
from xml.parsers import expat

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from nmt.errors import UserError
from nmt.formats import nbest
from nmt.io import files
from nmt.io.numbers import shown
from nmt.serve.config import ServeConfig
from nmt.serve.engine import LineHypothesis, TranslatedLine, TranslateOptions
from nmt.serve.engine_access import EngineAccess
from nmt.serve.served import ServedEngine, ServedEngines

# Fault codes of xmlrpc-c, the library of mosesserver.
INTERNAL, TYPE, PARSE, NO_METHOD = -500, -501, -503, -506
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # not allowed in XML
LINE_BREAK = re.compile("[\r\n]")
MAX_DEPTH = 50  # nested elements: a call needs ten, and a few hundred exceed Python's recursion limit
METHODS = ("translate", "system.listMethods")
# Options of mosesserver that we do not support.
REFUSED = ("sg", "topt", "report-all-factors", "lambda", "model_name", "context", "session-id")


class MosesServer:
    """The handler of XML-RPC calls."""

    def __init__(self, engines: ServedEngines, config: ServeConfig) -> None:
        self.engines, self.config, self.access = engines, config, EngineAccess(config)

    def routes(self) -> list[BaseRoute]:
        return [Route(path, self.call, methods=["POST"]) for path in ("/RPC2", "/RPC2/{name}")]

    async def call(self, request: Request) -> Response:
        name = request.path_params.get("name", self.engines.first.name)
        if name not in self.engines:
            raise HTTPException(404, f"no engine of this name, expected one of {', '.join(self.engines)}")
        body = await request.body()
        try:
            method, parameters = parse_call(body)
            result = await self.call_method(request, self.engines[name], method, parameters)
            answer = xmlrpc.client.dumps((result,), methodresponse=True)  # type: ignore[arg-type]
        except xmlrpc.client.Fault as fault:
            answer = xmlrpc.client.dumps(fault)
        except UserError as error:
            answer = xmlrpc.client.dumps(xmlrpc.client.Fault(INTERNAL, clean_xml(str(error))))
        return Response(answer, media_type="text/xml")

    async def call_method(
        self, request: Request, served: ServedEngine, method: str, parameters: tuple[object, ...]
    ) -> object:
        """Call a method and return its result. Fault for an unknown method and for wrong parameters; other
        errors as from `EngineAccess.check_lines` and `EngineAccess.translate`."""
        if method == "system.listMethods":
            return list(METHODS)
        if method != "translate":
            raise xmlrpc.client.Fault(NO_METHOD, f"Method {shown(method)} not defined")
        if len(parameters) != 1 or not isinstance(parameters[0], dict):
            raise xmlrpc.client.Fault(TYPE, "expected one parameter, a struct")
        params: dict[str, object] = parameters[0]
        text = params.get("text")
        if text is None:
            raise xmlrpc.client.Fault(PARSE, "Missing source text")
        if not isinstance(text, str):
            raise xmlrpc.client.Fault(TYPE, "text: expected a string")
        for name in REFUSED:
            if is_set(params, name):
                raise xmlrpc.client.Fault(INTERNAL, f"{name}: this server cannot do that; leave it out")
        count = self.read_n_best(params)
        options = TranslateOptions(
            n_best=max(1, count), tokenized=True, distinct=is_set(params, "nbest-distinct") and count > 0
        )
        line = " ".join(files.split_words(LINE_BREAK.sub(" ", text)))
        self.access.check_lines([line])
        (translation,) = await self.access.translate(request, served, [line], options)
        return pack_translation(translation, params, count)

    def read_n_best(self, params: Mapping[str, object]) -> int:
        """Read `nbest`, the number of hypotheses to list; 0 by default. Fault for a wrong value."""
        count = params.get("nbest", 0)
        if isinstance(count, str) and re.fullmatch("[0-9]{1,9}", count):
            count = int(count)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= self.config.max_n_best:
            raise xmlrpc.client.Fault(
                TYPE, f"nbest: expected a whole number from 0 to {self.config.max_n_best}"
            )
        return count


def parse_call(body: bytes) -> tuple[str, tuple[object, ...]]:
    """Parse the method and the parameters of a call. Fault for a body that is not a call."""
    reader = xmlrpc.client.Unmarshaller(use_builtin_types=True)
    reader.xml(None, None)  # type: ignore[arg-type]  # expat passes it decoded text, so it needs no encoding
    parser = expat.ParserCreate()
    depth = 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise ValueError("nested too deep")
        reader.start(tag, attributes)

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        reader.end(tag)

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = reader.data
    parser.StartDoctypeDeclHandler = refuse_doctype
    try:
        parser.Parse(body, True)
        parameters, method = reader.close(), reader.getmethodname()
    except xmlrpc.client.Fault as fault:
        raise xmlrpc.client.Fault(PARSE, "a fault, expected a call") from fault
    except Exception as error:  # the reader raises any exception for a malformed call
        raise xmlrpc.client.Fault(PARSE, "the body is not an XML-RPC call") from error
    if not method:
        raise xmlrpc.client.Fault(PARSE, "the call names no method")
    return method, parameters


def refuse_doctype(*declaration: object) -> None:
    """Raise ValueError for any document type, since it could define entities of unlimited size."""
    raise ValueError("a document type")


def is_set(params: Mapping[str, object], name: str) -> bool:
    """Whether a flag is set. As in Moses, any value sets it except those that mean false."""
    value = params.get(name, False)
    return str(value).strip().lower() not in ("false", "0", "none", "")


def pack_translation(
    translation: TranslatedLine, params: Mapping[str, object], count: int
) -> dict[str, object]:
    """Convert a translation to Moses' fields. `params`: those of the request; `count`: the number of
    hypotheses to list under `nbest`, 0 for none."""
    answer = pack_hypothesis(translation.hypotheses[0], "text", params)
    if count:
        answer["nbest"] = [
            {
                **pack_hypothesis(hypothesis, "hyp", params),
                **({"fvals": breakdown(hypothesis)} if is_set(params, "add-score-breakdown") else {}),
                "totalScore": float(hypothesis.score),
            }
            for hypothesis in translation.hypotheses[:count]
        ]
    return answer


def pack_hypothesis(hypothesis: LineHypothesis, key: str, params: Mapping[str, object]) -> dict[str, object]:
    """Convert a hypothesis to Moses' fields, with its text under `key`, and the alignments that `params` of
    the request ask for. Phrases are in target order."""
    answer: dict[str, object] = {key: clean_xml(hypothesis.text)}
    if is_set(params, "align"):
        answer["align"] = [
            {"tgt-start": segment.target[0], "src-start": segment.source[0], "src-end": segment.source[1]}
            for segment in hypothesis.segments
        ]
    if is_set(params, "word-align"):
        answer["word-align"] = [
            {"source-word": source, "target-word": target} for source, target in hypothesis.alignment
        ]
    return answer


def breakdown(hypothesis: LineHypothesis) -> str:
    """Format the features of a hypothesis as in an n-best list. A network's only feature is NMT0, its natural
    log p; empty if that is unknown."""
    features = hypothesis.features or (
        {"NMT0": [hypothesis.log_prob]} if hypothesis.log_prob is not None else {}
    )
    return clean_xml(nbest.format_features(features))


def clean_xml(text: str) -> str:
    """Replace the characters that XML does not allow."""
    return NO_XML.sub("\ufffd", text)
