"""Access to engines within the limits of the server: waits for answers on behalf of a client."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from nmt.serve.config import ServeConfig
from nmt.serve.engine import TranslatedLine, TranslateOptions
from nmt.serve.fields import BadRequest
from nmt.serve.queue import LineQueue, QueueClosed, QueueFull, Sender, WaitingLine
from nmt.serve.served import ServedEngine

Answer = TypeVar("Answer")

SHORT = 5000  # characters that are split into sentences in the event loop: some milliseconds
RETRY = {"Retry-After": "1"}  # seconds
LEFT = 499  # status in logs and metrics for a client that did not wait


class EngineAccess:
    """Passes the lines of requests to engines, and returns their answers to the interfaces."""

    def __init__(self, config: ServeConfig) -> None:
        self.config = config
        self.texts = LineQueue(config.queue)
        threading.Thread(target=self.run_text_thread, name="texts", daemon=True).start()

    def run_text_thread(self) -> None:
        """Process long texts one after the other, in a thread of its own."""
        while line := self.texts.take():
            line.work()

    async def run_text_work(self, request: Request, size: int, work: Callable[[], Answer]) -> Answer:
        """Run `work` on a text of `size` characters.

        Work on a long text is done outside the thread that answers all clients; clients take turns.
        """
        if size <= SHORT:
            return work()
        line = WaitingLine[Answer](request.state.sender, compute=work)
        return await self.answer(request, wait_for_line(self.texts, line))

    async def translate(
        self, request: Request, served: ServedEngine, lines: Sequence[str], options: TranslateOptions
    ) -> list[TranslatedLine]:
        """Translate lines. BadRequest for too many or too long ones.

        HTTPException: 429 for a full queue, 503 while the server stops, 504 after the time limit, 499 if the
        client has left.
        """
        self.check_lines(lines)
        return await self.translate_checked(request, served, lines, options)

    async def translate_checked(
        self, request: Request, served: ServedEngine, lines: Sequence[str], options: TranslateOptions
    ) -> list[TranslatedLine]:
        """Translate lines that `check_lines` has passed, or their sentences, of which there may be more."""
        request.state.lines += len(lines)
        request.state.engine = served.name
        return await self.answer(
            request, self.translate_in_chunks(request.state.sender, served, lines, options)
        )

    async def translate_in_chunks(
        self, sender: Sender, served: ServedEngine, lines: Sequence[str], options: TranslateOptions
    ) -> list[TranslatedLine]:
        """Translate lines, of which at most `max_lines` wait at a time."""
        size = self.config.max_lines
        return [
            translation
            for first in range(0, len(lines), size)
            for translation in await served.translate(sender, lines[first : first + size], options)
        ]

    async def score(
        self, request: Request, served: ServedEngine, pairs: Sequence[tuple[str, str]], tokenized: bool
    ) -> list[list[float]]:
        """Score pairs of lines; raises the same errors as `translate`."""
        self.check_lines([line for pair in pairs for line in pair], sides=2)
        request.state.lines = len(pairs)
        request.state.engine = served.name
        return await self.answer(request, served.score(request.state.sender, pairs, tokenized))

    def check_lines(self, lines: Sequence[str], sides: int = 1) -> None:
        """BadRequest for lines that are too many or too long, or that contain a line break."""
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
        """Await `work`. HTTPException if time is up, the queue is full, or the client leaves."""
        try:
            async with asyncio.timeout(self.config.timeout):
                return await cancel_on_disconnect(work, lambda: request.is_disconnected())
        except TimeoutError as error:
            raise HTTPException(504, f"took longer than {self.config.timeout:g} seconds") from error
        except QueueFull as error:
            raise HTTPException(429, "too many lines are waiting; try again", RETRY) from error
        except QueueClosed as error:
            raise HTTPException(503, "the server is about to stop", RETRY) from error


async def wait_for_line(queue: LineQueue, line: WaitingLine[Answer]) -> Answer:
    """Put a line into a queue and await its answer; it leaves the queue if the caller is cancelled."""
    queue.put([line])  # type: ignore[list-item]
    try:
        return await asyncio.wrap_future(line.answer)
    finally:
        queue.give_up([line])  # type: ignore[list-item]


async def cancel_on_disconnect(
    work: Coroutine[object, object, Answer], has_left: Callable[[], Awaitable[bool]], every: float = 0.25
) -> Answer:
    """Await `work`, and cancel it if the caller is cancelled or the client has left.

    `every`: seconds between two checks of the client.
    """
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=every))[0]:
            if await has_left():
                raise HTTPException(LEFT, "the client has left")
        return task.result()
    finally:
        task.cancel()
