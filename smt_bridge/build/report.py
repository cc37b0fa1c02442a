"""Write the report of a built system as an HTML page, with the components of nmt.analysis.

It shows what was read, planned, trained, tuned and chosen, what each part adds, and the translations of the
development set by all systems.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from math import isfinite
from pathlib import Path

from nmt.analysis import report
from nmt.analysis.charts import Chart, ChartPoint, Column, Row, figures_html, signature_list, table_html
from nmt.analysis.curves import LearningCurve, read_curves
from nmt.analysis.report import Lead, ReportConfig, newest_date
from nmt.analysis.statistics import SAMPLES
from nmt.analysis.systems import SystemOutput, TestSet
from nmt.io import files
from nmt.metrics import choose_tokenizer
from nmt.runs import directory as run_directory
from nmt.runs.checkpoint import load_tensors
from nmt.training.proposal import TRANSFORMER
from smt_bridge.build import budget, distillation, evaluation, student, tuning
from smt_bridge.build.config import Build
from smt_bridge.build.corpus import COUNTS, BuildTexts, sides
from smt_bridge.build.evaluation import Evaluation
from smt_bridge.build.networks import DESCRIPTIONS, FEATURES, ORDER, feature_name
from smt_bridge.build.plan import NetworkPlan, extended_lines, reason_left_out
from smt_bridge.build.training import EXTENDED_FEATURES, NETWORKS, RUNS
from smt_bridge.build.tuning import PhraseBasedChoice
from smt_bridge.moses import ini as moses_ini

# ---- content -----------------------------------------------------------------------------------------------


DEV_NOTE = (
    "The weights were tuned, and the system was chosen, on this text: scores are higher than those of a text "
    "that the system has never seen."
)
NO_TEST_NOTE = "No test set was given: all scores here are of the development set, which was used for tuning."
CURVES = ("dev cost", "dev BLEU", "dev chrF")  # learning curves that are shown
STUDENT = "student"  # its name in the report
SIGNATURE = (
    "cased BLEU of the words of the tables, without smoothing, 1 reference, as Moses' tuners compute it"
)


@dataclass
class StepFacts:
    """Planned and actual time of a step."""

    name: str
    planned: float  # seconds in the plan, which may have been shortened before the step
    took: float | None = None  # seconds; None for a step that did not run


@dataclass
class NetworkFacts:
    """A trained network, in the chosen system or not."""

    name: str  # attention, joint or cslm
    what: str  # "attention model, 256 hidden units"
    parameters: int
    updates: int = 0
    epochs: float | None = None
    curves: Mapping[str, LearningCurve] = field(default_factory=dict)  # by kind, see CURVES


@dataclass
class FeatureFacts:
    """Weights of a feature of the tuned system."""

    name: str  # as in moses.ini: TranslationModel0
    weights: Sequence[float]
    what: str = ""  # "phrase table", "joint model"


@dataclass
class SystemFacts:
    """A system that was tuned, and could have been chosen."""

    name: str
    bleu: float  # on the development set, 0 to 100
    chosen: bool = False
    note: str = ""
    p: float | None = None  # p-value of the gain over this one: of the hybrid, or of the student's teacher
    rate: float | None = None  # sentences translated in a CPU second


@dataclass
class Facts:
    """Everything that the report of a build shows."""

    title: str
    dev: Sequence[SystemOutput]  # raw text: phrase-based, neural alone, hybrid; the first is the baseline
    bleu: float  # of the chosen system on the n-best lists of its tuning, 0 to 100
    reason: str  # why this system was chosen: a sentence
    candidates: Sequence[SystemFacts]
    bleu_without: Mapping[str, float]  # by part: the same BLEU without it, 0 to 100
    p_values: Mapping[str, float]  # by part: p-value of what it adds
    sizes: Mapping[str, int]  # "pairs read" -> 29000, in the order to show
    steps: Sequence[StepFacts]
    networks: Sequence[NetworkFacts]
    features: Sequence[FeatureFacts]
    notes: Sequence[str]  # warnings and remarks of the build, a sentence each
    command: str  # the command line
    about: Mapping[str, str] = field(default_factory=dict)  # further rows under the title


# ---- the page ----------------------------------------------------------------------------------------------


def write(path: Path, facts: Facts, samples: int = SAMPLES) -> None:
    """Write the page atomically. `samples`: see `html`. UserError if that fails."""
    files.write_text(path, html(facts, samples).rstrip("\n").split("\n"))


def html(facts: Facts, samples: int = SAMPLES) -> str:
    """Build the page in HTML: the system and how it was built, then all systems side by side on the
    development set. `samples`: bootstrap samples for intervals and significance."""
    learned = list(learning_charts(facts.networks))
    sections = [
        section("system", "The system", system_section(facts)),
        section("parts", "What each part adds", ablation_section(facts)),
        section("sizes-section", "Sizes", sizes_section(facts.sizes)),
        section("steps-section", "Steps", steps_section(facts.steps)),
        section("networks-section", "Networks", networks_section(facts.networks, learned)),
        section("weights-section", "Weights of the tuned system", weights_section(facts.features)),
    ]
    lead = Lead("".join(sections), learned, heading="Development set", note=DEV_NOTE)
    config = ReportConfig(title=facts.title, samples=samples)
    data = report.collect_report(facts.dev, {}, None, {}, config)
    return report.report_html(replace(data, about=list(about_list(facts))), lead)


def about_list(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the rows under the title, (name, value): system and texts, then those of `facts.about`."""
    parts = list(dict.fromkeys(row.what for row in facts.features if row.what))
    name = next((row.name for row in facts.candidates if row.chosen), "")
    yield "system", f"{name}: {', '.join(parts)}" if name and parts else name
    yield "networks", "; ".join(f"{row.what}, {row.parameters:,} parameters" for row in facts.networks)
    yield "training text", ", ".join(f"{count:,} {what}" for what, count in facts.sizes.items())
    yield "development set", f"{len(facts.dev[0].hypotheses):,} sentences"
    yield from facts.about.items()


def section(name: str, title: str, content: str) -> str:
    """A section of the page in HTML; empty if it has no content. `name`: its id; `content`: HTML."""
    return f'<section id="{name}"><h2>{escape(title)}</h2>{content}</section>' if content else ""


def nonempty_table(name: str, caption: str, columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """A table in HTML without its empty columns. `name`: its id."""
    used = [column for column in columns if any(row.get(column.key) not in (None, "") for row in rows)]
    return table_html(name, caption, used, rows)


def bullet_list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def system_section(facts: Facts) -> str:
    """The chosen system, the reason, and the other systems that were tuned, in HTML."""
    columns = [
        Column("system", "name"), Column("dev BLEU", "bleu", 2, best=True), Column("chosen", "chosen"),
        Column("p of the hybrid's gain", "p", 3), Column("sentences a CPU second", "rate", 1),
        Column("remark", "note"),
    ]  # fmt: skip
    rows = [vars(row) | {"chosen": "yes" if row.chosen else ""} for row in facts.candidates]
    return "".join([
        f"<p>{escape(facts.reason)}</p>",
        nonempty_table("candidates", "Systems that were tuned", columns, rows),
        signature_list([f"dev BLEU: {SIGNATURE}"]),
        bullet_list([*facts.notes, NO_TEST_NOTE]),
        f"<details><summary>command</summary><code>{escape(facts.command)}</code></details>",
    ])  # fmt: skip


def ablation_section(facts: Facts) -> str:
    """A table in HTML of BLEU without each part and of how much the part contributes."""
    columns = [
        Column("part", "part"), Column("dev BLEU without it", "bleu", 2), Column("the part adds", "adds", 2),
        Column("p", "p", 3), Column("weights without it", "weights"),
    ]  # fmt: skip
    rows = [
        {
            "part": part, "bleu": bleu, "adds": facts.bleu - bleu, "p": facts.p_values.get(part),
            "weights": "tuned again",
        }
        for part, bleu in facts.bleu_without.items()
    ]  # fmt: skip
    note = f'<p class="note">The whole system, measured in the same way, has {facts.bleu:.2f}.</p>'
    table = nonempty_table("ablation", "BLEU without each part", columns, rows)
    return f"{note}{table}{signature_list([f'dev BLEU: {SIGNATURE}'])}"


def sizes_section(sizes: Mapping[str, int]) -> str:
    rows = [{"what": what, "number": number} for what, number in sizes.items()]
    return nonempty_table("sizes", "Sizes", [Column("what", "what"), Column("number", "number")], rows)


def steps_section(steps: Sequence[StepFacts]) -> str:
    columns = [
        Column("step", "name"), Column("minutes planned", "planned", 2), Column("minutes taken", "took", 2),
    ]  # fmt: skip
    rows = [
        {"name": step.name, "planned": step.planned / 60, "took": step.took and step.took / 60}
        for step in steps
    ]
    planned = sum(step.planned for step in steps) / 60
    took = sum(step.took or 0 for step in steps) / 60
    note = f'<p class="note">All steps took {took:,.1f} minutes; {planned:,.1f} were planned.</p>'
    return note + nonempty_table("steps", "Steps of the build", columns, rows)


def networks_section(networks: Sequence[NetworkFacts], learned: Sequence[Chart]) -> str:
    """A table of the networks, and their learning curves `learned`, in HTML; empty without networks."""
    if not networks:
        return ""
    columns = [
        Column("network", "name"), Column("parameters", "parameters"), Column("updates", "updates"),
        Column("epochs", "epochs", 1), Column("what it is", "what"),
    ]  # fmt: skip
    shown = nonempty_table("networks", "Networks", columns, [vars(network) for network in networks])
    return f'{shown}<div class="charts">{figures_html(learned)}</div>'


def learning_charts(networks: Sequence[NetworkFacts]) -> Iterator[Chart]:
    """Yield the learning curves on the development set, a chart for each network and each kind of CURVES that
    it has: costs of different networks have no common axis."""
    for network in networks:
        for kind in CURVES:
            points = [ChartPoint(x, y) for x, y in network.curves.get(kind, ()) if isfinite(y)]
            if points:
                yield Chart(f"{network.name}: {kind}", x="updates", y=kind, series={network.name: points})


def weights_section(features: Sequence[FeatureFacts]) -> str:
    columns = [Column("feature", "name"), Column("weight", "weight", 4), Column("what it is", "what")]
    rows = [
        {
            "name": feature.name if len(feature.weights) == 1 else f"{feature.name} {number}",
            "weight": weight,
            "what": feature.what,
        }
        for feature in features
        for number, weight in enumerate(feature.weights, 1)
    ]
    return nonempty_table("weights", "Weights", columns, rows)


# ---- from the files of a build -----------------------------------------------------------------------------


FEATURE_KINDS = {
    "PhraseDictionaryMemory": "phrase table", "LexicalReordering": "lexical reordering",
    "KENLM": "count language model", "NeuralTranslation": DESCRIPTIONS["attention"],
    "NNJM": DESCRIPTIONS["joint"], "CSLM": DESCRIPTIONS["cslm"], **EXTENDED_FEATURES,
}  # fmt: skip


def gather_facts(build: Build) -> Facts:
    """Collect the content of the report from the files of a build whose evaluation is finished."""
    result = evaluation.read_evaluation(build)
    language = sides(build.config)[1].language
    outputs = {name: evaluation.raw_translations(build, name) for name in result.bleu}
    if student.read_evaluation(build):
        outputs[STUDENT] = list(files.read_lines(build.work / student.OUTPUT))
    sources, references = (evaluation.comparison_lines(build, f"raw.{side}") for side in ("source", "target"))
    test, parts = TestSet(sources, [references], choose_tokenizer(language)), evaluation.parts(build)
    return Facts(
        title=f"{build.folder.resolve().name}: a hybrid system",
        dev=[SystemOutput(name, lines, test) for name, lines in outputs.items()],
        bleu=100 * result.list_bleu,
        reason=chosen_reason(build, result),
        candidates=candidate_facts(build, result),
        bleu_without={parts[part]: 100 * score for part, score in result.list_bleu_without.items()},
        p_values={parts[part]: p for part, p in result.part_p_values.items()},
        sizes=size_facts(build),
        steps=step_facts(build),
        networks=[*(network_facts(build, row) for row in build.plan.networks), *student_facts(build)],
        features=feature_facts(build, result.chosen),
        command=build.config.command(),
        about=about_build(build),
        notes=[
            *plan_notes(build),
            "The contribution of a part is measured on the n-best lists of the tuning, with weights tuned "
            "again without it on one half of the sentences and applied to the other; a search without it "
            "would produce other translations.",
            *useless_networks(build, result),
            *tuning_warnings(build),
        ],
    )


def plan_notes(build: Build) -> Iterator[str]:
    """Explain which networks are left out, which phrase-based system was chosen, and what was shortened."""
    plan = build.plan
    choice = tuning.read_choice(build)
    if choice:
        yield extended_reason(choice, plan.phrase_features == "all" or plan.significance == 1)
    else:
        yield from extended_lines(plan)
    for name in ORDER:
        if not plan.has(name):
            yield f"{DESCRIPTIONS[name]}: left out, {reason_left_out(name, plan)}"
    yield from (decision for decision in plan.decisions.values() if decision)


def extended_reason(choice: PhraseBasedChoice, always: bool) -> str:
    """Explain which phrase-based system was chosen. `always`: the plan wants the extended one."""
    gain = 100 * (choice.bleu[tuning.EXTENDED] - choice.bleu[tuning.PHRASE_BASED])
    test = f"{gain:+.2f} BLEU on the development set, p = {choice.p:.3f}"
    if always:
        features = "has operation sequences and word classes, as the plan says whatever they gain"
    elif choice.chosen == tuning.EXTENDED:
        features = "has operation sequences and word classes: they are better beyond chance"
    else:
        features = "has neither operation sequences nor word classes: they are not better beyond chance"
    return f"The phrase-based system {features} ({test})."


def about_build(build: Build) -> dict[str, str]:
    """Further rows under the title: languages, search, date."""
    source, target = sides(build.config)
    settings = tuning.search_settings(build.plan.tuning)
    search = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in settings.items())
    if build.plan.has("attention"):
        search += f"; the attention model alone: beam {evaluation.BEAM.beam_size}"
    return {
        "languages": f"{source.language} to {target.language}",
        "search": search,
        "date": newest_date([build.work / evaluation.FILE]),
    }


def tuning_warnings(build: Build) -> list[str]:
    systems = dict.fromkeys([tuning.PHRASE_BASED, *evaluation.tuned_systems(build)])
    warnings = [(name, tuning.read_result(build, name).warning) for name in systems]
    return [f"The {name} system: {warning}." for name, warning in warnings if warning]


def useless_networks(build: Build, result: Evaluation) -> Iterator[str]:
    """A sentence for each network of the chosen system that adds nothing beyond chance."""
    for network in build.plan.networks:
        p = result.part_p_values.get(feature_name(FEATURES[network.name]), 0.0)
        if p > build.plan.significance:
            yield (
                f"The {DESCRIPTIONS[network.name]} adds nothing that is beyond chance (p = {p:.2f}): a "
                "system without it would be faster."
            )


def chosen_reason(build: Build, result: Evaluation) -> str:
    name = tuning.phrase_based(build)
    if not build.plan.networks:
        late = build.plan.decisions.get("networks")
        reason = "the build was behind its plan" if late else "the corpus or the budget is too small"
        return f"The {name} system alone, without networks: {reason}."
    gain = 100 * (result.bleu[tuning.HYBRID] - result.bleu[name])
    p = result.p_values[name]
    test = (
        f"{gain:+.2f} BLEU on the development set, p = {p:.3f} by a paired bootstrap of {SAMPLES:,} samples"
    )
    if result.chosen == tuning.HYBRID:
        if build.plan.significance == 1:
            return f"The hybrid system, as the plan says whatever it gains ({test})."
        return f"The hybrid system: it is better than the {name} system beyond chance ({test})."
    return f"The {name} system: with networks it is not better beyond chance ({test})."


def candidate_facts(build: Build, result: Evaluation) -> list[SystemFacts]:
    """The systems and the attention model alone, which could not be chosen, with their BLEU."""
    beam = f"beam {evaluation.BEAM.beam_size}"
    alone = f"the attention model alone, {beam}; it could not be chosen"
    is_fast = result.chosen == tuning.HYBRID and not student.read_evaluation(build)
    notes = {evaluation.NEURAL: f"{alone}. --quality fast translates with it" if is_fast else alone}
    earlier, choice = list[SystemFacts](), tuning.read_choice(build)
    if choice:
        note = "networks were added to the other phrase-based system" if build.plan.networks else ""
        earlier = [
            SystemFacts(name, 100 * score, False, note)
            for name, score in choice.bleu.items()
            if name != choice.chosen
        ]
    rows = earlier + [
        SystemFacts(name, 100 * score, name == result.chosen, notes.get(name, ""), result.p_values.get(name))
        for name, score in result.bleu.items()
    ]
    if taught := student.read_evaluation(build):
        for row in rows:
            row.rate = taught.teacher_rate if row.name == taught.teacher else None
        exported = run_directory.is_exported(build.work / student.EXPORTED)
        numbers = student.QUANTIZATION if exported else "computed by torch"
        note = (
            f"--quality fast: has learned from the {taught.teacher} system, whose raw text has BLEU "
            f"{100 * taught.teacher_bleu:.2f}; {numbers}, {beam}, raw text"
        )
        rows.append(SystemFacts(STUDENT, 100 * taught.bleu, note=note, p=taught.p_value, rate=taught.rate))
    return rows


def size_facts(build: Build) -> dict[str, int]:
    """Numbers of pairs and lines, by description, in the order to show."""
    counts: dict[str, int] = json.loads(BuildTexts(build.work).path(COUNTS).read_text(encoding="utf-8"))
    plan = build.plan
    more = {"monolingual lines": plan.sizes.monolingual_lines} if plan.sizes.monolingual_lines else {}
    if taught := distillation.read_plan(build):
        more |= {"lines translated for the student": taught.translated + taught.translated_monolingual}
    return counts | more | {"lines used for tuning": tuning.read_result(build, tuning.PHRASE_BASED).lines}


def step_facts(build: Build) -> list[StepFacts]:
    """Planned and actual time of each step; the last step is still running."""
    took = budget.read_times(build.work)
    seconds = build.plan.seconds | student.planned_seconds(build)
    return [StepFacts(name, planned, took.get(name)) for name, planned in seconds.items()]


def network_facts(build: Build, plan: NetworkPlan) -> NetworkFacts:
    curves = read_curves(build.work / RUNS / plan.name)
    parameters = count_parameters(build.work / NETWORKS / plan.name)
    return NetworkFacts(plan.name, plan.what, parameters, plan.updates, plan.epochs, curves)


def student_facts(build: Build) -> Iterator[NetworkFacts]:
    """Size and learning curves of the student, once it is trained."""
    training = student.read_training(build.work)
    if training and student.read_evaluation(build):
        run = build.work / student.RUN
        yield NetworkFacts(
            STUDENT, f"student: {TRANSFORMER}", count_parameters(run), training.updates, training.epochs,
            read_curves(run),
        )  # fmt: skip


def count_parameters(run: Path) -> int:
    weights = load_tensors(run_directory.weights_path(run, run_directory.find_step(run, "best")))
    return sum(tensor.numel() for tensor in weights.values())


def feature_facts(build: Build, chosen: str) -> list[FeatureFacts]:
    ini = moses_ini.read(str(tuning.ini_path(build, chosen)))
    return [
        FeatureFacts(feature.name, ini.weights[feature.name], FEATURE_KINDS.get(feature.kind, ""))
        for feature in ini.features
        if feature.name in ini.weights
    ]
