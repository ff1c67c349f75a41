r"""Renyi accounting, for comparison and for mechanisms without an exact profile.

A mechanism satisfies :math:`(\alpha, \rho)`-Renyi differential privacy when the Renyi
divergence of order :math:`\alpha` between its outputs on neighbours never exceeds
:math:`\rho` (Mironov, 2017). Divergences of a sequence add up.
"""

import math
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from skfairdp._validation import check_delta, check_epsilon, check_option
from skfairdp.dp._gaussian_accounting import check_mu

Conversion = Literal["improved", "classic"]

#: Orders that lie close enough together to lose less than 1e-4 of an epsilon between 0.01 and 100.
DEFAULT_ORDERS: np.ndarray = 1 + np.geomspace(1e-2, 1e4, 1200)
DEFAULT_ORDERS.setflags(write=False)


def gaussian_rdp(mu: float, orders: ArrayLike = DEFAULT_ORDERS) -> np.ndarray:
    """Compute the Renyi divergence of a Gaussian release: ``order * mu**2 / 2``.

    Parameters
    ----------
    mu : float
        L2 sensitivity over the noise's standard deviation.
    orders : array-like
        Renyi orders, all above 1.

    Returns
    -------
    ndarray of the shape of ``orders``

    Examples
    --------
    >>> from skfairdp.accounting import gaussian_rdp
    >>> gaussian_rdp(0.4, [2.0, 10.0])
    array([0.16, 0.8 ])
    """
    return check_orders(orders) * check_mu(mu) ** 2 / 2


def pure_rdp(epsilon: float, orders: ArrayLike = DEFAULT_ORDERS) -> np.ndarray:
    r"""Compute the largest Renyi divergence that a pure epsilon allows, that of randomised response.

    It is :math:`\ln[\cosh((\alpha - 1/2)\varepsilon) / \cosh(\varepsilon/2)] / (\alpha - 1)`.

    Parameters
    ----------
    epsilon : float
        The pure guarantee.
    orders : array-like
        Renyi orders, all above 1.

    Returns
    -------
    ndarray of the shape of ``orders``

    Examples
    --------
    >>> from skfairdp.accounting import pure_rdp
    >>> pure_rdp(1.0, [2.0, 1e6]).round(6)
    array([0.735326, 1.      ])
    """
    orders = check_orders(orders)
    epsilon = check_epsilon(epsilon, allow_zero=True)
    if math.isinf(epsilon):
        return np.full_like(orders, math.inf)
    half = epsilon / 2
    return (_log_cosh((2 * orders - 1) * half) - _log_cosh(np.asarray(half))) / (orders - 1)


def renyi_epsilon(
    rdp: ArrayLike,
    delta: float,
    orders: ArrayLike = DEFAULT_ORDERS,
    *,
    conversion: Conversion = "improved",
) -> float:
    r"""Convert Renyi divergences to the epsilon that they prove at a delta.

    Parameters
    ----------
    rdp : array-like
        The divergence at each order.
    delta : float
        In (0, 1).
    orders : array-like
        The orders, all above 1.
    conversion : {"improved", "classic"}
        ``"improved"`` is :math:`\rho + \ln(1 - 1/\alpha) - (\ln\delta + \ln\alpha)/(\alpha - 1)`, ``"classic"``
        is :math:`\rho + \ln(1/\delta)/(\alpha - 1)`, which is never smaller.

    Returns
    -------
    float
        The least over all orders, at least 0.

    References
    ----------
    Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", 2020, Proposition 12.
    Mironov, "Renyi differential privacy", 2017, Proposition 3.

    Examples
    --------
    200 noisy votes with noise scale 50, whose exact epsilon is 1.554982:

    >>> from skfairdp.accounting import gaussian_rdp, renyi_epsilon
    >>> round(renyi_epsilon(gaussian_rdp(0.4), 1e-5), 3)
    1.693
    >>> round(renyi_epsilon(gaussian_rdp(0.4), 1e-5, conversion="classic"), 3)
    1.999
    """
    return max(float(renyi_epsilons(rdp, delta, orders, conversion=conversion).min()), 0.0)


def renyi_epsilons(
    rdp: ArrayLike,
    delta: float,
    orders: ArrayLike = DEFAULT_ORDERS,
    *,
    conversion: Conversion = "improved",
) -> np.ndarray:
    """Convert Renyi divergences to what each order proves at a delta; the least is :func:`renyi_epsilon`.

    Parameters
    ----------
    rdp : array-like
        The divergence at each order.
    delta : float
        In (0, 1).
    orders : array-like
        The orders, all above 1.
    conversion : {"improved", "classic"}
        As in :func:`renyi_epsilon`.

    Returns
    -------
    ndarray of the shape of ``orders``
        An order may prove less than 0, which is as good as 0.

    Examples
    --------
    Which order proves most:

    >>> from skfairdp.accounting import gaussian_rdp, renyi_epsilons
    >>> orders = [2.0, 12.0, 100.0]
    >>> renyi_epsilons(gaussian_rdp(0.4, orders), 1e-5, orders).round(3)
    array([10.287,  1.694,  8.06 ])
    """
    orders, rdp = _aligned_orders(orders, rdp)
    log_delta = math.log(check_delta(delta))
    if check_option(conversion, "conversion", get_args(Conversion)) == "improved":
        return rdp + np.log1p(-1 / orders) - (log_delta + np.log(orders)) / (orders - 1)
    return rdp - log_delta / (orders - 1)


def renyi_delta(rdp: ArrayLike, epsilon: float, orders: ArrayLike = DEFAULT_ORDERS) -> float:
    """Convert Renyi divergences to the delta that they prove at an epsilon, by the improved conversion.

    Parameters
    ----------
    rdp : array-like
        The divergence at each order.
    epsilon : float
        At least 0.
    orders : array-like
        The orders, all above 1.

    Returns
    -------
    float
        At most 1.

    Examples
    --------
    >>> from skfairdp.accounting import gaussian_rdp, renyi_delta
    >>> renyi_delta(gaussian_rdp(0.4), 1.6928) < 1e-5  # the exact delta there is 2.3e-6
    True
    """
    orders, rdp = _aligned_orders(orders, rdp)
    epsilon = check_epsilon(epsilon, allow_zero=True)
    log_deltas = (orders - 1) * (rdp - epsilon + np.log1p(-1 / orders)) - np.log(orders)
    return math.exp(min(float(log_deltas.min()), 0.0))


def check_orders(orders: ArrayLike) -> np.ndarray:
    """Return Renyi orders as floats, all finite and above 1."""
    checked = np.asarray(orders, dtype=float)
    if checked.size == 0 or not (np.isfinite(checked) & (checked > 1)).all():
        raise ValueError(f"orders must be finite numbers above 1, at least one; got {orders!r}.")
    return checked


def _aligned_orders(orders: ArrayLike, rdp: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    orders, values = check_orders(orders), np.asarray(rdp, dtype=float)
    if orders.shape != values.shape:
        raise ValueError(f"rdp must have one value per order: {orders.shape} expected, {values.shape} given.")
    if np.isnan(values).any():
        raise ValueError("rdp must hold numbers; got nan.")
    return orders, values


def _log_cosh(x: Any) -> np.ndarray:
    """Compute log cosh without overflow for large x and without cancellation for small."""
    x = np.abs(x)
    small = np.minimum(x, 1.0)
    return np.where(x < 1, np.log1p(2 * np.sinh(small / 2) ** 2), x + np.log1p(np.exp(-2 * x)) - math.log(2))
