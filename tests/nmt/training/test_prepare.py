"""What training makes of a configuration's files."""

import logging
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmt.data.corpus import CorpusConfig, DataConfig
from nmt.errors import ConfigError, DataError
from nmt.io import locks
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.subwords import bpe
from nmt.text.vocab import Vocab
from nmt.training import build
from nmt.training.config import RunConfig
from nmt.training.prepare import (
    LearningSide,
    ParallelData,
    epoch_counts,
    make_corpus,
    make_cut,
    make_dev,
    make_sides,
    training_text,
    unit_counts,
)
from tests.spaceless import japanese


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


def test_dropped_pairs_are_reported_in_the_unit_of_the_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A pair of one word is dropped for its three subwords: data.max_length counts units."""
    caplog.set_level(logging.INFO)
    config = corpus(tmp_path, "abcd\nab\nab\n", max_length=2, bpe_merges=1)
    make_corpus(prepared(config, tmp_path / "cache"))
    assert "2 kept, 1 longer than 2 units dropped" in caplog.text
    assert {record.levelname for record in caplog.records} == {"INFO"}
    caplog.clear()
    config = corpus(tmp_path, "abcd\nabcd\nab\n", max_length=2, bpe_merges=1)
    make_corpus(prepared(config, tmp_path / "other cache"))
    [warning] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "1 kept, 2 longer than 2 units" in warning and "data.max_length" in warning


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
    build.check_new_run(RunConfig(run=str(tmp_path / "run"), data=config), "")
    (source, target), _ = make_sides(config)
    assert source.subwords is target.subwords and target.subwords and target.subwords.kind == "bpe"
    with pytest.raises(ConfigError, match=r"data\.target: subword: bpe needs data\.bpe_merges"):
        build.check_new_run(RunConfig(run=str(tmp_path / "run"), data=replace(config, bpe_merges=0)), "")
