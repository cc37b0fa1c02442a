"""nmt-serve: a translation server with a web page."""

import argparse
import logging
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nmt.cli import options
from nmt.cli.arguments import InputPath, add_setting, add_settings, parse_settings
from nmt.errors import UserError
from nmt.runs import directory as run_directory
from nmt.serve import engine
from nmt.serve.config import EngineConfig, ServeConfig

if TYPE_CHECKING:
    from nmt.serve.limits import Token

log = logging.getLogger(__name__)

LIBRARIES = ("starlette", "uvicorn", "prometheus_client")  # of the extra `serve`
LIMITS = (
    "queue", "gather", "timeout", "read_timeout", "max_connections", "max_request", "max_file",
    "keep_files", "max_lines", "max_line", "max_terms", "max_n_best", "max_beam_size",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    return options.run(command, argv)


def command(argv: Sequence[str] | None) -> None:
    args = options.parse(parser(), argv, times=True)
    config = parse_settings(ServeConfig, args)
    engine.check_names([name for name, _ in args.engines])
    try:
        from nmt.serve import limits, server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in LIBRARIES:
            raise
        raise UserError("nmt-serve needs more libraries: pip install 'nmt-smt[serve]'") from error

    token = limits.read_token(config.token) if config.token else None
    with server.bind(config, token) as listening:
        serve(args, config, listening, token)


def serve(
    args: argparse.Namespace, config: ServeConfig, listening: socket.socket, token: "Token | None"
) -> None:
    """Load the engines and serve them until a signal arrives."""
    from nmt.serve import served, server

    set_up = ""
    settings = parse_settings(EngineConfig, args, threads=args.threads or 0)
    named = served.offered_engines(args.engines)
    if served.need_torch([path for _, path in named], settings):
        set_up = options.set_up_torch(args.device, args.threads, args.matmul, first_run(named))
    engines = served.load_engines(named, settings, config)
    if set_up:
        log.info("%s", set_up)
    server.run(engines, config, listening, token)


def parser() -> options.Parser:
    parser = options.Parser(
        "nmt-serve",
        "Serve translations to browsers and programs: a web page, a JSON interface, the interface of "
        "LibreTranslate, and the XML-RPC of mosesserver. An engine is a run directory, also one written by "
        "nmt-export, several separated by commas (an ensemble), a moses.ini or its folder, or the folder of "
        "a hybrid system; its fast model, if it has one, is served as NAME.fast.",
    )
    parser.add_argument(
        "engines",
        nargs="+",
        type=named_path,
        metavar="NAME=PATH",
        help="an engine and its name; a name such as en-fr gives the languages of an engine that does not "
        "know them",
    )
    add_setting(parser, ServeConfig, "host", metavar="ADDRESS")
    add_setting(parser, ServeConfig, "port")
    add_setting(parser, ServeConfig, "token", type=InputPath, metavar="FILE")
    add_setting(parser, ServeConfig, "allow_origin", type=str, nargs="+", metavar="ORIGIN")
    add_setting(parser, ServeConfig, "proxy", nargs="+", metavar="ADDRESS")
    add_compute(parser.add_argument_group("engines"))
    add_settings(parser.add_argument_group("limits"), ServeConfig, *LIMITS)
    options.add_quiet(parser)
    return parser


def add_compute(group: argparse._ArgumentGroup) -> None:
    add_settings(group, EngineConfig, "engine", "quantization")
    add_setting(group, EngineConfig, "beam_size", "-b")
    add_setting(group, EngineConfig, "device", metavar="DEVICE")
    # MKL by default: oneDNN compiles a kernel per shape, and a server sees hundreds of shapes; it was no
    # faster and used 20% more memory.
    options.add_processor(group, matmul="mkl")
    add_setting(group, EngineConfig, "workers")
    add_setting(group, EngineConfig, "cache", metavar="DIR")


def named_path(text: str) -> tuple[str, str]:
    """Argument type: the name and the path of an engine, NAME=PATH."""
    try:
        return engine.parse_engine_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def first_run(engines: Sequence[tuple[str, str]]) -> str | None:
    """The first run that torch computes; all engines use its choice of matrix back end. None without any."""
    paths = [run_directory.resolve(path.split(",")[0]) for _, path in engines]
    return next((str(path) for path in paths if run_directory.is_trained(path)), None)


if __name__ == "__main__":
    sys.exit(main())
