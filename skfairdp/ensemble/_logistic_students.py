r"""Logistic students on soft targets, many at once, solved to the optimum.

One student minimises, over its coefficients and intercept :math:`\theta` (the intercept is penalised too, as a
column of ones among the features),

.. math:: \frac{1}{m} \sum_i \sum_c a_{ic}\, \ell_c(x_i; \theta) + \lambda \lVert \theta \rVert^2

where :math:`\ell_c` is the cross-entropy of class c. Students differ in their targets :math:`a` alone, so that the
Hessians of all of them come from one matrix product and one batched solve. The loss is convex for any real targets that
sum to one in each row, negative ones included; other targets give it directions of negative curvature, which the
step below avoids by solving with a shifted Hessian.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp, softmax

_ARMIJO = 1e-4
_MOST_HALVINGS = 40
_MOST_PRODUCTS = 1 << 24  # numbers held for the products of all rows; beyond, Hessians are summed one by one
_MOST_PARAMETERS = 1500  # of one student; beyond, a Hessian costs more than the steps that it saves


def solve_students(
    X: np.ndarray,
    targets: np.ndarray,
    regularization: float,
    *,
    tol: float = 1e-10,
    max_iter: int = 200,
) -> np.ndarray:
    """Fit one logistic student per set of targets.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Features shared by all students, without a column of ones.
    targets : ndarray of shape (n_students, n_samples, n_classes)
        Soft labels.
    regularization : float
        Strength lambda of the L2 penalty, greater than 0.
    tol : float
        Largest entry of the gradient at the end.
    max_iter : int
        Newton steps at most.

    Returns
    -------
    ndarray of shape (n_students, n_outputs, n_features + 1)
        Coefficients, the intercept last; one output for two classes (the log odds of the second), one per
        class for more.
    """
    design = with_ones(X)
    if len(design) < design.shape[1]:
        # The optimum lies in the span of the rows: solve in an orthonormal basis of it.
        basis, coordinates = np.linalg.qr(design.T)
        return _solve(np.ascontiguousarray(coordinates.T), targets, regularization, tol, max_iter) @ basis.T
    return _solve(design, targets, regularization, tol, max_iter)


def _solve(design: np.ndarray, targets: np.ndarray, regularization: float, tol: float, max_iter: int) -> np.ndarray:
    n_students, _, n_classes = targets.shape
    n_outputs = 1 if n_classes == 2 else n_classes
    theta = np.zeros((n_students, n_outputs, design.shape[1]))
    if theta[0].size > _MOST_PARAMETERS:
        return np.stack([_descend(theta[0], design, one, regularization, tol) for one in targets])
    products = _row_products(design)
    convex = bool((_totals(targets) >= 0).all())
    value, slope, curvature = _derivatives(theta, design, products, targets, regularization)
    for _ in range(max_iter):
        going = np.abs(slope).max(axis=(1, 2)) > tol
        if not going.any():
            break
        step = _newton_step(slope[going], curvature[going], convex)
        moved = _line_search(theta[going], step, value[going], slope[going], design, targets[going], regularization)
        if np.array_equal(moved, theta[going]):  # the last digit is reached
            break
        theta[going] = moved
        value[going], slope[going], curvature[going] = _derivatives(
            moved, design, products, targets[going], regularization
        )
    return theta


def with_ones(X: np.ndarray) -> np.ndarray:
    """Append the column of ones that carries the intercept."""
    return np.column_stack([X, np.ones(len(X))])


def student_logits(theta: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Compute the outputs of students; shape (n_students, n_samples, n_outputs)."""
    return np.einsum("rcp,np->rnc", theta, with_ones(X), optimize=True)


def student_probabilities(theta: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Compute class probabilities; shape (n_students, n_samples, n_classes)."""
    logits = student_logits(theta, X)
    if logits.shape[2] == 1:
        positive = expit(logits[..., 0])
        return np.stack([1 - positive, positive], axis=2)
    return softmax(logits, axis=2)


def student_losses(theta: np.ndarray, X: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Compute the cross-entropy of each student on each row; shape (n_students, n_samples)."""
    return _losses(student_logits(theta, X), targets)


def _losses(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    if logits.shape[-1] == 1:
        h = logits[..., 0]
        return -_totals(targets) * log_expit(-h) - targets[..., 1] * h
    return _totals(targets) * logsumexp(logits, axis=-1) - (targets * logits).sum(axis=-1)


def _totals(targets: np.ndarray) -> np.ndarray:
    """Sum over classes; for two of them NumPy's own sum along so short an axis takes ten times as long."""
    return targets[..., 0] + targets[..., 1] if targets.shape[-1] == 2 else targets.sum(axis=-1)


def _descend(
    start: np.ndarray, design: np.ndarray, targets: np.ndarray, regularization: float, tol: float
) -> np.ndarray:
    """Solve one student with many parameters by a quasi-Newton method."""

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        theta = flat.reshape(1, *start.shape)
        value, slope = _value_and_slope(theta, design, targets[None], regularization)[:2]
        return float(value[0]), slope.ravel()

    # A factor of 1 in ftol is the last digit of the objective: the gradient alone decides when to stop.
    options = {"maxiter": 20_000, "maxfun": 50_000, "gtol": max(tol, 1e-9), "ftol": np.finfo(float).eps, "maxcor": 30}
    return minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(start.shape)


def _row_products(design: np.ndarray) -> np.ndarray | None:
    """Outer product of each row with itself, flattened: one matrix product then gives every Hessian."""
    if design.size * design.shape[1] > _MOST_PRODUCTS:
        return None
    return np.einsum("ni,nj->nij", design, design).reshape(len(design), -1)


def _objective(theta: np.ndarray, design: np.ndarray, targets: np.ndarray, regularization: float) -> np.ndarray:
    logits = np.einsum("rcp,np->rnc", theta, design, optimize=True)
    return _losses(logits, targets).mean(axis=1) + regularization * np.square(theta).sum(axis=(1, 2))


def _value_and_slope(
    theta: np.ndarray, design: np.ndarray, targets: np.ndarray, regularization: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value and gradient of each student's objective, and the probabilities on which they rest."""
    logits = np.einsum("rcp,np->rnc", theta, design, optimize=True)
    value = _losses(logits, targets).mean(axis=1) + regularization * np.square(theta).sum(axis=(1, 2))
    total = _totals(targets)[..., None]
    if theta.shape[1] == 1:
        p = expit(logits)
        residual = total * p - targets[..., 1:]
    else:
        p = softmax(logits, axis=2)
        residual = total * p - targets
    slope = np.einsum("rnc,np->rcp", residual, design, optimize=True) / len(design) + 2 * regularization * theta
    return value, slope, p


def _derivatives(
    theta: np.ndarray, design: np.ndarray, products: np.ndarray | None, targets: np.ndarray, regularization: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value, gradient and Hessian of each student's objective."""
    n_students, n_outputs, width = theta.shape
    value, slope, p = _value_and_slope(theta, design, targets, regularization)
    total = _totals(targets)[..., None]
    if n_outputs == 1:
        weights = (total * p * (1 - p))[..., None]
    else:
        weights = -total[..., None] * p[..., :, None] * p[..., None, :]
        diagonal = np.arange(n_outputs)
        weights[..., diagonal, diagonal] += total * p
    flat = np.moveaxis(weights, 1, -1).reshape(-1, len(design))
    if products is None:
        blocks = np.stack([(design * w[:, None]).T @ design for w in flat])
    else:
        blocks = flat @ products
    size = n_outputs * width
    curvature = (
        (blocks / len(design))
        .reshape(n_students, n_outputs, n_outputs, width, width)
        .transpose(0, 1, 3, 2, 4)
        .reshape(n_students, size, size)
    )
    curvature[:, np.arange(size), np.arange(size)] += 2 * regularization
    return value, slope, curvature


def _newton_step(slope: np.ndarray, curvature: np.ndarray, convex: bool) -> np.ndarray:
    """Solve for the step, after lifting a Hessian with negative eigenvalues to a positive one."""
    flat = slope.reshape(len(slope), -1, 1)
    if convex or _positive(curvature):
        return -np.linalg.solve(curvature, flat).reshape(slope.shape)
    values, vectors = np.linalg.eigh(curvature)
    lifted = np.maximum(np.abs(values), 1e-6 * np.abs(values).max(axis=1, keepdims=True))
    return -(vectors @ ((np.swapaxes(vectors, 1, 2) @ flat) / lifted[..., None])).reshape(slope.shape)


def _positive(curvature: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(curvature)
    except np.linalg.LinAlgError:
        return False
    return True


def _line_search(
    theta: np.ndarray,
    step: np.ndarray,
    value: np.ndarray,
    slope: np.ndarray,
    design: np.ndarray,
    targets: np.ndarray,
    regularization: float,
) -> np.ndarray:
    """Halve each student's step until its objective falls enough."""
    promised = (slope * step).sum(axis=(1, 2))
    length = np.ones(len(theta))
    waiting = np.arange(len(theta))
    # Near the optimum the objective is flat to the last digit: allow for its rounding.
    slack = 8 * np.finfo(float).eps * np.maximum(np.abs(value), 1.0)
    for _ in range(_MOST_HALVINGS):
        trial = theta[waiting] + length[waiting, None, None] * step[waiting]
        reached = _objective(trial, design, targets[waiting], regularization)
        limit = value[waiting] + _ARMIJO * length[waiting] * promised[waiting] + slack[waiting]
        waiting = waiting[~(reached <= limit)]
        if not waiting.size:
            break
        length[waiting] /= 2
    length[waiting] = 0.0
    return theta + length[:, None, None] * step
