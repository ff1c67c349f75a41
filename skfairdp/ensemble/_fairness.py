"""pate_fairness: excessive risk, flipping probability and model sensitivity of a PATE student."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.utils.validation import validate_data

from skfairdp._validation import SensitiveGroups, check_count, check_epsilon, check_sensitive_features
from skfairdp.ensemble._fairness_result import PATEFairness
from skfairdp.ensemble._logistic_students import solve_students, with_ones
from skfairdp.ensemble._pate import PATEClassifier
from skfairdp.ensemble._prepare import (
    check_postprocess,
    choose_postprocess,
    encode_labels,
    read_networks,
    read_regularization,
)
from skfairdp.ensemble._repeats import RepeatedStudents, draw_targets, train_repeats
from skfairdp.mechanisms import VoteMechanism, vote_mechanism
from skfairdp.metrics import (
    SensitivityBounds,
    closeness_to_boundary,
    excessive_risk,
    excessive_risk_bound,
    flipping_probability,
    hard_label_bounds,
    model_sensitivity,
    soft_label_bounds,
)
from skfairdp.random import RandomState, random_stream

_PAIRS = (
    ("norm", "risk"),
    ("closeness", "risk"),
    ("flipping_probability", "risk"),
    ("closeness", "flipping_probability"),
    ("norm", "gradient_norm"),
)
_N_BINS = 5
_NO_BOUNDS = SensitivityBounds(math.nan, math.nan, math.nan, math.nan, math.nan)


def pate_fairness(
    pate: PATEClassifier,
    X_public: Any,
    *,
    sensitive_features: Any,
    y: Any = None,
    n_repeats: int = 100,
    labels: str | None = None,
    epsilon: float | None = None,
    noise_scale: float | None = None,
    regularization: float | None = None,
    random_state: RandomState = None,
) -> PATEFairness:
    r"""Measure what the noise on teachers' votes costs each row and each group.

    The votes on the rows that ``pate`` was fitted with are released again ``n_repeats`` times, a student is trained on
    each, and all of them are compared with the student trained on the votes without noise.

    Parameters
    ----------
    pate : PATEClassifier
        Fitted in this process; a pickled copy has no teachers.
    X_public : array-like of shape (n_samples, n_features)
        Rows on which risk is measured: those that the student was trained on, or rows held out.
    sensitive_features : array-like
        Groups of these rows; several columns are crossed.
    y : array-like of shape (n_samples,), optional
        True labels of these rows, for accuracy and cross-entropy beside the gap. A gap alone can be made small
        by a student that says nothing.
    n_repeats : int, default=100
        Repetitions of the noise.
    labels : {"soft", "hard", "confident"}, optional
        Analyse another release of the same votes, at the same epsilon unless another is given.
    epsilon, noise_scale : float, optional
        Analyse another budget, or other noise.
    regularization : float, optional
        Analyse another strength of the student's penalty.
    random_state : int, Generator, SeedSequence, RandomState or None
        Of the noise; nothing is released here.

    Returns
    -------
    PATEFairness
        Tables by group and by row, model sensitivity with its bounds, correlations. Private: see there.

    Notes
    -----
    Excessive risk is :math:`R(x) = E[\ell(\tilde\theta; x)] - \ell(\theta^*; x)` with the loss on the labels that the
    teachers give without noise: vote shares for soft labels, the winner for hard ones. Each kind is compared with
    its own clean student. The regulariser, which is the same for every row, is left out. Closeness to the boundary is
    that of the clean student, because public rows have no labels to train another one on.

    References
    ----------
    .. [1] C. Tran, M. H. Dinh, K. Beiter and F. Fioretto, "A fairness analysis on private aggregation of teacher
       ensembles", 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skfairdp import PATEClassifier, pate_fairness
    >>> from skfairdp.datasets import make_biased_classification
    >>> data = make_biased_classification(3000, random_state=0)
    >>> X, y, z = data.data, data.target, data.sensitive_features
    >>> pate = PATEClassifier(DecisionTreeClassifier(max_depth=4), n_teachers=50, epsilon=8.0, random_state=0)
    >>> pate = pate.fit(X[:2500], y[:2500], public=X[2500:])
    >>> soft = pate_fairness(pate, X[2500:], sensitive_features=z[2500:], random_state=0)
    >>> hard = pate_fairness(pate, X[2500:], sensitive_features=z[2500:], labels="hard", random_state=0)
    >>> bool(soft.sensitivity["mean"] < hard.sensitivity["mean"])
    True
    """
    if not isinstance(pate, PATEClassifier):
        raise TypeError(f"pate must be a fitted PATEClassifier; got {type(pate).__name__}.")
    n_repeats = check_count(n_repeats, "n_repeats")
    part = pate._private_part()
    if len(pate.classes_) < 2:
        raise ValueError("pate must know at least two classes; with one there is nothing that noise could change.")
    if not pate._student_has_probabilities():
        raise ValueError("the student of pate must have predict_proba, because risk is measured in cross-entropy.")
    X = validate_data(pate, X_public, dtype=np.float64, reset=False)
    groups = check_sensitive_features(sensitive_features, len(X), intersection=True, min_groups=2)
    truth = None if y is None else _read_truth(y, pate.classes_, len(X))
    mechanism = _analysed(pate, labels, epsilon, noise_scale)
    strength = read_regularization(pate.student_regularization, pate.student)
    if regularization is not None:
        strength = check_epsilon(regularization, name="regularization", allow_inf=False)

    n_voting = part.teachers.n_voting
    rows = pate._scaled(X)
    votes = part.teachers.votes(rows)
    queries, asked = part.queries[: mechanism.n_asked], part.votes[: mechanism.n_asked]
    check_postprocess(pate.postprocess, pate.student, mechanism.labels)
    postprocess = choose_postprocess(pate.postprocess, pate.student, mechanism.noise_scale / n_voting)
    noise, training, binning = random_stream(random_state).spawn(3)
    clean, private = draw_targets(asked, mechanism, int(n_repeats), n_voting, postprocess, noise)
    students = train_repeats(
        queries,
        rows,
        clean,
        private,
        student=pate.student,
        regularization=strength,
        networks=read_networks(pate.hidden_sizes, pate.max_epochs, pate.batch_size, pate.learning_rate),
        stream=training,
    )
    own = votes / n_voting if mechanism.labels == "soft" else np.eye(len(pate.classes_))[votes.argmax(axis=1)]
    extra = _losses(students.private, own) - _losses(students.clean, own)
    bounded = isinstance(pate.student, str) and pate.student == "logistic"
    bounds = _bounds(queries, asked, mechanism, strength, n_voting, postprocess) if bounded else _NO_BOUNDS
    sensitivity = _sensitivity(students, bounds)
    table = _rows_table(rows, votes, own, extra, students, mechanism, groups, bounds, sensitivity)
    by_group = _groups_table(table, extra, groups)
    gap, gap_error = _gap(extra, groups)
    label_gap, label_error, performance = math.nan, math.nan, pd.DataFrame()
    if truth is not None:
        hit = np.eye(len(pate.classes_))[truth]
        label_extra = _losses(students.private, hit) - _losses(students.clean, hit)
        label_gap, label_error = _gap(label_extra, groups)
        performance, columns = _performance(students, hit, label_extra, groups)
        by_group = by_group.join(columns)
    return PATEFairness(
        groups=by_group,
        rows=table,
        sensitivity=sensitivity,
        norm_bins=_norm_bins(queries, asked, mechanism, strength, n_voting, postprocess, n_repeats, binning)
        if bounded
        else pd.DataFrame(),
        correlations=_correlations(table),
        performance=performance,
        gap=gap,
        gap_standard_error=gap_error,
        label_gap=label_gap,
        label_gap_standard_error=label_error,
        labels=mechanism.labels,
        epsilon=mechanism.epsilon,
        delta=mechanism.delta,
        noise_scale=mechanism.noise_scale,
        n_teachers=n_voting,
        n_queries=len(queries),
        n_repeats=int(n_repeats),
        regularization=strength,
    )


def _read_truth(y: Any, classes: np.ndarray, n_rows: int) -> np.ndarray:
    _, codes = encode_labels(y, classes)
    if len(codes) != n_rows:
        raise ValueError(f"y must have one label per row of X_public, {n_rows}; got {len(codes)}.")
    return codes


def _analysed(
    pate: PATEClassifier, labels: str | None, epsilon: float | None, noise_scale: float | None
) -> VoteMechanism:
    """Return the release that is analysed: the one that was made, or another one of the same votes."""
    part = pate._private_part()
    made = part.mechanism
    if labels not in (None, "soft", "hard", "confident"):
        raise ValueError(f"labels must be 'soft', 'hard' or 'confident'; got {labels!r}.")
    if epsilon is not None and noise_scale is not None:
        raise ValueError("give epsilon or noise_scale, not both.")
    kind = made.labels if labels is None else labels
    if kind == made.labels and epsilon is None and noise_scale is None:
        return made
    n_answered = min(pate.n_queries, len(part.queries))
    return vote_mechanism(
        kind,
        epsilon=made.epsilon if epsilon is None else check_epsilon(epsilon),
        delta=float(pate.delta),
        noise_scale=noise_scale,
        n_asked=len(part.queries) if kind == "confident" else n_answered,
        n_answered=n_answered,
        n_classes=len(pate.classes_),
        n_voting=part.teachers.n_voting,
        threshold=pate.threshold,
        threshold_noise_scale=pate.threshold_noise_scale,
    )


def _losses(logs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Cross-entropy of each student on each row."""
    return -(targets * logs).sum(axis=2)


def _bounds(
    queries: np.ndarray, votes: np.ndarray, mechanism: VoteMechanism, strength: float, n_voting: int, postprocess: str
) -> SensitivityBounds:
    """Bound the sensitivity of a logistic student, where there is a bound that holds."""
    design, n_classes = with_ones(queries), votes.shape[1]
    if mechanism.labels == "soft":
        if postprocess == "none":
            return _NO_BOUNDS  # weights that do not sum to one have a loss without curvature
        centred = postprocess == "affine"
        return soft_label_bounds(
            design, mechanism.noise_scale, n_voting, strength, n_classes=n_classes, centred=centred
        )
    if mechanism.labels == "confident":
        return _NO_BOUNDS  # which rows are answered changes as well
    p = flipping_probability(votes, mechanism.noise_scale)
    if n_classes == 2:
        return hard_label_bounds(design, p, strength, labels=votes.argmax(axis=1))
    # A flipped one-hot label moves by sqrt(2), in a direction that the flip does not fix.
    return replace(hard_label_bounds(design, p, strength, c=math.sqrt(2)), published_first=None, published_second=None)


def _sensitivity(students: RepeatedStudents, bounds: SensitivityBounds) -> pd.Series:
    if students.private_parameters is None or students.clean_parameters is None:
        moved = dict.fromkeys(("mean", "standard_error", "mean_square", "bias"), math.nan)
    else:
        difference = students.private_parameters - students.clean_parameters
        moved = model_sensitivity(difference, np.zeros(difference.shape[1]))
    return pd.Series(
        {
            **moved,
            "bound": bounds.first,
            "square_bound": bounds.second,
            "triangle": bounds.triangle,
            "published_bound": math.nan if bounds.published_first is None else bounds.published_first,
            "published_square_bound": math.nan if bounds.published_second is None else bounds.published_second,
        },
        name="sensitivity",
        dtype=float,
    )


def _rows_table(
    rows: np.ndarray,
    votes: np.ndarray,
    own: np.ndarray,
    extra: np.ndarray,
    students: RepeatedStudents,
    mechanism: VoteMechanism,
    groups: SensitiveGroups,
    bounds: SensitivityBounds,
    sensitivity: pd.Series,
) -> pd.DataFrame:
    proba = np.exp(students.clean).mean(axis=0)
    design = with_ones(rows)
    # Two classes have one output, whose residual is the second column; more have one output each, and a loss
    # whose curvature may be twice as large.
    wide = proba.shape[1] > 2
    residual = np.linalg.norm(proba - own, axis=1) if wide else np.abs(proba[:, 1] - own[:, 1])
    curved = 2 if wide else 1
    risk = excessive_risk(extra, np.zeros(extra.shape[1]))
    group = pd.Series(list(groups.labels[0]), dtype=object).iloc[groups.indices[:, 0]]
    table = pd.DataFrame(
        {
            "group": group.to_numpy(),
            "risk": risk["risk"].to_numpy(),
            "standard_error": risk["standard_error"].to_numpy(),
            "flipping_probability": flipping_probability(votes, mechanism.noise_scale),
            "norm": np.linalg.norm(rows, axis=1),
            "closeness": closeness_to_boundary(proba / proba.sum(axis=1, keepdims=True)),
            "gradient_norm": residual * np.linalg.norm(design, axis=1),
        }
    )
    linear = students.private_parameters is not None and len(students.clean) == 1
    for name, first, second in (
        ("risk_bound", bounds.first, bounds.second),
        ("risk_bound_measured", sensitivity["mean"], sensitivity["mean_square"]),
    ):
        known = linear and not math.isnan(first)
        table[name] = excessive_risk_bound(design, residual, first, curved * second) if known else math.nan
    return table


def _groups_table(table: pd.DataFrame, extra: np.ndarray, groups: SensitiveGroups) -> pd.DataFrame:
    codes = groups.indices[:, 0]
    found = excessive_risk(extra, np.zeros(extra.shape[1]), sensitive_features=codes)
    for name in ("flipping_probability", "norm", "closeness"):
        found[name] = np.bincount(codes, weights=table[name]) / np.bincount(codes)
    found.index = pd.Index(groups.labels[0], name=groups.names[0], tupleize_cols=False)
    return found


def _gap(extra: np.ndarray, groups: SensitiveGroups) -> tuple[float, float]:
    """Largest difference of risk between two groups, and its standard error over repetitions."""
    codes = groups.indices[:, 0]
    by_repeat = np.stack([extra[:, codes == g].mean(axis=1) for g in range(groups.n_groups[0])], axis=1)
    means = by_repeat.mean(axis=0)
    apart = by_repeat[:, means.argmax()] - by_repeat[:, means.argmin()]
    error = float(apart.std(ddof=1) / math.sqrt(len(apart))) if len(apart) > 1 else math.nan
    return float(apart.mean()), error


def _performance(
    students: RepeatedStudents, hit: np.ndarray, label_extra: np.ndarray, groups: SensitiveGroups
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Accuracy and cross-entropy on true labels, overall and by group."""
    truth = hit.argmax(axis=1)
    scores = {
        "accuracy": (students.private.argmax(axis=2) == truth, students.clean.argmax(axis=2) == truth),
        "cross_entropy": (_losses(students.private, hit), _losses(students.clean, hit)),
    }
    codes = groups.indices[:, 0]
    sizes = np.bincount(codes)
    index = pd.Index(groups.labels[0], name=groups.names[0], tupleize_cols=False)
    risk = excessive_risk(label_extra, np.zeros(len(truth)), sensitive_features=codes)
    columns = pd.DataFrame(
        {"label_risk": risk["risk"].to_numpy(), "label_standard_error": risk["standard_error"].to_numpy()}, index=index
    )
    lines = {}
    for name, (private, clean) in scores.items():
        repeats = private.mean(axis=1)
        error = repeats.std(ddof=1) / math.sqrt(len(repeats)) if len(repeats) > 1 else math.nan
        lines[name] = {"private": repeats.mean(), "standard_error": error, "clean": clean.mean()}
        columns[name] = np.bincount(codes, weights=private.mean(axis=0)) / sizes
        columns[f"clean_{name}"] = np.bincount(codes, weights=clean.mean(axis=0)) / sizes
    return pd.DataFrame.from_dict(lines, orient="index"), columns


def _correlations(table: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for first, second in _PAIRS:
        a, b = table[first].to_numpy(), table[second].to_numpy()
        known = len(a) > 2 and np.ptp(a) > 0 and np.ptp(b) > 0
        rho, p_value = spearmanr(a, b) if known else (math.nan, math.nan)
        lines.append((first, second, float(rho), float(p_value)))
    return pd.DataFrame(lines, columns=["first", "second", "rho", "p_value"]).set_index(["first", "second"])


def _norm_bins(
    queries: np.ndarray,
    votes: np.ndarray,
    mechanism: VoteMechanism,
    strength: float,
    n_voting: int,
    postprocess: str,
    n_repeats: int,
    stream: Any,
) -> pd.DataFrame:
    """Train students on rows of similar norm, and see how far noise moves them."""
    norms = np.linalg.norm(queries, axis=1)
    lines = []
    for chosen in np.array_split(np.argsort(norms, kind="stable"), min(_N_BINS, len(queries))):
        clean, private = draw_targets(votes[chosen], mechanism, int(n_repeats), n_voting, postprocess, stream)
        theta = solve_students(queries[chosen], np.concatenate([clean[None], private]), strength)
        moved = model_sensitivity(theta[1:], theta[0])
        bounds = _bounds(queries[chosen], votes[chosen], mechanism, strength, n_voting, postprocess)
        lines.append((norms[chosen].mean(), moved["mean"], moved["standard_error"], bounds.first))
    return pd.DataFrame(lines, columns=["norm", "sensitivity", "standard_error", "bound"])
