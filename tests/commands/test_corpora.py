"""Several corpora, and tags, from training to translation."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from nmt.data.binarized import open_corpus
from nmt.runs.run import Run
from nmt.text.vocab import Vocab
from tests.commands.runs import LINES, copy, equal_runs, kill_and_resume, start
from tests.conftest import Command, Refused


def entry(folder: Path, name: str, **keys: object) -> dict[str, object]:
    return {"source": f"{folder}/{name}.en", "target": f"{folder}/{name}.fr", **keys}


def listed(*corpora: dict[str, object]) -> list[str]:
    """Overrides that replace the one corpus of a configuration."""
    return ["data.train_source=", "data.train_target=", f"data.corpora={json.dumps(corpora)}"]


@pytest.fixture(scope="session")
def halves(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The training text in two parts of 120 and 80 pairs."""
    folder = tmp_path_factory.mktemp("halves")
    for side in ("en", "fr"):
        lines = (tiny / f"train.{side}").read_text(encoding="utf-8").splitlines(keepends=True)
        (folder / f"one.{side}").write_text("".join(lines[:120]), encoding="utf-8")
        (folder / f"two.{side}").write_text("".join(lines[120:]), encoding="utf-8")
    return folder


@pytest.mark.ci
@pytest.mark.parametrize("parts", [["train"], ["one", "two"]])
def test_what_is_listed_trains_as_one_file(
    tiny: Path, halves: Path, tmp_path: Path, parts: list[str]
) -> None:
    """Bit by bit, the binarized text included."""
    start(
        tiny, tmp_path / "run", *listed(*(entry(tiny if part == "train" else halves, part) for part in parts))
    )
    equal_runs(tiny / "run", tmp_path / "run")
    for name in ("source.ids", "target.offsets"):
        assert (tiny / "run/data" / name).read_bytes() == (tmp_path / "run/data" / name).read_bytes()


MIXED = ["data.temperature=3", "data.bpe_merges=60", "data.bpe_dropout=0.2"]


@pytest.mark.ci
def test_killed_within_an_epoch_and_resumed_is_bit_equal(
    tiny: Path, halves: Path, tmp_path: Path, command: Command
) -> None:
    """With oversampling, tags, filters and BPE dropout; a changed weight, and changed text, are refused."""
    filters = {"drop_duplicates": True, "max_length": 12}
    corpora = [entry(halves, "one", filters=filters), entry(halves, "two", weight=0.4, tag="<bt>")]
    told = kill_and_resume(tiny, tmp_path, command, *MIXED, *listed(*corpora))
    assert "corpus two.en <bt>: " in told
    corpora[1]["weight"] = 0.5
    done = command("nmt-train", "-q", *copy(tiny, tmp_path / "killed", *MIXED, *listed(*corpora)))
    assert done.returncode == 2 and "data.corpora[1].weight=0.5 (was 0.4)" in done.stderr


@pytest.fixture(scope="session")
def tagged(tiny: Path, halves: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two tags, BPE and attention."""
    run = tmp_path_factory.mktemp("tagged") / "run"
    corpora = [entry(halves, "one", tag="<a>"), entry(halves, "two", tag="<bt>", weight=2)]
    options = (
        "data.bpe_merges=60 data.max_length=200 data.source.min_count=3 model.encoder=birnn "
        "model.attention=20"
    ).split()
    start(tiny, run, *options, *listed(*corpora))
    return run


@pytest.mark.ci
def test_a_run_keeps_its_tags(tagged: Path) -> None:
    run = Run.load(tagged)
    (member,) = run.members
    assert member.source.tags == ("<a>", "<bt>") and member.source_words.words[3:5] == ["<a>", "<bt>"]
    assert "<bt>" not in member.target_words.ids and "<bt>" not in Vocab.load(tagged / "source.vocab").ids
    corpus = open_corpus(tagged / "data", len(member.source_words), len(member.target_words))
    firsts = np.asarray(corpus.source)[np.asarray(corpus.source_offsets[:-1])]
    assert corpus.parts == (120, 80) and firsts.tolist() == [3] * 120 + [4] * 80
    with_tag, plain = run.score([("<bt> A nurse sings.", "Une"), ("A nurse sings.", "Une")])
    assert with_tag != plain


@pytest.mark.ci
def test_a_tag_by_option_is_one_at_the_beginning_of_each_line(
    tagged: Path, tmp_path: Path, command: Command
) -> None:
    plain, with_tag = (
        "\n".join(["", *(start + line for line in LINES), " "]) + "\n" for start in ("", "<bt> ")
    )
    by_option, by_line = (
        command("nmt-translate", tagged, "-q", "--alignments", tmp_path / name, *more, input=text)
        for name, more, text in (("option", ["--tag", "<bt>"], plain), ("line", [], with_tag))
    )
    assert by_option.returncode == by_line.returncode == 0, by_option.stderr + by_line.stderr
    assert by_option.stdout == by_line.stdout and by_option.stdout.split("\n")[0] == ""
    points = [
        [[int(number) for number in point.split("-")] for point in line.split()]
        for line in (tmp_path / "line").read_text().split("\n")
    ]
    shifted = [" ".join(f"{s - 1}-{t}" for s, t in line if s) for line in points]
    assert (tmp_path / "option").read_text().split("\n") == shifted
    assert Run.load(tagged).translate(with_tag.split("\n")[:-1]) == by_line.stdout.split("\n")[:-1]


@pytest.mark.ci
def test_mistakes_with_tags_are_one_line(
    tiny: Path, halves: Path, tagged: Path, tmp_path: Path, command: Command, refused: Refused
) -> None:
    line = refused(command("nmt-translate", tagged, "-q", "--tag", "<x>", input="a\n"))
    assert "--tag <x>: run@60 was not trained with it; its tags: <a>, <bt>" in line
    (tmp_path / "text").write_text("a\n<a> b\n")
    given = ("-q", "--tag", "<bt>", "-i", tmp_path / "text", "-o", tmp_path / "out")
    assert "text:2: begins with <a>" in refused(command("nmt-translate", tagged, *given))
    assert not (tmp_path / "out").exists()
    for side in ("en", "fr"):
        shutil.copy(halves / f"two.{side}", tmp_path / f"two.{side}")
    path = tmp_path / "two.fr"
    path.write_text(path.read_text(encoding="utf-8").replace("\n", " <bt>\n", 3), encoding="utf-8")
    corpora = [entry(halves, "one"), entry(tmp_path, "two", tag="<bt>")]
    line = refused(command("nmt-train", "-q", *copy(tiny, tmp_path, *listed(*corpora))))
    assert f"{path}:1: the text has <bt>, which is a tag in data.corpora" in line
    assert not (tmp_path / "run").exists()
