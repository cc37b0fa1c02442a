"""Analyses of word and phrase vectors: maps, nearest neighbors, export."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nmt.analysis.actions import Findings, ResultTable, add_output, load_run, record_table
from nmt.analysis.plots import CYCLE, label_text, pyplot, save_figure
from nmt.cli import options
from nmt.cli.arguments import add_settings, positive
from nmt.cli.options import Parser, add_model
from nmt.config.settings import number
from nmt.errors import ConfigError, DataError, UserError
from nmt.formats import word_vectors as word2vec
from nmt.io import files
from nmt.text.tokenize import unescape
from nmt.text.vocab import SPECIALS, UNK, Vocab

if TYPE_CHECKING:
    from torch import Tensor


Vectors = NDArray[np.floating]


# ---- maps --------------------------------------------------------------------------------------------------


@dataclass
class MapConfig:
    """Settings of a two-dimensional map of vectors."""

    zoom: int = number(3, least=0, most=100, help="number of dense regions to show enlarged")
    perplexity: float = number(30.0, above=0, help="t-SNE's number of neighbors")
    seed: int = number(1, least=0, most=2**32 - 1, help="random seed of t-SNE and of the choice of phrases")


@dataclass
class Region:
    """A square of the map, centered at (x, y)."""

    x: float
    y: float
    half: float  # half of the side
    members: list[int]  # indices of the points inside, or of those nearest to the center


def tsne(vectors: Vectors, seed: int, perplexity: float) -> Vectors:
    """Project vectors by scikit-learn's Barnes-Hut t-SNE (van der Maaten 2013): (n, d) -> (n, 2). The
    perplexity is at most (n - 1) / 3.

    DataError for fewer than 5 vectors, UserError where scikit-learn is not installed.
    """
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise UserError("maps need scikit-learn: pip install 'nmt-smt[analysis]'") from error
    if len(vectors) < 5:
        raise DataError(f"{len(vectors)} vectors are too few for a map; expected 5 or more")
    model = TSNE(2, perplexity=min(perplexity, (len(vectors) - 1) / 3), init="pca", random_state=seed)
    return np.asarray(model.fit_transform(np.asarray(vectors, np.float32)))


def dense_regions(points: Vectors, count: int, share: float = 0.08, most: int = 25) -> list[Region]:
    """Find up to `count` squares around the densest of `points` (n, 2) that do not overlap.

    The side of a square is `share` of the map's longer side. A region lists at most `most` points, those
    nearest to its center.
    """
    span = float((points.max(0) - points.min(0)).max())
    half = share * span / 2
    x, y = np.ascontiguousarray(points.T)

    def distances(row: int) -> Vectors:
        return np.asarray(np.maximum(np.abs(x - x[row]), np.abs(y - y[row])))

    crowd = np.array([np.count_nonzero(distances(row) <= half) for row in range(len(points))])
    regions: list[Region] = []
    for row in np.argsort(-crowd, kind="stable").tolist():
        if len(regions) == count:
            break
        if all(float(np.abs(points[row] - (region.x, region.y)).max()) > 2 * half for region in regions):
            distance = distances(row)
            near = np.flatnonzero(distance <= half)
            near = near[np.argsort(distance[near], kind="stable")][:most]
            regions.append(Region(float(x[row]), float(y[row]), half, sorted(near.tolist())))
    return regions


def map_table(labels: Sequence[str], points: Vectors, zoomed: Sequence[Region]) -> ResultTable:
    """Build a table with one row per point, and the number, from 1, of the enlarged region that lists it."""
    numbers = {member: number for number, region in enumerate(zoomed, 1) for member in region.members}
    return ResultTable(
        {"text": "", "x": ".4f", "y": ".4f", "region": ""},
        [
            [label, x, y, numbers.get(row)]
            for row, (label, (x, y)) in enumerate(zip(labels, points, strict=True))
        ],
    )


def plot_map(
    labels: Sequence[str], points: Vectors, zoomed: Sequence[Region], title: str, paths: Sequence[Path]
) -> None:
    """Draw the whole map, points (n, 2), and next to it each region of `zoomed`, enlarged and with its
    labels; write the figure to `paths`."""
    panels = 1 + len(zoomed)
    figure, axes = pyplot().subplots(
        1, panels, figsize=(5.2 * panels, 5.2), layout="constrained", squeeze=False
    )
    overview, *enlarged = axes[0]
    overview.plot(points[:, 0], points[:, 1], ".", markersize=2.5, alpha=0.5, color=CYCLE[0], rasterized=True)
    overview.set_title(label_text(f"{title} ({len(points):,})"), fontsize=10)
    for index, (region, panel) in enumerate(zip(zoomed, enlarged, strict=True), 1):
        left, low, size = region.x - region.half, region.y - region.half, 2 * region.half
        overview.add_patch(
            pyplot().Rectangle((left, low), size, size, fill=False, color=CYCLE[1], linewidth=1)
        )
        overview.annotate(str(index), (left, low + size), color=CYCLE[1], fontsize=9, va="bottom")
        panel.set_xlim(left, left + size)
        panel.set_ylim(low, low + size)
        for member in region.members:
            panel.plot(*points[member], ".", markersize=3, color=CYCLE[0])
            panel.annotate(label_text(labels[member]), points[member], fontsize=7, clip_on=True)
        panel.set_title(f"region {index}", fontsize=10)
    for panel in axes[0]:
        panel.set_xticks([])
        panel.set_yticks([])
    save_figure(figure, paths)


class WordMapAnalysis:
    """A map of word vectors (van Merriënboer 2018, fig. 4.4)."""

    help = "A map of the word vectors, t-SNE with enlarged regions."

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        parser.add_argument(
            "--side", choices=("source", "target"), default="source", help="side whose word vectors are shown"
        )
        parser.add_argument(
            "--count", type=positive, default=1000, help="number of most frequent words to show"
        )
        add_map(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        run = load_run(args, args.run)
        member = run.members[0]
        vocab = member.source_words if args.side == "source" else member.target_words
        ids = list(range(len(SPECIALS), min(len(vocab), args.count + len(SPECIALS))))
        vectors = word_vectors(member.model, ids, args).cpu().numpy()
        return map_findings(args, vocab.decode(ids), vectors, f"{args.side} words of {run.name}")


class PhraseMapAnalysis:
    """A map of phrase vectors (van Merriënboer 2018, fig. 4.5)."""

    help = "A map of the phrase vectors c, t-SNE with enlarged regions."

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        options.add_input(
            parser, "tokenized phrases, one per line; or a phrase table (.gz), whose source phrases are read"
        )
        parser.add_argument(
            "--count", type=positive, default=5000, help="number of phrases to draw at random"
        )
        parser.add_argument(
            "--min-words", type=positive, default=4, help="minimum length of a phrase in words"
        )
        add_map(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        run = load_run(args, args.run)
        import torch

        phrases = choose_phrases(args)
        member = run.for_text(tokenized=True).members[0]
        ids = [member.source_ids(phrase) for phrase in phrases]
        parts = []
        for start in range(0, len(ids), 256):
            vectors = member.model.source_vectors(ids[start : start + 256])
            if vectors is None:
                raise ConfigError(f"{args.run}: models of this type have no phrase vectors")
            parts.append(vectors)
        return map_findings(args, phrases, torch.cat(parts).cpu().numpy(), f"phrase vectors c of {run.name}")


def choose_phrases(args: argparse.Namespace) -> list[str]:
    """Draw up to --count distinct phrases of at least --min-words words; returns them in the order of the
    input, without Moses' escapes. DataError if there are none."""
    lines = (line.split("|||")[0] for line in files.read_lines(args.input))
    words = (tuple(map(unescape, files.split_words(line))) for line in lines)
    phrases = list(dict.fromkeys(phrase for phrase in words if len(phrase) >= args.min_words))
    if not phrases:
        raise DataError(
            f"{files.name_of(args.input)}: no phrase of {args.min_words} words or more; lower --min-words"
        )
    rows = np.sort(np.random.default_rng(args.seed).permutation(len(phrases))[: args.count])
    return [" ".join(phrases[row]) for row in rows]


def add_map(parser: Parser) -> None:
    """Add the options of a map, and --output."""
    add_settings(parser, MapConfig, "zoom", "perplexity", "seed")
    add_output(parser)


def map_findings(args: argparse.Namespace, labels: Sequence[str], vectors: Vectors, title: str) -> Findings:
    """Project labeled vectors (n, d) to a map titled `title`; returns its table and figure. DataError for
    fewer than 5 vectors, UserError without scikit-learn."""
    points = tsne(vectors, args.seed, args.perplexity)
    zoomed = dense_regions(points, args.zoom)
    return Findings(
        table=map_table(labels, points, zoomed),
        summary=[f"{title}: {len(labels):,} points, {len(zoomed)} regions"],
        draw=lambda paths: plot_map(labels, points, zoomed, title, paths),
    )


# ---- neighbors ---------------------------------------------------------------------------------------------


@dataclass
class Neighbor:
    """A word with one of its nearest neighbors and their cosine."""

    word: str
    known: bool  # whether the word is in the vocabulary
    rank: int  # from 1
    neighbor: str
    cosine: float


def nearest(
    words: Sequence[str], queries: Vectors, vocab: Sequence[str], vectors: Vectors, count: int
) -> list[Neighbor]:
    """Find the nearest neighbors of each word by cosine, without the word itself (Jernite 2018, table 2.5).

    `queries` (Q, d) are the vectors of `words`, `vectors` (V, d) those of `vocab`. Each word gets
    `count` neighbors, or as many as there are.
    """
    cosines = unit_vectors(queries) @ unit_vectors(vectors).T
    neighbors, ids = [], {word: number for number, word in enumerate(vocab)}
    for word, row in zip(words, cosines, strict=True):
        is_known = word in ids
        if is_known:
            row[ids[word]] = -np.inf
        best = np.argsort(-row, kind="stable")[: min(count, len(vocab) - is_known)]
        neighbors += [
            Neighbor(word=word, known=is_known, rank=rank, neighbor=vocab[number], cosine=float(row[number]))
            for rank, number in enumerate(best.tolist(), 1)
        ]
    return neighbors


def unit_vectors(vectors: Vectors) -> Vectors:
    """Scale rows to length 1; rows of zeros stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


class NeighborsAnalysis:
    help = (
        "Words whose vectors are nearest to those of given words; a character model takes unknown words, too."
    )

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        parser.add_argument(
            "--words", nargs="+", required=True, metavar="WORD", help="words, segmented as in the run"
        )
        add_side(parser)
        parser.add_argument(
            "--before-highway",
            action="store_true",
            help="lm.type characters: the output of the convolutions, which reflects spelling alone",
        )
        parser.add_argument(
            "--count", type=positive, default=5, metavar="N", help="number of neighbors per word"
        )
        add_output(parser)

    def run(self, args: argparse.Namespace) -> Findings:
        words = list(dict.fromkeys(args.words))
        vocab, ids, model = load_words(args, words)
        unknown = [word for word, number in zip(words, ids, strict=True) if number == UNK]
        if unknown:
            raise DataError(
                f"--words: {' '.join(unknown)}: not in the vocabulary of {args.run}; only lm.type characters "
                "gives unknown words vectors"
            )
        vocab_ids = range(len(SPECIALS), len(vocab))
        queries, vectors = (query_vectors(model, list(numbers), args) for numbers in (ids, vocab_ids))
        neighbors = nearest(
            words, queries.cpu().numpy(), vocab.decode(vocab_ids), vectors.cpu().numpy(), args.count
        )
        summary = [
            f"{word}: {', '.join(neighbor.neighbor for neighbor in group)}"
            for word, group in groupby(neighbors, key=lambda neighbor: neighbor.word)
        ]
        return Findings(record_table(Neighbor, neighbors, known="d", cosine=".4f"), summary)


def add_side(parser: Parser) -> None:
    """Add --side, which `load_words` reads."""
    parser.add_argument(
        "--side",
        choices=("source", "target"),
        default="source",
        help="for a translator: the side whose words are used",
    )


def load_words(args: argparse.Namespace, words: Sequence[str] = ()) -> tuple[Vocab, list[int], object]:
    """Load the run of a language model, or of a translator, of which --side is used; sets up torch as
    `load_run` does. Returns the vocabulary, the ids of `words`, and the model. Unknown words have the id UNK,
    or ids beyond the vocabulary if the model reads words by their spelling. ConfigError for a device that is
    missing or that the model cannot use, CheckpointError for what is not such a run, or is damaged."""
    from nmt.lm.base import LMConfig
    from nmt.runs import checkpoint

    if isinstance(checkpoint.checked_config(Path(args.run)).model, LMConfig):
        options.set_up_torch(args.device, args.threads, args.matmul, args.run)
        lm = checkpoint.load_lm(args.run, args.checkpoint, args.device)
        return lm.words, lm.encode([words])[0], lm.model
    member = load_run(args, args.run).members[0]
    vocab = member.source_words if args.side == "source" else member.target_words
    return vocab, vocab.encode(words), member.model


def query_vectors(model: object, token_ids: list[int], args: argparse.Namespace) -> "Tensor":
    """Look up word vectors, or outputs of character convolutions (--before-highway): (T,) -> (T, width).
    ConfigError for a model that has none."""
    import torch

    from nmt.compute.device import resolve_device
    from nmt.lm.base import LanguageModel

    if not args.before_highway:
        return word_vectors(model, token_ids, args)
    rows = torch.tensor(token_ids, device=resolve_device(args.device))
    vectors = model.filter_vectors(rows) if isinstance(model, LanguageModel) else None
    if vectors is None:
        raise ConfigError(f"--before-highway: {args.run} is not a run with lm.type characters; leave it out")
    return vectors


def word_vectors(model: object, token_ids: list[int], args: argparse.Namespace) -> "Tensor":
    """Look up the vectors by which the model represents its input words: (T,) -> (T, width). ConfigError for
    a model without word vectors."""
    import torch

    from nmt.compute.device import resolve_device
    from nmt.models.protocols import WordEmbeddings

    if not isinstance(model, WordEmbeddings):
        raise ConfigError(f"{args.run}: models of this type have no word vectors")
    with torch.no_grad():
        rows = torch.tensor(token_ids, device=resolve_device(args.device))
        vectors: Tensor = model.word_embedding(args.side)(rows)
    return vectors


# ---- export ------------------------------------------------------------------------------------------------


class VectorsAnalysis:
    help = "All word vectors of a run as text in word2vec's format, which data.source_vectors reads."

    def add_options(self, parser: Parser) -> None:
        add_model(parser)
        add_side(parser)
        options.add_output(parser)

    def run(self, args: argparse.Namespace) -> None:
        vocab, _, model = load_words(args)
        ids = list(range(len(SPECIALS), len(vocab)))
        vectors = word_vectors(model, ids, args).cpu().numpy()
        word2vec.write(args.output, vocab.decode(ids), (row.tolist() for row in vectors))
