"""Configuration files: keys and types are checked, mistakes are named, a resumed run keeps its settings."""

from dataclasses import fields
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from nmt.config.settings import HELP
from nmt.errors import CheckpointError, ConfigError
from nmt.io import manifest
from nmt.lm import LANGUAGE_MODELS
from nmt.lm.cslm import CSLMConfig
from nmt.models.config import RNNConfig
from nmt.models.registry import MODELS
from nmt.runs.text import Section
from nmt.training import config_file, train
from nmt.training.config import RunConfig, TrainingConfig
from nmt.training.config_file import ConfigPart, Schema, choose_schema, explain


def load(folder: Path, text: str, *overrides: str) -> RunConfig:
    (folder / "c.yaml").write_text(text)
    return config_file.load(str(folder / "c.yaml"), list(overrides))


def test_numbers_sections_and_overrides(tmp_path: Path) -> None:
    result = load(
        tmp_path, "run: r\ntraining: {learning_rate: 1e-4}\n", "model.hidden=50", "data.source.case=truecase"
    )
    assert isinstance(result.model, RNNConfig)
    assert (result.training.learning_rate, result.model.hidden) == (1e-4, 50)
    assert result.data.source.case == "truecase"
    assert (result.data.target.language, result.data.target.case) == ("", "keep")


def test_written_configuration_is_the_same(tmp_path: Path) -> None:
    for text in ("run: r\nmodel: {hidden: 7}\n", CORPORA + "      tag: <bt>\n"):
        first = load(tmp_path, text)
        assert load(tmp_path, config_file.to_yaml(first)) == first


def test_a_list_of_corpora_can_be_an_override(tmp_path: Path) -> None:
    given = "data.corpora=[{source: a.en, target: a.fr, weight: 3}, {source: b.en, target: b.fr, tag: <bt>}]"
    found = load(tmp_path, "run: r\n", given, "data.temperature=2.5").data
    rows = [(corpus.source, corpus.weight, corpus.tag) for corpus in found.corpora]
    assert rows == [("a.en", 3, ""), ("b.en", 1, "<bt>")]
    assert found.temperature == 2.5 and (found.source.language, found.target.language) == ("en", "fr")


CORPORA = (
    "run: r\ndata:\n  corpora:\n    - {source: a.en, target: a.fr}\n    - source: b.en\n      target: b.fr\n"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run: r\nmodel:\n  hiden: 5\n", "c.yaml:3: unknown key 'model.hiden', did you mean 'model.hidden'?"),
        ("run: r\nhidden: 5\n", "c.yaml:2: unknown key 'hidden', did you mean 'model.hidden'?"),
        ("run: r\nmodel:\n  hidden: many\n", "c.yaml:3: model.hidden: "),
        ("run: r\nmodel: 3\n", "c.yaml:2: model is a section"),
        ("run: r\nmodel: [1\n", "c.yaml:2: not valid YAML"),
        ("- a\n- b\n", "c.yaml: expected sections"),
        ("model: {hidden: 5}\n", "run is missing"),
        ("", "run is missing"),
        ("run: r\ndata:\n  train_source: ${oc.env:NO_SUCH_VARIABLE}/x\n", "c.yaml:3: data.train_source: "),
        (
            "run: r\nlm: {type: recurrent, carry: true}\ntraining:\n  batch_tokens: 900\n",
            "c.yaml:4: training.batch_tokens: with lm.carry a batch is training.batch_size positions",
        ),
        ("run: r\ntraining: {metric: chrf, dev_beam: 0}\n", "c.yaml:2: training.metric: chrf needs dev_beam"),
        (
            "run: r\ntraining:\n  bleu_tokenizer: 13b\n",
            "c.yaml:3: training.bleu_tokenizer: BLEU tokenizer '13b' is unknown, expected one of none, zh",
        ),
        (
            "run: r\ntraining: {schedule: inverse_sqrt}\n",
            "c.yaml:2: training.schedule: inverse_sqrt needs warmup",
        ),
        ("run: r\ntraining: {schedule: linear, warmup: 9, max_steps: 9}\n", "linear needs max_steps"),
        ("run: r\ntraining: {decay_below: 1.0}\n", "training.decay_below: needs training.decay below 1"),
        ("run: r\nx: {y: {z: 1}}\n", "c.yaml:2: unknown key 'x'"),
        ("run: r\ndata: {'': {x: 1}}\n", "c.yaml:2: unknown key 'data.'"),
        ("run: r\nmodel:\n  # small, type: rnn\n  type: nrn\n", "c.yaml:4: model.type: 'nrn' is unknown"),
        ("run: r\ntraining:\n  dev_beam: 0\n", "c.yaml:2: training.metric: bleu needs dev_beam"),
        ("run: r\n? [1, 2]\n: 3\n", "c.yaml"),
        ("run: r\n2020-01-01: 3\n", "c.yaml"),
        ("run: " + "[" * 1000 + "]" * 1000, "c.yaml: not valid YAML: nested too deep"),
        ("run: ${run}\n", "c.yaml:1: run: "),
        (
            CORPORA + "      weight: 0\n",
            "c.yaml:7: data.corpora[1].weight: 0 is out of range, expected more than 0",
        ),
        (
            CORPORA + "      wieght: 2\n",
            "c.yaml:7: unknown key 'data.corpora[1].wieght', did you mean 'data.corpora[].weight'?",
        ),
        (CORPORA + "      weight: x\n", "c.yaml:7: data.corpora[1].weight: Value 'x'"),
        (
            CORPORA + "      filters:\n        max_lengt: 3\n",
            "c.yaml:8: unknown key 'data.corpora[1].filters.max_lengt', did you mean",
        ),
        (CORPORA + "      filters: 3\n", "c.yaml:7: data.corpora[1].filters is a section"),
        (CORPORA + "    - {source: c.en}\n", "c.yaml:7: data.corpora[2].target: missing"),
        (CORPORA + "    - c.en\n", "c.yaml:3: data.corpora is a list of sections"),
        ("run: r\ndata:\n  corpora: a.en\n", "c.yaml:3: data.corpora is a list of sections"),
        (
            CORPORA + "    - {source: c.en, target: c.de}\n",
            "data.target.language: missing, and the corpora are of",
        ),
        ("run: r\ndata:\n  temperature: 2\n", "c.yaml:3: data.temperature: there is one corpus only"),
        (CORPORA + "  temperature: 0\n", "c.yaml:7: data.temperature: 0 is out of range"),
        ("run: r\ninit_from: ${seed}${x\n", "c.yaml: not valid YAML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        load(tmp_path, text)
    assert message in str(error.value)


NONSENSE = [
    "model.hidden", "model.hiden=3", "model.hidden=many", "model.hidden=[1", "[=1", "data..x=1", ".=1", "=1",
    "a.b.c=1", "é=1",
    "seed=1" + "0" * 23, "seed=-1", "threads=-1", "precision=fp16", "matmul=none",
    "data.max_length=0", "data.bpe_merges=-3", "data.bpe_dropout=1", "data.bpe_dropout=.nan",
    "data.source.vocabulary=-5", "data.target.vocabulary=0", "data.source.min_count=-1",
    "data.target.case=upper",
    "model.hidden=0", "model.hidden=99999999999999", "model.encoder_layers=0", "model.attention=-1",
    "model.dropout=1", "model.dropout=.nan",
    "model.init_scale=.nan", "model.init_scale=.inf", "model.init_scale=-1", "model.cell=rnn",
    "model.tied=both",
    "lm.order=1", "lm.order=99999", "lm.layers=[0]", "lm.layers=[5, -1]", "lm.normalizer=.nan",
    "lm.init_scale=0", "lm.removals=some", "lm.type=ngram",
    "training.learning_rate=.inf", "training.learning_rate=.nan", "training.learning_rate=-1",
    "training.rho=1", "training.rho=.nan", "training.eps=-1",
    "training.eps=0", "training.eps=.nan", "training.clip=.nan", "training.clip=.inf", "training.clip=-1",
    "training.decay=-1", "training.decay=.nan",
    "training.decay=0", "training.decay=2", "training.max_minutes=.nan", "training.max_minutes=.inf",
    "training.max_steps=-1", "training.patience=-1",
    "training.decay_patience=0", "training.keep=0", "training.pool=0", "training.label_smoothing=1",
    "training.label_smoothing=.nan",
    "training.learning_rate=1e20", "training.clip=1e20", "training.dev_beam=-1",
    "training.dev_beam=100000000", "training.warmup=-1", "training.optimizer=adamw",
    "training.metric=ter", "training.cost=words", "training.schedule=cosine", "training.accumulate=0",
    "training.eps=1e-50",  # 0 in fp32
]  # fmt: skip


@pytest.mark.parametrize("override", NONSENSE)
def test_bad_overrides_are_named(tmp_path: Path, override: str) -> None:
    section, _, key = override.partition("=")[0].rpartition(".")
    kind = "multiscale" if key == "removals" else "cslm"
    text = f"run: r\nlm: {{type: {kind}}}\n" if section == "lm" else "run: r\n"
    with pytest.raises(ConfigError) as error:
        load(tmp_path, text, override)
    assert "missing" not in str(error.value)
    assert str(error.value).startswith(override) and "\n" not in str(error.value)


def test_a_message_bears_any_override(tmp_path: Path) -> None:
    nines, letters = "9" * 5000, "x" * 5000
    for override in (f"seed={nines}", f"run={'[' * 1000}", f"{letters}=1", f"model.hidden={letters}"):
        with pytest.raises(ConfigError) as error:
            load(tmp_path, "run: r\n", override)
        assert len(str(error.value)) < 400 + len(str(tmp_path))


def test_a_near_key_is_another_key(tmp_path: Path) -> None:
    """Of `data..x` it was said: unknown key 'data', did you mean 'data'?"""
    with pytest.raises(ConfigError, match=r"data\.\.x=1: expected section\.key=value"):
        load(tmp_path, "run: r\n", "data..x=1")
    with pytest.raises(ConfigError, match=r"unknown key 'dota', did you mean 'data'\?"):
        load(tmp_path, "run: r\ndota: 1\n")


def test_the_place_of_a_value_is_that_of_the_last_word(tmp_path: Path) -> None:
    text = "run: r\ntraining:\n  clip: -1\n  keep: 0\n"
    with pytest.raises(ConfigError, match=r"c\.yaml:3: training\.clip: -1 is out of range"):
        load(tmp_path, text, "training.pool=4")
    with pytest.raises(ConfigError, match=r"^training\.clip=-2: training\.clip: -2 is out of range"):
        load(tmp_path, text, "training.clip=3", "training.clip=-2")
    with pytest.raises(ConfigError, match=r"c\.yaml:4: training\.keep: 0 is out of range"):
        load(tmp_path, text, "training.clip=3")


def test_python_is_checked_alike() -> None:
    for check in (RNNConfig(hidden=-1), CSLMConfig(order=0), TrainingConfig(learning_rate=float("inf"))):
        with pytest.raises(ConfigError, match="is out of range"):
            check.check()


@pytest.mark.parametrize(
    ("text", "merges"),
    [
        ("data: {train_source: a.en, train_target: b.fr}", 4000),
        ("data: {train_source: a.en, train_target: b.ja}", 4000),
        ("data: {train_source: a.en, train_target: b.fr, bpe_merges: 0}", 0),
        ("data: {train_source: a.zh, train_target: b.ja}", 0),
        ("data: {train_source: a.en, train_target: b.fr, source: {vocab_file: v}}", 0),
        ("data: {train_source: a.en, train_target: b.fr, source_vectors: v}", 0),
        ("data: {train_text: a.en}\nlm: {type: cslm}", 0),
    ],
)
def test_a_preset_cuts_words_where_nothing_else_is_said(text: str, merges: int, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(f"run: r\n{text}\n")
    assert config_file.load(str(tmp_path / "c.yaml"), [], "small").data.bpe_merges == merges


def test_differences_leave_out_the_limits(tmp_path: Path) -> None:
    before = load(tmp_path, "run: r\n")
    (tmp_path / "config.yaml").write_text(config_file.to_yaml(before))
    manifest.write(tmp_path, ["config.yaml"])
    now = load(tmp_path, "run: q\n", "training.max_steps=9", "model.hidden=3")
    assert config_file.differences(now, tmp_path) == ["model.hidden=3 (was 1000)"]
    before.data.train_source = Path("a")  # type: ignore[assignment]
    (tmp_path / "config.yaml").write_text(config_file.to_yaml(before))
    manifest.write(tmp_path, ["config.yaml"])
    assert config_file.differences(before, tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "run: [\n",
        "[]\n",
        "training: {tensorboard: x}\n",
        "model: 3\ntraining: {tensorboard: true}\n",
        "run: " + "[" * 1000 + "\n",
    ],
)
def test_a_damaged_configuration_of_a_run_is_one_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(text)
    manifest.write(tmp_path, ["config.yaml"])
    with pytest.raises(CheckpointError, match=r"config\.yaml: damaged configuration \("):
        config_file.differences(RunConfig(run="r"), tmp_path)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (RunConfig(run="r", training=TrainingConfig(tensorboard="x")), "training.tensorboard: Value 'x'"),  # type: ignore[arg-type]
        (RunConfig(run="r", model=RNNConfig(bias="x")), "model.bias: Value 'x'"),  # type: ignore[arg-type]
        (RunConfig(run="r", lm=CSLMConfig(layers=[1.5])), "lm.layers[0]: Value '1.5'"),  # type: ignore[list-item]
        (RunConfig(run="r", lm=CSLMConfig(layers=5)), "layers: "),  # type: ignore[arg-type]
        (RunConfig(run="r", data=None), "data: "),  # type: ignore[arg-type]
    ],
)
def test_types_are_checked_from_python_too(config: RunConfig, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        train.read(config)
    assert str(error.value).startswith(message)


def test_a_run_directory_is_required_from_python_too() -> None:
    with pytest.raises(ConfigError, match="run is missing"):
        config_file.check_config(RunConfig())


# ---- schema ------------------------------------------------------------------------------------------------
# The keys that a configuration may have, by what it trains.


def part(content: Section, name: str = "c.yaml") -> ConfigPart:
    return ConfigPart(content, lambda key: f"{name}:{key}")


KINDS = [("model", kind) for kind in MODELS] + [("lm", kind) for kind in LANGUAGE_MODELS]


@pytest.mark.parametrize(("section", "kind"), KINDS)
def test_every_key_has_a_default(section: str, kind: str) -> None:
    """And none is of the other section."""
    schema, found = choose_schema([part({section: {"type": kind}})])
    assert (schema.section, found) == (section, kind)
    config = schema.defaults(kind)
    keys = schema.keys
    for key in (key for key in keys if "[]" not in key):  # an item of a list
        assert OmegaConf.select(config, key, default=...) is not ..., key
    other = "lm" if section == "model" else "model"
    assert not any(key == other or key.startswith(f"{other}.") for key in keys)
    assert len(set(keys)) == len(keys)


def test_sections_are_no_values() -> None:
    schema, kind = choose_schema([part({})])
    assert (schema.section, kind) == ("model", "rnn")
    assert all(map(schema.is_section, ("data", "data.source", "model", "training")))
    assert not any(map(schema.is_section, ("seed", "data.cache", "model.hidden", "nothing")))


def test_the_last_part_names_the_type() -> None:
    schema, kind = choose_schema([
        part({"lm": {"type": "cslm"}}), part({"lm": {"order": 3}}), part({"lm": {"type": "recurrent"}})
    ])  # fmt: skip
    keys = set(schema.keys)
    assert kind == "recurrent" and "lm.cell" in keys and "lm.order" not in keys


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            [part({"model": {}}, "a"), part({"lm": {"type": "cslm"}}, "b")],
            r"^a:model: model: a run has either section model or section lm \(b:lm\); leave one of them out$",
        ),
        ([part({"model": {"type": "rrn"}}, "a")], r"^a:model\.type: .*'rrn' is unknown"),
        ([part({"lm": {"order": 3}}, "a")], r"^a:lm: "),
    ],
)
def test_what_cannot_be_trained(parts: list[ConfigPart], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        choose_schema(parts)


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("model.hiden", ", did you mean 'model.hidden'?"),
        ("sead", ", did you mean 'seed'?"),
        ("training.hidden", ", did you mean 'model.hidden'?"),
        ("data.source.tokenise", ", did you mean 'data.source.tokenize'?"),
        ("language", ", did you mean 'data.source.language' or 'data.target.language'?"),
        ("xxxxxxxx", "; expected one of run, seed, device, "),
    ],
)
def test_did_you_mean(key: str, near: str) -> None:
    """First in its own section, then the same name elsewhere, then anything near."""
    schema: Schema = choose_schema([part({})])[0]
    assert schema.did_you_mean(key).startswith(near)
    assert key not in schema.did_you_mean(key).split("'")


def test_a_printed_configuration_explains_its_keys(tmp_path: Path) -> None:
    """Each below its help text, with the values that it may have; it is read as what it shows."""
    long = "many words " * 30
    corpora = [{"source": f"{long}.en", "target": "b.fr", "weight": 2.0}]
    config = config_file.from_mapping({"run": "r", "data": {"corpora": corpora}}, "small")
    lines = list(explain(config))
    for item in fields(TrainingConfig):
        row = next(row for row, line in enumerate(lines) if line.startswith(f"  {item.name}: "))
        if item.metadata[HELP]:
            assert lines[row - 1].startswith("  # "), item.name
    assert any(line.startswith("  # adadelta (Zeiler 2012)") and "| adam | sgd)" in line for line in lines)
    assert max(map(len, lines)) <= 120
    (tmp_path / "printed.yaml").write_text("\n".join(lines) + "\n")
    assert config_file.load(str(tmp_path / "printed.yaml")) == config
