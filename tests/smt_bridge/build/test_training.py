"""The trainings of a build."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.training import config_file
from smt_bridge.build import plan, training
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.build.networks import RECIPES, Recipe
from smt_bridge.build.plan import CorpusSizes
from tests.smt_bridge.build.builds import small_plan

CONFIG = BuildConfig("a.en", "a.fr", "b.en", "b.fr", "system", seed=7)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda one: f"{one.network}-{one.pairs}")
def test_every_recipe_is_a_sound_configuration(recipe: Recipe) -> None:
    sizes = CorpusSizes(recipe.pairs, 10 * recipe.pairs, 10 * recipe.pairs, 500, 5000)
    found = plan.decide(sizes, 1e9, 1.0, "mkl")
    (network,) = [one for one in found.networks if one.name == recipe.network]
    task = training.network_task(Build(CONFIG, found), network)
    made = config_file.from_mapping(task.content, task.preset or None)
    assert made.training.max_steps == network.updates and made.training.batch_size == recipe.batch
    assert not made.training.max_epochs and not made.training.max_minutes  # nothing else ends it early
    assert made.threads == 1 and made.seed == 7 and made.matmul == "mkl"
    if recipe.network == "attention":
        assert made.training.schedule == "linear" and made.training.keep == 5 and not made.training.patience


def test_a_network_reads_the_words_of_the_tables_as_they_are() -> None:
    for name in ("attention", "joint", "cslm"):
        build = Build(CONFIG, small_plan(name))
        task = training.network_task(build, build.plan.networks[0])
        target = config_file.from_mapping(task.content, task.preset or None).data.target
        assert (target.tokenize, target.normalize, target.case, target.escaped) == (
            False,
            False,
            "keep",
            True,
        )
        assert target.subword == "none" and target.language == "fr" and target.min_count == 2


def test_monolingual_text_is_for_the_cslm_where_the_plan_says_so(tmp_path: Path) -> None:
    config = replace(CONFIG, output=str(tmp_path))
    (tmp_path / "build" / "corpus").mkdir(parents=True)
    (tmp_path / "build" / "corpus" / "lm.target").touch()
    with_text = replace(small_plan("cslm"), monolingual_network=True)
    assert training.data_section(Build(config, with_text), "cslm")["train_text"] == "corpus/lm.target"
    assert (
        training.data_section(Build(config, small_plan("cslm")), "cslm")["train_text"]
        == "corpus/train.target"
    )
    assert "alignment" in training.data_section(Build(config, with_text), "joint")


@pytest.fixture
def root_level() -> Iterator[None]:
    yield
    for package in ("nmt", "smt_bridge"):
        logging.getLogger(package).setLevel(logging.NOTSET)


def test_a_finished_network_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root_level: None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / training.LOGS).mkdir()
    build = Build(CONFIG, small_plan("attention", "joint"))
    trained: list[str] = []
    taken: list[tuple[str, object]] = []
    monkeypatch.setattr(training, "run_training", lambda config: trained.append(config.run))
    monkeypatch.setattr("nmt.runs.directory.find_step", lambda run, which: 12)
    monkeypatch.setattr(
        "nmt.runs.weights.write_average", lambda run, output, steps, last: taken.append((run.name, steps))
    )
    train = training.start_trainer(str(tmp_path), logging.INFO)
    attention, joint = (training.network_task(build, one) for one in build.plan.networks)
    train(attention)
    train(joint)
    assert trained == ["runs/attention", "runs/joint"]
    assert taken == [("attention", None), ("joint", [12])]  # the mean of the last; the best
    (tmp_path / attention.output).mkdir(parents=True)
    (tmp_path / attention.output / "version").touch()
    train(attention)
    assert len(trained) == 2
