"""pate_fairness: excessive risk, flipping probability and model sensitivity of a PATE student."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_expit, log_softmax
from scipy.stats import spearmanr

from skfairdp._validation import SensitiveGroups, check_count, check_epsilon, check_sensitive_features
from skfairdp.ensemble._pate import PATEClassifier, encode_labels
from skfairdp.ensemble._students import (
    fit_weighted,
    solve_students,
    student_logits,
    student_targets,
    train_network_students,
    with_ones,
)
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
    standard_error,
)
from skfairdp.random import RandomState, RandomStream, clone_with_seed, random_stream

_PAIRS = (
    ("norm", "risk"),
    ("closeness", "risk"),
    ("flipping_probability", "risk"),
    ("closeness", "flipping_probability"),
    ("norm", "gradient_norm"),
)
_N_BINS = 5  # ranges of input norm, as in the paper: of 40 rows each with its 200 queries
_NO_BOUNDS = SensitivityBounds(math.nan, math.nan, math.nan, math.nan, math.nan)
_LEAST_PROBABILITY = 1e-12  # of a class that a classifier says cannot be: its cross-entropy stays finite


@dataclass(frozen=True, repr=False)
class PATEFairness:
    r"""What noise on teachers' votes does to whom.

    Made by :func:`pate_fairness`. Everything in it was computed from votes without noise: it is private, for those
    who may see the private rows, and must not be published with the student.

    Attributes
    ----------
    groups : DataFrame
        One line per group: ``risk`` (excessive risk on the labels that the teachers give), ``standard_error``,
        ``count``, and the group's mean ``flipping_probability``, ``norm`` and ``closeness``. Where true labels
        were given, also ``label_risk`` and ``label_standard_error`` (the same on true labels), and ``accuracy`` and
        ``cross_entropy`` with noise and, as ``clean_...``, without.
    rows : DataFrame
        One line per row: ``group``, ``risk``, ``standard_error``, ``flipping_probability``, ``norm`` of the
        scaled row, ``closeness`` of the clean student to its boundary, ``gradient_norm`` of the clean student's
        loss, and Theorem 3's ``risk_bound`` with the bounds on the model sensitivity and
        ``risk_bound_measured`` with its measured moments (nan where neither student nor labels have one).
    sensitivity : Series
        ``mean``, ``standard_error``, ``mean_square`` and ``bias`` of how far noise moves the student's
        parameters, and bounds: ``bound`` on the mean, ``square_bound`` on the mean square, ``triangle``
        (Theorem 1), ``published_bound`` and ``published_square_bound`` (Corollaries 1 and 2 as printed; the
        latter does not hold).
    norm_bins : DataFrame
        For five ranges of input norm: the mean ``norm``, and ``sensitivity``, ``standard_error`` and ``bound`` of
        logistic students trained on the rows of that range alone; empty for other students.
    correlations : DataFrame
        Spearman's rank correlation (``rho``) and its ``p_value`` for pairs of columns of ``rows``.
    performance : DataFrame
        ``accuracy`` and ``cross_entropy`` on true labels: ``private`` with ``standard_error``, and ``clean``. Empty
        without true labels.
    gap, gap_standard_error : float
        Largest difference of ``risk`` between two groups.
    label_gap, label_gap_standard_error : float
        The same for ``label_risk``; nan without true labels.
    labels : str
        What was released of the votes.
    epsilon, delta, noise_scale : float
        The price and the noise.
    n_teachers, n_queries, n_repeats : int
        Teachers that vote, rows that students are trained on, and repetitions.
    regularization : float
        Strength of the student's penalty.
    publishable : bool
        Always False.

     Examples
     --------
     >>> from sklearn.tree import DecisionTreeClassifier
     >>> from skfairdp import PATEClassifier, pate_fairness
     >>> from skfairdp.datasets import make_biased_classification
     >>> data = make_biased_classification(1500, random_state=0)
     >>> X, y, z = data.data, data.target, data.sensitive_features
     >>> pate = PATEClassifier(DecisionTreeClassifier(max_depth=3), n_teachers=30, epsilon=8.0, random_state=0)
     >>> pate = pate.fit(X[:1200], y[:1200], public=X[1200:])
     >>> found = pate_fairness(pate, X[1200:], sensitive_features=z[1200:], n_repeats=5, random_state=0)
     >>> found.n_teachers, len(found.groups), bool(found.gap >= 0)
     (30, 2, True)
    """

    groups: pd.DataFrame
    rows: pd.DataFrame
    sensitivity: pd.Series
    norm_bins: pd.DataFrame
    correlations: pd.DataFrame
    performance: pd.DataFrame
    gap: float
    gap_standard_error: float
    label_gap: float
    label_gap_standard_error: float
    labels: str
    epsilon: float
    delta: float
    noise_scale: float
    n_teachers: int
    n_queries: int
    n_repeats: int
    regularization: float
    publishable: bool = False

    def __repr__(self) -> str:
        return (
            f"PATEFairness(labels={self.labels!r}, epsilon={self.epsilon:.4g}, noise_scale={self.noise_scale:.4g}, "
            f"n_teachers={self.n_teachers}, n_repeats={self.n_repeats}, gap={self.gap:.4g} +- "
            f"{self.gap_standard_error:.2g}, publishable=False)"
        )


@dataclass(frozen=True)
class RepeatedStudents:
    """What students think of some rows.

    Attributes
    ----------
    private : ndarray of shape (n_repeats, n_samples, n_classes)
        Log probabilities of students trained with noise.
    clean : ndarray of shape (1 or n_repeats, n_samples, n_classes)
        Those of students trained without it. Networks have a clean twin for each repetition, with the same
        initial weights and the same order of rows, so that the noise is all that differs.
    private_parameters, clean_parameters : ndarray or None
        Parameters, flattened; ``None`` for classifiers that have none to compare.
    """

    private: np.ndarray
    clean: np.ndarray
    private_parameters: np.ndarray | None
    clean_parameters: np.ndarray | None


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
    X_public : array-like or sparse matrix of shape (n_samples, n_features)
        Rows on which risk is measured: those that the student was trained on, or rows held out.
    sensitive_features : array-like
        Groups of these rows. Several columns are crossed, as in all metrics: a group is a combination of labels that
        occurs.
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
        Analyse another strength of the student's penalty; refused where the student is a classifier of its own.
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
    rows = pate._read_rows(X_public)
    groups = check_sensitive_features(sensitive_features, rows.shape[0], intersection=True, min_groups=2)
    truth = None if y is None else encode_labels(y, pate.classes_)[1]
    if truth is not None and len(truth) != rows.shape[0]:
        raise ValueError(f"y must have one label per row of X_public, {rows.shape[0]}; got {len(truth)}.")
    mechanism = _analysed(pate, labels, epsilon, noise_scale)
    strength = math.nan if pate.student_regularization_ is None else pate.student_regularization_
    if regularization is not None:
        if not isinstance(pate.student, str):
            raise ValueError(
                f"regularization={regularization!r} does nothing with student={type(pate.student).__name__}; analyse a "
                "student with other parameters instead."
            )
        strength = check_epsilon(regularization, name="regularization", allow_inf=False)

    n_voting = part.teachers.n_voting
    votes = part.teachers.votes(rows)
    rows = pate._scaled(rows)
    queries, asked = pate._scaled(part.queries[: mechanism.n_asked]), part.votes[: mechanism.n_asked]
    pate._check_postprocess(mechanism.labels)
    postprocess = pate._choose_postprocess()
    noise, training, binning = random_stream(random_state).spawn(3)
    clean, private = draw_targets(asked, mechanism, n_repeats, postprocess, noise)
    students = train_repeats(queries, rows, clean, private, pate, strength, training)
    own = votes / n_voting if mechanism.labels == "soft" else np.eye(len(pate.classes_))[votes.argmax(axis=1)]
    extra = _losses_of_students(students.private, own) - _losses_of_students(students.clean, own)
    bounded = pate._is_logistic()
    bounds = _sensitivity_bounds(queries, asked, mechanism, strength, postprocess) if bounded else _NO_BOUNDS
    sensitivity = _sensitivity_table(students, bounds)
    table = _rows_table(rows, votes, own, extra, students, mechanism, groups, bounds, sensitivity)
    indices = groups.indices[:, 0]
    by_group = excessive_risk(extra, np.zeros(len(indices)), sensitive_features=indices)
    for name in ("flipping_probability", "norm", "closeness"):
        by_group[name] = _group_means(table[name], indices)
    gap, gap_error = _risk_gap(extra, groups)
    label_gap, label_error, performance = math.nan, math.nan, pd.DataFrame()
    if truth is not None:
        hit = np.eye(len(pate.classes_))[truth]
        label_extra = _losses_of_students(students.private, hit) - _losses_of_students(students.clean, hit)
        label_gap, label_error = _risk_gap(label_extra, groups)
        performance, columns = _accuracy_and_loss(students, hit, label_extra, indices)
        by_group = by_group.join(columns)
    by_group.index = pd.Index(groups.labels[0], name=groups.names[0], tupleize_cols=False)
    return PATEFairness(
        groups=by_group,
        rows=table,
        sensitivity=sensitivity,
        norm_bins=_norm_bins(queries, asked, mechanism, strength, postprocess, n_repeats, binning)
        if bounded
        else pd.DataFrame(),
        correlations=_rank_correlations(table),
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
        n_repeats=n_repeats,
        regularization=strength,
    )


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
    n_answered = pate.n_queries_
    return vote_mechanism(
        kind,
        epsilon=made.epsilon if epsilon is None else check_epsilon(epsilon),
        delta=float(pate.delta),
        noise_scale=noise_scale,
        n_asked=len(part.votes) if kind == "confident" else n_answered,
        n_answered=n_answered,
        n_classes=len(pate.classes_),
        n_voting=part.teachers.n_voting,
        threshold=pate.threshold,
        threshold_noise_scale=pate.threshold_noise_scale,
    )


def _losses_of_students(logs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Cross-entropy of each student on each row."""
    return -(targets * logs).sum(axis=2)


def _sensitivity_bounds(
    queries: np.ndarray, votes: np.ndarray, mechanism: VoteMechanism, strength: float, postprocess: str
) -> SensitivityBounds:
    """Bound the sensitivity of a logistic student, where there is a bound that holds."""
    design, n_classes = with_ones(queries), votes.shape[1]
    if mechanism.labels == "soft":
        if postprocess == "none":
            return _NO_BOUNDS  # weights that do not sum to one have a loss without curvature
        kind = {"n_classes": n_classes, "centred": postprocess == "affine"}
        return soft_label_bounds(design, mechanism.noise_scale, mechanism.n_voting, strength, **kind)
    if mechanism.labels == "confident":
        return _NO_BOUNDS  # which rows are answered changes as well
    p = flipping_probability(votes, mechanism.noise_scale)
    if n_classes == 2:
        return hard_label_bounds(design, p, strength, labels=votes.argmax(axis=1))
    # A flipped one-hot label moves by sqrt(2), in a direction that the flip does not fix.
    return replace(hard_label_bounds(design, p, strength, c=math.sqrt(2)), published_first=None, published_second=None)


def _sensitivity_table(students: RepeatedStudents, bounds: SensitivityBounds) -> pd.Series:
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
            "published_bound": bounds.published_first,
            "published_square_bound": bounds.published_second,
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
    group = pd.Series(list(groups.labels[0]), dtype=object).iloc[groups.indices[:, 0]]
    table = pd.DataFrame(
        {
            "group": group.to_numpy(),
            **excessive_risk(extra, np.zeros(extra.shape[1])),
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


def _group_means(values: Any, indices: np.ndarray) -> np.ndarray:
    return np.bincount(indices, weights=values) / np.bincount(indices)


def _risk_gap(extra: np.ndarray, groups: SensitiveGroups) -> tuple[float, float]:
    """Largest difference of risk between two groups, and its standard error over repetitions."""
    by_repeat = np.stack([extra[:, groups.indices[:, 0] == g].mean(axis=1) for g in range(groups.n_groups[0])], axis=1)
    means = by_repeat.mean(axis=0)
    apart = by_repeat[:, means.argmax()] - by_repeat[:, means.argmin()]
    return float(apart.mean()), float(standard_error(apart))


def _accuracy_and_loss(
    students: RepeatedStudents, hit: np.ndarray, label_extra: np.ndarray, indices: np.ndarray
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Accuracy and cross-entropy on true labels, overall and by group."""
    truth = hit.argmax(axis=1)
    scores = {
        "accuracy": (students.private.argmax(axis=2) == truth, students.clean.argmax(axis=2) == truth),
        "cross_entropy": (_losses_of_students(students.private, hit), _losses_of_students(students.clean, hit)),
    }
    risk = excessive_risk(label_extra, np.zeros(len(truth)), sensitive_features=indices)
    columns = risk[["risk", "standard_error"]].add_prefix("label_")
    lines = {}
    for name, (private, clean) in scores.items():
        repeats = private.mean(axis=1)
        error = float(standard_error(repeats))
        lines[name] = {"private": repeats.mean(), "standard_error": error, "clean": clean.mean()}
        columns[name] = _group_means(private.mean(axis=0), indices)
        columns[f"clean_{name}"] = _group_means(clean.mean(axis=0), indices)
    return pd.DataFrame.from_dict(lines, orient="index"), columns


def _rank_correlations(table: pd.DataFrame) -> pd.DataFrame:
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
    postprocess: str,
    n_repeats: int,
    stream: RandomStream,
) -> pd.DataFrame:
    """Train students on rows of similar norm, and see how far noise moves them."""
    norms = np.linalg.norm(queries, axis=1)
    lines = []
    for chosen in np.array_split(np.argsort(norms, kind="stable"), min(_N_BINS, len(queries))):
        clean, private = draw_targets(votes[chosen], mechanism, n_repeats, postprocess, stream)
        theta = solve_students(queries[chosen], np.concatenate([clean[None], private]), strength)
        moved = model_sensitivity(theta[1:], theta[0])
        bounds = _sensitivity_bounds(queries[chosen], votes[chosen], mechanism, strength, postprocess)
        lines.append((norms[chosen].mean(), moved["mean"], moved["standard_error"], bounds.first))
    return pd.DataFrame(lines, columns=["norm", "sensitivity", "standard_error", "bound"])


def draw_targets(
    votes: np.ndarray, mechanism: VoteMechanism, n_repeats: int, postprocess: str, stream: RandomStream
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the student's class weights again and again, as an analysis and not as a release.

    Parameters
    ----------
    votes : ndarray of shape (n_queries, n_classes)
        Without noise.
    mechanism : VoteMechanism
        How they are released.
    n_repeats : int
        Repetitions.
    postprocess : str
        Of soft labels.
    stream : RandomStream
        Where the noise comes from.

    Returns
    -------
    clean : ndarray of shape (n_queries, n_classes)
        Class weights without noise.
    private : ndarray of shape (n_repeats, n_queries, n_classes)
        With it. Confident labels leave rows out: their weights are 0, those of the others add up to ``n_queries``.
    """
    n_classes = votes.shape[1]
    rng = stream.generator
    noisy = votes + mechanism.noise_scale * rng.standard_normal((n_repeats, *votes.shape))
    released = noisy if mechanism.labels == "soft" else noisy.argmax(axis=2)
    private = student_targets(released, mechanism.labels, n_classes, mechanism.n_voting, postprocess)
    unperturbed = votes if mechanism.labels == "soft" else votes.argmax(axis=1)
    clean = student_targets(unperturbed, mechanism.labels, n_classes, mechanism.n_voting, postprocess)
    if mechanism.labels == "confident":
        largest = votes.max(axis=1)
        asked = largest + mechanism.threshold_noise_scale * rng.standard_normal((n_repeats, len(votes)))
        private = private * _answered_weights(asked >= mechanism.threshold, mechanism.n_answered)[..., None]
        clean = clean * _answered_weights((largest >= mechanism.threshold)[None], mechanism.n_answered)[0][:, None]
    return clean, private


def _answered_weights(passed: np.ndarray, most: int) -> np.ndarray:
    """Weights of the rows that are answered: the first ones that pass, of total weight n_queries."""
    kept = passed & (passed.cumsum(axis=1) <= most)
    return kept * (kept.shape[1] / np.maximum(kept.sum(axis=1, keepdims=True), 1))


def train_repeats(
    queries: np.ndarray,
    rows: np.ndarray,
    clean: np.ndarray,
    private: np.ndarray,
    pate: PATEClassifier,
    regularization: float,
    stream: RandomStream,
) -> RepeatedStudents:
    """Train a student on each set of targets, and ask all of them about some rows.

    Parameters
    ----------
    queries : ndarray of shape (n_queries, n_features)
        Rows that students are trained on.
    rows : ndarray of shape (n_samples, n_features)
        Rows that they are asked about.
    clean, private : ndarray
        Of :func:`draw_targets`.
    pate : PATEClassifier
        Says which student to train, and how.
    regularization : float
        Strength of the student's penalty.
    stream : RandomStream
        For networks and classifiers.

    Returns
    -------
    RepeatedStudents
    """
    if pate._is_logistic():
        theta = solve_students(queries, np.concatenate([clean[None], private]), regularization)
        logs = _log_probabilities(student_logits(theta, rows))
        return RepeatedStudents(logs[1:], logs[:1], theta[1:].reshape(len(private), -1), theta[0].ravel())
    seed = stream.seed()
    if isinstance(pate.student, str):
        found = [
            train_network_students(queries, targets, pate._networks(), regularization, random_stream(seed))
            for targets in (private, np.broadcast_to(clean, private.shape))
        ]
        return RepeatedStudents(
            *(log_softmax(networks.logits(rows).astype(np.float64), axis=2) for networks in found),
            *(_flat_parameters(networks) for networks in found),
        )
    classes = np.arange(clean.shape[1])
    fresh = [clone_with_seed(pate.student, seed, overwrite=True) for _ in range(1 + len(private))]
    fitted = [fit_weighted(one, queries, targets, classes) for one, targets in zip(fresh, (clean, *private))]
    logs = np.stack([_log_probabilities_of(one, rows, len(classes)) for one in fitted])
    return RepeatedStudents(logs[1:], logs[:1], None, None)


def _log_probabilities(logits: np.ndarray) -> np.ndarray:
    if logits.shape[2] == 1:
        return np.concatenate([log_expit(-logits), log_expit(logits)], axis=2)
    return log_softmax(logits, axis=2)


def _flat_parameters(networks: Any) -> np.ndarray:
    """Return the parameters of each network in a row."""
    flat = [tensor.reshape(len(tensor), -1) for tensor in (*networks.weights, *networks.biases)]
    return np.concatenate(flat, axis=1).astype(np.float64)


def _log_probabilities_of(model: Any, rows: np.ndarray, n_classes: int) -> np.ndarray:
    proba = np.full((len(rows), n_classes), _LEAST_PROBABILITY)
    proba[:, model.classes_] = np.maximum(model.predict_proba(rows), _LEAST_PROBABILITY)
    return np.log(proba)
