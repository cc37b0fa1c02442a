"""Language models of any kind as one thing that scores lines."""

import gzip
import math
from pathlib import Path

import pytest

from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.ngram import arpa
from nmt.runs import checkpoint
from nmt.runs.language_model import line_scorer, sample_lines

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "0.5.0"
RUN = GOLDEN / "lm"
LINES = ["Un garçon ne suit pas l'homme.", "", "Les infirmières l'entendent xyzzy."]


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    (tmp_path / "lm.arpa").write_bytes(gzip.decompress((GOLDEN / "phrase-based" / "lm.arpa.gz").read_bytes()))
    return tmp_path / "lm.arpa"


def test_a_line_has_a_score_for_each_unit_and_for_its_end(counts: Path) -> None:
    for path in (RUN, counts):
        model = line_scorer(path)
        found = model.score(LINES)
        assert all(len(line.log_probs) == len(line.units) + 1 for line in found)
        assert all(value < 0 for line in found for value in line.log_probs)
        assert found[2].known.count(False) >= 1 and found[1].units == [] and model.vocab_size > 50
        alone = model.score(LINES[:1])[0]
        assert alone.log_probs == pytest.approx(found[0].log_probs, abs=1e-5), "neighbours change nothing"
        assert model.score([]) == []


def test_count_models_are_read_as_they_are(counts: Path) -> None:
    [line] = line_scorer(counts).score(["un garçon"])
    [expected] = arpa.read(counts).scores([["un", "garçon"]])
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
        line_scorer(GOLDEN / "translator")
    with pytest.raises(DataError, match="no such file"):
        line_scorer(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="backs off by itself"):
        line_scorer(counts, backoff=str(counts))
    with pytest.raises(ConfigError, match="sum to one anyway"):
        line_scorer(counts, normalized=True)


def test_samples_depend_on_the_seed_alone_and_are_cut_off() -> None:
    run = checkpoint.load_lm(RUN)
    one, two, other = (list(sample_lines(run, 5, 4, seed=seed)) for seed in (1, 1, 2))
    assert one == two != other
    assert max(len(line.split(" ")) for line in one) <= 4
    assert list(sample_lines(run, 3, 4, seed=1)) == one[:3]
    with pytest.raises(ConfigError, match="only multiscale models"):
        sample_lines(run, 1, 4, seed=1, boundaries="|")


def test_a_cold_draw_is_the_most_probable_word_each_time() -> None:
    run, model = checkpoint.load_lm(RUN), line_scorer(RUN)
    [cold] = set(sample_lines(run, 4, 6, seed=3, temperature=1e-4))
    drawn = list(sample_lines(run, 40, 6, seed=3))
    first = {
        line.split(" ")[0]: model.score([line.split(" ")[0]], tokenized=True)[0].log_probs[0]
        for line in drawn
    }
    assert max(first.values()) <= model.score([cold.split(" ")[0]], tokenized=True)[0].log_probs[0] + 1e-5
    assert not math.isnan(sum(first.values()))
