"""Connections: how many a client may have, and how long they may do nothing."""

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from typing import cast

from starlette.types import Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from nmt.serve import access, json_api
from nmt.serve.config import ServeConfig

MOST = 1000  # connections in all
KEPT = 5  # seconds that a connection is open after an answer


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
        elif len(alive) >= MOST:
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
            self.app = refuse


async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """The answer to a client that has too many connections."""
    headers = {"Retry-After": "1", "Connection": "close"}
    await json_api.error(429, "too many connections of this client", headers)(scope, receive, send)
