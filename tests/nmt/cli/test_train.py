"""nmt-train and nmt-average."""

import gzip
import resource
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt.cli import average
from nmt.cli.arguments import check_new
from nmt.errors import ConfigError
from tests.commands.runs import copy, equal_runs, tables
from tests.conftest import BIN, ROOT, Command

Training = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def train(tiny: Path, tmp_path: Path, command: Command) -> Training:
    """Trains on the tiny corpus with settings, which blanks part, into `run` or a folder of that name."""

    def run(settings: str = "", *options: object, folder: str = "") -> subprocess.CompletedProcess[str]:
        (tmp_path / folder).mkdir(exist_ok=True)
        return command("nmt-train", *copy(tiny, tmp_path / folder, *settings.split()), *options)

    return run


@pytest.mark.ci
def test_same_seed_same_run_and_another_seed_another(tiny: Path, tmp_path: Path, train: Training) -> None:
    for name, seed in (("a", 1), ("b", 2)):
        assert train(f"seed={seed}", folder=name).returncode == 0
    equal_runs(tiny / "run", tmp_path / "a" / "run")
    assert tables(tiny / "run") != tables(tmp_path / "b" / "run")


def test_flags_are_overrides(tmp_path: Path, train: Training) -> None:
    shown = train("", "--seed", 9, "--threads=2", "--device", "cpu", "--print-config").stdout
    assert "\nseed: 9\n" in shown and "\nthreads: 2\n" in shown and not (tmp_path / "run").exists()


@pytest.mark.ci
def test_several_threads_are_deterministic_too(tmp_path: Path, train: Training) -> None:
    """Large enough for torch to split every operation among threads."""
    sizes = "model.hidden=128 model.embedding=64 model.maxout=64 training.batch_size=64"
    for name in ("a", "b"):
        assert train(f"threads=4 training.max_steps=40 {sizes}", folder=name).returncode == 0
    equal_runs(tmp_path / "a" / "run", tmp_path / "b" / "run")


def test_finished_run_is_left_as_it_is(tiny: Path, tmp_path: Path, train: Training) -> None:
    shutil.copytree(tiny / "run", tmp_path / "run")
    done = train()
    assert done.returncode == 0 and "stopped at update 60 (max_steps 60)" in done.stderr
    equal_runs(tiny / "run", tmp_path / "run")


@pytest.mark.ci
def test_phrase_pairs_are_a_corpus(tmp_path: Path, train: Training) -> None:
    rows = [b"a%d b ||| x y%d ||| 1 1 ||| 0-0 ||| 1 1 1 ||| |||\n" % (n, n) for n in range(40)]
    (tmp_path / "table.gz").write_bytes(gzip.compress(b"".join(rows)))
    table = f"data.train_source= data.train_target= data.phrase_table={tmp_path}/table.gz"
    done = train(f"{table} training.max_steps=4")
    assert done.returncode == 0 and "training pairs: 40 kept" in done.stderr, done.stderr
    vocab = (tmp_path / "run" / "source.vocab").read_text()
    assert vocab.startswith("#version: 1 vocabulary size=41\nb\t40\n")


@pytest.mark.ci
def test_bpe_learned_in_training(tmp_path: Path, train: Training, command: Command) -> None:
    case = "data.source.case=truecase data.target.case=truecase"
    done = train(f"data.bpe_merges=60 training.max_steps=4 {case}")
    assert done.returncode == 0, done.stderr
    source, target = ((tmp_path / "run" / f"{side}.codes").read_bytes() for side in ("source", "target"))
    assert source == target
    shown = command("nmt-translate", tmp_path / "run", "-q", input="The man sees the dog.\n")
    assert shown.returncode == 0 and "@@" not in shown.stdout and shown.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("data.train_source=nosuch.en", "nosuch.en: cannot read: No such file"),
        ("data.train_source=FOLDER/LATIN", "LATIN:2: byte 0xe9"),
        ("device=tpu", "device: 'tpu'"),
        ("data.max_length=1", "no pair is left"),
    ],
)
def test_refusals(
    setting: str, message: str, tmp_path: Path, train: Training, refused: Callable[..., str]
) -> None:
    (tmp_path / "LATIN").write_bytes(b"a\ncaf\xe9\n")
    quiet = ["--quiet"] if message == "no pair is left" else []
    assert message in refused(train(setting.replace("FOLDER", str(tmp_path)), *quiet))
    assert not (tmp_path / "run" / "training.pt").exists()


def test_other_settings_are_refused(tiny: Path, command: Command, refused: Callable[..., str]) -> None:
    before = (tiny / "run" / "training.pt").read_bytes()
    done = command("nmt-train", "-q", tiny / "train.yaml", "model.hidden=25")
    assert "model.hidden=25 (was 24)" in refused(done)
    assert (tiny / "run" / "training.pt").read_bytes() == before


@pytest.mark.ci
def test_a_file_size_limit_is_one_line(tiny: Path, tmp_path: Path, refused: Callable[..., str]) -> None:
    """The weights do not fit; the last whole checkpoint, here none, is what remains."""
    line = [str(BIN / "nmt-train"), "-q", *copy(tiny, tmp_path)]
    limit = resource.RLIMIT_FSIZE, (20000, 20000)
    done = subprocess.run(
        line, capture_output=True, text=True, preexec_fn=lambda: resource.setrlimit(*limit), timeout=1200
    )
    assert "cannot write" in refused(done)
    assert not list((tmp_path / "run").glob("step-*")) and not (tmp_path / "run" / "training.pt").exists()


@pytest.mark.ci
def test_weights_that_are_no_numbers_end_the_training(
    tmp_path: Path, train: Training, refused: Callable[..., str]
) -> None:
    steep = "training.learning_rate=1000 training.optimizer=sgd training.clip=0 model.init_scale=1e18"
    message = refused(train(f"{steep} training.save_every=1", "-q"))
    assert "finite" in message or "not a number" in message
    for path in (tmp_path / "run").glob("step-*.pt"):
        assert all(bool(value.isfinite().all()) for value in torch.load(path, weights_only=True).values())


@pytest.mark.ci
def test_init_from_the_same_vocabulary_starts_where_the_parent_ended(
    tiny: Path, tmp_path: Path, train: Training, command: Command
) -> None:
    """With a learning rate of nothing the child scores as the parent."""
    done = train("training.learning_rate=1e-30 training.max_steps=1 seed=9", "--init-from", tiny / "run")
    assert done.returncode == 0 and "do not fit" not in done.stderr, done.stderr
    texts = ["--source", tiny / "dev.en", "--target", tiny / "dev.fr"]
    parent, child = (
        command("nmt-score", run, "-q", "--checkpoint", "best", *texts).stdout
        for run in (tiny / "run", tmp_path / "run")
    )
    assert parent == child != ""


@pytest.mark.ci
@pytest.mark.parametrize("preset", ["small", "large"])
def test_presets(preset: str, tmp_path: Path, command: Command, refused: Callable[..., str]) -> None:
    """A preset gives what the file does not say; the file wins over it."""
    (tmp_path / "mine.yaml").write_text(f"run: {tmp_path}/run\nmodel: {{hidden: 7}}\n")
    done = command("nmt-train", tmp_path / "mine.yaml", "--preset", preset, "--print-config")
    assert done.returncode == 0, done.stderr
    assert all(f"  {line}\n" in done.stdout for line in ("hidden: 7", "encoder: birnn", "optimizer: adam"))
    done = command("nmt-train", tmp_path / "mine.yaml", "--preset", "tiny")
    assert "expected one of large, small" in refused(done)


@pytest.mark.ci
def test_the_rate_falls_on_a_plateau(tmp_path: Path, train: Training) -> None:
    """With a rate of nothing no validation is better than the first: after those at 40 and 60 the rate is
    halved, and stays so when resumed."""
    for steps in (70, 80):
        settings = f"training.learning_rate=1e-9 training.decay=0.5 training.max_steps={steps}"
        assert train(settings).returncode == 0
    rows = [line.split("\t") for line in (tmp_path / "run" / "train.tsv").read_text().splitlines()[1:]]
    rates = {int(row[0]): float(row[5]) for row in rows}
    assert rates == {10: 1e-9, 20: 1e-9, 30: 1e-9, 40: 1e-9, 50: 5e-10, 60: 5e-10, 70: 2.5e-10, 80: 1.25e-10}


# ---- average -----------------------------------------------------------------------------------------------


@pytest.mark.ci
def test_average_of_checkpoints_is_a_run(
    attentive: Path, tmp_path: Path, command: Command, refused: Callable[..., str]
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
    command("nmt-average", attentive, "--steps", steps[0], "--output", tmp_path / "one")
    of_mean, alone, same = (
        command("nmt-translate", *run, "-q", "--n-best", 3, input="The man sings.\n").stdout
        for run in ([tmp_path / "mean"], [attentive, "--checkpoint", steps[0]], [tmp_path / "one"])
    )
    assert of_mean.count("\n") == 3 and alone == same != ""
    for options, output, message in (
        (["--last", 1], "one", "exists already"),
        (["--steps", 7], "no", "update 7"),
    ):
        done = command("nmt-average", "-q", attentive, *options, "--output", tmp_path / output)
        assert message in refused(done)
    assert not (tmp_path / "no").exists()


def test_damaged_text_files_are_not_copied_into_the_average(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They would get a manifest of their own, and be taken for sound from then on."""
    shutil.copytree(ROOT / "tests" / "models" / "translator", tmp_path / "run")
    average_into = ["-q", "--last", "1", str(tmp_path / "run"), "--output"]
    assert average.main([*average_into, str(tmp_path / "sound")]) == 0
    vocab = tmp_path / "run" / "target.vocab"
    vocab.write_bytes(vocab.read_bytes().replace(b"a\t", b"b\t", 1))
    assert average.main([*average_into, str(tmp_path / "mean")]) == 2
    assert "target.vocab" in capsys.readouterr().err and not (tmp_path / "mean").exists()


def test_only_a_new_or_empty_folder_is_taken(tmp_path: Path) -> None:
    check_new(tmp_path)
    check_new(tmp_path / "new")
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="exists already; choose another name"):
        check_new(tmp_path)
