"""Language models of any kind as one thing that scores lines."""

import gzip
import json
import math
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.ngram import count_models, estimators
from nmt.ngram.estimators import FALLBACK_DISCOUNTS, KneserNeyConfig, SmoothingConfig
from nmt.ngram.interpolation import Histories
from nmt.runs import checkpoint, language_model
from nmt.runs.language_model import MixtureFile, MixtureModel, MixtureScorer, fingerprint, line_scorer
from nmt.runs.neural_lm import sample_lines
from nmt.search.config import SamplingConfig
from tests.nmt.ngram.test_estimators import estimate_smoothed

# ---- test language model -----------------------------------------------------------------------------------


MODELS = Path(__file__).resolve().parents[2] / "models"
RUN = MODELS / "lm"
LINES = ["Un garçon ne suit pas l'homme.", "", "Les infirmières l'entendent xyzzy."]


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    (tmp_path / "lm.arpa").write_bytes(gzip.decompress((MODELS / "phrase-based" / "lm.arpa.gz").read_bytes()))
    return tmp_path / "lm.arpa"


def test_a_line_has_a_score_for_each_unit_and_for_its_end(counts: Path) -> None:
    for path in (RUN, counts):
        model = line_scorer(path)
        found = model.score(LINES)
        assert all(len(line.log_probs) == len(line.units) + 1 for line in found)
        assert all(value < 0 for line in found for value in line.log_probs)
        assert found[2].in_vocabulary.count(False) >= 1 and found[1].units == [] and model.vocab_size > 50
        alone = model.score(LINES[:1])[0]
        assert alone.log_probs == pytest.approx(found[0].log_probs, abs=1e-5), "neighbours change nothing"
        assert model.score([]) == []


def test_count_models_are_read_as_they_are(counts: Path) -> None:
    [line] = line_scorer(counts).score(["un garçon"])
    [expected] = count_models.read_arpa(counts).scores([["un", "garçon"]])
    assert line.log_probs == expected.tolist() and line_scorer(counts).log_z(LINES) == []


def test_log_z_is_what_scores_are_short_of() -> None:
    exact, fast = line_scorer(RUN), line_scorer(RUN, normalized=True)
    [one], [other] = exact.score(["un"]), fast.score(["un"])
    gaps = [b - a for a, b in zip(one.log_probs, other.log_probs, strict=True)]
    assert [abs(gap) for gap in gaps] == pytest.approx(exact.log_z(["un"]), abs=1e-5) or sorted(
        map(abs, gaps)
    ) == pytest.approx(sorted(exact.log_z(["un"])), abs=1e-5)


def test_what_is_no_language_model_and_what_does_not_go_together(counts: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="is a translator, expected a language model"):
        line_scorer(MODELS / "translator")
    with pytest.raises(DataError, match="no such file"):
        line_scorer(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="backs off by itself"):
        line_scorer(counts, backoff=str(counts))
    with pytest.raises(ConfigError, match="sum to one anyway"):
        line_scorer(counts, normalized=True)


def test_samples_depend_on_the_seed_alone_and_are_cut_off() -> None:
    run = checkpoint.load_lm(RUN)
    one, two, other = (list(sample_lines(run, 5, 4, SamplingConfig(seed=seed))) for seed in (1, 1, 2))
    assert one == two != other
    assert max(len(line.split(" ")) for line in one) <= 4
    assert list(sample_lines(run, 3, 4, SamplingConfig(rows=2))) == one[:3]
    assert next(sample_lines(run, 10**15, 4, SamplingConfig())) == one[0]  # drawn as they are read
    with pytest.raises(ConfigError, match="are single units"):
        sample_lines(run, 1, 4, SamplingConfig(), boundaries="|")


def test_a_cold_draw_is_the_most_probable_word_each_time() -> None:
    run, model = checkpoint.load_lm(RUN), line_scorer(RUN, tokenized=True)
    [cold] = set(sample_lines(run, 4, 6, SamplingConfig(seed=3, temperature=1e-4)))
    assert set(sample_lines(run, 4, 6, SamplingConfig(seed=3, top_k=1))) == {cold}
    drawn = list(sample_lines(run, 40, 6, SamplingConfig(seed=3)))
    first = {line.split(" ")[0]: model.score([line.split(" ")[0]])[0].log_probs[0] for line in drawn}
    assert max(first.values()) <= model.score([cold.split(" ")[0]])[0].log_probs[0] + 1e-5
    assert not math.isnan(sum(first.values()))


# ---- test mixture ------------------------------------------------------------------------------------------
# Mixtures of language models: their sums, their file, and what is refused.


FIRST = [["a", "b"], ["a", "b", "c"], ["b"]]
SECOND = [["a", "d"], ["d", "d", "a"], []]
WEIGHTS = np.array([[0.25, 0.75], [0.9, 0.1], [0.5, 0.5]])


@pytest.fixture
def models(tmp_path: Path) -> list[Path]:
    """Two n-gram models of different words."""
    settings = KneserNeyConfig(order=2, discount_fallback=FALLBACK_DISCOUNTS)
    count_models.write_arpa(estimators.estimate_kneser_ney(FIRST, settings), tmp_path / "first.arpa")
    count_models.write_arpa(
        estimate_smoothed(SECOND, SmoothingConfig(order=2), "add-k"), tmp_path / "second.arpa"
    )
    return [tmp_path / "first.arpa", tmp_path / "second.arpa"]


def written(tmp_path: Path, models: list[Path], step: int | None = None) -> Path:
    parts = [MixtureModel(str(path), step, fingerprint(path, step)) for path in models]
    language_model.write_mixture(tmp_path / "mix", MixtureFile(parts, [[1 / len(parts)] * len(parts)]))
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
    assert np.exp(mixed.log_probs) == pytest.approx(expected) and mixed.in_vocabulary == [
        True,
        True,
        True,
        False,
    ]


def test_equal_models_are_the_model(tmp_path: Path, models: list[Path]) -> None:
    found = line_scorer(written(tmp_path, [models[0]] * 3)).score(["a b x", ""])
    expected = line_scorer(models[0]).score(["a b x", ""])
    for one, other in zip(found, expected, strict=True):
        assert one.units == other.units and one.in_vocabulary == other.in_vocabulary
        assert one.log_probs == pytest.approx(other.log_probs)


def test_runs_and_ngrams_together_and_a_mixture_of_mixtures(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    run = shutil.copytree(MODELS / "lm", tmp_path / "runs" / "lm")
    line = "un garçon ne suit pas l' homme ."
    settings = SmoothingConfig(order=2)
    count_models.write_arpa(estimate_smoothed([line.split()], settings, "add-k"), tmp_path / "lm.arpa")
    step = checkpoint.load_lm(run).step
    parts = [MixtureModel(str(run), step, fingerprint(run, step))]
    parts.append(MixtureModel(str(tmp_path / "lm.arpa"), None, fingerprint(tmp_path / "lm.arpa", None)))
    language_model.write_mixture(tmp_path / "mix", MixtureFile(parts, [[0.5, 0.5]]))
    content = json.loads((tmp_path / "mix").read_text())
    assert [row["path"] for row in content["models"]] == ["runs/lm", "lm.arpa"]
    members = [line_scorer(path, tokenized=True) for path in (run, tmp_path / "lm.arpa")]
    [one], [two] = (member.score([line]) for member in members)
    [found] = line_scorer(tmp_path / "mix", tokenized=True).score([line])
    both = [0.5 * np.exp(p) + 0.5 * np.exp(q) for p, q in zip(one.log_probs, two.log_probs, strict=True)]
    known = [a and b for a, b in zip([*one.in_vocabulary, True], [*two.in_vocabulary, True], strict=True)]
    pairs = zip(found.log_probs, both, known, strict=True)
    assert sum(known) > 3 and all(np.exp(p) == pytest.approx(q) for p, q, inside in pairs if inside)
    language_model.write_mixture(
        tmp_path / "outer",
        MixtureFile(
            [MixtureModel(str(tmp_path / "mix"), None, fingerprint(tmp_path / "mix", None))], [[1.0]]
        ),
    )
    moved = shutil.move(tmp_path, tmp_path.parent / "elsewhere")
    [again] = line_scorer(Path(moved) / "outer", tokenized=True).score([line])
    assert again.log_probs == pytest.approx(found.log_probs)


def test_what_is_refused(tmp_path: Path, models: list[Path]) -> None:
    path = written(tmp_path, models)
    with pytest.raises(ConfigError, match=r"--backoff: .*mix is a mixture"):
        line_scorer(path, backoff=str(models[0]))
    good = path.read_text()
    for old, new in (
        ("0.5", "0.4"),
        ("0.5", "NaN"),
        ("0.5", "1" + "0" * 400),  # more than a float holds
        ('"weights": [', '"edges": [3], "weights": [[1, 0], '),  # edges, but no contexts
        ('"weights"', '"gewichte"'),
        ('"weights"', '"deep": ' + "[" * 100_000),
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
    members = [line_scorer(models[0]), line_scorer(MODELS / "lm")]
    line = "L'homme."
    assert members[0].units([line]) != members[1].units([line])
    with pytest.raises(DataError, match=r"first.arpa reads \"L'homme.\" as .*need the same units"):
        MixtureScorer("m", members, WEIGHTS[:1]).score([line])
    assert all(language_model.is_mixture(path) is False for path, _ in product((models[0], MODELS), (1,)))
