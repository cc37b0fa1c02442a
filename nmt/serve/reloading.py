"""Loading engines anew while the server runs: POST /api/reload, and SIGHUP. What is in hand is finished by
the old engine; both are in memory for that time."""

import asyncio
import logging
from collections.abc import Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from nmt.errors import UserError
from nmt.serve import fields
from nmt.serve.access import Token
from nmt.serve.fields import BadRequest
from nmt.serve.served import ServedEngine, ServedEngines

log = logging.getLogger(__name__)


class Reloading:
    """The handler: {"engine": NAME} for one engine, {} for all."""

    def __init__(self, engines: ServedEngines, token: Token | None) -> None:
        self.engines, self.token = engines, token

    def routes(self) -> list[BaseRoute]:
        return [Route("/api/reload", self.reload, methods=["POST"])]

    async def reload(self, request: Request) -> Response:
        if self.token is None:
            raise HTTPException(403, "a server without --token loads engines anew by SIGHUP only")
        given = fields.of_json(await request.body() or b"{}")
        given.only(["engine"])
        name = given.text("engine", "")
        if name and name not in self.engines:
            raise BadRequest(f"engine: unknown name, expected one of {', '.join(self.engines)}")
        wanted = [self.engines[name]] if name else list(self.engines.values())
        failed = await anew(wanted)
        if failed:
            raise HTTPException(500, "; ".join(failed))
        return JSONResponse({"reloaded": [one.name for one in wanted]})


async def anew(engines: Sequence[ServedEngine]) -> list[str]:
    """Load engines anew, one after the other. Returns what failed; the old engine goes on there."""
    failed = []
    for one in engines:
        try:
            await asyncio.to_thread(one.reload)
        except (UserError, OSError, RuntimeError, MemoryError) as error:
            log.error("%s: not loaded anew, the old one goes on: %s", one.name, error)
            failed.append(f"{one.name}: {error}")
    return failed
