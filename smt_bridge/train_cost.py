"""Estimate what the training of a phrase-based model takes: phrase pairs, time, disk and memory.
docs/scale.md has the cost model and how it was fitted."""

import shutil
from dataclasses import astuple, dataclass
from pathlib import Path

from nmt.errors import ConfigError
from nmt.io import files
from nmt.ngram import disk_counts
from smt_bridge.config import TrainConfig

# Fitted to generated text of 22 words a side, 10,000 to 200,000 pairs, at most 7 words a phrase.
PHRASE_PAIRS, PHRASE_GROWTH = 3.5, 0.931  # phrase pairs: 3.5 words^0.931, of the words of both sides
WORD_PAIRS, WORD_GROWTH = 148.0, 0.717  # pairs of words that occur together: 148 words^0.717
ALIGNMENT_SECONDS, ALIGNMENT_GROWTH = 3.7e-6, 1.03  # CPU seconds: 3.7e-6 words^1.03
EXTRACTION_SECONDS, LM_SECONDS = 25e-6, 6e-6  # CPU seconds per word
# Size of the model's files: bytes per phrase pair, per word of the language model's text, and per word of
# both sides.
TABLE_BYTES, LM_BYTES, ALIGNMENT_BYTES = 32.0, 29.0, 0.33
# Temporary files: bytes per phrase pair in extraction, and per word for n-grams that are counted on disk.
WORK_BYTES, COUNT_BYTES = 500.0, 111.0
# Measured on Multi30k, per word of both sides: bytes of the copied texts and of the alignment models; CPU
# seconds and bytes of the operation sequence model.
KEPT_BYTES = 2.5
OSM_SECONDS, OSM_BYTES = 12e-6, 28.0
# Compilation: CPU seconds per phrase pair and per word of the language model's text. Compiled files: bytes
# per phrase pair, by the bits of a quantized score (0: exact), and per word of that text.
COMPILED_SECONDS, COMPILED_LM_SECONDS = 8e-6, 3e-6
COMPILED_BYTES, COMPILED_LM_BYTES = {0: 67.0, 8: 35.0, 16: 50.0}, 22.0
# Peak memory of alignment: bytes per sentence pair, per pair of words that occur together, and in any case.
ALIGNED_PAIR_BYTES, WORD_PAIR_BYTES, BASE_BYTES = 1150.0, 4.0, 190e6
# Pruning, measured on Multi30k (840,697 phrase pairs, with reordering): CPU seconds per phrase pair, more by
# entropy, which holds all pairs in memory: bytes per phrase pair.
PRUNED_SECONDS, ENTROPY_SECONDS, ENTROPY_BYTES = 20e-6, 18e-6, 130.0


@dataclass(frozen=True)
class TextSize:
    """The size of the texts that a model is trained on."""

    pairs: int
    words: int  # of both sides
    lm_words: int


@dataclass(frozen=True)
class TrainingCost:
    """Estimated time, memory and disk of a training."""

    phrase_pairs: float
    alignment: float  # seconds, as all steps
    extraction: float
    language_model: float
    compilation: float
    work: float  # bytes of files that are removed after their step
    model: float  # bytes of the model's files
    memory: float  # bytes of alignment or pruning, which grow with the texts; those of extraction are bounded


def measure_texts(config: TrainConfig) -> TextSize:
    """Count the lines and words of the training texts, which must be files. A word is counted at each blank
    and each end of a line. DataError for a text that cannot be read."""
    pairs, words = count_words(config.source)
    target_words = count_words(config.target)[1]
    lm_words = count_words(config.lm_text)[1] if config.lm_text else target_words
    return TextSize(pairs, words + target_words, lm_words)


def count_words(path: str) -> tuple[int, int]:
    """Count the lines and words of a text, with a word at each blank and each end of a line."""
    lines = blanks = 0
    for block in files.read_blocks(path):
        lines, blanks = lines + block.count(b"\n"), blanks + block.count(b" ")
    return lines, lines + blanks


def estimate(size: TextSize, config: TrainConfig, processors: int, workers: int) -> TrainingCost:
    """Estimate the cost of a training. `processors`: those of this machine, all of which align; `workers`:
    processes of the extraction. With --add the time of alignment is left out: only the new pairs are aligned,
    by models that are already trained."""
    phrase_pairs = PHRASE_PAIRS * size.words**PHRASE_GROWTH
    word_pairs = WORD_PAIRS * size.words**WORD_GROWTH
    lm_words = size.lm_words * (2 if config.class_lm else 1)  # the model of classes has about as many n-grams
    in_memory = disk_counts.BYTES_PER_NGRAM * config.order * size.lm_words
    on_disk = in_memory > 1e9 * config.extract.memory * workers
    counts = COUNT_BYTES * size.lm_words if on_disk else 0.0
    osm_words = size.words if config.osm else 0
    alignment = ALIGNMENT_SECONDS * size.words**ALIGNMENT_GROWTH / processors
    memory = ALIGNED_PAIR_BYTES * size.pairs + WORD_PAIR_BYTES * word_pairs
    pruning = PRUNED_SECONDS * phrase_pairs if config.prune.is_active() else 0.0
    if config.prune.prune_entropy:
        pruning += ENTROPY_SECONDS * phrase_pairs
        memory = max(memory, ENTROPY_BYTES * phrase_pairs)
    compilation, compiled = 0.0, 0.0
    if config.compiled:
        compilation = COMPILED_SECONDS * phrase_pairs + COMPILED_LM_SECONDS * size.lm_words
        compiled = COMPILED_BYTES[config.compiled.quantize] * phrase_pairs
        compiled += COMPILED_LM_BYTES * size.lm_words
    return TrainingCost(
        phrase_pairs=phrase_pairs,
        alignment=0.0 if config.alignment or config.add else alignment,
        extraction=EXTRACTION_SECONDS * size.words / workers + pruning,
        language_model=LM_SECONDS * lm_words + OSM_SECONDS * osm_words,
        compilation=compilation,
        work=max(WORK_BYTES * phrase_pairs, counts),
        model=TABLE_BYTES * phrase_pairs
        + LM_BYTES * lm_words
        + OSM_BYTES * osm_words
        + (ALIGNMENT_BYTES + KEPT_BYTES) * size.words
        + compiled,
        memory=BASE_BYTES + memory,
    )


def total_size(folder: Path, config: TrainConfig) -> TextSize:
    """The size of all texts of a training: those of `config`, and those in the folder of a trained model to
    which they are added, if any, whose names there are source.gz and target.gz. DataError for unreadable
    texts."""
    size = measure_texts(config)
    if not config.add:
        return size
    earlier = measure_texts(TrainConfig(str(folder / "source.gz"), str(folder / "target.gz")))
    return TextSize(*map(sum, zip(astuple(size), astuple(earlier), strict=True)))


def describe(size: TextSize, cost: TrainingCost) -> str:
    """Describe the size of the texts and the estimated cost in one line, for the log."""
    steps = cost.alignment, cost.extraction, cost.language_model
    compilation = f", {cost.compilation / 60:,.1f} to compile them" if cost.compilation else ""
    return (
        f"{size.pairs:,} sentence pairs, {size.words:,} words: about {cost.phrase_pairs / 1e6:,.1f} million "
        f"phrase pairs; {' + '.join(f'{seconds / 60:,.1f}' for seconds in steps)} minutes for alignment, "
        f"tables and language model{compilation}; {format_bytes(cost.memory)} of memory; "
        f"{format_bytes(cost.work + cost.model)} of disk, {format_bytes(cost.model)} of them for the model"
    )


def format_bytes(size: float) -> str:
    """Format a number of bytes in GB or, below 1 GB, in MB."""
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"


def check_disk(folder: Path, size: TextSize, cost: TrainingCost) -> None:
    """ConfigError if the disk of the folder, which may not exist yet, has no room for the training. What the
    folder holds already counts as free."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.is_dir())
    free = shutil.disk_usage(existing).free
    if folder.is_dir():
        free += sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    needed = cost.work + cost.model
    if needed > free:
        pairs = int(0.9 * size.pairs * free / needed)
        raise ConfigError(
            f"{folder}: training takes about {format_bytes(needed)} of disk there, and {format_bytes(free)} "
            f"are free; name a folder on a larger disk, or train on fewer pairs (about {pairs:,} fit) or "
            "with a smaller --max-length"
        )
