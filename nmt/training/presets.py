"""The presets of settings, and which of them suits a text. Torch is not imported."""

from dataclasses import dataclass
from pathlib import Path

from nmt.errors import ConfigError

PRESETS = Path(__file__).parents[1] / "presets"
SMALL, TRANSFORMER, LARGE = "small", "transformer-small", "large"
LARGE_TEXT = 200_000  # pairs from which the preset `large` is worth its time


@dataclass(frozen=True)
class Suited:
    """A preset, and the texts and times from which on it is the better one."""

    preset: str
    pairs: int = 0
    minutes: float = 0.0  # of training; 0: also where no limit is set


# Of the rows that a text reaches the last one counts. A row for the Transformer has to be measured, by
# recipes/presets/choice.py: development BLEU after equal work is in docs/results.md.
SUITED = (Suited(SMALL), Suited(LARGE, pairs=LARGE_TEXT))


def choose_preset(pairs: int, minutes: float) -> str:
    """The preset for so many sentence pairs and minutes of training; 0 minutes: no limit is set."""
    return [row.preset for row in SUITED if pairs >= row.pairs and minutes >= row.minutes][-1]


def preset_file(preset: str) -> Path:
    """The file of a preset. ConfigError for an unknown one."""
    path = PRESETS / f"{preset}.yaml"
    if not path.exists():
        names = ", ".join(sorted(file.stem for file in PRESETS.glob("*.yaml")))
        raise ConfigError(f"--preset {preset}: unknown, expected one of {names}")
    return path
