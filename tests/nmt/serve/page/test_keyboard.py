"""The page with the keyboard alone."""

import pytest

from tests.browser import tab_stops, tabbable
from tests.nmt.serve.page.driving import Page

pytestmark = pytest.mark.ci


def test_tab_reaches_every_control_in_order_and_shows_where_it_is(page: Page) -> None:
    page.write("a b2 c\nfail\none two three")
    page.until(lambda: page.texts("section.target .trouble:not([hidden])"))
    page.one("#compare").click()
    page.one("#glossary summary").click()
    page.details()
    page.until(lambda: len(page.all(".details details[open] .tabs button")) >= 7)
    for name in ("Alternatives", "Alignment"):
        page.tab(name)
        stops = tab_stops(page.browser)  # on the way the details become those of another line
        assert stops == tabbable(page.browser) and len(stops) > 25


def test_a_text_is_translated_compared_and_looked_into_by_keys(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.send("green house", Keys.ESCAPE)  # the text has the focus when the page opens
    page.translated("HOUSE GREEN")
    page.send("e")
    assert page.js("return document.activeElement.id") == "first-engine"
    page.send("p")  # a menu takes letters
    page.translated("MAISON GREEN")
    page.send(Keys.TAB)
    page.send("v", "o")
    page.until(lambda: len(page.all(".details details[open] .tabs button")) >= 2)
    page.one(".tabs button").send_keys(Keys.ARROW_RIGHT)
    assert page.js("return document.activeElement.getAttribute('aria-selected')") == "true"
    page.send("?")
    page.until(lambda: page.one("#help-dialog").get_attribute("open"))
    page.send(Keys.TAB, Keys.TAB, Keys.TAB)
    assert page.js(
        "return document.activeElement.closest('dialog') !== null || document.activeElement === document.body"
    )
    page.send(Keys.ESCAPE)
    assert not page.one("#help-dialog").get_attribute("open")
    assert page.js("return document.activeElement.getAttribute('role')") == "tab"  # where one was
