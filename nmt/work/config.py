"""How the chunks of a long job are computed."""

from dataclasses import dataclass

from nmt.config.settings import number, setting


@dataclass(frozen=True)
class ExecutorConfig:
    """The result of a job never depends on these, except that workers of several kinds of processors may
    round differently."""

    executor: str = setting("", help="what computes; unless given local for one worker, processes for more")
    workers: int = number(1, least=1, help="processes; the result does not depend on it")
    cluster: str = setting(
        "",
        help="compute on a Dask cluster: the address of its scheduler, or the scheduler.json that it wrote; "
        "slurm:FILE starts workers in jobs of Slurm",
    )
    mixed_workers: bool = setting(
        False,
        help="let workers of a cluster compute on other processors, or with another torch, than this one: "
        "numbers may differ in their last digits from worker to worker",
    )

    def recorded(self) -> dict[str, bool]:
        """What the settings of a job hold of it: what may change its numbers."""
        return {"mixed_workers": True} if self.mixed_workers else {}

    @property
    def name(self) -> str:
        """The executor, named or not."""
        if self.executor:
            return self.executor
        return "dask" if self.cluster else "processes" if self.workers > 1 else "local"
