"""The text of several corpora, and their filters."""

import logging
from pathlib import Path

import pytest

from nmt.data.corpora import CorpusConfig, FilterConfig
from nmt.data.listed import ListedText
from nmt.data.tokenized import TokenizedText
from nmt.errors import DataError
from nmt.text.pipeline import SideConfig, TextPipeline

PAIRS = [
    ("a b c", "x y"),
    ("a", "x"),
    ("same here", "same here "),
    ("a b c", "x y"),
    ("a b c d e f", "x"),
    ("", "x"),
    ("a b c", "x z"),
]
FILTERS = {
    "": range(7),
    "min_length": [0, 2, 3, 6],
    "max_length": [0, 1, 2, 3, 6],
    "max_ratio": [0, 1, 2, 3, 6],
    "drop_copies": [0, 1, 3, 4, 6],
    "drop_duplicates": [0, 1, 2, 4, 6],
}
VALUES: dict[str, object] = {
    "min_length": 2,
    "max_length": 5,
    "max_ratio": 2.0,
    "drop_copies": True,
    "drop_duplicates": True,
}


def corpus(folder: Path, name: str = "c", /, **filters: object) -> CorpusConfig:
    for side in (0, 1):
        (folder / f"{name}{side}").write_text("".join(f"{pair[side]}\n" for pair in PAIRS))
    paths = {"source": str(folder / f"{name}0"), "target": str(folder / f"{name}1")}
    return CorpusConfig(name=name, **paths, filters=FilterConfig(**filters))  # type: ignore[arg-type]


@pytest.mark.parametrize("key", FILTERS)
def test_each_filter_drops_what_it_says(key: str, tmp_path: Path) -> None:
    text = ListedText([corpus(tmp_path, **({key: VALUES[key]} if key else {}))])
    assert list(text.rows()) == [PAIRS[row] for row in FILTERS[key]]
    assert text.sizes == [len(FILTERS[key])]


def test_corpora_follow_each_other_and_each_has_its_own_filters(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    text = ListedText([corpus(tmp_path, "a"), corpus(tmp_path, "b", drop_copies=True, drop_duplicates=True)])
    for _ in range(2):  # filtered once, read twice
        assert list(text.rows()) == PAIRS + [PAIRS[row] for row in (0, 1, 4, 6)]
    assert text.sizes == [7, 4]
    assert caplog.messages == ["corpus b: 7 lines, dropped: 1 copy, 1 duplicate, 1 empty"]


def test_filters_that_leave_nothing_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"/c0: the filters of data\.corpora drop every line \(1 empty, 6 short\)"
    ):
        print(ListedText([corpus(tmp_path, min_length=9)]).sizes)


def test_tokenized_as_one_text(tmp_path: Path) -> None:
    both = [corpus(tmp_path, "a"), corpus(tmp_path, "b", min_length=2)]
    side = TextPipeline.of(SideConfig("en", tokenize=False, normalize=False))
    text = TokenizedText([], listed=ListedText(both), folder=tmp_path)
    expected = [(one.split(), other.split()) for one, other in ListedText(both).rows()]
    assert [list(text.words(side, side)) for _ in range(2)] == [expected] * 2
