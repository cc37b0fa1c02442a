"""Run a build step by step.

A step is finished once its result exists and the checksums of its files are in the manifest. Finished steps
are not repeated: a build that is killed at any moment and started again ends with the same system.
"""

import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from nmt.compute import device
from nmt.errors import ConfigError, UserError
from nmt.io import locks, manifest
from nmt.io.progress import Progress, duration
from nmt.work import folder as job_folder
from smt_bridge.build import corpus, evaluation, package, plan, plan_file, tables, training, tuning
from smt_bridge.build.clock import BuildClock
from smt_bridge.build.config import (
    WORK,
    Build,
    BuildConfig,
    check_files,
    forget_files,
    matching_files,
    record_files,
    recorded_files,
)
from smt_bridge.build.plan import Plan
from smt_bridge.hybrid import folder as hybrid

# ---- messages of other processes ---------------------------------------------------------------------------


log = logging.getLogger(__name__)


class LogFollower:
    """Log what other processes append to the log files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.read = {path: path.stat().st_size for path in self.paths()}

    def paths(self) -> list[Path]:
        """Log files, including those that appeared since."""
        return sorted(self.folder.glob("*.log"))

    def show(self) -> None:
        """Log new lines: `[time] LEVEL message` in `attention.log` becomes `attention: message`."""
        for path in self.paths():
            with open(path, "rb") as stream:
                stream.seek(self.read.get(path, 0))
                new = stream.read()
            complete = new[: new.rfind(b"\n") + 1]
            self.read[path] = self.read.get(path, 0) + len(complete)
            for line in complete.decode("utf-8", "replace").split("\n")[:-1]:
                level, _, message = line.partition("] ")[2].partition(" ")
                number = logging.getLevelNamesMapping().get(level, logging.INFO)
                log.log(number, "%s: %s", path.stem, message or line)


# ---- steps -------------------------------------------------------------------------------------------------


SETTINGS = "build.json"
UNIT = "planned seconds"


@dataclass(frozen=True)
class BuildStep:
    """A step of a build.

    `result` is the file that it writes last, `files` are patterns of all files whose checksums are recorded,
    both relative to the working folder. The last step has no `files`: the system has a manifest of its own.
    `share` returns its completed share.
    """

    name: str
    result: str
    work: Callable[[Build], None]
    files: tuple[str, ...] = ()
    share: Callable[[Build], float] = lambda build: build.share

    def finished(self, work: Path) -> bool:
        """Whether nothing is left to do."""
        listed = not self.files or self.result in (manifest.read(work) or {})
        return listed and (work / self.result).exists()


DEV = tables.DEV
STEPS = (
    BuildStep("corpus", f"{corpus.FOLDER}/{corpus.COUNTS}", corpus.prepare, (f"{corpus.FOLDER}/*",)),
    BuildStep("alignment", tables.ALIGNMENT, tables.align, (tables.ALIGNMENT, tables.DEV_ALIGNMENT)),
    BuildStep("model", f"{tables.MODEL}/moses.ini", tables.train, (f"{tables.MODEL}/*",)),
    BuildStep(
        "filter", f"{DEV}/{tables.BASE}", tables.filter_to_dev, (f"{DEV}/*.gz", f"{DEV}/{tables.BASE}")
    ),
    BuildStep(
        "tune",
        f"{DEV}/{tuning.PHRASE_BASED}.ini",
        tuning.tune_phrase_based,
        (f"{DEV}/{tuning.PHRASE_BASED}.*",),
    ),
    BuildStep("networks", training.DONE, training.train_all, (f"{training.NETWORKS}/**/*",), training.share),
    BuildStep("tune-hybrid", f"{DEV}/{tuning.HYBRID}.ini", tuning.tune_hybrid, (f"{DEV}/{tuning.HYBRID}.*",)),
    BuildStep(
        "evaluate", evaluation.FILE, evaluation.evaluate, (evaluation.FILE, f"{DEV}/{evaluation.OUTPUTS}/*")
    ),
    BuildStep("package", f"../{hybrid.FILE}", package.package),
)


def plan_path(config: BuildConfig) -> Path:
    """Path of the plan in the output folder of a build."""
    return Path(config.output) / WORK / plan.FILE


def is_started(config: BuildConfig) -> bool:
    """Whether a build was started in the output folder."""
    return (Path(config.output) / WORK / SETTINGS).exists()


def load_or_make_plan(config: BuildConfig) -> Plan:
    """The plan of a started build, else the one given with --plan, else a new one for the texts and this
    machine."""
    own = plan_path(config)
    if own.exists() or config.plan:
        path = own if own.exists() else config.plan
        plan_read = plan_file.read(path)
        training.check_networks(Build(config, plan_read), str(path))
        return plan_read
    sizes = corpus.survey(config)
    speed, back_end = plan.grade_speed(plan.measure_speed()), device.choose_back_end().back_end
    return plan.decide(sizes, config.budget, speed, back_end)


def build(config: BuildConfig, show: Callable[[str], None], show_bar: bool = False) -> Build:
    """Run all missing steps. `show` receives the lines of the plan.

    ConfigError for a folder that was started with other settings or texts, or that is in use; DataError for
    texts that cannot be used.
    """
    folder = Path(config.output)
    check_output_folder(folder)
    with locks.locked(folder, "smt-build"):
        check_output_folder(folder)
        current_plan = start_or_resume(folder, config)
        for line in plan.plan_lines(
            current_plan, plan.seconds_with_workers(current_plan, config.workers), config.budget
        ):
            show(line)
        current = Build(config, current_plan)
        take_steps(current, show_bar)
        if (folder / hybrid.FILE).exists():
            hybrid.verify(hybrid.read(folder))
    return current


def check_output_folder(folder: Path) -> None:
    """ConfigError for a folder with files that no build wrote."""
    work = folder / WORK
    only_ours = not folder.is_dir() or all(path.name in (WORK, locks.FILE) for path in folder.iterdir())
    if not (work / SETTINGS).exists() and not (only_ours and job_folder.is_ours(work, SETTINGS)):
        raise ConfigError(f"{folder}: is not empty, and not begun by smt-build; name another folder")


def start_or_resume(folder: Path, config: BuildConfig) -> Plan:
    """Record settings and plan of a new build, or check those of a resumed one; remove unfinished files."""
    settings, path = resume_settings(config), plan_path(config)
    recorded = job_folder.read_settings(folder / WORK / SETTINGS)
    if recorded is not None and (changed := job_folder.changed_settings(recorded, settings)):
        raise ConfigError(
            f"{folder}: was begun with another {', '.join(changed)}; name another folder, or remove this one "
            "to start anew"
        )
    if recorded is not None:
        repeat_incomplete(folder / WORK)
    current_plan = load_or_make_plan(config)
    if recorded is None:
        job_folder.write_settings(folder / WORK / SETTINGS, settings)
    if not path.exists():
        plan_file.write(path, current_plan)
    remove_unfinished(folder)
    if plan.FILE not in (manifest.read(folder / WORK) or {}):
        record_files(folder / WORK, [SETTINGS, plan.FILE])
    return current_plan


def repeat_incomplete(work: Path) -> None:
    """Invalidate steps whose files were removed. DataError for a file that was changed."""
    missing = set(check_files(work, (SETTINGS, plan.FILE)))
    for step in STEPS:
        names = recorded_files(work, step.files)
        if missing & names:
            forget_files(work, names)


def remove_unfinished(folder: Path) -> None:
    """Delete unfinished files of killed steps; in the system's own folder only files that a build writes
    there."""
    unfinished = [path for name in package.FILES for path in folder.glob(f"{name}.part*")]
    for path in [*unfinished, *(folder / WORK).rglob("*.part*")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def resume_settings(config: BuildConfig) -> dict[str, object]:
    """Settings that must not change between starts of a build; texts by their checksums."""
    texts = ("source", "target", "dev_source", "dev_target", "monolingual", "glossary", "plan")
    digests = {name: manifest.digest(path) if (path := getattr(config, name)) else "" for name in texts}
    languages = [side.language for side in corpus.sides(config)]
    return digests | {"languages": languages, "budget": config.budget, "seed": config.seed}


def planned_steps(current: Plan) -> list[BuildStep]:
    """Steps that the plan includes, in the order they run."""
    return [step for step in STEPS if step.name in current.seconds]


def next_step(build: Build) -> BuildStep | None:
    """The first unfinished step; None at the end."""
    return next((step for step in planned_steps(build.plan) if not step.finished(build.work)), None)


def take_steps(build: Build, show_bar: bool) -> None:
    """Run the unfinished steps in order, shortening later ones when the build is behind schedule."""
    clock, workers = BuildClock(build.work), build.config.workers
    budget = max(build.config.budget, sum(plan.seconds_with_workers(build.plan, workers).values()))
    with Progress(None, UNIT, show_bar, "building", left=clock.left) as progress:
        while step := next_step(build):
            shorten_if_late(build, step, clock, budget)
            if step not in planned_steps(build.plan):
                continue
            steps, seconds = planned_steps(build.plan), plan.seconds_with_workers(build.plan, workers)
            number, planned = steps.index(step) + 1, seconds[step.name]
            done, total = sum(seconds[step.name] for step in steps[: number - 1]), sum(seconds.values())
            clock.start(step.name, seconds)
            build.share = 0.0
            log.info("step %d of %d: %s, about %s", number, len(steps), step.name, duration(planned))
            with follow_step(build, step, clock, progress, (done, total)):
                step.work(build)
            record_files(build.work, matching_files(build.work, step.files))
            clock.stop()
            log.info("step %d of %d: %s, %s", number, len(steps), step.name, duration(clock.took[step.name]))


def shorten_if_late(build: Build, step: BuildStep, clock: BuildClock, budget: float) -> None:
    """Shorten the plan before a long step if the build is late; record the decision, so that it is made
    once."""
    if build.config.plan or step.name not in plan.SHORTENED_STEPS or step.name in build.plan.decisions:
        return
    pace = clock.pace()
    if build.config.keep_plan:
        pace = 0.0
    changed, why = plan.shorten_late(build.plan, step.name, clock.spent(), budget, pace, build.config.workers)
    if why:
        log.warning("%s; --keep-plan takes the time instead", why)
    part = build.work / f"{plan.FILE}.part"
    plan_file.write(part, changed)
    manifest.publish(build.work, {plan.FILE: part})
    build.plan = changed


@contextmanager
def follow_step(
    build: Build, step: BuildStep, clock: BuildClock, progress: Progress, planned: tuple[float, float]
) -> Iterator[None]:
    """Report progress and messages of other processes every second while a step runs.

    `planned`: seconds of all earlier steps, and of all steps.
    """
    stop, logs = threading.Event(), LogFollower(build.work / training.LOGS)
    done_before, total = planned

    def follow() -> None:
        while not stop.wait(1.0):
            with suppress(UserError):  # a full disk: the step itself will say so
                clock.tick(step.share(build))
            progress.reach(max(progress.done, round(done_before + clock.done())), round(total))
            progress.look()
            logs.show()

    progress.reach(max(progress.done, round(done_before)), round(total))
    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        logs.show()
