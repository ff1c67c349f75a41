"""Students: what may be trained on released labels and shipped alone."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from skfairdp.ensemble._logistic_students import solve_students, student_probabilities
from skfairdp.ensemble._teachers import NetworkSettings
from skfairdp.mechanisms import soft_labels
from skfairdp.random import RandomStream, clone_with_seed, random_stream


class LogisticStudent(ClassifierMixin, BaseEstimator):
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

    def __init__(self, regularization: float = 0.1):
        self.regularization = regularization

    def fit(self, X: Any, y: Any) -> "LogisticStudent":
        """Fit to labels, one class each."""
        classes, codes = np.unique(y, return_inverse=True)
        return self.fit_targets(X, np.eye(len(classes))[codes], classes)

    def fit_targets(self, X: Any, targets: np.ndarray, classes: np.ndarray) -> "LogisticStudent":
        """Fit to class weights of shape (n_samples, n_classes)."""
        X = validate_data(self, X, dtype=np.float64)
        theta = solve_students(X, targets[None], self.regularization)[0]
        self.coef_, self.intercept_, self.classes_ = theta[:, :-1], theta[:, -1], np.asarray(classes)
        return self

    @property
    def theta_(self) -> np.ndarray:
        """Coefficients with the intercept last, as ``solve_students`` has them."""
        return np.column_stack([self.coef_, self.intercept_])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities."""
        check_is_fitted(self)
        return student_probabilities(self.theta_[None], validate_data(self, X, dtype=np.float64, reset=False))[0]

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class NetworkStudent(ClassifierMixin, BaseEstimator):
    """A small network on soft targets.

    Parameters
    ----------
    hidden_sizes, max_epochs, batch_size, learning_rate
        Of the network and of Adam.
    regularization : float
        Strength of the L2 penalty on the weights, beside the mean loss.
    random_state : int, Generator, SeedSequence, RandomState or None
        For initial weights and the order of rows.
    """

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

    def fit(self, X: Any, y: Any) -> "NetworkStudent":
        """Fit to labels, one class each."""
        classes, codes = np.unique(y, return_inverse=True)
        return self.fit_targets(X, np.eye(len(classes))[codes], classes, random_stream(self.random_state))

    def fit_targets(self, X: Any, targets: np.ndarray, classes: np.ndarray, stream: RandomStream) -> "NetworkStudent":
        """Fit to class weights of shape (n_samples, n_classes)."""
        X = validate_data(self, X, dtype=np.float64)
        settings = NetworkSettings(self.hidden_sizes, self.max_epochs, self.batch_size, self.learning_rate)
        self.network_ = train_network_students(X, targets[None], settings, self.regularization, stream)
        self.classes_ = np.asarray(classes)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities."""
        check_is_fitted(self)
        return network_probabilities(self.network_, validate_data(self, X, dtype=np.float64, reset=False))[0]

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def train_network_students(
    X: np.ndarray, targets: np.ndarray, networks: NetworkSettings, regularization: float, stream: RandomStream
) -> Any:
    """Train one network per set of targets on shared rows; returns a NetworkEnsemble."""
    from skfairdp.neural import train_ensemble

    return train_ensemble(
        X[None],
        targets,
        np.ones(targets.shape[:2], dtype=bool),
        hidden_sizes=networks.hidden_sizes,
        max_epochs=networks.max_epochs,
        batch_size=networks.batch_size,
        learning_rate=networks.learning_rate,
        weight_decay=2 * regularization,  # the gradient of regularization * |theta|^2
        stream=stream,
    )


def network_probabilities(network: Any, X: np.ndarray) -> np.ndarray:
    """Compute class probabilities; shape (n_members, n_samples, n_classes)."""
    from scipy.special import softmax

    return softmax(network.logits(X).astype(np.float64), axis=2)


def fit_student(
    X: np.ndarray | pd.DataFrame,
    targets: np.ndarray,
    classes: np.ndarray,
    *,
    student: Any,
    regularization: float,
    networks: NetworkSettings,
    scaler: Any,
    stream: RandomStream,
) -> Pipeline:
    """Train the student on released labels; the pipeline takes rows as the user has them.

    Parameters
    ----------
    X : ndarray or DataFrame of shape (n_samples, n_features)
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
        model = DummyClassifier(strategy="prior").fit(rows, np.repeat(classes, len(rows)))
    elif isinstance(student, str) and student == "logistic":
        model = LogisticStudent(regularization).fit_targets(rows, targets, classes)
    elif isinstance(student, str):
        model = NetworkStudent(
            networks.hidden_sizes, networks.max_epochs, networks.batch_size, networks.learning_rate, regularization
        ).fit_targets(rows, targets, classes, stream)
    else:
        model = fit_weighted(clone_with_seed(student, stream.seed(), overwrite=True), rows, targets, classes)
    return make_pipeline(model) if scaler is None else make_pipeline(scaler, model)


def rehearse_student(
    X: np.ndarray | pd.DataFrame, classes: np.ndarray, labels: str, *, student: Any, **teach: Any
) -> None:
    """Train a classifier that the user brought on made-up labels, so that it fails before anything is paid for.

    Parameters
    ----------
    X : ndarray or DataFrame of shape (n_samples, n_features)
        Public rows.
    classes : ndarray
        Class labels.
    labels : {"soft", "hard", "confident"}
        What the student will learn from.
    student, **teach
        As in :func:`fit_student`.
    """
    if isinstance(student, str) or len(classes) == 1:
        return
    targets = np.eye(len(classes))[np.arange(len(X)) % len(classes)]
    if labels == "soft":
        targets = 0.5 * targets + 0.5 / len(classes)
    fit_student(X, targets, classes, student=student, stream=random_stream(0), **teach)


def student_targets(released: np.ndarray, labels: str, n_classes: int, n_voting: int, postprocess: str) -> np.ndarray:
    """Turn what was released into class weights for the student; shape (..., n_classes)."""
    if labels == "soft":
        return soft_labels(released, n_voting, postprocess)
    return np.eye(n_classes)[released]


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
    if not has_fit_parameter(model, "sample_weight"):
        raise ValueError(
            f"student must accept sample_weight in fit to learn from soft labels, which {type(model).__name__} "
            "does not; choose another student, or labels='hard'."
        )
    return model.fit(X, y, sample_weight=weight)
