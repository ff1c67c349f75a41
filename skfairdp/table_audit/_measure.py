"""Train one model and measure it: what runs in a worker."""

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.pipeline import Pipeline

from skfairdp import exceptions
from skfairdp.accounting import PrivacyGuarantee
from skfairdp.metrics import (
    accuracy_gap,
    bootstrap_interval,
    demographic_parity_gap,
    equalized_odds_gap,
    group_rates,
    leakage_report,
    online_code_length,
    worst_group_accuracy,
)
from skfairdp.model_selection import route_sensitive_features
from skfairdp.release import pipeline_guarantee
from skfairdp.table_audit._prepare import PreparedTable

#: Warnings that are findings: they go into the report. Others stay warnings.
FINDINGS = (
    ConvergenceWarning,
    exceptions.MissingSensitiveFeaturesWarning,
    exceptions.OverclaimedPrivacyWarning,
    exceptions.PrivacyLeakWarning,
    exceptions.UndefinedGroupMetricWarning,
)


@dataclass
class Trained:
    """What came out of training a model: predictions for some rows, or the reason why there are none."""

    predicted: Any = None
    model: Any = None
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)
    failure: str | None = None


@dataclass
class Attacked:
    """What attackers found in what a model gives away."""

    leakage: pd.DataFrame
    code_bits: float
    uniform_bits: float
    source: str
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)


@contextmanager
def collected(findings: list[str]) -> Iterator[None]:
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


def rows_for(model: Any, table: PreparedTable, rows: np.ndarray, fitted: bool) -> pd.DataFrame:
    """Return the columns that a model was or will be trained on."""
    names = getattr(model, "feature_names_in_", None) if fitted else None
    if names is None:
        return table.X.iloc[rows]
    missing = [str(name) for name in names if name not in table.raw]
    if missing:
        raise ValueError(f"it was fitted on columns that the table does not have: {', '.join(map(repr, missing))}.")
    return table.raw[list(names)].iloc[rows]


def train(
    model: Any,
    table: PreparedTable,
    train_rows: np.ndarray,
    asked: np.ndarray,
    fitted: bool,
    public_share: float = 0.0,
) -> Trained:
    """Fit a model, unless it comes fitted, and predict the rows that are asked for."""
    result = Trained()
    try:
        with collected(result.findings), sklearn.config_context(enable_metadata_routing=True):
            started = time.perf_counter()
            if not fitted:
                _fit(model, table, train_rows, public_share)
            result.seconds = time.perf_counter() - started
            predicted = np.asarray(model.predict(rows_for(model, table, asked, fitted)))
        unknown = set(np.unique(predicted).tolist()) - set(table.classes)
        if unknown:
            raise ValueError(f"it predicts {unknown.pop()!r}, which is no class of {table.target!r}.")
    except (ValueError, TypeError, ArithmeticError, RuntimeError, AttributeError) as error:
        result.failure = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return result
    result.predicted, result.model = predicted, model
    return result


def _fit(model: Any, table: PreparedTable, rows: np.ndarray, public_share: float) -> None:
    if public_share > 0:
        _fit_beside_public_rows(model, table, rows, public_share)
        return
    route_sensitive_features(model)
    routing = model.get_metadata_routing() if hasattr(model, "get_metadata_routing") else None
    metadata = {}
    if routing is not None and routing.consumes("fit", ["sensitive_features"]):
        metadata["sensitive_features"] = table.sensitive.iloc[rows]
    model.fit(table.X.iloc[rows], table.y[rows], **metadata)


def _fit_beside_public_rows(model: Pipeline, table: PreparedTable, rows: np.ndarray, share: float) -> None:
    """Learn the preparation of columns from public rows alone: learned from private ones, it would tell of them."""
    order = np.random.default_rng(model[-1].random_state).permutation(rows)  # looks at no value of a row
    n_public = max(1, round(share * len(rows)))
    public, private = table.X.iloc[order[:n_public]], order[n_public:]
    model.steps[0] = (model.steps[0][0], FrozenEstimator(model[0].fit(public)))
    model.set_params(transform_input=["public"])
    model[-1].set_fit_request(public=True)
    model.fit(table.X.iloc[private], table.y[private], public=public)


def represent(model: Any, X: pd.DataFrame) -> tuple[np.ndarray, str]:
    """Return what a model gives away of its rows, and what that is."""
    if hasattr(model, "transform"):
        return np.asarray(model.transform(X)), "the representation it releases"
    inner = model[-1] if hasattr(model, "steps") else None
    if inner is not None and hasattr(inner, "steps"):  # preparation, then a pipeline of its own
        prepared = model[:-1].transform(X)
        return np.asarray(inner[:-1].transform(prepared)), "the representation its last step sees"
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X)), "its predicted probabilities"
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X)).reshape(len(X), -1), "its decision values"
    return pd.get_dummies(pd.Series(model.predict(X))).to_numpy(dtype=float), "its predicted labels"


def attack(H: np.ndarray, source: str, sensitive: pd.DataFrame, seed: int) -> Attacked:
    """Let every attacker try to read the groups from a representation."""
    started = time.perf_counter()
    findings: list[str] = []
    with collected(findings):
        report = leakage_report(H, sensitive, random_state=seed)
        length = online_code_length(H, sensitive, n_orders=1, random_state=seed)
    return Attacked(
        report, length.bits, length.uniform_bits, source, seconds=time.perf_counter() - started, findings=findings
    )


def attack_model(model: Any, table: PreparedTable, rows: np.ndarray, fitted: bool, seed: int) -> Attacked:
    """Let every attacker try to read the groups from what a model gives away of test rows."""
    with sklearn.config_context(enable_metadata_routing=True):
        H, source = represent(model, rows_for(model, table, rows, fitted))
    return attack(H, source, table.sensitive.iloc[rows], seed)


def train_and_attack(
    model: Any,
    table: PreparedTable,
    train_rows: np.ndarray,
    test: np.ndarray,
    probed: np.ndarray,
    fitted: bool,
    public_share: float,
    seed: int,
) -> tuple[Trained, Attacked | None]:
    """Train on all training rows, predict the test rows, and attack what is given away of the probed ones.

    All in one process: a seeded model that travels to another one draws other noise there.
    """
    trained = train(model, table, train_rows, test, fitted, public_share)
    if trained.failure is not None:
        return trained, None
    return trained, attack_model(trained.model, table, probed, fitted, seed)


def figures(table: PreparedTable, rows: np.ndarray, predicted: np.ndarray, seed: int | None = None) -> dict[str, float]:
    """Accuracy and fairness of predictions; with a seed also the interval of the gap."""
    y, sensitive = table.y[rows], table.sensitive.iloc[rows]
    known = {"sensitive_features": sensitive, "labels": list(table.classes)}
    positive = {} if table.pos_label is None else {"pos_label": table.pos_label}
    gap = bootstrap_interval(
        table.fairness, y, predicted, **known, **positive, n_draws=1 if seed is None else 1000, random_state=seed or 0
    )
    values = {
        "accuracy": float(accuracy_score(y, predicted)),
        "balanced_accuracy": float(balanced_accuracy_score(y, predicted)),
        table.fairness: gap.value,
    }
    if seed is not None:
        values |= {
            f"{table.fairness}_lower": gap.lower,
            f"{table.fairness}_upper": gap.upper,
            "equalized_odds_gap": equalized_odds_gap(y, predicted, **known, **positive),
            "demographic_parity_gap": demographic_parity_gap(y, predicted, **known, **positive),
            "accuracy_gap": accuracy_gap(y, predicted, sensitive_features=sensitive),
            "worst_group_accuracy": worst_group_accuracy(y, predicted, sensitive_features=sensitive),
        }
    return values


def rates_of(table: PreparedTable, rows: np.ndarray, predicted: np.ndarray) -> pd.DataFrame:
    """Return the rates of every group with exact intervals: of each sensitive column, and of all crossed."""
    parts = [[name] for name in table.sensitive]
    if len(parts) > 1:
        parts.append(list(table.sensitive))
    frames = []
    for names in parts:
        places = [f"column_{j}" for j in range(len(names))]  # a column may be called "rate" or "class"
        rates = group_rates(
            table.y[rows],
            predicted,
            sensitive_features=table.sensitive[names].iloc[rows].set_axis(places, axis=1),
            labels=list(table.classes),
            interval="exact",
            form="long",
        )
        groups = rates[places].astype(str).agg(" x ".join, axis=1)
        rates = rates.drop(columns=places)
        rates.insert(0, "group", groups)
        rates.insert(0, "attribute", " x ".join(names))
        frames.append(rates)
    return pd.concat(frames, ignore_index=True)


def guarantees_of(model: Any) -> list[PrivacyGuarantee]:
    """Say what a whole model costs: rows that it was fitted on where it protects those, else rows that it is given.

    Empty for a model in which nothing is private.
    """
    for rows in ("fitted", "new"):
        guarantee = pipeline_guarantee(model, rows=rows)
        if guarantee.mechanism != "none" and (rows == "new" or protects_fitted_rows(model)):
            return [guarantee]
    return []


def protects_fitted_rows(model: Any) -> bool:
    """Tell whether a guarantee is about the rows of ``fit`` and not about rows that are given later."""
    last = model[-1] if isinstance(model, Pipeline) else model
    return protects_fitted_rows(last) if isinstance(last, Pipeline) else getattr(last, "_protects_fitted_rows", False)
