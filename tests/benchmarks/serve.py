"""Load on a server of nmt-serve on this machine: throughput of many clients against one request after the
other, latency, texts and scores against the engine alone, a full queue, SIGTERM under load, memory.

python tests/benchmarks/serve.py RUN_DIR|MODEL_DIR|SYSTEM_DIR TEXT [--clients 32] [--requests 50]
"""

import argparse
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from nmt.serve import served
from nmt.serve.config import EngineConfig
from nmt.serve.engine import TranslateOptions

CLOSE = 1e-4  # batch shapes change sums


@dataclass
class Answers:
    """What clients got."""

    statuses: Counter[int] = field(default_factory=Counter)  # 0: no answer
    seconds: list[float] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)  # of good answers
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, status: int, seconds: float, id: str = "") -> None:
        with self.lock:
            self.statuses[status] += 1
            self.seconds.append(seconds)
            if status == 200:
                self.ids.add(id)

    def percentile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Client:
    """One connection, which is kept."""

    def __init__(self, port: int, expected: dict[str, tuple[str, float]], answers: Answers) -> None:
        self.port, self.expected, self.answers = port, expected, answers
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def translate(self, *lines: str) -> int:
        """Ask, check the answer, and return its status; 0 where none came."""
        begin, body = time.perf_counter(), json.dumps({"lines": lines})
        try:
            self.connection.request("POST", "/api/translate", body, {"Content-Type": "application/json"})
            answer = self.connection.getresponse()
            text = answer.read()
        except OSError:
            self.connection.close()
            self.answers.add(0, time.perf_counter() - begin)
            return 0
        if answer.status == 200:
            self.check(lines, json.loads(text)["translations"])
        self.answers.add(answer.status, time.perf_counter() - begin, answer.headers.get("X-Request-ID", ""))
        return answer.status

    def check(self, lines: Sequence[str], found: list[dict[str, list[dict[str, float | str]]]]) -> None:
        for line, one in zip(lines, found, strict=True):
            best, (text, score) = one["hypotheses"][0], self.expected[line]
            if best["text"] != text or abs(float(best["score"]) - score) > CLOSE * max(1.0, abs(score)):
                self.answers.wrong.append(f"{line}: {best['text']} {best['score']}, expected {text} {score}")


@dataclass
class Running:
    """A server that runs."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: Path

    def memory(self) -> float:
        """MiB that it holds."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/metrics")
        rows = connection.getresponse().read().decode().split("\n")
        connection.close()
        return next(float(row.split()[1]) for row in rows if row.startswith("process_resident")) / 2**20

    def good(self) -> set[str]:
        """The requests that it says it has answered well."""
        rows = map(json.loads, self.log.read_text().splitlines())
        return {row["id"] for row in rows if row["status"] == 200 and row["lines"]}


@contextmanager
def serving(path: str, *options: str) -> Iterator[Running]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "nmt.cli.serve", f"one={path}", "--port", str(port), *options]
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as stream:
            process = subprocess.Popen(line, stdout=stream)
        running = Running(process, port, log)
        try:
            wait(running)
            yield running
        finally:
            process.terminate()
            process.wait()


def wait(running: Running) -> None:
    """Until it answers."""
    while running.process.poll() is None:
        try:
            running.memory()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("the server has ended")


def together(work: "Sequence[threading.Thread]") -> float:
    begin = time.perf_counter()
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    return time.perf_counter() - begin


def show(name: str, answers: Answers, rate: float) -> None:
    """What clients got, as a line."""
    half, late, worst = (f"{answers.percentile(share):.0f} ms" for share in (0.5, 0.95, 0.99))
    statuses = f"{dict(answers.statuses)}, {len(answers.wrong)} wrong"
    print(f"{name:<12} {rate:8.1f} requests a second, p50 {half}, p95 {late}, p99 {worst}, {statuses}")
    for row in answers.wrong[:3]:
        print("  ", row)


class Load:
    """What is measured."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.options = ["-q", "--beam-size", str(args.beam_size), "--workers", str(args.workers)]
        self.options += ["--threads", str(args.threads), "--matmul", args.matmul]
        text = Path(args.text).read_text(encoding="utf-8").split("\n")
        self.lines = list(dict.fromkeys(line for line in text if line))[: args.lines]
        config = EngineConfig(beam_size=args.beam_size, workers=1)
        engine, never = served.load_engine(args.engine, config), threading.Event()
        self.expected: dict[str, tuple[str, float]] = {}
        for line in self.lines:
            best = engine.translate(line, TranslateOptions(), never).hypotheses[0]
            self.expected[line] = best.text, best.score

    def clients(self, running: Running, clients: int, requests: int, size: int = 1) -> tuple[Answers, float]:
        """So many clients, each with so many requests of `size` lines."""
        answers = Answers()

        def work(number: int) -> None:
            client = Client(running.port, self.expected, answers)
            for count in range(requests):
                begin = (number * requests + count) * size
                client.translate(*(self.lines[(begin + at) % len(self.lines)] for at in range(size)))
            client.connection.close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
        return answers, together(threads)

    def throughput(self) -> None:
        clients, requests = self.args.clients, self.args.requests
        with serving(self.args.engine, *self.options) as running:
            alone, alone_seconds = self.clients(running, 1, self.args.alone)
            many, many_seconds = self.clients(running, clients, requests)
        rate, together_rate = len(alone.seconds) / alone_seconds, len(many.seconds) / many_seconds
        show("1 client", alone, rate)
        show(f"{clients} clients", many, together_rate)
        print(f"ratio        {together_rate / rate:.2f}")

    def full_queue(self) -> None:
        with serving(self.args.engine, *self.options, "--queue", "16") as running:
            answers, _ = self.clients(running, self.args.clients, 10, 4)
            after, _ = self.clients(running, 1, 5)
        print(
            f"full queue   {dict(answers.statuses)}, {len(answers.wrong)} wrong; then {dict(after.statuses)}"
        )

    def terminate(self) -> None:
        """Every request that the server answered well has reached its client."""
        answers = Answers()
        with serving(self.args.engine, *self.options) as running:

            def work(number: int) -> None:
                client = Client(running.port, self.expected, answers)
                while client.translate(self.lines[(number + len(answers.seconds)) % len(self.lines)]) == 200:
                    pass

            threads = [threading.Thread(target=work, args=(number,)) for number in range(self.args.clients)]
            timer = threading.Timer(2.0, lambda: os.kill(running.process.pid, signal.SIGTERM))
            timer.start()
            together(threads)
            status = running.process.wait()
            lost = running.good() - answers.ids
        statuses = f"{dict(answers.statuses)}, {len(answers.wrong)} wrong, {len(lost)} lost"
        print(f"SIGTERM      {statuses}, exit status {status}")

    def memory(self) -> None:
        clients = self.args.clients
        with serving(self.args.engine, *self.options) as running:
            self.clients(running, clients, max(1, 500 // clients))
            first = running.memory()
            self.clients(running, clients, max(1, (self.args.memory - 500) // clients))
            last = running.memory()
        print(
            f"memory       {first:.1f} MiB after 500 requests, {last:.1f} after {self.args.memory}: "
            f"{100 * (last / first - 1):+.1f}%"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("engine")
    parser.add_argument("text")
    for name, default in (
        ("clients", 32), ("requests", 50), ("alone", 200), ("lines", 2000), ("memory", 5000),
        ("beam-size", 5), ("workers", 2), ("threads", 1),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--matmul", default="mkl")
    load = Load(parser.parse_args())
    load.throughput()
    load.full_queue()
    load.terminate()
    load.memory()


if __name__ == "__main__":
    main()
