"""smt-select: selected lines, scores and the table of sizes; options that exclude each other."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nmt.io import files
from nmt.ngram import selection
from nmt.work.executors import EXECUTORS, Local
from smt_bridge.cli import select
from tests.conftest import Command
from tests.nmt.ngram.test_selection import texts


def test_the_command(tmp_path: Path, command: Command) -> None:
    inside, general, planted = texts(tmp_path)
    lines = general.read_text().split("\n")[:-1]

    def select_lines(words: str) -> subprocess.CompletedProcess[str]:
        given = words.replace("DOMAIN", str(inside)).replace("GENERAL", str(general)).split()
        return command("smt-select", *given, cwd=tmp_path)

    done = select_lines("--in-domain DOMAIN -g GENERAL -o o --keep 100 --scores s")
    assert done.returncode == 0 and "100 of 500 lines selected" in done.stderr, done.stderr
    rows = list(zip(lines, map(float, (tmp_path / "s").read_text().split()), planted, strict=True))
    assert (tmp_path / "o").read_text().split("\n")[:-1] == [line for line, _, keep in rows if keep]
    assert max(value for _, value, keep in rows if keep) < min(value for _, value, keep in rows if not keep)
    done = select_lines("-q --in-domain DOMAIN -g GENERAL -o o --dev DOMAIN")
    table = [line.split("\t") for line in done.stdout.split("\n")[:-1]]
    assert table[0] == ["lines", "perplexity", "best"] and len(table) == 7, done.stderr
    (best,) = (row for row in table if row[2] == "*")
    assert len((tmp_path / "o").read_text().split("\n")) - 1 == int(best[0])
    done = select_lines("-q --in-domain DOMAIN DOMAIN -g GENERAL GENERAL -o a b --words 200")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert 190 <= len((tmp_path / "a").read_text().split()) <= 200


def test_what_is_refused(tmp_path: Path, command: Command, refused: Callable[..., str]) -> None:
    inside, general, _ = texts(tmp_path)
    (tmp_path / "short").write_text("a0\n")
    for words, message in (
        ("-o o --in-domain DOMAIN -g GENERAL GENERAL", "found 1, 2 and 1"),
        ("-o o --in-domain - -g GENERAL", "give files"),
        ("-o o --in-domain short -g GENERAL", "no word occurs 2 times"),
        ("-o o p --in-domain DOMAIN DOMAIN -g GENERAL short", "short"),
        ("-o o --in-domain DOMAIN -g GENERAL --words 4", "not allowed with"),
        ("-o o --in-domain DOMAIN -g GENERAL --steps 3", "--steps goes with --dev"),
        ("-o - --in-domain DOMAIN -g GENERAL --dev DOMAIN", "the table of --dev"),
        ("-o o --scores - --in-domain DOMAIN -g GENERAL --dev DOMAIN", "the table of --dev"),
        ("-o /dev/null --in-domain DOMAIN -g GENERAL --workers 2", "need a folder beside the output"),
    ):
        given = words.replace("DOMAIN", str(inside)).replace("GENERAL", str(general)).split()
        size = [] if "--dev" in given else ["--keep", 5]
        assert message in refused(command("smt-select", "-q", *size, *given, cwd=tmp_path))
    assert not (tmp_path / "o").exists()


def test_no_line_has_words_on_both_sides(tmp_path: Path, command: Command) -> None:
    inside, _, _ = texts(tmp_path)
    (tmp_path / "upper").write_text("a0 a1\n\n")
    (tmp_path / "lower").write_text("\na0 a1\n")
    given = f"-q --in-domain {inside} {inside} -g upper lower -o o p --dev {inside} --min-count 1"
    done = command("smt-select", *given.split(), cwd=tmp_path)
    assert done.returncode == 2 and not (tmp_path / "o").exists()
    assert done.stderr.endswith("smt-select: upper: no line has words on every side; give another text\n")


@pytest.mark.ci
def test_multi30k_is_found_again(nmt_data: Path, tmp_path: Path, command: Command) -> None:
    """With Multi30k as the domain and a shuffled mixture of Multi30k and Tatoeba, both sides: at least 95% of
    the 29,000 selected lines are Multi30k's."""
    domain = [nmt_data / "multi30k" / f"train.{side}" for side in ("en", "fr")]
    others = [nmt_data / "tatoeba-enfr" / f"train.{side}.gz" for side in ("en", "fr")]
    rows = [(row, True) for row in files.parallel(*domain)]
    rows += [(row, False) for row in files.parallel(*others)]
    random.Random(1).shuffle(rows)
    for number, side in enumerate(("en", "fr")):
        files.write_text(tmp_path / f"all.{side}", (row[number] for row, _ in rows))
    given = "-g all.en all.fr -o o.en o.fr --keep 29000 --scores s".split()
    done = command("smt-select", *given, "--in-domain", *domain, cwd=tmp_path, timeout=1200)
    assert done.returncode == 0, done.stderr
    values = np.array([float(line) for line in files.read_lines(tmp_path / "s")])
    found = [rows[row][1] for row in np.argsort(values, kind="stable")[:29000]]
    assert sum(found) >= 0.95 * 29000


def test_a_job_in_blocks_selects_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Models are estimated from a sample in the job folder, of which nothing remains."""
    inside, general, _ = texts(tmp_path)
    monkeypatch.setattr(selection, "BLOCK", 70)
    monkeypatch.setitem(EXECUTORS, "blocks", Local)
    found = []
    for name, more in (("here", []), ("there", ["--executor", "blocks"]), ("kept", ["--resume"])):
        folder = tmp_path / name
        line = ["--in-domain", str(inside), "-g", str(general), "--keep", "50", "-q", *more]
        assert select.main([*line, "-o", f"{folder}/out", "--scores", f"{folder}/scores"]) == 0
        assert sorted(path.name for path in folder.iterdir()) == ["out", "scores"]
        found.append([path.read_bytes() for path in sorted(folder.iterdir())])
    assert found[0] == found[1] == found[2]
