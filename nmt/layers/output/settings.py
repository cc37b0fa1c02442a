"""The settings of output layers: keys of the sections `model` and `lm`."""

from dataclasses import dataclass

from nmt.settings import choice, number, setting


@dataclass
class OutputSettings:
    """Which output layer, and what it is made of. A layer reads the keys that its `reads` names."""

    output: str = setting("softmax", help="output layer: how features become probabilities")
    output_classes: str = choice(
        "frequency",
        "random",
        "clusters",
        help="classes: words in order of their frequency, classes equally likely; at random, classes equally "
        "large (000, eq. 2.6); or clustered by their neighbors in the training text",
    )
    output_class_count: int = number(
        0, least=0, help="classes: how many; 0: the square root of the vocabulary"
    )
    output_tree: str = choice(
        "huffman", "random", help="tree: frequent words near the root, or words at random, all equally deep"
    )
    output_arity: int = number(
        0,
        least=0,
        most=100_000,
        help="trees: children of a node; 0: 2 of a Huffman tree, else as many as three levels need",
    )
    output_rebuild: int = number(
        200, least=0, help="learned-tree: updates after which the tree is built anew; 0: never"
    )
    output_rebuild_until: int = number(
        0, least=0, help="learned-tree: the update after which the tree stays as it is; 0: it never does"
    )
    output_samples: int = number(100, least=1, help="nce, negative-sampling: noise words drawn for a batch")
    output_power: float = number(
        0.75, least=0, help="nce, negative-sampling: the noise is the frequency of a word to this power"
    )
