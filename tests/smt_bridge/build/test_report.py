"""The report page of a built system."""

import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest

from nmt.analysis import report
from nmt.analysis.curves import LearningCurve
from nmt.analysis.systems import SystemOutput, TestSet
from nmt.errors import DataError
from nmt.io import files
from nmt.metrics import corpus_bleu
from smt_bridge.build import budget, evaluation, student, tuning
from smt_bridge.build.config import Build, BuildConfig, write_record
from smt_bridge.build.evaluation import Evaluation
from smt_bridge.build.report import (
    SIGNATURE,
    Facts,
    FeatureFacts,
    NetworkFacts,
    StepFacts,
    SystemFacts,
    candidate_facts,
    chosen_reason,
    gather_facts,
    html,
    write,
)
from tests.browser import opened
from tests.smt_bridge.build.builds import decodable, small_plan

# ---- test report -------------------------------------------------------------------------------------------


NASTY = '<b onclick="x">&</script>{{data}}'
REFERENCES = [f"a{n % 3} b c d{n % 4} e" for n in range(60)]
SOURCES = [" ".join(["word"] * (n % 7 + 1)) for n in range(60)]
TEST = TestSet(SOURCES, [REFERENCES])
DEV = [
    SystemOutput("phrase-based", [line if n % 2 else line[:-2] for n, line in enumerate(REFERENCES)], TEST),
    SystemOutput("neural", [line if n % 3 else "a b" for n, line in enumerate(REFERENCES)], TEST),
    SystemOutput("hybrid", [line if n % 5 else "a b c d e" for n, line in enumerate(REFERENCES)], TEST),
]
CURVES: dict[str, LearningCurve] = {
    "train cost": [(10, 9.0)], "dev cost": [(200, 30.5), (400, 25.25)],
    "dev BLEU": [(200, 20.0), (400, 35.0)],
}  # fmt: skip
FACTS = Facts(
    title="English to French",
    dev=DEV,
    bleu=61.5,
    reason="It has the highest BLEU on dev.",
    candidates=[
        SystemFacts("phrase-based", 58.25, p=0.0123),
        SystemFacts("hybrid", 61.5, chosen=True, note="three parts"),
    ],
    bleu_without={"joint model": 60.25, "attention model": 59.0},
    p_values={"joint model": 0.25, "attention model": 0.001},
    sizes={"pairs read": 29_000, "pairs kept": 28_990},
    steps=[StepFacts("align", 90, 60), StepFacts("train attention", 1800, 2400), StepFacts("train cslm", 60)],
    networks=[
        NetworkFacts("attention", "attention model, 256 hidden units", 12_345_678, 400, 4, CURVES),
        NetworkFacts("joint", "joint model", 1_000, curves={"dev cost": [(100, float("nan")), (200, 3.0)]}),
    ],
    features=[FeatureFacts("TranslationModel0", [0.2, 0.1], "phrase table"), FeatureFacts("LM0", [0.5])],
    notes=["No monolingual text was given."],
    command="smt-build --source train.en",
)


def text_of(page: str, title: str) -> str:
    """The text of a section."""
    (found,) = re.findall(rf"<section[^>]*>\s*<h2>{title}</h2>(.*?)</section>", page, re.DOTALL)
    return " ".join(re.sub("<[^>]*>", " ", found).split())


@pytest.fixture(scope="module")
def page() -> str:
    return html(FACTS, samples=20)


def test_the_page_says_all_facts(page: str) -> None:
    system = text_of(page, "The system")
    assert "hybrid 61.50 yes \u2013 three parts" in system and "phrase-based 58.25 0.012" in system
    assert FACTS.reason in system and FACTS.notes[0] in system and FACTS.command in system
    assert f"dev BLEU: {escape(SIGNATURE)}" in system and "No test set was given" in system
    parts = text_of(page, "What each part adds")
    assert "joint model 60.25 1.25 0.250 tuned again" in parts and "attention model 59.00 2.50 0.001" in parts
    assert "pairs read 29,000 pairs kept 28,990" in text_of(page, "Sizes")
    steps = text_of(page, "Steps")
    assert "took 41.0 minutes; 32.5 were planned" in steps
    assert "align 1.50 1.00" in steps and steps.endswith("train cslm 1.00 \u2013")
    networks = text_of(page, "Networks")
    assert "attention 12,345,678 400 4.0 attention model" in networks and "train cost" not in networks
    weights = text_of(page, "Weights of the tuned system")
    assert "TranslationModel0 1 0.2000 phrase table TranslationModel0 2 0.1000" in weights
    assert "LM0 0.5000" in weights


def test_the_head_says_what_was_built() -> None:
    page = html(replace(FACTS, about={"search": "stack 100", "date": "2024-02-03"}), samples=2)
    said = dict(re.findall("<dt>(.*?)</dt><dd[^>]*>(.*?)</dd>", page))
    assert said["system"] == "hybrid: phrase table" and "12,345,678 parameters" in said["networks"]
    assert (said["search"], said["date"]) == ("stack 100", "2024-02-03")
    assert said["training text"] == "29,000 pairs read, 28,990 pairs kept"
    contents = re.findall('<li><a href="#([a-z-]+)">(.*?)</a>', page)
    assert ("parts", "What each part adds") in contents and len(contents) == len(set(contents)) > 8


def test_dev_is_said_to_be_tuned_on(page: str) -> None:
    dev = text_of(page, "Development set")
    score = corpus_bleu(DEV[2].hypotheses, [REFERENCES])
    assert "The weights were tuned" in dev and f"hybrid {score.score:.2f}" in dev and "tok:13a|" in dev


def test_each_chart_shows_its_own_numbers(page: str) -> None:
    """Learning curves come before the charts of dev."""
    charts = json.loads(page.split('id="data">')[1].split("</script>")[0])["charts"]
    captions = re.findall(r'<figcaption>(.*?)</figcaption>.*?data-chart="(\d+)"', page)
    assert [int(number) for _, number in captions] == list(range(len(charts)))
    titles = [chart["title"] for chart in charts]
    assert [caption for caption, _ in captions] == titles
    assert titles[:3] == ["attention: dev cost", "attention: dev BLEU", "joint: dev cost"]
    assert charts[2]["series"][0]["points"] == [[200, 3.0, None, None, None, ""]]  # without nan


def test_names_and_texts_are_escaped() -> None:
    facts = Facts(
        title=NASTY,
        dev=[SystemOutput(NASTY, [NASTY], TestSet([NASTY], [[NASTY]]))],
        bleu=1.0,
        reason=NASTY,
        candidates=[SystemFacts(NASTY, 1.0, note=NASTY)],
        bleu_without={NASTY: 1.0},
        p_values={},
        sizes={NASTY: 1},
        steps=[StepFacts(NASTY, 1.0)],
        networks=[NetworkFacts(NASTY, NASTY, 1, curves={"dev cost": [(1, 2.0)]})],
        features=[FeatureFacts(NASTY, [1.0], NASTY)],
        notes=[NASTY],
        command=NASTY,
    )
    page = html(facts, samples=2)
    assert "<b " not in page and page.count("</script>") == 2
    assert page.count('<script type="application/json"') == 1  # what looks like a mark stays as it is


def test_without_networks_there_is_no_section_of_them() -> None:
    titles = re.findall("<h2>(.*?)</h2>", html(replace(FACTS, networks=[]), samples=2))
    assert "Networks" not in titles and {"The system", "Steps", "Development set"} <= set(titles)


def test_the_same_facts_give_the_same_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name / "report.html", FACTS, samples=20)
    assert (tmp_path / "one/report.html").read_bytes() == (tmp_path / "two/report.html").read_bytes()


@pytest.mark.ci
def test_it_opens_without_an_error_and_fits_a_phone(tmp_path: Path) -> None:
    write(tmp_path / "report.html", replace(FACTS, command="smt-build " + "x" * 200), samples=20)
    with opened(tmp_path / "report.html") as browser:
        drawn = browser.find_elements("css selector", ".plot canvas")
        assert len(drawn) == len(browser.find_elements("css selector", ".plot")) > 6
        metrics = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.execute_script("document.querySelectorAll('details').forEach((one) => one.open = true);")
        assert browser.execute_script("return document.documentElement.scrollWidth") == 390
        assert browser.get_log("browser") == []  # type: ignore[no-untyped-call]


# ---- test facts --------------------------------------------------------------------------------------------
# What the report of a build is told.


def test_the_report_has_what_the_steps_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = decodable(tmp_path, 8)
    for name in ("source", "target"):
        (build.work / "corpus" / f"truecase.{name}").write_text("the (1/1)\n")
    tuning.tune_phrase_based(build)
    evaluation.evaluate(build)
    files.write_text(build.work / budget.FILE, ['{"corpus": 1.2, "tune": 2}'])
    made, found = gather_facts(build), evaluation.read_evaluation(build)
    assert [one.name for one in made.candidates] == ["phrase-based"] and made.candidates[0].chosen
    assert made.bleu == 100 * found.list_bleu and "phrase-based system alone" in made.reason
    assert set(made.bleu_without) == {"count language model", "lexical reordering"}
    assert {one.name: one.took for one in made.steps if one.took} == {"corpus": 1.2, "tune": 2}
    assert made.about["date"] == report.newest_date([build.work / evaluation.FILE])
    assert made.about["languages"] == "en to fr" and "stack" in made.about["search"]
    assert made.sizes == {"pairs read": 3, "lines used for tuning": 8}
    assert len(made.dev[0].test.sources) == len(made.dev[0].hypotheses) == 8
    assert {one.name for one in made.features} >= {"LM0", "TranslationModel0"} and not made.networks


@pytest.mark.parametrize(("version", "computed"), [("nmt-ctranslate2 1", "int8"), ("1", "by torch")])
def test_the_student_is_described_as_it_is_computed(tmp_path: Path, version: str, computed: str) -> None:
    build = Build(BuildConfig("a.en", "a.fr", "b.en", "b.fr", str(tmp_path)), small_plan())
    scores = student.StudentEvaluation("hybrid", 0.5, 0.4, 0.01, 2.0, 20.0)
    write_record(build.work / student.EVALUATION, scores)
    files.write_text(build.work / student.DONE, [version])
    row = candidate_facts(build, Evaluation("hybrid", {}, 0.5))[-1]
    assert row.name == "student" and f"{computed}, beam 5" in row.note


def test_a_late_build_says_why_it_has_no_networks(tmp_path: Path) -> None:
    build = Build(BuildConfig("a.en", "a.fr", "b.en", "b.fr", str(tmp_path)), small_plan())
    result = Evaluation("phrase-based", {}, 0.5)
    assert "the corpus or the budget is too small" in chosen_reason(build, result)
    build.plan.decisions["networks"] = "behind schedule before networks"
    assert "the build was behind its plan" in chosen_reason(build, result)


@pytest.mark.parametrize("text", ['{"chosen": "hybrid", "whole": {}, "lists": 0.5}', "{", "[]", "\udcff"])
def test_an_evaluation_of_another_version(text: str, tmp_path: Path) -> None:
    build = Build(BuildConfig("a.en", "a.fr", "b.en", "b.fr", str(tmp_path)), small_plan())
    build.work.mkdir()
    (build.work / evaluation.FILE).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=r"evaluation\.json: damaged, or written by another version"):
        evaluation.read_evaluation(build)
