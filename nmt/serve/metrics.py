"""Metrics in Prometheus' text format, at /metrics."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, exposition
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from nmt.serve.life import Life
from nmt.serve.record import Record
from nmt.serve.served import ServedEngines

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds
METHODS = ("GET", "HEAD", "POST", "OPTIONS")
OTHER = "other"  # whatever a client thinks of: labels are ours


class Engines(Collector):
    """What engines and requests are doing at the moment."""

    def __init__(self, engines: ServedEngines, life: Life) -> None:
        self.engines, self.life = engines, life

    def collect(self) -> Iterator[GaugeMetricFamily]:
        waiting = GaugeMetricFamily("nmt_waiting_lines", "lines in the queue of an engine", labels=["engine"])
        live = GaugeMetricFamily("nmt_live_lines", "lines that an engine has in hand", labels=["engine"])
        for name, one in self.engines.items():
            waiting.add_metric([name], one.waiting)
            live.add_metric([name], one.live)
        yield waiting
        yield live
        yield GaugeMetricFamily("nmt_active_requests", "requests in hand", value=self.life.active)


class Metrics:
    """Counts the records of requests."""

    def __init__(self, engines: ServedEngines, life: Life) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "nmt_requests", "requests answered", ["route", "method", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "nmt_request_seconds", "time to answer", ["route"], registry=self.registry, buckets=BUCKETS
        )
        self.lines = Counter("nmt_lines", "lines of good requests", ["engine"], registry=self.registry)
        self.registry.register(Engines(engines, life))
        ProcessCollector(registry=self.registry)

    def count(self, record: Record) -> None:
        """One more request."""
        route = record.route or OTHER
        method = record.method if record.method in METHODS else OTHER
        self.requests.labels(route, method, str(record.status)).inc()
        self.seconds.labels(route).observe(record.seconds)
        if record.engine and record.status == 200:
            self.lines.labels(record.engine).inc(record.lines)

    def routes(self) -> list[BaseRoute]:
        return [Route("/metrics", self.show)]

    async def show(self, request: Request) -> Response:
        text = exposition.generate_latest(self.registry)
        return Response(text, headers={"Content-Type": exposition.CONTENT_TYPE_PLAIN_0_0_4})
