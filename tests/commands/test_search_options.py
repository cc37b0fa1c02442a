"""nmt-translate beyond the best translation: ensembles, prefixes, samples, alignments, short-lists,
precisions."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.compute.processor import flags
from nmt.formats import nbest
from nmt.runs.run import Run
from tests.commands.runs import LINES

Command = Callable[..., subprocess.CompletedProcess[str]]


def run_translate(
    command: Command, run: Path, *options: object, text: str = "\n".join(LINES) + "\n"
) -> list[str]:
    done = command("nmt-translate", run, "-q", *options, input=text)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.mark.ci
def test_an_ensemble_of_one_run_is_that_run(attentive: Path, command: Command) -> None:
    alone = run_translate(command, attentive, "--n-best", 3, "--beam-size", 3)
    done = command(
        "nmt-translate",
        attentive,
        attentive,
        attentive,
        "-q",
        "--n-best",
        3,
        "--beam-size",
        3,
        input="\n".join(LINES) + "\n",
    )
    parse = [[nbest.parse(line, "x") for line in lines] for lines in (alone, done.stdout.split("\n")[:-1])]
    assert [found.words for found in parse[0]] == [found.words for found in parse[1]] != []
    for one, other in zip(*parse, strict=True):
        assert one.features["NMT0"] == pytest.approx(other.features["NMT0"], abs=1e-4)


@pytest.mark.ci
def test_an_ensemble_scores_as_it_translates(
    tiny: Path, tmp_path: Path, command: Command, refused: Callable[..., str], attentive: Path
) -> None:
    """Two checkpoints' runs: the printed log p is nmt-score's; vocabularies that differ are refused."""
    steps = sorted(int(path.stem.removeprefix("step-")) for path in (tiny / "run").glob("step-*.pt"))
    command("nmt-average", tiny / "run", "--steps", steps[0], "--output", tmp_path / "other")
    runs = [tiny / "run", tmp_path / "other"]
    found = [
        nbest.parse(line, "x")
        for line in command(
            "nmt-translate", *runs, "-q", "--n-best", 1, "--tokenized", input="the man sings .\n"
        ).stdout.split("\n")[:-1]
    ]
    (tmp_path / "s").write_text("the man sings .\n")
    (tmp_path / "t").write_text(" ".join(found[0].words) + "\n", encoding="utf-8")
    scored = command(
        "nmt-score", *runs, "-q", "--tokenized", "--source", tmp_path / "s", "--target", tmp_path / "t"
    )
    assert float(scored.stdout) == pytest.approx(found[0].features["NMT0"][0], abs=1e-4)
    assert "an ensemble needs one and the same" in refused(
        command("nmt-translate", "-q", tiny / "run", attentive, input="a\n")
    )


@pytest.mark.ci
def test_prefixes_and_lengths(
    attentive: Path, tmp_path: Path, command: Command, refused: Callable[..., str]
) -> None:
    (tmp_path / "prefix").write_text("la femme\n\nle\nun chien\n", encoding="utf-8")
    forced = run_translate(command, attentive, "--prefix", tmp_path / "prefix")
    free = run_translate(command, attentive)
    assert (
        forced[0].lower().startswith("la femme")
        and forced[3].lower().startswith("un chien")
        and forced[1] == free[1]
    )
    assert all(
        len(line.split()) <= 2 for line in run_translate(command, attentive, "--max-length", 2, "--tokenized")
    )
    long = [
        nbest.parse(line, "x")
        for line in run_translate(command, attentive, "--min-length", 12, "--n-best", 1, "--beam-size", 2)
    ]
    assert len(long) == 4
    (tmp_path / "short").write_text("la\n")
    assert "short: 1 lines" in refused(
        command(
            "nmt-translate", "-q", attentive, "--input", tmp_path / "prefix", "--prefix", tmp_path / "short"
        )
    )


@pytest.mark.ci
def test_sampling_is_seeded_and_apart_from_neighbours(attentive: Path, command: Command) -> None:
    drawn = run_translate(command, attentive, "--sample", 3, "--seed", 5)
    assert len(drawn) == 12 and drawn == run_translate(
        command, attentive, "--sample", 3, "--seed", 5, "--read-ahead", 1
    )
    assert drawn != run_translate(command, attentive, "--sample", 3, "--seed", 6)
    assert len(run_translate(command, attentive, "--sample", 1, "--temperature", 0.5)) == 4


@pytest.mark.ci
def test_alignments_and_unknown_words(
    attentive: Path, tiny: Path, tmp_path: Path, command: Command, refused: Callable[..., str]
) -> None:
    """Word pairs for each line, inside both lines; with a model of whole words UNK becomes a source word or
    its translation."""
    translations = run_translate(
        command, attentive, "--tokenized", "--alignments", tmp_path / "a", text="the man sings\n\nthe dog\n"
    )
    pairs = [
        [tuple(map(int, pair.split("-"))) for pair in line.split()]
        for line in (tmp_path / "a").read_text().split("\n")[:-1]
    ]
    assert len(pairs) == 3 and pairs[1] == [] and pairs[0]
    for source, target, points in zip(("the man sings", "", "the dog"), translations, pairs, strict=True):
        assert all(s < len(source.split()) and t < len(target.split()) for s, t in points)
        assert {t for _, t in points} == set(range(len(target.split())))
    options = [
        "model.encoder=birnn",
        "model.attention=20",
        "training.max_steps=40",
        "training.validate_every=0",
        "data.target.vocabulary=4",
    ]
    assert command("nmt-train", tiny / "train.yaml", f"run={tmp_path}/words", *options).returncode == 0
    plain = run_translate(command, tmp_path / "words", "--tokenized", "--replace-unknown", text="zzz zzz\n")
    (tmp_path / "lex").write_text("qqq zzz 1\n")
    found = run_translate(
        command,
        tmp_path / "words",
        "--tokenized",
        "--replace-unknown",
        "--lexicon",
        tmp_path / "lex",
        text="zzz zzz\n",
    )
    assert (
        "zzz" in plain[0].split() and plain[0].replace("zzz", "qqq") == found[0] and "<unk>" not in plain[0]
    )
    assert "has no attention" in refused(
        command("nmt-translate", "-q", tiny / "run", "--alignments", tmp_path / "b", input="a\n")
    )
    assert "goes with --replace-unknown" in refused(
        command("nmt-translate", "-q", attentive, "--lexicon", tmp_path / "lex", input="a\n")
    )
    assert "goes with none of" in refused(
        command("nmt-translate", "-q", attentive, "--sample", 2, "--n-best", 2, input="a\n")
    )


def test_a_shortlist_allows_its_words_alone(tiny: Path, tmp_path: Path, command: Command) -> None:
    (tmp_path / "lex").write_text("le the 0.5\nchien dog 1\nhomme man 1\n", encoding="utf-8")
    found = run_translate(
        command,
        tiny / "run",
        "--tokenized",
        "--shortlist",
        tmp_path / "lex",
        "--shortlist-frequent",
        1,
        text="the dog\n",
    )
    frequent = (tiny / "run" / "target.vocab").read_text(encoding="utf-8").split("\n")[1].split("\t")[0]
    assert found[0] and set(found[0].split()) <= {"le", "chien", frequent}


@pytest.mark.ci
def test_precisions_print_other_numbers_and_the_same_lines(attentive: Path, command: Command) -> None:
    exact = run_translate(command, attentive, "--n-best", 1, "--beam-size", 2)
    for precision in ("int8", *(["bf16"] if "avx512_bf16" in flags() else [])):
        rough = run_translate(command, attentive, "--n-best", 1, "--beam-size", 2, "--precision", precision)
        assert len(rough) == len(exact) and rough != exact


def test_the_python_interface_is_the_command(attentive: Path, tiny: Path, command: Command) -> None:
    run = Run.load(attentive)
    assert run.translate([*LINES, ""]) == run_translate(
        command, attentive, text="\n".join([*LINES, ""]) + "\n"
    )
    pairs = [("The man sings.", "L'homme chante."), ("", "")]
    assert run.score(pairs) == pytest.approx([sum(values) for values in run.word_scores(pairs)])
    assert len(run.n_best(LINES[:1])[0]) > 1 and Run.load(attentive, attentive).score(pairs) == pytest.approx(
        run.score(pairs), abs=1e-6
    )
