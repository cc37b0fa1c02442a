"""Analyses of trained runs: phrases, words, phrase-map, parse, attention, curves, neighbors,
vectors."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nmt.analysis import curves, embeddings, grconv_parse, plots
from nmt.analysis.embeddings import Floats, MapConfig, NeighborsConfig
from nmt.analysis.phrase_choice import PhrasesConfig
from nmt.cli import options
from nmt.cli.analyses import inputs
from nmt.cli.analyses.base import Findings, add_output
from nmt.cli.arguments import InputPath, add_setting, integer, parse_settings, positive
from nmt.cli.options import Parser, add_model
from nmt.errors import ConfigError, DataError
from nmt.formats import word_vectors as word2vec
from nmt.io import files
from nmt.search.config import BeamConfig
from nmt.text.tokenize import unescape
from nmt.text.vocab import SPECIALS, UNK, Vocab

if TYPE_CHECKING:
    from torch import Tensor


# ---- runs --------------------------------------------------------------------------------------------------


class Phrases:
    """Phrases as the table and the model see them."""

    help = (
        "Best targets of long phrases by table and by model, and phrases sampled from the model (Tables 4.2, "
        "4.3)."
    )

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        parser.add_argument(
            "--table",
            type=InputPath,
            required=True,
            metavar="FILE",
            help="a Moses phrase table with counts, in its usual order",
        )
        for name in ("sources", "min_words", "samples", "seed"):
            add_setting(parser, PhrasesConfig, name)
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        files.existing([args.table])
        run = inputs.load_run(args, args.run)
        from nmt.analysis import runs

        rows = runs.compare_phrases(run, args.table, parse_settings(PhrasesConfig, args))
        if not rows:
            raise DataError(
                f"{args.table}: no source phrase of {args.min_words} words with 4 targets or more; lower "
                "--min-words"
            )

        known = [(row.ln_table, row.ln_model) for row in rows if row.ln_table is not None]
        return Findings(
            table=runs.phrases_table(rows),
            summary=[f"{run.name}: {len({row.source for row in rows})} source phrases"],
            draw=lambda paths: plots.scatter(
                paths,
                *plots.split_points(known),
                x_label="ln p(target | source) of the table",
                y_label=f"ln p of {run.name}",
                title="phrases shown",
            ),
        )


class Words:
    """A map of word vectors."""

    help = "A map of the word vectors (Fig. 4.4), t-SNE with enlarged regions."

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        parser.add_argument(
            "--side", choices=("source", "target"), default="source", help="whose word vectors"
        )
        parser.add_argument("--count", type=positive, default=1000, help="most frequent words shown")
        add_map(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        run = inputs.load_run(args, args.run)
        import torch

        from nmt.models.protocols import WordVectors

        member = run.members[0]
        vocab = member.source_words if args.side == "source" else member.target_words
        if not isinstance(member.model, WordVectors):
            raise ConfigError(f"{args.run}: a model of its type has no word vectors")
        ids = list(range(3, min(len(vocab), args.count + 3)))
        rows = torch.tensor(ids, device=member.model.device)
        vectors = member.model.word_vectors(args.side, rows).cpu().numpy()
        return map_findings(args, vocab.decode(ids), vectors, f"{args.side} words of {run.name}")


class PhraseMap:
    """A map of phrase vectors."""

    help = "A map of the phrase vectors c (Fig. 4.5), t-SNE with enlarged regions."

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        parser.add_argument(
            "--input",
            "-i",
            type=InputPath,
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

        from nmt.models.protocols import SourceVectors

        chosen = choose_phrases(args)
        member = run.members[0]
        ids = [member.source_ids(text, tokenized=True) for text in chosen]
        if not isinstance(member.model, SourceVectors):
            raise ConfigError(f"{args.run}: a model of its type has no vectors of whole phrases")
        parts = [member.model.source_vectors(ids[start : start + 256]) for start in range(0, len(ids), 256)]
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
    points = embeddings.tsne(vectors, args.seed, args.perplexity)
    zoomed = embeddings.dense_regions(points, args.zoom)
    return Findings(
        table=embeddings.map_table(labels, points, zoomed),
        summary=[f"{title}: {len(labels):,} points, {len(zoomed)} regions"],
        draw=lambda paths: plots.map_of(labels, points, zoomed, title, paths),
    )


class Parse:
    """The soft parse of a sentence."""

    help = "The soft parse of a gated recursive convolution (Fig. 6.6), with its best translations."

    def add_options(self, parser: Parser) -> None:
        inputs.add_line(parser)
        parser.add_argument(
            "--translations",
            type=integer(0, 1000),
            default=10,
            metavar="N",
            help="best translations shown below, with their -log p",
        )

    def run(self, args: argparse.Namespace) -> Findings:
        line = inputs.read_line(args)
        run = inputs.load_run(args, args.run)
        from nmt.models.protocols import MergeGates

        member = run.members[0]
        units = member.source.units(line, args.tokenized)
        source = [member.source_words.encode(units)]
        gates = member.model.merge_gates(source) if isinstance(member.model, MergeGates) else None
        if gates is None:
            raise ConfigError(
                f"{args.run}: its encoder is not a grconv, so it has no parse; train with "
                "model.encoder=grconv"
            )
        if len(units) < 2:
            raise DataError(f"{line[:40]!r}: a parse needs two words or more")
        nodes = grconv_parse.nodes(gates[0].cpu().numpy())
        config = BeamConfig(max(1, args.translations))
        found = run.n_best([line], config, args.tokenized)[0][: args.translations]
        best = [(" ".join(translation.words), translation.log_prob) for translation in found]

        return Findings(
            table=grconv_parse.table(units, nodes),
            summary=[f"{-log_prob:.2f}  {text}" for text, log_prob in best],
            draw=lambda paths: files.write_text(paths[0], grconv_parse.svg(units, nodes, best).split("\n")),
            formats=("svg",),
        )


class Attention:
    """The attention weights of a sentence."""

    help = "The source words that each word of a translation attends to: a heat map."

    def add_options(self, parser: Parser) -> None:
        inputs.add_line(parser)
        parser.add_argument(
            "--target", default="", metavar="TEXT", help="its translation; else the run's own"
        )

    def run(self, args: argparse.Namespace) -> Findings:
        line = inputs.read_line(args)
        run = inputs.load_run(args, args.run)
        from nmt.analysis import runs

        source, target, weights = runs.attention_weights(run, line, args.target, args.tokenized)
        return Findings(
            table=runs.attention_table(source, target, weights),
            summary=[" ".join(target[:-1])],
            draw=lambda paths: plots.heat_map(weights, source, target, run.name, paths),
        )


class Curves:
    """Learning curves of runs."""

    help = "Learning curves of runs: training cost, dev cost, dev BLEU."

    def add_options(self, parser: Parser) -> None:
        parser.add_argument("runs", nargs="+", type=InputPath, metavar="RUN_DIR", help="runs of nmt-train")
        inputs.add_names(parser, "names of the runs")
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        inputs.check_names(args.names, args.runs, "runs")
        names = args.names or args.runs
        found = {name: curves.read_curves(Path(run)) for name, run in zip(names, args.runs, strict=True)}
        best = {
            name: max(learned["dev BLEU"], key=lambda point: point[1], default=None)
            for name, learned in found.items()
        }
        summary = [
            f"{name}: best dev BLEU {point[1]:.2f} at update {point[0]:.0f}"
            for name, point in best.items()
            if point
        ]
        return Findings(curves.table(found), summary, lambda paths: plots.learning_curves(found, paths))


# ---- neighbors ---------------------------------------------------------------------------------------------
# The analysis `neighbors`: words with similar vectors.


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
        vocab, ids, model = load_words(args, args.words)
        unread = [word for word, number in zip(args.words, ids, strict=True) if number == UNK]
        if unread:
            raise DataError(
                f"--words: {' '.join(unread)}: not in the vocabulary of {args.run}; only lm.type characters "
                "gives unknown words vectors"
            )
        known = range(len(SPECIALS), len(vocab))
        queries, vectors = (vectors_of(model, list(which), args) for which in (ids, known))
        found = embeddings.nearest(
            args.words,
            queries.cpu().numpy(),
            vocab.decode(known),
            vectors.cpu().numpy(),
            parse_settings(NeighborsConfig, args),
        )
        summary = [
            f"{word}: {', '.join(row.neighbor for row in rows)}"
            for word, rows in groupby(found, key=lambda row: row.word)
        ]
        return Findings(embeddings.neighbors_table(found), summary)


def load_words(args: argparse.Namespace, words: Sequence[str] = ()) -> tuple[Vocab, list[int], object]:
    """Vocabulary, ids of some words and model of a language model's run, or of one side of a translator's."""
    from nmt.lm.base import LMConfig
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

    from nmt.compute.device import resolve_device
    from nmt.lm.base import OpenVocabulary

    if not args.before_highway:
        return word_vectors(model, token_ids, args)
    if not isinstance(model, OpenVocabulary):
        raise ConfigError(f"--before-highway: {args.run} is not of lm.type characters")
    return model.filter_vectors(torch.tensor(token_ids, device=resolve_device(args.device)))


def word_vectors(model: object, token_ids: list[int], args: argparse.Namespace) -> "Tensor":
    """The vectors that words are read as: (T,) -> (T, width)"""
    import torch

    from nmt.compute.device import resolve_device
    from nmt.models.protocols import WordVectors

    if not isinstance(model, WordVectors):
        raise ConfigError(f"{args.run}: a model of its type has no word vectors")
    return model.word_vectors(args.side, torch.tensor(token_ids, device=resolve_device(args.device)))


# ---- vectors -----------------------------------------------------------------------------------------------
# The action `vectors`: the word vectors of a run as text, for other programs and other runs.


@dataclass
class VectorFile:
    """Words and their vectors, ready to be written."""

    words: Sequence[str]
    vectors: Sequence[Sequence[float]]

    def write(self, output: str, name: str) -> None:
        """Write the file that --output names, or to stdout."""
        word2vec.write(output, self.words, self.vectors)


class Vectors:
    """The word vectors of a run as text."""

    help = "The vectors of all words of a run as text, in word2vec's format, which data.source_vectors reads."

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        parser.add_argument(
            "--side", choices=("source", "target"), default="source", help="whose words, of a translator"
        )
        options.add_output(parser)

    def run(self, args: argparse.Namespace) -> VectorFile:
        vocab, _, model = load_words(args)
        ids = list(range(len(SPECIALS), len(vocab)))
        return VectorFile(vocab.decode(ids), word_vectors(model, ids, args).cpu().tolist())
