"""The server as an ASGI application."""

from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from nmt.errors import UserError
from nmt.serve import json_api
from nmt.serve.config import ServeConfig
from nmt.serve.json_api import JsonApi
from nmt.serve.served import ServedEngines

PAGE = Path(__file__).parent / "page"


def application(engines: ServedEngines, config: ServeConfig) -> Starlette:
    """All interfaces, and the page."""
    routes = [*JsonApi(engines, config).routes(), *page()]
    return Starlette(
        routes=routes,
        exception_handlers={HTTPException: http_error, UserError: user_error, Exception: internal_error},
    )


def page(folder: Path = PAGE) -> list[BaseRoute]:
    """The files of the page, as they are in the folder now: no path of a request reaches the file system."""

    def route(place: Path) -> BaseRoute:
        async def send(request: Request) -> Response:
            return FileResponse(place, headers={"Cache-Control": "no-cache"})

        return Route("/" if place.name == "index.html" else f"/{place.name}", send)

    return [route(place) for place in sorted(folder.iterdir()) if place.is_file()]


async def http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return json_api.error(error.status_code, error.detail, dict(error.headers or {}))


async def user_error(request: Request, error: Exception) -> Response:
    return json_api.error(400, str(error))


async def internal_error(request: Request, error: Exception) -> Response:
    return json_api.error(500, "internal error")
