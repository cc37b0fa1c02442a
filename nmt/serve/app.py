"""The server as an ASGI application."""

from collections.abc import Callable, Sequence
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from nmt.errors import UserError
from nmt.serve import json_api
from nmt.serve.access import Token
from nmt.serve.config import ServeConfig
from nmt.serve.gate import Gate
from nmt.serve.json_api import JsonApi
from nmt.serve.libretranslate import LibreTranslate
from nmt.serve.life import Life
from nmt.serve.metrics import Metrics
from nmt.serve.moses_rpc import MosesServer
from nmt.serve.record import Record
from nmt.serve.reloading import Reloading
from nmt.serve.served import ServedEngines

PAGE = Path(__file__).parent / "page"
SHARED = Path(__file__).parents[1] / "analysis" / "page" / "shared"  # with the report of nmt-analyze


def application(
    engines: ServedEngines,
    config: ServeConfig,
    token: Token | None = None,
    life: Life | None = None,
    done: Callable[[Record], None] = lambda record: None,
) -> Starlette:
    """All interfaces, and the page. `done` is called with the record of each request."""
    life = life or Life()
    metrics = Metrics(engines, life)
    routes = [
        *JsonApi(engines, config).routes(),
        *Reloading(engines, token).routes(),
        *LibreTranslate(engines, config, token, life).routes(),
        *MosesServer(engines, config).routes(),
        *metrics.routes(),
        *page(),
    ]
    gate = Middleware(Gate, config=config, token=token, life=life, done=(metrics.count, done))
    middleware = [gate]
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


def page(folders: Sequence[Path] = (PAGE, SHARED)) -> list[BaseRoute]:
    """The files of the page, as they are in its folders now: no path of a request reaches the file system."""

    def route(place: Path) -> BaseRoute:
        async def send(request: Request) -> Response:
            return FileResponse(place, headers={"Cache-Control": "no-cache"})

        return Route("/" if place.name == "index.html" else f"/{place.name}", send)

    return [route(place) for folder in folders for place in sorted(folder.iterdir()) if place.is_file()]


async def http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return json_api.error(error.status_code, error.detail, dict(error.headers or {}))


async def user_error(request: Request, error: Exception) -> Response:
    return json_api.error(400, str(error))
