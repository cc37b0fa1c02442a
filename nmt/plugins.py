"""The user's own modules, imported before a command starts: NMT_PLUGINS="my_model,my_feature".

Each adds its classes to the registries (plain dicts, see CONTRIBUTING.md): `MODELS["mine"] = MyModel`. Worker
processes inherit the variable, so they know the same classes.
"""

import importlib
import os
import traceback

from nmt.errors import ConfigError

VARIABLE = "NMT_PLUGINS"


def named() -> list[str]:
    """The modules that NMT_PLUGINS names, separated by commas."""
    return [name for part in os.environ.get(VARIABLE, "").split(",") if (name := part.strip())]


def load() -> None:
    """Import them. ConfigError for one that is not there, that raises an error or that ends the process."""
    for name in named():
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            if isinstance(error, ModuleNotFoundError) and error.name == name.partition(".")[0]:
                why = f"{name}: {error}; is its folder in PYTHONPATH?"
            else:
                why = f"{place_of(error)}: {type(error).__name__}: {error}; mend {name}, or leave it out"
            raise ConfigError(f"{VARIABLE}: {why}") from error


def place_of(error: BaseException) -> str:
    """Where a module went wrong: `file:line`."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{frame.filename}:{frame.lineno}"
