"""What training makes of a configuration's files."""

import logging
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.data.corpus import CorpusConfig, DataConfig
from nmt.errors import DataError
from nmt.io import locks
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.subwords import bpe
from nmt.text.vocab import Vocab
from nmt.training.prepare import epoch_counts, make_corpus, make_cut, make_dev, make_pipelines, make_vocabs
from nmt.training.subwords import LearningSide, unit_counts


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
    source, target, *counts = make_pipelines(config)
    # One at the end of a line belongs to the line.
    assert {"\r", "d", "g"} <= set(counts[0]) and "g\r" not in source.join(list(counts[0]))
    vocabs = make_vocabs(config, (source, target), (counts[0], counts[1]))
    cut = make_cut(config, (source, target), vocabs)
    made = make_corpus(config, tmp_path / "cache", (source, target), vocabs)
    assert cut
    for ids in (made.pair(0), cut(*made.pair(0), "key")):
        for side in ids:
            assert source.join(vocabs[0].decode(side)) == ["a\rb", "\r", "c\r", "d"]


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
    source, target, *counts = make_pipelines(config)
    words = make_vocabs(config, (source, target), (counts[0], counts[1]))
    vocabs = words[0].with_tags(config.tags), words[1]
    source.tags = config.tags
    made = make_corpus(config, tmp_path / "cache", (source, target), vocabs)
    cut, tag = make_cut(config, (source, target), vocabs), vocabs[0].ids["<bt>"]
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
        dev = make_dev(config, (pipeline, pipeline), (vocab.with_tags(("<bt>",)), vocab), "none")
        assert dev and ("no line begins with a tag" in caplog.text) == warned


def test_a_corpus_of_which_nothing_is_left_is_named(tmp_path: Path) -> None:
    plain = corpus(tmp_path, "a b c\n", max_length=2)
    (tmp_path / "short").write_text("a\n")
    good = CorpusConfig(source=str(tmp_path / "short"), target=str(tmp_path / "short"))
    long = CorpusConfig(source=plain.train_source, target=plain.train_target)
    config = replace(plain, train_source="", train_target="", corpora=[good, long])
    source, target, *counts = make_pipelines(config)
    vocabs = make_vocabs(config, (source, target), (counts[0], counts[1]))
    with pytest.raises(DataError, match=r"/text: no pair is left to train on; is data\.max_length too small"):
        make_corpus(config, tmp_path / "cache", (source, target), vocabs)


def test_trainings_that_share_a_cache_wait_for_each_other(tmp_path: Path) -> None:
    config = corpus(tmp_path, "a b\nc\n")
    source, target, *counts = make_pipelines(config)
    vocabs = make_vocabs(config, (source, target), (counts[0], counts[1]))
    sizes: list[int] = []
    work = threading.Thread(
        target=lambda: sizes.append(len(make_corpus(config, tmp_path / "cache", (source, target), vocabs)))
    )
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
    source, target, *counts = make_pipelines(config)
    vocabs = make_vocabs(config, (source, target), (counts[0], counts[1]))
    assert {record.levelname for record in caplog.records} == {"INFO"} and "6 of 6, 100.00%" in caplog.text
    caplog.clear()
    make_dev(config, (source, target), vocabs, "none")
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 2 and warnings[1] == (
        "development target: 50.00% are unknown: cut words into units, with data.bpe_merges=8000 or subword: "
        "unigram"
    )
    caplog.clear()
    config.target.vocabulary = 2
    make_vocabs(config, (source, target), (counts[0], counts[1]))
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1 and warnings[0].startswith(
        "target vocabulary: 2 of 6, 33.33% of the running text; all other words are UNK: cut words into units"
    )
