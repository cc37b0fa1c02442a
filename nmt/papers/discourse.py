"""An encoder of translators, trained on plain text by discourse objectives (Jernite 2018, chapter 5), from
which `init_from` starts translators with the same section `model`. The text is sentences line by line, with
an empty line between paragraphs.

B examples, S sentences of an example, D width of a sentence's vector, n examples of a text, C answers, N
words.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt.config.settings import choice, setting
from nmt.data.batches import ALL_BATCHES, Ids, Packed, Share, pack_source
from nmt.data.binarized import Corpus
from nmt.data.corpus import check_text_config
from nmt.errors import ConfigError, DataError
from nmt.io.numbers import shown
from nmt.layers.cells import penalized_parts, total_penalty
from nmt.layers.characters import CharacterWords
from nmt.layers.initialize import initialize
from nmt.models.config import TEXT, RNNConfig
from nmt.models.encoders import ENCODER_CLASSES, Encoded
from nmt.runs import checkpoint
from nmt.runs import directory as run_directory
from nmt.runs.checkpoint import SavedPair, load_weights
from nmt.runs.text import load_side
from nmt.text.vocab import Vocab
from nmt.training import build, prepare
from nmt.training.build import TrainableKind
from nmt.training.job import TrainingJob
from nmt.training.validation import DevScore, evaluating

Ints = NDArray[np.int64]
log = logging.getLogger(__name__)

# ---- objectives --------------------------------------------------------------------------------------------


@dataclass
class Paragraphs:
    """A text divided into paragraphs."""

    corpus: Corpus  # its targets are the lines
    words: Sequence[str]  # the vocabulary
    spans: Ints  # (paragraphs, 2) the first line, and the one after the last

    @staticmethod
    def of(corpus: Corpus, words: Sequence[str]) -> "Paragraphs":
        """Divide lines into paragraphs at the empty lines."""
        filled = np.concatenate([[0], np.diff(corpus.target_offsets) > 0, [0]]).astype(np.int8)
        change = np.diff(filled)
        spans = np.stack([np.flatnonzero(change == 1), np.flatnonzero(change == -1)], 1)
        return Paragraphs(corpus, words, spans.astype(np.int64))

    def sentence(self, line: int) -> NDArray[np.int64]:
        """The ids of a line."""
        return self.corpus.pair(line)[1]

    def neighbors(self) -> Ints:
        """Indices of the lines that are followed by another line of the same paragraph: (n,)"""
        return np.concatenate([np.arange(0), *(np.arange(first, end - 1) for first, end in self.spans)])


@dataclass
class Example:
    """A question about sentences. `answer`: index of the right one among the scores of `forward`."""

    sentences: list[Ids]
    answer: int


class Objective(nn.Module):
    """A classifier of sentence vectors; to add one, add its class to `OBJECTIVES`."""

    answers: ClassVar[int]  # C
    share: ClassVar[float] = 1.0  # of its examples in an epoch with other objectives

    def __init__(self, width: int) -> None:
        """Create a classifier of sentence vectors of `width` dimensions (D)."""
        super().__init__()

    @staticmethod
    def find(text: Paragraphs) -> Ints:
        """Find all examples in a text: one row per example, which `example` takes as `position`: (n, ...)"""
        raise NotImplementedError

    @staticmethod
    def example(text: Paragraphs, position: Ints, rng: np.random.Generator) -> Example:
        """Build the example at a position. All examples of an objective have equally many sentences."""
        raise NotImplementedError

    def forward(self, vectors: Tensor) -> Tensor:
        """Scores of all answers, log p up to a constant: (B, S, D) -> (B, C)"""
        raise NotImplementedError


class Order(Objective):
    """ORDER: are two neighboring sentences in their original order? (Jernite 2018, eq. 5.1)

    p(swapped) = σ(s_l M s_r). Half of the examples are swapped; for these the answer is 1.
    """

    answers: ClassVar[int] = 2

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.matrix = nn.Parameter(torch.empty(width, width))  # M

    @staticmethod
    def find(text: Paragraphs) -> Ints:
        return text.neighbors()[:, None]

    @staticmethod
    def example(text: Paragraphs, position: Ints, rng: np.random.Generator) -> Example:
        pair: list[Ids] = [text.sentence(int(position[0])), text.sentence(int(position[0]) + 1)]
        swapped = int(rng.integers(2))
        return Example(pair[::-1] if swapped else pair, swapped)

    def forward(self, vectors: Tensor) -> Tensor:
        score = torch.einsum("bi,ij,bj->b", vectors[:, 0], self.matrix, vectors[:, 1])
        return torch.stack([torch.zeros_like(score), score], 1)


CONTEXT, CANDIDATES = 3, 5
SHORTEST_PARAGRAPH = 9  # sentences of a paragraph: "longer than 8"


class Following(Objective):
    """NEXT: which of five candidates follows the first three sentences of a paragraph? (Jernite 2018, eq.
    5.2)

    p(i) = softmax over the candidates of s_c M s_i, where s_c is the concatenation of the three vectors.
    """

    answers: ClassVar[int] = CANDIDATES
    share: ClassVar[float] = 0.25  # its examples have four times the sentences of the others

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.matrix = nn.Parameter(torch.empty(CONTEXT * width, width))  # M

    @staticmethod
    def find(text: Paragraphs) -> Ints:
        return text.spans[text.spans[:, 1] - text.spans[:, 0] >= SHORTEST_PARAGRAPH]

    @staticmethod
    def example(text: Paragraphs, position: Ints, rng: np.random.Generator) -> Example:
        first, end = position.tolist()
        follows = first + CONTEXT
        later = rng.permutation(np.arange(follows + 1, end))[: CANDIDATES - 1]
        answer = int(rng.integers(CANDIDATES))
        lines = [*range(first, follows), *np.insert(later, answer, follows).tolist()]
        return Example([text.sentence(line) for line in lines], answer)

    def forward(self, vectors: Tensor) -> Tensor:
        context = vectors[:, :CONTEXT].flatten(1)
        return torch.einsum("bi,ij,bcj->bc", context, self.matrix, vectors[:, CONTEXT:])


# The kinds of conjunctions (Jernite 2018, table 5.4)
KINDS = {
    "addition": "again, also, besides, finally, further, furthermore, moreover, in addition",
    "contrast": "anyway, however, instead, nevertheless, otherwise, contrarily, conversely, nonetheless, "
    "in contrast, rather",
    "time": "meanwhile, next, then, now, thereafter",
    "result": "accordingly, consequently, hence, thus, therefore",
    "specific": "namely, specifically, notably, that is, for example",
    "compare": "likewise, similarly",
    "strengthen": "indeed, in fact",
    "return": "still",
    "recognize": "undoubtedly, certainly",
}
CONJUNCTIONS = {
    phrase: number for number, phrases in enumerate(KINDS.values()) for phrase in phrases.split(", ")
}
LONGEST_CONJUNCTION = 8  # units of a conjunction and its comma that are looked for


def conjunction(units: Sequence[str]) -> tuple[int, int]:
    """The kind, an index in KINDS, of the conjunction with which a sentence begins if a comma follows it, and
    the number of units of both; (-1, 0) if there is none. Case does not matter; units may be subwords."""
    for count in range(1, min(LONGEST_CONJUNCTION, len(units)) + 1):
        opening = " ".join(units[:count]).replace("@@ ", "")
        if "\u2581" in opening:
            opening = opening.replace(" ", "").replace("\u2581", " ")
        if opening.endswith(","):
            kind = CONJUNCTIONS.get(opening[:-1].strip().lower(), -1)
            return (kind, count) if kind >= 0 else (-1, 0)
    return -1, 0


class Conjunction(Objective):
    """CONJ: which kind of conjunction was removed from the second of two sentences? (Jernite 2018, eq. 5.3)

    p(c) = softmax over the kinds of s_l M_c s_r.
    """

    answers: ClassVar[int] = len(KINDS)

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.matrices = nn.Parameter(torch.empty(len(KINDS), width, width))  # M_c

    @staticmethod
    def find(text: Paragraphs) -> Ints:
        """Index of the first line, kind, and units to remove from each line, of each example: (n, 4)"""

        def leading_conjunction(line: int) -> tuple[int, int]:
            units = text.sentence(line)[:LONGEST_CONJUNCTION].tolist()
            return conjunction([text.words[unit] for unit in units])

        candidates = []
        for first, end in text.spans.tolist():
            kinds = [leading_conjunction(line) for line in range(first, end)]
            for line, ((_, left_count), (kind, count)) in enumerate(pairwise(kinds), first):
                left, right = len(text.sentence(line)), len(text.sentence(line + 1))
                if kind >= 0 and right > count and left > left_count:
                    candidates.append((line, kind, left_count, count))
        return np.array(candidates, np.int64).reshape(-1, 4)

    @staticmethod
    def example(text: Paragraphs, position: Ints, rng: np.random.Generator) -> Example:
        line, kind, left_count, count = position.tolist()
        return Example([text.sentence(line)[left_count:], text.sentence(line + 1)[count:]], kind)

    def forward(self, vectors: Tensor) -> Tensor:
        return torch.einsum("bi,cij,bj->bc", vectors[:, 0], self.matrices, vectors[:, 1])


# By the names that `model.objectives` takes
OBJECTIVES: dict[str, type[Objective]] = {"order": Order, "next": Following, "conj": Conjunction}

# ---- batches -----------------------------------------------------------------------------------------------


@dataclass
class DiscourseBatch:
    """Examples of one objective: B x S sentences; the sentences of an example are adjacent."""

    objective: str
    source: Packed
    answers: Tensor  # (B,)

    def to(self, device: torch.device | str) -> "DiscourseBatch":
        return replace(self, source=self.source.to(device), answers=self.answers.to(device))

    @property
    def sentences(self) -> int:
        """Number of examples, not of the sentences in them."""
        return len(self.answers)

    @property
    def target_tokens(self) -> int:
        """Number of predictions: one answer per example."""
        return len(self.answers)

    @property
    def tokens(self) -> int:
        """Words that are read, end symbols included."""
        return len(self.source.ids)

    @property
    def longest(self) -> int:
        """Words of the longest sentence, its end symbol included."""
        return len(self.source.sizes)


class DiscourseStream:
    """The batches of each epoch, in random order. With a single objective an epoch has all examples; with
    several, only a share of the examples of some objectives. The same seed gives the same batches."""

    def __init__(self, text: Paragraphs, objectives: Sequence[str], batch_size: int, seed: int) -> None:
        """DataError for a text without an example of an objective."""
        self.text, self.batch_size, self.seed = text, batch_size, seed
        self.positions: dict[str, Ints] = {name: OBJECTIVES[name].find(text) for name in objectives}
        for name, positions in self.positions.items():
            if not len(positions):
                raise DataError(
                    f"objective {name}: the text has no example, in {len(text.spans):,} paragraphs; expected "
                    "one sentence a line and an empty line between paragraphs"
                )

    def examples(self, name: str) -> int:
        """Number of examples of an objective in an epoch."""
        share = OBJECTIVES[name].share if len(self.positions) > 1 else 1.0
        return max(1, int(share * len(self.positions[name])))

    def count(self, epoch: int) -> int:
        """Number of batches in an epoch, over all objectives."""
        return sum(-(-self.examples(name) // self.batch_size) for name in self.positions)

    def batches(self, epoch: int, start: int = 0, share: Share = ALL_BATCHES) -> Iterator[DiscourseBatch]:
        rng = np.random.default_rng([self.seed, epoch])
        batches: list[tuple[str, Ints]] = []
        for name, positions in self.positions.items():
            rows = rng.permutation(len(positions))[: self.examples(name)]
            batches += [
                (name, rows[first : first + self.batch_size])
                for first in range(0, len(rows), self.batch_size)
            ]
        order = rng.permutation(len(batches))
        for number in filter(share.has, range(start, len(order))):
            name, rows = batches[order[number]]
            yield self.batch(name, rows, np.random.default_rng([self.seed, epoch, number]))

    def batch(self, name: str, rows: Ints, rng: np.random.Generator) -> DiscourseBatch:
        """Make a batch of examples of objective `name`. `rows` (B,): indices into `positions[name]`; `rng`:
        for random choices within an example."""
        examples = [
            OBJECTIVES[name].example(self.text, position, rng) for position in self.positions[name][rows]
        ]
        sentences: list[Ids] = [sentence for example in examples for sentence in example.sentences]
        answers = torch.tensor([example.answer for example in examples])
        return DiscourseBatch(name, pack_source(sentences), answers)


# ---- model -------------------------------------------------------------------------------------------------

ALL = "order next conj"


@dataclass
class DiscourseConfig(RNNConfig):
    """Keys of section `model` for `type: discourse`: those of `rnn`, of which only the encoder's are used."""

    noun: ClassVar[str] = "an encoder alone"
    remedy: ClassVar[str] = "; start a translator from it by init_from"
    reads: ClassVar[str] = TEXT
    translates: ClassVar[bool] = False
    type: str = "discourse"
    objectives: str = setting(
        ALL,
        help="what is learned: order (are two neighbors in order), next (which sentence follows three), conj "
        "(which conjunction was taken off); one or more names",
    )
    vector: str = choice(
        "maximum",
        "last",
        help="the vector of a sentence: the maximum over its annotations (Jernite 2018), or the start "
        "of a decoder",
    )

    def check(self) -> None:
        super().check()
        unknown = [name for name in self.names if name not in OBJECTIVES]
        if unknown or not self.names:
            expected = ", ".join(map(repr, OBJECTIVES))
            raise ConfigError(
                f"model.objectives: {shown(' '.join(unknown))} is unknown, expected one or more of {expected}"
            )

    @property
    def attends(self) -> bool:
        return False

    @property
    def vector_sides(self) -> tuple[str, ...]:
        return ()

    @property
    def names(self) -> list[str]:
        """Names of the objectives, without duplicates."""
        return list(dict.fromkeys(self.objectives.split()))


class Discourse(nn.Module):
    """The encoder of `model.type: rnn` with classifiers of sentences on top. Its parameters have the same
    names as in a translator."""

    Config: ClassVar[type[DiscourseConfig]] = DiscourseConfig
    one_process: ClassVar[str] = "model.type discourse: all examples of a batch have the same objective"

    def __init__(self, config: DiscourseConfig, words: Sequence[str], fill: bool = True) -> None:
        """`fill=False` leaves the parameters uninitialized, for weights that are about to be loaded."""
        super().__init__()
        config.check()
        self.encoder = ENCODER_CLASSES[config.encoder](config, len(words), words)
        self.maximum = config.vector == "maximum"
        width = config.context if self.maximum else config.summary_size
        self.objectives = nn.ModuleDict({name: OBJECTIVES[name](width) for name in config.names})
        self.penalized = penalized_parts(self)
        if fill:
            initialize(self, config.init, config.init_scale)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def vectors(self, source: Packed) -> Tensor:
        """The vectors of all sentences, in the order of the batch: (B S, D)"""
        encoded: Encoded = self.encoder(source)
        if not self.maximum or encoded.states is None:
            return encoded.summary
        B, T, K = len(source.order), len(source.sizes), encoded.states.shape[1]
        positions = source.order[source.rows] * T + source.steps
        grid = encoded.states.new_full((B * T, K), -torch.inf).index_copy(0, positions, encoded.states)
        return grid.view(B, T, K).amax(1)

    def scores(self, batch: DiscourseBatch) -> Tensor:
        """log p of each answer, up to a constant: (B, C)"""
        objective = self.objectives[batch.objective]
        assert isinstance(objective, Objective)
        vectors = self.vectors(batch.source)
        log_probs: Tensor = objective(vectors.view(len(batch.answers), -1, vectors.shape[1]))
        return log_probs

    def cost(self, batch: DiscourseBatch, smoothing: float, carried: None) -> tuple[Tensor, None]:
        """Training loss, (): Σ -log p of the answers, natural, and the penalties of cells. `smoothing` is not
        used, and no state is carried to the next batch."""
        cost = F.cross_entropy(self.scores(batch), batch.answers, reduction="sum")
        return (cost + total_penalty(self.penalized) if self.penalized else cost), None

    @torch.no_grad()
    def accuracies(self, batches: Iterable[DiscourseBatch]) -> dict[str, tuple[float, float]]:
        """For each objective that has examples in the batches, the mean -log p of an answer, natural
        logarithm, and the share of correct answers."""
        sums = {name: [0.0, 0, 0] for name in self.objectives}
        for batch in batches:
            batch = batch.to(self.device)
            log_probs = F.log_softmax(self.scores(batch), 1)
            total = sums[batch.objective]
            total[0] -= float(log_probs.gather(1, batch.answers[:, None]).sum())
            total[1] += int((log_probs.argmax(1) == batch.answers).sum())
            total[2] += batch.sentences
        return {name: (cost / count, right / count) for name, (cost, right, count) in sums.items() if count}

    def row_words(
        self, source_vocab: Sequence[str], target_vocab: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        """Parameter name -> what each of its rows belongs to; see `WordParameters`."""
        if isinstance(self.encoder.embedding, CharacterWords):
            return {"encoder.embedding.characters": self.encoder.embedding.row_names}
        return {"encoder.embedding.weight": source_vocab}


# ---- training ----------------------------------------------------------------------------------------------

DEV_SEED = 0  # draws the examples of the development text, the same ones at each validation


def set_up_encoder(job: TrainingJob) -> None:
    """Set up a job that trains an encoder: create its run directory unless it exists, and its model, batches
    and validation. DataError for a text without an example of an objective."""
    config, settings = job.config, cast(DiscourseConfig, job.config.model)
    words = prepare.training_text(config.data, job.directory, job.show_bar)
    if not run_directory.exists(job.directory):
        stamps = build.take_stamps(config.data)
        build.create(config, {"target": prepare.make_text(config.data, words)}, stamps)
    pipeline, vocab = load_side(job.directory, "target", config.data)
    build.remember_back_end(job.directory)
    cache = build.corpus_folder(config)
    corpus = prepare.make_running(config.data, cache, pipeline, vocab, words, job.team.first)
    dev = prepare.make_dev_text(config.data, pipeline, vocab)
    torch.manual_seed(config.seed)
    model = Discourse(settings, vocab.words, fill=job.fresh).to(job.device)
    stream = make_stream(corpus, vocab, settings, job.training.batch_size, config.seed)
    for name, positions in stream.positions.items():
        log.info("objective %s: %s examples", name, f"{len(positions):,}")
    validate = None
    if dev:
        validate = partial(validate_encoder, model, make_stream(dev, vocab, settings, 64, DEV_SEED))
    job.set_up(model, stream, validate)


def make_stream(
    corpus: Corpus, vocab: Vocab, config: DiscourseConfig, batch_size: int, seed: int
) -> DiscourseStream:
    """Create the stream of batches over a text. DataError for a text without an example of an objective."""
    return DiscourseStream(Paragraphs.of(corpus, vocab.words), config.names, batch_size, seed)


def validate_encoder(model: Discourse, dev: DiscourseStream) -> DevScore:
    """Compute the mean cost of an answer, averaged over objectives. The log and dev.tsv show accuracies where
    they show the signatures of scores for translators."""
    with evaluating(model):
        costs = model.accuracies(dev.batches(0))
    accuracies = " ".join(f"{name} {right:.4f}" for name, (_, right) in costs.items())
    return DevScore(
        cost=sum(cost for cost, _ in costs.values()) / len(costs), signature=f"accuracy {accuracies}"
    )


def load_encoder(directory: Path) -> SavedPair[nn.Module]:
    """Load the encoder of a run, with its best weights and text pipeline, to initialize translators.
    CheckpointError for a damaged run."""
    config = checkpoint.checked_config(directory)
    pipeline, vocab = load_side(directory, "target", config.data)
    step = run_directory.find_step(directory, "best")
    model = Discourse(cast(DiscourseConfig, config.model), vocab.words, fill=False)
    load_weights(model, run_directory.weights_path(directory, step))
    return SavedPair(
        directory=directory,
        model=model.eval(),
        source=pipeline,
        target=pipeline,
        source_words=vocab,
        target_words=Vocab({}, 0),
        data=config.data,
        step=step,
        kind=config.model.type,
    )


ENCODER = TrainableKind(
    "model",
    {"discourse": Discourse},
    lambda config, fresh: check_text_config(config.data, fresh),
    set_up_encoder,
    load_encoder,
    starts_translators=True,
)
