"""Access of requests to engines: queues lines and awaits their translations, splits texts into sentences and
joins their translations, tokenizes plain text for engines of tokenized text."""

import asyncio
import heapq
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from nmt.serve.config import ServeConfig
from nmt.serve.engine import LineHypothesis, Segment, TranslatedLine, TranslateOptions
from nmt.serve.http_api import BadRequest
from nmt.serve.queue import LineQueue, QueueClosed, QueueFull, Scores, Sender, WaitingLine
from nmt.serve.served import ServedEngine
from nmt.text.pipeline import split_tag
from nmt.text.sentences import SplitLine, SplitText, split_text
from nmt.text.tokenize import Tokenizer, escape_raw, unescape
from nmt.text.truecase import sentence_starts

# ---- engines -----------------------------------------------------------------------------------------------


Answer = TypeVar("Answer")

SHORT_TEXT = 5000  # characters of a text that the event loop handles itself, in a few milliseconds
RETRY = {"Retry-After": "1"}  # seconds
CLIENT_LEFT = 499  # status in logs and metrics when the client left before the answer


class EngineAccess:
    """Passes the lines of requests to engines, and returns their answers to the interfaces. Starts a thread
    that processes long texts."""

    def __init__(self, config: ServeConfig) -> None:
        self.config = config
        self.texts = LineQueue(config.queue)
        self.plain_texts = dict[str, PlainText]()  # by the name of an engine that reads tokenized text
        threading.Thread(target=self.run_text_thread, name="texts", daemon=True).start()

    def run_text_thread(self) -> None:
        """Process long texts one after the other, in a thread of its own."""
        while line := self.texts.take():
            line.work()

    async def run_text_work(self, request: Request, size: int, work: Callable[[], Answer]) -> Answer:
        """Run `work` on a text of `size` characters, and return what it returns.

        Work on a long text is done outside the thread that answers all clients; clients take turns.
        HTTPException as in `answer`.
        """
        if size <= SHORT_TEXT:
            return work()
        line = WaitingLine[Answer](request.state.sender, compute=work)
        return await self.answer(request, wait_for_line(self.texts, line))

    async def translate(
        self, request: Request, served: ServedEngine, lines: Sequence[str], options: TranslateOptions
    ) -> list[TranslatedLine]:
        """Translate lines that passed `check_lines`, or their sentences, whose number is not limited.
        UserError for one that cannot be translated.

        HTTPException: 429 for a full queue, 503 while the server stops, 504 after the time limit, 499 if the
        client has left.
        """
        request.state.lines += len(lines)
        request.state.engine = served.name
        return await self.answer(
            request, self.translate_in_chunks(request.state.sender, served, lines, options)
        )

    async def translate_raw(
        self, request: Request, served: ServedEngine, lines: Sequence[str], options: TranslateOptions
    ) -> list[TranslatedLine]:
        """Translate lines of raw text with an engine that is `plain`. For one that reads tokenized text they
        are tokenized, and its translations detokenized. Errors as from `translate`."""
        if not served.info.tokenized_only:
            return await self.translate(request, served, lines, options)
        rules = await asyncio.to_thread(self.text_rules, served)
        words = await asyncio.to_thread(rules.lines, lines)
        translations = await self.translate(request, served, words, options)
        return await asyncio.to_thread(list, map(rules.translation, lines, translations))

    def text_rules(self, served: ServedEngine) -> "PlainText":
        """The text rules of an engine's languages, which must be known; loaded when first needed."""
        if served.name not in self.plain_texts:
            self.plain_texts[served.name] = PlainText(
                *served.languages, lambda word: served.engine.fit(word) > 0
            )
        return self.plain_texts[served.name]

    async def translate_in_chunks(
        self, sender: Sender, served: ServedEngine, lines: Sequence[str], options: TranslateOptions
    ) -> list[TranslatedLine]:
        """Translate lines, putting at most `max_lines` of them into the queue at a time."""
        size = self.config.max_lines
        return [
            translation
            for first in range(0, len(lines), size)
            for translation in await served.translate(sender, lines[first : first + size], options)
        ]

    async def score(
        self, request: Request, served: ServedEngine, pairs: Sequence[tuple[str, str]], tokenized: bool
    ) -> Scores:
        """Score pairs of lines: natural log p of each unit of each target and of its end symbol. `tokenized`:
        the lines are words between blanks. BadRequest as from `check_lines`, other errors as from
        `translate`; ConfigError for an engine that does not score."""
        self.check_lines([line for pair in pairs for line in pair], sides=2)
        request.state.lines = len(pairs)
        request.state.engine = served.name
        return await self.answer(request, served.score(request.state.sender, pairs, tokenized))

    async def cut_sentences(self, request: Request, served: ServedEngine, lines: Sequence[str]) -> SplitText:
        """Split raw lines into sentences of an engine's source language. HTTPException as in `answer`."""
        work = partial(cut_sentences, lines, served.languages, served.info.tags)
        return await self.run_text_work(request, sum(map(len, lines)), work)

    def check_lines(self, lines: Sequence[str], sides: int = 1) -> None:
        """BadRequest for lines that are too many or too long, or that contain a line break.

        `sides`: 2 if `lines` has both lines of each pair, of which `max_lines` are allowed; the message then
        names the number of the pair.
        """
        config = self.config
        if len(lines) > config.max_lines * sides:
            raise BadRequest(
                f"{len(lines) // sides} lines, expected at most {config.max_lines}; send them in parts"
            )
        for index, line in enumerate(lines):
            number = index // sides + 1
            if len(line) > config.max_line:
                raise BadRequest(
                    f"line {number}: {len(line)} characters, expected at most {config.max_line}; split it"
                )
            if "\n" in line:
                raise BadRequest(f"line {number}: is more than one line; split it at the line breaks")

    async def answer(self, request: Request, work: Coroutine[object, object, Answer]) -> Answer:
        """Await `work`. HTTPException: 504 after the time limit, 429 for a full queue, 503 while the server
        stops, 499 if the client has left. Other errors of `work` pass through."""
        try:
            async with asyncio.timeout(self.config.timeout):
                return await cancel_on_disconnect(work, lambda: request.is_disconnected())
        except TimeoutError as error:
            raise HTTPException(504, f"took longer than {self.config.timeout:g} seconds") from error
        except QueueFull as error:
            raise HTTPException(429, "too many lines are waiting; try again", RETRY) from error
        except QueueClosed as error:
            raise HTTPException(503, "the server is shutting down", RETRY) from error


async def wait_for_line(queue: LineQueue, line: WaitingLine[Answer]) -> Answer:
    """Put a line into a queue and await its answer; it leaves the queue if the caller is cancelled. QueueFull
    or QueueClosed if it cannot be added."""
    queue.put([line])
    try:
        return await asyncio.wrap_future(line.answer)
    finally:
        queue.give_up([line])


async def cancel_on_disconnect(
    work: Coroutine[object, object, Answer], has_left: Callable[[], Awaitable[bool]], interval: float = 0.25
) -> Answer:
    """Await `work`, and cancel it if the caller is cancelled or the client has disconnected.

    `interval`: seconds between two calls of `has_left`. HTTPException 499 if the client has disconnected.
    """
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=interval))[0]:
            if await has_left():
                raise HTTPException(CLIENT_LEFT, "the client has disconnected")
        return task.result()
    finally:
        task.cancel()


# ---- sentences ---------------------------------------------------------------------------------------------


def cut_sentences(lines: Sequence[str], languages: tuple[str, str], tags: Sequence[str] = ()) -> SplitText:
    """Split raw lines into sentences, each with the tag of its line. `languages`: codes of (source, target);
    `tags`: tags with which a line may begin."""
    return split_text(lines, *languages, split_tag=lambda line: split_tag(line, tags))


def join_sentences(
    text: SplitText, translations: Sequence[TranslatedLine], n_best: int
) -> list[TranslatedLine]:
    """Join the translations of each line's sentences. `translations`: of all sentences, in order; `n_best`:
    maximum number of hypotheses of a line."""
    groups = zip(text.lines, text.group(translations), strict=True)
    return [join_line(line, group, text.blank, n_best) for line, group in groups]


def join_line(line: SplitLine, parts: Sequence[TranslatedLine], blank: str, n_best: int) -> TranslatedLine:
    """Join the translations `parts` of a line's sentences; a single one is returned as it is. `blank`:
    written between two sentences where the line has nothing; `n_best`: maximum number of hypotheses. Joined
    lines have no parse, since a parse covers one sentence."""
    if len(parts) == 1:
        return parts[0]
    offsets = [0, *accumulate(len(part.words) for part in parts)]
    return TranslatedLine(
        words=[word for part in parts for word in part.words],
        hypotheses=[
            join_hypothesis(line, hypotheses, blank, offsets)
            for hypotheses in best_combinations(parts, n_best)
        ],
        unknown=[
            offset + word for offset, part in zip(offsets, parts, strict=False) for word in part.unknown
        ],
        parts=max(part.parts for part in parts),
    )


def best_combinations(parts: Sequence[TranslatedLine], n_best: int) -> list[tuple[LineHypothesis, ...]]:
    """The `n_best` combinations of a hypothesis per sentence with the highest sums of scores, best first."""
    combinations: list[tuple[float, tuple[LineHypothesis, ...]]] = [(0.0, ())]
    for part in parts:
        # Both lists are sorted, so at least (i + 1) (j + 1) - 1 pairs are as good as the pair (i, j).
        sums = (
            (score + hypothesis.score, (*hypotheses, hypothesis))
            for number, (score, hypotheses) in enumerate(combinations, 1)
            for hypothesis in part.hypotheses[: n_best // number]
        )
        combinations = heapq.nlargest(n_best, sums, key=lambda combination: combination[0])
    return [hypotheses for _, hypotheses in combinations]


def join_hypothesis(
    line: SplitLine, parts: Sequence[LineHypothesis], blank: str, sources: Sequence[int]
) -> LineHypothesis:
    """Join the hypotheses `parts` of a line's sentences, one of each; scores and features are added. What a
    hypothesis lacks (log p, attention, a feature) the joined one lacks, too.

    `sources`: the index of each sentence's first source word, followed by the number of words of the line.
    """
    targets = [0, *accumulate(len(part.words) for part in parts)]
    shifted = list(zip(parts, sources, targets, strict=False))
    log_probs = [part.log_prob for part in parts if part.log_prob is not None]
    return LineHypothesis(
        text=line.join([part.text for part in parts], blank),
        words=[word for part in parts for word in part.words],
        score=sum(part.score for part in parts),
        log_prob=sum(log_probs) if len(log_probs) == len(parts) else None,
        alignment=[(source + a, target + b) for part, source, target in shifted for a, b in part.alignment],
        attention=list(join_attention(parts, sources)),
        segments=[
            shift_segment(segment, source, target)
            for part, source, target in shifted
            for segment in part.segments
        ],
        features={
            name: [sum(values) for values in zip(*(part.features[name] for part in parts), strict=True)]
            for name in parts[0].features
            if all(name in part.features for part in parts)
        },
    )


def join_attention(parts: Sequence[LineHypothesis], sources: Sequence[int]) -> Iterator[list[float]]:
    """Yield, for each target word, its attention over all source words; nothing if a sentence lacks it.
    Arguments as in `join_hypothesis`."""
    if all(part.attention or not part.words for part in parts):
        for part, start, end in zip(parts, sources, sources[1:], strict=False):
            yield from ([0.0] * start + row + [0.0] * (sources[-1] - end) for row in part.attention)


def shift_segment(segment: Segment, source: int, target: int) -> Segment:
    """Shift the spans of a phrase by `source` and `target` words."""
    return Segment(
        (segment.source[0] + source, segment.source[1] + source),
        (segment.target[0] + target, segment.target[1] + target),
    )


# ---- words -------------------------------------------------------------------------------------------------
# Raw text for an engine of tokenized text: Moses' rules tokenize the source and detokenize the translations.


class PlainText:
    """The text rules of an engine's two languages. Several threads may share one."""

    def __init__(self, source: str, target: str, knows: Callable[[str], bool]) -> None:
        """`source`, `target`: codes; `knows(word)`: whether the engine knows this word in this case."""
        self.source, self.target, self.knows = Tokenizer(source).rules, Tokenizer(target).rules, knows

    def line(self, text: str) -> str:
        """Tokenize a line, and choose the case of its words, since engines do not say whether they are cased.

        The first word of a sentence is lower-cased if the engine knows the lower-case form, any other word if
        the engine knows only that form.
        """
        words = self.source.words(text)
        starts = sentence_starts(words)
        return " ".join(
            self.choose_case(escape_raw(word), start) for word, start in zip(words, starts, strict=True)
        )

    def choose_case(self, word: str, start: bool) -> str:
        lower = word.lower()
        if lower == word or (not start and self.knows(word)):
            return word
        return lower if self.knows(lower) else word

    def translation(self, text: str, translated: TranslatedLine) -> TranslatedLine:
        """Detokenize the translation of the words that `line` made of `text`; it begins with a capital if the
        first letter of `text` is one."""
        capital = next((char for char in text if char.isalpha()), "").isupper()
        return replace(
            translated,
            words=list(map(unescape, translated.words)),
            hypotheses=[self.hypothesis(hypothesis, capital) for hypothesis in translated.hypotheses],
        )

    def hypothesis(self, hypothesis: LineHypothesis, capital: bool) -> LineHypothesis:
        words = list(map(unescape, hypothesis.words))
        text = self.target.text(words)
        return replace(hypothesis, words=words, text=text[:1].upper() + text[1:] if capital else text)

    def lines(self, texts: Sequence[str]) -> list[str]:
        return list(map(self.line, texts))
