"""Options of search, and constraints drawn at random."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.cli import translate
from nmt.compute.device import processor_flags
from nmt.formats import nbest
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.run import Run
from nmt.text.vocab import Vocab
from tests.commands.runs import LINES
from tests.conftest import ROOT, Command, Refused

# ---- test search options -----------------------------------------------------------------------------------
# nmt-translate beyond the best translation: ensembles, prefixes, samples, alignments, short-lists,
# precisions.


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
        "nmt-translate", attentive, attentive, attentive, "-q", "--n-best", 3, "--beam-size", 3,
        input="\n".join(LINES) + "\n",
    )  # fmt: skip
    parse = [[nbest.parse(line, "x") for line in lines] for lines in (alone, done.stdout.split("\n")[:-1])]
    assert [found.words for found in parse[0]] == [found.words for found in parse[1]] != []
    for one, other in zip(*parse, strict=True):
        assert one.features["NMT0"] == pytest.approx(other.features["NMT0"], abs=1e-4)


@pytest.mark.ci
def test_an_ensemble_scores_as_it_translates(
    tiny: Path, tmp_path: Path, command: Command, refused: Refused, attentive: Path
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
    assert "its target vocabulary differs" in refused(
        command("nmt-translate", "-q", tiny / "run", attentive, input="a\n")
    )


@pytest.mark.ci
def test_prefixes_and_lengths(attentive: Path, tmp_path: Path, command: Command, refused: Refused) -> None:
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
    assert "short: 1 line, but" in refused(
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
def test_json_has_what_the_other_outputs_have(attentive: Path, tmp_path: Path, command: Command) -> None:
    """Its texts are the usual output, its lists those of --n-best, its points those of --alignments."""
    text = 'the man sings\n\nthe dog \\ "é"\n'
    usual = run_translate(command, attentive, "--alignments", tmp_path / "points", text=text)
    rows = [json.loads(line) for line in run_translate(command, attentive, "--json", text=text)]
    assert [row["text"] for row in rows] == usual
    points = (tmp_path / "points").read_text().split("\n")[:-1]
    assert [" ".join(f"{s}-{t}" for s, t in row["alignment"]) for row in rows] == points and points[0]
    lists = [
        json.loads(line) for line in run_translate(command, attentive, "--json", "--n-best", 2, text=text)
    ]
    entries = [line.split(" ||| ") for line in run_translate(command, attentive, "--n-best", 2, text=text)]
    assert [
        (str(number), " ".join(row["words"]), f"{row['score']:.6g}")
        for number, rows in enumerate(lists)
        for row in rows
    ] == [(number, words, f"{float(total):.6g}") for number, words, _, total in entries]
    samples = run_translate(command, attentive, "--json", "--sample", 3, text="the man sings\n")
    assert len(json.loads(samples[0])) == 3 and len(samples) == 1


@pytest.mark.ci
def test_alignments_and_unknown_words(
    attentive: Path, tiny: Path, tmp_path: Path, command: Command, refused: Refused
) -> None:
    """Word pairs for each line, inside both lines; with a model of whole words UNK becomes a source word or
    its translation, also without options if the run has a lexicon."""
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
    options = (
        "model.encoder=birnn model.attention=20 training.max_steps=40 training.validate_every=0 "
        "data.target.vocabulary=4"
    ).split()
    assert command("nmt-train", tiny / "train.yaml", f"run={tmp_path}/words", *options).returncode == 0
    plain = run_translate(command, tmp_path / "words", "--tokenized", "--replace-unknown", text="zzz zzz\n")
    (tmp_path / "lex").write_text("qqq zzz 1\n")
    found = run_translate(
        command, tmp_path / "words", "--tokenized", "--replace-unknown", "--lexicon", tmp_path / "lex",
        text="zzz zzz\n",
    )  # fmt: skip
    assert (
        "zzz" in plain[0].split() and plain[0].replace("zzz", "qqq") == found[0] and "<unk>" not in plain[0]
    )
    with run_directory.writing(tmp_path / "words") as new:
        (new / "lexicon").write_text("zzz qqq\n")
    assert run_translate(command, tmp_path / "words", "--tokenized", text="zzz zzz\n") == found
    assert "has no attention" in refused(
        command("nmt-translate", "-q", tiny / "run", "--alignments", tmp_path / "b", input="a\n")
    )
    assert "requires --replace-unknown" in refused(
        command("nmt-translate", "-q", attentive, "--lexicon", tmp_path / "lex", input="a\n")
    )
    assert "--sample cannot be combined with any of" in refused(
        command("nmt-translate", "-q", attentive, "--sample", 2, "--n-best", 2, input="a\n")
    )


@pytest.mark.ci
def test_a_shortlist_allows_its_words_alone(tiny: Path, tmp_path: Path, command: Command) -> None:
    (tmp_path / "lex").write_text("le the 0.5\nchien dog 1\nhomme man 1\n", encoding="utf-8")
    found = run_translate(
        command, tiny / "run", "--tokenized", "--shortlist", tmp_path / "lex", "--shortlist-frequent", 1,
        text="the dog\n",
    )  # fmt: skip
    frequent = (tiny / "run" / "target.vocab").read_text(encoding="utf-8").split("\n")[1].split("\t")[0]
    assert found[0] and set(found[0].split()) <= {"le", "chien", frequent}


@pytest.mark.ci
def test_precisions_print_other_numbers_and_the_same_lines(attentive: Path, command: Command) -> None:
    exact = run_translate(command, attentive, "--n-best", 1, "--beam-size", 2)
    for precision in ("int8", *(["bf16"] if "avx512_bf16" in processor_flags() else [])):
        rough = run_translate(command, attentive, "--n-best", 1, "--beam-size", 2, "--precision", precision)
        assert len(rough) == len(exact) and rough != exact


@pytest.mark.ci
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


# ---- test random constraints -------------------------------------------------------------------------------
# Constraints of the command line, drawn at random: what is demanded is in the output, what is avoided is
# not. A run with subwords and truecased words, raw text in and out, and tokenized text.


RUN = ROOT / "tests" / "models" / "translator"
TEXT = (ROOT / "tests" / "models" / "source.en").read_text(encoding="utf-8")
CONSTRAINED_LINES = 40


def drawn_words(draw: random.Random, vocab: Vocab, count: int) -> list[str]:
    """Whole words of the run that are letters, in lower case."""
    words = [word for word in vocab.words[3:] if re.fullmatch("[a-zà-ÿ]{2,}", word)]
    return draw.sample(words, count)


class Case:
    """Files of one draw, and what is checked of each line of the output."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.draw, self.folder = random.Random(seed), folder
        self.run = checkpoint.load(RUN)
        sources = [line for line in TEXT.splitlines() if line]
        self.lines = [self.draw.choice(sources) for _ in range(CONSTRAINED_LINES)]
        self.options: list[str] = []
        self.tests: list[Callable[[int, str], object]] = []

    def write(self, option: str, rows: list[str]) -> None:
        path = self.folder / option.strip("-")
        path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        self.options += [option, str(path)]

    def targets(self, count: int) -> list[str]:
        return drawn_words(self.draw, self.run.target_words, count)

    def constraints(self) -> None:
        """Up to two phrases of up to two words for some lines."""
        words = self.targets(12)
        rows = [
            [
                " ".join(self.draw.sample(words, self.draw.randint(1, 2)))
                for _ in range(self.draw.choice([0, 0, 1, 2]))
            ]
            for _ in self.lines
        ]
        self.write("--constraints", ["\t".join(row) for row in rows])
        self.tests.append(lambda number, text: all(has(text, phrase) for phrase in rows[number]))

    def terms(self) -> None:
        """Translations of words that the text has."""
        sources = sorted({word for line in self.lines for word in re.findall(r"\b[a-z]{3,}\b", line)})
        rows = dict(zip(self.draw.sample(sources, 4), self.targets(4), strict=True))
        self.write("--terms", [f"{term}\t{translation}" for term, translation in rows.items()])
        self.tests.append(
            lambda number, text: all(
                has(text, translation) for term, translation in rows.items() if has(self.lines[number], term)
            )
        )

    def avoid(self, option: str) -> None:
        """Words that translations have without it."""
        words = self.draw.sample(["le", "la", "les", "un", "une", "et", "est", "de"], 3)
        if option == "--avoid":
            self.write(option, words)
            self.tests.append(lambda number, text: not any(has(text, word) for word in words))
            return
        rows = [self.draw.choice(words) if self.draw.random() < 0.5 else "" for _ in self.lines]
        self.write(option, rows)
        self.tests.append(lambda number, text: not rows[number] or not has(text, rows[number]))


def has(text: str, phrase: str) -> bool:
    """Do the words stand in a text, in whatever case?"""
    return bool(re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.IGNORECASE))


@pytest.mark.ci
@pytest.mark.parametrize("tokenized", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_demanded_is_in_the_output(
    seed: int, tokenized: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case(seed, tmp_path)
    case.write(
        "--input", [" ".join(case.run.source.words(line)) for line in case.lines] if tokenized else case.lines
    )
    if tokenized:
        case.lines = (tmp_path / "input").read_text(encoding="utf-8").splitlines()
    kinds: list[Callable[[], None]] = [
        case.constraints,
        case.terms,
        lambda: case.avoid("--avoid"),
        lambda: case.avoid("--avoid-lines"),
    ]
    for kind in case.draw.sample(kinds, case.draw.randint(1, 3)):
        kind()
    more = ["--tokenized"] if tokenized else []
    beam = ["--beam-size", str(case.draw.choice([1, 4, 8])), "--max-length-factor", "4"]
    assert translate.main([str(RUN), *case.options, *more, *beam, "--unmet", "warn", "--threads", "1"]) == 0
    done = capsys.readouterr()
    output = done.out.splitlines()
    assert len(output) == CONSTRAINED_LINES
    given_up = {int(number) for number in re.findall(r":(\d+): .* translated without", done.err)}
    for number, text in enumerate(output):
        if number + 1 not in given_up:
            assert all(test(number, text) for test in case.tests), (case.options, case.lines[number], text)
    assert len(given_up) < CONSTRAINED_LINES / 4
