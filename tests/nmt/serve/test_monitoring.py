"""When the server ends."""

import io
import json

from prometheus_client.parser import text_string_to_metric_families

from nmt.serve.monitoring import Lifecycle, RequestLog, RequestRecord
from tests.nmt.serve.engines import Upper, client

# ---- test life ---------------------------------------------------------------------------------------------
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


# ---- test record -------------------------------------------------------------------------------------------
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


# ---- test metrics ------------------------------------------------------------------------------------------
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
