r"""The exact price of Gaussian noise.

A Gaussian release is described by one number, ``mu``: the L2 sensitivity over the
standard deviation of the noise. Its privacy profile is known in closed form
(Balle and Wang, 2018),

.. math::

    \delta(\varepsilon) = \Phi(\mu/2 - \varepsilon/\mu) - e^{\varepsilon} \Phi(-\mu/2 - \varepsilon/\mu),

and releases compose by :math:`\mu = \sqrt{\sum_i \mu_i^2}` without any loss
(Dong, Roth and Su, 2022). Everything is computed in logarithms, so that neither a
huge epsilon nor a tiny delta overflows, and every inversion returns the end of its
bracket that does not overstate the protection.
"""

import math
from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr

from skfairdp._validation import check_delta, check_epsilon, check_number

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF_PI = math.sqrt(math.pi / 2)
# The formula by Mills ratios holds for u above -_NARROW; it integrates where mu (1 + |u|) is below _NARROW.
_NARROW = 0.25
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2  # on [0, 1]
_ROUNDING = 2.0**-50  # a few units in the last place of what log delta is computed from


@overload
def gaussian_log_delta(epsilon: float, mu: float) -> float: ...
@overload
def gaussian_log_delta(epsilon: ArrayLike, mu: ArrayLike) -> Any: ...
def gaussian_log_delta(epsilon: Any, mu: Any) -> Any:
    """Compute the logarithm of the exact delta of a Gaussian release.

    Parameters
    ----------
    epsilon : float or array-like
        May be negative, which the composition with other mechanisms needs.
    mu : float or array-like
        L2 sensitivity over the noise's standard deviation, at least 0.

    Returns
    -------
    float or ndarray
        ``-inf`` where delta is 0.

    Examples
    --------
    >>> from skfairdp.accounting import gaussian_log_delta
    >>> round(gaussian_log_delta(1000.0, 1.0), 3)  # delta itself would be 0 in floating point
    -499514.859
    """
    value, _ = _log_delta(epsilon, mu)
    return float(value) if value.ndim == 0 else value


def gaussian_delta(epsilon: Any, mu: Any) -> Any:
    """Compute the exact delta of a Gaussian release at a given epsilon.

    Parameters
    ----------
    epsilon : float or array-like
        The privacy loss that delta is the price of exceeding.
    mu : float or array-like
        L2 sensitivity over the noise's standard deviation, at least 0.

    Returns
    -------
    float or ndarray

    Examples
    --------
    >>> from skfairdp.accounting import gaussian_delta
    >>> f"{gaussian_delta(16.0, 1 / 0.302800):.2e}"  # the classic noise for delta=1e-5 misses it 30-fold
    '3.36e-04'
    """
    return np.exp(gaussian_log_delta(epsilon, mu))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Compute the exact epsilon of a Gaussian release at a given delta.

    Parameters
    ----------
    delta : float
        In (0, 1); delta = 0 gives ``inf`` unless ``mu`` is 0.
    mu : float
        L2 sensitivity over the noise's standard deviation; for several releases the square root
        of the summed squares.

    Returns
    -------
    float
        The least epsilon whose delta is not exceeded, rounded up in the last places.

    Examples
    --------
    200 noisy votes with noise scale 50 cost ``mu = sqrt(2 * 200) / 50``:

    >>> from skfairdp.accounting import gaussian_epsilon
    >>> round(gaussian_epsilon(1e-5, 0.4), 6)
    1.554982
    """
    delta = check_delta(delta, allow_zero=True)
    mu = check_mu(mu)
    if mu == 0:
        return 0.0
    if delta == 0 or math.isinf(mu):
        return math.inf
    log_delta = math.log(delta)

    def allowed(epsilon: float) -> bool:
        return gaussian_log_delta_above(epsilon, mu) <= log_delta

    if allowed(0.0):
        return 0.0
    # Phi(-u) <= exp(-u^2/2) already keeps delta at u = epsilon/mu - mu/2 = sqrt(2 ln(1/delta)).
    high = mu * mu / 2 + mu * math.sqrt(-2 * log_delta)
    nudge = 1e-15  # the bound holds in real arithmetic; rounding may need a little more
    while not allowed(high):
        high, nudge = high * (1 + nudge), 2 * nudge
    return bisect_safely(allowed, bad=0.0, good=high)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Compute the largest ``mu`` that an (epsilon, delta) allows.

    Parameters
    ----------
    epsilon : float
        At least 0; ``inf`` allows any ``mu``.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        Noise of standard deviation ``sensitivity / mu`` is enough; ``mu`` is rounded down in the last places.

    See Also
    --------
    gaussian_sigma : The noise scale itself.

    Examples
    --------
    >>> from skfairdp.accounting import gaussian_mu
    >>> round(1 / gaussian_mu(1.0, 1e-5), 6)
    3.730632
    """
    epsilon = check_epsilon(epsilon, allow_zero=True)
    delta = check_delta(delta)
    if math.isinf(epsilon):
        return math.inf
    log_delta = math.log(delta)

    def allowed(mu: float) -> bool:
        return gaussian_log_delta_above(epsilon, mu) <= log_delta

    # Both are allowed: the first by the tail bound used in gaussian_epsilon, the second because
    # delta(epsilon) <= delta(0) = erf(mu / sqrt 8) <= mu / sqrt(2 pi).
    spread = math.sqrt(-2 * log_delta)
    low = max(2 * epsilon / (spread + math.sqrt(spread * spread + 2 * epsilon)), delta * math.sqrt(2 * math.pi))
    nudge = 1e-15
    while not allowed(low):
        low, nudge = low / (1 + nudge), 2 * nudge
    high = 2 * low
    while allowed(high):
        low, high = high, 2 * high
    return bisect_safely(allowed, bad=high, good=low)


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Compute the least noise scale for an (epsilon, delta) release.

    Parameters
    ----------
    epsilon : float
        Greater than 0; ``inf`` needs no noise.
    delta : float
        In (0, 1).
    sensitivity : float, default=1.0
        The L2 sensitivity of what is released.

    Returns
    -------
    float
        The standard deviation of the noise, never too small.

    Examples
    --------
    >>> from skfairdp.accounting import gaussian_sigma
    >>> round(gaussian_sigma(8.0, 1e-6), 6)
    0.652935
    """
    if isinstance(sensitivity, bool) or not sensitivity > 0 or math.isinf(sensitivity):
        raise ValueError(f"sensitivity must be a finite number greater than 0; got {sensitivity!r}.")
    mu = gaussian_mu(check_epsilon(epsilon), delta)
    if math.isinf(mu):
        return 0.0
    sigma = sensitivity / mu
    while sensitivity / sigma > mu:
        sigma = math.nextafter(sigma, math.inf)
    return sigma


def check_mu(mu: Any) -> float:
    """Return ``mu`` as a float of at least 0, or say what is wrong with it."""
    return check_number(mu, "mu", "a number of at least 0", lambda value: value >= 0)


def _log_delta(epsilon: Any, mu: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return log delta, and a bound from above that covers the rounding made in computing it."""
    epsilon, mu = np.broadcast_arrays(np.asarray(epsilon, dtype=float), np.asarray(mu, dtype=float))
    if np.isnan(epsilon).any():
        raise ValueError("epsilon must be a number; got nan.")
    if not (mu >= 0).all():
        raise ValueError(f"mu must be at least 0; got {mu.min()!r}.")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        u, v = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        # From u = 0 on both terms share the factor phi(u), and only Mills ratios are left to subtract.
        gap, gap_error = _mills_difference(u, v, mu)
        scaled = -u * u / 2 - _LOG_SQRT_2PI + np.log(gap)
        scaled_error = _ROUNDING * (1 + u * u) + gap_error
        # Below it the first term is at least 1/2, and the plain formula loses nothing.
        first, second = log_ndtr(-u), epsilon + log_ndtr(-v)
        below = np.minimum(second - first, 0.0)
        plain = first + np.log(-np.expm1(below))
        plain_error = _ROUNDING * (1 + (1 + np.abs(epsilon) + np.abs(second)) / np.abs(below))
        near = u > -_NARROW
        value, error = np.where(near, scaled, plain), np.where(near, scaled_error, plain_error)
        error = error + _ROUNDING * np.abs(value)
        # Where the difference is lost in rounding, the first term alone is still a bound.
        above = np.where(np.isfinite(error), np.minimum(value + error, first), first)
        no_release = np.where(epsilon >= 0, -math.inf, np.log(-np.expm1(np.minimum(epsilon, 0))))
    known = [mu == 0, np.isneginf(epsilon) | np.isinf(mu), np.isposinf(epsilon)]
    limits = [no_release, np.zeros_like(mu), np.full_like(mu, -math.inf)]
    return np.minimum(np.select(known, limits, value), 0.0), np.minimum(np.select(known, limits, above), 0.0)


def _mills_difference(u: np.ndarray, v: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return R(u) - R(v) for the Mills ratio R = (1 - Phi)/phi, and a bound on the relative error."""
    ratio_u, ratio_v = _mills_ratio(u), _mills_ratio(v)
    difference, error = ratio_u - ratio_v, _ROUNDING * (1 + ratio_u / (ratio_u - ratio_v))
    narrow = mu * (1 + np.abs(u)) < _NARROW
    if not narrow.any():
        return difference, error
    # Where u and v almost coincide, -R'(x) = 1 - x R(x) is integrated instead of subtracting two like numbers.
    x = np.maximum(u, -_NARROW)[..., None] + mu[..., None] * _NODES
    integral = mu * ((1 - x * _mills_ratio(x)) @ _WEIGHTS)
    return np.where(narrow, integral, difference), np.where(narrow, 4 * _ROUNDING * (2 + u * u), error)


def _mills_ratio(x: np.ndarray) -> np.ndarray:
    return _SQRT_HALF_PI * erfcx(np.maximum(x, -_NARROW) / math.sqrt(2))


def gaussian_log_delta_above(epsilon: float, mu: float) -> float:
    """Bound log delta from above, rounding included."""
    return float(_log_delta(epsilon, mu)[1])


def bisect_safely(allowed: Callable[[float], bool], *, bad: float, good: float, relative: float = 0.0) -> float:
    """Return the end of the last bracket that is allowed."""
    for _ in range(200):
        middle = (bad + good) / 2
        if middle in (bad, good) or abs(good - bad) <= relative * good:
            break
        if allowed(middle):
            good = middle
        else:
            bad = middle
    return good
