r"""Students: what may be trained on released labels and shipped alone.

Logistic students are solved to the optimum, many at once. One of them minimises, over its coefficients and intercept
:math:`\theta` (the intercept is penalised too, as a column of ones among the features),

.. math:: \frac{1}{m} \sum_i \sum_c a_{ic}\, \ell_c(x_i; \theta) + \lambda \lVert \theta \rVert^2

where :math:`\ell_c` is the cross-entropy of class c. Students differ in their targets :math:`a` alone, so that the
Hessians of all of them come from one matrix product and one batched solve. The loss is convex for any real targets that
sum to one in each row, negative ones included; other targets give it directions of negative curvature, which the
step below avoids by solving with a shifted Hessian.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from skfairdp._base import dense, dense_blocks
from skfairdp._validation import warn_user
from skfairdp.ensemble._teachers import check_weighable, fit_with_weights, takes_sparse
from skfairdp.mechanisms import VoteMechanism, soft_labels
from skfairdp.random import RandomStream, clone_with_seed, random_stream

_ARMIJO = 1e-4  # share of the promised decrease that a step must reach, as is usual for Newton's method
_LARGEST_SLOPE = 1e-10  # entry of the gradient at which Newton's method is done
_MOST_STEPS = 200  # of Newton's method
_MOST_HALVINGS = 40  # of a step; what is left of it then is below the last digit
_MOST_PRODUCTS = 1 << 24  # numbers held for the products of all rows; beyond, Hessians are summed one by one
_MOST_PARAMETERS = 1500  # of one student; beyond, a Hessian costs more than the steps that it saves


class ClippedScaler(TransformerMixin, BaseEstimator):
    """Standardises rows, dense or sparse, and moves values far from the mean to ``limit`` standard deviations from it.

    A category that one row in 2,500 has is 50 standard deviations away. Without a limit, the student learns the noise
    on the labels of the few rows that have it, and those who have it pay. What comes out is dense: scikit-learn's own
    scaler leaves the mean of sparse columns where it is, and a student would then depend on the container of its rows.

    Parameters
    ----------
    limit : float, default=3.0
        Standard deviations; ``inf`` moves nothing.
    """

    _row_wise_methods: ClassVar[dict] = {"transform": ()}

    def __init__(self, limit: float = 3.0):
        self.limit = limit

    def fit(self, X: Any, y: Any = None) -> "ClippedScaler":
        """Learn mean and scale, without a dense copy of sparse rows."""
        X = validate_data(self, X, dtype=np.float64, accept_sparse="csr")
        found = StandardScaler(with_mean=not sparse.issparse(X)).fit(X)  # it computes the means of sparse columns too
        self.mean_, self.scale_ = found.mean_, found.scale_
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return an array."""
        check_is_fitted(self)
        X = dense(validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False))
        return np.clip((X - self.mean_) / self.scale_, -self.limit, self.limit)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _Student(ClassifierMixin, BaseEstimator, ABC):
    """What students share: they learn from class weights, and answer with probabilities."""

    classes_: np.ndarray

    def fit(self, X: Any, y: Any) -> "_Student":
        """Fit to labels, one class each."""
        classes, indices = np.unique(y, return_inverse=True)
        return self.fit_targets(X, np.eye(len(classes))[indices], classes)

    def fit_targets(
        self, X: Any, targets: np.ndarray, classes: np.ndarray, stream: RandomStream | None = None
    ) -> "_Student":
        """Fit to class weights of shape (n_samples, n_classes)."""
        self._learn(dense(validate_data(self, X, dtype=np.float64, accept_sparse="csr")), targets, stream)
        self.classes_ = np.asarray(classes)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        return np.concatenate([self._probabilities(rows) for _, rows in dense_blocks(X)])

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    @abstractmethod
    def _learn(self, X: np.ndarray, targets: np.ndarray, stream: RandomStream | None) -> None:
        """Fit to class weights, with randomness from the stream if there is one."""

    @abstractmethod
    def _probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Return class probabilities."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class LogisticStudent(_Student):
    """Multinomial logistic regression on soft targets, solved to the optimum.

    Parameters
    ----------
    regularization : float
        Strength of the L2 penalty on coefficients and intercept, beside the mean loss.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        One row for two classes, the log odds of the second; else one for each class.
    """

    _row_wise_methods: ClassVar[dict] = {"predict": (), "predict_proba": ()}

    def __init__(self, regularization: float = 0.1):
        self.regularization = regularization

    def _learn(self, X: np.ndarray, targets: np.ndarray, stream: RandomStream | None) -> None:
        theta = solve_students(X, targets[None], self.regularization)[0]
        self.coef_, self.intercept_ = theta[:, :-1], theta[:, -1]

    @property
    def theta_(self) -> np.ndarray:
        """Coefficients with the intercept last, as ``solve_students`` has them."""
        return np.column_stack([self.coef_, self.intercept_])

    def _probabilities(self, rows: np.ndarray) -> np.ndarray:
        return student_probabilities(self.theta_[None], rows)[0]


class NetworkStudent(_Student):
    """A small network on soft targets.

    Parameters
    ----------
    hidden_sizes, max_epochs, batch_size, learning_rate
        Of the network and of Adam.
    regularization : float
        Strength of the L2 penalty on the weights, beside the mean loss.
    random_state : int, Generator, SeedSequence, RandomState or None
        For initial weights and the order of rows, unless ``fit_targets`` is given a stream.
    """

    _row_wise_methods: ClassVar[dict] = {"predict": (), "predict_proba": ()}

    def __init__(
        self,
        hidden_sizes: tuple[int, ...] = (32, 16),
        max_epochs: int = 50,
        batch_size: int = 32,
        learning_rate: float = 0.01,
        regularization: float = 0.001,
        random_state: Any = None,
    ):
        self.hidden_sizes = hidden_sizes
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.regularization = regularization
        self.random_state = random_state

    def _learn(self, X: np.ndarray, targets: np.ndarray, stream: RandomStream | None) -> None:
        networks = self.get_params()
        random_state, regularization = networks.pop("random_state"), networks.pop("regularization")
        stream = random_stream(random_state) if stream is None else stream
        self.network_ = train_network_students(X, targets[None], networks, regularization, stream)

    def _probabilities(self, rows: np.ndarray) -> np.ndarray:
        return softmax(self.network_.logits(rows)[0].astype(np.float64), axis=1)


def train_network_students(
    X: np.ndarray, targets: np.ndarray, networks: dict[str, Any], regularization: float, stream: RandomStream
) -> Any:
    """Train one network per set of targets on shared rows; returns a NetworkEnsemble."""
    from skfairdp.neural import train_ensemble

    return train_ensemble(
        X[None],
        targets,
        np.ones(targets.shape[:2], dtype=bool),
        **networks,
        weight_decay=2 * regularization,  # the gradient of regularization * |theta|^2
        stream=stream,
    )


def fit_student(
    X: Any,
    targets: np.ndarray,
    classes: np.ndarray,
    *,
    student: Any,
    regularization: float,
    networks: dict[str, Any],
    scaler: Any,
    stream: RandomStream,
) -> Pipeline:
    """Train the student on released labels; the pipeline takes rows as the user has them.

    Parameters
    ----------
    X : ndarray, DataFrame or sparse matrix of shape (n_samples, n_features)
        Public rows that were answered.
    targets : ndarray of shape (n_samples, n_classes)
        Class weights.
    classes : ndarray
        Class labels.
    student : {"logistic", "network"} or classifier
        What to train.
    regularization, networks
        Of the two named kinds.
    scaler : fitted transformer or None
        Put in front of the student.
    stream : RandomStream
        For initial weights, and for the random state of a classifier.

    Returns
    -------
    Pipeline
    """
    rows = X if scaler is None else scaler.transform(X)
    model: Any
    if len(classes) == 1:
        model = DummyClassifier(strategy="prior").fit(rows, np.repeat(classes, len(targets)))
    elif isinstance(student, str) and student == "logistic":
        model = LogisticStudent(regularization).fit_targets(rows, targets, classes)
    elif isinstance(student, str):
        model = NetworkStudent(**networks, regularization=regularization).fit_targets(rows, targets, classes, stream)
    else:
        model = fit_weighted(clone_with_seed(student, stream.seed(), overwrite=True), rows, targets, classes)
    return make_pipeline(model) if scaler is None else make_pipeline(scaler, model)


def rehearse_student(X: Any, classes: np.ndarray, labels: str, *, student: Any, scaler: Any, **teach: Any) -> None:
    """Train a classifier that the user brought on made-up labels, so that it fails before anything is paid for.

    Parameters
    ----------
    X : ndarray, DataFrame or sparse matrix of shape (n_samples, n_features)
        Public rows.
    classes : ndarray
        Class labels.
    labels : {"soft", "hard", "confident"}
        What the student will learn from.
    student, scaler, **teach
        As in :func:`fit_student`.
    """
    if isinstance(student, str) or len(classes) == 1:
        return
    if sparse.issparse(X) and scaler is None and not takes_sparse(student):
        raise ValueError(
            f"student must take sparse rows where X is sparse and scale=None; {type(student).__name__} does not. Use "
            "scale='clipped' (which makes rows dense, some at a time) or student='logistic', or put a step that "
            "returns arrays in front (OneHotEncoder(sparse_output=False), TruncatedSVD(...))."
        )
    targets = np.eye(len(classes))[np.arange(X.shape[0]) % len(classes)]
    if labels == "soft":
        targets = 0.5 * targets + 0.5 / len(classes)
    fit_student(X, targets, classes, student=student, scaler=scaler, stream=random_stream(0), **teach)


def student_targets(released: np.ndarray, labels: str, n_classes: int, n_voting: int, postprocess: str) -> np.ndarray:
    """Turn what was released into class weights for the student; shape (..., n_classes)."""
    if labels == "soft":
        return soft_labels(released, n_voting, postprocess)
    return np.eye(n_classes)[released]


def warn_if_nothing_was_learned(
    answers: np.ndarray, targets: np.ndarray, classes: np.ndarray, mechanism: VoteMechanism
) -> None:
    """Warn of a student that is no better than a constant, by what has been released already: this tells nothing new.

    Parameters
    ----------
    answers : ndarray of shape (n_answered,)
        What the student says about the public rows that it has learned from.
    targets : ndarray of shape (n_answered, n_classes)
        The noisy labels that it has learned.
    classes : ndarray
        Class labels.
    mechanism : VoteMechanism
        Says how much noise there was.
    """
    if len(classes) < 2:
        return
    # By weight, not by the largest one: what noise does to single soft labels averages out.
    given = targets[np.arange(len(targets)), np.searchsorted(classes, answers)]
    agreement, shares = float(given.mean()), targets.mean(axis=0)
    if agreement > shares.max():
        return
    if len(np.unique(answers)) == 1:
        finding = f"says {answers.tolist()[0]!r} about each of the {len(answers)} public rows that it has learned from"
    else:
        finding = (
            f"agrees with {agreement:.0%} of the noisy labels that it has learned from, no more than a constant answer "
            f"would ({shares.max():.0%})"
        )
    warn_user(
        f"the student {finding}. The noise on each count of votes has scale {mechanism.noise_scale:.3g}, for "
        f"{mechanism.n_voting} teachers: raise epsilon, or give more private rows and with them teachers.",
        ConvergenceWarning,
    )


def fit_weighted(model: Any, X: Any, targets: np.ndarray, classes: np.ndarray) -> Any:
    """Train any classifier on class weights: a copy of each row for each class, with its weight.

    Parameters
    ----------
    model : classifier
        Fitted in place.
    X : array-like of shape (n_samples, n_features)
        Rows.
    targets : ndarray of shape (n_samples, n_classes)
        Class weights, not negative.
    classes : ndarray
        Class labels.

    Returns
    -------
    classifier
        A constant one where a single class has weight, which most classifiers refuse to learn from.
    """
    row, column = np.nonzero(targets)
    weight = targets[row, column]
    X = X.iloc[row] if hasattr(X, "iloc") else X[row]
    y = classes[column]
    if len(np.unique(column)) == 1:
        return DummyClassifier(strategy="prior").fit(X, y)
    if (weight == 1).all():
        return model.fit(X, y)
    check_weighable(model, "student", "learn from soft labels (labels='hard' need no weights)")
    return fit_with_weights(model, X, y, weight)


def solve_students(X: np.ndarray, targets: np.ndarray, regularization: float) -> np.ndarray:
    """Fit one logistic student per set of targets.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Features shared by all students, without a column of ones.
    targets : ndarray of shape (n_students, n_samples, n_classes)
        Soft labels.
    regularization : float
        Strength lambda of the L2 penalty, greater than 0.

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
        return _solve_students(np.ascontiguousarray(coordinates.T), targets, regularization) @ basis.T
    return _solve_students(design, targets, regularization)


def _solve_students(design: np.ndarray, targets: np.ndarray, regularization: float) -> np.ndarray:
    n_students, _, n_classes = targets.shape
    n_outputs = 1 if n_classes == 2 else n_classes
    theta = np.zeros((n_students, n_outputs, design.shape[1]))
    if theta[0].size > _MOST_PARAMETERS:
        return np.stack([_minimise_one_student(theta[0], design, one, regularization) for one in targets])
    products = None
    if design.size * design.shape[1] <= _MOST_PRODUCTS:
        # Outer product of each row with itself, flattened: one matrix product then gives every Hessian.
        products = np.einsum("ni,nj->nij", design, design).reshape(len(design), -1)
    convex = bool((_sum_over_classes(targets) >= 0).all())
    value, slope, curvature = _student_derivatives(theta, design, products, targets, regularization)
    for _ in range(_MOST_STEPS):
        going = np.abs(slope).max(axis=(1, 2)) > _LARGEST_SLOPE
        if not going.any():
            break
        step = _newton_step(slope[going], curvature[going], convex)
        moved = _line_search(theta[going], step, value[going], slope[going], design, targets[going], regularization)
        if np.array_equal(moved, theta[going]):  # the last digit is reached
            break
        theta[going] = moved
        value[going], slope[going], curvature[going] = _student_derivatives(
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


def _student_losses(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    if logits.shape[-1] == 1:
        h = logits[..., 0]
        return -_sum_over_classes(targets) * log_expit(-h) - targets[..., 1] * h
    return _sum_over_classes(targets) * logsumexp(logits, axis=-1) - (targets * logits).sum(axis=-1)


def _sum_over_classes(targets: np.ndarray) -> np.ndarray:
    """Sum over classes; for two of them NumPy's own sum along so short an axis takes ten times as long."""
    return targets[..., 0] + targets[..., 1] if targets.shape[-1] == 2 else targets.sum(axis=-1)


def _minimise_one_student(
    start: np.ndarray, design: np.ndarray, targets: np.ndarray, regularization: float
) -> np.ndarray:
    """Solve one student with many parameters by a quasi-Newton method."""

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        theta = flat.reshape(1, *start.shape)
        value, slope = _value_and_slope(theta, design, targets[None], regularization)[:2]
        return float(value[0]), slope.ravel()

    # A factor of 1 in ftol is the last digit of the objective: the gradient alone decides when to stop.
    options = {"maxiter": 20_000, "maxfun": 50_000, "gtol": 1e-9, "ftol": np.finfo(float).eps, "maxcor": 30}
    return minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(start.shape)


def _student_objective(theta: np.ndarray, design: np.ndarray, targets: np.ndarray, regularization: float) -> np.ndarray:
    logits = np.einsum("rcp,np->rnc", theta, design, optimize=True)
    return _student_losses(logits, targets).mean(axis=1) + regularization * np.square(theta).sum(axis=(1, 2))


def _value_and_slope(
    theta: np.ndarray, design: np.ndarray, targets: np.ndarray, regularization: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value and gradient of each student's objective, and the probabilities on which they rest."""
    logits = np.einsum("rcp,np->rnc", theta, design, optimize=True)
    value = _student_losses(logits, targets).mean(axis=1) + regularization * np.square(theta).sum(axis=(1, 2))
    total = _sum_over_classes(targets)[..., None]
    if theta.shape[1] == 1:
        p = expit(logits)
        residual = total * p - targets[..., 1:]
    else:
        p = softmax(logits, axis=2)
        residual = total * p - targets
    slope = np.einsum("rnc,np->rcp", residual, design, optimize=True) / len(design) + 2 * regularization * theta
    return value, slope, p


def _student_derivatives(
    theta: np.ndarray, design: np.ndarray, products: np.ndarray | None, targets: np.ndarray, regularization: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value, gradient and Hessian of each student's objective."""
    n_students, n_outputs, width = theta.shape
    value, slope, p = _value_and_slope(theta, design, targets, regularization)
    total = _sum_over_classes(targets)[..., None]
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
    if convex or _positive_definite(curvature):
        return -np.linalg.solve(curvature, flat).reshape(slope.shape)
    values, vectors = np.linalg.eigh(curvature)
    lifted = np.maximum(np.abs(values), 1e-6 * np.abs(values).max(axis=1, keepdims=True))
    return -(vectors @ ((np.swapaxes(vectors, 1, 2) @ flat) / lifted[..., None])).reshape(slope.shape)


def _positive_definite(curvature: np.ndarray) -> bool:
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
        reached = _student_objective(trial, design, targets[waiting], regularization)
        limit = value[waiting] + _ARMIJO * length[waiting] * promised[waiting] + slack[waiting]
        waiting = waiting[~(reached <= limit)]
        if not waiting.size:
            break
        length[waiting] /= 2
    length[waiting] = 0.0
    return theta + length[:, None, None] * step
