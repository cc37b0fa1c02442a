"""The user's own modules, imported before a command starts: NMT_PLUGINS="my_model,my_feature".

Each adds its classes to the registries (plain dicts, see CONTRIBUTING.md): `MODELS["mine"] = MyModel`. Worker
processes inherit the variable, so they know the same classes.
"""

import importlib
import os

from nmt.errors import ConfigError

VARIABLE = "NMT_PLUGINS"


def named() -> list[str]:
    """The modules that NMT_PLUGINS names, separated by commas."""
    return [name for part in os.environ.get(VARIABLE, "").split(",") if (name := part.strip())]


def load() -> None:
    """Import them. ConfigError for one that cannot be imported."""
    for name in named():
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ConfigError(f"{VARIABLE}: {name}: {error}; is its folder in PYTHONPATH?") from error
