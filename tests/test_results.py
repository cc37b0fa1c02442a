"""The tables of README.md and docs/results.md say what the files of docs/results say, and a number can be
repeated by its commands."""

import re
from pathlib import Path

import pytest

from docs.site import results
from docs.site.results import Measurement
from nmt.errors import DataError

ROOT = Path(__file__).resolve().parents[1]
OURS = [name for name in results.names() if results.read_result(name).source == "ours"]
TINY = """what: two lines
data: ours
setting: ''
notes: recipes/quickstart/README.md#notes
metric: words
values:
  words: {{value: '4', tolerance: 0.5, print: wc -w < words}}
  other: {{value: '7'}}
commands: ['printf "%s\\n" {text} > words']
seeds: none
source: {source}
machine: unknown
commit: unknown
date: unknown
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of results with one of four words, and one of three."""
    for name, text in (("four", "a b c d"), ("three", "a b c"), ("failing", "a && exit 3 #")):
        (tmp_path / f"{name}.yaml").write_text(TINY.format(text=text, source="ours"))
    (tmp_path / "theirs.yaml").write_text(TINY.format(text="a b c d", source="user"))
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    return tmp_path


def test_the_tables_are_those_of_the_files() -> None:
    """Red after an edit by hand: `make results-tables` writes them."""
    pages = dict(results.pages())
    assert {path.name for path in pages} == {"README.md", "results.md"}
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run make results-tables"


def test_an_edit_by_hand_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for page in ("README.md", "docs/results.md"):
        (tmp_path / page).parent.mkdir(exist_ok=True)
        (tmp_path / page).write_text((ROOT / page).read_text(encoding="utf-8").replace(" 70.97 ", " 71.97 "))
    monkeypatch.setattr(results, "ROOT", tmp_path)
    for path, text in results.pages():
        assert "71.97" in path.read_text() and text == (ROOT / path.relative_to(tmp_path)).read_text()


def test_every_result_is_in_a_table_and_leads_to_its_notes() -> None:
    tables = results.read_yaml(results.FOLDER / results.TABLES)
    listed = {name for spec in tables.values() for name in spec["rows"]}  # type: ignore[index]
    assert listed == set(results.names())
    for name in results.names():
        file, _, anchor = results.read_result(name).notes.partition("#")
        headings = re.findall(r"(?m)^#+ (.*)$", (ROOT / file).read_text(encoding="utf-8"))
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in anchors, f"{name}: {file} has no heading {anchor}"


def test_commands_name_recipes_that_exist() -> None:
    for name in results.names():
        for line in results.read_result(name).commands:
            for script in re.findall(r"recipes/[\w/]+\.(?:sh|py)", line):
                assert (ROOT / script).exists(), f"{name}: {script}"


def test_at_most_six_results_in_the_readme() -> None:
    assert len(results.read_yaml(results.FOLDER / results.TABLES)["readme"]["rows"]) <= 6  # type: ignore[index]


@pytest.mark.parametrize(
    ("value", "tolerance", "number", "agrees"),
    [
        ("70.97", 4.0, 66.98, True),
        ("70.97", 4.0, 66.97, True),  # the bound itself
        ("70.97", 4.0, 66.9, False),
        ("1.70", 0.0, 1.7, True),
        ("1.70", 0.0, 1.71, False),
        ("1.70", 9.0, float("nan"), False),
    ],
)
def test_comparison(value: str, tolerance: float, number: float, agrees: bool) -> None:
    assert Measurement(value, tolerance).agrees(number) is agrees


@pytest.mark.parametrize(("name", "status"), [("four", 0), ("three", 1), ("failing", 1)])
def test_repetition(
    name: str, status: int, tiny: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert results.repeat(name, tmp_path / "runs") == status
    out, err = capfd.readouterr()
    if name == "failing":
        assert err == "failing: the command above ended with exit status 3\n"
    else:
        verdict = {"four": "4\t4\t0.5\tagrees", "three": "4\t3\t0.5\tdiffers"}[name]
        assert f"words\t{verdict}\nother\t7\t\t\tnot repeated: no command prints it\n" in out


@pytest.mark.parametrize(("name", "message"), [("nothing", "no result is named"), ("theirs", "set NMT_DATA")])
def test_what_cannot_be_repeated(
    name: str, message: str, tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NMT_DATA", raising=False)
    assert results.main(["repeat", name]) == 2
    _, err = capsys.readouterr()
    assert message in err and err.count("\n") == 1


@pytest.mark.parametrize(("line", "key"), [("extra: 1", "extra"), ("", "seeds")])
def test_wrong_keys_are_named(line: str, key: str, tiny: Path) -> None:
    path = tiny / "four.yaml"
    text = path.read_text()
    path.write_text(f"{text}{line}\n" if line else text.replace("seeds: none\n", ""))
    with pytest.raises(DataError, match=rf"four\.yaml: keys unknown or missing: {key}"):
        results.read_result("four")


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_results_on_our_own_text_can_be_repeated(name: str, tmp_path: Path) -> None:
    assert results.repeat(name, tmp_path) == 0
