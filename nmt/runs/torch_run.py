"""Runs of nmt-train, which torch computes: one, or several as an ensemble; and word alignments of given pairs
by their attention."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import torch
from torch import Tensor, nn, tensor

from nmt.data.batches import Ids, make_batch
from nmt.errors import ConfigError
from nmt.formats.pharaoh import Links
from nmt.layers.batch_scores import BATCH, batches_by_length
from nmt.models.protocols import Layered, StepModel
from nmt.runs import checkpoint
from nmt.runs.checkpoint import SavedPair, SavedRun
from nmt.runs.constraints import ConstraintMaker, Constraints, LineConstraints, search_lines
from nmt.runs.pair import LanguagePair, load_lexicon
from nmt.runs.run import FREQUENT, Run
from nmt.scoring import word_scores
from nmt.search import FinishedHypothesis
from nmt.search.config import BeamConfig, SamplingConfig
from nmt.search.sampling import sample
from nmt.search.steps import Ensemble, Reading, Shortlisted, mean_log_probs
from nmt.text.lexicon import Lexicon, shortlist
from nmt.text.sentences import LineLimit

# ---- shortlists --------------------------------------------------------------------------------------------
# The target words that a search may use, chosen for each sentence.


@dataclass
class RunShortlist:
    """Function from the source ids of a sentence to the ids of the target units that may translate it; these
    always include UNK, BOS and EOS. `frequent`: number of most frequent units that are always included."""

    member: SavedRun
    lexicon: Lexicon
    frequent: int

    def __call__(self, source: Ids) -> set[int]:
        words = self.member.source.join(self.member.source_words.decode(map(int, source)))
        if not self.member.target.subwords:
            return shortlist(self.lexicon, words, self.member.target_words, self.frequent)
        units = {unit for word in self.lexicon.candidates(words) for unit in self.member.target.cut([word])}
        return shortlist(Lexicon({"": sorted(units)}), [""], self.member.target_words, self.frequent)


# ---- run ---------------------------------------------------------------------------------------------------


Steps = StepModel[Any]  # a model or an ensemble; the type of its state does not matter here


def combine_models(models: Sequence[Steps]) -> Steps:
    """Return the only model, or an ensemble of several."""
    return models[0] if len(models) == 1 else Ensemble(models)


class TorchRun(Run):
    """One or more runs that torch computes."""

    members: list[SavedRun]

    def __init__(
        self, members: Sequence[SavedRun], model: Steps | None = None, unknown: Lexicon | None = None
    ) -> None:
        """`model`: the model that the search uses; by default the model of the run, or an ensemble of all
        runs. `unknown`: as for `replacing_unknown`. ConfigError for different target vocabularies."""
        self.members, self.unknown = list(members), unknown
        first = self.members[0]
        for member in self.members[1:]:
            if member.target_words.words != first.target_words.words:
                raise ConfigError(
                    f"{member.directory}: its target vocabulary differs from that of {first.directory}; "
                    "the runs of an ensemble need the same one"
                )
        self.model: Steps = model or combine_models([member.model for member in self.members])

    @staticmethod
    def of(
        *directories: str | Path, which: str = "best", device: str = "cpu", threads: int = 0
    ) -> "TorchRun":
        """Load runs; unknown words are replaced if the first one has a lexicon and attention. `threads` is
        ignored: torch has its own setting. CheckpointError as from `checkpoint.load`, and for a damaged
        lexicon; ConfigError for different target vocabularies."""
        members = [checkpoint.load(directory, which, device) for directory in directories]
        lexicon = load_lexicon(members[0].directory) if members[0].model.attends else None
        return TorchRun(members, unknown=lexicon)

    @staticmethod
    def set_up(directory: str | Path, device: str) -> None:
        """Set up torch as nmt-translate does: with the matrix back end of the run."""
        checkpoint.set_up_torch(directory, device)

    def view(self, members: Sequence[LanguagePair], unknown: Lexicon | None) -> Self:
        return type(self)(cast(Sequence[SavedRun], members), self.model, unknown)

    def shortlisted(self, lexicon: Lexicon, frequent: int = FREQUENT) -> "TorchRun":
        models: list[Steps] = []
        for member in self.members:
            if not isinstance(member.model, Layered):
                raise ConfigError(
                    f"{member.directory}: models of this type cannot use a short-list; leave it out"
                )
            models.append(Shortlisted(member.model, RunShortlist(member, lexicon, frequent)))
        return TorchRun(self.members, combine_models(models), self.unknown)

    @property
    def attends(self) -> bool:
        return self.members[0].model.attends

    def read(self, line: str) -> Ids | Reading:
        """The ids of a line, for an ensemble a Reading with those of each member; empty without words."""
        ids = tuple(member.source_ids(line) for member in self.members)
        return ids[0] if len(ids) == 1 else Reading(ids)

    def fitted(self, config: BeamConfig) -> BeamConfig:
        """Settings as of any run, with `rows` that suit the vocabulary, or the GPU, unless they are set."""
        vocabulary, on_gpu = len(self.members[0].target_words), self.model.device.type != "cpu"
        return super().fitted(config).fitted(vocabulary, on_gpu)

    def search_readings(
        self,
        readings: Sequence[Ids | Reading],
        config: BeamConfig,
        prefixes: Sequence[Sequence[int]] | None,
        constraints: Sequence[LineConstraints] | None,
        attention: bool,
    ) -> list[list[FinishedHypothesis]]:
        return search_lines(self.model, readings, config, prefixes, constraints)

    def draw(self, reading: Ids | Reading, config: SamplingConfig, number: int) -> list[FinishedHypothesis]:
        return sample(self.model, [reading], config, number)[0]

    def maker(
        self, constraints: Constraints, rows: Iterable[tuple[str, str, str]] | None = None
    ) -> ConstraintMaker:
        return ConstraintMaker(self.members[0], constraints, rows)

    @property
    def modules(self) -> Sequence[nn.Module]:
        return [member.model for member in self.members]

    def unit_scores(self, pairs: Sequence[tuple[str, ...]]) -> list[list[float]]:
        targets = [self.target_ids(target) for _, target in pairs]
        sources = [[member.source_ids(source) for source, _ in pairs] for member in self.members]
        scores = [
            word_scores(member.model, list(zip(ids, targets, strict=True)))
            for member, ids in zip(self.members, sources, strict=True)
        ]
        if len(scores) == 1:
            return scores[0]
        return [
            mean_log_probs([tensor(row).double() for row in rows]).tolist()
            for rows in zip(*scores, strict=True)
        ]


# ---- word alignment ----------------------------------------------------------------------------------------


def check_attention(run: Run) -> SavedRun:
    """Return the first model of a run, whose attention aligns. ConfigError if it has no attention over the
    source, or is not computed by torch."""
    member = run.members[0]
    if not isinstance(member, SavedPair) or not run.attends:
        raise ConfigError(f"{member.directory}: has no attention to align by; give a run with attention")
    return member


def align(run: Run, pairs: Sequence[tuple[str, ...]], limit: LineLimit | None = None) -> list[Links]:
    """Align the words of each (source, target) by attention. A target word is linked to the source word that
    gets the most attention when it is predicted; a target word of several units, to that of each unit. In an
    ensemble the first model aligns. `limit`: maximum length of lines, by default that of the run. ConfigError
    for a run without attention, DataError for a pair that is too long."""
    member = check_attention(run)
    run.refuse_long_pairs(pairs, limit)
    sources = [member.source.units(pair[0]) for pair in pairs]
    targets = [member.target.units(pair[1]) for pair in pairs]
    ids: list[tuple[Ids, Ids]] = [
        (member.source_words.encode(source), member.target_words.encode(target))
        for source, target in zip(sources, targets, strict=True)
    ]
    links: list[Links] = [frozenset()] * len(pairs)
    for rows in batches_by_length(ids, BATCH):
        for row, attended in zip(rows, attended_units(member, [ids[row] for row in rows]), strict=True):
            source_of = member.source.word_numbers(sources[row])
            target_of = member.target.word_numbers(targets[row])
            if source_of:
                links[row] = frozenset(
                    (source_of[unit], word) for unit, word in zip(attended.tolist(), target_of, strict=True)
                )
    return links


@torch.no_grad()
def attended_units(member: SavedRun, pairs: Sequence[tuple[Ids, Ids]]) -> list[Tensor]:
    """Index of the source unit with the most attention, for each unit of each target: a tensor (T,) for a
    target of T units, (0,) if its source is empty. End symbols of both sides are left out."""
    model = member.model
    batch = make_batch([source for source, _ in pairs], [target for _, target in pairs]).to(model.device)
    weights = model.attended(batch)[1]
    return [
        rows[:-1, : len(source)].argmax(1) if len(source) else rows[:0, 0].long()
        for (source, _), rows in zip(pairs, batch.target.split(weights), strict=True)
    ]
