"""The interfaces through the clients that people use."""

import http.client
import json
import socket
import threading
import time
import urllib.error
import xmlrpc.client
from collections.abc import Iterator
from typing import cast

import pytest
from libretranslatepy import LibreTranslateAPI

from nmt.serve.config import ServeConfig
from nmt.serve.engine_access import CLIENT_LEFT
from nmt.serve.limits import Token
from nmt.serve.monitoring import RequestRecord
from nmt.serve.server import application
from tests.conftest import until
from tests.nmt.serve.engines import SECRET, Batch, Upper, listening, serving

HEAD = b"POST /api/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with listening(application(serving(Batch(), Upper()), ServeConfig())) as found:
        yield found


def test_libretranslatepy(url: str) -> None:
    api = LibreTranslateAPI(url)
    assert api.translate("a b\nc & d", "en", "fr") == "A B\nC & D"
    assert api.translate("a", "auto", "fr") == "A"
    assert api.detect("a") == [{"confidence": 100.0, "language": "en"}]
    assert [one["code"] for one in api.languages()] == ["en", "fr"]
    with pytest.raises(urllib.error.HTTPError) as error:
        api.translate("a", "en", "xx")
    with error.value as answer:
        assert answer.code == 400 and json.load(answer) == {"error": "xx is not supported"}


def test_libretranslatepy_with_a_key() -> None:
    with listening(application(serving(Upper()), ServeConfig(), Token(SECRET))) as url:
        assert LibreTranslateAPI(url, SECRET).translate("a", "en", "fr") == "A"
        with pytest.raises(urllib.error.HTTPError) as error:
            LibreTranslateAPI(url, "wrong").translate("a", "en", "fr")
        with error.value as answer:
            assert answer.code == 403


def test_xmlrpc_client(url: str) -> None:
    with xmlrpc.client.ServerProxy(f"{url}/RPC2") as moses:
        found = cast(dict[str, object], moses.translate({"text": "é b", "align": True, "nbest": 2}))
        assert found["text"] == "É B" and len(cast(list[object], found["nbest"])) == 2
        with pytest.raises(xmlrpc.client.Fault, match="Method 'nothing' not defined"):
            moses.nothing()
    with xmlrpc.client.ServerProxy(f"{url}/RPC2/other") as moses:
        assert moses.translate({"text": "a"}) == {"text": "A"}


def test_xmlrpc_client_with_a_token() -> None:
    with listening(application(serving(Upper()), ServeConfig(), Token(SECRET))) as url:
        place = f"{url}/RPC2".replace("http://", f"http://moses:{SECRET.replace(' ', '%20')}@")
        with xmlrpc.client.ServerProxy(place) as moses:
            assert moses.translate({"text": "a"}) == {"text": "A"}
        with xmlrpc.client.ServerProxy(f"{url}/RPC2") as moses, pytest.raises(xmlrpc.client.ProtocolError):
            moses.translate({"text": "a"})


def raw(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=30)


@pytest.mark.ci
@pytest.mark.parametrize("engine", [Upper, Batch])
def test_a_client_that_leaves_frees_the_engine(engine: type[Upper]) -> None:
    made = engine()
    engines = serving(made)
    with listening(application(engines, ServeConfig())) as url:
        connection, body = raw(url), b'{"text": "wait"}'
        connection.sendall(HEAD % len(body) + body)
        until(lambda: engines.first.live == 1)
        connection.close()
        until(lambda: engines.first.live == 0)
        assert not made.go.is_set()


@pytest.mark.parametrize("path", ["/api/translate", "/translate", "/RPC2"])
def test_a_client_that_leaves_while_it_sends(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is recorded as such, and is no error of ours."""
    records = list[RequestRecord]()
    with listening(application(serving(Upper()), ServeConfig(), done=records.append)) as url:
        connection = raw(url)
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{{".encode()
        )
        time.sleep(0.1)
        connection.close()
        until(lambda: records)
    assert [(record.status, record.error) for record in records] == [(CLIENT_LEFT, "")]
    assert not caplog.records


def test_a_body_that_never_ends_is_given_up() -> None:
    with (
        listening(application(serving(Upper()), ServeConfig(read_timeout=0.1))) as url,
        raw(url) as connection,
    ):
        connection.sendall(HEAD % 9 + b"{")
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert answer.status == 408 and answer.headers["Connection"] == "close"


@pytest.mark.ci
def test_many_clients_get_their_own_answers(url: str) -> None:
    """Threads, each with a connection of its own that it keeps."""
    wrong = list[str]()

    def work(name: int) -> None:
        host = url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=60)
        for number in range(20):
            text = f"client {name} line {number}" + " word" * (number % 7)
            connection.request("POST", "/api/translate", json.dumps({"text": text}))
            found = json.load(connection.getresponse())
            if found["translations"][0]["hypotheses"][0]["text"] != text.upper():
                wrong.append(text)
        connection.close()

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
