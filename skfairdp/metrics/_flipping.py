r"""How likely noise is to change the winner of a vote, and which rows are close to a change."""

import math
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtr

from skfairdp._validation import check_votes
from skfairdp.mechanisms import normal_quadrature

# Rows at a time, so that rows x classes x nodes stays within a few megabytes.
_BLOCK = 1 << 19


def flipping_probability(votes: Any, noise_scale: float) -> np.ndarray:
    r"""Probability that Gaussian noise on the vote counts changes the winning class, exactly.

    Parameters
    ----------
    votes : array-like of shape (n_samples, n_classes)
        Teachers' vote counts. Among tied classes the first is the winner, as in ``argmax``.
    noise_scale : float
        Standard deviation sigma of the noise on each count; 0 gives probability 0.

    Returns
    -------
    ndarray of shape (n_samples,)

    Notes
    -----
    With the winner :math:`a`,
    :math:`p = \int \varphi(z) \bigl(1 - \prod_{j \ne a} \Phi(z + (n_a - n_j)/\sigma)\bigr) dz`, by Gauss-Hermite
    quadrature with 128 nodes; for two classes :math:`p = \Phi(-(n_a - n_b) / (\sqrt 2 \sigma))`. Theorem 2 of Tran et
    al. [1]_ is the case of two classes and a unanimous vote; its proof does not extend to more classes as stated.

    References
    ----------
    .. [1] C. Tran, M. H. Dinh, K. Beiter and F. Fioretto, "A fairness analysis on private aggregation of teacher
       ensembles", 2021, Definition 2 and Theorem 2.

    Examples
    --------
    >>> from skfairdp.metrics import flipping_probability
    >>> flipping_probability([[150, 0], [76, 74]], noise_scale=50).round(6)
    array([0.016947, 0.488718])
    >>> flipping_probability([[150, 0, 0]], noise_scale=50).round(6)
    array([0.031205])
    """
    counts = check_votes(votes)
    sigma = float(noise_scale)
    if not 0 <= sigma < math.inf:
        raise ValueError(f"noise_scale must be a finite number that is 0 or more; got {noise_scale!r}.")
    if sigma == 0 or counts.shape[1] == 1:
        return np.zeros(len(counts))
    winner = counts.argmax(axis=1)
    lead = (np.take_along_axis(counts, winner[:, None], axis=1) - counts) / sigma
    if counts.shape[1] == 2:
        return ndtr(-lead.sum(axis=1) / math.sqrt(2))
    others = np.ones(counts.shape, dtype=bool)
    others[np.arange(len(counts)), winner] = False
    leads = lead[others].reshape(len(counts), counts.shape[1] - 1)
    nodes, weights = normal_quadrature()
    flips = np.empty(len(counts))
    rows = max(1, _BLOCK // (leads.shape[1] * len(nodes)))
    for start in range(0, len(counts), rows):
        part = leads[start : start + rows, :, None] + nodes
        flips[start : start + rows] = -np.expm1(log_ndtr(part).sum(axis=1)) @ weights
    return np.clip(flips, 0.0, 1.0)


def closeness_to_boundary(proba: Any) -> np.ndarray:
    r"""How close each row lies to the decision boundary: :math:`1 - \sum_c p_c^2`.

    Parameters
    ----------
    proba : array-like of shape (n_samples, n_classes)
        Class probabilities of a classifier.

    Returns
    -------
    ndarray of shape (n_samples,)
        0 for a certain prediction, ``1 - 1/n_classes`` where all classes are equally likely.

    References
    ----------
    .. [1] C. Tran, M. H. Dinh, K. Beiter and F. Fioretto, "A fairness analysis on private aggregation of teacher
       ensembles", 2021, Definition 4.

    Examples
    --------
    >>> from skfairdp.metrics import closeness_to_boundary
    >>> closeness_to_boundary([[1.0, 0.0], [0.5, 0.5]])
    array([0. , 0.5])
    """
    p = np.asarray(proba, dtype=float)
    if p.ndim != 2 or p.shape[1] < 2:
        raise ValueError(f"proba must have shape (n_samples, n_classes) with two classes or more; got {p.shape}.")
    if not (np.isfinite(p).all() and (p >= -1e-9).all() and np.allclose(p.sum(axis=1), 1, atol=1e-6)):
        raise ValueError("proba must hold probabilities that sum to 1 in each row.")
    return 1 - np.square(p).sum(axis=1)
