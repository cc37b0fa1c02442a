"""The training text of the student, a small fast network that learns from the translations of the finished
system (knowledge distillation).

Of each n-best list the student gets the translation with the best sentence BLEU against the reference (Kim
and Rush 2016), and of each line of monolingual source text the best translation. Pairs for which there is no
time are translated by the system's attention model alone, or keep their reference where it has none.

student/plan.json                   how many lines are translated, with which stack; decided by measured speed
student/partial student/chunks      tables made without one part of the text each, and finished
                                    translations; removed when the training starts
student/partial/network             translations by the attention model, NETWORK_CHUNK lines a file
student/train.source train.target   the text of the student, raw
"""

import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from nmt.compute import device
from nmt.io import files
from nmt.runs.run import BeamTranslation
from nmt.search.config import BeamConfig
from nmt.text.clean import reason_against
from nmt.text.vocab import SPECIALS, UNK
from nmt.work.store import ChunkRecords
from smt_bridge import train_system
from smt_bridge.build import evaluation
from smt_bridge.build.config import Build, StepProgress, read_record, write_record
from smt_bridge.build.corpus import LONGEST, RAW_LIMITS, TOKENIZED_LIMITS, BuildTexts, clean_pairs
from smt_bridge.build.plan import Plan, Rates
from smt_bridge.build.training import MODEL, run_tasks, train_config
from smt_bridge.build.tuning import HYBRID, sample_lines
from smt_bridge.decoder import feature_lines
from smt_bridge.decoder import system as systems
from smt_bridge.decoder.config import DecoderConfig
from smt_bridge.decoder.decoder import Decoder
from smt_bridge.decoder.translation import PhraseTranslation
from smt_bridge.hybrid import decoder as hybrids
from smt_bridge.hybrid import folder as hybrid
from smt_bridge.hybrid.side import TextSide
from smt_bridge.moses import ini as moses_ini
from smt_bridge.tuning.bleu import COLUMNS, BleuReferences
from smt_bridge.tuning.pool import Ints
from smt_bridge.tuning.ranking import smoothed_bleu

log = logging.getLogger(__name__)

FOLDER = "student"
PLAN, CHUNKS, PARTIAL = (f"{FOLDER}/{name}" for name in ("plan.json", "chunks", "partial"))
NETWORK = f"{PARTIAL}/network"
SOURCE, TARGET = f"{FOLDER}/train.source", f"{FOLDER}/train.target"
INI = "student.ini"

TRANSLATING = 1 / 3  # share of the student's time for the translations, at most
STACKS = (50, 30, 20, 10)  # the first with which all lines fit into that time is taken, else the last
BEAM = 2  # candidates that networks score, per hypothesis of the stack, as in the system's search
N_BEST = 50  # translations in a list
TIMED = 16  # lines whose translation is timed, for each stack
PARTS = 4  # of the training text
CHUNK = 50  # lines that are translated between two saves
# The attention model alone: lines in a file, its search, and CPU seconds a source word (reference machine).
NETWORK_CHUNK, NETWORK_BEAM, NETWORK_SECONDS = 1000, BeamConfig(beam_size=10), 0.0012


# ---- plan -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StudentPlan:
    """How much the system translates for the student, and with which stack."""

    pairs: int  # of the training text
    monolingual: int  # lines of the monolingual source text
    translated: int  # pairs whose source the system translates
    translated_monolingual: int  # the others are left out
    stack: int
    seconds: float  # estimated
    by_network: bool = False  # whether the attention model translates the other pairs


def read_plan(build: Build) -> StudentPlan | None:
    """Read the plan; None if nothing has been decided yet."""
    path = build.work / PLAN
    return read_record(path, StudentPlan) if path.exists() else None


def describe_text(plan: StudentPlan) -> str:
    """Say what is translated, with which stack."""
    text = f"{plan.translated:,} of {plan.pairs:,} pairs are translated"
    if plan.translated < plan.pairs:
        others = "the attention model's translation" if plan.by_network else "their reference"
        text += f", the others have {others}"
    if plan.monolingual:
        text += f"; {plan.translated_monolingual:,} of {plan.monolingual:,} monolingual lines"
    return f"{text}; stack {plan.stack}"


# ---- what is translated by which system --------------------------------------------------------------------
# A phrase table has whole sentences of its own training text, and would return them. So the training text is
# divided, and each part is translated with tables and a count model of the other parts. Weights and networks
# are those of the system.


@dataclass(frozen=True)
class SourceLine:
    """A raw line to translate, with its reference."""

    text: str
    reference: str = ""  # empty for monolingual text


@dataclass(frozen=True)
class LineGroup:
    """Lines that are translated by the same decoder."""

    # The part of the training text that has the lines; the tables of their decoder are made from the other
    # parts. None for monolingual lines, which the system's own tables translate; PARTS for pairs of all parts
    # that the attention model translates.
    part: int | None
    numbers: list[int]  # indices of the lines among all pairs, or among all monolingual lines
    lines: list[SourceLine]


def line_groups(
    plan: StudentPlan, pairs: Sequence[SourceLine], monolingual: Sequence[SourceLine]
) -> list[LineGroup]:
    """Divide the lines of the plan, evenly spaced over their texts, into groups."""
    chosen = sample_lines(range(len(pairs)), plan.translated)
    parts = [[number for number in chosen if number % PARTS == part] for part in range(PARTS)]
    groups = [
        LineGroup(part, numbers, [pairs[number] for number in numbers]) for part, numbers in enumerate(parts)
    ]
    more = sample_lines(range(len(monolingual)), plan.translated_monolingual)
    return [*groups, LineGroup(None, more, [monolingual[number] for number in more])]


def remaining_group(groups: Sequence[LineGroup], pairs: Sequence[SourceLine]) -> LineGroup:
    """The pairs that are in no group."""
    grouped = {number for group in groups if group.part is not None for number in group.numbers}
    numbers = [number for number in range(len(pairs)) if number not in grouped]
    return LineGroup(PARTS, numbers, [pairs[number] for number in numbers])


class Teacher:
    """The finished system as a decoder, with its own tables or with those of other parts of the text."""

    def __init__(self, build: Build) -> None:
        """If the system has networks, torch is set up for this process: the CPU, with one thread. Errors as
        from `smt_bridge.hybrid.folder.read`."""
        self.build, self.hybrid = build, hybrid.read(build.folder)
        self.config = self.hybrid.decoder_config()
        self.lines = hybrids.make_lines(self.hybrid, self.config.max_line_words)
        if feature_lines.needs_torch(moses_ini.read(self.hybrid.ini)):
            device.set_up_device("cpu", 1, "mkl")

    def list_config(self, stack: int) -> DecoderConfig:
        """Settings for n-best lists by a search with this stack."""
        return replace(self.config, stack=stack, neural_beam=BEAM * stack, nbest=N_BEST, distinct=True)

    def load(self, config: DecoderConfig, part: int | None = None) -> Decoder:
        """Load the decoder of a group of lines. Errors as from `train_without`."""
        ini = self.hybrid.ini if part is None else str(self.write_ini(train_without(self.build, part)))
        system = systems.load_ini(moses_ini.read(ini), False)
        return Decoder(system, config, lines=self.lines)

    def write_ini(self, model: Path) -> Path:
        """Write an ini of the system with the files that the folder `model` has in place of its own."""

        def resolve(name: str) -> str:
            return name if (model / name).exists() else os.path.relpath(self.build.folder / name, model)

        moses_ini.write(model / INI, moses_ini.replace_paths(moses_ini.read(self.hybrid.ini), resolve))
        return model / INI


def train_without(build: Build, part: int) -> Path:
    """Train the tables and the count model without a part of the training text; returns their folder. Errors
    as from `train_system.train`."""
    whole, folder = train_config(build), build.work / PARTIAL / str(part)

    def write_rest(name: str, path: str, more: Iterable[str] = ()) -> str:
        lines = (line for number, line in enumerate(files.read_lines(path)) if number % PARTS != part)
        files.write_text(folder / name, chain(lines, more))
        return str(folder / name)

    config = replace(
        whole,
        source=write_rest("source", whole.source),
        target=write_rest("target", whole.target),
        alignment=write_rest("alignment", whole.alignment),
        lm_text=write_rest("lm", whole.target, BuildTexts(build.work).monolingual()),
    )
    train_system.train(folder / MODEL, config)
    return folder / MODEL


# ---- translations ------------------------------------------------------------------------------------------


def translate_text(build: Build) -> None:
    """Decide how many lines are translated, translate them, and write the text of the student. DataError if
    a text was changed, and as from `Teacher`."""
    pairs, monolingual = training_pairs(build), monolingual_source(build)
    teacher = Teacher(build)
    plan = read_plan(build)
    if plan is None:
        plan = decide(build, teacher, pairs, monolingual)
        write_record(build.work / PLAN, plan)
    log.info("student: %s", describe_text(plan))
    config = teacher.list_config(plan.stack)
    groups = line_groups(plan, pairs, monolingual)
    others = remaining_group(groups, pairs) if plan.by_network else None
    by_network = translate_by_network(build, others.numbers) if others else []
    translations = translate_groups(build, groups, lambda part: teacher.load(config, part))
    if others:
        groups, translations = [*groups, others], [*translations, by_network]
    write_text(build, pairs, groups, translations)


def training_pairs(build: Build) -> list[SourceLine]:
    """The raw pairs that the tables were made from, as `corpus.prepare` selects them."""
    source, target = BuildTexts(build.work).sides(build.config)
    return [
        SourceLine(*pair)
        for pair in clean_pairs(build.config.source, build.config.target, RAW_LIMITS)
        if not reason_against(
            " ".join(source.split(pair[0])), " ".join(target.split(pair[1])), TOKENIZED_LIMITS
        )
    ]


def monolingual_source(build: Build) -> list[SourceLine]:
    """The lines of the monolingual source text that have 1 to LONGEST words; none without such a text."""
    path = build.config.monolingual_source
    split = BuildTexts(build.work).sides(build.config)[0].split
    lines = files.read_lines(path) if path else ()
    return [SourceLine(line) for line in lines if 0 < len(split(line)) <= LONGEST]


def decide(
    build: Build, teacher: Teacher, pairs: Sequence[SourceLine], monolingual: Sequence[SourceLine]
) -> StudentPlan:
    """Measure the speed of the system with one stack after the other, and choose as `fit` does."""
    lines = [line.text for line in sample_lines([*pairs, *monolingual], TIMED)]
    loaded = teacher.load(teacher.list_config(STACKS[-1]))
    loaded.translate(lines[:1])  # compiles the search, so that this is not timed

    def speeds() -> Iterator[tuple[int, float]]:
        for stack in STACKS:
            decoder = Decoder(
                loaded.system, teacher.list_config(stack), features=loaded.features, lines=loaded.lines
            )
            yield stack, seconds_per_line(decoder, lines, build.config.workers)

    limit = TRANSLATING * 60 * build.config.student_minutes - tables_seconds(build.plan)
    plan = fit(len(pairs), len(monolingual), speeds(), max(0.0, limit))
    return share_with_network(plan, network_seconds(build.plan)) if has_attention(build) else plan


def share_with_network(plan: StudentPlan, seconds: float) -> StudentPlan:
    """Leave the attention model the pairs for which the system has no time, `seconds` for each of them, and
    as many more as take that time from the system; at least one pair is the system's."""
    if plan.translated == plan.pairs:
        return plan
    each = plan.seconds / (plan.translated + plan.translated_monolingual)
    time_left = plan.translated * each - plan.pairs * seconds
    translated = max(1, int(time_left / max(1e-9, each - seconds)))  # 1 where the system is as fast
    total = translated * each + (plan.pairs - translated) * seconds
    return replace(plan, translated=translated, seconds=round(total, 1), by_network=True)


def has_attention(build: Build) -> bool:
    """Whether the system has an attention model in its search."""
    return evaluation.read_evaluation(build).chosen == HYBRID and build.plan.has("attention")


def network_seconds(plan: Plan) -> float:
    """Estimated seconds in which the attention model translates a line of the training text, by two
    processes."""
    length = plan.sizes.source_words / max(1, plan.sizes.pairs)
    return length * NETWORK_SECONDS / Rates.two_threads / plan.speed


def tables_seconds(plan: Plan) -> float:
    """Estimated seconds of training the tables without each part."""
    rates, words = Rates(), plan.sizes.target_words
    training = words / rates.extracting + (words + plan.sizes.monolingual_words) / rates.counting
    return PARTS * (rates.starting + training) / plan.speed


def seconds_per_line(decoder: Decoder, lines: Sequence[str], workers: int) -> float:
    """Measure the seconds that the translation of a line takes with `workers` threads."""
    began = time.monotonic()
    for _ in decoder.translate_all(lines, workers):
        pass
    return (time.monotonic() - began) / len(lines)


def fit(pairs: int, monolingual: int, speeds: Iterator[tuple[int, float]], limit: float) -> StudentPlan:
    """Choose the first stack with which all lines are translated in `limit` seconds, else the last one, with
    as many lines as there is time for, pairs first. `speeds`: stack and seconds per line, in the order of
    preference; drawn only as far as needed."""
    total, plan = pairs + monolingual, None
    for stack, seconds in speeds:
        lines = max(1, min(total, int(limit / seconds)))
        translated = min(pairs, lines)
        plan = StudentPlan(
            pairs, monolingual, translated, lines - translated, stack, seconds=round(lines * seconds, 1)
        )
        if lines == total:
            break
    assert plan  # there is a stack
    return plan


def translate_groups(
    build: Build, groups: Sequence[LineGroup], load: Callable[[int | None], Decoder]
) -> list[list[str]]:
    """Translate the lines of each group, with a save after each CHUNK of them; returns the raw translations
    of each group. `load`: returns the decoder of a part. Logs BLEU of the best translations and of the chosen
    ones, against the references."""
    target = BuildTexts(build.work).sides(build.config)[1]
    records = ChunkRecords(build.work / CHUNKS)
    progress = StepProgress(build, sum(len(group.lines) for group in groups))
    translations, sums, number = list[list[str]](), np.zeros((2, COLUMNS)), 0
    for group in groups:
        decoder: Decoder | None = None
        translations.append([])
        for first in range(0, len(group.lines), CHUNK):
            block = group.lines[first : first + CHUNK]
            if number not in records:
                decoder = decoder or load(group.part)
                records.add(number, translate_block(decoder, block, target, build.config.workers))
            saved = json.loads(records.read(number))
            translations[-1] += saved["lines"]
            sums += saved["stats"]
            progress.add(len(block))
            number += 1
    best, chosen = (100 * evaluation.corpus_bleu(row[None]) for row in sums)
    log.info(
        "training text: BLEU %.2f of the best translations, %.2f of those that the student gets", best, chosen
    )
    return translations


def translate_block(decoder: Decoder, block: Sequence[SourceLine], target: TextSide, workers: int) -> bytes:
    """Translate lines, and choose a translation of each. Returns JSON with the raw texts, `lines`, and the
    sums of the BLEU statistics of `choose`, `stats`."""
    results = decoder.translate_all([line.text for line in block], workers)
    rows = [
        choose(decoder, result, target.words(line.reference) if line.reference else None)
        for line, result in zip(block, results, strict=True)
    ]
    chosen, stats = zip(*rows, strict=True)
    return json.dumps({"lines": chosen, "stats": np.sum(stats, 0).tolist()}).encode()


def choose(
    decoder: Decoder, translation: PhraseTranslation, reference: Sequence[str] | None
) -> tuple[str, list[list[int]]]:
    """Choose the translation with the best sentence BLEU, or without a reference the first; the first of
    equal ones. Returns its raw text, and BLEU statistics of the first translation and of the chosen one, (2,
    9), zeros without a reference."""
    derivations = translation.derivations
    best, stats = 0, np.zeros((1, COLUMNS), np.int64)
    if reference is not None:
        best, stats = nearest([derivation.text for derivation in derivations], reference)
    text = decoder.lines.text(replace(translation, derivations=[derivations[best]]))
    return text, stats[[0, best]].tolist()


def nearest(candidates: Sequence[Sequence[str]], reference: Sequence[str]) -> tuple[int, Ints]:
    """The index of the candidate, in words, with the best sentence BLEU, the first of equal ones; also
    returns the BLEU statistics of all candidates, (N, 9)."""
    words = BleuReferences([reference])
    stats = np.array([words.statistics(candidate) for candidate in candidates])
    return int(smoothed_bleu(stats.astype(np.float64)).argmax()), stats


# ---- translations by the attention model alone -------------------------------------------------------------
# Ten times as fast as the system with its lists, and simpler than what people wrote (Kim and Rush 2016).


@dataclass(frozen=True)
class NetworkTask:
    """Lines that the attention model translates, in the words of the tables, and their references."""

    path: str  # of the translations, below the folder of the build
    sources: list[str]
    references: list[str]


def translate_by_network(build: Build, numbers: Sequence[int]) -> list[str]:
    """Translate pairs of the training text, by their indices, with the attention model; returns raw text.
    UserError if a process dies."""
    texts = BuildTexts(build.work)
    sources, references = (list(texts.lines(f"train.{side}")) for side in ("source", "target"))
    (build.work / NETWORK).mkdir(parents=True, exist_ok=True)
    tasks = list[NetworkTask]()
    for first in range(0, len(numbers), NETWORK_CHUNK):
        chunk, path = numbers[first : first + NETWORK_CHUNK], f"{NETWORK}/{first}"
        tasks.append(NetworkTask(path, [sources[n] for n in chunk], [references[n] for n in chunk]))
    run_tasks(build, translate_network_task, tasks, build.config.workers)
    lines = chain.from_iterable(files.read_lines(build.work / task.path) for task in tasks)
    return evaluation.raw_lines(texts.sides(build.config)[1], lines)


def translate_network_task(task: NetworkTask) -> None:
    """Translate the lines of a task, unless it is done. The current directory must be the folder of the
    build."""
    if not Path(task.path).exists():
        lists = evaluation.load_attention(Path()).n_best(task.sources, NETWORK_BEAM)
        files.write_text(task.path, map(nearest_text, lists, task.references))


def nearest_text(candidates: Sequence[BeamTranslation], reference: str) -> str:
    """The text of the candidate that is nearest to a reference; empty if all have an unknown word."""
    complete = [candidate.words for candidate in candidates if SPECIALS[UNK] not in candidate.words]
    return " ".join(complete[nearest(complete, reference.split())[0]]) if complete else ""


def write_text(
    build: Build,
    pairs: Sequence[SourceLine],
    groups: Sequence[LineGroup],
    translations: Sequence[Sequence[str]],
) -> None:
    """Write the text of the student: all pairs in their order, then monolingual lines, then with
    --student-references the pairs once more. Pairs that were not translated keep their reference, and so do
    those with an empty translation; monolingual lines with an empty one are left out. `translations`: of
    each group."""
    translated, more = dict[int, str](), list[tuple[str, str]]()
    for group, texts in zip(groups, translations, strict=True):
        if group.part is None:
            more += [(line.text, text) for line, text in zip(group.lines, texts, strict=True) if text]
        else:
            translated |= dict(zip(group.numbers, texts, strict=True))
    rows = [(pair.text, translated.get(number) or pair.reference) for number, pair in enumerate(pairs)]
    rows += more
    if build.config.student_references:
        rows += [(pair.text, pair.reference) for pair in pairs]
    files.write_text(build.work / SOURCE, (source for source, _ in rows))
    files.write_text(build.work / TARGET, (target for _, target in rows))
