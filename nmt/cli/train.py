"""nmt-train: train a translator from a configuration file; the same command goes on where a run has
stopped."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt import files, run_directory, signals
from nmt.cli import arguments, options
from nmt.errors import ConfigError
from nmt.locks import locked
from nmt.run_directory import INPUTS, VERSION_FILE

log = logging.getLogger("nmt.train")


def main(argv: Sequence[str] | None = None) -> int:
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return options.run(command, argv)
    try:
        status = options.run(command, argv)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    # Under torchrun: all is saved, and torch's own threads now and then abort an interpreter that is taken
    # down in order.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def command(argv: Sequence[str] | None) -> None:
    parser = options.Parser(
        "nmt-train",
        (
            "Train an encoder-decoder. When the run directory exists the training goes on exactly where it "
            "was "
            "saved."
        ),
        epilog=(
            "Every key of the file can be overridden: nmt-train train.yaml training.batch_size=32 "
            "model.hidden=500"
        ),
    )
    parser.add_argument(
        "config",
        type=arguments.Input,
        metavar="CONFIG.yaml",
        help="configuration file; see docs/files.md, or --print-config",
    )
    parser.add_argument("overrides", nargs="*", metavar="section.key=value", help="override keys of the file")
    parser.add_argument(
        "--print-config", action="store_true", help="print the resolved configuration and stop"
    )
    parser.add_argument(
        "--preset",
        default=None,
        metavar="NAME",
        help="defaults for small (about 30,000 pairs) or large data; your file overrides them",
    )
    parser.add_argument(
        "--init-from",
        type=arguments.Input,
        default=None,
        metavar="RUN_DIR",
        help="start from the weights of another run, the same as init_from=...",
    )
    parser.add_argument("--overwrite", action="store_true", help="remove an existing run and start afresh")
    for flag, kind in (
        ("seed", arguments.integer(0)),
        ("threads", options.positive),
        ("device", str),
        ("precision", str),
    ):
        parser.add_argument(f"--{flag}", type=kind, default=argparse.SUPPRESS, help=f"the same as {flag}=...")
    options.add_quiet(parser)
    args = parser.parse_intermixed_args(argv)
    args.overrides += [
        f"{flag}={getattr(args, flag)}"
        for flag in ("seed", "threads", "device", "precision")
        if hasattr(args, flag)
    ]
    args.overrides += [f"init_from={args.init_from}"] if args.init_from else []
    options.start_log("nmt-train", args.quiet, times=True)
    options.before_torch()
    from nmt import config as configuration
    from nmt.cli import new_run

    config = configuration.load(args.config, args.overrides, args.preset)
    if args.print_config:
        print(configuration.to_yaml(config), end="")
        return
    if args.overwrite or not (Path(config.run) / "version").exists():
        new_run.check(config, args.config)
    start(config, args.overwrite, show_bar=sys.stderr.isatty() and not args.quiet)


def start(config: Any, overwrite: bool, show_bar: bool) -> None:
    """Check what can be checked, then train in a run directory that no other training works in."""
    from nmt import fastmath
    from nmt.data.corpus import check_config, check_text
    from nmt.training import parallel

    directory = Path(config.run)
    fastmath.check_precision(config.precision, config.device)
    if config.lm.type and config.init_from:
        raise ConfigError("init_from: for translators only")
    if config.data.cache and os.path.realpath(config.data.cache) == os.path.realpath(directory):
        raise ConfigError(
            f"data.cache: {config.data.cache} is the run directory; name a folder of its own, or leave it "
            "empty"
        )
    team, device = parallel.join(config.device, config.seed)
    if not team.first:
        logging.getLogger("nmt").setLevel(logging.WARNING)
        train(config, directory, overwrite, show_bar, team, device)
        return
    (check_text if config.lm.type else check_config)(
        config.data, thorough=overwrite or not (directory / VERSION_FILE).exists()
    )
    run_directory.check_place(directory, overwrite)
    with locked(directory, "nmt-train"):
        train(config, directory, overwrite, show_bar, team, device)


def train(config: Any, directory: Path, overwrite: bool, show_bar: bool, team: Any, device: str) -> None:
    """Make or reopen the run directory, put the job together, train."""
    from nmt import fastmath
    from nmt.training import inputs, loop
    from nmt.training.optimizers import make_optimizer

    with team.first_then_others():
        if team.first and overwrite:
            run_directory.remove(directory)
        state = reopen(config, directory, team.first)
        config.device = device
        matmul = (
            state["extra"]["matmul"] if state else config.matmul
        )  # a run goes on with the back end it was started with
        log.info("%s", options.set_up_torch(config.device, config.threads or None, matmul))
        model, stream, dev = (language_model if config.lm.type else translator)(
            config, directory, fresh=state is None
        )
        inputs.check(config.data, directory)  # they may have changed while they were read
    if team.size > 1:
        log.info("%d processes", team.size)
    log.info("parameters: %s", f"{sum(p.numel() for p in model.parameters()):,}")
    training = config.training
    optimizer = make_optimizer(
        training.optimizer, model.parameters(), training.learning_rate, training.rho, training.eps
    )
    job = loop.Job(
        directory,
        training,
        model,
        optimizer,
        stream,
        dev,
        Signals(),
        {"matmul": fastmath.in_use()},
        precision=config.precision,
        show_bar=show_bar,
        team=team,
    )
    if state:
        loop.restore(job, state)
        if team.first and not (directory / INPUTS).exists():
            with run_directory.writing(directory) as new:
                inputs.save(inputs.take(config.data), new)
        log.info("going on after update %d", job.progress.step)
    reason = loop.train(job)
    team.leave()
    progress = job.progress
    best = (
        f", best {progress.best if training.metric == 'bleu' else -progress.best:.4f} {training.metric}"
        if progress.best is not None
        else ""
    )
    log.info(
        "stopped at update %d (%s)%s at update %d",
        progress.step,
        reason,
        best,
        progress.best_step or progress.step,
    )
    if reason == "signal":
        log.info("the same command goes on from here")
        sys.exit(128 + job.stop.number)  # type: ignore[attr-defined]
    log.info("run directory: %s", directory)


def translator(config: Any, directory: Path, fresh: bool) -> Any:
    """Model, batches and development set of an encoder-decoder."""
    import torch

    from nmt.data.batches import BatchStream
    from nmt.models import registry
    from nmt.training.prepare import make_corpus, make_cut, make_dev

    pipelines, vocabs = text_of(config, directory)
    remember_back_end(directory)
    corpus = make_corpus(
        config.data, Path(config.data.cache or directory / run_directory.DATA), pipelines, vocabs
    )
    dev = make_dev(config.data, pipelines, vocabs)
    torch.manual_seed(config.seed)
    model = registry.make(
        config.model, len(vocabs[0]), len(vocabs[1]), fill=fresh, spelling=vocabs[0].words
    ).to(config.device)
    if fresh and config.init_from:
        begin_from(model, vocabs, config.init_from)
    training = config.training
    return (
        model,
        BatchStream(
            corpus, training.batch_size, training.pool, config.seed, make_cut(config.data, pipelines, vocabs)
        ),
        dev,
    )


def language_model(config: Any, directory: Path, fresh: bool) -> Any:
    """Model, batches and development text of a language model."""
    import torch

    from nmt import checkpoint
    from nmt.data import running
    from nmt.data.batches import BatchStream
    from nmt.lm.registry import language_model_class
    from nmt.training import inputs
    from nmt.training.prepare import make_dev_text, make_dictionary, make_running, make_text

    kind = language_model_class(config.lm.type)
    if kind.cpu_only and config.device != "cpu":
        raise ConfigError(f"device: {config.device!r}: {config.lm.type} models train on the CPU only")
    if not (directory / VERSION_FILE).exists():
        stamps = inputs.take(config.data)
        pipeline, vocab = make_text(config.data)
        dictionary = make_dictionary(config, pipeline, vocab) if kind.needs_dictionary else None
        create(config, directory, {"target": (pipeline, vocab)}, stamps, dictionary)
    pipeline, vocab = checkpoint.load_side(directory, "target", config.data)
    remember_back_end(directory)
    corpus = make_running(
        config.data, Path(config.data.cache or directory / run_directory.DATA), pipeline, vocab
    )
    dev = make_dev_text(config.data, pipeline, vocab)
    torch.manual_seed(config.seed)
    dictionary = checkpoint.load_dictionary(directory, config.lm)
    model = kind.build(config.lm.typed(), vocab.words, dictionary, fresh).to(config.device)
    training = config.training
    if model.carries:
        return model, running.ChunkStream(running.running(corpus), training.batch_size, config.lm.bptt), dev
    return model, BatchStream(corpus, training.batch_size, training.pool, config.seed), dev


def remember_back_end(directory: Path) -> None:
    from nmt import fastmath

    if not fastmath.recall(directory / run_directory.BACK_ENDS):
        fastmath.remember(directory / run_directory.BACK_ENDS, fastmath.Choice(fastmath.in_use()))


def begin_from(model: Any, vocabs: Any, parent: str) -> None:
    """The weights of another run, as far as they fit."""
    from nmt import checkpoint
    from nmt.training.transfer import transfer

    done = transfer(model, vocabs, checkpoint.load(parent))
    log.info(
        "from %s: %s of %s parameters; %s of %s source words, %s of %s target words", parent,
        f"{done.copied:,}", f"{done.total:,}",
        f"{done.source_words:,}", f"{len(vocabs[0]):,}", f"{done.target_words:,}", f"{len(vocabs[1]):,}",
    )  # fmt: skip
    if done.left:
        log.warning("%d parameters do not fit and start afresh: %s", len(done.left), ", ".join(done.left))


def reopen(config: Any, directory: Path, first: bool) -> dict[str, Any] | None:
    """The saved training state of an existing run; None for a new one. Configuration and input files have to
    be the same."""
    from nmt import config as configuration
    from nmt.training import inputs, loop

    if first:
        run_directory.sweep(directory)
    if not (directory / VERSION_FILE).exists():
        return None
    run_directory.check_version(directory)
    run_directory.verify(directory)
    if changed := configuration.differences(config, directory):
        raise ConfigError(
            f"{directory}: was started with other settings: {'; '.join(changed)}. Use another run "
            "directory, "
            "or --overwrite"
        )
    inputs.check(config.data, directory)
    if not (directory / INPUTS).exists():
        log.warning(
            (
                "%s: version 0.5 did not note what its training files were; whether they have changed cannot "
                "be "
                "told"
            ),
            directory,
        )
    return run_directory.settled(
        directory, lambda: loop.load_state(directory)
    )  # under torchrun the first process may be writing


def text_of(config: Any, directory: Path) -> Any:
    """Text pipelines and vocabularies of the run; a new one gets them from the training text."""
    from nmt import checkpoint
    from nmt.training import inputs
    from nmt.training.prepare import make_pipelines, make_vocabs

    if not (directory / VERSION_FILE).exists():
        stamps = inputs.take(config.data)
        source, target, source_counts, target_counts = make_pipelines(config.data)
        vocabs = make_vocabs(config.data, (source, target), (source_counts, target_counts))
        create(config, directory, {"source": (source, vocabs[0]), "target": (target, vocabs[1])}, stamps)
    sides = [checkpoint.load_side(directory, side, config.data) for side in ("source", "target")]
    return tuple(pipeline for pipeline, _ in sides), tuple(vocab for _, vocab in sides)


def create(
    config: Any, directory: Path, sides: dict[str, Any], stamps: dict[str, Any], dictionary: Any = None
) -> None:
    """A new run directory without weights: the text pipeline and vocabulary of each side, the configuration,
    what the inputs were."""
    from nmt import config as configuration
    from nmt.training import inputs

    with run_directory.writing(directory) as new:
        files.write_text(new / run_directory.CONFIG, configuration.to_yaml(config).rstrip("\n").split("\n"))
        for name, (pipeline, vocab) in sides.items():
            pipeline.save(new, name)
            vocab.save(new / f"{name}.vocab")
        if dictionary is not None:
            dictionary.save(new / run_directory.DICTIONARY)
        inputs.save(stamps, new)
        run_directory.write_version(new)


class Signals:
    """True once SIGTERM or SIGINT has come: the step in hand is finished, the run saved. A second signal ends
    the process at once."""

    def __init__(self) -> None:
        self.number = 0
        signals.listen(self.note)

    def note(self, number: int) -> None:
        self.number = number

    def __call__(self) -> bool:
        return self.number != 0


if __name__ == "__main__":
    sys.exit(main())
