"""From parallel text to a model folder, step by step; a step whose result is there is not done again.

    alignment.gz   phrase-table.gz   reordering-table.wbe-msd-bidirectional-fe.gz   lm.arpa.gz   moses.ini (relative paths)

Every result is written whole or not at all, and `train.json` tells what it was made from, so that a killed training goes on.
"""

import hashlib
import json
import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nmt import files
from nmt.errors import ConfigError, DataError
from nmt.lm import arpa, kneser_ney
from smt_bridge import alignment
from smt_bridge.extraction.tables import ExtractConfig, Inputs, Outputs, build

log = logging.getLogger("nmt.smt_train")

ALIGNMENT, TABLE, LM, INI = "alignment.gz", "phrase-table.gz", "lm.arpa.gz", "moses.ini"
LEXICAL = "lex"  # lex.e2f and lex.f2e
REORDERING = "reordering-table.wbe-msd-bidirectional-fe.gz"

# The weights that Moses' train-model.perl writes.
WEIGHTS = {
    "LexicalReordering0": [0.3] * 6, "Distortion0": [0.3], "LM0": [0.5], "WordPenalty0": [-1.0], "PhrasePenalty0": [0.2], "TranslationModel0": [0.2] * 4,
    "UnknownWordPenalty0": [1.0],
}  # fmt: skip


@dataclass
class TrainConfig:
    source: str
    target: str
    alignment: str = ""  # points of another tool, instead of aligning
    lm_text: str = ""  # text of the language model; the target side unless given
    method: str = "fast_align"
    symmetrization: str = "grow-diag-final-and"
    order: int = 5
    reordering: bool = True
    distortion_limit: int = 6
    extract: ExtractConfig = field(default_factory=ExtractConfig)


def train(folder: Path, config: TrainConfig) -> None:
    """Do the steps that are missing. ConfigError for a folder that other settings or other texts have begun."""
    config.extract.check()
    files.check_parallel(config.source, config.target)
    start(folder, config)
    steps: list[tuple[str, Callable[[Path], Any]]] = [
        (ALIGNMENT, lambda path: align(path, config)),
        (TABLE, lambda path: extract(folder, config)),
        (LM, lambda path: estimate(path, config)),
        (INI, lambda path: write_ini(path, config)),
    ]
    for number, (name, step) in enumerate(steps, 1):
        if (folder / name).exists():
            log.info("step %d of %d: %s is there", number, len(steps), name)
            continue
        begin = time.monotonic()
        step(folder / name)
        log.info("step %d of %d: %s, %.0f s", number, len(steps), name, time.monotonic() - begin)


def start(folder: Path, config: TrainConfig) -> None:
    """Make the folder, or check that it belongs to these settings; sweep up what a killed step left."""
    settings = asdict(config)
    settings["extract"].pop("memory")  # bears on no result
    for name in ("source", "target", "alignment", "lm_text"):
        settings[name] = digest(settings[name]) if settings[name] else ""
    place = folder / "train.json"
    try:
        if place.exists():
            before = json.loads(place.read_text(encoding="utf-8"))
            changed = [key for key in settings if settings[key] != before.get(key)]
            if changed:
                raise ConfigError(f"{folder}: was begun with another {', '.join(changed)}; name another folder, or remove this one to start anew")
        elif folder.exists() and any(folder.iterdir()):
            raise ConfigError(f"{folder}: is not empty and no model that smt-train began; name another folder")
        else:
            folder.mkdir(parents=True, exist_ok=True)
            files.write_text(place, [json.dumps(settings)])
        for left in [*folder.glob("*.part*"), *folder.glob("smt-extract.*")]:
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    except OSError as error:
        raise files.cannot_write(folder, error) from error
    except ValueError as error:
        raise DataError(f"{place}: damaged; remove {folder} to start anew") from error


def digest(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot read: {error.strerror}") from error


def align(path: Path, config: TrainConfig) -> None:
    if config.alignment:
        files.check_parallel(config.source, config.alignment)
        files.write_text(path, map(alignment.line_of, alignment.read(config.alignment)))
        return
    directions = alignment.both(*alignment.read_texts(config.source, config.target), config.method)
    files.write_text(path, map(alignment.line_of, alignment.symmetrized(*directions, config.symmetrization)))


def extract(folder: Path, config: TrainConfig) -> None:
    """Both tables; the phrase table gets its name last, so that the step is done once that is there."""
    beside = folder / f"{TABLE}.part.gz"
    inputs = Inputs(config.source, config.target, str(folder / ALIGNMENT))
    pairs = build(inputs, Outputs(str(beside), str(folder / REORDERING) if config.reordering else None, str(folder / LEXICAL)), config.extract)
    beside.rename(folder / TABLE)
    log.info("%s phrase pairs", f"{pairs:,}")


def estimate(path: Path, config: TrainConfig) -> None:
    """A Kneser-Ney model of the target text, with fallback discounts where the text is too small."""
    settings = kneser_ney.KneserNeyConfig(config.order, discount_fallback=kneser_ney.FALLBACK)
    text = config.lm_text or config.target
    model = kneser_ney.estimate((files.split_words(line) for line in files.read_lines(text)), settings)
    arpa.write(model, path)


def write_ini(path: Path, config: TrainConfig) -> None:
    features = [
        "UnknownWordPenalty",
        "WordPenalty",
        "PhrasePenalty",
        f"PhraseDictionaryMemory name=TranslationModel0 num-features=4 path={TABLE} input-factor=0 output-factor=0",
        f"LexicalReordering name=LexicalReordering0 num-features=6 type=wbe-msd-bidirectional-fe-allff input-factor=0 output-factor=0 path={REORDERING}",
        "Distortion",
        f"KENLM name=LM0 factor=0 path={LM} order={config.order}",
    ]
    weights = dict(WEIGHTS)
    if not config.reordering:
        del features[4], weights["LexicalReordering0"]
    lines = [
        "# Start Moses in this folder: the paths are relative to it. smt-decode finds them from anywhere.",
        "", "[input-factors]", "0", "", "[mapping]", "0 T 0", "", "[distortion-limit]", str(config.distortion_limit), "", "[feature]", *features, "",
        "[weight]", *(f"{name}= {' '.join(map(str, values))}" for name, values in weights.items()),
    ]  # fmt: skip
    files.write_text(path, lines)
