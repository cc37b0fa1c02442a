"""The XML-RPC interface of mosesserver: method `translate` at /RPC2 (the first engine) and /RPC2/NAME.

{"text": "the nurses hear her .", "nbest": 2} -> {"text": "les infirmières l' entendent .", "nbest": [...]}

Text is tokenized in and out, and fields have Moses' names (moses/server/TranslationRequest.cpp). A request
with a document type is refused, so that there are no entities to expand.
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
from nmt.io.numbers import shown
from nmt.serve.answers import EngineAccess
from nmt.serve.config import ServeConfig
from nmt.serve.engine import Hypothesis, Options, Translated
from nmt.serve.served import ServedEngine, ServedEngines

# Fault codes of xmlrpc-c, the library of mosesserver.
INTERNAL, TYPE, PARSE, NO_METHOD = -500, -501, -503, -506
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML lacks
DEEPEST = 50  # elements inside each other
METHODS = ("translate", "system.listMethods")
# What mosesserver can do and we cannot.
REFUSED = ("sg", "topt", "report-all-factors", "lambda", "model_name", "context", "session-id")


class MosesServer:
    """Its handler."""

    def __init__(self, engines: ServedEngines, config: ServeConfig) -> None:
        self.engines, self.config, self.access = engines, config, EngineAccess(config)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/RPC2", self.call, methods=["POST"]),
            Route("/RPC2/{name}", self.call, methods=["POST"]),
        ]

    async def call(self, request: Request) -> Response:
        name = request.path_params.get("name", self.engines.first.name)
        if name not in self.engines:
            raise HTTPException(404, f"no engine of this name, expected one of {', '.join(self.engines)}")
        body = await request.body()
        try:
            method, parameters = parse(body)
            found = await self.result(request, self.engines[name], method, parameters)
        except xmlrpc.client.Fault as fault:
            return Response(xmlrpc.client.dumps(fault), media_type="text/xml")
        except UserError as error:
            refused = xmlrpc.client.Fault(INTERNAL, clean(str(error)))
            return Response(xmlrpc.client.dumps(refused), media_type="text/xml")
        answer = xmlrpc.client.dumps((found,), methodresponse=True)  # type: ignore[arg-type]
        return Response(answer, media_type="text/xml")

    async def result(
        self, request: Request, served: ServedEngine, method: str, parameters: tuple[object, ...]
    ) -> object:
        """What a method returns. Fault for one that does not exist, and for wrong parameters."""
        if method == "system.listMethods":
            return list(METHODS)
        if method != "translate":
            raise xmlrpc.client.Fault(NO_METHOD, f"Method {shown(method)} not defined")
        if len(parameters) != 1 or not isinstance(parameters[0], dict):
            raise xmlrpc.client.Fault(TYPE, "expected one parameter, a struct")
        given: dict[str, object] = parameters[0]
        text = given.get("text")
        if text is None:
            raise xmlrpc.client.Fault(PARSE, "Missing source text")
        if not isinstance(text, str):
            raise xmlrpc.client.Fault(TYPE, "text: expected a string")
        for name in REFUSED:
            if asked(given, name):
                raise xmlrpc.client.Fault(INTERNAL, f"{name}: this server cannot do that; leave it out")
        count = self.count(given)
        options = Options(
            n_best=max(1, count), tokenized=True, distinct=asked(given, "nbest-distinct") and count > 0
        )
        line = " ".join(text.split())
        (found,) = await self.access.translate(request, served, [line], options)
        return packed(found, given, count)

    def count(self, given: Mapping[str, object]) -> int:
        """`nbest`: hypotheses that are listed; 0: none."""
        count = given.get("nbest", 0)
        if isinstance(count, str) and count.isascii() and count.isdigit() and len(count) < 10:
            count = int(count)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= self.config.max_n_best:
            raise xmlrpc.client.Fault(
                TYPE, f"nbest: expected a whole number from 0 to {self.config.max_n_best}"
            )
        return count


def parse(body: bytes) -> tuple[str, tuple[object, ...]]:
    """The method and the parameters of a call. Fault for anything else."""
    reader = xmlrpc.client.Unmarshaller(use_builtin_types=True)
    reader.xml(None, None)  # type: ignore[arg-type]  # expat gives it text: there is nothing to decode
    parser = expat.ParserCreate()
    depth = Depth(reader)
    parser.StartElementHandler = depth.start
    parser.EndElementHandler = depth.end
    parser.CharacterDataHandler = reader.data
    parser.StartDoctypeDeclHandler = refuse_doctype
    try:
        parser.Parse(body, True)
        parameters, method = reader.close(), reader.getmethodname()
    except xmlrpc.client.Fault as fault:
        raise xmlrpc.client.Fault(PARSE, "a fault, expected a call") from fault
    except Exception as error:  # the reader raises whatever comes of a malformed call
        raise xmlrpc.client.Fault(PARSE, "the body is no XML-RPC call") from error
    if not method:
        raise xmlrpc.client.Fault(PARSE, "the call names no method")
    return method, parameters


class Depth:
    """Passes elements on to a reader. ValueError for those nested too deep: a call needs ten levels, and
    Python's recursion ends at some hundreds."""

    def __init__(self, reader: xmlrpc.client.Unmarshaller) -> None:
        self.reader, self.depth = reader, 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ValueError("nested too deep")
        self.reader.start(tag, attributes)

    def end(self, tag: str) -> None:
        self.depth -= 1
        self.reader.end(tag)


def refuse_doctype(*declaration: object) -> None:
    """A document type could define entities that expand to anything."""
    raise ValueError("a document type")


def asked(given: Mapping[str, object], name: str) -> bool:
    """Is a flag set? It is as soon as it is there, as in Moses, unless its value says no."""
    value = given.get(name, False)
    return str(value).strip().lower() not in ("false", "0", "none", "")


def packed(found: Translated, given: Mapping[str, object], count: int) -> dict[str, object]:
    """A translation in Moses' fields."""
    made = hypothesis(found.hypotheses[0], "text", given)
    if count:
        made["nbest"] = [
            {
                **hypothesis(one, "hyp", given),
                **({"fvals": breakdown(one)} if asked(given, "add-score-breakdown") else {}),
                "totalScore": float(one.score),
            }
            for one in found.hypotheses[:count]
        ]
    return made


def hypothesis(found: Hypothesis, key: str, given: Mapping[str, object]) -> dict[str, object]:
    """One hypothesis, its text under a key. Phrases are in target order; networks have none."""
    made: dict[str, object] = {key: clean(found.text)}
    if asked(given, "align"):
        made["align"] = [
            {"tgt-start": one.target[0], "src-start": one.source[0], "src-end": one.source[1]}
            for one in found.segments
        ]
    if asked(given, "word-align"):
        made["word-align"] = [
            {"source-word": source, "target-word": target} for source, target in found.alignment
        ]
    return made


def breakdown(found: Hypothesis) -> str:
    """The features of a hypothesis as in an n-best list; of a network its log p."""
    features = found.features or ({"NMT0": [found.log_prob]} if found.log_prob is not None else {})
    return clean(nbest.format_features(features))


def clean(text: str) -> str:
    """A text without characters that XML lacks."""
    return NO_XML.sub("\ufffd", text)
