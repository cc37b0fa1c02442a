"""smt-tune-nbest: tuned weights and their spread, exported pools, and mistakes."""

import argparse
import random
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from nmt.config.settings import check, number
from nmt.errors import ConfigError
from smt_bridge.cli import rescore, tune_nbest
from smt_bridge.cli.tuners import add_tuner, parse_tuner
from smt_bridge.moses import ini
from smt_bridge.tuning.mert import Mert
from smt_bridge.tuning.registry import TUNERS, TuneConfig

# ---- test tune nbest ---------------------------------------------------------------------------------------


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    """Good and bad translations of 30 sentences; only feature B separates them, and A misleads."""
    good = [f"a{n % 3} b{n % 5} c d e{n % 2}" for n in range(30)]
    lines = []
    for n, text in enumerate(good):
        lines += [
            f"{n} ||| {text} ||| A= {n % 2} 1 B= {2 + n % 3} ||| 0",
            f"{n} ||| z {text[3:]} ||| A= {1 - n % 2} 1 B= {1 - n % 3} ||| 0",
        ]
    (tmp_path / "n").write_text("".join(line + "\n" for line in lines))
    (tmp_path / "r").write_text("".join(line + "\n" for line in good))
    return tmp_path


@pytest.mark.ci
@pytest.mark.parametrize("method", ["mert", "kbmira", "xbleu", "pro", "margin", "logistic"])
def test_weights_are_found_and_written(method: str, dev: Path, command: Command) -> None:
    line = ["smt-tune-nbest", "--n-best", dev / "n", "-r", dev / "r", "--method", method]
    done = command(*line, *(["--restarts", 2] if method == "mert" else []), "-o", dev / "w")
    assert done.returncode == 0, done.stderr
    match = re.fullmatch(r"Best point: (\S+) (\S+) (\S+)  => (\S+)\n", done.stdout)
    assert match and float(match[4]) == 1.0 and float(match[2]) == 0 and float(match[3]) > 0
    found = ini.read_weights(dev / "w")
    assert list(found) == ["A", "B"]
    assert [*found["A"], *found["B"]] == [float(match[number]) for number in (1, 2, 3)]
    assert "30 sentences are few" in done.stderr and "weights stay 0: A_1" in done.stderr
    # the weights are taken by smt-rescore
    (dev / "s").write_text("x\n" * 30)
    rescore_line = ["smt-rescore", dev / "n", "-q", "-s", dev / "s", "-w", dev / "w", "--best", dev / "b"]
    assert command(*rescore_line).returncode == 0
    assert (dev / "b").read_text() == (dev / "r").read_text()


def test_a_list_without_labels_is_tuned_and_rescored(dev: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its values are one feature, as docs/files.md says. The tuned weights pick the good translations."""
    monkeypatch.chdir(dev)
    text = re.sub("[AB]= ", "", (dev / "n").read_text())
    (dev / "n").write_text(text)
    given = ["--n-best", "n", "-r", "r", "--method", "kbmira", "-o", "w", "-q"]
    assert tune_nbest.main(given) == 0
    assert list(ini.read_weights("w")) == ["Unlabeled0"] and len(ini.read_weights("w")["Unlabeled0"]) == 3
    given = ["n", "--source", "r", "--weights", "w", "--output", "scored", "--best", "best", "-q"]
    assert rescore.main(given) == 0
    assert (dev / "best").read_text() == (dev / "r").read_text()
    parts = [line.split(" ||| ") for line in (dev / "scored").read_text().splitlines()]
    assert sorted(part[2] for part in parts) == sorted(line.split(" ||| ")[2] for line in text.splitlines())
    assert rescore.main([*given, "--decoder-weights", "w"]) == 2


@pytest.mark.ci
def test_runs_and_their_spread(dev: Path, command: Command) -> None:
    line = ["smt-tune-nbest", "-q", "--n-best", dev / "n", "-r", dev / "r", "--restarts", 1]
    done = command(*line, "--runs", 3)
    rows = [row.split("\t") for row in done.stdout.split("\n")]
    assert [row[0] for row in rows[:5]] == ["value", "BLEU", "A_0", "A_1", "B_0"] and rows[1][1] == "1"
    assert done.stdout == command(*line, "--runs", 3).stdout  # same seeds, same bytes


@pytest.mark.ci
def test_the_weights_written_are_never_below_their_start(tmp_path: Path, command: Command) -> None:
    """Batch MIRA, on lists whose features do not predict BLEU, ends below the weights of MERT that it started
    from."""
    chance = random.Random(2)
    texts = ["a b c d e", "a b c d x", "a b y d e", "z b c d e"]
    rows = [
        f"{n} ||| {text} ||| A= {chance.random():.3f} B= {chance.random():.3f} C= {chance.random():.3f} ||| 0"
        for n in range(30)
        for text in texts
    ]
    (tmp_path / "n").write_text("".join(f"{row}\n" for row in rows))
    (tmp_path / "r").write_text("a b c d e\n" * 30)
    line = ["smt-tune-nbest", "-q", "--n-best", tmp_path / "n", "-r", tmp_path / "r"]
    start = command(*line, "-o", tmp_path / "start")
    done = command(*line, "--method", "kbmira", "--init", tmp_path / "start", "-o", tmp_path / "end")
    assert done.returncode == start.returncode == 0 and "keeping the initial ones" in done.stderr
    assert done.stdout == start.stdout
    assert ini.read_weights(tmp_path / "end") == ini.read_weights(tmp_path / "start")


def test_a_dropped_feature_has_weight_0(dev: Path, command: Command) -> None:
    line = ["smt-tune-nbest", "-q", "--n-best", dev / "n", "-r", dev / "r", "--restarts", 1]
    assert command(*line, "--drop", "B", "-o", dev / "w").returncode == 0
    assert ini.read_weights(dev / "w")["B"] == [0.0] and ini.read_weights(dev / "w")["A"][0] != 0
    assert "no feature C to drop" in command(*line, "--drop", "C").stderr


def test_export_tunes_nothing(dev: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists, exported = ["--n-best", f"{dev}/n", "-r", f"{dev}/r"], ["--export-features", f"{dev}/f"]
    line = ["-q", *lists, *exported, "--export-scores"]
    assert tune_nbest.main([*line, str(dev / "s.gz")]) == 0
    assert capsys.readouterr().out == ""
    block = "FEATURES_TXT_BEGIN_0 0 2 3 A_0 A_1 B_0 \n0 1 2 \n1 1 1 \nFEATURES_TXT_END_0\n"
    assert (dev / "f").read_text().startswith(block)
    again = ["-q", "--features", f"{dev}/f", "--scores", f"{dev}/s.gz", "--method", "pro"]
    assert tune_nbest.main(again) == 0
    assert "Best point: " in capsys.readouterr().out
    assert tune_nbest.main([*line[:-1]]) == 2 and "go together" in capsys.readouterr().err
    assert tune_nbest.main([*line, f"{dev}/s", "-o", f"{dev}/w"]) == 2
    assert "does not tune" in capsys.readouterr().err


def test_mistakes(dev: Path, command: Command, refused: Callable[..., str]) -> None:
    line = ["smt-tune-nbest", "-q", "--n-best", dev / "n", "-r", dev / "r"]
    assert "give either --n-best" in refused(command("smt-tune-nbest"))
    assert "--n-best requires --reference" in refused(command("smt-tune-nbest", "--n-best", dev / "n"))
    assert "given twice" in refused(
        command("smt-tune-nbest", "--n-best", dev / "n", dev / "n", "-r", dev / "r")
    )
    assert "'Best point'" in refused(command(*line, "--output", "-"))
    for text, message in (
        ("C= 1\n", "a weight for C, which the pool does not have"),
        ("1 2\n", "2 numbers, but the pool has 3 features"),
    ):
        (dev / "w").write_text(text)
        done = command(*line, "--init", dev / "w")  # warnings about the pool come first
        assert done.returncode == 2 and message in done.stderr.rstrip("\n").split("\n")[-1]
    (dev / "r").write_text("q\n" * 30)
    assert "BLEU is 0 whatever the weights" in refused(command(*line))


# ---- test tuners -------------------------------------------------------------------------------------------
# The dict of tuners decides what --method accepts, and which settings are options.


@dataclass
class Careful(Mert):
    """A tuner that has a setting in common with mert, and thus shares its option."""

    care: float = number(0.5, least=0, help="more is slower")


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_tuner(parser)
    return parser.parse_args(words)


def test_a_tuner_added_later_is_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit):
        parsed("--method", "careful")
    with pytest.raises(ConfigError, match=r"method: 'careful' is unknown, expected one of 'mert'"):
        check(TuneConfig(method="careful"))
    monkeypatch.setitem(TUNERS, "careful", Careful)
    check(TuneConfig(method="careful"))
    assert parse_tuner(parsed("--method", "careful", "--care", "2")) == Careful(restarts=20, care=2.0)
    assert parse_tuner(parsed("--restarts", "3")) == Mert(restarts=3)


@pytest.mark.parametrize("name", TUNERS)
def test_defaults_are_those_of_the_class(name: str) -> None:
    assert parse_tuner(parsed("--method", name)) == TUNERS[name]()


def test_settings_that_a_tuner_must_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain:
        pass

    @dataclass
    class Seeded(Mert):
        seed: int = number(1)

    where = r"NMT_PLUGINS: \S+test_tune_nbest\.py:\d+: tuner 'new': "
    for tuner, problem in ((Plain, "class .*Plain lacks @dataclass"), (Seeded, "rename its setting seed")):
        monkeypatch.setitem(TUNERS, "new", tuner)
        with pytest.raises(ConfigError, match=where + problem):
            parsed()
