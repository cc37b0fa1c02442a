"""Whatever is sent to the server, it answers: no 500, no traceback, no hang, and it goes on."""

import http.client
import socket
import xmlrpc.client
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import cast
from urllib.parse import quote

import pytest
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from nmt.serve.config import ServeConfig
from nmt.serve.http_api import field_names
from nmt.serve.json_api import score_request, translate_request
from nmt.serve.monitoring import RequestRecord
from nmt.serve.moses_rpc import REFUSED
from nmt.serve.server import application
from tests.fuzz import hostile
from tests.fuzz.cases import options
from tests.nmt.serve.engines import Batch, Upper, listening, serving

# ---- server ------------------------------------------------------------------------------------------------


CONFIG = ServeConfig(
    gather=0.0, max_request=20_000, max_line=200, max_lines=20, read_timeout=1.0, timeout=20.0
)
PATHS = (
    "/ /api/translate /api/score /api/engines /api/reload /translate /detect /languages /RPC2 /RPC2/upper "
    "/metrics"
).split()
KEPT = [status_code_conformance, content_type_conformance, response_schema_conformance]
SECONDS = 60  # far more than any request takes
WORDS = st.sampled_from(
    ["a", "b c", "", "\n", "\r\n", "\x00", "\ud800", "<b>", "<!--", "é́", "你好", "\u202e", "x" * 500, "fail"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | WORDS | st.just(10**400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        *field_names(translate_request(CONFIG, [])),
        *field_names(score_request(CONFIG, [])),
        *("q", "format", "alternatives", "api_key", "nbest", "text"),
    ]
)
TYPES = st.sampled_from(
    [
        "application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "multipart/form-data; boundary=x",
        "text/xml; charset=utf-7",
        "",
    ]
)
PARTS = st.sampled_from(
    [
        b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\na\r\n--x--\r\n',
        b'--x\r\nContent-Disposition: form-data; name="q"; filename="../a"\r\n\r\na\r\n--x--\r\n',
        b"q=a&source=en&target=fr&format=html&alternatives=2",
        b"<?xml version='1.0'?><methodCall><methodName>translate</methodName><params><param><value><struct>",
        b"<member><name>text</name><value>a</value></member></struct></value></param></params></methodCall>",
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
        b'{"text": "a"}',
        b"\xff\xfe",
        b"%",
    ]
)


@pytest.fixture(scope="module")
def api() -> Iterator[TestClient]:
    """In this process: an error of ours is raised."""
    engines = serving(Batch(), Upper(), config=CONFIG)
    yield TestClient(application(engines, CONFIG), "http://localhost")
    for one in engines.values():
        one.close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with listening(application(serving(Batch(), Upper(), config=CONFIG), CONFIG)) as found:
        yield found


def sound(status: int, body: str) -> None:
    assert status < 500, body
    assert "Traceback" not in body and ".py" not in body


def check_json(api: TestClient, path: str, given: Mapping[str, object]) -> None:
    with suppress(UnicodeEncodeError, ValueError):  # what cannot be written as JSON
        answer = api.post(path, json=given)
        sound(answer.status_code, answer.text)
        if path.startswith("/api"):
            assert answer.status_code == 200 or set(answer.json()) == {"error"}


def check_bytes(api: TestClient, path: str, method: str, kind: str, body: bytes) -> None:
    answer = api.request(method, path, content=body, headers={"Content-Type": kind})
    sound(answer.status_code, answer.text)


def check_raw(url: str, data: bytes) -> None:
    """Bytes on a connection: an answer, or its end; and the server goes on."""
    host, port = url.removeprefix("http://").split(":")
    found = b""
    with socket.create_connection((host, int(port)), timeout=SECONDS) as raw, suppress(ConnectionError):
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
        while part := raw.recv(65536):
            found += part
    assert b"Traceback" not in found and not found.startswith(b"HTTP/1.1 500")
    connection = http.client.HTTPConnection(host, int(port), timeout=SECONDS)
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    connection.close()


GOOD = st.sampled_from(["a", "b c", "é́ 你好", "<b>x</b> y", "d e f"])
LINES = st.one_of(GOOD, GOOD, GOOD, WORDS, st.text(max_size=20))
FLAGS = st.booleans()
COUNTS = st.sampled_from([0, 1, 2, 3, 4, 5, 6])
# Fields that are mostly right, so that much gets through to the engines.
REQUESTS: dict[str, dict[str, st.SearchStrategy[object]]] = {
    "/api/translate": {
        "engine": st.sampled_from(["upper", "upper", "other", "none"]),
        "lines": st.lists(LINES, max_size=5),
        "n_best": COUNTS,
        "beam_size": COUNTS,
        "distinct": FLAGS,
        "attention": FLAGS,
        "parse": FLAGS,
    },
    "/api/score": {"source": st.lists(LINES, max_size=2), "target": st.lists(LINES, max_size=2)},
    "/translate": {
        "q": LINES | st.lists(LINES, max_size=3),
        "source": st.sampled_from(["en", "auto", "auto", "fr"]),
        "target": st.sampled_from(["fr", "fr", "fr", "xx"]),
        "format": st.sampled_from(["text", "html", ""]),
        "alternatives": COUNTS,
    },
    "/detect": {"q": LINES},
}
NEEDED = ("lines", "q", "source", "target")
MOSTLY = [
    st.tuples(
        st.just(path),
        st.fixed_dictionaries(
            {name: one for name, one in fields.items() if name in NEEDED},
            optional={name: one for name, one in fields.items() if name not in NEEDED},
        ),
    )
    for path, fields in REQUESTS.items()
]
ANY = st.tuples(st.sampled_from(PATHS), st.dictionaries(NAMES | st.text(max_size=5), VALUES, max_size=6))
BYTES = {
    "path": st.sampled_from(PATHS) | st.binary(max_size=20).map(lambda name: "/" + quote(name)),
    "method": st.sampled_from(["GET", "POST", "PUT", "OPTIONS", "HEAD", "BREW"]),
    "kind": TYPES,
    "body": st.lists(PARTS | st.binary(max_size=50), max_size=5).map(b"".join),
}
HEADS = st.lists(
    st.sampled_from(
        [
            b"POST /api/translate HTTP/1.1\r\n",
            b"GET / HTTP/1.0\r\n",
            b"Host: localhost\r\n",
            b"Content-Length: 5\r\n",
            b"Content-Length: -5\r\n",
            b"Content-Length: " + b"9" * 30 + b"\r\n",
            b"Transfer-Encoding: chunked\r\n",
            b"Expect: 100-continue\r\n",
            b"Authorization: Basic %%%\r\n",
            b"Upgrade: websocket\r\nConnection: upgrade\r\n",
            b"\r\n",
            b'5\r\n{"a":\r\n',
            b"0\r\n\r\n",
            b"{}",
            b"\x00\xff",
            b"X: " + b"y" * 5000 + b"\r\n",
        ]
    )
    | st.binary(max_size=20),
    max_size=8,
).map(b"".join)


def fuzz_json(api: TestClient, cases: int) -> None:
    options(cases)(given(asked=st.one_of(ANY, *MOSTLY))(lambda asked: check_json(api, *asked)))()


def fuzz_bytes(api: TestClient, cases: int) -> None:
    def check(path: str, method: str, kind: str, body: bytes) -> None:
        check_bytes(api, path, method, kind, body)

    options(cases)(given(**BYTES)(check))()


def fuzz_connections(url: str, cases: int) -> None:
    options(cases)(given(data=HEADS)(lambda data: check_raw(url, data)))()


@pytest.mark.ci
def test_json_of_any_kind(api: TestClient) -> None:
    fuzz_json(api, 200)


@pytest.mark.ci
def test_bytes_of_any_kind(api: TestClient) -> None:
    fuzz_bytes(api, 200)


@pytest.mark.ci
def test_bytes_on_a_connection(url: str) -> None:
    fuzz_connections(url, 100)


@pytest.mark.slow
def test_more_of_all(api: TestClient, url: str) -> None:
    fuzz_json(api, 3000)
    fuzz_bytes(api, 3000)
    fuzz_connections(url, 1000)
    fuzz_xmlrpc(api, 3000)


# Values that XML-RPC has, mostly of the fields that mosesserver reads; and XML of its elements in any order.
SCALARS = (
    st.booleans()
    | st.integers(-(2**31), 2**31 - 1)
    | st.floats()
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=30)
    | st.sampled_from(["a b", "fail", "1", "true", "0", ""])
    | st.binary(max_size=9)
    | st.datetimes()
    | st.none()
)
MEMBERS = st.sampled_from(
    ["text", "nbest", "nbest-distinct", "align", "word-align", "add-score-breakdown", *REFUSED, "other", ""]
)
STRUCTS = st.dictionaries(
    MEMBERS,
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=5,
)
CALLS = st.tuples(
    st.sampled_from(["translate", "translate", "translate", "system.listMethods", "system.multicall", ""]),
    st.tuples(STRUCTS.map(lambda given: {"text": "a b", **given})) | st.lists(STRUCTS, max_size=2).map(tuple),
)
ELEMENTS = st.sampled_from(
    "methodCall methodName params param value struct member name array data int i4 i8 double boolean string "
    "base64 dateTime.iso8601 nil ex:nil fault".split()
)
CONTENTS = st.sampled_from(
    ["translate", "text", "1", "9" * 5000, "x", "&lt;", "&#0;", "<![CDATA[a]]>", "inf", ""]
)
TREES = st.recursive(
    CONTENTS,
    lambda inner: st.tuples(ELEMENTS, st.lists(inner, max_size=3)).map(
        lambda pair: f"<{pair[0]}>{''.join(pair[1])}</{pair[0]}>"
    ),
    max_leaves=30,
)
TEXT_FIRST = "<struct><member><name>text</name><value>a</value></member><member><name>x</name><value>"
BODIES = (
    CALLS.map(lambda call: xmlrpc.client.dumps(call[1], call[0], allow_none=True).encode())
    | TREES.map(lambda tree: f"<methodCall>{tree}</methodCall>".encode())
    | TREES.map(
        lambda tree: (
            f"<methodCall><methodName>translate</methodName><params><param><value>{TEXT_FIRST}{tree}"
            "</value></member></struct></value></param></params></methodCall>"
        ).encode()
    )
)


def check_xmlrpc(api: TestClient, body: bytes) -> None:
    """A call gets a value or a fault, whatever it holds, unless it is too large."""
    answer = api.post("/RPC2", content=body, headers={"Content-Type": "text/xml"})
    assert answer.status_code == (413 if len(body) > CONFIG.max_request else 200)
    sound(answer.status_code, answer.text)
    if answer.status_code == 413:
        return
    with suppress(xmlrpc.client.Fault):
        values, _ = xmlrpc.client.loads(answer.content)
        assert len(values) == 1


def fuzz_xmlrpc(api: TestClient, cases: int) -> None:
    options(cases)(given(body=BODIES)(lambda body: check_xmlrpc(api, body)))()


@pytest.mark.ci
def test_xmlrpc_of_any_kind(api: TestClient) -> None:
    fuzz_xmlrpc(api, 300)


def description() -> dict[str, object]:
    """The description that a server gives of itself."""
    engines = serving(Batch(), Upper(), config=CONFIG)
    answer = TestClient(application(engines, CONFIG), "http://localhost").get("/api/openapi.json")
    for served in engines.values():
        served.close()
    return cast(dict[str, object], answer.json())


SCHEMA = schemathesis.openapi.from_dict(description())


@pytest.mark.ci
@SCHEMA.parametrize()
@options(60)
def test_what_the_description_says(case: object, url: str) -> None:
    """Good and bad requests made from the description: the answers are what it says."""
    case.call_and_validate(base_url=url, checks=KEPT)  # type: ignore[attr-defined]


# ---- hostile -----------------------------------------------------------------------------------------------
# Hostile clients beside a well-behaved one. How long its answers take is measured by hand: hostile.py.


@pytest.mark.ci
@pytest.mark.parametrize("engine", [Upper, Batch])
def test_other_clients_get_their_texts(engine: type[Upper], caplog: pytest.LogCaptureFixture) -> None:
    config, records = ServeConfig(gather=0.0, read_timeout=5.0), list[RequestRecord]()
    app = application(serving(engine(), config=config), config, done=records.append)
    with listening(app, config) as url:
        host, port = url.removeprefix("http://").split(":")
        results, checker = hostile.siege((host, int(port)), cases=60, seconds=60, clients=3, rounds=1)
    assert results.total() and not checker.wrong
    assert not [record for record in records if record.status >= 500 or record.error]
    assert "Traceback" not in caplog.text
