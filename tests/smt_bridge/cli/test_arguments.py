"""No command of smt_bridge overwrites its inputs, or writes two outputs to one file; numbers out of range are
refused."""

from pathlib import Path

import pytest

from tests.nmt.cli.test_arguments import Capture, check_inputs, check_outputs, told

# Command lines as words: `<name` is a file that is read, `>name` one that is written.
LINES = {
    "align": [
        (
            "--source <a --target <b --forward <f --reverse <r --output >out --forward-output >one "
            "--reverse-output >two --work >work"
        )
    ],
    "extract": [
        (
            "--source <a --target <b --alignment <links --output >table --reordering >other --lexical stem "
            "--work >work"
        )
    ],
    "filter_table": ["<table --input <a <b --output >out --reordering <other --reordering-output >rows"],
    "select": ["--in-domain <a <b --general <c <d --output >one >two --scores >scores --dev <dev"],
    "rescore": [
        (
            "<list <more --source <a --weights <w --decoder-weights <old --feature lm=lm --backoff <arpa "
            "--output >out --best >best --mbr bleu --mbr-tune <r <r2 --mbr-scale-output >scale"
        )
    ],
    "score_table": ["<table --feature lm=lm --backoff <arpa --reuse <old --output >out --report >report"],
    "propose": [
        (
            "<table <run --inverse <back --lexical stem --input <a <b --output >out --reordering <other "
            "--reordering-output >rows"
        )
    ],
    "tune": ["<ini --source <a --reference <r <r2 --output >out --work >work"],
    "tune_nbest": [
        "--n-best <list <more --reference <r <r2 --init <w --output >out",
        "--features <f --scores <s --export-features >f2 --export-scores >s2",
    ],
    "build": [
        (
            "--source <a --target <b --dev-source <c --dev-target <d --monolingual <more --glossary <terms "
            "--plan <plan --output >out"
        ),
        "--parallel <a <b --dev-parallel <c <d --output >out",
    ],
    "train": [">model --source <a --target <b --alignment <links --lm-text <text"],
    "decode": [
        "<ini --input <a --weights <w --output >out --n-best-list >list",
        "<ini --document <a.txt --output >out",
    ],
    "ini": [
        "set-weights <ini --weights <w --output >out",
        "add-feature <ini --name X --weight 1 --path <table --output >out",
        "remove-feature <ini --name X --path <table --output >out",
    ],
    "moses": [
        "filter <ini --input <a --output >out",
        "decode <ini --input <a --output >out --n-best-list >list",
        "tune <ini --input <a --reference <r <r2 --working-dir >work",
    ],
}
CASES = [(f"smt-{name}", f"{line} --log >log") for name, lines in LINES.items() for line in lines]


@pytest.mark.parametrize(("command", "line"), CASES)
@pytest.mark.ci
def test_no_output_is_an_input(command: str, line: str, tmp_path: Path, capsys: Capture) -> None:
    check_inputs(tmp_path, capsys, command, line)


@pytest.mark.parametrize(("command", "line"), CASES)
def test_no_output_is_another_output(command: str, line: str, tmp_path: Path, capsys: Capture) -> None:
    check_outputs(tmp_path, capsys, command, line)


DERIVED = [
    (
        "extract",
        "--source stem.e2f --target <b --alignment <links --output >table --lexical stem",
        "is also read",
    ),
    (
        "extract",
        "--source <a --target <b --alignment <links --output stem.f2e --lexical ./stem",
        "is also written",
    ),
    ("score_table", "<table --feature lm=model --output model", "is also read"),
    ("score_table", "out.scores.json --feature lm=model --output out", "is also read"),
    ("propose", "<table <run --lexical stem --input <a --output stem.f2e", "is also read"),
    ("moses", "compact out.minphr --output out --moses moses", "is also read"),
]


@pytest.mark.parametrize(("name", "line", "message"), DERIVED)
def test_names_that_a_command_makes_itself(
    name: str, line: str, message: str, tmp_path: Path, capsys: Capture
) -> None:
    for made in ("stem.e2f", "stem.f2e", "model", "out.scores.json", "out.minphr"):
        (tmp_path / made).write_text("x\n")
    (tmp_path / "moses" / "bin").mkdir(parents=True)
    (tmp_path / "moses" / "bin" / "moses").write_text("")
    (tmp_path / "moses" / "bin" / "moses").chmod(0o755)
    assert message in told(tmp_path, capsys, f"smt-{name}", line.split())


NUMBERS = [
    ("select", "--in-domain a --general b --output o --keep 1 --seed -5"),
    ("select", "--in-domain a --general b --output o --keep 1 --order 40"),
    ("select", "--in-domain a --general b --output o --keep ²"),
    ("extract", "--source a --target b --alignment l --max-length 9"),
    ("extract", "--source a --target b --alignment l --memory 50M"),
    ("train", "m --source a --target b --distortion-limit -2"),
    ("train", "m --source a --target b --order 1_0"),
    ("tune", "m --source a --reference b --restarts -1"),
    ("tune", "m --source a --reference b --final-seeds -1"),
    ("tune", f"m --source a --reference b --iterations {'9' * 5000}"),
    ("tune_nbest", "--n-best n --reference r --seed -1"),
    ("tune_nbest", "--n-best n --reference r --runs nan"),
    ("propose", "t run --lexical l --input a --least nan"),
    ("propose", "t run --lexical l --input a --thin -1"),
    ("score_table", "t --feature lm=x --shard ²/3"),
    ("ini", "add-feature i --name X --weight inf"),
    ("rescore", "n --source a --best b --mbr bleu --mbr-scale 1 -0.5"),
]


@pytest.mark.parametrize(("name", "line"), NUMBERS)
def test_numbers_out_of_range(name: str, line: str, tmp_path: Path, capsys: Capture) -> None:
    message = told(tmp_path, capsys, f"smt-{name}", line.split())
    assert "argument --" in message and len(message) < 300


ALONE = [
    ("tune", "m --source a --reference b --method xbleu --passes 3", "--passes goes with --method kbmira"),
    ("tune_nbest", "--n-best n --reference r --ridge 1", "--ridge goes with --method pro"),
]


@pytest.mark.parametrize(("name", "line", "message"), ALONE)
def test_options_without_their_partner(
    name: str, line: str, message: str, tmp_path: Path, capsys: Capture
) -> None:
    found = told(tmp_path, capsys, f"smt-{name}", line.split())
    assert message + "; give that, too, or leave it out" in found
