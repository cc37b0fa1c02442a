"""Mixtures of language models: their sums, their file, and what is refused."""

import json
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import ConfigError, DataError
from nmt.ngram import arpa, kneser_ney, smoothing
from nmt.ngram.histories import Histories
from nmt.ngram.kneser_ney import FALLBACK, KneserNeyConfig
from nmt.ngram.smoothing import SmoothingConfig
from nmt.runs import checkpoint, mixture
from nmt.runs.language_model import line_scorer
from nmt.runs.mixture import MixtureFile, MixtureModel, MixtureScorer, fingerprint

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "0.5.0"
FIRST = [["a", "b"], ["a", "b", "c"], ["b"]]
SECOND = [["a", "d"], ["d", "d", "a"], []]
WEIGHTS = np.array([[0.25, 0.75], [0.9, 0.1], [0.5, 0.5]])


@pytest.fixture
def models(tmp_path: Path) -> list[Path]:
    """Two n-gram models of different words."""
    settings = KneserNeyConfig(order=2, discount_fallback=FALLBACK)
    arpa.write(kneser_ney.estimate(FIRST, settings), tmp_path / "first.arpa")
    arpa.write(smoothing.estimate(SECOND, SmoothingConfig(order=2), "add-k"), tmp_path / "second.arpa")
    return [tmp_path / "first.arpa", tmp_path / "second.arpa"]


def written(tmp_path: Path, models: list[Path], step: int | None = None) -> Path:
    parts = [MixtureModel(str(path), step, fingerprint(path, step)) for path in models]
    mixture.write(tmp_path / "mix", MixtureFile(parts, [[1 / len(parts)] * len(parts)]))
    return tmp_path / "mix"


def test_probabilities_of_every_next_word_sum_to_one(models: list[Path]) -> None:
    """Each model knows words that the other does not; with buckets, too."""
    members = [line_scorer(path) for path in models]
    histories = Histories.count([*FIRST, *SECOND], 1)
    assert len(set(histories.evidence(["a", "b", "x"]))) > 2
    cuts = [65, 66]
    for mix in (
        MixtureScorer("m", members, WEIGHTS[:1]),
        MixtureScorer("m", members, WEIGHTS, cuts, histories),
    ):
        for context in ([], ["a"], ["d", "x"], ["c", "c"]):
            lines = [" ".join([*context, word]) for word in ("a", "b", "c", "d", "nobody-knows-it")]
            total = sum(np.exp(scored.log_probs[-2]) for scored in mix.score(lines))
            total += np.exp(mix.score([" ".join(context)])[0].log_probs[-1])  # the end
            assert total == pytest.approx(1, abs=1e-6)


def test_it_is_the_weighted_sum(models: list[Path]) -> None:
    first, second = (line_scorer(path) for path in models)
    [mixed] = MixtureScorer("m", [first, second], WEIGHTS[:1]).score(["a b d x"])
    [one], [two] = first.score(["a b d x"]), second.score(["a b d x"])
    expected = [
        0.25 * np.exp(p) + 0.75 * np.exp(q) for p, q in zip(one.log_probs, two.log_probs, strict=True)
    ]
    expected[1] = 0.25 * np.exp(one.log_probs[1])  # b is the first model's, d the second's
    expected[2] = 0.75 * np.exp(two.log_probs[2])
    assert np.exp(mixed.log_probs) == pytest.approx(expected) and mixed.known == [True, True, True, False]


def test_equal_models_are_the_model(tmp_path: Path, models: list[Path]) -> None:
    found = line_scorer(written(tmp_path, [models[0]] * 3)).score(["a b x", ""])
    expected = line_scorer(models[0]).score(["a b x", ""])
    for one, other in zip(found, expected, strict=True):
        assert one.units == other.units and one.known == other.known
        assert one.log_probs == pytest.approx(other.log_probs)


def test_runs_and_ngrams_together_and_a_mixture_of_mixtures(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    run = shutil.copytree(GOLDEN / "lm", tmp_path / "runs" / "lm")
    line = "un garçon ne suit pas l' homme ."
    settings = SmoothingConfig(order=2)
    arpa.write(smoothing.estimate([line.split()], settings, "add-k"), tmp_path / "lm.arpa")
    step = checkpoint.load_lm(run).step
    parts = [MixtureModel(str(run), step, fingerprint(run, step))]
    parts.append(MixtureModel(str(tmp_path / "lm.arpa"), None, fingerprint(tmp_path / "lm.arpa", None)))
    mixture.write(tmp_path / "mix", MixtureFile(parts, [[0.5, 0.5]]))
    content = json.loads((tmp_path / "mix").read_text())
    assert [row["path"] for row in content["models"]] == ["runs/lm", "lm.arpa"]
    members = [line_scorer(run), line_scorer(tmp_path / "lm.arpa")]
    [one], [two] = (member.score([line], tokenized=True) for member in members)
    [found] = line_scorer(tmp_path / "mix").score([line], tokenized=True)
    both = [0.5 * np.exp(p) + 0.5 * np.exp(q) for p, q in zip(one.log_probs, two.log_probs, strict=True)]
    known = [a and b for a, b in zip([*one.known, True], [*two.known, True], strict=True)]
    pairs = zip(found.log_probs, both, known, strict=True)
    assert sum(known) > 3 and all(np.exp(p) == pytest.approx(q) for p, q, inside in pairs if inside)
    mixture.write(
        tmp_path / "outer",
        MixtureFile(
            [MixtureModel(str(tmp_path / "mix"), None, fingerprint(tmp_path / "mix", None))], [[1.0]]
        ),
    )
    moved = shutil.move(tmp_path, tmp_path.parent / "elsewhere")
    [again] = line_scorer(Path(moved) / "outer").score([line], tokenized=True)
    assert again.log_probs == pytest.approx(found.log_probs)


def test_what_is_refused(tmp_path: Path, models: list[Path]) -> None:
    path = written(tmp_path, models)
    with pytest.raises(ConfigError, match=r"--backoff: .*mix is a mixture"):
        line_scorer(path, backoff=str(models[0]))
    good = path.read_text()
    for old, new in (
        ("0.5", "0.4"),
        ('"weights"', '"gewichte"'),
        ("nmt-mixture 1", "nmt-mixture 9"),
        ("]", ""),
    ):
        path.write_text(good.replace(old, new))
        with pytest.raises(DataError, match="mix: damaged mixture of language models"):
            line_scorer(path)
    path.write_text(good)
    models[1].write_text(models[1].read_text().replace("-0.", "-1.", 1))
    with pytest.raises(DataError, match=r"second\.arpa has changed since the weights were learned"):
        line_scorer(path)
    models[1].unlink()
    with pytest.raises(DataError, match=r"there is no .*second\.arpa; paths are relative to the file"):
        line_scorer(path)


def test_models_of_other_units_are_refused(models: list[Path]) -> None:
    members = [line_scorer(models[0]), line_scorer(GOLDEN / "lm")]
    line = "L'homme."
    assert members[0].units([line]) != members[1].units([line])
    with pytest.raises(DataError, match=r"first.arpa reads \"L'homme.\" as .*need the same units"):
        MixtureScorer("m", members, WEIGHTS[:1]).score([line])
    assert all(mixture.is_mixture(path) is False for path, _ in product((models[0], GOLDEN), (1,)))
