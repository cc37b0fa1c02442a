"""Standard streams and progress."""

import importlib
import os
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from nmt.io import files
from tests.conftest import BIN, HANG, Command

# ---- test streams ------------------------------------------------------------------------------------------


ODD = os.fsdecode(b"caf\xe9")  # a name as an old disk has it
PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line of the shell; $B is the folder of the commands."""
    return subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, timeout=HANG, cwd=folder,
        env={**os.environ, "B": str(BIN)}, check=False,
    )  # fmt: skip


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text").write_text("a b\nb\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "blamed"),
    [
        ("$B/nmt-vocab <&-", "<stdin>: cannot read"),
        ("$B/nmt-vocab -i text >&-", "<stdout>: cannot write"),
        ("$B/nmt-analyze scores --first text --second text -o . >&-", "text:1: expected a number"),
        ("$B/smt-ini show text >&-", "text"),
    ],
)
def test_a_closed_stream_that_is_needed_is_told_in_one_line(text: Path, line: str, blamed: str) -> None:
    done = shell(line, text)
    assert done.returncode == 2 and blamed in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_closed_stream_that_is_not_needed_is_no_error(text: Path) -> None:
    """And no file that is opened gets its number: nothing else is written into it."""
    done = shell("$B/nmt-vocab -i text -o vocab <&- >&-; echo $?; $B/nmt-vocab -i text 2>&-", text)
    assert done.stdout == "0\n#version: 1 vocabulary size=2\nb\t2\na\t1\n"
    assert (text / "vocab").read_text(encoding="utf-8") == "#version: 1 vocabulary size=2\nb\t2\na\t1\n"


@pytest.mark.parametrize("locale", [{}, PLAIN])
def test_names_of_files_need_not_be_utf8(text: Path, command: Command, locale: dict[str, str]) -> None:
    """Read, written, and named in messages, whose bytes are UTF-8 all the same."""
    os.rename(text / "text", text / ODD)
    done = command("nmt-vocab", "-i", text / ODD, "-o", text / f"{ODD}.vocab", **locale)
    assert done.returncode == 0 and os.path.getsize(text / f"{ODD}.vocab")
    done = command("nmt-vocab", "-i", text / f"{ODD}.no", **locale)
    assert done.returncode == 2 and "caf\\udce9.no: cannot read" in done.stderr


@pytest.mark.ci
def test_names_and_text_are_utf8_in_every_locale(tmp_path: Path, command: Command) -> None:
    (tmp_path / "é").write_text("a b c d\ne f g h\n", encoding="utf-8")
    (tmp_path / "b").write_text("a b c d\ne f g i\n", encoding="utf-8")
    line = [
        "-r", tmp_path / "é", "--baseline", tmp_path / "é", "--hypothesis", tmp_path / "b", "--names", "é",
        ODD,
    ]  # fmt: skip
    done = command("nmt-analyze", "compare", *line, "-o", tmp_path / "out", **PLAIN)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("compare.svg\n")
    rows = (tmp_path / "out" / "compare.tsv").read_text(encoding="utf-8").split("\n")
    assert rows[1].startswith("é\t") and rows[2].startswith("caf\\udce9\t")


def test_output_that_is_text_is_utf8(tmp_path: Path) -> None:
    files.write_text(tmp_path / "out", [ODD])
    assert (tmp_path / "out").read_text(encoding="utf-8") == "caf\\udce9\n"


# ---- test progress -----------------------------------------------------------------------------------------
# No command is silent: a bar with its total on a terminal, lines in the log elsewhere.


PAIR = "--source train.en --target train.fr"

# Module of the command, its options, and what is counted.
COMMANDS = {
    "tokenize": ("nmt.cli.tokenize -l en -i train.en -o out", "200 lines"),
    "detokenize": ("nmt.cli.tokenize -l en -d -i train.en -o out", "200 lines"),
    "truecase": ("nmt.cli.truecase train -i train.en -o out", "200 lines"),
    "clean": (f"nmt.cli.clean {PAIR} --output-source s --output-target t", "200 pairs"),
    "vocab": ("nmt.cli.vocab -i train.en -o out", "200 lines"),
    "ngram": ("nmt.cli.ngram --order 2 --discount-fallback -i train.en -o out", "200 lines"),
    "learn": ("nmt.cli.subword learn --merges 40 -i train.en train.fr -o out", "400 lines"),
    "merges": ("nmt.cli.subword learn --merges 40 -i train.en -o out", "40 merges"),
    "apply": ("nmt.cli.subword undo -i train.en -o out", "200 lines"),
    "dictionary": (
        "nmt.papers.multiscale.command learn --size 90 --characters -i train.en -o out",
        "90 tokens",
    ),
    "translate": ("nmt.cli.translate runs/en-fr -b 1 -i train.en -o out", "200 lines"),
    "score": (f"nmt.cli.score runs/en-fr {PAIR} -o out", "200 pairs"),
    "score text": ("nmt.cli.score runs/lm -i train.fr -o out", "200 lines"),
    "perplexity": ("nmt.cli.perplexity runs/lm -i train.fr -o out", "200 lines"),
    "sample": ("nmt.cli.sample runs/lm -n 30 --max-length 3 -o out", "30 lines"),
    "train": ("nmt.cli.train train.yaml --overwrite", "200 lines"),
    "report": (
        "nmt.cli.analyze report runs/en-fr --source dev.en --reference dev.fr -b 1 -o out",
        "20 sentences",
    ),
    "filter": ("smt_bridge.cli.filter_table table.gz -i dev.en -o out.gz", "2,260 pairs"),
    "decode": ("smt_bridge.cli.decode model -i dev.en -o out", "20 sentences"),
    "select": (
        "smt_bridge.cli.select --in-domain dev.en --general train.en --keep 5 -o out --min-count 1",
        "200 lines",
    ),
}


class Terminal:
    """What was written to a terminal."""

    text = ""


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, stream: str = "stderr") -> Iterator[Terminal]:
    """sys.stderr is a terminal of 120 columns."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (30, 120))
    seen = Terminal()
    parts: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(ours, 1 << 16):
                parts.append(part)
        except OSError:  # the other end was closed
            pass

    reader = Thread(target=read)
    reader.start()
    with monkeypatch.context() as patch, os.fdopen(theirs, "w", encoding="utf-8") as file:
        patch.setattr(sys, stream, file)
        yield seen
    reader.join()
    os.close(ours)
    seen.text = b"".join(parts).decode()


def call(line: str) -> int:
    module, *argv = line.split()
    found = importlib.import_module(module).main(argv)
    assert isinstance(found, int)
    return found


@pytest.fixture
def folder(examples: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(examples)
    Path("train.yaml").write_text(
        "{run: runs/new, data: {train_source: train.en, train_target: train.fr, bpe_merges: 30}, model: "
        "{embedding: 8, hidden: 8, maxout: 8}, training: {max_steps: 2, batch_size: 8, tensorboard: false}, "
        "matmul: mkl}"
    )
    return examples


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.ci] * (name == "decode")) for name in COMMANDS]
)  # the decoder may compile first
@pytest.mark.ci
def test_each_command_shows_how_far_it_has_come(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line, counted = COMMANDS[name]
    total, _, unit = counted.rpartition(" ")
    with terminal(monkeypatch) as seen:
        assert call(line) == 0
    assert f"/{total.replace(',', '')} [" in seen.text and f"{unit}/s" in seen.text.replace("?", ""), (
        seen.text
    )
    assert seen.text.count("%|")  # a bar, not only a number
    assert seen.text.split("\r")[-1].strip() == "", seen.text  # which is gone at the end

    monkeypatch.setattr(
        "nmt.io.progress.EVERY", 0.0
    )  # a line at each look at the clock, instead of one a minute
    assert call(f"{line} --quiet --log log") == 0
    assert " left" not in capsys.readouterr().err
    written = Path("log").read_text()
    assert f" of {total}" in written and f" {unit}, " in written and " left\n" in written, written


@pytest.mark.ci
def test_alignment_says_how_far_it_has_come(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("thot")
    monkeypatch.setattr("nmt.io.progress.EVERY", 0.0)
    assert call(f"smt_bridge.cli.align {PAIR} --method hmm -o out -q --log log") == 0
    lines = [line for line in Path("log").read_text().splitlines() if " aligning: " in line]
    assert "1 of 10 iterations, " in lines[0] and len(lines) > 2


def test_messages_stand_above_the_bar(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("crlf").write_text("a\r\nb\r\n")
    with terminal(monkeypatch) as seen:
        assert call("nmt.cli.tokenize -l en -i crlf -o out") == 0
    lines = [line.split("\r")[-1] for line in seen.text.replace("\r\n", "\n").split("\n")]
    assert (
        "nmt-tokenize: crlf:1: a carriage return at the end of the line was removed, here and below" in lines
    )


def test_no_bar_for_those_who_want_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as seen:
        assert call("nmt.cli.tokenize -l en -i train.en -o out --quiet") == 0
    assert seen.text == ""


def test_the_preparation_of_a_training_has_its_stages(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as seen:
        assert call("nmt.cli.train train.yaml") == 0
    for stage in ("tokenizing:", "learning bpe:", "numbering the words:", "epoch 1:"):
        assert stage in seen.text
    assert sum("stopped at update 2" in line for line in seen.text.split("\n")) == 1


@pytest.mark.ci
def test_workers_of_a_training_change_nothing(folder: Path) -> None:
    """Neither the ids, nor whether a run can be resumed."""
    ids = []
    for workers in (1, 2):
        assert call(f"nmt.cli.train train.yaml -q --overwrite data.workers={workers}") == 0
        ids.append([Path(f"runs/new/data/{side}.ids").read_bytes() for side in ("source", "target")])
    assert ids[0] == ids[1]
    assert call("nmt.cli.train train.yaml -q training.max_steps=3 data.workers=1") == 0
    assert sorted(path.name for path in Path("runs/new").glob("*tmp*")) == []


def test_no_bar_among_results_on_the_same_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as seen, terminal(monkeypatch, "stdout") as results:
        assert call("nmt.cli.tokenize -l en -i dev.en") == 0
    assert seen.text == "" and results.text.count("\n") == 20


def test_errors_are_in_the_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two commands append to one file."""
    Path("bad").write_bytes(b"a\n\xff\n")
    assert call("nmt.cli.vocab -i train.en -o out --log logs/log") == 0
    assert call("nmt.cli.tokenize -l en -i bad -o out --log logs/log") == 2
    told = capsys.readouterr().err
    written = Path("logs/log").read_text()
    assert written.count("\n") == 2 and written.split("\n")[1].split("] ")[1] == told.split("\n")[1].replace(
        "tokenize: ", "nmt-tokenize: ", 1
    )


def test_the_log_is_no_input_and_no_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("train.en").read_bytes()
    for line in ("-i train.en -o out --log train.en", "-i train.en -o out --log out"):
        assert call(f"nmt.cli.tokenize -l en {line}") == 2
        assert "--log" in capsys.readouterr().err
    assert Path("train.en").read_bytes() == before and not Path("out").exists()
    assert call("nmt.cli.tokenize -l en -i dev.en -o out --log train.en") == 2  # a text all the same
    assert "train.en: exists and is not a log" in capsys.readouterr().err
    assert Path("train.en").read_bytes() == before
    assert call("nmt.cli.tokenize -l en -i train.en -o out --log train.en/log") == 2
    assert "train.en/log: cannot write: " in capsys.readouterr().err
