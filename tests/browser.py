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
