"""What the report of a build says, from the files that its steps left."""

import json
from collections.abc import Iterator, Mapping

from nmt import files
from nmt.analysis.curves import read_curves
from nmt.analysis.report import day
from nmt.metrics import tokenizer_for
from nmt.runs import directory as run_directory
from nmt.runs.weights import load_tensors
from smt_bridge.build import clock, evaluation, report, tuning
from smt_bridge.build.config import Build
from smt_bridge.build.corpus import COUNTS, Texts, sides
from smt_bridge.build.evaluation import OUTPUTS, Evaluation
from smt_bridge.build.networks import ORDER, WORDS
from smt_bridge.build.plan import NetworkPlan, missing
from smt_bridge.build.report import Ablation, Candidate, Facts, Feature, Network, Step
from smt_bridge.build.tables import DEV
from smt_bridge.build.training import NETWORKS, RUNS
from smt_bridge.moses import ini as moses_ini

SIGNATURE = (
    "cased BLEU of the words of the tables, without smoothing, 1 reference, as Moses' tuners compute it"
)
KINDS = {
    "PhraseDictionaryMemory": "phrase table", "LexicalReordering": "lexical reordering",
    "KENLM": "count language model", "NeuralTranslation": WORDS["attention"], "NNJM": WORDS["joint"],
    "CSLM": WORDS["cslm"],
}  # fmt: skip


def gather(build: Build) -> Facts:
    """All of it."""
    found, texts = evaluation.read(build), Texts(build.work)
    _, target = texts.sides(build.config)
    language = sides(build.config)[1].language
    outputs = {
        name: [
            target.text(line.split(" ")) if line else ""
            for line in files.read_lines(build.work / DEV / OUTPUTS / name)
        ]
        for name in found.whole
    }
    sources, references = (tuning.compared(build, f"raw.{side}") for side in ("source", "target"))
    return Facts(
        title=f"{build.folder.resolve().name}: a hybrid system",
        dev=report.Texts(sources, [references], outputs, tokenizer_for(language)),
        signature=SIGNATURE,
        bleu=100 * found.lists,
        reason=reason(build, found),
        candidates=candidates(build, found),
        ablations=[
            Ablation(evaluation.parts(build)[part], 100 * score) for part, score in found.without.items()
        ],
        sizes=sizes(build),
        steps=steps(build),
        networks=[network(build, one) for one in build.plan.networks],
        features=features(build, found.chosen),
        command=build.config.command(),
        about=about(build),
        notes=[
            *notes(build),
            "The worth of a part is measured on the n-best lists of the tuning, with weights found again "
            "without it; a search without it would find other translations.",
            *warnings(build),
        ],
    )


def notes(build: Build) -> Iterator[str]:
    """Networks that are left out, and what was shortened."""
    plan = build.plan
    for name in ORDER:
        if not plan.has(name):
            yield f"{WORDS[name]}: left out, {missing(name, plan)}"
    yield from (decision for decision in plan.decisions.values() if decision)


def about(build: Build) -> dict[str, str]:
    """Further rows under the title: languages, search, date."""
    source, target = sides(build.config)
    search = tuning.search(build.plan.tuning)
    beam = (
        f"; the attention model alone: beam {evaluation.BEAM.beam_size}"
        if build.plan.has("attention")
        else ""
    )
    return {
        "languages": f"{source.language} to {target.language}",
        "search": ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in search.items()) + beam,
        "date": day([build.work / evaluation.FILE]),
    }


def warnings(build: Build) -> list[str]:
    """The warnings of the tunings, a sentence each."""
    names = [tuning.PHRASE_BASED, *([tuning.HYBRID] if build.plan.networks else [])]
    said = [(name, tuning.tuned(build, name).warning) for name in names]
    return [f"The {name} system: {warning}." for name, warning in said if warning]


def reason(build: Build, found: Evaluation) -> str:
    """Why this system."""
    if not build.plan.networks:
        return "The phrase-based system alone: the corpus or the budget is too small for networks."
    return f"The {found.chosen} system: of those that were tuned, it decodes the development set best."


def candidates(build: Build, found: Evaluation) -> list[Candidate]:
    """The systems, with their scores on the development set."""
    notes = {evaluation.NEURAL: "the attention model alone, beam 5; it could not be chosen"}
    return [
        Candidate(name, 100 * score, name == found.chosen, notes.get(name, ""))
        for name, score in found.whole.items()
    ]


def sizes(build: Build) -> dict[str, int]:
    """Pairs, words, lines, weights."""
    counts: dict[str, int] = json.loads(Texts(build.work).path(COUNTS).read_text(encoding="utf-8"))
    plan = build.plan
    more = {"monolingual lines": plan.sizes.monolingual_lines} if plan.sizes.monolingual_lines else {}
    return counts | more | {"lines used for tuning": tuning.tuned(build, tuning.PHRASE_BASED).lines}


def steps(build: Build) -> list[Step]:
    """Each step, as planned and as it was; the last one is still at work."""
    took = clock.read(build.work)
    return [Step(name, seconds, took.get(name)) for name, seconds in build.plan.seconds.items()]


def network(build: Build, plan: NetworkPlan) -> Network:
    """A network and its curves."""
    curves: Mapping[str, list[tuple[float, float]]] = read_curves(build.work / RUNS / plan.name)
    folder = build.work / NETWORKS / plan.name
    weights = load_tensors(run_directory.weights_path(folder, run_directory.find_step(folder, "best")))
    parameters = sum(tensor.numel() for tensor in weights.values())
    return Network(plan.name, plan.what, parameters, plan.updates, plan.epochs, curves)


def features(build: Build, chosen: str) -> list[Feature]:
    """The weights of the system."""
    ini = moses_ini.read(str(tuning.ini_path(build, chosen)))
    return [
        Feature(one.name, ini.weights[one.name], KINDS.get(one.kind, ""))
        for one in ini.features
        if one.name in ini.weights
    ]
