r"""Private selection: what it costs to release the best of several private trials.

The best of a fixed number of trials costs as much as all of them together. If their number K is drawn at random, from a
distribution without a sharp end, it costs little more than one: whoever sees the winner cannot tell how many it has
beaten (Liu and Talwar, 2019; Papernot and Steinke, 2022).

Let q be the density of one trial's outcome, x the probability that a trial does worse than an outcome (equal scores are
told apart by a coin), and :math:`f(x) = \mathrm{E}[x^K]`. The best of K trials has the density :math:`q\,f'(x)`, with

.. math::

    f'(x) = \mathrm{E}[K]\,(\gamma / g)^{1 + \eta}, \qquad g = \gamma + (1 - \gamma)(1 - x) \in [\gamma, 1],

for the truncated negative binomial K. g is the probability that a coin of bias :math:`\gamma` shows heads or a trial
does better, an event of one trial. Let q', x', g' belong to a neighbouring data set.

*Pure trials.* :math:`q \leq e^\varepsilon q'` and :math:`g' \leq e^\varepsilon g`, so that the loss of the best is at
most :math:`(2 + \eta)\,\varepsilon`. It is approached when :math:`\gamma` is small.

*Trials of (epsilon, delta).* With probability :math:`1 - \delta` such a trial is one of two that are pure, and tells
everything otherwise (Kairouz, Oh and Viswanath, 2017). No trial tells everything with probability :math:`f(1 -
\delta)`, and given that, K has the same kind of distribution with a larger :math:`\gamma`. The best costs :math:`(2 +
\eta)\,\varepsilon` at :math:`1 - f(1 - \delta) \leq \mathrm{E}[K]\,\delta`.

*Gaussian trials.* With the profile :math:`\delta_\mu` and :math:`g' \leq \Phi(\Phi^{-1}(g) + \mu)`, of which the ratio
to g is largest for :math:`g = \gamma`, and with :math:`s = (1 + \eta)\ln[\Phi(\Phi^{-1}(\gamma) + \mu)/\gamma]`,

.. math::

    \int \big[q f'(x) - e^{\varepsilon + s} q' f'(x')\big]_+ \leq \int f'(x)\,\big[q - e^\varepsilon q'\big]_+
    \leq \mathrm{E}[K]\,\delta_\mu(\varepsilon),

because :math:`f'(x)/f'(x') = (g'/g)^{1+\eta} \leq e^s` and :math:`f' \leq \mathrm{E}[K]`. So the best costs
:math:`\varepsilon + s` at :math:`\mathrm{E}[K]\,\delta_\mu(\varepsilon)`. This is never more than the Renyi bound
below: that one replaces both the profile and the trade-off curve by what Renyi divergences say of them.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, log_ndtr, ndtri

from skfairdp._validation import check_delta, check_epsilon, check_number
from skfairdp.dp._composition import ReleaseEvent
from skfairdp.dp._gaussian_accounting import (
    bisect_safely,
    gaussian_epsilon,
    gaussian_log_delta_above,
    gaussian_mu,
)
from skfairdp.dp._renyi_accounting import DEFAULT_ORDERS, check_orders
from skfairdp.random import RandomStream

#: Relative, for the rounding of a few elementary functions: prices are rounded up by it, and budgets down.
_ROUNDING = 1e-12
#: Of the logarithm of gamma, between which a mean is looked for.
_LEAST_LOG_GAMMA, _LARGEST_LOG_GAMMA = -700.0, -1e-9


@dataclass(frozen=True)
class TruncatedNegativeBinomial:
    r"""How many trials a private selection runs, at least one.

    .. math::

        P(K = k) \propto (1 - \gamma)^k \prod_{l=0}^{k-1} \frac{l + \eta}{l + 1}, \qquad k = 1, 2, 3, \ldots

    Parameters
    ----------
    eta : float
        The shape, above -1: 0 is the logarithmic distribution, 1 the geometric one. A larger eta makes few trials
        less likely, and the selection dearer.
    gamma : float
        In (0, 1); nearer to 0 means more trials.

    Examples
    --------
    >>> from skfairdp.accounting import TruncatedNegativeBinomial
    >>> round(TruncatedNegativeBinomial(eta=1.0, gamma=0.1).mean, 9)
    10.0
    >>> trials = TruncatedNegativeBinomial.with_mean(10.0)
    >>> trials.eta, round(trials.gamma, 4), round(float(trials.pmf(1)), 3)
    (0.0, 0.0269, 0.269)
    """

    eta: float
    gamma: float

    def __post_init__(self) -> None:
        keep = object.__setattr__  # the only way to normalise a field of a frozen dataclass
        keep(self, "eta", check_number(self.eta, "eta", "a finite number above -1", lambda e: -1 < e < math.inf))
        keep(self, "gamma", check_number(self.gamma, "gamma", "a number in (0, 1)", lambda g: 0 < g < 1))

    @classmethod
    def with_mean(cls, mean: float, eta: float = 0.0) -> "TruncatedNegativeBinomial":
        """Find the gamma that gives a mean number of trials.

        Parameters
        ----------
        mean : float
            Above 1.
        eta : float, default=0.0
            The shape.

        Returns
        -------
        TruncatedNegativeBinomial
        """
        mean = check_number(mean, "mean", "a finite number above 1", lambda m: 1 < m < math.inf)
        if mean <= cls(eta, math.exp(_LARGEST_LOG_GAMMA)).mean or mean > cls(eta, math.exp(_LEAST_LOG_GAMMA)).mean:
            raise ValueError(f"mean={mean!r} is out of reach with eta={eta!r}: no gamma in (0, 1) gives it.")
        found = bisect_safely(
            lambda log_gamma: cls(eta, math.exp(log_gamma)).mean <= mean,
            bad=_LEAST_LOG_GAMMA,
            good=_LARGEST_LOG_GAMMA,
        )
        return cls(eta, math.exp(found))

    @property
    def mean(self) -> float:
        """The mean number of trials."""
        log_mean = self._log_factor + math.log1p(-self.gamma) - (1 + self.eta) * math.log(self.gamma)
        return max(math.exp(min(log_mean, 700.0)), 1.0)

    def pmf(self, k: ArrayLike) -> np.ndarray:
        """Compute the probability of k trials; k is a whole number of at least 1, or an array of them.

        Parameters
        ----------
        k : int or array-like of int
            Numbers of trials.
        """
        k = np.asarray(k, dtype=float)
        if not ((k >= 1) & (k == np.rint(k))).all():
            raise ValueError(f"k must hold whole numbers of at least 1; got {k!r}.")
        ways = gammaln(k + self.eta) - gammaln(1 + self.eta) - gammaln(k + 1)
        return np.exp(self._log_factor + k * math.log1p(-self.gamma) + ways)

    def generating_function(self, x: ArrayLike) -> np.ndarray:
        """Compute ``E[x**K]``, the probability that all trials do what one does with probability x in [0, 1].

        Parameters
        ----------
        x : float or array-like
            Probabilities.
        """
        log_g = np.log1p(-(1 - self.gamma) * np.asarray(x, dtype=float))
        powers = -log_g if self.eta == 0 else np.expm1(-self.eta * log_g) / self.eta
        return math.exp(self._log_factor) * powers

    def any_fails(self, probability: float) -> float:
        """Compute the probability that any trial fails, if each does with the given probability; rounded up.

        Parameters
        ----------
        probability : float
            Of one trial's failure.
        """
        grown = math.log1p((1 - self.gamma) * probability / self.gamma)
        share = grown if self.eta == 0 else -math.expm1(-self.eta * grown) / self.eta
        return min(math.exp(self._log_factor - self.eta * math.log(self.gamma)) * share * (1 + _ROUNDING), 1.0)

    def each_may_fail(self, probability: float) -> float:
        """Compute how often each trial may fail, if any may with the given probability; rounded down.

        Parameters
        ----------
        probability : float
            Of a failure of any trial.
        """
        less = probability * (1 - 4 * _ROUNDING)
        share = less * math.exp(self.eta * math.log(self.gamma) - self._log_factor)
        grown = share if self.eta == 0 else -math.log1p(-self.eta * share) / self.eta
        return min(self.gamma / (1 - self.gamma) * math.expm1(grown), less)

    def draw(self, stream: RandomStream) -> int:
        """Draw a number of trials, exactly: random bits are compared with sums of decimals until they tell them apart.

        Parameters
        ----------
        stream : RandomStream
            Where the random bits come from.

        Returns
        -------
        int
        """
        bits, value, found = 0, 0, None
        while found is None:  # 128 bits leave a doubt once in about 2**120 draws
            for word in stream.uint64(2).tolist():
                bits, value = bits + 64, (value << 64) | word
            found = self._place_of(value, bits)
        return found

    def _place_of(self, value: int, bits: int) -> int | None:
        """Return the k whose stretch of [0, 1) holds all numbers that begin with these bits; ``None`` if none does."""
        digits = bits // 3
        with localcontext(Context(prec=digits + 40)):  # enough for the rounding of 10**20 additions
            doubt = Decimal(10) ** -(digits + 10)
            low, high = Decimal(value) / (1 << bits), Decimal(value + 1) / (1 << bits)
            eta, gamma = Decimal(self.eta), Decimal(self.gamma)
            chance = (1 - gamma) * (-1 / gamma.ln() if eta == 0 else eta / ((-eta * gamma.ln()).exp() - 1))
            summed, k = chance, 1
            while summed + doubt <= low:
                chance *= (1 - gamma) * (k + eta) / (k + 1)
                summed, k = summed + chance, k + 1
            return k if high <= summed - doubt else None

    @property
    def _log_factor(self) -> float:
        """The logarithm of ``eta / (gamma**-eta - 1)``, which is ``1 / ln(1 / gamma)`` for eta = 0."""
        log_inverse = -math.log(self.gamma)
        if self.eta == 0:
            return -math.log(log_inverse)
        a = abs(self.eta) * log_inverse
        return math.log(abs(self.eta)) - math.log(-math.expm1(-a)) - (a if self.eta > 0 else 0.0)


def selection_rdp(rdp: ArrayLike, trials: TruncatedNegativeBinomial, orders: ArrayLike = DEFAULT_ORDERS) -> np.ndarray:
    r"""Compute the Renyi divergence of the best of a random number of trials.

    It is :math:`\rho(\alpha) + (1 + \eta)\min_\beta\{(1 - 1/\beta)\rho(\beta) + \ln(1/\gamma)/\beta\} +
    \ln \mathrm{E}[K] / (\alpha - 1)`.

    Parameters
    ----------
    rdp : array-like
        The divergence of one trial at each order.
    trials : TruncatedNegativeBinomial
        How many trials there are.
    orders : array-like
        The orders, all above 1.

    Returns
    -------
    ndarray of the shape of ``orders``

    Notes
    -----
    For Gaussian trials :func:`selection_epsilon` is cheaper: it needs no Renyi divergence.

    References
    ----------
    N. Papernot and T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022, Theorem 2.

    Examples
    --------
    >>> from skfairdp.accounting import TruncatedNegativeBinomial, gaussian_rdp, renyi_epsilon, selection_rdp
    >>> ten = TruncatedNegativeBinomial.with_mean(10.0)
    >>> one, best = gaussian_rdp(0.2), selection_rdp(gaussian_rdp(0.2), ten)
    >>> round(renyi_epsilon(one, 1e-5), 3), round(renyi_epsilon(best, 1e-5), 3)
    (0.794, 1.418)
    """
    orders, values = check_orders(orders), np.asarray(rdp, dtype=float)
    if orders.shape != values.shape or np.isnan(values).any():
        raise ValueError(f"rdp must have one number per order, {orders.shape}; got an array of {values.shape}.")
    log_inverse = -math.log(trials.gamma)
    beaten = float(np.min((1 - 1 / orders) * values + log_inverse / orders, initial=log_inverse))
    return values + (1 + trials.eta) * beaten + math.log(trials.mean) / (orders - 1)


def selection_epsilon(trial: ReleaseEvent, trials: TruncatedNegativeBinomial, delta: float = 0.0) -> float:
    """Compute the epsilon of the best of a random number of trials.

    Parameters
    ----------
    trial : ReleaseEvent
        What one trial spends, its score included.
    trials : TruncatedNegativeBinomial
        How many trials there are.
    delta : float, default=0.0
        The delta at which the total is wanted.

    Returns
    -------
    float
        The least that is proved: ``(2 + eta)`` times the trial's epsilon, or less for Gaussian trials; infinity where
        the delta of the trials is too large for the wanted one.

    Notes
    -----
    **Privacy.** Trials must be independent of each other and alike: the same data, and candidates that are drawn from
    the same distribution. Nothing but the best outcome is released, neither the number of trials nor any of the
    others. The module's docstring has the proofs.

    References
    ----------
    J. Liu and K. Talwar, "Private selection from private candidates", STOC 2019.
    N. Papernot and T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022.

    Examples
    --------
    >>> from skfairdp.accounting import ReleaseEvent, TruncatedNegativeBinomial, selection_epsilon
    >>> ten = TruncatedNegativeBinomial.with_mean(10.0)
    >>> round(selection_epsilon(ReleaseEvent(0.5), ten), 6)
    1.0
    >>> round(selection_epsilon(ReleaseEvent(0.726, 1e-5, gaussian_mu=0.2), ten, 1e-5), 3)
    1.279
    """
    delta = check_delta(delta, allow_zero=True)
    plain = math.inf
    if trials.any_fails(trial.delta) <= delta * (1 + 8 * _ROUNDING):
        plain = (2 + trials.eta) * trial.epsilon * (1 + _ROUNDING)
    if trial.gaussian_mu is None or delta == 0:
        return plain
    hidden = trials.any_fails(trial.sampling_error)
    return min(plain, _gaussian_selection(trial.gaussian_mu, trials, delta, hidden))


def _gaussian_selection(mu: float, trials: TruncatedNegativeBinomial, delta: float, hidden: float = 0.0) -> float:
    """Price the best of Gaussian trials whose samplers are ``hidden`` away from Gaussians, all together."""
    if mu == 0 or math.isinf(mu):
        return mu
    epsilon = _ideal_selection(mu, trials, delta)
    for _ in range(3 if hidden else 0):  # what the samplers take off delta depends on the epsilon that is looked for
        left = delta - hidden * (1 + math.exp(min(1.01 * epsilon, 700.0)))
        if left <= 0:
            return math.inf
        epsilon, before = _ideal_selection(mu, trials, left), epsilon
        if epsilon <= 1.01 * before:
            return epsilon
    return math.inf if hidden else epsilon


def _ideal_selection(mu: float, trials: TruncatedNegativeBinomial, delta: float) -> float:
    alone = gaussian_epsilon(delta / trials.mean * (1 - _ROUNDING), mu)
    by_profile = alone + (1 + trials.eta) * _log_beaten(mu, trials)
    by_point = (2 + trials.eta) * gaussian_epsilon(trials.each_may_fail(delta), mu)
    return min(by_profile, by_point) * (1 + _ROUNDING) + _ROUNDING


def _log_beaten(mu: float, trials: TruncatedNegativeBinomial) -> float:
    """Bound by how much a record can change the chance of doing better, the log of ``g' / g`` in the proof."""
    return float(log_ndtr(ndtri(trials.gamma) + mu)) - math.log(trials.gamma)


@dataclass(frozen=True)
class TrialBudget:
    """What one trial of a private selection may spend.

    Attributes
    ----------
    epsilon, delta : float
        Of a trial of any kind.
    gaussian_mu : float
        Of a Gaussian trial, which may spend more; 0 where the total has no delta.

    Examples
    --------
    >>> from skfairdp.accounting import ReleaseEvent, TruncatedNegativeBinomial, selection_budget
    >>> budget = selection_budget(1.0, 1e-5, TruncatedNegativeBinomial.with_mean(10.0))
    >>> budget.covers(ReleaseEvent(0.4)), budget.covers(ReleaseEvent(0.6))
    (True, False)
    """

    epsilon: float
    delta: float
    gaussian_mu: float

    @property
    def gaussian_epsilon(self) -> float:
        """The epsilon of a Gaussian trial at this delta, a trace below its limit, so that rounding stays within it."""
        return gaussian_epsilon(self.delta, self.gaussian_mu * (1 - 1e-9))

    def covers(self, event: ReleaseEvent) -> bool:
        """Tell whether a trial that consists of this event stays within the budget.

        Parameters
        ----------
        event : ReleaseEvent
            What one trial releases.
        """
        up = 1 + 1e-9
        if event.gaussian_mu is not None and event.gaussian_mu <= self.gaussian_mu and event.sampling_error == 0:
            return True
        return event.epsilon <= self.epsilon * up and event.delta <= self.delta * up


def selection_budget(
    epsilon: float, delta: float, trials: TruncatedNegativeBinomial, *, sampling_error: float = 0.0
) -> TrialBudget:
    """Compute what each trial may spend, so that the best of a random number of them costs (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        The total; ``inf`` is no limit.
    delta : float
        The total; 0 asks for pure trials.
    trials : TruncatedNegativeBinomial
        How many trials there are.
    sampling_error : float, default=0.0
        Total variation distance between the sampler of a Gaussian trial and a Gaussian, at most.

    Returns
    -------
    TrialBudget

    Examples
    --------
    >>> from skfairdp.accounting import TruncatedNegativeBinomial, gaussian_mu, selection_budget
    >>> budget = selection_budget(1.0, 1e-5, TruncatedNegativeBinomial.with_mean(10.0))
    >>> round(budget.epsilon, 6), round(budget.gaussian_mu / gaussian_mu(1.0, 1e-5), 3)
    (0.5, 0.589)
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta, allow_zero=True)
    if math.isinf(epsilon):
        return TrialBudget(math.inf, trials.each_may_fail(delta), math.inf)
    each = epsilon / (2 + trials.eta) * (1 - 2 * _ROUNDING)
    if delta == 0:
        return TrialBudget(each, 0.0, 0.0)
    each_delta = trials.each_may_fail(delta)
    least = gaussian_mu(each * (1 - 1e-9), each_delta)  # pays by its (epsilon, delta) alone
    left = delta - trials.any_fails(sampling_error) * (1 + math.exp(min(epsilon, 700.0)))
    log_each = -math.inf if left <= 0 else math.log(left / trials.mean * (1 - _ROUNDING))

    def allowed(mu: float) -> bool:
        room = epsilon * (1 - 2 * _ROUNDING) - 2 * _ROUNDING - (1 + trials.eta) * _log_beaten(mu, trials)
        return room >= 0 and gaussian_log_delta_above(room, mu) <= log_each

    if not allowed(least):
        return TrialBudget(each, each_delta, least)
    most = 2 * least
    while allowed(most):
        most *= 2
    return TrialBudget(each, each_delta, bisect_safely(allowed, bad=most, good=least, relative=1e-12))
