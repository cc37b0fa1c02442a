"""smt-tune: tune the weights of a phrase-based model by decoding a development set again and again."""

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
from nmt.cli.arguments import InputPath, OutputPath, add_setting
from nmt.config import settings
from nmt.errors import ConfigError, DataError
from nmt.io import files, locks, manifest
from nmt.work import executors
from nmt.work import folder as job_folder
from nmt.work.config import ExecutorConfig
from smt_bridge.cli import decoding
from smt_bridge.moses import ini as ini_paths
from smt_bridge.moses import ini as moses_ini
from smt_bridge.moses import weights as weight_files
from smt_bridge.moses.ini import Ini
from smt_bridge.moses.weights import Weights

if TYPE_CHECKING:
    from smt_bridge.decoder.decoder import Decoder
    from smt_bridge.decoder.translation import PhraseTranslation
    from smt_bridge.tuning.decoding import Block
    from smt_bridge.tuning.loop import Tuning
    from smt_bridge.tuning.pool import Floats

log = logging.getLogger(__name__)

# Options of the decoder that bear on the lists, besides those of the search; tune.json keeps their values.
DECODING = ("max_phrase_length", "early_distortion_cost", "drop_unknown", "mark_unknown", "xml_input")


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = parser().parse_args(argv)
    options.start_log("smt-tune", args, times=True)
    if "-" in (args.source, *args.reference):
        raise ConfigError("the texts are read more than once; give files, not -")
    files.check_parallel(args.source, *args.reference)
    from smt_bridge.tuning import loop

    places = places_of(args)
    loop.check_folder(places.work)
    with locks.locked(places.work, "smt-tune"):
        tune(args, places)


def parser() -> options.Parser:
    from smt_bridge.cli.tuners import add_tuner
    from smt_bridge.tuning.registry import TuneConfig

    made = options.Parser(
        "smt-tune",
        "Tune a model for BLEU on a development set: decode it, tune on all n-best lists so far, decode "
        "again. The weights with the best decoding are kept. An interrupted tuning resumes when it is "
        "started again.",
    )
    made.add_argument("model", type=InputPath, metavar="MODEL_DIR|INI", help="a model folder, or a moses.ini")
    made.add_argument(
        "--source",
        "-s",
        type=InputPath,
        required=True,
        metavar="FILE",
        help="development text, tokenized (and escaped) as for the model",
    )
    made.add_argument(
        "--reference", "-r", type=InputPath, required=True, nargs="+", metavar="FILE", help="its translations"
    )
    made.add_argument(
        "--output",
        "-o",
        type=OutputPath,
        default=None,
        metavar="INI",
        help="the tuned moses.ini; default: beside the model's and named like it, NAME.tuned.ini",
    )
    made.add_argument(
        "--work",
        type=OutputPath,
        default=None,
        metavar="DIR",
        help="folder for the lists and weights of every iteration; default: OUTPUT.tuning",
    )
    made.add_argument(
        "--n-best",
        type=options.positive,
        default=100,
        metavar="K",
        help="different translations of each sentence in a list",
    )
    add_setting(made, TuneConfig, "iterations")
    add_setting(made, TuneConfig, "patience")
    final = "finally tune N times on all lists, with seeds 1 to N: WORK/seed-1.weights ..."
    made.add_argument("--final-seeds", type=arguments.integer(0), default=0, metavar="N", help=final)
    add_tuner(made)
    decoding.add_search(made)
    options.add_quiet(made)
    return made


@dataclass
class TuningPaths:
    """What is read and written."""

    ini: str
    output: Path
    work: Path
    start: Ini  # the model's ini, with paths that are valid in the folder of the output


def places_of(args: argparse.Namespace) -> TuningPaths:
    """ConfigError when an output is the model's ini or one of its tables."""
    from smt_bridge.decoder.system import ini_of

    path = ini_of(args.model)
    folder = Path(path).parent
    output = Path(args.output or folder / f"{Path(path).name.removesuffix('.ini')}.tuned.ini")
    work = Path(args.work or f"{output}.tuning")
    ini = moses_ini.read(path)
    decoding.check_tables(ini, [("--output", str(output)), ("--work", str(work))])
    beside = output.parent.resolve() == folder.resolve()
    start = ini if beside else ini_paths.with_absolute_paths(ini, [".", str(folder)])
    return TuningPaths(ini=path, output=output, work=work, start=start)


def tune(args: argparse.Namespace, places: TuningPaths) -> None:
    """Run the loop; write the best weights, and what other seeds make of the lists."""
    from smt_bridge.tuning import loop
    from smt_bridge.tuning.decoding import starts, whole_weights

    sources = list(files.read_lines(args.source))
    texts = [list(files.read_lines(path)) for path in args.reference]
    decoder = decoder_for(args, moses_ini.read(places.ini), sources)
    tuning = open_tuning(args, places, decoder, [*sources, *(line for text in texts for line in text)])
    with decodings(args, decoder) as decode:
        followed = partial(translations, args, decode, sources)
        reason = loop.run(tuning, starts(decoder, tuning.names), followed, loop.references_of(texts))
    whole = partial(whole_weights, decoder.system, tuning.names)
    write(args, tuning, places, whole)
    final_seeds(args, tuning, places.work, whole)
    best = tuning.best()
    score = 100 * tuning.iterations[best].bleu
    count = len(tuning.iterations)
    log.info(
        "%s; the best of %d iterations is %d: BLEU %.2f; %s", reason, count, best + 1, score, places.output
    )
    if said := tuning.nothing_gained():
        log.warning("%s", said)
    print(f"BLEU\t{score:.2f}\titeration\t{best + 1}")


def decoder_for(args: argparse.Namespace, ini: Ini, sources: Sequence[str]) -> "Decoder":
    """The decoder, once every line of the development text is known to be acceptable to it."""
    if not any(line.strip() for line in sources):
        raise DataError(f"{args.source}: no words, expected a development text")
    decoder = decoding.load_decoder(args, ini, args.n_best, True)
    for number, line in enumerate(sources, 1):
        decoder.marked(line, f"{args.source}:{number}")  # bad tags, lines that are too long
    return decoder


def open_tuning(
    args: argparse.Namespace, places: TuningPaths, decoder: "Decoder", texts: Sequence[str]
) -> "Tuning":
    """The folder of the tuning, new or resumed. `texts`: all lines of the development set. ConfigError when
    the folder belongs to another tuning."""
    from smt_bridge.cli.tuners import tuner_of
    from smt_bridge.tuning import loop, pool
    from smt_bridge.tuning.registry import TuneConfig

    config, tuner = arguments.parse_settings(TuneConfig, args), tuner_of(args)
    settings.check(config)
    names = pool.columns(decoder.system.sizes)
    if not names:
        raise ConfigError(f"{places.ini}: every feature has tuneable=false; nothing to tune")
    search = decoder.settings
    sentences = len(texts) // (1 + len(args.reference))
    recorded = {
        "model": manifest.digest(places.ini),
        "rows": decoder.system.table.rows,
        "lines": sentences,
        "n_best": args.n_best,
        "texts": hashlib.sha256("\n".join(texts).encode()).hexdigest(),
        "stack": search.stack,
        "table_limit": search.table_limit,
        "distortion_limit": search.distortion_limit,
        "beam": search.beam_threshold,
        "neural_beam": args.neural_beam,
        **{name: getattr(args, name) for name in DECODING},
        "xml_brackets": " ".join(args.xml_brackets or ()),
        **arguments.parse_settings(ExecutorConfig, args).recorded(),
    }
    loop.open_folder(places.work, recorded, config, tuner)
    return loop.Tuning(
        folder=places.work,
        names=names,
        sentences=sentences,
        config=config,
        tuner=tuner,
        threads=args.workers,
    )


Redecoding = Callable[[Weights, Sequence[str]], "Generator[PhraseTranslation]"]


@contextmanager
def decodings(args: argparse.Namespace, decoder: "Decoder") -> Iterator[Redecoding]:
    """What decodes lines with other weights: threads of this process, or an executor, whose workers load the
    model once."""
    from smt_bridge.decoder.system import files_of
    from smt_bridge.tuning.decoding import Redecoder, decoded, decoded_by

    if decoding.in_threads(args):
        yield lambda weights, sources: decoded(decoder, weights, sources, args.workers, args.source)
        return
    args.cache = args.cache and os.path.abspath(args.cache)
    ini = decoder.system.ini
    there = partial(begin, args, decoding.elsewhere(ini), job_folder.file_digests(files_of(ini)))
    config = arguments.parse_settings(ExecutorConfig, args)
    with executors.make(Redecoder(decoder).compute, there, config) as executor:
        yield lambda weights, sources: decoded_by(executor, decoder, weights, sources, args.source)


def begin(
    args: argparse.Namespace, ini: Ini, models: Mapping[str, str]
) -> "Callable[[Block], list[PhraseTranslation]]":
    """In a worker: the same model. DataError for files that differ."""
    from smt_bridge.tuning.decoding import Redecoder

    job_folder.check_digests(models)
    return Redecoder(decoding.load_decoder(args, ini, args.n_best, True)).compute


def translations(
    args: argparse.Namespace, decode: Redecoding, sources: Sequence[str], weights: Weights
) -> "Generator[PhraseTranslation]":
    """The development text decoded with other weights."""
    found = decode(weights, sources)
    with options.progress(args, "sentences", len(sources)) as progress, closing(found):
        for translation in found:
            yield translation
            progress.add(1)


def write(
    args: argparse.Namespace, tuning: "Tuning", places: TuningPaths, whole: "Callable[[Floats], Weights]"
) -> None:
    """The best weights, as a file of their own and in the tuned ini."""
    best = tuning.best()
    found = tuning.iterations[best]
    weights = whole(found.weights)
    header = (
        f"BLEU {100 * found.bleu:.2f} on {args.source}, {args.method}, seed {args.seed}, iteration "
        f"{best + 1} of {len(tuning.iterations)}"
    )
    weight_files.write(places.work / "weights", weights, [header])
    moses_ini.write(places.output, moses_ini.set_weights(places.start, weights), f"# {header}")


def final_seeds(
    args: argparse.Namespace, tuning: "Tuning", work: Path, whole: "Callable[[Floats], Weights]"
) -> None:
    """Tune again on the last pool with seeds 1, 2, ...: how much the result depends on the seed."""
    for seed in range(1, args.final_seeds + 1):
        path = work / f"seed-{seed}.weights"
        if not path.exists():
            point = tuning.tuned(tuning.pool(), seed)
            header = f"BLEU {100 * point.bleu:.2f} on the lists, {args.method}, seed {seed}"
            weight_files.write(path, whole(point.weights), [header])
        log.info("seed %d: %s", seed, path)


if __name__ == "__main__":
    sys.exit(main())
