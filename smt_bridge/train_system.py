"""Train a phrase-based model from parallel text in steps. When training is resumed, finished steps are
skipped.

    alignment.gz   phrase-table.gz   reordering-table.wbe-msd-bidirectional-fe.gz   lm.arpa.gz   moses.ini
    classes.tsv   class-lm.arpa.gz    if a language model of word classes is asked for
    operations.gz   osm.arpa.gz     with --osm
    osm-source-classes.tsv   osm-target-classes.tsv   class-operations.gz   class-osm.arpa.gz
                                    with --osm-classes
    frequent-source.txt   frequent-target.txt   with --sparse-features

and, if it is also compiled, the folder `compiled`.

The folder also holds the texts and the models of word alignment, so that sentence pairs can be added later:
these models align the new pairs, and a new folder gets tables of all texts and alignments.

If the table is pruned, unpruned tables exist in between.

Every result is written atomically, and `train.json` records the settings and texts, so that training can be
resumed after it was killed. The paths in moses.ini are relative.
"""

import logging
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import chain
from pathlib import Path
from typing import cast

from nmt.compute import resources
from nmt.config.settings import check
from nmt.errors import ConfigError, DataError
from nmt.formats import pharaoh
from nmt.io import files, locks, manifest
from nmt.io.mapped import MEMORY, ArrayStorage
from nmt.io.progress import Progress
from nmt.ngram import count_models, disk_counts, estimators, word_classes
from nmt.ngram.counting import Counts, CountSettings, count_lines, count_text
from nmt.ngram.word_classes import ClassConfig
from nmt.work import store
from nmt.work.executors import ExecutorConfig
from nmt.work.stages import SharedFolder
from nmt.work.store import Step, run_steps
from smt_bridge import compiled_model, train_cost
from smt_bridge.config import TrainConfig
from smt_bridge.decoder.config import CompileConfig
from smt_bridge.extraction import alignment, corpus, kept_model
from smt_bridge.extraction.config import ExtractConfig, PruneConfig, significance_threshold
from smt_bridge.extraction.symmetrization import symmetrize
from smt_bridge.extraction.tables import WORK, TableInputs, TableOutputs, build
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.operations import ClassMaps, operation_lines
from smt_bridge.moses.reordering import DEFAULT, trained_type
from smt_bridge.tables.filter import FilterPaths
from smt_bridge.tables.pruning import prune_tables
from smt_bridge.train_cost import TrainingCost
from smt_bridge.trained_ini import ModelFiles, ini_lines, write_frequent

log = logging.getLogger(__name__)

ALIGNMENT, TABLE, LM, INI = "alignment.gz", "phrase-table.gz", "lm.arpa.gz", "moses.ini"
UNPRUNED_TABLES = UNPRUNED, UNPRUNED_REORDERING = "phrase-table.unpruned.gz", "reordering-table.unpruned.gz"
CLASSES, CLASS_LM = "classes.tsv", "class-lm.arpa.gz"
CLASS_TEXT = "class-text.gz"  # the text of the language model as classes, until that model exists
TEXTS = SOURCE, TARGET = "source.gz", "target.gz"
OSM_CLASSES = "osm-source-classes.tsv", "osm-target-classes.tsv"  # word classes of both sides
CLASS_OPERATIONS, CLASS_OSM = "class-operations.gz", "class-osm.arpa.gz"  # the same over these classes
FREQUENT = "frequent-source.txt", "frequent-target.txt"  # words
TUNED_SPARSE = "moses.tuned.sparse-weights"  # of the sparse features of TUNED
MODELS = "alignment-model"  # folder of the models of both directions of word alignment
OPERATIONS, OSM = "operations.gz", "osm.arpa.gz"  # a text of operations, and its n-gram model
TUNED = "moses.tuned.ini"
LEXICAL = "lex"  # stem of lex.e2f and lex.f2e
REORDERING = f"reordering-table.{DEFAULT}.gz"  # unless another type is asked for
COMPILED = "compiled"  # folder of the compiled model
SETTINGS = "train.json"
FORECAST = 30.0  # an alignment of fewer seconds is too short to predict the other steps
# Job folders of the steps that several workers compute.
ALIGNING, EXTRACTION, COUNTING = "align.job", "extract.job", "lm.job"
CLASSING, CLASS_COUNTING, COUNTING_OPERATIONS = "classes.job", "class-lm.job", "osm.job"
OTHER_RESULTS = (
    *UNPRUNED_TABLES, CLASSES, CLASS_TEXT, CLASS_LM, OPERATIONS, OSM, *OSM_CLASSES,
    CLASS_OPERATIONS, CLASS_OSM, *FREQUENT, MODELS, TUNED, TUNED_SPARSE,
    COMPILED,
)  # fmt: skip
RESULTS = (*TEXTS, ALIGNMENT, TABLE, LM, INI, f"{LEXICAL}.e2f", f"{LEXICAL}.f2e", REORDERING, SETTINGS)

# settings that earlier versions lack, of the model and of extraction
ADDITIONS = ("class_lm", "class_order", "osm", "osm_classes", "sparse_features")
EXTRACT_ADDITIONS = ("reordering_type", "count_feature")


Steps = tuple[Step["SystemTraining"], ...]


@dataclass(frozen=True)
class SystemTraining:
    """A system being trained: its folder, settings and executor."""

    folder: Path
    config: TrainConfig
    executor: ExecutorConfig  # for the large steps

    def path(self, name: str) -> Path:
        return self.folder / name

    @property
    def texts(self) -> tuple[str, str]:
        """Paths of the texts that the tables are made from."""
        if self.config.add:
            return str(self.path(SOURCE)), str(self.path(TARGET))
        return self.config.source, self.config.target

    @property
    def lm_text(self) -> str:
        """Path of the text that the language models are trained on."""
        return self.config.lm_text or self.texts[1]

    def shared(self, name: str) -> SharedFolder | None:
        """The job folder of a step, if workers compute it or did so before an interruption, else None."""
        job = self.path(name).absolute()
        is_remote = self.executor.name != "local" or job.exists()
        return SharedFolder(job, "smt-train", resume=True) if is_remote else None


def reordering_name(config: TrainConfig) -> str:
    """The name of a model's reordering table, which tells its type."""
    return f"reordering-table.{config.extract.reordering.name}.gz"


def train(
    folder: Path,
    config: TrainConfig,
    executor: ExecutorConfig | None = None,
    on_step: Callable[[], None] = lambda: None,
) -> None:
    """Train a model, skipping steps that are already finished. `executor`: how to run the large steps;
    `on_step`: called after each step.

    ConfigError for invalid settings, for a folder with other files or that was started with other settings or
    texts, and for a disk without room; UserError if the folder is in use or a file cannot be written;
    DataError for texts that cannot be used. Also the errors of `check_added`, and those of the aligner and
    the executor.
    """
    check(config)
    if config.prune.prune_significance:
        significance_threshold(config.prune.prune_significance, 1)
    trained_type(config.extract.reordering_type)
    if config.osm_classes and not config.osm:
        raise ConfigError("osm_classes: goes with osm above 0, the order of the operation sequence models")
    if config.add:
        check_added(config)
    check_folder(folder)
    if not (folder / ALIGNMENT).exists():  # else they were checked: a folder goes with one text
        check_texts(config)
    executor = executor or ExecutorConfig()
    is_extracted = any((folder / name).exists() for name in (TABLE, UNPRUNED))
    cost = None if is_extracted else check_cost(folder, config, executor)
    with locks.locked(folder, "smt-train"):
        record_settings(folder, config)
        steps = training_steps(config)

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
    """Log what the training will take, and return it. `folder`: of the system. ConfigError if the
    disk has no room for it; DataError for unreadable texts."""
    size = train_cost.total_size(Path(config.add), config)
    cost = train_cost.estimate(size, config, resources.processors(), executor.workers)
    log.info("%s", train_cost.describe(size, cost))
    train_cost.check_disk(folder, size, cost)
    return cost


@contextmanager
def log_time(step: Step[SystemTraining], steps: Steps, cost: TrainingCost | None) -> Iterator[None]:
    """Log how long a step took. After the alignment of a large text, also log how long the other steps will
    take, judged by the speed of the alignment."""
    start_time = time.monotonic()
    yield
    seconds = time.monotonic() - start_time
    log.info("%s, %.0f s", describe(step, steps), seconds)
    if cost and step.result == ALIGNMENT and cost.alignment > FORECAST:
        rest = (cost.extraction + cost.language_model + cost.compilation) * seconds / cost.alignment
        log.info("at the speed of the alignment, the other steps take about %.0f minutes", rest / 60)


def describe(step: Step[SystemTraining], steps: Steps) -> str:
    return f"step {steps.index(step) + 1} of {len(steps)}: {step.name}"


def record_settings(folder: Path, config: TrainConfig) -> None:
    """Record the settings and the checksums of the texts, or check them against the recorded ones:
    ConfigError if they differ, DataError if they are damaged. Also removes temporary files of killed
    steps."""
    settings = asdict(config)
    for name in ("memory", "buckets"):  # do not affect results
        settings["extract"].pop(name)
    for name in EXTRACT_ADDITIONS:  # not recorded if they are the default, as in older folders
        if settings["extract"][name] == getattr(ExtractConfig, name):
            settings["extract"].pop(name)
    for name in ("source", "target", "alignment", "lm_text"):
        settings[name] = manifest.digest(settings[name]) if settings[name] else ""
    settings["prune"] = settings["prune"] if config.prune.is_active() else None
    settings["add"] = manifest.digest(Path(config.add) / SETTINGS) if config.add else None
    if config.add:
        settings["lm_text"] = read_base(Path(config.add))["lm_text"]
    if not store.is_started(folder / SETTINGS, settings, folder):
        check_folder(folder)
        store.write_settings(folder / SETTINGS, settings)
    for work in (WORK, disk_counts.WORK):
        work.sweep(folder)
    names = (*RESULTS, *OTHER_RESULTS, "reordering-table.*")
    store.remove_unfinished(folder, [f"{name}.part*" for name in names])
    if (folder / TABLE).exists():
        remove_unpruned(folder)
    if (folder / CLASS_LM).exists():
        (folder / CLASS_TEXT).unlink(missing_ok=True)


def align(training: SystemTraining) -> None:
    """Store the texts, and write the symmetrized alignment, or copy the user's. DataError for texts that
    cannot be used; also the errors of the aligner and the executor."""
    config, path = training.config, training.path(ALIGNMENT)
    for name, text in zip(TEXTS, (config.source, config.target), strict=True):
        files.write_text(training.path(name), chain(base_lines(config, name), files.read_lines(text)))
    if config.alignment:
        lines: Iterable[str] = map(pharaoh.format_links, pharaoh.read(config.alignment))
        if config.add and (Path(config.add) / MODELS).is_dir():
            copy_models(training)
    elif config.add:
        lines = align_added(training)
    elif shared := training.shared(ALIGNING):
        with new_models(training) as models:
            outputs = alignment.AlignmentOutputs(str(path), models=models)
            alignment.align_shared(
                config.source, config.target, outputs, config.method, config.symmetrization,
                training.executor, shared,
            )  # fmt: skip
        return
    else:
        texts = alignment.read_texts(config.source, config.target)
        with new_models(training) as models:
            directions = alignment.align_both_directions(*texts, config.method, models)
        del texts
        lines = symmetrize(*directions, config.symmetrization).lines()
    files.write_text(path, chain(base_lines(config, ALIGNMENT), lines))


@contextmanager
def new_models(training: SystemTraining) -> Iterator[Path]:
    """Yield an empty folder for the models of word alignment. At the end it is renamed to MODELS, or removed
    if it is still empty. UserError if a file cannot be written."""
    part, folder = training.path(f"{MODELS}.part"), training.path(MODELS)
    try:
        shutil.rmtree(folder, ignore_errors=True)  # left by a step that was killed
        part.mkdir()
        yield part
        part.rename(folder) if any(part.iterdir()) else part.rmdir()
    except OSError as error:
        raise files.cannot_write(folder, error) from error


def remove_unpruned(folder: Path) -> None:
    for name in UNPRUNED_TABLES:
        (folder / name).unlink(missing_ok=True)


def extract(training: SystemTraining) -> None:
    """Write both tables. The phrase table is renamed last, so once it exists the step is finished."""
    config = training.config
    table, reordering_table = (
        (UNPRUNED, UNPRUNED_REORDERING) if config.prune.is_active() else (TABLE, reordering_name(config))
    )
    temporary = training.path(f"{table}.part.gz")
    inputs = TableInputs(*training.texts, alignment=str(training.path(ALIGNMENT)))
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
    paths = FilterPaths(training.path(UNPRUNED), temporary)
    if config.reordering:
        paths.reordering = training.path(UNPRUNED_REORDERING)
        paths.reordering_output = training.path(reordering_name(config))
    paths.checked = (paths.table, paths.reordering)  # written by `extract`
    with Progress(partial(files.number_of_lines, paths.table), "pairs", title="pruning") as progress:
        rows = prune_tables(paths, None, config.prune, training.texts, progress.over)
    if not rows:
        raise DataError(f"{training.path(UNPRUNED)}: no pair is left after pruning; prune less")
    temporary.rename(training.path(TABLE))
    remove_unpruned(training.folder)
    log.info("%s phrase pairs kept", f"{rows:,}")


def estimate(training: SystemTraining) -> None:
    """Write a Kneser-Ney model of --lm-text or the target side, with fallback discounts for small texts. If
    pairs are added to a model with an --lm-text, its language model is copied."""
    if not copy_from_base(training, LM):
        estimate_lm(training, training.lm_text, LM, training.config.order, COUNTING)


def copy_from_base(training: SystemTraining, name: str) -> bool:
    """Copy a file that --add takes over from its model, whose language models are of another text; returns
    whether it did."""
    base = training.config.add
    if not base or not read_base(Path(base))["lm_text"]:
        return False
    with store.unfinished(training.path(name)) as part:
        shutil.copyfile(Path(base) / name, part)
    return True


def estimate_lm(training: SystemTraining, text: str, name: str, order: int, job: str) -> None:
    """Write a Kneser-Ney model of a text to the file `name`. `job`: folder in which workers count."""
    path = training.path(name)
    settings = estimators.KneserNeyConfig(order=order, discount_fallback=estimators.FALLBACK_DISCOUNTS)
    with ExitStack() as stack:
        counts, storage = count(training, text, stack, order, job)
        with files.naming_unwritten(path):
            model = estimators.kneser_ney_model(*counts, settings, storage)
        with Progress(model.size, "n-grams", title="writing") as progress:
            count_models.write_arpa(model, path, progress.add)


def write_operations(training: SystemTraining, name: str, classes: ClassMaps | None = None) -> None:
    """Write the operations of all sentence pairs to the file `name`, a line for each. `classes`: in place of
    words. DataError for an alignment that does not fit the texts."""
    lines = operation_lines(*training.texts, str(training.path(ALIGNMENT)), classes)
    with Progress(partial(files.number_of_lines, training.texts[0]), "lines", title="operations") as progress:
        files.write_text(training.path(name), progress.over(lines))


def write_class_operations(training: SystemTraining) -> None:
    """Write the word classes of both sides, and the operations of all sentence pairs over them."""
    paths = [training.path(name) for name in OSM_CLASSES]
    for text, path in zip(training.texts, paths, strict=True):
        write_word_classes(training, text, path, training.config.osm_classes, f"{path.stem}.job")
    write_operations(training, CLASS_OPERATIONS, ClassMaps(*map(word_classes.read_classes, paths)))


def estimate_operations(training: SystemTraining, name: str, model: str, job: str) -> None:
    """Write a Kneser-Ney model of the operations in the file `name` to the file `model`."""
    estimate_lm(training, str(training.path(name)), model, training.config.osm, job)


def write_word_classes(training: SystemTraining, text: str, path: Path, classes: int, job: str) -> None:
    """Write the word classes of a text to a file, unless it exists. `job`: folder in which workers count."""
    if path.exists():
        return
    with ExitStack() as stack:
        counts, _ = count(training, text, stack, word_classes.PAIRS.order, job)
        word_classes.write_classes(path, word_classes.learn_classes(counts, ClassConfig(classes=classes)))


def list_frequent(training: SystemTraining) -> None:
    for name, text in zip(FREQUENT, training.texts, strict=True):
        write_frequent(text, training.path(name), training.config.sparse_features)


def learn_classes(training: SystemTraining) -> None:
    """Write the classes of the words that the language model is trained on. If pairs are added to a model
    with an --lm-text, its classes are copied."""
    if not copy_from_base(training, CLASSES):
        classes = training.config.class_lm
        write_word_classes(training, training.lm_text, training.path(CLASSES), classes, CLASSING)


def estimate_class_lm(training: SystemTraining) -> None:
    """Write a Kneser-Ney model of the text of the language model with classes instead of words. The text of
    classes exists while it is made. If pairs are added to a model with an --lm-text, it is copied."""
    if copy_from_base(training, CLASS_LM):
        return
    text, lines = training.path(CLASS_TEXT), files.read_lines(training.lm_text)
    files.write_text(text, word_classes.class_lines(word_classes.read_classes(training.path(CLASSES)), lines))
    estimate_lm(training, str(text), CLASS_LM, training.config.class_order, CLASS_COUNTING)
    text.unlink()


def count(
    training: SystemTraining, text: str, stack: ExitStack, order: int, job: str
) -> tuple[Counts, ArrayStorage]:
    """Count the n-grams of a text, given by its path, of up to `order` words. Returns the counts (words by
    id, then the n-grams of each length), and where the arrays of the model are to be stored. `job`: folder in
    which workers count.

    Several workers count if their memory suffices together, and this process merges their counts in as much
    memory. Otherwise, a text that does not fit in memory is counted on disk, in a folder that `stack`
    removes. Errors as from `count_text` and `disk_counts.count_within`.
    """
    config, executor = training.config, training.executor
    settings, memory = CountSettings(order), 1e9 * config.extract.memory
    on_disk = disk_counts.memory_to_count(text, order) > memory * executor.workers
    shared = training.shared(job)
    if shared and (not on_disk or shared.folder.exists()):  # workers finish what they began
        return count_text(text, settings, executor, shared), MEMORY
    with Progress(partial(files.number_of_lines, text), "lines", title="counting n-grams") as progress:
        lines = progress.over(files.read_lines(text))
        if not on_disk:
            return count_lines(lines, settings), MEMORY
        return disk_counts.count_within(memory, lines, settings, training.path(LM), stack)


def write_inis(training: SystemTraining) -> None:
    """Write moses.ini. If pairs are added to a tuned model, first write TUNED, with the weights of that model
    and the paths of the new tables and language model."""
    tuned = Path(training.config.add) / TUNED
    if training.config.add and tuned.is_file():
        old = moses_ini.read(str(tuned))
        ini = moses_ini.with_absolute_paths(old, old.roots)
        for feature in old.features:
            for key, path in feature.options.items():
                if path in (TABLE, reordering_name(training.config), LM, *OTHER_RESULTS):
                    ini = moses_ini.set_path(ini, feature.name, path, key)
        if ini.weight_file:
            files.write_text(training.path(TUNED_SPARSE), files.read_lines(ini.weight_file))
            ini = moses_ini.with_weight_file(ini, TUNED_SPARSE)
        moses_ini.write(training.path(TUNED), ini)
    write_ini(training.path(INI), training.config)


def write_ini(path: Path, config: TrainConfig) -> None:
    """Write the model's moses.ini, with the initial weights of Moses. `path`: in the folder of the model."""
    names = ModelFiles(
        TABLE, reordering_name(config), LM, CLASS_LM, CLASSES, OSM, CLASS_OSM, OSM_CLASSES, FREQUENT
    )
    files.write_text(path, ini_lines(config, names))


def compile_trained(training: SystemTraining) -> None:
    """Write the model to COMPILED, with an ini for each set of weights. UserError if the disk is full."""
    config = training.config.compiled or CompileConfig()
    with store.unfinished_folder(training.path(COMPILED)) as folder:
        model = compiled_model.read_model(str(training.path(INI)))
        names = compiled_model.compile_model(model, folder, config)
        for path in filter(Path.exists, map(training.path, (INI, TUNED))):
            compiled_model.write_ini(folder / path.name, moses_ini.read(str(path)), names)


STEPS: Steps = (
    Step(ALIGNMENT, ALIGNMENT, align),
    Step(TABLE, TABLE, extract),
    Step(LM, LM, estimate),
    Step(INI, INI, write_inis),
)
PRUNING: Steps = (Step(UNPRUNED, UNPRUNED, extract), Step(TABLE, TABLE, prune))  # instead of TABLE
CLASSES_STEPS: Steps = (Step(CLASSES, CLASSES, learn_classes), Step(CLASS_LM, CLASS_LM, estimate_class_lm))
SPARSE_STEPS: Steps = (Step("frequent words", FREQUENT[1], list_frequent),)
OSM_STEPS: Steps = (
    Step(OPERATIONS, OPERATIONS, partial(write_operations, name=OPERATIONS)),
    Step(OSM, OSM, partial(estimate_operations, name=OPERATIONS, model=OSM, job=COUNTING_OPERATIONS)),
)
CLASS_OSM_STEPS: Steps = (
    Step(CLASS_OPERATIONS, CLASS_OPERATIONS, write_class_operations),
    Step(
        CLASS_OSM,
        CLASS_OSM,
        partial(estimate_operations, name=CLASS_OPERATIONS, model=CLASS_OSM, job="class-osm.job"),
    ),
)


def training_steps(config: TrainConfig) -> Steps:
    align_step, table, lm, ini = STEPS
    tables = PRUNING if config.prune.is_active() else (table,)
    classes = CLASSES_STEPS if config.class_lm else ()
    operations = OSM_STEPS if config.osm else ()
    operations += CLASS_OSM_STEPS if config.osm_classes else ()
    sparse = SPARSE_STEPS if config.sparse_features else ()
    compiled = (Step("compiled model", COMPILED, compile_trained),) if config.compiled else ()
    return (align_step, *tables, lm, *classes, *operations, *sparse, ini, *compiled)


# ---- added pairs -------------------------------------------------------------------------------------------


def add_config(
    model: str, source: str, target: str, alignment: str = "", memory: float = ExtractConfig.memory
) -> TrainConfig:
    """Make the configuration for adding pairs to the model in folder `model`, with that model's settings.
    `alignment`: path of the points of the new pairs, if not empty; `memory`: GB of each worker. ConfigError
    for a folder that smt-train did not make or finish; DataError if it is damaged."""
    settings = read_base(Path(model))
    config = TrainConfig(source, target, alignment, add=model, extract=ExtractConfig(memory=memory))
    extract, prune = (cast(dict[str, object], settings.get(name)) for name in ("extract", "prune"))
    try:
        for name in ("method", "symmetrization", "order", "reordering", "distortion_limit"):
            setattr(config, name, settings[name])
        for name in ADDITIONS:
            setattr(config, name, settings.get(name, getattr(config, name)))
        for name in ("max_length", "smoothing", "block"):
            setattr(config.extract, name, extract[name])
        for name in EXTRACT_ADDITIONS:
            setattr(config.extract, name, extract.get(name, getattr(ExtractConfig, name)))
        for item in fields(PruneConfig) if prune else ():
            setattr(config.prune, item.name, prune[item.name])
        if compiled := cast(dict[str, int] | None, settings.get("compiled")):
            config.compiled = CompileConfig(compiled["quantize"], compiled["quantize_lm"])
    except (KeyError, TypeError) as error:
        raise store.damaged_settings(Path(model) / SETTINGS) from error
    return config


def read_base(folder: Path) -> dict[str, object]:
    """Read the settings of a trained model. ConfigError for another folder, or an unfinished training;
    DataError for damaged settings, or if its texts or its alignment are missing."""
    settings = store.read_settings(folder / SETTINGS)
    if settings is None:
        raise ConfigError(f"{folder}: was not made by smt-train; --add needs the folder of a trained model")
    if not (folder / INI).exists():
        raise ConfigError(f"{folder}: its training is not finished; run smt-train again, then add pairs")
    for name in (*TEXTS, ALIGNMENT):
        if not (folder / name).exists():
            raise DataError(f"{folder / name}: missing; was it trained by another version? Train it again")
    return settings


def check_added(config: TrainConfig) -> None:
    """Check that pairs can be added. ConfigError if there is neither an alignment nor a model that can align
    them; DataError for damaged models. Also the errors of `read_base`."""
    folder = Path(config.add)
    recorded = read_base(folder)
    if not config.alignment and not (folder / MODELS).is_dir():
        reason = "its alignment was given" if recorded["alignment"] else f"of method {config.method}"
        raise ConfigError(
            f"{folder}: has no model that aligns new pairs ({reason}); give their alignment with --alignment"
        )
    for name in () if config.alignment else alignment.DIRECTIONS:
        kept_model.load(folder / MODELS / name)


def check_texts(config: TrainConfig) -> None:
    """DataError for words that tables cannot hold, links outside their sentences, and unequal numbers of
    lines."""
    paths = [path for path in (config.source, config.target, config.alignment) if path]
    corpus.count_words(((*row, "")[:3] for row in files.parallel(*paths)), (*paths, ""))


def base_lines(config: TrainConfig, name: str) -> Iterable[str]:
    """The lines of a text or alignment of the model to which pairs are added; none if no pairs are added."""
    return files.read_lines(Path(config.add) / name) if config.add else ()


def align_added(training: SystemTraining) -> Iterator[str]:
    """Align the new pairs with the models of the old folder, and copy these models to the new one. Returns
    the lines of the alignment. DataError for damaged models; UserError if they cannot be copied."""
    config = training.config
    texts = alignment.split_sides(files.parallel(config.source, config.target))
    directions = kept_model.align_both_directions(Path(config.add) / MODELS, *texts)
    copy_models(training)
    log.info("%s sentence pairs aligned with the models of %s", f"{len(texts[0]):,}", config.add)
    return symmetrize(*directions, config.symmetrization).lines()


def copy_models(training: SystemTraining) -> None:
    """Copy the word alignment models of the model of --add to the new folder. UserError if that fails."""
    with new_models(training) as models:
        shutil.copytree(Path(training.config.add) / MODELS, models, dirs_exist_ok=True)
