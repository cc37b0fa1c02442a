"""Hostile clients against the interfaces of nmt-serve, and a well-behaved one beside them.

The texts of that one must stay right, and its answers must not take much longer than alone. By hand:

python -m tests.fuzz.hostile en-fr=RUN_DIR [--cases 2000] [--seconds 900] [--clients 4]
"""

import argparse
import http.client
import json
import multiprocessing
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import xmlrpc.client
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from pathlib import Path
from urllib.parse import quote

WAIT = 20.0  # seconds that a hostile client waits for an answer; it may leave sooner
FORM = "application/x-www-form-urlencoded"
WORDS = "a man is sleeping on the beach with two dogs and the red ball of his child".split()
LINES = ["A man is sleeping .", "Two dogs run .", "The child has a red ball ."]
DEEP = "<array><data><value>"
CALL = (
    "<methodCall><methodName>translate</methodName><params><param><value><struct><member><name>text</name>"
    "<value>{}</value></member></struct></value></param></params></methodCall>"
)


@dataclass
class Asked:
    """A request: method and path, body and headers."""

    target: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def ask_json(path: str, **fields: object) -> Asked:
    return Asked(f"POST {path}", json.dumps(fields).encode(), {"Content-Type": "application/json"})


def text(rng: random.Random, size: int) -> str:
    """Words of about so many characters."""
    return " ".join(rng.choice(WORDS) for _ in range(max(1, size // 4)))


def bodies(rng: random.Random) -> list[Callable[[], Asked]]:
    """Kinds of requests, each of which was, or might be, dear to answer or wrong to read."""
    size, count = rng.choice([10, 200, 900, 2900]), rng.choice([1, 5, 60, 290])
    long, terms = text(rng, size), {"man": text(rng, rng.choice([10, 900, 9000]))}
    q = {"source": rng.choice(["en", "auto"]), "target": "fr"}
    return [
        lambda: ask_json("/api/translate", lines=[long] * count),
        lambda: ask_json("/api/translate", text="man " * 1200, terms=terms),
        lambda: ask_json(
            "/api/translate", text=long, terms={f"{w} {n}": w for w in WORDS for n in range(40)}
        ),
        lambda: ask_json("/api/translate", text=long, avoid=[f"un {w}" for w in WORDS * 60]),
        lambda: ask_json(
            "/api/translate", text=long, avoid=["".join(map(chr, range(0x4E00, 0x4E00 + count * 9)))]
        ),
        lambda: ask_json("/api/translate", text=long, n_best=100, beam_size=50, distinct=True),
        lambda: ask_json("/api/translate", text=long[:400], n_best=10, attention=True, parse=True),
        lambda: ask_json("/api/translate", lines=["U.S. " * (size // 5)] * count, split_sentences=True),
        lambda: ask_json("/api/translate", text="\ud800", n_best=10**400),
        lambda: ask_json("/api/score", source=[long[:700]] * count, target=[long[:700]] * count),
        lambda: ask_json(
            "/api/translate", **{rng.choice(["n_best", "lines", "engine", "x"]): [{}, None, -1]}
        ),
        lambda: Asked("POST /api/translate", b"[" * rng.choice([10, 100_000]) + b"]"),
        lambda: ask_json("/translate", q=[long[:50]] * rng.choice([400, 20_000]), **q),
        lambda: ask_json("/translate", q=long, alternatives=99, **q),
        lambda: ask_json("/translate", q="<b>a</b> " * count * 20, format="html", **q),
        lambda: ask_json("/translate", q="<a b='>\"<img onerror=x>" * count, format="html", **q),
        lambda: ask_json("/detect", q=long * 100),
        lambda: Asked("POST /translate", b"q=mu\xe9&source=en&target=fr", {"Content-Type": FORM}),
        lambda: Asked(
            "POST /translate", f"q={quote(long)}&source=en&target=fr".encode(), {"Content-Type": FORM}
        ),
        lambda: Asked(
            "POST /translate", rng.randbytes(99), {"Content-Type": "multipart/form-data; boundary=x"}
        ),
        lambda: Asked("POST /RPC2", (DEEP * rng.choice([40, 9000])).join(CALL.split("{}")).encode()),
        lambda: Asked("POST /RPC2", CALL.format(f"{DEEP * size}").encode()),
        lambda: Asked("POST /RPC2", CALL.format(long).encode()),
        lambda: Asked("POST /RPC2", b"<!DOCTYPE a [<!ENTITY b 'cc'>]>" + CALL.format("&b;" * 999).encode()),
        lambda: Asked(
            "POST /RPC2", xmlrpc.client.dumps(({"text": long, "nbest": 100},), "translate").encode()
        ),
        lambda: Asked("POST /RPC2", rng.randbytes(size)),
        lambda: Asked("POST /translate", b"{}", {"Origin": rng.choice(["null", "https://evil.org"])}),
        lambda: Asked("POST /api/translate", b"{}", {"Host": "[::1].evil.org"}),
        lambda: Asked("GET /metrics", b"", {"X": "y" * size * 20}),
    ]


def attack(address: tuple[str, int], rng: random.Random, kind: int | None = None) -> str:
    """A case: a request sent well, in part, in drops, or by a client that leaves; what came of it. `kind`: of
    `bodies`; any by default."""
    kinds = bodies(rng)
    asked = (rng.choice(kinds) if kind is None else kinds[kind])()
    head = {"Host": "127.0.0.1", "Content-Length": str(len(asked.body)), **asked.headers}
    lines = [f"{asked.target} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
    data = "\r\n".join(lines).encode() + asked.body
    how = rng.choice(["whole", "whole", "whole", "leaves", "in part", "half open", "deaf", "twice"])
    with socket.create_connection(address, WAIT, ("127.0.0.1", 0)) as connection:
        if how == "half open":
            connection.sendall(data[: rng.randrange(60)])
            return settle(connection, rng.choice([0.0, 3.0]))
        if how == "in part":
            connection.sendall(data[: rng.randrange(len(data))])
            return settle(connection, rng.choice([0.0, 1.0]))
        connection.sendall(data * (2 if how == "twice" else 1))
        if how in ("leaves", "deaf"):
            time.sleep(rng.choice([0.0, 0.3, 2.0]))
            return how
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        answer.read()
        return str(answer.status)


def settle(connection: socket.socket, seconds: float) -> str:
    """Wait a little, and leave."""
    connection.settimeout(max(seconds, 0.01))
    with suppress(TimeoutError):
        return "answered" if connection.recv(100) else "closed"
    return "left"


class Checker:
    """A client with another address, which asks for the same again and again."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.expected: dict[int, object] = {}
        self.alone: dict[int, float] = {}  # median of the seconds
        self.seconds: dict[int, list[float]] = {}
        self.wrong = list[str]()

    def requests(self) -> list[Asked]:
        return [
            *(ask_json("/api/translate", text=line) for line in LINES),
            ask_json("/translate", q=LINES[0], source="en", target="fr"),
            Asked("POST /RPC2", xmlrpc.client.dumps(({"text": LINES[1].lower()},), "translate").encode()),
        ]

    def ask(self, asked: Asked) -> tuple[int, object]:
        """Status and text."""
        connection = http.client.HTTPConnection(*self.address, timeout=60, source_address=("127.0.0.2", 0))
        method, path = asked.target.split()
        connection.request(method, path, asked.body, {**asked.headers, "Host": "127.0.0.1"})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if answer.status != 200 or path == "/RPC2":
            return answer.status, content
        parsed = json.loads(content)
        return 200, parsed.get("translatedText") or parsed["translations"][0]["hypotheses"][0]["text"]

    def measure(self, rounds: int) -> None:
        """What the requests take, and get, alone."""
        for number, asked in enumerate(self.requests()):
            times = []
            for _ in range(rounds):
                start = time.perf_counter()
                self.expected[number] = self.ask(asked)
                times.append(time.perf_counter() - start)
            self.alone[number] = statistics.median(times)

    def run(self, stop: Event) -> None:
        """Ask until told to stop."""
        while not stop.is_set():
            for number, asked in enumerate(self.requests()):
                start = time.perf_counter()
                try:
                    answer: object = self.ask(asked)
                except (OSError, http.client.HTTPException) as error:
                    answer = f"{type(error).__name__}: {error}"
                self.seconds.setdefault(number, []).append(time.perf_counter() - start)
                if answer != self.expected[number]:
                    self.wrong.append(f"{asked.target} {answer!r}, expected {self.expected[number]!r}")

    def ratios(self) -> list[float]:
        """How many times as long as alone each request took, in order."""
        return sorted(
            value / self.alone[number] for number, values in self.seconds.items() for value in values
        )


def watch(
    checker: Checker,
    stop: Event,
    results: "multiprocessing.SimpleQueue[tuple[dict[int, list[float]], list[str]]]",
) -> None:
    """Run the checker in a process of its own: it measures the server, and not the attackers beside it."""
    checker.run(stop)
    results.put((checker.seconds, checker.wrong))


def siege(
    address: tuple[str, int], cases: int, seconds: float, clients: int, rounds: int, kind: int | None = None
) -> tuple[Counter[str], Checker]:
    """So many cases, or as many as there is time for, by some clients at a time; what came of them."""
    context = multiprocessing.get_context("spawn")
    checker, results, stop = Checker(address), Counter[str](), context.Event()
    checker.measure(rounds)
    watched = context.SimpleQueue()
    watcher = context.Process(target=watch, args=(checker, stop, watched), daemon=True)
    watcher.start()
    end, numbers = time.monotonic() + seconds, iter(range(cases))
    lock = threading.Lock()

    def work() -> None:
        while time.monotonic() < end:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            try:
                result = attack(address, random.Random(number), kind)
            except (OSError, http.client.HTTPException) as error:
                result = type(error).__name__
            with lock:
                results[result] += 1

    attackers = [threading.Thread(target=work, daemon=True) for _ in range(clients)]
    for thread in attackers:
        thread.start()
    for thread in attackers:
        thread.join(seconds + WAIT)
    stop.set()
    checker.seconds, checker.wrong = watched.get()
    watcher.join(2 * WAIT)
    return results, checker


@contextmanager
def server(engines: list[str], folder: Path) -> Iterator[tuple[str, int]]:
    """nmt-serve as a process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "nmt.cli.serve", *engines, "--port", str(port), "--threads", "1"]
    with (folder / "records").open("wb") as records, (folder / "messages").open("wb") as messages:
        process = subprocess.Popen(command, stdout=records, stderr=messages)
    try:
        while process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                if connection.recv(100):
                    break
        yield "127.0.0.1", port
    finally:
        process.terminate()
        process.wait(120)


def by_kind(args: argparse.Namespace) -> None:
    """For each kind of request, how others fare beside it."""
    with tempfile.TemporaryDirectory() as name, server(args.engines, Path(name)) as address:
        for kind in range(len(bodies(random.Random()))):
            results, checker = siege(address, args.cases, args.seconds, args.clients, 5, kind)
            sample = bodies(random.Random(2))[kind]()
            ratios = checker.ratios()
            slow = f"median {statistics.median(ratios):.1f}, worst {ratios[-1]:.1f}"
            print(f"{kind:2} {slow:30} {dict(results)} {sample.target} {sample.body[:60]!r}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="+", metavar="NAME=PATH")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=900.0)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--each", action="store_true", help="each kind of request by itself")
    args = parser.parse_args()
    if args.each:
        by_kind(args)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with server(args.engines, folder) as address:
            results, checker = siege(address, args.cases, args.seconds, args.clients, rounds=15)
        messages = (folder / "messages").read_text(encoding="utf-8")
        rows = (folder / "records").read_text(encoding="utf-8").splitlines()
    ratios = checker.ratios()
    print(f"{sum(results.values())} cases: {dict(results.most_common())}")
    print(f"statuses: {dict(Counter(json.loads(row)['status'] for row in rows).most_common())}")
    print(f"tracebacks: {messages.count('Traceback')}")
    print(f"checks: {len(ratios)}, wrong: {len(checker.wrong)}", *checker.wrong[:5], sep="\n")
    print(f"alone: {[round(1000 * value) for value in checker.alone.values()]} ms")
    shares = [
        f"{share:g}: {ratios[min(len(ratios) - 1, int(share * len(ratios)))]:.2f}"
        for share in (0.5, 0.95, 0.99, 1)
    ]
    print(f"times as long as alone, by share: {', '.join(shares)}; above 5: {sum(one > 5 for one in ratios)}")


if __name__ == "__main__":
    main()
