"""The bundle method: the minimum of a convex loss that has corners, with a certificate (Teo et al. 2010).

The loss is bounded from below by the tangents of all points seen so far. The next point is the minimum of
that bound and the regularization; the difference between the least value seen and the bound is the largest
error.
"""

import numpy as np

from smt_bridge.tuning.losses import Loss
from smt_bridge.tuning.pool import Floats


def minimize(loss: Loss, size: int, ridge: float, tolerance: float, steps: int = 150) -> Floats:
    """argmin loss(w) + ridge |w|² / 2 of a loss that is not negative, from w = 0: (size,).

    It ends when the value is known to exceed the least one by no more than the share `tolerance`, or after
    `steps` tangents; the best point seen is returned.
    """
    slopes, heights, shares = np.zeros((0, size)), np.zeros(0), np.zeros(0)
    weights = best = np.zeros(size)
    lowest = np.inf
    for step in range(steps):
        value, slope = loss(weights)
        penalty = ridge * float(weights @ weights) / 2
        if value + penalty < lowest:
            best, lowest = weights, value + penalty
        if step and lowest - ((slopes @ weights + heights).max() + penalty) <= tolerance * lowest:
            break
        slopes = np.vstack([slopes, slope])
        heights = np.append(heights, value - slope @ weights)
        shares = mix(slopes, heights, ridge, np.append(shares, 0.0 if step else 1.0))
        weights = -(slopes.T @ shares) / ridge
    return best


def mix(slopes: Floats, heights: Floats, ridge: float, shares: Floats, steps: int = 2000) -> Floats:
    """The shares, on the simplex, of the tangents at the minimum of their maximum plus ridge |w|² / 2: the
    maximum of shares·heights - |slopesᵀ shares|² / (2 ridge). A step moves from the worst tangent that has a
    share to the best one."""
    products = slopes @ slopes.T / ridge
    gains = heights - products @ shares
    for _ in range(steps):
        to, origin = int(gains.argmax()), int(np.where(shares > 0, gains, np.inf).argmin())
        rise = gains[to] - gains[origin]
        bend = products[to, to] + products[origin, origin] - 2 * products[to, origin]
        if rise <= 1e-10 or bend <= 0:
            break
        move = min(shares[origin], rise / bend)
        shares[to] += move
        shares[origin] -= move
        gains -= move * (products[:, to] - products[:, origin])
    return shares
