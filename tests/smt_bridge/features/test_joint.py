"""A joint model as a feature: log p of each hypothesis given its affiliations."""

from pathlib import Path

import pytest

import smt_bridge
from nmt.errors import ConfigError
from nmt.runs import aligned
from smt_bridge.features.base import WordPairs
from smt_bridge.features.joint import Joint
from smt_bridge.features.spec import FeatureSettings, FeatureSpec
from tests.commands.joint_runs import joint_run

PAIRS = WordPairs(
    sources=[["a", "b", "e"], ["zz"], []],
    targets=[["p", "t&apos;"], [], ["q", "q", "zz"], ["p"], [], ["p", "t&apos;"]],
    source_of=[0, 1, 0, 1, 2, 0],
    whole=True,
    affiliations=[[0, 2], [], [1, 1, 0], [0], [], [0, 0]],
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return joint_run(tmp_path_factory.mktemp("joint"), "training.max_steps=20")


def feature(run: Path, **settings: object) -> Joint:
    spec = FeatureSpec(kind="joint", name="NNJM0", path=str(run))
    return Joint.load(spec, FeatureSettings(**settings))  # type: ignore[arg-type]


def test_one_by_one_through_the_run(run: Path) -> None:
    """Escapes are undone; the end symbol belongs to the source's."""
    saved, expected = aligned.load(run), []
    assert PAIRS.affiliations
    for words, source, places in zip(PAIRS.targets, PAIRS.source_of, PAIRS.affiliations, strict=True):
        text = " ".join(words).replace("&apos;", "'")
        points = " ".join(f"{place}-{number}" for number, place in enumerate(places))
        (scores,) = aligned.word_scores(saved, [(" ".join(PAIRS.sources[source]), text, points)], True, "l")
        expected.append(sum(scores))
    assert feature(run).score(PAIRS).tolist() == pytest.approx(expected, abs=1e-5)
    part = feature(run).score(PAIRS.take([5, 3])).tolist()
    assert part == pytest.approx([expected[5], expected[3]], abs=1e-5)


def test_log_z_taken_as_0(run: Path, tmp_path: Path) -> None:
    """Other numbers, another identity; only for a model that was trained for it."""
    exact, free = feature(run), feature(run, assume_normalized=True)
    assert exact.identity() != free.identity() and set(exact.readers()) == {"source", "target"}
    assert not (abs(exact.score(PAIRS) - free.score(PAIRS)) < 1e-6).any()
    plain = joint_run(tmp_path, "model.normalizer=0", "training.max_steps=1")
    with pytest.raises(ConfigError, match=r"was not trained with model\.normalizer"):
        feature(plain, assume_normalized=True)


def test_phrases_alone_are_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="scores whole sentences with their word alignment"):
        feature(run).score(WordPairs([["a"]], [["p"]], [0]))
    (tmp_path / "table").write_text("a ||| p ||| 1\n")
    with pytest.raises(ConfigError, match="--feature joint: needs the sentence around a phrase"):
        smt_bridge.score_table(str(tmp_path / "table"), str(tmp_path / "o"), [f"joint={run}"])
    assert [path.name for path in tmp_path.iterdir()] == ["table"]
