"""How finished hypotheses of different lengths are compared. n counts the words and the end symbol."""

from collections.abc import Callable

from nmt.errors import ConfigError

GNMT_ALPHA = 0.6


def length(log_prob: float, n: int) -> float:
    """log p / n  (section 6.4.2)"""
    return log_prob / n


def none(log_prob: float, n: int) -> float:
    """log p"""
    return log_prob


def gnmt(log_prob: float, n: int) -> float:
    """log p / ((5 + n) / 6)^0.6  (Wu et al. 2016, eq. 14)"""
    penalty: float = ((5 + n) / 6) ** GNMT_ALPHA
    return log_prob / penalty


NORMALIZE: dict[str, Callable[[float, int], float]] = {"length": length, "none": none, "gnmt": gnmt}


def by_name(name: str) -> Callable[[float, int], float]:
    """One of NORMALIZE. ConfigError for an unknown name."""
    if name not in NORMALIZE:
        raise ConfigError(f"normalize: {name!r} is unknown, expected one of {', '.join(NORMALIZE)}")
    return NORMALIZE[name]
