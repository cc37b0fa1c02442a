"""smt-tune: tune the weights of a phrase-based model by decoding a development set repeatedly."""

import argparse
import hashlib
import logging
import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli import arguments, options
from nmt.cli.arguments import InputPath, OutputPath, add_settings
from nmt.config import settings
from nmt.errors import ConfigError, DataError
from nmt.io import files, locks, manifest
from nmt.work import executors, store
from nmt.work.executors import ExecutorConfig
from smt_bridge.cli import decoding
from smt_bridge.decoder.config import STACK
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses import sparse_weights
from smt_bridge.moses.ini import Ini, Weights

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.decoder.system import PhraseBasedSystem
    from smt_bridge.decoder.translation import PhraseTranslation
    from smt_bridge.tuning.loop import DecodingBlock, Tuning
    from smt_bridge.tuning.pool import Floats

log = logging.getLogger(__name__)

# Options of the decoder that affect n-best lists, besides those of the search; recorded in tune.json.
DECODING = ("max_phrase_length", "early_distortion_cost", "drop_unknown", "mark_unknown", "xml_input")

CUBE_PRUNING = ("search", "pop_limit", "diversity")  # recorded, too, but not for stack search


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    from smt_bridge.cli import tuners

    own_parser = parser()
    args = options.parse(own_parser, argv, times=True)
    tuners.refuse_unused(own_parser, args)
    files.require_files((args.source, *args.reference), "the texts are read more than once")
    files.check_parallel(args.source, *args.reference)
    from smt_bridge.tuning import loop

    paths = tuning_paths(args)
    decoding.refuse_unused(own_parser, args, moses_ini.read(paths.ini))
    loop.check_folder(paths.work)
    with locks.locked(paths.work, "smt-tune"):
        tune(args, paths)


def parser() -> options.Parser:
    from smt_bridge.cli.tuners import add_tuner
    from smt_bridge.tuning.registry import TuneConfig

    parser = options.Parser(
        "smt-tune",
        "Tune the weights of a model for BLEU on a development set: decode it, tune on the n-best lists of "
        "all decodings so far, and decode again. The weights of the best decoding are kept. An interrupted "
        "tuning resumes when it is started again.",
    )
    parser.add_argument(
        "model", type=InputPath, metavar="MODEL_DIR|INI", help="folder of a model, or moses.ini"
    )
    parser.add_argument(
        "--source", "-s", type=InputPath, required=True, metavar="FILE",
        help="development text, tokenized (and escaped) like the training text",
    )  # fmt: skip
    parser.add_argument(
        "--reference", "-r", type=InputPath, required=True, nargs="+", metavar="FILE", help="its translations"
    )
    parser.add_argument(
        "--output", "-o", type=OutputPath, metavar="INI",
        help="tuned moses.ini; default: NAME.tuned.ini beside the NAME.ini of the model",
    )  # fmt: skip
    parser.add_argument(
        "--work", type=OutputPath, metavar="DIR",
        help="folder for the n-best lists and weights of every iteration; default: OUTPUT.tuning",
    )  # fmt: skip
    parser.add_argument(
        "--n-best", type=options.positive, default=100, metavar="K",
        help="number of different translations of each sentence in a list",
    )  # fmt: skip
    add_settings(parser, TuneConfig, "iterations", "patience")
    final = "finally tune N times on all lists, with seeds 1 to N, and write WORK/seed-1.weights ..."
    parser.add_argument("--final-seeds", type=arguments.integer(0), default=0, metavar="N", help=final)
    add_tuner(parser)
    decoding.add_search(parser)
    options.add_quiet(parser)
    return parser


@dataclass
class TuningPaths:
    """The files of a tuning, and the ini that it starts from."""

    ini: str  # path of the model's ini
    output: Path  # the tuned ini
    work: Path  # folder of the iterations
    start: Ini  # the model's ini, with paths that are valid in the folder of the output


def tuning_paths(args: argparse.Namespace) -> TuningPaths:
    """Paths of the tuning's files. ConfigError if an output is the model's ini or one of its tables, a folder
    or stdout; DataError for a model without a usable moses.ini."""
    from smt_bridge.decoder.system import ini_path

    path = ini_path(args.model)
    output = Path(args.output or f"{path.removesuffix('.ini')}.tuned.ini")
    if args.output == "-" or output.is_dir():
        what = "is a folder" if output.is_dir() else "the lists of the tuning are kept beside the output"
        raise ConfigError(f"--output {args.output}: {what}; name a file for the tuned moses.ini")
    work = Path(args.work or f"{output}.tuning")
    ini = moses_ini.read(path)
    sparse = sparse_weights.beside(output)
    decoding.check_tables(
        ini, [("--output", str(path)) for path in (output, sparse)] + [("--work", str(work))]
    )
    return TuningPaths(ini=path, output=output, work=work, start=moses_ini.with_moved_paths(ini, output))


def tune(args: argparse.Namespace, paths: TuningPaths) -> None:
    """Run the tuning loop, write the best weights and those of --final-seeds, and print the best BLEU. Errors
    as from `load_checked_decoder`, `open_tuning` and `loop.run`."""
    from smt_bridge.tuning import loop
    from smt_bridge.tuning.loop import starting_weights

    sources = list(files.read_lines(args.source))
    texts = [list(files.read_lines(path)) for path in args.reference]
    decoder = load_checked_decoder(args, moses_ini.read(paths.ini), sources)
    tuning = open_tuning(args, paths, decoder, [*sources, *(line for text in texts for line in text)])
    with start_decoding(args, decoder) as decode:
        redecode = partial(decode_text, args, decode, sources)
        starts = starting_weights(decoder, tuning.names)
        reason = loop.run(tuning, starts, redecode, loop.make_references(texts))
    write_weights(args, decoder.system, tuning, paths)
    tune_final_seeds(args, decoder.system, tuning, paths.work)
    best = tuning.best()
    score = 100 * tuning.iterations[best].bleu
    count = len(tuning.iterations)
    log.info(
        "%s; the best of %d iterations is %d: BLEU %.2f; %s", reason, count, best + 1, score, paths.output
    )
    if warning := tuning.gain_warning():
        log.warning("%s", warning)
    print(f"BLEU\t{score:.2f}\titeration\t{best + 1}")


def load_checked_decoder(args: argparse.Namespace, ini: Ini, sources: Sequence[str]) -> "Decoder":
    """Load the decoder, and check that it accepts every line of the development text. DataError for a text
    without words, bad markup, or a line that is too long; also the errors of `load_decoder`."""
    if not any(line.strip() for line in sources):
        raise DataError(f"{args.source}: no words, expected a development text")
    decoder = decoding.load_decoder(args, ini, args.n_best, True)
    for number, line in enumerate(sources, 1):
        decoder.parse_line(line, f"{args.source}:{number}")  # bad tags, lines that are too long
    return decoder


def open_tuning(
    args: argparse.Namespace, paths: TuningPaths, decoder: "Decoder", texts: Sequence[str]
) -> "Tuning":
    """Start or resume the tuning. `texts`: all lines of the development set, the source first. ConfigError if
    the folder belongs to another tuning, if no weight can be tuned, or for a setting out of range."""
    from smt_bridge.cli.tuners import parse_tuner
    from smt_bridge.decoder.system import weight_file
    from smt_bridge.tuning import loop, pool
    from smt_bridge.tuning.registry import TuneConfig
    from smt_bridge.tuning.tuner import check_sparse

    config, tuner = arguments.parse_settings(TuneConfig, args), parse_tuner(args)
    settings.check(config)
    check_sparse(tuner, decoder.system.sparse, args.method)
    names = pool.column_names(decoder.system.sizes)
    if not names:
        raise ConfigError(
            f"{paths.ini}: every feature has tuneable=false; remove that from the features to tune"
        )
    search, sparse_file = decoder.settings, weight_file(decoder.system.ini)
    sentences = len(texts) // (1 + len(args.reference))
    recorded = {
        "model": manifest.digest(paths.ini),
        "rows": decoder.system.table.rows,
        "lines": sentences,
        "n_best": args.n_best,
        "texts": hashlib.sha256("\n".join(texts).encode()).hexdigest(),
        "stack": search.stack,
        "table_limit": search.table_limit,
        "distortion_limit": search.distortion_limit,
        "beam": search.beam_threshold,
        "neural_beam": args.neural_beam,
        # older tunings recorded none of these
        **({name: getattr(search, name) for name in CUBE_PRUNING} if search.search != STACK else {}),
        **({"sparse_weights": manifest.digest(sparse_file)} if sparse_file else {}),
        **{name: getattr(args, name) for name in DECODING},
        "xml_brackets": " ".join(args.xml_brackets or ()),
        **arguments.parse_settings(ExecutorConfig, args).recorded(),
    }
    loop.open_folder(paths.work, recorded, config, tuner)
    return loop.Tuning(
        folder=paths.work, names=names, sentences=sentences, config=config, tuner=tuner, threads=args.workers,
        vectors=loop.sparse_vectors(decoder.system),
    )  # fmt: skip


# translates lines with weights
Redecoding = Callable[[Weights, Sequence[str]], "Generator[PhraseTranslation]"]


@contextmanager
def start_decoding(args: argparse.Namespace, decoder: "Decoder") -> Iterator[Redecoding]:
    """Yield a function that decodes lines with other weights, by threads of this process or by an executor
    whose workers load the model once. Makes `args.cache` absolute."""
    from smt_bridge.decoder.system import system_files
    from smt_bridge.tuning.loop import Redecoder, decode, decode_by_executor

    if decoding.uses_threads(args):
        yield lambda weights, sources: decode(decoder, weights, sources, args.workers, args.source)
        return
    args.cache = args.cache and os.path.abspath(args.cache)
    ini = decoder.system.ini
    load_remote = partial(
        load_in_worker, args, decoding.absolute_ini(ini), store.file_digests(system_files(ini))
    )
    config = arguments.parse_settings(ExecutorConfig, args)
    with executors.make(Redecoder(decoder).compute, load_remote, config) as executor:
        yield lambda weights, sources: decode_by_executor(executor, decoder, weights, sources, args.source)


def load_in_worker(
    args: argparse.Namespace, ini: Ini, models: Mapping[str, str]
) -> "Callable[[DecodingBlock], list[PhraseTranslation]]":
    """In a worker: load the same model, and return the function that decodes a block. `models`: checksums by
    path. DataError for files that differ."""
    from smt_bridge.tuning.loop import Redecoder

    store.check_digests(models)
    return Redecoder(decoding.load_decoder(args, ini, args.n_best, True)).compute


def decode_text(
    args: argparse.Namespace, decode: Redecoding, sources: Sequence[str], weights: Weights
) -> "Generator[PhraseTranslation]":
    """Yield the translations of the development text with other weights, and show a progress bar."""
    results = decode(weights, sources)
    with options.progress(args, "sentences", len(sources)) as progress, closing(results):
        for translation in results:
            yield translation
            progress.add(1)


def write_file(
    path: Path, system: "PhraseBasedSystem", tuning: "Tuning", weights: "Floats", header: str
) -> None:
    """Write all weights of a tuning, (D + F,), but sparse ones of 0, to a file. UserError if that fails."""
    from smt_bridge.tuning.loop import whole_sparse_weights, whole_weights

    sparse = whole_sparse_weights(system, tuning, weights)
    named = {name: [value] for name, value in sparse.items() if value}
    moses_ini.write_weights(path, whole_weights(system, tuning.names, weights) | named, [header])


def write_weights(
    args: argparse.Namespace, system: "PhraseBasedSystem", tuning: "Tuning", paths: TuningPaths
) -> None:
    """Write the best weights to a file in the work folder, and the ini with these weights to the output;
    those of sparse values go to a file beside the output."""
    from smt_bridge.tuning.loop import whole_sparse_weights, whole_weights

    best = tuning.best()
    iteration = tuning.iterations[best]
    header = (
        f"BLEU {100 * iteration.bleu:.2f} on {args.source}, {args.method}, seed {args.seed}, iteration "
        f"{best + 1} of {len(tuning.iterations)}"
    )
    write_file(paths.work / "weights", system, tuning, iteration.weights, header)
    ini = moses_ini.set_weights(paths.start, whole_weights(system, tuning.names, iteration.weights))
    if system.sparse:
        path = sparse_weights.beside(paths.output)
        sparse_weights.write(path, whole_sparse_weights(system, tuning, iteration.weights), [header])
        ini = moses_ini.with_weight_file(ini, path.name)
    moses_ini.write(paths.output, ini, f"# {header}")


def tune_final_seeds(
    args: argparse.Namespace, system: "PhraseBasedSystem", tuning: "Tuning", work: Path
) -> None:
    """Tune again on the last pool with seeds 1, 2, ..., to show how much the result depends on the seed, and
    write the weights of each to the work folder unless they are there."""
    from smt_bridge.tuning.loop import FINAL_SEED

    for seed in range(1, args.final_seeds + 1):
        path = work / FINAL_SEED.format(seed)
        if not path.exists():
            point = tuning.tune_pool(tuning.pool(), seed)
            header = f"BLEU {100 * point.bleu:.2f} on the lists, {args.method}, seed {seed}"
            write_file(path, system, tuning, point.weights, header)
        log.info("seed %d: %s", seed, path)


if __name__ == "__main__":
    sys.exit(main())
