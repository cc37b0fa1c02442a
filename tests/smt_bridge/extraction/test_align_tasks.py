"""What workers compute of an alignment; test_align_shards.py has all of it together."""

from pathlib import Path

import pytest

from nmt.errors import ConfigError, UserError
from nmt.jobs import stages
from smt_bridge.extraction import align_tasks


def test_a_worker_without_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="all hosts have to share it"):
        stages.begin(align_tasks.Worker(tmp_path / "job", "fast_align", "union"))


@pytest.mark.ci
def test_a_training_that_fails_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^.*job/shards: missing or damaged; .*$"):
        align_tasks.run_training([str(tmp_path / "job"), "fast_align", "0", str(tmp_path / "model")])
    with pytest.raises(UserError, match=r"^training of word alignment: .*ValueError"):
        align_tasks.run_training(["too", "few"])
