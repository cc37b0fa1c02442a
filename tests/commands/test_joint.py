"""Joint models from training to scores: nmt-train, nmt-score --alignment. What cannot be done is refused in
one line, and nothing is left behind."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt.cli import score, train, translate
from nmt.data.affiliation import affiliations
from nmt.data.aligned import AlignedPair, make_aligned_batch
from nmt.runs import aligned
from nmt.training import config_file as configuration
from tests.commands.joint_runs import joint_config, joint_run

Refused = Callable[..., str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with aligned text and a run."""
    folder = tmp_path_factory.mktemp("joint")
    joint_run(folder)
    return folder


def weights(run: Path) -> dict[str, torch.Tensor]:
    return dict(aligned.load(run, "last").model.state_dict())


def refusal(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command has said."""
    (line,) = capsys.readouterr().err.rstrip("\n").split("\n")
    return line


def test_training_learns_and_a_dev_cost_is_its_measure(folder: Path) -> None:
    rows = (folder / "run" / "dev.tsv").read_text().split("\n")[1:-1]
    costs = [float(row.split("\t")[2]) for row in rows]
    assert len(costs) > 2 and costs[-1] < 0.8 * costs[0]
    config = configuration.of_run(folder / "run")
    assert (config.training.metric, config.training.dev_beam) == ("cost", 0)


def test_scores_are_those_of_the_pairs(folder: Path, tmp_path: Path) -> None:
    """Line for line, an empty target and an alignment without points included."""
    pairs = [("a b c", "p r", "0-0 2-1"), ("b a", "q p", ""), ("c", "", ""), ("d a x", "s p p u", "0-0 1-2")]
    for name, lines in zip("sta", zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    given = [f"--{name}={tmp_path / name[0]}" for name in ("source", "target", "alignment")]
    assert score.main([str(folder / "run"), *given, "-o", str(tmp_path / "o"), "--word-scores", "-q"]) == 0
    run = aligned.load(folder / "run")
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


@pytest.mark.parametrize("affiliation", ["sentence", "phrase"])
def test_resume_is_bit_exact(affiliation: str, tmp_path: Path) -> None:
    given = [f"model.affiliation={affiliation}", "model.dropout=0.2"]
    one, other = joint_config(tmp_path, "one", *given), joint_config(tmp_path, "other", *given)
    assert train.main([*one, "training.max_steps=9", "-q"]) == 0
    assert train.main([*other, "training.max_steps=4", "-q"]) == 0
    assert train.main([*other, "training.max_steps=9", "-q"]) == 0
    found, expected = weights(tmp_path / "other"), weights(tmp_path / "one")
    assert all(torch.equal(value, found[name]) for name, value in expected.items())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-0\n0-0 3-0\n", "train.align:2: point 3-0 is outside the sentence pair (1 and 1 words)"),
        ("0-0\n0_0\n", "train.align:2: '0_0' is no alignment point"),
        ("0-0\n", "train.align: 1 lines, but"),
        ("", "train.align: empty file"),
    ],
)
def test_a_bad_alignment(text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = joint_config(tmp_path, "run")
    for name, lines in (("train.s", "a\nb\n"), ("train.t", "p\nq\n"), ("train.align", text)):
        (tmp_path / name).write_text(lines)
    assert train.main([*given, "-q"]) == 2
    assert message in refusal(capsys)
    assert not (tmp_path / "run").exists()


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
    assert "joint models score aligned text, but do not translate" in refusal(capsys)
    assert score.main([run, "-s", text, "-t", str(folder / "dev.t"), "-q"]) == 2
    assert "joint models score aligned text" in refusal(capsys)
    points = [f"--alignment={folder}/dev.align", f"--source={text}", f"--target={folder}/dev.t"]
    assert score.main([run, run, *points]) == 2
    assert "--alignment is for one joint model" in refusal(capsys)
    (tmp_path / "a").write_text((folder / "dev.align").read_text().replace("0-0", "0-77", 1))
    assert score.main([run, *points, f"--alignment={tmp_path}/a", "-o", str(tmp_path / "o"), "-q"]) == 2
    assert "a:1: point 0-77 is outside the sentence pair" in refusal(capsys)
    assert not (tmp_path / "o").exists()
