"""The page translates what is typed and files line for line, and says what is wrong."""

from pathlib import Path
from typing import cast

import pytest

from tests.nmt.serve.page.serving import Page

# ---- test translating --------------------------------------------------------------------------------------


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


# ---- test words --------------------------------------------------------------------------------------------
# What the page tells of words and lines: what belongs together, alternatives, phrases, parses.


def test_a_word_of_the_translation_shows_its_source_words(page: Page) -> None:
    page.write("one two three")
    page.translated("THREE TWO ONE")
    page.point_at(".output .word", 0)
    assert page.lit("#mirror") == {"three": 0.8, "one": 0.1, "two": 0.1}
    assert page.told() == ["THREE", "three 0.80", "one 0.10", "two 0.10"]
    page.choose("first-engine", "pb")  # without attention: alignment points
    page.translated("THREE TWO ONE")
    page.point_at(".output .word", 2)
    assert page.lit("#mirror") == {"one": 1.0} and page.told() == ["ONE", "one"]
    page.point_at(".output .word", 1)
    assert page.lit("#mirror") == {"one": 1.0, "two": 1.0}
    page.point_at("h1", 0)
    assert page.lit("#mirror") == {} and page.told() == []


def test_a_source_word_shows_its_translations(page: Page) -> None:
    from selenium.webdriver import ActionChains

    page.write("one two three")
    page.translated("THREE TWO ONE")
    chain = ActionChains(page.browser)
    word = page.all("#mirror .word")[0].rect  # behind the text field
    chain.w3c_actions.pointer_action.move_to_location(int(word["x"] + 5), int(word["y"] + 8))  # type: ignore[no-untyped-call]
    chain.perform()
    assert page.lit(".output") == {"ONE": 0.8, "TWO": 0.1, "THREE": 0.1}
    assert page.told()[:2] == ["one", "ONE 0.80"]


def test_what_is_told_of_a_word_covers_nothing(page: Page) -> None:
    """It stands in the foot of the translation, and nothing moves for it."""
    boxes = """
        return [...document.querySelectorAll(".paper, .details, .copy")]
          .map((one) => one.getBoundingClientRect().top);"""
    page.write("one two\n" * 12 + "x" * 300)
    page.until(lambda: len(page.texts(".output p")) == 13 and not page.all(".pending"))
    before = page.js(boxes)
    page.point_at(".output .word", 3)
    assert page.told()[0] == "ONE" and page.js(boxes) == before
    covers = """
        const told = document.querySelector(".told").getBoundingClientRect();
        const over = (box) => box.left < told.right && told.left < box.right
          && box.top < told.bottom && told.top < box.bottom;
        return [...document.querySelectorAll(".output, #source, .facts, .copy")]
          .filter((one) => one.checkVisibility({visibilityProperty: true}))
          .filter((one) => over(one.getBoundingClientRect()))
          .map((one) => one.className);"""
    assert page.js(covers) == []


def test_words_are_reached_with_the_keyboard(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.write("one two\nthree four")
    page.translated("TWO ONE", "FOUR THREE")
    page.one("#source").send_keys(Keys.ESCAPE)
    page.send("t")
    assert page.told()[:2] == ["TWO", "two 0.80"]
    page.send(Keys.ARROW_RIGHT)
    assert page.told()[:2] == ["ONE", "one 0.80"] and page.lit("#mirror")["one"] == 0.8
    assert page.one("#said").get_attribute("textContent") == "ONE: one 0.80, two 0.20"
    page.send(Keys.ARROW_DOWN)
    assert page.told()[0] == "FOUR" and page.texts(".output .current") == ["FOUR THREE"]
    page.send(Keys.END, Keys.ARROW_RIGHT, Keys.ARROW_UP)
    assert page.told()[0] == "TWO"
    page.send(Keys.ESCAPE)
    assert page.told() == []
    page.one("#source").send_keys(Keys.CONTROL, Keys.HOME)  # the caret in the text does the same
    assert page.told()[:2] == ["one", "ONE 0.80"]


def test_the_words_of_a_line_are_found_in_its_text(page: Page) -> None:
    def ranges(text: str, words: list[str]) -> list[str | None]:
        found = page.browser.execute_async_script(
            "const [text, words, done] = arguments; import('/alignment.js').then(({ wordRanges }) => "
            "done(wordRanges(text, words).map((range) => range && text.slice(...range))))",
            text,
            words,
        )
        return cast(list[str | None], found)

    assert ranges("Don't stop.", ["do", "n't", "stop", "."]) == ["Do", "n't", "stop", "."]
    assert ranges("Il a dit « oui ».", ["il", "a", "dit", '"', "oui", '"', "."]) == [
        "Il", "a", "dit", "«", "oui", "»", ".",
    ]  # fmt: skip
    assert ranges("a b c", ["x", "y", "c"]) == [None, None, "c"]
    assert ranges("她喜欢茶。", ["她", "喜欢", "茶", "。"]) == ["她", "喜欢", "茶", "。"]
    assert ranges("İi iİ", ["İi", "iİ"]) == ["İi", "iİ"] and ranges("", []) == []


def test_alignment_phrases_features_and_parse(page: Page) -> None:
    page.write("a b c")
    page.translated("C B A")
    page.details()
    page.until(lambda: len(page.texts(".tabs button")) == 5)
    assert page.texts(".tabs button") == ["Alternatives", "Alignment", "Phrases", "Features", "Parse"]
    page.tab("Alignment")
    assert page.texts(".matrix thead th") == ["a", "b", "c"]
    assert page.texts(".matrix tbody tr") == [
        "C.10.10.80 aligned",
        "B.10.80 aligned.10",
        "A.80 aligned.10.10",
    ]
    page.point_at(".matrix tbody tr", 0)
    assert page.lit("#mirror")["c"] == 0.8 and page.texts(".output .held") == ["C"]
    page.tab("Phrases")
    assert page.texts(".phrases bdi") == ["a", "b c", "C B", "A"]
    page.point_at(".phrase", 0)
    assert page.texts(".phrase.held") == ["2a", "2A"]
    page.tab("Features")
    assert page.texts(".features tbody tr")[:3] == [
        "LM0count language model−12.500.5000−6.25",
        "TranslationModel0phrase tableone−1.000.1000−0.10",
        "two−2.000.2000−0.40",
    ]
    assert page.texts(".features tfoot tr") == ["Total−1.50"]
    page.tab("Parse")
    assert len(page.all("svg.parse circle")) == 3 and page.texts("svg.parse text") == ["a", "b", "c"]
    assert page.texts("svg.parse circle title")[0] == "a b: new 0.10, left 0.80, right 0.10"
    page.choose("first-engine", "pb")
    page.until(lambda: page.texts(".tabs button") == ["Alternatives", "Alignment"])


def test_tabs_obey_arrow_keys(page: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    page.write("a b c")
    page.translated("C B A")
    page.details()
    page.until(lambda: page.all(".tabs button"))
    page.tab("Alignment")
    for key, name in ((Keys.ARROW_RIGHT, "Phrases"), (Keys.ARROW_LEFT, "Alignment")):
        page.send(key)
        assert page.js("return document.activeElement.textContent") == name
        assert page.texts('[role="tab"][aria-selected="true"]') == [name]
        assert page.one('[role="tabpanel"]').get_attribute("aria-labelledby") == f"first-tab-{name.lower()}"


# ---- files, line for line ----------------------------------------------------------------------------------


DROP = """
    const [name, bytes, kind] = arguments, transfer = new DataTransfer();
    transfer.items.add(new File([new Uint8Array(bytes)], name));
    const given = kind === "paste" ? {clipboardData: transfer} : {dataTransfer: transfer};
    const event = kind === "paste" ? new ClipboardEvent(kind, {...given, bubbles: true, cancelable: true})
      : new DragEvent(kind, {...given, bubbles: true, cancelable: true});
    document.getElementById("source").dispatchEvent(event);"""


def drop(page: Page, name: str, content: bytes, kind: str = "drop") -> None:
    page.js(DROP, name, list(content), kind)


def saved(page: Page, folder: Path, name: str, empty: bool = False) -> str:
    """What the page gives for download. The browser first makes an empty file of this name."""
    page.device("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    page.until(lambda: page.one("#job-save").is_displayed())
    page.one("#job-save").click()
    place = folder / name
    page.until(lambda: place.exists() and (empty or place.stat().st_size))
    return place.read_bytes().decode("utf-8")


def test_a_dropped_file_is_translated_line_for_line(page: Page, tmp_path: Path) -> None:
    lines = [f"line {number}" if number % 3 else "" for number in range(200)]
    page.server.engines["en-fr"].seen.clear()
    drop(page, "test.en", "\r\n".join(lines).encode())  # without an end of the last line
    expected = [f"{number} LINE" if number % 3 else "" for number in range(200)]
    assert saved(page, tmp_path, "test.fr") == "".join(f"{line}\n" for line in expected)
    assert page.one("#job-says").text == "Done: 200 lines by en-fr"
    assert sorted(page.server.engines["en-fr"].seen) == sorted(lines)
    assert page.js("const bar = document.getElementById('job-progress'); return bar.value === bar.max")
    drop(page, "empty.txt", b"", "paste")
    page.until(lambda: page.one("#job-title").text == "empty.txt")
    assert saved(page, tmp_path, "empty.fr.txt", empty=True) == ""


def test_a_document_is_translated_as_a_whole(page: Page, tmp_path: Path) -> None:
    """By the engine that is chosen; a damaged one says what is wrong with it."""
    drop(page, "a.html", b"<p>green <b>house</b></p>")
    assert saved(page, tmp_path, "a.fr.html") == "<p><b>HOUSE</b> GREEN</p>"
    assert page.one("#job-says").text == "Done: a document by en-fr"
    drop(page, "b.docx", b"PK")
    page.until(lambda: "damaged ZIP file" in page.one("#job-trouble").text)
    assert page.one("#job-retry").is_displayed() and not page.one("#job-save").is_displayed()
    drop(page, "c.txt", b"one\n")
    assert saved(page, tmp_path, "c.fr.txt") == "ONE\n"


def test_the_language_of_a_file_is_detected_and_its_glossary_kept_to(page: Page, tmp_path: Path) -> None:
    page.one("#glossary summary").click()
    page.one("#terms").send_keys("house = Château")
    drop(page, "a.en", b"green house\n")
    assert saved(page, tmp_path, "a.fr") == "Château GREEN\n"
    drop(page, "b.txt", b"UNE DEUX\n")
    assert saved(page, tmp_path, "b.en.txt") == "DEUX UNE\n"
    assert page.one("#job-says").text == "Done: 1 line by fr-en"
    page.choose("from", "en")
    drop(page, "c.en", b"UNE DEUX\n")
    assert saved(page, tmp_path, "c.fr") == "DEUX UNE\n"
    assert page.one("#job-says").text == "Done: 1 line by en-fr · This looks like French."


def test_files_that_are_no_text_are_refused(page: Page) -> None:
    for content, says in (
        (b"one\ntw\xff\n", "bad.en:2: is not UTF-8; save the file in this encoding."),
        (b"one\0", "bad.en is not a text file."),
        (b"one\n\n" + b"a" * 6000, "bad.en:3: more than 5000 characters; split the line."),
    ):
        drop(page, "bad.en", content)
        page.until(lambda says=says: page.texts("#job-trouble:not([hidden])") == [says])  # type: ignore[misc]
        assert not page.one("#job-save").is_displayed()


def test_a_line_that_fails_can_be_left_empty(page: Page, tmp_path: Path) -> None:
    drop(page, "a.en", b"one\ntwo\nfail\nfour\n")
    page.until(lambda: page.one("#job-skip").is_displayed())
    assert page.texts("#job-trouble") == ["Line 3: A word that fails."]
    page.one("#job-skip").click()
    assert saved(page, tmp_path, "a.fr") == "ONE\nTWO\n\nFOUR\n"


def test_a_file_is_canceled_and_goes_on(page: Page, tmp_path: Path) -> None:
    engine = page.server.engines["en-fr"]
    engine.go.clear()
    engine.stopped.clear()
    drop(page, "b.en", b"one\n" * 8 + b"wait\n" * 2)
    page.until(lambda: page.one("#job-says").text == "8 of 10 lines by en-fr")
    page.one("#job-cancel").click()
    page.until(lambda: engine.stopped)  # the server does not go on with it
    assert page.one("#job-says").text == "Canceled after 8 of 10 lines"
    engine.go.set()
    page.one("#job-retry").click()
    assert saved(page, tmp_path, "b.fr") == "ONE\n" * 8 + "WAIT\n" * 2
    engine.go.clear()
    page.one("#job-close").click()
    assert not page.one("#job").is_displayed()


def test_a_file_waits_for_a_busy_server(page: Page, tmp_path: Path) -> None:
    page.answer_with(429, 2)
    drop(page, "c.en", b"one\n")
    page.until(lambda: "busy; trying again in 1 s" in "".join(page.texts("#job-trouble:not([hidden])")))
    assert saved(page, tmp_path, "c.fr") == "ONE\n"
