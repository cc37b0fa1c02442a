"""nmt-serve as a process, with real engines and real clients."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from libretranslatepy import LibreTranslateAPI

from nmt.runs.run import Run
from smt_bridge.decoder.decoder import Decoder
from tests.conftest import HANG
from tests.nmt.serve.engines import SECRET, TRANSLATOR

pytestmark = pytest.mark.ci

MODELS = TRANSLATOR.parent

LINES = (MODELS / "source.en").read_text(encoding="utf-8").split("\n")[:20]
NETWORK = ("-q", "--threads", "1", "--matmul", "mkl", "--beam-size", "3")


@dataclass
class Running:
    process: "subprocess.Popen[bytes]"
    url: str
    log: Path

    def ask(self, path: str, **given: object) -> dict[str, object]:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {SECRET}"}
        request = urllib.request.Request(f"{self.url}{path}", json.dumps(given).encode(), headers)
        with urllib.request.urlopen(request, timeout=HANG) as answer:
            return cast(dict[str, object], json.load(answer))

    def records(self) -> list[dict[str, object]]:
        return [json.loads(row) for row in self.log.read_text(encoding="utf-8").splitlines()]


@contextmanager
def serving(folder: Path, *options: object) -> Iterator[Running]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "nmt.cli.serve", *map(str, options), "--port", str(port)]
    with (folder / "log").open("wb") as log, (folder / "messages").open("wb") as messages:
        process = subprocess.Popen(line, stdout=log, stderr=messages)
    running = Running(process, f"http://127.0.0.1:{port}", folder / "log")
    try:
        wait(running)
        yield running
    finally:
        process.terminate()
        process.wait(HANG)
    assert "Traceback" not in (folder / "messages").read_text(encoding="utf-8")


def wait(running: Running) -> None:
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        assert running.process.poll() is None, (running.log.parent / "messages").read_text(encoding="utf-8")
        with suppress(OSError), urllib.request.urlopen(f"{running.url}/health", timeout=HANG):
            return
        time.sleep(0.1)


def texts(found: dict[str, object]) -> list[str]:
    translations = cast(list[dict[str, list[dict[str, str]]]], found["translations"])
    return [one["hypotheses"][0]["text"] for one in translations]


def test_both_kinds_of_engines_and_all_interfaces(tmp_path: Path) -> None:
    phrases = MODELS / "phrase-based"
    with serving(tmp_path, f"en-fr={TRANSLATOR}", f"phrases={phrases}", *NETWORK) as server:
        expected = Run.of(TRANSLATOR).translate(LINES, beam_size=3)
        assert texts(server.ask("/api/translate", lines=LINES)) == expected
        assert LibreTranslateAPI(server.url).translate("\n".join(LINES), "en", "fr").split("\n") == expected
        tokenized = (MODELS / "tokenized.en").read_text(encoding="utf-8").split("\n")[:5]
        with xmlrpc.client.ServerProxy(f"{server.url}/RPC2/phrases") as moses:
            answers = [cast(dict[str, str], moses.translate({"text": line}))["text"] for line in tokenized]
        assert answers == Decoder.load(str(phrases)).translate(tokenized)
    assert server.process.returncode == 0


def test_sigterm_under_load_loses_no_accepted_request(tmp_path: Path) -> None:
    """Every request that the server says it has answered has reached its client, and the server ends."""
    ids, lock, wrong = set[str](), threading.Lock(), list[str]()
    expected = dict(zip(LINES, Run.of(TRANSLATOR).translate(LINES, beam_size=3), strict=True))
    with serving(tmp_path, f"en-fr={TRANSLATOR}", *NETWORK) as server:

        def work(number: int) -> None:
            for count in range(10_000):
                line = LINES[(number + count) % len(LINES)]
                body = json.dumps({"text": line}).encode()
                try:
                    with urllib.request.urlopen(f"{server.url}/api/translate", body, timeout=HANG) as answer:
                        with lock:
                            ids.add(answer.headers["X-Request-ID"])
                        if texts(json.load(answer)) != [expected[line]]:
                            wrong.append(line)
                except urllib.error.HTTPError as error:
                    with error:
                        if error.code != 503:
                            wrong.append(f"{error.code}")
                    return
                except OSError:  # no longer listening
                    return

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        while len(ids) < 20:
            time.sleep(0.01)
        server.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        assert server.process.wait(HANG) == 0
    answered = {row["id"] for row in server.records() if row["status"] == 200 and row["lines"]}
    assert not wrong and answered == ids


@pytest.fixture
def hangup() -> Iterator[None]:
    """SIGHUP reaches the servers of a test, also where nohup started it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hangup")
def test_engines_are_loaded_anew_by_sighup_and_over_the_network(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(SECRET + "\n", encoding="utf-8")
    token.chmod(0o600)
    link = tmp_path / "run"
    link.symlink_to(TRANSLATOR)
    with serving(tmp_path, f"en-fr={link}", "--token", token, "--threads", "1", "--matmul", "mkl") as server:
        messages = tmp_path / "messages"
        assert server.ask("/api/reload") == {"reloaded": ["en-fr"]}
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + HANG
        while messages.read_text(encoding="utf-8").count(": reloaded: ") < 2:
            assert time.monotonic() < end and texts(server.ask("/api/translate", text=LINES[0]))
        link.unlink()
        with pytest.raises(urllib.error.HTTPError) as error:
            server.ask("/api/reload")
        with error.value as answer:
            assert answer.code == 500 and "run" in json.load(answer)["error"]
        assert texts(server.ask("/api/translate", text=LINES[0]))
        without = urllib.request.Request(f"{server.url}/api/translate", b"{}")
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(without, timeout=HANG)
        with error.value as answer:
            assert answer.code == 401
    assert server.process.returncode == 0
