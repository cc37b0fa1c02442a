"""The time of a table, estimated: on the sample of the survey, until it has taken long enough."""

from pathlib import Path

import pytest

from smt_bridge.features.feature_set import FeatureSet, Task
from smt_bridge.features.registry import parse
from smt_bridge.features.spec import FeatureSettings
from smt_bridge.tables import chunks, estimate
from tests.smt_bridge.cli.scored_tables import ARPA, write_table


@pytest.mark.parametrize(("longest", "chunk_count"), [(30.0, None), (0.0, 1)])
def test_pairs_over_time(
    longest: float, chunk_count: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that ticks once a chunk: pairs a tick; after `LONGEST` no further chunk is begun."""
    monkeypatch.setattr(chunks, "CHUNK", 8)
    monkeypatch.setattr(estimate, "LONGEST", longest)
    write_table(tmp_path / "t")
    (tmp_path / "lm").write_text(ARPA)
    found = chunks.survey(str(tmp_path / "t"))
    features = FeatureSet(parse([f"lm={tmp_path / 'lm'}"]), FeatureSettings())
    asked = list[int]()
    whole = features.compute

    def compute(task: Task) -> object:
        asked.append(len(task[0]))
        return whole(task)

    monkeypatch.setattr(features, "compute", compute)
    monkeypatch.setattr("time.monotonic", lambda: 2.0 * len(asked))
    made = estimate.estimate(found, features)
    sizes = [len(piece) for piece in found.sample][:chunk_count]
    assert asked == sizes and made.measured == sum(sizes)
    assert made.rate == sum(sizes) / (2.0 * len(sizes)) and made.memory > 1
