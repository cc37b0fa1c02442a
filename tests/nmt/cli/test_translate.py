"""nmt-translate and nmt-score as installed, on one tiny run."""

import gzip
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.formats import nbest
from nmt.text.tokenize import escape
from tests.commands.runs import LINES

Command = Callable[..., subprocess.CompletedProcess[str]]


def translate(command: Command, tiny: Path, text: str, *options: object) -> list[str]:
    done = command("nmt-translate", tiny / "run", "-q", *options, input=text)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.endswith("\n") or not done.stdout
    return done.stdout.split("\n")[:-1]


@pytest.mark.ci
def test_one_line_in_one_line_out_in_order(tiny: Path, command: Command) -> None:
    together = translate(command, tiny, "\n".join(LINES) + "\n")
    assert len(together) == 4 and all(together)
    assert together == [line for text in LINES for line in translate(command, tiny, text + "\n")]
    assert together == translate(command, tiny, "\n".join(LINES) + "\n", "--read-ahead", 1)


def test_empty_and_blank_lines_stay(tiny: Path, command: Command) -> None:
    out = translate(command, tiny, f"\n{LINES[0]}\n   \n\t\n\u2028\n{LINES[1]}")
    assert [bool(line) for line in out] == [False, True, False, False, False, True]


@pytest.mark.ci
@pytest.mark.parametrize("odd", ["\u2028", "\x85", "\x0c", "\xa0", "\r", "\u2029", "\x1c", "\x0b"])
def test_odd_characters_do_not_break_lines(tiny: Path, command: Command, odd: str) -> None:
    out = translate(command, tiny, f"The man{odd}sees the dog.\n{LINES[2]}\n")
    assert len(out) == 2 and out[1] == translate(command, tiny, LINES[2] + "\n")[0]


def test_carriage_returns_are_removed_with_one_warning(tiny: Path, command: Command) -> None:
    done = command("nmt-translate", tiny / "run", "-q", input=f"{LINES[0]}\r\n{LINES[2]}\r\n")
    assert done.stdout.split("\n")[:-1] == translate(command, tiny, f"{LINES[0]}\n{LINES[2]}\n")
    assert done.stderr.count("\n") == 1 and "carriage return" in done.stderr


def test_a_line_of_ten_thousand_words_gets_one_warning(tiny: Path, command: Command) -> None:
    long = " ".join(["dog"] * 10000)
    done = command(
        "nmt-translate", tiny / "run", "-q", "-b", 2, input=f"{LINES[2]}\n{long}\n{LINES[2]}\n", timeout=1200
    )
    assert done.returncode == 0
    out = done.stdout.split("\n")
    assert len(out) == 4 and out[0] == out[2]
    assert done.stderr.count("\n") == 1 and "<stdin>:2: 10,000 words" in done.stderr


@pytest.mark.ci
def test_nbest_is_moses_format_and_agrees_with_everything(
    tiny: Path, command: Command, tmp_path: Path
) -> None:
    text = "\n".join([*LINES, "", LINES[0]]) + "\n"
    lists = {k: translate(command, tiny, text, "--n-best", k, "-b", 6) for k in (1, 4)}
    entries = [nbest.parse(line, "x") for line in lists[4]]
    assert [entry.sentence for entry in entries] == sorted(entry.sentence for entry in entries)
    assert {entry.sentence for entry in entries} == set(range(6))
    firsts = [next(entry for entry in entries if entry.sentence == n) for n in range(6)]
    assert [nbest.write(entry) for entry in firsts] == lists[1], "a larger n-best never changes the 1-best"
    assert lists[1][4] == "4 |||  ||| NMT0= 0 ||| 0"
    tokenized = translate(
        command,
        tiny,
        "\n".join(" ".join(line.lower().replace(".", " .").split()) for line in [*LINES, "", LINES[0]])
        + "\n",
        "--tokenized",
        "-b",
        6,
    )
    assert [" ".join(entry.words) for entry in firsts] == tokenized
    for entry in entries:
        expected = entry.features["NMT0"][0] / (len(entry.words) + 1) if entry.words else 0.0
        assert entry.total == pytest.approx(expected, abs=1e-4)

    full = [entry for entry in entries if entry.sentence != 4]
    sources = [[*LINES, "", LINES[0]][entry.sentence].lower().replace(".", " .") for entry in full]
    (tmp_path / "s").write_text("".join(line + "\n" for line in sources))
    (tmp_path / "t").write_text("".join(" ".join(entry.words) + "\n" for entry in full))
    done = command("nmt-score", tiny / "run", "-q", "--tokenized", "-s", tmp_path / "s", "-t", tmp_path / "t")
    scores = [float(line) for line in done.stdout.split()]
    assert scores == pytest.approx([entry.features["NMT0"][0] for entry in full], abs=1e-4)


@pytest.mark.ci
def test_escaped_is_tokenized_with_moses_escapes(tiny: Path, command: Command) -> None:
    """On both ways: what the model reads and says is the same, in 1-best and n-best output."""
    text = "the 's [ dog | sees & a man\n\nthe dog 's sees\n" + "".join(
        f"{line.lower().rstrip('.')} .\n" for line in LINES
    )
    escaped = "\n".join(" ".join(map(escape, line.split(" "))) for line in text.split("\n"))
    assert "&apos;s &#91; dog &#124; sees &amp;" in escaped
    for more in ([], ["--n-best", 3, "-b", 3]):
        plain = command("nmt-translate", tiny / "run", "-q", "--tokenized", *more, input=text).stdout
        assert command(
            "nmt-translate", tiny / "run", "-q", "--escaped", *more, input=escaped
        ).stdout == plain.replace("'", "&apos;")
        assert "'" in plain


def test_normalize_none_ranks_by_log_prob(tiny: Path, command: Command) -> None:
    for line in translate(command, tiny, LINES[0] + "\n", "--n-best", 5, "--normalize", "none"):
        entry = nbest.parse(line, "x")
        assert entry.total == entry.features["NMT0"][0]


@pytest.mark.ci
def test_output_file_equals_stdout_and_gzip_goes_in(tiny: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(gzip.compress("".join(line + "\n" for line in LINES).encode()))
    assert (
        command(
            "nmt-translate", tiny / "run", "-q", "--input", tmp_path / "in", "--output", tmp_path / "out"
        ).returncode
        == 0
    )
    assert (tmp_path / "out").read_text().split("\n")[:-1] == translate(
        command, tiny, "\n".join(LINES) + "\n"
    )


def test_it_answers_in_a_pipe_before_the_input_ends(tiny: Path) -> None:
    name = Path(sys.executable).parent / "nmt-translate"
    process = subprocess.Popen(
        [name, tiny / "run", "-q", "--read-ahead", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin and process.stdout
    process.stdin.write(b"The man sees the dog.\n")
    process.stdin.flush()
    assert process.stdout.readline().strip()
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()


@pytest.mark.ci
def test_underscores_in_flags(tiny: Path, command: Command) -> None:
    assert translate(command, tiny, LINES[0] + "\n", "--beam_size", "3") == translate(
        command, tiny, LINES[0] + "\n", "-b", 3
    )


@pytest.mark.ci
def test_minimum_bayes_risk(tiny: Path, command: Command, tmp_path: Path) -> None:
    """The choice of smt-rescore from the list of the same beam; at a large scale the best of the beam; of
    draws one that was drawn, with its alignment line."""
    text, more = "\n".join([*LINES, ""]) + "\n", ["--tokenized", "-b", 6]
    (tmp_path / "s").write_text(text)
    (tmp_path / "n").write_text("\n".join(translate(command, tiny, text, *more, "--n-best", 6)) + "\n")
    line = ["smt-rescore", "n", "-s", "s", "-q", "--mbr", "chrf", "--mbr-scale", "0.5", "--best", "-"]
    chosen = command(*line, cwd=tmp_path).stdout.split("\n")[:-1]
    assert translate(command, tiny, text, *more, "--mbr", "chrf", "--mbr-scale", "0.5") == chosen
    best = translate(command, tiny, text, *more)
    assert chosen != best == translate(command, tiny, text, *more, "--mbr", "bleu", "--mbr-scale", "1e6")
    drawn = [nbest.parse(line, "x") for line in translate(command, tiny, text, "--tokenized", "--sample", 9)]
    texts = {(entry.sentence, " ".join(entry.words)) for entry in drawn}
    assert (
        set(enumerate(translate(command, tiny, text, "--tokenized", "--sample", 9, "--mbr", "bleu"))) <= texts
    )


REFUSALS = {
    "missing run": (["nosuch"], "", "nosuch: no such run directory"),
    "missing input": (["RUN", "--input", "nosuch.en"], "", "nosuch.en: cannot read"),
    "not utf-8": (["RUN", "--input", "BAD"], "", "BAD:2: byte 0xe9 at column 2"),
    "nul": (["RUN"], "a\0b\n", "<stdin>:1: NUL"),
    "n-best over beam": (
        ["RUN", "--n-best", "11", "-b", "10"],
        "",
        "--n-best 11 is more than --beam-size 10",
    ),
    "mbr of a list": (["RUN", "--mbr", "bleu", "--n-best", "3"], "", "--mbr writes one translation"),
    "scale of draws": (
        ["RUN", "--mbr", "bleu", "--mbr-scale", "2", "--sample", "9"],
        "",
        "--mbr-scale goes with --mbr, and not with --sample",
    ),
    "unknown flag": (["RUN", "--bean-size", "3"], "", "unrecognized arguments"),
    "beam of 0": (["RUN", "-b", "0"], "", "0 is out of range, expected 1 to 10000"),
    "full disk": (["RUN", "--output", "/dev/full"], "a\n", "/dev/full: cannot write: No space left"),
    "no folder": (["RUN", "--output", "/nosuch/out"], "a\n", "/nosuch/out: cannot write: No such file"),
    "no gpu": (["RUN", "--device", "cuda:9"], "", "finds no GPU"),
    "unknown device": (["RUN", "--device", "tpu"], "", "device: 'tpu'"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(
    case: str, tiny: Path, tmp_path: Path, command: Command, refused: Callable[..., str]
) -> None:
    (tmp_path / "BAD").write_bytes(b"good\nb\xe9\n")
    arguments, text, message = REFUSALS[case]
    given = [{"RUN": str(tiny / "run"), "BAD": str(tmp_path / "BAD")}.get(word, word) for word in arguments]
    out = tmp_path / "out"
    if "--output" not in given:
        given += ["--output", str(out)]
    if case == "no gpu":
        import torch

        if torch.cuda.is_available():
            pytest.skip("there is a GPU")
    assert message in refused(
        command("nmt-translate", *(["-q"] if case in ("nul", "full disk") else []), *given, input=text)
    )
    assert {path.name for path in tmp_path.iterdir()} == {"BAD"}, "something was left behind"


@pytest.mark.ci
@pytest.mark.parametrize("name", ["nmt-translate", "nmt-score", "smt-score-table"])
def test_damaged_runs_are_refused_by_every_command(
    name: str, tiny: Path, tmp_path: Path, command: Command, refused: Callable[..., str]
) -> None:
    def call(run: Path) -> str:
        lines: dict[str, list[object]] = {
            "nmt-translate": [run],
            "nmt-score": [run, "--source", tiny / "dev.en", "--target", tiny / "dev.fr"],
            "smt-score-table": ["-", "-f", f"translation={run}"],
        }
        text = "a ||| b ||| 1\n" if name == "smt-score-table" else "a\n"
        return refused(command(name, *lines[name], "--output", tmp_path / "out", input=text))

    for case in ("version", "weights", "vocabulary"):
        shutil.copytree(tiny / "run", tmp_path / case)
    (tmp_path / "version" / "version").write_text("nmt-run 9\n")
    for path in [*(tmp_path / "weights").glob("step-*.pt"), tmp_path / "vocabulary" / "target.vocab"]:
        path.write_bytes(path.read_bytes()[:100])
    assert "format 'nmt-run 9', this version reads 'nmt-run 2'" in call(tmp_path / "version")
    assert ".pt: damaged: size or checksum" in call(tmp_path / "weights")
    assert "target.vocab: " in call(tmp_path / "vocabulary")
    assert not (tmp_path / "out").exists()


def test_full_stdout_is_one_line(tiny: Path, refused: Callable[..., str]) -> None:
    name = Path(sys.executable).parent / "nmt-translate"
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [name, "-q", tiny / "run"],
            input=b"a\n",
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=1200,
        )
    line = refused(subprocess.CompletedProcess(done.args, done.returncode, "", done.stderr.decode()))
    assert "cannot write: No space left" in line


def test_file_size_limit_leaves_nothing(tiny: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    name = str(Path(sys.executable).parent / "nmt-translate")
    text = "".join(line + "\n" for line in LINES * 5)
    done = subprocess.run(
        [name, "-q", str(tiny / "run"), "--output", str(tmp_path / "out")],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )
    assert "out: cannot write: File too large" in refused(done)
    assert not list(tmp_path.iterdir())


def test_a_reader_that_leaves_is_no_error(tiny: Path) -> None:
    name = Path(sys.executable).parent / "nmt-translate"
    process = subprocess.Popen(
        [name, tiny / "run", "-q", "--read-ahead", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout and process.stdin and process.stderr
    process.stdout.close()
    _, messages = process.communicate(b"The man sees the dog.\n" * 50, timeout=1200)
    assert messages == b""
