"""The page translates what one types, and says what is wrong."""

import pytest

from tests.nmt.serve.page.driving import Page

pytestmark = pytest.mark.ci
HOSTILE = "<img src=x onerror=document.title='broken'> &amp; <script>document.title='broken'</script>"


def test_it_translates_as_one_types(page: Page) -> None:
    page.write("one two\n\nthree")
    page.translated("TWO ONE", "", "THREE")
    assert page.one("#first-engine").get_attribute("value") == "en-fr"
    assert page.texts("#from option") == ["English (detected)", "English", "French"]
    assert page.js("return document.querySelector('.output').lang") == "fr"
    seen = page.server.engines["en-fr"].seen
    seen.clear()
    page.one("#source").send_keys(" four")
    page.translated("TWO ONE", "", "FOUR THREE")
    assert seen == ["three four"]  # the other lines are known


def test_an_answer_to_an_older_text_is_not_awaited(page: Page) -> None:
    engine = page.server.engines["en-fr"]
    engine.stopped.clear()
    page.write("wait")
    page.until(lambda: "wait" in engine.seen)
    page.write("one")
    page.translated("ONE")
    page.until(lambda: "wait" in engine.stopped)
    assert page.texts(".trouble:not([hidden])") == []


def test_alternatives_have_scores_and_can_be_chosen(page: Page) -> None:
    page.write("one two")
    page.translated("TWO ONE")
    page.details()
    page.until(lambda: page.all(".pick"))
    rows = page.texts("#first-panel-alternatives tbody tr")
    assert rows == ["1TWO ONE−1.50−3.25", "2TWO ONE !−2.50−4.25", "3TWO ONE ! !−3.50−5.25"]
    page.all(".pick")[1].click()
    page.translated("TWO ONE !")
    assert page.js("return document.activeElement.textContent") == "TWO ONE !"
    assert page.texts("#first-count option") == ["3 alternatives", "5 alternatives"]  # the beam has 5
    page.one(".details summary").click()
    page.write("one two three")
    page.translated("THREE TWO ONE")
    assert not page.one(".tabs").is_displayed()
    page.reload()  # it stays closed, and open
    assert not page.one(".details details").get_attribute("open")
    page.write("one")
    page.translated("ONE")
    page.details()
    page.reload()
    assert page.one(".details details").get_attribute("open")


def test_unknown_words_are_marked_and_named(page: Page) -> None:
    page.write("a b2 c\nd4")
    page.until(lambda: page.texts("#mirror .unknown") == ["b2", "d4"])
    assert "not known: d4" in page.one("section.target .facts").text
    assert page.texts(".output .current") == ["D4"]
    page.details()
    page.one(".before").click()
    assert page.texts(".output .current") == ["C B2 A"]
    assert "not known: b2" in page.one("section.target .facts").text


def test_a_hostile_line_is_text(page: Page) -> None:
    page.server.engines["en-fr"].rewritten = {word: word for word in HOSTILE.split()}
    page.write(f"{HOSTILE} ‮ end")
    turned = " ".join(reversed(HOSTILE.split()))
    page.translated(f"END ‮ {turned}")
    page.details()
    page.until(lambda: page.all(".tabs button"))
    for name in ("Alternatives", "Alignment", "Phrases", "Features", "Parse"):
        page.tab(name)
    page.point_at(".output .word", 0)
    assert page.all("main img, main script") == []
    assert "broken" not in page.browser.title and page.browser.find_elements("id", "mirror")
    page.server.engines["en-fr"].rewritten = {}


def test_errors_are_shown_and_the_other_lines_translated(page: Page) -> None:
    page.write("one\nfail\ntwo")
    page.until(lambda: page.texts(".output p") == ["ONE", "", "TWO"])
    assert page.texts("section.target .trouble:not([hidden])") == ["Line 2: A word that fails."]
    page.write("one")
    page.translated("ONE")
    assert page.texts("section.target .trouble:not([hidden])") == []


def test_a_busy_server_is_asked_again(page: Page) -> None:
    page.answer_with(429, 1)
    page.write("one")
    page.until(lambda: page.texts("section.target .trouble:not([hidden])"))
    assert "busy; trying again in 1 s" in page.texts("section.target .trouble")[0]
    page.translated("ONE")
    page.answer_with(500, 1)
    page.write("two")
    page.until(lambda: page.texts("section.target .trouble:not([hidden])") == ["No room. Try again"])
    page.one("section.target .trouble button").click()
    page.translated("TWO")


def test_what_is_too_much_for_typing_becomes_a_file(page: Page) -> None:
    page.js("document.getElementById('source').value = 'a\\n'.repeat(600)")
    page.one("#source").send_keys("b")
    page.until(lambda: "More than 500 lines." in page.one("#source-note").text)
    page.one("#source-note button").click()
    page.until(lambda: page.one("#job-says").text == "Done: 601 lines by en-fr")
    page.js("document.getElementById('source').value = 'a'.repeat(6000)")
    page.one("#source").send_keys("b")
    page.until(lambda: "Line 1 has more than 5000 characters" in page.one("#source-note").text)
