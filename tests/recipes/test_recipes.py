"""The recipes: results of their Python scripts; all recipes in a short form are slow tests. That of WMT'14,
which has a corpus of its own, is tested in test_wmt14.py."""

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.cli import average, train, translate
from nmt.io import files
from nmt.metrics import corpus_bleu
from nmt.models.transformer import TransformerConfig
from nmt.training import config_file
from recipes.hybrid import summary
from recipes.low_resource import corpora, curve
from recipes.presets import choice
from recipes.properties import corpus
from tests.conftest import BIN, ROOT

RECIPES = ROOT / "recipes"
WITHOUT_ARGUMENTS = ("quickstart", "moses_attention", "moses_lm", "ptb_words")
REFERENCE = [f"a b c d{n % 7} e f" for n in range(40)]


def run(*line: object, cwd: Path | str = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a script by bash or Python, according to its ending."""
    program = sys.executable if str(line[0]).endswith(".py") else "bash"
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **env}
    given = [program, *map(str, line)]
    return subprocess.run(given, capture_output=True, text=True, env=environment, check=False, cwd=cwd)


def run_in(folder: Path, script: Path, *options: str) -> Path:
    """Run a script as if the repository were `folder`, without other corpora; returns the folder of its
    output."""
    for part in ("nmt", "recipes"):
        (folder / part).symlink_to(ROOT / part)
    text = script.read_text(encoding="utf-8").replace('cd "$(dirname "$0")/../.."', f"cd {folder}")
    (folder / "run.sh").write_text(text, encoding="utf-8")
    done = run(folder / "run.sh", *options, NMT_DATA="")
    assert done.returncode == 0, done.stderr[-3000:]
    (folder / "stdout").write_text(done.stdout, encoding="utf-8")
    return folder / "runs"


def run_twice(pattern: str, *line: object, **env: str) -> int:
    """Run a script twice, and check that the second run writes none of the files that match the pattern;
    returns their number. They are in the folder of --out."""
    out = Path(str(line[line.index("--out") + 1]))
    found = []
    for _ in range(2):
        done = run(*line, **env)
        assert done.returncode == 0, done.stderr[-3000:]
        found.append({path: path.stat().st_mtime_ns for path in out.glob(pattern)})
    assert found[0] == found[1]
    return len(found[0])


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def table(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in lines(path)]


@pytest.mark.parametrize(
    ("script", "options", "data", "message"),
    [
        (
            "augmentation/distillation.sh",
            "--quick --out OUT --quik",
            "",
            "distillation.sh: unknown option --quik",
        ),
        ("hybrid/run.sh", "--data OUT --out OUT/out --rows cslm+nnmj", "", "nnmj: no network, expected cslm"),
        *((f"{name}/run.sh", "-h", "", "run.sh: -h: takes no arguments") for name in WITHOUT_ARGUMENTS),
        ("guided_alignment/run.sh", "rnn rnm", "", "run.sh: no training rnm, expected some of rnn "),
        ("properties/corpus.py", "multi30k OUT", "", "set NMT_DATA"),
        ("wmt14/generate.py", "OUT/multi30k/tok/train.lc.norm.tok.en --pairs 5", "", "cannot write"),
        ("properties/corpus.py", "multi30k OUT/out --long", "OUT", "multi30k: no lines for train"),
        ("low_resource/corpora.py", "tatoeba OUT 5", "OUT", "train.en.gz: cannot read"),
        ("low_resource/corpora.py", "tatoeba OUT 5 1k", "OUT", "usage: corpora.py"),
        ("low_resource/corpora.py", "tatoeba OUT 0", "OUT", "usage: corpora.py"),
        ("low_resource/curve.py", "OUT", "", "curve.py: the following arguments are required"),
        ("low_resource/curve.py", "OUT OUT/none it", "", "none: cannot read"),
        ("low_resource/curve.py", "OUT OUT/scores/aer.tsv it", "", "no translations"),
        ("low_resource/curve.py", "OUT/scores OUT/scores/aer.tsv it", "", "hybrid"),
        ("low_resource/words.py", "source OUT", "", "system.json: cannot read"),
        ("phrase_scores/table.py", "OUT OUT/none base", "", "none: cannot read"),
        ("phrase_scores/table.py", "OUT OUT/none", "", "table.py: the following arguments are required"),
        ("guided_alignment/table.py", "OUT OUT/scores/aer.tsv", "", "aer.tsv: cannot read"),
        (
            "guided_alignment/table.py",
            "OUT/scores OUT/scores/aer.tsv",
            "",
            "aer.tsv:1: 1 columns, expected 6",
        ),
        ("hybrid/summary.py", "best OUT OUT/none base", "", "none: cannot read"),
    ],
)
def test_mistakes_are_one_line(script: str, options: str, data: str, message: str, tmp_path: Path) -> None:
    for language in ("en", "fr"):  # a line that is too short for the recipe properties
        files.write_text(tmp_path / f"multi30k/tok/train.lc.norm.tok.{language}", ["yes"])
    files.write_text(tmp_path / "scores/aer.tsv", ["head", "row"])
    files.write_text(tmp_path / "scores/5.seed-1.neural", ["a", "b"])
    given = options.replace("OUT", str(tmp_path)).split()
    done = run(RECIPES / script, *given, NMT_DATA=data.replace("OUT", str(tmp_path)))
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1


# ---- augmentation ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_back_translation(tmp_path: Path) -> None:
    """The second half of the corpus is used only as target text."""
    script, out = RECIPES / "augmentation/back_translation.sh", tmp_path / "out"
    done = run(script, "--quick", "--out", out, "--pairs", "200")
    assert done.returncode == 0, done.stderr[-3000:]
    texts = out / "texts"
    assert lines(texts / "mono.fr") == lines(texts / "train-200.fr")[100:]
    assert len(lines(texts / "mono.en")) == 100
    used = re.search(r"corpus back <bt>: (\d+) pairs", done.stderr)
    assert used and int(used[1]) == sum(bool(line.strip()) for line in lines(texts / "mono.en"))
    rows = lines(out / "back_translation-test" / "compare.tsv")
    assert len(rows) == 4 and [len(lines(out / f"test.{name}.fr")) for name in ("half", "whole")] == [40, 40]
    assert run_twice("*.fr", script, "--quick", "--out", out, "--pairs", "200")


@pytest.mark.slow
def test_distillation(tmp_path: Path) -> None:
    done = run(RECIPES / "augmentation/distillation.sh", "--quick", "--out", tmp_path, "--pairs", "200")
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(lines(tmp_path / "texts" / "distilled.fr")) == 200
    assert len(lines(tmp_path / "distillation-dev" / "compare.tsv")) == 4


# ---- hybrid ------------------------------------------------------------------------------------------------


def test_systems_are_chosen_on_dev(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second of two systems is better on dev and worse on test."""

    def output(wrong: int, seed: int) -> list[str]:
        return [line if n % (wrong + seed) else "x" for n, line in enumerate(REFERENCE)]

    for name, every in (("baseline:rescored", {"dev": 3, "test": 5}), ("attention", {"dev": 6, "test": 2})):
        for part, wrong in every.items():
            files.write_text(tmp_path / part, REFERENCE)
            for seed in (1, 2, 3):
                files.write_text(tmp_path / f"{name}.seed-{seed}.{part}", output(wrong, seed))
    names = ["baseline:rescored", "attention"]
    assert summary.best(tmp_path, str(tmp_path / "dev"), names) == "attention"
    summary.show(tmp_path, str(tmp_path / "dev"), str(tmp_path / "test"), names)
    head, first, second, note = capsys.readouterr().out.split("\n")[:4]
    assert head.split("\t") == ["row", "dev", "test", "chosen"] and first.endswith("\t")
    assert second.split("\t")[3] == "by dev" and float(first.split("\t")[2]) > float(second.split("\t")[2])
    scores = [corpus_bleu(output(6, seed), [REFERENCE], "none").score for seed in (1, 2, 3)]
    assert float(second.split("\t")[1]) == pytest.approx(sum(scores) / 3, abs=0.006)
    assert note.startswith("# attention against baseline:rescored on test")
    assert len(note.split(": ")[1].split()) == 3


@pytest.mark.slow
def test_hybrid_systems(tmp_path: Path) -> None:
    """With tiny networks on the grammar's corpus, every file is written."""
    options = ["--data", "generated", "--quick", "--joints", "--rows", "cslm+nnjm cslm+nnjm+attention"]
    script = RECIPES / "hybrid/run.sh"
    assert run_twice("rows/*:mbr.*", script, "--out", tmp_path, *options, OMP_NUM_THREADS="1") == 9
    names = [row[0] for row in table(tmp_path / "table.tsv")]
    rows = ["baseline", "cslm+nnjm", "cslm+nnjm+attention"]
    assert names[:7] == ["row", *rows, "neural-1", "neural-2", "neural-1+2"]
    assert {"baseline:rescored", "cslm+nnjm:rescored"} < set(names)
    assert any(name.endswith(":joints") for name in names)
    summed = (tmp_path / "summary.tsv").read_text()
    assert summed.count("by dev") == 1 and summed.count("\n# ") == 1


# ---- low_resource ------------------------------------------------------------------------------------------


def test_each_size_contains_the_smaller_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts, out = tmp_path / "mine", tmp_path / "out"
    for part, count in (("train", 50), ("dev", 3), ("test", 4)):
        for language in ("en", "fr"):
            files.write_text(texts / f"{part}.{language}", [f"{part} {language} {n}" for n in range(count)])
    corpora.main(str(texts), out, [5, 20, 60])
    assert "has 50 pairs; 60 is left out" in capsys.readouterr().err
    small, large = (
        list(zip(lines(out / f"train-{size}.en"), lines(out / f"train-{size}.fr"), strict=True))
        for size in (5, 20)
    )
    assert small == large[:5] and len(set(large)) == 20 and not (out / "train-60.en").exists()
    assert all(a.split()[2] == b.split()[2] for a, b in large), "pairs stay pairs"
    assert [a.split()[2] for a, _ in large] != [str(n) for n in range(20)], "not the beginning of the corpus"
    assert (out / "dev.fr").read_text() == (texts / "dev.fr").read_text()


@pytest.mark.ci
def test_the_hybrid_is_compared_with_the_better_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A size without an attention model leaves a gap in its curve."""
    pytest.importorskip("matplotlib")
    files.write_text(tmp_path / "ref", REFERENCE)
    worse = {"phrase-based": 3, "neural": 2, "hybrid": 5}  # every n-th line is wrong
    for size, seed, system in [(10, 1, name) for name in worse] + [
        (5, seed, name) for seed in (1, 2) for name in ("phrase-based", "hybrid")
    ]:
        output = [line if n % worse[system] else f"x {n + seed}" for n, line in enumerate(REFERENCE)]
        files.write_text(tmp_path / f"{size}.seed-{seed}.{system}", output)
    curve.main(tmp_path, str(tmp_path / "ref"), "it")
    small, large = [line.split("\t") for line in capsys.readouterr().out.split("\n")[1:3]]
    of_part = [line if n % 3 else f"x {n + 1}" for n, line in enumerate(REFERENCE)]
    assert large[:3] == ["10", "1", f"{corpus_bleu(of_part, [REFERENCE]).score:.2f}"]
    assert small[:2] == ["5", "2"] and small[3] == "" and float(large[3]) < float(large[2]) < float(large[4])
    assert small[5] == large[5] == "phrase-based" and len(small[7].split()) == 2
    assert float(large[6]) == pytest.approx(float(large[4]) - float(large[2]), abs=0.011)
    assert (tmp_path / "curve.png").stat().st_size > 5000 and "hybrid" in (tmp_path / "curve.svg").read_text()


@pytest.mark.slow
def test_learning_curves(tmp_path: Path) -> None:
    """Two sizes of the grammar's corpus."""
    options = ["--data", "generated", "--sizes", "300 1000 90000", "--seeds", "1", "--budget", "180s"]
    assert run_twice("*.seed-1.*", RECIPES / "low_resource/run.sh", "--out", tmp_path, *options) >= 6
    head, *rows = table(tmp_path / "curve.tsv")
    assert [row[0] for row in rows[:2]] == ["300", "1000"] and "neural" in head
    assert (tmp_path / "curve.svg").exists() and (tmp_path / "1000.seed-1/report.html").exists()


# ---- multiscale_ptb ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_multiscale_language_models(tmp_path: Path) -> None:
    """From nothing to bits per character, dictionary, samples, arcs and curves; the multi-scale model leads
    after 60 updates."""
    limits = ["training.max_steps=60", "training.validate_every=60", "training.max_minutes=0", "threads=1"]
    out = run_in(tmp_path, RECIPES / "multiscale_ptb/run.sh", "generated", *limits) / "multiscale_generated"
    rows = dict(row for row in table(tmp_path / "stdout") if "bits per character" in "\t".join(row))
    bits = {name: float(text.split()[0]) for name, text in rows.items()}
    assert 0.5 < bits["multiscale"] < bits["recurrent"] < 5.5
    samples = lines(out / "samples.txt")
    assert len(lines(out / "dictionary.tsv")) > 900 and len(samples) == 10 and "·" in "".join(samples)
    symbols, arcs, mean = table(out / "arcs.tsv")[1]
    assert int(symbols) < int(arcs) and 1 < float(mean) < 10
    assert (out / "analysis" / "curves.png").stat().st_size > 5000


# ---- presets -----------------------------------------------------------------------------------------------


PARSERS = {"nmt-average": average.parser, "nmt-translate": translate.parser}


@pytest.mark.ci
def test_variants_of_presets(tmp_path: Path) -> None:
    """Every variant is a valid configuration, and every command can be parsed."""
    done = run(RECIPES / "presets/run.py", "--dry-run", "--out", tmp_path)
    commands = [line.split() for line in done.stdout.split("\n")[:-1]]
    assert done.returncode == 0 and len(commands) == 3 * 4 * 11, done.stderr
    for name, *given in commands:
        if name != "nmt-train":
            PARSERS[name]().parse_args(given)
            continue
        args = train.parser().parse_intermixed_args(given)
        config = config_file.load(args.config, args.overrides, args.preset)
        assert config.training.max_epochs == 6 and config.threads == 1
        assert Path(config.run).name.startswith(("multi30k-", "tatoeba-", "generated-"))
    done = run(RECIPES / "presets/run.py", "--variants", "lineer", "--out", tmp_path)
    assert done.returncode == 2 and "lineer: not in" in done.stderr


@pytest.mark.slow
def test_two_variants_of_tiny_models(tmp_path: Path) -> None:
    variants, out = tmp_path / "variants", tmp_path / "out"
    sizes = "model.embedding=8 model.hidden=8 model.encoder_hidden=8 model.attention=8 model.maxout=8"
    variants.write_text(f"base {sizes}\nlinear {sizes} training.schedule=linear\n")
    given = ["--directions", "generated:fr-en", "--variant-file", variants, "--size", 200, "--epochs", 2]
    assert run_twice("generated-fr-en.base/training.pt", RECIPES / "presets/run.py", *given, "--out", out)
    rows = table(out / "table.tsv")
    assert [row[:2] for row in rows[1:]] == [["generated:fr-en", "base"], ["generated:fr-en", "linear"]]
    assert all(0 <= float(value) <= 100 for row in rows[1:] for value in row[2:5])


def equal_trainings(folder: Path, **units: float) -> list[choice.Training]:
    """Trainings of two seeds for presets whose updates have `units` target units."""
    text = choice.Text("generated:en-fr", 200, folder)
    for preset, number in units.items():
        files.write_text(folder / f"configs/generated-en-fr.200.{preset}/units", [str(number)])
    setups = [choice.Setup(text, preset) for preset in units]
    return [choice.Training(setup, 3, seed) for seed in (1, 2) for setup in setups]


def test_equal_minutes_are_equal_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of twice the speed makes as many updates of twice the size."""
    monkeypatch.setattr(choice, "RATES", {"slow": 1000, "fast": 2000})
    updates = [training.updates for training in equal_trainings(tmp_path, slow=600, fast=1200)]
    assert updates == [300] * 4, "3 minutes x 60 s x 1,000 units / 600"
    [slow, fast, *_] = equal_trainings(tmp_path / "same", slow=600, fast=600)
    assert (slow.updates, fast.updates) == (300, 600)


def test_mean_and_range_over_finished_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "RATES", {"slow": 1000, "fast": 2000})
    trainings = equal_trainings(tmp_path, slow=600, fast=600)
    files.write_text(tmp_path / "generated" / "dev.fr", REFERENCE)
    wrong = {1: [line if n % 3 else "x" for n, line in enumerate(REFERENCE)], 2: REFERENCE}
    for training in trainings[:3]:
        for path in training.outputs():
            files.write_text(path, wrong[training.seed])
    trainings[2].outputs()[1].unlink()  # the second seed of `slow` is translated by its last checkpoint only
    header, *rows, signature = choice.table(trainings)
    worst = f"{corpus_bleu(wrong[1], [REFERENCE]).score:.2f}"
    cells = [
        ["generated:en-fr", "200", "3", name, updates, "1"]
        for name, updates in (("slow", "300"), ("fast", "600"))
    ]
    assert [row.split("\t") for row in rows] == [
        [*cell, *[worst, f"{worst} to {worst}"] * 2] for cell in cells
    ]
    files.write_text(trainings[2].outputs()[1], wrong[2])
    slow = choice.table(trainings)[1].split("\t")
    assert slow[5] == "2" and slow[7] == f"{worst} to 100.00" and header.split("\t")[6] == "last"
    assert float(slow[6]) == pytest.approx((float(worst) + 100) / 2, abs=0.011) and "tok:13a" in signature


@pytest.mark.slow
def test_choice_of_tiny_models(tmp_path: Path) -> None:
    """Every command for both presets on the grammar's corpus; weights are removed and translations kept."""
    script, out = RECIPES / "presets/choice.py", tmp_path / "out"
    given = ["--directions", "generated:fr-en", "--minutes", "200=0.01", "--seeds", "1"]
    done = run(script, *given, "--out", out, "--dry-run")
    names = [line.split()[0] for line in done.stdout.split("\n")[:-1]]
    assert names == ["nmt-train", "nmt-average", "nmt-translate", "nmt-translate"] * 2, done.stderr[-3000:]
    assert run_twice("trainings/*", script, *given, "--out", out) == 4
    assert [row[3] for row in table(out / "table.tsv")[1:3]] == ["small", "transformer-small"]


# ---- properties --------------------------------------------------------------------------------------------


def test_joined_lines_are_neighbours_in_order() -> None:
    rows = [(f"a{n} b", f"x{n}", f"s{n}") for n in range(50)]
    joined = list(corpus.join_rows(rows, random.Random(1)))
    for column in range(3):
        assert " ".join(line[column] for line in joined) == " ".join(row[column] for row in rows)
    sizes = [len(line[1].split()) for line in joined]
    assert set(sizes) == {1, 2, 3, 4} and joined == list(corpus.join_rows(rows, random.Random(1)))
    assert all(len(a.split()) == 2 * len(b.split()) == 2 * len(c.split()) for a, b, c in joined)


def test_lengths_that_fit() -> None:
    assert corpus.fits(("a " * 5, "b " * 60)) and corpus.fits(("a " * 5, "b " * 5, "c"))
    assert not corpus.fits(("a " * 4, "b " * 5)) and not corpus.fits(("a " * 5, "b " * 61))


@pytest.mark.slow
def test_guided_alignment(tmp_path: Path) -> None:
    """A row for the automatic alignment and for each training."""
    runs = run_in(tmp_path, RECIPES / "guided_alignment/run.sh", "--quick", "rnn")
    rows = [row.split("\t") for row in files.read_lines(runs / "guided_quick/table.tsv")]
    assert [row[0] for row in rows] == ["alignment", "smt-align", "rnn"]
    assert float(rows[1][3]) < 0.05 < float(rows[2][3]) and rows[2][4]


@pytest.mark.slow
def test_properties(tmp_path: Path) -> None:
    """Three small models with a few updates on the generated corpus: every table and figure is written, and
    the report."""
    sizes = ["model.hidden=32", "model.embedding=16", "model.maxout=16"]
    options = ["generated", "long", "300", "", "training.max_steps=30", *sizes, "training.dev_beam=1"]
    out = run_in(tmp_path, RECIPES / "properties/run.sh", *options) / "properties/generated-long-300"
    for name in ("subsets", "by-length", "by-unknown", "samples", "curves", "parse"):
        assert all((out / "analysis" / f"{name}.{kind}").stat().st_size for kind in ("tsv", "svg"))
    assert "attention" in (out / "report.html").read_text(encoding="utf-8")


# ---- seeds -------------------------------------------------------------------------------------------------


def run_seeds(folder: Path, name: str, *options: str) -> Path:
    """Run a script of recipes/seeds on generated text."""
    return run_in(folder, RECIPES / "seeds" / f"{name}.sh", "--quick", *options) / "seeds"


@pytest.mark.slow
def test_language_models(tmp_path: Path) -> None:
    """From generated text to perplexities of all models and of their mixtures, and neighbors of words."""
    out = run_seeds(tmp_path, "language_models") / "lm_quick"
    found = {name: float(test) for name, _, test in table(out / "perplexities.tsv")[1:]}
    single = {"word", "characters", "kn5", "ngrams", "rnn", "lstm"}
    assert found.keys() == single | {"mix", "mix_by_context"}
    assert found["mix"] <= 1.01 * min(found[name] for name in single)
    assert (out / "neighbors" / "neighbors.tsv").exists()


@pytest.mark.slow
def test_transformers(tmp_path: Path) -> None:
    """Two seeds, the means of their checkpoints, and a comparison."""
    out = run_seeds(tmp_path, "transformer") / "transformer_quick"
    count = len(lines(out / "text" / "val.tok.en"))
    assert [len(lines(out / f"val.{seed}.mean.fr")) for seed in (1, 2)] == [count, count]
    assert len(lines(out / "val" / "compare.tsv")) == 4


def test_the_transformer_of_the_recipe() -> None:
    """Tokens are not changed, both sides share one vocabulary, and enough checkpoints are kept for the mean
    of ten."""
    recipe, texts = (
        RECIPES / "seeds" / "transformer.yaml",
        ["data.train_source=a.en", "data.train_target=a.fr"],
    )
    config = config_file.load(str(recipe), ["run=r", *texts], preset="transformer-small")
    assert isinstance(config.model, TransformerConfig) and config.model.tied == "all"
    assert config.data.shared_vocabulary and not config.data.target.tokenize
    assert config.data.source.case == config.data.target.case == "keep"
    assert config.training.keep == 10 and config.training.max_minutes == 85


@pytest.mark.slow
def test_variable_computation(tmp_path: Path) -> None:
    """Two models, the second with as many units as the operations of the first allow."""
    out = run_seeds(tmp_path, "variable_computation") / "computation_quick"
    rows = table(out / "computation.tsv")[1:]
    assert [row[0] for row in rows] == ["rnn", "vcrnn"] and rows[0][1] == rows[1][1]
    assert 0 < int(rows[0][1]) <= 48 and all(0 < float(value) < 8 for row in rows for value in row[2:])
    assert f"hidden: {rows[0][1]}\n" in (out / "rnn" / "config.yaml").read_text()
    assert (out / "vcrnn.computation" / "computation.svg").exists()


@pytest.mark.slow
def test_discourse(tmp_path: Path) -> None:
    """A pre-trained encoder, a translator from scratch and one that starts from the encoder."""
    out = run_seeds(tmp_path, "discourse") / "discourse_quick"
    header, *rows = table(out / "discourse.tsv")
    assert header == ["model", "update", "dev cost"] and [row[0] for row in rows] == ["scratch", "started"]
    assert rows[0][2] != rows[1][2] and all(0 < float(row[2]) < 12 for row in rows)
    assert "accuracy order 0." in (out / "pretrained" / "dev.tsv").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "kind", "options", "layers"),
    [
        ("output_layers", "cslm", "", "flat learned huffman random classes clusters nce"),
        ("output_layers_large", "recurrent", "--large flat clusters", "flat clusters"),
    ],
)
def test_output_layers(folder: str, kind: str, options: str, layers: str, tmp_path: Path) -> None:
    """Perplexities of all layers, and of those that are named."""
    out = run_seeds(tmp_path, "output_layers", *options.split()) / f"{folder}_quick"
    header, *rows = table(out / "perplexities.tsv")
    assert header == ["layer", "dev", "test", "words/s in training"]
    assert [row[0] for row in rows] == layers.split()
    assert all(1 < float(value) < 400 for row in rows for value in row[1:3])
    assert f"type: {kind}" in (out / "flat" / "config.yaml").read_text()


@pytest.mark.slow
def test_the_whole_quickstart_from_the_installed_commands(tmp_path: Path) -> None:
    """Expected: recipes/quickstart/expected.tsv; our BLEU is at least twice the baseline's and 20 points
    above it."""
    shutil.copytree(RECIPES, tmp_path / "recipes")
    done = run("recipes/quickstart/run.sh", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    printed = done.stdout.rstrip("\n").split("\n")[-4:]
    ours, baseline = float(printed[0].split()[2]), float(printed[1].split()[5])
    for row in lines(RECIPES / "quickstart/expected.tsv")[1:]:
        name, value, tolerance = row.split("\t")
        assert abs({"bleu": ours, "word_for_word_bleu": baseline}[name] - float(value)) <= float(tolerance)
    assert ours >= 2 * baseline and ours >= baseline + 20
    assert printed[2] == "run directory: runs/quickstart/model"
    rows = [line.split("\t") for line in lines(tmp_path / "runs/quickstart/analysis/by-length.tsv")[1:]]
    assert len(rows) > 60 and all(int(row[4]) >= 50 for row in rows)
