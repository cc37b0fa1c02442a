"""The page in a browser, as one works with it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from tests.nmt.serve.page.serving import Served

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

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

        WebDriverWait(self.browser, 20, 0.05).until(lambda _: condition())

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
