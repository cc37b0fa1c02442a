"""A Markov random field over words, trained by its pseudo-likelihood or by a lifted bound (Jernite 2018,
chapter 4).

This module has its settings and the feature that commands list. Options are made from both before torch is
needed, so it does not import torch."""

from dataclasses import dataclass

from nmt.config.settings import choice, number
from smt_bridge.features.registry import LazyKind


@dataclass
class MRFConfig:
    """The model and its training; see nmt/papers/mrf/model.py."""

    vocabulary: int = number(5000, least=1, help="most frequent words; the others are one symbol")
    order: int = number(2, least=1, most=20, help="neighbors on each side that a word depends on, K")
    dimension: int = number(30, least=1, help="size of the vectors whose products are the potentials, D")
    objective: str = choice(
        "pseudo-likelihood",
        "bound",
        help="what is maximized: p of each word given its neighbors, or the lifted lower bound of the "
        "likelihood (time and memory: order times the square of the vocabulary)",
    )
    epochs: int = number(5, least=1, help="passes over the text, for the pseudo-likelihood")
    batch_size: int = number(1024, least=1, help="words of an update, for the pseudo-likelihood")
    learning_rate: float = number(0.005, above=0, help="initial rate of Adam; it falls to 0 linearly")
    rounds: int = number(20, least=1, help="for the bound: times that it is tightened, then maximized")
    dual_steps: int = number(200, least=1, help="for the bound: most steps that tighten it")
    lbfgs_steps: int = number(10, least=1, help="for the bound: steps of L-BFGS between two tightenings")
    seed: int = number(1, least=0, help="seed of the initial vectors and of the order of the words")


# The feature of smt-rescore and smt-score-table
MRF = LazyKind(
    column="MRF",
    help="log pseudo-likelihood of the target by a Markov random field of nmt-mrf",
    target="nmt.papers.mrf.model:MarkovRandomField",
)
