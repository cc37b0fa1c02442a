"""Small builds for tests: the quickstart's grammar as raw text, and a plan with networks of a few units."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType

from nmt.io import files
from smt_bridge.build import plan
from smt_bridge.build.config import Build, BuildConfig
from smt_bridge.build.corpus import COUNTS, BuildTexts
from smt_bridge.build.networks import ORDER
from smt_bridge.build.plan import CorpusSizes, NetworkPlan, Plan, TuningPlan
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from tests.conftest import write_corpus
from tests.smt_bridge.decoder.models import sentence, write_model

TUNING = TuningPlan(lines=20, iterations=3, hybrid_iterations=2, n_best=20)
Sections = dict[str, dict[str, object]]
TINY: dict[str, Sections] = {
    "attention": {"model": {"embedding": 8, "hidden": 12, "encoder_hidden": 6, "attention": 8, "maxout": 8}},
    "joint": {"model": {"type": "joint", "affiliation": "phrase", "embedding": 8, "layers": [12]}},
    "cslm": {"lm": {"type": "cslm", "order": 3, "embedding": 8, "layers": [12], "normalizer": 0.1}},
}
TRAINING: Sections = {
    "attention": {
        "schedule": "linear",
        "decay": 1.0,
        "patience": 0,
        "keep": 5,
        "dev_beam": 1,
        "metric": "cost",
    },
    "joint": {"optimizer": "adam", "learning_rate": 0.005, "cost": "word"},
    "cslm": {"optimizer": "adam", "learning_rate": 0.005, "cost": "word"},
}


def config(folder: Path, grammar: ModuleType, pairs: int = 200, **given: object) -> BuildConfig:
    """Settings of a build of a corpus in `folder`, into `folder`/system."""
    write_corpus(folder, grammar, pairs, seed=3)
    texts = [str(folder / name) for name in ("train.en", "train.fr", "dev.en", "dev.fr")]
    return BuildConfig(*texts, **{"output": str(folder / "system"), **given})  # type: ignore[arg-type]


def small_plan(*names: str) -> Plan:
    """A plan with all steps, whose networks are trained in a second."""
    networks = [
        NetworkPlan(
            name=name, what=f"tiny {name}", preset="small" if name == "attention" else "",
            sections=TINY[name] | {"training": TRAINING[name]}, batch=20, updates=20, every=4, epochs=2,
            seconds=2, search=0.01,
        )
        for name in ORDER if name in names
    ]  # fmt: skip
    sizes = CorpusSizes(200, 900, 1000, 20, 90)
    unestimated = Plan(sizes, 1.0, "mkl", networks, TUNING, False)
    return replace(unestimated, seconds=plan.estimate_seconds(unestimated))


def write_plan(path: Path, *names: str) -> str:
    """Write the plan to a file for --plan. Networks are kept, although a few lines say nothing for them."""
    path.write_text(json.dumps({"format": plan.FORMAT, **asdict(small_plan(*names)), "significance": 1.0}))
    return str(path)


def decodable(folder: Path, lines: int = 12) -> Build:
    """A build whose development set can be decoded: a model of letters, and the texts of the earlier
    steps."""
    quick = replace(small_plan(), tuning=replace(TUNING, method="kbmira"))
    made = Build(BuildConfig("a.en", "a.fr", "b.en", "b.fr", str(folder / "system")), quick)
    dev = write_model(made.work / "dev", 1)
    decoder = Decoder.load(str(dev), DecoderConfig(stack=5), cache=False)
    sources = [sentence(number, 5) for number in range(lines)]
    targets = decoder.translate(sources)
    texts = BuildTexts(made.work)
    for name, text in (("dev.source", sources), ("raw.source", sources), ("raw.target", targets)):
        files.write_text(texts.path(name), text)
    # the reference differs in every other line, so that there is something to tune
    files.write_text(
        texts.path("dev.target"), (f"p {line}" if at % 2 else line for at, line in enumerate(targets))
    )
    files.write_text(texts.path(COUNTS), ['{"pairs read": 3}'])
    return made
