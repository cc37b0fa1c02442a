"""nmt-analyze words and phrase-map: t-SNE maps of what a model has learned."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nmt import files
from nmt.analysis import maps, plots
from nmt.analysis.maps import Floats, MapConfig
from nmt.cli import options
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_output
from nmt.cli.arguments import Input, add_setting, positive
from nmt.cli.options import Parser
from nmt.errors import DataError
from nmt.text.escapes import unescape


class Words:
    """A map of word vectors."""

    help = "A map of the word vectors (Fig. 4.4), t-SNE with enlarged regions."

    def add_options(self, parser: Parser) -> None:
        options.add_model(parser)
        parser.add_argument(
            "--side", choices=("source", "target"), default="source", help="whose word vectors"
        )
        parser.add_argument("--count", type=positive, default=1000, help="most frequent words shown")
        add_map(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        run = inputs.load_run(args, args.run)
        import torch

        member = run.members[0]
        vocab = member.source_words if args.side == "source" else member.target_words
        part = member.model.encoder if args.side == "source" else member.model.decoder
        ids = list(range(3, min(len(vocab), args.count + 3)))
        with torch.no_grad():
            vectors = part.embedding(torch.tensor(ids, device=args.device)).cpu().numpy()
        return map_findings(args, vocab.decode(ids), vectors, f"{args.side} words of {run.name}")


class PhraseMap:
    """A map of phrase vectors."""

    help = "A map of the phrase vectors c (Fig. 4.5), t-SNE with enlarged regions."

    def add_options(self, parser: Parser) -> None:
        options.add_model(parser)
        parser.add_argument(
            "--input",
            "-i",
            type=Input,
            default="-",
            metavar="FILE",
            help="phrases, one a line, as tokenized words; or a phrase table (.gz), whose sources are read",
        )
        parser.add_argument("--count", type=positive, default=5000, help="phrases drawn at random")
        parser.add_argument("--min-words", type=positive, default=4, help="fewest words of a phrase")
        add_map(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        run = inputs.load_run(args, args.run)
        import torch

        from nmt.data.batches import pack_source

        chosen = choose_phrases(args)
        member = run.members[0]
        ids = [member.source_words.encode(member.source.units(text, tokenized=True)) for text in chosen]
        with torch.no_grad():
            encoder, device = member.model.encoder, member.model.device
            parts = [
                encoder(pack_source(ids[start : start + 256]).to(device)).summary
                for start in range(0, len(ids), 256)
            ]
        return map_findings(args, chosen, torch.cat(parts).cpu().numpy(), f"phrase vectors c of {run.name}")


def choose_phrases(args: argparse.Namespace) -> list[str]:
    """Random phrases of --min-words words or more, each once, in the order of the input."""
    lines = (line.split("|||")[0] for line in files.read_lines(args.input))
    words = (tuple(map(unescape, files.split_words(line))) for line in lines)
    found = list(dict.fromkeys(phrase for phrase in words if len(phrase) >= args.min_words))
    if not found:
        raise DataError(
            f"{files.name_of(args.input)}: no phrase of {args.min_words} words or more; lower --min-words"
        )
    rows = np.sort(np.random.default_rng(args.seed).permutation(len(found))[: args.count])
    return [" ".join(found[row]) for row in rows]


def add_map(parser: Parser) -> None:
    """The options of a map, and --output."""
    for name in ("zoom", "perplexity", "seed"):
        add_setting(parser, MapConfig, name)
    add_output(parser)


def map_findings(args: argparse.Namespace, labels: Sequence[str], vectors: Floats, title: str) -> Findings:
    """The map of labelled vectors (n, d)."""
    points = maps.tsne(vectors, args.seed, args.perplexity)
    zoomed = maps.regions(points, args.zoom)

    def draw(paths: Sequence[Path]) -> None:
        plots.map_of(labels, points, zoomed, title, paths)

    summary = f"{title}: {len(labels):,} points, {len(zoomed)} regions"
    return Findings(maps.table(labels, points, zoomed), [summary], draw)
