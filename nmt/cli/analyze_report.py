"""nmt-analyze report: one self-contained HTML page about runs and outputs of any system."""

import logging
from pathlib import Path
from typing import Any

from nmt import files
from nmt.cli import options
from nmt.cli.analyze_text import add_vocabularies, read_vocabularies
from nmt.cli.arguments import Input, Output, integer
from nmt.errors import ConfigError

log = logging.getLogger("nmt.analyze")


def arguments(parser: options.Parser) -> None:
    parser.add_argument(
        "systems",
        type=Input,
        nargs="+",
        metavar="RUN_OR_OUTPUT",
        help="run directories, which translate the source, or outputs: text or n-best lists",
    )
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
        "--output",
        "-o",
        type=Output,
        required=True,
        metavar="FILE",
        help="the page; it needs no other file and no network",
    )
    parser.add_argument("--names", nargs="+", default=None, metavar="NAME", help="names of the systems")
    parser.add_argument("--title", default="Translation report", help="title of the page")
    parser.add_argument(
        "--bleu-tokenize", default="13a", metavar="NAME", help="sacreBLEU tokenizer; none for tokenized text"
    )
    parser.add_argument(
        "--tokenized", action="store_true", help="source and references are tokenized as the runs' text was"
    )
    parser.add_argument(
        "--beam-size", "-b", type=options.positive, default=10, metavar="N", help="of the runs' search"
    )
    parser.add_argument(
        "--least", type=options.positive, default=20, help="leave out points of curves with fewer sentences"
    )
    parser.add_argument(
        "--samples", type=integer(1, 100_000), default=1000, help="draws of the paired bootstrap"
    )
    add_vocabularies(parser, required=False)
    options.add_compute(parser)


def report(args: Any) -> None:
    from nmt.analysis import curves, systems
    from nmt.analysis import report as page

    if args.names and len(args.names) != len(args.systems):
        raise ConfigError(
            f"--names: {len(args.names)} names for {len(args.systems)} systems; give one for each"
        )
    vocabs = read_vocabularies(args.vocabulary) if args.vocabulary else None
    names = args.names or systems.unique_names([path.rstrip("/") for path in args.systems])
    if len(set(names)) < len(names):
        raise ConfigError("two systems have one name; give others with --names")
    runs = {name: path for name, path in zip(names, args.systems, strict=True) if Path(path).is_dir()}
    outputs = [path for path in args.systems if path not in runs.values()]
    found = (
        systems.load(
            args.source,
            args.reference,
            outputs,
            [name for name in names if name not in runs],
            args.bleu_tokenize,
        )
        if outputs
        else []
    )
    test = (
        found[0].test
        if found
        else systems.load(args.source, args.reference, args.reference[:1], None, args.bleu_tokenize)[0].test
    )
    by_name = {system.name: system for system in found}
    for name, path in runs.items():
        by_name[name] = systems.System(name, translate(args, path, test.sources), test)
    learned = {
        name: curves.read(Path(path)) for name, path in runs.items() if (Path(path) / "dev.tsv").exists()
    }
    data = page.gather(
        [by_name[name] for name in names],
        vocabs,
        learned,
        page.ReportConfig(args.title, least=args.least, samples=args.samples),
    )
    files.write_text(args.output, page.html(data).rstrip("\n").split("\n"))
    for row in data.systems:
        log.info("%s: BLEU %.2f, chrF %.2f", row["name"], row["bleu"], row["chrf"])
    log.info("%s", args.output)


def translate(args: Any, path: str, sources: list[str]) -> list[str]:
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, path)
    from nmt.run import Run
    from nmt.search.beam import BeamConfig

    run = Run.load(path, which=args.checkpoint, device=args.device)
    log.info("translating with %s: %s", run.name, set_up)
    return run.translate(sources, BeamConfig(args.beam_size), args.tokenized)


KINDS = {
    "report": (
        "One HTML page about runs and outputs: summary, curves, subsets, a browser of sentences.",
        arguments,
        report,
    )
}
