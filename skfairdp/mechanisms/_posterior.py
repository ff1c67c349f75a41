"""The best guess of a value whose offset bits went through randomised response."""

import numpy as np
from scipy.special import ndtr

from skfairdp.mechanisms._bits import bit_weights

PRIORS = ("uniform", "normal")

# A table has an entry for every reading of the leading bits; bits after these are taken to be uniform in their cell.
_MOST_LEADING = 12


def posterior_estimate(bits: np.ndarray, gains: np.ndarray, n_integer_bits: int, prior: str) -> np.ndarray:
    """Estimate values by their posterior means.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_features * n_bits)
        Noisy offset bits.
    gains : ndarray of shape (n_features, n_bits)
        ``p - q`` of symmetric randomised response on each bit.
    n_integer_bits : int
    prior : {"uniform", "normal"}

    Returns
    -------
    ndarray of shape (n_samples, n_features)
    """
    n_features, n_bits = gains.shape
    n_served = int((gains > 0).any(axis=0).sum())
    n_leading = min(n_served, _MOST_LEADING)
    cells = bits.reshape(len(bits), n_features, n_bits)
    readings = cells[..., :n_leading] @ (1 << np.arange(n_leading)[::-1])
    kinds, kind = np.unique(gains[:, :n_leading], axis=0, return_inverse=True)
    tables = np.array([posterior_means(row, n_integer_bits, prior) for row in kinds])
    values = tables[kind.ravel(), readings]
    if n_served > n_leading:
        weights = 2.0 ** (n_integer_bits - np.arange(n_leading, n_bits))
        values = values + ((cells[..., n_leading:] - 0.5) * gains[:, n_leading:]) @ weights
    return values


def posterior_means(gains: np.ndarray, n_integer_bits: int, prior: str) -> np.ndarray:
    """Posterior mean of a value for every noisy reading of its leading offset bits.

    Parameters
    ----------
    gains : array of shape (n_leading,)
        ``p - q`` of symmetric randomised response on each leading bit. The bits
        after them are taken to be coins.
    n_integer_bits : int
        The code spans ``[-2**n_integer_bits, 2**n_integer_bits)``.
    prior : {"uniform", "normal"}
        What is believed of the value before the bits: uniform on the span, or standard
        normal (values beyond the span saturate, and are believed to be where they are).

    Returns
    -------
    ndarray of shape (2**n_leading,)
        Indexed by the noisy bits read as a binary number, most significant first.

    Examples
    --------
    >>> from skfairdp.mechanisms import posterior_means
    >>> posterior_means([1.0], 0, "uniform")
    array([-0.5,  0.5])
    >>> posterior_means([0.5], 0, "normal").round(6)  # half of sqrt(2 / pi)
    array([-0.398942,  0.398942])
    """
    gains = np.asarray(gains, dtype=np.float64)
    mass, moment = _cells(len(gains), n_integer_bits, prior)
    shape = (2,) * len(gains)
    mass, moment = mass.reshape(shape), moment.reshape(shape)
    for k, gain in enumerate(gains):
        mass, moment = (_through(cells, gain, k) for cells in (mass, moment))
    return np.divide(moment, mass, out=np.zeros(shape), where=mass > 0).ravel()


def _cells(n_leading: int, n_integer_bits: int, prior: str) -> tuple[np.ndarray, np.ndarray]:
    """Prior mass, and mass times mean, of each cell of the leading bits."""
    n_cells = 1 << n_leading
    width = 2 * bit_weights(n_integer_bits, 1)[0] / n_cells
    edges = width * (np.arange(n_cells + 1) - n_cells / 2)
    if prior == "uniform":
        return np.full(n_cells, 1 / n_cells), (edges[:-1] + edges[1:]) / 2 / n_cells
    if prior != "normal":
        raise ValueError(f"prior must be one of {PRIORS}; got {prior!r}.")
    edges[0], edges[-1] = -np.inf, np.inf
    # Of the two tails, the difference is taken in the one where nothing cancels.
    right = edges[:-1] >= 0
    low, high = np.where(right, -edges[1:], edges[:-1]), np.where(right, -edges[:-1], edges[1:])
    density = np.exp(-(edges**2) / 2) / np.sqrt(2 * np.pi)
    return ndtr(high) - ndtr(low), density[:-1] - density[1:]


def _through(cells: np.ndarray, gain: float, axis: int) -> np.ndarray:
    """Send one bit of a table through randomised response."""
    keep, flip = (1 + gain) / 2, (1 - gain) / 2
    return keep * cells + flip * np.flip(cells, axis)
