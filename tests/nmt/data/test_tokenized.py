"""The training text as words: the same as line by line, tokenized once, by any number of processes."""

import logging
import random
from pathlib import Path

import pytest

from nmt.data.corpus import CorpusConfig, FilterConfig
from nmt.data.tokenized import Digests, ListedText, TokenizedText, close_file
from nmt.errors import DataError, UserError
from nmt.io import files
from nmt.text import truecase
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.tokenize import Tokenizer
from nmt.work import executors

# ---- test tokenized ----------------------------------------------------------------------------------------

SIDES = {
    "words": (SideConfig("en"), SideConfig("fr", case="lower")),
    "blanks": (SideConfig("en", tokenize=False, normalize=False), SideConfig("fr", normalize=False)),
    "escaped": (SideConfig("en", escaped=True, tokenize=False), SideConfig("fr")),
    "truecase": (SideConfig("en", case="truecase", escaped=True), SideConfig("fr", case="truecase")),
    "protected": [
        SideConfig("en", protect=True, case="lower"),
        SideConfig("fr", protect=True, case="truecase"),
    ],
}
LINES = [
    "The cat isn't here, is it?",
    "",
    "THE CAT &apos;s a b\rc \u2028 d e\x85f",
    "  two  blanks\tand a tab ",
    "here the Cat is, the Cat.",
    "See <a href='X Y'>the Cat</a> at http://X.org/a_b, 10:30.",
]


def write_lines(folder: Path, times: int = 1) -> list[str]:
    for name, text in (("a", LINES), ("b", [line.upper() for line in LINES])):
        (folder / name).write_bytes("".join(f"{line}\n" for line in text * times).encode())
    return [str(folder / "a"), str(folder / "b")]


def pipelines(name: str) -> list[TextPipeline]:
    made = [TextPipeline.with_subwords(side, None, False) for side in SIDES[name]]
    for one in made:
        if one.tokenizer.case == "truecase":
            one.tokenizer.truecaser = truecase.learn([["a", "Cat", "x", "Cat"], ["x", "the", "'s"]])
    return made


@pytest.mark.parametrize("name", SIDES)
def test_words_are_those_of_each_line_every_time(name: str, tmp_path: Path) -> None:
    paths = write_lines(tmp_path)
    both = pipelines(name)
    text = TokenizedText(paths, folder=tmp_path)
    expected = [
        tuple(one.words(line) for one, line in zip(both, row, strict=True)) for row in files.parallel(*paths)
    ]
    assert [list(text.words(*both)) for _ in range(3)] == [expected] * 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_lines_are_tokenized_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    split = Tokenizer.split

    def counting(self: Tokenizer, line: str) -> list[str]:
        nonlocal count
        count += 1
        return split(self, line)

    monkeypatch.setattr(Tokenizer, "split", counting)
    text = TokenizedText(write_lines(tmp_path), folder=tmp_path)
    both = pipelines("words")
    next(text.words(*both))  # not read to the end: nothing is kept
    begun = count
    for _ in range(3):
        list(text.words(*both))
    assert count == begun + 2 * len(LINES)
    list(text.words(*pipelines("blanks")))  # other words
    assert count == begun + 4 * len(LINES)


@pytest.mark.ci
def test_any_number_of_workers_gives_the_same_words(tmp_path: Path) -> None:
    paths = write_lines(tmp_path, 3 * executors.LINES_PER_CHUNK // len(LINES))
    both = pipelines("truecase")
    assert list(TokenizedText(paths, 2).words(*both)) == list(TokenizedText(paths).words(*both))


def test_one_text(tmp_path: Path) -> None:
    [path, _] = write_lines(tmp_path)
    text = TokenizedText([path], folder=tmp_path / "missing")
    assert [list(text.words(pipelines("blanks")[0])) for _ in range(2)] == [
        [(files.split_words(line),) for line in LINES]
    ] * 2


def test_nothing_is_left_after_an_error(tmp_path: Path) -> None:
    paths = write_lines(tmp_path)
    with (tmp_path / "a").open("a") as more:
        more.write("one more\n")
    for workers in (1, 2):
        text = TokenizedText(paths, workers, folder=tmp_path)
        for _ in range(2):
            with pytest.raises(DataError, match=f"{len(LINES)} lines, but"):
                list(text.words(*pipelines("words")))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_full_disk_is_reported_once() -> None:
    """What a file could not take is not reported again when it is given up."""
    file = open("/dev/full", "wb")
    file.write(b"x")
    close_file(file)
    assert file.closed


# ---- test listed -------------------------------------------------------------------------------------------
# The text of several corpora, and their filters.

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


def corpus_config(folder: Path, name: str = "c", /, **filters: object) -> CorpusConfig:
    for side in (0, 1):
        (folder / f"{name}{side}").write_text("".join(f"{pair[side]}\n" for pair in PAIRS))
    paths = {"source": str(folder / f"{name}0"), "target": str(folder / f"{name}1")}
    return CorpusConfig(name=name, **paths, filters=FilterConfig(**filters))  # type: ignore[arg-type]


@pytest.mark.parametrize("key", FILTERS)
def test_each_filter_drops_what_it_says(key: str, tmp_path: Path) -> None:
    text = ListedText([corpus_config(tmp_path, **({key: VALUES[key]} if key else {}))])
    assert list(text.rows()) == [PAIRS[row] for row in FILTERS[key]]
    assert text.sizes == [len(FILTERS[key])]


def test_corpora_follow_each_other_and_each_has_its_own_filters(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    text = ListedText(
        [corpus_config(tmp_path, "a"), corpus_config(tmp_path, "b", drop_copies=True, drop_duplicates=True)]
    )
    for _ in range(2):  # filtered once, read twice
        assert list(text.rows()) == PAIRS + [PAIRS[row] for row in (0, 1, 4, 6)]
    assert text.sizes == [7, 4]
    assert caplog.messages == ["corpus b: 7 lines, dropped: 1 copy, 1 duplicate, 1 empty"]


def test_a_full_disk_names_the_file_of_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = open("/dev/full", "w+b")
    monkeypatch.setattr("nmt.data.tokenized.TemporaryFile", lambda: file)
    with pytest.raises(UserError, match="temporary file: cannot write: No space left"):
        print(ListedText([corpus_config(tmp_path, drop_duplicates=True)]).sizes)
    close_file(file)


def test_filters_that_leave_nothing_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"/c0: the filters of data\.corpora drop every line \(1 empty, 6 short\)"
    ):
        print(ListedText([corpus_config(tmp_path, min_length=9)]).sizes)


def test_tokenized_as_one_text(tmp_path: Path) -> None:
    both = [corpus_config(tmp_path, "a"), corpus_config(tmp_path, "b", min_length=2)]
    side = TextPipeline.of(SideConfig("en", tokenize=False, normalize=False))
    text = TokenizedText([], listed=ListedText(both), folder=tmp_path)
    expected = [(one.split(), other.split()) for one, other in ListedText(both).rows()]
    assert [list(text.words(side, side)) for _ in range(2)] == [expected] * 2


# ---- test duplicates ---------------------------------------------------------------------------------------
# Repeated lines, found as a set finds them, whatever fits into memory.


@pytest.mark.parametrize("bucket", [1, 7, 100, 1000])
def test_as_a_set_finds_them(bucket: int) -> None:
    rng = random.Random(bucket)
    lines = [f"line {rng.randrange(60)}" for _ in range(200)]
    digests, seen, naive = Digests(), set[str](), []
    for number, line in enumerate(lines):
        digests.add(line)
        if line in seen:
            naive.append(number)
        seen.add(line)
    assert sorted(row for rows in digests.find_repeats(bucket) for row in rows.tolist()) == naive
