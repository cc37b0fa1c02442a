"""Waiting for an engine."""

import asyncio
import threading

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from nmt.serve import answers
from nmt.serve.config import ServeConfig
from nmt.serve.queue import Sender
from tests.nmt.serve.engines import Batch, Upper, client


@pytest.mark.parametrize("engine", [Upper, Batch])
def test_a_request_that_takes_too_long(engine: type[Upper]) -> None:
    with client(engine(), timeout=0.05) as api:
        answer = api.post("/api/translate", json={"text": "wait"})
        assert answer.status_code == 504 and answer.json() == {"error": "took longer than 0.05 seconds"}
        assert api.post("/api/translate", json={"text": "a"}).status_code == 200


def test_a_full_queue_says_when_to_try_again() -> None:
    with client(Upper(), queue=1) as api:
        answer = api.post("/api/translate", json={"text": "a\nb"})
        assert answer.status_code == 429 and answer.headers["Retry-After"] == "1"
        assert api.post("/api/translate", json={"text": "a"}).status_code == 200


def test_work_is_cancelled_when_the_client_has_left() -> None:
    cancelled = list[bool]()

    async def work() -> int:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return 1

    async def left() -> bool:
        return True

    async def both() -> None:
        with pytest.raises(HTTPException) as error:
            await answers.cancel_on_disconnect(work(), left, every=0.01)
        assert error.value.status_code == answers.LEFT
        await asyncio.sleep(0)
        assert cancelled == [True]

    asyncio.run(both())


def test_a_client_that_stays_gets_the_result() -> None:
    async def work() -> int:
        await asyncio.sleep(0.03)
        return 7

    async def left() -> bool:
        return False

    assert asyncio.run(answers.cancel_on_disconnect(work(), left, every=0.01)) == 7


def test_work_on_long_texts_does_not_hold_up_the_other_clients() -> None:
    """It is done in a thread of its own, in which clients take turns; short work at once."""
    access, order, go = answers.EngineAccess(ServeConfig()), list[tuple[str, str]](), threading.Event()

    def request(client: str, number: int) -> Request:
        async def receive() -> Message:
            await asyncio.sleep(60)
            return {}

        state = {"sender": Sender(client, f"{client} {number}")}
        return Request({"type": "http", "state": state}, receive)

    async def ask(client: str, number: int, size: int) -> None:
        def work() -> None:
            order.append((client, threading.current_thread().name))

        await access.run_text_work(request(client, number), size, work)

    async def all_of_them() -> None:
        first = access.run_text_work(request("other", 0), 10**6, lambda: go.wait(60))
        long = [ask("other", number, 10**6) for number in range(1, 4)]
        asking = [asyncio.ensure_future(one) for one in (first, *long, ask("me", 1, 10**6), ask("me", 2, 10))]
        while access.texts.size < 4 or not order:
            await asyncio.sleep(0.001)
        go.set()
        await asyncio.gather(*asking)

    asyncio.run(all_of_them())
    assert order[0] == ("me", "MainThread")
    assert {name for _, name in order[1:]} == {"texts"}
    assert ("me", "texts") in order[1:3] and len(order) == 5
