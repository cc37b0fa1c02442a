"""A hybrid system with a joint model, an attention model and a CSLM in its search, from raw text to raw
text."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from nmt.compute.compiled import HAVE_NUMBA
from nmt.formats import nbest
from smt_bridge.cli import decode
from smt_bridge.hybrid import folder
from tests.conftest import Command
from tests.smt_bridge.decoder.models import edit
from tests.smt_bridge.hybrid.systems import PAIRS

pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(not HAVE_NUMBA, reason="needs numba: pip install 'nmt-smt[smt]'"),
]

SIDE = "{{tokenize: false, normalize: false, case: keep, escaped: true, language: {0}, min_count: 2}}"
DATA = (
    "data: {{train_source: train.source, train_target: train.target, dev_source: train.source, "
    "dev_target: train.target, source: {0}, target: {1}{2}}}"
)
TRAINING = (
    "training: {optimizer: adam, learning_rate: 0.02, cost: word, batch_size: 8, max_steps: 30, "
    "validate_every: 15, dev_beam: 0, metric: cost, tensorboard: false}"
)
ALIGNED = ", alignment: model/alignment.gz, dev_alignment: model/alignment.gz"
MODELS = {
    "joint": (ALIGNED, "model: {type: joint, embedding: 8, layers: [12]}", "NNJM name=NNJM0", 0.3),
    "attention": (
        "",
        "model: {encoder: birnn, attention: 8, embedding: 8, hidden: 12, maxout: 8}",
        "NeuralTranslation name=NMT0 neural-beam=20",
        0.4,
    ),
    "cslm": ("", "lm: {type: cslm, order: 3, embedding: 8, layers: [12]}", "CSLM name=CSLM0 factor=0", 0.2),
}
RAW = [pair[0] for pair in PAIRS[:8]] + ["", "<b>Seldom</b> at 10:30 or 1,000 in http://x.org/a_b?c=d."]


@pytest.fixture(scope="module")
def system(hybrid_system: Path, tmp_path_factory: pytest.TempPathFactory, command: Command) -> Path:
    """A system with its networks."""
    made = shutil.copytree(hybrid_system, tmp_path_factory.mktemp("networks") / "system")
    sides = [SIDE.format(language) for language in ("en", "fr")]
    for name, (alignment, model, line, weight) in MODELS.items():
        data = DATA.format(*sides, alignment)
        if name == "cslm":
            data = f"data: {{train_text: train.target, dev_text: train.target, target: {sides[1]}}}"
        text = "\n".join([f"run: ../networks/{name}", data, model, TRAINING, ""])
        (made / "build" / f"{name}.yaml").write_text(text)
        done = command("nmt-train", f"{name}.yaml", "-q", cwd=made / "build")
        assert done.returncode == 0, done.stderr
        feature, score = f"Distortion\n{line} path=networks/{name}\n", line.split("name=")[1].split()[0]
        edit(made, ("Distortion\n", feature), ("[weight]\n", f"[weight]\n{score}= {weight}\n"))
    folder.write_system(made, folder.read(hybrid_system).config)
    return made


def run(system: Path, place: Path, *words: object) -> dict[str, str]:
    """The files that smt-decode writes."""
    place.mkdir()
    (place / "raw").write_text("".join(f"{line}\n" for line in RAW), encoding="utf-8")
    names = ("output", "n-best-list", "explain", "alignments", "source-words", "target-words")
    options = [word for name in names for word in (f"--{name}", f"{place}/{name}")]
    assert decode.main([str(system), "-i", f"{place}/raw", *options, "-q", *map(str, words)]) == 0
    return {name: (place / name).read_text(encoding="utf-8") for name in names}


def test_raw_text_with_networks(system: Path, tmp_path: Path) -> None:
    """Two workers, and a folder that was moved, give the same bytes; protected text is not lost."""
    found = run(system, tmp_path / "one", "--n-best", 5)
    moved = shutil.copytree(system, tmp_path / "moved and copied", ignore=shutil.ignore_patterns("build"))
    assert run(moved, tmp_path / "two", "--n-best", 5, "--workers", 2) == found
    *lines, last, nothing = found["output"].split("\n")
    assert not nothing and lines[-1] == "" and len(lines) + 1 == len(RAW)
    assert lines[0].startswith("La maison ")
    for kept in ("<b>Seldom</b>", "10:30", "1,000", "http://x.org/a_b?c=d"):
        assert kept in last


def test_explanations_add_up_with_networks(system: Path, tmp_path: Path) -> None:
    found = run(system, tmp_path / "one", "--n-best", 5)
    rows = [line.split("\t") for line in found["explain"].split("\n")[:-1]]
    names = rows[0]
    assert {"NNJM0", "NMT0", "CSLM0"} < set(names)
    best = dict[int, nbest.Hypothesis]()
    for line in found["n-best-list"].split("\n")[:-1]:
        entry = nbest.parse(line, "list")
        best.setdefault(entry.sentence, entry)
    weights = dict(zip(names, rows[1], strict=True))
    for row in rows:
        if row[1] != "sum":
            continue
        entry = best[int(row[0]) - 1]
        assert float(row[5]) == pytest.approx(entry.total, rel=1e-4)
        for name in ("NNJM0", "NMT0", "CSLM0"):
            expected = entry.features[name][0] * float(weights[name])
            assert float(row[names.index(name)]) == pytest.approx(expected, rel=1e-4)
            parts = [float(other[names.index(name)]) for other in rows[2:] if other[0] == row[0]]
            assert sum(parts[:-1]) == pytest.approx(parts[-1], abs=1e-4)


def test_smt_rescore_reads_the_list(system: Path, tmp_path: Path, command: Command) -> None:
    """With the source words that smt-decode writes, smt-rescore computes the same values of the networks."""
    run(system, tmp_path / "one", "--n-best", 5)
    runs = {"joint": "joint:Joint", "attention": "translation:Attention", "cslm": "neural-lm:Cslm"}
    features = [word for name, kind in runs.items() for word in ("-f", f"{kind}={system}/networks/{name}")]
    given = ["n-best-list", "-s", "source-words", *features, "-o", "again", "-q"]
    done = command("smt-rescore", *given, cwd=tmp_path / "one")
    assert done.returncode == 0, done.stderr
    rows = [one.features for one in nbest.read(tmp_path / "one" / "again") if one.words]
    assert len(rows) > 20
    for ours, again in (("NNJM0", "Joint"), ("NMT0", "Attention"), ("CSLM0", "Cslm")):
        one, other = ([row[name][0] for row in rows] for name in (ours, again))
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
