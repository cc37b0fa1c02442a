"""The commands of statistical MT."""

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from subprocess import DEVNULL
from types import ModuleType

import numpy as np
import pytest

from nmt.formats import nbest, phrase_table
from nmt.io import files
from nmt.metrics import corpus_bleu
from nmt.sample_corpus import corpus, grammar
from smt_bridge.build import distillation, evaluation, plan, student
from smt_bridge.build import plan as plan_file
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.distillation import StudentPlan
from smt_bridge.build.student import StudentTraining
from smt_bridge.build.tuning import sample_lines
from smt_bridge.hybrid import folder as hybrid
from tests.conftest import BIN, HANG, Command, Refused
from tests.smt_bridge.build.builds import config, write_plan

# ---- test smt ----------------------------------------------------------------------------------------------


def contents(folder: Path, *names: str) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in names}


def killed_at(trace: str, folder: Path, *given: object) -> bool:
    """Start a command, kill it as soon as `trace` is in `folder`; returns whether it was at work then."""
    name, *words = map(str, given)
    process = subprocess.Popen([str(BIN / name), *words], stdout=DEVNULL, stderr=DEVNULL)
    end = time.monotonic() + HANG
    while not list(folder.glob(trace)) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    at_work = process.poll() is None
    process.kill()
    process.wait()
    return at_work


RESULTS = (
    "alignment.gz", "phrase-table.gz", "reordering-table.wbe-msd-bidirectional-fe.gz", "lm.arpa.gz",
    "lex.e2f", "lex.f2e", "moses.ini",
)  # fmt: skip


@pytest.mark.ci
def test_trained_model_is_whole(smt_model: Path, command: Command) -> None:
    """What Moses would find wrong, if anything; the ini's paths are relative, and the model translates its
    own text well."""
    model = smt_model / "model"
    done = command("smt-ini", "check", model / "moses.ini", "--root", model)
    assert done.returncode == 0 and "nothing wrong" in done.stdout
    assert "path=phrase-table.gz" in (model / "moses.ini").read_text()
    pairs = list(phrase_table.read_strict(model / "phrase-table.gz"))
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
    texts = ["-s", smt_model / "train.en", "-t", smt_model / "train.fr"]
    given = ["smt-train", tmp_path / "model", *texts, "--order", 3, "-q"]
    killed_at(after, tmp_path / "model", *given)
    done = command(*given)
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
        "smt-decode", model, "-i", tmp_path / "in", "--n-best-list", tmp_path / "list", "--n-best", 7,
        "--distinct", "--stack", 20,
    ]  # fmt: skip
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
    assert cached.stdout == done.stdout and len(list((tmp_path / "cache").glob("*/contents.json"))) == 2
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
        *"--stack 0 --table-limit 0 --beam-threshold 0 --distortion-limit -1 --workers".split(),
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
    assert plain.returncode == 0 and "without the package numba" in plain.stderr
    assert plain.stdout == command(*given).stdout


# ---- test smt build ----------------------------------------------------------------------------------------
# smt-build as installed: from raw text to a hybrid folder; killed at any moment, with any number of workers,
# the same bytes.


NETWORKS = ("attention", "joint", "cslm")
UNEQUAL = (".lock", "report.html")  # who worked there; how long it took


def words(folder: Path, grammar: ModuleType, *more: str, networks: tuple[str, ...] = NETWORKS) -> list[str]:
    """The command of a small build."""
    made = config(folder, grammar, 200)
    plan = write_plan(folder / "plan.json", *networks)
    texts = ["--source", made.source, "--target", made.target]
    dev = ["--dev-source", made.dev_source, "--dev-target", made.dev_target]
    return ["smt-build", *texts, *dev, "--plan", plan, "--output", made.output, "-q", *more]


def system(folder: Path) -> dict[str, bytes]:
    """The files of a hybrid folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in UNEQUAL and path.relative_to(folder).parts[0] != "build"
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, grammar: ModuleType, command: Command) -> Path:
    """A system with all networks, never disturbed."""
    folder = tmp_path_factory.mktemp("built")
    done = command(*words(folder, grammar, "--workers", "1"))
    assert done.returncode == 0, done.stderr
    return folder / "system"


@pytest.mark.ci
def test_two_workers_build_the_same_as_one(
    built: Path, tmp_path: Path, grammar: ModuleType, command: Command
) -> None:
    done = command(*words(tmp_path, grammar, "--workers", "2"))
    assert done.returncode == 0, done.stderr
    assert system(tmp_path / "system") == system(built)
    assert set(hybrid.read(built).parts) <= set(system(built))


@pytest.mark.ci
def test_killed_again_and_again_the_same_system(
    built: Path, tmp_path: Path, grammar: ModuleType, command: Command
) -> None:
    """kill -9 as soon as each of these appears, from the first record to the last step."""
    place = tmp_path / "with a blank"
    place.mkdir()
    given, folder = words(place, grammar), place / "system"
    for after in (
        "build/build.json*", "build/corpus/train.source*", "build/model/train.json",
        "build/dev/phrase-based.tuning/00.npz",
        "build/runs/joint/version", "build/runs/attention/step-*", "build/dev/hybrid.tuning/00.npz",
        "build/dev/outputs/*", "networks/joint*", "moses.ini*",
    ):  # fmt: skip
        assert killed_at(after, folder, *given), f"it ended before {after} was there"
    done = command(*given)
    assert done.returncode == 0, done.stderr
    assert system(folder) == system(built)
    assert not list(folder.rglob("*.part*"))


@pytest.mark.ci
def test_a_moved_system_translates_the_same(built: Path, tmp_path: Path, command: Command) -> None:
    """Raw text to raw text, as the build itself has translated it; fast, as its attention model does."""
    moved = tmp_path / "else where"
    shutil.copytree(built, moved, ignore=shutil.ignore_patterns("build"))
    texts = BuildTexts(built / "build")
    chosen = json.loads((built / "build" / evaluation.FILE).read_text())["chosen"]
    words = (built / "build" / "dev" / evaluation.OUTPUTS / chosen).read_text().split("\n")[:5]
    expected = [hybrid.read(built).target.text(line.split(" ")) for line in words]
    done = command(
        "smt-decode", moved, "-q", input="".join(f"{line}\n" for line in texts.lines("raw.source")[:5])
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(f"{line}\n" for line in expected)
    commands = ["smt-decode", moved, "--quality", "fast"], ["nmt-translate", moved / "networks" / "attention"]
    fast, alone = (command(*words, "-q", input="The nurses hear her.\n\n") for words in commands)
    assert fast.returncode == 0 and fast.stdout.count("\n") == 2, fast.stderr
    assert fast.stdout == alone.stdout
    assert "--quality fast translates with it" in (moved / "report.html").read_text()


# What measured speeds decide, so that the student does not depend on the machine.
DECIDED: dict[str, StudentPlan | StudentTraining] = {
    distillation.PLAN: StudentPlan(200, 4, translated=60, translated_monolingual=4, stack=10, seconds=1),
    student.TRAINING: StudentTraining(updates=12, every=3, warmup=2, epochs=1, seconds=1),
}


def decide(folder: Path) -> None:
    for name, decision in DECIDED.items():
        files.write_text(folder / "build" / name, [json.dumps(asdict(decision))])


@pytest.mark.ci
def test_a_student_is_added_to_a_finished_system(
    tmp_path: Path, grammar: ModuleType, command: Command, refused: Refused
) -> None:
    """The system itself stays as it is. Killed as soon as each of these appears, the same student."""
    given, built = words(tmp_path, grammar, networks=()), tmp_path / "built"
    done = command(*given, "--output", built)
    assert done.returncode == 0, done.stderr
    files.write_text(tmp_path / "mono.en", islice(files.read_lines(tmp_path / "dev.en"), 4))
    given += ["--student", "--monolingual-source", str(tmp_path / "mono.en")]
    once, again = tmp_path / "system", tmp_path / "again"
    for folder in (once, again):
        shutil.copytree(built, folder)
        decide(folder)
    done = command(*given)
    assert done.returncode == 0, done.stderr
    assert "60 of 200 pairs are translated, the others have their reference; 4 of 4 mono" in done.stdout
    before, after = system(built), system(once)
    assert {name for name in after if before.get(name) != after[name]} == {
        "system.json", *(name for name in after if name.startswith("fast/"))
    }  # fmt: skip
    report = (once / "report.html").read_text()
    assert "--quality fast" in report and "student-text" in report and "student: dev BLEU" in report
    result = json.loads((once / "build" / student.EVALUATION).read_text())
    assert result["teacher"] == "phrase-based" and result["rate"] > 0 and result["teacher_rate"] > 0
    text = list(files.parallel(once / "build" / distillation.SOURCE, once / "build" / distillation.TARGET))
    references = list(files.parallel(tmp_path / "train.en", tmp_path / "train.fr"))
    assert [source for source, _ in text[:200]] == [source for source, _ in references] and len(text) == 204
    chosen = {*sample_lines(range(200), 60)}
    assert all(text[number] == references[number] for number in range(200) if number not in chosen)
    for trace in ("partial/1/model/train.json", "chunks", "train.source*", "fast/step-*", "exported*"):
        at_work = killed_at(trace, again / "build" / distillation.FOLDER, *given, "--output", again)
        assert at_work, f"it ended before {trace} was there"
    done = command(*given, "--output", again)
    assert done.returncode == 0, done.stderr
    assert system(again) == after and not list(again.rglob("*.part*"))
    assert "was started with another student_minutes" in refused(command(*given, "--student-minutes", 9))
    fast, best = (
        command("smt-decode", again, "-q", "--quality", quality, input="The nurses hear her.\n")
        for quality in ("fast", "best")
    )
    assert fast.returncode == best.returncode == 0 and fast.stdout.count("\n") == 1
    assert (
        fast.stdout == command("nmt-translate", again / "fast", "-q", input="The nurses hear her.\n").stdout
    )


@pytest.mark.slow  # five minutes are what it is about
def test_a_budget_of_five_minutes_is_kept(tmp_path: Path, command: Command) -> None:
    """On a few thousand pairs of the quickstart's grammar. What counts is processor time, whatever else the
    machine does: two processors have ten minutes of it in five."""
    pairs = corpus.sentences(grammar.Writer(7), 4500)
    for name, some in (("train", pairs[:4000]), ("dev", pairs[4000:])):
        for side, language in (("source", "en"), ("target", "fr")):
            text = "".join(grammar.text(getattr(pair, side)) + "\n" for pair in some)
            (tmp_path / f"{name}.{language}").write_text(text, encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = command(
        "smt-build", "--source", "train.en", "--target", "train.fr", "--dev-source", "dev.en", "--dev-target",
        "dev.fr", "--output", "system", "--budget", "5m", "-q", cwd=tmp_path, installed=True,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    found = hybrid.read(tmp_path / "system")
    planned = plan_file.read_plan(tmp_path / "system" / "build" / plan.FILE)
    assert planned.networks and planned.total() <= 300  # on a quiet machine the joint model and the CSLM
    assert all(f"networks/{network.name}/config.yaml" in found.parts for network in planned.networks)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert took < 1.2 * 300, f"{took:.0f} s of processor time"


# ---- test smt tune -----------------------------------------------------------------------------------------
# smt-tune as installed.


TUNE = ["--stack", 10, "--iterations", 3, "--restarts", 2, "--n-best", 30, "-q", "--final-seeds", 2]


@pytest.fixture(scope="module")
def tuned(smt_model: Path, tmp_path_factory: pytest.TempPathFactory, command: Command) -> Path:
    folder = tmp_path_factory.mktemp("tuned")
    done = command(
        "smt-tune", smt_model / "model", "-s", smt_model / "dev.en", "-r", smt_model / "dev.fr", "-o",
        folder / "moses.ini", "--work", folder / "work", *TUNE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.ci
def test_tuning_keeps_the_best_decoding(tuned: Path, smt_model: Path, command: Command) -> None:
    """BLEU of the tuned weights' decoding is the best of all iterations, the first (untuned) one among them,
    and what the header says."""
    scores = [float(np.load(path)["bleu"]) for path in sorted((tuned / "work").glob("??.npz"))]
    assert len(scores) >= 2 and max(scores) >= scores[0]
    header = (tuned / "moses.ini").read_text().split("\n")[0]
    assert header.startswith(f"# BLEU {100 * max(scores):.2f} on ")
    done = command(
        "smt-decode", tuned / "moses.ini", "-i", smt_model / "dev.en", "--stack", 10
    )  # its paths lead back to the model
    assert done.returncode == 0, done.stderr
    reference = (smt_model / "dev.fr").read_text(encoding="utf-8").rstrip("\n").split("\n")
    found = corpus_bleu(done.stdout.rstrip("\n").split("\n"), [reference], "none").score
    assert abs(found - 100 * max(scores)) < 0.5  # weights are printed with six digits
    assert (tuned / "work" / "seed-2.weights").exists()


@pytest.mark.ci
@pytest.mark.parametrize("trace", ["tune.json", "00.npz", "01.npz"])
def test_killed_tuning_goes_on(
    trace: str, tuned: Path, smt_model: Path, tmp_path: Path, command: Command
) -> None:
    given = [
        "smt-tune", smt_model / "model", "-s", smt_model / "dev.en", "-r", smt_model / "dev.fr", "-o",
        tmp_path / "moses.ini", "--work", tmp_path / "work",
    ]  # fmt: skip
    killed_at(trace, tmp_path / "work", *given, *TUNE)
    done = command(*given, *TUNE)
    assert done.returncode == 0, done.stderr
    for name in ("moses.ini", "work/weights", "work/seed-1.weights", "work/seed-2.weights"):
        assert (tmp_path / name).read_bytes() == (tuned / name).read_bytes()
