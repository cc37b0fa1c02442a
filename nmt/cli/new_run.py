"""What nmt-train checks before it makes a run directory."""

from pathlib import Path
from typing import Any

from nmt import config as configuration
from nmt import run_directory
from nmt.data.text import check_language
from nmt.errors import ConfigError

SIDE_FILES = ("vocab_file", "codes")
FILES = (
    "init_from", "data.train_source", "data.train_target", "data.phrase_table", "data.dev_source",
    "data.dev_target", "data.train_text", "data.dev_text",
    *(f"data.{side}.{key}" for side in ("source", "target") for key in SIDE_FILES),
)  # fmt: skip


def check(config: Any, given: str) -> None:
    """Of a run that is begun: nothing that is read lies in its folder, its languages are some, the run that
    it starts from is there.

    ConfigError or CheckpointError before any work.
    """
    if config.init_from:
        run_directory.check_version(Path(config.init_from))
    for side in (config.data.target,) if config.lm.type else (config.data.source, config.data.target):
        check_language(side)
    for key, path in {
        "CONFIG.yaml": given,
        **{key: configuration.value_of(config, key) for key in FILES},
    }.items():
        if path and inside(path, config.run):
            raise ConfigError(
                f"{key} {path}: lies in the run directory {config.run}, which this command makes; name "
                "another directory with run="
            )


def inside(path: str, folder: str) -> bool:
    return Path(folder).resolve() in (Path(path).resolve(), *Path(path).resolve().parents)
