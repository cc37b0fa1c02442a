"""How the page looks and reads: colors, a phone, right-to-left scripts, names for screen readers."""

import json
from typing import cast

import pytest

from tests.browser import tab_stops, tabbable
from tests.nmt.serve.page.serving import Page

# ---- test look ---------------------------------------------------------------------------------------------


pytestmark = pytest.mark.ci
OUTSIDE = """
    const inner = (one) => one.closest(".scroll, .heard") && !one.matches(".scroll");
    const over = (one) => !inner(one) && one.getBoundingClientRect().right > 391;
    return [...document.querySelectorAll("header *, main *")].filter(over).map((one) => one.outerHTML);"""


def test_light_and_dark(page: Page) -> None:
    def ground() -> object:
        return page.js("return getComputedStyle(document.body).backgroundColor")

    light = ground()
    page.device("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    dark = ground()
    assert dark != light
    page.one("#theme").click()
    assert page.one("#theme").text == "Theme: light" and ground() == light
    page.device("Emulation.setEmulatedMedia", features=[])
    page.one("#theme").click()
    assert ground() == dark
    page.reload()
    assert ground() == dark and page.one("#theme").text == "Theme: dark"


def test_nothing_is_cut_off_on_a_phone(page: Page) -> None:
    page.device("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True)
    try:
        page.one("#compare").click()
        page.write("some words " * 12 + "a" * 120)
        page.until(lambda: len(page.texts(".output p")) == 2 and not page.all(".pending"))
        page.one("#glossary summary").click()
        page.details()
        page.until(lambda: len(page.all(".details details[open] .tabs button")) >= 7)
        for name in ("Alternatives", "Alignment", "Phrases", "Features", "Parse"):
            page.tab(name)
            assert page.js("return document.documentElement.scrollWidth") == 390, name
            assert page.js(OUTSIDE) == [], name
    finally:
        page.device("Emulation.clearDeviceMetricsOverride")


def test_the_mirror_fits_the_text(page: Page) -> None:
    """The words behind the text field are where its own are."""
    page.write("some words " * 40 + "\n\nبيت أخضر " * 9 + "x" * 300 + "\n  end ")
    page.until(lambda: not page.all(".pending") and len(page.all("#mirror .word")) > 80)
    heights = "const one = document.getElementById('source'); return [one.scrollHeight, one.clientHeight]"
    scroll, client = cast(list[int], page.js(heights))
    mirror = cast(int, page.js("return document.getElementById('mirror').scrollHeight"))
    assert scroll == client == mirror


def test_right_to_left(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.choose("first-language", "ar")
    page.write("the green house")
    page.translated("بيت أخضر THE")
    output = page.one(".output p")
    direction = "return getComputedStyle(arguments[0]).direction"
    assert page.js(direction, output) == "rtl" and page.one(".output").get_attribute("lang") == "ar"
    first, second = (word.rect["x"] for word in page.all(".output .word")[:2])
    assert second < first
    page.one("#source").send_keys(Keys.ESCAPE)
    page.send("t", Keys.ARROW_LEFT)  # to the next word
    assert page.told()[:2] == ["أخضر", "green"]
    page.write("بيت")
    page.until(lambda: page.texts("#mirror .word") == ["بيت"])
    word, field = page.one("#mirror .word").rect, page.one("#source").rect
    assert word["x"] > field["x"] + field["width"] / 2


def test_what_can_be_focused_has_a_name(page: Page) -> None:
    """As the browser tells screen readers."""
    page.write("one two\nthree")
    page.one("#compare").click()
    page.translated("TWO ONE", "THREE", which=1)
    page.device("Accessibility.enable")
    tree = page.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    unnamed, count = [], 0
    for node in tree:
        properties = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
        if properties.get("focusable") and node["role"]["value"] != "RootWebArea":
            count += 1
            if not node.get("name", {}).get("value"):
                unnamed.append(json.dumps(node))
    assert unnamed == [] and count > 15
    assert page.one("html").get_attribute("lang") == "en"


# ---- test keyboard -----------------------------------------------------------------------------------------
# The page with the keyboard alone.


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
