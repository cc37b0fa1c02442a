"""Lines of JSON about requests."""

import io
import json

from nmt.serve.record import Record, RequestLog


def test_a_request_is_a_line() -> None:
    stream = io.StringIO()
    log = RequestLog(stream)
    log.write(Record("1", "127.0.0.1", "GET", "/a\n\u2028b", status=200, seconds=0.12345678))
    log.write(Record("2", "", "POST", "/", status=500, error="RuntimeError: x\ny"))
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first["event"] == "request" and first["level"] == "info" and first["seconds"] == 0.123457
    assert first["path"] == "/a\n\u2028b" and first["time"].endswith("Z")
    assert second["level"] == "error" and second["error"] == "RuntimeError: x\ny"


def test_a_closed_stream_does_not_hurt() -> None:
    stream = io.StringIO()
    stream.close()
    RequestLog(stream).write(Record("1", "", "GET", "/"))
