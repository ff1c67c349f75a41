"""Train one model, measure its predictions, and attack what it gives away."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from skfairdp import exceptions
from skfairdp.dp import PrivacyGuarantee
from skfairdp.metrics import leakage_report, online_code_length
from skfairdp.model_selection import route_sensitive_features
from skfairdp.pipeline import pipeline_guarantee
from skfairdp.postprocessing import FairPrivateClassifier
from skfairdp.table_audit._existing_decisions import positive_scores
from skfairdp.table_audit._judged_predictions import Answers
from skfairdp.table_audit._prepared_table import PreparedTable

#: Warnings that tell something about a method: of the model that is measured, they go into the report's notes. All
#: other warnings stay warnings.
FINDINGS = (
    ConvergenceWarning,
    exceptions.MissingSensitiveFeaturesWarning,
    exceptions.OverclaimedPrivacyWarning,
    exceptions.PrivacyLeakWarning,
    exceptions.SmallGroupWarning,
    exceptions.UndefinedGroupMetricWarning,
)


#: What a guarantee about the rows of ``fit`` leaves open, because the audit has looked at them before.
_UNCOVERED = (
    "how the table was read (which columns were left out, what counts as missing), and the choice between methods"
)
#: Attacked rows from which on a code length is that of a network.
_ENOUGH_FOR_A_NETWORK = 1000
#: Errors of a method by which it is left out of the comparison, with the reason. All others stop the audit.
_FAILURES = (ValueError, TypeError, ArithmeticError, RuntimeError, AttributeError)


@dataclass
class Predictions:
    """What a model answers about some rows, or the reason why it could not be trained."""

    answers: Any = None
    model: Any = None
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)
    guarantees: list[PrivacyGuarantee] = field(default_factory=list)
    failure: str | None = None


@dataclass
class Attack:
    """What attackers found in what a model gives away."""

    leakage: pd.DataFrame
    code_bits: float
    uniform_bits: float
    source: str
    findings: list[str]


@contextmanager
def collect_findings(findings: list[str]) -> Iterator[None]:
    """Turn warnings that are findings into sentences, and pass the others on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if issubclass(warning.category, FINDINGS):
            sentence = " ".join(str(warning.message).split())
            if sentence not in findings:
                findings.append(sentence)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def columns_for(table: PreparedTable, rows: np.ndarray, needs_groups: bool) -> pd.DataFrame:
    """Return rows with the columns that a model is given: the features, and the groups if it must be told them."""
    if not needs_groups:
        return table.X.iloc[rows]
    groups = table.sensitive.iloc[rows].set_axis(list(group_columns(table)), axis=1)
    return pd.concat([table.X.iloc[rows], groups], axis=1)


def group_columns(table: PreparedTable) -> tuple[str, ...]:
    """Name the sensitive columns as features: a column of the same name may be a feature already."""
    return tuple(f"{name} (group)" for name in table.sensitive)


class PipelineWithPublicRows(Pipeline):
    """Preparation of the columns, and a classifier that takes ``public`` rows beside the private ones of ``fit``.

    The preparation learns from the public rows alone: learned from private rows, it would tell of them.

    Parameters
    ----------
    steps : list of (str, estimator)
        Preparation and classifier. The classifier must have an int as ``random_state``.
    public_share : float
        Share of the rows of ``fit`` that are taken as public, at random.
    transform_input, memory, verbose
        As in scikit-learn's ``Pipeline``; ``transform_input=["public"]`` prepares the public rows for the classifier.
    """

    _runs_steps_as_pipeline = True  # for pipeline_guarantee: steps are those of a Pipeline, in the same order

    def __init__(
        self,
        steps: list,
        *,
        public_share: float = 0.25,
        transform_input: list[str] | None = None,
        memory: Any = None,
        verbose: bool = False,
    ):
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.public_share = public_share

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> "PipelineWithPublicRows":
        """Divide the rows, fit the preparation on the public ones, and the classifier on both."""
        order = np.random.default_rng(self[-1].random_state).permutation(len(X))  # looks at no value of a row
        n_public = max(1, round(self.public_share * len(X)))
        public, private = X.iloc[order[:n_public]], order[n_public:]
        self.steps[0] = (self.steps[0][0], FrozenEstimator(self[0].fit(public)))
        self[-1].set_fit_request(public=True)
        return super().fit(X.iloc[private], y[private], public=public)


#: Changes a fitted model into that of another method, in place; None leaves it as it was trained.
Adapt = Callable[[Any], None] | None


def prepare_fold(table: PreparedTable, fit: np.ndarray, valid: np.ndarray) -> tuple[Any, Any]:
    """Turn the columns of training and validation rows into numbers, as learned from the training rows."""
    preprocessor = table.preprocessor()
    return preprocessor.fit_transform(table.X.iloc[fit]), preprocessor.transform(table.X.iloc[valid])


def predict_out_of_fold(
    model: Any,
    table: PreparedTable,
    folds: list[tuple[np.ndarray, np.ndarray]],
    needs_groups: bool,
    adapts: Sequence[Adapt],
    prepared: list[tuple[Any, Any]] | None = None,
) -> list[Predictions]:
    """Predict each row by a copy of the model that was trained on the folds without it.

    Parameters
    ----------
    model : estimator
        Unfitted, and it stays so.
    table : PreparedTable
        The rows.
    folds : list of (ndarray, ndarray)
        Training and validation rows.
    needs_groups : bool
        Whether the model must be told the groups.
    adapts : sequence of callable or None
        What makes of the fitted copy the models of several methods, one after the other.
    prepared : list of (array, array), optional
        The columns of each fold as numbers, for a model that takes those. Without it, the model takes the columns of
        the table.

    Returns
    -------
    list of Predictions
        For each of ``adapts``: about all rows, and no model.
    """
    results = [Predictions() for _ in adapts]
    predicted = [np.empty(len(table.y), dtype=table.y.dtype) for _ in adapts]
    scores = [np.full(len(table.y), np.nan) for _ in adapts]
    with warnings.catch_warnings():
        for category in FINDINGS:  # they are about models that are thrown away
            warnings.simplefilter("ignore", category)
        for number, (fit, valid) in enumerate(folds):
            started = time.perf_counter()
            if prepared is None:
                X_fit, X_valid = (columns_for(table, rows, needs_groups) for rows in (fit, valid))
            else:
                X_fit, X_valid = prepared[number]
            with _failure_noted(results):
                trained = _fit(clone(model), X_fit, table, fit)
            for k, adapt in enumerate(adapts):
                with _failure_noted(results[k : k + 1]):
                    if results[k].failure is None:
                        found = _answers_of(trained, X_valid, table, valid, _about_scores(table), adapt)
                        predicted[k][valid] = found.predicted
                        scores[k][valid] = np.nan if found.scores is None else found.scores
                results[k].seconds += time.perf_counter() - started
    for k, result in enumerate(results):
        result.answers = Answers(
            np.arange(len(table.y)), predicted[k], scores[k] if np.isfinite(scores[k]).all() else None
        )
    return results


def _about_scores(table: PreparedTable) -> bool:
    return table.fairness == "calibration_gap"


def _fit(model: Any, X: Any, table: PreparedTable, rows: np.ndarray) -> Any:
    """Train on rows of the table, whose columns are ``X`` as the model takes them."""
    return model.fit(X, table.y[rows], **_groups_for_fit(model, table, rows))


def _answers_of(
    model: Any, X: Any, table: PreparedTable, rows: np.ndarray, with_scores: bool, adapt: Adapt = None
) -> Answers:
    """Let a model answer about rows of the table, whose columns are ``X`` as the model takes them."""
    if adapt is not None:
        adapt(model)
    predicted = np.asarray(model.predict(X))
    unknown = set(np.unique(predicted).tolist()) - set(table.classes)
    if unknown:
        raise ValueError(f"it predicts {unknown.pop()!r}, which is no class of {table.target!r}.")
    return Answers(rows, predicted, positive_scores(model, X, table) if with_scores else None)


@contextmanager
def _failure_noted(results: Sequence[Predictions]) -> Iterator[None]:
    """Switch metadata routing on, and turn the error of a method into one line for the report's notes."""
    try:
        with sklearn.config_context(enable_metadata_routing=True):
            yield
    except _FAILURES as error:
        for result in results:
            result.failure = " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _groups_for_fit(model: Any, table: PreparedTable, rows: np.ndarray) -> dict[str, Any]:
    """Return the sensitive features as an argument of ``fit``, if any step of the model takes them."""
    route_sensitive_features(model)
    routing = model.get_metadata_routing() if hasattr(model, "get_metadata_routing") else None
    if routing is not None and routing.consumes("fit", ["sensitive_features"]):
        return {"sensitive_features": table.sensitive.iloc[rows]}
    return {}


def representation_given_away(model: Any, X: pd.DataFrame) -> tuple[np.ndarray, str]:
    """Return what a model gives away of its rows, and what that is."""
    if hasattr(model, "transform"):
        return np.asarray(model.transform(X)), "the representation it releases"
    inner = model[-1] if hasattr(model, "steps") else None
    if inner is not None and hasattr(inner, "steps"):  # preparation, then a pipeline of its own
        prepared = model[:-1].transform(X)
        return np.asarray(inner[:-1].transform(prepared)), "the representation its last step sees"
    if isinstance(model if inner is None else inner, FairPrivateClassifier):  # even its probabilities are of an answer
        return _one_hot(model.predict(X)), "the answers it releases"
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X)), "its predicted probabilities"
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X)).reshape(len(X), -1), "its decision values"
    return _one_hot(model.predict(X)), "its predicted labels"


def _one_hot(labels: np.ndarray) -> np.ndarray:
    return pd.get_dummies(pd.Series(labels)).to_numpy(dtype=float)


def attack_representation(H: np.ndarray, source: str, sensitive: pd.DataFrame, seed: int) -> Attack:
    """Let every attacker try to read the groups from a representation."""
    # Of answers, one column each, a linear attacker learns all that can be known: what share of a group gives each.
    is_answer = np.isin(H, (0, 1)).all() and (H.sum(axis=1) == 1).all()
    # A code is learned from blocks that begin with a thousandth of the rows: too few for a network in a small table.
    coder = "linear" if is_answer or len(H) < _ENOUGH_FOR_A_NETWORK else "mlp"
    findings: list[str] = []
    with collect_findings(findings):
        report = leakage_report(H, sensitive, probe=["linear"] if is_answer else "pool", random_state=seed)
        length = online_code_length(H, sensitive, n_orders=1, probe=coder, random_state=seed)
    if is_answer:
        pairs = [part for _, part in report.groupby("attribute", sort=False)]
        report = pd.concat([row for part in pairs for row in (part, part.assign(attacker="strongest"))])
    return Attack(report.reset_index(drop=True), length.bits, length.uniform_bits, source, findings)


def attack_decisions(answers: Answers, rows: np.ndarray, sensitive: pd.DataFrame, seed: int) -> Attack:
    """Let every attacker try to read the groups from decisions or scores that are known of some rows."""
    told = answers.among(rows)
    if told.scores is not None:
        return attack_representation(told.scores[:, None], "its scores", sensitive.iloc[told.rows], seed)
    return attack_representation(_one_hot(told.predicted), "its decisions", sensitive.iloc[told.rows], seed)


def attack_model(model: Any, X: pd.DataFrame, sensitive: pd.DataFrame, seed: int) -> Attack:
    """Let every attacker try to read the groups from what a fitted model gives away of rows."""
    with sklearn.config_context(enable_metadata_routing=True):
        H, source = representation_given_away(model, X)
    return attack_representation(H, source, sensitive, seed)


def train_and_attack(
    model: Any,
    table: PreparedTable,
    train_rows: np.ndarray,
    test_rows: np.ndarray,
    attacked_rows: np.ndarray,
    needs_groups: bool,
    with_scores: bool,
    adapts: Sequence[Adapt],
    seed: int,
) -> list[tuple[Predictions, Attack | None]]:
    """Train on all training rows, predict the test rows, and attack what is given away of the attacked ones.

    For each of ``adapts``, one after the other. All is done in one process: a seeded model that travels to another one
    draws other noise there.
    """
    outcomes: list[tuple[Predictions, Attack | None]] = []
    first = Predictions()
    started = time.perf_counter()
    with _failure_noted([first]), collect_findings(first.findings):
        _fit(model, columns_for(table, train_rows, needs_groups), table, train_rows)
    for adapt in adapts:
        trained = Predictions(failure=first.failure, findings=list(first.findings))
        with _failure_noted([trained]), collect_findings(trained.findings):
            if trained.failure is None:
                if adapt is not None:
                    adapt(model)
                trained.seconds = time.perf_counter() - started
                X = columns_for(table, test_rows, needs_groups)
                trained.answers = _answers_of(model, X, table, test_rows, with_scores)
        if trained.failure is not None:
            outcomes.append((trained, None))
            continue
        X = columns_for(table, attacked_rows, needs_groups)
        attack = attack_model(model, X, table.sensitive.iloc[attacked_rows], seed)
        trained.guarantees = guarantees_of(model)  # here: a copy in another process has other noise, and says so
        trained.model = model if adapt is adapts[-1] else deepcopy(model)  # the next method changes it
        outcomes.append((trained, attack))
    return outcomes


def guarantees_of(model: Any) -> list[PrivacyGuarantee]:
    """Say what a whole model costs: rows that it was fitted on where it protects those, else rows that it is given.

    Empty for a model in which nothing is private.
    """
    protects_fitted = protects_fitted_rows(model)
    for rows in ("fitted", "new") if protects_fitted else ("new",):
        guarantee = pipeline_guarantee(model, rows=rows)
        if guarantee.mechanism != "none":
            uncovered = (_UNCOVERED,) if protects_fitted else ()
            return [replace(guarantee, does_not_cover=(*guarantee.does_not_cover, *uncovered))]
    return []


def protects_fitted_rows(model: Any) -> bool:
    """Tell whether a guarantee is about the rows of ``fit`` and not about rows that are given later."""
    last = model[-1] if isinstance(model, Pipeline) else model
    return protects_fitted_rows(last) if isinstance(last, Pipeline) else getattr(last, "_protects_fitted_rows", False)
