"""smt-train --add: the tables of old text and new pairs together, from the kept alignment and the new one."""

import logging
import random
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.io import files, locks, manifest
from nmt.ngram import word_classes
from nmt.ngram.counting import count_lines
from nmt.ngram.word_classes import ClassConfig, learn_classes, read_classes
from nmt.work.executors import ExecutorConfig
from smt_bridge import train_system
from smt_bridge.cli.train import main
from smt_bridge.config import TrainConfig
from smt_bridge.extraction import kept_model
from smt_bridge.extraction.config import ExtractConfig, PruneConfig
from smt_bridge.extraction.packed_corpus import pack_text
from smt_bridge.train_system import (
    ALIGNMENT,
    CLASS_LM,
    CLASSES,
    INI,
    LM,
    MODELS,
    REORDERING,
    SETTINGS,
    TUNED,
    add_config,
    train,
)
from tests.conftest import refusal

OLD, NEW = range(40), range(40, 60)


def lines(numbers: Iterable[int], side: str) -> list[str]:
    """Sentences of words with their translation in the same order; some words occur in one pair only."""
    made = []
    for number in numbers:
        rng = random.Random(number)
        words = [*(rng.randrange(9) for _ in range(rng.randint(1, 6))), 100 + number][: number % 7 + 1]
        made.append(" ".join(f"{side}{word}" for word in words))
    made[-1:] = [""] if len(made) > 10 else made[-1:]
    return made


def write(folder: Path, name: str, numbers: Iterable[int]) -> tuple[str, str]:
    paths = str(folder / f"{name}.s"), str(folder / f"{name}.t")
    for path, side in zip(paths, "st", strict=True):
        files.write_text(path, lines(numbers, side))
    return paths


@pytest.fixture
def config(tmp_path: Path) -> TrainConfig:
    """Of the old text, with few settings that are the defaults."""
    return TrainConfig(
        *write(tmp_path, "old", OLD), symmetrization="union", order=2, distortion_limit=4, osm=3,
        extract=ExtractConfig(max_length=3, smoothing="good-turing"), prune=PruneConfig(prune_count=1),
    )  # fmt: skip


@pytest.fixture
def trained(config: TrainConfig, tmp_path: Path) -> Path:
    train(tmp_path / "trained", config)
    return tmp_path / "trained"


def contents(folder: Path) -> dict[str, bytes]:
    """The files that a training makes, except for the record of what it read."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (locks.FILE, SETTINGS)
    }


def tables(folder: Path) -> dict[str, bytes]:
    return {name: text for name, text in contents(folder).items() if not name.startswith(MODELS)}


def joined(folder: Path, *names: str) -> tuple[str, str]:
    for side in "st":
        rows = [line for name in names for line in files.read_lines(folder / f"{name}.{side}")]
        files.write_text(folder / f"joined.{side}", rows)
    return str(folder / "joined.s"), str(folder / "joined.t")


def add(folder: Path, model: Path, name: str, numbers: Iterable[int]) -> Path:
    train(folder / name, add_config(str(model), *write(folder, f"{name}.new", numbers)))
    return folder / name


def test_tables_of_the_kept_alignment_and_the_new_one(
    config: TrainConfig, trained: Path, tmp_path: Path
) -> None:
    """Byte for byte what training makes of both texts with both alignments. The old text keeps its links, and
    the kept models go along."""
    before = contents(trained)
    added = add(tmp_path, trained, "added", NEW)
    assert contents(trained) == before
    links = list(files.read_lines(added / ALIGNMENT))
    assert links[: len(OLD)] == list(files.read_lines(trained / ALIGNMENT)) and any(links[len(OLD) :])
    files.write_text(tmp_path / "links", links)
    source, target = joined(tmp_path, "old", "added.new")
    whole = replace(config, source=source, target=target, alignment=str(tmp_path / "links"))
    train(tmp_path / "whole", whole)
    assert tables(added) == tables(tmp_path / "whole") != tables(trained)
    models = {name: text for name, text in before.items() if name.startswith(MODELS)}
    assert models and models.items() <= contents(added).items()


def test_adding_twice_is_adding_both(trained: Path, tmp_path: Path) -> None:
    once = add(tmp_path, trained, "once", NEW)
    first = add(tmp_path, trained, "first", NEW[:10])
    # `write` leaves the last of many lines empty
    shutil.copytree(first, tmp_path / "kept")
    for side in "st":
        rows = list(files.read_lines(tmp_path / f"once.new.{side}"))
        files.write_text(tmp_path / f"a.{side}", rows[:7])
        files.write_text(tmp_path / f"b.{side}", rows[7:])
    for number, (model, name) in enumerate([(trained, "a"), (tmp_path / "step0", "b")]):
        pair = str(tmp_path / f"{name}.s"), str(tmp_path / f"{name}.t")
        train(tmp_path / f"step{number}", add_config(str(model), *pair))
    assert contents(tmp_path / "step1") == contents(once)


def test_adding_nothing_changes_nothing(trained: Path, tmp_path: Path) -> None:
    assert contents(add(tmp_path, trained, "added", [])) == contents(trained)


@pytest.mark.ci
def test_workers_keep_the_same_models(config: TrainConfig, trained: Path, tmp_path: Path) -> None:
    train(tmp_path / "shared", config, ExecutorConfig(workers=2))
    assert contents(tmp_path / "shared") == contents(trained)


@pytest.mark.parametrize("steps", range(1, 7))
@pytest.mark.ci
def test_a_killed_addition_resumes(
    steps: int, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same bytes, and also within a step: as its last file is about to appear."""
    whole = add(tmp_path, trained, "whole", NEW)
    config = add_config(str(trained), *write(tmp_path, "whole.new", NEW))

    class Killed(BaseException):
        pass

    left, write_text = iter(range(steps)), files.write_text

    def kill() -> None:
        if next(left) == steps - 1:
            raise Killed

    def kill_before_the_alignment(path: Path, lines: Iterable[str]) -> None:
        if Path(path).name == ALIGNMENT:
            raise Killed
        write_text(path, lines)

    with monkeypatch.context() as changed, pytest.raises(Killed):
        changed.setattr(files, "write_text", kill_before_the_alignment)
        train(tmp_path / "added", config)
    (tmp_path / "added" / f"{MODELS}.part").mkdir()
    with pytest.raises(Killed):
        train(tmp_path / "added", config, on_step=kill)
    train(tmp_path / "added", config)
    assert contents(tmp_path / "added") == contents(whole)


def test_other_inputs_are_refused(trained: Path, tmp_path: Path) -> None:
    """In the folder of an addition that has begun."""
    added = add(tmp_path, trained, "added", NEW)
    with pytest.raises(ConfigError, match="was started with another source, target; name another"):
        add(tmp_path, trained, "added", NEW[:3])
    with pytest.raises(ConfigError, match="was started with another add; name another folder"):
        add(tmp_path, add(tmp_path, trained, "third", []), "added", NEW)
    old = add_config(str(trained), *write(tmp_path, "added.new", NEW))
    with pytest.raises(ConfigError, match="was started with another add; name another folder"):
        train(added, replace(old, add=""))


def test_links_of_another_tool(config: TrainConfig, tmp_path: Path) -> None:
    """A model without an alignment model needs those of the new pairs, too."""
    for name, numbers in (("old", OLD), ("new", NEW)):
        pair = write(tmp_path, name, numbers)
        files.write_text(tmp_path / f"{name}.links", ("0-0" * all(row) for row in files.parallel(*pair)))
    given = replace(config, alignment=str(tmp_path / "old.links"))
    train(tmp_path / "trained", given)
    new, model = (str(tmp_path / "new.s"), str(tmp_path / "new.t")), str(tmp_path / "trained")
    with pytest.raises(ConfigError, match=r"\(its alignment was given\); give their alignment with --align"):
        train(tmp_path / "added", add_config(model, *new))
    assert not (tmp_path / "added").exists()
    train(tmp_path / "added", add_config(model, *new, str(tmp_path / "new.links")))
    both = [*files.read_lines(tmp_path / "old.links"), *files.read_lines(tmp_path / "new.links")]
    assert list(files.read_lines(tmp_path / "added" / ALIGNMENT)) == both


def test_given_links_leave_the_models(trained: Path, tmp_path: Path) -> None:
    """So that the next pairs need none."""
    pair = write(tmp_path, "new", NEW)
    files.write_text(tmp_path / "links", [""] * len(NEW))
    train(tmp_path / "added", add_config(str(trained), *pair, str(tmp_path / "links")))
    again = add(tmp_path, tmp_path / "added", "again", NEW)
    assert list(files.read_lines(again / ALIGNMENT))[len(OLD) : -len(NEW)] == [""] * len(NEW)
    assert any(list(files.read_lines(again / ALIGNMENT))[-len(NEW) :])


def test_a_language_model_of_another_text_stays(config: TrainConfig, tmp_path: Path) -> None:
    files.write_text(tmp_path / "lm", ["t1 t2", "t2 t1 t3"])
    train(tmp_path / "trained", replace(config, lm_text=str(tmp_path / "lm")))
    once = add(tmp_path, tmp_path / "trained", "once", NEW)
    twice = add(tmp_path, once, "twice", NEW)
    assert len({(path / LM).read_bytes() for path in (tmp_path / "trained", once, twice)}) == 1


def test_word_classes(config: TrainConfig, tmp_path: Path) -> None:
    """Of all target text again, like the language model; with a text of their own, they stay."""
    config = replace(config, class_lm=3, class_order=2)
    train(tmp_path / "trained", config)
    shutil.copy(tmp_path / "trained" / INI, tmp_path / "trained" / TUNED)
    added = add(tmp_path, tmp_path / "trained", "added", NEW)
    text = files.read_lines(added / train_system.TARGET)
    classes = learn_classes(count_lines(text, word_classes.PAIRS), ClassConfig(classes=3))
    assert read_classes(added / CLASSES) == classes != read_classes(tmp_path / "trained" / CLASSES)
    assert (added / CLASS_LM).read_bytes() != (tmp_path / "trained" / CLASS_LM).read_bytes()
    line = next(line for line in (added / TUNED).read_text().split("\n") if line.startswith("ClassLM "))
    assert line == f"ClassLM name=ClassLM0 path={CLASS_LM} classes={CLASSES} order=2"
    files.write_text(tmp_path / "lm", ["t1 t2", "t2 t1 t3 t4"])
    train(tmp_path / "other", replace(config, lm_text=str(tmp_path / "lm")))
    again = add(tmp_path, tmp_path / "other", "again", NEW)
    for name in (CLASSES, CLASS_LM):
        assert (again / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_tuned_weights_go_along(trained: Path, tmp_path: Path) -> None:
    """Beside the new tables; other models stay where they are."""
    shutil.copy(trained / LM, tmp_path / "other.gz")
    text = (trained / INI).read_text().replace("LM0= 0.5", "LM0= 0.25\nLM1= 0.1")
    (trained / TUNED).write_text(
        text.replace("\n\n[weight]", "\nKENLM name=LM1 factor=0 path=../other.gz order=2\n\n[weight]")
    )
    added = add(tmp_path, trained, "below/added", NEW)
    tuned = (added / TUNED).read_text()
    assert "LM0= 0.25" in tuned and f"path={tmp_path}/other.gz" in tuned
    for name in (train_system.TABLE, REORDERING, LM):
        assert f"path={name} " in f"{tuned} ".replace("\n", " ")


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_a_damaged_model_is_refused(trained: Path, tmp_path: Path) -> None:
    """An alignment model, by its checksum or because sizes differ; a folder without texts or settings."""
    folder = trained / MODELS / "target-to-source"
    write(tmp_path, "added.new", NEW)
    damage(folder / "logs.npy")
    with pytest.raises(DataError, match=r"target-to-source/logs\.npy: damaged: size or checksum"):
        add(tmp_path, trained, "added", NEW)
    assert not (tmp_path / "added").exists()
    manifest.write(folder, [path.name for path in folder.iterdir() if path.name != manifest.FILE])
    shutil.copy(folder / "tension.npy", folder / "totals.npy")
    manifest.write(folder, [path.name for path in folder.iterdir() if path.name != manifest.FILE])
    with pytest.raises(DataError, match="target-to-source: damaged: sizes or indices do not agree"):
        add(tmp_path, trained, "added", NEW)
    (trained / "source.gz").unlink()
    with pytest.raises(DataError, match=r"source\.gz: missing; was it trained by another version"):
        add(tmp_path, trained, "new", NEW)
    (trained / SETTINGS).write_text('{"order": 2}')
    shutil.copy(trained / "target.gz", trained / "source.gz")
    with pytest.raises(DataError, match=r"train\.json: damaged; remove"):
        add(tmp_path, trained, "new", NEW)


def test_another_tokenization_is_noticed(
    trained: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pair = str(tmp_path / "upper"), str(tmp_path / "new.t")
    write(tmp_path, "new", NEW)
    files.write_text(pair[0], (line.upper() for line in files.read_lines(tmp_path / "new.s")))
    with caplog.at_level(logging.WARNING):
        train(tmp_path / "added", add_config(str(trained), *pair))
    assert "the model knows 0% of the words on the source side; is the text tokenized" in caplog.text


@pytest.mark.parametrize(("unknown", "warned"), [(1, False), (2, True)])
def test_a_few_unknown_words_are_usual(
    unknown: int, warned: bool, trained: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Up to a tenth of ten words."""
    source, target = ["s1"] * (10 - unknown) + ["new"] * unknown, ["t1"] * 10
    with caplog.at_level(logging.WARNING):
        kept_model.align_both_directions(trained / MODELS, *map(pack_text, ([source], [target])))
    assert bool(caplog.text) == warned == ("knows 80% of the words on the source side" in caplog.text)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--order", "5"), "--order: --add keeps the settings of"),
        (("--no-reordering",), "--no-reordering: --add keeps the settings of"),
        (("--lm-text", "old.t"), "--lm-text: --add keeps the settings of"),
        (("-t", "short"), "short: 1 line, but"),
        (("-s", "bar"), "bar:2: '|' in 'a|b': Moses' tables cannot hold it"),
        (("--add", "."), "was not made by smt-train; --add needs the folder of a trained model"),
        (("--add", "short"), "short: was not made by smt-train; --add needs the folder of a trained model"),
        (("--add", "none"), "none: cannot read"),
        (("--add", "begun"), "begun: its training is not finished; run smt-train again, then add pairs"),
        (("--add", "added"), "added: is also read"),
        (("-a", "links"), "links:1: point 9-0 is outside the sentence pair"),
    ],
)  # fmt: skip
def test_refused_before_a_folder_is_made(
    given: tuple[str, ...], message: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "begun").mkdir()
    shutil.copy(trained / SETTINGS, tmp_path / "begun")
    write(tmp_path, "new", range(40, 42))
    for name, text in (("short", "a\n"), ("bar", "a\na|b\n"), ("links", "9-0\n0-0\n")):
        (tmp_path / name).write_text(text)
    words = ["-s", "new.s", "-t", "new.t", "--add", str(trained), *given]
    assert message in refusal(main, capsys, "added", *words)
    assert not (tmp_path / "added").exists()


def test_the_command_adds(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its estimate is that of all pairs."""
    made = add(tmp_path, trained, "made", NEW)
    new = ["-s", f"{tmp_path}/made.new.s", "-t", f"{tmp_path}/made.new.t"]
    assert main([f"{tmp_path}/own", "--add", str(trained), *new]) == 0
    assert "60 sentence pairs, 386 words: about" in capsys.readouterr().err
    assert contents(tmp_path / "own") == contents(made)
