"""CTranslate2's translator for models that read extra tokens around a sentence, such as those that name its
languages. These tokens, the frame, are added to what CTranslate2 reads and removed from what it returns.

Runs of nmt-train have an empty frame: CTranslate2 itself adds the end symbol to the source. Models of other
toolkits may need one; nmt-import stores it in the run.
"""

import contextlib
import ctypes
import importlib.util
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.compute.resources import processors
from nmt.errors import CheckpointError, ConfigError
from nmt.formats.ctranslate2 import read_vocabularies
from nmt.text.vocab import BOS, SPECIALS, Vocab

if TYPE_CHECKING:
    import numpy as np
    from ctranslate2 import TranslationResult, Translator
    from numpy.typing import NDArray

POSITIONS = 2048  # number of positions that have vectors in the model of an exported run
SCORED_TOKENS = 2048  # tokens of a call that scores pairs
MOST_THREADS = 4  # unless the user sets more; a small model gains nothing from more
CUBLAS = "libcublas.so.12"  # that CTranslate2 4 is built for
NO_ENGINE = "ctranslate2 is not installed; pip install 'nmt-smt[ctranslate2]'"

Units = Sequence[str]


@dataclass
class Frame:
    """The extra tokens that a model reads around a sentence, and the limits of its translations."""

    source_prefix: list[str] = field(default_factory=list)
    source_suffix: list[str] = field(default_factory=list)
    target_prefix: list[str] = field(default_factory=list)  # forced, so not part of any score
    unwritten: list[str] = field(default_factory=lambda: [SPECIALS[BOS]])  # in no translation
    positions: int = POSITIONS  # tokens of the longest sentence, with frame and end symbol

    @property
    def source_room(self) -> int:
        """The largest number of units of a source sentence."""
        return self.positions - 2 - len(self.source_prefix) - len(self.source_suffix)

    @property
    def target_room(self) -> int:
        """The largest number of units of a translation, without the end symbol."""
        return self.positions - 2 - len(self.target_prefix)


class FramedTranslator:
    """A model that CTranslate2 has loaded, with the tokens around its sentences."""

    def __init__(self, translator: "Translator", frame: Frame, directory: Path) -> None:
        """`directory`: the folder of the model."""
        self.translator, self.frame, self.directory = translator, frame, directory
        self.on_gpu = translator.device == "cuda"
        self.columns: NDArray[np.int64] | None = None  # see `find_columns`; made when first needed

    def sources(self, sentences: Sequence[Units]) -> list[list[str]]:
        """Sentences as the model reads them."""
        frame = self.frame
        return [[*frame.source_prefix, *sentence, *frame.source_suffix] for sentence in sentences]

    def targets(self, texts: Sequence[Units]) -> list[list[str]]:
        """Targets, or beginnings of targets, as the model reads them."""
        return [[*self.frame.target_prefix, *text] for text in texts]

    def translate(
        self,
        sentences: Sequence[Units],
        prefixes: Sequence[Units],
        longest: int,
        shortest: int,
        **settings: object,
    ) -> "list[TranslationResult]":
        """Search for translations; read the results with `hypotheses`. `prefixes`: what each translation
        begins with, all of one length; `longest`, `shortest`: the bounds of its units, with the end symbol
        and without. `settings`: others of `Translator.translate_batch`."""
        starts, extra = self.targets(prefixes), len(self.frame.target_prefix)
        results: list[TranslationResult] = self.translator.translate_batch(
            self.sources(sentences),
            starts if any(starts) else None,
            max_input_length=0,
            max_decoding_length=longest + extra,
            min_decoding_length=shortest and shortest + extra,
            **settings,
        )
        return results

    def hypotheses(
        self, result: "TranslationResult", source: Units
    ) -> Iterator[tuple[Units, float, Sequence[Sequence[float]]]]:
        """Yield the units, natural log p and attention of each hypothesis of a sentence: weights over the
        units of `source` for each unit; empty if the search did not ask for them."""
        skip, first = len(self.frame.target_prefix), len(self.frame.source_prefix)
        framed = bool(skip or first or self.frame.source_suffix)
        attention = result.attention or [()] * len(result.hypotheses)
        for units, log_prob, rows in zip(result.hypotheses, result.scores, attention, strict=True):
            if framed:
                units, rows = units[skip:], [row[first : first + len(source)] for row in rows[skip:]]
            yield units, log_prob, rows

    def score(self, pairs: Sequence[tuple[Units, Units]]) -> list[list[float]]:
        """Natural log p of each target unit and of the end symbol. `pairs`: (source units, target units)."""
        skip = len(self.frame.target_prefix)
        results = self.translator.score_batch(
            self.sources([source for source, _ in pairs]),
            self.targets([target for _, target in pairs]),
            max_batch_size=SCORED_TOKENS,
            batch_type="tokens",
            max_input_length=0,
        )
        return [list(result.log_probs)[skip:] for result in results]

    def next_log_probs(self, source: Units, prefixes: Sequence[Units], words: Vocab) -> "NDArray[np.float64]":
        """Natural log p of every next unit, by its id in the target vocabulary `words`, after each of R
        prefixes, which have the same length: (R, V); -inf for an id that the model lacks."""
        import numpy as np

        results = self.translate(
            [source] * len(prefixes), prefixes, len(prefixes[0]) + 1, 0, beam_size=1, return_logits_vocab=True
        )
        rows = np.stack([np.asarray(result.logits[0][-1], np.float32) for result in results])
        logits = rows.astype(np.float64)
        logits -= logits.max(1, keepdims=True)
        log_probs: NDArray[np.float64] = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        if self.columns is None:
            self.columns = self.find_columns(words)
        ordered: NDArray[np.float64] = log_probs[:, self.columns]
        ordered[:, self.columns < 0] = -math.inf
        return ordered

    def find_columns(self, words: Vocab) -> "NDArray[np.int64]":
        """CTranslate2's number of each id of the target vocabulary; -1 for what the model lacks: (V,)"""
        import numpy as np

        numbers = {token: number for number, token in enumerate(read_vocabularies(self.directory)[1])}
        return np.array([numbers.get(word, -1) for word in words.words], np.int64)


def load_translator(directory: Path, frame: Frame, device: str, threads: int) -> FramedTranslator:
    """Load a model into CTranslate2. `device`: cpu, cuda, cuda:N or auto; `threads`: 0 for up to
    MOST_THREADS. ConfigError if CTranslate2 is not installed or does not support the device, CheckpointError
    if it cannot read the model."""
    try:
        import ctranslate2
    except ModuleNotFoundError as error:
        raise ConfigError(f"{directory}: {NO_ENGINE}") from error
    kind, _, index = device.partition(":")
    if kind != "cpu":
        load_cublas()
    try:
        translator = ctranslate2.Translator(
            str(directory),
            device=kind,
            device_index=int(index or 0),
            intra_threads=threads or min(MOST_THREADS, processors()),
        )
    except ValueError as error:
        raise ConfigError(f"device: {device!r}: {error}; use --device cpu") from error
    except RuntimeError as error:
        raise CheckpointError(f"{directory}: CTranslate2 cannot read it: {error}") from error
    loaded = FramedTranslator(translator, frame, directory)
    if loaded.on_gpu:
        try:  # it looks for CUDA's libraries when it first needs them
            translator.translate_batch([["a"]], max_decoding_length=1)
        except RuntimeError as error:
            if CUBLAS not in str(error):
                raise
            raise ConfigError(
                f"device: {device!r}: CTranslate2: {error}; pip install nvidia-cublas-cu12 or use "
                "--device cpu"
            ) from error
    return loaded


def load_cublas() -> None:
    """Load the cuBLAS of the package nvidia-cublas-cu12 where that is installed: CTranslate2 by itself finds
    only one in the system's folders or in LD_LIBRARY_PATH."""
    package = importlib.util.find_spec("nvidia")
    for folder in (package and package.submodule_search_locations) or ():
        with contextlib.suppress(OSError):
            ctypes.CDLL(str(Path(folder, "cublas", "lib", CUBLAS)))
