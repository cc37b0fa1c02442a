"""Analyses of the output of any system: by-length, by-unknown, subsets, compare, samples, scores."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt import files, run_directory
from nmt.cli import analyze_output, arguments, options
from nmt.cli.arguments import Input
from nmt.data.vocab import Vocab
from nmt.errors import ConfigError, DataError

if TYPE_CHECKING:
    from nmt.analysis.systems import System

log = logging.getLogger("nmt.analyze")


def add_systems(parser: options.Parser, name: str) -> None:
    parser.add_argument("--source", "-s", type=Input, required=True, metavar="FILE", help="source text")
    parser.add_argument(
        "--reference",
        "-r",
        type=Input,
        required=True,
        nargs="+",
        metavar="FILE",
        help="one or more reference translations",
    )
    parser.add_argument(
        "--hypothesis",
        "-t",
        type=Input,
        required=True,
        nargs="+",
        metavar="FILE",
        help="output of one or more systems: text, or an n-best list",
    )
    parser.add_argument(
        "--names",
        nargs="+",
        default=None,
        metavar="NAME",
        help="names of the systems; file names unless given",
    )
    parser.add_argument(
        "--bleu-tokenize", default="13a", metavar="NAME", help="sacreBLEU tokenizer; none for tokenized text"
    )
    analyze_output.add_output(parser, name)


def add_vocabularies(parser: options.Parser, required: bool) -> None:
    parser.add_argument(
        "--vocabulary",
        type=Input,
        nargs="+",
        required=required,
        default=None,
        metavar="RUN_OR_FILE",
        help="a run directory, or two files of nmt-vocab: source, target",
    )


def add_least(parser: options.Parser) -> None:
    parser.add_argument(
        "--least", type=options.positive, default=1, help="leave out points with fewer sentences"
    )


def read_systems(args: Any) -> "list[System]":
    from nmt.analysis import systems

    return systems.load(args.source, args.reference, args.hypothesis, args.names, args.bleu_tokenize)


def read_vocabularies(given: Sequence[str]) -> tuple[Vocab, Vocab]:
    """Short-lists of source and target. What counts as unknown is a word of the text, so subword vocabularies
    are refused."""
    if len(given) == 2:
        return Vocab.load(given[0]), Vocab.load(given[1])
    run = Path(given[0])
    if len(given) > 2 or not run.is_dir():
        raise ConfigError(
            "--vocabulary: expected a run directory, or a source and a target vocabulary, found "
            f"{' '.join(given)}"
        )
    run_directory.verify(run)
    if (run / "source.codes").exists() or (run / "target.codes").exists():
        raise ConfigError(
            f"{run}: its vocabularies hold subword units, which are never unknown; make word vocabularies "
            "with nmt-vocab"
        )
    return Vocab.load(run / "source.vocab"), Vocab.load(run / "target.vocab")


def summary(systems: "Sequence[System]") -> list[str]:
    one = len(systems) == 1
    return [
        f"{'' if one else system.name + ': '}{score}"
        for system in systems
        for score in (system.bleu(), system.chrf())
    ]


def length_arguments(parser: options.Parser) -> None:
    add_systems(parser, "by-length")
    parser.add_argument(
        "--window", type=options.positive, default=10, help="neighbouring lengths that are scored together"
    )
    parser.add_argument(
        "--by",
        choices=("source", "reference", "both"),
        default="source",
        help="which length the figure of several systems shows",
    )
    add_least(parser)
    analyze_output.add_title(parser)


def by_length(args: Any) -> None:
    from nmt.analysis import by_length as report

    systems = read_systems(args)
    curves = report.by_length(systems, args.window, args.least)
    draw_curves(
        args,
        systems,
        curves,
        "by-length",
        report.to_tsv(curves),
        "sentence length in words (each point: a window of lengths)",
    )


def draw_curves(
    args: Any, systems: "Sequence[System]", curves: Any, name: str, lines: Any, x_label: str
) -> None:
    """One system: a curve for source, reference and both. Several: a curve each, by one of them."""

    def draw(paths: Sequence[Path]) -> None:
        from nmt.analysis import plots

        if len(systems) == 1:
            title = args.title or f"{systems[0].name}   {systems[0].bleu()}"
            plots.bucket_curves(curves[systems[0].name], plots.LABELS, x_label, title, paths)
        else:
            of = {"both": "the longer side" if name == "by-length" else "the side with more"}.get(
                args.by, args.by
            )
            plots.bucket_curves(
                {key: by[args.by] for key, by in curves.items()},
                {},
                f"{x_label}, {of}",
                args.title or systems[0].bleu().signature,
                paths,
            )

    analyze_output.write(args.output, name, lines, summary(systems), draw)


def unknown_arguments(parser: options.Parser) -> None:
    add_systems(parser, "by-unknown")
    add_vocabularies(parser, required=True)
    parser.add_argument(
        "--by",
        choices=("source", "reference", "both"),
        default="source",
        help="whose unknown words the figure of several systems counts",
    )
    add_least(parser)
    analyze_output.add_title(parser)


def by_unknown(args: Any) -> None:
    from nmt.analysis import by_length, unknown

    vocabs, systems = read_vocabularies(args.vocabulary), read_systems(args)
    curves = unknown.by_unknown(systems, *vocabs, args.least)
    draw_curves(
        args,
        systems,
        curves,
        "by-unknown",
        by_length.to_tsv(curves, "unknown"),
        "at most this many unknown words",
    )


def subset_arguments(parser: options.Parser) -> None:
    add_systems(parser, "subsets")
    add_vocabularies(parser, required=True)
    parser.add_argument(
        "--shortest",
        type=options.positive,
        default=10,
        metavar="N",
        help="fewest words of both sides in the middle group",
    )
    parser.add_argument(
        "--longest", type=options.positive, default=20, metavar="N", help="most words of both sides"
    )
    analyze_output.add_title(parser)


def subsets(args: Any) -> None:
    from nmt.analysis import unknown

    vocabs, systems = read_vocabularies(args.vocabulary), read_systems(args)
    rows = unknown.score_subsets(
        systems, unknown.subsets(systems[0].test, *vocabs, args.shortest, args.longest)
    )

    def draw(paths: Sequence[Path]) -> None:
        from nmt.analysis import plots

        groups = list(dict.fromkeys(f"{row.subset}\nn = {row.sentences}" for row in rows))
        series = {system.name: [row.bleu for row in rows if row.system == system.name] for system in systems}
        plots.bars(groups, series, {}, "BLEU", args.title or systems[0].bleu().signature, paths)

    analyze_output.write(args.output, "subsets", unknown.to_tsv(rows), summary(systems), draw)


def compare_arguments(parser: options.Parser) -> None:
    parser.add_argument(
        "--reference",
        "-r",
        type=Input,
        required=True,
        nargs="+",
        metavar="FILE",
        help="one or more reference translations",
    )
    parser.add_argument(
        "--baseline",
        "-b",
        type=Input,
        required=True,
        metavar="FILE",
        help="output of the system to compare with: text, or an n-best list",
    )
    parser.add_argument(
        "--hypothesis",
        "-t",
        type=Input,
        required=True,
        nargs="+",
        metavar="FILE",
        help="outputs of the other systems",
    )
    parser.add_argument(
        "--names",
        nargs="+",
        default=None,
        metavar="NAME",
        help="names of the systems, the baseline first; paths unless given",
    )
    parser.add_argument(
        "--bleu-tokenize", default="13a", metavar="NAME", help="sacreBLEU tokenizer; none for tokenized text"
    )
    parser.add_argument(
        "--samples", type=arguments.integer(1, 100_000), default=1000, help="draws of the test set"
    )
    analyze_output.add_output(parser, "compare")
    analyze_output.add_title(parser)


def compare(args: Any) -> None:
    from nmt.analysis import significance, systems

    paths = [args.baseline, *args.hypothesis]
    found = systems.load("", args.reference, paths, args.names or paths, args.bleu_tokenize)
    names = [system.name for system in found]
    rows, signatures = significance.paired_bootstrap(
        names, [s.hypotheses for s in found], found[0].test.references, args.bleu_tokenize, args.samples
    )

    def draw(figures: Sequence[Path]) -> None:
        from nmt.analysis import plots

        labels = [f"{Path(row.name).name}" + ("" if row.p is None else f"\np = {row.p:.3f}") for row in rows]
        series, errors = {"BLEU": [row.bleu for row in rows]}, {"BLEU": [row.interval for row in rows]}
        plots.bars(
            labels,
            series,
            errors,
            "BLEU, 95% interval",
            args.title or f"against {Path(names[0]).name}",
            figures,
        )

    analyze_output.write(args.output, "compare", significance.to_tsv(rows), signatures, draw)


def sample_arguments(parser: options.Parser) -> None:
    add_systems(parser, "samples")
    add_vocabularies(parser, required=False)
    parser.add_argument("--count", type=options.positive, default=5, help="sentences of each kind")
    parser.add_argument(
        "--long", type=options.positive, default=30, metavar="N", help="long: more than N words on both sides"
    )
    parser.add_argument(
        "--short",
        type=options.positive,
        default=10,
        metavar="N",
        help="short: fewer than N words on both sides",
    )
    parser.add_argument("--seed", type=arguments.integer(0), default=1, help="of the choice")


def samples(args: Any) -> None:
    from nmt.analysis import samples as report
    from nmt.analysis.by_length import lengths

    vocabs = read_vocabularies(args.vocabulary) if args.vocabulary else None
    systems = read_systems(args)
    found = report.samples(systems, vocabs, args.count, args.seed, args.long, args.short)
    if not found:
        log.warning(
            (
                "no sentence of more than %d or fewer than %d words is without an unknown word; try other "
                "--long, --short"
            ),
            args.long,
            args.short,
        )

    def draw(paths: Sequence[Path]) -> None:
        from nmt.analysis import plots

        words = lengths(systems[0].test)["source"]
        points = {system.name: (words, system.characters.by_sentence()) for system in systems}
        marked = {
            system.name: ([sample.words for sample in found], [sample.chrf[system.name] for sample in found])
            for system in systems
        }
        plots.points_by_length(points, marked, paths)

    analyze_output.write(args.output, "samples", report.to_tsv(found), summary(systems), draw)


def score_arguments(parser: options.Parser) -> None:
    parser.add_argument(
        "--first", type=Input, required=True, metavar="FILE", help="a number a line, as nmt-score writes them"
    )
    parser.add_argument(
        "--second", type=Input, required=True, metavar="FILE", help="another score of the same lines"
    )
    parser.add_argument(
        "--names", nargs=2, default=None, metavar="NAME", help="names of both; file names unless given"
    )
    analyze_output.add_output(parser, "scores")
    analyze_output.add_title(parser)


def scores(args: Any) -> None:
    from nmt.analysis import correlation

    first, second = correlation.read_scores(args.first), correlation.read_scores(args.second)
    if len(first) != len(second):
        raise files.unequal([args.first, args.second], [len(first), len(second)])
    if not first:
        raise DataError(f"{args.first}: empty file, expected a number a line")
    names = tuple(args.names or (Path(args.first).name, Path(args.second).name))
    found = correlation.correlate(first, second)

    def draw(paths: Sequence[Path]) -> None:
        from nmt.analysis import plots

        plots.scatter(paths, first, second, names[0], names[1], args.title or f"r = {found.pearson:.3f}")

    line = f"Pearson {found.pearson:.4f}, Spearman {found.spearman:.4f}, {found.pairs:,} pairs"
    analyze_output.write(args.output, "scores", correlation.to_tsv((names[0], names[1]), found), [line], draw)


KINDS = {
    "by-length": (
        "BLEU and chrF by length of source, reference and the longer of both (Fig. 6.4 a, b).",
        length_arguments,
        by_length,
    ),
    "by-unknown": (
        "BLEU and chrF of the sentences with at most so many unknown words (Fig. 6.4 c).",
        unknown_arguments,
        by_unknown,
    ),
    "subsets": (
        "BLEU and chrF without unknown words, of medium length, of both (the rows of Table 6.1).",
        subset_arguments,
        subsets,
    ),
    "compare": (
        "Paired bootstrap: are systems different from a baseline? Intervals and p-values.",
        compare_arguments,
        compare,
    ),
    "samples": (
        "Long and short sentences without unknown words, as every system translates them (Table 6.2).",
        sample_arguments,
        samples,
    ),
    "scores": (
        "How two scores of the same lines go together (Fig. 4.3): correlation and scatter.",
        score_arguments,
        scores,
    ),
}
