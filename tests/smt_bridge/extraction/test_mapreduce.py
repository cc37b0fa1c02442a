"""Extraction by map and reduce: the bytes of `tables.build`, whatever the shards, buckets and workers, and
after kills and damage."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError, UserError
from nmt.io import files
from nmt.work import stages
from nmt.work.executors import ExecutorConfig
from nmt.work.stages import SharedFolder
from smt_bridge.extraction import mapreduce, tables
from smt_bridge.extraction.config import ExtractConfig
from smt_bridge.extraction.tables import TableInputs, TableOutputs
from tests.nmt.work import clusters
from tests.smt_bridge.extraction.test_tables import Corpus, instances, random_corpus, write

# ---- test mapreduce ----------------------------------------------------------------------------------------


ALL = ("", ".r", ".lex.e2f", ".lex.f2e")
ODD: dict[str, Corpus] = {
    "one pair": [(["a"], ["x"], [(0, 0)])],
    "no pair": [(["a", "b"], ["x"], [])],  # no link, no phrase
    "all equal": [(["a", "b"], ["x", "y"], [(0, 1), (1, 0)])] * 30,
    "empty lines": [([], [], []), (["a"], ["x"], [(0, 0)]), ([], ["y"], []), (["b"], [], []), ([], [], [])],
}


def outputs(folder: Path, name: str) -> TableOutputs:
    return TableOutputs(str(folder / name), str(folder / f"{name}.r"), str(folder / f"{name}.lex"))


def place(folder: Path, resume: bool = False) -> SharedFolder:
    return SharedFolder(folder / "job", "smt-extract", resume)


def same(folder: Path) -> bool:
    """Are all files those of one machine? And the folder of the job is gone."""
    assert not (folder / "job").exists()
    return all((folder / f"one{end}").read_bytes() == (folder / f"many{end}").read_bytes() for end in ALL)


@pytest.mark.parametrize(
    ("buckets", "block", "smoothing"),
    [
        pytest.param(1, 20, "none", marks=pytest.mark.ci),
        (3, 100, "kneser-ney"),
        pytest.param(40, 10_000, "good-turing", marks=pytest.mark.ci),
    ],
)
def test_shards_and_buckets_change_nothing(buckets: int, block: int, smoothing: str, tmp_path: Path) -> None:
    inputs = write(random_corpus(7, 60, 8), tmp_path)
    config = ExtractConfig(smoothing=smoothing, block=block, buckets=buckets)
    told: list[tuple[int, int]] = []
    pairs = tables.build(inputs, outputs(tmp_path, "one"), config)
    found = mapreduce.build(
        inputs,
        outputs(tmp_path, "many"),
        config,
        ExecutorConfig(),
        place(tmp_path),
        lambda done, total: told.append((done, total)),
    )
    assert found == pairs and same(tmp_path)
    assert told[-1][0] == told[-1][1]
    assert len(told) == 1 if block == 10_000 else len(told) > 5


@pytest.mark.parametrize("name", ODD)
def test_odd_corpora(name: str, tmp_path: Path) -> None:
    inputs = write(ODD[name], tmp_path)
    config = ExtractConfig(block=3, buckets=4)
    tables.build(inputs, outputs(tmp_path, "one"), config)
    mapreduce.build(inputs, outputs(tmp_path, "many"), config, ExecutorConfig(), place(tmp_path))
    assert same(tmp_path)


def test_bad_input_is_named_with_its_line_and_leaves_nothing(tmp_path: Path) -> None:
    inputs = write(random_corpus(7, 30, 3), tmp_path)
    lines = (tmp_path / "t").read_text().split("\n")
    lines[24] = "a|b"
    (tmp_path / "t").write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"t:25: '\|' in 'a\|b'"):
        mapreduce.build(
            inputs, outputs(tmp_path, "many"), ExtractConfig(block=50), ExecutorConfig(), place(tmp_path)
        )
    assert {path.name for path in tmp_path.iterdir()} == {"s", "t", "a"}


class Stop(Exception):
    """In the middle of a job."""


@pytest.mark.parametrize(
    "stage",
    [
        mapreduce.COUNT,
        *(pytest.param(name, marks=pytest.mark.ci) for name in mapreduce.STAGES if name != mapreduce.COUNT),
    ],
)
def test_what_is_finished_is_not_computed_again(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job ends in each of its stages, and a file of the first one is damaged: with --resume it computes
    that file and what is missing, and ends with the same bytes."""
    inputs = write(random_corpus(7, 60, 8), tmp_path)
    config = ExtractConfig(block=150, buckets=3)
    tables.build(inputs, outputs(tmp_path, "one"), config)

    def run(resume: bool) -> list[tuple[str, int]]:
        """The tasks that were computed."""
        computed: list[tuple[str, int]] = []

        def noting(name: str) -> None:
            make = mapreduce.STAGES[name]

            def noted(worker: mapreduce.ExtractionWorker, number: int) -> object:
                if not resume and (name, number) == (stage, 1):
                    raise Stop
                computed.append((name, number))
                return make(worker, number)

            patch.setitem(mapreduce.STAGES, name, noted)

        with monkeypatch.context() as patch:
            for name in list(mapreduce.STAGES):
                noting(name)
            mapreduce.build(
                inputs, outputs(tmp_path, "many"), config, ExecutorConfig(), place(tmp_path, resume)
            )
        return computed

    with pytest.raises(Stop):
        run(resume=False)
    with pytest.raises(ConfigError, match="an unfinished job; --resume continues it"):
        run(resume=False)
    done = tmp_path / "job" / mapreduce.SURVEY / "00000"
    done.write_bytes(done.read_bytes()[:-1] + b"!")
    again = run(resume=True)
    assert (mapreduce.SURVEY, 0) in again and (stage, 1) in again
    names = list(mapreduce.STAGES)
    before = names[1 : names.index(stage)]
    assert not [task for task in again if task[0] in before]
    assert ((stage, 0) in again) == (stage == mapreduce.SURVEY)
    assert same(tmp_path)


def test_a_damaged_bucket_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is noticed by the task that reads it."""
    inputs = write(random_corpus(7, 60, 8), tmp_path)
    config = ExtractConfig(block=150, buckets=3)
    tables.build(inputs, outputs(tmp_path, "one"), config)
    make = mapreduce.STAGES[mapreduce.TOTALS]

    def damaging(worker: mapreduce.ExtractionWorker, number: int) -> object:
        bucket = tmp_path / "job" / mapreduce.COUNT / "00001"
        whole = bucket.read_bytes()
        bucket.write_bytes(whole[: len(whole) // 2])
        return make(worker, number)

    def run(resume: bool) -> None:
        mapreduce.build(inputs, outputs(tmp_path, "many"), config, ExecutorConfig(), place(tmp_path, resume))

    with monkeypatch.context() as patch:
        patch.setitem(mapreduce.STAGES, mapreduce.TOTALS, damaging)
        with pytest.raises(UserError, match=r"job/count/00001: missing or damaged; .* --resume"):
            run(resume=False)
    run(resume=True)
    assert same(tmp_path)


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    inputs = write(ODD["one pair"], tmp_path)
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "letter").touch()
    with pytest.raises(ConfigError, match="job: is not empty, and not the folder of a job"):
        mapreduce.build(inputs, outputs(tmp_path, "many"), ExtractConfig(), ExecutorConfig(), place(tmp_path))
    assert (tmp_path / "job" / "letter").exists()


# ---- other processes ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with clusters.cluster(tmp_path_factory.mktemp("cluster")) as where:
        yield where


def build_both(folder: Path, executor: ExecutorConfig) -> None:
    inputs = write(random_corpus(7, 60, 8), folder)
    config = ExtractConfig(smoothing="kneser-ney", block=150, buckets=5)
    tables.build(inputs, outputs(folder, "one"), config)
    mapreduce.build(inputs, outputs(folder, "many"), config, executor, place(folder))


@pytest.mark.ci
def test_processes(tmp_path: Path) -> None:
    build_both(tmp_path, ExecutorConfig(workers=3))
    assert same(tmp_path)


@pytest.mark.ci
def test_a_cluster(two: str, tmp_path: Path) -> None:
    build_both(tmp_path, ExecutorConfig(cluster=two))
    assert same(tmp_path)


def extraction(inputs: TableInputs, folder: Path, *options: str) -> list[str]:
    """The command line."""
    made = outputs(folder, "many")
    return [
        sys.executable, "-m", "smt_bridge.cli.extract", "-q", "-s", inputs.source, "-t", inputs.target,
        "-a", inputs.alignment, "-o", made.table, "--reordering", str(made.reordering),
        "--lexical", str(made.lexical), "--work", str(folder / "job"), *options,
    ]  # fmt: skip


@pytest.mark.ci
def test_a_killed_command_resumes(tmp_path: Path) -> None:
    """kill -9, as soon as phrase pairs are counted."""
    inputs = write(random_corpus(7, 2000, 8), tmp_path)
    tables.build(inputs, outputs(tmp_path, "one"), ExtractConfig())
    process = subprocess.Popen(extraction(inputs, tmp_path, "--workers", "2"))
    while not (tmp_path / "job" / mapreduce.COUNT).exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "many").exists()
    again = extraction(inputs, tmp_path, "--resume", "--workers", "2")
    assert subprocess.run(again, check=False, capture_output=True).returncode == 0
    assert same(tmp_path)


@pytest.mark.ci
def test_real_sentences(nmt_data: Path, tmp_path: Path) -> None:
    """500 of Multi30k, with the alignment of Moses."""
    real = nmt_data / "moses-multi30k"
    for name, path in (
        ("s", real / "corpus/train.tok.en"),
        ("t", real / "corpus/train.tok.fr"),
        ("a", real / "aligned.grow-diag-final-and.gz"),
    ):
        files.write_text(tmp_path / name, islice(files.read_lines(path), 500))
    inputs = TableInputs(*(str(tmp_path / name) for name in "sta"))
    tables.build(inputs, outputs(tmp_path, "one"), ExtractConfig())
    config = ExtractConfig(block=3000, buckets=6)
    mapreduce.build(inputs, outputs(tmp_path, "many"), config, ExecutorConfig(workers=2), place(tmp_path))
    assert same(tmp_path)


# ---- test tasks --------------------------------------------------------------------------------------------
# What workers compute of an extraction, one by one; test_mapreduce.py has all of it together.


def test_a_worker_without_the_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="all hosts have to share it"):
        stages.begin_worker(mapreduce.ExtractionWorker(tmp_path / "job", ("s", "t", "a"), ExtractConfig()))


def test_a_sample_counts_instances() -> None:
    corpus = random_corpus(3, 20, 8)
    lines = [
        (" ".join(source), " ".join(target), " ".join(f"{i}-{j}" for i, j in links))
        for source, target, links in corpus
    ]
    expected = sum(len(instances(*pair, 5)) for pair in corpus)
    words = sum(len(source) + len(target) for source, target, _ in corpus)
    assert mapreduce.sample_instances(lines, 5) == (expected, words)


def test_words_of_several_shards(tmp_path: Path) -> None:
    """A side may have none."""
    for number, (source, target) in enumerate([(b"a\nb", b"x"), (b"", b"x\ny")]):
        stages.write_parts(tmp_path / str(number), [source, target, b'{"pairs": 2, "tokens": 5}'])
    found = mapreduce.read_words([tmp_path / "0", tmp_path / "1"])
    assert found.sides == ({"a", "b"}, {"x", "y"}) and (found.pairs, found.tokens) == (4, 10)
