"""Engines and languages are chosen and compared; shortcuts."""

import pytest

from tests.nmt.serve.page.driving import Page

pytestmark = pytest.mark.ci


def test_engines_and_languages_are_switched(page: Page) -> None:
    page.write("green house")
    page.translated("HOUSE GREEN")
    page.choose("first-engine", "pb")
    page.translated("MAISON GREEN")
    page.reload()
    assert page.one("#first-engine").get_attribute("value") == "pb"  # it is remembered
    page.choose("from", "fr")
    assert page.texts("#first-engine option") == ["fr-en"]
    page.choose("from", "en")
    assert page.texts("#first-engine optgroup:first-child option") == ["en-fr", "pb"]
    page.write("one two")
    page.until(lambda: page.texts(".output p") == ["TWO ONE"])
    page.one("#swap").click()  # the translation becomes the text
    page.translated("ONE TWO")
    assert page.one("#source").get_attribute("value") == "TWO ONE"
    assert page.one("#source").get_attribute("lang") == "fr"


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
    page.send("/")
    assert page.js("return document.activeElement.id") == "source"
