"""A task on its way through a cluster."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("distributed")

from nmt.jobs import dask_task


def test_a_chunk_is_computed_by_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins = {"job": SimpleNamespace(compute=lambda task: [*task, "done"])}
    monkeypatch.setattr(dask_task, "get_worker", lambda: SimpleNamespace(plugins=plugins))
    assert dask_task.compute("job", dask_task.packed(["a", 1])) == ["a", 1, "done"]


@pytest.mark.ci
def test_the_scheduler_is_spared_torch() -> None:
    code = "import sys, nmt.jobs.dask_task, nmt.jobs.dask_scheduler; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
