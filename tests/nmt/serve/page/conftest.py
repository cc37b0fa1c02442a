"""A server and a browser for the tests of a module; there may be no error on the console, where violations
of the Content-Security-Policy would show."""

from collections.abc import Iterator

import pytest

from tests.browser import opened
from tests.nmt.serve.page.serving import Page, served


@pytest.fixture(scope="module")
def whole() -> Iterator[Page]:
    with served() as server, opened(server.url) as browser:
        yield Page(browser, server)
        said = browser.execute("getLog", {"type": "browser"})["value"]
        assert [one for one in said if "Failed to load resource" not in one["message"]] == []


@pytest.fixture
def page(whole: Page) -> Page:
    whole.open()
    return whole
