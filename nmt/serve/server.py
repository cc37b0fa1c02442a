"""The server as a process: uvicorn with our reaction to signals."""

import logging
import socket

import uvicorn

from nmt.errors import ConfigError
from nmt.serve import access
from nmt.serve.access import Token
from nmt.serve.app import application
from nmt.serve.config import ServeConfig
from nmt.serve.served import ServedEngines

log = logging.getLogger(__name__)

BACKLOG = 1024  # connections that wait to be accepted


def bind(config: ServeConfig, token: Token | None = None) -> socket.socket:
    """The socket to listen on: who connects before the engines are loaded waits. ConfigError for an address
    that cannot be had, and for one that needs a token."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        access.check_address(config.host, str(address[0]), token)
        listening = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise refusal(config, error) from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise refusal(config, error) from error
    return listening


def refusal(config: ServeConfig, error: OSError | UnicodeError) -> ConfigError:
    reason = getattr(error, "strerror", None) or str(error)
    return ConfigError(f"--host {config.host} --port {config.port}: {reason}")


def url_of(listening: socket.socket) -> str:
    """Where a browser finds the server."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def run(engines: ServedEngines, config: ServeConfig, listening: socket.socket, token: Token | None) -> None:
    """Serve until a signal comes."""
    app = application(engines, config, token)
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, server_header=False, lifespan="off")
    )
    log.info("listening on %s", url_of(listening))
    server.run(sockets=[listening])
