"""smt-tune: the weights of a phrase-based model, found by decoding a development set again and again."""

import argparse
import hashlib
import logging
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt import files
from nmt.cli import options
from nmt.errors import ConfigError, DataError
from smt_bridge.cli import decoding
from smt_bridge.cli.progress import Progress

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Translation
    from smt_bridge.tuning.loop import Tuning
    from smt_bridge.weights import Weights

log = logging.getLogger("nmt.tune")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-tune",
        "Tune a model for BLEU on a development set: decode it, tune on all n-best lists so far, decode again; the weights of the best decoding are "
        "kept. Started again after an interruption it goes on where it was.",
    )
    parser.add_argument("model", metavar="MODEL_DIR|INI", help="a model folder, or a moses.ini")
    parser.add_argument("--source", "-s", required=True, metavar="FILE", help="development text, tokenized (and escaped) as the model")
    parser.add_argument("--reference", "-r", required=True, nargs="+", metavar="FILE", help="its translations")
    parser.add_argument("--output", "-o", default=None, metavar="INI", help="tuned configuration; default: moses.tuned.ini beside the model's ini")
    parser.add_argument("--work", default=None, metavar="DIR", help="lists and weights of every iteration; default: OUTPUT.tuning")
    parser.add_argument("--method", choices=("mert", "kbmira", "pro"), default="mert", help="mert: line search; kbmira: batch MIRA; pro: pairwise ranking")
    parser.add_argument("--n-best", type=options.positive, default=100, metavar="K", help="different translations of a sentence in each list")
    parser.add_argument("--iterations", type=options.positive, default=10, metavar="N", help="decodings at most")
    parser.add_argument("--patience", type=options.positive, default=3, metavar="N", help="stop after so many decodings without a better BLEU")
    parser.add_argument("--restarts", type=int, default=20, metavar="N", help="random starts of mert in each iteration")
    parser.add_argument("--seed", type=int, default=1, help="of random starts and orders")
    parser.add_argument("--final-seeds", type=int, default=0, metavar="N", help="tune N times more on all lists, with other seeds: WORK/seed-1.weights ...")
    decoding.add_search(parser)
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-tune", args.quiet, times=True)
    if "-" in (args.source, *args.reference):
        raise ConfigError("the texts are read more than once; give files, not -")
    files.check_parallel(args.source, *args.reference)
    tune(args)


def tune(args: argparse.Namespace) -> None:
    from smt_bridge import moses_ini
    from smt_bridge import weights as weight_files
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.decoder.system import ini_of
    from smt_bridge.tuning import loop
    from smt_bridge.tuning import pool as pools
    from smt_bridge.tuning.bleu import References

    ini = ini_of(args.model)
    output = Path(args.output or Path(ini).parent / "moses.tuned.ini")
    if output.resolve() == Path(ini).resolve():
        raise ConfigError(f"{output}: is the model's own ini; name another --output")
    config = loop.TuneConfig(args.method, args.iterations, args.patience, args.restarts, args.seed, args.workers)
    config.check()
    sources = list(files.read_lines(args.source))
    texts = [list(files.read_lines(path)) for path in args.reference]
    references = [References([files.split_words(text) for text in row]) for row in zip(*texts, strict=True)]
    if not any(line.strip() for line in sources):
        raise DataError(f"{args.source}: no words, expected a development text")
    decoder = decoding.load(args, args.n_best, True)
    system = decoder.system
    names = pools.columns(system.sizes)
    start = pools.from_weights(names, system.weights)
    work = Path(args.work or f"{output}.tuning")
    settings = {
        "model": hashlib.sha256(Path(ini).read_bytes()).hexdigest(), "rows": system.table.rows, "lines": len(sources), "n_best": args.n_best,
        "texts": hashlib.sha256("\n".join([*sources, *(line for text in texts for line in text)]).encode()).hexdigest(), "stack": args.stack,
        "table_limit": decoder.table_limit, "distortion_limit": decoder.distortion_limit, "beam": args.beam_threshold, "neural_beam": args.neural_beam,
    }  # fmt: skip
    loop.open_folder(work, settings, config)
    tuning = loop.Tuning(work, names, len(sources), config)

    def decode(weights: "Weights") -> "Iterator[Translation]":
        new = Decoder(system, decoder.config, weights, decoder.networks)
        with Progress(len(sources), "sentences", args.quiet) as progress:
            for translation in new.translate_all(iter(sources), args.workers):
                yield translation
                progress.add(1)

    reason = loop.run(tuning, start, decode, references)
    best = tuning.best()
    found = tuning.iterations[best]
    weights = pools.to_weights(names, found.weights)
    header = [f"BLEU {100 * found.bleu:.2f} on {args.source}, {args.method}, seed {args.seed}, iteration {best + 1} of {len(tuning.iterations)}"]
    weight_files.write(work / "weights", weights, header)
    tuned = moses_ini.set_weights(system.ini, weights)
    with files.Writing(str(output)) as out:
        out.write("\n".join([f"# {header[0]}", *tuned.lines]))
    if output.parent.resolve() != Path(ini).parent.resolve():
        log.warning("%s: its relative paths are those of %s; decode with that ini and --weights %s", output, Path(ini).parent, work / "weights")
    final_seeds(args, tuning, work)
    log.info("%s; iteration %d of %d is the best: BLEU %.2f; %s", reason, best + 1, len(tuning.iterations), 100 * found.bleu, output)
    print(f"BLEU\t{100 * found.bleu:.2f}\titeration\t{best + 1}")


def final_seeds(args: argparse.Namespace, tuning: "Tuning", work: Path) -> None:
    """The tuner again on the last pool, with seeds 1, 2, ...: how far its randomness goes."""
    from smt_bridge import weights as weight_files
    from smt_bridge.tuning import pool as pools

    for seed in range(1, args.final_seeds + 1):
        path = work / f"seed-{seed}.weights"
        if not path.exists():
            point = tuning.next_weights(seed)
            weight_files.write(path, pools.to_weights(tuning.names, point.weights), [f"BLEU {100 * point.bleu:.2f} on the lists, {args.method}, seed {seed}"])
        log.info("seed %d: %s", seed, path)


if __name__ == "__main__":
    sys.exit(main())
