"""What requests and connections pass through."""

import base64
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.errors import ConfigError, DataError
from nmt.serve import limits
from nmt.serve.config import ServeConfig
from nmt.serve.limits import Token
from nmt.serve.monitoring import Lifecycle, RequestRecord
from nmt.serve.server import application
from tests.nmt.serve.engines import BEARER, SECRET, Upper, client, listening, serving

# ---- access ------------------------------------------------------------------------------------------------
# Tokens and addresses.


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("header", [f"Bearer {SECRET}", f"bearer  {SECRET} ", basic(f"anybody:{SECRET}")])
def test_who_is_allowed(header: str) -> None:
    assert Token(SECRET).allows(header)


@pytest.mark.parametrize(
    "header",
    [
        *(basic(f"{SECRET}:"), SECRET, "", "Bearer", f"Bearer {SECRET}x", f"Digest {SECRET}"),
        *("Basic %%%", "Basic /w==", "Basic \xe9", "Bearer \udcff"),
    ],
)
def test_who_is_not_allowed(header: str) -> None:
    assert not Token(SECRET).allows(header)


def test_the_file_of_a_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o600)
    assert limits.read_token(str(path)).matches(SECRET)
    for text in ("", "short\n", f"{SECRET}\n{SECRET}\n"):
        path.write_text(text)
        with pytest.raises(ConfigError, match="expected one line of 16 characters or more"):
            limits.read_token(str(path))
    with pytest.raises(DataError):
        limits.read_token(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("mode", "refused", "warned"), [(0o600, 0, 0), (0o400, 0, 0), (0o640, 0, 1), (0o644, 1, 0), (0o602, 1, 0)]
)
def test_a_token_that_others_can_read(
    mode: int, refused: int, warned: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As with a key of ssh; what the message says to do helps."""
    path = tmp_path / "token"
    path.write_text(SECRET)
    path.chmod(mode)
    if refused:
        with pytest.raises(ConfigError, match=r"token: other users can read this token; chmod 600 .*token"):
            limits.read_token(str(path))
        path.chmod(0o600)
    assert limits.read_token(str(path)).matches(SECRET)
    assert ("other users can read" in caplog.text) == warned


def test_the_token_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A secret of a container is read-only and belongs to root: chmod is not for this user to do."""
    path = tmp_path / "token"
    path.write_text(SECRET)
    path.chmod(0o444)
    monkeypatch.setattr("os.geteuid", lambda: path.stat().st_uid + 1)
    assert limits.read_token(str(path)).matches(SECRET) and "other users can read" in caplog.text


def test_what_is_this_machine_alone() -> None:
    assert all(map(limits.is_loopback, "127.0.0.1 127.9.9.9 ::1 [::1] localhost LOCALHOST".split()))
    others = "0.0.0.0 :: 10.0.0.1 localhost.example.org 127.0.0.1.example.org".split()
    assert not any(map(limits.is_loopback, [*others, ""]))


def test_others_need_a_token() -> None:
    with pytest.raises(ConfigError, match=r"--host 0\.0\.0\.0: other machines can reach this address"):
        limits.check_address("0.0.0.0", "0.0.0.0", None)
    limits.check_address("0.0.0.0", "0.0.0.0", Token(SECRET))
    limits.check_address("localhost", "127.0.0.1", None)


def test_the_name_in_the_host_header() -> None:
    hosts = [limits.header_host(header) for header in ("a:80", "a", "[::1]:80", "[::1]", "")]
    assert hosts == ["a", "a", "[::1]", "[::1]", ""]


def test_networks_of_proxies() -> None:
    within = limits.parse_networks(["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"])
    assert all(limits.in_networks(address, within) for address in ("127.0.0.1", "10.9.9.9", "2001:db8::1"))
    assert not any(limits.in_networks(address, within) for address in ("127.0.0.2", "::1", "", "testclient"))
    with pytest.raises(ConfigError, match="--proxy"):
        limits.parse_networks(["proxy.example.org"])


def test_a_client_is_its_address_or_its_network_of_ipv6() -> None:
    assert limits.client_key("192.0.2.1") == limits.client_key("::ffff:192.0.2.1") == "192.0.2.1"
    assert limits.client_key("2001:db8:1:2::1") == limits.client_key("2001:db8:1:2:ffff::2%eth0")
    assert limits.client_key("2001:db8:1:2::1") != limits.client_key("2001:db8:1:3::1")
    assert limits.client_key("testclient") == "testclient"


# ---- gate --------------------------------------------------------------------------------------------------
# What every request passes through.


GIVEN = {"text": "a"}


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
    with client(Upper(), token=SECRET) as guarded:
        assert guarded.get("/", headers={"Host": "mt.example.org"}).status_code == 200


def test_with_a_token_our_interfaces_need_it_and_the_page_does_not() -> None:
    with client(Upper(), token=SECRET) as api:
        for path in ("/api/translate", "/api/score", "/RPC2", "/RPC2/upper"):
            answer = api.post(path, json=GIVEN)
            assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
        assert api.get("/metrics").status_code == api.get("/api/engines").status_code == 401
        assert api.get("/").status_code == api.get("/health").status_code == 200
        wrong = {"Authorization": "Bearer x"}
        assert api.post("/api/translate", json=GIVEN, headers=wrong).status_code == 401
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
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    with client(Upper(), token=SECRET, allow_origin=["https://example.org"]) as api:
        for answer in (
            api.options("/api/translate", headers={**origin, **asked}),
            api.post("/api/translate", json=GIVEN, headers={**BEARER, **origin}),
        ):
            assert answer.headers["Access-Control-Allow-Origin"] == origin["Origin"]
        other = api.post("/api/translate", json=GIVEN, headers={**BEARER, "Origin": "https://evil.org"})
        assert "Access-Control-Allow-Origin" not in other.headers


def test_records_say_what_came_of_requests(caplog: pytest.LogCaptureFixture) -> None:
    records = list[RequestRecord]()
    with client(Upper(), records=records) as api:
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
    assert records[1].error == "RuntimeError" and "Traceback" in caplog.text
    assert all(one.seconds >= 0 and one.method and one.client for one in records)
    # No text of a request, nor what the message of an exception may quote of it.
    assert not any("crash" in str(one) or "secret" in str(one) for one in records)


def test_on_the_way_to_the_end_no_request_is_let_in() -> None:
    life = Lifecycle()
    with client(Upper(), life=life) as api:
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


@pytest.mark.parametrize("headers", [*FOREIGN, *OWN], ids=str)
def test_pages_of_other_sites_cannot_make_a_browser_send_requests(headers: dict[str, str]) -> None:
    """Our own page, and programs, may."""
    with client(Upper()) as api:
        api.headers["Host"] = "localhost"
        if headers in OWN:
            assert api.post("/api/translate", json=GIVEN, headers=headers).status_code == 200
            return
        for path in ("/api/translate", "/translate", "/RPC2"):
            answer = api.post(path, json=GIVEN, headers=headers)
            assert answer.status_code == 403 and "allow-origin" in answer.json()["error"], path
        navigates = "Sec-Fetch-Mode" in headers
        assert api.get("/", headers=headers).status_code == (200 if navigates else 403)  # a link to the page


def test_pages_of_allowed_sites_may_send_requests() -> None:
    with client(Upper(), token=SECRET, allow_origin=["https://good.org"]) as api:
        for site, status in (("https://good.org", 200), ("https://evil.org", 403), ("null", 403)):
            headers = {**BEARER, "Origin": site, "Sec-Fetch-Site": "cross-site"}
            assert api.post("/api/translate", json=GIVEN, headers=headers).status_code == status


# ---- connection --------------------------------------------------------------------------------------------
# Connections: how many a client may have, and how long they may do nothing.


HEAD = b"POST /api/translate HTTP/1.1\r\nHost: localhost\r\n"
SECONDS = 60  # far more than anything here takes
SLOW = 30.0  # a limit that no test waits for


class Client:
    """Opens connections to a server, which are closed with it."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        host, port = url.removeprefix("http://").split(":")
        self.address, self.stack = (host, int(port)), stack

    def connect(self) -> socket.socket:
        return self.stack.enter_context(socket.create_connection(self.address, timeout=SECONDS))

    def ask(self, connection: socket.socket, text: str, **headers: str) -> tuple[int, object]:
        """Status and JSON of a translation."""
        self.send(connection, text, **headers)
        return self.answer(connection)

    def send(self, connection: socket.socket, text: str, **headers: str) -> None:
        body = json.dumps({"text": text}).encode()
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        connection.sendall(HEAD + more.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def answer(self, connection: socket.socket) -> tuple[int, object]:
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status, json.loads(answer.read())


@contextmanager
def clients(
    config: ServeConfig, app: ASGIApp | None = None, records: list[RequestRecord] | None = None
) -> Iterator[Client]:
    """Clients of a server of an application, by default one with an engine, which adds to `records`."""
    done = (records if records is not None else []).append
    app = app or application(serving(Upper()), config, done=done)
    with listening(app, config) as url, ExitStack() as stack:
        yield Client(url, stack)


def is_closed(connection: socket.socket) -> bool:
    """Has the server closed it? Waits for that."""
    with suppress(ConnectionError):
        return connection.recv(1) == b""
    return True


@pytest.mark.parametrize("data", [b"", b"P", HEAD], ids=["nothing", "a letter", "half a head"])
def test_a_connection_without_a_head_is_closed(data: bytes) -> None:
    with clients(ServeConfig(read_timeout=0.2)) as client:
        connection = client.connect()
        connection.sendall(data)
        assert is_closed(connection)


def test_a_head_that_comes_drop_by_drop_is_not_waited_for() -> None:
    with clients(ServeConfig(read_timeout=0.2)) as client:
        connection = client.connect()
        assert client.ask(connection, "a")[0] == 200  # also after an answer
        connection.settimeout(0.02)
        end = time.monotonic() + SECONDS
        with suppress(ConnectionError):
            while time.monotonic() < end:
                connection.sendall(b"G")
                with suppress(TimeoutError):
                    assert connection.recv(1) == b""
                    break
        assert time.monotonic() < end


def test_a_connection_is_used_again() -> None:
    with clients(ServeConfig(read_timeout=SLOW)) as client:
        connection = client.connect()
        assert [client.ask(connection, "a")[0] for _ in range(3)] == [200] * 3


def test_half_open_connections_lock_nobody_out() -> None:
    """The oldest of a client that has too many are closed."""
    with clients(ServeConfig(read_timeout=SLOW, max_connections=4)) as client:
        half = [client.connect() for _ in range(20)]
        for connection in half:
            with suppress(ConnectionError):
                connection.sendall(HEAD)
        assert client.ask(client.connect(), "a")[0] == 200
        assert all(map(is_closed, half[:16]))
        half[-1].sendall(b'Content-Length: 13\r\n\r\n{"text": "b"}')
        assert client.answer(half[-1])[0] == 200


def test_a_client_with_too_many_requests_in_hand_is_refused() -> None:
    config, engine = ServeConfig(read_timeout=SLOW, max_connections=2), Upper()
    engines = serving(engine)
    with clients(config, application(engines, config)) as client:
        busy = [client.connect() for _ in range(2)]
        for connection in busy:
            client.send(connection, "wait")
        while (engines.first.live, engines.first.waiting) != (1, 1):
            time.sleep(0.001)
        status, content = client.ask(client.connect(), "a")
        assert status == 429 and content == {"error": "too many connections of this client"}
        engine.go.set()
        assert [client.answer(connection)[0] for connection in busy] == [200, 200]
        assert client.ask(client.connect(), "a")[0] == 200


def test_an_answer_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    size, lost = 30_000_000, threading.Event()
    ends = H11Protocol.connection_lost

    def tell(protocol: H11Protocol, error: Exception | None) -> None:
        ends(protocol, error)
        lost.set()

    monkeypatch.setattr(H11Protocol, "connection_lost", tell)
    with clients(ServeConfig(read_timeout=0.2, timeout=0.5), Response(b"x" * size)) as client:
        connection = client.connect()
        connection.sendall(HEAD + b"Content-Length: 0\r\n\r\n")
        received = 0
        assert lost.wait(SECONDS)
        with suppress(ConnectionError):
            while part := connection.recv(1 << 20):
                received += len(part)
        assert 0 < received < size


def test_a_proxy_says_who_the_client_is_and_may_have_many_connections() -> None:
    records = list[RequestRecord]()
    config = ServeConfig(read_timeout=SLOW, max_connections=1, proxy=["10.0.0.0/8", "127.0.0.1"])
    with clients(config, records=records) as client:
        connections = [client.connect() for _ in range(3)]
        for number, connection in enumerate(connections):
            assert client.ask(connection, "a", X_Forwarded_For=f"192.0.2.{number}")[0] == 200
    assert [record.client for record in records] == [f"192.0.2.{number}" for number in range(3)]


def test_anybody_else_may_not_say_who_the_client_is() -> None:
    records = list[RequestRecord]()
    with clients(ServeConfig(read_timeout=SLOW), records=records) as client:
        assert client.ask(client.connect(), "a", X_Forwarded_For="192.0.2.1")[0] == 200
    assert [record.client for record in records] == ["127.0.0.1"]
