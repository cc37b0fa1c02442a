"""Options that smt-decode and smt-tune share, loading a decoder as they say, and the translator of
smt-decode."""

import argparse
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli import jobs, options
from nmt.cli.arguments import add_setting, check_separate, parse_settings
from nmt.text import glossary, sentences
from nmt.text.sentences import MAX_LINE_WORDS, SplitLine
from nmt.work.texts import Lines as OutputLines
from smt_bridge.decoder import xml_input
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.hybrid import folder
from smt_bridge.hybrid.folder import Hybrid
from smt_bridge.moses import ini as ini_paths
from smt_bridge.moses import weights as weight_files
from smt_bridge.moses.ini import Ini, find_table

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.decoder.translation import Lines
    from smt_bridge.moses.weights import Weights


# ---- options and decoder -----------------------------------------------------------------------------------


log = logging.getLogger(__name__)

SEARCH = (
    "stack", "table_limit", "distortion_limit", "beam_threshold", "max_phrase_length",
    "early_distortion_cost", "drop_unknown", "mark_unknown", "xml_input", "xml_brackets", "neural_beam",
    "buffer",
)  # fmt: skip
SWITCHES = ("early_distortion_cost", "drop_unknown", "mark_unknown")


def add_search(parser: argparse.ArgumentParser) -> None:
    """Add the options of the search, of its workers and of the cache."""
    for name in SEARCH:
        if name in SWITCHES:
            add_setting(parser, DecoderConfig, name, action=argparse.BooleanOptionalAction)
        elif name == "xml_brackets":
            add_setting(parser, DecoderConfig, name, type=parse_brackets, metavar="'< >'")
        else:
            add_setting(parser, DecoderConfig, name)
    options.add_max_line_words(parser, "are translated in parts, or refused for an n-best list")
    jobs.add_executor(
        parser,
        help="number of threads that translate, or with --executor processes, of processes; the result does "
        "not depend on it",
    )
    parser.add_argument(
        "--cache",
        metavar="DIR",
        default=None,
        help="cache folder of tables and language models; default: see smt-cache",
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="neither read nor write the cache; loading is slower"
    )


def uses_threads(args: argparse.Namespace) -> bool:
    """Whether threads of this process decode, which share tables and models."""
    return not args.cluster and args.executor in ("", "local")


def absolute_ini(ini: Ini, beside: bool = False) -> Ini:
    """An ini with absolute paths, for other processes. `beside`: look for tables only beside the ini."""
    folder = Path(ini.path).parent
    return ini_paths.with_absolute_paths(ini, [folder] if beside else [".", folder])


def check_tables(ini: Ini, outputs: Sequence[tuple[str, str]], beside: bool = False) -> None:
    """ConfigError if an output, (option, path), is the moses.ini or one of its tables and models. `beside`:
    look for tables only beside the ini."""
    roots = [*([] if beside else ["."]), str(Path(ini.path).parent)]
    tables_found = [
        find_table(feature.options["path"], root)
        for feature in ini.features
        if "path" in feature.options
        for root in roots
    ]
    tables = [("MODEL", str(path)) for path in tables_found if path]
    check_separate([("MODEL", ini.path), *tables], outputs)


def parse_brackets(text: str) -> tuple[str, str]:
    """Argument type: the beginning and the end of tags."""
    try:
        return xml_input.brackets(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def load_decoder(
    args: argparse.Namespace,
    ini: Ini,
    nbest: int,
    distinct: bool,
    weights: "Weights | None" = None,
    *,
    explain: bool = False,
    lines: "Lines | None" = None,
    beside: bool = False,
) -> "Decoder":
    """Load the decoder of an ini as the options say. `lines`: converts lines of raw text, or applies a
    glossary; `beside`: look for tables and models only beside the ini."""
    from smt_bridge.decoder import system as systems
    from smt_bridge.decoder.cache import Cache
    from smt_bridge.decoder.compiled import HAVE_NUMBA
    from smt_bridge.decoder.decoder import Decoder

    more = {"max_line_words": longest_line(args), "nbest": nbest, "distinct": distinct, "explain": explain}
    config = parse_settings(DecoderConfig, args, **more)
    config.check()
    system = systems.load_ini(ini, not args.no_cache and Cache(args.cache or ""), beside)
    if any(getattr(kind, "needs_torch", False) for kind, _ in system.feature_lines):
        options.set_up_torch("cpu", 1, "mkl")
    decoder = Decoder(system, config, weights, lines=lines)
    log.info("%s", describe_decoder(decoder))
    if not HAVE_NUMBA:
        log.warning(
            "decoding is many times slower without the package numba; install it with: pip install "
            "'nmt-smt[smt]'"
        )
    elif decoder.compiled is None:
        log.warning("decoding is many times slower with a binary language model; give the ARPA file instead")
    return decoder


def longest_line(args: argparse.Namespace) -> int:
    """The greatest number of words of a line that is translated as a whole."""
    return int(args.max_line_words or MAX_LINE_WORDS)


def describe_decoder(decoder: "Decoder") -> str:
    """Describe the model and the settings of the search, for the log."""
    table, search = decoder.system.table, decoder.settings
    features = " ".join(f"{name}({size})" for name, size in decoder.system.sizes.items())
    return (
        f"{table.rows:,} phrase pairs of {len(table.sources):,} sources, features {features}; stack "
        f"{search.stack or 'unlimited'}, table limit {search.table_limit or 'none'}, distortion limit "
        f"{search.distortion_limit}"
    )


# ---- translator of smt-decode ------------------------------------------------------------------------------


if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.decoder.translation import Lines, PhraseTranslation
    from smt_bridge.decoder.xml_input import MarkedLine

    Writer = Callable[[int, PhraseTranslation], Iterable[str]]  # number of a line, from 0 -> lines of a file


@dataclass(frozen=True)
class LineBlock:
    """Lines that are translated together, with parsed markup."""

    first: int  # number of the first line in the input, from 0
    lines: list[SplitLine]
    marked: "list[MarkedLine]"  # all sentences of the lines


def load_hybrid(args: argparse.Namespace) -> Hybrid | None:
    """Read the hybrid system that the options name; None for a phrase-based model."""
    return folder.read(Path(args.model)) if folder.is_hybrid(args.model) else None


def load_translator(args: argparse.Namespace, ini: Ini) -> "PhraseTranslator":
    """In a worker: load the model from an ini with absolute paths."""
    hybrid = load_hybrid(args)
    return PhraseTranslator(args, make_decoder(args, ini, hybrid), hybrid)


def make_decoder(args: argparse.Namespace, ini: Ini, hybrid: Hybrid | None) -> "Decoder":
    """Load the decoder with the options of smt-decode."""
    return load_decoder(
        args,
        ini,
        args.n_best if args.n_best_list else 0,
        args.distinct,
        weight_files.read(args.weights) if args.weights else None,
        explain=bool(args.explain),
        lines=text_lines(args, hybrid),
        beside=bool(hybrid),
    )


def text_lines(args: argparse.Namespace, hybrid: Hybrid | None) -> "Lines | None":
    """Conversion of lines to words and back; None for tokenized lines without a glossary."""
    from smt_bridge.hybrid import decoder as hybrids
    from smt_bridge.hybrid.lines import GlossaryLines

    if hybrid:
        return hybrids.lines_of(hybrid, longest_line(args), args.glossary)
    return GlossaryLines(glossary.of_words(args.glossary)) if args.glossary else None


def split_lines(args: argparse.Namespace, hybrid: Hybrid | None, lines: Iterable[str]) -> Iterator[SplitLine]:
    """Split lines into sentences with --split-sentences; without it, each line is one sentence."""
    for line in lines:
        if hybrid and args.split_sentences:
            yield sentences.split_line(line, hybrid.config.source.language)
        else:
            yield SplitLine([line], [])


class PhraseTranslator:
    """A decoder with the options of smt-decode."""

    def __init__(self, args: argparse.Namespace, decoder: "Decoder", hybrid: Hybrid | None) -> None:
        self.args, self.decoder, self.hybrid = args, decoder, hybrid
        self.writers = [writer for name, writer in writers(decoder).items() if getattr(args, name)]
        self.blank = sentences.blank_of(hybrid.config.target.language) if hybrid else ""

    def models(self) -> list[Path]:
        """The files, besides the input, that translations depend on."""
        from smt_bridge.decoder.system import files_of

        options_files = [Path(path) for path in (self.args.weights, self.args.glossary) if path]
        if self.hybrid:
            names = (folder.FILE, *self.hybrid.parts)
            return [*(self.hybrid.folder / name for name in names), *options_files]
        return [*files_of(self.decoder.system.ini), *options_files]

    def lines(self, block: LineBlock) -> OutputLines:
        """Translate a block: the lines that it adds to each output."""
        outputs: OutputLines = [[] for _ in range(1 + len(self.writers))]
        translations = map(self.decoder.translate_line, block.marked)
        for number, line in enumerate(block.lines, block.first):
            for lines, more in zip(outputs, self.outputs(number, line, translations), strict=True):
                lines += more
        return outputs

    def outputs(
        self, number: int, line: SplitLine, translations: "Iterator[PhraseTranslation]"
    ) -> OutputLines:
        """The lines that line `number` of the input, counted from 0, adds to each output. Takes the
        translations of its sentences from `translations`."""
        results = list(islice(translations, len(line.sentences)))
        text = line.join([self.decoder.lines.text(result) for result in results], self.blank)
        return [[text], *(list(writer(number, results[0])) for writer in self.writers)]


def writers(decoder: "Decoder") -> "dict[str, Writer]":
    """Functions that write the outputs besides the translation, by name of the option."""
    from smt_bridge.decoder import feature_values, translation

    def explained(number: int, result: "PhraseTranslation") -> Iterable[str]:
        rows = [] if number else feature_values.explain_header(decoder.weights)
        return map("\t".join, [*rows, *feature_values.explain_rows(number + 1, result)])

    return {
        "n_best_list": lambda number, translated: (
            decoder.entry(number, translated, derivation) for derivation in translated.derivations
        ),
        "alignments": lambda number, translated: [
            " ".join(f"{source}-{target}" for source, target in translation.alignment(translated))
        ],
        "explain": explained,
        "source_words": lambda number, translated: [" ".join(translated.source)],
        "target_words": lambda number, translated: [" ".join(translated.text)],
    }
