"""Folders of CTranslate2 models that other tools have converted. They are read without CTranslate2.

config.json                       special tokens, if there
shared_vocabulary.json            tokens in the order of their numbers; or a file for each side,
                                  source_vocabulary.json and target_vocabulary.json; in older folders .txt
model.bin                         the weights, each with its name, shape and type
"""

import json
import math
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from nmt.errors import DataError
from nmt.io import files
from nmt.io.numbers import shown

CONFIG, WEIGHTS = "config.json", "model.bin"
SHARED, SOURCE, TARGET = "shared_vocabulary", "source_vocabulary", "target_vocabulary"
SPEC = "TransformerSpec"  # the name of encoder-decoders in model.bin
FORMATS = range(4, 7)  # of model.bin
TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")  # by their numbers in model.bin
MOST_DIMENSIONS = 8
LEARNED = ("weight", "bias", "gamma", "beta")  # ends of the names of parameters
COPY = "copy the whole folder again"


@dataclass(frozen=True)
class SpecialTokens:
    """The special tokens that config.json names, and what CTranslate2 adds to each source by itself."""

    unk_token: str = "<unk>"
    bos_token: str = "<s>"
    eos_token: str = "</s>"
    decoder_start_token: str | None = "<s>"  # None: a target must begin with a token of its own
    add_source_bos: bool = False
    add_source_eos: bool = False


@dataclass(frozen=True)
class ModelHeader:
    """The description of a model in model.bin, besides its weights."""

    parameters: int
    type: str  # of the matrices, one of TYPES
    positions: int  # that have vectors in the file; 0: computed for any position
    rows: tuple[int, int]  # vectors of source and target tokens


@dataclass(frozen=True)
class CTranslate2Folder:
    """A model without its weights."""

    path: Path
    tokens: SpecialTokens
    source: list[str]  # the vocabulary in the order of CTranslate2's numbers
    target: list[str]
    header: ModelHeader
    files: list[Path]  # all files that CTranslate2 reads


def read_folder(path: Path) -> CTranslate2Folder:
    """Read all files of a folder but the weights. DataError, in one line, for a file that is missing or
    damaged, and for a model that is not an encoder-decoder."""
    if not path.is_dir():
        raise DataError(f"{path}: no such folder; expected one with {WEIGHTS}, {CONFIG} and vocabularies")
    header = read_header(path / WEIGHTS)
    names, vocabularies = vocabulary_files(path), read_vocabularies(path)
    for name, tokens, rows in zip((names[0], names[-1]), vocabularies, header.rows, strict=True):
        if len(tokens) != rows:
            raise DataError(
                f"{name}: {len(tokens):,} tokens, but {WEIGHTS} has vectors of {rows:,}; are both of "
                "one model?"
            )
    config = [path / CONFIG] if (path / CONFIG).exists() else []
    return CTranslate2Folder(
        path=path,
        tokens=read_special_tokens(path / CONFIG),
        source=vocabularies[0],
        target=vocabularies[1],
        header=header,
        files=[path / WEIGHTS, *config, *names],
    )


def read_special_tokens(path: Path) -> SpecialTokens:
    """Read config.json, with CTranslate2's defaults for what is missing. DataError for a damaged file."""
    if not path.exists():
        return SpecialTokens()
    content = parse_json(path)
    if not isinstance(content, dict):
        raise DataError(f"{path}: holds a {type(content).__name__}, expected a JSON object; {COPY}")
    chosen: dict[str, object] = {}
    for key, default in vars(SpecialTokens()).items():
        value = content.get(key, default)
        kinds: tuple[type, ...] = (bool,) if isinstance(default, bool) else (str,)
        if not isinstance(value, kinds) and not (value is None and key == "decoder_start_token"):
            raise DataError(
                f"{path}: {key}: {shown(json.dumps(value))}, expected "
                f"{'true or false' if kinds == (bool,) else 'a token'}; {COPY}"
            )
        chosen[key] = value
    return SpecialTokens(**chosen)  # type: ignore[arg-type]


# ---- vocabularies ------------------------------------------------------------------------------------------


def vocabulary_files(folder: Path) -> list[Path]:
    """Paths of the vocabularies: a shared one, or those of source and target. DataError if they are missing,
    and for models that read several tokens at each position."""
    for names in ((SHARED,), (SOURCE, TARGET)):
        paths = [
            next((path for kind in ("json", "txt") if (path := folder / f"{name}.{kind}").exists()), None)
            for name in names
        ]
        if None not in paths:
            return [path for path in paths if path is not None]
    factors = sorted(folder.glob("source_[0-9]*_vocabulary.*"))
    if factors:
        raise DataError(f"{factors[0]}: source factors, which only models of plain tokens can do without")
    raise DataError(
        f"{folder / SHARED}.json: missing, expected this vocabulary, or {SOURCE}.json and "
        f"{TARGET}.json; {COPY}"
    )


def read_vocabularies(folder: Path) -> tuple[list[str], list[str]]:
    """The tokens of both sides, by CTranslate2's numbers. DataError for missing or damaged files."""
    vocabularies = [read_tokens(name) for name in vocabulary_files(folder)]
    return vocabularies[0], vocabularies[-1]


def read_tokens(path: Path) -> list[str]:
    """Read a vocabulary. DataError for a file that is damaged, or has no tokens."""
    if path.suffix == ".txt":
        tokens: object = list(files.read_lines(path))
    else:
        tokens = parse_json(path)
    if not isinstance(tokens, list) or not tokens or not all(isinstance(token, str) for token in tokens):
        raise DataError(f"{path}: expected a list of tokens; {COPY}")
    bad = next((token for token in tokens if "\n" in token), None)
    if bad is not None:
        raise DataError(
            f"{path}: has the token {shown(bad)}, with a line end, which our vocabularies cannot hold; this "
            "model cannot be imported"
        )
    return tokens


def parse_json(path: Path) -> object:
    """Parse a JSON file. DataError if it cannot be read."""
    try:
        with files.open_regular(path, files.LARGEST_TEXT) as stream:
            content: object = json.loads(stream.read().decode("utf-8"))
    except OSError as error:
        raise files.cannot_read(path, error) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); {COPY}") from error
    return content


# ---- weights -----------------------------------------------------------------------------------------------


def read_header(path: Path) -> ModelHeader:
    """Read the names, shapes and types in model.bin, without the weights. DataError for a file that is
    missing, cut off, in another format, or of a model that is not an encoder-decoder."""
    try:
        with files.open_regular(path) as stream:
            return parse_header(stream, path)
    except FileNotFoundError as error:
        raise DataError(f"{path}: missing, expected with every CTranslate2 model; {COPY}") from error
    except OSError as error:
        raise files.cannot_read(path, error) from error
    except (struct.error, ValueError) as error:
        raise DataError(f"{path}: damaged, or not a model of CTranslate2; {COPY}") from error


def parse_header(stream: BinaryIO, path: Path) -> ModelHeader:
    """Parse model.bin. ValueError or struct.error if it is damaged, DataError for another kind of model."""
    number = read_numbers(stream, "I")[0]
    if number not in FORMATS:
        raise DataError(
            f"{path}: format {number} of CTranslate2, expected {FORMATS[0]} to {FORMATS[-1]}; convert the "
            "model again with the installed version"
        )
    name = read_string(stream)
    if name != SPEC:
        raise DataError(f"{path}: is a {shown(name)}, expected {SPEC}: an encoder-decoder that translates")
    read_numbers(stream, "I")  # the revision
    shapes, kind = read_shapes(stream)
    positions = [shape[0] for name, shape in shapes.items() if name.endswith("position_encodings/encodings")]
    rows = [embedding_rows(shapes, side) for side in ("encoder", "decoder")]
    return ModelHeader(
        parameters=sum(
            math.prod(shape) for name, shape in shapes.items() if name.rpartition("/")[2] in LEARNED
        ),
        type=kind,
        positions=min(positions, default=0),
        rows=(rows[0], rows[1]),
    )


def read_shapes(stream: BinaryIO) -> tuple[dict[str, Sequence[int]], str]:
    """Read the shape of each array by its name, and the type of the matrices. Of an array with two names, one
    for the vectors of each side, the second is listed as `.../shared`. ValueError or struct.error if they are
    damaged."""
    size, shapes, kind = os.fstat(stream.fileno()).st_size, dict[str, Sequence[int]](), ""
    for _ in range(read_numbers(stream, "I")[0]):
        name = read_string(stream)
        shapes[name], type_number, length = read_shape(stream)
        if stream.seek(length, os.SEEK_CUR) > size or type_number >= len(TYPES):
            raise ValueError(name)
        if not kind and name.endswith("/weight") and "/layer_" in name:
            kind = TYPES[type_number]
    for _ in range(read_numbers(stream, "I")[0]):
        name, original = read_string(stream), read_string(stream)
        if original not in shapes:
            raise ValueError(name)
        if "embeddings" in name:
            shapes[f"{name.removesuffix('/weight')}/shared"] = shapes[original]
    return shapes, kind or TYPES[0]


def embedding_rows(shapes: Mapping[str, Sequence[int]], side: str) -> int:
    """The number of vectors of tokens of a side, encoder or decoder. ValueError if it has none."""
    for name in (f"{side}/embeddings", f"{side}/embeddings_0"):
        for end in ("weight", "shared"):
            if shapes.get(f"{name}/{end}"):
                return shapes[f"{name}/{end}"][0]
    raise ValueError(side)


def read_numbers(stream: BinaryIO, form: str) -> tuple[int, ...]:
    """Read little-endian numbers in a form of `struct`."""
    numbers: tuple[int, ...] = struct.unpack(f"<{form}", stream.read(struct.calcsize(f"<{form}")))
    return numbers


def read_string(stream: BinaryIO) -> str:
    """Read a string that ends with NUL, after its length."""
    [length] = read_numbers(stream, "H")
    return stream.read(length).decode("utf-8").removesuffix("\0")


def read_shape(stream: BinaryIO) -> tuple[Sequence[int], int, int]:
    """Read the shape, the number of the type, and the bytes of an array. ValueError if it is damaged."""
    [rank] = read_numbers(stream, "B")
    if rank > MOST_DIMENSIONS:
        raise ValueError("rank")
    shape = read_numbers(stream, f"{rank}I")
    type_number, length = read_numbers(stream, "BI")
    return shape, type_number, length
