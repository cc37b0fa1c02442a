"""Workers in Slurm jobs, for `--cluster slurm:FILE`: the Dask scheduler runs in this process, and
dask-jobqueue submits the jobs."""

import logging
import shutil
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from omegaconf import OmegaConf

from nmt.config import settings
from nmt.config.settings import number, setting
from nmt.config.yaml_text import NotYaml, parse
from nmt.errors import ConfigError, UserError
from nmt.io import files

if TYPE_CHECKING:
    from dask_jobqueue.slurm import SLURMCluster

# Settings that dask-jobqueue calls by the same names
SAME_NAMES = ("walltime", "queue", "account", "interface", "python", "local_directory", "log_directory")
MISSING = "--cluster slurm:FILE needs more libraries: pip install 'nmt-smt[cluster]'"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SlurmConfig:
    """The keys of FILE, which is YAML. Empty: as in the site's configuration of dask-jobqueue."""

    jobs: int = number(1, least=1, help="number of jobs to submit")
    cores: int = number(1, least=1, help="cores of a job, each with a worker of its own")
    memory: str = setting("4GB", help="memory of a job")
    walltime: str = setting("", help="time limit of a job, such as 12:00:00")
    queue: str = setting("", help="partition")
    account: str = setting("", help="account to charge")
    interface: str = setting("", help="network interface of scheduler and workers, such as ib0")
    python: str = setting("", help="Python of the workers; default: the Python of this command")
    local_directory: str = setting("", help="folder on the local disk of each host")
    log_directory: str = setting("", help="folder for the output of the workers")
    directives: list[str] = setting([], help="more #SBATCH lines, such as --gres=gpu:1")
    prologue: list[str] = setting([], help="lines of the job script before the worker, such as module load")


def read_config(path: str) -> SlurmConfig:
    """Read FILE. DataError if it cannot be read; ConfigError for bad YAML, an unknown key or wrong value."""
    text = "\n".join(files.read_lines(path))
    try:
        values = OmegaConf.to_container(parse(text))
        if not isinstance(values, dict):
            raise NotYaml("expected keys and values", 1)
        config = settings.changed(SlurmConfig(), {str(key): value for key, value in values.items()})
    except NotYaml as error:
        raise ConfigError(f"{path}:{error.line or 1}: {error}") from error
    except TypeError as error:
        raise ConfigError(f"{path}: {error}") from error
    settings.check(config, f"{path}: ")
    plain = SlurmConfig()
    for item in fields(plain):
        value, usual = getattr(config, item.name), getattr(plain, item.name)
        listed = isinstance(usual, list)
        if not isinstance(usual, int) and not is_text(value, listed):
            expected = "a list of texts" if listed else "a text in quotes"
            raise ConfigError(f"{path}: {item.name}: {value!r}, expected {expected}")
    return config


def is_text(value: object, listed: bool) -> bool:
    """Whether a value is a string, or with `listed` a list of strings."""
    parts = value if isinstance(value, list) else [value]
    return isinstance(value, list) == listed and all(isinstance(part, str) for part in parts)


def job_options(config: SlurmConfig) -> dict[str, object]:
    """Convert the settings to keywords of dask-jobqueue, for jobs whose workers have one thread each."""
    return {
        "cores": config.cores,
        "processes": config.cores,
        "memory": config.memory,
        **{name: getattr(config, name) or None for name in SAME_NAMES},
        "job_extra_directives": config.directives or None,
        "job_script_prologue": config.prologue or None,
    }


def start_cluster(path: str) -> "SLURMCluster":
    """Start the scheduler in this process, with TLS, and submit the jobs of the workers. `path`: FILE, errors
    as from `read_config`. UserError if Slurm or dask-jobqueue is missing; TypeError, ValueError and OSError
    for missing or unusable certificates."""
    config = read_config(path)
    try:
        from dask_jobqueue.slurm import SLURMCluster
        from distributed import Security
    except ModuleNotFoundError as error:
        raise UserError(MISSING) from error
    if not shutil.which("sbatch"):
        raise UserError(
            f"--cluster slurm:{path}: the program sbatch is missing; start the command on a Slurm login node"
        )
    security = Security(require_encryption=True)
    keywords = job_options(config) | {"scheduler_options": {"dashboard_address": ":0"}}
    cluster = SLURMCluster(security=security, protocol="tls://", **keywords)  # type: ignore[arg-type]
    log.info("dashboard: %s", cluster.dashboard_link)
    cluster.scale(jobs=config.jobs)
    return cluster
