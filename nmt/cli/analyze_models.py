"""Analyses of trained runs: phrases, words, phrase-map, parse, attention, curves."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt import files
from nmt.cli import analyze_output, arguments, options
from nmt.cli.arguments import Input
from nmt.errors import ConfigError, DataError

if TYPE_CHECKING:
    from nmt.run import Run

log = logging.getLogger("nmt.analyze")


def load(args: Any) -> "Run":
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, args.run)
    from nmt.run import Run

    run = Run.load(args.run, which=args.checkpoint, device=args.device)
    log.info("%s", set_up)
    return run


def phrase_arguments(parser: options.Parser) -> None:
    options.add_model(parser)
    parser.add_argument(
        "--table",
        type=Input,
        required=True,
        metavar="FILE",
        help="a Moses phrase table with counts, in its usual order",
    )
    parser.add_argument("--sources", type=options.positive, default=5, help="source phrases of each kind")
    parser.add_argument(
        "--min-words", type=options.positive, default=4, help="fewest words of a source phrase"
    )
    parser.add_argument(
        "--samples", type=arguments.integer(1, 100_000), default=50, help="draws for each source phrase"
    )
    parser.add_argument("--seed", type=arguments.integer(0), default=1, help="of the draws")
    analyze_output.add_output(parser, "phrases")


def phrases(args: Any) -> None:
    files.existing([args.table])
    run = load(args)
    from nmt.analysis import phrases as report

    rows = report.phrases(
        run,
        args.table,
        report.PhrasesConfig(args.sources, args.min_words, samples=args.samples, seed=args.seed),
    )
    if not rows:
        raise DataError(
            f"{args.table}: no source phrase of {args.min_words} words with 4 targets or more; lower "
            "--min-words"
        )

    def draw(paths: Sequence[Path]) -> None:
        from nmt.analysis import plots

        known = [row for row in rows if row.ln_table is not None]
        x, y = [row.ln_table for row in known if row.ln_table is not None], [row.ln_model for row in known]
        plots.scatter(
            paths, x, y, "ln p(target | source) of the table", f"ln p of {run.name}", "phrases shown"
        )

    analyze_output.write(
        args.output,
        "phrases",
        report.to_tsv(rows),
        [f"{run.name}: {len({row.source for row in rows})} source phrases"],
        draw,
    )


def add_map(parser: options.Parser, name: str) -> None:
    parser.add_argument(
        "--zoom", type=arguments.integer(0, 100), default=3, metavar="N", help="dense regions shown enlarged"
    )
    parser.add_argument(
        "--perplexity", type=arguments.real(above=0), default=30.0, help="t-SNE's number of neighbours"
    )
    parser.add_argument(
        "--seed", type=arguments.integer(0, 2**32 - 1), default=1, help="of t-SNE and of the choice"
    )
    analyze_output.add_output(parser, name)


def word_arguments(parser: options.Parser) -> None:
    options.add_model(parser)
    parser.add_argument("--side", choices=("source", "target"), default="source", help="whose word vectors")
    parser.add_argument("--count", type=options.positive, default=1000, help="most frequent words shown")
    add_map(parser, "words")


def words(args: Any) -> None:
    run = load(args)
    import torch

    from nmt.models.protocols import WordVectors

    member = run.members[0]
    vocab = member.source_words if args.side == "source" else member.target_words
    if not isinstance(member.model, WordVectors):
        raise ConfigError(f"{args.run}: a model of its type has no word vectors")
    ids = list(range(3, min(len(vocab), args.count + 3)))
    vectors = member.model.word_vectors(args.side, torch.tensor(ids, device=args.device)).cpu().numpy()
    draw_map(args, "words", vocab.decode(ids), vectors, f"{args.side} words of {run.name}")


def phrase_map_arguments(parser: options.Parser) -> None:
    options.add_model(parser)
    parser.add_argument(
        "--input",
        "-i",
        type=Input,
        default="-",
        metavar="FILE",
        help="phrases, one a line, as tokenized words; or a phrase table (.gz), whose sources are read",
    )
    parser.add_argument("--count", type=options.positive, default=5000, help="phrases drawn at random")
    parser.add_argument("--min-words", type=options.positive, default=4, help="fewest words of a phrase")
    add_map(parser, "phrase-map")


def phrase_map(args: Any) -> None:
    run = load(args)
    import numpy as np
    import torch

    from nmt.models.protocols import SourceVectors
    from nmt.phrase_table import unescape

    lines = (line.split("|||")[0] for line in files.read_lines(args.input))
    found = list(
        dict.fromkeys(
            text
            for line in lines
            if len(text := tuple(map(unescape, files.split_words(line)))) >= args.min_words
        )
    )
    if not found:
        raise DataError(
            f"{files.name_of(args.input)}: no phrase of {args.min_words} words or more; lower --min-words"
        )
    rows = np.sort(np.random.default_rng(args.seed).permutation(len(found))[: args.count])
    chosen = [" ".join(found[row]) for row in rows]
    ids = [
        run.members[0].source_words.encode(run.members[0].source.units(text, tokenized=True))
        for text in chosen
    ]
    model = run.members[0].model
    if not isinstance(model, SourceVectors):
        raise ConfigError(f"{args.run}: a model of its type has no vectors of whole phrases")
    parts = [model.source_vectors(ids[start : start + 256]) for start in range(0, len(ids), 256)]
    draw_map(args, "phrase-map", chosen, torch.cat(parts).cpu().numpy(), f"phrase vectors c of {run.name}")


def draw_map(args: Any, name: str, labels: Sequence[str], vectors: Any, title: str) -> None:
    from nmt.analysis import maps

    points = maps.tsne(vectors, args.seed, args.perplexity)
    zoomed = maps.regions(points, args.zoom)

    def draw(paths: Sequence[Path]) -> None:
        from nmt.analysis import plots

        plots.map_of(labels, points, zoomed, title, paths)

    analyze_output.write(
        args.output,
        name,
        maps.to_tsv(labels, points, zoomed),
        [f"{title}: {len(labels):,} points, {len(zoomed)} regions"],
        draw,
    )


def parse_arguments(parser: options.Parser) -> None:
    options.add_model(parser)
    parser.add_argument(
        "--line", default="", metavar="TEXT", help="the sentence; else the first line of --input"
    )
    parser.add_argument("--input", "-i", type=Input, default="-", metavar="FILE", help="source text")
    parser.add_argument("--tokenized", action="store_true", help="the text is tokenized as the run's was")
    parser.add_argument(
        "--translations",
        type=arguments.integer(0, 1000),
        default=10,
        metavar="N",
        help="best translations shown below, with their -log p",
    )
    analyze_output.add_output(parser, "parse")


def parse(args: Any) -> None:
    line = args.line or next(files.read_lines(args.input), "")
    run = load(args)
    from nmt.analysis import grconv_parse
    from nmt.models.protocols import MergeGates
    from nmt.search.beam import BeamConfig

    member = run.members[0]
    units = member.source.units(line, args.tokenized)
    source = [member.source_words.encode(units)]
    gates = member.model.merge_gates(source) if isinstance(member.model, MergeGates) else None
    if gates is None:
        raise ConfigError(
            f"{args.run}: its encoder is not a grconv, so it has no parse; train with model.encoder=grconv"
        )
    if len(units) < 2:
        raise DataError(f"{line[:40]!r}: a parse needs two words or more")
    nodes = grconv_parse.nodes(gates[0].cpu().numpy())
    found = run.n_best([line], BeamConfig(max(1, args.translations)), args.tokenized)[0][: args.translations]
    best = [(" ".join(translation.words), translation.log_prob) for translation in found]

    def draw(paths: Sequence[Path]) -> None:
        files.write_text(paths[0], grconv_parse.svg(units, nodes, best).split("\n"))

    summary = [f"{-log_prob:.2f}  {text}" for text, log_prob in best]
    analyze_output.write(
        args.output, "parse", grconv_parse.to_tsv(units, nodes), summary, draw, kinds=("svg",)
    )


def attention_arguments(parser: options.Parser) -> None:
    options.add_model(parser)
    parser.add_argument(
        "--line", default="", metavar="TEXT", help="the source sentence; else the first line of --input"
    )
    parser.add_argument("--input", "-i", type=Input, default="-", metavar="FILE", help="source text")
    parser.add_argument("--target", default="", metavar="TEXT", help="its translation; else the run's own")
    parser.add_argument("--tokenized", action="store_true", help="the texts are tokenized as the run's were")
    analyze_output.add_output(parser, "attention")


def attention(args: Any) -> None:
    line = args.line or next(files.read_lines(args.input), "")
    run = load(args)
    from nmt.analysis import attention_map

    source, target, weights = attention_map.weights(run, line, args.target, args.tokenized)

    def draw(paths: Sequence[Path]) -> None:
        from nmt.analysis import plots

        plots.heat_map(weights, source, target, run.name, paths)

    analyze_output.write(
        args.output, "attention", attention_map.to_tsv(source, target, weights), [" ".join(target[:-1])], draw
    )


def curve_arguments(parser: options.Parser) -> None:
    parser.add_argument("runs", nargs="+", type=Input, metavar="RUN_DIR", help="runs of nmt-train")
    parser.add_argument("--names", nargs="+", default=None, metavar="NAME", help="names of the runs")
    analyze_output.add_output(parser, "curves")


def curves(args: Any) -> None:
    from nmt.analysis import curves as report

    if args.names and len(args.names) != len(args.runs):
        raise ConfigError(f"--names: {len(args.names)} names for {len(args.runs)} runs; give one for each")
    found = {
        name: report.read(Path(run)) for name, run in zip(args.names or args.runs, args.runs, strict=True)
    }

    def draw(paths: Sequence[Path]) -> None:
        from nmt.analysis import plots

        plots.learning_curves(found, paths)

    best = {
        name: max(curves["dev BLEU"], key=lambda point: point[1], default=None)
        for name, curves in found.items()
    }
    summary = [
        f"{name}: best dev BLEU {point[1]:.2f} at update {point[0]:.0f}"
        for name, point in best.items()
        if point
    ]
    analyze_output.write(args.output, "curves", report.to_tsv(found), summary, draw)


KINDS = {
    "phrases": (
        (
            "Best targets of long phrases by table and by model, and phrases drawn from the model (Tables "
            "4.2, "
            "4.3)."
        ),
        phrase_arguments,
        phrases,
    ),
    "words": ("A map of the word vectors (Fig. 4.4), t-SNE with zoomed regions.", word_arguments, words),
    "phrase-map": (
        "A map of the phrase vectors c (Fig. 4.5), t-SNE with zoomed regions.",
        phrase_map_arguments,
        phrase_map,
    ),
    "parse": (
        "The soft parse of a gated recursive convolution (Fig. 6.6), with its best translations.",
        parse_arguments,
        parse,
    ),
    "attention": ("Where each word of a translation looked: a heat map.", attention_arguments, attention),
    "curves": ("Learning curves of runs: training cost, dev cost, dev BLEU.", curve_arguments, curves),
}
