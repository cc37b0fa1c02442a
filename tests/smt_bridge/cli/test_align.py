"""smt-align: both directions and their symmetrization, from a method, files, or an aligner of a plugin; bad
input."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.errors import DataError
from nmt.formats import pharaoh
from nmt.formats.pharaoh import Links
from smt_bridge.cli import align
from smt_bridge.extraction import alignment
from tests.conftest import Command

Refused = Callable[..., str]


@pytest.mark.ci
@pytest.mark.parametrize("method", [name for name in alignment.ALIGNERS if name != "eflomal"])
def test_command_aligns_and_repeats_itself(
    method: str, smt_model: Path, tmp_path: Path, command: Command
) -> None:
    texts = ["-s", smt_model / "dev.en", "-t", smt_model / "dev.fr"]
    outputs = "-o a --forward-output f --reverse-output r".split()
    assert command("smt-align", *texts, "--method", method, *outputs, cwd=tmp_path).returncode == 0
    assert command("smt-align", *texts, "--method", method, "-o", "b", cwd=tmp_path).returncode == 0
    text = (tmp_path / "a").read_bytes()
    assert text == (tmp_path / "b").read_bytes()
    assert text.count(b"\n") == 60 and text.count(b"-") > 200
    again = command("smt-align", *texts, "--forward", "f", "--reverse", "r", cwd=tmp_path)
    assert again.stdout.encode() == text


def test_empty_sides_get_no_links(tmp_path: Path, command: Command) -> None:
    (tmp_path / "s").write_text("a b\n\nc\na c\n")
    (tmp_path / "t").write_text("x y\nz\n\nx z\n")
    done = command("smt-align", "-s", tmp_path / "s", "-t", tmp_path / "t")
    assert done.returncode == 0 and "2 sentence pairs get no links" in done.stderr
    lines = done.stdout.split("\n")
    assert len(lines) == 5 and lines[1] == lines[2] == "" and lines[0]


def test_bad_input(tmp_path: Path, command: Command, refused: Refused) -> None:
    (tmp_path / "s").write_text("a b\nc\n")
    (tmp_path / "f").write_text("0-0\n0-1\n")
    for target, more, message in (
        ("x\n", "-o out", "t: 1 line, but"),
        ("\n\n", "-o out", "nothing to align"),
        ("x\ny\n", "-o out --forward f --reverse f", "f:2: point 0-1 is outside"),
        ("x\ny\n", "-o out --forward f", "--forward and --reverse go together"),
        ("x\ny\n", "-o out --forward f --reverse f --workers 2", "leave nothing to compute"),
        (
            "x\ny\n",
            "-o out --forward f --reverse f --method hmm",
            "have the links already; leave --method out",
        ),
    ):
        (tmp_path / "t").write_text(target)
        assert message in refused(command("smt-align", *f"-s s -t t {more}".split(), cwd=tmp_path))
        assert not (tmp_path / "out").exists()
    with pytest.raises(DataError, match=r"f:3: '1\?2' is not an alignment point"):
        pharaoh.parse("0-0 1?2", "f:3")


@pytest.mark.ci
def test_without_an_aligner(tmp_path: Path, command: Command, refused: Refused) -> None:
    (tmp_path / "thot").mkdir()
    (tmp_path / "thot" / "__init__.py").write_text("raise ImportError('not here')\n")
    (tmp_path / "s").write_text("a\n")
    for name, more in (("smt-align", []), ("smt-train", [tmp_path / "model"])):
        line = refused(
            command(
                *(name, *more, "-s", tmp_path / "s", "-t", tmp_path / "s", "--method", "hmm"),
                PYTHONPATH=str(tmp_path),
            )
        )
        assert "nmt-smt[smt]" in line and "sil-thot" in line
    assert not (tmp_path / "model").exists()


@pytest.mark.ci
def test_eflomal_that_is_not_installed(tmp_path: Path, command: Command, refused: Refused) -> None:
    (tmp_path / "s").write_text("a\n")
    texts = ["-s", tmp_path / "s", "-t", tmp_path / "s", "--method", "eflomal"]
    for name, more in (("smt-align", ["-o", tmp_path / "o"]), ("smt-train", [tmp_path / "model"])):
        assert "pip install eflomal" in refused(command(name, *more, *texts, PATH="/nonexistent"))
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


class Diagonal(alignment.Aligner):
    """An aligner of a plugin: the words of equal position."""

    def align(self, sources: alignment.Texts, targets: alignment.Texts) -> list[Links]:
        pairs = zip(sources, targets, strict=True)
        return [frozenset((at, at) for at in range(min(len(a), len(b)))) for a, b in pairs]


def test_an_aligner_added_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(alignment.ALIGNERS, "diagonal", Diagonal())
    for name, text in (("s", "a b c\n\n"), ("t", "x y\nz\n")):
        (tmp_path / name).write_text(text)
    line = ["-s", str(tmp_path / "s"), "-t", str(tmp_path / "t"), "-o", str(tmp_path / "o"), "-q"]
    assert align.main([*line, "--method", "diagonal"]) == 0
    assert (tmp_path / "o").read_text() == "0-0 1-1\n\n"
