"""The student: a small Transformer that learns from the finished system, and translates much faster.

It is trained on the text that distillation.py makes, for as many updates as there is time for by measured
speed. That is decided once: a resumed build reads the decision.

student/student.json    what must not change between starts
student/training.json   how long the training takes
student/fast            the training, a run of nmt-train
student/exported        what the system's folder gets: a folder of nmt-export, if it can be made, or a run
student/dev.target student/evaluation.json    its translations of the development set, and scores
student/packaged        written last
"""

import importlib.util
import logging
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from nmt.io import files, manifest
from nmt.io.progress import duration
from nmt.lazy import LazyPart
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.framed import NO_ENGINE
from nmt.runs.run import Run
from nmt.text.inspection import inspect_pairs
from nmt.training import config_file, cost
from nmt.training.proposal import MOST_WARM_UP, TRANSFORMER
from nmt.training.train import run_training
from nmt.work import store
from nmt.work.store import Step
from smt_bridge.build import budget, evaluation
from smt_bridge.build.config import Build, read_record, write_record
from smt_bridge.build.corpus import FOLDER as CORPUS
from smt_bridge.build.corpus import BuildTexts, sides
from smt_bridge.build.distillation import (
    CHUNKS,
    FOLDER,
    PARTIAL,
    PLAN,
    SOURCE,
    STACKS,
    TARGET,
    TRANSLATING,
    Teacher,
    describe_text,
    read_plan,
    tables_seconds,
    translate_text,
)
from smt_bridge.build.plan import PARALLEL_TRAININGS, Rates
from smt_bridge.build.training import LOGS, Content, log_to, run_tasks, trained_updates
from smt_bridge.build.tuning import STACK, sample_lines
from smt_bridge.hybrid.folder import FAST
from smt_bridge.tuning import loop
from smt_bridge.tuning.bleu import Stats

log = logging.getLogger(__name__)

SETTINGS, TRAINING = f"{FOLDER}/student.json", f"{FOLDER}/training.json"
RUN, EXPORTED = f"{FOLDER}/{FAST}", f"{FOLDER}/exported"
DONE = f"{EXPORTED}/{run_directory.VERSION_FILE}"
OUTPUT, EVALUATION, PACKAGED = (f"{FOLDER}/{name}" for name in ("dev.target", "evaluation.json", "packaged"))
EXPORT = LazyPart("nmt.runs.ctranslate2_export:export")  # imports ctranslate2
QUANTIZATION = "int8"

RATED = 50  # lines of the development set by which the system's speed is measured
VALIDATIONS = 20
LEAST = 50  # updates of a training, however little time is left
PROCESSES = PARALLEL_TRAININGS  # that train the student; two threads of one are hardly faster than one thread
LOOPBACK = ("lo", "lo0")  # network interface by which the processes meet, on Linux and macOS
MEASURED = cost.SECONDS  # seconds for which the speed of the training is measured


# ---- settings and plan -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StudentRecipe:
    """Settings of the student for texts of at least `pairs` pairs, besides those of the preset."""

    pairs: int  # size of the smallest text that gets the recipe
    batch: int  # sentences of an update, a share of them for each process
    most: float  # epochs, however much time there is
    merges: int  # of BPE
    rate: float  # learning rate


# The preset's own batch of 256 learns more slowly: after two epochs of Multi30k greedy dev BLEU is 15.8, with
# 128 pairs 25.9, with 64 23.9. The rate goes with the root of the batch. The others have not been compared.
RECIPES = (
    StudentRecipe(15_000, batch=128, most=70, merges=8000, rate=0.0035),
    StudentRecipe(4000, batch=128, most=100, merges=4000, rate=0.0035),
    StudentRecipe(0, batch=64, most=150, merges=2000, rate=0.0025),
)


@dataclass(frozen=True)
class StudentTraining:
    """How long the student is trained."""

    updates: int
    every: int  # updates between two validations
    warmup: int  # updates
    epochs: float
    seconds: float  # estimated


@dataclass(frozen=True)
class StudentEvaluation:
    """The student beside the system that taught it: cased BLEU, 0 to 1, on the lines of the development set
    on which systems are compared. Their raw text is tokenized as for the tables."""

    teacher: str  # phrase-based or hybrid
    teacher_bleu: float
    bleu: float
    p_value: float  # p-value of the teacher's gain over the student, see `evaluation.p_value`
    teacher_rate: float  # sentences a CPU second
    rate: float


def recipe(pairs: int) -> StudentRecipe:
    return next(row for row in RECIPES if pairs >= row.pairs)


def open_folder(build: Build) -> None:
    """Check and record what must not change between starts. ConfigError for a student that was started with
    other settings, and for languages that nmt-train does not support."""
    config_file.from_mapping(training_content(build, build.plan.sizes.pairs), TRANSFORMER)
    path, text = build.work / SETTINGS, build.config.monolingual_source
    settings = {
        "student_minutes": build.config.student_minutes,
        "student_references": build.config.student_references,
        "monolingual_source": manifest.digest(text) if text else "",
    }
    if not store.is_started(path, settings, path.parent, "the same as before"):
        path.parent.mkdir(exist_ok=True)
        store.write_settings(path, settings)
    if importlib.util.find_spec("ctranslate2") is None:
        log.warning("the student will be computed by torch, which is slower: %s", NO_ENGINE)


def read_training(work: Path) -> StudentTraining | None:
    """Read how long the training takes; None if that is not decided yet. `work`: folder of the build."""
    path = work / TRAINING
    return read_record(path, StudentTraining) if path.exists() else None


def read_evaluation(build: Build) -> StudentEvaluation | None:
    """Read the student's scores; None if there is no student, or not yet."""
    path = build.work / EVALUATION
    return read_record(path, StudentEvaluation) if path.exists() else None


def planned_seconds(build: Build) -> dict[str, float]:
    """Estimated seconds of the steps of the student: step -> seconds, in order; empty if none is asked for.
    Before the speeds are measured, the training gets all time that is left, at least that of measuring."""
    if not build.config.student:
        return {}
    plan, rates, whole = build.plan, Rates(), 60 * build.config.student_minutes
    neural = rates.searching + sum(network.search for network in plan.networks)
    length = plan.sizes.source_words / max(1, plan.sizes.pairs)  # words of a line
    packaging = 2 * rates.starting + RATED * length * neural / plan.speed
    decided, training = read_plan(build), read_training(build.work)
    all_lines = plan.sizes.source_words * neural * STACKS[0] / STACK / rates.two_threads / plan.speed
    tables = tables_seconds(plan)
    translating = tables + decided.seconds if decided else min(TRANSLATING * whole, tables + all_lines)
    return {
        "student-text": round(translating),
        "student": round(training.seconds if training else max(MEASURED, whole - translating - packaging)),
        "student-package": round(packaging),
    }


def plan_lines(build: Build) -> Iterator[str]:
    """Yield a description of the plan of the student, line by line; nothing if none is asked for."""
    seconds, plan, training = planned_seconds(build), read_plan(build), read_training(build.work)
    if not seconds:
        return
    yield ""
    if plan:
        yield f"student: {describe_text(plan)}"
    else:
        yield "student: learns from the system's translations of all lines for which there is time"
    if training:
        yield f"student: {TRANSFORMER}, {training.updates:,} updates, {training.epochs:g} epochs"
    for step, value in seconds.items():
        yield f"{step:15} {duration(value)}"
    minutes = duration(60 * build.config.student_minutes)
    yield f"{'the student':15} {duration(sum(seconds.values()))} of {minutes}, besides the budget"


# ---- training ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StudentTask:
    """The training of the student. The current directory must be the folder of the build."""

    content: Content  # of the configuration, without its length
    seconds: float  # for the training
    most: float  # epochs
    measured: float  # seconds for which its speed is measured
    port: int  # at which the processes meet
    rank: int = 0  # of the process, from 0; the first one decides, saves and exports


def train(build: Build) -> None:
    """Measure how fast the student is trained, train it as long as the time that is left allows, and export
    it. UserError if a process dies, and as from training."""
    (build.work / LOGS).mkdir(exist_ok=True)
    (build.work / CHUNKS).unlink(missing_ok=True)
    shutil.rmtree(build.work / PARTIAL, ignore_errors=True)
    pairs = files.count_lines(str(build.work / SOURCE))
    left = 60 * build.config.student_minutes - budget.read_times(build.work).get("student-text", 0.0)
    left -= planned_seconds(build)["student-package"]
    task = StudentTask(training_content(build, pairs), left, recipe(pairs).most, MEASURED, free_port())
    tasks = [replace(task, rank=rank) for rank in range(PROCESSES)]
    if read_training(build.work) is None:
        # Measuring draws random numbers and sets up torch, so that it is done in processes of their own.
        run_tasks(build, plan_training, tasks, PROCESSES)
    run_tasks(build, train_student, tasks, PROCESSES)


def free_port() -> int:
    """A port of this machine that no program listens to."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def training_content(build: Build, pairs: int) -> Content:
    """The configuration of the training, without its length. `pairs`: of the student's text."""
    settings, chosen = sides(build.config), recipe(pairs)
    text = {
        name: {"language": side.language, "case": side.case}
        for name, side in zip(("source", "target"), settings, strict=True)
    }
    return {
        "run": RUN,
        "seed": build.config.seed,
        "threads": 1,
        "matmul": build.plan.matmul,
        "data": {
            "train_source": SOURCE,
            "train_target": TARGET,
            "dev_source": f"{CORPUS}/raw.source",
            "dev_target": f"{CORPUS}/raw.target",
            "bpe_merges": chosen.merges,
            **text,
        },
        "training": {
            "batch_size": chosen.batch // PROCESSES, "update_batches": PROCESSES, "schedule": "linear",
            "max_epochs": 0, "patience": 0, "keep": 1, "dev_beam": 1, "metric": "bleu", "tensorboard": False,
            "max_steps": LEAST, "warmup": 0, "learning_rate": chosen.rate,
        },
    }  # fmt: skip


def plan_training(task: StudentTask) -> None:
    """Measure the speed of the training while the other processes do, too, and decide how long it takes: the
    first process writes TRAINING."""
    config = config_file.from_mapping(task.content, TRANSFORMER)
    with tempfile.TemporaryDirectory() as folder:
        report = inspect_pairs(SOURCE, TARGET)
        measured = cost.measure(config, report.sides, Path(folder), task.measured)
    if task.rank == 0:
        together = replace(measured, seconds=measured.seconds / PROCESSES)  # they share the work of an update
        write_record(Path(TRAINING), training_length(together, task.seconds, task.most))


def training_length(measured: cost.Cost, seconds: float, most: float) -> StudentTraining:
    """Decide how long the training takes. `seconds`: available for it; `most`: maximum number of epochs."""
    validating = VALIDATIONS * measured.validation_seconds
    per_update = measured.epoch_units / measured.epoch_updates * measured.seconds / measured.units
    in_time = int((seconds - validating) / per_update)
    updates = max(LEAST, min(in_time, round(most * measured.epoch_updates)))
    return StudentTraining(
        updates=updates,
        every=max(1, updates // VALIDATIONS),
        warmup=int(MOST_WARM_UP * updates),
        epochs=round(updates / measured.epoch_updates, 1),
        seconds=round(updates * per_update + validating, 1),
    )


def train_student(task: StudentTask) -> None:
    """Train or resume the student together with the other processes; then the first exports its best
    checkpoint, or copies it without CTranslate2."""
    length, exported = read_training(Path()), Path(EXPORTED)
    assert length
    training = cast(Content, task.content["training"]) | {
        "max_steps": length.updates, "validate_every": length.every, "warmup": length.warmup,
    }  # fmt: skip
    content = task.content | {"training": training}
    os.environ |= team_environment(task)
    with log_to(FOLDER) if task.rank == 0 else nullcontext():
        run_training(config_file.from_mapping(content, TRANSFORMER))
        if task.rank > 0 or run_directory.exists(exported):
            return
        if importlib.util.find_spec("ctranslate2"):
            export = cast(Callable[[Path, Path, str, str], str], EXPORT.load())
            export(Path(RUN), exported, "best", QUANTIZATION)
        else:
            checkpoint.write_average(Path(RUN), exported, [run_directory.find_step(Path(RUN), "best")])


def team_environment(task: StudentTask) -> dict[str, str]:
    """The environment in which torchrun would start this process; see nmt/training/parallel.py."""
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(task.port)}
    loopback = [name for _, name in socket.if_nameindex() if name in LOOPBACK]
    interface = {"GLOO_SOCKET_IFNAME": loopback[0]} if loopback else {}
    numbers = {"RANK": task.rank, "LOCAL_RANK": task.rank, "WORLD_SIZE": PROCESSES}
    return address | interface | {name: str(number) for name, number in numbers.items()}


def share(build: Build) -> float:
    """Completed share, 0 to 1, of the training, according to its log."""
    length = read_training(build.work)
    return min(1.0, trained_updates(build.work / RUN) / length.updates) if length else 0.0


# ---- evaluation --------------------------------------------------------------------------------------------


def evaluate(build: Build) -> None:
    """Translate the development set with the student, compare it with the system's translations, and measure
    the speed of both. Writes OUTPUT and EVALUATION."""
    teacher_name = evaluation.read_evaluation(build).chosen
    target = BuildTexts(build.work).sides(build.config)[1]
    sources, raw = (evaluation.comparison_lines(build, f"raw.{side}") for side in ("source", "target"))
    references = loop.make_references([[" ".join(target.words(line)) for line in raw]])

    def statistics(lines: Sequence[str]) -> Stats:
        return evaluation.corpus_statistics([" ".join(target.words(line)) for line in lines], references)

    run = Run.load(build.work / EXPORTED, threads=1)
    run.translate(sources[:1])
    lines, seconds = cpu_seconds(lambda: run.translate(sources, evaluation.BEAM))
    teacher, few = Teacher(build), sample_lines(sources, RATED)
    decoder = teacher.load(teacher.config)
    decoder.translate(few[:1])
    _, teacher_seconds = cpu_seconds(lambda: decoder.translate(few))
    teacher_rows = statistics(evaluation.raw_translations(build, teacher_name))
    rows = statistics(lines)
    result = StudentEvaluation(
        teacher=teacher_name,
        teacher_bleu=evaluation.corpus_bleu(teacher_rows),
        bleu=evaluation.corpus_bleu(rows),
        p_value=evaluation.p_value(teacher_rows, rows),
        teacher_rate=len(few) / teacher_seconds,
        rate=len(lines) / seconds,
    )
    files.write_text(build.work / OUTPUT, lines)
    write_record(build.work / EVALUATION, result)
    log.info("%s", describe(result))


def cpu_seconds(work: Callable[[], list[str]]) -> tuple[list[str], float]:
    """Do some work; returns its result and the CPU seconds that it took, those of all threads."""
    began = time.process_time()
    result = work()
    return result, max(1e-6, time.process_time() - began)


def describe(result: StudentEvaluation) -> str:
    """Compare the student with its teacher: a sentence without a period."""
    return (
        f"student: BLEU {100 * result.bleu:.2f} on the development set, the {result.teacher} system "
        f"{100 * result.teacher_bleu:.2f} (p = {result.p_value:.3f}); {result.rate:.1f} sentences a CPU "
        f"second instead of {result.teacher_rate:.1f}"
    )


STEPS = (
    Step("student-text", TARGET, translate_text, (PLAN, SOURCE, TARGET)),
    Step("student", DONE, train, (TRAINING, f"{EXPORTED}/*")),
)
