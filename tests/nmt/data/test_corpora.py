"""Several corpora: what may be said of them, and how many of the pairs of each an epoch has."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from nmt import settings
from nmt.data import corpora
from nmt.data.corpora import CorpusConfig, FilterConfig, epoch_counts
from nmt.errors import ConfigError, DataError


def listed(*values: Mapping[str, object]) -> list[CorpusConfig]:
    return [CorpusConfig(source="s", target="t", **value) for value in values]  # type: ignore[arg-type]


def test_alike_at_temperature_one_is_plain_concatenation() -> None:
    for sizes in ([7], [1, 2], [999_983, 3, 77_777], [1] * 9):
        for weight in (1.0, 0.3):
            given = listed(*[{"weight": weight}] * len(sizes))
            assert epoch_counts(sizes, given, 1) == sizes


@pytest.mark.parametrize("temperature", [0.5, 1, 2, 5, 100])
def test_shares_follow_the_formula(temperature: float) -> None:
    sizes, weights = [1_000_000, 50_000, 2_000], [1.0, 4.0, 0.5]
    counts = epoch_counts(sizes, listed(*({"weight": weight} for weight in weights)), temperature)
    wanted = [(weight * size) ** (1 / temperature) for weight, size in zip(weights, sizes, strict=True)]
    assert sum(counts) == sum(sizes)
    for count, share in zip(counts, wanted, strict=True):
        assert abs(count - sum(sizes) * share / sum(wanted)) <= 1


def test_a_weight_is_what_a_pair_counts_and_a_large_temperature_makes_all_alike() -> None:
    assert epoch_counts([100, 10], listed({}, {"weight": 10}), 1) == [55, 55]
    assert epoch_counts([900, 90, 9], listed({}, {}, {}), 1e9) == [333, 333, 333]
    small = [epoch_counts([900, 90], listed({}, {}), t)[1] for t in (1, 2, 3, 5, 10)]
    assert small == sorted(small) and small[0] == 90 < small[-1] < 495


def test_shares_are_those_of_an_epoch() -> None:
    assert epoch_counts([900, 100], listed({"share": 0.25}, {"share": 0.75}), 1) == [250, 750]
    assert epoch_counts([1, 1, 1], listed(*[{"share": 1 / 3}] * 3), 1) == [1, 1, 1]


@pytest.mark.parametrize(
    ("values", "temperature", "message"),
    [
        (
            [{"share": 0.5}, {"share": 0.4}],
            1,
            r"^data\.corpora: the shares 0\.5 \+ 0\.4 sum to 0\.9, expected 1",
        ),
        ([{"share": 0.5}, {}], 1, r"^data\.corpora\[1\]\.share: missing or 0"),
        (
            [{"share": 0.5}, {"share": 0.5, "weight": 2}],
            1,
            r"^data\.corpora\[1\]\.weight: weights and shares",
        ),
        ([{"share": 1}], 2, r"^data\.temperature: has no meaning beside shares"),
        ([], 2, r"^data\.temperature: there is one corpus only"),
        ([{"tag": "bt"}], 1, r"^data\.corpora\[0\]\.tag: 'bt' is no tag"),
        ([{"tag": "<b t>"}], 1, "is no tag"),
        ([{"tag": "<b\0t>"}], 1, "is no tag"),
        ([{"tag": "</s>"}], 1, r"</s> means something else"),
        ([{"tag": "<0xE7>"}], 1, "means something else"),
        (
            [{"filters": FilterConfig(max_ratio=0.5)}],
            1,
            r"^data\.corpora\[0\]\.filters\.max_ratio: 0\.5 is too",
        ),
        (
            [{"filters": FilterConfig(min_length=5, max_length=4)}],
            1,
            r"^data\.corpora\[0\]\.filters\.max_length: 4 is less than min_length 5",
        ),
        ([{"target": ""}], 1, r"^data\.corpora\[0\]\.target: missing"),
    ],
)
def test_contradictions(values: list[dict[str, object]], temperature: float, message: str) -> None:
    given = [CorpusConfig(**{"source": "s", "target": "t", **value}) for value in values]  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=message):
        corpora.check(given, temperature)


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), 1e10, 1e308])
def test_weights_are_above_zero_and_sums_of_them_finite(weight: float) -> None:
    with pytest.raises(ConfigError, match=r"^data\.weight: .* is out of range"):
        settings.check(CorpusConfig(source="s", target="t", weight=weight), "data.")


def test_good_lists_pass() -> None:
    corpora.check(listed({"tag": "<bt>"}, {"tag": "<2fr>", "weight": 3}, {"tag": "<bt>"}), 5)
    corpora.check(listed({"share": 0.1}, {"share": 0.2}, {"share": 0.7}), 1)
    corpora.check([], 1)
    assert corpora.tags_of(listed({"tag": "<b>"}, {}, {"tag": "<a>"}, {"tag": "<b>"})) == ("<b>", "<a>")


def test_text_with_a_tag_is_refused_with_its_line(tmp_path: Path) -> None:
    for name, text in (
        ("a", "x\ny < z\n"),
        ("b", "1\n2\n"),
        ("c", "u\nv<bt>w\n"),
        ("d", "u\n&lt;bt&gt;\n"),
        ("empty", ""),
    ):
        (tmp_path / name).write_text(text)

    def check(source: str, target: str, thorough: bool = True) -> None:
        first = CorpusConfig(source=str(tmp_path / "a"), target=str(tmp_path / "b"), tag="<bt>")
        other = CorpusConfig(source=str(tmp_path / source), target=str(tmp_path / target))
        corpora.check_text([first, other], thorough)

    check("a", "b")
    check("c", "b", thorough=False)
    for pair in (("c", "b"), ("b", "c"), ("a", "d")):
        with pytest.raises(DataError, match=r"/[cd]:2: the text has <bt>, which is a tag"):
            check(*pair)
    with pytest.raises(DataError, match="/empty: empty file"):
        check("a", "empty", thorough=False)
    with pytest.raises(DataError, match="/none: cannot read"):
        check("none", "b", thorough=False)
    with pytest.raises(DataError, match="not a regular file"):
        check(".", "b", thorough=False)
