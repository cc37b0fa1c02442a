"""Options that smt-decode and smt-tune share, the way from them to a decoder, and what smt-decode computes
with it."""

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


# ---- options, and the decoder ------------------------------------------------------------------------------


log = logging.getLogger(__name__)

SEARCH = (
    "stack", "table_limit", "distortion_limit", "beam_threshold", "max_phrase_length",
    "early_distortion_cost", "drop_unknown", "mark_unknown", "xml_input", "xml_brackets", "neural_beam",
    "buffer",
)  # fmt: skip
SWITCHES = ("early_distortion_cost", "drop_unknown", "mark_unknown")


def add_search(parser: argparse.ArgumentParser) -> None:
    """Options of the search, of its workers and of the cache."""
    for name in SEARCH:
        if name in SWITCHES:
            add_setting(parser, DecoderConfig, name, action=argparse.BooleanOptionalAction)
        elif name == "xml_brackets":
            add_setting(parser, DecoderConfig, name, type=brackets, metavar="'< >'")
        else:
            add_setting(parser, DecoderConfig, name)
    options.add_max_line_words(parser, "are translated in parts, or refused for an n-best list")
    jobs.add_executor(
        parser,
        help="sentences translated at a time, by threads of this process, or with --executor processes by "
        "others; the result does not depend on it",
    )
    parser.add_argument(
        "--cache",
        metavar="DIR",
        default=None,
        help="where tables and LMs are kept, ready to load; default: see smt-cache",
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="neither read nor write the cache, which makes loading fast"
    )


def in_threads(args: argparse.Namespace) -> bool:
    """Do threads of this process decode, which share tables and models?"""
    return not args.cluster and args.executor in ("", "local")


def elsewhere(ini: Ini, beside: bool = False) -> Ini:
    """An ini as other processes find its tables: with absolute paths. `beside`: only those beside it."""
    folder = Path(ini.path).parent
    return ini_paths.with_absolute_paths(ini, [folder] if beside else [".", folder])


def check_tables(ini: Ini, outputs: Sequence[tuple[str, str]], beside: bool = False) -> None:
    """ConfigError when an output, (option, path), is a moses.ini that is read, or one of its tables and
    models. `beside`: only those beside the ini."""
    roots = [*([] if beside else ["."]), str(Path(ini.path).parent)]
    found = [
        find_table(feature.options["path"], root)
        for feature in ini.features
        if "path" in feature.options
        for root in roots
    ]
    tables = [("MODEL", str(place)) for place in found if place]
    check_separate([("MODEL", ini.path), *tables], outputs)


def brackets(text: str) -> tuple[str, str]:
    """An argument type: what tags begin and end with."""
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
    """The decoder that the options ask for, of an ini that has been read. `lines`: of text that is not
    tokenized, or has a glossary. `beside`: tables and models are those beside the ini."""
    from smt_bridge.decoder import system as systems
    from smt_bridge.decoder.cache import Cache
    from smt_bridge.decoder.compiled import HAVE_NUMBA
    from smt_bridge.decoder.decoder import Decoder

    asked = {"max_line_words": longest_line(args), "nbest": nbest, "distinct": distinct, "explain": explain}
    config = parse_settings(DecoderConfig, args, **asked)
    config.check()
    system = systems.load_ini(ini, not args.no_cache and Cache(args.cache or ""), beside)
    if any(getattr(kind, "needs_torch", False) for kind, _ in system.feature_lines):
        options.set_up_torch("cpu", 1, "mkl")
    decoder = Decoder(system, config, weights, lines=lines)
    log.info("%s", describe_decoder(decoder))
    if not HAVE_NUMBA:
        log.warning(
            "the package numba is not installed: decoding is many times slower; install it with: pip "
            "install 'nmt-smt[smt]'"
        )
    elif decoder.compiled is None:
        log.warning(
            "a binary language model is read word by word: decoding is many times slower; give the ARPA file"
        )
    return decoder


def longest_line(args: argparse.Namespace) -> int:
    """The most words of a line that is not cut."""
    return int(args.max_line_words or MAX_LINE_WORDS)


def describe_decoder(decoder: "Decoder") -> str:
    """The model and the settings of the search, as the log reports them."""
    table, search = decoder.system.table, decoder.settings
    features = " ".join(f"{name}({size})" for name, size in decoder.system.sizes.items())
    return (
        f"{table.rows:,} phrase pairs of {len(table.sources):,} sources, features {features}; stack "
        f"{search.stack or 'unlimited'}, table limit {search.table_limit or 'none'}, distortion limit "
        f"{search.distortion_limit}"
    )


# ---- translations ------------------------------------------------------------------------------------------
# What smt-decode computes: lines in, the lines of its outputs out, in this process and in others.


if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.decoder.translation import Lines, PhraseTranslation
    from smt_bridge.decoder.xml_input import Marked

    Writer = Callable[[int, PhraseTranslation], Iterable[str]]  # number of a line, from 0 -> lines of a file


@dataclass(frozen=True)
class LineBlock:
    """Lines that are translated together, their markup parsed."""

    first: int  # number of the first one in the input, from 0
    lines: list[SplitLine]
    marked: "list[Marked]"  # all sentences of these lines


def hybrid_of(args: argparse.Namespace) -> Hybrid | None:
    """The hybrid system that the options name; None for a phrase-based model."""
    return folder.read(Path(args.model)) if folder.is_hybrid(args.model) else None


def load_translator(args: argparse.Namespace, ini: Ini) -> "PhraseTranslator":
    """In a worker: the model, from an ini with absolute paths."""
    hybrid = hybrid_of(args)
    return PhraseTranslator(args, decoder_of(args, ini, hybrid), hybrid)


def decoder_of(args: argparse.Namespace, ini: Ini, hybrid: Hybrid | None) -> "Decoder":
    """The decoder that the options ask for."""
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
    """How lines are read and written; None for tokenized ones without a glossary."""
    from smt_bridge.hybrid import decoder as hybrids
    from smt_bridge.hybrid.lines import GlossaryLines

    if hybrid:
        return hybrids.lines_of(hybrid, longest_line(args), args.glossary)
    return GlossaryLines(glossary.of_words(args.glossary)) if args.glossary else None


def split_lines(args: argparse.Namespace, hybrid: Hybrid | None, lines: Iterable[str]) -> Iterator[SplitLine]:
    """Lines in sentences with --split-sentences, else each as one."""
    for line in lines:
        if hybrid and args.split_sentences:
            yield sentences.split_line(line, hybrid.config.source.language)
        else:
            yield SplitLine([line], [])


class PhraseTranslator:
    """A decoder with the options of one call."""

    def __init__(self, args: argparse.Namespace, decoder: "Decoder", hybrid: Hybrid | None) -> None:
        self.args, self.decoder, self.hybrid = args, decoder, hybrid
        self.writers = [writer for name, writer in writers(decoder).items() if getattr(args, name)]
        self.blank = sentences.blank_of(hybrid.config.target.language) if hybrid else ""

    def models(self) -> list[Path]:
        """The files that translations depend on, besides the text."""
        from smt_bridge.decoder.system import files_of

        given = [Path(path) for path in (self.args.weights, self.args.glossary) if path]
        if self.hybrid:
            names = (folder.FILE, *self.hybrid.parts)
            return [*(self.hybrid.folder / name for name in names), *given]
        return [*files_of(self.decoder.system.ini), *given]

    def lines(self, block: LineBlock) -> OutputLines:
        """The lines that a block of the input adds to each output."""
        outputs: OutputLines = [[] for _ in range(1 + len(self.writers))]
        translations = map(self.decoder.translate_line, block.marked)
        for number, line in enumerate(block.lines, block.first):
            for lines, more in zip(outputs, self.outputs(number, line, translations), strict=True):
                lines += more
        return outputs

    def outputs(
        self, number: int, line: SplitLine, translations: "Iterator[PhraseTranslation]"
    ) -> OutputLines:
        """The lines that a line of the input, counted from 0, adds to each output. `translations`: the next
        ones are those of its sentences."""
        results = list(islice(translations, len(line.sentences)))
        text = line.join([self.decoder.lines.text(result) for result in results], self.blank)
        return [[text], *(list(writer(number, results[0])) for writer in self.writers)]


def writers(decoder: "Decoder") -> "dict[str, Writer]":
    """What is written besides a translation, by the name of its option."""
    from smt_bridge.decoder import feature_values, translation

    def explained(number: int, found: "PhraseTranslation") -> Iterable[str]:
        rows = [] if number else feature_values.explain_header(decoder.weights)
        return map("\t".join, [*rows, *feature_values.explain_rows(number + 1, found)])

    return {
        "n_best_list": lambda number, found: (
            decoder.entry(number, found, derivation) for derivation in found.derivations
        ),
        "alignments": lambda number, found: [
            " ".join(f"{source}-{target}" for source, target in translation.alignment(found))
        ],
        "explain": explained,
        "source_words": lambda number, found: [" ".join(found.source)],
        "target_words": lambda number, found: [" ".join(found.text)],
    }
