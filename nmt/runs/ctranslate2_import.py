"""CTranslate2 models of other toolkits (NLLB, M2M-100, Marian, OpenNMT ...) as runs: a folder like that of
nmt-export, which holds a copy of the model, its text settings, and the tokens that it reads around a
sentence. Torch is not imported.

Toolkits name languages by tokens. Those of Marian (`>>fra<<`) and of T5 (`<2fr>`) say at the beginning of the
source into which language to translate. Those of NLLB (`fra_Latn`, Costa-jussà et al. 2022) and M2M-100
(`__fr__`, Fan et al. 2021) begin the source and the target, each in its own language.
"""

import json
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.formats.ctranslate2 import CONFIG, CTranslate2Folder, read_folder
from nmt.io import files, manifest
from nmt.io.numbers import shown
from nmt.runs import directory as run_directory
from nmt.runs.exported import ExportSettings
from nmt.runs.framed import POSITIONS, Frame, load_translator
from nmt.text import subwords
from nmt.text.pipeline import SideConfig, TextPipeline
from nmt.text.subwords import Subwords
from nmt.text.subwords.bpe import BPE
from nmt.text.vocab import BOS, EOS, SPECIALS, UNK, Vocab

ON_SOURCE = re.compile(r">>[^\s<>]+<<|<2[^\s<>]+>")  # tokens of target languages that begin the source
ON_BOTH = re.compile(r"__[a-z]{2,3}(?:_[A-Za-z]+)?__|[a-z]{3}_[A-Z][a-z]{3}")  # that begin their own side
TAG = re.compile(r">>[^\s<>]+<<")  # may begin a line of text
FILLER = re.compile(r"madeupword\d+|<pad>|<blank>|<mask>")  # tokens that translations never have
SPM_NAMES = ("sentencepiece.bpe.model", "spiece.model", "spm.model")  # of one model for both sides
WANTED_LENGTH = 250  # of source lines in units, where the model has no limit of its own


@dataclass(frozen=True)
class ImportSettings:
    """The choices for an import: all that a folder of CTranslate2 does not say."""

    source_spm: str = ""  # path of the SentencePiece model; empty: from the folder
    target_spm: str = ""
    source_token: str = ""  # of the source language; empty: none
    target_token: str = ""
    # Tokens around a sentence, instead of those that follow from the two; None: those.
    source_prefix: Sequence[str] | None = None
    source_suffix: Sequence[str] | None = None
    target_prefix: Sequence[str] | None = None
    languages: tuple[str, str] | None = None  # codes of source and target; None: by the tokens


def import_model(folder: Path, output: Path, settings: ImportSettings) -> str:
    """Make a run in `output`, which is missing or empty, of the model in `folder`; returns a summary.
    DataError for files that are missing or damaged, and for a model that CTranslate2 or we cannot use;
    ConfigError for tokens that the model does not have or that are missing, and if CTranslate2 is not
    installed; UserError if the run cannot be written."""
    model = read_folder(folder)
    check_tokens(model)
    paths = find_spm(folder, settings)
    pieces = [read_pieces(path) for path in paths]
    frame = make_frame(model, settings)
    tags = [] if settings.target_token else [token for token in model.source if TAG.fullmatch(token)]
    tokens = (settings.source_token, settings.target_token)
    languages = settings.languages or tuple(map(token_language, tokens))
    sides = [side_config(units, language) for units, language in zip(pieces, languages, strict=True)]
    vocabularies = [make_vocab(model.source, tags), make_vocab(model.target, [])]
    content = ExportSettings(
        name=folder.resolve().name,
        step=0,
        parameters=model.header.parameters,
        quantization=model.header.type,
        max_length=frame.source_room if model.header.positions else WANTED_LENGTH,
        source=sides[0],
        target=sides[1],
        tags=tags,
        shared_vocabulary=False,
        frame=frame,
    )
    with run_directory.writing(output) as new:
        copy_model(model, new)
        for name, side, units, vocab in zip(("source", "target"), sides, pieces, vocabularies, strict=True):
            TextPipeline.with_subwords(side, units, units.raw).save(new, name)
            vocab.save(new / f"{name}.vocab")
        origin_text = json.dumps(origin(model, paths), indent=1, ensure_ascii=False)
        files.write_text(new / run_directory.ORIGIN, [origin_text])
        content.save(new)
        try:
            load_translator(new, frame, "cpu", 1)
        except CheckpointError as error:
            raise DataError(str(error).replace(str(new), str(folder))) from error
    return (
        f"{content.name}, {content.parameters:,} parameters in {content.quantization}, "
        f"{len(model.source):,} and {len(model.target):,} tokens; {describe(model, frame)}"
        f"{f'; {len(tags):,} tags such as {tags[0]}' if tags else ''}"
    )


def origin(model: CTranslate2Folder, spm: Sequence[Path]) -> dict[str, object]:
    """The content of origin.json: whose model a run has, with the checksum of each file under its name, or
    under its path if several files have that name. `spm`: paths of the SentencePiece models."""
    paths = dict.fromkeys((*model.files, *spm))
    uses = Counter(path.name for path in paths)
    return {
        "format": "nmt-origin 1",
        "kind": "ctranslate2",
        "name": model.path.resolve().name,
        "license": "",
        "folder": str(model.path),
        "search": {},
        "sha256": {path.name if uses[path.name] == 1 else str(path): manifest.digest(path) for path in paths},
    }


def copy_model(model: CTranslate2Folder, new: Path) -> None:
    """Copy the files that CTranslate2 reads to the folder `new`. UserError if the disk is full."""
    for path in model.files:
        try:
            shutil.copyfile(path, new / path.name)
        except OSError as error:
            raise files.cannot_write(new.parent, error) from error


# ---- text --------------------------------------------------------------------------------------------------


def find_spm(folder: Path, settings: ImportSettings) -> tuple[Path, Path]:
    """Paths of the SentencePiece models of both sides: those of the settings, or the folder's `source.spm`
    and `target.spm`, or its only one. ConfigError if there is none."""
    shared = next((folder / name for name in SPM_NAMES if (folder / name).exists()), None)
    paths = []
    for side, name in (("source", settings.source_spm), ("target", settings.target_spm)):
        own = folder / f"{side}.spm"
        path = Path(name) if name else own if own.exists() else shared
        if path is None:
            raise ConfigError(f"{own}: missing; name the SentencePiece model of this side: --{side}-spm FILE")
        paths.append(path)
    return paths[0], paths[1]


def read_pieces(path: Path) -> Subwords:
    """Load a SentencePiece model. DataError for a file that is missing or of another kind."""
    if subwords.file_kind(path) == BPE.kind:
        raise DataError(f"{path}: not a SentencePiece model; name the file of the model's own pieces")
    return subwords.load(path)


def side_config(units: Subwords, language: str) -> SideConfig:
    """The text settings of a side: SentencePiece reads raw text."""
    return SideConfig(language=language, normalize=False, tokenize=False, subword=units.kind)


def token_language(token: str) -> str:
    """The language in a token: `__fr__` -> fr, `fra_Latn` -> fra, `>>fra<<` -> fra."""
    return token.strip("_<>2").partition("_")[0]


def make_vocab(tokens: Sequence[str], tags: Sequence[str]) -> Vocab:
    """The vocabulary of a side, in CTranslate2's order after the special symbols; without the tags, which get
    their ids when the run is loaded."""
    words = [token for token in dict.fromkeys(tokens) if token not in {*tags, *SPECIALS}]
    # The model has no counts. A Vocab orders words by count, so these keep the given order.
    return Vocab({word: len(words) - index for index, word in enumerate(words)}, len(words))


# ---- tokens ------------------------------------------------------------------------------------------------


def check_tokens(model: CTranslate2Folder) -> None:
    """DataError for a model whose end or unknown symbol has another name than ours, or that lacks them."""
    end, unknown = SPECIALS[EOS], SPECIALS[UNK]
    for key, value, expected in (
        ("eos_token", model.tokens.eos_token, end),
        ("unk_token", model.tokens.unk_token, unknown),
    ):
        if value != expected:
            raise DataError(
                f"{model.path / CONFIG}: {key}: {shown(value)}, expected {expected}; this model cannot be "
                "imported"
            )
        if value not in model.target:
            raise DataError(
                f"{model.path}: the target vocabulary has no {value}; this model cannot be imported"
            )


def make_frame(model: CTranslate2Folder, settings: ImportSettings) -> Frame:
    """The tokens that the model reads around a sentence. ConfigError for a token that it does not have, and
    for a model of many languages without a token of the target language."""
    tokens, end = model.tokens, SPECIALS[EOS]
    languages = [token for token in model.target if ON_BOTH.fullmatch(token)]
    named = settings.target_token or settings.target_prefix is not None
    if not named and (len(languages) > 1 or tokens.decoder_start_token is None):
        such = f", such as {languages[0]}" if languages else ""
        raise ConfigError(
            f"{model.path}: translates into several languages; name one of its tokens: --target-token "
            f"TOKEN{such}"
        )
    if (
        ON_BOTH.fullmatch(settings.target_token)
        and not settings.source_token
        and settings.source_prefix is None
    ):
        raise ConfigError(
            f"{model.path}: reads the language of the source as a token, too; name it: --source-token TOKEN, "
            f"such as {languages[0] if languages else '__en__'}"
        )
    on_source = bool(ON_SOURCE.fullmatch(settings.target_token))
    source, target = as_prefix(settings.source_token), as_prefix(settings.target_token)
    # OpenNMT begins a target with <s> and reads sources without an end; the others read one.
    ends = tokens.decoder_start_token != SPECIALS[BOS] and not tokens.add_source_eos
    prefix, suffix = settings.source_prefix, settings.source_suffix
    start = settings.target_prefix
    frame = Frame(
        source_prefix=[*source, *(target if on_source else ())] if prefix is None else list(prefix),
        source_suffix=([end] if ends else []) if suffix is None else list(suffix),
        target_prefix=([] if on_source else target) if start is None else list(start),
        unwritten=unwritten(model),
        positions=min(POSITIONS, model.header.positions or POSITIONS),
    )
    for side, vocabulary, chosen in (
        ("source", model.source, [*frame.source_prefix, *frame.source_suffix]),
        ("target", model.target, frame.target_prefix),
    ):
        if missing := [token for token in chosen if token not in vocabulary]:
            raise ConfigError(
                f"{model.path}: the {side} vocabulary has no token {shown(missing[0])}, which the model "
                "would read as an unknown word; name one that it has"
            )
    return frame


def as_prefix(token: str) -> list[str]:
    """The tokens to put before a text for the option `token`: none if it is empty."""
    return [token] if token else []


def unwritten(model: CTranslate2Folder) -> list[str]:
    """Target tokens that no translation has: languages, fillers, and the one with which decoding begins."""
    special = {model.tokens.bos_token, model.tokens.decoder_start_token, SPECIALS[BOS]} - {SPECIALS[EOS]}
    return [
        token
        for token in model.target
        if token in special or any(kind.fullmatch(token) for kind in (ON_SOURCE, ON_BOTH, FILLER))
    ]


def describe(model: CTranslate2Folder, frame: Frame) -> str:
    """How the model reads sentences: `reads eng_Latn ... </s>, writes after fra_Latn`."""
    added = [model.tokens.bos_token] * model.tokens.add_source_bos
    source = " ".join([*added, *frame.source_prefix, "...", *frame.source_suffix])
    source += f" {model.tokens.eos_token}" * model.tokens.add_source_eos
    return f"reads {source}, writes after {' '.join(frame.target_prefix) or 'nothing'}"
