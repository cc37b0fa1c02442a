"""Settings of the output layer learned-tree."""

from dataclasses import dataclass

from nmt.config.settings import number


@dataclass
class RebuildSettings:
    """The keys of output learned-tree beside those of all trees, for sections `lm` and `model`."""

    output_rebuild: int = number(
        200, least=0, help="learned-tree: updates after which the tree is built anew; 0: never"
    )
    output_rebuild_until: int = number(
        0, least=0, help="learned-tree: the update after which the tree stays as it is; 0: it never does"
    )
