"""The text of a run: its settings in config.yaml, its pipelines and its vocabularies. Torch is not
imported."""

from pathlib import Path
from typing import TypeVar, cast

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.config import settings, yaml_text
from nmt.config.yaml_text import reason
from nmt.data.corpus import DataConfig
from nmt.errors import CheckpointError, DataError, UserError
from nmt.io import manifest
from nmt.runs import directory as run_directory
from nmt.runs.directory import CONFIG
from nmt.runs.pair import load_text
from nmt.text import subwords
from nmt.text.pipeline import TextPipeline
from nmt.text.subwords import NONE
from nmt.text.vocab import Vocab

Section = dict[str, object]  # a section of a configuration by key; its values may be sections too
Config = TypeVar("Config")


def read_yaml(directory: Path) -> Section:
    """Read the sections of a run's config.yaml. CheckpointError if it is missing or damaged."""
    path = directory / CONFIG
    try:
        with manifest.open_verified(directory, CONFIG, manifest.load(directory)) as stream:
            text = stream.read().decode("utf-8")
    except DataError as error:
        raise CheckpointError(str(error)) from error
    except UnicodeDecodeError as error:
        raise damage_error(path, error) from error
    return parse_yaml(text, path)


def parse_yaml(text: str, path: Path) -> Section:
    """Parse the sections of a configuration. CheckpointError, which names `path`, if it is damaged."""
    try:
        content = OmegaConf.to_container(yaml_text.parse(text), resolve=True)
        if not isinstance(content, dict):
            raise ValueError("sections are missing")
    except (ValueError, AttributeError, OmegaConfBaseException) as error:
        raise damage_error(path, error) from error
    return cast(Section, content)


def data_settings(sections: Section, path: Path) -> DataConfig:
    """Convert the section `data`. CheckpointError, which names `path`, if it is missing or damaged."""
    try:
        data = fill_dataclass(DataConfig, sections["data"])
        settings.check(data, "data.")
    except (UserError, OmegaConfBaseException, ValueError, TypeError, KeyError, AttributeError) as error:
        raise damage_error(path, error) from error
    return data


def damage_error(path: Path, error: Exception) -> CheckpointError:
    """The error for a configuration that cannot be read."""
    return CheckpointError(f"{path}: damaged configuration ({reason(error)}); copy it again")


def read_data(directory: Path) -> DataConfig:
    """Verify a run's files, and read section `data` of its configuration. CheckpointError if damaged."""
    run_directory.check_version(directory)
    run_directory.verify(directory)
    return data_settings(read_yaml(directory), directory / CONFIG)


def fill_dataclass(kind: type[Config], content: object) -> Config:
    """Fill a dataclass from a section. OmegaConfBaseException for an unknown key or a wrong type."""
    return cast(Config, OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(kind), content)))


def load_side(directory: Path, side: str, data: DataConfig) -> tuple[TextPipeline, Vocab]:
    """Load text pipeline and vocabulary of a side of a run. CheckpointError if one is missing or damaged."""
    config = data.source if side == "source" else data.target
    wanted = config.subword != NONE and bool(data.bpe_merges or config.codes)
    if wanted and not subwords.side_file(directory, side):
        raise CheckpointError(
            f"{directory}: damaged run directory: {directory / f'{side}.codes'}: missing, but the run has "
            "subwords; was it copied whole?"
        )
    return load_text(directory, side, config, data.tags, data.shared_vocabulary)
