from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nmt.data.batches import BatchStream
from nmt.data.binarized import BinarizeReport, binarize, id_type, open_corpus, read_stamp
from nmt.data.corpus import DataConfig, check_config, make_stamp, read_words
from nmt.data.text import SideConfig, TextPipeline
from nmt.data.vocab import Vocab
from nmt.errors import ConfigError, DataError
from nmt.training.prepare import make_cut, make_vocabs

PAIRS = [(["a", "b"], ["x"]), (["a"] * 4, ["x"]), ([], ["x"]), (["b"], ["y", "y", "x"]), (["b"], [])]


def vocabs() -> tuple[Vocab, Vocab]:
    return Vocab({"a": 2, "b": 1}, 9), Vocab({"x": 2, "y": 1}, 9)


def test_long_and_empty_pairs_are_dropped_and_counted(tmp_path: Path) -> None:
    report = binarize(PAIRS, *vocabs(), tmp_path, max_length=3, stamp="s")
    assert report == BinarizeReport(kept=2, too_long=1, empty=2)
    corpus = open_corpus(tmp_path)
    pairs = [tuple(side.tolist() for side in corpus.pair(row)) for row in range(len(corpus))]
    assert pairs == [([3, 4], [3]), ([4], [4, 4, 3])]
    assert corpus.lengths(np.array([1, 0])).tolist() == [3, 2]
    assert isinstance(corpus.source, np.memmap) and corpus.source.dtype == np.uint16


def test_ids_get_wider_with_the_vocabulary(tmp_path: Path) -> None:
    assert (id_type(1 << 16), id_type((1 << 16) + 1)) == (np.uint16, np.uint32)
    big = Vocab({f"w{n:06}": 1 for n in range(70000)}, 70000)
    binarize([(["w069999"], ["w000000"])], big, big, tmp_path, 3, "s")
    assert open_corpus(tmp_path).pair(0)[0].tolist() == [70002]


def test_an_interrupted_start_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    binarize(PAIRS, *vocabs(), tmp_path, 3, "s")

    def broken():  # type: ignore[no-untyped-def]
        yield PAIRS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        binarize(broken(), *vocabs(), tmp_path, 3, "t")
    assert read_stamp(tmp_path) == {}
    with pytest.raises(DataError, match="no binarized corpus"):
        open_corpus(tmp_path)


FILES = ["source.ids", "source.offsets", "target.ids", "target.offsets", "stamp.json"]


@pytest.mark.parametrize("manifest", [True, False], ids=["manifest", "version 0.5"])
@pytest.mark.parametrize("name", FILES)
def test_truncated_files_are_refused(name: str, manifest: bool, tmp_path: Path) -> None:
    """Cut at any byte; with a manifest a flipped bit too."""
    binarize(PAIRS, *vocabs(), tmp_path, 3, "s")
    if not manifest:
        (tmp_path / "manifest.json").unlink()
    data = (tmp_path / name).read_bytes()
    broken = [
        data[:length] for length in range(len(data) - 1)
    ]  # without the last line end a stamp is still whole
    for content in [*broken, bytes([data[0] ^ 1]) + data[1:], data + data] if manifest else broken:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(
            DataError, match=rf"{tmp_path}.*remove {tmp_path}: the same command makes it anew"
        ):
            open_corpus(tmp_path, *map(len, vocabs()))
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match="remove"):
        open_corpus(tmp_path)


def test_ids_and_offsets_out_of_range_are_refused(tmp_path: Path) -> None:
    """Without a manifest too: an id beyond the vocabulary would end in a traceback or worse, offsets that
    fall in empty sentences."""
    binarize(PAIRS, *vocabs(), tmp_path, 3, "s")
    open_corpus(tmp_path, 5, 5)
    with pytest.raises(DataError, match=r"source\.ids: an id is beyond the vocabulary of 4 words"):
        open_corpus(tmp_path, 4, 5)
    (tmp_path / "manifest.json").unlink()
    for name, values, message in (
        ("target.offsets", np.array([0, 9, 4]), "truncated or damaged"),
        ("target.ids", np.array([3, 4, 9, 3], np.uint16), "beyond"),
    ):
        whole = (tmp_path / name).read_bytes()
        values.tofile(tmp_path / name)
        with pytest.raises(DataError, match=message):
            open_corpus(tmp_path, 5, 5)
        (tmp_path / name).write_bytes(whole)
    for stamp in (
        '{"widths": ["float64", "uint16"], "kept": 2}',
        '{"widths": 3}',
        "[]",
        "5",
        '"abc"',
        '{"widths": []}',
        '{"widths": [["uint16"], 3]}',
    ):
        (tmp_path / "stamp.json").write_text(stamp)
        with pytest.raises(DataError, match="remove"):
            open_corpus(tmp_path)


def test_stamp_follows_what_the_ids_are_made_of(tmp_path: Path) -> None:
    for name in ("s", "t"):
        (tmp_path / name).write_text("a\n")
    config = DataConfig(train_source=str(tmp_path / "s"), train_target=str(tmp_path / "t"))
    stamps = {make_stamp(config, *vocabs())}
    config.max_length = 7
    stamps.add(make_stamp(config, *vocabs()))
    config.source.case = "keep"
    stamps.add(make_stamp(config, *vocabs()))
    stamps.add(make_stamp(config, Vocab({"a": 1}, 1), vocabs()[1]))
    (tmp_path / "s").write_text("b\nb\n")
    stamps.add(make_stamp(config, Vocab({"a": 1}, 1), vocabs()[1]))
    assert len(stamps) == 5


def plain() -> TextPipeline:
    return TextPipeline.of(SideConfig(normalize=False, tokenize=False, case="keep"))


def test_phrase_pairs_are_unique_whatever_their_counts(tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text(
        "a ||| x ||| 1 1 ||| ||| 9 9 1000000 ||| |||\na ||| y ||| 1 1 ||| ||| 9 9 1 ||| |||\nb ||| &apos;x "
        "||| 1 1\na ||| x ||| 0.5 1\nb ||| y ||| 1 1\n"
    )
    pairs = list(read_words(DataConfig(phrase_table=str(table)), plain(), plain()))
    assert pairs == [(["a"], ["x"]), (["a"], ["y"]), (["b"], ["'x"]), (["b"], ["y"])]


def test_inverse_swaps_the_sides_of_a_table(tmp_path: Path) -> None:
    table = tmp_path / "t"
    table.write_bytes(b"a b ||| x ||| 1\na b ||| y z ||| 1\n")
    pairs = list(read_words(DataConfig(phrase_table=str(table), inverse=True), plain(), plain()))
    assert pairs == [(["x"], ["a", "b"]), (["y", "z"], ["a", "b"])]
    vocab = Vocab({"a": 1}, 5)
    assert make_stamp(DataConfig(phrase_table=str(table), inverse=True), vocab, vocab) != make_stamp(
        DataConfig(phrase_table=str(table)), vocab, vocab
    )
    with pytest.raises(ConfigError, match=r"data\.inverse belongs to phrase_table"):
        check_config(DataConfig(train_source="a", train_target="b", inverse=True))


def test_phrase_pairs_are_sampled_uniformly(tmp_path: Path) -> None:
    """Each epoch shows each pair once, and the first of an epoch is any of them: χ² of 4 cells, 99.9%
    quantile 16.3."""
    words = Vocab({"a": 1, "b": 1, "c": 1, "d": 1}, 9)
    binarize([([word], [word]) for word in "abcd"], words, words, tmp_path, 3, "s")
    stream = BatchStream(open_corpus(tmp_path), batch_size=1, pool=2, seed=5)
    firsts = Counter()
    for epoch in range(800):
        rows = [int(row[0]) for row in stream.rows(epoch)]
        assert sorted(rows) == [0, 1, 2, 3]
        firsts[rows[0]] += 1
    assert sum((firsts[row] - 200) ** 2 / 200 for row in range(4)) < 16.3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bpe_dropout": 1.0}, r"data\.bpe_dropout: 1 is out of range"),
        ({"bpe_dropout": -0.1}, "out of range"),
        ({"bpe_merges": -3}, r"data\.bpe_merges: -3 is out of range"),
        ({"source": SideConfig(vocabulary=-5)}, r"data\.source\.vocabulary: -5 is out of range"),
        ({"shared_vocabulary": True, "source": SideConfig(vocab_file="a")}, "have to be the same file"),
    ],
)
def test_contradictions_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_config(DataConfig(train_source="a", train_target="b", **options))  # type: ignore[arg-type]


def test_dropout_needs_subwords_and_a_shared_vocabulary_holds_both_sides() -> None:
    plain = TextPipeline.of(SideConfig())
    with pytest.raises(ConfigError, match="nothing to drop without subwords"):
        make_cut(DataConfig(bpe_dropout=0.1), (plain, plain), vocabs())
    config = DataConfig(shared_vocabulary=True, target=SideConfig(vocabulary=3))
    one, other = make_vocabs(config, (plain, plain), (Counter({"a": 3, "b": 1}), Counter({"x": 2, "a": 2})))
    assert one is other and one.words[3:] == ["a", "x", "b"] and one.counts["a"] == 5
