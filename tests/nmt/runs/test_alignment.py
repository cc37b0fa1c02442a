"""Given pairs are aligned as the search aligns its translations."""

import shutil
from pathlib import Path

import pytest

from nmt.cli import score
from nmt.data.affiliation import PHRASE, AlignedPair, affiliate_pair
from nmt.data.aligned import make_aligned_batch
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.formats import pharaoh
from nmt.formats.pharaoh import parse
from nmt.runs import alignment, checkpoint
from nmt.runs.alignment import align, check_attention
from nmt.runs.run import TranslationRequest
from nmt.runs.torch_run import TorchRun
from nmt.search.config import BeamConfig
from tests.commands.runs import joint_run
from tests.conftest import ROOT

# ---- test alignment ----------------------------------------------------------------------------------------


MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture(scope="module")
def run() -> TorchRun:
    """It has attention and subwords."""
    return TorchRun.of(MODELS / "translator")


def test_forced_alignments_are_those_of_the_search(run: TorchRun) -> None:
    """Where the search has cut its words as the subwords do."""
    member = run.members[0]
    lines = (MODELS / "source.en").read_text(encoding="utf-8").split("\n")[:20]
    sources = [" ".join(member.source.words(line)) for line in lines]
    run = run.for_text(tokenized=True)
    translations = run.search(TranslationRequest(sources), BeamConfig(beam_size=2))
    pairs, expected = [], []
    for source, [best, *_] in zip(sources, translations, strict=True):
        translation = run.translation(source, best)
        target = " ".join(translation.words)
        if run.target_ids(target) == best.words:
            pairs.append((source, target))
            expected.append(set(translation.alignment))
    aligned = align(run, pairs)
    assert aligned == expected and sum(map(len, aligned)) > 50
    backwards = align(run, pairs[::-1])
    assert backwards[::-1] == aligned and align(run, pairs[:1]) == aligned[:1]


def test_every_target_word_is_linked_and_empty_sides_have_no_links(run: TorchRun) -> None:
    pairs = [("the man sleeps .", "l' homme dort ."), ("", "oui"), ("yes", ""), ("", "")]
    found = align(run.for_text(tokenized=True), pairs)
    assert {target for _, target in found[0]} == set(range(4)) and found[1:] == [set()] * 3
    with pytest.raises(DataError):
        align(run, [("a " * 300, "b")])


def test_models_without_attention_are_refused(tiny: Path) -> None:
    with pytest.raises(ConfigError, match="has no attention to align by"):
        check_attention(TorchRun.of(tiny / "run"))


def test_the_command_writes_them_beside_the_scores(
    run: TorchRun, tiny: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s").write_text("The man sleeps.\n\nA boy.\n")
    (tmp_path / "t").write_text("L'homme dort.\n\nUn garçon.\n", encoding="utf-8")
    run_dir = shutil.copytree(MODELS / "translator", tmp_path / "run")  # it takes a file
    given = [str(run_dir), "-q", "-s", str(tmp_path / "s"), "-t", str(tmp_path / "t")]
    assert score.main([*given, "-o", str(tmp_path / "plain")]) == 0
    assert score.main([*given, "-o", str(tmp_path / "out"), "--alignments", str(tmp_path / "links")]) == 0
    assert (tmp_path / "out").read_text() == (tmp_path / "plain").read_text()
    lines = (tmp_path / "links").read_text().split("\n")[:-1]
    pairs = zip(
        *((tmp_path / name).read_text(encoding="utf-8").split("\n")[:-1] for name in "st"), strict=True
    )
    assert [parse(line, "") for line in lines] == align(run, list(pairs))
    plain = [
        str(shutil.copytree(tiny / "run", tmp_path / "without")),
        *given[1:],
        "-o",
        str(tmp_path / "x"),
        "--alignments",
        str(tmp_path / "y"),
    ]
    assert score.main(plain) == 2 and "has no attention to align by" in capfd.readouterr().err
    assert not (tmp_path / "y").exists()


# ---- test aligned ------------------------------------------------------------------------------------------
# Joint models from their run directories: what they score, and runs that are none.


ROWS = [("a b c", "p u r", "0-0 2-2"), ("b a", "q p", ""), ("c", "", ""), ("a b", "u p", "1-1")]


@pytest.fixture(scope="module")
def joint(tmp_path_factory: pytest.TempPathFactory) -> alignment.SavedAligned:
    folder = tmp_path_factory.mktemp("aligned")
    run = joint_run(folder, "training.max_steps=20", "model.affiliation=phrase")
    return alignment.load_aligned(run).for_text(tokenized=True)


def test_scores_are_those_of_each_pair_alone(
    joint: alignment.SavedAligned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.runs.alignment.PAIRS_PER_BATCH", 3)
    found = alignment.aligned_word_scores(joint, ROWS, "a")
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
        alignment.aligned_word_scores(joint, [("a", "p", "0-5")], "a", 10)


def test_runs_of_other_kinds(joint: alignment.SavedAligned) -> None:
    for name, kind in (("translator", "rnn"), ("lm", "cslm")):
        with pytest.raises(CheckpointError, match=f"is a model of type {kind}, expected .*model.type joint"):
            alignment.load_aligned(ROOT / "tests" / "models" / name)
    with pytest.raises(CheckpointError, match="is a joint model, expected a translator"):
        checkpoint.load(joint.directory)
    with pytest.raises(CheckpointError, match="is a translator, expected a language model"):
        checkpoint.load_lm(joint.directory)
