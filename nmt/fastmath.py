"""The former name of nmt.compute, for modules that have not moved yet."""

from nmt.compute.matmul import Choice, choose, in_use, recall, remember, use
from nmt.compute.mixed import Mixed, check_precision
from nmt.compute.reduced import Reduced

__all__ = ["Choice", "Mixed", "Reduced", "check_precision", "choose", "in_use", "recall", "remember", "use"]
