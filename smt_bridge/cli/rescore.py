"""smt-rescore: append features to n-best lists, recompute totals, write the list again and the best of each
sentence."""

import argparse
import logging
import os
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import smt_bridge.weights as weight_files
from nmt import files, nbest
from nmt.cli import options
from nmt.cli.arguments import Input, Output
from nmt.data.long_lines import MAX_LINE_WORDS
from nmt.errors import ConfigError, UserError
from nmt.nbest import Hypothesis
from nmt.text.escapes import escape
from smt_bridge.cli import features as feature_options
from smt_bridge.cli.progress import Progress
from smt_bridge.features.spec import NETWORKS, Settings, Spec, parse
from smt_bridge.weights import Weights

if TYPE_CHECKING:
    from smt_bridge.job import Job
    from smt_bridge.rescore import Sentence
    from smt_bridge.workers import Crew

log = logging.getLogger("nmt.rescore")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-rescore",
        "Append features to n-best lists, recompute totals, write the list and the best translations.",
    )
    parser.add_argument(
        "nbest",
        type=Input,
        nargs="+",
        metavar="NBEST",
        help="n-best lists of one text, of Moses or nmt-translate; several: their union is rescored",
    )
    parser.add_argument(
        "--source",
        "-s",
        type=Input,
        required=True,
        metavar="FILE",
        help="the text that was translated, tokenized as the decoder read it",
    )
    feature_options.add_features(parser, required=False)
    parser.add_argument(
        "--by-phrase",
        action="store_true",
        help=(
            "sum translation and inverse over the phrases of the segmentation field, as a table column would"
        ),
    )
    parser.add_argument(
        "--weights",
        "-w",
        type=Input,
        metavar="FILE",
        default=None,
        help="lines 'Name= v v', or a moses.ini; without them the totals stay",
    )
    parser.add_argument(
        "--decoder-weights",
        type=Input,
        metavar="FILE",
        default=None,
        help="weights the decoder used: checks its totals, keeps its -100 for unknown words",
    )
    parser.add_argument(
        "--fill-missing",
        action="store_true",
        help="0 for features that one of several lists lacks; the List features tell them apart",
    )
    parser.add_argument(
        "--escape", action="store_true", help="escape words as Moses does, for lists that nmt-translate wrote"
    )
    parser.add_argument(
        "--output",
        "-o",
        type=Output,
        metavar="NBEST",
        default=None,
        help="the list again, with the new features; - is stdout",
    )
    parser.add_argument(
        "--best",
        "-b",
        type=Output,
        metavar="FILE",
        default=None,
        help="the best translation of each sentence, a line each; - is stdout",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with a job that was killed, from OUTPUT.job"
    )
    options.add_max_line_words(parser, "are refused by features of whole sentences")
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-rescore", args.quiet)
    taken, sizes = check(args)
    specs = parse(args.feature, taken)
    feature_options.check_separate(args, specs, [], [("--output", args.output), ("--best", args.best)])
    if args.by_phrase and not any(spec.kind in NETWORKS for spec in specs):
        raise ConfigError("--by-phrase needs a --feature of type translation or inverse")
    weights = weight_files.read(args.weights) if args.weights else None
    old = weight_files.read(args.decoder_weights) if args.decoder_weights else None
    from smt_bridge.job import held

    target = args.output or args.best
    with held(target, "smt-rescore") if specs and target != "-" else nullcontext():
        run(args, specs, (weights, old), sizes)


def check(args: argparse.Namespace) -> tuple[list[str], dict[str, int]]:
    """Whatever contradicts itself or is not there; returns the names that every list has already, and all
    features with their sizes."""
    if args.output is None and args.best is None:
        raise ConfigError("nothing to write; give --output, --best or both")
    files.existing([*args.nbest, args.source])
    if "-" in args.nbest:
        raise ConfigError("n-best lists are read twice; give files, not -")
    lists: list[set[str]] = []
    sizes: dict[str, int] = {}
    for path in args.nbest:
        count = 0
        names: set[str] = set()
        for _, group in nbest.by_sentence(path):
            count += len(group)
            names |= set(group[0].features)
            for name, values in group[0].features.items():
                sizes.setdefault(name, len(values))
        lists.append(names)
        if "" in names:
            raise ConfigError(
                f"{path}: features without names; let Moses write them (-labeled-n-best-list true)"
            )
        log.info("%s: %s entries", path, f"{count:,}")
    indicators = [f"List{number}" for number in range(len(args.nbest))] if len(args.nbest) > 1 else []
    wide = [name for name, size in sizes.items() if size > 1]
    taken = {
        *set.intersection(*lists),
        *wide,
        *indicators,
    }  # a name that only some lists have may be computed for the others
    return sorted(taken), sizes


def run(
    args: argparse.Namespace,
    specs: list[Spec],
    weights: tuple[Weights | None, Weights | None],
    sizes: dict[str, int],
) -> None:
    from smt_bridge import rescore
    from smt_bridge.features.load import identity, load
    from smt_bridge.job import open_job, settings_of
    from smt_bridge.workers import Crew

    settings, features, target = Settings(), [], args.output or args.best
    if specs:
        before = settings_of(target) if args.resume else {}
        settings, set_up = feature_options.set_up(args, specs, str(before.get("back_end", "")))
        features = load(specs, settings)
        log.info("%s", set_up)
    computed = [spec.name for spec in specs]
    total = sum(1 for _ in sentences(args, computed))
    if specs and settings.precision != "fp32":
        sample = rescore.ask(
            list(islice(sentences(args, computed), 8)), specs, args.by_phrase, args.nbest[0]
        )[0].pairs
        log.info("%s", feature_options.precision_error(specs, settings, features, sample))
    job = None
    if specs and target != "-":
        states = [Path(path).stat() for path in [*args.nbest, args.source]]
        stamp = {
            "lists": [[os.path.realpath(path), state.st_size, state.st_mtime_ns] for path,
            state in zip([*args.nbest, args.source], states, strict=True)],
            "features": [identity(spec, settings) for spec in specs], "back_end": settings.back_end,
            "threads": settings.threads,
            "by_phrase": args.by_phrase, "chunk": rescore.SENTENCES, "escape": args.escape,
        }  # fmt: skip
        job = open_job(target, stamp, len(specs), args.resume)
    with Crew(specs, settings, args.workers if specs else 1, features) as crew, ExitStack() as stack:
        outputs = [
            stack.enter_context(files.Writing(path, job.folder if job and path == target else None))
            if path
            else None
            for path in (args.output, args.best)
        ]
        write(args, rescore_all(args, crew, job), outputs, (specs, *weights), sizes, total)
    if job:
        job.remove()


def sentences(args: argparse.Namespace, computed: Collection[str]) -> "Iterator[Sentence]":
    from smt_bridge import rescore

    limit = args.max_line_words or MAX_LINE_WORDS
    for sentence in rescore.sentences(args.nbest, args.source):
        if computed and not args.by_phrase:
            rescore.refuse_long(sentence, limit, args.source, args.nbest)
        if len(args.nbest) > 1:
            rescore.add_word_penalty(sentence)
        if not args.fill_missing and (lack := rescore.missing(sentence, computed))[1]:
            raise UserError(
                f"{args.nbest[lack[0]]}: sentence {sentence.number} has hypotheses without "
                f"{', '.join(lack[1])}, which are not computed from the text; "
                "give a --feature of that name, e.g. lm:LM0=FILE, or --fill-missing (0, told apart by the "
                "List features)"
            )
        if args.escape:
            for hypothesis in sentence.hypotheses:
                hypothesis.raw = nbest.with_field(hypothesis.raw, 1, " ".join(map(escape, hypothesis.text)))
        yield sentence


def rescore_all(
    args: argparse.Namespace, crew: "Crew", job: "Job | None"
) -> "Iterator[tuple[Sentence, list[list[float]]]]":
    """Each sentence with the new values of its hypotheses."""
    from smt_bridge import rescore

    stream = sentences(args, [spec.name for spec in crew.specs])
    if not crew.specs:
        for sentence in stream:
            yield sentence, [list[float]() for _ in sentence.hypotheses]
        return
    for chunk, values in rescore.score(
        blocks(stream, rescore.SENTENCES), crew, args.by_phrase, args.nbest[0], job
    ):
        rows = iter(values.tolist())
        for sentence in chunk:
            yield sentence, list(islice(rows, len(sentence.hypotheses)))


def blocks(stream: "Iterator[Sentence]", size: int) -> "Iterator[list[Sentence]]":
    while block := list(islice(stream, size)):
        yield block


def write(
    args: argparse.Namespace,
    scored: "Iterator[tuple[Sentence, list[list[float]]]]",
    outputs: Sequence[files.Output | None],
    plan: tuple[list[Spec], Weights | None, Weights | None],
    sizes: dict[str, int],
    total: int,
) -> None:
    from smt_bridge import rescore

    specs, weights, old = plan
    several = len(args.nbest) > 1
    with Progress(total, "sentences", args.quiet) as progress:
        for sentence, values in scored:
            entries = []
            for hypothesis, lists, row in zip(sentence.hypotheses, sentence.lists, values, strict=True):
                unknown = (
                    rescore.unknown_words(hypothesis, old)
                    if old and set(hypothesis.features) >= weight_files.tuned(old)
                    else 0.0
                )
                new = {spec.name: [value] for spec, value in zip(specs, row, strict=True)}
                if several:
                    unknown = (
                        0.0  # entries of other lists do not have it, so that it would decide between lists
                    )
                    for name in [
                        name for name in new if name in sizes
                    ]:  # fills in for the lists that lack it
                        hypothesis.features.setdefault(name, new.pop(name))
                    complete(
                        hypothesis,
                        sizes,
                        {f"List{number}": [float(number in lists)] for number in range(len(args.nbest))},
                    )
                features = {**hypothesis.features, **new}
                score = hypothesis.total
                if weights is not None:
                    rescore.check_weights(features, weights)
                    score = rescore.total(features, weights) + unknown
                entries.append(
                    (
                        score,
                        nbest.extended(hypothesis, new, score if weights is not None else None),
                        hypothesis,
                    )
                )
            if weights is not None:
                entries.sort(key=lambda entry: -entry[0])  # stable: of equals the first stays first
            if outputs[0]:
                outputs[0].write_lines(line for _, line, _ in entries)
            if outputs[1]:
                outputs[1].write(" ".join(max(entries, key=lambda entry: entry[0])[2].text) + "\n")
            progress.add(1)
    log.info("%s sentences rescored with %d new features", f"{progress.done:,}", len(specs))


def complete(hypothesis: Hypothesis, sizes: dict[str, int], lists: dict[str, list[float]]) -> None:
    """All features of all lists in one order, 0 for those it lacks, and which lists held it."""
    features = {name: hypothesis.features.get(name, [0.0] * size) for name, size in sizes.items()}
    sparse = {name: values for name, values in hypothesis.features.items() if name not in sizes}
    hypothesis.features = {**features, **sparse, **lists}
    hypothesis.raw = nbest.with_field(hypothesis.raw, 2, nbest.format_features(hypothesis.features))


if __name__ == "__main__":
    sys.exit(main())
