"""The page when the server wants a token, or is away."""

import time
from typing import cast

import pytest

from tests.browser import opened
from tests.nmt.serve.page.driving import Page
from tests.nmt.serve.page.serving import served

pytestmark = pytest.mark.ci


def test_the_token_is_asked_for_and_kept_in_the_tab() -> None:
    token = "0123456789abcdef"
    with served(token) as server, opened(server.url) as browser:
        page = Page(browser, server)
        page.until(lambda: page.one("#token-dialog").get_attribute("open"))
        for given, trouble in (("wrong", True), (token, False)):
            page.one("#token").send_keys(given + "\n")
            if trouble:
                page.until(lambda: page.one("#token-trouble").is_displayed())
        page.until(lambda: page.js("return document.documentElement.dataset.ready") == "yes")
        page.write("one")
        page.translated("ONE")
        assert page.js("return Object.values(sessionStorage)") == [token]
        assert token not in cast(list[str], page.js("return Object.values(localStorage)"))
        page.reload()  # it is not asked for again
        assert not page.one("#token-dialog").is_displayed()


def test_without_a_server_it_says_so() -> None:
    with served() as server, opened(server.url) as browser:
        page = Page(browser, server)
        page.until(lambda: page.js("return document.documentElement.dataset.ready") == "yes")
        page.device("Network.enable")
        page.device(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )
        page.write("one")
        page.until(lambda: page.texts("section.target .trouble:not([hidden])"))
        assert page.texts("section.target .trouble") == ["The server cannot be reached. Try again"]
        page.device(
            "Network.emulateNetworkConditions",
            offline=False,
            latency=0,
            downloadThroughput=-1,
            uploadThroughput=-1,
        )
        time.sleep(0.1)
        page.one("section.target .trouble button").click()
        page.translated("ONE")
