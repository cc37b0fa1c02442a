"""Models from training to translation: characters, joint models, output layers, the transformer."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch

from nmt.cli import score, train, translate
from nmt.compute.device import processor_flags
from nmt.data.affiliation import AlignedPair, affiliations
from nmt.data.aligned import make_aligned_batch
from nmt.formats import nbest
from nmt.layers.output import OUTPUTS
from nmt.lm.cslm import CSLM, CSLMConfig, ngrams
from nmt.lm.recurrent import RecurrentConfig, RecurrentLM
from nmt.models.config import RNNConfig
from nmt.models.joint import JointConfig, JointModel
from nmt.models.rnn import RNNTranslator
from nmt.runs import checkpoint, joint
from nmt.runs.language_model import load_language_model
from nmt.runs.run import Run
from nmt.scoring import pair_scores, word_scores
from nmt.search.beam import search
from nmt.search.config import BeamConfig
from nmt.training import config_file
from nmt.training.train import run_training
from tests.commands.runs import equal_runs, joint_config, joint_run, start
from tests.commands.test_lm import config
from tests.conftest import Command
from tests.nmt.layers.output.layers import zipf

# ---- test characters ---------------------------------------------------------------------------------------
# Words outside the vocabulary of a character-aware language model, by the installed commands.


@pytest.mark.ci
def test_unknown_words_of_a_character_model(tiny: Path, tmp_path: Path, command: Command) -> None:
    """They are read by their spelling, here and in n-best lists, and have neighbors."""
    done = command("nmt-train", *config(tiny, tmp_path, "characters"))
    assert done.returncode == 0, done.stderr
    run, lines = tmp_path / "run", "le chattt\nle chattt dort\nle zzz dort\n"
    done = command("nmt-score", run, "-i", "-", "--word-scores", "-q", input=lines)
    rows = [[float(v) for v in row.split(" ||| ")[1].split()] for row in done.stdout.split("\n")[:-1]]
    assert rows[0][:2] == rows[1][:2] == rows[2][:2] and rows[1][2] != rows[2][2]
    (tmp_path / "n").write_text("0 ||| le chattt dort ||| X= -1 ||| -1\n")
    (tmp_path / "s").write_text("a\n")
    lists = [tmp_path / "n", "-s", tmp_path / "s", "-o", "-", "-q"]
    done = command("smt-rescore", *lists, "-f", f"neural-lm={run}")
    assert float(done.stdout.split("NeuralLM0= ")[1].split(" ")[0]) == pytest.approx(sum(rows[1]), abs=1e-4)
    table = command("nmt-perplexity", run, "-i", "-", "-q", input=lines).stdout
    assert "3\tof them unknown" in table
    asked = ["--words", "le", "chattt", "--count", 2, "-q"]
    for more in ([], ["--before-highway"]):
        found = command("nmt-analyze", "neighbors", run, *asked, *more).stdout.split("\n")[1:-1]
        fields = [row.split("\t") for row in found]
        assert [row[:3] for row in fields] == [
            [word, known, rank] for word, known in (("le", "1"), ("chattt", "0")) for rank in "12"
        ]
        assert "le" not in [row[3] for row in fields[:2]]


# ---- test joint --------------------------------------------------------------------------------------------
# Joint models from training to scores: nmt-train, nmt-score --alignment. What cannot be done is refused in
# one line, and nothing is left behind.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with aligned text and a run."""
    folder = tmp_path_factory.mktemp("joint")
    joint_run(folder)
    return folder


def joint_weights(run: Path) -> dict[str, torch.Tensor]:
    return dict(joint.load_aligned(run, "last").model.state_dict())


def refusal(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command has said."""
    (line,) = capsys.readouterr().err.rstrip("\n").split("\n")
    return line


@pytest.mark.ci
def test_training_learns_and_a_dev_cost_is_its_measure(folder: Path) -> None:
    rows = (folder / "run" / "dev.tsv").read_text().split("\n")[1:-1]
    costs = [float(row.split("\t")[2]) for row in rows]
    assert len(costs) > 2 and costs[-1] < 0.8 * costs[0]
    config = config_file.read_run_config(folder / "run")
    assert (config.training.metric, config.training.dev_beam) == ("cost", 0)


@pytest.mark.ci
def test_scores_are_those_of_the_pairs(folder: Path, tmp_path: Path) -> None:
    """Line for line, an empty target and an alignment without points included."""
    pairs = [("a b c", "p r", "0-0 2-1"), ("b a", "q p", ""), ("c", "", ""), ("d a x", "s p p u", "0-0 1-2")]
    for name, lines in zip("sta", zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    given = [f"--{name}={tmp_path / name[0]}" for name in ("source", "target", "alignment")]
    assert score.main([str(folder / "run"), *given, "-o", str(tmp_path / "o"), "--word-scores", "-q"]) == 0
    run = joint.load_aligned(folder / "run")
    for (source, target, points), line in zip(pairs, (tmp_path / "o").read_text().split("\n"), strict=False):
        words, other = source.split(), target.split()
        links = [(int(point[0]), int(point[2])) for point in points.split()]
        pair = AlignedPair(
            run.source_words.encode(words),
            run.target_words.encode(other),
            affiliations(links, len(words), len(other)),
        )
        expected = run.model.token_log_probs(make_aligned_batch([pair], run.model.shape)).tolist()
        total, each = line.split(" ||| ")
        assert [float(value) for value in each.split()] == pytest.approx(expected, abs=1e-5)
        assert float(total) == pytest.approx(sum(expected), abs=1e-4)


@pytest.mark.parametrize("affiliation", [pytest.param("sentence", marks=pytest.mark.ci), "phrase"])
def test_resume_is_bit_exact(affiliation: str, tmp_path: Path) -> None:
    given = [f"model.affiliation={affiliation}", "model.dropout=0.2"]
    one, other = joint_config(tmp_path, "one", *given), joint_config(tmp_path, "other", *given)
    assert train.main([*one, "training.max_steps=9", "-q"]) == 0
    assert train.main([*other, "training.max_steps=4", "-q"]) == 0
    assert train.main([*other, "training.max_steps=9", "-q"]) == 0
    found, expected = joint_weights(tmp_path / "other"), joint_weights(tmp_path / "one")
    assert all(torch.equal(value, found[name]) for name, value in expected.items())


def test_a_bad_alignment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = joint_config(tmp_path, "run")
    for name, lines in (("train.s", "a\nb\n"), ("train.t", "p\nq\n"), ("train.align", "0-0\n0-0 3-0\n")):
        (tmp_path / name).write_text(lines)
    assert train.main([*given, "-q"]) == 2
    assert "train.align:2: point 3-0 is outside the sentence pair (1 and 1 words)" in refusal(capsys)
    assert not (tmp_path / "run").exists()


@pytest.mark.ci
def test_what_a_configuration_of_a_joint_model_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = joint_config(tmp_path, "run")
    for change, message in (
        (["data.alignment="], "data.alignment is missing"),
        (["data.dev_alignment="], "data.dev_alignment is missing"),
        (["data.dev_source=", "data.dev_target="], "data.dev_alignment: given without the text"),
        (["data.bpe_merges=10"], "reads whole words"),
        (
            ["data.target.normalize=true", "data.target.language=fr"],
            "data.target.normalize: joins some words",
        ),
        (["init_from=x"], "no such run directory"),
        (["model.window=4"], "model.window: 4 is even"),
        (["model.type=rnn", "model.layers=null"], "model"),
    ):
        assert train.main([*given, *change, "-q"]) == 2
        assert message in refusal(capsys)
        assert not (tmp_path / "run").exists()
    text = [
        f"data.{side}.{key}" for side in ("source", "target") for key in ("tokenize=false", "language=en")
    ]
    lines = [f"{key}={tmp_path}/train.{key[-6]}" for key in ("data.train_source", "data.train_target")]
    (tmp_path / "rnn.yaml").write_text("model: {hidden: 4}\n")
    rnn = [str(tmp_path / "rnn.yaml"), f"run={tmp_path}/rnn", *text, *lines]
    assert train.main([*rnn, f"data.alignment={tmp_path}/train.align", "-q"]) == 2
    assert "data.alignment: for model.type joint only" in refusal(capsys)


def test_other_commands_say_what_it_is_for(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, text = str(folder / "run"), str(folder / "dev.s")
    assert translate.main([run, "-i", text, "-o", str(tmp_path / "o"), "-q"]) == 2
    assert "is a joint model, expected a translator's run directory" in refusal(capsys)
    assert score.main([run, "-s", text, "-t", str(folder / "dev.t"), "-q"]) == 2
    assert "joint models score aligned text: nmt-score --alignment" in refusal(capsys)
    points = [f"--alignment={folder}/dev.align", f"--source={text}", f"--target={folder}/dev.t"]
    assert score.main([run, run, *points]) == 2
    assert "--alignment is for one joint model" in refusal(capsys)
    (tmp_path / "a").write_text((folder / "dev.align").read_text().replace("0-0", "0-77", 1))
    assert score.main([run, *points, f"--alignment={tmp_path}/a", "-o", str(tmp_path / "o"), "-q"]) == 2
    assert "a:1: point 0-77 is outside the sentence pair" in refusal(capsys)
    assert not (tmp_path / "o").exists()


# ---- test output layers ------------------------------------------------------------------------------------
# Translators and language models with each output layer: trained, resumed, searched, scored, saved and
# loaded.


V = 12
KINDS: dict[str, dict[str, object]] = {
    "classes": {"output": "classes", "output_class_count": 4},
    "huffman": {"output": "tree"},
    "random": {"output": "tree", "output_tree": "random", "output_arity": 3},
    "learned": {"output": "learned-tree"},
    "nce": {"output": "nce"},
    "negative": {"output": "negative-sampling", "output_power": 1.0},
}
TRAINED = {
    "classes": ["output=classes"],
    "clusters": ["output=classes", "output_classes=clusters", "output_class_count=9"],
    "huffman": ["output=tree", "output_arity=3"],
    "random": ["output=tree", "output_tree=random"],
    "learned": ["output=learned-tree", "output_rebuild=6"],
    "nce": ["output=nce"],
    "negative": ["output=negative-sampling", "output_power=1"],
}
TEXTS = [[3, 4, 5], [3, 4, 6, 7], [], [11, 11, 3], [3, 4, 5]]


def with_text(model: torch.nn.Module) -> torch.nn.Module:
    """The model in double precision, its output layer made for a text, its biases not 0."""
    output = next(part for part in model.modules() if isinstance(part, tuple(OUTPUTS.values())))
    output.learn(zipf(V))  # type: ignore[operator]
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter)
    return model.double().eval()


def translator(kind: str) -> RNNTranslator:
    torch.manual_seed(0)
    config = RNNConfig(embedding=4, hidden=6, maxout=5, init_scale=1.0, **KINDS[kind])  # type: ignore[arg-type]
    return cast(RNNTranslator, with_text(RNNTranslator(config, 9, V)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_translation_has_the_score_that_the_scorer_gives_it(kind: str) -> None:
    model, sources, config = translator(kind), [[3, 4], [5], [6, 7, 8]], BeamConfig(beam_size=4)
    together = search(model, sources, config)
    for source, found in zip(sources, together, strict=True):
        for best in found[:2]:
            assert sum(word_scores(model, [(source, best.words)])[0]) == pytest.approx(
                best.log_prob, abs=1e-9
            )
        alone = search(model, [source], config)[0]
        assert [one.words for one in alone] == [one.words for one in found]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_through_tries_are_those_of_pairs(kind: str) -> None:
    model, sources = translator(kind), [[3, 4], [5]]
    source_of = [0, 1, 1, 0, 1]
    expected = [sum(word_scores(model, [(sources[s], t)])[0]) for s, t in zip(source_of, TEXTS, strict=True)]
    assert pair_scores(model, sources, TEXTS, source_of) == pytest.approx(np.array(expected), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_language_models_score_texts_words_and_ngrams_alike(kind: str) -> None:
    torch.manual_seed(0)
    options = {"embedding": 5, "init_scale": 1.0, **KINDS[kind]}
    cslm = cast(CSLM, with_text(CSLM(CSLMConfig(order=3, layers=[6], **options), V)))  # type: ignore[arg-type]
    flat = np.array([score for text in cslm.score_texts(TEXTS) for score in text])
    contexts, words = (torch.from_numpy(part) for part in ngrams(TEXTS, 3))
    plain = cslm.output.log_probs(cslm.features(contexts))[torch.arange(len(words)), words]
    assert flat == pytest.approx(plain.detach().numpy(), abs=1e-10)
    one = [cslm.score_texts([text])[0] for text in TEXTS]
    assert flat == pytest.approx(np.concatenate(one), abs=1e-10)
    quick = np.array(
        [score for text in cslm.ngram_scores(normalized=True).score_texts(TEXTS) for score in text]
    )
    log_z = cslm.output.log_z(cslm.features(contexts)).detach().numpy()
    assert cslm.self_normalized and quick - log_z == pytest.approx(flat, abs=1e-10)  # --assume-normalized
    lm = cast(RecurrentLM, with_text(RecurrentLM(RecurrentConfig(hidden=6, **options), V)))  # type: ignore[arg-type]
    sums = np.array([sum(scores) for scores in lm.score_texts(TEXTS)])
    assert lm.score_sentences(TEXTS) == pytest.approx(sums, abs=1e-10)
    state, total = lm.requires_grad_(False).start([()]), 0.0
    for read, word in zip([None, 3, 4, 6, 7], [3, 4, 6, 7, 1], strict=True):
        log_probs, state = lm.step(state, None if read is None else torch.tensor([read]))
        assert float(log_probs.logsumexp(1)) == pytest.approx(0, abs=1e-12)
        total += float(log_probs[0, word])
    assert total == pytest.approx(sums[1], abs=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_joint_models_score_words_as_all_at_once(kind: str) -> None:
    torch.manual_seed(0)
    config = JointConfig(order=3, window=3, embedding=4, layers=[5], init_scale=1.0, **KINDS[kind])  # type: ignore[arg-type]
    model = cast(JointModel, with_text(JointModel(config, 9, V)))
    rng = np.random.default_rng(0)
    windows, contexts = rng.integers(0, 9, (4, 3)), rng.integers(0, V, (20, 2))
    places, words = rng.integers(0, 4, 20), rng.integers(0, V, 20)
    scores = model.window_scores()
    found = scores.score(scores.source_part(windows), places, contexts, words)
    features = model.features(torch.from_numpy(contexts), torch.from_numpy(windows[places]))
    wanted = model.output.log_probs(features)[torch.arange(20), torch.from_numpy(words)]
    assert found == pytest.approx(wanted.detach().numpy(), abs=1e-10)


@pytest.fixture(scope="module", params=TRAINED)
def trained_output(
    request: pytest.FixtureRequest, tiny: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A translator after 40 updates, which was stopped twice: equal to one that never was."""
    folder = tmp_path_factory.mktemp("layers")
    options = [f"model.{option}" for option in TRAINED[request.param]]
    for limit in (13, 27, 40):
        start(tiny, folder / "run", *options, f"training.max_steps={limit}", "training.log_every=4")
    start(tiny, folder / "whole", *options, "training.max_steps=40", "training.log_every=4")
    one, other = (checkpoint.load_tensors(folder / name / "step-40.pt") for name in ("run", "whole"))
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
    return folder / "run"


@pytest.mark.ci
def test_a_resumed_translator_translates_and_scores(trained_output: Path, tiny: Path) -> None:
    run = Run.load(trained_output)
    lines = (tiny / "dev.en").read_text(encoding="utf-8").splitlines()[:5]
    for line, found in zip(lines, run.n_best(lines, beam_size=3), strict=True):
        pair = (" ".join(run.members[0].source.units(line)), " ".join(found[0].words))
        assert run.for_text(tokenized=True).score([pair]) == pytest.approx([found[0].log_prob], abs=1e-4)


@pytest.mark.ci
@pytest.mark.parametrize("kind", TRAINED)
def test_a_language_model_learns_and_is_loaded(kind: str, tiny: Path, tmp_path: Path) -> None:
    config = {
        "run": str(tmp_path / "run"),
        "threads": 1,
        "matmul": "mkl",
        "data": {"train_text": f"{tiny}/train.fr", "dev_text": f"{tiny}/dev.fr"},
        "lm": {"type": "recurrent", "embedding": 16, "hidden": 16, "init_scale": 0.1,
               **dict(option.split("=") for option in TRAINED[kind])},
        "training": {"optimizer": "adam", "learning_rate": 0.02, "cost": "word", "max_epochs": 3,
                     "validate_every": 0, "tensorboard": False},
    }  # fmt: skip
    run_training(config_file.from_mapping(config))
    costs = [
        float(line.split("\t")[2]) for line in (tmp_path / "run/dev.tsv").read_text().split("\n")[1:] if line
    ]
    assert costs[-1] < costs[0] - 0.05
    lm = load_language_model(str(tmp_path / "run"))
    lines = (tiny / "dev.fr").read_text(encoding="utf-8").splitlines()
    together = [sum(scores.log_probs) for scores in lm.score(lines)]
    alone = [sum(lm.score([line])[0].log_probs) for line in lines[:4]]
    assert together[:4] == pytest.approx(alone, abs=1e-4)


# ---- test transformer --------------------------------------------------------------------------------------
# Transformers by the commands: trained, resumed, averaged, searched and scored like any other model.


CONFIG = """
threads: 1
matmul: mkl
data:
  source: {tokenize: false, normalize: false}
  target: {tokenize: false, normalize: false}
  shared_vocabulary: true
model: {type: transformer, embedding: 16, feed_forward: 24, heads: 2, encoder_layers: 1, decoder_layers: 2,
  norm: pre, tied: all}
training: {optimizer: adam, beta2: 0.98, learning_rate: 0.01, warmup: 4, schedule: inverse_sqrt, cost: word,
  label_smoothing: 0.1, batch_size: 16, max_steps: 12, validate_every: 4, save_every: 7, keep: 3, dev_beam: 2,
  bleu_tokenizer: none, tensorboard: false}
"""
WORDS = "a b c d e f g h"


def trained(folder: Path, name: str, stop: Callable[[], bool] = lambda: False) -> Path:
    """A run over sentences whose translations are their words in reverse."""
    if not (folder / "train.s").exists():
        words = WORDS.split()
        lines = [[words[(i * k + i * i) % 8] for k in range(1 + i % 7)] for i in range(120)]
        for part, rows in (("train", lines), ("dev", lines[:9])):
            for side, step in (("s", 1), ("t", -1)):
                text = "".join(f"{' '.join(row[::step])}\n" for row in rows)
                (folder / f"{part}.{side}").write_text(text, encoding="utf-8")
        (folder / "tf.yaml").write_text(CONFIG, encoding="utf-8")
    parts = itertools.product(("train", "dev"), ("source", "target"))
    files = [f"data.{part}_{side}={folder}/{part}.{side[0]}" for part, side in parts]
    config = config_file.load(str(folder / "tf.yaml"), [f"run={folder / name}", *files])
    run_training(config, stop=stop)
    return folder / name


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("transformer"), "run")


@pytest.mark.ci
def test_resumed_is_bit_equal(run: Path) -> None:
    """Stopped after 7 updates, inside an epoch, and started again: dropout, Adam and schedule go on."""
    calls = iter(range(100))
    stopped = trained(run.parent, "stopped", lambda: next(calls) == 6)
    assert (stopped / "train.tsv").exists()
    trained(run.parent, "stopped")
    equal_runs(run, stopped)


@pytest.mark.ci
def test_lists_scores_and_averages(run: Path, tmp_path: Path, command: Command) -> None:
    """The log p of an n-best list is that of nmt-score; the mean of checkpoints is a model; maps and
    alignments are of every word."""
    text = tmp_path / "text"
    text.write_text("a b c d\ne f\ng\n", encoding="utf-8")
    points = tmp_path / "points"
    found = command("nmt-translate", run, "--n-best", 3, "-i", text, "--alignments", points, "-q")
    assert found.returncode == 0, found.stderr
    (tmp_path / "list").write_text(found.stdout, encoding="utf-8")
    entries = list(nbest.read(tmp_path / "list"))
    sources = text.read_text(encoding="utf-8").split("\n")
    (tmp_path / "s").write_text("".join(f"{sources[one.sentence]}\n" for one in entries), encoding="utf-8")
    (tmp_path / "t").write_text("".join(f"{' '.join(one.words)}\n" for one in entries), encoding="utf-8")
    scored = command("nmt-score", run, "-s", tmp_path / "s", "-t", tmp_path / "t", "-q").stdout.split()
    for one, value in zip(entries, scored, strict=True):
        assert float(value) == pytest.approx(one.features["NMT0"][0], rel=1e-4)
    lines = points.read_text(encoding="utf-8").split("\n")[:-1]
    assert [len(line.split()) for line in lines] == [len(one.words) for one in entries]
    checkpoint.write_average(run, tmp_path / "mean", None, last=3)
    assert len(Run.load(str(tmp_path / "mean")).translate(["a b"], BeamConfig(2))) == 1


@pytest.mark.ci
@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_reduced_precision(run: Path, precision: str, command: Command) -> None:
    if precision == "bf16" and not processor_flags() & {"avx512_bf16", "amx_bf16"}:
        pytest.skip("this processor has no bf16")
    files = ["-s", run.parent / "dev.s", "-t", run.parent / "dev.t", "-q"]
    exact, reduced = (
        command("nmt-score", run, *files, *more).stdout.split() for more in ([], ["--precision", precision])
    )
    assert exact != reduced and len(exact) == 9
    assert list(map(float, reduced)) == pytest.approx(list(map(float, exact)), rel=0.02, abs=0.1)


# ---- test saved models -------------------------------------------------------------------------------------
# The saved models give what they gave: see tests/models/README.md.


MODELS = Path(__file__).resolve().parents[1] / "models"


def check_list(printed: str, expected: Path, within: float) -> None:
    """Equal words and derivations, and numbers that differ by no more than `within`."""
    found = [nbest.parse(line, "x") for line in printed.split("\n")[:-1]]
    known = list(nbest.read(expected))
    assert list(map(exact, found)) == list(map(exact, known))
    for a, b in zip(found, known, strict=True):
        assert a.total == pytest.approx(b.total, abs=within)
        for name, values in b.features.items():
            assert a.features[name] == pytest.approx(values, abs=within)


def exact(entry: nbest.Hypothesis) -> tuple[int, list[str], list[str], list[str]]:
    return entry.sentence, entry.words, list(entry.features), entry.rest


@pytest.mark.ci
def test_the_translator(command: Command) -> None:
    done = command(
        "nmt-translate", MODELS / "translator", "-q", "--matmul", "mkl", "-b", 10, "-i", MODELS / "source.en"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (MODELS / "translator.fr").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["lm", "recurrent"])
@pytest.mark.ci
def test_the_language_models(name: str, command: Command) -> None:
    done = command("nmt-score", MODELS / name, "-q", "--matmul", "mkl", "-i", MODELS / "translator.fr")
    assert done.returncode == 0, done.stderr
    expected = (MODELS / f"{name}.scores").read_text(encoding="utf-8")
    assert list(map(float, done.stdout.split())) == pytest.approx(
        list(map(float, expected.split())), abs=1e-4
    )


@pytest.mark.ci
def test_the_phrase_based_system(command: Command, tmp_path: Path) -> None:
    """Its n-best list too, derivation by derivation."""
    text, found = MODELS / "tokenized.en", tmp_path / "list"
    line = ["-q", "-i", text, "--n-best-list", found, "--n-best", 3, "--distinct"]
    done = command("smt-decode", MODELS / "phrase-based", *line)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (MODELS / "phrase-based.fr").read_text(encoding="utf-8")
    check_list(found.read_text(encoding="utf-8"), MODELS / "phrase-based.nbest", 1e-4)


@pytest.mark.ci
def test_the_hybrid_system(command: Command) -> None:
    """With its three networks and its glossary, from raw text to raw text."""
    done = command("smt-decode", MODELS / "system", "-q", "-i", MODELS / "source.en")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (MODELS / "system.fr").read_text(encoding="utf-8")


@pytest.mark.ci
def test_the_mapped_system(command: Command) -> None:
    done = command("smt-decode", MODELS / "mapped", "-q", "-i", MODELS / "tokenized.en")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (MODELS / "mapped.fr").read_text(encoding="utf-8")


@pytest.mark.ci
def test_the_transformer(command: Command) -> None:
    done = command(
        "nmt-translate", MODELS / "transformer", "-q", "--matmul", "mkl", "-i", MODELS / "source.en"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (MODELS / "transformer.fr").read_text(encoding="utf-8")


@pytest.mark.ci
def test_the_run_as_one_file(command: Command, tmp_path: Path) -> None:
    """It is the saved translator."""
    run = tmp_path / "run"
    done = command("nmt-import", "safetensors", MODELS / "translator.safetensors", "-o", run)
    assert done.returncode == 0, done.stderr
    done = command("nmt-translate", run, "-q", "--matmul", "mkl", "-b", 10, "-i", MODELS / "source.en")
    assert done.stdout == (MODELS / "translator.fr").read_text(encoding="utf-8")
