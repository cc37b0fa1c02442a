"""The folder of smt-train: one process at a time, nobody else's files."""

import errno
import gzip
import logging
import math
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.cli import ngram
from nmt.errors import ConfigError, DataError, UserError
from nmt.io import files, locks, mapped
from nmt.ngram import count_models, counting, disk_counts, estimators, word_classes
from nmt.work.executors import ExecutorConfig
from smt_bridge import compiled_model, train_system
from smt_bridge.cli import compile as cli_compile
from smt_bridge.config import TrainConfig
from smt_bridge.decoder import system
from smt_bridge.decoder.config import CompileConfig, DecoderConfig
from smt_bridge.extraction.config import ExtractConfig, PruneConfig
from smt_bridge.moses.operations import ClassMaps, operation_lines
from smt_bridge.tables.filter import FilterPaths
from smt_bridge.tables.pruning import prune_tables
from smt_bridge.train_system import (
    CLASS_LM,
    CLASS_OPERATIONS,
    CLASS_TEXT,
    CLASSES,
    COMPILED,
    COUNTING,
    EXTRACTION,
    INI,
    LM,
    OPERATIONS,
    OSM,
    OSM_CLASSES,
    REORDERING,
    SETTINGS,
    TABLE,
    TUNED,
    UNPRUNED,
    SystemTraining,
    add_config,
    estimate,
    record_settings,
    train,
)
from tests.nmt.ngram.test_estimators import some_text
from tests.smt_bridge.extraction.test_tables import random_corpus, write


class Killed(BaseException):
    """In place of kill -9."""


def kill(*_: object) -> None:
    raise Killed


def kill_after(steps: int) -> Callable[[], None]:
    """What a training that is killed after so many steps calls after each."""
    left = iter(range(1, steps))

    def check() -> None:
        if next(left, 0) == 0:
            raise Killed

    return check


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    for name in ("source", "target"):
        (tmp_path / name).write_text("a b\n")
    return TrainConfig(str(tmp_path / "source"), str(tmp_path / "target"))


def test_one_process_at_a_time(config: TrainConfig, tmp_path: Path) -> None:
    with (
        locks.locked(tmp_path / "model", "smt-train"),
        pytest.raises(UserError, match="model: in use by smt-train, process"),
    ):
        train(tmp_path / "model", config)
    assert not (tmp_path / "model").exists()


def test_nobody_elses_folder_is_touched(config: TrainConfig, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.part1").write_text("x")
    with pytest.raises(ConfigError, match="is not empty, and not a folder of smt-train"):
        train(tmp_path / "mine", config)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.part1"]


def test_only_its_own_parts_are_swept(config: TrainConfig, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    record_settings(model, config)
    for name in ("notes.part1", "phrase-table.gz.part.gz.part7-1", "lm.arpa.gz.part7-0"):
        (model / name).write_text("x")
    record_settings(model, config)
    assert sorted(path.name for path in model.iterdir()) == ["notes.part1", "train.json"]


def test_other_settings_and_texts_are_refused(config: TrainConfig, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    record_settings(model, config)
    record_settings(model, replace(config, extract=ExtractConfig(memory=2.0)))  # affects no result
    with pytest.raises(ConfigError, match=f"{model}: was started with another order, extract; name"):
        record_settings(model, replace(config, order=2, extract=ExtractConfig(max_length=3)))
    Path(config.source).write_text("a c\n")
    with pytest.raises(ConfigError, match="was started with another source; name"):
        record_settings(model, config)


@pytest.mark.parametrize("text", ["", "[1]", "{", "[" * 100_000])
def test_damaged_settings(text: str, config: TrainConfig, tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text(text)
    with pytest.raises(DataError, match=r"train\.json: damaged; remove"):
        record_settings(tmp_path, config)


def test_settings_out_of_range(config: TrainConfig, tmp_path: Path) -> None:
    config.extract = ExtractConfig(max_length=9)
    with pytest.raises(ConfigError, match=r"extract\.max_length: 9 is out of range, expected 1 to 8"):
        train(tmp_path / "model", config)
    assert not (tmp_path / "model").exists()


def pruned_config(folder: Path) -> TrainConfig:
    inputs = write([(["a", "b"], ["x", "y"], [(0, 0), (1, 1)]), (["b"], ["y"], [(0, 0)])] * 3, folder)
    return TrainConfig(
        inputs.source, inputs.target, inputs.alignment, order=2, prune=PruneConfig(prune_significance="1")
    )


def test_another_type_of_reordering(tmp_path: Path) -> None:
    """The table is named after its type, the ini has its number of scores, and --add keeps it."""
    config = pruned_config(tmp_path)
    config.extract.reordering_type = "hier-mslr-bidirectional-fe-collapseff"
    train(tmp_path / "model", config)
    ini = (tmp_path / "model" / INI).read_text()
    table = "reordering-table.hier-mslr-bidirectional-fe.gz"
    assert f"num-features=2 type={config.extract.reordering_type} " in ini and f"path={table}\n" in ini
    assert "LexicalReordering0= 0.3 0.3\n" in ini
    line = gzip.decompress((tmp_path / "model" / table).read_bytes()).split(b"\n")[0]
    assert len(line.split(b" ||| ")[2].split()) == 8
    added = add_config(str(tmp_path / "model"), config.source, config.target)
    assert added.extract.reordering_type == config.extract.reordering_type
    config.extract.reordering_type = "wbe-msd"
    with pytest.raises(ConfigError, match="'wbe-msd': expected a reordering type"):
        train(tmp_path / "other", config)


@pytest.mark.parametrize("feature", ["low", "bins"])
def test_a_count_feature(feature: str, tmp_path: Path) -> None:
    """exp(-1/n), or e in one of six bins, after the other scores; the ini has it, and --add keeps it."""
    config = pruned_config(tmp_path)
    train(tmp_path / "plain", config)
    config.extract.count_feature = feature
    train(tmp_path / "model", config)
    plain, counted = (rows(tmp_path / name) for name in ("plain", "model"))
    values: list[str] = []
    for row in plain:
        n = int(row[4].split()[2])
        bins = (n == 1, n == 2, n == 3, 3 < n < 6, 5 < n < 11, n > 10)
        values = (
            [f"{math.exp(-1 / n):.6g}"] if feature == "low" else ["2.718" if own else "1" for own in bins]
        )
        row[2] = " ".join([row[2], *values])
    assert counted == plain
    ini = (tmp_path / "model" / INI).read_text()
    assert f"num-features={4 + len(values)} path=phrase-table.gz" in ini
    assert f"TranslationModel0= 0.2 0.2 0.2 0.2{' 0.0' * len(values)}\n" in ini
    added = add_config(str(tmp_path / "model"), config.source, config.target)
    assert added.extract.count_feature == feature


def rows(folder: Path) -> list[list[str]]:
    text = gzip.decompress((folder / TABLE).read_bytes()).decode()
    return [line.split(" ||| ") for line in text.split("\n")[:-1]]


def tables(folder: Path) -> list[bytes]:
    return [gzip.decompress((folder / name).read_bytes()) for name in (TABLE, REORDERING)]


def test_the_operation_sequence_model(tmp_path: Path) -> None:
    """It is the n-gram model of the operations, and a feature of the system."""
    config = replace(pruned_config(tmp_path), osm=3)
    train(tmp_path / "model", config)
    lines = list(operation_lines(config.source, config.target, config.alignment))
    assert list(files.read_lines(tmp_path / "model" / OPERATIONS)) == lines
    settings = estimators.KneserNeyConfig(3, discount_fallback=estimators.FALLBACK_DISCOUNTS)
    model = estimators.estimate_kneser_ney(map(str.split, lines), settings)
    count_models.write_arpa(model, tmp_path / "osm")
    assert list(files.read_lines(tmp_path / "model" / OSM)) == list(files.read_lines(tmp_path / "osm"))
    trained = system.load(str(tmp_path / "model"), use_cache=False)
    (feature,) = trained.load_features(DecoderConfig())
    assert (feature.name, feature.scores) == ("OpSequenceModel0", 5)
    assert trained.weights[feature.name] == [0.08, -0.02, 0.02, -0.001, 0.03]  # of Moses' train-model.perl


def test_the_operation_sequence_model_of_classes(tmp_path: Path) -> None:
    config = replace(pruned_config(tmp_path), osm=3, osm_classes=2)
    train(tmp_path / "model", config)
    paths = [tmp_path / "model" / name for name in OSM_CLASSES]
    classes = ClassMaps(*map(word_classes.read_classes, paths))
    assert set(classes.source) == {"a", "b"} and set(classes.target) == {"x", "y"}
    lines = list(operation_lines(config.source, config.target, config.alignment, classes))
    assert list(files.read_lines(tmp_path / "model" / CLASS_OPERATIONS)) == lines
    features = system.load(str(tmp_path / "model"), use_cache=False).load_features(DecoderConfig())
    assert [(item.name, item.scores) for item in features] == [
        ("OpSequenceModel0", 5),
        ("OpSequenceModel1", 1),
    ]
    added = add_config(str(tmp_path / "model"), config.source, config.target, config.alignment)
    assert (added.osm, added.osm_classes) == (3, 2)
    with pytest.raises(ConfigError, match="osm_classes: goes with osm above 0"):
        train(tmp_path / "other", replace(config, osm=0))


def test_pruned_tables_are_those_of_filtering(tmp_path: Path) -> None:
    """And the unpruned ones are gone."""
    config = pruned_config(tmp_path)
    train(tmp_path / "pruned", config)
    train(tmp_path / "full", replace(config, prune=PruneConfig()))
    full = tmp_path / "full"
    paths = FilterPaths(full / TABLE, full / "t.gz", full / REORDERING, full / "r.gz")
    kept = prune_tables(paths, None, config.prune, (config.source, config.target))
    assert 0 < kept < tables(full)[0].count(b"\n")
    assert tables(tmp_path / "pruned") == [
        gzip.decompress((full / name).read_bytes()) for name in ("t.gz", "r.gz")
    ]
    assert not list((tmp_path / "pruned").glob("*unpruned*"))
    with pytest.raises(ConfigError, match="was started with another prune"):
        train(tmp_path / "pruned", replace(config, prune=PruneConfig(prune_count=2)))


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_pruned_training_resumes_after_any_step(
    steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same bytes; tables that are not needed are removed even if training was killed before."""
    config = pruned_config(tmp_path)
    train(tmp_path / "whole", config)

    with monkeypatch.context() as changed:
        changed.setattr(train_system, "remove_unpruned", lambda folder: None)
        with pytest.raises(Killed):
            train(tmp_path / "model", config, on_step=kill_after(steps))
    assert (tmp_path / "model" / UNPRUNED).exists() == (steps > 1)
    train(tmp_path / "model", config)
    names = sorted(path.name for path in (tmp_path / "whole").iterdir() if path.name != locks.FILE)
    assert names == sorted(path.name for path in (tmp_path / "model").iterdir() if path.name != locks.FILE)
    for name in names:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "model" / name).read_bytes(), name


def test_nothing_is_left_of_a_table(tmp_path: Path) -> None:
    config = replace(pruned_config(tmp_path), prune=PruneConfig(prune_significance="99"))
    with pytest.raises(DataError, match=r"phrase-table\.unpruned\.gz: no pair is left after pruning"):
        train(tmp_path / "model", config)
    assert not (tmp_path / "model" / TABLE).exists()
    config.prune.prune_significance = "b"
    with pytest.raises(ConfigError, match="prune_significance: 'b'"):
        train(tmp_path / "new", config)
    assert not (tmp_path / "new").exists()


def class_config(folder: Path) -> TrainConfig:
    """With classes of the words of a text of the language model."""
    inputs = write([(["a", "b"], ["x", "y"], [(0, 0), (1, 1)]), (["b"], ["y"], [(0, 0)])] * 3, folder)
    lm_text = ["x y z", "z y x x", "y w"] * 3
    files.write_text(folder / "lm", lm_text)
    return TrainConfig(
        inputs.source, inputs.target, inputs.alignment, order=2, lm_text=str(folder / "lm"), class_lm=2,
        class_order=3,
    )  # fmt: skip


def test_a_language_model_of_classes(tmp_path: Path) -> None:
    """The classes and the model are those of nmt-ngram; the system decodes with it."""
    config = class_config(tmp_path)
    train(tmp_path / "model", config)
    table, lm = tmp_path / "model" / CLASSES, tmp_path / "model" / CLASS_LM
    assert (
        ngram.main(["classes", "-i", config.lm_text, "--classes", "2", "-o", str(tmp_path / "c"), "-q"]) == 0
    )
    assert table.read_bytes() == (tmp_path / "c").read_bytes()
    options = ["--word-classes", str(table), "--order", "3", "--discount-fallback", "-q"]
    assert ngram.main(["-i", config.lm_text, "-o", str(tmp_path / "lm.gz"), *options]) == 0
    assert gzip.decompress(lm.read_bytes()) == gzip.decompress((tmp_path / "lm.gz").read_bytes())
    made = system.load(str(tmp_path / "model"), use_cache=False)
    assert made.lm_names == ["LM0", "ClassLM0"] and made.weights["ClassLM0"] == [0.2]
    with pytest.raises(ConfigError, match="was started with another class_lm, class_order"):
        train(tmp_path / "model", replace(config, class_lm=3, class_order=2))
    train(tmp_path / "without", replace(config, class_lm=0))
    assert not {CLASSES, CLASS_LM} & {path.name for path in (tmp_path / "without").iterdir()}
    assert "ClassLM" not in (tmp_path / "without" / "moses.ini").read_text()


@pytest.mark.parametrize("step", [3, 4])
def test_a_training_with_classes_resumes(step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its classes, and after its model of them, when the text of classes has not been removed."""
    config = class_config(tmp_path)
    train(tmp_path / "whole", config)

    with pytest.raises(Killed):
        train(tmp_path / "model", config, on_step=kill_after(step + 1))
    assert (tmp_path / "model" / CLASS_LM).exists() == (step == 4)
    (tmp_path / "model" / CLASS_TEXT).write_text("left")
    train(tmp_path / "model", config)
    folders = [
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir() if path.is_file()}
        for name in ("whole", "model")
    ]
    assert CLASS_TEXT not in folders[0]
    assert all(folder.pop(locks.FILE, b"") is not None for folder in folders)
    assert folders[0] == folders[1]


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any text needs more than --memory, which has room for 20 tokens or n-grams."""
    monkeypatch.setattr(counting, "LINES", 7)
    monkeypatch.setattr(disk_counts, "BYTES_PER_NGRAM", 1e9)
    monkeypatch.setattr(disk_counts, "BYTES_PER_ROW", 1e9)
    monkeypatch.setattr(disk_counts, "LEAST_ROWS", 20)


def lm_folder(folder: Path, config: TrainConfig) -> Path:
    """A folder of training that has come to the language model."""
    folder.mkdir()
    record_settings(folder, config)
    return folder


@pytest.fixture
def large_lm(config: TrainConfig, tmp_path: Path) -> TrainConfig:
    """With a text of the language model of many chunks."""
    files.write_text(tmp_path / "lm", map(" ".join, some_text()))
    return replace(config, lm_text=str(tmp_path / "lm"), order=3)


@pytest.fixture
def in_memory(large_lm: TrainConfig, tmp_path: Path) -> bytes:
    """The language model of `large_lm`, counted in memory."""
    folder = lm_folder(tmp_path / "memory", large_lm)
    estimate(SystemTraining(folder, large_lm, ExecutorConfig()))
    return (folder / LM).read_bytes()


def test_a_language_model_counted_on_disk_is_the_same(
    in_memory: bytes,
    large_lm: TrainConfig,
    tmp_path: Path,
    little_memory: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And nothing else stays; nor is anything counted on disk if there is memory for it."""
    folder = lm_folder(tmp_path / "disk", large_lm)
    with caplog.at_level(logging.INFO):
        estimate(SystemTraining(folder, large_lm, ExecutorConfig()))
    assert f"counting on disk with 1.0 GB of memory (--memory): {folder}/" in caplog.text
    assert (folder / LM).read_bytes() == in_memory
    assert sorted(path.name for path in folder.iterdir()) == [LM, "train.json"]
    caplog.clear()
    large_lm.extract.memory = 1e12
    with caplog.at_level(logging.INFO):
        estimate(SystemTraining(folder, large_lm, ExecutorConfig()))
    assert "counting on disk" not in caplog.text and (folder / LM).read_bytes() == in_memory


def test_counting_on_disk_resumes_after_a_kill(
    in_memory: bytes, large_lm: TrainConfig, tmp_path: Path, little_memory: None
) -> None:
    """With the same bytes; what the killed process left on disk is removed."""
    folder = lm_folder(tmp_path / "model", large_lm)

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(disk_counts, "merge_runs", kill)
        changed.setattr(locks, "clear", lambda folder: None)
        with pytest.raises(Killed):
            estimate(SystemTraining(folder, large_lm, ExecutorConfig()))
    assert len(list(folder.glob("nmt-ngram.*/chunk-*.ids"))) > 10
    record_settings(folder, large_lm)  # as each start does
    assert [path.name for path in folder.iterdir()] == ["train.json"]
    estimate(SystemTraining(folder, large_lm, ExecutorConfig()))
    assert (folder / LM).read_bytes() == in_memory


@pytest.mark.parametrize(
    ("needed", "workers", "begun", "shared"),
    [
        (0.5, 2, False, True),
        (1.5, 2, False, True),
        (2.5, 2, False, False),
        (2.5, 2, True, True),
        (2.5, 1, True, True),
    ],
)
def test_workers_share_a_text_that_fits_in_their_memory(
    needed: float,
    workers: int,
    begun: bool,
    shared: bool,
    in_memory: bytes,
    large_lm: TrainConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or one whose counts some workers have begun. GB needed, and 1 GB for each worker."""

    class Shared(Exception):
        pass

    def count_shared(*_: object) -> None:
        raise Shared

    folder = lm_folder(tmp_path / "model", large_lm)
    if begun:
        (folder / COUNTING).mkdir()
    monkeypatch.setattr(disk_counts, "memory_to_count", lambda *_: 1e9 * needed)
    monkeypatch.setattr(train_system, "count_text", count_shared)
    with pytest.raises(Shared) if shared else nullcontext():
        estimate(SystemTraining(folder, large_lm, ExecutorConfig(workers=workers)))
    assert shared or (folder / LM).read_bytes() == in_memory


def test_a_full_disk_ends_counting_with_one_line(
    large_lm: TrainConfig, tmp_path: Path, little_memory: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_counts, "write_run", full_disk)
    folder = lm_folder(tmp_path / "model", large_lm)
    with pytest.raises(UserError, match=rf"{folder}/{LM}: cannot write: No space left on device"):
        estimate(SystemTraining(folder, large_lm, ExecutorConfig()))
    assert [path.name for path in folder.iterdir()] == ["train.json"]


@pytest.mark.ci
def test_several_workers_make_the_same_model(tmp_path: Path) -> None:
    """Also where they were killed, and one process alone resumes: here with a folder that is just begun."""
    inputs = write(random_corpus(3, 40, 8), tmp_path)
    config = TrainConfig(inputs.source, inputs.target, inputs.alignment, order=2)
    train(tmp_path / "one", config)
    train(tmp_path / "two", config, ExecutorConfig(workers=2))
    (tmp_path / "two" / TABLE).unlink()
    (tmp_path / "two" / EXTRACTION).mkdir()
    train(tmp_path / "two", config)
    names = [path.name for path in (tmp_path / "one").iterdir()]
    assert sorted(names) == sorted(path.name for path in (tmp_path / "two").iterdir())
    for name in names:
        if not name.startswith("."):
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


# ---- compiled ----------------------------------------------------------------------------------------------


def compiled_config(folder: Path) -> TrainConfig:
    inputs = write(random_corpus(3, 30, 5), folder)
    config = TrainConfig(inputs.source, inputs.target, inputs.alignment, order=3)
    config.compiled = CompileConfig(quantize=8, quantize_lm=4)
    return config


def contents(folder: Path) -> dict[str, bytes]:
    """What is in all files of a folder, by their paths in it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != locks.FILE
    }


def test_a_compiled_model_is_that_of_smt_compile(tmp_path: Path) -> None:
    """Byte for byte; a model that is not compiled has the same other files."""
    config = compiled_config(tmp_path)
    train(tmp_path / "model", config)
    assert (
        cli_compile.main(
            [f"{tmp_path}/model", "-o", f"{tmp_path}/apart", "--quantize", "8", "--quantize-lm", "4"]
        )
        == 0
    )
    whole = contents(tmp_path / "model")
    compiled = {name.partition("/")[2]: text for name, text in whole.items() if name.startswith(COMPILED)}
    assert compiled == contents(tmp_path / "apart") and len(compiled) > 20
    config.compiled = None
    train(tmp_path / "text", config)
    plain = contents(tmp_path / "text")
    assert set(whole) - set(plain) == {f"{COMPILED}/{name}" for name in compiled}
    assert all(whole[name] == text for name, text in plain.items() if name != SETTINGS)


def test_compiling_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill, and in a folder of a name with a blank; nothing of an unfinished folder is left."""
    config, folder = compiled_config(tmp_path), tmp_path / "a model"
    train(folder, config)
    whole = contents(folder)
    shutil.rmtree(folder / COMPILED)

    with monkeypatch.context() as changed:
        changed.setattr(compiled_model, "compile_lm", kill)
        changed.setattr(shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(Killed):
            train(folder, config)
    assert [path.name for path in folder.glob(f"{COMPILED}*") if ".part" in path.name]
    train(folder, config)
    assert contents(folder) == whole


def test_compiling_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = compiled_config(tmp_path)

    monkeypatch.setattr(mapped, "save_array", full_disk)
    with pytest.raises(UserError, match=r"compiled.*: cannot write: No space left on device"):
        train(tmp_path / "model", config)
    assert not list((tmp_path / "model").glob(f"{COMPILED}*"))


def test_other_bits_are_refused(tmp_path: Path) -> None:
    config = compiled_config(tmp_path)
    train(tmp_path / "model", config)
    assert config.compiled is not None
    config.compiled.quantize = 16
    with pytest.raises(ConfigError, match="another compiled"):
        train(tmp_path / "model", config)
    config.compiled.quantize = 7
    with pytest.raises(ConfigError, match="quantize: '7' is unknown"):
        train(tmp_path / "new", config)


def test_pairs_added_to_a_compiled_model(tmp_path: Path) -> None:
    """The new model is compiled likewise, also with the weights of a tuned one."""
    (tmp_path / "old").mkdir()
    train(tmp_path / "model", compiled_config(tmp_path / "old"))
    ini = (tmp_path / "model" / INI).read_text(encoding="utf-8")
    assert "WordPenalty0= -1.0" in ini
    (tmp_path / "model" / TUNED).write_text(ini.replace("WordPenalty0= -1.0", "WordPenalty0= -0.5"), "utf-8")
    new = write(random_corpus(4, 10, 5), tmp_path)
    config = add_config(str(tmp_path / "model"), new.source, new.target, new.alignment)
    assert config.compiled == CompileConfig(quantize=8, quantize_lm=4)
    train(tmp_path / "new", config)
    for name, weight in ((INI, -1.0), (TUNED, -0.5)):
        loaded = system.load(str(tmp_path / "new" / COMPILED / name), use_cache=False)
        assert loaded.table.score_values.size and loaded.weights["WordPenalty0"] == [weight]
