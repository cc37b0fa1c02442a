"""The options of smt-build, and errors that are reported before anything is written."""

from pathlib import Path
from types import ModuleType

import pytest

from nmt.compute import device
from nmt.io import files
from smt_bridge.build.plan import REFERENCE_FLOPS
from smt_bridge.cli.build import main, parse_seconds, parser
from tests.conftest import refusal
from tests.nmt.formats.test_parallel_text import Writer, every_format, tsv
from tests.smt_bridge.build.builds import config, write_plan


@pytest.mark.parametrize(("text", "found"), [("90m", 5400), ("1h30m", 5400), ("1.5h", 5400), ("300s", 300)])
def test_times(text: str, found: int) -> None:
    assert parse_seconds(text) == found


@pytest.fixture
def given(tmp_path: Path, grammar: ModuleType) -> list[str]:
    made = config(tmp_path, grammar, 30)
    options = [f"--source={made.source}", f"--target={made.target}", f"--output={made.output}"]
    return [*options, f"--dev-source={made.dev_source}", f"--dev-target={made.dev_target}"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("--budget=90", "'90' is not a time, expected e.g. 90m, 1h30m or 300s"),
        ("--budget=5s", "5s is out of range, expected 1m to 27777h"),
        ("--budget=30000h", "30000h is out of range, expected 1m to 27777h"),
        ("--workers=0", "--workers"),
        ("--source=none.en", "none.en: cannot read: No such file"),
        ("--target={dir}/dev.fr", "dev.fr: 20 lines, but"),
        ("--dev-target={dir}/train.fr", "lines"),
        ("--output={dir}", "lies in the output folder"),
        ("--output={dir}/train.en", "is also read"),
        ("--output={dir}/train.en/new", "train.en"),
        ("--source-language=xx", "--source-language: 'xx' is unknown"),
        ("--source=-", "give files, not -"),
        ("--plan={dir}/train.en", "not a plan of smt-build"),
        ("--glossary=none.tsv", "none.tsv"),
        ("--student-minutes=0", "--student-minutes"),
        ("--student-references", "--student-references goes with --student"),
        ("--student-minutes=5", "--student-minutes goes with --student"),
        ("--monolingual-source={dir}/train.en", "--monolingual-source goes with --student"),
        ("--glossary={dir}/train.en", "train.en:1: "),
    ],
)
def test_mistakes(
    change: str, message: str, given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    option = change.split("=")[0] + "="
    words = [word for word in given if not word.startswith(option)] + [change.format(dir=tmp_path)]
    assert message in refusal(main, capsys, *words)
    assert not (tmp_path / "system").exists()


def test_a_plan_is_read_before_the_texts(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smt_bridge.cli.build.print_survey", lambda *_: pytest.fail("the texts are read"))
    assert "not a plan of smt-build" in refusal(main, capsys, *given, f"--plan={tmp_path}/train.en")


def test_a_dry_run_prints_the_plan_and_makes_nothing(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smt_bridge.build.plan.measure_speed", lambda: REFERENCE_FLOPS)
    monkeypatch.setattr("nmt.compute.device.choose_back_end", lambda: device.BackEndChoice("mkl"))
    assert main([*given, "--dry-run", "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert "30 pairs" in shown and "attention: left out, 30 pairs are too few" in shown
    assert "all steps" in shown and " of 1 h 30 min" in shown and not (tmp_path / "system").exists()
    assert main([*given, "--dry-run", "--quiet", "--student", "--student-minutes", "20"]) == 0
    with_student = capsys.readouterr().out
    assert with_student.startswith(shown) and "of 20 min 0 s, besides the budget" in with_student


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (
            ["--dev-source={dir}/train.en", "--dev-target={dir}/train.fr"],
            "pairs that are also in the training text: 30",
        ),
        (["--target={dir}/train.en"], "pairs with identical sides: 30"),
        (["--dev-source={dir}/dev.fr", "--dev-target={dir}/dev.en"], "development set swapped?"),
    ],
)
def test_the_survey_of_the_texts_stands_above_the_plan(
    change: list[str],
    finding: str,
    given: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the form of nmt-init."""
    monkeypatch.setattr("smt_bridge.build.plan.measure_speed", lambda: REFERENCE_FLOPS)
    monkeypatch.setattr("nmt.compute.device.choose_back_end", lambda: device.BackEndChoice("mkl"))
    assert main([*given, "--dry-run", "--quiet"]) == 0
    assert finding not in capsys.readouterr().out
    assert main([*given, *(word.format(dir=tmp_path) for word in change), "--dry-run", "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert finding in shown.partition("this machine: ")[0]


@every_format
def test_documents_instead_of_line_files(
    writer: Writer, given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same plan; the survey names the documents."""
    plan = ["--plan", write_plan(tmp_path / "plan.json"), "--dry-run", "--quiet"]
    assert main([*given, *plan]) == 0
    expected = capsys.readouterr().out
    words, options = ["--languages", "en", "fr"], {"--parallel": "train", "--dev-parallel": "dev"}
    for option, name in options.items():
        texts = files.parallel(tmp_path / f"{name}.en", tmp_path / f"{name}.fr")
        (tmp_path / name).mkdir()
        paths = writer(tmp_path / name, [(source, target) for source, target in texts])
        words += [option, *map(str, paths)]
        for language in ("en", "fr"):
            expected = expected.replace(f"{tmp_path}/{name}.{language}", f"{paths[0].name}.{language}")
    assert main([word for word in given if "--output" in word] + words + plan) == 0
    assert capsys.readouterr().out == expected and not (tmp_path / "system").exists()


def test_a_build_of_documents_needs_both_texts(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = tsv(tmp_path, [("a", "b")])
    words = [f"--output={tmp_path}/system", "--languages", "en", "fr", "--parallel", str(path)]
    assert "--dev-source, --dev-target: missing; give two line files, or --dev-parallel" in refusal(
        main, capsys, *words
    )
    assert "--source, --target, --parallel: give either" in refusal(main, capsys, *given, *words)


def test_a_build_that_goes_on_is_not_surveyed_again(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = ["--plan", write_plan(tmp_path / "plan.json")]
    assert main([*given, *plan, "--dry-run", "--quiet"]) == 0
    assert "train.en: 30 lines" in capsys.readouterr().out
    files.write_text(tmp_path / "system" / "build" / "build.json", ["{}"])
    assert main([*given, *plan, "--dry-run", "--quiet"]) == 0
    assert "train.en" not in capsys.readouterr().out


def test_the_defaults_are_those_of_the_settings(given: list[str]) -> None:
    args = parser().parse_args(given)
    assert (args.budget, args.workers, args.seed, args.plan) == (5400, 2, 1, "")
