"""The settings of data selection, without NumPy, so that --help is fast."""

from dataclasses import dataclass

from nmt.config.settings import number


@dataclass
class SelectionConfig:
    """Settings of data selection with n-gram models of the domain and of general text."""

    order: int = number(4, least=1, most=10, help="order of the n-gram models")
    min_count: int = number(
        2,
        least=1,
        help="rarer words of the domain are unknown to both models, so that neither has an advantage",
    )
    steps: int = number(6, least=1, help="sizes tried by --dev: all, a half, a quarter ...")
    seed: int = number(
        1,
        least=0,
        help="seed of the sample of general text, as many words as the domain has, for the general model",
    )
