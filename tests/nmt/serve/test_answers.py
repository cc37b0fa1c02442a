"""Waiting for an engine."""

import asyncio

import pytest
from starlette.exceptions import HTTPException

from nmt.serve import answers
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
            await answers.unless_left(work(), left, every=0.01)
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

    assert asyncio.run(answers.unless_left(work(), left, every=0.01)) == 7
