"""nmt-interpolate: combine language models into a mixture, with the weights that make a development text most
probable."""

import logging
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.cli import options
from nmt.cli.arguments import InputPath, integer
from nmt.cli.perplexity import perplexity
from nmt.errors import ConfigError, DataError
from nmt.io import files
from nmt.ngram import interpolation
from nmt.ngram.interpolation import Histories
from nmt.ngram.text_scorer import Floats, Ints
from nmt.runs import directory as run_directory
from nmt.runs import language_model
from nmt.runs.language_model import (
    LineParts,
    LineScorer,
    MixtureFile,
    MixtureModel,
    MixtureScorer,
    is_network,
)

log = logging.getLogger(__name__)

READ_AHEAD = 2000  # lines scored together


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-interpolate",
        "Combine language models linearly: p is the weighted sum of their probabilities. The weights are "
        "learned by EM on a development text, the same for all words or depending on how often a word's "
        "context occurs in the training text. The output refers to the models, and serves wherever a command "
        "takes a language model.",
    )
    parser.add_argument(
        "models",
        nargs="+",
        type=InputPath,
        metavar="RUN_DIR|ARPA|BINARY",
        help="language models of any kind, which all segment text into the same units",
    )
    options.add_compute(parser)
    parser.add_argument(
        "--input",
        "-i",
        type=InputPath,
        default="",
        metavar="FILE",
        help="development text on which weights are learned",
    )
    parser.add_argument(
        "--uniform",
        action="store_true",
        help="equal weights, without a development text: an ensemble of the models",
    )
    add_contexts(parser)
    parser.add_argument(
        "--tokenized", action="store_true", help="texts are tokenized like the training text of the runs"
    )
    options.add_required_output(parser, "FILE", "the mixture, a small JSON file")
    parser.derived = lambda args: [("--contexts", f"{args.output}.contexts.gz")] if args.contexts else []
    options.add_quiet(parser)
    return parser


def add_contexts(parser: options.Parser) -> None:
    parser.add_argument(
        "--contexts",
        type=InputPath,
        default="",
        metavar="FILE",
        help="training text: a weight depends on how often a word's context occurs in it; the counts of "
        "contexts are written to OUTPUT.contexts.gz",
    )
    parser.add_argument(
        "--context-words",
        type=integer(1, 20),
        default=2,
        metavar="N",
        help="with --contexts: words of a context",
    )
    parser.add_argument(
        "--bucket-words",
        type=integer(1),
        default=1000,
        metavar="N",
        help="with --contexts: least number of development words that share a set of weights",
    )


def command(argv: Sequence[str] | None) -> None:
    own_parser = parser()
    args = options.parse(own_parser, argv)
    check_options(own_parser, args)
    if any(map(language_model.needs_torch, args.models)):
        log.info("%s", options.set_up_torch(args.device, args.threads, args.matmul, args.models[0]))
    members = [
        language_model.line_scorer(path, args.checkpoint, args.device, tokenized=args.tokenized)
        for path in args.models
    ]
    mixture = MixtureFile(
        [mixture_model(path, args.checkpoint) for path in args.models],
        [interpolation.uniform(len(members)).tolist()],
    )
    with files.parent_folders(args.output):
        if args.input:
            learn(args, members, mixture)
        language_model.write_mixture(args.output, mixture)


def check_options(parser: options.Parser, args: Namespace) -> None:
    """ConfigError for options that exclude each other, or that need another one."""
    if bool(args.input) == args.uniform:
        raise ConfigError("expected either --input with a development text, or --uniform")
    if args.uniform and args.contexts:
        raise ConfigError("--contexts: weights that depend on the context have to be learned; give --input")
    if not args.contexts:
        options.refuse_alone(parser, args, ("context_words", "bucket_words"), "--contexts FILE")


def mixture_model(path: str, which: str) -> MixtureModel:
    """Identify a model of the mixture by its path, its checkpoint and its checksum. `which`: checkpoint of a
    run: best, last or a number of updates. CheckpointError if the run does not have it."""
    step = run_directory.find_step(Path(path), which) if is_network(path) else None
    return MixtureModel(path, step, language_model.fingerprint(path, step))


# ---- learning ----------------------------------------------------------------------------------------------


def learn(args: Namespace, members: Sequence[LineScorer], mixture: MixtureFile) -> None:
    """Learn the weights of `mixture` on the development text and set them; with --contexts also its buckets
    of contexts, whose counts are written to OUTPUT.contexts.gz. Logs the perplexities. DataError for an empty
    text, and for models that split it into different units."""
    scorer = MixtureScorer("", members, np.array(mixture.weights))
    histories = count_contexts(args, scorer) if args.contexts else None
    dev = score_development_text(args, scorer, histories)
    if histories:
        mixture.contexts = f"{args.output}.contexts.gz"
        histories.save(mixture.contexts)  # not before the texts have been read without an error
        mixture.edges = interpolation.bucket_edges(dev.evidence, args.bucket_words)
        buckets = interpolation.bucket_indices(dev.evidence, mixture.edges)
        weights = interpolation.learn_by_bucket(dev.log_probs, buckets, len(mixture.edges) + 1)
        mixed = interpolation.mixture_log_probs(dev.log_probs, weights[buckets])
    else:
        weights = interpolation.learn(dev.log_probs).weights[None]
        mixed = interpolation.mixture_log_probs(dev.log_probs, weights[0])
    mixture.weights = weights.tolist()
    for column, member in enumerate(members):
        shown = " ".join(f"{weight:.4f}" for weight in weights[:, column])
        log.info("%s: perplexity %.2f, weight %s", member.name, mean_perplexity(dev.alone[:, column]), shown)
    log.info(
        "%s: perplexity %.2f, without unknown units %.2f, on %s",
        args.output, mean_perplexity(mixed), mean_perplexity(mixed[dev.in_vocabulary]),
        files.name_of(args.input),
    )  # fmt: skip


def count_contexts(args: Namespace, scorer: MixtureScorer) -> Histories:
    """Count the contexts of each unit in the text of --contexts."""
    with options.line_progress(args, args.contexts) as progress:
        lines = progress.over(files.read_lines(args.contexts))
        texts = (units for line in lines for units in scorer.units([line]))
        return Histories.count(texts, args.context_words)


@dataclass
class DevelopmentScores:
    """Log probabilities of the N units of the development text, ends of lines included, under M models."""

    log_probs: Floats  # (N, M), of each model as a part of the mixture
    alone: Floats  # (N, M), of each model by itself
    in_vocabulary: NDArray[np.bool_]  # (N,), whether the unit is in the vocabulary
    evidence: Ints  # (N,), counts of the units' contexts; empty without --contexts


def score_development_text(
    args: Namespace, scorer: MixtureScorer, histories: Histories | None
) -> DevelopmentScores:
    """Score the development text by each model. `histories`: with --contexts. DataError as from `learn`."""
    parts = list[LineParts]()
    text = iter(files.read_lines(args.input))
    with options.line_progress(args, args.input) as progress:
        while block := list(islice(text, READ_AHEAD)):
            parts += scorer.parts(block)
            progress.add(len(block))
    if not parts:
        raise DataError(f"{files.name_of(args.input)}: empty file, expected one sentence a line")
    evidence = [histories.evidence(part.units) for part in parts] if histories else [np.zeros(0, np.int64)]
    return DevelopmentScores(
        log_probs=np.concatenate([part.log_probs for part in parts]),
        alone=np.concatenate([part.own_log_probs for part in parts]),
        in_vocabulary=np.concatenate([part.in_vocabulary for part in parts]),
        evidence=np.concatenate(evidence),
    )


def mean_perplexity(log_probs: Floats) -> float:
    """Perplexity of units with these natural log probabilities."""
    return perplexity(float(log_probs.sum()), len(log_probs))


if __name__ == "__main__":
    sys.exit(main())
