"""Models of other libraries that an audit compares, in the form that it can train."""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp._validation import check_delta, check_epsilon, check_public_rows
from skfairdp.dp import REPLACE_ONE_RECORD, ChargingMixin, PrivacyGuarantee
from skfairdp.random import noise_stream

#: What the receipt of DP-SGD leaves open. Its price is not ours.
_OPACUS_CLAIM = "whether the epsilon holds: Opacus claims it, and nobody has proved or audited it here"
_OPACUS_NOISE = "exact draws: Opacus adds floating-point noise from a generator of torch, which is no cryptographic one"
_OPACUS_SCOPE = (
    "public rows, by which features are standardised",
    "which class labels occur, and the number of records",
    "a person with several records",
)


def boosted_trees(n_rows: int) -> HistGradientBoostingClassifier:
    """Return boosted trees for a training table of so many rows.

    scikit-learn's hundred trees of 31 leaves are too many for a small table. With eight leaves and forty trees, ten
    samples of 500 rows gave better answers on Adult (84.0 against 82.9 % right), Credit card (80.3 against 78.5), Bank
    (88.1 against 87.2) and CelebA (84.1 against 82.8), at a quarter of the time; with 2,000 rows as well. From 5,000
    rows on a hundred trees of eight leaves are as good or better than either.
    """
    return HistGradientBoostingClassifier(
        learning_rate=0.1,
        max_iter=40 if n_rows < 3000 else 100,
        max_leaf_nodes=8 if n_rows < 10_000 else 31,
        min_samples_leaf=20,
        early_stopping="auto",
    )


class FairlearnClassifier(ClassifierMixin, BaseEstimator):
    """Logistic regression under fairlearn's reduction, for labels of any kind and groups that are routed.

    ``fairlearn.reductions.ExponentiatedGradient`` wants the labels 0 and 1, and takes the groups inside ``**kwargs``,
    where scikit-learn cannot route them.

    Parameters
    ----------
    pos_label : label or None, default=None
        The class whose rates are made equal; None is the larger label.
    fairness : {"equal_opportunity", "equalized_odds", "demographic_parity"}, default="equal_opportunity"
        Which rates.
    difference_bound : float, default=0.01
        The gap that is allowed on the training rows.
    random_state : int or None, default=None
        Its predictions are drawn at random among several linear models.
    """

    def __init__(
        self,
        pos_label: Any = None,
        *,
        fairness: str = "equal_opportunity",
        difference_bound: float = 0.01,
        random_state: Any = None,
    ):
        self.pos_label = pos_label
        self.fairness = fairness
        self.difference_bound = difference_bound
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> "FairlearnClassifier":
        """Train a linear model under the constraint of equal rates."""
        from fairlearn import reductions

        self.classes_ = _two_classes(y, self.pos_label, "fairlearn's reduction")
        constraint = {
            "equal_opportunity": reductions.TruePositiveRateParity,
            "equalized_odds": reductions.EqualizedOdds,
            "demographic_parity": reductions.DemographicParity,
        }[self.fairness](difference_bound=self.difference_bound)
        self.reduction_ = reductions.ExponentiatedGradient(LogisticRegression(max_iter=1000), constraint)
        with _quiet_fairlearn():
            self.reduction_.fit(X, np.asarray(y) == self.classes_[1], sensitive_features=sensitive_features)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class under the drawing of models; columns as in ``classes_``."""
        weights = self.reduction_.weights_
        models = self.reduction_.predictors_
        positive = sum(weight * models[k].predict(X) for k, weight in weights.items() if weight > 0)
        return np.column_stack([1 - positive, positive])

    def predict(self, X: Any) -> np.ndarray:
        """Draw a label of each row; the same seed draws the same."""
        return self.classes_[np.asarray(self.reduction_.predict(X, random_state=self.random_state)).astype(int)]


class ThresholdOptimizerClassifier(ClassifierMixin, BaseEstimator):
    """Boosted trees with a threshold for each group, by fairlearn's ``ThresholdOptimizer``.

    It must be told everybody's group to predict, and takes it as further columns of its rows.

    Parameters
    ----------
    preparation : transformer
        Turns the other columns into numbers.
    group_columns : sequence of str
        Columns that tell the group.
    fairness : {"equal_opportunity", "equalized_odds", "demographic_parity"}, default="equal_opportunity"
        Which rates are made equal.
    pos_label : label or None, default=None
        The class whose rates are made equal; None is the larger label.
    random_state : int or None, default=None
        Predictions between two thresholds are drawn at random.
    """

    def __init__(
        self,
        preparation: Any,
        group_columns: Sequence[str],
        *,
        fairness: str = "equal_opportunity",
        pos_label: Any = None,
        random_state: Any = None,
    ):
        self.preparation = preparation
        self.group_columns = group_columns
        self.fairness = fairness
        self.pos_label = pos_label
        self.random_state = random_state

    def fit(self, X: pd.DataFrame, y: Any) -> "ThresholdOptimizerClassifier":
        """Train the trees on seven tenths of the rows, and find the thresholds on the others."""
        from fairlearn.postprocessing import ThresholdOptimizer

        self.classes_ = _two_classes(y, self.pos_label, "fairlearn's ThresholdOptimizer")
        self.feature_names_in_ = np.array(X.columns, dtype=object)
        constraint = {
            "equal_opportunity": "true_positive_rate_parity",
            "equalized_odds": "equalized_odds",
            "demographic_parity": "demographic_parity",
        }[self.fairness]
        y = (np.asarray(y) == self.classes_[1]).astype(int)
        # Trees are too sure of rows that they were trained on: thresholds are found on others.
        fit, held_out = train_test_split(np.arange(len(y)), test_size=0.3, random_state=0, stratify=y)
        trees = boosted_trees(len(fit)).set_params(random_state=0)
        model = Pipeline([("prepare", clone(self.preparation)), ("trees", trees)])
        model.fit(self._without_groups(X.iloc[fit]), y[fit])
        self.optimizer_ = ThresholdOptimizer(
            estimator=model, constraints=constraint, predict_method="predict_proba", prefit=True
        )
        with _quiet_fairlearn():
            rows = X.iloc[held_out]
            self.optimizer_.fit(self._without_groups(rows), y[held_out], sensitive_features=self._groups(rows))
        return self

    def _groups(self, X: pd.DataFrame) -> np.ndarray:
        return X[list(self.group_columns)].astype(str).agg(" x ".join, axis=1).to_numpy()

    def _without_groups(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.drop(columns=list(self.group_columns))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the probability that each class is answered; columns as in ``classes_``."""
        rows, groups = self._without_groups(X), self._groups(X)
        score = self.optimizer_.estimator_.predict_proba(rows)[:, 1]
        positive = np.zeros(len(rows))
        for group, rule in self.optimizer_.interpolated_thresholder_.interpolation_dict.items():
            here = groups == group
            answer = sum(rule[f"p{k}"] * np.asarray(rule[f"operation{k}"](score[here])) for k in (0, 1))
            ignored = rule.get("p_ignore", 0.0)
            positive[here] = ignored * rule.get("prediction_constant", 0.0) + (1 - ignored) * answer
        return np.column_stack([1 - positive, positive])

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Draw a label of each row; the same seed draws the same."""
        drawn = np.random.default_rng(self.random_state).random(len(X))
        return self.classes_[(drawn < self.predict_proba(X)[:, 1]).astype(int)]


class OpacusClassifier(ChargingMixin, ClassifierMixin, BaseEstimator):
    """A small network trained by DP-SGD, by Opacus, for private rows beside public ones.

    Opacus's claim is about a record that is added or removed. Replacing one is both, so that (epsilon / 2, delta /
    (1 + exp(epsilon / 2))) is asked of it for a receipt of (epsilon, delta) about replaced records, as PATE's is.

    Parameters
    ----------
    epsilon : float, default=1.0
        Of the receipt; finite.
    delta : float, default=1e-5
        Of the receipt.
    hidden_sizes : tuple of int, default=(32, 16)
        Layers before the last one.
    max_epochs : int, default=20
        Passes over the rows.
    learning_rate : float, default=0.01
        Adam's.
    max_grad_norm : float, default=1.0
        Length to which the gradient of each row is cut.
    random_state : int or None, default=None
        Of first weights, sampling and noise; None takes the operating system's.
    """

    _protects_fitted_rows = True

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        *,
        hidden_sizes: tuple[int, ...] = (32, 16),
        max_epochs: int = 20,
        learning_rate: float = 0.01,
        max_grad_norm: float = 1.0,
        random_state: Any = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.hidden_sizes = hidden_sizes
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.max_grad_norm = max_grad_norm
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, public: Any) -> "OpacusClassifier":
        """Pay, then train on private rows that are standardised by the public ones."""
        from skfairdp.neural import train_by_opacus

        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta)
        if math.isinf(epsilon):
            raise ValueError("dp-sgd needs a finite epsilon; without privacy, take 'unconstrained'.")
        check_public_rows(X, public)
        self.scaler_ = StandardScaler().fit(public)
        rows = self.scaler_.transform(X)
        self.classes_, indices = np.unique(y, return_inverse=True)
        stream = noise_stream(self.random_state)
        guarantee = PrivacyGuarantee(
            epsilon,
            delta,
            mechanism=f"DP-SGD, as claimed by Opacus {version('opacus')}",
            neighbours=REPLACE_ONE_RECORD,
            does_not_cover=(_OPACUS_CLAIM, _OPACUS_NOISE, *_OPACUS_SCOPE),
        ).with_seed(stream.identity)
        self._charge(guarantee)
        self.layers_ = train_by_opacus(
            rows,
            indices,
            len(self.classes_),
            epsilon=epsilon / 2,
            delta=delta / (1 + math.exp(epsilon / 2)),
            hidden_sizes=self.hidden_sizes,
            batch_size=256 if len(rows) < 10_000 else 512,
            max_epochs=self.max_epochs,
            learning_rate=self.learning_rate,
            max_grad_norm=self.max_grad_norm,
            stream=stream,
        )
        self.privacy_ = guarantee
        return self

    def _learned_without_noise(self) -> None:
        """Say that nothing is learned from private rows without noise."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class; columns as in ``classes_``."""
        values = self.scaler_.transform(X)
        for weight, bias in self.layers_[:-1]:
            values = np.tanh(values @ weight + bias)
        weight, bias = self.layers_[-1]
        return softmax(values @ weight + bias, axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """Return the likelier label of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _two_classes(y: Any, pos_label: Any, who: str) -> np.ndarray:
    """Return both classes, the positive one last."""
    labels = np.unique(y).tolist()
    if len(labels) != 2:
        raise ValueError(f"{who} knows two classes; the target has {len(labels)}.")
    positive = labels[1] if pos_label is None else pos_label
    return np.array([label for label in labels if label != positive] + [positive])


@contextmanager
def _quiet_fairlearn() -> Iterator[None]:
    with warnings.catch_warnings():  # how fairlearn calls pandas is not the reader's concern
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        yield
