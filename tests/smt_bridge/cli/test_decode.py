"""smt-decode: its text, its list and its totals are the decoder's; mistakes are told before anything is
written."""

from pathlib import Path

import pytest

from smt_bridge.cli import decode
from smt_bridge.decoder import system
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.moses import weights
from tests.smt_bridge.cli.refusals import refusal
from tests.smt_bridge.decoder.models import sentence, write_model

LINES = [sentence(number, number % 6) for number in range(1, 12)] + ["", "zz a"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in LINES))
    return write_model(tmp_path, 1)


def decoder(model: Path, **config: object) -> Decoder:
    return Decoder(system.load(str(model), use_cache=False), DecoderConfig(**config))  # type: ignore[arg-type]


def run(model: Path, *words: object) -> str:
    given = [str(model), "-i", f"{model}/in", "-o", f"{model}/out", "--no-cache", "-q", *map(str, words)]
    assert decode.main(given) == 0
    return (model / "out").read_text()


@pytest.mark.parametrize("workers", [1, 2])
def test_text_and_list(workers: int, model: Path) -> None:
    found = run(model, "--n-best-list", model / "list", "--n-best", 4, "--stack", 7, "--workers", workers)
    made = decoder(model, nbest=4, stack=7)
    expected = list(made.translate_all(iter(LINES)))
    assert found == "".join(f"{' '.join(one.text)}\n" for one in expected)
    entries = [
        made.entry(number, one, derivation)
        for number, one in enumerate(expected)
        for derivation in one.derivations
    ]
    assert (model / "list").read_text() == "".join(f"{entry}\n" for entry in entries)


def test_a_list_of_different_texts(model: Path) -> None:
    run(model, "--n-best-list", model / "list", "--n-best", 5, "--distinct")
    texts = [tuple(line.split(" ||| ")[:2]) for line in (model / "list").read_text().split("\n")[:-1]]
    assert len(set(texts)) == len(texts)


def test_weights_instead_of_the_inis(model: Path) -> None:
    made = decoder(model)
    other = {name: [-value for value in values] for name, values in made.system.tuneable_weights().items()}
    weights.write(model / "w", other)
    found = run(model, "-w", model / "w")
    assert found != run(model)
    changed = Decoder(made.system, made.config, weights.read(model / "w"))
    assert found == "".join(f"{line}\n" for line in changed.translate(LINES))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--n-best", "0"], "argument --n-best"),
        (["--xml-input", "all"], "argument --xml-input"),
        (["--xml-input", "exclusive"], "in:2: "),
        (["--max-line-words", "3", "--n-best-list", "list"], "in:1: 4 words, more than --max-line-words 3"),
        (["-w", "nowhere"], "nowhere"),
    ],
)
def test_refused_before_a_line_is_written(
    words: list[str],
    message: str,
    model: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (model / "in").write_text("a b c d\n<x translation='p'>a\n")
    monkeypatch.setattr(decode, "translate", lambda decoder, args: pytest.fail("a line is translated"))
    given = [model, "-i", model / "in", "-o", model / "out", "--no-cache", "-q"]
    assert message in refusal(decode.main, capsys, *given, *words)
    assert not (model / "out").exists()


def test_long_lines_are_refused_for_a_list_only(model: Path) -> None:
    assert run(model, "--max-line-words", 3).count("\n") == len(LINES)
