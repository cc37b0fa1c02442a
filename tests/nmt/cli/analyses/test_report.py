"""The HTML report in a real browser: it sorts, filters, shows values on hover, and writes no error to the
console."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nmt.metrics import corpus_bleu

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

Command = Callable[..., subprocess.CompletedProcess[str]]

SOURCES = [
    " ".join(["word"] * (n % 7 + 1)) + ("</script><b>" if n == 3 else " z" if n % 5 == 0 else "")
    for n in range(60)
]
REFERENCES = [f"a{n % 3} b c d{n % 4} e" for n in range(60)]
FIRST = [line if n % 2 else line[:-2] for n, line in enumerate(REFERENCES)]
SECOND = [line if n % 3 else "a b" for n, line in enumerate(REFERENCES)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, command: Command, tiny: Path) -> Path:
    """A report of two outputs and a run."""
    folder = tmp_path_factory.mktemp("report")
    for name, lines in (("s", SOURCES), ("r", REFERENCES), ("first", FIRST), ("second", SECOND)):
        (folder / name).write_text("".join(line + "\n" for line in lines))
    for name, words in (
        ("s.vocab", ["word"]),
        ("t.vocab", ["a0", "a1", "a2", "b", "c", "e", "d0", "d1", "d2", "d3"]),
    ):
        (folder / name).write_text(
            f"#version: 1 vocabulary size={len(words)}\n" + "".join(f"{word}\t1\n" for word in sorted(words))
        )
    done = command(
        "nmt-analyze", "report", folder / "first", folder / "second", tiny / "run", "--names", "one", "two",
        "<run>", "-s", folder / "s", "-r", folder / "r",
        "--vocabulary", folder / "s.vocab", folder / "t.vocab", "--least", 1, "--samples", 20, "--beam-size",
        2, "--output", folder / "report.html",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "one: BLEU" in done.stderr and "<run>: BLEU" in done.stderr
    return folder / "report.html"


def test_it_is_one_file_without_network(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert (
        "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        and "https://" not in text
        and "src=" not in text
    )
    assert text.count("</script>") == 2  # the one in a source sentence is written otherwise


@pytest.fixture(scope="module")
def browser(page: Path) -> "Iterator[Chrome]":
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
        opened = webdriver.Chrome(
            options=options, service=webdriver.ChromeService(driver, env={**os.environ, "TMPDIR": short})
        )
        opened.get(page.as_uri())
        yield opened
        opened.quit()


def column(browser: "Chrome", table: str, number: int) -> list[str]:
    return [
        row.find_elements("tag name", "td")[number].text
        for row in browser.find_elements("css selector", f"#{table} tbody tr")
    ]


def test_the_summary_sorts(browser: "Chrome") -> None:
    names = column(browser, "systems", 0)
    assert names == ["one", "two", "<run>"]
    assert column(browser, "systems", 1)[0] == f"{corpus_bleu(FIRST, [REFERENCES]).score:.2f}"
    by_score = sorted(names, key=lambda name: -float(column(browser, "systems", 1)[names.index(name)]))
    button = browser.find_elements("css selector", "#systems th button")[1]
    button.click()
    assert column(browser, "systems", 0) == by_score
    button.click()
    assert column(browser, "systems", 0) == by_score[::-1]
    browser.find_elements("css selector", "#subsets th button")[0].click()
    assert column(browser, "subsets", 0) == sorted(column(browser, "subsets", 0), reverse=True)


def shown(browser: "Chrome") -> list[int]:
    return [
        int(article.get_attribute("data-line") or "")
        for article in browser.find_elements("css selector", "#sentences article")
    ]


def fill(browser: "Chrome", name: str, value: str) -> None:
    field = browser.find_element("id", name)
    if field.tag_name == "select":
        field.find_element("css selector", f'option[value="{value}"]').click()
    else:
        field.clear()
        field.send_keys(value)


def test_sentences_are_filtered(browser: "Chrome") -> None:
    assert shown(browser) == list(range(1, 21))
    browser.find_element("id", "more").click()
    assert shown(browser) == list(range(21, 41))
    fill(browser, "min-words", "7")
    long = [n + 1 for n, line in enumerate(SOURCES) if len(line.split()) >= 7]
    assert shown(browser) == long[:20]
    fill(browser, "max-unknown", "0")
    known = [n for n in long if SOURCES[n - 1].split()[-1] == "word"]
    assert shown(browser) == known[:20] and 0 < len(known) < len(long)
    fill(browser, "min-words", "")
    fill(browser, "max-unknown", "")
    browser.execute_script(
        "for (const id of ['min-words', 'max-unknown']) { byId(id).value = ''; } page = 0; show();"
    )
    fill(browser, "min-difference", "1")
    fill(browser, "sort", "difference")
    better = {
        n + 1 for n in range(60) if n % 3 == 0 and n % 2
    }  # where the second says `a b` and the first is right
    assert set(shown(browser)) >= better and not {n + 1 for n in range(60) if n % 3 and n % 2} & set(
        shown(browser)
    )
    fill(browser, "text", "</script>")
    browser.execute_script("byId('min-difference').value = ''; show();")
    assert shown(browser) == [4] and "</script><b>" in browser.find_element("id", "sentences").text


def test_curves_show_values_on_hover(browser: "Chrome") -> None:
    figures = browser.find_elements("css selector", "#charts figure")
    titles = [figure.find_element("tag name", "figcaption").text for figure in figures]
    assert (
        titles[:1] == ["BLEU by source length"]
        and "BLEU by unknown words of the source" in titles
        and "Learning curves: dev BLEU" in titles
    )
    from selenium.webdriver import ActionChains

    dot = figures[0].find_elements("css selector", "circle")[0]
    ActionChains(browser).move_to_element(dot).perform()
    tip = figures[0].find_element("css selector", ".tip")
    assert tip.is_displayed() and tip.text.startswith("one: BLEU ") and ", n = " in tip.text


def test_no_error_on_the_console(browser: "Chrome") -> None:
    assert browser.execute("getLog", {"type": "browser"})["value"] == []
