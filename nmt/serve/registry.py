"""The kinds of engines: those of this package, and those that installed packages name in their entry points
`nmt.engines`."""

from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path

from nmt.errors import ConfigError
from nmt.serve.config import EngineConfig
from nmt.serve.engine import Engine, EngineKind
from nmt.serve.runs import Runs

GROUP = "nmt.engines"
ENGINES: dict[str, EngineKind] = {"run": Runs()}


def kinds() -> Mapping[str, EngineKind]:
    """All kinds by name. ConfigError for an entry point that cannot be imported."""
    found = dict(ENGINES)
    for entry in entry_points(group=GROUP):
        try:
            found.setdefault(entry.name, entry.load()())
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"entry point {entry.name} of {GROUP}: {error}; install its package again"
            ) from error
    return found


def load(path: str, config: EngineConfig) -> Engine:
    """The engine of a path. UserError, in one line, for what is no engine or cannot be loaded."""
    known = kinds()
    for kind in known.values():
        if kind.reads(path):
            return kind.load(path, config)
    first = path.split(",")[0]
    what = "is no engine" if Path(first).exists() else "not there"
    raise ConfigError(
        f"{path}: {what}; expected a run directory, several with commas between them, a moses.ini, its "
        f"folder, or the folder of a hybrid system (kinds: {', '.join(known)})"
    )
