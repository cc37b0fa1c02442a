"""Shared by all tests: the installed commands, the real data where it lies, and one tiny trained run."""

import gc
import gzip
import json
import logging
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

import pytest

from nmt.sample_corpus import grammar as sample_grammar

# Threads that wait must sleep, here and in the commands that tests start: spinning ones take minutes on a
# busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")
os.environ.setdefault("OMP_NUM_THREADS", "2")

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
# Their tests come first: what compiles the search, and what takes minutes in a single file.
FIRST = [ROOT / "tests" / "smt_bridge" / "decoder" / "test_decoder.py", ROOT / "tests" / "test_tutorials.py"]

HANG = 1200.0  # seconds after which a command hangs; far above what the slowest takes on a busy machine

Command = Callable[..., subprocess.CompletedProcess[str]]
Refused = Callable[[subprocess.CompletedProcess[str]], str]


def pytest_collection() -> None:
    """What is collected stays until the end: searching it for garbage again and again takes a quarter of the
    time of the collection."""
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One worker compiles the search, which takes half a minute, while the other ones test what needs none.
    Else all of them would come to it at the same time, and each would compile it. The tutorials would keep
    one worker busy after the others have ended."""
    items.sort(key=lambda item: FIRST.index(item.path) if item.path in FIRST else len(FIRST))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """A command that a test calls in process sets up the log; the next test finds it as it was."""
    logs = [logging.getLogger(package) for package in ("nmt", "smt_bridge")]
    before = [(log, log.handlers, log.level, log.propagate) for log in logs]
    yield
    for log, handlers, level, propagate in before:
        log.handlers, log.propagate = handlers, propagate
        log.setLevel(level)


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """A command that a test calls in process may set variables, such as OMP_NUM_THREADS; the next test finds
    the environment as it was. Else `Forks.can_run` would refuse from then on, and each command would start an
    interpreter."""
    before = dict(os.environ)
    yield
    for name in {*os.environ, *before} - {"PYTEST_CURRENT_TEST"}:
        if os.environ.get(name) != before.get(name):
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


@pytest.fixture(scope="session", autouse=True)
def decoder_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests, and the commands that they start, leave the user's own cache alone."""
    os.environ["NMT_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def grammar() -> ModuleType:
    return sample_grammar


class Forks:
    """The client of tests/fork_server.py."""

    def __init__(self, folder: Path) -> None:
        self.path, self.env = folder / "socket", dict(os.environ)
        theirs, self.life = os.pipe()
        line = [sys.executable, "-P", str(ROOT / "tests" / "fork_server.py"), str(self.path), str(theirs)]
        self.server = subprocess.Popen(line, pass_fds=[theirs])
        os.close(theirs)

    def can_run(self, env: dict[str, str]) -> bool:
        """What libraries read when they are imported has not changed since."""
        early = ("OMP", "MKL", "ATEN", "PYTHON", "NUMBA", "LC_", "LANG", "PATH")
        return all(
            env.get(name) == self.env.get(name) for name in {*env, *self.env} if name.startswith(early)
        )

    def connect(self) -> socket.socket:
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(self.path))
                return connection
            except (FileNotFoundError, ConnectionRefusedError):
                connection.close()
                assert self.server.poll() is None, "tests/fork_server.py has ended"
                time.sleep(0.05)

    def run(
        self, argv: list[str], given: bytes, timeout: float, cwd: Path | None
    ) -> subprocess.CompletedProcess[bytes]:
        """As subprocess.run does with input, capture_output and timeout."""
        ends = [os.pipe() for _ in range(3)]
        (stdin, feed), (out, stdout), (err, stderr) = ends
        request = {"argv": argv, "env": dict(os.environ), "cwd": str(cwd or Path.cwd())}
        with self.connect() as connection, ThreadPoolExecutor(3) as pool:
            line = json.dumps(request).encode() + b"\n"
            sent = socket.send_fds(connection, [line], [stdin, stdout, stderr])
            connection.sendall(line[sent:])
            for end in (stdin, stdout, stderr):
                os.close(end)
            pool.submit(write_all, feed, given)
            printed, told = pool.submit(read_all, out), pool.submit(read_all, err)
            with connection.makefile() as answers:
                child = int(answers.readline())
                connection.settimeout(timeout)
                try:
                    status = int(answers.readline())
                except TimeoutError:
                    os.kill(child, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(argv, timeout) from None
            return subprocess.CompletedProcess(argv, status, printed.result(), told.result())

    def stop(self) -> None:
        os.close(self.life)
        self.server.wait()


def write_all(end: int, text: bytes) -> None:
    with suppress(BrokenPipeError), open(end, "wb") as stream:
        stream.write(text)


def read_all(end: int) -> bytes:
    with open(end, "rb") as stream:
        return stream.read()


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory, decoder_cache: None) -> Iterator[Forks]:
    with tempfile.TemporaryDirectory() as folder:  # a socket's path must be short
        server = Forks(Path(folder))
        yield server
        server.stop()


def plain(
    argv: list[str], given: bytes | None, timeout: float, cwd: Path | None, env: dict[str, str]
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        argv,
        input=given,
        capture_output=True,
        timeout=timeout,
        cwd=cwd,
        env={**os.environ, **env},
        check=False,
    )


@pytest.fixture(scope="session")
def command(forks: Forks) -> Command:
    """Run a command: command("nmt-score", "run", ..., input="text") -> completed process with text output.
    It is the installed one, forked from a process that has imported its libraries; `installed=True`, or
    variables of its own, start the script itself."""

    def call(
        name: str,
        *args: object,
        input: str | bytes | None = "",
        timeout: float = HANG,
        cwd: Path | None = None,
        installed: bool = False,
        **env: str,
    ) -> subprocess.CompletedProcess[str]:
        assert (BIN / name).exists(), f"{name} is not installed beside {sys.executable}"
        given = input.encode() if isinstance(input, str) else input
        argv = [str(BIN / name), *map(str, args)]
        if installed or env or given is None or not forks.can_run(dict(os.environ)):
            done = plain(argv, given, timeout, cwd, env)
        else:
            done = forks.run(argv, given, timeout, cwd)
        # Decoded by hand: text mode would turn \r into a line end.
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return call


def refusal(
    main: Callable[[Sequence[str] | None], int], capsys: pytest.CaptureFixture[str], *words: object
) -> str:
    """Run a command in this process that is expected to refuse its arguments; returns its line on stderr,
    without the notice of the first compilation in a fresh clone."""
    capsys.readouterr()
    try:
        status = main([str(word) for word in words])
    except SystemExit as stop:
        assert isinstance(stop.code, int)
        status = stop.code
    lines = capsys.readouterr().err.splitlines(keepends=True)
    message = "".join(line for line in lines if "compiling for this processor" not in line)
    assert status == 2 and message.count("\n") == 1 and "Traceback" not in message, message
    return message


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Files cannot grow beyond `size` bytes, as on a disk that is nearly full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture(scope="session")
def refused() -> Refused:
    """A command has refused: exit status 2, one line, no traceback. Returns the line."""

    def check(done: subprocess.CompletedProcess[str]) -> str:
        assert done.returncode == 2, done.stderr
        lines = done.stderr.rstrip("\n").split("\n")
        assert len(lines) == 1, done.stderr
        assert "Traceback" not in lines[0]
        return lines[0]

    return check


@pytest.fixture(scope="session")
def nmt_data() -> Path:
    """The folder of real corpora; tests that need it are skipped without it."""
    folder = os.environ.get("NMT_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs real corpora: set NMT_DATA to their folder")
    return Path(folder)


def until(happened: Callable[[], object], seconds: float = HANG) -> None:
    """Wait until something has happened, at most so many seconds."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.002)


def kill_once_written(process: subprocess.Popen[bytes], path: Path) -> None:
    """kill -9 as soon as a file holds something, in the middle of the work."""
    end = time.monotonic() + HANG
    while time.monotonic() < end and process.poll() is None:
        if path.exists() and path.stat().st_size > 100:
            break
        time.sleep(0.05)
    process.kill()
    process.wait()


def write_corpus(folder: Path, grammar: ModuleType, count: int, seed: int) -> None:
    writer = grammar.Writer(seed)
    pairs = [writer.sentence(4) for _ in range(count)]
    (folder / "train.en").write_text(
        "".join(grammar.text(pair.source) + "\n" for pair in pairs), encoding="utf-8"
    )
    (folder / "train.fr").write_text(
        "".join(grammar.text(pair.target) + "\n" for pair in pairs), encoding="utf-8"
    )
    for side in ("en", "fr"):
        lines = (folder / f"train.{side}").read_text(encoding="utf-8").split("\n")
        (folder / f"dev.{side}").write_text("\n".join(lines[:20]) + "\n", encoding="utf-8")


def tiny_config(folder: Path) -> str:
    """A configuration of a few seconds over the corpus in `folder`."""
    return f"""
run: {folder}/run
threads: 1
matmul: mkl
data:
  train_source: {folder}/train.en
  train_target: {folder}/train.fr
  dev_source: {folder}/dev.en
  dev_target: {folder}/dev.fr
  source: {{case: lower}}
  target: {{case: lower}}
model: {{embedding: 16, hidden: 24, maxout: 12, dropout: 0.1, bias: true, init: glorot}}
training:
  optimizer: adam
  learning_rate: 0.01
  cost: word
  batch_size: 16
  pool: 3
  max_steps: 60
  log_every: 10
  validate_every: 20
  dev_beam: 2
  tensorboard: false
"""


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory, grammar: ModuleType, command: Command) -> Path:
    """A folder with a corpus, train.yaml and a run of 60 updates made by the installed nmt-train."""
    folder = tmp_path_factory.mktemp("tiny")
    write_corpus(folder, grammar, 200, seed=3)
    (folder / "train.yaml").write_text(tiny_config(folder), encoding="utf-8")
    done = command("nmt-train", folder / "train.yaml")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def saved_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of two runs of tests/models: loading a run writes into it on a new make of processor."""
    folder = tmp_path_factory.mktemp("saved")
    for name in ("lm", "translator"):
        shutil.copytree(ROOT / "tests" / "models" / name, folder / name)
    return folder


@pytest.fixture
def examples(tmp_path: Path, grammar: ModuleType) -> Path:
    """What the examples of the documentation work on: a corpus, two small runs, a phrase-based system, a
    phrase table and an n-gram model."""
    models = ROOT / "tests" / "models"
    write_corpus(tmp_path, grammar, 200, seed=3)
    shutil.copytree(models / "translator", tmp_path / "runs" / "en-fr")
    shutil.copytree(models / "lm", tmp_path / "runs" / "lm")
    shutil.copytree(models / "phrase-based", tmp_path / "model")
    shutil.copy(models / "phrase-based" / "phrase-table.gz", tmp_path / "table.gz")
    arpa = gzip.decompress((models / "phrase-based" / "lm.arpa.gz").read_bytes())
    (tmp_path / "lm.arpa").write_bytes(arpa)
    return tmp_path


ATTENTIVE = {
    "model.encoder": "birnn",
    "model.attention": "20",
    "model.init": "uniform",
    "model.init_scale": "0.1",
    "data.bpe_merges": "150",
    "data.bpe_dropout": "0.1",
    "data.max_length": "60",
    "training.label_smoothing": "0.1",
    "training.warmup": "10",
    "training.schedule": "inverse_sqrt",
    "training.accumulate": "2",
    "training.keep": "4",
}


@pytest.fixture(scope="session")
def attentive(tiny: Path, tmp_path_factory: pytest.TempPathFactory, command: Command) -> Path:
    """A run of the same corpus with attention, subwords that are dropped at times, and every schedule: 60
    updates."""
    run = tmp_path_factory.mktemp("attentive") / "run"
    done = command(
        "nmt-train",
        tiny / "train.yaml",
        f"run={run}",
        *(f"{key}={value}" for key, value in ATTENTIVE.items()),
    )
    assert done.returncode == 0, done.stderr
    return run


@pytest.fixture(scope="session")
def smt_model(tmp_path_factory: pytest.TempPathFactory, grammar: ModuleType, command: Command) -> Path:
    """A folder with a corpus of 600 pairs, 60 others for development, and `model`, which the installed
    smt-train made of it."""
    folder = tmp_path_factory.mktemp("smt")
    write_corpus(folder, grammar, 600, seed=5)
    (folder / "other").mkdir()
    write_corpus(folder / "other", grammar, 60, seed=6)
    for side in ("en", "fr"):
        (folder / "other" / f"train.{side}").rename(folder / f"dev.{side}")
    done = command(
        "smt-train",
        folder / "model",
        "-s",
        folder / "train.en",
        "-t",
        folder / "train.fr",
        "--order",
        3,
        "-q",
    )
    assert done.returncode == 0, done.stderr
    return folder
