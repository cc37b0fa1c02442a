"""The HTML report in a real browser: it sorts, filters, reads out its charts, fits a phone, and writes no
error to the console."""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nmt.metrics import corpus_bleu
from tests.browser import opened, tab_stops, tabbable

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

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
    known = text.replace("https://github.com/leeoniya/uPlot", "")  # whose notice comes with it
    assert "http://" not in known and "https://" not in known
    assert "src=" not in text and "url(" not in text and "@import" not in text
    assert "Copyright (c) 2022 Leon Sorokin" in text
    assert text.count("</script>") == 2  # the one in a source sentence is written otherwise


def test_it_says_what_was_translated_by_what(page: Path) -> None:
    facts = re.findall("<dt>(.*?)</dt><dd[^>]*>(.*?)</dd>", page.read_text(encoding="utf-8"))
    said = dict(facts)
    assert "first" in said["one"] and "60 sentences" in said["test set"]
    assert "parameters" in said["&lt;run&gt;"] and said["&lt;run&gt;"].endswith("; beam 2")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", said["date"])


@pytest.fixture(scope="module")
def browser(page: Path) -> "Iterator[Chrome]":
    with opened(page) as found:
        yield found


def column(browser: "Chrome", table: str, number: int) -> list[str]:
    return [
        row.find_elements("css selector", "th, td")[number].text
        for row in browser.find_elements("css selector", f"#{table} tbody tr")
    ]


@pytest.mark.ci
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


def figure_of(browser: "Chrome", title: str) -> "WebElement":
    (found,) = [
        figure
        for figure in browser.find_elements("css selector", "#charts figure")
        if figure.find_element("tag name", "figcaption").text == title
    ]
    return found


def test_every_chart_is_there(browser: "Chrome") -> None:
    titles = [caption.text for caption in browser.find_elements("css selector", "#charts figcaption")]
    assert titles == [
        "BLEU by source length", "BLEU by reference length", "BLEU by length of the longer side",
        "BLEU by unknown words of the source", "Accuracy of words by their frequency in training",
        "Sentences by difference in chrF: two minus one", "Sentences by difference in chrF: <run> minus one",
        "Learning curves: dev cost", "Learning curves: dev BLEU",
    ]  # fmt: skip
    assert len(browser.find_elements("css selector", "#charts canvas")) == len(titles)


def test_a_chart_says_its_values_where_one_points(browser: "Chrome") -> None:
    from selenium.webdriver import ActionChains

    figure = figure_of(browser, "BLEU by source length")
    ActionChains(browser).move_to_element(figure.find_element("css selector", ".u-over")).perform()
    says = figure.find_element("css selector", ".readout").text
    assert "one: BLEU " in says and "(95%: " in says and ", n = 60 sentences" in says
    assert re.match(r"\d+ words \(0 to \d+\)", says)  # the window


@pytest.mark.ci
def test_a_chart_is_read_by_arrow_keys(browser: "Chrome") -> None:
    from selenium.webdriver.common.keys import Keys

    figure = figure_of(browser, "BLEU by unknown words of the source")
    chart, readout = (figure.find_element("css selector", f".{name}") for name in ("canvas", "readout"))
    said = []
    for key in (Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.END, Keys.ARROW_RIGHT):
        chart.send_keys(key)
        said.append(readout.text)
    assert said[0].startswith("0 at most this many (0 to 0), n = 47 sentences. one: BLEU ")
    assert said[1].startswith("1 at") and said[2] == said[0] and said[3] == said[4] == said[1]
    assert readout.get_attribute("aria-live") == "polite"
    row = figure.find_elements("css selector", "details tbody tr")[0]
    assert (row.get_attribute("textContent") or "").startswith("0 (0 to 0)47")


def test_the_legend_hides_a_curve(browser: "Chrome") -> None:
    from selenium.webdriver.common.keys import Keys

    figure = figure_of(browser, "BLEU by source length")
    first, _, _ = figure.find_elements("css selector", ".legend button")
    painted = """
        const canvas = arguments[0].querySelector("canvas"), context = canvas.getContext("2d");
        const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
        const probe = document.createElement("canvas").getContext("2d");
        probe.fillStyle = css("--series-0"); probe.fillRect(0, 0, 1, 1);
        const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
        const far = (i) => [r, g, b].reduce((sum, one, part) => sum + Math.abs(pixels[i + part] - one), 0);
        let count = 0;
        for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] > 200 && far(i) < 60) count++;
        return count;"""
    chart, readout = (figure.find_element("css selector", f".{name}") for name in ("canvas", "readout"))
    chart.send_keys(Keys.HOME)
    assert browser.execute_script(painted, figure) > 50 and "one: BLEU" in readout.text
    first.send_keys(Keys.ENTER)
    assert first.get_attribute("aria-pressed") == "false"
    assert "one: BLEU" not in readout.text and "two: BLEU" in readout.text
    wait(browser, lambda: browser.execute_script(painted, figure) == 0)
    first.click()
    wait(browser, lambda: browser.execute_script(painted, figure) > 50)


def wait(browser: "Chrome", condition: Callable[[], bool]) -> None:
    """Until the browser has drawn."""
    from selenium.webdriver.support.wait import WebDriverWait

    WebDriverWait(browser, 120, 0.05).until(lambda _: condition())


def test_differences_from_the_reference_are_marked(browser: "Chrome") -> None:
    """Line 1: the first system leaves the last word out, the second says "a b"."""
    browser.execute_script("byId('text').value = ''; byId('sort').value = 'line'; page = 0; show();")
    line = browser.find_element("css selector", 'article[data-line="1"]')

    def texts(kind: str) -> list[str]:
        return [mark.text for mark in line.find_elements("css selector", f"mark.{kind}")]

    assert REFERENCES[0] == "a0 b c d0 e" and FIRST[0] == "a0 b c d0" and SECOND[0] == "a b"
    assert "a" in texts("wrong")
    marks = {mark.text: mark for mark in line.find_elements("css selector", "mark.missed, mark.partly")}
    assert "one, two" in (marks["e"].get_attribute("title") or "") and "b" not in texts("missed")
    browser.find_element("id", "marks").click()
    assert not browser.find_elements("css selector", "article mark")
    browser.find_element("id", "marks").click()


def test_words_are_compared(browser: "Chrome") -> None:
    def kinds(hypothesis: str, reference: str) -> list[object]:
        script = (
            "const match = matchWords(arguments[0], arguments[1]);"
            "return [match.kinds, [...match.covered].sort()];"
        )
        found = browser.execute_script(script, hypothesis.split(), reference.split())
        assert isinstance(found, list)
        return found

    assert kinds("a b c", "a b c") == [["", "", ""], [0, 1, 2]]
    assert kinds("a x c", "a b c") == [["", "wrong", ""], [0, 2]]
    assert kinds("c a b", "a b c") == [["moved", "", ""], [0, 1, 2]]
    assert kinds("a a", "a") == [["", "wrong"], [0]] and kinds("", "a") == [[], []]


@pytest.mark.ci
def test_tab_reaches_every_control(browser: "Chrome") -> None:
    stops = tabbable(browser)
    assert tab_stops(browser) == stops and len(stops) > 40


@pytest.mark.ci
def test_the_contents_lead_to_each_section(browser: "Chrome") -> None:
    links = browser.find_elements("css selector", "#contents a")
    shown = [one for one in browser.find_elements("css selector", "main > section") if one.is_displayed()]
    assert [one.text for one in links] == [one.find_element("tag name", "h2").text for one in shown]
    for link, section in zip(links, shown, strict=True):
        link.click()
        assert browser.execute_script("return document.querySelector(':target')") == section


@pytest.mark.ci
def test_nothing_is_cut_off_on_a_phone(browser: "Chrome") -> None:
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        right = "(one) => one.getBoundingClientRect().right"
        widest = f"return Math.max(...[...document.querySelectorAll('canvas')].map({right}))"
        wait(browser, lambda: browser.execute_script(widest) <= 390)
        assert browser.execute_script("return document.documentElement.scrollWidth") == 390
        outside = """
            const outer = (one) => !one.closest(".scroll, .heard, .uplot");
            const over = (one) => outer(one) && one.getBoundingClientRect().right > 391;
            return [...document.querySelectorAll("main *")].filter(over).map((one) => one.outerHTML);"""
        assert browser.execute_script(outside) == []
        tables = "[...document.querySelectorAll('#systems, #subsets')]"
        hidden = f"return {tables}.filter((one) => one.scrollWidth > one.parentNode.clientWidth).length"
        assert browser.execute_script(hidden) == 0, "their last column is seen without scrolling"
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.ci
def test_dark_mode_and_print(browser: "Chrome") -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    line = "return css('--series-0')"
    light = browser.execute_script(ground), browser.execute_script(line)
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    assert browser.execute_script(ground) != light[0] and browser.execute_script(line) != light[1]
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")  # on paper all is light
    assert browser.execute_script(line) == light[1]
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert browser.execute_script(line) != light[1]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not browser.find_element("id", "filters").is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_no_error_on_the_console(browser: "Chrome") -> None:
    found = browser.execute("getLog", {"type": "browser"})["value"]
    assert [entry for entry in found if "getImageData" not in entry["message"]] == []  # that is our own


@pytest.mark.ci
def test_without_its_script_the_page_has_all_numbers(page: Path) -> None:
    text = re.sub(r"<script.*?</script>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert f'data-value="{corpus_bleu(FIRST, [REFERENCES]).score}"' in text
    assert text.count("<details>") == 9 and "right in <bdi>one</bdi>, not in <bdi>&lt;run&gt;</bdi>" in text
    assert "<noscript>" in text
