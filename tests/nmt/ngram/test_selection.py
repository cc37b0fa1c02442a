"""Selection: planted lines come first, numbers by hand, both sides added, the command as installed."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nmt import files
from nmt.ngram import selection
from nmt.ngram.selection_config import SelectionConfig

Command = Callable[..., subprocess.CompletedProcess[str]]
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
    read = [word if word in side.known else "<unk>" for word in line.split()]
    assert "b1" not in side.known and read[1] == "<unk>"
    inside_p, general_p = (float(model.scores([read])[0].sum()) for model in (side.inside, side.general))
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


def test_the_command(tmp_path: Path, command: Command, refused: Callable[..., str]) -> None:
    inside, general, planted = texts(tmp_path)
    lines = general.read_text().split("\n")[:-1]
    done = command(
        "smt-select",
        "--in-domain",
        inside,
        "-g",
        general,
        "-o",
        tmp_path / "o",
        "--keep",
        100,
        "--scores",
        tmp_path / "s",
    )
    assert done.returncode == 0 and "100 of 500 lines selected" in done.stderr, done.stderr
    assert (tmp_path / "o").read_text().split("\n")[:-1] == [
        line for line, keep in zip(lines, planted, strict=True) if keep
    ]
    values = [float(line) for line in (tmp_path / "s").read_text().split("\n")[:-1]]
    assert max(v for v, p in zip(values, planted, strict=True) if p) < min(
        v for v, p in zip(values, planted, strict=True) if not p
    )
    done = command(
        "smt-select", "-q", "--in-domain", inside, "-g", general, "-o", tmp_path / "o", "--dev", inside
    )
    rows = [line.split("\t") for line in done.stdout.split("\n")[:-1]]
    assert rows[0] == ["lines", "perplexity", "best"] and len(rows) == 7, done.stderr
    (best,) = (row for row in rows if row[2] == "*")
    assert len((tmp_path / "o").read_text().split("\n")) - 1 == int(best[0])
    done = command(
        "smt-select",
        "-q",
        "--in-domain",
        inside,
        inside,
        "-g",
        general,
        general,
        "-o",
        tmp_path / "a",
        tmp_path / "b",
        "--words",
        200,
    )
    assert done.returncode == 0 and (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes(), (
        done.stderr
    )
    assert 190 <= len((tmp_path / "a").read_text().split()) <= 200


def test_what_is_refused(tmp_path: Path, command: Command, refused: Callable[..., str]) -> None:
    inside, general, _ = texts(tmp_path)
    (tmp_path / "short").write_text("a0\n")
    line = ["smt-select", "-q", "--keep", 5, "-o", tmp_path / "o"]
    assert "found 1, 2 and 1" in refused(command(*line, "--in-domain", inside, "-g", general, general))
    assert "give files" in refused(command(*line, "--in-domain", "-", "-g", general))
    assert "no word occurs 2 times" in refused(
        command(*line, "--in-domain", tmp_path / "short", "-g", general)
    )
    assert "short" in refused(
        command(*line, tmp_path / "p", "--in-domain", inside, inside, "-g", general, tmp_path / "short")
    )
    assert "not allowed with" in refused(command(*line, "--in-domain", inside, "-g", general, "--words", 4))
    assert not (tmp_path / "o").exists()


@pytest.mark.ci
def test_multi30k_is_found_again(nmt_data: Path, tmp_path: Path, command: Command) -> None:
    """In-domain Multi30k, general Multi30k and Tatoeba shuffled, both sides: of the 29,000 lines selected at
    least 95% are Multi30k's."""
    domain = [nmt_data / "multi30k" / f"train.{side}" for side in ("en", "fr")]
    others = [nmt_data / "tatoeba-enfr" / f"train.{side}.gz" for side in ("en", "fr")]
    rows = [(row, True) for row in files.parallel(*domain)] + [
        (row, False) for row in files.parallel(*others)
    ]
    random.Random(1).shuffle(rows)
    for number, side in enumerate(("en", "fr")):
        files.write_text(tmp_path / f"all.{side}", (row[number] for row, _ in rows))
    general, out = [tmp_path / "all.en", tmp_path / "all.fr"], [tmp_path / "o.en", tmp_path / "o.fr"]
    done = command(
        "smt-select",
        "--in-domain",
        *domain,
        "-g",
        *general,
        "-o",
        *out,
        "--keep",
        29000,
        "--scores",
        tmp_path / "s",
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    values = np.array([float(line) for line in files.read_lines(tmp_path / "s")])
    found = [rows[row][1] for row in np.argsort(values, kind="stable")[:29000]]
    assert sum(found) >= 0.95 * 29000
