"""Alignment in shards: the links of one machine, whatever the shards and workers."""

import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.io import files
from nmt.work import stages
from nmt.work.executors import ExecutorConfig
from nmt.work.stages import SharedFolder
from smt_bridge.cli import align as command
from smt_bridge.extraction import align_shards, alignment, train_aligner
from smt_bridge.extraction.align_shards import AlignmentCounts, AlignmentOutputs
from smt_bridge.extraction.alignment import ALIGNERS
from tests.nmt.work import clusters

# ---- test align shards -------------------------------------------------------------------------------------


ENDS = ("", ".f", ".r")


def write(folder: Path, pairs: int) -> tuple[str, str]:
    """Words with their translation; an empty line, and one that is too long."""
    rng = random.Random(5)
    rows = [[rng.randrange(12) for _ in range(rng.randint(1, 9))] for _ in range(pairs)]
    sources = [" ".join(f"s{word}" for word in row) for row in rows]
    targets = [" ".join(f"t{word}" for word in row[::-1]) for row in rows]
    sources[3], targets[5] = "", " ".join("t1" for _ in range(alignment.LONGEST + 1))
    for name, lines in (("s", sources), ("t", targets)):
        files.write_text(folder / name, lines)
    return str(folder / "s"), str(folder / "t")


def outputs(folder: Path, name: str) -> AlignmentOutputs:
    return AlignmentOutputs(*(str(folder / f"{name}{end}") for end in ENDS))


def alone(folder: Path, method: str, heuristic: str = "union") -> None:
    """One machine."""
    words = alignment.read_texts(str(folder / "s"), str(folder / "t"))
    forward, reverse = alignment.align_both_directions(*words, method)
    both = alignment.symmetrize(forward, reverse, heuristic)
    for end, links in zip(ENDS, (both, forward, reverse), strict=True):
        files.write_text(folder / f"one{end}", map(alignment.format_links, links))


def shared(
    folder: Path, method: str, executor: ExecutorConfig, words: int, resume: bool = False
) -> AlignmentCounts:
    place = SharedFolder(folder / "job", "smt-align", resume)
    texts = str(folder / "s"), str(folder / "t")
    return align_shards.align(*texts, outputs(folder, "many"), method, "union", executor, place, words)


def same(folder: Path) -> bool:
    assert not (folder / "job").exists()
    return all((folder / f"one{end}").read_bytes() == (folder / f"many{end}").read_bytes() for end in ENDS)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Models are trained in this process; the directions that were."""
    ways = []

    def train(arguments: list[str]) -> None:
        folder, method, way, prefix = arguments
        ways.append(way)
        train_aligner.train(Path(folder), method, int(way), prefix)

    monkeypatch.setattr("smt_bridge.extraction.align_shards.run_training", train)
    return ways


@pytest.mark.parametrize("words", [1, 60, 100_000])
def test_shards_change_nothing(words: int, here: list[str], tmp_path: Path) -> None:
    write(tmp_path, 40)
    alone(tmp_path, "fast_align")
    found = shared(tmp_path, "fast_align", ExecutorConfig(), words)
    assert same(tmp_path)
    links = sum(len(line.split()) for line in (tmp_path / "many").read_text().split("\n"))
    assert found == AlignmentCounts(pairs=40, links=links, skipped=2)
    assert here == ["0", "1"]  # each model once


@pytest.mark.ci
@pytest.mark.parametrize("method", ["hmm", "ibm4", "eflomal"])
def test_all_methods(method: str, here: list[str], tmp_path: Path) -> None:
    """eflomal has no model that aligns: its links are those of the training."""
    write(tmp_path, 40)
    alone(tmp_path, method)
    shared(tmp_path, method, ExecutorConfig(), 60)
    assert same(tmp_path)


def test_it_resumes(here: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended after the training, and the model of one direction has been damaged since."""
    write(tmp_path, 40)
    alone(tmp_path, "fast_align")

    def stop(worker: align_shards.AlignmentWorker, number: int) -> list[bytes]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setitem(align_shards.STAGES, align_shards.ALIGN, stop)
        shared(tmp_path, "fast_align", ExecutorConfig(), 60)
    model = tmp_path / "job" / align_shards.TRAIN / "00001"
    model.write_bytes(model.read_bytes()[:-1])
    with pytest.raises(ConfigError, match=r"other settings \(method\)"):
        shared(tmp_path, "hmm", ExecutorConfig(), 60, resume=True)
    shared(tmp_path, "fast_align", ExecutorConfig(), 60, resume=True)
    assert same(tmp_path) and here == ["0", "1", "1"]


def test_nothing_to_align(tmp_path: Path) -> None:
    for name, text in (("s", "a\n\n"), ("t", "\nb\n")):
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match="s: no pair of two lines with words, nothing to align"):
        shared(tmp_path, "fast_align", ExecutorConfig(), 60)
    assert {path.name for path in tmp_path.iterdir()} == {"s", "t"}


# ---- other processes ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with clusters.cluster(tmp_path_factory.mktemp("cluster")) as where:
        yield where


@pytest.mark.ci
def test_a_cluster(two: str, tmp_path: Path) -> None:
    write(tmp_path, 40)
    alone(tmp_path, "fast_align")
    shared(tmp_path, "fast_align", ExecutorConfig(cluster=two), 60)
    assert same(tmp_path)


@pytest.mark.ci
def test_the_command_with_real_sentences(nmt_data: Path, tmp_path: Path) -> None:
    """300 of Multi30k, by two processes."""
    for name, language in (("s", "en"), ("t", "fr")):
        path = nmt_data / "moses-multi30k" / f"corpus/train.tok.{language}"
        files.write_text(tmp_path / name, islice(files.read_lines(path), 300))
    alone(tmp_path, "fast_align", "grow-diag-final-and")
    made = outputs(tmp_path, "many")
    call = ["-q", "-s", tmp_path / "s", "-t", tmp_path / "t", "-o", made.both, "--workers", "2"]
    call += ["--forward-output", made.forward, "--reverse-output", made.reverse, "--work", tmp_path / "job"]
    assert command.main([str(word) for word in call]) == 0
    assert same(tmp_path)


# ---- test align tasks --------------------------------------------------------------------------------------
# What workers compute of an alignment; test_align_shards.py has all of it together.


def test_a_worker_without_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="all hosts have to share it"):
        stages.begin_worker(align_shards.AlignmentWorker(tmp_path / "job", "fast_align", "union"))


@pytest.mark.ci
def test_a_training_that_fails_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^.*job/shards: missing or damaged; .*$"):
        align_shards.run_training([str(tmp_path / "job"), "fast_align", "0", str(tmp_path / "model")])
    with pytest.raises(UserError, match=r"^training of word alignment: .*ValueError"):
        align_shards.run_training(["too", "few"])


# ---- test train aligner ------------------------------------------------------------------------------------
# A training in a process of its own ends with the process that started it.


def test_links_instead_of_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an aligner that cannot keep one; the source word first."""

    class Corner:
        """The last word of the first text with the first word of the second."""

        def check(self) -> None:
            pass

        def align(
            self, sources: list[list[str]], targets: list[list[str]]
        ) -> list[frozenset[tuple[int, int]]]:
            return [frozenset([(len(source) - 1, 0)]) for source in sources]

    monkeypatch.setitem(ALIGNERS, "corner", Corner())
    (tmp_path / "s").write_text("a b c\nd\n")
    (tmp_path / "t").write_text("x y\nz\n")
    stages.cut_shards(tmp_path, [str(tmp_path / "s"), str(tmp_path / "t")], 1)
    for way, expected in ((0, "2-0\n0-0\n"), (1, "0-1\n0-0\n")):
        train_aligner.train(tmp_path, "corner", way, str(tmp_path / "out"))
        assert (tmp_path / f"out{train_aligner.LINKS}").read_text() == expected


@pytest.mark.ci
def test_it_ends_with_its_parent() -> None:
    code = "import time; from smt_bridge.extraction import train_aligner as t; import threading; "
    code += "threading.Thread(target=t.follow_parent, daemon=True).start(); time.sleep(300)"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    assert process.stdin
    process.stdin.close()
    assert process.wait(timeout=120) == 1
