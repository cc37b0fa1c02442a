"""How smt-rescore and smt-score-table name the feature; smt_bridge.features.registry loads it."""

from smt_bridge.features.registry import LazyKind

MRF = LazyKind(
    column="MRF",
    help="log pseudo-likelihood of the target by a Markov random field of nmt-mrf",
    target="nmt.papers.mrf.feature:MarkovRandomField",
)
