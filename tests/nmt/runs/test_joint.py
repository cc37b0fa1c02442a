"""Joint models from their run directories: what they score, and runs that are none."""

import pytest

from nmt.data.affiliation import PHRASE, AlignedPair, affiliate_pair
from nmt.data.aligned import make_aligned_batch
from nmt.errors import CheckpointError, DataError
from nmt.formats import pharaoh
from nmt.runs import checkpoint
from nmt.runs.joint import SavedAligned, aligned_word_scores, load_aligned
from tests.commands.runs import joint_run
from tests.conftest import ROOT

ROWS = [("a b c", "p u r", "0-0 2-2"), ("b a", "q p", ""), ("c", "", ""), ("a b", "u p", "1-1")]


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> SavedAligned:
    folder = tmp_path_factory.mktemp("aligned")
    run = joint_run(folder, "training.max_steps=20", "model.affiliation=phrase")
    return load_aligned(run).for_text(tokenized=True)


def test_scores_are_those_of_each_pair_alone(joint: SavedAligned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.runs.joint.PAIRS_PER_BATCH", 3)
    found = aligned_word_scores(joint, ROWS, "a")
    assert joint.model.within == PHRASE and joint.name == "run@20" and len(found) == len(ROWS)
    for (source, target, points), scores in zip(ROWS, found, strict=True):
        words, other = source.split(), target.split()
        pair = AlignedPair(
            joint.source_words.encode(words),
            joint.target_words.encode(other),
            affiliate_pair(pharaoh.parse(points, ""), len(words), len(other), PHRASE),
        )
        expected = joint.model.token_log_probs(make_aligned_batch([pair], joint.model.shape))
        assert scores == pytest.approx(expected.tolist(), abs=1e-5)
    with pytest.raises(DataError, match=r"^a:11: point 0-5 is outside"):
        aligned_word_scores(joint, [("a", "p", "0-5")], "a", 10)


def test_runs_of_other_kinds(joint: SavedAligned) -> None:
    for name, kind in (("translator", "rnn"), ("lm", "cslm")):
        with pytest.raises(CheckpointError, match=f"is a model of type {kind}, expected .*model.type joint"):
            load_aligned(ROOT / "tests" / "models" / name)
    with pytest.raises(CheckpointError, match="is a joint model, expected a translator"):
        checkpoint.load(joint.directory)
    with pytest.raises(CheckpointError, match="is a joint model, expected a language model"):
        checkpoint.load_lm(joint.directory)
