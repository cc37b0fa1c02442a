"""What nmt-train checks before it makes a run directory."""

import os
from pathlib import Path
from typing import Any

from nmt import config as configuration
from nmt.data.text import check_language
from nmt.errors import ConfigError


def check(config: Any, given: str) -> None:
    """Of a run that is begun: nothing that is read lies in its folder, and its languages are some. ConfigError before any work."""
    for side in (config.data.target,) if config.lm.type else (config.data.source, config.data.target):
        check_language(side)
    named = {key: configuration.value_of(config, key) for key in configuration.all_keys() if key not in ("run", "data.cache")}
    for key, path in {"CONFIG.yaml": given, **named}.items():
        if isinstance(path, str) and inside(path, config.run):
            raise ConfigError(f"{key} {path}: lies in the run directory {config.run}, which this command makes; name another directory with run=")


def inside(path: str, folder: str) -> bool:
    return os.path.lexists(path) and Path(folder).resolve() in (Path(path).resolve(), *Path(path).resolve().parents)
