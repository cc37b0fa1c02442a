"""A build, step by step. A step is finished once its result is there and the checksums of what it made are
noted, so that finished steps are not repeated: a build that is killed at any moment and started again ends
with the same system."""

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
# The messages that other processes write to files, shown by this one: a line there is a line here.


log = logging.getLogger(__name__)


class Followed:
    """The log files of a folder, from where they end now."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.read = {path: path.stat().st_size for path in self.paths()}

    def paths(self) -> list[Path]:
        """The files, some of which may come later."""
        return sorted(self.folder.glob("*.log"))

    def show(self) -> None:
        """Log what is new: `[time] LEVEL message` of `attention.log` as `attention: message`."""
        for path in self.paths():
            with open(path, "rb") as stream:
                stream.seek(self.read.get(path, 0))
                new = stream.read()
            whole = new[: new.rfind(b"\n") + 1]
            self.read[path] = self.read.get(path, 0) + len(whole)
            for line in whole.decode("utf-8", "replace").split("\n")[:-1]:
                level, _, message = line.partition("] ")[2].partition(" ")
                number = logging.getLevelNamesMapping().get(level, logging.INFO)
                log.log(number, "%s: %s", path.stem, message or line)


# ---- steps -------------------------------------------------------------------------------------------------


SETTINGS = "build.json"
UNIT = "planned seconds"


@dataclass(frozen=True)
class Step:
    """A step of a build. `result` is the file that it writes last, `files` are patterns of all files whose
    checksums are noted, both below the folder of the build; the last step has none, as the system has its own
    list. `share`: how much of it is done."""

    name: str
    result: str
    work: Callable[[Build], None]
    files: tuple[str, ...] = ()
    share: Callable[[Build], float] = lambda build: build.share

    def finished(self, work: Path) -> bool:
        """Is there nothing left to do?"""
        listed = not self.files or self.result in (manifest.read(work) or {})
        return listed and (work / self.result).exists()


DEV = tables.DEV
STEPS = (
    Step("corpus", f"{corpus.FOLDER}/{corpus.COUNTS}", corpus.prepare, (f"{corpus.FOLDER}/*",)),
    Step("alignment", tables.ALIGNMENT, tables.align, (tables.ALIGNMENT, tables.DEV_ALIGNMENT)),
    Step("model", f"{tables.MODEL}/moses.ini", tables.train, (f"{tables.MODEL}/*",)),
    Step("filter", f"{DEV}/{tables.BASE}", tables.filter_to_dev, (f"{DEV}/*.gz", f"{DEV}/{tables.BASE}")),
    Step(
        "tune",
        f"{DEV}/{tuning.PHRASE_BASED}.ini",
        tuning.tune_phrase_based,
        (f"{DEV}/{tuning.PHRASE_BASED}.*",),
    ),
    Step("networks", training.DONE, training.train_all, (f"{training.NETWORKS}/**/*",), training.share),
    Step("tune-hybrid", f"{DEV}/{tuning.HYBRID}.ini", tuning.tune_hybrid, (f"{DEV}/{tuning.HYBRID}.*",)),
    Step(
        "evaluate", evaluation.FILE, evaluation.evaluate, (evaluation.FILE, f"{DEV}/{evaluation.OUTPUTS}/*")
    ),
    Step("package", f"../{hybrid.FILE}", package.package),
)


def kept_plan(config: BuildConfig) -> Path:
    """Where the plan of a build is kept."""
    return Path(config.output) / WORK / plan.FILE


def is_begun(config: BuildConfig) -> bool:
    """Was a build begun in the folder of the output?"""
    return (Path(config.output) / WORK / SETTINGS).exists()


def plan_of(config: BuildConfig) -> Plan:
    """The plan of a build that was begun; of a new one that of another build, or one that suits the texts and
    this machine."""
    kept = kept_plan(config)
    if kept.exists() or config.plan:
        path = kept if kept.exists() else config.plan
        plan_read = plan_file.read(path)
        training.check(Build(config, plan_read), str(path))
        return plan_read
    sizes = corpus.survey(config)
    speed, back_end = plan.grade_speed(plan.measure_speed()), device.choose_back_end().back_end
    return plan.decide(sizes, config.budget, speed, back_end)


def build(config: BuildConfig, show: Callable[[str], None], show_bar: bool = False) -> Build:
    """Take the steps that are missing. `show` is given the lines of the plan.

    ConfigError for a folder that was begun with other settings or texts, or that is in use; DataError for
    texts that cannot be used.
    """
    folder = Path(config.output)
    check_place(folder)
    with locks.locked(folder, "smt-build"):
        check_place(folder)
        made = begin(folder, config)
        for line in plan.shown(made, plan.with_workers(made, config.workers), config.budget):
            show(line)
        found = Build(config, made)
        take_steps(found, show_bar)
        if (folder / hybrid.FILE).exists():
            hybrid.verify(hybrid.read(folder))
    return found


def check_place(folder: Path) -> None:
    """ConfigError for a folder with files in it that no build made."""
    work = folder / WORK
    alone = not folder.is_dir() or all(path.name in (WORK, locks.FILE) for path in folder.iterdir())
    if not (work / SETTINGS).exists() and not (alone and job_folder.is_ours(work, SETTINGS)):
        raise ConfigError(f"{folder}: is not empty, and not begun by smt-build; name another folder")


def begin(folder: Path, config: BuildConfig) -> Plan:
    """Record what is built from what and by which plan, or check that it is the same; remove what a killed
    step left behind."""
    settings, kept = settings_of(config), kept_plan(config)
    before = job_folder.read_settings(folder / WORK / SETTINGS)
    if before is not None and (changed := job_folder.changed_settings(before, settings)):
        raise ConfigError(
            f"{folder}: was begun with another {', '.join(changed)}; name another folder, or remove this one "
            "to start anew"
        )
    if before is not None:
        repeat_incomplete(folder / WORK)
    made = plan_of(config)
    if before is None:
        job_folder.write_settings(folder / WORK / SETTINGS, settings)
    if not kept.exists():
        plan_file.write(kept, made)
    sweep(folder)
    if plan.FILE not in (manifest.read(folder / WORK) or {}):
        record_files(folder / WORK, [SETTINGS, plan.FILE])
    return made


def repeat_incomplete(work: Path) -> None:
    """Have steps whose files were removed taken again. DataError for a file that was changed."""
    gone = set(check_files(work, (SETTINGS, plan.FILE)))
    for step in STEPS:
        names = recorded_files(work, step.files)
        if gone & names:
            forget_files(work, names)


def sweep(folder: Path) -> None:
    """Remove what killed steps left unfinished; in the system's own folder of the files of a system only."""
    ours = [left for name in package.FILES for left in folder.glob(f"{name}.part*")]
    for left in [*ours, *(folder / WORK).rglob("*.part*")]:
        shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)


def settings_of(config: BuildConfig) -> dict[str, object]:
    """What a resumed build must have in common with the first start: texts by their content."""
    texts = ("source", "target", "dev_source", "dev_target", "monolingual", "glossary", "plan")
    digests = {name: manifest.digest(path) if (path := getattr(config, name)) else "" for name in texts}
    languages = [one.language for one in corpus.sides(config)]
    return digests | {"languages": languages, "budget": config.budget, "seed": config.seed}


def steps_of(made: Plan) -> list[Step]:
    """The steps of a plan."""
    return [step for step in STEPS if step.name in made.seconds]


def next_step(build: Build) -> Step | None:
    """The first step that is not finished; None at the end."""
    return next((step for step in steps_of(build.plan) if not step.finished(build.work)), None)


def take_steps(build: Build, show_bar: bool) -> None:
    """Take each step that is not finished."""
    clock, workers = BuildClock(build.work), build.config.workers
    budget = max(build.config.budget, sum(plan.with_workers(build.plan, workers).values()))
    with Progress(None, UNIT, show_bar, "building", left=clock.left) as progress:
        while step := next_step(build):
            adapt(build, step, clock, budget)
            if step not in steps_of(build.plan):
                continue
            steps, seconds = steps_of(build.plan), plan.with_workers(build.plan, workers)
            number, planned = steps.index(step) + 1, seconds[step.name]
            done, total = sum(seconds[step.name] for step in steps[: number - 1]), sum(seconds.values())
            clock.start(step.name, seconds)
            build.share = 0.0
            log.info("step %d of %d: %s, about %s", number, len(steps), step.name, duration(planned))
            with following(build, step, clock, progress, (done, total)):
                step.work(build)
            record_files(build.work, matching_files(build.work, step.files))
            clock.stop()
            log.info("step %d of %d: %s, %s", number, len(steps), step.name, duration(clock.took[step.name]))


def adapt(build: Build, step: Step, clock: BuildClock, budget: float) -> None:
    """Before a long step: shorten the plan where the build is behind it, and keep what was decided, so that
    it is decided once."""
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
def following(
    build: Build, step: Step, clock: BuildClock, progress: Progress, planned: tuple[float, float]
) -> Iterator[None]:
    """While a step works: its share of the progress, second by second, and messages of its processes.
    `planned`: seconds before it, and of all steps."""
    stop, logs = threading.Event(), Followed(build.work / training.LOGS)
    before, total = planned

    def follow() -> None:
        while not stop.wait(1.0):
            with suppress(UserError):  # a full disk: the step itself will say so
                clock.tick(step.share(build))
            progress.reach(max(progress.done, round(before + clock.done())), round(total))
            progress.look()
            logs.show()

    progress.reach(max(progress.done, round(before)), round(total))
    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        logs.show()
