"""Settings of the models in nmt/papers, which the core's dataclasses inherit; torch is not imported, so that
--help is fast."""

from dataclasses import dataclass

from nmt.config.settings import number


@dataclass
class RebuildSettings:
    """The keys that only the output layer learned-tree has, besides those of all trees."""

    output_rebuild: int = number(
        200,
        least=0,
        help="learned-tree: number of updates between two rebuilds of the tree; 0: never rebuild it",
    )
    output_rebuild_until: int = number(
        0, least=0, help="learned-tree: the last update at which the tree may be rebuilt; 0: no limit"
    )


@dataclass
class ComputationSettings:
    """The keys of cells vcrnn and vcgru."""

    computation: float = number(
        0.5,
        above=0,
        below=1,
        help="cells vcrnn and vcgru: target share m of the units computed at each step; Jernite 2018: 0.2 to "
        "0.5",
    )
    computation_penalty: float = number(
        0.1, least=0, help="cells vcrnn and vcgru: weight of |m_t - computation| in the cost of each token"
    )
    sharpness: float = number(
        0.1, above=0, help="cells vcrnn and vcgru: slope of the mask in the first epoch"
    )
    sharpness_step: float = number(
        0.1, least=0, help="cells vcrnn and vcgru: what each epoch adds to the slope"
    )
    sharpness_most: float = number(1.0, above=0, help="cells vcrnn and vcgru: the steepest slope")
