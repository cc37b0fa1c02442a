"""What the features of a moses.ini are, and their scores, in words: for reports and pages."""

from dataclasses import dataclass

from smt_bridge.decoder.feature_lines import LANGUAGE_MODELS, REORDERING
from smt_bridge.decoder.system import System

WHAT = {
    "PhraseDictionaryMemory": "phrase table", REORDERING: "lexical reordering",
    **dict.fromkeys(LANGUAGE_MODELS, "count language model"), "NeuralTranslation": "attention model",
    "NNJM": "joint model (NNJM)", "CSLM": "neural language model (CSLM)", "Distortion": "distance of jumps",
    "WordPenalty": "words, negative", "PhrasePenalty": "phrases", "UnknownWordPenalty": "unknown words",
}  # fmt: skip
TABLE = (
    "log p of the source phrase", "of its words, one by one",
    "log p of the target phrase", "of its words, one by one",
)  # fmt: skip
ORIENTATIONS = [
    f"{kind}, {side}" for side in ("from the last phrase", "to the next phrase")
    for kind in ("monotone", "swap", "discontinuous")
]  # fmt: skip
LANGUAGE_MODEL = ("log p", "unknown words")


@dataclass(frozen=True)
class FeatureName:
    """A feature whose values n-best lists print."""

    name: str  # LM0
    what: str  # count language model; empty where nobody says it
    scores: list[str]  # of each of them; empty where there is one, or where nobody says it
    weights: list[float]


def feature_names(system: System) -> list[FeatureName]:
    """The features of a system, in the order of its n-best lists."""
    kinds = {feature.name: feature.kind for feature in system.ini.features}
    rows = []
    for name, columns in system.printed.items():
        scores = scores_of(kinds[name], len(system.weights[name]))
        rows.append(
            FeatureName(
                name,
                WHAT.get(kinds[name], ""),
                [scores[column] for column in columns] if scores and len(columns) > 1 else [],
                [system.weights[name][column] for column in columns],
            )
        )
    return rows


def scores_of(kind: str, count: int) -> list[str]:
    """The names of a feature's scores; columns beyond those of Moses are numbered."""
    if kind == "PhraseDictionaryMemory" and count >= len(TABLE):
        return [*TABLE, *(f"column {number}" for number in range(len(TABLE) + 1, count + 1))]
    if kind == REORDERING and count == len(ORIENTATIONS):
        return ORIENTATIONS
    return list(LANGUAGE_MODEL) if kind in LANGUAGE_MODELS and count == len(LANGUAGE_MODEL) else []
