"""Translating monolingual text back: the reverse system, the pairs, and the configuration that reads them."""

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from nmt.errors import ConfigError
from nmt.formats import pharaoh
from nmt.io import files
from nmt.training import config_file
from smt_bridge import train_system
from smt_bridge.build import corpus, pipeline, plan, training
from smt_bridge.build.back_translation import reversed_links, reversed_weights, translate_back
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.build.corpus import BuildTexts
from smt_bridge.build.plan import CorpusSizes
from smt_bridge.config import TrainConfig
from smt_bridge.moses import ini as moses_ini
from tests.smt_bridge.build.builds import config, small_plan

SIZES = CorpusSizes(5000, 65_000, 70_000, 1014, 13_300)
WITH_TEXT = replace(SIZES, monolingual_lines=24_000, monolingual_words=330_000)


def test_links_and_weights_of_the_reverse_direction(tmp_path: Path) -> None:
    assert reversed_links("0-0 2-1 1-3") == "0-0 1-2 3-1"
    assert reversed_links(reversed_links("0-2 1-0 1-1")) == "0-2 1-0 1-1" and reversed_links("") == ""
    start = tmp_path / "moses.ini"
    train_system.write_ini(start, TrainConfig("a", "b"))
    ini = moses_ini.read(str(start))
    tuned = moses_ini.set_weights(ini, {"TranslationModel0": [1.0, 2.0, 3.0, 4.0], "LM0": [7.0]})
    weights = reversed_weights(tuned, ini).weights
    assert weights == tuned.weights | {"TranslationModel0": [3.0, 4.0, 1.0, 2.0]}


def tuned_build(tmp_path: Path, grammar: ModuleType, lines: int) -> Build:
    """A build with a monolingual text of 60 lines, after the steps that precede back-translation. Its tuned
    weights are those that smt-train writes."""
    (tmp_path / "more.fr").write_text("".join(f"{line}\n" for line in more_text(tmp_path, grammar)))
    given = config(tmp_path, grammar, monolingual=str(tmp_path / "more.fr"))
    made = Build(given, replace(small_plan("attention"), back_translated=lines))
    corpus.prepare(made)
    training.align(made)
    training.train(made)
    training.filter_to_dev(made)
    start = (made.work / training.DEV / training.BASE).read_text()
    (made.work / training.DEV / "phrase-based.ini").write_text(start)
    return made


def more_text(folder: Path, grammar: ModuleType) -> list[str]:
    """60 target sentences of the corpus."""
    (folder / "other").mkdir()
    given = config(folder / "other", grammar)
    return list(files.read_lines(given.target))[:60]


@pytest.mark.ci
def test_the_pairs_are_monolingual_lines_and_their_translations(tmp_path: Path, grammar: ModuleType) -> None:
    build = tuned_build(tmp_path, grammar, lines=20)
    translate_back(build)
    texts = BuildTexts(build.work)
    pairs = len(texts.lines("train.target"))
    monolingual = list(files.read_lines(build.work / texts.lm()))[pairs:]
    source, target = (
        list(files.read_lines(build.work / path)) for path in (training.BACK_SOURCE, training.BACK_TARGET)
    )
    assert len(monolingual) == 60 and target == monolingual[::3] and len(source) == 20
    links, reversed_ = (
        list(pharaoh.read(build.work / path))
        for path in (training.ALIGNMENT, f"{training.BACK}/{training.ALIGNMENT}")
    )
    assert [{(j, i) for i, j in row} for row in links] == list(map(set, reversed_))
    sides = zip(pharaoh.read(build.work / training.BACK_ALIGNMENT), source, target, strict=True)
    for row, line, other in sides:
        pharaoh.check_points(row, len(line.split()), len(other.split()), "links")
        assert len({i for i, _ in row}) > 0.9 * len(line.split())  # each word has been translated from one
    known = {word for line in texts.lines("train.source") for word in line.split()}
    words = [word for line in source for word in line.split()]
    assert sum(word in known for word in words) > 0.95 * len(words)  # of the source language
    assert build.share == 1.0


def test_the_attention_model_reads_both_texts_and_tags_the_new_one(tmp_path: Path) -> None:
    given = BuildConfig("a.en", "a.fr", "b.en", "b.fr", str(tmp_path))
    with_pairs = Build(given, replace(small_plan("attention", "joint"), back_translated=7))
    task = training.network_task(with_pairs, with_pairs.plan.networks[0])
    data = config_file.from_mapping(task.content, task.preset).data
    assert [(text.source, text.target, text.tag) for text in data.corpora] == [
        ("corpus/train.source", "corpus/train.target", ""),
        ("back-translation/train.source", "back-translation/train.target", "<bt>"),
    ]
    assert not data.train_source and data.dev_source == "corpus/dev.source"
    joint = training.data_section(with_pairs, "joint")
    assert joint["train_source"] == "corpus/train.source" and "corpora" not in joint


@pytest.mark.parametrize(
    ("sizes", "weight", "links"),
    [
        (SIZES, 0.1, ["alignment.gz"]),
        (
            replace(SIZES, monolingual_lines=300, monolingual_words=4000),
            0.1,
            ["alignment.gz", "back-translation/train.alignment.gz"],
        ),
        (WITH_TEXT, 0.0, ["", ""]),
        (replace(SIZES, pairs=9000), 0.0, [""]),
    ],
)
def test_links_guide_attention_of_small_corpora(
    sizes: CorpusSizes, weight: float, links: list[str], tmp_path: Path
) -> None:
    given = BuildConfig("a.en", "a.fr", "b.en", "b.fr", str(tmp_path))
    build = Build(given, plan.decide(sizes, 90 * 60, 1.0, "mkl"))
    [network] = [network for network in build.plan.networks if network.name == "attention"]
    task = training.network_task(build, network)
    config = config_file.from_mapping(task.content, task.preset)
    listed = [corpus.alignment for corpus in config.data.corpora] or [config.data.alignment]
    assert (config.training.guided_alignment, listed) == (weight, links)
    assert not config.data.dev_alignment


def test_a_plan_with_monolingual_text_trains_on_more_pairs() -> None:
    alone, more = (plan.decide(sizes, 90 * 60, 1.0, "mkl") for sizes in (SIZES, WITH_TEXT))
    assert not alone.back_translated and more.back_translated == plan.MOST_BACK * SIZES.pairs
    assert "back-translate" in more.seconds and "back-translate" not in alone.seconds
    names = list(more.seconds)
    assert names.index("tune") < names.index("back-translate") < names.index("networks")
    assert names == [step.name for step in pipeline.STEPS if step.name != "tune-extended"]
    assert more.networks[0].updates > alone.networks[0].updates
    few = replace(WITH_TEXT, monolingual_lines=300, monolingual_words=4000)
    assert plan.decide(few, 90 * 60, 1.0, "mkl").back_translated == 300
    assert not plan.decide(replace(WITH_TEXT, pairs=100), 120, 1.0, "mkl").back_translated  # no network


def test_a_plan_with_back_translation_needs_the_text(tmp_path: Path, grammar: ModuleType) -> None:
    given = config(tmp_path, grammar)
    made = replace(small_plan("attention"), back_translated=7)
    plan.write_plan(tmp_path / "plan.json", replace(made, seconds=plan.estimate_seconds(made)))
    given.plan = str(tmp_path / "plan.json")
    with pytest.raises(ConfigError, match=r"plan\.json: translates 7 lines .* --monolingual"):
        pipeline.load_or_make_plan(given)
    given.monolingual = given.target
    assert pipeline.load_or_make_plan(given).back_translated == 7
