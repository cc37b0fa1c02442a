"""The keys that a configuration may have, by what it trains."""

from dataclasses import fields
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from nmt.errors import ConfigError
from nmt.lm.registry import LANGUAGE_MODELS
from nmt.models.registry import MODELS
from nmt.runs.migrations import Section
from nmt.settings import HELP
from nmt.training import config_file
from nmt.training.config import TrainingConfig
from nmt.training.schema import Part, Schema, explained, schema_of


def part(content: Section, name: str = "c.yaml") -> Part:
    return Part(content, lambda key: f"{name}:{key}")


KINDS = [("model", kind) for kind in MODELS] + [("lm", kind) for kind in LANGUAGE_MODELS]


@pytest.mark.parametrize(("section", "kind"), KINDS)
def test_every_key_has_a_default(section: str, kind: str) -> None:
    """And none is of the other section."""
    schema, found = schema_of([part({section: {"type": kind}})])
    assert (schema.section, found) == (section, kind)
    config = schema.defaults(kind)
    keys = schema.keys()
    for key in (key for key in keys if "[]" not in key):  # an item of a list
        assert OmegaConf.select(config, key, default=...) is not ..., key
    other = "lm" if section == "model" else "model"
    assert not any(key == other or key.startswith(f"{other}.") for key in keys)
    assert len(set(keys)) == len(keys)


def test_sections_are_no_values() -> None:
    schema, kind = schema_of([part({})])
    assert (schema.section, kind) == ("model", "rnn")
    assert all(map(schema.is_section, ("data", "data.source", "model", "training")))
    assert not any(map(schema.is_section, ("seed", "data.cache", "model.hidden", "nothing")))


def test_the_last_part_names_the_type() -> None:
    schema, kind = schema_of([
        part({"lm": {"type": "cslm"}}), part({"lm": {"order": 3}}), part({"lm": {"type": "recurrent"}})
    ])  # fmt: skip
    keys = set(schema.keys())
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
def test_what_cannot_be_trained(parts: list[Part], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        schema_of(parts)


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
    schema: Schema = schema_of([part({})])[0]
    assert schema.did_you_mean(key).startswith(near)
    assert key not in schema.did_you_mean(key).split("'")


def test_a_printed_configuration_explains_its_keys(tmp_path: Path) -> None:
    """Each below its help text, with the values that it may have; it is read as what it shows."""
    long = "many words " * 30
    corpora = [{"source": f"{long}.en", "target": "b.fr", "weight": 2.0}]
    config = config_file.from_mapping({"run": "r", "data": {"corpora": corpora}}, "small")
    lines = list(explained(config))
    for item in fields(TrainingConfig):
        row = next(row for row, line in enumerate(lines) if line.startswith(f"  {item.name}: "))
        if item.metadata[HELP]:
            assert lines[row - 1].startswith("  # "), item.name
    assert "  # adadelta is that of the papers (adadelta | adam | sgd)" in lines
    assert max(map(len, lines)) <= 120
    (tmp_path / "printed.yaml").write_text("\n".join(lines) + "\n")
    assert config_file.load(str(tmp_path / "printed.yaml")) == config
