"""Engines that have all that the page can show, and a server of them for a browser."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import uvicorn

from nmt.errors import DataError
from nmt.serve import engine, server
from nmt.serve.config import ServeConfig
from nmt.serve.engine import (
    Engine,
    EngineInfo,
    FeatureInfo,
    LineHypothesis,
    Segment,
    SoftParse,
    SoftParseNode,
    TranslatedLine,
    TranslateOptions,
    empty_translation,
)
from nmt.serve.limits import Token
from nmt.serve.server import application
from tests.nmt.serve.engines import serving

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement


# ---- serving -----------------------------------------------------------------------------------------------


ALL = (
    engine.N_BEST, engine.ALIGNMENT, engine.ATTENTION, engine.SEGMENTS, engine.FEATURES, engine.PARSE,
    engine.SCORE, engine.TERMS, engine.AVOID,
)  # fmt: skip
FEATURES = (
    FeatureInfo("LM0", "count language model", (), (0.5,)),
    FeatureInfo("TranslationModel0", "phrase table", ("one", "two", "three", "four"), (0.1, 0.2, 0.3, 0.4)),
)


class Backwards(Engine):
    """Turns the order of the words around and their letters to upper case, those of `rewritten` into others.
    The words `fail` and `wait` do as they say: `wait` until `go` is set or nobody waits. Unknown words have
    a digit. What is to be avoided becomes `…`. Text of a source language `fr` is in upper case."""

    workers = 4

    def __init__(self, info: EngineInfo, rewritten: dict[str, str] | None = None) -> None:
        self.info, self.rewritten = info, rewritten or {}
        self.go, self.seen, self.stopped = threading.Event(), list[str](), list[str]()

    def translate(self, line: str, options: TranslateOptions, stop: threading.Event) -> TranslatedLine:
        self.seen.append(line)
        words = line.split()
        if "fail" in words:
            raise DataError("a word that fails")
        while "wait" in words and not self.go.wait(0.01):
            if stop.is_set():
                self.stopped.append(line)
                raise InterruptedError
        if not words:
            return empty_translation()
        return TranslatedLine(
            words,
            [self.hypothesis(words, rank, options) for rank in range(min(3, options.n_best))],
            [place for place, word in enumerate(words) if any(map(str.isdigit, word))],
            parse=parse(words) if options.parse and engine.PARSE in self.info.capabilities else None,
        )

    def hypothesis(self, words: list[str], rank: int, options: TranslateOptions) -> LineHypothesis:
        count, can = len(words), self.info.capabilities
        wanted = self.rewritten | dict(options.terms)
        made = [wanted.get(word, word.upper()) for word in reversed(words)]
        made = ["…" if word in options.avoid else word for word in made]
        text = " ".join(made) + " !" * rank
        far = 0.2 / max(1, count - 1)
        weights = [[0.8 if one + at == count - 1 else far for one in range(count)] for at in range(count)]
        points = [(count - 1 - at, at) for at in range(count)]
        if engine.ATTENTION not in can and count > 2:
            points.append((0, 1))
        return LineHypothesis(
            text=text,
            words=text.split(),
            score=-1.5 - rank,
            log_prob=-3.25 - rank,
            alignment=points,
            attention=weights if options.attention and engine.ATTENTION in can else [],
            segments=segments(count) if engine.SEGMENTS in can else [],
            features={"LM0": [-12.5], "TranslationModel0": [-1.0, -2.0, -0.5, -0.25]}
            if engine.FEATURES in can
            else {},
        )

    def fit(self, line: str) -> float:
        """1 for text in the case of the source language, 0 for words in Greek letters."""
        words = [word for word in line.split() if word.isascii()]
        right = [word for word in words if word.isupper() == (self.info.source == "fr")]
        return len(right) / max(1, len(line.split()))

    def score(self, pairs: Sequence[tuple[str, str]], tokenized: bool) -> list[list[tuple[str, float]]]:
        return [[("x", 0.0)] for _ in pairs]


def segments(count: int) -> list[Segment]:
    """Phrases of two words, in target order."""
    spans = [(first, min(first + 1, count - 1)) for first in range(0, count, 2)]
    return [Segment((count - 1 - last, count - 1 - first), (first, last)) for first, last in spans]


def parse(words: list[str]) -> SoftParse:
    nodes = [
        SoftParseNode(first, first + level, 0.6 if first % 2 else 0.1, 0.3 if first % 2 else 0.8, 0.1)
        for level in range(1, len(words))
        for first in range(len(words) - level)
    ]
    return SoftParse(words, nodes)


def info(kind: str, source: str, target: str, capabilities: tuple[str, ...] = ALL) -> EngineInfo:
    beam_size = 5 if kind == "run" else 0
    return EngineInfo(
        kind, f"a {kind} of tests", source, target, capabilities, beam_size, tokenized_only=kind == "words",
        features=FEATURES if engine.FEATURES in capabilities else (),
    )  # fmt: skip


@dataclass
class Served:
    """A server at work, its engines by name."""

    url: str
    engines: dict[str, Backwards]


def engines() -> dict[str, Backwards]:
    simple = (engine.N_BEST, engine.ALIGNMENT)
    return {
        "en-fr": Backwards(info("run", "en", "fr")),
        "pb": Backwards(info("phrase-based", "en", "fr", simple), {"house": "MAISON"}),
        "words": Backwards(info("words", "en", "fr", simple)),
        "fr-en": Backwards(info("run", "fr", "en", simple)),
        "en-ar": Backwards(info("run", "en", "ar", simple), {"house": "بيت", "green": "أخضر"}),
    }


@contextmanager
def served(token: str = "", **settings: object) -> Iterator[Served]:
    """A server on a free port of the loopback address."""
    config = replace(ServeConfig(gather=0.0, port=0), **settings)  # type: ignore[arg-type]
    known = engines()
    with running(known, config, token) as url:
        yield Served(url, known)


@contextmanager
def running(known: Mapping[str, Engine], config: ServeConfig, token: str) -> Iterator[str]:
    """The address of a server with these engines, while it runs."""
    loaded = serving(*known.values(), names=list(known), config=config)
    app = application(loaded, config, Token(token) if token else None)
    listening = server.bind(config)
    process = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    thread = threading.Thread(target=process.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield server.server_url(listening)
    finally:
        process.should_exit = True
        thread.join()
        for one in loaded.values():
            one.close()


# ---- driving -----------------------------------------------------------------------------------------------
# The page in a browser, as one works with it.


ANSWERS = """
    const [status, times] = arguments, real = window.fetch;
    let left = times;
    const answer = () => new Response('{"error": "no room"}', {status, headers: {"Retry-After": "1"}});
    window.fetch = async (path, given) =>
      (path === "api/translate" && left-- > 0 ? answer() : real(path, given));"""


class Page:
    """The page, as one works with it."""

    def __init__(self, browser: "Chrome", server: Served) -> None:
        self.browser, self.server = browser, server

    def open(self) -> None:
        """Anew, with nothing remembered."""
        self.browser.execute_script("localStorage.clear(); sessionStorage.clear();")
        self.reload()

    def reload(self) -> None:
        self.browser.get(self.server.url)
        self.until(lambda: self.js("return document.documentElement.dataset.ready") == "yes")

    def js(self, script: str, *given: object) -> object:
        return self.browser.execute_script(script, *given)

    def until(self, condition: Callable[[], object]) -> None:
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.browser, 120, 0.05).until(lambda _: condition())

    def one(self, selector: str) -> "WebElement":
        return self.browser.find_element("css selector", selector)

    def all(self, selector: str) -> "list[WebElement]":
        return self.browser.find_elements("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        found = self.js(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", selector
        )
        return cast(list[str], found)

    def write(self, text: str) -> None:
        """In place of the text that is there."""
        self.one("#source").clear()
        self.one("#source").send_keys(text)

    def translated(self, *lines: str, which: int = 0) -> None:
        """Wait for a translation."""
        output = f"section.target:nth-of-type({which + 2}) .output p"
        self.until(lambda: self.texts(output) == list(lines) and not self.all(".pending"))

    def choose(self, name: str, value: str) -> None:
        from selenium.webdriver.support.select import Select

        Select(self.browser.find_element("id", name)).select_by_value(value)

    def tab(self, name: str) -> None:
        next(tab for tab in self.all(".tabs button") if tab.text == name).click()

    def point_at(self, selector: str, number: int) -> None:
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).move_to_element(self.all(selector)[number]).perform()

    def lit(self, selector: str) -> dict[str, float]:
        """The words that are shaded, and how much."""
        found = self.js(
            "return [...document.querySelectorAll(arguments[0] + ' .lit')]"
            ".map((one) => [one.textContent, Number(one.style.getPropertyValue('--weight'))])",
            selector,
        )
        return {str(word): float(weight) for word, weight in cast(list[tuple[str, float]], found)}

    def told(self) -> list[str]:
        """What is said of the word that one points at."""
        return self.texts(".told:not([hidden]) > *")

    def details(self) -> None:
        """Open the details of a line."""
        self.one(".details summary").click()
        self.until(lambda: self.one(".details details").get_attribute("open"))

    def send(self, *keys: str) -> None:
        from selenium.webdriver import ActionChains

        ActionChains(self.browser).send_keys(*keys).perform()

    def device(self, method: str, **settings: object) -> None:
        self.browser.execute_cdp_cmd(method, settings)

    def answer_with(self, status: int, times: int) -> None:
        """The next requests for translations are answered so."""
        self.js(ANSWERS, status, times)
