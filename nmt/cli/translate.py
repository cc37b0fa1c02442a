"""nmt-translate: raw text in, detokenized text out, line for line, as a filter."""

import logging
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from nmt import files, nbest
from nmt.cli import options
from nmt.errors import ConfigError
from nmt.phrase_table import escape, unescape

if TYPE_CHECKING:
    from nmt.checkpoint import Run
    from nmt.search.beam import BeamConfig, Candidate

log = logging.getLogger("nmt.translate")

READ_AHEAD = 100  # lines sorted by length and searched together


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser("nmt-translate", "Translate text with a trained run: one line in, one line out, in order.")
    options.add_model(parser)
    options.add_input_output(parser, "source text")
    parser.add_argument("--beam-size", "-b", type=options.positive, default=10, metavar="N", help="hypotheses kept at each word")
    parser.add_argument("--n-best", type=options.positive, default=None, metavar="K", help="write the K best in Moses' format, as tokenized words")
    parser.add_argument(
        "--normalize", choices=("length", "none", "gnmt"), default="length", help="how lengths are compared: log p / words, log p, or the penalty of GNMT"
    )
    parser.add_argument("--max-length-factor", type=float, default=3.0, metavar="F", help="at most F words for each source word")
    parser.add_argument("--min-length-factor", type=float, default=0.0, metavar="F", help="at least F words for each source word")
    parser.add_argument("--tokenized", action="store_true", help="input is tokenized as the run's text was; output stays tokenized")
    parser.add_argument("--escaped", action="store_true", help="as --tokenized, of text with Moses' escapes (&apos; ...), which the output has too")
    parser.add_argument(
        "--read-ahead", type=options.positive, default=READ_AHEAD, metavar="LINES", help="lines translated together; 1 answers each line at once"
    )
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("nmt-translate", args.quiet)
    if args.n_best and args.n_best > args.beam_size:
        raise ConfigError(f"--n-best {args.n_best} is more than --beam-size {args.beam_size}; make the beam at least as large")
    files.check_text(args.input)
    set_up = options.set_up_torch(args.device, args.threads, args.matmul, args.run)
    from nmt import checkpoint
    from nmt.search.beam import BeamConfig

    run = checkpoint.load(args.run, args.checkpoint, args.device)
    config = BeamConfig(args.beam_size, args.normalize, args.max_length_factor, args.min_length_factor)
    config.check()
    with files.Writing(args.output) as out:
        log.info("%s", set_up)
        first = 0
        for lines in blocks(files.read_lines(args.input), args.read_ahead):
            if args.escaped:
                lines = [" ".join(map(unescape, files.split_words(line))) for line in lines]
            found = translate(run, lines, config, args.tokenized or args.escaped, f"{files.name_of(args.input)}:", first)
            for number, candidates in enumerate(found, first):
                if args.n_best:
                    out.write_lines(map(nbest.write, hypotheses(run, number, candidates[: args.n_best], args.escaped)))
                else:
                    text = best_text(run, candidates, args.tokenized or args.escaped)
                    out.write((" ".join(map(escape, files.split_words(text))) if args.escaped else text) + "\n")
            out.flush()
            first += len(lines)


def blocks(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    while block := list(islice(lines, size)):
        yield block


def translate(run: "Run", lines: list[str], config: "BeamConfig", tokenized: bool, where: str, first: int) -> "list[list[Candidate]]":
    """The finished hypotheses of each line, best first. A line without words has one: empty, of probability 1."""
    from nmt.search.beam import Candidate, search

    units = [run.source.units(line, tokenized) for line in lines]
    for number, words in enumerate(units, first + 1):
        if len(words) > 10 * run.data.max_length:
            log.warning(
                "%s%d: %s words, but the run has seen no more than %d in a sentence; expect a poor translation, or split the line",
                where, number, f"{len(words):,}", run.data.max_length,
            )  # fmt: skip
    full = [index for index, words in enumerate(units) if words]
    results = [[Candidate([], 0.0, 0.0)] for _ in lines]
    for index, candidates in zip(full, search(run.model, [run.source_words.encode(units[i]) for i in full], config), strict=True):
        results[index] = candidates
    return results


def best_text(run: "Run", candidates: "list[Candidate]", tokenized: bool) -> str:
    return run.target.text(run.target_words.decode(candidates[0].words), tokenized)


def hypotheses(run: "Run", sentence: int, candidates: "list[Candidate]", escaped: bool) -> Iterator[nbest.Hypothesis]:
    """NMT0 is log p, the total what the list is ordered by."""
    for candidate in candidates:
        words = run.target.join(run.target_words.decode(candidate.words))
        words = list(map(escape, words)) if escaped else words
        yield nbest.Hypothesis(sentence, words, {"NMT0": [candidate.log_prob]}, candidate.score)


if __name__ == "__main__":
    sys.exit(main())
