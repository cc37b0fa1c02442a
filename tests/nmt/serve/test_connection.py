"""Connections: how many a client may have, and how long they may do nothing."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from starlette.responses import Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.serve.app import application
from nmt.serve.config import ServeConfig
from nmt.serve.record import Record
from tests.nmt.serve.engines import Upper, listening, serving

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
def clients(app: ASGIApp, config: ServeConfig) -> Iterator[Client]:
    with listening(app, config) as url, ExitStack() as stack:
        yield Client(url, stack)


def is_closed(connection: socket.socket) -> bool:
    """Has the server closed it? Waits for that."""
    with suppress(ConnectionError):
        return connection.recv(1) == b""
    return True


def app_of(engine: Upper, config: ServeConfig, records: list[Record] | None = None) -> ASGIApp:
    return application(serving(engine), config, done=(records if records is not None else []).append)


@pytest.mark.parametrize("data", [b"", b"P", HEAD], ids=["nothing", "a letter", "half a head"])
def test_a_connection_without_a_head_is_closed(data: bytes) -> None:
    config = ServeConfig(read_timeout=0.2)
    with clients(app_of(Upper(), config), config) as client:
        connection = client.connect()
        connection.sendall(data)
        assert is_closed(connection)


def test_a_head_that_comes_drop_by_drop_is_not_waited_for() -> None:
    config = ServeConfig(read_timeout=0.2)
    with clients(app_of(Upper(), config), config) as client:
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
    config = ServeConfig(read_timeout=SLOW)
    with clients(app_of(Upper(), config), config) as client:
        connection = client.connect()
        assert [client.ask(connection, "a")[0] for _ in range(3)] == [200] * 3


def test_half_open_connections_lock_nobody_out() -> None:
    """The oldest of a client that has too many are closed."""
    config = ServeConfig(read_timeout=SLOW, max_connections=4)
    with clients(app_of(Upper(), config), config) as client:
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
    with clients(application(engines, config), config) as client:
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
    config = ServeConfig(read_timeout=0.2, timeout=0.5)
    with clients(Response(b"x" * size), config) as client:
        connection = client.connect()
        connection.sendall(HEAD + b"Content-Length: 0\r\n\r\n")
        received = 0
        assert lost.wait(SECONDS)
        with suppress(ConnectionError):
            while part := connection.recv(1 << 20):
                received += len(part)
        assert 0 < received < size


def test_a_proxy_says_who_the_client_is_and_may_have_many_connections() -> None:
    records = list[Record]()
    config = ServeConfig(read_timeout=SLOW, max_connections=1, proxy=["10.0.0.0/8", "127.0.0.1"])
    with clients(app_of(Upper(), config, records), config) as client:
        connections = [client.connect() for _ in range(3)]
        for number, connection in enumerate(connections):
            assert client.ask(connection, "a", X_Forwarded_For=f"192.0.2.{number}")[0] == 200
    assert [record.client for record in records] == [f"192.0.2.{number}" for number in range(3)]


def test_anybody_else_may_not_say_who_the_client_is() -> None:
    records = list[Record]()
    config = ServeConfig(read_timeout=SLOW)
    with clients(app_of(Upper(), config, records), config) as client:
        assert client.ask(client.connect(), "a", X_Forwarded_For="192.0.2.1")[0] == 200
    assert [record.client for record in records] == ["127.0.0.1"]
