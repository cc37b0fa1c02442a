"""Parallel text with its alignment: links belong to the lines beside them."""

from pathlib import Path

import pytest

from nmt.data.tokenized import TokenizedText
from nmt.errors import DataError
from nmt.training import aligned
from nmt.training import config_file as configuration
from tests.commands.runs import joint_config


def test_links_of_each_pair(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("0-0 2-1\n\n")
    rows = [(["a", "b", "c"], ["x", "y"]), (["a"], [])]
    found = list(aligned.with_links(rows, str(tmp_path / "a")))
    assert [(words, other) for words, other, _ in found] == rows
    assert [set(links) for *_, links in found] == [{(0, 0), (2, 1)}, set()]
    for short in (rows[:1], [*rows, rows[0]]):
        with pytest.raises(DataError, match="not as many lines as the text"):
            list(aligned.with_links(short, str(tmp_path / "a")))
    with pytest.raises(DataError, match=r"a:1: point 2-1 is outside"):
        list(aligned.with_links([(["a", "b"], ["x", "y"]), rows[1]], str(tmp_path / "a")))


def test_words_are_counted_as_the_text_pipeline_makes_them(tmp_path: Path) -> None:
    """`Go, go.` has two words between blanks, and four for Moses' tokenizer."""
    given = joint_config(tmp_path, "run")
    for name, content in (("train.s", "Go, go.\n"), ("train.t", "Va, va.\n"), ("train.align", "3-3\n")):
        (tmp_path / name).write_text(content)
    change = [
        f"data.{side}.{key}" for side in ("source", "target") for key in ("tokenize=true", "language=en")
    ]
    data = configuration.load(given[0], [*given[1:], *change]).data
    text = TokenizedText([data.train_source, data.train_target])
    aligned.check_links(data, text)
    data.target.tokenize = False
    with pytest.raises(DataError, match=r"train\.align:1: point 3-3 is outside .*\(4 and 2 words\)"):
        aligned.check_links(data, text)
