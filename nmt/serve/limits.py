"""What every connection and every request passes through: limits, the token, headers of safety, a record."""

import asyncio
import logging
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import cast

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from nmt.serve import access, json_api
from nmt.serve.access import Token
from nmt.serve.answers import LEFT
from nmt.serve.config import ServeConfig
from nmt.serve.monitoring import Life, Record
from nmt.serve.queue import Sender

# ---- requests ----------------------------------------------------------------------------------------------
# What every request passes through: limits of its size and time, the token, headers of safety, and a record
# of how it went.


log = logging.getLogger(__name__)

# Nothing but our own files; no script or style inside the page.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFETY_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OPEN_PATHS = ("/health", "/metrics")  # are answered until the end
GUARDED_PATHS = (
    "/api/",
    "/RPC2",
    "/metrics",
)  # need the token in a header; LibreTranslate's forms have it inside


class Gate:
    """An ASGI middleware."""

    def __init__(
        self,
        app: ASGIApp,
        config: ServeConfig,
        token: Token | None,
        life: Life,
        done: Sequence[Callable[[Record], None]],
    ) -> None:
        """`done` are called with the record of each request."""
        self.app, self.config, self.token, self.life, self.done = app, config, token, life, done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        passage = Passage(self, scope, receive, send)
        begin = time.perf_counter()
        self.life.active += 1
        try:
            await passage.run()
        finally:
            self.life.active -= 1
            passage.record.seconds = time.perf_counter() - begin
            for done in self.done:
                done(passage.record)


class Passage:
    """One request on its way."""

    def __init__(self, gate: Gate, scope: Scope, receive: Receive, send: Send) -> None:
        self.gate, self.scope, self.receive, self.send = gate, scope, receive, send
        self.headers = Headers(scope=scope)
        self.size, self.whole = 0, False  # bytes of the body that have come; has all of it?
        self.end = asyncio.get_running_loop().time() + gate.config.read_timeout
        self.begun = False  # has the answer?
        client = scope.get("client")
        self.record = Record(
            uuid.uuid4().hex[:16], client[0] if client else "", scope["method"], scope["path"]
        )
        scope.setdefault("state", {})

    async def run(self) -> None:
        state = self.scope["state"]
        state["authorized"] = self.authorized()
        state["engine"], state["lines"] = "", 0
        state["sender"] = Sender(access.client_of(self.record.client), self.record.id)
        try:
            if refused := self.refused():
                await self.error(*refused)
            else:
                await self.gate.app(self.scope, self.receive_within_limits, self.send_with_headers)
        except ClientDisconnect:  # while it sent the body
            self.record.status = LEFT
        except Exception as error:
            log.exception("request %s: %s", self.record.id, type(error).__name__)
            self.record.error = f"{type(error).__name__}: {error}"
            if not self.begun:
                await self.error(500, f"internal error; the log has it as request {self.record.id}")
        self.record.engine, self.record.lines = state["engine"], state["lines"]
        self.record.route = getattr(self.scope.get("route"), "path", "")

    def authorized(self) -> bool:
        token = self.gate.token
        return token is None or token.allows(self.headers.get("authorization", ""))

    def refused(self) -> tuple[int, str, dict[str, str]] | None:
        """Why the request goes no further: status, message and headers."""
        token, config = self.gate.token, self.gate.config
        if self.gate.life.stopping and self.scope["path"] not in OPEN_PATHS:
            return 503, "the server is about to stop", {"Retry-After": "1"}
        if token is None and not access.is_loopback(access.host_of(self.headers.get("host", ""))):
            # A page of another site whose name has been made to stand for this machine.
            return 421, "this server answers to localhost only, unless it has a token", {}
        if self.from_another_site():
            return 403, "pages of other sites may not use this server; see --allow-origin", {}
        if self.scope["path"].startswith(GUARDED_PATHS) and not self.scope["state"]["authorized"]:
            return 401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"}
        length = self.headers.get("content-length", "")
        if length.isdigit() and (len(length) > 18 or int(length) > config.max_request):
            return 413, self.too_large(), {}
        return None

    def from_another_site(self) -> bool:
        """Has a page of a site that is not allowed made the browser send this? A link to our page may stand
        anywhere."""
        headers, allowed = self.headers, self.gate.config.allow_origin
        origin, site = headers.get("origin", ""), headers.get("sec-fetch-site", "same-origin")
        if "*" in allowed or origin in allowed:
            return False
        if origin and access.site_of(origin) != headers.get("host", "").lower():
            return True
        link = headers.get("sec-fetch-mode") == "navigate" and self.scope["method"] in ("GET", "HEAD")
        return site not in ("same-origin", "none") and not link

    def too_large(self) -> str:
        return f"the request is larger than {self.gate.config.max_request} bytes"

    async def error(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        answer = json_api.error(status, message, headers)
        await answer(self.scope, self.receive, self.send_with_headers)

    async def receive_within_limits(self) -> Message:
        """The next part of the body. HTTPException for one that is too large or too slow."""
        if self.whole:
            return await self.receive()
        try:
            async with asyncio.timeout_at(self.end):
                message = await self.receive()
        except TimeoutError as error:
            raise HTTPException(408, "the body did not arrive in time") from error
        if message["type"] == "http.request":
            self.size += len(message.get("body", b""))
            self.whole = not message.get("more_body", False)
        if self.size > self.gate.config.max_request:
            raise HTTPException(413, self.too_large())
        return message

    async def send_with_headers(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            self.record.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in SAFETY_HEADERS.items():
                headers[name] = value
            headers["X-Request-ID"] = self.record.id
            headers.setdefault("Cache-Control", "no-store")
            if message["status"] in (408, 413) or self.gate.life.stopping:
                headers["Connection"] = "close"  # what is left of the body is not read
        await self.send(message)


# ---- connections -------------------------------------------------------------------------------------------
# Connections: how many a client may have, and how long they may do nothing.


MOST_CONNECTIONS = 1000  # connections in all
KEPT_ALIVE = 5  # seconds that a connection is open after an answer


class Connection(H11Protocol):
    """A connection of HTTP/1.1. It has to bring the head of a request within `read_timeout` of being opened
    and of each answer, and to read its answers within `timeout`. Where a client, or all of them, have too
    many connections, the one that has been without a request for longest is closed."""

    def __init__(
        self,
        limits: ServeConfig,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.limits = limits
        self.owner = ""  # the client; empty for a proxy, which has many
        self.since = 0.0  # it is without a request, by the clock of the loop
        self.head: asyncio.TimerHandle | None = None  # what ends the waiting for a head
        self.reading: asyncio.TimerHandle | None = None  # what ends the waiting for the client to read

    @property
    def idle(self) -> bool:
        """Has it no request in hand?"""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if not access.is_in(address, access.networks(self.limits.proxy)):
            self.owner = access.client_of(address)
        self.await_head()
        self.make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self.head, self.reading):
            if timer:
                timer.cancel()
        super().connection_lost(exc)

    # ---- time ----------------------------------------------------------------------------------------------

    def await_head(self) -> None:
        """From now on the next head must come in time."""
        self.since = self.loop.time()
        if self.head:
            self.head.cancel()
        self.head = self.loop.call_later(self.limits.read_timeout, self.end)

    def end(self) -> None:
        """Close it, and let the client read what it still has to read."""
        if self.idle and not self.transport.is_closing():
            self.transport.close()
            self.pause_writing()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self.idle and self.head:
            self.head.cancel()
            self.head = None

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.idle and not self.transport.is_closing():
            self.await_head()

    def pause_writing(self) -> None:
        super().pause_writing()
        if not self.reading:
            self.reading = self.loop.call_later(self.limits.timeout, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.reading:
            self.reading.cancel()
            self.reading = None

    # ---- number --------------------------------------------------------------------------------------------

    def make_room(self) -> None:
        """Close an idle connection where there are too many, or refuse the request of this one."""
        alive = [
            connection
            for connection in cast(Collection[Connection], self.connections)
            if not connection.transport.is_closing()
        ]
        mine = [connection for connection in alive if connection.owner == self.owner]
        if self.owner and len(mine) > self.limits.max_connections:
            self.replace(mine)
        elif len(alive) >= MOST_CONNECTIONS:
            (owner, _), *_ = Counter(connection.owner for connection in alive if connection.idle).most_common(
                1
            )
            self.replace([connection for connection in alive if connection.owner == owner])

    def replace(self, connections: Sequence["Connection"]) -> None:
        """Close the one that has been idle for longest, but not this one."""
        idle = [connection for connection in connections if connection.idle and connection is not self]
        if idle:
            min(idle, key=lambda connection: connection.since).transport.abort()
        else:
            self.app = refuse_connection


async def refuse_connection(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer to a client that has too many connections."""
    headers = {"Retry-After": "1", "Connection": "close"}
    await json_api.error(429, "too many connections of this client", headers)(scope, receive, send)
