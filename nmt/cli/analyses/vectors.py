"""The action `vectors`: the word vectors of a run as text, for other programs and other runs."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from nmt.cli.analyses.neighbors import load, word_vectors
from nmt.cli.options import Parser, add_model, add_output
from nmt.formats import word_vectors as text
from nmt.text.vocab import SPECIALS


@dataclass
class VectorFile:
    """Words and their vectors, ready to be written."""

    words: Sequence[str]
    vectors: Sequence[Sequence[float]]

    def write(self, output: str, name: str) -> None:
        """Write the file that --output names, or to stdout."""
        text.write(output, self.words, self.vectors)


class Vectors:
    """The word vectors of a run as text."""

    help = "The vectors of all words of a run as text, in word2vec's format, which data.source_vectors reads."

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        parser.add_argument(
            "--side", choices=("source", "target"), default="source", help="whose words, of a translator"
        )
        add_output(parser)

    def run(self, args: argparse.Namespace) -> VectorFile:
        vocab, _, model = load(args)
        ids = list(range(len(SPECIALS), len(vocab)))
        return VectorFile(vocab.decode(ids), word_vectors(model, ids, args).cpu().tolist())
