"""smt-train, smt-decode, smt-tune and smt-propose as installed: from parallel text to a tuned model, killed
and started again, bad input."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.formats import nbest, phrase_table
from tests.conftest import BIN, Command

Refused = Callable[..., str]


def contents(folder: Path, *names: str) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names}


RESULTS = (
    "alignment.gz",
    "phrase-table.gz",
    "reordering-table.wbe-msd-bidirectional-fe.gz",
    "lm.arpa.gz",
    "lex.e2f",
    "lex.f2e",
    "moses.ini",
)


@pytest.mark.ci
def test_trained_model_is_whole(smt_model: Path, command: Command) -> None:
    """What Moses would find wrong, if anything; the ini's paths are relative, and the model translates its
    own text well."""
    model = smt_model / "model"
    done = command("smt-ini", "check", model / "moses.ini", "--root", model)
    assert done.returncode == 0 and "nothing wrong" in done.stdout
    assert "path=phrase-table.gz" in (model / "moses.ini").read_text()
    pairs = list(phrase_table.checked(model / "phrase-table.gz"))
    assert len(pairs) > 500
    done = command("smt-decode", model, "-i", smt_model / "dev.en", "--stack", 30)
    assert done.returncode == 0, done.stderr
    reference = (smt_model / "dev.fr").read_text(encoding="utf-8").split("\n")
    same = sum(a == b for a, b in zip(done.stdout.split("\n"), reference, strict=True))
    assert same > 10  # of 60 sentences that it has not seen


@pytest.mark.ci
@pytest.mark.parametrize("after", ["train.json", "alignment.gz", "smt-extract.*", "phrase-table.gz"])
def test_killed_training_goes_on(after: str, smt_model: Path, tmp_path: Path, command: Command) -> None:
    """kill -9 as soon as a step has left its trace; the same command ends with the same bytes and leaves
    nothing else."""
    given = [
        str(BIN / "smt-train"),
        str(tmp_path / "model"),
        "-s",
        str(smt_model / "train.en"),
        "-t",
        str(smt_model / "train.fr"),
        "--order",
        "3",
        "-q",
    ]
    process = subprocess.Popen(given, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 1200
    while (
        not list((tmp_path / "model").glob(after)) and process.poll() is None and time.monotonic() < deadline
    ):
        time.sleep(0.005)
    process.kill()
    process.wait()
    done = command(given[0].rpartition("/")[2], *given[1:])
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "model", *RESULTS) == contents(smt_model / "model", *RESULTS)
    assert sorted(os.listdir(tmp_path / "model")) == sorted(
        name
        for name in os.listdir(smt_model / "model")
        if not name.endswith(".tuning") and "tuned" not in name
    )


@pytest.mark.ci
def test_finished_steps_are_not_done_again(
    smt_model: Path, tmp_path: Path, command: Command, refused: Refused
) -> None:
    model = tmp_path / "model"
    shutil.copytree(smt_model / "model", model)
    texts = ["-s", smt_model / "train.en", "-t", smt_model / "train.fr"]
    before = {name: (model / name).stat().st_mtime_ns for name in RESULTS}
    assert command("smt-train", model, *texts, "--order", 3).returncode == 0
    assert before == {name: (model / name).stat().st_mtime_ns for name in RESULTS}
    assert "was started with another order" in refused(command("smt-train", model, *texts, "--order", 4))
    assert "was started with another source" in refused(
        command("smt-train", model, "-s", smt_model / "train.fr", "-t", smt_model / "train.fr", "--order", 3)
    )
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x")
    assert "is not empty" in refused(command("smt-train", tmp_path / "full", *texts))
    assert "dev.fr: 60 lines, but" in refused(
        command("smt-train", tmp_path / "new", "-s", smt_model / "train.en", "-t", smt_model / "dev.fr")
    )
    assert not (tmp_path / "new").exists()


@pytest.mark.ci
def test_decode_list_and_stream(smt_model: Path, tmp_path: Path, command: Command) -> None:
    """The list is Moses' format, descending, its first entry the translation; no cache where none is wanted;
    ids count empty lines."""
    (tmp_path / "in").write_text("the black cat sleeps .\n\nzzz the dog .\n", encoding="utf-8")
    model = tmp_path / "model"
    shutil.copytree(smt_model / "model", model)
    given = [
        "smt-decode",
        model,
        "-i",
        tmp_path / "in",
        "--n-best-list",
        tmp_path / "list",
        "--n-best",
        7,
        "--distinct",
        "--stack",
        20,
    ]
    given += ["--cache", tmp_path / "cache"]
    before = sorted(os.listdir(model))
    done = command(*given, "--no-cache")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "cache").exists()
    lines = done.stdout.split("\n")
    assert len(lines) == 4 and lines[1] == "" and "zzz" in lines[2]
    groups = dict(nbest.by_sentence(tmp_path / "list"))
    assert list(groups) == [0, 1, 2]
    for number, group in groups.items():
        totals = [hypothesis.total for hypothesis in group]
        assert (
            totals == sorted(totals, reverse=True) and len({tuple(h.text) for h in group}) == len(group) <= 7
        )
        assert " ".join(group[0].text) == lines[number]
    cached = command(*given)
    assert cached.stdout == done.stdout and len(list((tmp_path / "cache").glob("*.npz"))) == 2
    assert sorted(os.listdir(model)) == before  # nothing is written beside the tables
    again = command(*given, "--workers", 2)
    assert again.stdout == done.stdout
    # A table that has changed makes a new cache: without the reordering row's pair it cannot be the old one.
    os.utime(model / "lm.arpa.gz", ns=(1, 1))
    assert command(*given).stdout == done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["smt-decode", "smt-tune"])
def test_signals_inside_compiled_code(
    name: str, workers: int, smt_model: Path, tmp_path: Path, command: Command
) -> None:
    """Without an end to a stack these sentences take hours; SIGTERM ends them, and leaves nothing
    half-written."""
    line = " ".join(["the black cat sleeps the dog eats"] * 30)
    for side in "ab":
        (tmp_path / side).write_text(f"{line}\n" * 4, encoding="utf-8")
    search = [
        "--stack",
        "0",
        "--table-limit",
        "0",
        "--beam-threshold",
        "0",
        "--distortion-limit",
        "-1",
        "--workers",
        str(workers),
    ]
    files = (
        ["-i", tmp_path / "a", "-o", tmp_path / "out"]
        if name == "smt-decode"
        else ["-s", tmp_path / "a", "-r", tmp_path / "b", "-o", tmp_path / "out"]
    )
    with subprocess.Popen(
        [str(BIN / name), str(smt_model / "model"), *map(str, files), *search], stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        while b"stack unlimited" not in process.stderr.readline():
            assert process.poll() is None
        time.sleep(2)
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
    assert not list(tmp_path.glob("out*part*")) and not (tmp_path / "out").exists()


@pytest.mark.ci
def test_without_numba(smt_model: Path, tmp_path: Path, command: Command) -> None:
    """The plain decoder takes over, says so, and translates alike."""
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text("raise ImportError('not here')\n")
    (tmp_path / "in").write_text("the black cat sleeps .\nthe dog eats .\n")
    given = ["smt-decode", smt_model / "model", "-i", tmp_path / "in", "--stack", 5, "--no-cache"]
    plain = command(*given, PYTHONPATH=str(tmp_path))
    assert plain.returncode == 0 and "numba is not installed" in plain.stderr
    assert plain.stdout == command(*given).stdout


@pytest.mark.ci
def test_decode_on_bad_models(smt_model: Path, tmp_path: Path, command: Command, refused: Refused) -> None:
    model = tmp_path / "model"
    shutil.copytree(smt_model / "model", model)
    ini = (model / "moses.ini").read_text()

    def line(old: str, new: str) -> str:
        (model / "moses.ini").write_text(ini.replace(old, new))
        return refused(command("smt-decode", model, input="the cat\n"))

    assert "moses.ini:14: the embedded engine has no feature OpSequenceModel" in line(
        "\nWordPenalty\n", "\nOpSequenceModel\n"
    )
    assert "give the text table that it was made from as PhraseDictionaryMemory" in line(
        "PhraseDictionaryMemory", "PhraseDictionaryCompact"
    )
    assert "5 scores and 4 weights" in line("num-features=4", "num-features=5")
    (model / "moses.ini").write_text(
        ini.replace("num-features=4", "num-features=5").replace("0.2 0.2 0.2 0.2", "0.2 0.2 0.2 0.2 0.2")
    )
    assert "phrase-table.gz:1: 4 scores, but the ini says num-features=5" in refused(
        command("smt-decode", model, input="the cat\n")
    )
    assert "no line 'LM0=' in [weight]" in line("LM0= 0.5\n", "")
    assert "nowhere.gz is there neither from here nor beside the ini" in line(
        "path=lm.arpa.gz", "path=nowhere.gz"
    )
    assert "type=msd-bidirectional-fe" in line(
        "type=wbe-msd-bidirectional-fe-allff", "type=hier-mslr-bidirectional-fe-allff"
    )
    assert "LM0 has no path=" in line("path=lm.arpa.gz ", "")
    assert "factors are not supported" in line("input-factor=0", "input-factor=0,1")
    assert "[distortion-limit]: 'six' is not a whole number" in line(
        "[distortion-limit]\n6", "[distortion-limit]\nsix"
    )
    (model / "moses.ini").write_text(ini)
    (model / "reordering-table.wbe-msd-bidirectional-fe.gz").write_bytes(
        (model / "phrase-table.gz").read_bytes()
    )
    assert "6 probabilities (msd-bidirectional-fe)" in refused(
        command("smt-decode", model, input="the cat\n")
    )
    assert "no moses.ini in this folder" in refused(command("smt-decode", tmp_path, input="the cat\n"))
    assert "--stack: -1 is out of range, expected 0 or more" in refused(
        command("smt-decode", model, "--stack", -1, input="the cat\n")
    )
    (tmp_path / "bad").write_bytes(b"caf\xe9\n")
    assert "bad:1: byte 0xe9" in refused(
        command("smt-decode", model, "-i", tmp_path / "bad", "-o", tmp_path / "out")
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.ci
def test_tokenize_escapes(command: Command) -> None:
    line = 'It\'s [here] | "there" & <so>.\n'
    escaped = command("nmt-tokenize", "-l", "en", "--escape", input=line).stdout
    assert escaped == "It &apos;s &#91; here &#93; &#124; &quot; there &quot; &amp; &lt; so &gt; .\n"
    assert (
        command("nmt-tokenize", "-l", "en", "--escape", "--detokenize", input=escaped).stdout
        == command(
            "nmt-tokenize",
            "-l",
            "en",
            "--detokenize",
            input=command("nmt-tokenize", "-l", "en", input=line).stdout,
        ).stdout
    )
