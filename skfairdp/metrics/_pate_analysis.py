r"""What privacy costs in PATE: flipped winners, excessive risk, how far the student moves, and bounds on it.

The bounds: the student minimises :math:`\frac1M \sum_i \ell(x_i, y_i; \theta) + \lambda \lVert\theta\rVert^2` over
m rows, with :math:`M = m` for the mean objective and :math:`M = 1` for the sum, and a loss that is decomposable:
:math:`\ell = z(h) + c\, y\, h`. The penalty is :math:`2\lambda`-strongly convex, so a change of labels that moves
the gradient at the optimum by :math:`g` moves the optimum by at most :math:`\lVert g\rVert / (2\lambda)`. A flipped
label of row i moves the gradient by :math:`|c|\lVert x_i\rVert / M`. The bounds are this sentence, in expectation.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, ndtr

from skfairdp._validation import check_sensitive_features, check_votes
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
        part = slice(start, start + rows)
        flips[part] = -np.expm1(log_ndtr(leads[part, :, None] + nodes).sum(axis=1)) @ weights
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


def excessive_risk(private_losses: Any, clean_losses: Any, *, sensitive_features: Any = None) -> pd.DataFrame:
    r"""How much loss privacy adds, by row or by group, with the standard error of the Monte Carlo mean.

    Parameters
    ----------
    private_losses : array-like of shape (n_repeats, n_samples)
        Loss of each row under each repetition of the private model.
    clean_losses : array-like of shape (n_samples,)
        Loss of each row under the model trained without noise.
    sensitive_features : array-like or None
        ``None`` gives one line per row; otherwise one line per group, several columns are crossed.

    Returns
    -------
    DataFrame
        Columns ``risk`` (the mean difference), ``standard_error`` (over repetitions; nan for a single one) and, by
        group, ``count``.

    References
    ----------
    .. [1] C. Tran, M. H. Dinh, K. Beiter and F. Fioretto, "A fairness analysis on private aggregation of teacher
       ensembles", 2021, Equation 3, without the regulariser, which is the same for every group.

    Examples
    --------
    >>> from skfairdp.metrics import excessive_risk
    >>> table = excessive_risk([[0.5, 0.3, 0.2], [0.7, 0.3, 0.2]], [0.4, 0.3, 0.1], sensitive_features=["f", "m", "m"])
    >>> table["risk"].round(3).tolist()
    [0.2, 0.05]
    """
    private, clean = np.asarray(private_losses, dtype=float), np.asarray(clean_losses, dtype=float)
    if clean.ndim != 1 or private.ndim != 2 or private.shape[1] != len(clean) or private.size == 0:
        raise ValueError(
            "private_losses must have shape (n_repeats, n_samples) and clean_losses (n_samples,); "
            f"got {private.shape} and {clean.shape}."
        )
    if not (np.isfinite(private).all() and np.isfinite(clean).all()):
        raise ValueError("private_losses and clean_losses must be finite.")
    extra = private - clean
    if sensitive_features is None:
        return pd.DataFrame({"risk": extra.mean(axis=0), "standard_error": standard_error(extra)})
    groups = check_sensitive_features(sensitive_features, extra.shape[1], intersection=True)
    indices, labels = groups.indices[:, 0], groups.labels[0]
    sizes = np.bincount(indices, minlength=len(labels))
    membership = np.zeros((extra.shape[1], len(labels)))
    membership[np.arange(len(indices)), indices] = 1 / sizes[indices]
    index = pd.Index(labels, name=groups.names[0], tupleize_cols=False)
    found = excessive_risk(extra @ membership, np.zeros(len(labels)))
    return found.assign(count=sizes).set_index(index)


def excessive_risk_gap(private_losses: Any, clean_losses: Any, *, sensitive_features: Any) -> float:
    """Largest difference of excessive risk between two groups.

    Parameters
    ----------
    private_losses : array-like of shape (n_repeats, n_samples)
        Loss of each row under each repetition of the private model.
    clean_losses : array-like of shape (n_samples,)
        Loss of each row under the model trained without noise.
    sensitive_features : array-like
        At least two groups; several columns are crossed.

    Returns
    -------
    float

    Examples
    --------
    >>> from skfairdp.metrics import excessive_risk_gap
    >>> round(excessive_risk_gap([[0.6, 0.3]], [0.4, 0.3], sensitive_features=["f", "m"]), 3)
    0.2
    """
    check_sensitive_features(sensitive_features, intersection=True, min_groups=2)
    risk = excessive_risk(private_losses, clean_losses, sensitive_features=sensitive_features)["risk"]
    return float(risk.max() - risk.min())


def model_sensitivity(private_parameters: Any, clean_parameters: Any) -> dict[str, float]:
    r"""How far noise moves the model: :math:`E\lVert\tilde\theta - \theta^*\rVert` and its square's mean.

    Parameters
    ----------
    private_parameters : array-like of shape (n_repeats, ...)
        Parameters of each repetition of the private model.
    clean_parameters : array-like of shape (...)
        Parameters of the model trained without noise.

    Returns
    -------
    dict
        ``mean``, ``standard_error``, ``mean_square``, and ``bias``, the norm of the mean difference: what
        does not average out.

    Examples
    --------
    >>> from skfairdp.metrics import model_sensitivity
    >>> moved = model_sensitivity([[1.0, 0.0], [-1.0, 0.0]], [0.0, 0.0])
    >>> moved["mean"], moved["bias"]
    (1.0, 0.0)
    """
    private = np.asarray(private_parameters, dtype=float)
    clean = np.asarray(clean_parameters, dtype=float)
    if private.ndim != clean.ndim + 1 or private.shape[1:] != clean.shape or len(private) == 0:
        raise ValueError(
            f"private_parameters must have shape (n_repeats, *clean_parameters.shape); got {private.shape} "
            f"for clean_parameters of shape {clean.shape}."
        )
    moved = (private - clean).reshape(len(private), -1)
    distance = np.linalg.norm(moved, axis=1)
    return {
        "mean": float(distance.mean()),
        "standard_error": float(standard_error(distance)),
        "mean_square": float(np.square(distance).mean()),
        "bias": float(np.linalg.norm(moved.mean(axis=0))),
    }


def standard_error(repeats: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean over the first axis; nan for a single repetition."""
    if len(repeats) == 1:
        return np.full(repeats.shape[1:], math.nan)
    return repeats.std(axis=0, ddof=1) / math.sqrt(len(repeats))


@dataclass(frozen=True)
class SensitivityBounds:
    r"""Upper bounds on :math:`E\lVert\tilde\theta - \theta^*\rVert` (first) and on the mean square (second).

    Attributes
    ----------
    first : float
        The sharpest bound on the expected distance that holds.
    second : float
        The sharpest bound on the expected squared distance that holds.
    triangle : float
        The corrected Theorem 1, by the triangle inequality alone.
    published_first : float or None
        Corollary 1 as printed: :math:`|c| / (m\lambda) \sum p_i \lVert x_i\rVert`. It holds for the mean objective,
        where it is loose by a factor of 2, and not for the sum that the paper's Equation 1 prints.
    published_second : float or None
        Corollary 2 as printed, which squares the bound on the mean and so loses the variance: it does not hold.

    Examples
    --------
    >>> from skfairdp.metrics import SensitivityBounds
    >>> SensitivityBounds(first=0.5, second=0.3, triangle=0.6).first
    0.5
    """

    first: float
    second: float
    triangle: float
    published_first: float | None = None
    published_second: float | None = None


def hard_label_bounds(
    X: Any,
    flip_probability: Any,
    regularization: float,
    *,
    labels: Any = None,
    objective: str = "mean",
    c: float = 1.0,
) -> SensitivityBounds:
    r"""Bound how far flipped labels move a logistic student.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows the student was trained on, with the column of ones that carries a penalised intercept.
    flip_probability : array-like of shape (n_samples,)
        Probability that noise flips each row's label; flips are independent.
    regularization : float
        Strength lambda of the penalty.
    labels : array-like of shape (n_samples,) of 0 and 1, optional
        The labels without noise. With them the direction of each flip is known and the bound is sharper.
    objective : {"mean", "sum"}
        Whether the loss is averaged or summed over rows.
    c : float
        The constant of the decomposable loss; 1 for the logistic loss with labels 0 and 1.

    Returns
    -------
    SensitivityBounds

    Examples
    --------
    A single row shows that the published Corollary 2 does not hold: the exact mean square is 1.977e-3.

    >>> from skfairdp.metrics import hard_label_bounds
    >>> bounds = hard_label_bounds([[1.0]], [0.01], regularization=1.0)
    >>> round(bounds.published_second, 6), round(bounds.second, 6)
    (0.0001, 0.0025)
    """
    rows, p, strength = _check_bound_arguments(X, flip_probability, regularization)
    m = len(rows)
    scale = c / (2 * _objective_divisor(objective, m) * strength)
    norms = np.linalg.norm(rows, axis=1)
    triangle = abs(scale) * float(p @ norms)
    variance = float((p * (1 - p)) @ norms**2)
    if labels is None:
        drift = float(p @ norms) ** 2
    else:
        y = np.asarray(labels, dtype=float)
        if y.shape != p.shape or not np.isin(y, (0, 1)).all():
            raise ValueError(f"labels must hold one 0 or 1 per row, shape {p.shape}; got shape {y.shape}.")
        drift = float(np.square((p * (1 - 2 * y)) @ rows).sum())
    second = scale**2 * (drift + variance)
    published = abs(c) / (m * strength) * float(p @ norms)
    # Corollary 2 as printed bounds the mean square by (|c| / (m lambda))^2 m sum p^2 |x|^2.
    published_square = (c / (m * strength)) ** 2 * m * float(p**2 @ norms**2)
    return SensitivityBounds(
        first=min(triangle, float(np.sqrt(second))),
        second=second,
        triangle=triangle,
        published_first=published,
        published_second=published_square,
    )


def soft_label_bounds(
    X: Any,
    noise_scale: float,
    n_teachers: int,
    regularization: float,
    *,
    n_classes: int = 2,
    centred: bool = True,
    objective: str = "mean",
    c: float = 1.0,
) -> SensitivityBounds:
    r"""Bound how far noise on soft labels moves a logistic student.

    Holds for noisy vote shares that were made to sum to one; the model compared with is trained on the clean soft
    labels.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows the student was trained on, with the column of ones that carries a penalised intercept.
    noise_scale : float
        Standard deviation sigma of the noise on each vote count.
    n_teachers : int
        Number of teachers k.
    regularization : float
        Strength lambda of the penalty.
    n_classes : int
        Number of classes.
    centred : bool
        Whether the noise still has mean zero (``postprocess="affine"``). False for ``"clip"`` and ``"simplex"``, which
        bring labels nearer to the clean ones, but all to the same side, so that errors of rows may add up.
    objective : {"mean", "sum"}
        Whether the loss is averaged or summed over rows.
    c : float
        The constant of the decomposable loss; used for two classes.

    Returns
    -------
    SensitivityBounds
        For centred noise, ``second`` is
        :math:`c^2\sigma^2 / (8 M^2\lambda^2 k^2) \sum\lVert x_i\rVert^2` for two classes
        and :math:`\sigma^2 (C - 1) / (4 M^2\lambda^2 k^2) \sum\lVert x_i\rVert^2` for more; ``first`` is its root.
        Otherwise the sum of squared norms is replaced by the squared sum of norms.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.metrics import soft_label_bounds
    >>> round(soft_label_bounds(np.ones((200, 1)), 50, 150, regularization=1.0).first, 6)
    0.008333
    """
    rows, _, strength = _check_bound_arguments(X, np.zeros(len(np.asarray(X))), regularization)
    if not 0 <= float(noise_scale) < np.inf:
        raise ValueError(f"noise_scale must be a finite number that is 0 or more; got {noise_scale!r}.")
    if n_teachers < 1 or n_classes < 2:
        raise ValueError(f"n_teachers must be 1 or more and n_classes 2 or more; got {n_teachers} and {n_classes}.")
    M = _objective_divisor(objective, len(rows))
    spread = c**2 / 2 if n_classes == 2 else n_classes - 1.0
    norms = np.linalg.norm(rows, axis=1)
    square = float(np.square(norms).sum()) if centred else float(norms.sum()) ** 2
    second = spread * (noise_scale / n_teachers) ** 2 * square / (2 * M * strength) ** 2
    first = float(np.sqrt(second))
    return SensitivityBounds(first=first, second=second, triangle=first)


def excessive_risk_bound(X: Any, residual: Any, first: float, second: float) -> np.ndarray:
    r"""Bound the excessive risk of each row of a logistic student (Theorem 3).

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows, with the column of ones that carries a penalised intercept.
    residual : array-like of shape (n_samples,)
        Predicted probability less the label, under the model trained without noise.
    first, second : float
        Bounds on, or values of, :math:`E\lVert\tilde\theta-\theta^*\rVert` and of its square.

    Returns
    -------
    ndarray of shape (n_samples,)
        :math:`|r_i|\lVert x_i\rVert U_1 + \lVert x_i\rVert^2 U_2 / 8`, as the logistic loss of a row is
        :math:`\lVert x_i\rVert^2 / 4`-smooth. An upper bound only: a large one does not mean a large risk.

    Examples
    --------
    >>> from skfairdp.metrics import excessive_risk_bound
    >>> excessive_risk_bound([[2.0]], [0.5], first=0.1, second=0.01)
    array([0.105])
    """
    rows, r = np.asarray(X, dtype=float), np.asarray(residual, dtype=float)
    if rows.ndim != 2 or r.shape != (len(rows),):
        raise ValueError(f"X must have two dimensions and residual one entry per row; got {rows.shape} and {r.shape}.")
    norms = np.linalg.norm(rows, axis=1)
    return np.abs(r) * norms * first + norms**2 * second / 8


def _check_bound_arguments(X: Any, probability: Any, regularization: float) -> tuple[np.ndarray, np.ndarray, float]:
    rows, p, strength = np.asarray(X, dtype=float), np.asarray(probability, dtype=float), float(regularization)
    if rows.ndim != 2 or len(rows) == 0:
        raise ValueError(f"X must have shape (n_samples, n_features) with at least one row; got {rows.shape}.")
    if p.shape != (len(rows),) or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"flip_probability must hold one probability per row, {len(rows)}; got shape {p.shape}.")
    if not 0 < strength < np.inf:
        raise ValueError(f"regularization must be a finite number greater than 0; got {regularization!r}.")
    return rows, p, strength


def _objective_divisor(objective: str, m: int) -> float:
    if objective not in ("mean", "sum"):
        raise ValueError(f"objective must be 'mean' or 'sum'; got {objective!r}.")
    return float(m) if objective == "mean" else 1.0
