"""Speed of PATE: teachers and students trained all at once against one by one, and the bound for many queries."""

import warnings
from time import perf_counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from benchmarks import Quantities, Timings, case
from skfairdp.accounting import gnmax_data_dependent_epsilon
from skfairdp.ensemble._students import solve_students
from skfairdp.mechanisms import soft_labels
from skfairdp.neural import limit_threads, train_ensemble
from skfairdp.random import random_stream

N_TEACHERS, N_ROWS, N_FEATURES = 150, 22_500, 23
EPOCHS, BATCH, RATE, DECAY = 30, 32, 0.005, 1e-4
PEERS = 10  # teachers that the slow side trains; times are per teacher


def _parts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_TEACHERS, N_ROWS // N_TEACHERS, N_FEATURES))
    y = (X[..., 0] + X[..., 1] * X[..., 2] + rng.normal(size=X.shape[:2]) > 0).astype(int)
    return X, y


def _one_by_one(X, y, hidden_sizes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # both sides stop after the same number of epochs
        return [
            MLPClassifier(
                hidden_sizes,
                batch_size=BATCH,
                max_iter=EPOCHS,
                n_iter_no_change=EPOCHS,
                learning_rate_init=RATE,
                random_state=i,
            ).fit(X[i], y[i])
            for i in range(PEERS)
        ]


def _at_once(X, y, hidden_sizes):
    return train_ensemble(
        X,
        np.eye(2)[y],
        np.ones(y.shape, dtype=bool),
        hidden_sizes=hidden_sizes,
        max_epochs=EPOCHS,
        batch_size=BATCH,
        learning_rate=RATE,
        weight_decay=DECAY,
        stream=random_stream(0),
    )


def _teachers(hidden_sizes) -> Timings:
    X, y = _parts()
    return Timings(
        ours=lambda: _at_once(X, y, hidden_sizes),
        other=lambda: _one_by_one(X, y, hidden_sizes),
        ours_work=N_TEACHERS,
        other_work=PEERS,
        repeats=3,
    )


@case("pate", "150 teachers (32, 16), 22,500 x 23, 30 epochs, against a loop of MLPClassifier", speedup_at_least=12)
def default_teachers():
    return _teachers((32, 16))


@case("pate", "150 teachers (50, 50), 22,500 x 23, 30 epochs, against a loop of MLPClassifier", speedup_at_least=5)
def wider_teachers():
    return _teachers((50, 50))


@case("pate", "accuracy of 10 teachers on new rows, against MLPClassifier", shortfall_at_most=0.01)
def teachers_learn_as_well():
    X, y = _parts()
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(5000, N_FEATURES))
    truth = rows[:, 0] + rows[:, 1] * rows[:, 2] > 0
    theirs = np.mean([model.score(rows, truth) for model in _one_by_one(X, y, (32, 16))])
    with limit_threads(1):
        ours = float((_at_once(X, y, (32, 16)).predict(rows)[:PEERS] == truth).mean())
    return Quantities(ours=ours, other=float(theirs))


def _noisy_labels(kind: str):
    """One hundred repetitions of noisy labels on 200 rows, and the logistic regression that has the same optimum."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, N_FEATURES))
    share = 1 / (1 + np.exp(-X[:, 0] - X[:, 1]))
    votes = np.rint(150 * np.column_stack([1 - share, share]))
    noisy = votes + 30 * rng.normal(size=(100, 200, 2))
    if kind == "hard":
        return X, np.eye(2)[noisy.argmax(axis=2)]
    return X, soft_labels(noisy, 150, "simplex")  # weights of scikit-learn's rows must not be negative


def _loop(X, targets, strength):
    """Fit scikit-learn's logistic regression: the intercept penalised as a column of ones, rows as weighted copies."""
    design = np.column_stack([X, np.ones(len(X))])
    settings = {"C": 1 / (2 * strength * len(X)), "fit_intercept": False, "tol": 1e-8, "max_iter": 1000}
    found = []
    for one in targets:
        row, label = np.nonzero(one)
        model = LogisticRegression(**settings).fit(design[row], label, sample_weight=one[row, label])
        found.append(model.coef_)
    return np.stack(found)


def _students(kind: str) -> Timings:
    X, targets = _noisy_labels(kind)
    np.testing.assert_allclose(solve_students(X, targets, 0.1), _loop(X, targets, 0.1), atol=2e-5)
    return Timings(ours=lambda: solve_students(X, targets, 0.1), other=lambda: _loop(X, targets, 0.1), repeats=3)


@case("pate", "100 logistic students on hard labels, against a loop of LogisticRegression", speedup_at_least=10)
def hard_students():
    return _students("hard")


@case("pate", "100 logistic students on soft labels, against a loop of LogisticRegression", speedup_at_least=10)
def soft_students():
    return _students("soft")


@case("pate", "data-dependent bound for 10,000 queries: seconds", at_most=1.2)
def data_dependent_bound():
    rng = np.random.default_rng(0)
    votes = rng.multinomial(250, [0.7, 0.1, 0.1, 0.05, 0.05], size=10_000)
    seconds = []
    for _ in range(3):
        start = perf_counter()
        gnmax_data_dependent_epsilon(votes, 40.0, 1e-6)
        seconds.append(perf_counter() - start)
    return Quantities(ours=float(np.median(seconds)))
