"""smt-tune: weights that are not tuneable stay, wrong options are refused before anything is loaded, and
names of outputs."""

from pathlib import Path

import pytest

from smt_bridge.cli import tune
from smt_bridge.decoder import system
from smt_bridge.moses import ini
from smt_bridge.moses.ini import read_weights
from tests.conftest import Command, refusal
from tests.smt_bridge.decoder.models import add_feature, decoder, edit, sentence, write_model


@pytest.mark.ci
def test_tuning_leaves_hidden_weights(tmp_path: Path, command: Command) -> None:
    """Scores that are not tuneable keep their weights; the others change, including both of a language
    model's."""
    before = decoder(write_model(tmp_path, 1), stack=5)
    edit(
        tmp_path,
        ("path=table", "path=table tuneable-components=1,0,1,0"),
        ("PhrasePenalty\n", "PhrasePenalty tuneable=false\n"),
    )
    weight = f"LM0= {before.weights['LM0'][0]:.3f}"
    edit(tmp_path, ("path=lm0", "path=lm0 oov-feature=1"), (weight, f"{weight} -0.1"))
    lines = [sentence(number, 6) for number in range(30)]
    references = [
        " ".join(word if number % 5 else "p" for number, word in enumerate(before.translate_line(line).text))
        for line in lines
    ]
    for name, text in (("source", lines), ("reference", references)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in text))
    given = ["--stack", 5, "--iterations", 2, "--restarts", 2, "--n-best", 20, "--no-cache"]
    done = command("smt-tune", tmp_path, "-s", tmp_path / "source", "-r", tmp_path / "reference", *given)
    assert done.returncode == 0, done.stderr
    table = before.weights["TranslationModel0"]
    tuned = ini.read(str(tmp_path / "moses.tuned.ini")).weights
    assert tuned["PhrasePenalty0"] == [0.1] and tuned["TranslationModel0"][1::2] == table[1::2]
    assert tuned["TranslationModel0"][0] != table[0] and len(tuned["LM0"]) == 2 and tuned["LM0"][1] != -0.1
    made = system.load(str(tmp_path), use_cache=False)
    assert made.with_weights(
        read_weights(tmp_path / "moses.tuned.ini.tuning" / "weights")
    ) == made.with_weights(tuned)


@pytest.mark.ci
def test_sparse_features_are_tuned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their weights go to a file beside the tuned ini; a tuning that goes on ends with the same weights."""
    add_feature(write_model(tmp_path, 1), "WordTranslationFeature name=WT\nPhraseLengthFeature name=PL")
    lines = [sentence(number, 6) for number in range(30)]
    before = decoder(tmp_path, True, stack=5, nbest=3)
    texts = [" ".join(before.translate_line(line).derivations[-1].text) for line in lines]
    for name, text in (("source", lines), ("reference", texts)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in text))
    given = ["-s", tmp_path / "source", "-r", tmp_path / "reference", "--stack", "5", "--n-best", "20"]
    given += ["--no-cache", "-q"]
    assert "--method kbmira" in refusal(tune.main, capsys, tmp_path, *given, "--method", "mert")

    def run(model: str, *more: str) -> tuple[str, str, str]:
        output = tmp_path / f"{model}.ini"
        options = [*given, "--method", "kbmira", "-o", output, *more]
        assert tune.main([str(word) for word in (tmp_path, *options)]) == 0
        return output.read_text(), capsys.readouterr().out, (tmp_path / f"{model}.sparse-weights").read_text()

    whole = run("whole", "--iterations", "4")
    run("parts", "--iterations", "2")
    parts = run("parts", "--iterations", "4")
    assert parts[1:] == whole[1:] and parts[0] == whole[0].replace("whole.", "parts.")
    assert "[weight-file]\nwhole.sparse-weights\n" in whole[0]
    tuned = system.load(str(tmp_path / "whole.ini"), use_cache=False)
    weights = read_weights(tmp_path / "whole.ini.tuning" / "weights")
    assert tuned.with_sparse_weights(weights) == tuned.sparse_weights and len(tuned.sparse_weights) > 10
    again = [str(tmp_path / "whole.ini"), *map(str, given), "--method", "kbmira", "-o", str(tmp_path / "new")]
    assert tune.main([*again, "--iterations", "1"]) == 0
    file = tmp_path / "whole.sparse-weights"
    file.write_text("".join(reversed(file.read_text().splitlines(keepends=True))))
    assert "sparse_weights" in refusal(tune.main, capsys, *again)  # their columns would have other names


@pytest.fixture
def model(tmp_path: Path) -> Path:
    write_model(tmp_path, 1)
    for name, text in (("s", "a b\n"), ("r", "p q\n"), ("empty", "\n")):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-s", "-"], "the texts are read more than once; give files, not -"),
        (["-r", "s", "none"], "none"),
        (["-r", "table"], "s: 1 line, but"),
        (["-s", "empty"], "empty: no words, expected a development text"),
        (["--iterations", "0"], "argument --iterations"),
        (["--final-seeds", "-1"], "argument --final-seeds"),
        (["--work", "table"], "table"),
        (["-o", "lm0"], "lm0: is also read"),
        (["-o", "-"], "--output -: "),
        (["-o", ".."], "--output ..: is a folder"),
        (["--diversity", "2"], "--diversity goes with --search cube"),
    ],
)
def test_refused(
    words: list[str], message: str, model: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(model)
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    given = [".", "-s", "s", "-r", "r", "-o", "out.ini", "--no-cache"]
    assert message in refusal(tune.main, capsys, *given, *words)
    assert {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()} == before


def test_lists_of_another_search_are_not_mixed(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tuning does not resume with another search than it began with."""
    monkeypatch.setattr("smt_bridge.tuning.loop.run", lambda *_: pytest.fail("begun"))
    given = [str(model), "-s", str(model / "s"), "-r", str(model / "r"), "--no-cache", "-q"]
    with pytest.raises(pytest.fail.Exception, match="begun"):
        tune.main(given)
    assert "search" in refusal(tune.main, capsys, *given, "--search", "cube")


def test_nothing_to_tune(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model)
    write_model(model, 1, reordering=False)
    text = (model / "moses.ini").read_text()
    lines = text.partition("[feature]\n")[2].partition("[weight]")[0].split("\n")[:-1]
    for line in lines:
        text = text.replace(f"{line}\n", f"{line} tuneable=false\n", 1)
    (model / "moses.ini").write_text(text)
    line = refusal(tune.main, capsys, ".", "-s", "s", "-r", "r", "-o", "out.ini", "--no-cache", "-q")
    assert "every feature has tuneable=false" in line


TINY = "[feature]\nUnknownWordPenalty\nWordPenalty\n[weight]\nWordPenalty0= -1\n"


@pytest.mark.parametrize(
    ("model", "output"),
    [
        ("", "moses.tuned.ini"),
        ("moses.ini", "moses.tuned.ini"),
        ("moses.rnn.ini", "moses.rnn.tuned.ini"),
        ("mine", "mine.tuned.ini"),
    ],
)
def test_each_ini_has_a_tuning_of_its_own(model: str, output: str, tmp_path: Path) -> None:
    for name in ("moses.ini", "moses.rnn.ini", "mine"):
        (tmp_path / name).write_text(TINY)
    given = [str(tmp_path / model) if model else str(tmp_path), "-s", "dev.en", "-r", "dev.fr"]
    places = tune.tuning_paths(tune.parser().parse_args(given))
    assert places.output == tmp_path / output and places.work == tmp_path / f"{output}.tuning"


@pytest.mark.ci
def test_it_says_where_nothing_is_gained(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is a warning if no decoding is better than that of the initial weights, and none otherwise."""
    lines = [sentence(number, 6) for number in range(20)]
    made = decoder(model, stack=5)
    references = [
        " ".join(word if number % 2 else "p" for number, word in enumerate(made.translate_line(line).text))
        for line in lines
    ]
    (model / "s").write_text("".join(f"{line}\n" for line in lines))
    (model / "r").write_text("".join(f"{line}\n" for line in references))
    line = [str(model), "-q", "-s", str(model / "s"), "-r", str(model / "r"), "--stack", "5", "--no-cache"]
    for count, times in ((1, 1), (4, 0)):
        given = ["--iterations", str(count), "--n-best", "20", "-o", str(model / f"{count}.ini")]
        assert tune.main([*line, *given]) == 0
        told = capsys.readouterr().err
        assert told.count("the tuning gained nothing: the best BLEU") == times
        assert told.count("20 sentences are few") == 1
