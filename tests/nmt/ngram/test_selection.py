"""Selection: planted lines come first, numbers by hand, both sides added."""

import random
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import DataError
from nmt.io import files
from nmt.ngram import selection
from nmt.ngram.selection_config import SelectionConfig

CONFIG = SelectionConfig(order=3, min_count=2, seed=1, steps=4)


def texts(folder: Path) -> tuple[Path, Path, list[bool]]:
    """A domain of words a0 .. a29, and a general text of words b0 .. b29 with 100 lines of the domain in
    it."""
    rng = random.Random(1)

    def lines(letter: str, count: int) -> list[str]:
        return [
            " ".join(f"{letter}{int(rng.paretovariate(0.7)) % 30}" for _ in range(rng.randrange(3, 9)))
            for _ in range(count)
        ]

    inside, general = (
        lines("a", 150),
        [(line, True) for line in lines("a", 100)] + [(line, False) for line in lines("b", 400)],
    )
    rng.shuffle(general)
    (folder / "in").write_text("".join(f"{line}\n" for line in inside))
    (folder / "all").write_text("".join(f"{line}\n" for line, _ in general))
    return folder / "in", folder / "all", [planted for _, planted in general]


def test_planted_lines_come_first(tmp_path: Path) -> None:
    inside, general, planted = texts(tmp_path)
    values = selection.scores([selection.learn(str(inside), str(general), CONFIG)], [str(general)])
    assert [planted[row] for row in selection.best(values, 100)] == [True] * 100


def test_a_difference_is_that_of_the_two_models(tmp_path: Path) -> None:
    """H_in - H_general a word, the end symbol being one, rare words of the domain unknown to both; both sides
    are added."""
    inside, general, _ = texts(tmp_path)
    side = selection.learn(str(inside), str(general), CONFIG)
    line = "a0 b1 a1"
    read = [word if word in side.vocabulary else "<unk>" for word in line.split()]
    assert "b1" not in side.vocabulary and read[1] == "<unk>"
    inside_p, general_p = (float(model.scores([read])[0].sum()) for model in (side.in_domain, side.general))
    assert side.differences([line, ""]).tolist() == [pytest.approx((general_p - inside_p) / 4), np.inf]
    other = selection.learn(str(general), str(inside), CONFIG)
    both = selection.scores([side, other], [str(general), str(general)])
    assert both.tolist() == pytest.approx(
        (selection.scores([side], [str(general)]) + selection.scores([other], [str(general)])).tolist()
    )


def test_the_general_sample_is_as_large_as_the_domain(tmp_path: Path) -> None:
    _, general, _ = texts(tmp_path)
    lines = list(files.read_lines(general))
    drawn = selection.sample(str(general), 300, seed=3)
    assert 300 <= sum(len(line.split()) for line in drawn) < 310
    assert selection.sample(str(general), 300, seed=3) == drawn != selection.sample(str(general), 300, seed=4)
    rest = iter(lines)
    assert all(line in rest for line in drawn), "in the order of the text"
    assert selection.sample(str(general), 10**9, seed=3) == lines


def test_a_general_text_without_words_is_named(tmp_path: Path) -> None:
    inside, general, _ = texts(tmp_path)
    general.write_text("\n\n")
    with pytest.raises(DataError, match="all: no words"):
        selection.learn(str(inside), str(general), CONFIG)


def test_best_lines() -> None:
    values = np.array([0.5, -1.0, np.inf, 0.5, -2.0])
    assert selection.best(values, 3).tolist() == [4, 1, 0] and selection.best(values, 9).tolist() == [
        4,
        1,
        0,
        3,
    ]
    assert selection.within(values, np.array([1, 3, 0, 1, 2]), 5).tolist() == [4, 1]
    assert selection.within(values, np.array([1, 3, 0, 1, 2]), 6).tolist() == [4, 1, 0]


def test_the_size_of_the_lowest_perplexity(tmp_path: Path) -> None:
    """100 of 500 lines are of the domain: a quarter of all, 125, is better than all, a half or an eighth."""
    inside, general, _ = texts(tmp_path)
    side = selection.learn(str(inside), str(general), CONFIG)
    order = selection.best(selection.scores([side], [str(general)]), 500)
    trials = selection.search_size(side, str(general), str(inside), order, CONFIG)
    assert [trial.lines for trial in trials] == [500, 250, 125, 62]
    assert min(trials, key=lambda trial: trial.perplexity).lines in (125, 62)


def test_differences_with_all_their_digits(tmp_path: Path) -> None:
    """In blocks, as text: the same numbers, empty lines included."""
    inside, general, _ = texts(tmp_path)
    side = selection.learn(str(inside), str(general), CONFIG)
    rows = [(line,) for line in ["a0 a1", "", "b1 b2 a3", "a7"]]
    values = selection.differences([side], rows)
    parts = [[repr(value) for value in values[start : start + 2].tolist()] for start in (0, 2)]
    assert selection.concatenate(parts).tolist() == values.tolist() and values[1] == np.inf
    assert selection.concatenate([]).tolist() == []
    both = selection.differences([side, side], [row * 2 for row in rows])
    assert both.tolist() == (values + values).tolist()
