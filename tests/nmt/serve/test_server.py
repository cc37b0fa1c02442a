"""The server as a process."""

import asyncio
import io
import json
import socket
from types import SimpleNamespace
from typing import cast

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from nmt.errors import ConfigError
from nmt.serve import server
from nmt.serve.config import ServeConfig
from nmt.serve.limits import Token
from nmt.serve.monitoring import Lifecycle, Metrics, RequestLog, RequestRecord
from nmt.serve.served import ServedEngine, ServedEngines
from nmt.serve.server import application
from tests.nmt.serve.engines import BEARER, SECRET, Upper, client

# ---- server ------------------------------------------------------------------------------------------------


def test_any_free_port_of_the_loopback_address() -> None:
    with server.bind(ServeConfig(port=0)) as listening:
        port = listening.getsockname()[1]
        assert server.server_url(listening) == f"http://127.0.0.1:{port}/"
        with pytest.raises(ConfigError, match=f"--host 127.0.0.1 --port {port}: Address already in use"):
            server.bind(ServeConfig(port=port))


def test_answers_are_sent_without_delay() -> None:
    """asyncio sets TCP_NODELAY on connections of such a socket only; without it answers take 40 ms more."""
    with server.bind(ServeConfig(port=0)) as listening:
        assert listening.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize("host", ["256.1.1.1.1", "x" * 300])
def test_an_address_that_is_none(host: str) -> None:
    with pytest.raises(ConfigError, match="--host"):
        server.bind(ServeConfig(host=host, port=0))


# ---- app ---------------------------------------------------------------------------------------------------
# What all interfaces share.


def test_the_page_is_there_and_nothing_beside_it() -> None:
    with client(Upper()) as api:
        page = api.get("/")
        assert page.status_code == 200 and page.text.startswith("<!doctype html>")
        for path in ("/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "//etc/passwd", "/index.html/x"):
            answer = api.get(path)
            assert answer.status_code == 404 and set(answer.json()) == {"error"}, path


def test_errors_are_json() -> None:
    with client(Upper()) as api:
        assert api.get("/api/nothing").json() == {"error": "Not Found"}
        wrong = api.get("/api/translate")
        assert wrong.status_code == 405 and wrong.json() == {"error": "Method Not Allowed"}


# ---- reloading ---------------------------------------------------------------------------------------------
# Loading engines anew over the network.


def test_one_engine_or_all() -> None:
    loaded = list[str]()

    def engine(name: str) -> ServedEngine:
        def load() -> Upper:
            loaded.append(name)
            if loaded.count("b") > 2:
                raise ConfigError("b is gone")
            return Upper()

        return ServedEngine(name, load, ServeConfig())

    app = application(ServedEngines([engine("a"), engine("b")]), ServeConfig(), Token(SECRET))
    api = TestClient(app, headers=BEARER)
    assert api.post("/api/reload", json={"engine": "a"}).json() == {"reloaded": ["a"]}
    assert api.post("/api/reload").json() == {"reloaded": ["a", "b"]}
    assert loaded == ["a", "b", "a", "a", "b"]
    failed = api.post("/api/reload", json={"engine": "b"})
    assert failed.status_code == 500 and failed.json() == {"error": "b: b is gone"}
    assert api.post("/api/translate", json={"text": "x", "engine": "b"}).status_code == 200
    assert api.post("/api/reload", json={"engine": "c"}).status_code == 400


def test_an_engine_that_breaks_stops_no_other_reload() -> None:
    loaded = list[str]()

    def engine(name: str) -> ServedEngine:
        def load() -> Upper:
            loaded.append(name)
            if loaded == ["a", "b", "a"]:
                raise KeyError("weights")
            return Upper()

        return ServedEngine(name, load, ServeConfig())

    assert asyncio.run(server.reload_engines([engine("a"), engine("b")])) == ["a: 'weights'"]
    assert loaded == ["a", "b", "a", "b"]


def test_it_needs_a_token() -> None:
    with client(Upper()) as api:
        assert api.post("/api/reload").status_code == 403
    with client(Upper(), token=SECRET) as api:
        assert api.post("/api/reload").status_code == 401


# ---- life --------------------------------------------------------------------------------------------------
# When the server ends.


def test_it_ends_when_the_last_request_has_been_answered() -> None:
    life = Lifecycle(active=1)
    assert not life.is_over(60)
    life.stop()
    assert not life.is_over(60)
    life.active = 0
    assert life.is_over(60)


def test_it_ends_when_time_is_up() -> None:
    life = Lifecycle(active=1)
    life.stop()
    since = life.stopping
    life.stop()
    assert life.stopping == since and life.is_over(-1)


# ---- record ------------------------------------------------------------------------------------------------
# Lines of JSON about requests.


def test_a_request_is_a_line() -> None:
    stream = io.StringIO()
    log = RequestLog(stream)
    log.write(RequestRecord("1", "127.0.0.1", "GET", "/a\n\u2028b", status=200, seconds=0.12345678))
    log.write(RequestRecord("2", "", "POST", "/", status=500, error="RuntimeError: x\ny"))
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first["event"] == "request" and first["level"] == "info" and first["seconds"] == 0.123457
    assert first["path"] == "/a\n\u2028b" and first["time"].endswith("Z")
    assert second["level"] == "error" and second["error"] == "RuntimeError: x\ny"


def test_a_closed_stream_does_not_hurt() -> None:
    stream = io.StringIO()
    stream.close()
    RequestLog(stream).write(RequestRecord("1", "", "GET", "/"))


# ---- metrics -----------------------------------------------------------------------------------------------
# What Prometheus reads.


def test_requests_are_counted_by_what_handled_them() -> None:
    with client(Upper()) as api:
        for text in ("a\nb", "c"):
            api.post("/api/translate", json={"text": text})
        api.post("/api/translate", json={})
        for path in ("/x", "/y"):
            api.request("BREW", path)
        answer = api.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    found = {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert found["nmt_requests_total", "POST", "/api/translate", "200"] == 2
    assert found["nmt_requests_total", "POST", "/api/translate", "400"] == 1
    assert found["nmt_requests_total", "other", "other", "404"] == 2
    assert found["nmt_request_seconds_count", "/api/translate"] == 3
    assert found["nmt_lines_total", "upper"] == 3
    assert found["nmt_waiting_lines", "upper"] == found["nmt_live_lines", "upper"] == 0
    assert found[("nmt_active_requests",)] == 1
    assert found[("process_resident_memory_bytes",)] > 0


def test_lines_are_counted_while_they_wait_and_while_they_are_translated() -> None:
    engines = cast(ServedEngines, {"a": SimpleNamespace(waiting=2, live=3)})
    registry = Metrics(engines, Lifecycle(active=4)).registry
    assert registry.get_sample_value("nmt_waiting_lines", {"engine": "a"}) == 2
    assert registry.get_sample_value("nmt_live_lines", {"engine": "a"}) == 3
    assert registry.get_sample_value("nmt_active_requests") == 4
