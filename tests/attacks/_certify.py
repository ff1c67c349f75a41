"""Lower bounds on what a program loses, from counts on two neighbouring data sets."""

import math
from collections.abc import Callable
from typing import Any

from scipy.stats import beta


def certified_epsilon(k_more: int, k_less: int, n: int, alpha: float = 0.05) -> float:
    """Bound epsilon from below: an event was seen k_more times of n on one data set, k_less times on its neighbour."""
    low = 0.0 if k_more == 0 else float(beta.ppf(alpha / 2, k_more, n - k_more + 1))
    high = 1.0 if k_less == n else float(beta.ppf(1 - alpha / 2, k_less + 1, n - k_less))
    return -math.inf if low == 0 else math.log(low / high)


def certify(
    program: Callable[[Any], Any], rows: Any, neighbour: Any, event: Callable[[Any], bool], n: int = 60
) -> float:
    """Run a program on two neighbouring data sets, and bound its epsilon by how often an event happens on either.

    With 60 runs on each side a perfect event certifies 2.7, with 200 runs 3.9.
    """
    more, less = (sum(bool(event(program(given))) for _ in range(n)) for given in (rows, neighbour))
    return certified_epsilon(more, less, n)
