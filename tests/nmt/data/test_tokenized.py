"""The training text as words: the same as line by line, tokenized once, by any number of processes."""

from pathlib import Path

import pytest

from nmt import files
from nmt.data.tokenized import TokenizedText, close
from nmt.errors import DataError
from nmt.jobs import lines
from nmt.text import truecase
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.tokenize import Tokenizer

SIDES = {
    "words": (SideConfig("en"), SideConfig("fr", case="lower")),
    "blanks": (SideConfig("en", tokenize=False, normalize=False), SideConfig("fr", normalize=False)),
    "escaped": (SideConfig("en", escaped=True, tokenize=False), SideConfig("fr")),
    "truecase": (SideConfig("en", case="truecase", escaped=True), SideConfig("fr", case="truecase")),
}
LINES = [
    "The cat isn't here, is it?",
    "",
    "THE CAT &apos;s a b\rc \u2028 d e\x85f",
    "  two  blanks\tand a tab ",
    "here the Cat is, the Cat.",
]


def write(folder: Path, times: int = 1) -> list[str]:
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
    paths = write(tmp_path)
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
    text = TokenizedText(write(tmp_path), folder=tmp_path)
    both = pipelines("words")
    next(text.words(*both))  # not read to the end: nothing is kept
    begun = count
    for _ in range(3):
        list(text.words(*both))
    assert count == begun + 2 * len(LINES)
    list(text.words(*pipelines("blanks")))  # other words
    assert count == begun + 4 * len(LINES)


def test_any_number_of_workers_gives_the_same_words(tmp_path: Path) -> None:
    paths = write(tmp_path, 3 * lines.CHUNK // len(LINES))
    both = pipelines("truecase")
    assert list(TokenizedText(paths, 2).words(*both)) == list(TokenizedText(paths).words(*both))


def test_one_text(tmp_path: Path) -> None:
    [path, _] = write(tmp_path)
    text = TokenizedText([path], folder=tmp_path / "missing")
    assert [list(text.words(pipelines("blanks")[0])) for _ in range(2)] == [
        [(files.split_words(line),) for line in LINES]
    ] * 2


def test_nothing_is_left_after_an_error(tmp_path: Path) -> None:
    paths = write(tmp_path)
    with (tmp_path / "a").open("a") as more:
        more.write("one more\n")
    for workers in (1, 2):
        text = TokenizedText(paths, workers, folder=tmp_path)
        for _ in range(2):
            with pytest.raises(DataError, match="5 lines, but"):
                list(text.words(*pipelines("words")))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_full_disk_is_reported_once() -> None:
    """What a file could not take is not reported again when it is given up."""
    file = open("/dev/full", "wb")
    file.write(b"x")
    close(file)
    assert file.closed
