"""Language models by their commands, as installed: train, resume, score, perplexity, n-gram estimation."""

import gzip
import math
import stat
from pathlib import Path

import pytest

from nmt.io import files
from nmt.ngram import count_models
from nmt.runs import checkpoint
from nmt.runs.language_model import load_language_model
from tests.conftest import Command, Refused

KINDS = {
    "cslm": ["lm.type=cslm", "lm.order=4", "lm.layers=[24]", "lm.normalizer=0.1"],
    "recurrent": (
        "lm.type=recurrent lm.hidden=16 lm.carry=true lm.bptt=7 lm.depth=2 training.batch_size=8"
    ).split(),
    "elman": ["lm.type=recurrent", "lm.cell=elman", "lm.hidden=16"],
    "vcgru": ["lm.type=recurrent", "lm.cell=vcgru", "lm.hidden=16", "lm.sharpness=0.5"],
    "log-bilinear": ["lm.type=log-bilinear", "lm.order=3"],
    "characters": ["lm.type=characters", "lm.hidden=16", "lm.widths=[1,2,3]", "lm.filters=4"],
}


def config(folder: Path, out: Path, kind: str, *more: str) -> list[str | Path]:
    path = out / "lm.yaml"
    path.write_text(
        f"run: {out}/run\nthreads: 1\nmatmul: mkl\n"
        f"data: {{train_text: {folder}/train.fr, dev_text: {folder}/dev.fr, target: {{language: fr}}}}\n"
        "lm: {embedding: 16, dropout: 0.1, init_scale: 0.1}\n"
        "training: {optimizer: adam, learning_rate: 0.01, cost: word, batch_size: 16, max_steps: 40, "
        "validate_every: 20, log_every: 10}\n",
        encoding="utf-8",
    )
    return [path, *KINDS[kind], *more]


@pytest.mark.ci
@pytest.mark.parametrize("kind", list(KINDS))
def test_resumed_is_as_never_stopped(
    kind: str, tiny: Path, runs: dict[str, Path], tmp_path: Path, command: Command
) -> None:
    """Stopped in the middle of an epoch, where running text has a state to go on from."""
    for limit in (13, 27, 40):
        done = command("nmt-train", *config(tiny, tmp_path, kind, f"training.max_steps={limit}"))
        assert done.returncode == 0, done.stderr
    first, second = (checkpoint.load_tensors(run / "step-40.pt") for run in (runs[kind], tmp_path / "run"))
    assert first.keys() == second.keys() and all((first[key] == second[key]).all() for key in first)


@pytest.fixture(scope="module")
def runs(tiny: Path, tmp_path_factory: pytest.TempPathFactory, command: Command) -> dict[str, Path]:
    found = {}
    for kind in KINDS:
        folder = tmp_path_factory.mktemp(kind)
        done = command("nmt-train", *config(tiny, folder, kind))
        assert done.returncode == 0 and "development text: 20 sentences" in done.stderr, done.stderr
        found[kind] = folder / "run"
    return found


@pytest.mark.ci
@pytest.mark.parametrize("kind", list(KINDS))
def test_scores_and_perplexity_of_a_run(
    kind: str, runs: dict[str, Path], tiny: Path, command: Command
) -> None:
    done = command("nmt-score", runs[kind], "-i", tiny / "dev.fr", "--word-scores", "-q")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    rows = [
        [list(map(float, part.split())) for part in line.split(" ||| ")]
        for line in done.stdout.split("\n")[:-1]
    ]
    assert len(rows) == 20 and all(total[0] == pytest.approx(sum(words), abs=1e-4) for total, words in rows)
    units = sum(len(words) for _, words in rows)
    table = dict(
        line.split("\t")[::-1]
        for line in command("nmt-perplexity", runs[kind], "-i", tiny / "dev.fr", "-q").stdout.split("\n")[:-1]
    )
    assert float(table["log p of the text, natural"]) == pytest.approx(
        sum(total[0] for total, _ in rows), abs=1e-3
    )
    found = float(table["perplexity per unit, ends of sentences counted, unknown ones as <unk>"])
    assert found == pytest.approx(math.exp(-sum(total[0] for total, _ in rows) / units), rel=1e-4)
    assert table["of them unknown"] == "0" and float(table["perplexity without unknown units"]) == found
    characters = len((tiny / "dev.fr").read_text(encoding="utf-8"))
    assert float(table["bits per character, ends of lines counted"]) == pytest.approx(
        -sum(total[0] for total, _ in rows) / math.log(2) / characters, rel=1e-4
    )
    assert table["sentences"] == "20" and int(table["words or subword units"]) == units - 20
    if kind == "cslm":  # sentences on their own: the last development score of training is this perplexity
        last = (runs[kind] / "dev.tsv").read_text().rstrip("\n").split("\n")[-1].split("\t")
        assert found == pytest.approx(float(last[3]), rel=1e-4)


@pytest.mark.ci
def test_an_empty_line_is_a_sentence(runs: dict[str, Path], command: Command) -> None:
    for run in runs.values():
        lines = command(
            "nmt-score", run, "-i", "-", "--word-scores", "-q", input="\nle chat\n\n"
        ).stdout.split("\n")[:-1]
        assert [len(line.split(" ||| ")[1].split()) for line in lines] == [1, 3, 1]


@pytest.mark.ci
def test_assume_normalized(runs: dict[str, Path], tiny: Path, command: Command) -> None:
    exact, fast = (
        command("nmt-score", runs["cslm"], "-i", tiny / "dev.fr", "-q", *more).stdout.split("\n")[:-1]
        for more in ([], ["--assume-normalized"])
    )
    assert exact != fast
    table = command("nmt-perplexity", runs["cslm"], "-i", tiny / "dev.fr", "-q", "--assume-normalized").stdout
    assert (
        0 < float(table.split("\tmean |log Z| of distinct contexts")[0].rpartition("\n")[2]) < 3
        and "assumed\tlog Z = 0" in table
    )
    assert [float(a) for a in exact] == pytest.approx([float(b) for b in fast], rel=0.5)


@pytest.mark.ci
def test_running_text_goes_on_from_call_to_call(runs: dict[str, Path], tiny: Path) -> None:
    lines = list(files.read_lines(tiny / "dev.fr"))
    whole, parts = load_language_model(str(runs["recurrent"])), load_language_model(str(runs["recurrent"]))
    expected = [scored.log_probs for scored in whole.score(lines)]
    found = [
        scored.log_probs for part in (lines[:7], lines[7:8], [], lines[8:]) for scored in parts.score(part)
    ]
    assert [value for line in found for value in line] == pytest.approx(
        [value for line in expected for value in line], abs=1e-5
    )
    alone = load_language_model(str(runs["recurrent"])).score(lines[7:8])[0].log_probs
    assert alone != pytest.approx(expected[7], abs=1e-5), "what came before matters"


@pytest.mark.ci
def test_what_is_refused(
    runs: dict[str, Path], tiny: Path, tmp_path: Path, command: Command, refused: Refused
) -> None:
    dev = ["-i", tiny / "dev.fr"]
    for words, cause in (
        (["nmt-translate", runs["cslm"]], "is a language model, expected a translator"),
        (["nmt-score", tiny / "run", *dev], "expected a language model's run directory"),
        (["nmt-score", tiny / "run"], "expected --source and --target for a translator"),
        (["nmt-score", runs["recurrent"], *dev, "--assume-normalized"], "is not a CSLM trained with"),
        (["nmt-perplexity", runs["cslm"]], "empty file"),
        (["nmt-sample", runs["cslm"], "--boundaries", "|"], "tokens of cslm models are single units"),
    ):
        assert cause in refused(command(*words, "-q"))
    for change, cause in (
        ("data.train_text=", "data.train_text is missing"),
        ("data.train_target=x", "a language model reads data.train_text"),
        ("lm.type=", "set lm.type"),
        ("lm.type=ngram", "lm.type: 'ngram' is unknown"),
    ):
        assert cause in refused(command("nmt-train", *config(tiny, tmp_path, "cslm", change), "-q"))


@pytest.mark.ci
def test_ngram(tiny: Path, tmp_path: Path, command: Command, refused: Refused) -> None:
    """The file is the model; scores by the command are those of the reader; options have lmplz's names, with
    _ or -."""
    done = command(
        "nmt-ngram", "--order", 3, "-i", tiny / "train.fr", "-o", tmp_path / "lm.gz", "--discount_fallback"
    )
    assert done.returncode == 0 and "n-grams of order 1 to 3" in done.stderr, done.stderr
    model = count_models.read_arpa(tmp_path / "lm.gz")
    lines = list(files.read_lines(tiny / "dev.fr"))
    found = [
        float(line)
        for line in command("nmt-score", tmp_path / "lm.gz", "-i", tiny / "dev.fr", "-q").stdout.split("\n")[
            :-1
        ]
    ]
    assert found == pytest.approx(
        [scores.sum() for scores in model.scores(list(map(files.split_words, lines)))], abs=1e-5
    )
    table = command("nmt-perplexity", tmp_path / "lm.gz", "-q", input="un mot-qui-manque\n").stdout
    assert "2\twords or subword units\n1\tof them unknown\n" in table
    assert "--discount-fallback takes 0.5, 1.0, 1.5" in refused(command("nmt-ngram", "-q", input="a b\n"))
    assert "<stdin>" not in refused(command("nmt-ngram", "-q", "-i", tmp_path / "nothing"))
    assert "--prune 0 2 1: expected" in refused(command("nmt-ngram", "-q", "--prune", 0, 2, 1))
    more = ["-i", tiny / "train.fr", "--order", 3, "--discount_fallback", "--memory", "0.0001"]
    assert "counting on disk" in command("nmt-ngram", *more, "-o", tmp_path / "disk", PATH="/bin").stderr
    assert gzip.decompress((tmp_path / "lm.gz").read_bytes()) == (tmp_path / "disk").read_bytes()
    assert not (tmp_path / "nothing").exists()


@pytest.mark.ci
def test_lmplz_is_used_where_it_is_installed(
    tiny: Path, tmp_path: Path, command: Command, refused: Refused
) -> None:
    """A stand-in that notes its arguments and copies a file."""
    program = tmp_path / "lmplz"
    program.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\nwhile [ "$1" != --text ]; do shift; done\ncp "$2" '
        f"{tmp_path}/text\n"
        f'[ -f {tmp_path}/fail ] && {{ echo "no disk" >&2; exit 1; }}\necho from lmplz > "$4"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    line = [
        "nmt-ngram", "-q", "-i", tiny / "train.fr", "-o", tmp_path / "lm", "--memory", "0.0001", "--order",
        3, "--prune", 0, 1,
    ]  # fmt: skip
    done = command(*line, PATH=f"{tmp_path}:/bin:/usr/bin")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "lm").read_text() == "from lmplz\n" and (tmp_path / "text").read_bytes() == (
        tiny / "train.fr"
    ).read_bytes()
    arguments = (tmp_path / "arguments").read_text()
    assert (
        arguments.startswith("--order 3 --memory 0M --temp_prefix ")
        and " --prune 0 1 --interpolate_unigrams 1 --text " in arguments
    )
    (tmp_path / "fail").touch()
    (tmp_path / "lm").unlink()
    assert "lmplz failed: no disk" in refused(command(*line, PATH=f"{tmp_path}:/bin:/usr/bin"))
    assert not (tmp_path / "lm").exists()
    assert "there is no lmplz on the PATH" in refused(
        command("nmt-ngram", "-q", "-i", tiny / "train.fr", "--estimator", "lmplz", PATH="/bin")
    )


@pytest.mark.ci
def test_language_models_as_features(runs: dict[str, Path], tmp_path: Path, command: Command) -> None:
    """Of n-best lists: log p of the whole sentence, its end included. Of a table: of its words alone."""
    (tmp_path / "n").write_text("0 ||| le chat ||| X= -1 ||| -1\n0 ||| l&apos; eau ||| X= -2 ||| -2\n")
    (tmp_path / "s").write_text("a\n")
    (tmp_path / "t").write_text("a ||| le chat ||| 0.5 ||| 0-0 ||| 1 1 1\n")
    for run in runs.values():
        assert "l'" in checkpoint.load_lm(run).words.ids
        lines = "le chat\nl' eau\n"
        expected = [
            [float(value) for value in line.split(" ||| ")[1].split()]
            for text in lines.split("\n")[:-1]
            for line in command(
                "nmt-score", run, "-i", "-", "--tokenized", "--word-scores", "-q", input=text + "\n"
            ).stdout.split("\n")[:-1]
        ]
        done = command(
            "smt-rescore", tmp_path / "n", "-s", tmp_path / "s", "-f", f"neural-lm={run}", "-o", "-", "-q"
        )
        found = [float(line.split("NeuralLM0= ")[1].split(" ")[0]) for line in done.stdout.split("\n")[:-1]]
        assert found == pytest.approx([sum(scores) for scores in expected], abs=1e-4), done.stderr
        done = command("smt-score-table", tmp_path / "t", "-f", f"neural-lm={run}", "-q")
        assert math.log(float(done.stdout.split(" ||| ")[2].split()[-1])) == pytest.approx(
            sum(expected[0][:-1]), abs=1e-3
        ), done.stderr


@pytest.mark.ci
def test_backoff_shares_unknown_words(
    runs: dict[str, Path], tiny: Path, tmp_path: Path, command: Command, refused: Refused
) -> None:
    """Known words keep their scores; of two unknown ones the one that the n-gram model knows is more
    probable."""
    command(
        "nmt-ngram", "--order", 2, "-i", "-", "-o", tmp_path / "lm", "--discount-fallback",
        input="un zug\nun zug\nle zug\nle bus\nun chat\n",
    )  # fmt: skip
    line = ["nmt-score", runs["cslm"], "-i", "-", "--word-scores", "-q"]
    plain, shared = (
        [
            [float(v) for v in row.split(" ||| ")[1].split()]
            for row in command(*line, *more, input="un zug\nun bus\n").stdout.split("\n")[:-1]
        ]
        for more in ([], ["--backoff", tmp_path / "lm"])
    )
    assert plain[0][:2] == plain[1][:2] and [row[0] for row in plain] == [row[0] for row in shared]
    assert shared[0][1] < plain[0][1] and shared[1][1] < shared[0][1]
    (tmp_path / "n").write_text("0 ||| un bus ||| X= -1 ||| -1\n")
    (tmp_path / "s").write_text("a\n")
    done = command(
        "smt-rescore", tmp_path / "n", "-s", tmp_path / "s", "-f", f"neural-lm={runs['cslm']}", "--backoff",
        tmp_path / "lm", "-o", "-", "-q",
    )  # fmt: skip
    assert float(done.stdout.split("NeuralLM0= ")[1].split(" ")[0]) == pytest.approx(sum(shared[1]), abs=1e-4)
    assert "which backs off by itself" in refused(
        command("nmt-score", tmp_path / "lm", "-i", tiny / "dev.fr", "-q", "--backoff", tmp_path / "lm")
    )


@pytest.mark.ci
def test_samples_of_the_other_models(runs: dict[str, Path], command: Command) -> None:
    for run in runs.values():
        first, again, other = (
            command("nmt-sample", run, "-n", 4, "--max-length", 9, "-q", "--seed", seed).stdout
            for seed in (1, 1, 2)
        )
        assert first == again != other and first.count("\n") == 4
        assert all(len(line.split()) <= 9 for line in first.split("\n"))


@pytest.mark.ci
def test_what_a_model_computes(runs: dict[str, Path], tiny: Path, tmp_path: Path, command: Command) -> None:
    """Every unit of a text with its m, and a picture; λ has grown with the epochs and is in the run."""
    done = command("nmt-analyze", "computation", runs["vcgru"], tiny / "dev.fr", "-o", tmp_path / "out")
    assert done.returncode == 0 and "as many operations as an Elman layer of" in done.stdout, done.stderr
    header, *rows = (tmp_path / "out" / "computation.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    fields = [dict(zip(header.split("\t"), row.split("\t"), strict=True)) for row in rows]
    assert fields[-1]["line"] == "20" and all(0 < float(row["m"]) < 1 for row in fields)
    assert all(0 < int(row["dimensions"]) <= 16 for row in fields)
    assert (tmp_path / "out" / "computation.svg").read_text(encoding="utf-8").startswith("<svg")
    trained = checkpoint.load_tensors(runs["vcgru"] / "step-40.pt")
    assert float(trained["cells.0.scheduler.sharpness"]) > 0.5
    done = command("nmt-analyze", "computation", runs["elman"], tiny / "dev.fr")
    assert done.returncode == 2 and "computes all of its state at each step" in done.stderr


# ---- multiscale --------------------------------------------------------------------------------------------


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


@pytest.mark.ci
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


@pytest.mark.ci
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
                "smt-rescore", tmp_path / "n", "-s", tmp_path / "s", "-f", f"neural-lm={tmp_path / 'b'}",
                "-o", "-", "-q",
            )
            .stdout.split("NeuralLM0= ")[1]
            .split(" ")[0]
        ),
        float(command("nmt-score", tmp_path / "b", "-i", "-", "-q", input="le chat\n").stdout),
        float(command("nmt-score", tmp_path / "a", "-i", "-", "-q", input="l e _ c h a t\n").stdout),
    ]  # fmt: skip
    assert found == pytest.approx([found[0]] * 3, abs=1e-4)
    assert "characters are not subwords" in refused(
        command("nmt-train", *base, *multiscale(tmp_path, "c", *spelled, "data.bpe_merges=9"), "-q")
    )


@pytest.mark.ci
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
