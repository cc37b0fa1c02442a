"""Train the networks, each in a single-threaded process of its own.

Any number of them may run at the same time and give the same bytes.
"""

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
from smt_bridge.build.corpus import FOLDER, LONGEST, BuildTexts, sides
from smt_bridge.build.networks import AVERAGED, Name
from smt_bridge.build.plan import NetworkPlan
from smt_bridge.build.tables import ALIGNMENT, DEV_ALIGNMENT

NETWORKS, RUNS, LOGS = "networks", "runs", "logs"  # weights for decoding; run directories; training logs
DONE = f"{NETWORKS}/done"
FORMAT = "[%(asctime)s] %(levelname)s %(message)s"

Content = dict[str, object]


@dataclass(frozen=True)
class TrainingTask:
    """Training of one network. Paths are relative to the folder of the build."""

    name: Name
    preset: str
    content: Content  # of the configuration

    @property
    def run(self) -> str:
        """Path of the run directory."""
        return f"{RUNS}/{self.name}"

    @property
    def output(self) -> str:
        """Path of the directory with the weights for decoding."""
        return f"{NETWORKS}/{self.name}"


def train_all(build: Build) -> None:
    """Train the networks of the plan, `workers` at a time."""
    tasks = [network_task(build, network) for network in build.plan.networks]
    (build.work / LOGS).mkdir(exist_ok=True)
    start = partial(start_trainer, str(build.work), logging.getLogger("nmt").getEffectiveLevel())
    workers = min(build.config.workers, len(tasks))
    with Processes(train_network, start, ExecutorConfig(workers=workers)) as executor:
        for _ in executor.map(tasks):
            pass
    files.write_text(build.work / DONE, [task.name for task in tasks])


def share(build: Build) -> float:
    """Completed share of all trainings, according to their logs."""
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


def check_networks(build: Build, path: str) -> None:
    """DataError for a plan with a network that nmt-train could not train. `path`: file of the plan."""
    for number, network in enumerate(build.plan.networks):
        training = network_task(build, network)
        try:
            config_file.from_mapping(training.content, training.preset or None)
        except ConfigError as error:
            raise DataError(
                f"{path}: networks[{number}]: {error}; is it the plan.json of a build?"
            ) from error


def network_task(build: Build, plan: NetworkPlan) -> TrainingTask:
    """Create the configuration of a network's training."""
    content: Content = {name: dict(section) for name, section in plan.sections.items()}
    training = dict(plan.sections.get("training", {}))
    content["training"] = training | {
        "batch_size": plan.batch, "max_steps": plan.updates, "validate_every": plan.every,
        "tensorboard": False,
    }  # fmt: skip
    return TrainingTask(
        name=plan.name,
        preset=plan.preset,
        content=content
        | {
            "run": f"{RUNS}/{plan.name}",
            "seed": build.config.seed,
            "threads": 1,
            "matmul": build.plan.matmul,
            "data": data_section(build, plan.name),
        },
    )


def data_section(build: Build, name: Name) -> Content:
    """Section `data` of a network's configuration."""
    source, target = (side_settings(settings) for settings in sides(build.config))
    if name == "cslm":
        text = BuildTexts(build.work).lm() if build.plan.monolingual_network else f"{FOLDER}/train.target"
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


def side_settings(config: SideConfig) -> Content:
    """Text settings of a network that reads the words of the tables unchanged."""
    return {
        "language": config.language, "tokenize": False, "normalize": False, "case": "keep", "escaped": True,
        "subword": "none", "min_count": 2,
    }  # fmt: skip


# ---- in a process of its own -------------------------------------------------------------------------------


def start_trainer(folder: str, level: int) -> Callable[[TrainingTask], None]:
    """Change to the folder of the build in a worker process, set its log level, and return the training
    function."""
    os.chdir(folder)
    for package in ("nmt", "smt_bridge"):
        logging.getLogger(package).setLevel(level)
    return train_network


def train_network(task: TrainingTask) -> None:
    """Train or resume a network, then write its weights for decoding.

    These are the average of an attention model's last checkpoints, and the best checkpoint of other networks.
    """
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
