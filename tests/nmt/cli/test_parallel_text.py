"""The options --parallel, --languages and --columns: commands do with a document what they do with two line
files of the same text."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.cli import clean, init
from tests.conftest import refusal
from tests.nmt.formats.test_parallel_text import Writer, every_format, trados_tmx, tsv

PAIRS = [
    (f"The man number {n} sleeps in the house of a dog.", f"L'homme numéro {n} dort dans la maison.")
    for n in range(60)
]
Command = Callable[..., int]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, number in (("text.en", 0), ("text.fr", 1)):
        Path(name).write_text("".join(f"{pair[number]}\n" for pair in PAIRS), encoding="utf-8")
    return tmp_path


def given(paths: list[Path], option: str = "--parallel") -> list[str]:
    return [option, *(path.name for path in paths), "--languages", "en", "fr"]


@every_format
def test_clean(writer: Writer, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--output-source", "out.en", "--output-target", "out.fr"]
    expected = [path.read_bytes() for path in cleaned(["-s", "text.en", "-t", "text.fr"], out)]
    capsys.readouterr()
    assert [path.read_bytes() for path in cleaned(given(writer(folder, PAIRS)), out)] == expected
    units = 120 if writer.__name__ in ("xliff_12", "xliff_20") else 60
    assert f": {units} units, 60 pairs" in capsys.readouterr().err


def cleaned(texts: list[str], out: list[str]) -> list[Path]:
    assert clean.main([*texts, *out, "--ratio", "0", "--max-length", "11"]) == 0
    return [Path("out.en"), Path("out.fr")]


@every_format
def test_init(writer: Writer, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same configuration and texts; findings name the document and the number of the pair."""
    paths = writer(folder, [*PAIRS, ("The man sleeps.", "The man sleeps.")])
    for name in ("text.en", "text.fr"):
        with open(name, "a", encoding="utf-8") as stream:
            stream.write("The man sleeps.\n")
    assert init.main(["one", *given(paths), "--no-measure", "-q"]) == 0
    printed = capsys.readouterr().out
    assert init.main(["two", "-s", "text.en", "-t", "text.fr", "--no-measure", "-q"]) == 0
    name = paths[0].name
    assert printed.replace(f"{name}.", "text.") == capsys.readouterr().out.replace("two", "one")
    assert f"{name}.en: 61 lines; Latin script, probably en" in printed
    for part in ("train.en", "train.fr", "dev.en", "dev.fr", "config.yaml"):
        assert Path("one", part).read_text() == Path("two", part).read_text().replace("two/", "one/")


def test_init_keeps_the_texts_beside_a_given_development_set(folder: Path) -> None:
    (dev,) = trados_tmx(folder, PAIRS[:9])
    lines = ["-s", "text.en", "-t", "text.fr"]
    assert init.main(["new", *lines, *given([dev], "--dev-parallel"), "--no-measure"]) == 0
    config = Path("new/config.yaml").read_text()
    assert "  train_source: text.en\n" in config and "  dev_target: new/dev.fr\n" in config
    assert sorted(path.name for path in Path("new").iterdir()) == ["config.yaml", "dev.en", "dev.fr"]
    assert Path("new/dev.fr").read_text() == "".join(f"{b}\n" for _, b in PAIRS[:9])
    (text,) = tsv(folder, PAIRS)
    assert init.main(["all", *given([text]), "--dev-parallel", dev.name, "--no-measure"]) == 0
    assert Path("all/train.en").read_text() == Path("text.en").read_text()
    assert "  train_source: all/train.en\n" in Path("all/config.yaml").read_text()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "--source, --target: missing; give two line files, or --parallel with --languages"),
        (["-s", "text.en"], "--source, --target: give both or neither"),
        (
            ["--parallel", "x.tmx", "-s", "text.en"],
            "--source, --target, --parallel: give either the first two",
        ),
        (["--parallel", "x.tmx"], "--languages: missing; name the languages of both sides"),
        (
            ["-s", "text.en", "-t", "text.fr", "--languages", "en", "fr"],
            "--languages: is for --parallel; leave",
        ),
        (
            ["-s", "text.en", "-t", "text.fr", "--columns", "1", "2"],
            "--columns: is for a .tsv file given with",
        ),
        (["--parallel", "two.tsv", "--languages", "en", "en"], "source and target are the same; name two"),
        (
            ["--parallel", "two.tsv", "--languages", "en", "fr", "--columns", "2", "2"],
            "source and target are the same; name two",
        ),
        (
            ["--parallel", "text.en", "--languages", "en", "fr"],
            "text.en: its ending says no format, expected",
        ),
        (["--parallel", "-", "--languages", "en", "fr"], "<stdin>: its ending says no format, expected one"),
        (["--parallel", "none.tmx", "--languages", "en", "fr"], "none.tmx: cannot read: No such file"),
        (["--parallel", "two.tsv", "--languages", "en", "fr", "--columns", "1", "3"], "two.tsv:1: 2 columns"),
    ],
)
@pytest.mark.parametrize(
    ("command", "outputs"),
    [(clean.main, ["--output-source", "x", "--output-target", "y"]), (init.main, ["new", "--no-measure"])],
)
def test_refusals(
    argv: list[str],
    message: str,
    command: Command,
    outputs: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tsv(folder, PAIRS)
    before = sorted(folder.rglob("*"))
    assert message in refusal(command, capsys, *outputs, *argv)
    assert sorted(folder.rglob("*")) == before


def test_a_document_is_never_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = tsv(folder, PAIRS)
    out = ["--output-source", path.name, "--output-target", "y"]
    assert "an input is never overwritten" in refusal(clean.main, capsys, *given([path]), *out)
