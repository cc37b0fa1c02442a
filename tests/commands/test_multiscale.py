"""Multiscale language models and their dictionaries by the commands, as installed."""

from pathlib import Path

import pytest

from nmt.runs import checkpoint
from tests.commands.test_lm import config
from tests.conftest import Command, Refused

pytestmark = pytest.mark.ci


def characters(tiny: Path, folder: Path) -> None:
    for name in ("train", "dev"):
        lines = (tiny / f"{name}.fr").read_text(encoding="utf-8").split("\n")[:-1]
        (folder / f"{name}.chars").write_text(
            "".join(" ".join(line.replace(" ", "_")) + "\n" for line in lines), encoding="utf-8"
        )


def multiscale(folder: Path, run: str, *more: str) -> list[str]:
    line = (
        "lm.type=multiscale lm.dictionary=60 lm.carry=true lm.bptt=20 lm.hidden=12 lm.embedding=8 "
        f"training.batch_size=4 data.train_text={folder}/train.chars"
    )
    line += (
        f" data.dev_text={folder}/dev.chars data.target.tokenize=false data.target.normalize=false "
        f"run={folder}/{run}"
    )
    return [*line.split(), *more]


def test_a_multiscale_run(tiny: Path, tmp_path: Path, command: Command, refused: Refused) -> None:
    """Trained, stopped and resumed bit-equal, scored, sampled; its dictionary shown; damaged or missing, it
    is told in one line."""
    characters(tiny, tmp_path)
    base = config(tiny, tmp_path, "recurrent")[:1]
    done = command("nmt-train", *base, *multiscale(tmp_path, "a"))
    assert done.returncode == 0 and "dictionary: 60 tokens" in done.stderr, done.stderr
    for limit in (11, 40):
        assert (
            command("nmt-train", *base, *multiscale(tmp_path, "b", f"training.max_steps={limit}")).returncode
            == 0
        )
    first, second = (checkpoint.load_tensors(tmp_path / name / "step-40.pt") for name in "ab")
    assert all((first[key] == second[key]).all() for key in first)
    rows = [
        float(line)
        for line in command("nmt-score", tmp_path / "a", "-i", tmp_path / "dev.chars", "-q").stdout.split(
            "\n"
        )[:-1]
    ]
    assert len(rows) == 20 and all(value < 0 for value in rows)
    table = command("nmt-perplexity", tmp_path / "a", "-i", tmp_path / "dev.chars", "-q").stdout
    assert f"{sum(rows):.2f}"[:-1] in table
    drawn, marked = (
        command("nmt-sample", tmp_path / "a", "-n", 3, "--max-length", 30, "-q", *more).stdout
        for more in ([], ["--boundaries", "|"])
    )
    assert marked.replace("|", "") == drawn and drawn.count("\n") == 3
    shown = command("nmt-dictionary", "table", tmp_path / "a", "-q").stdout.split("\n")
    assert shown[0] == "rank\ttoken\tcount" and len(shown) == 62
    assert "only multiscale" not in done.stderr
    done = command(
        "nmt-average", tmp_path / "a", "--last", 1, "-o", tmp_path / "mean", "-q"
    )  # it needs the dictionary too
    assert done.returncode == 0, done.stderr
    scored = [
        command("nmt-score", tmp_path / name, "-i", tmp_path / "dev.chars", "-q").stdout
        for name in ("a", "mean")
    ]
    assert scored[0] == scored[1] != ""
    text = (tmp_path / "a" / "dictionary").read_text()
    (tmp_path / "a" / "dictionary").write_text(text[: len(text) // 2])
    assert "a/dictionary: damaged: size or checksum" in refused(
        command("nmt-score", tmp_path / "a", "-i", tmp_path / "dev.chars", "-q")
    )
    assert "unknown key 'lm.depth'" in refused(
        command("nmt-train", *base, *multiscale(tmp_path, "c", "lm.depth=2"), "-q")
    )


def test_characters_of_words(tiny: Path, tmp_path: Path, command: Command, refused: Refused) -> None:
    """Text of words read as characters = text written as characters; and so are hypotheses of n-best
    lists."""
    characters(tiny, tmp_path)
    base = config(tiny, tmp_path, "recurrent")[:1]
    carried = ["lm.carry=false", "training.max_steps=5"]
    spelled = [
        "data.target.case=keep",
        f"data.train_text={tiny}/train.fr",
        f"data.dev_text={tiny}/dev.fr",
        "data.target.characters=true",
    ]
    assert (
        command("nmt-train", *base, *multiscale(tmp_path, "a", *carried, "data.target.case=keep")).returncode
        == 0
    )
    done = command("nmt-train", *base, *multiscale(tmp_path, "b", *carried, *spelled))
    assert done.returncode == 0, done.stderr
    first, second = (checkpoint.load_tensors(tmp_path / name / "step-5.pt") for name in "ab")
    assert all((first[key] == second[key]).all() for key in first)
    (tmp_path / "n").write_text("0 ||| le chat ||| X= -1 ||| -1\n")
    (tmp_path / "s").write_text("a\n")
    found = [
        float(
            command(
                "smt-rescore",
                tmp_path / "n",
                "-s",
                tmp_path / "s",
                "-f",
                f"neural-lm={tmp_path / 'b'}",
                "-o",
                "-",
                "-q",
            )
            .stdout.split("NeuralLM0= ")[1]
            .split(" ")[0]
        ),
        float(command("nmt-score", tmp_path / "b", "-i", "-", "-q", input="le chat\n").stdout),
        float(command("nmt-score", tmp_path / "a", "-i", "-", "-q", input="l e _ c h a t\n").stdout),
    ]
    assert found == pytest.approx([found[0]] * 3, abs=1e-4)
    assert "characters are not subwords" in refused(
        command("nmt-train", *base, *multiscale(tmp_path, "c", *spelled, "data.bpe_merges=9"), "-q")
    )


def test_dictionary(tmp_path: Path, command: Command, refused: Refused) -> None:
    text = "abcabcabcabc\nabc abc\n"
    done = command("nmt-dictionary", "learn", "--size", 6, "--characters", "-o", tmp_path / "d", input=text)
    assert done.returncode == 0 and "tokens, the longest of" in done.stderr, done.stderr
    cut = command(
        "nmt-dictionary", "segment", tmp_path / "d", "--characters", "--mark", "|", "-q", input=text
    ).stdout
    assert cut.replace("|", "") == text.replace(" ", "_") and len(cut) < 2 * len(text)
    # abc: a; b, and ab no more; c, abc and abcabc where it is there
    counts = (
        command("nmt-dictionary", "arcs", tmp_path / "d", "--characters", "-q", input="abc\n")
        .stdout.split("\n")[1]
        .split("\t")
    )
    assert counts[0] == "3" and int(counts[1]) >= 4
    assert "is this a dictionary" in refused(command("nmt-dictionary", "table", __file__, "-q"))
    assert "no symbols" in refused(command("nmt-dictionary", "learn", "-q", input="\n"))
