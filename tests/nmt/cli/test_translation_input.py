"""Files of constraints: what stands in them, and what nmt-translate makes of them."""

import argparse
from pathlib import Path

import pytest

from nmt.cli import translation_input
from nmt.errors import DataError
from nmt.text import glossary


def options(folder: Path, **given: str) -> argparse.Namespace:
    """Options whose files hold the given texts."""
    paths: dict[str, str | None] = dict.fromkeys(translation_input.LINE_FILES)
    for name, text in given.items():
        (folder / name).write_text(text)
        paths[name] = str(folder / name)
    return argparse.Namespace(**paths, read_ahead=2, escaped=False, tag=None)


def test_blocks_have_what_belongs_to_their_lines(tmp_path: Path) -> None:
    args = options(tmp_path, input="a\nb\nc\n", prefix="x\n\nz\n", constraints="p\tq\n\nr\n")
    translation_input.check_line_files(args)
    found = list(translation_input.read_blocks(args))
    assert [(block.first, block.lines, block.side_lines["prefix"]) for block in found] == [
        (0, ["a", "b"], ["x", ""]),
        (2, ["c"], ["z"]),
    ]
    assert [block.side_lines["constraints"] for block in found] == [["p\tq", ""], ["r"]]
    short = options(tmp_path, input="a\nb\n", avoid_lines="x\n")
    with pytest.raises(DataError, match=r"avoid_lines: 1 line, but .* has 2"):
        translation_input.check_line_files(short)


def test_phrases_and_escapes(tmp_path: Path) -> None:
    (tmp_path / "avoid").write_text("# a comment\n\nab c\n  \nde\n")
    assert glossary.read_phrases(str(tmp_path / "avoid")) == ["ab c", "de"]
    assert glossary.split_phrases("a b\t\t c\t ") == ["a b", " c"]
    assert translation_input.unescape_line("l &apos;  a\t&amp;", True) == "l ' a\t&"
    assert translation_input.unescape_line("l &apos;  a", False) == "l &apos;  a"
