"""SentencePiece models (Kudo and Richardson 2018) of the types unigram and BPE: raw text -> pieces -> raw
text.

`▁` in a piece is a blank, `<0xE7>` a byte of a character that is not in the model. The library learns models
and computes the deterministic split; sampling is implemented here, since the library's generator cannot be
set to a state.
"""

import heapq
import io
import math
import random
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from nmt.errors import ConfigError, DataError
from nmt.io import files, signals
from nmt.text.scripts import byte_letter
from nmt.text.subwords.protocol import LearnSettings, Sampler, TrainingText
from nmt.text.vocab import BOS, EOS, UNK, Vocab

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor


BLANK = "▁"
BYTE = re.compile("<0x([0-9A-F]{2})>")
BYTES = 256
# pieces learned by default: at most 8000, and one for 50 characters of text
MOST_PIECES, RUNNING_CHARACTERS = 8000, 50
SPECIAL_PIECES = 3  # <s>, </s>, <unk>
THREADS = 4  # always as many: the model depends on them
QUIET = 2  # errors only
TOO_SMALL = re.compile(r"smaller than required_chars\. (\d+) vs (\d+)")
# Fields of the library's ModelProto and TrainerSpec, and the values of model_type.
TRAINER, MODEL_TYPE = 2, 3
TYPES = {1: "unigram", 2: "sentencepiece-bpe", 3: "word", 4: "character"}


class Pieces:
    """A SentencePiece model, from the bytes of its file (`name`, for messages). DataError for bytes that are
    not a model, and for a model with a line end in a piece."""

    kind: ClassVar[str]
    model_type: ClassVar[str]  # as the library calls it
    rate_key: ClassVar[str]
    raw: ClassVar[bool] = True
    suffix: ClassVar[str] = "spm"

    def __init__(self, model: bytes, name: str = "model") -> None:
        self.model = model
        self.processor, self.names = load_model(model, name)
        if any("\n" in piece for piece in self.names):
            raise DataError(f"{name}: a unit of this SentencePiece model has a line end; learn another")

    @classmethod
    def learn(cls, text: TrainingText, how: LearnSettings) -> Self:
        """Learn from sentences; the same text gives the same bytes. ConfigError for fewer pieces than the
        text has characters, DataError for a text without words or that the library refuses."""
        from sentencepiece import SentencePieceTrainer

        if not any(text.lines):
            raise DataError("the training text has no words to learn subwords from")
        extra = SPECIAL_PIECES + (BYTES if how.byte_fallback else 0)
        model = io.BytesIO()
        try:
            with signals.at_once():
                SentencePieceTrainer.train(
                    sentence_iterator=iter(text.lines),
                    model_writer=model,
                    model_type=cls.model_type,
                    vocab_size=extra + (how.pieces or default_size(text)),
                    hard_vocab_limit=False,
                    byte_fallback=how.byte_fallback,
                    normalization_rule_name=how.unicode,
                    bos_id=BOS,
                    eos_id=EOS,
                    unk_id=UNK,
                    num_threads=THREADS,
                    minloglevel=QUIET,
                )
        except RuntimeError as error:
            limit = TOO_SMALL.search(str(error))
            if not limit:
                raise DataError(f"SentencePiece cannot learn from this text: {error}") from error
            raise ConfigError(
                f"pieces: {how.pieces} is too small: the text has {int(limit[2]) - extra} frequent "
                "characters; expected more pieces than that, or 0"
            ) from error
        return cls(model.getvalue())

    def pieces(self) -> dict[str, float]:
        """The score of each piece, without bytes, control symbols and unused pieces: natural log p in a
        unigram model; in BPE the higher, the earlier a piece is merged."""
        processor = self.processor
        return {
            piece: processor.get_score(index)
            for index, piece in enumerate(self.names)
            if not (processor.is_control(index) or processor.is_unknown(index) or processor.is_unused(index))
            and not processor.is_byte(index)
        }

    def apply(self, words: list[str]) -> list[str]:
        return list(self.processor.encode(" ".join(words), out_type=str))

    @staticmethod
    def undo(units: list[str]) -> list[str]:
        """Join pieces. Bytes that are not UTF-8 become U+FFFD; line ends and NUL become blanks."""
        parts = (
            bytes([int(match[1], 16)]) if (match := BYTE.fullmatch(unit)) else unit.encode() for unit in units
        )
        text = b"".join(parts).decode("utf-8", "replace")
        return files.split_words(text.replace(BLANK, " ").replace("\n", " ").replace("\0", " "))

    @staticmethod
    def spell(unit: str) -> str:
        """`▁lo` -> ` lo`; a byte becomes a letter of its own."""
        match = BYTE.fullmatch(unit)
        return byte_letter(int(match[1], 16)) if match else unit.replace(BLANK, " ")

    def word_numbers(self, units: list[str]) -> list[int]:
        """`▁lo wer ▁case` -> 0 0 1. A blank belongs to the word after it."""
        numbers, word, inside = [], -1, False
        for unit in units:
            first = None
            for blank in map(is_blank, as_text(unit)):
                word += not blank and not inside
                inside = not blank
                first = word if first is None and inside else first
            numbers.append(word + 1 if first is None else first)
        return [min(number, max(0, word)) for number in numbers]

    def inventory(self, characters: Iterable[str], sampled: bool) -> Iterable[str]:
        """All pieces and bytes: new text may need some that the training text does not."""
        processor = self.processor
        return [
            *self.pieces(),
            *(piece for index, piece in enumerate(self.names) if processor.is_byte(index)),
        ]

    @property
    def summary(self) -> str:
        return f"{self.processor.get_piece_size() - SPECIAL_PIECES:,} units"

    def sampler(self, rate: float, vocab: Vocab) -> Sampler:
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write the library's own file."""
        with files.Writing(path) as out:
            out.write(self.model)


def load_model(model: bytes, name: str) -> "tuple[SentencePieceProcessor, list[str]]":
    """Load the library's model from the bytes of its file; returns it and all its pieces, in the order of its
    ids. `name`: the file, for messages. DataError for bytes that are not a model."""
    from sentencepiece import SentencePieceProcessor

    if not model:
        raise DataError(f"{name}: empty file, expected a SentencePiece model")
    try:
        processor = SentencePieceProcessor(model_proto=model)
        return processor, [processor.id_to_piece(index) for index in range(processor.get_piece_size())]
    except (RuntimeError, UnicodeDecodeError) as error:
        raise DataError(f"{name}: damaged SentencePiece model; was it copied whole?") from error


def default_size(text: TrainingText) -> int:
    """Default number of pieces: few for a small text, whose pieces would otherwise be whole sentences."""
    characters = text.characters()
    return max(
        len(characters) + 1, min(MOST_PIECES, len(characters) + characters.total() // RUNNING_CHARACTERS)
    )


class PieceSampler:
    """The base of samplers, which split runs of pieces of a vocabulary differently: (ids, key) -> ids. The
    same key gives the same split. Bytes and unknown characters stay as they are."""

    def __init__(self, pieces: dict[str, float], vocab: Vocab) -> None:
        """`pieces`: their scores; those without an id in `vocab` are not used."""
        self.scores = {piece: score for piece, score in pieces.items() if piece in vocab.ids}
        self.vocab = vocab

    def __call__(self, ids: list[int], key: str) -> list[int]:
        draw, units = random.Random(key), list[str]()
        for is_listed, run in groupby(self.vocab.decode(ids), key=self.scores.__contains__):
            parts = list(run)
            units += self.split("".join(parts), draw) if is_listed else parts
        return self.vocab.encode(units)

    def split(self, text: str, draw: random.Random) -> list[str]:
        """Sample a split of a text that can be split into pieces."""
        raise NotImplementedError


def as_text(unit: str) -> str:
    """A piece as text, in which a byte is represented by the character of that number."""
    match = BYTE.fullmatch(unit)
    return unit if not match else chr(int(match[1], 16))


def is_blank(character: str) -> bool:
    """Whether `undo` turns a character into a blank."""
    return character in (BLANK, " ", "\t", "\n", "\0")


# ---- reading a model's own description ---------------------------------------------------------------------


def is_model(data: bytes) -> bool:
    """Whether a file starts like a SentencePiece model: text contains no NUL, while numbers in a model do."""
    return data[:1] == b"\n" and b"\0" in data[:200]


def kind_of_model(model: bytes) -> str:
    """The kind of a model, one of TYPES."""
    trainer = b"".join(message_fields(model, TRAINER))
    model_type = next(message_fields(trainer, MODEL_TYPE), b"\1")
    return TYPES.get(model_type[0], "unknown")


def message_fields(message: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the contents of the field number `wanted` of a protobuf message; for numbers their bytes."""
    offset = 0
    while offset < len(message):
        key, offset = number_at(message, offset)
        kind = key & 7
        if kind == 2:  # a length, then as many bytes
            size, offset = number_at(message, offset)
        else:
            size = {0: number_at(message, offset)[1] - offset, 1: 8, 5: 4}.get(kind, len(message))
        if key >> 3 == wanted:
            yield message[offset : offset + size]
        offset += size


def number_at(message: bytes, offset: int) -> tuple[int, int]:
    """Read the variable-length number at `offset`; returns it and the offset after it."""
    value = shift = 0
    while offset < len(message):
        value |= (message[offset] & 127) << shift
        shift, offset = shift + 7, offset + 1
        if message[offset - 1] < 128:
            break
    return value, offset


# ---- unigram -----------------------------------------------------------------------------------------------
# The unigram model of SentencePiece (Kudo 2018): the most probable cut, or in training one drawn from
# p(cut) ** alpha.


class Unigram(Pieces):
    """A SentencePiece model of type unigram."""

    kind: ClassVar[str] = "unigram"
    model_type: ClassVar[str] = "unigram"
    rate_key: ClassVar[str] = "unigram_sampling"

    def sampler(self, rate: float, vocab: Vocab) -> Sampler:
        """Subword regularization; `rate` is alpha."""
        return UnigramSampler(self.pieces(), rate, vocab)


class UnigramSampler(PieceSampler):
    """Samples splits of a text with probability proportional to p(split) ** alpha: forward sums, then a
    backward walk (Kudo 2018, section 3.2, l = infinity)."""

    def __init__(self, pieces: dict[str, float], alpha: float, vocab: Vocab) -> None:
        """`pieces`: their log p; those without an id in `vocab` are not used."""
        super().__init__(pieces, vocab)
        self.weights = {piece: alpha * score for piece, score in self.scores.items()}
        self.longest = max(map(len, self.weights), default=0)

    def split(self, text: str, draw: random.Random) -> list[str]:
        totals, arcs = [0.0], list[list[tuple[int, float]]]([[]])
        for end in range(1, len(text) + 1):
            incoming = [
                (start, totals[start] + weight)
                for start in range(max(0, end - self.longest), end)
                if (weight := self.weights.get(text[start:end])) is not None and totals[start] > -math.inf
            ]
            arcs.append(incoming)
            totals.append(log_sum([value for _, value in incoming]))
        units, end = list[str](), len(text)
        while end:
            chances = [math.exp(value - totals[end]) for _, value in arcs[end]]
            [(start, _)] = draw.choices(arcs[end], chances)
            units.append(text[start:end])
            end = start
        return units[::-1]


def log_sum(values: list[float]) -> float:
    """Natural log of the sum of exp(value); -inf for no values."""
    top = max(values, default=-math.inf)
    return top + math.log(sum(math.exp(value - top) for value in values)) if values else top


# ---- byte-pair encoding ------------------------------------------------------------------------------------
# Byte-pair encoding by SentencePiece, of raw text; in training merges may be left out (BPE dropout).


class SentencePieceBPE(Pieces):
    """A SentencePiece model of type BPE."""

    kind: ClassVar[str] = "sentencepiece-bpe"
    model_type: ClassVar[str] = "bpe"
    rate_key: ClassVar[str] = "bpe_dropout"

    def sampler(self, rate: float, vocab: Vocab) -> Sampler:
        """Sampler of BPE dropout (Provilkov et al. 2020)."""
        return PieceDropout(self.pieces(), rate, vocab)


class PieceDropout(PieceSampler):
    """Merges the best pair of neighbors first, the leftmost on ties, as the library does, but skips each
    merge with probability `rate` (Provilkov et al. 2020)."""

    def __init__(self, pieces: dict[str, float], rate: float, vocab: Vocab) -> None:
        super().__init__(pieces, vocab)
        self.rate = rate

    def split(self, text: str, draw: random.Random) -> list[str]:
        symbols = list(text)  # one that was merged into its left neighbor becomes empty
        after = [*range(1, len(symbols)), -1]
        left_of = list(range(-1, len(symbols) - 1))
        waiting: list[tuple[float, int, str, int]] = []

        def offer(left: int, right: int) -> None:
            if left >= 0 and right >= 0:
                pair = symbols[left] + symbols[right]
                if pair in self.scores:
                    heapq.heappush(waiting, (-self.scores[pair], left, pair, right))

        for left in range(len(symbols) - 1):
            offer(left, left + 1)
        while waiting:
            _, left, pair, right = heapq.heappop(waiting)
            if after[left] != right or symbols[left] + symbols[right] != pair:
                continue  # one of the two was merged meanwhile
            if draw.random() < self.rate:
                continue
            symbols[left], symbols[right] = pair, ""
            after[left] = after[right]
            if after[right] >= 0:
                left_of[after[right]] = left
            offer(left_of[left], left)
            offer(left, after[left])
        return [symbol for symbol in symbols if symbol]
