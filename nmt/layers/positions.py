"""What tells the words of a sentence apart by their place: vectors added to word vectors (Vaswani et al.
2017, section 3.5).

N words, R rows (hypotheses), D width.
"""

import torch
from torch import Tensor, nn

KNOWN = 256  # sinusoids computed in advance; those of longer sentences are computed anew


def sinusoids(count: int, size: int) -> Tensor:
    """Those of places 0 to count - 1, (count, D): column 2i is sin(place / 10000^(2i / D)), column 2i + 1 the
    cosine."""
    places = torch.arange(count, dtype=torch.float64)[:, None]
    rates = 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    return torch.stack([torch.sin(places * rates), torch.cos(places * rates)], 2).view(count, size)


class Sinusoidal(nn.Module):
    """Sines and cosines of D / 2 wavelengths."""

    known: Tensor

    def __init__(self, size: int, longest: int) -> None:
        """`longest` is not used: there is a vector for every place."""
        super().__init__()
        self.size = size
        self.register_buffer("known", sinusoids(KNOWN, size).float(), persistent=False)

    def forward(self, places: Tensor) -> Tensor:
        """(N,) -> (N, D)"""
        count = int(places.max()) + 1 if len(places) else 0
        table = self.known if count <= len(self.known) else sinusoids(count, self.size).to(self.known)
        return table.index_select(0, places)


class Learned(nn.Module):
    """A parameter for each of the first places; all places behind them share the last one."""

    def __init__(self, size: int, longest: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(longest, size))

    def forward(self, places: Tensor) -> Tensor:
        """(N,) -> (N, D)"""
        return self.weight.index_select(0, places.clamp(max=len(self.weight) - 1))


class NoPositions(nn.Module):
    """Words without places: an encoder then reads a bag of words."""

    def __init__(self, size: int, longest: int) -> None:
        super().__init__()

    def forward(self, places: Tensor) -> Tensor:
        """(N,) -> ()"""
        return torch.zeros((), device=places.device)


POSITIONS: dict[str, type[Sinusoidal] | type[Learned] | type[NoPositions]] = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "none": NoPositions,
}
