"""Run a build step by step.

A step is finished once its result exists and the checksums of its files are in the manifest. Finished steps
are not repeated: a build that is killed at any moment and started again ends with the same system.
"""

import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from nmt.compute import device
from nmt.errors import ConfigError, UserError
from nmt.io import files, locks, manifest
from nmt.io.progress import Progress, duration
from nmt.runs import directory as run_directory
from nmt.training import config_file
from nmt.work import store
from nmt.work.store import Step, Store, run_steps
from smt_bridge import train_system
from smt_bridge.build import back_translation, corpus, evaluation, plan, report, student, training, tuning
from smt_bridge.build.budget import SHORTENED_STEPS, BuildClock, shorten_late
from smt_bridge.build.config import WORK, Build, BuildConfig
from smt_bridge.build.corpus import BuildTexts, sides
from smt_bridge.build.evaluation import OUTPUTS
from smt_bridge.build.networks import ORDER
from smt_bridge.build.plan import PhraseFeatures, Plan
from smt_bridge.build.training import BASE, DEV, MODEL, NETWORKS
from smt_bridge.build.tuning import CHOICE, EXTENDED, HYBRID, PHRASE_BASED
from smt_bridge.hybrid import folder as hybrid
from smt_bridge.hybrid.folder import SIDES, HybridConfig, truecase_file
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import PATH_KEYS, Ini

# ---- package -----------------------------------------------------------------------------------------------
# Copy everything that decoding needs out of the build into the hybrid folder, with paths relative to it.
#
# The folder gets the full tables, not those filtered to the development set.


ATTENTION = f"{NETWORKS}/attention"
RAW = {"escaped": False, "protect": True}  # how TextSide reads text, in settings of nmt
INI, REPORT, GLOSSARY = "moses.ini", "report.html", "glossary.tsv"
FILES = (  # all that a build writes into the system's folder
    train_system.TABLE, "reordering-table.*.gz", train_system.LM, train_system.CLASSES, train_system.CLASS_LM,
    train_system.OSM, *map(truecase_file, SIDES), INI, REPORT, GLOSSARY, hybrid.FILE,
    *(f"{NETWORKS}/{name}" for name in ORDER), hybrid.FAST,
)  # fmt: skip


def package(build: Build) -> None:
    """Copy all files of the chosen system, write its ini and the report, then system.json, which marks the
    folder as complete. UserError if a file cannot be written."""
    chosen = evaluation.read_evaluation(build).chosen
    folder, ini = build.folder, packaged_ini(build, chosen)
    for name in model_files(ini):
        copy(build.work / MODEL / name, folder / name)
    for name, side_config in zip(SIDES, sides(build.config), strict=True):
        if side_config.case == "truecase":
            copy(BuildTexts(build.work).path(truecase_file(name)), folder / truecase_file(name))
    if build.config.glossary:
        copy(Path(build.config.glossary), folder / GLOSSARY)
    if chosen == HYBRID:
        for network in build.plan.networks:
            copy_folder(build.work / NETWORKS / network.name, folder / NETWORKS / network.name)
        if build.plan.has("attention"):
            read_raw_text(build, folder / ATTENTION)
    moses_ini.write(folder / INI, ini)
    describe_system(build)


def read_raw_text(build: Build, run: Path) -> None:
    """Give the attention model of the system, `run`, the system's text processing, so that it translates raw
    text alone. Its words in the search stay the same. UserError if a file cannot be written."""
    config = config_file.read_run_config(run)
    with run_directory.writing(run) as new:
        for name, side_config in zip(SIDES, sides(build.config), strict=True):
            settings = {key: getattr(side_config, key) for key in hybrid.TEXT} | RAW
            setattr(config.data, name, replace(getattr(config.data, name), **settings))
            if side_config.case == "truecase":
                copy(BuildTexts(build.work).path(truecase_file(name)), new / f"{name}.truecase")
        files.write_text(new / run_directory.CONFIG, [config_file.to_yaml(config).rstrip("\n")])


def package_student(build: Build) -> None:
    """Compare the student with the system that taught it, and put it into the folder. Raises the errors of
    `student.evaluate` and `package`."""
    student.evaluate(build)
    copy_folder(build.work / student.EXPORTED, build.folder / hybrid.FAST)
    describe_system(build)
    files.write_text(build.work / student.PACKAGED, [hybrid.FAST])


def describe_system(build: Build) -> None:
    """Write the report and system.json for the parts that are in the folder."""
    folder, (source, target) = build.folder, sides(build.config)
    report.write(folder / REPORT, report.gather_facts(build))
    hybrid.write_system(
        folder,
        HybridConfig(
            source, target, INI,
            glossary=GLOSSARY if build.config.glossary else "",
            fast=next((name for name in (hybrid.FAST, ATTENTION) if (folder / name).exists()), ""),
            search=tuning.search_settings(build.plan.tuning),
        ),
    )  # fmt: skip


def packaged_ini(build: Build, chosen: str) -> Ini:
    """The tuned ini of system `chosen`, with paths relative to the hybrid folder."""
    ini = moses_ini.read(str(tuning.ini_path(build, chosen)))
    return moses_ini.replace_paths(ini, lambda path: path.removeprefix("../").removeprefix(f"{MODEL}/"))


def model_files(ini: Ini) -> list[str]:
    """Names of the files of the trained model that an ini of `packaged_ini` refers to."""
    paths = [feature.options[key] for feature in ini.features for key in PATH_KEYS if key in feature.options]
    return [path for path in paths if not path.startswith(f"{NETWORKS}/")]


def copy(source: Path, target: Path) -> None:
    """Copy a file atomically. UserError if it cannot be written."""
    with store.unfinished(target) as part:
        shutil.copyfile(source, part)


def copy_folder(source: Path, target: Path) -> None:
    """Copy a run directory, without its lock, to `target`, which is replaced once the copy is complete.
    UserError if it cannot be written; `target` then stays as it was."""
    part = target.with_name(f"{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        for path in sorted(source.rglob("*")):
            if path.is_file() and path.name != locks.FILE:
                (part / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
                copy(path, part / path.relative_to(source))
        shutil.rmtree(target, ignore_errors=True)
        part.replace(target)
    except OSError as error:
        raise files.cannot_write(target, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


# ---- messages of other processes ---------------------------------------------------------------------------


log = logging.getLogger(__name__)


class LogFollower:
    """Logs what other processes append to the log files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.positions = {path: path.stat().st_size for path in self.paths()}  # bytes logged so far

    def paths(self) -> list[Path]:
        """Log files in the folder, including those created after the start."""
        return sorted(self.folder.glob("*.log"))

    def show(self) -> None:
        """Log the new lines: `[time] LEVEL message` in `attention.log` becomes `attention: message`. An
        incomplete last line waits for the next call."""
        for path in self.paths():
            with open(path, "rb") as stream:
                stream.seek(self.positions.get(path, 0))
                new = stream.read()
            complete = new[: new.rfind(b"\n") + 1]
            self.positions[path] = self.positions.get(path, 0) + len(complete)
            for line in complete.decode("utf-8", "replace").split("\n")[:-1]:
                level, _, message = line.partition("] ")[2].partition(" ")
                number = logging.getLevelNamesMapping().get(level, logging.INFO)
                log.log(number, "%s: %s", path.stem, message or line)


# ---- steps -------------------------------------------------------------------------------------------------


SETTINGS = "build.json"
STEPS = (
    Step("corpus", f"{corpus.FOLDER}/{corpus.COUNTS}", corpus.prepare, (f"{corpus.FOLDER}/*",)),
    Step("alignment", training.ALIGNMENT, training.align, (training.ALIGNMENT, training.DEV_ALIGNMENT)),
    Step("model", f"{MODEL}/moses.ini", training.train, (f"{MODEL}/*",)),
    Step("filter", f"{DEV}/{BASE}", training.filter_to_dev, (f"{DEV}/*.gz", f"{DEV}/{BASE}")),
    Step("tune", f"{DEV}/{PHRASE_BASED}.ini", tuning.tune_phrase_based, (f"{DEV}/{PHRASE_BASED}.*",)),
    Step("tune-extended", f"{DEV}/{CHOICE}", evaluation.tune_extended, (f"{DEV}/{EXTENDED}.*",)),
    Step("back-translate", training.BACK_SOURCE, back_translation.translate_back, (f"{training.BACK}/**/*",)),
    Step("networks", training.DONE, training.train_all, (f"{NETWORKS}/**/*",)),
    Step("tune-hybrid", f"{DEV}/{HYBRID}.ini", tuning.tune_hybrid, (f"{DEV}/{HYBRID}.*",)),
    Step("evaluate", evaluation.FILE, evaluation.evaluate, (evaluation.FILE, f"{DEV}/{OUTPUTS}/*")),
    Step("package", f"../{hybrid.FILE}", package),  # the system has a manifest of its own
)
STUDENT_STEPS = (  # with --student, also of a build that was finished without it
    *student.STEPS,
    Step(
        "student-package", student.PACKAGED, package_student,
        (student.OUTPUT, student.EVALUATION, student.PACKAGED),
    ),
)  # fmt: skip
LOGGED = {training.DONE: training.share, student.DONE: student.share}  # steps whose logs show the progress


def plan_path(config: BuildConfig) -> Path:
    return Path(config.output) / WORK / plan.FILE


def is_started(config: BuildConfig) -> bool:
    return (Path(config.output) / WORK / SETTINGS).exists()


def load_or_make_plan(config: BuildConfig) -> Plan:
    """Read the plan of a started build, else the one given with --plan, else make a new one for the texts and
    this machine, whose speed is measured. DataError for a damaged plan, one with a network that nmt-train
    could not train, or unusable texts; ConfigError for a language that is unknown or missing, for a plan with
    back-translation if there is no monolingual text, and for other phrase features than those asked for."""
    own = plan_path(config)
    if own.exists() or config.plan:
        path = own if own.exists() else config.plan
        plan_read = plan.read_plan(path)
        if plan_read.back_translated and not config.monolingual:
            raise ConfigError(
                f"{path}: translates {plan_read.back_translated:,} lines of monolingual text back; give the "
                "text with --monolingual, or another plan"
            )
        wanted = config.phrase_features
        if path != own and wanted not in (BuildConfig.phrase_features, plan_read.phrase_features):
            raise ConfigError(
                f"--phrase-features {wanted}: {path} has phrase_features {plan_read.phrase_features}; leave "
                "the option out, or give another plan"
            )
        training.check_networks(Build(config, plan_read), str(path))
        return plan_read
    sizes = corpus.survey(config)
    speed, back_end = plan.grade_speed(plan.measure_speed()), device.choose_back_end().back_end
    features = cast(PhraseFeatures, config.phrase_features)
    return plan.decide(sizes, config.budget, speed, back_end, features)


def build(config: BuildConfig, show: Callable[[str], None], show_bar: bool = False) -> Build:
    """Run all unfinished steps; returns the build with its final plan. `show` is called with each line of the
    plan; `show_bar`: whether to show a progress bar.

    ConfigError for a folder with other files, or that was started with other settings or texts; UserError for
    one that is in use; DataError for texts that cannot be used, and for files of the build that are damaged.
    Also raises the errors of the steps.
    """
    folder = Path(config.output)
    check_output_folder(folder)
    with locks.locked(folder, "smt-build"):
        check_output_folder(folder)
        current_plan = start_or_resume(folder, config)
        for line in plan.plan_lines(current_plan, config.workers, config.budget):
            show(line)
        current = Build(config, current_plan)
        if config.student:
            student.open_folder(current)
        for line in student.plan_lines(current):
            show(line)
        take_steps(current, show_bar)
        if (folder / hybrid.FILE).exists():
            hybrid.verify(hybrid.read(folder))
    return current


def check_output_folder(folder: Path) -> None:
    """ConfigError for a folder with files that no build wrote."""
    work = folder / WORK
    only_ours = not folder.is_dir() or all(path.name in (WORK, locks.FILE) for path in folder.iterdir())
    if not (work / SETTINGS).exists() and not (only_ours and store.is_ours(work, SETTINGS)):
        raise ConfigError(f"{folder}: is not empty, and was not started by smt-build; name another folder")


def start_or_resume(folder: Path, config: BuildConfig) -> Plan:
    """Record settings and plan of a new build, or check those of a resumed one; remove unfinished files.
    Returns the plan. ConfigError for other settings or texts; DataError for changed files; also the errors of
    `load_or_make_plan`."""
    work, settings, path = folder / WORK, resume_settings(config), plan_path(config)
    finished = Store(work)
    resumed = store.is_started(work / SETTINGS, settings, folder)
    if resumed:
        repeat_incomplete(finished)
    current_plan = load_or_make_plan(config)
    if not resumed:
        store.write_settings(work / SETTINGS, settings)
    if not path.exists():
        plan.write_plan(path, current_plan)
    # In the system's own folder, remove only what a build writes there.
    store.remove_unfinished(folder, [f"{name}.part*" for name in FILES])
    store.remove_unfinished(work, ["**/*.part*"])
    if not finished.has(plan.FILE):
        finished.record([SETTINGS, plan.FILE])
    return current_plan


def repeat_incomplete(finished: Store) -> None:
    """Forget the recorded files of steps of which a file was removed, so that these run again. DataError for
    a file that was changed."""
    missing = finished.check((SETTINGS, plan.FILE), top=finished.folder.parent)
    for step in (*STEPS, *STUDENT_STEPS):
        names = finished.recorded(step.files)
        if not names.isdisjoint(missing):
            finished.forget(names)


def resume_settings(config: BuildConfig) -> dict[str, object]:
    """Settings that must not change between starts of a build; texts by their checksums."""
    texts = ("source", "target", "dev_source", "dev_target", "monolingual", "glossary", "plan")
    digests = {name: manifest.digest(path) if (path := getattr(config, name)) else "" for name in texts}
    languages = [side.language for side in corpus.sides(config)]
    settings = digests | {"languages": languages, "budget": config.budget, "seed": config.seed}
    if config.phrase_features != BuildConfig.phrase_features:  # older builds have recorded none
        settings["phrase_features"] = config.phrase_features
    return settings


def take_steps(build: Build, show_bar: bool) -> None:
    """Run the unfinished steps in order, and shorten later ones when the build is behind its plan."""
    clock = BuildClock(build.work)
    with Progress(None, "planned seconds", show_bar, "building", left=clock.left) as progress:
        run_steps(
            steps_in_time(build, clock),
            build,
            lambda step: is_finished(build, step),
            lambda step: build.store.record(step.files),
            partial(time_step, build, clock, progress),
        )


def step_seconds(build: Build) -> dict[str, float]:
    """Estimated seconds of each step, those of the student included: step -> seconds, in order."""
    seconds = plan.seconds_with_workers(build.plan, build.config.workers)
    return seconds | student.planned_seconds(build)


def is_finished(build: Build, step: Step[Build]) -> bool:
    if not step.files:
        return (build.work / step.result).exists()
    return build.store.has(step.result)


def steps_in_time(build: Build, clock: BuildClock) -> Iterator[Step[Build]]:
    """Yield the steps of the plan in order. Before one of SHORTENED_STEPS, shorten the plan if late."""
    seconds = plan.seconds_with_workers(build.plan, build.config.workers)
    budget = max(build.config.budget, sum(seconds.values()))
    for step in STEPS:
        if step.name in build.plan.seconds and not is_finished(build, step):
            shorten_if_late(build, step, clock, budget)
        if step.name in build.plan.seconds:
            yield step
    if build.config.student:
        yield from STUDENT_STEPS


def shorten_if_late(build: Build, step: Step[Build], clock: BuildClock, budget: float) -> None:
    """Before one of SHORTENED_STEPS, shorten the plan if the build is late, and write the plan with this
    decision, so that it is made only once. `budget`: seconds of the whole build."""
    if build.config.plan or step.name not in SHORTENED_STEPS or step.name in build.plan.decisions:
        return
    pace = 0.0 if build.config.keep_plan else clock.pace()
    changed, why = shorten_late(build.plan, step.name, clock.spent(), budget, pace, build.config.workers)
    if why:
        log.warning("%s; --keep-plan takes the time instead", why)
    with store.unfinished(build.work / plan.FILE, recorded=True) as part:
        plan.write_plan(part, changed)
    build.plan = changed


@contextmanager
def time_step(build: Build, clock: BuildClock, progress: Progress, step: Step[Build]) -> Iterator[None]:
    """Context that times a step: logs its planned and its actual duration, and shows its progress."""
    seconds = step_seconds(build)
    names = [step.name for step in (*STEPS, *STUDENT_STEPS) if step.name in seconds]
    number = names.index(step.name)
    position = f"step {number + 1} of {len(names)}: {step.name}"
    clock.start(step.name, seconds)
    build.share = 0.0
    log.info("%s, about %s", position, duration(seconds[step.name]))
    done_before = sum(seconds[name] for name in names[:number])
    with follow_step(build, step, clock, progress, (done_before, sum(seconds.values()))):
        yield
    clock.stop()
    log.info("%s, %s", position, duration(clock.seconds[step.name]))


@contextmanager
def follow_step(
    build: Build, step: Step[Build], clock: BuildClock, progress: Progress, planned: tuple[float, float]
) -> Iterator[None]:
    """Report progress, and log messages of other processes, every second while a step runs.

    `planned`: seconds of all earlier steps, and of all steps.
    """
    stop, logs = threading.Event(), LogFollower(build.work / training.LOGS)
    done_before, total = planned

    def follow() -> None:
        while not stop.wait(1.0):
            with suppress(UserError):  # a full disk: the step itself will say so
                clock.tick(LOGGED[step.result](build) if step.result in LOGGED else build.share)
            done = max(progress.done, round(done_before + clock.done()))
            progress.reach(done, max(done, round(total)))  # a step may decide that it is shorter
            progress.refresh()
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
