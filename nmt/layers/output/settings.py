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
