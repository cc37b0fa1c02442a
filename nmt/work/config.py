"""Settings of the executors that compute long jobs."""

from dataclasses import dataclass

from nmt.config.settings import number, setting


@dataclass(frozen=True)
class ExecutorConfig:
    """Where and by how many workers a job is computed. Its result does not depend on these, except that
    workers with different processors may round differently."""

    executor: str = setting(
        "",
        help="where to compute: local (this process), processes, or dask; default: processes for several "
        "workers, dask with --cluster",
    )
    workers: int = number(1, least=1, help="number of processes; the result does not depend on it")
    cluster: str = setting(
        "",
        help="compute on a Dask cluster: the address of its scheduler, or the scheduler.json that it wrote; "
        "slurm:FILE starts workers in Slurm jobs",
    )
    mixed_workers: bool = setting(
        False,
        help="allow workers of a cluster with another processor or version of torch than this one: numbers "
        "may differ in their last digits from worker to worker",
    )

    def recorded(self) -> dict[str, bool]:
        """The settings that a job folder records, because they may affect numbers."""
        return {"mixed_workers": True} if self.mixed_workers else {}

    @property
    def name(self) -> str:
        """Name of the executor, chosen by the other settings unless `executor` is set."""
        if self.executor:
            return self.executor
        return "dask" if self.cluster else "processes" if self.workers > 1 else "local"
