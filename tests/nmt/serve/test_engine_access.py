"""Waiting for an engine."""

import asyncio
import threading
from dataclasses import replace

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from nmt.serve import engine_access
from nmt.serve.config import ServeConfig
from nmt.serve.engine import LineHypothesis, TranslatedLine
from nmt.serve.engine_access import PlainText
from nmt.serve.queue import Sender
from nmt.text.sentences import whole_lines
from tests.nmt.serve.engines import INFO, Batch, Upper, client

# ---- answers -----------------------------------------------------------------------------------------------


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
            await engine_access.cancel_on_disconnect(work(), left, interval=0.01)
        assert error.value.status_code == engine_access.CLIENT_LEFT
        await asyncio.sleep(0)
        assert cancelled == [True]

    asyncio.run(both())


def test_a_client_that_stays_gets_the_result() -> None:
    async def work() -> int:
        await asyncio.sleep(0.03)
        return 7

    async def left() -> bool:
        return False

    assert asyncio.run(engine_access.cancel_on_disconnect(work(), left, interval=0.01)) == 7


def test_work_on_long_texts_does_not_hold_up_the_other_clients() -> None:
    """It is done in a thread of its own, in which clients take turns; short work at once."""
    access, order, go = engine_access.EngineAccess(ServeConfig()), list[tuple[str, str]](), threading.Event()

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


# ---- sentences ---------------------------------------------------------------------------------------------
# Sentences of the lines of a request, and their translations as those of the lines.


ENGLISH = ("en", "fr")
LINES = ["Hi 1 there. A dog runs.\t It barks.", "", "A man sleeps."]


@pytest.mark.parametrize("engine", [Upper, Batch])
def test_each_sentence_is_translated_by_itself(engine: type[Upper]) -> None:
    fake = engine()
    with client(fake) as api:
        answer = api.post("/api/translate", json={"lines": LINES, "split_sentences": True}).json()
        together = api.post("/api/translate", json={"lines": LINES}).json()
    assert {"Hi 1 there.", "A dog runs.", "It barks.", "A man sleeps."} <= set(fake.seen)
    texts = [line["hypotheses"][0]["text"] for line in answer["translations"]]
    assert texts == ["HI 1 THERE. A DOG RUNS.\t IT BARKS.", "", "A MAN SLEEPS."]
    assert [line["source"] for line in answer["translations"]] == LINES
    for line, other in zip(answer["translations"], together["translations"], strict=True):
        assert line["words"] == other["words"] and line["unknown"] == other["unknown"]
        for one, another in zip(line["hypotheses"], other["hypotheses"], strict=True):
            for field in ("words", "alignment", "segments"):
                assert one.get(field) == another.get(field), field


def test_the_best_hypotheses_of_a_line_are_those_of_the_greatest_sums() -> None:
    scores = [[0.0, -1.0, -5.0], [0.0, -3.0], [-2.0, -2.5, -9.0]]
    parts = [
        TranslatedLine(
            [f"s{at}"],
            [LineHypothesis(f"{at}{rank}", [f"{at}{rank}"], score) for rank, score in enumerate(row)],
        )
        for at, row in enumerate(scores)
    ]
    every = sorted((a + b + c for a in scores[0] for b in scores[1] for c in scores[2]), reverse=True)
    text = engine_access.cut_sentences(["Hello. Come in. Sit down."], ENGLISH)
    [line] = engine_access.join_sentences(text, parts, 7)
    assert [one.score for one in line.hypotheses] == every[:7]
    assert [one.text for one in line.hypotheses][:3] == ["00 10 20", "00 10 21", "01 10 20"]


def test_attention_and_features_are_those_of_all_sentences() -> None:
    parts = [
        TranslatedLine(
            ["a", "b"],
            [LineHypothesis("x", ["x"], 0.0, -1.0, attention=[[0.3, 0.7]], features={"F": [1.0, 2.0]})],
        ),
        TranslatedLine(
            ["c"],
            [
                LineHypothesis(
                    "y z", ["y", "z"], 0.0, -2.0, attention=[[1.0], [0.5]], features={"F": [3.0, 4.0]}
                )
            ],
        ),
    ]
    [line] = engine_access.join_sentences(engine_access.cut_sentences(["Come in. Hello."], ENGLISH), parts, 1)
    [one] = line.hypotheses
    assert one.attention == [[0.3, 0.7, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.5]]
    assert one.features == {"F": [4.0, 6.0]} and one.log_prob == -3.0
    parts[1].hypotheses[0].attention = []
    [line] = engine_access.join_sentences(engine_access.cut_sentences(["Come in. Hello."], ENGLISH), parts, 1)
    assert line.hypotheses[0].attention == []


def test_a_line_of_one_sentence_is_as_the_engine_has_it() -> None:
    parts = [TranslatedLine(["a"], [LineHypothesis("x", ["x"], 0.0)])]
    assert engine_access.join_sentences(whole_lines(["a"]), parts, 1)[0] is parts[0]


def test_every_sentence_gets_the_tag_of_its_line() -> None:
    text = engine_access.cut_sentences(["<2fr> Hi there. A dog."], ENGLISH, ("<2fr>",))
    assert text.sentences == ["<2fr> Hi there.", "<2fr> A dog."]


def test_a_line_of_more_sentences_than_lines_may_wait() -> None:
    line = " ".join(["Hi there."] * 400)
    with client(Upper(), max_lines=2, queue=10) as api:
        answer = api.post("/api/translate", json={"text": line, "split_sentences": True})
    assert answer.json()["translations"][0]["hypotheses"][0]["text"] == line.upper()


def test_words_have_no_sentences() -> None:
    words = Upper(replace(INFO, tokenized_only=True))
    with client(Upper(), words) as api:
        for given in ({"tokenized": True}, {"engine": "other"}):
            answer = api.post("/api/translate", json={"text": "a", "split_sentences": True, **given})
            assert answer.status_code == 400 and "split_sentences" in answer.json()["error"]
        plain = {"text": "Hi there. A dog.", "engine": "other", "plain": True, "split_sentences": True}
        answer = api.post("/api/translate", json=plain).json()["translations"][0]
    assert answer["words"] == ["hi", "there", ".", "a", "dog", "."]
    assert answer["hypotheses"][0]["text"] == "HI THERE. A DOG."


# ---- plain text --------------------------------------------------------------------------------------------
# Text for an engine that reads words between blanks.


KNOWN = set("the house isn &apos;t isn &apos;t a&amp;b Paris big . , &quot;".split())
RULES = PlainText("en", "fr", KNOWN.__contains__)


def test_text_becomes_the_words_that_the_engine_knows() -> None:
    assert RULES.line('The HOUSE isn\'t "big" Paris.') == "the house isn &apos;t &quot; big &quot; Paris ."
    assert RULES.line("Zyzzyva & <b>") == "Zyzzyva &amp; &lt; b &gt;"  # an unknown word keeps its case
    assert RULES.lines(["", "the"]) == ["", "the"]


def test_lists_become_text_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of 100 translations takes some 10 ms, and a request may have 500."""

    def translation(rules: PlainText, text: str, translated: TranslatedLine) -> TranslatedLine:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        return translated

    monkeypatch.setattr(PlainText, "translation", translation)
    with client(Upper(replace(INFO, tokenized_only=True))) as api:
        assert api.post("/api/translate", json={"text": "It is so.", "plain": True}).status_code == 200


def test_words_become_text() -> None:
    found = TranslatedLine(
        ["the", "&quot;"], [LineHypothesis("", "l&apos; homme dit : « oui » .".split(), -1.0)], unknown=[0]
    )
    told = RULES.translation("The man", found)
    assert told.hypotheses[0].text == "L'homme dit : « oui »."
    assert told.hypotheses[0].words[0] == "l'" and told.words == ["the", '"'] and told.unknown == [0]
    assert RULES.translation("the man", found).hypotheses[0].text.startswith("l'homme")
