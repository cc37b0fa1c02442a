"""A page in a real browser, for tests of reports and of the server."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

FOCUSED = """
    const one = document.activeElement;
    if (!one || one === document.body || one === document.documentElement) return null;
    const ring = (node) => {
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(node);
      return (outlineStyle !== "none" && parseFloat(outlineWidth) >= 1) || boxShadow !== "none";
    };
    const { top, bottom, width, height } = one.getBoundingClientRect();
    const inSight = bottom > 0 && top < innerHeight && width > 0 && height > 0;
    return [one, ring(one) || ring(one.closest("section") ?? one), inSight];"""
TABBABLE = """
    const kinds = "a[href], button, input, select, textarea, summary, [tabindex]";
    return [...document.querySelectorAll(kinds)].filter((one) =>
      one.checkVisibility({visibilityProperty: true}) && !one.disabled && one.tabIndex >= 0);"""


@contextmanager
def opened(page: Path | str) -> "Iterator[Chrome]":
    """The page, a file or an address, in Chromium; the test is skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    driver = shutil.which("chromedriver")
    if driver is None:
        pytest.skip("needs Chromium and its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,2400"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(
        dir="/tmp", ignore_cleanup_errors=True
    ) as short:  # Chromium makes a socket there, whose path may have 108 bytes at most
        browser = webdriver.Chrome(
            options=options, service=webdriver.ChromeService(driver, env={**os.environ, "TMPDIR": short})
        )
        browser.get(page if isinstance(page, str) else page.as_uri())
        yield browser
        browser.quit()


def tab_stops(browser: "Chrome") -> "list[WebElement]":
    """What the key Tab reaches from the start of the page on, in order. Asserts that each stop is in sight
    and shows that it has the focus, and that one gets out at the end."""
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    stops: list[WebElement] = []
    browser.execute_script("scrollTo(0, 0); document.body.tabIndex = -1; document.body.focus();")
    while len(stops) < 1000:
        ActionChains(browser).send_keys(Keys.TAB).perform()
        focused = browser.execute_script(FOCUSED)
        if focused is None or focused[0] in stops:
            return stops
        stop, ring, in_sight = focused
        assert ring and in_sight, (stop.get_attribute("outerHTML"), ring, in_sight)
        stops.append(stop)
    raise AssertionError("no way out")


def tabbable(browser: "Chrome") -> "list[WebElement]":
    """What ought to be reached, in the order of the page."""
    found: list[WebElement] = browser.execute_script(TABBABLE)
    return found
