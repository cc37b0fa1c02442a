"""A training goes on where it stopped, bit by bit. Nothing that is damaged or changed is
resumed, and nothing that is not of a run is removed."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nmt.errors import CheckpointError, DataError, UserError
from nmt.io import locks, manifest
from nmt.runs import checkpoint
from tests.commands.runs import copy, equal_runs, kill_and_resume, start, wait_for
from tests.conftest import ATTENTIVE, Command, Refused

ALL_OPTIONS = [f"{key}={value}" for key, value in ATTENTIVE.items() if key != "training.keep"]


@pytest.mark.ci
@pytest.mark.parametrize(
    "kind",
    [["training.optimizer=adam"], ["training.optimizer=adadelta"], [*ALL_OPTIONS, "training.ema=0.9"]],
    ids=["adam", "adadelta", "all options"],
)
def test_killed_and_resumed_is_bit_equal(
    tiny: Path, tmp_path: Path, command: Command, kind: list[str]
) -> None:
    kill_and_resume(tiny, tmp_path, command, *kind)


@pytest.mark.slow
def test_killed_again_and_again_is_bit_equal(tiny: Path, tmp_path: Path, command: Command) -> None:
    """A save after each update, so that most kills fall into one: whatever they leave is sound, and the same
    command goes on."""
    options = (
        "training.save_every=1 training.validate_every=9 training.keep=2 training.log_every=4 "
        "training.max_steps=90"
    ).split()
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    assert command("nmt-train", *copy(tiny, tmp_path / "whole", *options)).returncode == 0
    run, rng, kills = tmp_path / "killed" / "run", random.Random(1), 0
    state = run / "training.pt"
    while True:
        with open(tmp_path / "log", "wb") as log:
            process = subprocess.Popen(
                [str(Path(sys.executable).parent / "nmt-train"), *copy(tiny, tmp_path / "killed", *options)],
                stderr=log,
            )
        before = state.stat().st_mtime_ns if state.exists() else 0
        while process.poll() is None and (not state.exists() or state.stat().st_mtime_ns == before):
            time.sleep(0.01)
        time.sleep(rng.random() * 0.3)
        process.kill()
        if process.wait() != -signal.SIGKILL:
            break
        kills += 1
        checkpoint.load(run, "last")
    assert process.returncode == 0 and kills > 3, (tmp_path / "log").read_text()
    equal_runs(tmp_path / "whole" / "run", run)


@pytest.mark.ci
def test_sigterm_saves_and_the_same_command_goes_on(tiny: Path, tmp_path: Path, command: Command) -> None:
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
    assert command("nmt-train", *copy(tiny, tmp_path / "whole", "training.max_steps=300")).returncode == 0
    arguments = copy(tiny, tmp_path / "stopped", "training.max_steps=300")
    run = tmp_path / "stopped" / "run"
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "nmt-train"), *arguments], stderr=subprocess.PIPE
    )
    wait_for(run / "training.pt")
    process.send_signal(signal.SIGTERM)
    _, messages = process.communicate(timeout=1200)
    assert process.returncode == 128 + signal.SIGTERM, messages
    assert b"the same command resumes from here" in messages
    assert command("nmt-train", *arguments).returncode == 0
    equal_runs(tmp_path / "whole" / "run", run)


@pytest.mark.ci
def test_a_truncated_training_state_is_one_line(
    tiny: Path, tmp_path: Path, command: Command, refused: Refused
) -> None:
    shutil.copytree(tiny / "run", tmp_path / "run")
    path = tmp_path / "run" / "training.pt"
    path.write_bytes(path.read_bytes()[:5000])
    assert "training.pt: damaged: size or checksum" in refused(
        command("nmt-train", "-q", *copy(tiny, tmp_path))
    )
    (tmp_path / "run" / "version").write_text("nmt-run 0\n")
    assert "format 'nmt-run 0'" in refused(command("nmt-train", "-q", *copy(tiny, tmp_path)))


@pytest.fixture
def copied(tiny: Path, tmp_path: Path) -> Path:
    """A run of its own, with corpus and configuration."""
    shutil.copytree(tiny, tmp_path / "tiny")
    for name in ("train.yaml", "run/config.yaml"):
        path = tmp_path / "tiny" / name
        path.write_text(path.read_text().replace(f"{tiny}/", f"{tmp_path}/tiny/"))
    entries = manifest.read(tmp_path / "tiny" / "run")
    assert entries
    manifest.write(tmp_path / "tiny" / "run", entries)
    return tmp_path / "tiny"


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


def test_overwrite_removes_runs_only(tiny: Path, tmp_path: Path, command: Command, refused: Refused) -> None:
    """A folder with a file `version`, and one with a configuration of the user's own, are no runs."""
    (tmp_path / "run" / "src").mkdir(parents=True)
    (tmp_path / "run" / "src" / "thesis.tex").write_text("years of work")
    for name, text in (("version", "1.2.3\n"), ("config.yaml", "run: x\n"), ("version", "nmt-run 3\n")):
        (tmp_path / "run" / name).write_text(text)
        before = content(tmp_path / "run")
        with pytest.raises(CheckpointError, match="does not remove it"):
            start(tiny, tmp_path / "run", overwrite=True)
        with pytest.raises(CheckpointError, match=r"format|not a run directory|version"):
            start(tiny, tmp_path / "run")
        assert content(tmp_path / "run") == before
    assert "does not remove it" in refused(command("nmt-train", "-q", *copy(tiny, tmp_path), "--overwrite"))


@pytest.mark.ci
def test_overwrite_keeps_what_is_not_of_the_run(copied: Path, command: Command) -> None:
    for name in ("notes.txt", "data/mine.en", "src/main.c"):
        (copied / "run" / name).parent.mkdir(exist_ok=True)
        (copied / "run" / name).write_text("mine")
    done = command("nmt-train", "-q", copied / "train.yaml", "training.max_steps=20", "--overwrite")
    assert done.returncode == 0, done.stderr
    assert all(
        (copied / "run" / name).read_text() == "mine" for name in ("notes.txt", "data/mine.en", "src/main.c")
    )
    assert [path.name for path in (copied / "run").glob("step-*")] == ["step-20.pt"]
    checkpoint.load(copied / "run")


def test_a_second_training_is_told_of_the_first(copied: Path) -> None:
    before = content(copied)
    with locks.locked(copied / "run", "nmt-train"):
        for overwrite in (False, True):
            with pytest.raises(
                UserError,
                match=rf"/run: in use by nmt-train, process {os.getpid()} on .*; "
                "wait for it to end, or stop it",
            ):
                start(copied, copied / "run", "training.max_steps=99", overwrite=overwrite)
    assert content(copied) == before


@pytest.mark.parametrize("name", ["train.en", "train.fr", "dev.en", "dev.fr"])
def test_a_changed_text_is_refused(copied: Path, name: str) -> None:
    path = copied / name
    path.write_bytes(path.read_bytes().replace(b"e", b"o", 1))
    before = content(copied)
    with pytest.raises(DataError, match=rf"/{name}: has changed since .*/run was started with it"):
        start(copied, copied / "run", "training.max_steps=99")
    assert content(copied) == before


@pytest.mark.ci
def test_a_resumed_run_measures_bleu_as_before(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever tokenizers this machine has; asking for another one is refused."""
    run = copied / "run"
    assert "\n  bleu_tokenizer: 13a\n" in (run / "config.yaml").read_text()
    monkeypatch.setattr("nmt.metrics.choose_tokenizer", lambda language: "char")
    for wish in ("auto", "13a"):
        steps = 61 if wish == "auto" else 62
        start(copied, run, f"training.max_steps={steps}", f"training.bleu_tokenizer={wish}")
    last = (run / "dev.tsv").read_text().rstrip("\n").split("\n")[-2:]
    assert [line.partition("\t")[0] for line in last] == ["61", "62"]
    assert all("|tok:13a|" in line for line in last)
    with pytest.raises(UserError, match=r"training.bleu_tokenizer=char \(was 13a\)"):
        start(copied, run, "training.max_steps=63", "training.bleu_tokenizer=char")


DAMAGED = "config.yaml source.vocab step-*.pt training.pt checkpoints.json inputs.json manifest.json".split()


DAMAGED += [
    f"data/{name}"
    for name in "source.ids source.offsets target.ids target.offsets stamp.json manifest.json".split()
]


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.ci
def test_a_damaged_run_is_not_resumed(tiny: Path, tmp_path: Path, name: str) -> None:
    """One error that names the file, and nothing is changed."""
    shutil.copytree(tiny / "run", tmp_path / "run")
    path = next((tmp_path / "run").glob(name))
    whole = path.read_bytes()
    half = len(whole) // 2
    cut, flipped = whole[:half], whole[:half] + bytes([whole[half] ^ 1]) + whole[half + 1 :]

    def check(data: bytes) -> None:
        path.write_bytes(data)
        before = content(tmp_path / "run")
        with pytest.raises(UserError) as error:
            start(tiny, tmp_path / "run", "training.max_steps=99")
        assert str(path) in str(error.value) and "\n" not in str(error.value)
        assert content(tmp_path / "run") == before

    check(cut)
    if "manifest" not in name:  # of which a bit may say that a file is damaged that is not
        check(flipped)


def test_overwrite_with_a_mistake_loses_nothing(
    tiny: Path, tmp_path: Path, command: Command, refused: Refused
) -> None:
    shutil.copytree(tiny / "run", tmp_path / "run")
    assert "nosuch.en: cannot read" in refused(
        command("nmt-train", "-q", *copy(tiny, tmp_path, "data.train_source=nosuch.en"), "--overwrite")
    )
    equal_runs(tiny / "run", tmp_path / "run")
