"""What a corpus is made from."""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.config import settings
from nmt.data import corpus
from nmt.data.batches import BatchStream
from nmt.data.binarized import binarize, open_corpus
from nmt.data.corpus import (
    CorpusConfig,
    DataConfig,
    FilterConfig,
    check_config,
    check_text_config,
    epoch_counts,
    make_stamp,
    table_pairs,
    text_rules,
)
from nmt.errors import ConfigError, DataError
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.vocab import Vocab
from nmt.training.alignment import check_aligned
from nmt.training.prepare import ParallelData, make_cut, make_vocabs, training_text

# ---- test corpus -------------------------------------------------------------------------------------------


def vocabs() -> tuple[Vocab, Vocab]:
    return Vocab({"a": 2, "b": 1}, 9), Vocab({"x": 2, "y": 1}, 9)


def test_stamp_follows_what_the_ids_are_made_of(tmp_path: Path) -> None:
    for name in ("s", "t"):
        (tmp_path / name).write_text("a\n")
    config = DataConfig(train_source=str(tmp_path / "s"), train_target=str(tmp_path / "t"))
    stamps = {make_stamp(config, *vocabs())}
    config.max_length = 7
    stamps.add(make_stamp(config, *vocabs()))
    config.source.case = "lower"
    stamps.add(make_stamp(config, *vocabs()))
    stamps.add(make_stamp(config, Vocab({"a": 1}, 1), vocabs()[1]))
    (tmp_path / "s").write_text("b\nb\n")
    stamps.add(make_stamp(config, Vocab({"a": 1}, 1), vocabs()[1]))
    assert len(stamps) == 5


def test_settings_of_text_count_but_for_the_size_of_the_vocabulary() -> None:
    side = SideConfig("en", vocabulary=50)
    others = [replace(side, **{key: "other"}) for key in ("segment", "subword", "case")]  # type: ignore[arg-type]
    assert len({text_rules(other) for other in [side, *others]}) == 4
    assert text_rules(replace(side, vocabulary=9)) == text_rules(side)


def test_phrase_pairs_are_unique_whatever_their_counts(tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text(
        "a ||| x ||| 1 1 ||| ||| 9 9 1000000 ||| |||\na ||| y ||| 1 1 ||| ||| 9 9 1 ||| |||\nb ||| &apos;x "
        "||| 1 1\na ||| x ||| 0.5 1\nb ||| y ||| 1 1\n"
    )
    pairs = list(table_pairs(DataConfig(phrase_table=str(table))))
    assert pairs == [(["a"], ["x"]), (["a"], ["y"]), (["b"], ["'x"]), (["b"], ["y"])]


def test_inverse_swaps_the_sides_of_a_table(tmp_path: Path) -> None:
    table = tmp_path / "t"
    table.write_bytes(b"a b ||| x ||| 1\na b ||| y z ||| 1\n")
    pairs = list(table_pairs(DataConfig(phrase_table=str(table), inverse=True)))
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
    firsts: Counter[int] = Counter()
    for epoch in range(800):
        rows = [int(row[0]) for row in stream.rows(epoch)]
        assert sorted(rows) == [0, 1, 2, 3]
        firsts[rows[0]] += 1
    assert sum((firsts[row] - 200) ** 2 / 200 for row in range(4)) < 16.3


def test_a_shared_vocabulary_is_one_file() -> None:
    config = DataConfig(
        train_source="a", train_target="b", shared_vocabulary=True, source=SideConfig(vocab_file="a")
    )
    with pytest.raises(ConfigError, match="have to be the same file"):
        check_config(config)


def test_a_list_of_corpora_goes_alone() -> None:
    listed = [CorpusConfig(source="a", target="b")]
    with pytest.raises(ConfigError, match="give either train_source and train_target, or a list of corpora"):
        check_config(DataConfig(train_source="a", train_target="b", corpora=listed))
    with pytest.raises(ConfigError, match=r"data\.corpora: model\.type joint learns from one aligned text"):
        check_aligned(DataConfig(corpora=listed))
    with pytest.raises(ConfigError, match=r"data\.corpora: a language model reads data\.train_text"):
        check_text_config(DataConfig(train_text="a", corpora=listed))


def test_the_stamp_follows_files_tags_and_filters_of_a_list_but_no_weights(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("a\n")
    path = str(tmp_path / "s")
    config = DataConfig(corpora=[CorpusConfig(source=path, target=path)])
    stamps = [make_stamp(config, *vocabs())]
    for key, value in (
        ("weight", 3.0),
        ("name", "x"),
        ("tag", "<bt>"),
        ("filters", FilterConfig(min_length=2)),
    ):
        setattr(config.corpora[0], key, value)
        stamps.append(make_stamp(config, *vocabs()))
    assert stamps[0] == stamps[1] == stamps[2] and len(set(stamps)) == 3


def test_the_stamp_follows_subwords_that_a_vocabulary_file_does_not_show(tmp_path: Path) -> None:
    """A cache that several runs share is made anew if the file of codes has been."""
    for name in ("s", "codes"):
        (tmp_path / name).write_text("a\n")
    path, codes = str(tmp_path / "s"), tmp_path / "codes"
    side = SideConfig(codes=str(codes), vocab_file=path)
    config = DataConfig(train_source=path, train_target=path, source=side)
    stamps = [make_stamp(config, *vocabs())]
    codes.write_text("b\nc\n")
    stamps.append(make_stamp(config, *vocabs()))
    codes.unlink()  # a run has its own copy
    stamps.append(make_stamp(config, *vocabs()))
    assert len(set(stamps)) == 3


def test_dropout_needs_subwords_and_a_shared_vocabulary_holds_both_sides() -> None:
    plain, config = TextPipeline.of(SideConfig("en")), DataConfig(bpe_dropout=0.1)
    with pytest.raises(ConfigError, match="nothing to drop without subwords"):
        make_cut(ParallelData(config, (plain, plain), vocabs(), training_text(config), Path()))
    config = DataConfig(shared_vocabulary=True, target=SideConfig(vocabulary=3))
    one, other = make_vocabs(config, (plain, plain), (Counter({"a": 3, "b": 1}), Counter({"x": 2, "a": 2})))
    assert one is other and one.words[3:] == ["a", "x", "b"] and one.counts["a"] == 5


# ---- test corpora ------------------------------------------------------------------------------------------
# Several corpora: what may be said of them, and how many of the pairs of each an epoch has.


def corpus_configs(*values: Mapping[str, object]) -> list[CorpusConfig]:
    return [CorpusConfig(source="s", target="t", **value) for value in values]  # type: ignore[arg-type]


def test_alike_at_temperature_one_is_plain_concatenation() -> None:
    for sizes in ([7], [1, 2], [999_983, 3, 77_777], [1] * 9):
        for weight in (1.0, 0.3):
            given = corpus_configs(*[{"weight": weight}] * len(sizes))
            assert epoch_counts(sizes, given, 1) == sizes


@pytest.mark.parametrize("temperature", [0.5, 1, 2, 5, 100])
def test_shares_follow_the_formula(temperature: float) -> None:
    sizes, weights = [1_000_000, 50_000, 2_000], [1.0, 4.0, 0.5]
    counts = epoch_counts(sizes, corpus_configs(*({"weight": weight} for weight in weights)), temperature)
    wanted = [(weight * size) ** (1 / temperature) for weight, size in zip(weights, sizes, strict=True)]
    assert sum(counts) == sum(sizes)
    for count, share in zip(counts, wanted, strict=True):
        assert abs(count - sum(sizes) * share / sum(wanted)) <= 1


def test_a_weight_is_what_a_pair_counts_and_a_large_temperature_makes_all_alike() -> None:
    assert epoch_counts([100, 10], corpus_configs({}, {"weight": 10}), 1) == [55, 55]
    assert epoch_counts([900, 90, 9], corpus_configs({}, {}, {}), 1e9) == [333, 333, 333]
    small = [epoch_counts([900, 90], corpus_configs({}, {}), t)[1] for t in (1, 2, 3, 5, 10)]
    assert small == sorted(small) and small[0] == 90 < small[-1] < 495


def test_shares_are_those_of_an_epoch() -> None:
    assert epoch_counts([900, 100], corpus_configs({"share": 0.25}, {"share": 0.75}), 1) == [250, 750]
    assert epoch_counts([1, 1, 1], corpus_configs(*[{"share": 1 / 3}] * 3), 1) == [1, 1, 1]


@pytest.mark.parametrize(
    ("values", "temperature", "message"),
    [
        (
            [{"share": 0.5}, {"share": 0.4}],
            1,
            r"^data\.corpora: the shares 0\.5 \+ 0\.4 sum to 0\.9, expected 1",
        ),
        ([{"share": 0.5}, {}], 1, r"^data\.corpora\[1\]\.share: missing or 0"),
        (
            [{"share": 0.5}, {"share": 0.5, "weight": 2}],
            1,
            r"^data\.corpora\[1\]\.weight: weights and shares",
        ),
        ([{"share": 1}], 2, r"^data\.temperature: has no effect with shares"),
        ([], 2, r"^data\.temperature: there is one corpus only"),
        ([{"tag": "bt"}], 1, r"^data\.corpora\[0\]\.tag: 'bt' is not a tag"),
        ([{"tag": "<b t>"}], 1, "is not a tag"),
        ([{"tag": "<b\0t>"}], 1, "is not a tag"),
        ([{"tag": "</s>"}], 1, r"</s> means something else"),
        ([{"tag": "<0xE7>"}], 1, "means something else"),
        (
            [{"filters": FilterConfig(max_ratio=0.5)}],
            1,
            r"^data\.corpora\[0\]\.filters\.max_ratio: 0\.5 is too",
        ),
        (
            [{"filters": FilterConfig(min_length=5, max_length=4)}],
            1,
            r"^data\.corpora\[0\]\.filters\.max_length: 4 is less than min_length 5",
        ),
        ([{"target": ""}], 1, r"^data\.corpora\[0\]\.target: missing"),
    ],
)
def test_contradictions(values: list[dict[str, object]], temperature: float, message: str) -> None:
    given = [CorpusConfig(**{"source": "s", "target": "t", **value}) for value in values]  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=message):
        corpus.check_corpora(given, temperature)


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), 1e10, 1e308])
def test_weights_are_above_zero_and_sums_of_them_finite(weight: float) -> None:
    with pytest.raises(ConfigError, match=r"^data\.weight: .* is out of range"):
        settings.check(CorpusConfig(source="s", target="t", weight=weight), "data.")


def test_good_lists_pass() -> None:
    corpus.check_corpora(corpus_configs({"tag": "<bt>"}, {"tag": "<2fr>", "weight": 3}, {"tag": "<bt>"}), 5)
    corpus.check_corpora(corpus_configs({"share": 0.1}, {"share": 0.2}, {"share": 0.7}), 1)
    corpus.check_corpora([], 1)
    assert corpus.corpus_tags(corpus_configs({"tag": "<b>"}, {}, {"tag": "<a>"}, {"tag": "<b>"})) == (
        "<b>",
        "<a>",
    )


def test_text_with_a_tag_is_refused_with_its_line(tmp_path: Path) -> None:
    for name, text in (
        ("a", "x\ny < z\n"),
        ("b", "1\n2\n"),
        ("c", "u\nv<bt>w\n"),
        ("d", "u\n&lt;bt&gt;\n"),
        ("empty", ""),
    ):
        (tmp_path / name).write_text(text)

    def check(source: str, target: str, thorough: bool = True) -> None:
        first = CorpusConfig(source=str(tmp_path / "a"), target=str(tmp_path / "b"), tag="<bt>")
        other = CorpusConfig(source=str(tmp_path / source), target=str(tmp_path / target))
        corpus.check_corpora_text([first, other], thorough)

    check("a", "b")
    check("c", "b", thorough=False)
    for pair in (("c", "b"), ("b", "c"), ("a", "d")):
        with pytest.raises(DataError, match=r"/[cd]:2: the text has <bt>, which is a tag"):
            check(*pair)
    with pytest.raises(DataError, match="/empty: empty file"):
        check("a", "empty", thorough=False)
    with pytest.raises(DataError, match="/none: cannot read"):
        check("none", "b", thorough=False)
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "pipe"):
        with pytest.raises(DataError, match="not a regular file; training reads a text several times"):
            check(name, "b", thorough=False)
        with pytest.raises(DataError, match="not a regular file; training reads a text several times"):
            check_text_config(DataConfig(train_text=str(tmp_path / name)))
