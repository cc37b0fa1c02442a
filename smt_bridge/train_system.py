"""Trains a phrase-based model from parallel text in steps. When training is resumed, finished steps are
skipped.

    alignment.gz   phrase-table.gz   reordering-table.wbe-msd-bidirectional-fe.gz   lm.arpa.gz   moses.ini

If the table is pruned, unpruned tables exist between two steps.

Every result is written atomically, and `train.json` records the settings and texts, so that training can be
resumed after it was killed. The paths in moses.ini are relative.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from nmt.compute import resources
from nmt.config.settings import check
from nmt.errors import DataError
from nmt.formats import pharaoh
from nmt.io import files, locks, manifest
from nmt.io.progress import Progress
from nmt.ngram import count_models, estimators
from nmt.ngram.counting import CountSettings, count_text
from nmt.work import store
from nmt.work.executors import ExecutorConfig
from nmt.work.stages import SharedFolder
from nmt.work.store import Step, run_steps
from smt_bridge import train_cost
from smt_bridge.config import TrainConfig
from smt_bridge.extraction import alignment
from smt_bridge.extraction.config import significance_threshold
from smt_bridge.extraction.symmetrization import symmetrize
from smt_bridge.extraction.tables import TableInputs, TableOutputs, build, sweep_work_folders
from smt_bridge.tables.filter import Filtering
from smt_bridge.tables.pruning import prune_tables
from smt_bridge.train_cost import TrainingCost

log = logging.getLogger(__name__)

ALIGNMENT, TABLE, LM, INI = "alignment.gz", "phrase-table.gz", "lm.arpa.gz", "moses.ini"
UNPRUNED_TABLES = UNPRUNED, UNPRUNED_REORDERING = "phrase-table.unpruned.gz", "reordering-table.unpruned.gz"
LEXICAL = "lex"  # stem of lex.e2f and lex.f2e
REORDERING = "reordering-table.wbe-msd-bidirectional-fe.gz"
SETTINGS = "train.json"
FORECAST = 30.0  # seconds of alignment from which its speed says something about the other steps
# Job folders of the steps that several workers compute.
ALIGNING, EXTRACTION, COUNTING = "align.job", "extract.job", "lm.job"
RESULTS = (ALIGNMENT, TABLE, LM, INI, f"{LEXICAL}.e2f", f"{LEXICAL}.f2e", REORDERING, SETTINGS)

# The initial weights of Moses' train-model.perl.
WEIGHTS = {
    "LexicalReordering0": [0.3] * 6, "Distortion0": [0.3], "LM0": [0.5], "WordPenalty0": [-1.0],
    "PhrasePenalty0": [0.2], "TranslationModel0": [0.2] * 4,
    "UnknownWordPenalty0": [1.0],
}  # fmt: skip


Steps = tuple[Step["SystemTraining"], ...]


@dataclass(frozen=True)
class SystemTraining:
    """A system being trained: its folder, settings and executor."""

    folder: Path
    config: TrainConfig
    executor: ExecutorConfig  # for the large steps

    def path(self, name: str) -> Path:
        return self.folder / name

    def shared(self, name: str) -> SharedFolder | None:
        """The job folder of a step, if workers compute it or did so before training was interrupted;
        otherwise None."""
        job = self.path(name).absolute()
        is_remote = self.executor.name != "local" or job.exists()
        return SharedFolder(job, "smt-train", resume=True) if is_remote else None


def train(
    folder: Path,
    config: TrainConfig,
    executor: ExecutorConfig | None = None,
    on_step: Callable[[], None] = lambda: None,
) -> None:
    """Train a model, skipping steps that are already finished. `executor`: how to run the large steps;
    `on_step`: called after each step. ConfigError for a folder that was started with other settings or texts,
    or that is in use."""
    check(config)
    if config.prune.prune_significance:
        significance_threshold(config.prune.prune_significance, 1)
    files.check_parallel(config.source, config.target)
    check_folder(folder)
    executor = executor or ExecutorConfig()
    is_extracted = any((folder / name).exists() for name in (TABLE, UNPRUNED))
    cost = None if is_extracted else check_cost(folder, config, executor)
    with locks.locked(folder, "smt-train"):
        record_settings(folder, config)

        steps = PRUNED_STEPS if config.prune.is_active() else STEPS

        def is_finished(step: Step[SystemTraining]) -> bool:
            results = (step.result, TABLE) if step.result == UNPRUNED else (step.result,)
            exists = any((folder / name).exists() for name in results)
            if exists:
                log.info("%s exists", describe(step, steps))
            return exists

        training = SystemTraining(folder, config, executor)
        clock = partial(log_time, steps=steps, cost=cost)
        run_steps(steps, training, is_finished, lambda step: on_step(), clock)


def check_folder(folder: Path) -> None:
    """ConfigError for a folder that contains files but was not created by smt-train."""
    store.check_ours(folder, SETTINGS, "a folder of smt-train")


def check_cost(folder: Path, config: TrainConfig, executor: ExecutorConfig) -> TrainingCost:
    """Log what the training will take. ConfigError if the disk has no room for it."""
    size = train_cost.measure_texts(config)
    cost = train_cost.estimate(size, config, resources.processors(), executor.workers)
    log.info("%s", train_cost.describe(size, cost))
    train_cost.check_disk(folder, size, cost)
    return cost


@contextmanager
def log_time(step: Step[SystemTraining], steps: Steps, cost: TrainingCost | None) -> Iterator[None]:
    """Log how long a step took, and after the alignment of a large text how long the others will take at the
    speed that it had."""
    start_time = time.monotonic()
    yield
    seconds = time.monotonic() - start_time
    log.info("%s, %.0f s", describe(step, steps), seconds)
    if cost and step.result == ALIGNMENT and cost.alignment > FORECAST:
        rest = (cost.extraction + cost.language_model) * seconds / cost.alignment
        log.info("at the speed of the alignment, the other steps take about %.0f minutes", rest / 60)


def describe(step: Step[SystemTraining], steps: Steps) -> str:
    return f"step {steps.index(step) + 1} of {len(steps)}: {step.name}"


def record_settings(folder: Path, config: TrainConfig) -> None:
    """Record the settings and the checksums of the texts, or check them against the recorded ones:
    ConfigError if they differ. Also removes temporary files of killed steps."""
    settings = asdict(config)
    for name in ("memory", "buckets"):  # do not affect results
        settings["extract"].pop(name)
    for name in ("source", "target", "alignment", "lm_text"):
        settings[name] = manifest.digest(settings[name]) if settings[name] else ""
    settings["prune"] = settings["prune"] if config.prune.is_active() else None
    if not store.is_started(folder / SETTINGS, settings, folder):
        check_folder(folder)
        store.write_settings(folder / SETTINGS, settings)
    sweep_work_folders(folder)
    store.remove_unfinished(folder, [f"{name}.part*" for name in (*RESULTS, *UNPRUNED_TABLES)])
    if (folder / TABLE).exists():
        remove_unpruned(folder)


def align(training: SystemTraining) -> None:
    """Write the symmetrized alignment, or check and copy the user's."""
    config, path = training.config, training.path(ALIGNMENT)
    if config.alignment:
        files.check_parallel(config.source, config.alignment)
        files.write_text(path, map(pharaoh.format_links, pharaoh.read(config.alignment)))
    elif shared := training.shared(ALIGNING):
        outputs = alignment.AlignmentOutputs(str(path))
        alignment.align_shared(
            config.source, config.target, outputs, config.method, config.symmetrization, training.executor,
            shared,
        )  # fmt: skip
    else:
        texts = alignment.read_texts(config.source, config.target)
        directions = alignment.align_both_directions(*texts, config.method)
        del texts
        files.write_text(path, symmetrize(*directions, config.symmetrization).lines())


def remove_unpruned(folder: Path) -> None:
    """Remove the tables that were written before pruning."""
    for name in UNPRUNED_TABLES:
        (folder / name).unlink(missing_ok=True)


def extract(training: SystemTraining) -> None:
    """Write both tables. The phrase table is renamed last, so once it exists the step is finished."""
    config = training.config
    table, reordering_table = (
        (UNPRUNED, UNPRUNED_REORDERING) if config.prune.is_active() else (TABLE, REORDERING)
    )
    temporary = training.path(f"{table}.part.gz")
    inputs = TableInputs(config.source, config.target, alignment=str(training.path(ALIGNMENT)))
    reordering = str(training.path(reordering_table)) if config.reordering else None
    outputs = TableOutputs(str(temporary), reordering=reordering, lexical=str(training.path(LEXICAL)))
    with Progress(None, "words", title="extracting") as progress:
        shared = training.shared(EXTRACTION)
        pairs = build(inputs, outputs, config.extract, progress.reach, training.executor, shared)
    temporary.rename(training.path(table))
    log.info("%s phrase pairs", f"{pairs:,}")


def prune(training: SystemTraining) -> None:
    """Prune both tables, and remove the unpruned ones. The phrase table is renamed last. DataError if no pair
    is left."""
    config, temporary = training.config, training.path(f"{TABLE}.part.gz")
    paths = Filtering(training.path(UNPRUNED), temporary)
    if config.reordering:
        paths.reordering = training.path(UNPRUNED_REORDERING)
        paths.reordering_output = training.path(REORDERING)
    with Progress(partial(files.number_of_lines, paths.table), "pairs", title="pruning") as progress:
        rows = prune_tables(paths, None, config.prune, (config.source, config.target), progress.over)
    if not rows:
        raise DataError(f"{training.path(UNPRUNED)}: no pair is left after pruning; prune less")
    temporary.rename(training.path(TABLE))
    remove_unpruned(training.folder)
    log.info("%s phrase pairs kept", f"{rows:,}")


def estimate(training: SystemTraining) -> None:
    """Write a Kneser-Ney model of --lm-text or the target side, with fallback discounts for small texts."""
    config = training.config
    settings = estimators.KneserNeyConfig(order=config.order, discount_fallback=estimators.FALLBACK_DISCOUNTS)
    text = config.lm_text or config.target
    if shared := training.shared(COUNTING):
        counts = count_text(text, CountSettings(config.order), training.executor, shared)
        model = estimators.kneser_ney_model(*counts, settings)
    else:
        model = estimators.estimate_kneser_ney(map(files.split_words, files.read_lines(text)), settings)
    count_models.write_arpa(model, training.path(LM))


def write_ini(path: Path, config: TrainConfig) -> None:
    """Write the model's moses.ini, with the initial weights of Moses."""
    features = [
        "UnknownWordPenalty",
        "WordPenalty",
        "PhrasePenalty",
        f"PhraseDictionaryMemory name=TranslationModel0 num-features=4 path={TABLE} input-factor=0 "
        "output-factor=0",
        "LexicalReordering name=LexicalReordering0 num-features=6 type=wbe-msd-bidirectional-fe-allff "
        f"input-factor=0 output-factor=0 path={REORDERING}",
        "Distortion",
        f"KENLM name=LM0 factor=0 path={LM} order={config.order}",
    ]
    weights = dict(WEIGHTS)
    if not config.reordering:
        del features[4], weights["LexicalReordering0"]
    lines = [
        "# Start Moses in this folder: the paths are relative to it. smt-decode finds them from anywhere.",
        "", "[input-factors]", "0", "", "[mapping]", "0 T 0", "", "[distortion-limit]",
        str(config.distortion_limit), "", "[feature]", *features, "",
        "[weight]", *(f"{name}= {' '.join(map(str, values))}" for name, values in weights.items()),
    ]  # fmt: skip
    files.write_text(path, lines)


STEPS: Steps = (
    Step(ALIGNMENT, ALIGNMENT, align),
    Step(TABLE, TABLE, extract),
    Step(LM, LM, estimate),
    Step(INI, INI, lambda training: write_ini(training.path(INI), training.config)),
)
# The same with a table that is pruned.
PRUNED_STEPS: Steps = (STEPS[0], Step(UNPRUNED, UNPRUNED, extract), Step(TABLE, TABLE, prune), *STEPS[2:])
