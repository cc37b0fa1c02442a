"""smt-tune: the weights of a phrase-based model, found by decoding a development set again and again."""

import argparse
import hashlib
import logging
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt import files, locks, manifest, settings
from nmt.cli import arguments, options
from nmt.cli.arguments import Input, Output, add_setting
from nmt.errors import ConfigError, DataError
from smt_bridge.cli import decoding
from smt_bridge.cli.progress import Progress
from smt_bridge.config import TuneConfig

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Translation
    from smt_bridge.moses_ini import Ini
    from smt_bridge.tuning.loop import Tuning
    from smt_bridge.tuning.pool import Floats
    from smt_bridge.weights import Weights

log = logging.getLogger("nmt.tune")


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "smt-tune",
        "Tune a model for BLEU on a development set: decode it, tune on all n-best lists so far, decode "
        "again; the weights of the best decoding are "
        "kept. Started again after an interruption it goes on where it was.",
    )
    parser.add_argument("model", type=Input, metavar="MODEL_DIR|INI", help="a model folder, or a moses.ini")
    parser.add_argument(
        "--source",
        "-s",
        type=Input,
        required=True,
        metavar="FILE",
        help="development text, tokenized (and escaped) as the model",
    )
    parser.add_argument(
        "--reference", "-r", type=Input, required=True, nargs="+", metavar="FILE", help="its translations"
    )
    parser.add_argument(
        "--output",
        "-o",
        type=Output,
        default=None,
        metavar="INI",
        help="tuned configuration; default: moses.tuned.ini beside the model's ini",
    )
    parser.add_argument(
        "--work",
        type=Output,
        default=None,
        metavar="DIR",
        help="lists and weights of every iteration; default: OUTPUT.tuning",
    )
    add_setting(
        parser, TuneConfig, "method", help="mert: line search; kbmira: batch MIRA; pro: pairwise ranking"
    )
    parser.add_argument(
        "--n-best",
        type=options.positive,
        default=100,
        metavar="K",
        help="different translations of a sentence in each list",
    )
    add_setting(parser, TuneConfig, "iterations", help="decodings at most")
    add_setting(parser, TuneConfig, "patience", help="stop after so many decodings without a better BLEU")
    add_setting(parser, TuneConfig, "restarts", help="random starts of mert in each iteration")
    add_setting(parser, TuneConfig, "seed", help="of random starts and orders")
    final = "tune N times more on all lists, with other seeds: WORK/seed-1.weights ..."
    parser.add_argument("--final-seeds", type=arguments.integer(0), default=0, metavar="N", help=final)
    decoding.add_search(parser)
    options.add_quiet(parser)
    args = parser.parse_args(argv)
    options.start_log("smt-tune", args.quiet, times=True)
    if "-" in (args.source, *args.reference):
        raise ConfigError("the texts are read more than once; give files, not -")
    files.check_parallel(args.source, *args.reference)
    from smt_bridge.tuning import loop

    places = places_of(args)
    loop.check_folder(places.work)
    with locks.locked(places.work, "smt-tune"):
        tune(args, places)


@dataclass
class Places:
    ini: str
    output: Path
    work: Path
    start: "Ini"  # the model's ini, with paths that the output's folder can use


def places_of(args: argparse.Namespace) -> Places:
    """Where to read and write. ConfigError when the output is the model's ini or one of its tables."""
    from smt_bridge import ini_paths, moses_ini
    from smt_bridge.decoder.system import ini_of

    path = ini_of(args.model)
    output = Path(args.output or Path(path).parent / "moses.tuned.ini")
    work = Path(args.work or f"{output}.tuning")
    ini = moses_ini.read(path)
    decoding.check_tables(ini, [("--output", str(output)), ("--work", str(work))])
    beside = output.parent.resolve() == Path(path).parent.resolve()
    return Places(path, output, work, ini if beside else ini_paths.whole(ini, [".", str(Path(path).parent)]))


def tune(args: argparse.Namespace, places: Places) -> None:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.tuning import loop
    from smt_bridge.tuning import pool as pools
    from smt_bridge.tuning.bleu import References

    config = arguments.settings_of(TuneConfig, args, threads=args.workers)
    settings.check(config)
    sources = list(files.read_lines(args.source))
    texts = [list(files.read_lines(path)) for path in args.reference]
    references = [References([files.split_words(text) for text in row]) for row in zip(*texts, strict=True)]
    if not any(line.strip() for line in sources):
        raise DataError(f"{args.source}: no words, expected a development text")
    decoder = decoding.load(args, args.n_best, True)
    for number, line in enumerate(
        sources, 1
    ):  # bad tags and lines that are too long, before the first is decoded
        decoder.marked(line, f"{args.source}:{number}")
    system, search = decoder.system, decoder.settings
    names = pools.columns(system.sizes)
    if not names:
        raise ConfigError(f"{places.ini}: every feature has tuneable=false; nothing to tune")
    told = {
        "model": manifest.digest(places.ini), "rows": system.table.rows, "lines": len(sources),
        "n_best": args.n_best,
        "texts": hashlib.sha256("\n".join([*sources,
        *(line for text in texts for line in text)]).encode()).hexdigest(), "stack": search.stack,
        "table_limit": search.table_limit, "distortion_limit": search.distortion_limit,
        "beam": search.beam_threshold, "neural_beam": args.neural_beam,
        **{name: getattr(args, name) for name in ("max_phrase_length", "early_distortion_cost",
        "drop_unknown", "mark_unknown", "xml_input")},
        "xml_brackets": " ".join(args.xml_brackets or ()),
    }  # fmt: skip
    loop.open_folder(places.work, told, config)
    tuning = loop.Tuning(places.work, names, len(sources), config)

    def decode(weights: "Weights") -> "Generator[Translation]":
        new = Decoder(system, decoder.config, weights, decoder.networks)
        found = new.translate_all(iter(sources), args.workers, args.source)
        with Progress(len(sources), "sentences", args.quiet) as progress, closing(found) as translations:
            for translation in translations:
                yield translation
                progress.add(1)

    def whole(point: "Floats") -> "Weights":
        """The weights of the tuned features, with those scores that are not tuneable."""
        made = system.with_weights(pools.to_weights(names, point))
        return {name: made[name] for name in system.sizes}

    reason = loop.run(tuning, pools.from_weights(names, system.tuneable_weights()), decode, references)
    write(args, tuning, places, whole)
    best = tuning.best()
    score = 100 * tuning.iterations[best].bleu
    log.info(
        "%s; iteration %d of %d is the best: BLEU %.2f; %s",
        reason,
        best + 1,
        len(tuning.iterations),
        score,
        places.output,
    )
    print(f"BLEU\t{score:.2f}\titeration\t{best + 1}")


def write(
    args: argparse.Namespace, tuning: "Tuning", places: Places, whole: "Callable[[Floats], Weights]"
) -> None:
    """The best weights, the tuned ini, and what other seeds make of the lists."""
    from smt_bridge import moses_ini
    from smt_bridge import weights as weight_files

    best = tuning.best()
    found = tuning.iterations[best]
    weights = whole(found.weights)
    header = [
        (
            f"BLEU {100 * found.bleu:.2f} on {args.source}, {args.method}, seed {args.seed}, iteration "
            f"{best + 1} of {len(tuning.iterations)}"
        )
    ]
    weight_files.write(places.work / "weights", weights, header)
    tuned = moses_ini.set_weights(places.start, weights)
    with files.Writing(str(places.output)) as out:
        out.write("\n".join([f"# {header[0]}", *tuned.lines]))
    final_seeds(args, tuning, places.work, whole)


def final_seeds(
    args: argparse.Namespace, tuning: "Tuning", work: Path, whole: "Callable[[Floats], Weights]"
) -> None:
    """The tuner again on the last pool, with seeds 1, 2, ...: how far its randomness goes."""
    from smt_bridge import weights as weight_files

    for seed in range(1, args.final_seeds + 1):
        path = work / f"seed-{seed}.weights"
        if not path.exists():
            point = tuning.next_weights(seed)
            weight_files.write(
                path,
                whole(point.weights),
                [f"BLEU {100 * point.bleu:.2f} on the lists, {args.method}, seed {seed}"],
            )
        log.info("seed %d: %s", seed, path)


if __name__ == "__main__":
    sys.exit(main())
