"""A hybrid system ready to translate raw text."""

from pathlib import Path

from nmt.text.glossary import NOTHING
from smt_bridge.decoder import system as systems
from smt_bridge.decoder.cache import Cache
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.hybrid import folder, lines
from smt_bridge.hybrid.folder import Hybrid
from smt_bridge.hybrid.lines import RawLines
from smt_bridge.moses import ini


def load(
    path: str, config: DecoderConfig | None = None, glossary: str = "", cache: bool | Cache = True
) -> Decoder:
    """The decoder of the folder of a hybrid system: raw text in, raw text out.

    >>> import smt_bridge
    >>> system = smt_bridge.load("system")
    >>> system.translate(["the nurses hear her."])
    ["les infirmières l'entendent."]

    `config`: how to search, instead of the system's way. `glossary`: a file of terms, instead of the
    system's. `cache`: as in `Decoder.load`. ConfigError or DataError, in one line, for a folder that is not
    whole, and for a mistake in the glossary.
    """
    return decoder_of(folder.read(Path(path)), config, glossary, cache)


def decoder_of(
    hybrid: Hybrid, config: DecoderConfig | None = None, glossary: str = "", cache: bool | Cache = True
) -> Decoder:
    """Create the decoder of a hybrid system that has been read; the other arguments are those of `load`."""
    config = config or hybrid.decoder_config()
    system = systems.load_ini(ini.read(hybrid.ini), cache, beside=True)
    return Decoder(system, config, lines=lines_of(hybrid, config.max_line_words, glossary))


def lines_of(hybrid: Hybrid, longest: int, glossary: str = "") -> RawLines:
    """Create the reader and writer of a system's lines. `longest`: words of a line that is not cut.
    `glossary`: instead of the system's. DataError, with the line, for a mistake in it."""
    path = glossary or hybrid.glossary
    terms = lines.of_folder(path, hybrid.source, hybrid.target) if path else NOTHING
    return RawLines(hybrid.source, hybrid.target, longest, terms)
