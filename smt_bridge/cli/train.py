"""smt-train: a phrase-based model from parallel text, in one folder, in Moses' formats."""

import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from nmt import files
from nmt.cli import options
from nmt.errors import ConfigError
from smt_bridge.alignment import METHODS, thot
from smt_bridge.symmetrize import HEURISTICS

log = logging.getLogger("nmt.smt_train")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-train",
        "Train a phrase-based model: word alignment, phrase and reordering tables, language model, moses.ini. Started again after "
        "an interruption it goes on where it was. Tune it next: smt-tune.",
    )
    parser.add_argument("model", metavar="MODEL_DIR", help="folder of the model")
    parser.add_argument("--source", "-s", required=True, metavar="FILE", help="tokenized, escaped text")
    parser.add_argument("--target", "-t", required=True, metavar="FILE", help="its translation")
    parser.add_argument("--alignment", "-a", default="", metavar="FILE", help="points 0-0 1-2 of any tool, instead of aligning")
    parser.add_argument("--lm-text", default="", metavar="FILE", help="text of the language model; the target text unless given")
    parser.add_argument("--order", type=options.positive, default=5, help="of the language model")
    parser.add_argument("--method", choices=METHODS, default="fast_align", help="of word alignment")
    parser.add_argument("--symmetrization", choices=tuple(HEURISTICS), default="grow-diag-final-and", help="of the two directions")
    parser.add_argument("--max-length", type=options.positive, default=7, metavar="N", help="words of a phrase")
    parser.add_argument("--smoothing", choices=("none", "good-turing", "kneser-ney"), default="none", help="of phi")
    parser.add_argument("--no-reordering", action="store_true", help="no lexical reordering table")
    parser.add_argument("--distortion-limit", type=int, default=6, metavar="N", help="longest jump in words, written into moses.ini")
    parser.add_argument("--memory", type=options.positive, default=1000, metavar="MB", help="of phrase extraction")
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-train", args.quiet, times=True)
    paths = [path for path in (args.source, args.target, args.alignment, args.lm_text) if path]
    files.existing(paths)
    if "-" in paths:
        raise ConfigError("the texts are read more than once; give files, not -")
    if not args.alignment:
        thot()
    from smt_bridge.extraction.tables import ExtractConfig
    from smt_bridge.system_training import TrainConfig, train

    extract = ExtractConfig(args.max_length, args.smoothing, args.memory)
    config = TrainConfig(
        args.source, args.target, args.alignment, args.lm_text, args.method, args.symmetrization, args.order, not args.no_reordering, args.distortion_limit,
        extract,
    )  # fmt: skip
    begin = time.monotonic()
    train(Path(args.model), config)
    log.info("%s: trained, %.0f s; next: smt-tune %s --source DEV --reference DEV", args.model, time.monotonic() - begin, args.model)


if __name__ == "__main__":
    sys.exit(main())
