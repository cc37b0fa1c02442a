"""The discourse objectives by the names that `model.objectives` takes."""

from nmt.models.discourse.conjunction import Conjunction
from nmt.models.discourse.following import Following
from nmt.models.discourse.objective import Objective
from nmt.models.discourse.order import Order

OBJECTIVES: dict[str, type[Objective]] = {"order": Order, "next": Following, "conj": Conjunction}
