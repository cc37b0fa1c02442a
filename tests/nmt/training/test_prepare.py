"""What training makes of a configuration's files; a run goes on with the files that it was started with, or
not at all."""

import logging
import os
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmt.cli import train
from nmt.data.corpus import CorpusConfig, DataConfig
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.io import locks, manifest
from nmt.runs import directory as run_directory
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.subwords import bpe
from nmt.text.vocab import Vocab
from nmt.training import prepare
from nmt.training.config import RunConfig
from nmt.training.prepare import (
    ParallelData,
    epoch_counts,
    make_corpus,
    make_cut,
    make_dev,
    make_sides,
    training_text,
)
from nmt.training.subwords import LearningSide, unit_counts
from tests.spaceless import japanese

# ---- files that a training reads ---------------------------------------------------------------------------


@pytest.fixture
def stamped(tmp_path: Path) -> DataConfig:
    for name in ("s", "t", "d", "e"):
        (tmp_path / name).write_text(f"{name}\n")
    config = DataConfig(
        train_source=str(tmp_path / "s"),
        train_target=str(tmp_path / "t"),
        dev_source=str(tmp_path / "d"),
        dev_target=str(tmp_path / "e"),
    )
    with run_directory.writing(tmp_path / "run") as new:
        prepare.save_stamps(prepare.take_stamps(config), new)
    return config


@pytest.mark.parametrize("name", ["s", "t", "d", "e"])
def test_another_text_is_refused(name: str, stamped: DataConfig, tmp_path: Path) -> None:
    prepare.check_inputs(stamped, tmp_path / "run")
    os.utime(tmp_path / name, ns=(5, 5))
    prepare.check_inputs(stamped, tmp_path / "run")  # copied or touched: the text is the same
    (tmp_path / name).write_text("X\n")
    with pytest.raises(
        DataError,
        match=rf"/{name}: has changed since .*run was started with it \(data\.(train|dev)_(source|target)\)",
    ):
        prepare.check_inputs(stamped, tmp_path / "run")
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=f"/{name}: cannot read"):
        prepare.check_inputs(stamped, tmp_path / "run")


def test_the_corpora_of_a_list_are_noted_too(tmp_path: Path) -> None:
    for name in ("s", "t", "u", "v"):
        (tmp_path / name).write_text(f"{name}\n")
    first, second = (
        CorpusConfig(source=str(tmp_path / pair[0]), target=str(tmp_path / pair[1])) for pair in ("st", "uv")
    )
    config = DataConfig(corpora=[first, second])
    with run_directory.writing(tmp_path / "run") as new:
        prepare.save_stamps(prepare.take_stamps(config), new)
    prepare.check_inputs(config, tmp_path / "run")
    (tmp_path / "v").write_text("X\n")
    with pytest.raises(DataError, match=r"/v: has changed since .* \(data\.corpora\[1\]\.target\)"):
        prepare.check_inputs(config, tmp_path / "run")


def test_damaged_stamps_are_refused(stamped: DataConfig, tmp_path: Path) -> None:
    for text in ("", "[]", "5", '{"train_source": 5}', "[" * 9000):
        (tmp_path / "run" / "inputs.json").write_text(text)
        manifest.write(tmp_path / "run", ["inputs.json"])
        if text != "[]":
            with pytest.raises(CheckpointError, match=r"inputs\.json: damaged"):
                prepare.check_inputs(stamped, tmp_path / "run")


def test_of_pipes_nothing_is_noted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert prepare.take_stamps(DataConfig(train_text=str(tmp_path / "pipe"), dev_text="-")) == {}


# ---- new run -----------------------------------------------------------------------------------------------
# Nothing that nmt-train reads is in the folder that it makes.


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    for name in ("text", "run/text", "run/config.yaml", "config.yaml"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "run" / "text")
    return tmp_path


@pytest.mark.parametrize(
    "key",
    [
        "train_source",
        "train_target",
        "dev_source",
        "dev_target",
        "phrase_table",
        "train_text",
        "dev_text",
        "alignment",
        "dev_alignment",
    ],
)
@pytest.mark.parametrize("name", ["run/text", "link", "run"])
def test_no_text_lies_in_the_folder_that_is_made(run_folder: Path, key: str, name: str) -> None:
    data = DataConfig()
    setattr(data, key, str(run_folder / name))
    config = RunConfig(run=str(run_folder / "run"), data=data)
    with pytest.raises(ConfigError, match=f"data.{key} .*lies in the run directory"):
        prepare.check_new_run(config, str(run_folder / "config.yaml"))


def test_nor_do_the_corpora_of_a_list(run_folder: Path) -> None:
    good = CorpusConfig(source=str(run_folder / "text"), target=str(run_folder / "text"))
    inside = CorpusConfig(source=str(run_folder / "text"), target=str(run_folder / "run" / "text"))
    config = RunConfig(run=str(run_folder / "run"), data=DataConfig(corpora=[good, inside]))
    with pytest.raises(ConfigError, match=r"data\.corpora\[1\]\.target .*lies in the run directory"):
        prepare.check_new_run(config, str(run_folder / "config.yaml"))


def test_nor_do_vocabularies_codes_weights_and_the_configuration(run_folder: Path) -> None:
    inside, run = str(run_folder / "run" / "text"), str(run_folder / "run")
    for data in (
        DataConfig(source=SideConfig(vocab_file=inside)),
        DataConfig(target=SideConfig(codes=f"{run}/none")),
    ):
        with pytest.raises(ConfigError, match="lies in the run directory"):
            prepare.check_new_run(RunConfig(run=run, data=data), str(run_folder / "config.yaml"))
    (run_folder / "run" / "version").write_text("nmt-run 2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="init_from"):
        prepare.check_new_run(RunConfig(run=run, init_from=run), str(run_folder / "config.yaml"))
    with pytest.raises(CheckpointError, match="no such run directory"):
        prepare.check_new_run(
            RunConfig(run=run, init_from=str(run_folder / "none")), str(run_folder / "config.yaml")
        )
    with pytest.raises(ConfigError, match=r"CONFIG\.yaml"):
        prepare.check_new_run(RunConfig(run=run), str(run_folder / "run" / "config.yaml"))
    prepare.check_new_run(
        RunConfig(run=run, data=DataConfig(source=SideConfig("en"), train_source=str(run_folder / "text"))),
        str(run_folder / "config.yaml"),
    )


@pytest.mark.parametrize("option", [[], ["--overwrite"]])
def test_the_command_leaves_what_it_refuses_to_read(
    run_folder: Path, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The user's configuration in the folder of the run would be replaced by the resolved one."""
    given = run_folder / "run" / "config.yaml"
    given.write_text(
        f"run: {run_folder}/run\n"
        f"data: {{train_source: {run_folder}/text, train_target: {run_folder}/text}}\n",
        encoding="utf-8",
    )
    before = given.read_bytes()
    assert train.main([str(given), *option]) == 2
    assert (
        "lies in the run directory" in capsys.readouterr().err
        and given.read_bytes() == before
        and (run_folder / "run" / "text").exists()
    )


# ---- text and ids ------------------------------------------------------------------------------------------


def test_every_unit_that_dropout_can_give_is_in_the_vocabulary() -> None:
    """With dropout the single characters and all merges too; without it only what the plain cut gives."""
    side = LearningSide.of("source", DataConfig(source=SideConfig("en")))
    side.text.words = Counter({"lower": 9, "lowest": 7})
    side.pipeline.subwords = bpe.BPE(bpe.learn(side.text.words, 20))
    plain, dropped = unit_counts(side, DataConfig()), unit_counts(side, DataConfig(bpe_dropout=0.1))
    assert set(plain) == set(side.pipeline.cut(["lower", "lowest"])) and {"l@@", "o@@", "t"} <= set(dropped)
    assert all(dropped[unit] == count for unit, count in plain.items())


def corpus(folder: Path, text: str, **options: object) -> DataConfig:
    (folder / "text").write_bytes(text.encode())
    side = SideConfig(tokenize=False, normalize=False, case="keep")
    text = str(folder / "text")
    config = DataConfig(train_source=text, train_target=text, source=side, target=replace(side))
    return replace(config, **options)  # type: ignore[arg-type]


def test_a_carriage_return_inside_words_is_data(tmp_path: Path) -> None:
    """From the text to the ids of a training with BPE and dropout, and back."""
    config = corpus(tmp_path, "a\rb \r c\r d\ne\x85f\u2028 g\r\n" * 3, bpe_merges=9, bpe_dropout=0.3)
    data = prepared(config, tmp_path / "cache")
    (source, _), vocabs = data.pipelines, data.vocabs
    # One at the end of a line belongs to the line.
    units = list(vocabs[0].counts)
    assert {"\r", "d", "g"} <= set(units) and "g\r" not in source.join(units)
    cut, made = make_cut(data), make_corpus(data)
    assert cut
    for ids in (made.pair(0), cut(*made.pair(0), "key")):
        for side in ids:
            assert source.join(vocabs[0].decode(side)) == ["a\rb", "\r", "c\r", "d"]


def prepared(config: DataConfig, cache: Path = Path()) -> ParallelData:
    return ParallelData(config, *make_sides(config), training_text(config), cache)


@pytest.mark.parametrize(
    "kind",
    [{"bpe_merges": 9, "bpe_dropout": 0.5}, {"pieces": 30, "unigram_sampling": 0.2}],
    ids=["bpe", "unigram"],
)
def test_tags_stay_whole_in_training(kind: dict[str, object], tmp_path: Path) -> None:
    """From a list of corpora to the ids of an epoch: whatever is cut anew, the tag is not."""
    plain = corpus(tmp_path, "the cats see\na dog sees the cats\n" * 9 + "\n", **kind)
    for side in (plain.source, plain.target):
        side.subword = "unigram" if "pieces" in kind else "bpe"
    one = CorpusConfig(source=plain.train_source, target=plain.train_target)
    config = replace(plain, train_source="", train_target="", corpora=[one, replace(one, tag="<bt>")])
    data = prepared(config, tmp_path / "cache")
    source, vocabs = data.pipelines[0], (data.vocabs[0].with_tags(config.tags), data.vocabs[1])
    source.tags = config.tags
    data = replace(data, vocabs=vocabs)
    made = make_corpus(data)
    cut, tag = make_cut(data), vocabs[0].ids["<bt>"]
    assert cut and made.parts == (18, 18) and epoch_counts(config, made) == [18, 18]
    for row in range(18):
        ids, tagged = made.pair(row)[0].tolist(), made.pair(18 + row)[0].tolist()
        assert tagged == [tag, *ids] and tag not in ids
    draws = [cut(*made.pair(18), str(n)) for n in range(20)]
    assert {ids[0] for ids, _ in draws} == {tag} and len({tuple(ids) for ids, _ in draws}) > 1
    for ids, _ in draws:
        assert source.join(vocabs[0].decode(ids)) == ["<bt>", "the", "cats", "see"] and tag not in ids[1:]


def test_development_text_without_the_tags_that_all_corpora_have(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain = corpus(tmp_path, "a b\n")
    one = CorpusConfig(source=plain.train_source, target=plain.train_target, tag="<bt>")
    pipeline, vocab = TextPipeline.of(plain.source), Vocab(Counter("aabb"), 9)
    pipeline.tags = ("<bt>",)
    for corpora, text, warned in (
        ([one], "a b\n", True),
        ([one], "<bt> a b\n", False),
        ([one, replace(one, tag="")], "a b\n", False),
        ([], "a b\n", False),
    ):
        (tmp_path / "dev").write_text(text)
        config = replace(
            plain, corpora=corpora, dev_source=str(tmp_path / "dev"), dev_target=str(tmp_path / "dev")
        )
        caplog.clear()
        vocabs = vocab.with_tags(("<bt>",)), vocab
        data = ParallelData(config, (pipeline, pipeline), vocabs, training_text(config), tmp_path)
        dev = make_dev(data, "none")
        assert dev and ("no line begins with a tag" in caplog.text) == warned


def test_a_corpus_of_which_nothing_is_left_is_named(tmp_path: Path) -> None:
    plain = corpus(tmp_path, "a b c\n", max_length=2)
    (tmp_path / "short").write_text("a\n")
    good = CorpusConfig(source=str(tmp_path / "short"), target=str(tmp_path / "short"))
    long = CorpusConfig(source=plain.train_source, target=plain.train_target)
    config = replace(plain, train_source="", train_target="", corpora=[good, long])
    data = prepared(config, tmp_path / "cache")
    with pytest.raises(DataError, match=r"/text: no pair is left to train on; is data\.max_length too small"):
        make_corpus(data)


def test_trainings_that_share_a_cache_wait_for_each_other(tmp_path: Path) -> None:
    config = corpus(tmp_path, "a b\nc\n")
    data, sizes = prepared(config, tmp_path / "cache"), list[int]()
    work = threading.Thread(target=lambda: sizes.append(len(make_corpus(data))))
    with locks.locked(tmp_path / "cache", "nmt-other"):
        work.start()
        work.join(0.3)
        assert work.is_alive() and not sizes
    work.join()
    assert sizes == [2]


def test_poor_coverage_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With the remedy; a vocabulary that covers its text says so quietly. The same for development text."""
    (tmp_path / "dev").write_text("a b zz zz\n")
    config = corpus(
        tmp_path, "a b\nc d\ne f\n" * 3, dev_source=str(tmp_path / "dev"), dev_target=str(tmp_path / "dev")
    )
    caplog.set_level(logging.INFO)
    data = prepared(config)
    assert {record.levelname for record in caplog.records} == {"INFO"} and "6 of 6, 100.00%" in caplog.text
    caplog.clear()
    make_dev(data, "none")
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 2 and warnings[1] == (
        "development target: 50.00% are unknown: cut words into units, with data.bpe_merges=8000 or subword: "
        "unigram"
    )
    caplog.clear()
    config.target.vocabulary = 2
    make_sides(config)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1 and warnings[0].startswith(
        "target vocabulary: 2 of 6, 33.33% of the running text; all other words are UNK: cut words into units"
    )


# ---- subwords ----------------------------------------------------------------------------------------------
# Subwords that a training learns: of which side, from what, and how they vary.


def data(folder: Path, source: SideConfig, target: SideConfig, **options: object) -> DataConfig:
    """300 pairs, English and Japanese."""
    pairs = japanese(300)
    for side, name in enumerate(("en", "ja")):
        (folder / name).write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    config = DataConfig(
        train_source=str(folder / "en"), train_target=str(folder / "ja"), source=source, target=target
    )
    return replace(config, **options)  # type: ignore[arg-type]


def test_a_target_without_blanks_is_learned_from_raw_text(tmp_path: Path) -> None:
    """Japanese by the unigram model, English by words or BPE; all units of the model get an id, and the
    training text is known."""
    config = data(tmp_path, SideConfig("en"), SideConfig("ja", vocabulary=10), bpe_merges=20)
    (source, target), vocabs = make_sides(config)
    assert source.subwords and source.subwords.kind == "bpe"
    assert target.subwords and target.subwords.kind == "unigram"
    assert set(target.subwords.inventory((), False)) == set(vocabs[1].ids) and vocabs[1].coverage() == 1
    for english, line in japanese(300):
        assert target.text(vocabs[1].decode(vocabs[1].encode(target.units(line)))) == line
        assert source.join(source.units(english)) == source.words(english)


@pytest.mark.parametrize("kind", ["unigram", "sentencepiece-bpe"])
def test_one_model_for_both_sides_where_they_share_a_script(tmp_path: Path, kind: str) -> None:
    sides = SideConfig("en", subword=kind), SideConfig("ja", subword=kind)
    (source, target), _ = make_sides(data(tmp_path, *sides))
    assert source.subwords is not target.subwords
    config = data(tmp_path, *sides, shared_vocabulary=True)
    (source, target), vocabs = make_sides(config)
    assert source.subwords is target.subwords
    assert vocabs[0] is vocabs[1] and source.subwords
    assert set(vocabs[0].ids) == set(source.subwords.inventory((), False))
    config = data(tmp_path, *sides, train_target=str(tmp_path / "en"))
    (source, target), _ = make_sides(config)
    assert source.subwords is target.subwords
    (source, target), _ = make_sides(replace(config, bpe_joint=False))
    assert source.subwords is not target.subwords


@pytest.mark.parametrize(
    ("kind", "key", "rate"),
    [("unigram", "unigram_sampling", 0.05), ("sentencepiece-bpe", "bpe_dropout", 0.3)],
)
def test_cuts_vary_where_they_are_sampled(tmp_path: Path, kind: str, key: str, rate: float) -> None:
    """The other side, of whole words, stays as it is."""
    config = data(tmp_path, SideConfig("en"), SideConfig("ja", subword=kind), pieces=200, **{key: rate})
    prepared_data = prepared(config)
    (source, target), vocabs, cut = prepared_data.pipelines, prepared_data.vocabs, make_cut(prepared_data)
    english, line = japanese(9)[8]
    ids = [
        np.array(v.encode(p.units(t)))
        for p, v, t in zip((source, target), vocabs, (english, line), strict=True)
    ]
    assert cut
    found = [cut(ids[0], ids[1], str(key)) for key in range(20)]
    assert all(np.array_equal(one, ids[0]) for one, _ in found)
    assert len({tuple(other) for _, other in found}) > 5
    assert all(target.text(vocabs[1].decode(map(int, other))) == line for _, other in found)


def test_settings_that_no_side_can_use_are_told(tmp_path: Path) -> None:
    whole = SideConfig("en")
    with pytest.raises(
        ConfigError, match=r"data\.bpe_merges: no side has BPE: source unigram, target unigram"
    ):
        make_sides(data(tmp_path, SideConfig("ja"), SideConfig("zh"), bpe_merges=5))
    with pytest.raises(ConfigError, match=r"data\.target: case: truecase needs words"):
        make_sides(data(tmp_path, whole, SideConfig("de", subword="unigram", case="truecase")))
    with pytest.raises(ConfigError, match=r"^data\.pieces: 9 is too small: the text has \d+ frequent"):
        make_sides(data(tmp_path, whole, SideConfig("ja"), pieces=9))
    for key in ("bpe_dropout", "unigram_sampling"):
        with pytest.raises(
            ConfigError, match=rf"data\.{key}: there is nothing to (drop|sample) without subwords"
        ):
            make_sides(data(tmp_path, whole, SideConfig("ja", subword="none"), **{key: 0.1}))
    with pytest.raises(ConfigError, match=r"data\.unigram_sampling: there is nothing to sample"):
        make_sides(data(tmp_path, whole, SideConfig("en"), unigram_sampling=0.1, bpe_merges=9))


def test_bpe_is_named_or_follows_from_its_merges(tmp_path: Path) -> None:
    """Of Japanese too; a new run is checked before its text is read."""
    config = data(tmp_path, SideConfig("en"), SideConfig("ja", subword="bpe"), bpe_merges=30)
    prepare.check_new_run(RunConfig(run=str(tmp_path / "run"), data=config), "")
    (source, target), _ = make_sides(config)
    assert source.subwords is target.subwords and target.subwords and target.subwords.kind == "bpe"
    with pytest.raises(ConfigError, match=r"data\.target: subword: bpe needs data\.bpe_merges"):
        prepare.check_new_run(RunConfig(run=str(tmp_path / "run"), data=replace(config, bpe_merges=0)), "")
