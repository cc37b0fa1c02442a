"""nmt-train as installed: exact resume, signals, refusals."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt import checkpoint, config, locks, manifest, run_directory
from nmt.cli import train
from nmt.errors import CheckpointError, DataError, UserError
from tests.conftest import ATTENTIVE


def copy(tiny: Path, folder: Path, *overrides: str) -> list[str]:
    """Arguments of a training of the tiny corpus into a new run directory."""
    return [str(tiny / "train.yaml"), f"run={folder}/run", *overrides]


def tables(run: Path) -> list[list[str]]:
    """The logs without times and rates."""
    rows = []
    for name, columns in (("train.tsv", 6), ("dev.tsv", 6)):
        rows.append(["\t".join(line.split("\t")[:columns]) for line in (run / name).read_text().split("\n")])
    return rows


def equal_runs(a: Path, b: Path) -> None:
    left, right = (torch.load(run / "training.pt", weights_only=True) for run in (a, b))
    assert torch.equal(left["random"], right["random"])
    for key, state in left["optimizer"]["state"].items():
        for name, value in state.items():
            assert torch.equal(value, right["optimizer"]["state"][key][name])
    for drop in ("seconds",):
        left["progress"].pop(drop), right["progress"].pop(drop)
    assert left["progress"] == right["progress"]
    names = {path.name for path in a.glob("step-*.pt")}
    assert names == {path.name for path in b.glob("step-*.pt")} and names
    for name in names:
        weights, others = (torch.load(run / name, weights_only=True) for run in (a, b))
        assert all(torch.equal(value, others[key]) for key, value in weights.items())
    assert tables(a) == tables(b)
    assert (a / "checkpoints.json").read_text() == (b / "checkpoints.json").read_text()


def wait_for(path: Path, seconds: float = 1200) -> None:
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.02)


ALL_OPTIONS = [f"{key}={value}" for key, value in ATTENTIVE.items() if key != "training.keep"]


@pytest.mark.parametrize(
    "kind",
    [["training.optimizer=adam"], ["training.optimizer=adadelta"], ALL_OPTIONS],
    ids=["adam", "adadelta", "all options"],
)
def test_killed_and_resumed_is_bit_equal(
    tiny: Path, tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]], kind: list[str]
) -> None:
    options = [*kind, "training.save_every=7", "training.log_every=4", "training.max_steps=200"]
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    assert command("nmt-train", *copy(tiny, tmp_path / "whole", *options)).returncode == 0
    arguments = copy(tiny, tmp_path / "killed", *options)
    run = tmp_path / "killed" / "run"
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "nmt-train"), *arguments], stderr=subprocess.DEVNULL
    )
    wait_for(run / "training.pt")
    time.sleep(0.15)  # somewhere between two saves
    process.kill()
    assert process.wait() == -signal.SIGKILL
    step = torch.load(run / "training.pt", weights_only=True)["progress"]["step"]
    assert 0 < step < 200, "the run was over before it was killed"
    done = command("nmt-train", *arguments)
    assert done.returncode == 0 and f"going on after update {step}" in done.stderr
    equal_runs(tmp_path / "whole" / "run", run)


@pytest.mark.slow
def test_killed_again_and_again_is_bit_equal(
    tiny: Path, tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """A save after each update, so that most kills fall into one: whatever they leave is sound, and the same
    command goes on."""
    options = [
        "training.save_every=1",
        "training.validate_every=9",
        "training.keep=2",
        "training.log_every=4",
        "training.max_steps=90",
    ]
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


def test_sigterm_saves_and_the_same_command_goes_on(
    tiny: Path, tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    for name in ("whole", "stopped"):
        (tmp_path / name).mkdir()
    assert command("nmt-train", *copy(tiny, tmp_path / "whole", "training.max_steps=300")).returncode == 0
    arguments = copy(tiny, tmp_path / "stopped", "training.max_steps=300")
    run = tmp_path / "stopped" / "run"
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "nmt-train"), *arguments],
        stderr=subprocess.PIPE,
    )
    wait_for(run / "training.pt")
    process.send_signal(signal.SIGTERM)
    _, messages = process.communicate(timeout=1200)
    assert process.returncode == 128 + signal.SIGTERM, messages
    assert b"the same command goes on from here" in messages
    assert command("nmt-train", *arguments).returncode == 0
    equal_runs(tmp_path / "whole" / "run", run)


def test_same_seed_same_run_and_another_seed_another(
    tiny: Path, tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        assert command("nmt-train", *copy(tiny, tmp_path / name, f"seed={seed}")).returncode == 0
    equal_runs(tiny / "run", tmp_path / "a" / "run")
    assert tables(tiny / "run") != tables(tmp_path / "b" / "run")


def test_a_truncated_training_state_is_one_line(
    tiny: Path,
    tmp_path: Path,
    command: Callable[..., subprocess.CompletedProcess[str]],
    refused: Callable[..., str],
) -> None:
    shutil.copytree(tiny / "run", tmp_path / "run")
    path = tmp_path / "run" / "training.pt"
    path.write_bytes(path.read_bytes()[:5000])
    assert "training.pt: damaged: size or checksum" in refused(
        command("nmt-train", "-q", *copy(tiny, tmp_path))
    )
    (tmp_path / "run" / "version").write_text("nmt-run 0\n")
    assert "format 'nmt-run 0'" in refused(command("nmt-train", "-q", *copy(tiny, tmp_path)))


def test_flags_are_overrides(
    tiny: Path, tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = command(
        "nmt-train", *copy(tiny, tmp_path), "--seed", 9, "--threads=2", "--device", "cpu", "--print-config"
    )
    assert (
        "\nseed: 9\n" in done.stdout and "\nthreads: 2\n" in done.stdout and not (tmp_path / "run").exists()
    )


def test_several_threads_are_deterministic_too(
    tiny: Path, tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """Large enough for torch to split every operation among threads."""
    options = [
        "threads=4",
        "model.hidden=128",
        "model.embedding=64",
        "model.maxout=64",
        "training.batch_size=64",
        "training.max_steps=40",
    ]
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        assert command("nmt-train", *copy(tiny, tmp_path / name, *options)).returncode == 0
    equal_runs(tmp_path / "a" / "run", tmp_path / "b" / "run")


def test_finished_run_is_left_as_it_is(
    tiny: Path, tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    shutil.copytree(tiny / "run", tmp_path / "run")
    done = command("nmt-train", *copy(tiny, tmp_path))
    assert done.returncode == 0 and "stopped at update 60 (max_steps 60)" in done.stderr
    equal_runs(tiny / "run", tmp_path / "run")


def test_phrase_pairs_are_a_corpus(
    tmp_path: Path, tiny: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    import gzip

    table = tmp_path / "table.gz"
    table.write_bytes(
        gzip.compress(
            b"".join(b"a%d b ||| x y%d ||| 1 1 ||| 0-0 ||| 1 1 1 ||| |||\n" % (n, n) for n in range(40))
        )
    )
    done = command(
        "nmt-train",
        *copy(
            tiny,
            tmp_path,
            "data.train_source=",
            "data.train_target=",
            f"data.phrase_table={table}",
            "training.max_steps=4",
        ),
    )
    assert done.returncode == 0, done.stderr
    assert "training pairs: 40 kept" in done.stderr
    assert (
        (tmp_path / "run" / "source.vocab").read_text().startswith("#version: 1 vocabulary size=41\nb\t40\n")
    )


def test_bpe_learned_in_training(
    tmp_path: Path, tiny: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    options = [
        "data.bpe_merges=60",
        "training.max_steps=4",
        "data.source.case=truecase",
        "data.target.case=truecase",
    ]
    done = command("nmt-train", *copy(tiny, tmp_path, *options))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "source.codes").read_bytes() == (
        tmp_path / "run" / "target.codes"
    ).read_bytes()
    shown = command("nmt-translate", tmp_path / "run", "-q", input="The man sees the dog.\n")
    assert shown.returncode == 0 and "@@" not in shown.stdout and shown.stdout.count("\n") == 1


REFUSALS = {
    "unknown key": (["model.hiden=5"], "did you mean 'model.hidden'?"),
    "wrong type": (["model.hidden=many"], "model.hidden"),
    "missing file": (["data.train_source=nosuch.en"], "nosuch.en: cannot read: No such file"),
    "empty file": (["data.train_source=EMPTY"], "EMPTY: empty file"),
    "unequal": (["data.train_source=SHORT"], "SHORT: 3 lines, but"),
    "not utf-8": (["data.train_source=LATIN"], "LATIN:2: byte 0xe9"),
    "nul": (["data.train_source=NUL"], "NUL:1: NUL"),
    "unknown device": (["device=tpu"], "device: 'tpu'"),
    "nothing left": (["data.max_length=1"], "no pair is left"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(
    case: str,
    tiny: Path,
    tmp_path: Path,
    command: Callable[..., subprocess.CompletedProcess[str]],
    refused: Callable[..., str],
) -> None:
    (tmp_path / "EMPTY").write_bytes(b"")
    (tmp_path / "SHORT").write_bytes(b"a\nb\nc\n")
    (tmp_path / "LATIN").write_bytes(b"good\ncaf\xe9\n")
    (tmp_path / "NUL").write_bytes(b"a\0b\n")
    overrides, message = REFUSALS[case]
    overrides = [
        override.replace("=EMPTY", f"={tmp_path}/EMPTY").replace("=SHORT", f"={tmp_path}/SHORT")
        for override in overrides
    ]
    overrides = [
        override.replace("=LATIN", f"={tmp_path}/LATIN").replace("=NUL", f"={tmp_path}/NUL")
        for override in overrides
    ]
    done = command(
        "nmt-train", *copy(tiny, tmp_path, *(["--quiet"] if case == "nothing left" else []), *overrides)
    )
    assert message in refused(done)
    assert not (tmp_path / "run" / "training.pt").exists()


def test_other_settings_are_refused(
    tiny: Path, command: Callable[..., subprocess.CompletedProcess[str]], refused: Callable[..., str]
) -> None:
    before = (tiny / "run" / "training.pt").read_bytes()
    assert "model.hidden=25 (was 24)" in refused(
        command("nmt-train", "-q", tiny / "train.yaml", "model.hidden=25")
    )
    assert (tiny / "run" / "training.pt").read_bytes() == before


def start(tiny: Path, run: Path, *overrides: str, overwrite: bool = False) -> None:
    """What nmt-train does after it has read its options, in this process."""
    train.start(config.load(str(tiny / "train.yaml"), [f"run={run}", *overrides]), overwrite, show_bar=False)


@pytest.fixture
def copied(tiny: Path, tmp_path: Path) -> Path:
    """A run of its own, with corpus and configuration."""
    shutil.copytree(tiny, tmp_path / "tiny")
    for name in ("train.yaml", "run/config.yaml"):
        path = tmp_path / "tiny" / name
        path.write_text(path.read_text().replace(f"{tiny}/", f"{tmp_path}/tiny/"))
    run_directory.adopt(tmp_path / "tiny" / "run")
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


def test_overwrite_removes_runs_only(
    tiny: Path,
    tmp_path: Path,
    command: Callable[..., subprocess.CompletedProcess[str]],
    refused: Callable[..., str],
) -> None:
    """A folder with a file `version`, and one with a configuration of the user's own, are no runs."""
    (tmp_path / "run" / "src").mkdir(parents=True)
    (tmp_path / "run" / "src" / "thesis.tex").write_text("years of work")
    for name, text in (("version", "1.2.3\n"), ("config.yaml", "run: x\n"), ("version", "nmt-run 2\n")):
        (tmp_path / "run" / name).write_text(text)
        before = content(tmp_path / "run")
        with pytest.raises(CheckpointError, match="does not remove it"):
            start(tiny, tmp_path / "run", overwrite=True)
        with pytest.raises(CheckpointError, match=r"format|not a run directory|version"):
            start(tiny, tmp_path / "run")
        assert content(tmp_path / "run") == before
    assert "does not remove it" in refused(command("nmt-train", "-q", *copy(tiny, tmp_path), "--overwrite"))


def test_overwrite_keeps_what_is_not_of_the_run(
    copied: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
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
    """0.5 went on with it: with the new text, and the words of the old."""
    path = copied / name
    path.write_bytes(path.read_bytes().replace(b"e", b"o", 1))
    before = content(copied)
    with pytest.raises(DataError, match=rf"/{name}: has changed since .*/run was started with it"):
        start(copied, copied / "run", "training.max_steps=99")
    assert content(copied) == before


DAMAGED = [
    "config.yaml",
    "source.vocab",
    "step-*.pt",
    "training.pt",
    "checkpoints.json",
    "inputs.json",
    "manifest.json",
]
DAMAGED += [
    f"data/{name}"
    for name in (
        "source.ids",
        "source.offsets",
        "target.ids",
        "target.offsets",
        "stamp.json",
        "manifest.json",
    )
]


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_run_is_not_resumed(tiny: Path, tmp_path: Path, name: str) -> None:
    """One error that names the file, and nothing is changed. Of a run of version 0.5 only what can be told: a
    cut, a bit in tensors."""
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
    for listed in (tmp_path / "run").rglob("manifest.json"):
        listed.unlink()
    if name.endswith(".pt"):
        check(cut)
        check(flipped)
    elif name not in (
        "checkpoints.json",
        "manifest.json",
        "data/manifest.json",
    ):  # training.pt tells what the index does
        check(cut)


def test_overwrite_with_a_mistake_loses_nothing(
    tiny: Path,
    tmp_path: Path,
    command: Callable[..., subprocess.CompletedProcess[str]],
    refused: Callable[..., str],
) -> None:
    shutil.copytree(tiny / "run", tmp_path / "run")
    assert "nosuch.en: cannot read" in refused(
        command("nmt-train", "-q", *copy(tiny, tmp_path, "data.train_source=nosuch.en"), "--overwrite")
    )
    equal_runs(tiny / "run", tmp_path / "run")


def test_a_file_size_limit_is_one_line(tiny: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    """The weights do not fit; the last whole checkpoint, here none, is what remains."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    name = str(Path(sys.executable).parent / "nmt-train")
    done = subprocess.run(
        [name, "-q", *copy(tiny, tmp_path)],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        check=False,
        timeout=1200,
    )
    assert "cannot write" in refused(done)
    assert not list((tmp_path / "run").glob("step-*")) and not (tmp_path / "run" / "training.pt").exists()


def test_weights_that_are_no_numbers_end_the_training(
    tiny: Path,
    tmp_path: Path,
    command: Callable[..., subprocess.CompletedProcess[str]],
    refused: Callable[..., str],
) -> None:
    options = [
        "training.learning_rate=1e38",
        "training.optimizer=sgd",
        "training.save_every=1",
        "training.clip=0",
    ]
    message = refused(command("nmt-train", "-q", *copy(tiny, tmp_path, *options)))
    assert "finite" in message or "not a number" in message
    for path in (tmp_path / "run").glob("step-*.pt"):
        assert all(bool(value.isfinite().all()) for value in torch.load(path, weights_only=True).values())


def test_init_from_the_same_vocabulary_starts_where_the_parent_ended(
    tiny: Path, tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """With a learning rate of nothing the child scores as the parent."""
    options = ["training.learning_rate=1e-30", "training.max_steps=1", "seed=9"]
    done = command("nmt-train", *copy(tiny, tmp_path, *options), "--init-from", tiny / "run")
    assert done.returncode == 0 and "do not fit" not in done.stderr, done.stderr
    parent, child = (
        command(
            "nmt-score",
            run,
            "-q",
            "--checkpoint",
            "best",
            "--source",
            tiny / "dev.en",
            "--target",
            tiny / "dev.fr",
        )
        for run in (tiny / "run", tmp_path / "run")
    )
    assert parent.stdout == child.stdout != ""


def test_average_of_checkpoints_is_a_run(
    attentive: Path,
    tmp_path: Path,
    command: Callable[..., subprocess.CompletedProcess[str]],
    refused: Callable[..., str],
) -> None:
    """The mean of three checkpoints, number by number; of one checkpoint it is that checkpoint."""
    steps = sorted(int(path.stem.removeprefix("step-")) for path in attentive.glob("step-*.pt"))
    assert len(steps) == 3
    done = command("nmt-average", attentive, "--last", 3, "--output", tmp_path / "mean")
    assert done.returncode == 0 and f"mean of updates {steps[0]}, {steps[1]}, {steps[2]}" in done.stderr
    parts = [torch.load(attentive / f"step-{step}.pt", weights_only=True) for step in steps]
    mean = torch.load(tmp_path / "mean" / f"step-{steps[-1]}.pt", weights_only=True)
    for name, value in mean.items():
        assert torch.allclose(value, sum(part[name] for part in parts) / 3, atol=1e-6)
    assert (
        command("nmt-translate", tmp_path / "mean", "-q", input="The man sees the dog.\n").stdout.count("\n")
        == 1
    )
    command("nmt-average", attentive, "--steps", steps[0], "--output", tmp_path / "one")
    alone, same = (
        command("nmt-translate", *run, "-q", "--n-best", 3, input="The man sings.\n").stdout
        for run in ([attentive, "--checkpoint", steps[0]], [tmp_path / "one"])
    )
    assert alone == same != ""
    assert "exists already" in refused(
        command("nmt-average", "-q", attentive, "--last", 1, "--output", tmp_path / "one")
    )
    assert "7 checkpoints asked for" in refused(
        command("nmt-average", "-q", attentive, "--last", 7, "--output", tmp_path / "no")
    )
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("preset", ["small", "large"])
def test_presets(
    preset: str,
    tiny: Path,
    tmp_path: Path,
    command: Callable[..., subprocess.CompletedProcess[str]],
    refused: Callable[..., str],
) -> None:
    """A preset gives what the file does not say; the file wins over it."""
    (tmp_path / "mine.yaml").write_text(f"run: {tmp_path}/run\nmodel: {{hidden: 7}}\n")
    done = command("nmt-train", tmp_path / "mine.yaml", "--preset", preset, "--print-config")
    assert done.returncode == 0, done.stderr
    assert (
        "  hidden: 7\n" in done.stdout
        and "  encoder: birnn\n" in done.stdout
        and "  optimizer: adam\n" in done.stdout
    )
    assert "expected one of large, small" in refused(
        command("nmt-train", tmp_path / "mine.yaml", "--preset", "tiny")
    )


def test_an_older_run_goes_on(
    tiny: Path, tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """A configuration without the keys of this version, and a rate that stood in the optimizer alone."""
    shutil.copytree(tiny / "run", tmp_path / "run")
    lines = (tmp_path / "run" / "config.yaml").read_text().split("\n")
    new = (
        "attention:",
        "encoder:",
        "bpe_dropout:",
        "label_smoothing:",
        "warmup:",
        "schedule:",
        "accumulate:",
        "init_from:",
        "tied:",
    )
    lines = lines[: lines.index("lm:")] + lines[lines.index("training:") :]
    kept = [line for line in lines if not line.strip().startswith(new)]
    assert len(lines) - len(kept) == len(new)
    kept = [line for line in kept if not line.strip().startswith(("train_text:", "dev_text:"))]
    for name in ("manifest.json", "inputs.json"):
        (tmp_path / "run" / name).unlink()
    (tmp_path / "run" / "config.yaml").write_text("\n".join(kept))
    state = torch.load(tmp_path / "run" / "training.pt", weights_only=True)
    del state["progress"]["decayed"]
    state["optimizer"]["param_groups"][0]["lr"] = 0.005
    torch.save(state, tmp_path / "run" / "training.pt")
    done = command("nmt-train", *copy(tiny, tmp_path, "training.max_steps=70"))
    assert (
        done.returncode == 0 and "going on after update 60" in done.stderr and "L.r. 0.005" in done.stderr
    ), done.stderr
    assert "whether they have changed cannot be told" in done.stderr
    again = command(
        "nmt-train", *copy(tiny, tmp_path, "training.max_steps=80")
    )  # it has a manifest and stamps of its inputs now
    assert again.returncode == 0 and "cannot be told" not in again.stderr, again.stderr
    checkpoint.load(tmp_path / "run")


def test_the_rate_falls_on_a_plateau(
    tiny: Path, tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """With a rate of nothing no validation is better than the first: after those at 40 and 60 the rate is
    halved, and stays so when resumed."""
    options = ["training.learning_rate=1e-9", "training.decay=0.5", "training.max_steps=70"]
    assert command("nmt-train", *copy(tiny, tmp_path, *options)).returncode == 0
    assert command("nmt-train", *copy(tiny, tmp_path, *options[:2], "training.max_steps=80")).returncode == 0
    rows = [
        line.split("\t") for line in (tmp_path / "run" / "train.tsv").read_text().rstrip("\n").split("\n")[1:]
    ]
    rates = {int(row[0]): float(row[5]) for row in rows}
    assert rates == {10: 1e-9, 20: 1e-9, 30: 1e-9, 40: 1e-9, 50: 5e-10, 60: 5e-10, 70: 2.5e-10, 80: 1.25e-10}
