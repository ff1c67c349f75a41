"""The bit protocols SUE, OUE and OME: as their papers print them, and calibrated to their exact loss.

The published rates come from one-hot codes, where two inputs differ in two bits.
In a dense fixed-point code every bit may differ, so the losses of all bits add.
"""

import math

import numpy as np

from skfairdp._validation import check_epsilon
from skfairdp.mechanisms._randomised_response import (
    LARGEST_LOGIT,
    BinaryChannel,
    channel_from_logits,
    largest_within,
    logits_loss,
)


def sue_logits(epsilon: float, sensitivity: float) -> tuple[float, float]:
    """Logits of symmetric unary encoding: ``p = E / (1 + E)``, ``q = 1 - p``, ``E = exp(epsilon / sensitivity)``."""
    x = check_epsilon(epsilon, allow_inf=False) / sensitivity
    return x, -x


def oue_logits(epsilon: float, sensitivity: float) -> tuple[float, float]:
    """Logits of optimised unary encoding: ``p = 1/2``, ``q = 1 / (1 + E)``, ``E = exp(epsilon / sensitivity)``."""
    return 0.0, -check_epsilon(epsilon, allow_inf=False) / sensitivity


def ome_logits(epsilon: float, n_bits: int, randomization_factor: float) -> tuple[float, float, float]:
    """Logits of optimised multiple encoding, in its Equations 2 and 3.

    ``p = lam / (1 + lam)`` on even bits and ``1 / (1 + lam**3)`` on odd ones,
    ``q = 1 / (1 + lam * exp(epsilon / n_bits))``; returned in this order.
    """
    log_factor = math.log(check_randomization_factor(randomization_factor))
    return log_factor, -3 * log_factor, -(log_factor + check_epsilon(epsilon, allow_inf=False) / n_bits)


def check_randomization_factor(randomization_factor: float) -> float:
    """Return the factor as a float of at least 1, or say what is wrong with it."""
    value = float(randomization_factor)
    if not (1 <= value < math.inf):
        raise ValueError(f"randomization_factor must be a finite number of at least 1; got {randomization_factor!r}.")
    return value


def _ome_levels(log_factor: float, x: float, n_bits: int) -> list[tuple[float, float, int]]:
    q = -(log_factor + x)
    return [(log_factor, q, -(-n_bits // 2)), (-3 * log_factor, q, n_bits // 2)]


def largest_randomization_factor(epsilon: float, n_bits: int) -> float:
    """Return the largest ``lam`` for which the printed OME really is ``epsilon``-private.

    For an even number of bits it is the root of
    ``lam**3 - lam**2 + lam = exp(2 * epsilon / n_bits)``; here it is found on the
    integers that the mechanism uses, so that it holds for them too.

    Parameters
    ----------
    epsilon : float
    n_bits : int
        Bits of the whole code of a record.

    Returns
    -------
    float

    Examples
    --------
    >>> from skfairdp.mechanisms import largest_randomization_factor
    >>> round(largest_randomization_factor(1.0, 500), 9)
    1.002000001
    """
    epsilon = check_epsilon(epsilon, allow_inf=False)
    x = epsilon / n_bits

    def loss(factor: float) -> float:
        return logits_loss(_ome_levels(math.log(factor), x, n_bits))

    # Beyond exp(epsilon / n_bits) the loss exceeds epsilon (even bits: the root lies below it).
    return largest_within(loss, epsilon, 1.0, math.exp(min(2 * x + 1, LARGEST_LOGIT)))


def sue_channel(epsilon: float, n_bits: int) -> BinaryChannel:
    """Return symmetric randomised response that spends ``epsilon / n_bits`` on each bit.

    Parameters
    ----------
    epsilon : float
        Loss of the whole code; never exceeded.
    n_bits : int
        Bits of the whole code of a record.
    """
    epsilon = check_epsilon(epsilon, allow_inf=False)
    x = largest_within(lambda x: logits_loss([(x, -x, n_bits)]), epsilon, 0.0, LARGEST_LOGIT)
    return channel_from_logits(np.full(n_bits, x), np.full(n_bits, -x))


def oue_channel(epsilon: float, n_bits: int) -> BinaryChannel:
    """Return OUE (``p = 1/2``) with ``q`` lowered until the exact loss of the whole code is ``epsilon``.

    Parameters
    ----------
    epsilon : float
        Loss of the whole code; never exceeded.
    n_bits : int
        Bits of the whole code of a record.
    """
    epsilon = check_epsilon(epsilon, allow_inf=False)
    x = largest_within(lambda x: logits_loss([(0.0, -x, n_bits)]), epsilon, 0.0, LARGEST_LOGIT)
    return channel_from_logits(np.zeros(n_bits), np.full(n_bits, -x))


def ome_channel(epsilon: float, n_bits: int, randomization_factor: float | None = None) -> BinaryChannel:
    """Return OME with rates for which its loss really is ``epsilon``.

    Parameters
    ----------
    epsilon : float
        Loss of the whole code; never exceeded.
    n_bits : int
        Bits of the whole code of a record.
    randomization_factor : float or None
        The factor ``lam`` of the paper. ``None`` takes the largest feasible one, with the
        printed ``q``. A smaller factor leaves some of epsilon unspent at the printed ``q``, so
        ``q`` is lowered until it is spent. A larger one is refused.
    """
    epsilon = check_epsilon(epsilon, allow_inf=False)
    x = epsilon / n_bits
    if randomization_factor is None:
        log_factor = math.log(largest_randomization_factor(epsilon, n_bits))
    else:
        log_factor = math.log(check_randomization_factor(randomization_factor))
        spent = logits_loss(_ome_levels(log_factor, x, n_bits))
        if spent > epsilon:
            raise ValueError(
                f"randomization_factor={randomization_factor!r} costs an exact epsilon of {spent:.6g} on {n_bits} "
                f"bits, more than epsilon={epsilon!r}; the largest feasible factor is "
                f"{largest_randomization_factor(epsilon, n_bits)!r}. Lower it, raise epsilon, or reproduce the "
                "paper with calibration='published'."
            )
        if spent < epsilon * (1 - 1e-9):
            x = largest_within(lambda x: logits_loss(_ome_levels(log_factor, x, n_bits)), epsilon, x, x + LARGEST_LOGIT)
    return _alternating(log_factor, -3 * log_factor, -(log_factor + x), n_bits)


def published_channel(
    protocol: str, epsilon: float, *, n_features: int, n_bits: int, randomization_factor: float = 100.0
) -> BinaryChannel:
    """Return the rates as the OME paper prints them, whose loss is not the epsilon they are given.

    Parameters
    ----------
    protocol : {"ome", "oue", "sue"}
    epsilon : float
        The claimed epsilon. SUE and OUE divide it by ``2 * n_features``, OME by ``n_bits``.
    n_features : int
        Real values per record.
    n_bits : int
        Bits of the whole code of a record.
    randomization_factor : float
        The factor ``lam`` of OME.

    Returns
    -------
    BinaryChannel

    Examples
    --------
    >>> from skfairdp.mechanisms import published_channel
    >>> round(published_channel("ome", 1.0, n_features=50, n_bits=500).epsilon, 2)
    3451.39
    """
    if protocol == "ome":
        return _alternating(*ome_logits(epsilon, n_bits, randomization_factor), n_bits)
    if protocol not in ("sue", "oue"):
        raise ValueError(f"protocol must be 'ome', 'oue' or 'sue' to have published rates; got {protocol!r}.")
    p, q = (sue_logits if protocol == "sue" else oue_logits)(epsilon, 2 * n_features)
    return channel_from_logits(np.full(n_bits, p), np.full(n_bits, q))


def _alternating(even: float, odd: float, q: float, n_bits: int) -> BinaryChannel:
    return channel_from_logits(np.where(np.arange(n_bits) % 2 == 0, even, odd), np.full(n_bits, q))
