"""Subwords that a training learns: of which side, from what, and how they vary."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nmt.data.corpus import DataConfig
from nmt.errors import ConfigError
from nmt.text.pipeline import SideConfig
from nmt.training import inputs
from nmt.training.config import RunConfig
from nmt.training.prepare import make_cut, make_pipelines, make_vocabs
from tests.spaceless import japanese


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
    source, target, *counts = make_pipelines(config)
    vocabs = make_vocabs(config, (source, target), (counts[0], counts[1]))
    assert source.subwords and source.subwords.kind == "bpe"
    assert target.subwords and target.subwords.kind == "unigram"
    assert set(target.subwords.inventory((), False)) == set(vocabs[1].ids) and vocabs[1].coverage() == 1
    for english, line in japanese(300):
        assert target.text(vocabs[1].decode(vocabs[1].encode(target.units(line)))) == line
        assert source.join(source.units(english)) == source.words(english)


@pytest.mark.parametrize("kind", ["unigram", "sentencepiece-bpe"])
def test_one_model_for_both_sides_where_they_share_a_script(tmp_path: Path, kind: str) -> None:
    sides = SideConfig("en", subword=kind), SideConfig("ja", subword=kind)
    source, target, *_ = make_pipelines(data(tmp_path, *sides))
    assert source.subwords is not target.subwords
    config = data(tmp_path, *sides, shared_vocabulary=True)
    source, target, *counts = make_pipelines(config)
    assert source.subwords is target.subwords
    vocabs = make_vocabs(config, (source, target), (counts[0], counts[1]))
    assert vocabs[0] is vocabs[1] and source.subwords
    assert set(vocabs[0].ids) == set(source.subwords.inventory((), False))
    config = data(tmp_path, *sides, train_target=str(tmp_path / "en"))
    source, target, *_ = make_pipelines(config)
    assert source.subwords is target.subwords
    source, target, *_ = make_pipelines(replace(config, bpe_joint=False))
    assert source.subwords is not target.subwords


@pytest.mark.parametrize(
    ("kind", "key", "rate"),
    [("unigram", "unigram_sampling", 0.05), ("sentencepiece-bpe", "bpe_dropout", 0.3)],
)
def test_cuts_vary_where_they_are_sampled(tmp_path: Path, kind: str, key: str, rate: float) -> None:
    """The other side, of whole words, stays as it is."""
    config = data(tmp_path, SideConfig("en"), SideConfig("ja", subword=kind), pieces=200, **{key: rate})
    source, target, *counts = make_pipelines(config)
    vocabs = make_vocabs(config, (source, target), (counts[0], counts[1]))
    cut = make_cut(config, (source, target), vocabs)
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
        make_pipelines(data(tmp_path, SideConfig("ja"), SideConfig("zh"), bpe_merges=5))
    with pytest.raises(ConfigError, match=r"data\.target: case: truecase needs words"):
        make_pipelines(data(tmp_path, whole, SideConfig("de", subword="unigram", case="truecase")))
    with pytest.raises(ConfigError, match=r"^data\.pieces: 9 is too small: the text has \d+ frequent"):
        make_pipelines(data(tmp_path, whole, SideConfig("ja"), pieces=9))
    for key in ("bpe_dropout", "unigram_sampling"):
        with pytest.raises(
            ConfigError, match=rf"data\.{key}: there is nothing to (drop|sample) without subwords"
        ):
            make_pipelines(data(tmp_path, whole, SideConfig("ja", subword="none"), **{key: 0.1}))
    with pytest.raises(ConfigError, match=r"data\.unigram_sampling: there is nothing to sample"):
        make_pipelines(data(tmp_path, whole, SideConfig("en"), unigram_sampling=0.1, bpe_merges=9))


def test_bpe_is_named_or_follows_from_its_merges(tmp_path: Path) -> None:
    """Of Japanese too; a new run is checked before its text is read."""
    config = data(tmp_path, SideConfig("en"), SideConfig("ja", subword="bpe"), bpe_merges=30)
    inputs.check_new_run(RunConfig(run=str(tmp_path / "run"), data=config), "")
    source, target, *_ = make_pipelines(config)
    assert source.subwords is target.subwords and target.subwords and target.subwords.kind == "bpe"
    with pytest.raises(ConfigError, match=r"data\.target: subword: bpe needs data\.bpe_merges"):
        inputs.check_new_run(RunConfig(run=str(tmp_path / "run"), data=replace(config, bpe_merges=0)), "")
