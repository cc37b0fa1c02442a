"""Waiting for an engine on behalf of a client, within the limits of the server."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from nmt.serve.config import ServeConfig
from nmt.serve.engine import Options, Translated
from nmt.serve.fields import BadRequest
from nmt.serve.queue import LineQueue, QueueClosed, QueueFull, Sender, WaitingLine
from nmt.serve.served import ServedEngine

Answer = TypeVar("Answer")

SHORT = 5000  # characters that are cut into sentences at once: some milliseconds
RETRY = {"Retry-After": "1"}  # seconds
LEFT = 499  # the status that logs and metrics have for a client that did not wait


class EngineAccess:
    """How the interfaces get from the lines of a request to what engines make of them."""

    def __init__(self, config: ServeConfig) -> None:
        self.config = config
        self.texts = LineQueue(config.queue)
        threading.Thread(target=self.cut, name="texts", daemon=True).start()

    def cut(self) -> None:
        """Work on texts that are long, one after the other."""
        while line := self.texts.take():
            line.work()

    async def beside(self, request: Request, size: int, work: Callable[[], Answer]) -> Answer:
        """What work on text of so many characters gives. What takes long is done beside the thread that
        answers all clients, who take turns."""
        if size <= SHORT:
            return work()
        line = WaitingLine[Answer](request.state.sender, compute=work)
        return await self.answer(request, waited(self.texts, line))

    async def translate(
        self, request: Request, served: ServedEngine, lines: Sequence[str], options: Options
    ) -> list[Translated]:
        """The translations of lines. BadRequest for lines that are too many or too long; otherwise an
        HTTPException: 429 where the queue is full, 503 on the way to the end, 504 when it takes too long, 499
        when the client has left."""
        self.check(lines)
        return await self.translate_checked(request, served, lines, options)

    async def translate_checked(
        self, request: Request, served: ServedEngine, lines: Sequence[str], options: Options
    ) -> list[Translated]:
        """As `translate`, of lines that are not too many nor too long, or of their sentences, of which there
        may be more: they wait in turn."""
        request.state.lines += len(lines)
        request.state.engine = served.name
        return await self.answer(request, self.in_turn(request.state.sender, served, lines, options))

    async def in_turn(
        self, sender: Sender, served: ServedEngine, lines: Sequence[str], options: Options
    ) -> list[Translated]:
        """The translations of lines, of which at most `max_lines` wait at a time."""
        size = self.config.max_lines
        return [
            translation
            for first in range(0, len(lines), size)
            for translation in await served.translate(sender, lines[first : first + size], options)
        ]

    async def score(
        self, request: Request, served: ServedEngine, pairs: Sequence[tuple[str, str]], tokenized: bool
    ) -> list[list[float]]:
        """Scores of pairs; errors as from `translate`."""
        self.check([one for pair in pairs for one in pair], sides=2)
        request.state.lines = len(pairs)
        request.state.engine = served.name
        return await self.answer(request, served.score(request.state.sender, pairs, tokenized))

    def check(self, lines: Sequence[str], sides: int = 1) -> None:
        """BadRequest for lines that are too many or too long, or no lines."""
        config = self.config
        if len(lines) > config.max_lines * sides:
            raise BadRequest(f"{len(lines) // sides} lines, expected at most {config.max_lines}")
        for number, line in enumerate(lines, 1):
            if len(line) > config.max_line:
                raise BadRequest(
                    f"line {number}: {len(line)} characters, expected at most {config.max_line}; split it"
                )
            if "\n" in line:
                raise BadRequest(f"line {number}: is more than one line")

    async def answer(self, request: Request, work: Coroutine[object, object, Answer]) -> Answer:
        """What `work` gives, unless time is up, the queue is full, or the client leaves."""
        try:
            async with asyncio.timeout(self.config.timeout):
                return await unless_left(work, lambda: request.is_disconnected())
        except TimeoutError as error:
            raise HTTPException(504, f"took longer than {self.config.timeout:g} seconds") from error
        except QueueFull as error:
            raise HTTPException(429, "too many lines are waiting; try again", RETRY) from error
        except QueueClosed as error:
            raise HTTPException(503, "the server is about to stop", RETRY) from error


async def waited(queue: LineQueue, line: WaitingLine[Answer]) -> Answer:
    """The answer of a line that waits in a queue, and leaves it when the caller is cancelled."""
    queue.put([line])  # type: ignore[list-item]
    try:
        return await asyncio.wrap_future(line.answer)
    finally:
        queue.give_up([line])  # type: ignore[list-item]


async def unless_left(
    work: Coroutine[object, object, Answer], left: Callable[[], Awaitable[bool]], every: float = 0.25
) -> Answer:
    """The result of `work`, which is cancelled when the client has left, and when the caller is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=every))[0]:
            if await left():
                raise HTTPException(LEFT, "the client has left")
        return task.result()
    finally:
        task.cancel()
