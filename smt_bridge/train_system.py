"""From parallel text to the folder of a phrase-based model, step by step; finished steps are not repeated.

    alignment.gz   phrase-table.gz   reordering-table.wbe-msd-bidirectional-fe.gz   lm.arpa.gz   moses.ini

Every result is written whole or not at all, and `train.json` records what they were made from, so that a
killed training can be resumed. The paths in moses.ini are relative.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from nmt.config.settings import check
from nmt.errors import ConfigError
from nmt.formats import pharaoh
from nmt.io import files, locks, manifest
from nmt.io.progress import Progress
from nmt.ngram import arpa, estimators
from nmt.ngram.counting import CountSettings, count_text
from nmt.work import folder as job_folder
from nmt.work.config import ExecutorConfig
from nmt.work.stages import SharedFolder
from smt_bridge.config import TrainConfig
from smt_bridge.extraction import align_shards, alignment, buckets, mapreduce
from smt_bridge.extraction.tables import TableInputs, TableOutputs, build

log = logging.getLogger(__name__)

ALIGNMENT, TABLE, LM, INI = "alignment.gz", "phrase-table.gz", "lm.arpa.gz", "moses.ini"
LEXICAL = "lex"  # lex.e2f and lex.f2e
REORDERING = "reordering-table.wbe-msd-bidirectional-fe.gz"
SETTINGS = "train.json"
ALIGNING, EXTRACTION, COUNTING = "align.job", "extract.job", "lm.job"  # of several workers, while they last
RESULTS = (ALIGNMENT, TABLE, LM, INI, f"{LEXICAL}.e2f", f"{LEXICAL}.f2e", REORDERING, SETTINGS)

# The weights that Moses' train-model.perl writes.
WEIGHTS = {
    "LexicalReordering0": [0.3] * 6, "Distortion0": [0.3], "LM0": [0.5], "WordPenalty0": [-1.0],
    "PhrasePenalty0": [0.2], "TranslationModel0": [0.2] * 4,
    "UnknownWordPenalty0": [1.0],
}  # fmt: skip


def train(
    folder: Path,
    config: TrainConfig,
    executor: ExecutorConfig | None = None,
    on_step: Callable[[], None] = lambda: None,
) -> None:
    """Train a model, resuming after the steps that are finished. `executor`: computes the large steps;
    `on_step`: called after each step. ConfigError for a folder that was started with other settings or other
    texts, or that is in use."""
    check(config)
    files.check_parallel(config.source, config.target)
    check_folder(folder)
    with locks.locked(folder, "smt-train"):
        record_settings(folder, config)
        take_steps(folder, config, executor or ExecutorConfig(), on_step)


def check_folder(folder: Path) -> None:
    """ConfigError for a folder with files in it that was not made by smt-train."""
    if not job_folder.is_ours(folder, SETTINGS):
        raise ConfigError(f"{folder}: is not empty, and not a folder of smt-train; name another folder")


def take_steps(
    folder: Path, config: TrainConfig, executor: ExecutorConfig, on_step: Callable[[], None]
) -> None:
    """Make each result that does not exist yet."""
    steps: list[tuple[str, Callable[[Path], None]]] = [
        (ALIGNMENT, lambda path: align(path, config, executor)),
        (TABLE, lambda path: extract(folder, config, executor)),
        (LM, lambda path: estimate(path, config, executor)),
        (INI, lambda path: write_ini(path, config)),
    ]
    for number, (name, step) in enumerate(steps, 1):
        if (folder / name).exists():
            log.info("step %d of %d: %s exists", number, len(steps), name)
            continue
        start_time = time.monotonic()
        step(folder / name)
        on_step()
        log.info("step %d of %d: %s, %.0f s", number, len(steps), name, time.monotonic() - start_time)


def record_settings(folder: Path, config: TrainConfig) -> None:
    """Record the settings and the checksums of the texts, or check that they are the recorded ones; remove
    temporary files that a killed step left behind."""
    settings = asdict(config)
    for name in ("memory", "buckets"):  # affect no result
        settings["extract"].pop(name)
    for name in ("source", "target", "alignment", "lm_text"):
        settings[name] = manifest.digest(settings[name]) if settings[name] else ""
    recorded = job_folder.read_settings(folder / SETTINGS)
    if recorded is None:
        check_folder(folder)
        job_folder.write_settings(folder / SETTINGS, settings)
    elif changed := job_folder.changed_settings(recorded, settings):
        raise ConfigError(
            f"{folder}: was started with another {', '.join(changed)}; name another folder, or remove this "
            "one to start over"
        )
    buckets.sweep_work_folders(folder)
    try:
        for left in [left for name in RESULTS for left in folder.glob(f"{name}.part*")]:
            left.unlink()
    except OSError as error:
        raise files.cannot_write(folder, error) from error


def shared_folder(job: Path, executor: ExecutorConfig) -> SharedFolder | None:
    """The folder that workers share, if workers compute a step now, or did before it was interrupted."""
    job = job.absolute()
    return SharedFolder(job, "smt-train", resume=True) if executor.name != "local" or job.exists() else None


def align(path: Path, config: TrainConfig, executor: ExecutorConfig) -> None:
    """Write the symmetrized alignment, or check and copy that of the user."""
    if config.alignment:
        files.check_parallel(config.source, config.alignment)
        files.write_text(path, map(alignment.format_links, pharaoh.read(config.alignment)))
        return
    if shared := shared_folder(path.parent / ALIGNING, executor):
        align_shards.align(
            config.source,
            config.target,
            align_shards.AlignmentOutputs(str(path)),
            config.method,
            config.symmetrization,
            executor,
            shared,
        )
        return
    directions = alignment.align_both_directions(
        *alignment.read_texts(config.source, config.target), config.method
    )
    files.write_text(
        path, map(alignment.format_links, alignment.symmetrize(*directions, config.symmetrization))
    )


def extract(folder: Path, config: TrainConfig, executor: ExecutorConfig) -> None:
    """Write both tables. The phrase table gets its name last: once it exists, the step is finished."""
    temporary = folder / f"{TABLE}.part.gz"
    inputs = TableInputs(source=config.source, target=config.target, alignment=str(folder / ALIGNMENT))
    reordering = str(folder / REORDERING) if config.reordering else None
    outputs = TableOutputs(table=str(temporary), reordering=reordering, lexical=str(folder / LEXICAL))
    with Progress(None, "words", title="extracting") as progress:
        if shared := shared_folder(folder / EXTRACTION, executor):
            pairs = mapreduce.build(inputs, outputs, config.extract, executor, shared, progress.reach)
        else:
            pairs = build(inputs, outputs, config.extract, progress.reach)
    temporary.rename(folder / TABLE)
    log.info("%s phrase pairs", f"{pairs:,}")


def estimate(path: Path, config: TrainConfig, executor: ExecutorConfig) -> None:
    """Write a Kneser-Ney model of --lm-text or the target side, with fallback discounts for a small text."""
    settings = estimators.KneserNeyConfig(order=config.order, discount_fallback=estimators.FALLBACK_DISCOUNTS)
    text = config.lm_text or config.target
    if shared := shared_folder(path.parent / COUNTING, executor):
        counts = count_text(text, CountSettings(config.order), executor, shared)
        model = estimators.kneser_ney_model(*counts, settings)
    else:
        model = estimators.estimate_kneser_ney(
            (files.split_words(line) for line in files.read_lines(text)), settings
        )
    arpa.write(model, path)


def write_ini(path: Path, config: TrainConfig) -> None:
    """Write the moses.ini of the model, with the initial weights of Moses."""
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
