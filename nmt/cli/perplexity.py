"""nmt-perplexity: how well a language model, neural or count-based, predicts a text."""

import logging
import math
import sys
import time
from collections.abc import Sequence
from itertools import islice

from nmt import files
from nmt.cli import options
from nmt.cli.arguments import Input
from nmt.errors import DataError

log = logging.getLogger("nmt.perplexity")

READ_AHEAD = 2000  # lines scored together


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "nmt-perplexity",
        "Perplexity of a text, with and without unknown words: a table of a value and its name a line. With "
        "unknown words counted, a model that knows "
        "few words looks better than it is; compare models of one vocabulary.",
    )
    options.add_language_model(parser)
    parser.add_argument(
        "--input",
        "-i",
        type=Input,
        default="-",
        metavar="FILE",
        help="text to read; plain, gzip, or - for stdin",
    )
    options.add_output(parser)
    parser.add_argument("--tokenized", action="store_true", help="the text is tokenized as the run's was")
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("nmt-perplexity", args.quiet)
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, args.model)
    from nmt.language_model import load_language_model

    model = load_language_model(
        args.model, args.checkpoint, args.device, args.assume_normalized, args.backoff
    )
    log.info("%s", set_up)
    lines, characters, words, unknown = 0, 0, 0, 0
    total, known_total, seconds = 0.0, 0.0, 0.0
    log_z: list[float] = []
    text = iter(files.read_lines(args.input))
    while block := list(islice(text, READ_AHEAD)):
        clock = time.process_time()
        found = model.score(block, args.tokenized)
        seconds += time.process_time() - clock
        log_z += model.log_z(block, args.tokenized)
        for line, scored in zip(block, found, strict=True):
            lines, characters, words = lines + 1, characters + len(line) + 1, words + len(scored.units)
            unknown += scored.known.count(False)
            total += sum(scored.log_probs)
            known_total += sum(
                value for value, known in zip(scored.log_probs, [*scored.known, True], strict=True) if known
            )
    if not lines:
        raise DataError(f"{files.name_of(args.input)}: empty file, expected one sentence a line")
    units = words + lines
    rows = [
        (model.name, "model"),
        (files.name_of(args.input), "text"),
        (
            f"{model.vocab_size}" if model.vocab_size > 0 else "?",
            "units in the vocabulary, the end of a sentence among them",
        ),
        (f"{lines}", "sentences"),
        (f"{words}", "words or subword units"),
        (f"{unknown}", "of them unknown"),
        (
            f"{perplexity(total, units):.4f}",
            "perplexity a unit, ends of sentences counted, unknown ones as <unk>",
        ),
        (f"{perplexity(known_total, units - unknown):.4f}", "perplexity without unknown units"),
        (f"{-total / math.log(2) / characters:.5f}", "bits a character, ends of lines counted"),
        (f"{total:.4f}", "log p of the text, natural"),
        (f"{units / max(seconds, 1e-9):.0f}", "units a CPU second"),
    ]
    if log_z:
        rows.append((f"{sum(log_z) / len(log_z):.4f}", "mean |log Z| of distinct contexts"))
    if args.assume_normalized:
        rows.append(("assumed", "log Z = 0: probabilities do not sum to one"))
    with files.Writing(args.output) as out:
        out.write_lines(f"{value}\t{name}" for value, name in rows)


def perplexity(total: float, units: int) -> float:
    return math.exp(min(700.0, -total / units)) if units else math.nan


if __name__ == "__main__":
    sys.exit(main())
