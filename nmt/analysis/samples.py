"""Sample translations (van Merriënboer 2018, table 6.2): random long and short sentences with their reference
and the translation of each system."""

import argparse
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmt.analysis.actions import Findings, ResultTable, single_field
from nmt.analysis.buckets import lengths
from nmt.analysis.hard_words import add_vocabularies, check_vocabularies, read_vocabularies, unknown_words
from nmt.analysis.plots import CYCLE, label_text, pyplot, remove_frame, save_figure
from nmt.analysis.systems import SystemOutput, add_systems, load_systems, score_summary
from nmt.cli.arguments import add_settings, parse_settings
from nmt.cli.options import Parser
from nmt.config.settings import number
from nmt.text.vocab import Vocab

log = logging.getLogger(__name__)


@dataclass
class SampleConfig:
    """Which sentences are shown, and how many."""

    count: int = number(5, least=1, help="sentences of each kind")
    long: int = number(30, least=1, help="long: more than N words on both sides")
    short: int = number(10, least=1, help="short: fewer than N words on both sides")
    seed: int = number(1, least=0, help="random seed of the choice")


@dataclass
class SampleSentence:
    """A sentence of the test set with the translations of all systems."""

    kind: str  # long | short
    line: int  # from 1
    words: int  # of the source
    source: str
    reference: str
    hypotheses: dict[str, str]  # by system
    chrf: dict[str, float]  # by system, 0 to 100, of this sentence alone


def sample_sentences(
    systems: Sequence[SystemOutput], vocabs: tuple[Vocab, Vocab] | None, config: SampleConfig
) -> list[SampleSentence]:
    """Draw up to `config.count` random sentences of each kind, long and short; returns each kind in the order
    of the text. Sentences with an empty side are not drawn.

    With vocabularies (source, target), only sentences without unknown words on either side are drawn.
    """
    test = systems[0].test
    sizes = lengths(test)
    shorter, longer = np.minimum(sizes["source"], sizes["reference"]), np.array(sizes["both"])
    usable = shorter > 0
    if vocabs:
        usable &= np.array(unknown_words(test, *vocabs)["both"]) == 0
    chrf = {system.name: system.chrf_statistics.by_sentence() for system in systems}
    rng, samples = np.random.default_rng(config.seed), []
    for kind, mask in (("long", shorter > config.long), ("short", longer < config.short)):
        rows = np.flatnonzero(usable & mask)
        for row in sorted(rng.permutation(rows)[: config.count].tolist()):
            samples.append(
                SampleSentence(
                    kind=kind,
                    line=row + 1,
                    words=sizes["source"][row],
                    source=test.sources[row],
                    reference=test.references[0][row],
                    hypotheses={system.name: system.hypotheses[row] for system in systems},
                    chrf={name: scores[row] for name, scores in chrf.items()},
                )
            )
    return samples


def samples_table(samples: Sequence[SampleSentence]) -> ResultTable:
    """Build a table with the source, the reference, and each system's translation and chrF of each sample."""
    columns = {"kind": "", "line": "", "words": "", "of": "", "chrf": ".2f", "text": ""}
    return ResultTable(columns, [row for sample in samples for row in sample_rows(sample)])


def sample_rows(sample: SampleSentence) -> Iterator[list[object]]:
    """Yield the rows of a sample: the source, the reference, and the translation of each system."""
    head = [sample.kind, sample.line, sample.words]
    yield [*head, "source", None, single_field(sample.source)]
    yield [*head, "reference", None, single_field(sample.reference)]
    for name, text in sample.hypotheses.items():
        yield [*head, name, sample.chrf[name], single_field(text)]


def plot_by_length(
    systems: Sequence[SystemOutput], samples: Sequence[SampleSentence], paths: Sequence[Path]
) -> None:
    """Draw chrF of all sentences over their length, with circles around the samples, into `paths`."""
    words = lengths(systems[0].test)["source"]
    figure, axes = pyplot().subplots(figsize=(6.5, 3.8), layout="constrained")
    for index, system in enumerate(systems):
        color, chrf = CYCLE[index % len(CYCLE)], system.chrf_statistics.by_sentence()
        axes.plot(words, chrf, ".", markersize=3, alpha=0.3, color=color, label=label_text(system.name))
        circles = [sample.words for sample in samples], [sample.chrf[system.name] for sample in samples]
        axes.plot(*circles, "o", markersize=7, fillstyle="none", color=color)
    axes.set_xlabel("source length in words (circles: the sentences shown)")
    axes.set_ylabel("chrF of the sentence")
    axes.legend(frameon=False, fontsize=8)
    remove_frame(axes)
    save_figure(figure, paths)


class SamplesAnalysis:
    help = "Random long and short sentences, with the translation of each system."

    def add_options(self, parser: Parser) -> None:
        add_systems(parser)
        add_vocabularies(parser, required=False)
        add_settings(parser, SampleConfig, "count", "long", "short", "seed")

    def run(self, args: argparse.Namespace) -> Findings:
        vocabs = read_vocabularies(args.vocabulary) if args.vocabulary else None
        systems = load_systems(args)
        if vocabs:
            check_vocabularies(args.vocabulary, vocabs, systems[0].test)
        samples = sample_sentences(systems, vocabs, parse_settings(SampleConfig, args))
        if not samples:
            log.warning(
                "no sentence%s has more than %d or fewer than %d words on both sides; try other --long, "
                "--short",
                " without unknown words" if vocabs else "",
                args.long,
                args.short,
            )
        return Findings(
            table=samples_table(samples),
            summary=score_summary(systems),
            draw=lambda paths: plot_by_length(systems, samples, paths),
        )
