"""A build, step by step. Each step ends with the file that is named beside it, so that finished steps are not
repeated: a build that is killed at any moment and started again ends with the same system."""

import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nmt import locks, manifest
from nmt.compute import matmul
from nmt.errors import ConfigError
from nmt.jobs import begun
from nmt.progress import Progress, duration
from smt_bridge.build import corpus, evaluation, facts, package, plan, rates, tables, training, tuning
from smt_bridge.build.config import WORK, Build, BuildConfig
from smt_bridge.build.followed import Followed
from smt_bridge.build.plan import Plan
from smt_bridge.hybrid import folder as hybrid

log = logging.getLogger(__name__)

SETTINGS = "build.json"
UNIT = "planned seconds"


@dataclass(frozen=True)
class Step:
    """A step of a build: its work is done once `result`, below the folder of the build, is there."""

    name: str
    result: str
    work: Callable[[Build], None]


STEPS = (
    Step("corpus", f"{corpus.FOLDER}/{corpus.COUNTS}", corpus.prepare),
    Step("alignment", tables.ALIGNMENT, tables.align),
    Step("model", f"{tables.MODEL}/moses.ini", tables.train),
    Step("filter", f"{tables.DEV}/{tables.BASE}", tables.filter_to_dev),
    Step("tune", f"{tables.DEV}/{tuning.PHRASE_BASED}.ini", tuning.tune_phrase_based),
    Step("networks", training.DONE, training.train_all),
    Step("tune-hybrid", f"{tables.DEV}/{tuning.HYBRID}.ini", tuning.tune_hybrid),
    Step("evaluate", evaluation.FILE, evaluation.evaluate),
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
        return plan.read(kept if kept.exists() else config.plan)
    sizes = corpus.survey(config)
    speed, back_end = rates.graded(rates.measured()), matmul.choose().back_end
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
    return found


def check_place(folder: Path) -> None:
    """ConfigError for a folder with files in it that no build made."""
    work = folder / WORK
    alone = not folder.is_dir() or all(path.name in (WORK, locks.FILE) for path in folder.iterdir())
    if not (work / SETTINGS).exists() and not (alone and begun.is_ours(work, SETTINGS)):
        raise ConfigError(f"{folder}: is not empty, and not begun by smt-build; name another folder")


def begin(folder: Path, config: BuildConfig) -> Plan:
    """Record what is built from what and by which plan, or check that it is the same; remove what a killed
    step left behind."""
    settings, kept = settings_of(config), kept_plan(config)
    before = begun.read(folder / WORK / SETTINGS)
    if before is not None and (changed := begun.changed(before, settings)):
        raise ConfigError(
            f"{folder}: was begun with another {', '.join(changed)}; name another folder, or remove this one "
            "to start anew"
        )
    made = plan_of(config)
    if before is None:
        begun.write(folder / WORK / SETTINGS, settings)
    if not kept.exists():
        plan.write(kept, made)
    sweep(folder)
    return made


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


def take_steps(build: Build, show_bar: bool) -> None:
    """Take each step whose result is not there yet."""
    steps, seconds = steps_of(build.plan), plan.with_workers(build.plan, build.config.workers)
    total, done = round(sum(seconds.values())), 0.0
    with Progress(None, UNIT, show_bar, "building") as progress:
        for number, step in enumerate(steps, 1):
            if not (build.work / step.result).exists():
                progress.reach(round(done), total)
                log.info(
                    "step %d of %d: %s, about %s", number, len(steps), step.name, duration(seconds[step.name])
                )
                begin = time.monotonic()
                with following(build, progress, done, seconds[step.name], total):
                    step.work(build)
                took = time.monotonic() - begin
                facts.note_time(build, step.name, took)
                log.info("step %d of %d: %s, %s", number, len(steps), step.name, duration(took))
            done += seconds[step.name]


@contextmanager
def following(build: Build, progress: Progress, done: float, planned: float, total: int) -> Iterator[None]:
    """While a step works: its share of the progress, second by second, and messages of its processes."""
    stop, logs = threading.Event(), Followed(build.work / training.LOGS)
    begin = time.monotonic()

    def follow() -> None:
        while not stop.wait(1.0):
            progress.reach(round(done + min(planned, time.monotonic() - begin)), total)
            logs.show()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        logs.show()
