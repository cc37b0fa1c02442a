"""Language models of any kind behind one interface that scores lines: a run directory, an ARPA file, a folder
of nmt-ngram compile, a KenLM binary, or a mixture of these.

>>> import nmt
>>> lm = nmt.load_language_model("lm.arpa")
>>> [line] = lm.score(["un garçon"])
>>> line.units
['un', 'garçon']
>>> len(line.log_probs)                    # natural log p of each unit and of the end of the line
3
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from nmt.errors import ConfigError, DataError, check_lines
from nmt.io import files, manifest, mapped
from nmt.lazy import LazyPart
from nmt.ngram import count_models, interpolation, trie
from nmt.ngram.interpolation import Histories
from nmt.ngram.text_scorer import Floats
from nmt.runs import directory as run_directory

# ---- interface, and n-gram models --------------------------------------------------------------------------


@dataclass
class LineScores:
    """The scores of a line: log p of each of its units and of its end, natural logarithm."""

    units: list[str]
    log_probs: list[float]  # (units + 1,)
    in_vocabulary: list[bool]  # (units,) whether the unit is in the vocabulary


class LineScorer:
    """Interface of language models of any kind: their scores of lines of text."""

    name: str  # of the model, for results
    vocab_size: int  # number of units that the model knows, the end symbol included; 0 if unknown

    @property
    def carries(self) -> bool:
        """Whether the model carries its state from line to line, and from one call to the next."""
        return False

    @property
    def raw(self) -> bool:
        """Whether the model reads raw text, so that it would score tokenized lines wrongly."""
        return False

    def files(self) -> list[Path]:
        """The files that scores depend on, besides the text."""
        raise NotImplementedError

    def units(self, lines: Sequence[str]) -> list[list[str]]:
        """Split each line into the units that are scored."""
        raise NotImplementedError

    def score(self, lines: Sequence[str]) -> list[LineScores]:
        """Score each line, unit by unit; see `LineScores`."""
        raise NotImplementedError

    def log_z(self, lines: Sequence[str]) -> list[float]:
        """Absolute value of log Z, natural logarithm, in each distinct context of the lines, for a network
        trained with lm.normalizer; empty for other models."""
        return []


class CountLineScorer(LineScorer):
    """Scores lines with a count-based n-gram model from a file or folder; words are separated by blanks.
    DataError if the model cannot be read."""

    def __init__(self, path: str) -> None:
        self.model, self.path = count_models.load_count_model(path), Path(path)
        self.name = self.path.absolute().name
        self.vocab_size = self.model.vocab_size

    def __repr__(self) -> str:
        return f"<LineScorer {self.name}: n-gram model, {max(0, self.vocab_size):,} words>"

    def files(self) -> list[Path]:
        return [trie.identity_file(self.path)]

    def units(self, lines: Sequence[str]) -> list[list[str]]:
        check_lines(lines)
        return [files.split_words(line) for line in lines]

    def score(self, lines: Sequence[str]) -> list[LineScores]:
        texts = self.units(lines)
        line_scores = self.model.scores(texts)
        return [
            LineScores(units=text, log_probs=scores.tolist(), in_vocabulary=list(map(self.model.knows, text)))
            for text, scores in zip(texts, line_scores, strict=True)
        ]


# ---- mixture -----------------------------------------------------------------------------------------------
# Language models of any kind combined: p(w | h) = Σ_i λ_i(h) p_i(w | h). A JSON file names them and their
# weights.
#
#     {"format": "nmt-mixture 1",
#      "models": [{"path": "../runs/lm", "step": 1200, "sha256": "..."},
#                 {"path": "kn.arpa.gz", "sha256": "..."}],
#      "weights": [[0.7, 0.3], [0.4, 0.6]],
#      "edges": [130],
#      "contexts": {"path": "mix.contexts.gz", "sha256": "..."}}
#
# Paths are relative to the file. `weights` has a row for each bucket of contexts; with several, `edges` says
# where each bucket begins, and `contexts` names the file with the counts of contexts that determine the
# bucket (nmt/ngram/histories.py).
#
# A model gives words that it does not know p = 0; where no model knows a word, each gives it its p(UNK). So
# the sum over the words of all models, and the unknown word, is 1.


MIXTURE_FORMAT = "nmt-mixture 1"
FORMAT_BYTES = 200  # bytes of a file in which its format is named
WEIGHT_TOLERANCE = 1e-6  # by which the sum of weights may differ from 1


@dataclass
class MixtureModel:
    """A model of a mixture, as it was when the weights were learned."""

    path: str  # absolute, or relative to the working directory
    step: int | None  # updates of its checkpoint; None for a model that is not a run
    sha256: str  # see `fingerprint`


@dataclass
class MixtureFile:
    """The content of a mixture file."""

    models: list[MixtureModel]
    weights: list[list[float]]  # (B, M): for each of B buckets the weights of M models
    edges: list[int] = field(default_factory=list)  # (B - 1,) evidence at which buckets 1, 2 ... begin
    contexts: str = ""  # path of the counts of contexts; empty with one bucket


# ---- file of a mixture -------------------------------------------------------------------------------------


def is_mixture(path: str | Path) -> bool:
    """Whether a file is a mixture, judging by its first bytes."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        head = stream.read(FORMAT_BYTES).lstrip()
    return head.startswith(b"{") and MIXTURE_FORMAT.split()[0].encode() in head


def fingerprint(path: str | Path, step: int | None) -> str:
    """SHA-256 of a model's file or, if `step` is given, of the files of a run with the weights after this
    many updates: it changes whenever the scores may. DataError if a file cannot be read."""
    if step is None:
        return manifest.digest(trie.identity_file(path))
    digest = hashlib.sha256()
    for part in run_directory.result_files(Path(path), step):
        digest.update(f"{part.name} {manifest.digest(part)}\n".encode())
    return digest.hexdigest()


def write_mixture(path: str | Path, mixture: MixtureFile) -> None:
    """Write a mixture file, paths relative to it; its contexts' file must exist. UserError if that fails."""
    folder = os.path.dirname(os.path.abspath(path))

    def relative_path(part: str) -> str:
        return os.path.relpath(os.path.realpath(part), os.path.realpath(folder))

    models = [
        {
            "path": relative_path(model.path),
            **({} if model.step is None else {"step": model.step}),
            "sha256": model.sha256,
        }
        for model in mixture.models
    ]
    content: dict[str, object] = {"format": MIXTURE_FORMAT, "models": models, "weights": mixture.weights}
    if mixture.contexts:
        digest = manifest.digest(mixture.contexts)
        content |= {
            "edges": mixture.edges,
            "contexts": {"path": relative_path(mixture.contexts), "sha256": digest},
        }
    files.write_text(path, [json.dumps(content, indent=1, ensure_ascii=False)])


def read_mixture(path: str | Path) -> MixtureFile:
    """Read a mixture file; paths of models are resolved for this process. DataError if it is damaged, or if a
    model has changed since the weights were learned."""
    mixture, contexts_sha256 = parse_mixture(path)
    for model in mixture.models:
        check_unchanged(path, model.path, model.sha256, model.step)
    if mixture.contexts:
        check_unchanged(path, mixture.contexts, contexts_sha256, None)
    return mixture


def parse_mixture(path: str | Path) -> tuple[MixtureFile, str]:
    """Parse a mixture file; also returns the SHA-256 of its contexts, empty without contexts. DataError for a
    damaged file; does not look at the models."""
    folder = Path(path).parent
    try:
        content = json.loads("\n".join(files.read_lines(path)))
        if content["format"] != MIXTURE_FORMAT:
            raise ValueError(f"format {content['format']!r}, expected {MIXTURE_FORMAT!r}")
        models = [
            MixtureModel(str(folder / str(row["path"])), row.get("step"), str(row["sha256"]))
            for row in content["models"]
        ]
        weights = [[float(value) for value in row] for row in content["weights"]]
        mixture = MixtureFile(models, weights, [int(edge) for edge in content.get("edges", [])])
        check_mixture(mixture)
        contexts = content.get("contexts")
        if not contexts:
            if mixture.edges:
                raise ValueError("edges of buckets, but no contexts")
            return mixture, ""
        mixture.contexts = str(folder / str(contexts["path"]))
        return mixture, str(contexts["sha256"])
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{path}: damaged mixture of language models ({error}); run nmt-interpolate again"
        ) from error


def check_mixture(mixture: MixtureFile) -> None:
    """ValueError unless the weights of each bucket are a distribution over the models."""
    rows = np.array(mixture.weights)
    if rows.shape != (len(mixture.edges) + 1, len(mixture.models)) or not rows.size:
        raise ValueError(f"weights of shape {rows.shape}, expected a row for each bucket")
    if not ((rows >= 0).all() and (abs(rows.sum(1) - 1) <= WEIGHT_TOLERANCE).all()):  # nan is refused, too
        raise ValueError("weights that do not sum to 1")


def check_unchanged(path: str | Path, part: str, sha256: str, step: int | None) -> None:
    """DataError for a file or run `part`, named in the mixture `path`, that is missing or whose `fingerprint`
    is not `sha256`. `step`: as in `fingerprint`."""
    target = run_directory.weights_path(Path(part), step) if step is not None else Path(part)
    if not target.exists():
        raise DataError(f"{path}: names {part}, but there is no {target}; paths are relative to the file")
    if fingerprint(part, step) != sha256:
        raise DataError(
            f"{path}: {part} has changed since the weights were learned; run nmt-interpolate again"
        )


# ---- scores of a mixture -----------------------------------------------------------------------------------


class MixtureScorer(LineScorer):
    """Scores lines with a weighted mixture of language models."""

    def __init__(
        self,
        name: str,
        members: Sequence[LineScorer],
        weights: Floats,
        edges: Sequence[int] = (),
        histories: Histories | None = None,
    ) -> None:
        """`name`: of the mixture, for results; `members`: the M models; `weights` (B, M): of the models in
        each bucket of contexts. With more than one bucket also `edges` (B - 1,), see `MixtureFile`, and
        `histories`, which count the contexts."""
        self.name, self.members, self.weights = name, members, weights
        self.edges, self.histories = list(edges), histories
        self.vocab_size = max(member.vocab_size for member in members)

    def __repr__(self) -> str:
        return f"<LineScorer {self.name}: {', '.join(map(repr, self.members))}>"

    @property
    def carries(self) -> bool:
        return any(member.carries for member in self.members)

    @property
    def raw(self) -> bool:
        return any(member.raw for member in self.members)

    def files(self) -> list[Path]:
        """The files of all models, without the mixture file itself and its contexts."""
        return [path for member in self.members for path in member.files()]

    def units(self, lines: Sequence[str]) -> list[list[str]]:
        """Split each line into units, as the first model does."""
        return self.members[0].units(lines)

    def score(self, lines: Sequence[str]) -> list[LineScores]:
        """Natural log p of each line, unit by unit. DataError if the models split a line differently."""
        scores = []
        for units, scored in self.score_by_model(lines):
            weights = self.weights[0]
            if self.histories is not None:
                weights = self.weights[
                    interpolation.bucket_indices(self.histories.evidence(units), self.edges)
                ]
            log_probs, in_vocabulary = join_scores(scored)
            mixed = interpolation.mixture_log_probs(log_probs, weights)
            scores.append(LineScores(units=units, log_probs=mixed.tolist(), in_vocabulary=in_vocabulary))
        return scores

    def parts(self, lines: Sequence[str]) -> Iterator["LineParts"]:
        """Yield the scores of each line by model, to learn weights from. DataError as from `score`."""
        for units, scored in self.score_by_model(lines):
            log_probs, in_vocabulary = join_scores(scored)
            yield LineParts(
                units=units,
                log_probs=log_probs,
                own_log_probs=np.array([line.log_probs for line in scored]).T,
                in_vocabulary=np.array([*in_vocabulary, True]),
            )

    def score_by_model(self, lines: Sequence[str]) -> Iterator[tuple[list[str], tuple[LineScores, ...]]]:
        """Yield the units of each line and its scores by every model. DataError as from `score`."""
        by_model = [member.score(lines) for member in self.members]
        for line, scored in zip(lines, zip(*by_model, strict=True), strict=True):
            first = scored[0].units
            for member, scores in zip(self.members, scored, strict=True):
                if scores.units != first:
                    raise DataError(
                        f"{self.members[0].name} reads {line[:60]!r} as {' '.join(first)[:60]!r}, "
                        f"{member.name} as {' '.join(scores.units)[:60]!r}; models of a mixture need the "
                        "same units"
                    )
            yield first, scored


@dataclass
class LineParts:
    """A line as each of M models scores it: natural log p of each unit and of the end of the line."""

    units: list[str]
    log_probs: Floats  # (units + 1, M) as parts of the mixture: -inf where only other models know the word
    own_log_probs: Floats  # (units + 1, M) of each model by itself
    in_vocabulary: NDArray[np.bool_]  # (units + 1,) whether some model knows the unit


def join_scores(scored: Sequence[LineScores]) -> tuple[Floats, list[bool]]:
    """Combine the scores of a line by all M models: natural log p of each unit and of the end, (units + 1,
    M), -inf where only other models know the word; and whether any model knows each unit."""
    in_vocabulary = np.array([[*line.in_vocabulary, True] for line in scored]).T  # (units + 1, M)
    some: NDArray[np.bool_] = np.logical_or.reduce(in_vocabulary, axis=1)
    log_probs = np.array([line.log_probs for line in scored]).T
    return np.where(in_vocabulary | ~some[:, None], log_probs, -np.inf), some[:-1].tolist()


# ---- language model ----------------------------------------------------------------------------------------

# What networks need; it imports torch.
NETWORK = LazyPart("nmt.runs.neural_lm:load_line_scorer")
SET_UP_TORCH = LazyPart("nmt.runs.checkpoint:set_up_torch")


def load_language_model(
    path: str | Path,
    which: str = "best",
    device: str = "cpu",
    normalized: bool = False,
    backoff: str = "",
    tokenized: bool = False,
) -> LineScorer:
    """Load a language model: a run directory, an ARPA file (.gz too), a folder of nmt-ngram compile, a KenLM
    binary, or a mixture of them that nmt-interpolate has written.

    `which`: the checkpoint of a run: best, last or a number of updates. `device`: of a network: cpu, cuda:N
    or auto. `normalized`: take a network's log Z as 0. `backoff`: an ARPA file that shares a network's p(UNK)
    among the words it does not know. `tokenized`: lines will be tokenized like the training text of a run.

    ConfigError, DataError or CheckpointError, in one line, for what is not a language model, and for
    arguments that this kind of model does not take. For a run, this process's torch is set up as in
    nmt-score: with the matrix back end of the run.

    >>> lm = load_language_model("runs/lm")
    >>> lm
    <LineScorer lm@200: cslm of fr, 298 units, 9,234 parameters>
    >>> [line] = lm.score(["Un garçon ne suit pas l'homme."])
    >>> round(sum(line.log_probs), 2)
    -21.26
    """
    if is_network(path):
        cast(Callable[[str | Path, str], None], SET_UP_TORCH.load())(path, device)
    return line_scorer(path, which, device, normalized, backoff, tokenized)


def is_network(path: str | Path) -> bool:
    """Whether a path is a folder other than that of an n-gram model, that is, a run directory."""
    return Path(path).is_dir() and not mapped.is_mapped(path)


def needs_torch(path: str | Path) -> bool:
    """Whether a language model is a network, or a mixture with a network, so that torch computes it.
    DataError for a damaged mixture."""
    if is_network(path):
        return True
    return is_mixture(path) and any(needs_torch(model.path) for model in parse_mixture(path)[0].models)


def line_scorer(
    path: str | Path,
    which: str = "best",
    device: str = "cpu",
    normalized: bool = False,
    backoff: str = "",
    tokenized: bool = False,
) -> LineScorer:
    """`load_language_model`, but without setting up torch, for commands that have done so."""
    if is_network(path):
        load = cast(Callable[..., LineScorer], NETWORK.load())
        return load(path, which, device, normalized, backoff, tokenized)
    if is_mixture(path):
        if normalized or backoff:
            option = "--backoff" if backoff else "--assume-normalized"
            raise ConfigError(f"{option}: {path} is a mixture; this is for a single network; leave it out")
        return mixture_scorer(path, device, tokenized)
    if backoff:
        raise ConfigError(f"--backoff: {path} is an n-gram model, which backs off by itself; leave it out")
    if normalized:
        raise ConfigError(
            f"--assume-normalized: {path} is an n-gram model, whose probabilities sum to one anyway; leave "
            "it out"
        )
    return CountLineScorer(str(path))


def mixture_scorer(path: str | Path, device: str = "cpu", tokenized: bool = False) -> MixtureScorer:
    """Load a mixture as one scorer. `tokenized`: as in `load_language_model`. DataError if the file is
    damaged, or if one of its models has changed."""
    mixture = read_mixture(path)
    members = [
        line_scorer(
            model.path, "best" if model.step is None else str(model.step), device, tokenized=tokenized
        )
        for model in mixture.models
    ]
    histories = Histories.load(mixture.contexts) if mixture.contexts else None
    return MixtureScorer(Path(path).name, members, np.array(mixture.weights), mixture.edges, histories)
