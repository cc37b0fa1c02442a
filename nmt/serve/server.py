"""The server as a process: uvicorn with our reaction to signals."""

import asyncio
import logging
import signal
import socket
import sys
from functools import partial
from types import FrameType
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from nmt.errors import ConfigError
from nmt.serve import access, connection, reloading
from nmt.serve.access import Token
from nmt.serve.app import application
from nmt.serve.config import ServeConfig
from nmt.serve.connection import Connection
from nmt.serve.life import Life
from nmt.serve.record import RequestLog
from nmt.serve.served import ServedEngines

log = logging.getLogger(__name__)

BACKLOG = 1024  # connections that wait to be accepted
SWITCH = 0.00005  # seconds after which a thread lets others run; Python's default is 100 times that
SLACK = 5.0  # seconds beyond all time limits, after which requests are given up


def bind(config: ServeConfig, token: Token | None = None) -> socket.socket:
    """The socket to listen on: who connects before the engines are loaded waits. ConfigError for an address
    that cannot be had, and for one that needs a token."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        access.networks(config.proxy)
        access.check_address(config.host, str(address[0]), token)
        # asyncio sends small answers at once (TCP_NODELAY) only where the socket names its protocol.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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


class Server(uvicorn.Server):
    """The first SIGTERM or Ctrl-C lets no more requests in, and the server ends with the last one in hand;
    the second ends it at once. SIGHUP loads all engines anew."""

    def __init__(self, config: uvicorn.Config, engines: ServedEngines, life: Life, grace: float) -> None:
        """`grace`: seconds that requests in hand are given at the end."""
        super().__init__(config)
        self.engines, self.life, self.grace = engines, life, grace
        self.wanted = False  # loading anew
        self.loading: asyncio.Task[list[str]] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.life.stopping:
            self.should_exit = self.force_exit = True
            return
        self.life.stop()
        log.info("stopping: %d requests are in hand", self.life.active)

    def want_reload(self, sig: int, frame: FrameType | None) -> None:
        """The reaction to SIGHUP."""
        self.wanted = True

    async def on_tick(self, counter: int) -> bool:
        """Called ten times a second."""
        if self.wanted and (self.loading is None or self.loading.done()) and not self.life.stopping:
            self.wanted = False
            self.loading = asyncio.create_task(reloading.anew(list(self.engines.values())))
        if self.life.is_over(self.grace):
            self.should_exit = True
        return await super().on_tick(counter)


def settings(app: ASGIApp, config: ServeConfig) -> uvicorn.Config:
    """How uvicorn serves an application."""
    return uvicorn.Config(
        app,
        http=cast(type[Connection], partial(Connection, config)),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        proxy_headers=bool(config.proxy),
        forwarded_allow_ips=config.proxy,
        timeout_keep_alive=connection.KEPT,
        timeout_graceful_shutdown=int(SLACK),
        backlog=BACKLOG,
        limit_concurrency=connection.MOST,
    )


def run(engines: ServedEngines, config: ServeConfig, listening: socket.socket, token: Token | None) -> None:
    """Serve until a signal comes."""
    life = Life()
    app = application(engines, config, token, life, RequestLog().write)
    server = Server(settings(app, config), engines, life, config.read_timeout + config.timeout + SLACK)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, server.want_reload)
    # A thread that works on text in Python would hold up each of the many small operations of a search.
    sys.setswitchinterval(SWITCH)
    log.info("listening on %s", url_of(listening))
    server.run(sockets=[listening])
    for one in engines.values():
        one.close()
    for one in engines.values():
        one.join(SLACK)  # a thread inside torch while Python ends would abort the process
    log.info("stopped")
