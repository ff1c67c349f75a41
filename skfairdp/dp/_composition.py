r"""What ran, and what several releases cost together.

A :class:`ReleaseEvent` describes one run of a mechanism by the numbers that its price depends on, without any words;
:class:`~skfairdp.accounting.PrivacyGuarantee` adds the words.

To price several events, every release is replaced by the worst pair of distributions that its description
allows: a pure epsilon by randomised response, whose loss is :math:`\pm\varepsilon`; an
(epsilon, delta) by the same with an infinite loss of probability delta; a Gaussian by
its normal loss. These pairs dominate under adaptive composition (Kairouz, Oh and
Viswanath, 2017; Zhu, Dong and Wang, 2022), so that the profile of the whole is

.. math::

    \delta(\varepsilon) = 1 - \prod_i (1 - \delta_i) \Big(1 - \sum_j p_j\,
    \delta_\mu(\varepsilon - \ell_j)\Big),

with the summed losses :math:`\ell_j` of probability :math:`p_j` and the Gaussian profile
:math:`\delta_\mu` of :math:`\mu^2 = \sum_i \mu_i^2`. No bound that knows only these
descriptions can be smaller; advanced composition and Renyi accounting lie above it.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln

from skfairdp._validation import check_delta, check_epsilon
from skfairdp.dp._gaussian_accounting import (
    bisect_safely,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_log_delta_above,
)
from skfairdp.dp._renyi_accounting import gaussian_rdp, pure_rdp, renyi_delta
from skfairdp.random import SeedIdentity

# -- what ran ---------------------------------------------------------------------------------------------------------


_NUMBERS = ("epsilon", "delta", "gaussian_mu", "sampling_error")


@dataclass(frozen=True)
class ReleaseEvent:
    """One run of one mechanism.

    Parameters
    ----------
    epsilon : float
        With ``delta``: a point of the privacy profile that is proved; ``inf`` when nothing is protected.
    delta : float, default=0.0
        The probability with which the loss may exceed ``epsilon``.
    gaussian_mu : float or None
        Sensitivity over noise scale of a Gaussian mechanism, which tells its whole profile.
    sampling_error : float, default=0.0
        Total variation distance between the sampler that ran and the Gaussian that ``gaussian_mu``
        describes. It is part of ``delta`` already, and is told apart because it composes by addition.
    seed : SeedIdentity or None
        Where seeded noise came from; ``None`` for noise that nobody can replay.

    Examples
    --------
    >>> from skfairdp.accounting import ReleaseEvent, gaussian_epsilon
    >>> ReleaseEvent(gaussian_epsilon(1e-5, 0.1), 1e-5, gaussian_mu=0.1).gaussian_mu
    0.1
    """

    epsilon: float
    delta: float = 0.0
    gaussian_mu: float | None = None
    sampling_error: float = 0.0
    seed: SeedIdentity | None = None

    def __post_init__(self) -> None:
        keep = object.__setattr__  # the only way to normalise a field of a frozen dataclass
        keep(self, "epsilon", check_epsilon(self.epsilon, allow_zero=True))
        keep(self, "delta", check_delta(self.delta, allow_zero=True))
        if self.gaussian_mu is not None:
            keep(self, "gaussian_mu", check_epsilon(self.gaussian_mu, name="gaussian_mu", allow_zero=True))
        keep(self, "sampling_error", check_delta(self.sampling_error, name="sampling_error", allow_zero=True))
        if self.seed is not None and not isinstance(self.seed, SeedIdentity):
            raise TypeError(f"seed must be the identity of a stream, or None; got {self.seed!r}.")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values that JSON knows."""
        return {name: "inf" if value == math.inf else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "ReleaseEvent":
        """Read back what :meth:`to_dict` wrote.

        Parameters
        ----------
        values : dict
            The fields, by name.
        """
        read = {name: None if values[name] is None else float(values[name]) for name in _NUMBERS}
        seed = values["seed"]
        return cls(**read, seed=None if seed is None else SeedIdentity(**seed))  # type: ignore[arg-type]


Events = tuple[tuple[ReleaseEvent, int], ...]


def repeated_seeds(events: Iterable[ReleaseEvent]) -> set[str]:
    """Return the seeds from which more than one stream was started, so that the same noise was drawn twice."""
    streams: dict[str, set[str]] = {}
    for event in events:
        if event.seed is not None:
            streams.setdefault(event.seed.seed, set()).add(event.seed.stream)
    return {seed for seed, started in streams.items() if len(started) > 1}


# -- what it costs together -------------------------------------------------------------------------------------------


_MAX_LOSSES = 1 << 16  # lattice points of the summed losses; a coarser lattice rounds epsilons up
_MAX_ENUMERATED = 1 << 14  # up to so many sums of losses are listed one by one, without a lattice
_MAX_WORK = 1 << 27  # additions that building the distribution of the sum may take
_NEGLIGIBLE = 1e-60  # probability of losses that are treated as infinite instead of being carried along
_SLACK = 1e-10  # relative, for the rounding of sums of many probabilities
_ROUNDING = 1e-9  # relative, so that three releases of 0.1 fit into a budget of 0.3


def composed_price(events: Counter[ReleaseEvent], delta: float | None = None) -> tuple[float, float]:
    """Compute an (epsilon, delta) that events cost together, given how often each occurred.

    Without a ``delta`` the deltas of all events that are not Gaussian are added to the largest delta of those
    that are. Events that repeat their noise cost infinity.
    """
    if repeated_seeds(events):
        return math.inf, 0.0
    parts = _Parts.of(events)
    if delta is None:
        plain = math.fsum(e.delta * n for e, n in events.items() if e.gaussian_mu is None)
        target = plain + max((e.delta for e in events if e.gaussian_mu is not None), default=0.0)
        # Without a Gaussian part nothing was asked that the plain sums do not answer.
        epsilon = parts.summed_epsilon if parts.mu == 0 else parts.epsilon(min(target, 1.0))
    else:
        target = check_delta(delta, allow_zero=True)
        epsilon = parts.epsilon(target)
        if epsilon >= parts.summed_epsilon and parts.mu == 0 and parts.summed_delta <= target:
            target = parts.summed_delta  # the same epsilon holds at a smaller delta: say so
    return (epsilon, target) if target < 1 else (math.inf, 0.0)  # a delta of 1 promises nothing at any epsilon


def events_fit_budget(events: Counter[ReleaseEvent], epsilon: float, delta: float) -> bool:
    """Tell whether these events together stay within an (epsilon, delta)."""
    if math.isinf(epsilon):
        return True
    if repeated_seeds(events):
        return False
    parts = _Parts.of(events)
    epsilon *= 1 + _ROUNDING
    if parts.summed_delta <= delta * (1 + _ROUNDING) and parts.summed_epsilon <= epsilon:
        return True
    # At delta 0 the sums above are exact; a profile that underflows to 0 would be taken for one that is 0.
    return delta > 0 and parts.delta_bound(epsilon) <= delta


@dataclass(frozen=True)
class _Parts:
    """The descriptions of some releases, sorted into those that are Gaussian and those that are not."""

    losses: tuple[tuple[float, int], ...]  # epsilon and count of everything that is not Gaussian
    log_survival: float  # log prod (1 - delta) of the same
    mu: float
    sampling_error: float
    summed_epsilon: float  # basic composition, which needs nothing but the (epsilon, delta) of each
    summed_delta: float

    @classmethod
    def of(cls, counts: Counter[ReleaseEvent]) -> "_Parts":
        plain: Counter[float] = Counter()
        for event, n in counts.items():
            if event.gaussian_mu is None and event.epsilon > 0:
                plain[event.epsilon] += n
        return cls(
            losses=tuple(sorted(plain.items())),
            log_survival=math.fsum(n * math.log1p(-g.delta) for g, n in counts.items() if g.gaussian_mu is None),
            mu=math.sqrt(math.fsum(n * g.gaussian_mu**2 for g, n in counts.items() if g.gaussian_mu is not None)),
            sampling_error=math.fsum(n * g.sampling_error for g, n in counts.items()),
            summed_epsilon=math.fsum(n * g.epsilon for g, n in counts.items()),
            summed_delta=math.fsum(n * g.delta for g, n in counts.items()),
        )

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon that is proved at ``delta``."""
        summed = self.summed_epsilon if self.summed_delta <= delta * (1 + _ROUNDING) else math.inf
        return min(summed, self._epsilon_by_profile(delta))

    def _epsilon_by_profile(self, delta: float) -> float:
        left = -math.expm1(math.log1p(-delta) - self.log_survival) if delta < 1 else 0.0
        if left < 0 or any(math.isinf(e) for e, _ in self.losses) or math.isinf(self.mu):
            return math.inf
        plain = math.fsum(e * n for e, n in self.losses)
        basic = plain + (gaussian_epsilon(left, self.mu) if self.mu > 0 else 0.0)
        if self.sampling_error == 0 and (not self.losses or left == 0):
            return basic
        if math.isinf(basic):
            return math.inf
        if self.delta_bound(basic) <= delta:
            if self.delta_bound(0.0) <= delta:
                return 0.0
            return bisect_safely(lambda e: self.delta_bound(e) <= delta, bad=0.0, good=basic, relative=1e-10)
        if self.sampling_error == 0:
            return basic  # proved by adding up; the lattice was too coarse to show it
        step = max(basic, 1.0) * 1e-6
        while self.delta_bound(basic + step) > delta:
            step *= 2
            if (1 + math.exp(min(basic + step, 700))) * self.sampling_error > delta:
                return math.inf
        return bisect_safely(lambda e: self.delta_bound(e) <= delta, bad=basic, good=basic + step, relative=1e-10)

    def delta_bound(self, epsilon: float) -> float:
        """Bound the delta of all releases together at ``epsilon`` from above."""
        if any(math.isinf(e) for e, _ in self.losses) or math.isinf(self.mu):
            return 1.0
        tail = self._tail(epsilon)
        hidden = (1 + math.exp(min(epsilon, 700))) * self.sampling_error
        return min(-math.expm1(self.log_survival + math.log1p(-tail)) + hidden, 1.0) if tail < 1 else 1.0

    def _tail(self, epsilon: float) -> float:
        """Bound the hockey-stick divergence of all finite losses together."""
        if not self.losses:
            return math.exp(gaussian_log_delta_above(epsilon, self.mu))
        if self._distribution is None:
            return renyi_delta(self._rdp, epsilon)
        values, weights, lost = self._distribution
        if self.mu > 0:
            excess = np.exp(gaussian_log_delta(epsilon - values, self.mu))
        else:
            excess = -np.expm1(np.minimum(epsilon - values, 0.0))
        # The binomial coefficients come from log-gamma, whose rounding grows with the number of releases.
        slack = _SLACK + 2e-15 * math.lgamma(2 + sum(n for _, n in self.losses))
        tail = float(weights @ excess) * (1 + slack) + lost
        # Epsilons that were rounded up to a lattice may have lost more than Renyi divergences do.
        return tail if tail < 1e-300 else min(tail, renyi_delta(self._rdp, epsilon))

    @cached_property
    def _rdp(self) -> np.ndarray:
        return sum((n * pure_rdp(e) for e, n in self.losses), start=gaussian_rdp(self.mu))

    @cached_property
    def _distribution(self) -> tuple[np.ndarray, np.ndarray, float] | None:
        return _loss_distribution(self.losses)


def _loss_distribution(losses: Sequence[tuple[float, int]]) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Return the summed losses of randomised responses, their probabilities, and the mass left out.

    ``None`` when there are too many different ones to carry along.
    """
    if math.prod(n + 1 for _, n in losses) <= min(_MAX_LOSSES, _MAX_ENUMERATED):
        return _enumerated_losses(losses)
    lattice = _epsilon_lattice(losses)
    if lattice is None:
        return None
    step, multiples = lattice
    values, weights, lost = np.zeros(1, dtype=np.int64), np.ones(1), 0.0
    # The largest group comes first, because it is laid down without a loop.
    for k, n in sorted(zip(multiples, (n for _, n in losses)), key=lambda group: -group[1]):
        shifts, chances, left_out = _trimmed_losses(np.arange(-n, n + 1, 2) * k, _binomial_losses(n, k * step))
        if len(values) > len(shifts):
            values, weights, shifts, chances = shifts, chances, values, weights
        first = values[0] + shifts[0]
        summed = np.zeros(values[-1] + shifts[-1] - first + 1)
        for value, weight in zip(values, weights):
            summed[shifts + (value - first)] += weight * chances
        occupied = np.flatnonzero(summed)
        values, weights, trimmed = _trimmed_losses(occupied + first, summed[occupied])
        lost += left_out + trimmed
    return step * values, weights, lost


def _enumerated_losses(losses: Sequence[tuple[float, int]]) -> tuple[np.ndarray, np.ndarray, float]:
    """Return every sum of losses, where there are few of them."""
    values, weights = np.zeros(1), np.ones(1)
    for epsilon, n in losses:
        values = np.add.outer(values, epsilon * np.arange(-n, n + 1, 2)).ravel()
        weights = np.multiply.outer(weights, _binomial_losses(n, epsilon)).ravel()
    return _trimmed_losses(values, weights)


def _trimmed_losses(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Drop losses of negligible probability, and tell how much they weighed."""
    kept = weights > _NEGLIGIBLE / len(weights)
    return values[kept], weights[kept], float(weights[~kept].sum()) + 1e-300 * len(weights)


def _binomial_losses(n: int, epsilon: float) -> np.ndarray:
    """Return the probabilities that j of n randomised responses lose +epsilon."""
    j = np.arange(n + 1)
    log_choose = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)
    return np.exp(log_choose - j * math.log1p(math.exp(-epsilon)) - (n - j) * np.logaddexp(0, epsilon))


def _epsilon_lattice(losses: Sequence[tuple[float, int]]) -> tuple[float, list[int]] | None:
    """Put the epsilons on a common lattice, exactly if a small one exists, rounded up otherwise."""
    exact = [Fraction(epsilon).limit_denominator(10**6) for epsilon, _ in losses]
    if all(abs(float(f) - e) <= 1e-15 * e for f, (e, _) in zip(exact, losses)):
        scale = math.lcm(*(f.denominator for f in exact))
        step = math.gcd(*(int(f * scale) for f in exact))
        multiples = [int(f * scale) // step for f in exact]
        if _affordable(multiples, losses):
            return step / scale, multiples
    if len(losses) == 1:
        return losses[0][0], [1]
    mean = math.fsum(e * n for e, n in losses) / sum(n for _, n in losses)
    for resolution in (1024, 256, 64, 16):
        multiples = [math.ceil(e / mean * resolution) for e, _ in losses]
        if _affordable(multiples, losses):
            return mean / resolution, multiples
    return None


def _affordable(multiples: Sequence[int], losses: Sequence[tuple[float, int]]) -> bool:
    counts = [n + 1 for _, n in losses]
    reach = sum(k * n for k, n in zip(multiples, counts))
    return reach <= _MAX_LOSSES and reach * (sum(counts) - max(counts)) <= _MAX_WORK
