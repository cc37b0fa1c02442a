"""The networks, each trained by a process of its own with one thread, so that any number of them side by side
gives the same bytes."""

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.runs import directory as run_directory
from nmt.runs import weights
from nmt.runs.directory import TRAIN_LOG
from nmt.text.pipeline import SideConfig
from nmt.training import config_file
from nmt.training.train import run_training
from nmt.work.config import ExecutorConfig
from nmt.work.executors import Processes
from smt_bridge.build.config import Build
from smt_bridge.build.corpus import FOLDER, LONGEST, Texts, sides
from smt_bridge.build.networks import AVERAGED, Name
from smt_bridge.build.plan import NetworkPlan
from smt_bridge.build.tables import ALIGNMENT, DEV_ALIGNMENT

NETWORKS, RUNS, LOGS = "networks", "runs", "logs"  # stripped for decoding; as trained; a log of each training
DONE = f"{NETWORKS}/done"
FORMAT = "[%(asctime)s] %(levelname)s %(message)s"

Content = dict[str, object]


@dataclass(frozen=True)
class Task:
    """A training. All paths are relative to the folder of the build."""

    name: Name
    preset: str
    content: Content  # of the configuration

    @property
    def run(self) -> str:
        """The run directory."""
        return f"{RUNS}/{self.name}"

    @property
    def output(self) -> str:
        """The run directory with what decoding needs."""
        return f"{NETWORKS}/{self.name}"


def train_all(build: Build) -> None:
    """Train the networks of the plan, `workers` at a time."""
    tasks = [task(build, one) for one in build.plan.networks]
    (build.work / LOGS).mkdir(exist_ok=True)
    begin = partial(trainer, str(build.work), logging.getLogger("nmt").getEffectiveLevel())
    workers = min(build.config.workers, len(tasks))
    with Processes(train, begin, ExecutorConfig(workers=workers)) as executor:
        for _ in executor.map(tasks):
            pass
    files.write_text(build.work / DONE, [task.name for task in tasks])


def share(build: Build) -> float:
    """How much of the trainings is done, by their logs."""
    total = sum(network.seconds for network in build.plan.networks)
    done = 0.0
    for network in build.plan.networks:
        log_file = build.work / RUNS / network.name / TRAIN_LOG
        if (build.work / NETWORKS / network.name).exists():
            done += network.seconds
        elif log_file.exists():
            *_, last = log_file.read_text(encoding="utf-8", errors="replace").split("\n")[:-1] or [""]
            step = last.partition("\t")[0]
            done += network.seconds * min(1.0, int(step) / network.updates if step.isdecimal() else 0.0)
    return done / max(1.0, total)


def check(build: Build, path: str) -> None:
    """DataError for a plan with a network that nmt-train could not train. `path`: of the plan."""
    for number, network in enumerate(build.plan.networks):
        training = task(build, network)
        try:
            config_file.from_mapping(training.content, training.preset or None)
        except ConfigError as error:
            raise DataError(
                f"{path}: networks[{number}]: {error}; is it the plan.json of a build?"
            ) from error


def task(build: Build, plan: NetworkPlan) -> Task:
    """The configuration for the training of a network."""
    content: Content = {name: dict(section) for name, section in plan.sections.items()}
    training = dict(plan.sections.get("training", {}))
    content["training"] = training | {
        "batch_size": plan.batch, "max_steps": plan.updates, "validate_every": plan.every,
        "tensorboard": False,
    }  # fmt: skip
    return Task(
        name=plan.name,
        preset=plan.preset,
        content=content
        | {
            "run": f"{RUNS}/{plan.name}",
            "seed": build.config.seed,
            "threads": 1,
            "matmul": build.plan.matmul,
            "data": data(build, plan.name),
        },
    )


def data(build: Build, name: Name) -> Content:
    """The section `data` of a network's configuration."""
    source, target = (side(one) for one in sides(build.config))
    if name == "cslm":
        text = Texts(build.work).lm() if build.plan.monolingual_network else f"{FOLDER}/train.target"
        return {
            "train_text": text,
            "dev_text": f"{FOLDER}/dev.target",
            "target": target,
            "max_length": LONGEST,
        }
    texts: Content = {
        f"{part}_{name}": f"{FOLDER}/{part}.{name}"
        for part in ("train", "dev")
        for name in ("source", "target")
    }
    links = {"alignment": ALIGNMENT, "dev_alignment": DEV_ALIGNMENT} if name == "joint" else {}
    return {**texts, **links, "source": source, "target": target, "max_length": LONGEST}


def side(config: SideConfig) -> Content:
    """How a network reads the words of the tables: as they are."""
    return {
        "language": config.language, "tokenize": False, "normalize": False, "case": "keep", "escaped": True,
        "subword": "none", "min_count": 2,
    }  # fmt: skip


# ---- in a process of its own -------------------------------------------------------------------------------


def trainer(folder: str, level: int) -> Callable[[Task], None]:
    """What trains, in a process that works in the folder of the build and writes its messages to files."""
    os.chdir(folder)
    for package in ("nmt", "smt_bridge"):
        logging.getLogger(package).setLevel(level)
    return train


def train(task: Task) -> None:
    """Train, or resume; then keep what decoding needs: the mean of an attention model's last checkpoints,
    the best checkpoint of the others."""
    handler = logging.FileHandler(f"{LOGS}/{task.name}.log", encoding="utf-8")
    handler.setFormatter(logging.Formatter(FORMAT, "%Y-%m-%d %H:%M:%S"))
    logging.getLogger("nmt").addHandler(handler)
    try:
        run, output = Path(task.run), Path(task.output)
        if run_directory.exists(output):
            return
        run_training(config_file.from_mapping(task.content, task.preset or None))
        best = None if task.name == "attention" else [run_directory.find_step(run, "best")]
        weights.write_average(run, output, best, AVERAGED)
    finally:
        logging.getLogger("nmt").removeHandler(handler)
        handler.close()
