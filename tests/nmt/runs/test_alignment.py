"""Given pairs are aligned as the search aligns its translations."""

import shutil
from pathlib import Path

import pytest

from nmt.cli import score
from nmt.errors import ConfigError, DataError
from nmt.formats.pharaoh import parse
from nmt.runs.alignment import align, check
from nmt.runs.run import Run
from nmt.search.config import BeamConfig

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


@pytest.fixture(scope="module")
def run() -> Run:
    """It has attention and subwords."""
    return Run.of(GOLDEN / "0.5.0/translator")


def test_forced_alignments_are_those_of_the_search(run: Run) -> None:
    """Where the search has cut its words as the subwords do."""
    member = run.members[0]
    lines = (GOLDEN / "source.en").read_text(encoding="utf-8").split("\n")[:20]
    sources = [" ".join(member.source.words(line)) for line in lines]
    pairs, expected = [], []
    for source, [best, *_] in zip(sources, run.search(sources, BeamConfig(beam_size=2), True), strict=True):
        translation = run.translation(source, best, tokenized=True)
        target = " ".join(translation.words)
        if run.target_ids(target, tokenized=True) == best.words:
            pairs.append((source, target))
            expected.append(set(translation.alignment))
    aligned = align(run, pairs, tokenized=True)
    assert aligned == expected and sum(map(len, aligned)) > 50
    backwards = align(run, pairs[::-1], tokenized=True)
    assert backwards[::-1] == aligned and align(run, pairs[:1], tokenized=True) == aligned[:1]


def test_every_target_word_is_linked_and_empty_sides_have_no_links(run: Run) -> None:
    found = align(
        run, [("the man sleeps .", "l' homme dort ."), ("", "oui"), ("yes", ""), ("", "")], tokenized=True
    )
    assert {target for _, target in found[0]} == set(range(4)) and found[1:] == [set()] * 3
    with pytest.raises(DataError):
        align(run, [("a " * 300, "b")])


def test_models_without_attention_are_refused() -> None:
    with pytest.raises(ConfigError, match="has no attention to align by"):
        check(Run.of(GOLDEN / "0.1.0/translator"))


def test_the_command_writes_them_beside_the_scores(
    run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s").write_text("The man sleeps.\n\nA boy.\n")
    (tmp_path / "t").write_text("L'homme dort.\n\nUn garçon.\n", encoding="utf-8")
    run_dir = shutil.copytree(GOLDEN / "0.5.0/translator", tmp_path / "run")  # it takes a file
    given = [str(run_dir), "-q", "-s", str(tmp_path / "s"), "-t", str(tmp_path / "t")]
    assert score.main([*given, "-o", str(tmp_path / "plain")]) == 0
    assert score.main([*given, "-o", str(tmp_path / "out"), "--alignments", str(tmp_path / "links")]) == 0
    assert (tmp_path / "out").read_text() == (tmp_path / "plain").read_text()
    lines = (tmp_path / "links").read_text().split("\n")[:-1]
    pairs = zip(
        *((tmp_path / name).read_text(encoding="utf-8").split("\n")[:-1] for name in "st"), strict=True
    )
    assert [parse(line, "") for line in lines] == align(run, list(pairs))
    old = [
        str(shutil.copytree(GOLDEN / "0.1.0/translator", tmp_path / "old")),
        *given[1:],
        "-o",
        str(tmp_path / "x"),
        "--alignments",
        str(tmp_path / "y"),
    ]
    assert score.main(old) == 2 and "has no attention to align by" in capfd.readouterr().err
    assert not (tmp_path / "y").exists()
