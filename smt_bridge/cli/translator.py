"""What smt-decode computes: lines in, the lines of its outputs out, in this process and in others."""

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.jobs.texts import Lines
from nmt.text import glossary, sentences
from nmt.text.sentences import SplitLine
from smt_bridge.cli import decoding
from smt_bridge.hybrid import folder
from smt_bridge.hybrid.folder import Hybrid
from smt_bridge.moses import weights as weight_files
from smt_bridge.moses.ini import Ini

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.decoder.translation import Lines as TextLines
    from smt_bridge.decoder.translation import PhraseTranslation
    from smt_bridge.decoder.xml_input import Marked

    Writer = Callable[[int, PhraseTranslation], Iterable[str]]  # number of a line, from 0 -> lines of a file


@dataclass(frozen=True)
class Block:
    """Lines that are translated together, their markup parsed."""

    first: int  # number of the first one in the input, from 0
    lines: list[SplitLine]
    marked: "list[Marked]"  # all sentences of these lines


def hybrid_of(args: argparse.Namespace) -> Hybrid | None:
    """The hybrid system that the options name; None for a phrase-based model."""
    return folder.read(Path(args.model)) if folder.is_hybrid(args.model) else None


def load(args: argparse.Namespace, ini: Ini) -> "PhraseTranslator":
    """In a worker: the model, from an ini with absolute paths."""
    hybrid = hybrid_of(args)
    return PhraseTranslator(args, decoder_of(args, ini, hybrid), hybrid)


def decoder_of(args: argparse.Namespace, ini: Ini, hybrid: Hybrid | None) -> "Decoder":
    """The decoder that the options ask for."""
    return decoding.load(
        args,
        ini,
        args.n_best if args.n_best_list else 0,
        args.distinct,
        weight_files.read(args.weights) if args.weights else None,
        explain=bool(args.explain),
        lines=lines_of(args, hybrid),
        beside=bool(hybrid),
    )


def lines_of(args: argparse.Namespace, hybrid: Hybrid | None) -> "TextLines | None":
    """How lines are read and written; None for tokenized ones without a glossary."""
    from smt_bridge.hybrid import decoder as hybrids
    from smt_bridge.hybrid.lines import GlossaryLines

    if hybrid:
        return hybrids.lines_of(hybrid, decoding.longest_line(args), args.glossary)
    return GlossaryLines(glossary.of_words(args.glossary)) if args.glossary else None


def split_lines(args: argparse.Namespace, hybrid: Hybrid | None, lines: Iterable[str]) -> Iterator[SplitLine]:
    """Lines in sentences with --split-sentences, else each as one."""
    for line in lines:
        if hybrid and args.split_sentences:
            yield sentences.split(line, hybrid.config.source.language)
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

    def lines(self, block: Block) -> Lines:
        """The lines that a block of the input adds to each output."""
        outputs: Lines = [[] for _ in range(1 + len(self.writers))]
        translations = map(self.decoder.translate_line, block.marked)
        for number, line in enumerate(block.lines, block.first):
            for lines, more in zip(outputs, self.outputs(number, line, translations), strict=True):
                lines += more
        return outputs

    def outputs(self, number: int, line: SplitLine, translations: "Iterator[PhraseTranslation]") -> Lines:
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
