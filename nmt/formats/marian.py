"""Folders of Marian models (Junczys-Dowmunt et al. 2018) as the library `transformers` writes them, such as
those of OPUS-MT (Tiedemann and Thottingal 2020). Nothing is downloaded, and nothing is run.

    config.json                           sizes, and the numbers of special symbols
    generation_config.json                how the library searches, if there
    vocab.json target_vocab.json          piece -> number; the second only with two vocabularies
    source.spm target.spm                 SentencePiece models
    tokenizer_config.json                 the languages, if there
    README.md                             its first lines name the license, if there
    model.safetensors, pytorch_model.bin  the weights, one of both: nmt/training/marian.py reads them

`</s>` ends sentences on both sides; decoding begins with `<pad>`. Models for several target languages have a
piece for each, such as `>>fra<<`, with which a source line begins.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.config import yaml_text
from nmt.config.settings import MOST_UNITS
from nmt.errors import DataError
from nmt.io import files
from nmt.io.numbers import shown
from nmt.text import subwords
from nmt.text.subwords import Subwords
from nmt.text.subwords.bpe import BPE
from nmt.text.vocab import SPECIALS, Vocab

CONFIG, GENERATION, TOKENIZER, README = (
    "config.json", "generation_config.json", "tokenizer_config.json", "README.md"
)  # fmt: skip
VOCAB, TARGET_VOCAB = "vocab.json", "target_vocab.json"
END, UNKNOWN, PAD = "</s>", "<unk>", "<pad>"
LANGUAGE = re.compile(r">>[^\s<>]+<<")  # a piece that names a target language: >>fra<<
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}  # theirs -> ours
# Keys of config.json by which models differ that Marian does not have: the value that they must have, and
# the one that they have where they are missing.
FIXED = {
    "scale_embedding": (True, False),
    "normalize_before": (False, False),
    "normalize_embedding": (False, False),
    "add_final_layer_norm": (False, False),
    "static_position_embeddings": (True, True),
}
MOST_LAYERS = 1000
Json = Mapping[str, object]


def read_json(path: Path) -> Json:
    """Parse a file with one JSON object. DataError for a missing, damaged or huge file, another value than an
    object, and a key that occurs twice."""
    try:
        content = json.loads(files.read_small(path).decode("utf-8"), object_pairs_hook=unique_keys)
    except FileNotFoundError as error:
        raise DataError(
            f"{path}: missing, expected with every Marian model; copy the whole folder"
        ) from error
    except OSError as error:
        raise files.cannot_read(path, error) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); copy it again") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: holds a {type(content).__name__}, expected a JSON object; copy it again")
    return content


def unique_keys(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """A JSON object as a dict. ValueError for a key that occurs twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        [(repeated, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"{shown(repeated)} occurs twice")
    return content


# ---- settings ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JsonSettings:
    """The keys of a JSON file, checked when they are read."""

    path: Path
    content: Json

    def wrong_value(
        self, key: str, expected: str, advice: str = "this model cannot be imported"
    ) -> DataError:
        """The error for the value of a key."""
        value = "missing" if key not in self.content else shown(json.dumps(self.content[key]))
        return DataError(f"{self.path}: {key}: {value}, expected {expected}; {advice}")

    def integer(self, key: str, most: int, default: int | None = None, least: int = 1) -> int:
        """A whole number from `least` to `most`. DataError for others, or a missing one without default."""
        value = self.content.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong_value(key, f"a whole number from {least} to {most:,}")
        return value

    def share(self, key: str, default: float) -> float:
        """A probability below 1, 0 included. DataError for another value."""
        value = self.content.get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1:
            raise self.wrong_value(key, "a number from 0 to below 1")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false. DataError for another value."""
        value = self.content.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong_value(key, "true or false")
        return value

    def text(self, key: str) -> str:
        """A printable text in one line; empty for a missing key, and for another value."""
        value = self.content.get(key)
        return value.strip() if isinstance(value, str) and value.isprintable() else ""


@dataclass(frozen=True)
class MarianSettings:
    """Sizes and special symbols of a model, as config.json has them."""

    source_size: int  # pieces of the source, all special symbols included
    target_size: int
    embedding: int
    encoder_layers: int
    decoder_layers: int
    feed_forward: int
    heads: int
    activation: str  # a name in ACTIVATIONS of nmt/layers/transformer.py
    shared: bool  # one matrix of word vectors for both sides
    tied: bool  # the output matrix is that of the target's word vectors
    positions: int  # units of the longest sentence, its end symbol included
    dropout: float
    attention_dropout: float
    feed_forward_dropout: float
    end: int  # number of `</s>`
    pad: int  # number of `<pad>`, with which decoding begins
    name: str  # of the model; may be empty


def read_settings(folder: Path) -> MarianSettings:
    """Read config.json and generation_config.json. DataError for a file that is missing or damaged, and for a
    model that is not one of Marian or differs from what our Transformer computes."""
    config = JsonSettings(folder / CONFIG, read_json(folder / CONFIG))
    if config.content.get("model_type") != "marian":
        raise config.wrong_value("model_type", "'marian'")
    for key, (value, default) in FIXED.items():
        if config.flag(key, default) != value:
            raise config.wrong_value(key, json.dumps(value))
    activation = ACTIVATIONS.get(str(config.content.get("activation_function")))
    if activation is None:
        raise config.wrong_value("activation_function", f"one of {', '.join(ACTIVATIONS)}")
    size = config.integer("vocab_size", MOST_UNITS, least=len(SPECIALS))
    shared = config.flag("share_encoder_decoder_embeddings", True)
    target_size = config.integer("decoder_vocab_size", MOST_UNITS, size, len(SPECIALS))
    pad = config.integer("pad_token_id", MOST_UNITS, least=0)
    settings = MarianSettings(
        source_size=size,
        target_size=target_size,
        embedding=config.integer("d_model", MOST_UNITS),
        encoder_layers=config.integer("encoder_layers", MOST_LAYERS),
        decoder_layers=config.integer("decoder_layers", MOST_LAYERS),
        feed_forward=same_for_both(config, "ffn_dim"),
        heads=same_for_both(config, "attention_heads"),
        activation=activation,
        shared=shared,
        tied=config.flag("tie_word_embeddings", True),
        positions=config.integer("max_position_embeddings", MOST_UNITS, least=2),
        dropout=config.share("dropout", 0.1),
        attention_dropout=config.share("attention_dropout", 0.0),
        feed_forward_dropout=config.share("activation_dropout", 0.0),
        end=config.integer("eos_token_id", MOST_UNITS, least=0),
        pad=pad,
        name=config.text("_name_or_path"),
    )
    if shared and target_size != size:
        raise config.wrong_value("decoder_vocab_size", f"{size} as vocab_size, since the vectors are shared")
    check_symbols(config, settings)
    if (folder / GENERATION).exists():
        check_symbols(JsonSettings(folder / GENERATION, read_json(folder / GENERATION)), settings)
    return settings


def same_for_both(config: JsonSettings, key: str) -> int:
    """A size that encoder and decoder share. DataError if theirs differ."""
    encoder, decoder = (config.integer(f"{side}_{key}", MOST_UNITS) for side in ("encoder", "decoder"))
    if encoder != decoder:
        raise config.wrong_value(f"decoder_{key}", f"{encoder} as encoder_{key}")
    return encoder


def check_symbols(config: JsonSettings, settings: MarianSettings) -> None:
    """DataError unless decoding begins with `<pad>`, ends with the end symbol, and may use all other pieces,
    as far as the file says so."""
    pad, end = settings.pad, settings.end
    expected: dict[str, tuple[object, ...]] = {
        "decoder_start_token_id": (pad,),
        "pad_token_id": (pad,),
        "eos_token_id": (end, [end]),
        "forced_eos_token_id": (end, [end]),
        "bad_words_ids": ([[pad]],),
    }
    required = {"decoder_start_token_id"} if config.path.name == CONFIG else set()
    for key, values in expected.items():
        value = config.content.get(key)
        if value not in values and (value is not None or key in required):
            raise config.wrong_value(key, f"{json.dumps(values[0])}, as the other keys have it")


# ---- vocabularies ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MarianVocab:
    """The pieces of a side in the order of our ids, and the number that the model has for each: <s> stands
    for `<pad>`, with which decoding begins and which it never writes; then come `</s>`, `<unk>`, the tags of
    target languages, and all others in the order of their numbers."""

    words: Vocab
    numbers: list[int]


def read_vocab(path: Path, size: int, settings: MarianSettings, tagged: bool) -> MarianVocab:
    """Read vocab.json or target_vocab.json, which has `size` pieces. `tagged`: whether lines may begin with
    its `>>xxx<<`. DataError for a file that is missing or damaged, for numbers that are not 0 to size - 1,
    and for special symbols that are missing or have other numbers than config.json says."""
    numbers = read_json(path)
    if sorted(map(repr, numbers.values())) != sorted(map(repr, range(size))):
        raise DataError(
            f"{path}: {len(numbers):,} pieces, expected the numbers 0 to {size - 1:,}, each once, as "
            f"{CONFIG} has it; copy both files again"
        )
    for symbol, number in ((PAD, settings.pad), (END, settings.end), (UNKNOWN, None)):
        if symbol not in numbers or (number is not None and numbers[symbol] != number):
            raise DataError(
                f"{path}: {symbol}: {numbers.get(symbol, 'missing')}, expected "
                f"{'a number' if number is None else f'{number} as in {CONFIG}'}; are both of one model?"
            )
    by_number = cast(list[str], sorted(numbers, key=lambda piece: cast(int, numbers[piece])))
    others = [piece for piece in by_number if piece not in (PAD, END, UNKNOWN)]
    tags = [piece for piece in others if tagged and piece.isprintable() and LANGUAGE.fullmatch(piece)]
    words = [piece for piece in others if piece not in set(tags)]
    bad = next((piece for piece in others if piece in SPECIALS or "\n" in piece), None)
    if bad is not None:
        raise DataError(
            f"{path}: has the piece {shown(bad)}, which our vocabularies cannot hold; this model cannot be "
            "imported"
        )
    vocab = Vocab({word: len(words) - index for index, word in enumerate(words)}, len(words), tags=tags)
    ordered = [PAD, END, UNKNOWN, *vocab.words[len(SPECIALS) :]]
    return MarianVocab(vocab, [cast(int, numbers[piece]) for piece in ordered])


# ---- the folder --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MarianFolder:
    """A model without its weights."""

    path: Path
    settings: MarianSettings
    source: MarianVocab
    target: MarianVocab
    source_pieces: Subwords
    target_pieces: Subwords
    two_vocabularies: bool
    languages: tuple[str, str]  # codes of source and target; empty where unknown
    name: str
    license: str  # empty where unknown
    generation: Json  # content of generation_config.json

    @property
    def tags(self) -> list[str]:
        """The `>>xxx<<` with which a source line may begin, in the order of their ids."""
        return self.source.words.words[len(SPECIALS) : self.source.words.first]


def read_folder(folder: Path) -> MarianFolder:
    """Read all files of a model but its weights. DataError, in one line, for a file that is missing, damaged,
    or of a model that our Transformer cannot compute."""
    if not folder.is_dir():
        raise DataError(
            f"{folder}: no such folder; expected one with {CONFIG}, {VOCAB}, source.spm, target.spm, weights"
        )
    settings = read_settings(folder)
    tokenizer = JsonSettings(folder / TOKENIZER, optional_json(folder / TOKENIZER))
    two = (folder / TARGET_VOCAB).exists()
    if two and settings.shared:
        raise DataError(
            f"{folder / TARGET_VOCAB}: a second vocabulary, but {CONFIG} shares the word vectors of both "
            "sides (share_encoder_decoder_embeddings); remove the file if it is a stray one"
        )
    if tokenizer.flag("separate_vocabs", two) != two:
        raise tokenizer.wrong_value("separate_vocabs", f"{TARGET_VOCAB} with it", "copy the whole folder")
    source = read_vocab(folder / VOCAB, settings.source_size, settings, tagged=True)
    target = source
    if two or settings.target_size != settings.source_size:
        target = read_vocab(folder / TARGET_VOCAB, settings.target_size, settings, tagged=False)
    sides = [tokenizer.text(f"{side}_lang") for side in ("source", "target")]
    return MarianFolder(
        path=folder,
        settings=settings,
        source=source,
        target=target,
        source_pieces=read_pieces(folder / "source.spm"),
        target_pieces=read_pieces(folder / "target.spm"),
        two_vocabularies=two,
        languages=(sides[0], sides[1]),
        name=settings.name or folder.resolve().name,
        license=read_license(folder / README),
        generation=optional_json(folder / GENERATION),
    )


def optional_json(path: Path) -> Json:
    """Parse a file as `read_json` does; empty if it is missing."""
    return read_json(path) if path.exists() else {}


def read_pieces(path: Path) -> Subwords:
    """Load a SentencePiece model. DataError for a file that is missing, or is none."""
    try:
        with files.open_regular(path, files.LARGEST_TEXT):
            pass
    except FileNotFoundError as error:
        raise DataError(f"{path}: missing, expected a SentencePiece model; copy the whole folder") from error
    except OSError as error:
        raise files.cannot_read(path, error) from error
    if subwords.file_kind(path) == BPE.kind:
        raise DataError(f"{path}: not a SentencePiece model; copy it again")
    return subwords.load(path)


def read_license(path: Path) -> str:
    """The license in the first lines of README.md, between two lines `---`; empty where there is none."""
    try:
        text = files.read_small(path).decode("utf-8")
        head = re.match(r"---\n(.*?)\n---", text, re.DOTALL)
        content = OmegaConf.to_container(yaml_text.parse(head[1])) if head else None
        value = content.get("license") if isinstance(content, dict) else None
    except (OSError, ValueError, OmegaConfBaseException, RecursionError):
        return ""
    return value.strip() if isinstance(value, str) and value.isprintable() else ""
