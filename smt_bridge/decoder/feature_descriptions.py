"""Descriptions of the features of a phrase-based system and of their scores, for reports and pages."""

from dataclasses import dataclass

from smt_bridge.decoder.feature_lines import CLASS_LM, LANGUAGE_MODELS, REORDERING
from smt_bridge.decoder.system import PhraseBasedSystem
from smt_bridge.moses.reordering import ReorderingType

FEATURE_KINDS = {
    "PhraseDictionaryMemory": "phrase table", REORDERING: "lexical reordering",
    **dict.fromkeys(LANGUAGE_MODELS, "count language model"), CLASS_LM: "language model of word classes",
    "NeuralTranslation": "attention model", "OpSequenceModel": "operation sequence model",
    "NNJM": "joint model (NNJM)", "CSLM": "neural language model (CSLM)", "Distortion": "distance of jumps",
    "WordPenalty": "words, negative", "PhrasePenalty": "phrases", "UnknownWordPenalty": "unknown words",
    "WordTranslationFeature": "word translations", "TargetWordInsertionFeature": "target words without link",
    "SourceWordDeletionFeature": "source words without link", "PhraseLengthFeature": "lengths of phrases",
}  # fmt: skip
TABLE_SCORES = (
    "log p of the source phrase", "of its words, one by one",
    "log p of the target phrase", "of its words, one by one",
)  # fmt: skip
OPERATION_SCORES = ("log10 p", "gap widths", "gaps opened", "open gaps", "unlinked source words")
LM_SCORES = ("log p", "unknown words")


@dataclass(frozen=True)
class FeatureDescription:
    """A feature whose values n-best lists print, with descriptions."""

    name: str  # such as LM0
    what: str  # such as "count language model"; may be empty
    scores: list[str]  # a description of each score; empty for a single score, or if there are none
    weights: list[float]


def describe_scores(system: PhraseBasedSystem) -> list[FeatureDescription]:
    """Describe the features of a system whose scores its n-best lists print, in their order."""
    kinds = {feature.name: feature.kind for feature in system.ini.features}
    rows = []
    for name, columns in system.printed.items():
        scores = score_descriptions(kinds[name], len(system.weights[name]), system.reordering)
        rows.append(
            FeatureDescription(
                name,
                FEATURE_KINDS.get(kinds[name], ""),
                [scores[column] for column in columns] if scores and len(columns) > 1 else [],
                [system.weights[name][column] for column in columns],
            )
        )
    return rows


def score_descriptions(kind: str, count: int, reordering: ReorderingType) -> list[str]:
    """Descriptions of the `count` scores of a feature of kind `kind`; empty if there are none. Table columns
    beyond those of Moses are numbered. `reordering`: the type of the reordering model."""
    if kind == "PhraseDictionaryMemory" and count >= len(TABLE_SCORES):
        return [*TABLE_SCORES, *(f"column {number}" for number in range(len(TABLE_SCORES) + 1, count + 1))]
    if kind == REORDERING:
        return reordering.descriptions
    if kind == "OpSequenceModel" and count == len(OPERATION_SCORES):
        return list(OPERATION_SCORES)
    return list(LM_SCORES) if kind in LANGUAGE_MODELS and count == len(LM_SCORES) else []
