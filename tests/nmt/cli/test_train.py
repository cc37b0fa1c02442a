"""nmt-train and nmt-average."""

import gzip
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt.cli.average import check_new
from nmt.errors import ConfigError
from tests.commands.runs import copy, equal_runs, tables

# ---- test train --------------------------------------------------------------------------------------------


@pytest.mark.ci
def test_same_seed_same_run_and_another_seed_another(
    tiny: Path, tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        assert command("nmt-train", *copy(tiny, tmp_path / name, f"seed={seed}")).returncode == 0
    equal_runs(tiny / "run", tmp_path / "a" / "run")
    assert tables(tiny / "run") != tables(tmp_path / "b" / "run")


def test_flags_are_overrides(
    tiny: Path, tmp_path: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = command(
        "nmt-train", *copy(tiny, tmp_path), "--seed", 9, "--threads=2", "--device", "cpu", "--print-config"
    )
    assert (
        "\nseed: 9\n" in done.stdout and "\nthreads: 2\n" in done.stdout and not (tmp_path / "run").exists()
    )


@pytest.mark.ci
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


@pytest.mark.ci
def test_phrase_pairs_are_a_corpus(
    tmp_path: Path, tiny: Path, command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
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


@pytest.mark.ci
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


@pytest.mark.ci
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


@pytest.mark.ci
def test_weights_that_are_no_numbers_end_the_training(
    tiny: Path,
    tmp_path: Path,
    command: Callable[..., subprocess.CompletedProcess[str]],
    refused: Callable[..., str],
) -> None:
    options = [
        "training.learning_rate=1000",
        "model.init_scale=1e18",
        "training.optimizer=sgd",
        "training.save_every=1",
        "training.clip=0",
    ]
    message = refused(command("nmt-train", "-q", *copy(tiny, tmp_path, *options)))
    assert "finite" in message or "not a number" in message
    for path in (tmp_path / "run").glob("step-*.pt"):
        assert all(bool(value.isfinite().all()) for value in torch.load(path, weights_only=True).values())


@pytest.mark.ci
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


@pytest.mark.ci
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
    assert "update 7 asked for" in refused(
        command("nmt-average", "-q", attentive, "--steps", 7, "--output", tmp_path / "no")
    )
    assert not (tmp_path / "no").exists()


@pytest.mark.ci
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


@pytest.mark.ci
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


# ---- test average ------------------------------------------------------------------------------------------
# nmt-average never writes into a folder that holds something.


def test_only_a_new_or_empty_folder_is_taken(tmp_path: Path) -> None:
    check_new(tmp_path)
    check_new(tmp_path / "new")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="exists already; choose another name"):
        check_new(tmp_path)
