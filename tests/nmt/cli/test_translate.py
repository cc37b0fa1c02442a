"""nmt-translate and nmt-score as installed, on one tiny run."""

import gzip
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt import Run
from nmt.cli import translate
from nmt.cli.translate import InputWarnings, LineTranslator
from nmt.cli.translation_input import TranslationBlock
from nmt.formats import nbest
from nmt.text.tokenize import escape
from tests.commands.runs import LINES
from tests.conftest import BIN, HANG, ROOT, Command, Refused, refusal

# ---- test translate ----------------------------------------------------------------------------------------


def translate_text(command: Command, tiny: Path, text: str, *options: object) -> list[str]:
    done = command("nmt-translate", tiny / "run", "-q", *options, input=text)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.endswith("\n") or not done.stdout
    return done.stdout.split("\n")[:-1]


@pytest.mark.ci
def test_one_line_in_one_line_out_in_order(tiny: Path, command: Command) -> None:
    together = translate_text(command, tiny, "\n".join(LINES) + "\n")
    assert len(together) == 4 and all(together)
    assert together == [line for text in LINES for line in translate_text(command, tiny, text + "\n")]
    assert together == translate_text(command, tiny, "\n".join(LINES) + "\n", "--read-ahead", 1)


def test_empty_and_blank_lines_stay(tiny: Path, command: Command) -> None:
    out = translate_text(command, tiny, f"\n{LINES[0]}\n   \n\t\n\u2028\n{LINES[1]}")
    assert [bool(line) for line in out] == [False, True, False, False, False, True]


@pytest.mark.ci
@pytest.mark.parametrize("odd", ["\u2028", "\x85", "\x0c", "\xa0", "\r", "\u2029", "\x1c", "\x0b"])
def test_odd_characters_do_not_break_lines(tiny: Path, command: Command, odd: str) -> None:
    out = translate_text(command, tiny, f"The man{odd}sees the dog.\n{LINES[2]}\n")
    assert len(out) == 2 and out[1] == translate_text(command, tiny, LINES[2] + "\n")[0]


def test_carriage_returns_are_removed_with_one_warning(tiny: Path, command: Command) -> None:
    done = command("nmt-translate", tiny / "run", "-q", input=f"{LINES[0]}\r\n{LINES[2]}\r\n")
    assert done.stdout.split("\n")[:-1] == translate_text(command, tiny, f"{LINES[0]}\n{LINES[2]}\n")
    assert done.stderr.count("\n") == 1 and "carriage return" in done.stderr


def test_a_line_of_ten_thousand_words_gets_one_warning(tiny: Path, command: Command) -> None:
    long = " ".join(["dog"] * 10000)
    done = command(
        "nmt-translate", tiny / "run", "-q", "-b", 2, input=f"{LINES[2]}\n{long}\n{LINES[2]}\n", timeout=1200
    )
    assert done.returncode == 0
    out = done.stdout.split("\n")
    assert len(out) == 4 and out[0] == out[2]
    assert done.stderr.count("\n") == 1 and "<stdin>:2: 10,000 words" in done.stderr


@pytest.mark.ci
def test_nbest_is_moses_format_and_agrees_with_everything(
    tiny: Path, command: Command, tmp_path: Path
) -> None:
    text = "\n".join([*LINES, "", LINES[0]]) + "\n"
    lists = {k: translate_text(command, tiny, text, "--n-best", k, "-b", 6) for k in (1, 4)}
    entries = [nbest.parse(line, "x") for line in lists[4]]
    assert [entry.sentence for entry in entries] == sorted(entry.sentence for entry in entries)
    assert {entry.sentence for entry in entries} == set(range(6))
    firsts = [next(entry for entry in entries if entry.sentence == n) for n in range(6)]
    assert [nbest.write(entry) for entry in firsts] == lists[1], "a larger n-best never changes the 1-best"
    assert lists[1][4] == "4 |||  ||| NMT0= 0 ||| 0"
    tokenized = translate_text(
        command,
        tiny,
        "\n".join(" ".join(line.lower().replace(".", " .").split()) for line in [*LINES, "", LINES[0]])
        + "\n",
        "--tokenized",
        "-b",
        6,
    )
    assert [" ".join(entry.words) for entry in firsts] == tokenized
    for entry in entries:
        expected = entry.features["NMT0"][0] / (len(entry.words) + 1) if entry.words else 0.0
        assert entry.total == pytest.approx(expected, abs=1e-4)

    full = [entry for entry in entries if entry.sentence != 4]
    sources = [[*LINES, "", LINES[0]][entry.sentence].lower().replace(".", " .") for entry in full]
    (tmp_path / "s").write_text("".join(line + "\n" for line in sources))
    (tmp_path / "t").write_text("".join(" ".join(entry.words) + "\n" for entry in full))
    done = command("nmt-score", tiny / "run", "-q", "--tokenized", "-s", tmp_path / "s", "-t", tmp_path / "t")
    scores = [float(line) for line in done.stdout.split()]
    assert scores == pytest.approx([entry.features["NMT0"][0] for entry in full], abs=1e-4)


@pytest.mark.ci
def test_escaped_is_tokenized_with_moses_escapes(tiny: Path, command: Command) -> None:
    """On both ways: what the model reads and says is the same, in 1-best and n-best output."""
    text = "the 's [ dog | sees & a man\n\nthe dog 's sees\n" + "".join(
        f"{line.lower().rstrip('.')} .\n" for line in LINES
    )
    escaped = "\n".join(" ".join(map(escape, line.split(" "))) for line in text.split("\n"))
    assert "&apos;s &#91; dog &#124; sees &amp;" in escaped
    for more in ([], ["--n-best", 3, "-b", 3]):
        plain = command("nmt-translate", tiny / "run", "-q", "--tokenized", *more, input=text).stdout
        assert command(
            "nmt-translate", tiny / "run", "-q", "--escaped", *more, input=escaped
        ).stdout == plain.replace("'", "&apos;")
        assert "'" in plain


def test_normalize_none_ranks_by_log_prob(tiny: Path, command: Command) -> None:
    for line in translate_text(command, tiny, LINES[0] + "\n", "--n-best", 5, "--normalize", "none"):
        entry = nbest.parse(line, "x")
        assert entry.total == entry.features["NMT0"][0]


@pytest.mark.ci
def test_output_file_equals_stdout_and_gzip_goes_in(tiny: Path, command: Command, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(gzip.compress("".join(line + "\n" for line in LINES).encode()))
    assert (
        command(
            "nmt-translate", tiny / "run", "-q", "--input", tmp_path / "in", "--output", tmp_path / "out"
        ).returncode
        == 0
    )
    assert (tmp_path / "out").read_text().split("\n")[:-1] == translate_text(
        command, tiny, "\n".join(LINES) + "\n"
    )


@pytest.mark.ci
def test_it_answers_in_a_pipe_before_the_input_ends(tiny: Path) -> None:
    line = [f"{BIN}/nmt-translate", f"{tiny}/run", "-q", "--read-ahead", "1"]
    process = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin and process.stdout
    process.stdin.write(b"The man sees the dog.\n")
    process.stdin.flush()
    assert process.stdout.readline().strip()
    process.stdin.close()
    assert process.wait(60) == 0
    process.stdout.close()


@pytest.mark.ci
def test_minimum_bayes_risk(tiny: Path, command: Command, tmp_path: Path) -> None:
    """The choice of smt-rescore from the list of the same beam; at a large scale the best of the beam; of
    draws one that was drawn, with its alignment line."""
    text, more = "\n".join([*LINES, ""]) + "\n", ["--tokenized", "-b", 6]
    (tmp_path / "s").write_text(text)
    (tmp_path / "n").write_text("\n".join(translate_text(command, tiny, text, *more, "--n-best", 6)) + "\n")
    line = ["smt-rescore", "n", "-s", "s", "-q", "--mbr", "chrf", "--mbr-scale", "0.5", "--best", "-"]
    chosen = command(*line, cwd=tmp_path).stdout.split("\n")[:-1]
    assert translate_text(command, tiny, text, *more, "--mbr", "chrf", "--mbr-scale", "0.5") == chosen
    best = translate_text(command, tiny, text, *more)
    assert chosen != best == translate_text(command, tiny, text, *more, "--mbr", "bleu", "--mbr-scale", "1e6")
    drawn = [
        nbest.parse(line, "x") for line in translate_text(command, tiny, text, "--tokenized", "--sample", 9)
    ]
    texts = {(entry.sentence, " ".join(entry.words)) for entry in drawn}
    assert (
        set(enumerate(translate_text(command, tiny, text, "--tokenized", "--sample", 9, "--mbr", "bleu")))
        <= texts
    )


REFUSALS = {
    "missing run": (["nosuch"], "", "nosuch: no such run directory"),
    "not utf-8": (["RUN", "--input", "BAD"], "", "BAD:2: byte 0xe9 at column 2"),
    "n-best over beam": (
        ["RUN", "--n-best", "11", "-b", "10"],
        "",
        "--n-best 11 is more than --beam-size 10",
    ),
    "mbr of a list": (["RUN", "--mbr", "bleu", "--n-best", "3"], "", "--mbr writes one translation"),
    "scale of draws": (
        ["RUN", "--mbr", "bleu", "--mbr-scale", "2", "--sample", "9"],
        "",
        "--mbr-scale requires --mbr, and excludes --sample",
    ),
    "unknown flag": (["RUN", "--bean-size", "3"], "", "unrecognized arguments"),
    "beam of 0": (["RUN", "-b", "0"], "", "0 is out of range, expected 1 to 10000"),
    "full disk": (["RUN", "--output", "/dev/full"], "a\n", "/dev/full: cannot write: No space left"),
    "no gpu": (["RUN", "--device", "cuda:9"], "", "finds no GPU"),
    "unknown device": (["RUN", "--device", "tpu"], "", "device: 'tpu'"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case: str, tiny: Path, tmp_path: Path, command: Command, refused: Refused) -> None:
    (tmp_path / "BAD").write_bytes(b"good\nb\xe9\n")
    arguments, text, message = REFUSALS[case]
    given = [{"RUN": str(tiny / "run"), "BAD": str(tmp_path / "BAD")}.get(word, word) for word in arguments]
    out = tmp_path / "out"
    if "--output" not in given:
        given += ["--output", str(out)]
    if case == "no gpu":
        import torch

        if torch.cuda.is_available():
            pytest.skip("there is a GPU")
    assert message in refused(
        command("nmt-translate", *(["-q"] if case == "full disk" else []), *given, input=text)
    )
    assert {path.name for path in tmp_path.iterdir()} == {"BAD"}, "something was left behind"


@pytest.mark.ci
def test_full_stdout_is_one_line(tiny: Path, refused: Refused) -> None:
    line = [f"{BIN}/nmt-translate", "-q", f"{tiny}/run"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(line, input=b"a\n", stdout=full, stderr=subprocess.PIPE, timeout=HANG)
    done_as_text = subprocess.CompletedProcess(line, done.returncode, "", done.stderr.decode())
    assert "cannot write: No space left" in refused(done_as_text)


@pytest.mark.ci
def test_a_reader_that_leaves_is_no_error(tiny: Path) -> None:
    line = [f"{BIN}/nmt-translate", f"{tiny}/run", "-q", "--read-ahead", "1"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdout and process.stdin and process.stderr
    process.stdout.close()
    _, messages = process.communicate(b"The man sees the dog.\n" * 50, timeout=1200)
    assert messages == b""


# ---- test translator ---------------------------------------------------------------------------------------
# What nmt-translate computes, with prefixes and constraints.


RUN = ROOT / "tests" / "models" / "translator"


@pytest.fixture(scope="module")
def made() -> Callable[..., LineTranslator]:
    return lambda *words: translate.load_translator(
        translate.parser().parse_args([str(RUN), *map(str, words)])
    )


def test_a_block_is_translated_as_python_does(made: Callable[..., LineTranslator]) -> None:
    found = made("--beam-size", 3).lines(TranslationBlock(0, [*LINES, ""], {}))
    assert found == [Run.load(RUN).translate([*LINES, ""], beam_size=3)]


def test_lists_count_the_lines_of_the_input(made: Callable[..., LineTranslator]) -> None:
    [lines] = made("--beam-size", 3, "--n-best", 2).lines(TranslationBlock(7, LINES, {}))
    assert [nbest.parse(line, "list").sentence for line in lines] == [7, 7, 8, 8, 9, 9, 10, 10]


def test_alignments_are_another_output(made: Callable[..., LineTranslator]) -> None:
    """A line for each line; empty ones for lines without words."""
    work = made("--beam-size", 2, "--alignments", "points", "--tokenized")
    translations, points = work.lines(TranslationBlock(0, [LINES[0], ""], {}))
    assert len(translations) == len(points) == 2 and points[1] == ""
    pairs = [point.split("-") for point in points[0].split()]
    assert pairs and {int(word) for _, word in pairs} == set(range(len(translations[0].split())))


def test_a_translation_depends_on_the_run_and_on_files_beside_it(
    made: Callable[..., LineTranslator], tmp_path: Path
) -> None:
    (tmp_path / "avoid").write_text("rouge\n")
    plain, avoiding = (
        {path.name for path in one.models()} for one in (made(), made("--avoid", tmp_path / "avoid"))
    )
    assert avoiding == {*plain, "avoid"} and {"config.yaml", "source.vocab", "target.vocab"} <= plain


@pytest.mark.parametrize("option", ["prefix", "constraints", "avoid-lines"])
def test_a_long_line_with_a_line_of_its_own_is_not_translated_in_parts(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing says to which part its prefix or phrases belong."""
    (tmp_path / "in").write_text("The man sings . The man sings .\n")
    (tmp_path / "phrases").write_text("homme\n")
    words = RUN, "-q", "-i", tmp_path / "in", f"--{option}", tmp_path / "phrases", "--max-line-words", 5
    assert f"{tmp_path}/in:1: " in refusal(translate.main, capsys, *words)


def test_sentences_of_a_line_are_translated_one_by_one(made: Callable[..., LineTranslator]) -> None:
    """What stands between them stays; a line is a line, and no sentence is lost."""
    line, gap = LINES[0] + "\u2003 " + LINES[2], "\u2003 "
    [lines] = made("--beam-size", 3, "--split-sentences").lines(TranslationBlock(0, [line, "", LINES[1]], {}))
    first, second, third = Run.load(RUN).translate([LINES[0], LINES[2], LINES[1]], beam_size=3)
    assert lines == [first + gap + second, "", third]
    assert Run.load(RUN).translate([line], beam_size=3, split_sentences=True) == lines[:1]
    assert Run.load(RUN).translate([line], beam_size=3) != lines[:1]


def test_a_message_names_the_line_of_a_sentence(
    made: Callable[..., LineTranslator], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = "--input", tmp_path / "in", "--max-line-words", 5, "--split-sentences"
    long = " ".join(["dog"] * 2000)
    InputWarnings(made(*words)).warn(
        TranslationBlock(0, [f"{LINES[0]} {LINES[2]}", f"{LINES[0]} The {long}."], {})
    )
    [record] = caplog.records
    assert f"{tmp_path}/in:2: " in record.getMessage()


def test_the_first_line_of_several_sentences_gets_a_warning(
    made: Callable[..., LineTranslator], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    block, words = (
        TranslationBlock(0, [LINES[0], f"{LINES[0]} {LINES[2]}", f"{LINES[0]} {LINES[2]}"], {}),
        ("-i", tmp_path),
    )
    for options in (["--split-sentences"], ["--tokenized"], ["--n-best", 2]):
        InputWarnings(made(*words, *options)).warn(block)
    assert not caplog.records
    warnings = InputWarnings(made(*words))
    warnings.warn(block)
    warnings.warn(block)
    [record] = caplog.records
    assert record.getMessage().startswith(f"{tmp_path}:2: ") and "--split-sentences" in record.getMessage()


@pytest.mark.parametrize(
    "options",
    ["--tokenized", "--escaped", "--n-best 2", "--mbr bleu", "--sample 1", "--alignments points"]
    + [f"--{name} lines" for name in ("prefix", "constraints", "avoid-lines")],
)
def test_sentences_do_not_go_with_what_speaks_of_whole_lines(
    options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("in", "lines"):
        (tmp_path / name).write_text("A man.\n")
    message = refusal(translate.main, capsys, RUN, "-i", "in", "--split-sentences", *options.split())
    assert options.split()[0] in message and "--split-sentences" in message


# ---- the command -------------------------------------------------------------------------------------------

TEXT = "\n".join([*(line.lower().replace(".", " .") for line in LINES), ""]) + "\n"  # tokenized


def translated(command: Command, run: Path, *more: object, text: str = TEXT) -> list[str]:
    done = command("nmt-translate", run, "-q", "--tokenized", *more, input=text)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split("\n")[:-1]


def frequent(tiny: Path, side: str, count: int) -> list[str]:
    """Words that the run knows, the most frequent first."""
    rows = (tiny / "run" / f"{side}.vocab").read_text().split("\n")[1:]
    return [row.split("\t")[0] for row in rows if row[:1].isalpha()][:count]


@pytest.mark.ci
@pytest.mark.parametrize("allocation", ["dynamic", "grid"])
def test_lists_meet_their_constraints(allocation: str, tiny: Path, command: Command, tmp_path: Path) -> None:
    """Every entry has every phrase and nothing that is avoided, with the score of nmt-score; alone or
    together; the line without constraints is as before."""
    words = frequent(tiny, "target", 40)
    required = [f"{words[20]} {words[30]}\t{words[7]}", f"{words[25]}\t{words[25]}", "", words[9], ""]
    (tmp_path / "required").write_text("\n".join(required) + "\n")
    (tmp_path / "avoided").write_text(f"{words[0]}\n{words[1]}\t{words[2]}\n\n\n\n")
    (tmp_path / "in").write_text(TEXT)
    given = ["--input", tmp_path / "in", "--constraints", tmp_path / "required", "-b", 6]
    given += ["--avoid-lines", tmp_path / "avoided", "--allocation", allocation]
    found = [nbest.parse(line, "x") for line in translated(command, tiny / "run", *given, "--n-best", 6)]
    for entry in found:
        text = f" {' '.join(entry.words)} "
        for phrase in required[entry.sentence].split("\t"):
            times = required[entry.sentence].split("\t").count(phrase)
            assert not phrase or len(re.findall(f"(?= {re.escape(phrase)} )", text)) >= times, text
        assert entry.sentence != 0 or words[0] not in entry.words
        assert entry.sentence != 1 or not {words[1], words[2]} & {*entry.words}
    plain = translated(command, tiny / "run", "-b", 6, "--n-best", 6)
    for sentence in (2, 4):
        assert [nbest.write(one) for one in found if one.sentence == sentence] == [
            line for line in plain if line.startswith(f"{sentence} ")
        ]
    single = translated(command, tiny / "run", *given, "--n-best", 6, "--read-ahead", 1)
    alone = [nbest.parse(line, "x") for line in single]
    assert [(one.sentence, one.words) for one in alone] == [(one.sentence, one.words) for one in found]
    full = [one for one in found if one.words]
    (tmp_path / "s").write_text("".join(f"{TEXT.split(chr(10))[one.sentence]}\n" for one in full))
    (tmp_path / "t").write_text("".join(f"{' '.join(one.words)}\n" for one in full))
    done = command("nmt-score", tiny / "run", "-q", "--tokenized", "-s", tmp_path / "s", "-t", tmp_path / "t")
    scores = [float(line) for line in done.stdout.split()]
    assert scores == pytest.approx([one.features["NMT0"][0] for one in full], abs=1e-4)


@pytest.mark.ci
def test_terms_and_what_cannot_be_met(tiny: Path, command: Command, tmp_path: Path, refused: Refused) -> None:
    words = frequent(tiny, "target", 40)
    (tmp_path / "terms").write_text(f"the dog\t{words[20]} {words[30]}\nnurse\t{words[11]}\n")
    found = translated(command, tiny / "run", "--terms", tmp_path / "terms")
    assert f" {words[20]} {words[30]} " in f" {found[0]} " and words[11] in found[2].split()
    assert [found[1], found[3]] == [translated(command, tiny / "run")[row] for row in (1, 3)]
    (tmp_path / "terms").write_text(f"dog\t{words[3]}\nnurse\tqqqq\n")
    run = ["nmt-translate", tiny / "run", "-q", "--tokenized"]
    line = [*run, "--terms", tmp_path / "terms", "--output", tmp_path / "out"]
    assert "terms:2: 'qqqq' cannot be required; leave it out" in refused(command(*line, input=TEXT))
    assert not (tmp_path / "out").exists()
    done = command(*line, "--unmet", "warn", input=TEXT)
    assert done.returncode == 0 and done.stderr.count("\n") == 1 and "terms:2: 'qqqq'" in done.stderr
    assert words[3] in (tmp_path / "out").read_text().split("\n")[0].split()
    (tmp_path / "required").write_text(f"\n{words[5]}\t{words[5]}\n\n\n\n")
    (tmp_path / "in").write_text(TEXT)
    line = [*run, "--input", tmp_path / "in", "--constraints", tmp_path / "required", "--no-repeat-ngram", 1]
    assert "required:2: no translation contains all" in refused(command(*line))
    (tmp_path / "required").write_text("\nqqqq\n\n\n\n")
    assert "required:2: 'qqqq' cannot be required" in refused(command(*line))
    assert "--sample cannot be combined with any of" in refused(command(*line, "--sample", 2))


@pytest.mark.ci
def test_no_n_gram_twice(tiny: Path, command: Command) -> None:
    """A run that has hardly been trained repeats itself, unless it must not."""
    for order in (1, 2):
        found = translated(command, tiny / "run", "--no-repeat-ngram", order)
        for line in found:
            words = line.split()
            grams = [tuple(words[at : at + order]) for at in range(len(words) - order + 1)]
            assert len(set(grams)) == len(grams)
