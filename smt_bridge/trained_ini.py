"""The moses.ini of a trained model: its features, with the initial weights of Moses' train-model.perl; and
the words that its sparse features are about."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nmt.io import files
from smt_bridge.config import TrainConfig
from smt_bridge.extraction.config import PHI_SCORES
from smt_bridge.extraction.scores import count_scores
from smt_bridge.moses.ini import Weights

WEIGHTS: Weights = {
    "Distortion0": [0.3], "LM0": [0.5], "WordPenalty0": [-1.0],
    "PhrasePenalty0": [0.2], "TranslationModel0": [0.2] * PHI_SCORES,
    "UnknownWordPenalty0": [1.0],
}  # fmt: skip
REORDERING_WEIGHT, CLASS_LM_WEIGHT, OSM_WEIGHTS = 0.3, 0.2, [0.08, -0.02, 0.02, -0.001, 0.03]
CLASS_OSM_WEIGHT = 0.04


class ModelFiles(NamedTuple):
    """The names of the files of a model."""

    table: str
    reordering: str
    lm: str
    class_lm: str
    classes: str
    osm: str
    class_osm: str
    osm_classes: tuple[str, str]  # of the source side and the target side
    frequent: tuple[str, str]  # likewise


def ini_lines(config: TrainConfig, names: ModelFiles) -> list[str]:
    """The lines of the ini of a model with these settings. `names`: its files, relative to the ini."""
    weights = dict(WEIGHTS)
    weights["TranslationModel0"] = WEIGHTS["TranslationModel0"] + [0.0] * count_size(config)
    if config.reordering:
        weights = {"LexicalReordering0": [REORDERING_WEIGHT] * config.extract.reordering.scores, **weights}
    if config.class_lm:
        weights["ClassLM0"] = [CLASS_LM_WEIGHT]
    if config.osm:
        weights["OpSequenceModel0"] = OSM_WEIGHTS
    if config.osm_classes:
        weights["OpSequenceModel1"] = [CLASS_OSM_WEIGHT]
    return [
        "# Where paths are relative, start Moses in this folder. smt-decode finds them from anywhere.",
        "", "[input-factors]", "0", "", "[mapping]", "0 T 0", "", "[distortion-limit]",
        str(config.distortion_limit), "", "[feature]", *features(config, names), "",
        "[weight]", *(f"{name}= {' '.join(map(str, values))}" for name, values in weights.items()),
    ]  # fmt: skip


def count_size(config: TrainConfig) -> int:
    """The number of scores of the count feature."""
    return len(count_scores(1, config.extract.count_feature))


def features(config: TrainConfig, names: ModelFiles) -> Iterator[str]:
    """Yield the lines of [feature]."""
    yield from ("UnknownWordPenalty", "WordPenalty", "PhrasePenalty")
    yield (
        f"PhraseDictionaryMemory name=TranslationModel0 num-features={PHI_SCORES + count_size(config)} "
        f"path={names.table} input-factor=0 output-factor=0"
    )
    if config.reordering:
        reordering = config.extract.reordering
        yield (
            f"LexicalReordering name=LexicalReordering0 num-features={reordering.scores} "
            f"type={reordering.option} input-factor=0 output-factor=0 path={names.reordering}"
        )
    yield from ("Distortion", f"KENLM name=LM0 factor=0 path={names.lm} order={config.order}")
    if config.class_lm:
        order = config.class_order
        yield f"ClassLM name=ClassLM0 path={names.class_lm} classes={names.classes} order={order}"
    if config.osm:
        yield f"OpSequenceModel name=OpSequenceModel0 num-features=5 path={names.osm}"
    if config.osm_classes:
        source, target = names.osm_classes
        yield (
            "OpSequenceModel name=OpSequenceModel1 num-features=1 support-features=no "
            f"path={names.class_osm} source-classes={source} target-classes={target}"
        )
    if config.sparse_features:
        source, target = names.frequent
        yield f"TargetWordInsertionFeature name=TWI factor=0 path={target}"
        yield f"SourceWordDeletionFeature name=SWD factor=0 path={source}"
        yield (
            "WordTranslationFeature name=WT input-factor=0 output-factor=0 simple=1 source-context=0 "
            f"target-context=0 source-path={source} target-path={target}"
        )
        yield "PhraseLengthFeature name=PL"


def write_frequent(text: str, path: Path, count: int) -> None:
    """Write the `count` most frequent words of a text, given by its path, one a line, as Moses'
    build-sparse-features.perl does: the most frequent first, those of the same frequency in the order of
    their bytes. UserError if that fails."""
    counts = Counter(word for line in files.read_lines(text) for word in files.split_words(line))
    words = sorted(counts, key=lambda word: (-counts[word], word.encode()))
    files.write_text(path, words[:count])
