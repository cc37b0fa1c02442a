"""What every request passes through."""

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from nmt.serve.access import Token
from nmt.serve.app import application
from nmt.serve.config import ServeConfig
from nmt.serve.life import Life
from nmt.serve.record import Record
from tests.nmt.serve.engines import Upper, client, serving

SECRET = "correct horse battery"
BEARER = {"Authorization": f"Bearer {SECRET}"}
GIVEN = {"text": "a"}


def app(records: list[Record], token: Token | None = None, **settings: object) -> Starlette:
    config = ServeConfig(gather=0.0, **settings)  # type: ignore[arg-type]
    return application(serving(Upper(), config=config), config, token, done=records.append)


def test_every_answer_has_the_headers_of_safety() -> None:
    with client(Upper()) as api:
        for answer in (
            api.get("/"),
            api.get("/nothing"),
            api.post("/api/translate", json=GIVEN),
            api.post("/api/translate", json={"text": "crash"}),
            api.get("/", headers={"Host": "evil.example.org"}),
        ):
            policy = answer.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy and "unsafe" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "Access-Control-Allow-Origin" not in answer.headers


def test_without_a_token_only_this_machine_is_a_host() -> None:
    with client(Upper()) as api:
        assert api.get("/", headers={"Host": "localhost:8080"}).status_code == 200
        assert api.get("/", headers={"Host": "[::1]:8080"}).status_code == 200
        for host in (
            "evil.example.org", "", "10.0.0.1:8080", "[::1].evil.com", "[::1]evil.com:80",
            "127.0.0.1.evil.com", "localhost:80:80", "x@127.0.0.1", "[127.0.0.1", "evil.com/[::1]",
        ):  # fmt: skip
            assert api.get("/api/engines", headers={"Host": host}).status_code == 421
    guarded = TestClient(app([], Token(SECRET)), "http://mt.example.org")
    assert guarded.get("/").status_code == 200


def test_with_a_token_our_interfaces_need_it_and_the_page_does_not() -> None:
    api = TestClient(app([], Token(SECRET)))
    for path in ("/api/translate", "/api/score", "/RPC2", "/RPC2/upper"):
        answer = api.post(path, json=GIVEN)
        assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
    assert api.get("/metrics").status_code == api.get("/api/engines").status_code == 401
    assert api.get("/").status_code == api.get("/health").status_code == 200
    assert api.post("/api/translate", json=GIVEN, headers={"Authorization": "Bearer x"}).status_code == 401
    assert api.post("/api/translate", json=GIVEN, headers=BEARER).status_code == 200


def test_a_body_that_is_too_large() -> None:
    with client(Upper(), max_request=1000) as api:
        assert api.post("/api/translate", json={"text": "a" * 900}).status_code == 200
        answer = api.post("/api/translate", json={"text": "a" * 1000})
        assert answer.status_code == 413 and answer.json() == {
            "error": "the request is larger than 1000 bytes"
        }

        def parts() -> Iterator[bytes]:
            for _ in range(20):
                yield b"a" * 100

        for path in ("/api/translate", "/translate", "/RPC2"):
            streamed = api.post(path, content=parts())
            assert streamed.status_code == 413 and streamed.headers["Connection"] == "close", path


@pytest.mark.parametrize("length", ["9" * 5000, "-1", "x", ""])
def test_a_length_that_is_none(length: str) -> None:
    with client(Upper()) as api:
        answer = api.post("/api/translate", content=b"{}", headers={"Content-Length": length})
        assert answer.status_code in (400, 413)


def test_pages_of_other_sites_may_read_answers_only_where_that_is_allowed() -> None:
    origin = {"Origin": "https://example.org"}
    ask = {
        **origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    api = TestClient(app([], Token(SECRET), allow_origin=["https://example.org"]))
    assert (
        api.options("/api/translate", headers=ask).headers["Access-Control-Allow-Origin"] == origin["Origin"]
    )
    answer = api.post("/api/translate", json=GIVEN, headers={**BEARER, **origin})
    assert answer.headers["Access-Control-Allow-Origin"] == origin["Origin"]
    other = api.post("/api/translate", json=GIVEN, headers={**BEARER, "Origin": "https://evil.org"})
    assert "Access-Control-Allow-Origin" not in other.headers


def test_records_say_what_came_of_requests(caplog: pytest.LogCaptureFixture) -> None:
    records = list[Record]()
    api = TestClient(app(records), "http://localhost", raise_server_exceptions=False)
    for text in ("a\nb", "crash", "fail"):
        answer = api.post("/api/translate", json={"text": text})
        assert answer.headers["X-Request-ID"] == records[-1].id
    api.get("/nowhere")
    assert [(one.status, one.engine, one.lines, one.route) for one in records] == [
        (200, "upper", 2, "/api/translate"),
        (500, "upper", 1, "/api/translate"),
        (400, "upper", 1, "/api/translate"),
        (404, "", 0, ""),
    ]
    assert records[1].error == "RuntimeError: secret" and "Traceback" in caplog.text
    assert all(one.seconds >= 0 and one.method and one.client for one in records)
    assert not any("crash" in str(one) for one in records)  # no text of a request


def test_on_the_way_to_the_end_no_request_is_let_in() -> None:
    life = Life()
    api = TestClient(application(serving(Upper()), ServeConfig(), life=life), "http://localhost")
    assert api.post("/api/translate", json=GIVEN).status_code == 200 and life.active == 0
    life.stop()
    answer = api.post("/api/translate", json=GIVEN)
    assert answer.status_code == 503 and answer.headers["Connection"] == "close"
    assert answer.headers["Retry-After"] == "1"
    assert api.get("/metrics").status_code == 200 and api.get("/health").status_code == 503


FOREIGN: list[dict[str, str]] = [
    {"Origin": "https://evil.org"},
    {"Origin": "null"},
    {"Origin": "http://localhost.evil.org"},
    {"Origin": "http://localhost:8081"},  # another program of this machine
    {"Origin": "http://evil.org", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "nonsense"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.org", "Content-Type": "text/plain"},
]
OWN: list[dict[str, str]] = [
    {},
    {"Origin": "http://localhost"},
    {"Origin": "http://LOCALHOST", "Host": "localhost"},
    {"Origin": "http://127.0.0.1:8080", "Host": "127.0.0.1:8080"},
    {"Origin": "https://[::1]:8080", "Host": "[::1]:8080", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_pages_of_other_sites_cannot_make_a_browser_send_requests(headers: dict[str, str]) -> None:
    api = TestClient(app([]), "http://localhost")
    for path in ("/api/translate", "/translate", "/RPC2"):
        answer = api.post(path, json=GIVEN, headers=headers)
        assert answer.status_code == 403 and "allow-origin" in answer.json()["error"], path
    navigates = "Sec-Fetch-Mode" in headers
    assert api.get("/", headers=headers).status_code == (200 if navigates else 403)  # a link to the page


@pytest.mark.parametrize("headers", OWN, ids=str)
def test_our_own_page_and_programs_may_send_requests(headers: dict[str, str]) -> None:
    api = TestClient(app([]), "http://localhost")
    assert api.post("/api/translate", json=GIVEN, headers=headers).status_code == 200


def test_pages_of_allowed_sites_may_send_requests() -> None:
    api = TestClient(app([], Token(SECRET), allow_origin=["https://good.org"]))
    for site, status in (("https://good.org", 200), ("https://evil.org", 403), ("null", 403)):
        headers = {**BEARER, "Origin": site, "Sec-Fetch-Site": "cross-site"}
        assert api.post("/api/translate", json=GIVEN, headers=headers).status_code == status
