"""Files are translated line for line."""

from pathlib import Path

import pytest

from tests.nmt.serve.page.serving import Page

pytestmark = pytest.mark.ci


DROP = """
    const [name, bytes, kind] = arguments, transfer = new DataTransfer();
    transfer.items.add(new File([new Uint8Array(bytes)], name));
    const given = kind === "paste" ? {clipboardData: transfer} : {dataTransfer: transfer};
    const event = kind === "paste" ? new ClipboardEvent(kind, {...given, bubbles: true, cancelable: true})
      : new DragEvent(kind, {...given, bubbles: true, cancelable: true});
    document.getElementById("source").dispatchEvent(event);"""


def drop(page: Page, name: str, content: bytes, kind: str = "drop") -> None:
    page.js(DROP, name, list(content), kind)


def saved(page: Page, folder: Path, name: str) -> str:
    """What the page gives for download."""
    page.device("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    page.until(lambda: page.one("#job-save").is_displayed())
    page.one("#job-save").click()
    place = folder / name
    page.until(place.exists)
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
    assert saved(page, tmp_path, "empty.fr.txt") == ""


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
