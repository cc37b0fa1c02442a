"""Access control: tokens, client addresses, the gate that checks requests, and limits on connections."""

import asyncio
import base64
import hashlib
import hmac
import ipaddress
import logging
import os
import re
import stat
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

from nmt.errors import ConfigError
from nmt.io import files
from nmt.serve import http_api
from nmt.serve.config import ServeConfig
from nmt.serve.engine_access import CLIENT_LEFT
from nmt.serve.monitoring import Lifecycle, RequestRecord
from nmt.serve.queue import Sender

# ---- tokens ------------------------------------------------------------------------------------------------


Network = ipaddress.IPv4Network | ipaddress.IPv6Network

MIN_TOKEN_LENGTH = 16  # characters
HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\[\]:/@]+)(?::[0-9]*)?")

log = logging.getLogger(__name__)


class Token:
    """A secret, compared in constant time."""

    def __init__(self, secret: str) -> None:
        self.digest = hash_secret(secret)

    def matches(self, secret: str) -> bool:
        return hmac.compare_digest(self.digest, hash_secret(secret))

    def allows(self, authorization: str) -> bool:
        """Whether a header `Authorization` has the secret, as `Bearer TOKEN` or the password of `Basic`."""
        kind, _, value = authorization.partition(" ")
        if kind.lower() == "basic":
            try:
                value = base64.b64decode(value, validate=True).decode("utf-8").partition(":")[2]
            except ValueError:  # no base64, not even ASCII, or no UTF-8 inside
                return False
        elif kind.lower() != "bearer":
            return False
        return self.matches(value.strip())


def hash_secret(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def read_token(path: str) -> Token:
    """Read the token from a file of one line.

    ConfigError for a file with a shorter token or more lines, or that `check_private` refuses; DataError for
    one that cannot be read.
    """
    check_private(path)
    lines = [line.strip() for line in files.read_lines(path)]
    secret = lines[0] if lines else ""
    if len(secret) < MIN_TOKEN_LENGTH or any(lines[1:]):
        raise ConfigError(
            f"{path}: expected one line of {MIN_TOKEN_LENGTH} characters or more; make one with: "
            f"(umask 077; head -c 24 /dev/urandom | base64 > {path})"
        )
    return Token(secret)


def check_private(path: str) -> None:
    """ConfigError for a file of this user that everybody can read or change; ssh refuses such a key, too.

    If only a group can, or if the file is another user's, such as a secret of a container, log a warning.
    """
    try:
        status = os.stat(path)
    except OSError:
        return  # the caller reports it when it reads the file
    if not stat.S_ISREG(status.st_mode) or not status.st_mode & 0o077:
        return
    if status.st_mode & 0o007 and status.st_uid == os.geteuid():
        raise ConfigError(f"{path}: other users can read this token; chmod 600 {path}, or make a new one")
    log.warning("%s: other users can read this token; chmod 600 it", path)


# ---- addresses ---------------------------------------------------------------------------------------------


def is_loopback(host: str) -> bool:
    """Whether an address, or the host in a header `Host`, is reachable from this machine only."""
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return False


def client_key(address: str) -> str:
    """The key under which a client's connections are counted: its address, or for IPv6 its /64 network."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))


def parse_networks(addresses: Sequence[str]) -> list[Network]:
    """Parse addresses such as 127.0.0.1 and 10.0.0.0/8. ConfigError for anything else."""
    try:
        return [ipaddress.ip_network(address, strict=False) for address in addresses]
    except ValueError as error:
        raise ConfigError(f"--proxy: {error}; expected addresses such as 127.0.0.1 or 10.0.0.0/8") from error


def in_networks(address: str, within: Sequence[Network]) -> bool:
    """Whether an address belongs to one of the networks `within`."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in within)


def check_address(host: str, address: str, token: Token | None) -> None:
    """ConfigError for a server without a token that other machines can reach. `address`: that of `host`."""
    if token is None and not is_loopback(address):
        raise ConfigError(
            f"--host {host}: other machines can reach this address, and anybody there could use the server; "
            "give --token FILE, or listen on 127.0.0.1"
        )


def header_host(header: str) -> str:
    """The host in a header `Host`: localhost:8080 -> localhost, [::1]:8080 -> [::1]; "" if malformed."""
    match = HOST.fullmatch(header)
    return match[1] if match else ""


# ---- requests ----------------------------------------------------------------------------------------------
# The gate checks size, time and token, adds security headers, and records each request.


# Pages may load only the server's own files, and no inline scripts or styles.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
FILE_PATH = "/translate_file"  # requests with a document, which may be larger than others
FORM = 10_000  # bytes of a form around a document
OPEN_PATHS = ("/health", "/metrics")  # answered even while the server stops
# They need the token in a header; LibreTranslate's requests have it in a field.
GUARDED_PATHS = ("/api/", "/RPC2", "/metrics")


class Gate:
    """The ASGI middleware that all requests pass."""

    def __init__(
        self,
        app: ASGIApp,
        config: ServeConfig,
        token: Token | None,
        life: Lifecycle,
        done: Sequence[Callable[[RequestRecord], None]],
    ) -> None:
        """`done`: functions called with the record of each finished request."""
        self.app, self.config, self.token, self.life, self.done = app, config, token, life, done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        gated = GatedRequest(self, scope, receive, send)
        start = time.perf_counter()
        self.life.active += 1
        try:
            await gated.run()
        finally:
            self.life.active -= 1
            gated.record.seconds = time.perf_counter() - start
            for done in self.done:
                done(gated.record)


class GatedRequest:
    """One HTTP request in the middleware `Gate`. `run` refuses it or passes it to the application, within the
    limits on size and time, and fills in `record` for the log."""

    def __init__(self, gate: Gate, scope: Scope, receive: Receive, send: Send) -> None:
        self.gate, self.scope, self.receive, self.send = gate, scope, receive, send
        self.headers = Headers(scope=scope)
        self.size, self.whole = 0, False  # bytes of the body received, and whether that is all
        self.end = asyncio.get_running_loop().time() + gate.config.read_timeout
        self.started = False  # whether the answer has been started
        client = scope.get("client")
        self.record = RequestRecord(
            uuid.uuid4().hex[:16], client[0] if client else "", scope["method"], scope["path"]
        )
        scope.setdefault("state", {})

    async def run(self) -> None:
        state = self.scope["state"]
        state["authorized"] = self.authorized()
        state["engine"], state["lines"] = "", 0
        state["sender"] = Sender(client_key(self.record.client), self.record.id)
        try:
            if refused := self.refusal():
                await self.error(*refused)
            else:
                await self.gate.app(self.scope, self.receive_within_limits, self.send_with_headers)
        except ClientDisconnect:  # while it sent the body
            self.record.status = CLIENT_LEFT
        except Exception as error:
            log.exception("request %s: %s", self.record.id, type(error).__name__)
            self.record.error = type(error).__name__  # its message may quote the request
            if not self.started:
                await self.error(500, f"internal error; the log has it as request {self.record.id}")
        self.record.engine, self.record.lines = state["engine"], state["lines"]
        self.record.route = getattr(self.scope.get("route"), "path", "")

    @property
    def most(self) -> int:
        """The most bytes of the body."""
        config = self.gate.config
        return config.max_file + FORM if self.scope["path"] == FILE_PATH else config.max_request

    def authorized(self) -> bool:
        token = self.gate.token
        return token is None or token.allows(self.headers.get("authorization", ""))

    def refusal(self) -> tuple[int, str, dict[str, str]] | None:
        """The status, message and headers of the refusal; None if the request is accepted."""
        token = self.gate.token
        if self.gate.life.stopping and self.scope["path"] not in OPEN_PATHS:
            return 503, "the server is shutting down", {"Retry-After": "1"}
        if token is None and not is_loopback(header_host(self.headers.get("host", ""))):
            # DNS rebinding: a page of another site whose name resolves to this machine.
            return 421, "this server answers to localhost only, unless it has a token", {}
        if self.from_another_site():
            return 403, "pages of other sites may not use this server; see --allow-origin", {}
        if self.scope["path"].startswith(GUARDED_PATHS) and not self.scope["state"]["authorized"]:
            return 401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"}
        length = self.headers.get("content-length", "")
        if length.isdigit() and (len(length) > 18 or int(length) > self.most):
            return 413, self.too_large(), {}
        return None

    def from_another_site(self) -> bool:
        """Whether the request comes from a page of a site that is not allowed. Links are allowed."""
        headers, allowed = self.headers, self.gate.config.allow_origin
        origin, site = headers.get("origin", ""), headers.get("sec-fetch-site", "same-origin")
        if "*" in allowed or origin in allowed:
            return False
        # Host and port of an origin are written as in a header `Host`; the origin `null` has none.
        if origin and origin.partition("://")[2].lower() != headers.get("host", "").lower():
            return True
        link = headers.get("sec-fetch-mode") == "navigate" and self.scope["method"] in ("GET", "HEAD")
        return site not in ("same-origin", "none") and not link

    def too_large(self) -> str:
        return f"the request is larger than {self.most} bytes"

    async def error(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        answer = http_api.error_response(status, message, headers)
        await answer(self.scope, self.receive, self.send_with_headers)

    async def receive_within_limits(self) -> Message:
        """Receive a part of the body. HTTPException if the body is too large or arrives too slowly."""
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
        if self.size > self.most:
            raise HTTPException(413, self.too_large())
        return message

    async def send_with_headers(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            self.record.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
            headers["X-Request-ID"] = self.record.id
            headers.setdefault("Cache-Control", "no-store")
            if message["status"] in (408, 413) or self.gate.life.stopping:
                headers["Connection"] = "close"  # the rest of the body is not read
        await self.send(message)


# ---- connections -------------------------------------------------------------------------------------------
# Limits on the number of a client's connections, and on how long they may be idle.


MAX_CONNECTIONS = 1000  # of all clients together
KEEP_ALIVE = 5  # seconds that a connection stays open after an answer


class Connection(H11Protocol):
    """A connection of HTTP/1.1.

    The client must send the head of a request within `read_timeout` after it connects and after each answer,
    and read answers within `timeout`. If a client has too many connections, its connection that has been idle
    for longest is closed; if all clients together have, that of the client with the most idle ones. If none
    is idle, requests of the new connection get status 429.
    """

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
        self.owner = ""  # the client; empty for a proxy, which serves many
        self.since = 0.0  # time of the loop's clock when it became idle
        self.head: asyncio.TimerHandle | None = None  # ends the wait for the head of a request
        self.reading: asyncio.TimerHandle | None = None  # ends the wait for the client to read

    @property
    def idle(self) -> bool:
        """Whether no request is being received or answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if not in_networks(address, parse_networks(self.limits.proxy)):
            self.owner = client_key(address)
        self.start_head_timer()
        self.make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self.head, self.reading):
            if timer:
                timer.cancel()
        super().connection_lost(exc)

    # ---- time ----------------------------------------------------------------------------------------------

    def start_head_timer(self) -> None:
        self.since = self.loop.time()
        if self.head:
            self.head.cancel()
        self.head = self.loop.call_later(self.limits.read_timeout, self.close_unread)

    def close_unread(self) -> None:
        """Close an idle connection without reading more; the client may still read what has been sent."""
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
            self.start_head_timer()

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
        """If there are too many connections, close an idle one, or else refuse this one's request."""
        alive = [
            connection
            for connection in cast(Collection[Connection], self.connections)
            if not connection.transport.is_closing()
        ]
        mine = [connection for connection in alive if connection.owner == self.owner]
        if self.owner and len(mine) > self.limits.max_connections:
            self.close_idle(mine)
        elif len(alive) >= MAX_CONNECTIONS:
            [(owner, _)] = Counter(peer.owner for peer in alive if peer.idle).most_common(1)
            self.close_idle([connection for connection in alive if connection.owner == owner])

    def close_idle(self, connections: Sequence["Connection"]) -> None:
        """Close the other connection that has been idle for longest; if none is idle, refuse this one."""
        idle = [connection for connection in connections if connection.idle and connection is not self]
        if idle:
            min(idle, key=lambda connection: connection.since).transport.abort()
        else:
            self.app = refuse_connection


async def refuse_connection(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application that answers a client with too many connections."""
    headers = {"Retry-After": "1", "Connection": "close"}
    await http_api.error_response(429, "too many connections of this client", headers)(scope, receive, send)
