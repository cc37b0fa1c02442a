"""Which executor computes, and what a job remembers of it."""

import pytest

from nmt.work.config import ExecutorConfig


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (ExecutorConfig(), "local"),
        (ExecutorConfig(workers=2), "processes"),
        (ExecutorConfig(workers=2, cluster="127.0.0.1:8786"), "dask"),
        (ExecutorConfig("local", 2, "127.0.0.1:8786"), "local"),
    ],
)
def test_the_executor_that_is_used(config: ExecutorConfig, name: str) -> None:
    assert config.name == name


def test_jobs_remember_what_may_change_numbers() -> None:
    """A job of one machine may go on with other workers, and one of alike workers on a cluster."""
    assert ExecutorConfig("processes", 4).recorded() == ExecutorConfig(cluster="a:1").recorded() == {}
    assert ExecutorConfig(cluster="a:1", mixed_workers=True).recorded() == {"mixed_workers": True}
