"""Monitoring of a running server: records of requests, metrics, and whether it is about to stop."""

import json
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TextIO

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, exposition
from starlette.requests import Request
from starlette.responses import Response

from nmt.serve.served import ServedEngines

# ---- active requests ---------------------------------------------------------------------------------------


@dataclass
class Lifecycle:
    """The number of active requests, and whether the server is stopping.

    The gate counts requests, and refuses new ones once the server is stopping; the server exits after the
    last one.
    """

    active: int = 0
    stopping: float = 0.0  # time of the monotonic clock at which `stop` was called; 0: not stopping

    def stop(self) -> None:
        """Refuse requests from now on."""
        self.stopping = self.stopping or time.monotonic()

    def is_over(self, grace: float) -> bool:
        """Whether the last request has been answered since `stop`, or `grace` seconds have passed."""
        return self.stopping > 0 and (not self.active or time.monotonic() - self.stopping > grace)


# ---- records of requests -----------------------------------------------------------------------------------
# Lines of JSON, which never contain the text of a request.


@dataclass
class RequestRecord:
    """The log entry of a request."""

    id: str
    client: str
    method: str
    path: str
    route: str = ""  # path of the endpoint that handled it, if any
    status: int = 0
    seconds: float = 0.0
    engine: str = ""
    lines: int = 0
    error: str = ""  # type of the exception of an internal error; the log has its traceback


class RequestLog:
    """Writes a line for each request, to stdout by default."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream

    def write(self, record: RequestRecord) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        level = "error" if record.error else "warning" if record.status >= 500 else "info"
        content = {"time": now, "level": level, "event": "request", **asdict(record)}
        content["seconds"] = round(record.seconds, 6)
        stream = self.stream or sys.stdout
        with suppress(OSError, ValueError):  # a closed stream or a full disk must not fail the request
            print(json.dumps(content), file=stream, flush=True)


# ---- metrics -----------------------------------------------------------------------------------------------
# In Prometheus' text format, at /metrics.


BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds
METHODS = ("GET", "HEAD", "POST", "OPTIONS")
OTHER_LABEL = "other"  # replaces unknown values sent by clients, so that the set of labels is bounded


class Metrics:
    """Counts finished requests and their lines, and reports those that are now waiting or active."""

    def __init__(self, engines: ServedEngines, life: Lifecycle) -> None:
        registry = self.registry = CollectorRegistry()
        self.requests = Counter(
            "nmt_requests", "requests answered", ["route", "method", "status"], registry=registry
        )
        self.seconds = Histogram(
            "nmt_request_seconds", "time to answer", ["route"], registry=registry, buckets=BUCKETS
        )
        self.lines = Counter("nmt_lines", "lines in successful requests", ["engine"], registry=registry)
        waiting = Gauge("nmt_waiting_lines", "lines in the queue of an engine", ["engine"], registry=registry)
        live = Gauge("nmt_live_lines", "lines that an engine is translating", ["engine"], registry=registry)
        for name, served in engines.items():
            waiting.labels(name).set_function(partial(getattr, served, "waiting"))
            live.labels(name).set_function(partial(getattr, served, "live"))
        active = Gauge("nmt_active_requests", "requests in progress", registry=registry)
        active.set_function(lambda: life.active)
        ProcessCollector(registry=registry)

    def count(self, record: RequestRecord) -> None:
        route = record.route or OTHER_LABEL
        method = record.method if record.method in METHODS else OTHER_LABEL
        self.requests.labels(route, method, str(record.status)).inc()
        self.seconds.labels(route).observe(record.seconds)
        if record.engine and record.status == 200:
            self.lines.labels(record.engine).inc(record.lines)

    async def show(self, request: Request) -> Response:
        text = exposition.generate_latest(self.registry)
        return Response(text, headers={"Content-Type": exposition.CONTENT_TYPE_PLAIN_0_0_4})
