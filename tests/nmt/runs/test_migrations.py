"""Configurations of every version so far are read in today's terms."""

import logging
import shutil
from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.lm.cslm import CSLMConfig
from nmt.models.config import RNNConfig
from nmt.runs import migrations
from nmt.training import config_file

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
TRANSLATORS = [path.parent for path in sorted(GOLDEN.glob("**/config.yaml")) if path.parent.name != "lm"]


@pytest.mark.parametrize("run", TRANSLATORS, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_a_translator_of_every_version_has_its_section_alone(run: Path) -> None:
    found = config_file.of_run(run)
    assert isinstance(found.model, RNNConfig) and found.lm is None and found.model.type == "rnn"
    assert config_file.differences(found, run) == []


def test_a_language_model_of_version_05_has_the_keys_of_its_type_alone() -> None:
    found = config_file.of_run(GOLDEN / "0.5.0" / "lm")
    assert isinstance(found.lm, CSLMConfig) and found.model is None
    assert (found.lm.type, found.lm.order, found.lm.layers) == ("cslm", 4, [16])


def test_the_configuration_of_an_old_run_goes_through_a_file_of_today(tmp_path: Path) -> None:
    for run in (*TRANSLATORS, GOLDEN / "0.5.0" / "lm"):
        before = config_file.of_run(run)
        (tmp_path / "c.yaml").write_text(config_file.to_yaml(before), encoding="utf-8")
        assert config_file.load(str(tmp_path / "c.yaml")) == before


def test_a_file_printed_by_version_05_is_accepted_with_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A translator's had a section lm with an empty type."""
    logging.getLogger("nmt").propagate = True
    text = (GOLDEN / "0.5.0" / "translator" / "config.yaml").read_text(encoding="utf-8")
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    assert config_file.load(str(tmp_path / "c.yaml")).lm is None
    [record] = caplog.records
    assert "a translator has no section lm" in record.getMessage()
    language_model = (GOLDEN / "0.5.0" / "lm" / "config.yaml").read_text(encoding="utf-8")
    (tmp_path / "c.yaml").write_text(language_model, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"c\.yaml:\d+: model: a run has either section"):
        config_file.load(str(tmp_path / "c.yaml"))


def test_a_run_that_does_not_say_case_and_language_has_those_of_its_time() -> None:
    given: migrations.Section = {"data": {"source": {"language": "de"}, "target": {"case": "keep"}}}
    for version in migrations.FORMATS:
        assert migrations.of_run(given, version)["data"] == {
            "source": {"language": "de", "case": "lower", "segment": "none"},
            "target": {"language": "fr", "case": "keep", "segment": "none"},
        }
        assert migrations.of_run({"data": 3}, version) == {"data": 3}


@pytest.mark.parametrize("key", ["data.source.case", "data.target.language"])
def test_a_file_that_says_neither_resumes_an_old_run(tmp_path: Path, key: str) -> None:
    """Today's defaults are others. What the file says still has to agree, and --overwrite starts afresh."""
    shutil.copytree(GOLDEN / "0.5.0" / "lm", tmp_path / "run")
    place = f"run: {tmp_path}/run\n"
    text = (tmp_path / "run" / "config.yaml").read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if not line.strip().startswith(("language:", "case:", "run:"))]
    start, end = lines.index("model:"), lines.index("lm:")
    (tmp_path / "c.yaml").write_text(place + "\n".join([*lines[:start], *lines[end:]]), encoding="utf-8")
    given = str(tmp_path / "c.yaml")
    found = config_file.load(given)
    assert (found.data.source.case, found.data.target.language) == ("lower", "fr")
    assert config_file.differences(found, tmp_path / "run") == []
    [difference] = config_file.differences(
        config_file.load(given, [f"{key}={'keep' if 'case' in key else 'de'}"]), tmp_path / "run"
    )
    assert difference.startswith(f"{key}=")
    afresh = config_file.load(given, overwrite=True)
    assert afresh.data.source.case == "keep"


def test_renamed_keys_move(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "RENAMED", {"model.words": "model.embedding.kind", "speed": "rate"})
    given: migrations.Section = {"model": {"words": "table", "hidden": 3}, "speed": 2, "lm": {"type": "cslm"}}
    today = {"model": {"hidden": 3, "embedding": {"kind": "table"}}, "rate": 2, "lm": {"type": "cslm"}}
    assert [key for key, _ in migrations.of_user(given)] == ["model.words", "speed"] and given == today
    assert migrations.of_user(given) == [] and given == today
    assert migrations.of_run({"speed": 1}, "nmt-run 2") == {"rate": 1}
