"""The server: its ASGI application, and its process, which is uvicorn with handlers for signals."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import cast

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from nmt.errors import ConfigError, UserError
from nmt.serve import http_api, json_api, limits
from nmt.serve.config import ServeConfig
from nmt.serve.http_api import Endpoint
from nmt.serve.json_api import JsonApi
from nmt.serve.libretranslate import LibreTranslate
from nmt.serve.limits import Connection, Gate, Token
from nmt.serve.monitoring import Lifecycle, Metrics, RequestLog, RequestRecord
from nmt.serve.moses_rpc import MosesServer
from nmt.serve.served import ServedEngine, ServedEngines
from nmt.serve.translate_file import TranslateFile

# ---- reload ------------------------------------------------------------------------------------------------
# POST /api/reload and SIGHUP load engines again while the server runs. The old engine still translates the
# lines in its queue; until then both are in memory.


log = logging.getLogger(__name__)


async def reload(engines: ServedEngines, token: Token | None, request: Request) -> Response:
    """Handle /api/reload: {"engine": NAME} reloads one engine, {} all.

    HTTPException 403 for a server without a token, 500 if an engine cannot be loaded; BadRequest for a body
    that is no such object, or an unknown name.
    """
    if token is None:
        raise HTTPException(403, "a server without --token reloads engines on SIGHUP only")
    values = http_api.parse_json(await request.body() or b"{}")
    values.check_names(["engine"])
    wanted = [json_api.find_engine(engines, values)] if values.text("engine", "") else [*engines.values()]
    failed = await reload_engines(wanted)
    if failed:
        raise HTTPException(500, "; ".join(failed))
    return JSONResponse({"reloaded": [served.name for served in wanted]})


async def reload_engines(engines: Sequence[ServedEngine]) -> list[str]:
    """Reload engines one after the other; returns the errors. An engine whose reload fails remains in use."""
    failed = []
    for served in engines:
        try:
            await asyncio.to_thread(served.reload)
        except Exception as error:  # of a broken model or a plugin: anything
            log.error("%s: not reloaded, the old engine stays in use: %s", served.name, error)
            failed.append(f"{served.name}: {error}")
    return failed


# ---- the application ---------------------------------------------------------------------------------------
# The ASGI application of the server: all interfaces behind one gate.


PAGE = Path(__file__).parent / "page"
SHARED_PAGE = Path(__file__).parents[1] / "analysis" / "page" / "shared"  # the report has them, too


def application(
    engines: ServedEngines,
    config: ServeConfig,
    token: Token | None = None,
    life: Lifecycle | None = None,
    done: Callable[[RequestRecord], None] = lambda record: None,
) -> Starlette:
    """Build the ASGI application: all interfaces and the page, behind the gate.

    `token`: the secret that clients must send; None for a server that only this machine can reach. `life`:
    the counts of active requests, shared by the process. `done`: called with the record of each request."""
    life = life or Lifecycle()
    metrics = Metrics(engines, life)
    documents = TranslateFile(LibreTranslate(engines, config, token, life))
    endpoints = described_endpoints(documents)

    async def describe(request: Request) -> Response:
        return JSONResponse(http_api.describe(endpoints))

    routes = [
        *(endpoint.route() for endpoint in endpoints),
        *documents.routes(),
        Route("/api/openapi.json", describe),
        Route("/api/reload", partial(reload, engines, token), methods=["POST"]),
        *MosesServer(engines, config).routes(),
        Route("/metrics", metrics.show),
        *page_routes(),
    ]
    middleware = [Middleware(Gate, config=config, token=token, life=life, done=(metrics.count, done))]
    if config.allow_origin:
        allowed = Middleware(
            CORSMiddleware,
            allow_origins=config.allow_origin,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization"],
        )
        middleware.insert(0, allowed)
    return Starlette(
        routes=routes,
        middleware=middleware,
        exception_handlers={HTTPException: http_error, UserError: user_error},
    )


def described_endpoints(documents: TranslateFile) -> list[Endpoint]:
    """The endpoints of the server's own interface and of LibreTranslate's, which OpenAPI describes."""
    texts = documents.texts
    own = JsonApi(texts.engines, texts.config)
    return [*own.endpoints(), *texts.endpoints(), *documents.endpoints()]


def page_routes() -> list[BaseRoute]:
    """Build a route for each file that is now in the folders of the page. Other files cannot be requested."""

    def route(path: Path) -> BaseRoute:
        async def send(request: Request) -> Response:
            return FileResponse(path, headers={"Cache-Control": "no-cache"})

        return Route("/" if path.name == "index.html" else f"/{path.name}", send)

    return [
        route(path) for folder in (PAGE, SHARED_PAGE) for path in sorted(folder.iterdir()) if path.is_file()
    ]


async def http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return http_api.error_response(error.status_code, error.detail, dict(error.headers or {}))


async def user_error(request: Request, error: Exception) -> Response:
    return http_api.error_response(400, str(error))


# ---- the process -------------------------------------------------------------------------------------------


BACKLOG = 1024  # connections that wait to be accepted
SWITCH_INTERVAL = 0.00005  # seconds after which a thread lets others run; Python's default is 100 times that
SLACK = 5.0  # seconds after all time limits until the last requests are given up


def bind(config: ServeConfig, token: Token | None = None) -> socket.socket:
    """Open the socket. Clients that connect before the engines are loaded wait.

    ConfigError for an address that is not available, or that needs a token and has none, and for a --proxy
    that is no address.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            config.host, config.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        limits.parse_networks(config.proxy)
        limits.check_address(config.host, str(address[0]), token)
        # asyncio sends small answers at once (TCP_NODELAY) only where the socket names its protocol.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:
        raise address_error(config, error) from error
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise address_error(config, error) from error
    return listening


def address_error(config: ServeConfig, error: OSError | UnicodeError) -> ConfigError:
    reason = getattr(error, "strerror", None) or str(error)
    return ConfigError(f"--host {config.host} --port {config.port}: {reason}")


def server_url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"


class Server(uvicorn.Server):
    """uvicorn with handlers for signals.

    After the first SIGTERM or Ctrl-C new requests are refused, and the server exits once the active ones are
    answered, or after `grace` seconds; a second signal ends it at once. `want_reload` reloads all engines;
    `run` installs it as the handler of SIGHUP.
    """

    def __init__(self, config: uvicorn.Config, engines: ServedEngines, life: Lifecycle, grace: float) -> None:
        """`grace`: seconds that active requests get to finish when the server is stopping."""
        super().__init__(config)
        self.engines, self.life, self.grace = engines, life, grace
        self.reload_wanted = False
        self.loading: asyncio.Task[list[str]] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.life.stopping:
            self.should_exit = self.force_exit = True
            return
        self.life.stop()
        log.info("stopping: %d requests are in progress", self.life.active)

    def want_reload(self, sig: int, frame: FrameType | None) -> None:
        """Handle SIGHUP: request a reload at the next tick."""
        self.reload_wanted = True

    async def on_tick(self, counter: int) -> bool:
        """Start a reload if requested; returns whether to exit. uvicorn calls this ten times a second."""
        if self.reload_wanted and (self.loading is None or self.loading.done()) and not self.life.stopping:
            self.reload_wanted = False
            self.loading = asyncio.create_task(reload_engines(list(self.engines.values())))
        if self.life.is_over(self.grace):
            self.should_exit = True
        return await super().on_tick(counter)


def uvicorn_settings(app: ASGIApp, config: ServeConfig) -> uvicorn.Config:
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
        timeout_keep_alive=limits.KEEP_ALIVE,
        timeout_graceful_shutdown=int(SLACK),
        backlog=BACKLOG,
        limit_concurrency=limits.MAX_CONNECTIONS,
    )


def run(engines: ServedEngines, config: ServeConfig, listening: socket.socket, token: Token | None) -> None:
    """Serve until a signal stops the server, then close the engines. `listening`: the socket of `bind`;
    `token`: as in `application`.

    Handles SIGHUP unless it is ignored, and shortens Python's switch interval for the whole process.
    """
    life = Lifecycle()
    app = application(engines, config, token, life, RequestLog().write)
    server = Server(
        uvicorn_settings(app, config), engines, life, config.read_timeout + config.timeout + SLACK
    )
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, server.want_reload)
    # Otherwise a thread that processes text in Python would delay each of a search's many small operations.
    sys.setswitchinterval(SWITCH_INTERVAL)
    log.info("listening on %s", server_url(listening))
    server.run(sockets=[listening])
    for served in engines.values():
        served.close()
    for served in engines.values():
        served.join(SLACK)  # a thread inside torch while Python ends would abort the process
    log.info("stopped")
