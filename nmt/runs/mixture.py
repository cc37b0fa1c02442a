"""Language models of any kind as one: p(w | h) = Σ_i λ_i(h) p_i(w | h). A JSON file names them and their
weights.

    {"format": "nmt-mixture 1",
     "models": [{"path": "../runs/lm", "step": 1200, "sha256": "..."},
                {"path": "kn.arpa.gz", "sha256": "..."}],
     "weights": [[0.7, 0.3], [0.4, 0.6]],
     "edges": [130],
     "contexts": {"path": "mix.contexts.gz", "sha256": "..."}}

Paths are relative to the file. `weights` has a row for each bucket of contexts; with several, `edges` says
where a bucket begins and `contexts` names the counts of contexts that it goes by (nmt/ngram/histories.py).

A model gives words that it does not know p = 0; where no model knows a word, each gives it its p(UNK). So the
sum over the words of all models, and the unknown word, is 1."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt import files, manifest
from nmt.errors import DataError
from nmt.ngram import interpolation
from nmt.ngram.arpa import Floats, Ints
from nmt.ngram.histories import Histories
from nmt.runs import directory as run_directory
from nmt.runs.line_scores import LineScorer, LineScores

FORMAT = "nmt-mixture 1"
HEAD = 200  # bytes of a file in which its format is named
SUM = 1e-6  # by which weights may miss 1


@dataclass
class MixtureModel:
    """One of the models: its path, the checkpoint of a run, and what the weights were learned with."""

    path: str  # absolute, or relative to where the command was started
    step: int | None
    sha256: str


@dataclass
class MixtureFile:
    """What a file of a mixture says."""

    models: list[MixtureModel]
    weights: list[list[float]]  # (B, M)
    edges: list[int] = field(default_factory=list)  # (B - 1,)
    contexts: str = ""  # path of the counts of contexts


# ---- the file ----------------------------------------------------------------------------------------------


def is_mixture(path: str | Path) -> bool:
    """Does the file name itself a mixture?"""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        head = stream.read(HEAD).lstrip()
    return head.startswith(b"{") and FORMAT.split()[0].encode() in head


def fingerprint(path: str | Path, step: int | None) -> str:
    """Changes when a model gives other numbers: SHA-256 of its file, or of the files of a run."""
    if step is None:
        return manifest.digest(path)
    found = hashlib.sha256()
    for part in run_directory.result_files(Path(path), step):
        found.update(f"{part.name} {manifest.digest(part)}\n".encode())
    return found.hexdigest()


def write(path: str | Path, mixture: MixtureFile) -> None:
    """Write the file; its contexts are there already."""
    folder = os.path.dirname(os.path.abspath(path))

    def place(other: str) -> str:
        return os.path.relpath(os.path.realpath(other), os.path.realpath(folder))

    models = [
        {
            "path": place(model.path),
            **({} if model.step is None else {"step": model.step}),
            "sha256": model.sha256,
        }
        for model in mixture.models
    ]
    content: dict[str, object] = {"format": FORMAT, "models": models, "weights": mixture.weights}
    if mixture.contexts:
        digest = manifest.digest(mixture.contexts)
        content |= {"edges": mixture.edges, "contexts": {"path": place(mixture.contexts), "sha256": digest}}
    files.write_text(path, [json.dumps(content, indent=1, ensure_ascii=False)])


def read(path: str | Path) -> MixtureFile:
    """The file, with the paths of its models as this process finds them. DataError for one that is damaged,
    and where a model is no longer what its weight was learned with."""
    folder = Path(path).parent
    try:
        content = json.loads("\n".join(files.read_lines(path)))
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']!r}, expected {FORMAT!r}")
        models = [
            MixtureModel(str(folder / str(row["path"])), row.get("step"), str(row["sha256"]))
            for row in content["models"]
        ]
        weights = [[float(value) for value in row] for row in content["weights"]]
        mixture = MixtureFile(models, weights, [int(edge) for edge in content.get("edges", [])])
        check(mixture)
        contexts = content.get("contexts")
        if contexts:
            mixture.contexts = str(folder / str(contexts["path"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: damaged mixture of language models ({error}); make it again") from error
    for model in models:
        unchanged(path, model.path, model.sha256, model.step)
    if contexts:
        unchanged(path, mixture.contexts, str(contexts["sha256"]), None)
    return mixture


def check(mixture: MixtureFile) -> None:
    """ValueError for weights that are no distributions over the models, or of another number of buckets."""
    rows = np.array(mixture.weights)
    if rows.shape != (len(mixture.edges) + 1, len(mixture.models)) or not rows.size:
        raise ValueError(f"weights of shape {rows.shape}, expected a row for each bucket")
    if (rows < 0).any() or (abs(rows.sum(1) - 1) > SUM).any():
        raise ValueError("weights that do not sum to 1")


def unchanged(path: str | Path, part: str, sha256: str, step: int | None) -> None:
    """DataError for a part that is missing or that has changed."""
    there = run_directory.weights_path(Path(part), step) if step is not None else Path(part)
    if not there.exists():
        raise DataError(f"{path}: names {part}, but there is no {there}; paths are relative to the file")
    if fingerprint(part, step) != sha256:
        raise DataError(
            f"{path}: {part} has changed since the weights were learned; run nmt-interpolate again"
        )


# ---- the model ---------------------------------------------------------------------------------------------


class MixtureScorer:
    """The models as one; see nmt.runs.line_scores.LineScorer."""

    def __init__(
        self,
        name: str,
        members: Sequence[LineScorer],
        weights: Floats,
        edges: Sequence[int] = (),
        histories: Histories | None = None,
    ) -> None:
        """`weights` (B, M); `edges` (B - 1,) and `histories` where there is more than one bucket."""
        self.name, self.members, self.weights = name, members, weights
        self.edges, self.histories = list(edges), histories
        self.vocab_size = max(member.vocab_size for member in members)

    def __repr__(self) -> str:
        return f"<LineScorer {self.name}: {', '.join(map(repr, self.members))}>"

    @property
    def carries(self) -> bool:
        """See LineScorer."""
        return any(member.carries for member in self.members)

    @property
    def raw(self) -> bool:
        """Whether one of the models reads raw text."""
        return any(member.raw for member in self.members)

    def files(self) -> list[Path]:
        """Those of the models; weights and contexts are in the file of the mixture."""
        return [path for member in self.members for path in member.files()]

    def units(self, lines: Sequence[str], tokenized: bool = False) -> list[list[str]]:
        """The units of each line, as the first model has them."""
        return self.members[0].units(lines, tokenized)

    def score(self, lines: Sequence[str], tokenized: bool = False) -> list[LineScores]:
        """log p of each line, unit by unit. DataError where models read a line as different units."""
        found = []
        for units, scored in self.by_model(lines, tokenized):
            weights = self.weights[self.buckets(units)] if self.histories else self.weights[0]
            log_probs, known = joined(scored)
            mixed = interpolation.mixed(log_probs, weights)
            found.append(LineScores(units=units, log_probs=mixed.tolist(), known=known))
        return found

    def parts(self, lines: Sequence[str], tokenized: bool = False) -> Iterator["LineParts"]:
        """What weights are learned from, line by line."""
        for units, scored in self.by_model(lines, tokenized):
            log_probs, known = joined(scored)
            alone = np.array([line.log_probs for line in scored]).T
            yield LineParts(units=units, log_probs=log_probs, alone=alone, known=np.array([*known, True]))

    def by_model(
        self, lines: Sequence[str], tokenized: bool
    ) -> Iterator[tuple[list[str], tuple[LineScores, ...]]]:
        """The units of each line and what each model says of it. DataError where these differ."""
        by_model = [member.score(lines, tokenized) for member in self.members]
        for line, scored in zip(lines, zip(*by_model, strict=True), strict=True):
            yield self.units_of(line, scored), scored

    def units_of(self, line: str, scored: Sequence[LineScores]) -> list[str]:
        """What all models read a line as."""
        first = scored[0].units
        for member, other in zip(self.members, scored, strict=True):
            if other.units != first:
                raise DataError(
                    f"{self.members[0].name} reads {line[:60]!r} as {' '.join(first)[:60]!r}, {member.name} "
                    f"as {' '.join(other.units)[:60]!r}; models of a mixture need the same units"
                )
        return first

    def buckets(self, units: Sequence[str]) -> Ints:
        """The bucket of the context of each unit and of the end: (units + 1,)"""
        assert self.histories is not None
        return interpolation.bucket_of(self.histories.evidence(units), self.edges)

    def log_z(self, lines: Sequence[str], tokenized: bool = False) -> list[float]:
        """Nothing: a mixture has no normalizer of its own."""
        return []


@dataclass
class LineParts:
    """A line as each of M models reads it: log p of each unit and of the end."""

    units: list[str]
    log_probs: Floats  # (units + 1, M) as a part of the mixture, see `joined`
    alone: Floats  # (units + 1, M) on its own
    known: NDArray[np.bool_]  # (units + 1,) does some model know the unit?


def joined(scored: Sequence[LineScores]) -> tuple[Floats, list[bool]]:
    """log p of each unit and of the end by each model, (units + 1, M), -inf for words that only other models
    know; and which units some model knows."""
    known = np.array([[*line.known, True] for line in scored]).T  # (units + 1, M)
    some: NDArray[np.bool_] = np.logical_or.reduce(known, axis=1)
    log_probs = np.array([line.log_probs for line in scored]).T
    return np.where(known | ~some[:, None], log_probs, -np.inf), some[:-1].tolist()
