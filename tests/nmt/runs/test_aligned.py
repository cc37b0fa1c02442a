"""Joint models from their run directories: what they score, and runs that are none."""

import pytest

from nmt.data.affiliation import PHRASE, of_pair
from nmt.data.aligned import AlignedPair, make_aligned_batch
from nmt.errors import CheckpointError, DataError
from nmt.formats import pharaoh
from nmt.runs import aligned, checkpoint
from tests.commands.runs import joint_run
from tests.conftest import ROOT

ROWS = [("a b c", "p u r", "0-0 2-2"), ("b a", "q p", ""), ("c", "", ""), ("a b", "u p", "1-1")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> aligned.SavedAligned:
    folder = tmp_path_factory.mktemp("aligned")
    return aligned.load(joint_run(folder, "training.max_steps=20", "model.affiliation=phrase"))


def test_scores_are_those_of_each_pair_alone(
    run: aligned.SavedAligned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aligned, "BATCH", 3)
    found = aligned.word_scores(run, ROWS, True, "a")
    assert run.model.within == PHRASE and run.name == "run@20" and len(found) == len(ROWS)
    for (source, target, points), scores in zip(ROWS, found, strict=True):
        words, other = source.split(), target.split()
        pair = AlignedPair(
            run.source_words.encode(words),
            run.target_words.encode(other),
            of_pair(pharaoh.parse(points, ""), len(words), len(other), PHRASE),
        )
        expected = run.model.token_log_probs(make_aligned_batch([pair], run.model.shape))
        assert scores == pytest.approx(expected.tolist(), abs=1e-5)
    with pytest.raises(DataError, match=r"^a:11: point 0-5 is outside"):
        aligned.word_scores(run, [("a", "p", "0-5")], True, "a", 10)


def test_runs_of_other_kinds(run: aligned.SavedAligned) -> None:
    for name, kind in (("translator", "rnn"), ("lm", "cslm")):
        with pytest.raises(CheckpointError, match=f"is a model of type {kind}, expected .*model.type joint"):
            aligned.load(ROOT / "tests" / "golden" / "0.5.0" / name)
    with pytest.raises(CheckpointError, match="joint models score aligned text"):
        checkpoint.load(run.directory)
    with pytest.raises(CheckpointError, match="is a translator, expected a language model"):
        checkpoint.load_lm(run.directory)
