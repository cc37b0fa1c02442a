"""Languages and engines are chosen and compared; shortcuts."""

import time
from typing import cast

import pytest

from nmt.serve.config import ServeConfig
from tests.browser import opened
from tests.nmt.serve.page.serving import Backwards, Page, Served, info, running, served

# ---- test engines ------------------------------------------------------------------------------------------


pytestmark = pytest.mark.ci


def test_languages_come_before_engines(page: Page) -> None:
    page.write("green house")
    page.translated("HOUSE GREEN")
    assert page.texts("#first-language option") == ["French", "Arabic"]
    assert page.texts("#first-engine option") == ["en-fr", "pb", "words"]
    page.choose("first-engine", "pb")
    page.translated("MAISON GREEN")
    page.reload()
    assert page.one("#first-engine").get_attribute("value") == "pb"  # it is remembered
    page.choose("first-language", "ar")
    assert page.texts("#first-engine option") == ["en-ar"]
    page.choose("from", "fr")
    assert page.texts("#first-engine option") == ["fr-en"]
    page.choose("from", "en")
    assert page.one("#first-language").get_attribute("value") == "ar"
    page.choose("first-language", "fr")
    assert page.one("#first-engine").get_attribute("value") == "pb"
    page.write("one two")
    page.until(lambda: page.texts(".output p") == ["TWO ONE"])
    page.one("#swap").click()  # the translation becomes the text
    page.translated("ONE TWO")
    assert page.one("#source").get_attribute("value") == "TWO ONE"
    assert page.one("#source").get_attribute("lang") == "fr"


def test_the_language_is_detected(page: Page) -> None:
    page.write("one two")
    page.translated("TWO ONE")
    assert page.one("#source").get_attribute("lang") == "en"
    page.write("UNE DEUX")
    page.until(lambda: page.one("#first-engine").get_attribute("value") == "fr-en")
    assert page.texts("#from option")[0] == "French (detected)"
    page.write("γλαῦκας εἰς Ἀθήνας")
    page.until(lambda: "none of the languages here" in page.one("#source-note").text)


def test_a_text_in_another_language_than_the_chosen_one(page: Page) -> None:
    page.choose("from", "en")
    page.write("UNE DEUX TROIS")
    page.until(lambda: "This looks like French." in page.one("#source-note").text)
    assert page.one("#first-engine").get_attribute("value") == "en-fr"  # nothing is changed unasked
    page.one("#source-note button").click()
    page.until(lambda: page.one("#first-engine").get_attribute("value") == "fr-en")
    page.until(lambda: page.one("#source-note").text == "")
    page.reload()
    assert page.one("#from").get_attribute("value") == "fr"


def test_two_engines_side_by_side(page: Page) -> None:
    page.write("green house")
    page.translated("HOUSE GREEN")
    page.one("#compare").click()
    page.translated("MAISON GREEN", which=1)
    assert page.one("#compare").get_attribute("aria-pressed") == "true"
    assert page.texts(".differs") == ["HOUSE", "MAISON"]
    assert page.texts(".details h2") == ["Details: en-fr", "Details: pb"]
    page.point_at("section.target:nth-of-type(3) .output .word", 0)
    assert page.lit("#mirror") == {"house": 1.0}
    page.reload()  # both are remembered
    assert [one.get_attribute("value") for one in page.all("select.engine")] == ["en-fr", "pb"]
    page.one("#compare").click()
    assert len(page.all("section.target")) == len(page.all(".details")) == 1
    assert page.texts(".differs") == []


def test_an_engine_is_never_compared_with_itself(page: Page) -> None:
    page.write("green house")
    page.one("#compare").click()
    page.translated("MAISON GREEN", which=1)
    assert page.texts("#second-engine option") == ["pb", "words"]
    page.choose("first-engine", "pb")
    values = [one.get_attribute("value") for one in page.all("select.engine")]
    assert values == ["pb", "en-fr"] and page.texts("#second-engine option") == ["en-fr", "words"]
    page.choose("first-language", "ar")  # one engine: nothing to compare
    assert len(page.all("section.target")) == 1 and not page.one("#compare").is_displayed()
    page.choose("first-language", "fr")
    assert len(page.all("section.target")) == 2


def test_terms_and_phrases_to_avoid(page: Page) -> None:
    page.write("green house here")
    page.translated("HERE HOUSE GREEN")
    page.one("#glossary summary").click()
    page.one("#terms").send_keys("house = château fort\n")
    page.translated("HERE château fort GREEN")
    page.one("#avoid").send_keys("GREEN")
    page.translated("HERE château fort …")
    assert page.one("#glossary-count").text == "1 term, 1 phrase to avoid"
    page.one("#terms").send_keys("nonsense")
    page.until(lambda: "Line 2 of the terms" in page.one("#glossary-trouble").text)
    page.choose("first-engine", "pb")  # takes none
    assert not page.one("#glossary").is_displayed()
    page.translated("HERE MAISON GREEN")
    page.choose("first-engine", "en-fr")
    page.reload()  # it is kept, for these languages
    assert page.one("#terms").get_attribute("value") == "house = château fort\nnonsense"
    page.choose("first-language", "ar")
    assert page.one("#terms").get_attribute("value") == ""


def test_text_for_an_engine_that_reads_words(page: Page) -> None:
    page.choose("first-engine", "words")
    page.write("It isn't so.")
    seen = page.server.engines["words"].seen
    page.until(lambda: "it isn &apos;t so ." in [one.lower() for one in seen])
    page.one(".plain input").click()
    page.until(lambda: "It isn't so." in seen)
    page.reload()
    assert not page.one(".plain input").is_selected()
    page.choose("first-engine", "en-fr")
    assert not page.one(".plain").is_displayed()


def test_an_engine_whose_languages_nobody_says() -> None:
    """It gets the words that stand in the text, and no language is detected."""
    known = {"moses": Backwards(info("words", "", ""))}
    with running(known, ServeConfig(gather=0.0, port=0), "") as url, opened(url) as browser:
        page = Page(browser, Served(url, known))
        page.until(lambda: page.js("return document.documentElement.dataset.ready") == "yes")
        page.write("It isn't so.")
        page.translated("SO. ISN'T IT")
        assert page.texts("#from option") == ["language not stated"] and page.texts("#source-note") == [""]
        assert not page.one(".plain").is_displayed() and not page.one("#compare").is_displayed()
        assert "words between blanks" in page.one("section.target .facts").text


def test_shortcuts(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.write("one")
    page.translated("ONE")
    page.one("#source").send_keys("v?")  # are text here
    page.translated("ONEV?")
    page.one("#source").send_keys(Keys.ESCAPE)
    page.send("?")
    assert page.one("#help-dialog").get_attribute("open") and len(page.all("#keys tr")) > 8
    page.one("#single-keys").click()
    page.one("#help-close").click()
    page.send("v")
    assert len(page.all("section.target")) == 1
    page.one("#help").click()
    page.one("#single-keys").click()
    page.one("#help-close").click()
    page.send("v")
    assert len(page.all("section.target")) == 2
    page.send("g")
    assert page.js("return document.activeElement.id") == "terms"
    page.one("#help").click()
    page.one("#help-close").click()
    page.send("o")
    assert all(one.get_attribute("open") for one in page.all(".details details"))
    page.send("/")
    assert page.js("return document.activeElement.id") == "source"


# ---- test server trouble -----------------------------------------------------------------------------------
# The page when the server wants a token, or is away.


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
