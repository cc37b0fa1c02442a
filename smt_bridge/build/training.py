"""Train what a build needs: word alignment, tables and count model, as smt-align, smt-train and
smt-filter-table do, then the networks, each in a single-threaded process of its own."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeVar

from nmt.compute import device
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.directory import TRAIN_LOG
from nmt.text.lexicon import Lexicon
from nmt.text.pipeline import SideConfig
from nmt.text.tokenize import unescape
from nmt.training import config_file
from nmt.training.train import run_training
from nmt.work.executors import ExecutorConfig, Processes
from smt_bridge import train_system
from smt_bridge.build.config import Build
from smt_bridge.build.corpus import FOLDER, LONGEST, BuildTexts, sides
from smt_bridge.build.networks import AVERAGED, GUIDED, Name
from smt_bridge.build.plan import NetworkPlan
from smt_bridge.config import TrainConfig
from smt_bridge.extraction import alignment
from smt_bridge.extraction.config import ExtractConfig
from smt_bridge.extraction.packed_corpus import pack_text
from smt_bridge.extraction.symmetrization import symmetrize
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses.ini import FeatureLine, Ini
from smt_bridge.tables.filter import FilterPaths, Occurring, filter_tables, read_texts

# ---- tables ------------------------------------------------------------------------------------------------


ALIGNMENT, DEV_ALIGNMENT = "alignment.gz", "dev.alignment.gz"
MODEL, DEV = "model", "dev"  # folders: the full model; tables and translations of the development set
BASE, LEX_F2E = "moses.ini", f"{train_system.LEXICAL}.f2e"


def align(build: Build) -> None:
    """Align training text and development set together, and write both alignments. A joint model then
    validates on links like those that it trains on; the development set alone is too small to align.
    DataError if a text has no words."""
    texts, config = BuildTexts(build.work), train_config(build)
    sources, targets = alignment.read_texts(texts.path("train.source"), texts.path("train.target"))
    dev_sources, dev_targets = alignment.read_texts(texts.path("dev.source"), texts.path("dev.target"))
    both = pack_text(chain(sources, dev_sources)), pack_text(chain(targets, dev_targets))
    links = symmetrize(*alignment.align_both_directions(*both, config.method), config.symmetrization)
    files.write_text(build.work / DEV_ALIGNMENT, links[len(sources) :].lines())
    files.write_text(build.work / ALIGNMENT, links[: len(sources)].lines())


def train_config(build: Build) -> TrainConfig:
    """Settings of smt-train for the build, with the features of the extended phrase-based system."""
    texts, extended = BuildTexts(build.work), build.plan.extended
    config = TrainConfig(
        source=str(texts.path("train.source")),
        target=str(texts.path("train.target")),
        alignment=str(build.work / ALIGNMENT),
        lm_text=str(build.work / texts.lm()),
        extract=extract_config(build),
    )
    config.prune.prune_entropy = build.plan.prune_entropy
    if extended:
        config.osm, config.class_lm = extended.osm, extended.class_lm
    return config


def extract_config(build: Build) -> ExtractConfig:
    extended = build.plan.extended
    if not extended:
        return ExtractConfig()
    return ExtractConfig(reordering_type=extended.reordering_type, count_feature=extended.count_feature)


def train(build: Build) -> None:
    """Train the tables and the count model in the folder MODEL.

    Checksums are recorded after each step of the training, since a resumed training reuses finished files.
    """
    train_system.train(
        build.work / MODEL, train_config(build), on_step=lambda: build.store.record([f"{MODEL}/*"])
    )


def filter_to_dev(build: Build) -> None:
    """Write the rows of the tables that the development set can use to the folder DEV, and an ini for them,
    without the extended features. DataError if there are none."""
    model, dev = build.work / MODEL, build.work / DEV
    wanted = Occurring(read_texts([str(build.work / FOLDER / "dev.source")]))
    names = train_system.TABLE, train_system.reordering_name(train_config(build))
    table, filtered, reordering, reordering_filtered = (
        folder / name for name in names for folder in (model, dev)
    )
    paths = FilterPaths(table, filtered, reordering, reordering_filtered, checked=(table, reordering))
    if not filter_tables(paths, wanted):
        raise DataError(
            f"{build.config.dev_source}: no phrase of it is in {build.config.source}, so that nothing can be "
            "tuned; give a development set of the same language and kind"
        )
    ini = moses_ini.read(str(model / train_system.INI))
    for feature in extended_features(ini):
        ini = moses_ini.remove_feature(ini, feature.name)
    ini = moses_ini.set_path(ini, "LM0", f"../{MODEL}/{train_system.LM}")
    moses_ini.write(dev / BASE, ini)


# by their kinds in the ini
EXTENDED_FEATURES = {
    "ClassLM": "language model of word classes",
    "OpSequenceModel": "operation sequence model",
}


def extended_features(ini: Ini) -> list[FeatureLine]:
    """The features of an ini that only the extended phrase-based system has."""
    return [feature for feature in ini.features if feature.kind in EXTENDED_FEATURES]


# ---- networks ----------------------------------------------------------------------------------------------
# Their files do not depend on how many are trained at the same time.


# Pairs of monolingual lines and their translations, which back_translation.py makes, their word alignment,
# and the tag of their source sentences (Caswell et al. 2019).
BACK = "back-translation"
BACK_SOURCE, BACK_TARGET = f"{BACK}/train.source", f"{BACK}/train.target"
BACK_ALIGNMENT = f"{BACK}/train.alignment.gz"
TAG = "<bt>"
NETWORKS, RUNS, LOGS = "networks", "runs", "logs"  # weights for decoding; run directories; training logs
DONE = f"{NETWORKS}/done"
LOG_FORMAT = "[%(asctime)s] %(levelname)s %(message)s"

Content = dict[str, object]
Task = TypeVar("Task")


@dataclass(frozen=True)
class TrainingTask:
    """Training of one network. Paths are relative to the folder of the build."""

    name: Name
    preset: str
    content: Content  # of the configuration


def train_all(build: Build) -> None:
    """Train the networks of the plan, `workers` at a time, each in its own process. UserError if one dies."""
    tasks = [network_task(build, network) for network in build.plan.networks]
    (build.work / LOGS).mkdir(exist_ok=True)
    run_tasks(build, train_network, tasks, min(build.config.workers, len(tasks)))
    if build.plan.has("attention"):
        write_lexicon(build.work / MODEL / LEX_F2E, build.work / NETWORKS / "attention")
    files.write_text(build.work / DONE, [task.name for task in tasks])


def write_lexicon(table: Path, run: Path) -> None:
    """Give a network the best translation of each word, by a lexical table of escaped words, which replaces
    words that the network does not know. DataError for a table without words."""
    lexicon = Lexicon.load(table, most=1)
    words = sorted((unescape(source), unescape(lexicon.best(source))) for source in lexicon.translations)
    with run_directory.writing(run) as new:
        files.write_text(new / run_directory.LEXICON, map(" ".join, words))


def share(build: Build) -> float:
    """Completed share, 0 to 1, of all trainings, according to their logs."""
    total = sum(network.seconds for network in build.plan.networks)
    done = 0.0
    for network in build.plan.networks:
        if (build.work / NETWORKS / network.name).exists():
            done += network.seconds
        else:
            updates = trained_updates(build.work / RUNS / network.name)
            done += network.seconds * min(1.0, updates / network.updates)
    return done / max(1.0, total)


def trained_updates(run: Path) -> int:
    """Updates of a training so far, according to its log; 0 before the first line of it."""
    log_file = run / TRAIN_LOG
    if not log_file.exists():
        return 0
    *_, last = log_file.read_text(encoding="utf-8", errors="replace").split("\n")[:-1] or [""]
    step = last.partition("\t")[0]
    return int(step) if step.isdecimal() else 0


def check_networks(build: Build, path: str) -> None:
    """DataError for a plan with a network that nmt-train could not train. `path`: file of the plan."""
    for number, network in enumerate(build.plan.networks):
        task = network_task(build, network)
        try:
            config_file.from_mapping(task.content, task.preset or None)
        except ConfigError as error:
            raise DataError(
                f"{path}: networks[{number}]: {error}; is it the plan.json of a build?"
            ) from error


def network_task(build: Build, plan: NetworkPlan) -> TrainingTask:
    training = dict(plan.sections.get("training", {})) | {
        "batch_size": plan.batch, "max_steps": plan.updates, "validate_every": plan.every,
        "tensorboard": False,
    }  # fmt: skip
    content: Content = {name: dict(section) for name, section in plan.sections.items()} | {
        "training": training,
        "run": f"{RUNS}/{plan.name}",
        "seed": build.config.seed,
        "threads": 1,
        "matmul": build.plan.matmul,
        "data": data_section(build, plan.name, GUIDED in training),
    }
    return TrainingTask(plan.name, plan.preset, content)


def data_section(build: Build, name: Name, guided: bool = False) -> Content:
    """Section `data` of the configuration of a network. `guided`: its attention learns from the links."""
    source, target = (side_settings(settings) for settings in sides(build.config))
    if name == "cslm":
        text = BuildTexts(build.work).lm() if build.plan.monolingual_network else f"{FOLDER}/train.target"
        return {
            "train_text": text, "dev_text": f"{FOLDER}/dev.target", "target": target, "max_length": LONGEST,
        }  # fmt: skip
    train = {side: f"{FOLDER}/train.{side}" for side in ("source", "target")}
    texts: Content = {f"dev_{side}": f"{FOLDER}/dev.{side}" for side in ("source", "target")}
    links, back_links = ({"alignment": path} if guided else {} for path in (ALIGNMENT, BACK_ALIGNMENT))
    if name == "attention" and build.plan.back_translated:
        back = {"name": "back-translated", "source": BACK_SOURCE, "target": BACK_TARGET, "tag": TAG}
        texts["corpora"] = [{"name": "parallel", **train, **links}, back | back_links]
    else:
        texts |= {f"train_{side}": path for side, path in train.items()} | links
    if name == "joint":
        texts["alignment"] = ALIGNMENT
        texts["dev_alignment"] = DEV_ALIGNMENT
    return {**texts, "source": source, "target": target, "max_length": LONGEST}


def side_settings(config: SideConfig) -> Content:
    """Text settings of a network that reads the words of the tables unchanged."""
    return {
        "language": config.language, "tokenize": False, "normalize": False, "case": "keep", "escaped": True,
        "subword": "none", "min_count": 2,
    }  # fmt: skip


# ---- in a process of its own -------------------------------------------------------------------------------


def run_tasks(build: Build, work: Callable[[Task], None], tasks: Iterable[Task], workers: int = 1) -> None:
    """Do tasks in `workers` processes, in the folder of the build. UserError if a process dies."""
    level = logging.getLogger("nmt").getEffectiveLevel()
    start = partial(start_worker, str(build.work), level, work)
    with Processes(work, start, ExecutorConfig(workers=workers)) as executor:
        for _ in executor.map(tasks):
            pass


def start_worker(folder: str, level: int, work: Callable[[Task], None]) -> Callable[[Task], None]:
    """In a worker process: change to the folder of the build, set the log level, and return `work`."""
    os.chdir(folder)
    for package in ("nmt", "smt_bridge"):
        logging.getLogger(package).setLevel(level)
    return work


def train_network(task: TrainingTask) -> None:
    """Train or resume a network, then write its weights for decoding: the average of an attention model's
    last checkpoints, or the best checkpoint of another network. The current directory must be the folder of
    the build."""
    with log_to(task.name):
        run, output = Path(RUNS, task.name), Path(NETWORKS, task.name)
        if not run_directory.exists(output):
            run_training(config_file.from_mapping(task.content, task.preset or None))
            steps = None if task.name == "attention" else [run_directory.find_step(run, "best")]
            checkpoint.write_average(run, output, steps, AVERAGED)
        # The last file of the run. It is missing if training was killed just before writing it; a later step
        # would then measure the back ends itself, and might choose another one.
        back_ends = output / run_directory.BACK_ENDS
        if not device.recall_choice(back_ends):
            device.remember_choice(back_ends, device.BackEndChoice(str(task.content["matmul"])))


@contextmanager
def log_to(name: str) -> Iterator[None]:
    """Context that appends the messages of a training to LOGS/`name`.log."""
    handler = logging.FileHandler(f"{LOGS}/{name}.log", encoding="utf-8")
    handler.setFormatter(logging.Formatter(LOG_FORMAT, "%Y-%m-%d %H:%M:%S"))
    logging.getLogger("nmt").addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger("nmt").removeHandler(handler)
        handler.close()
