"""The analysis `neighbors`: words with similar vectors."""

import argparse
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.analysis import neighbors
from nmt.analysis.neighbors import NeighborsConfig
from nmt.cli import options
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_output
from nmt.cli.arguments import add_setting, settings_of
from nmt.cli.options import Parser, add_model
from nmt.errors import ConfigError, DataError
from nmt.text.vocab import SPECIALS, UNK, Vocab

if TYPE_CHECKING:
    from torch import Tensor


class Neighbors:
    """The nearest neighbors of words."""

    help = "Words with the vectors nearest to those of given words; by spelling, of unknown ones too."

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        parser.add_argument(
            "--words", nargs="+", required=True, metavar="WORD", help="words, as the run cuts them"
        )
        parser.add_argument(
            "--side", choices=("source", "target"), default="source", help="whose words, of a translator"
        )
        parser.add_argument(
            "--before-highway",
            action="store_true",
            help="the vectors of the convolutions of lm.type characters, which are about spelling alone",
        )
        add_setting(parser, NeighborsConfig, "count")
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        vocab, ids, model = load(args, args.words)
        unread = [word for word, number in zip(args.words, ids, strict=True) if number == UNK]
        if unread:
            raise DataError(
                f"--words: {' '.join(unread)}: not in the vocabulary of {args.run}; only lm.type characters "
                "gives unknown words vectors"
            )
        known = range(len(SPECIALS), len(vocab))
        queries, vectors = (vectors_of(model, list(which), args) for which in (ids, known))
        found = neighbors.nearest(
            args.words,
            queries.cpu().numpy(),
            vocab.decode(known),
            vectors.cpu().numpy(),
            settings_of(NeighborsConfig, args),
        )
        summary = [
            f"{word}: {', '.join(row.neighbor for row in rows)}"
            for word, rows in groupby(found, key=lambda row: row.word)
        ]
        return Findings(neighbors.table(found), summary)


def load(args: argparse.Namespace, words: Sequence[str] = ()) -> tuple[Vocab, list[int], object]:
    """Vocabulary, ids of some words and model of a language model's run, or of one side of a translator's."""
    from nmt.lm.config import LMConfig
    from nmt.runs import checkpoint

    if isinstance(checkpoint.checked_config(Path(args.run)).model, LMConfig):
        options.set_up_torch(args.device, args.threads, args.matmul, args.run)
        lm = checkpoint.load_lm(args.run, args.checkpoint, args.device)
        return lm.words, lm.encode([words])[0], lm.model
    member = inputs.load_run(args, args.run).members[0]
    vocab = member.source_words if args.side == "source" else member.target_words
    return vocab, vocab.encode(words), member.model


def vectors_of(model: object, token_ids: list[int], args: argparse.Namespace) -> "Tensor":
    """The vectors of words, of those of the convolutions with --before-highway: (T,) -> (T, width)"""
    import torch

    from nmt.compute.device import resolve
    from nmt.lm.protocols import OpenVocabulary

    if not args.before_highway:
        return word_vectors(model, token_ids, args)
    if not isinstance(model, OpenVocabulary):
        raise ConfigError(f"--before-highway: {args.run} is not of lm.type characters")
    return model.filter_vectors(torch.tensor(token_ids, device=resolve(args.device)))


def word_vectors(model: object, token_ids: list[int], args: argparse.Namespace) -> "Tensor":
    """The vectors that words are read as: (T,) -> (T, width)"""
    import torch

    from nmt.compute.device import resolve
    from nmt.models.protocols import WordVectors

    if not isinstance(model, WordVectors):
        raise ConfigError(f"{args.run}: a model of its type has no word vectors")
    return model.word_vectors(args.side, torch.tensor(token_ids, device=resolve(args.device)))
