"""Leakage: how well an attacker reads a sensitive attribute from a representation."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from skfairdp.metrics._attackers import Attack, check_attacked_rows, named_attackers, run_attacks
from skfairdp.metrics._intervals import check_confidence_level, proportion_bounds
from skfairdp.random import RandomState, random_stream


def leakage_score(
    H: Any,
    sensitive_features: Any,
    *,
    probe: Any = "pool",
    H_test: Any = None,
    sensitive_features_test: Any = None,
    cv: Any = 5,
    n_jobs: int | None = None,
    random_state: RandomState = None,
) -> float:
    """Accuracy of an attacker who reads the sensitive attribute from a representation.

    Every row is judged by an attacker that was not trained on it. Smaller is more private, and the share of the
    largest group is what an attacker reaches who does not look.

    Parameters
    ----------
    H : array-like or sparse matrix of shape (n_samples, n_features)
        The representation. A sparse one is made dense.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        What the attacker wants to know. Several columns are attacked as their intersection;
        :func:`leakage_report` attacks them one by one as well.
    probe : None, str, classifier or list, default="pool"
        The attacker. ``"pool"`` or a list: the strongest of several, the pool being all of the following but
        ``"majority"``. None or ``"mlp"``: a two-layer network on standardised columns
        (:class:`~skfairdp.neural.ProbeClassifier`), out of which noise that is common to all of them is taken first;
        ``"linear"``: logistic regression on standardised columns; ``"boosting"``: gradient-boosted trees, stopped early
        where there are rows enough, and of more than 100 columns on the sixth, at least 48, by which a few small trees
        gain most; ``"neighbors"``: nearest neighbours on standardised columns, among 5,000 training rows at most, or
        2,000 of more than 100 columns; ``"majority"``: whoever always says the largest group; or any scikit-learn
        classifier, which is used as it is. With ``"mlp"`` and ``"boosting"`` in the list, the mean of both is one more
        attacker. Whatever an attacker learns, the means for standardising included, it learns from the training rows.
    H_test : array-like of shape (n_test, n_features), default=None
        Rows to score; the attacker is then trained on all of ``H``.
    sensitive_features_test : array-like, default=None
        Their sensitive features. A group that the training rows do not have cannot be guessed and counts as missed.
    cv : int, splitter or iterable of splits, default=5
        Without ``H_test``: the folds, of which each is scored by an attacker trained on the others.
        A number means so many stratified, shuffled folds.
    n_jobs : int, default=None
        Number of attackers trained at once.
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the folds and of attackers that have none of their own.

    Returns
    -------
    float
        Share of the scored rows whose group the attacker names.

    See Also
    --------
    leakage_report : The same with baselines, balanced accuracy, AUC and intervals.
    online_code_length : How much effort the attack takes.

    Notes
    -----
    **Privacy.** This is a measurement, not a guarantee: it bounds what *these* attackers find in *these* rows.
    A stronger attacker may find more. For a proof see the guarantee of the mechanism.

    References
    ----------
    Maheshwari, Denis, Keller and Bellet (2022), "Fair NLP models with differentially private text encoders",
    section 5 and appendix D.1.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.metrics import leakage_score
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], size=300)
    >>> H = rng.normal(size=(300, 5)) + 2 * (sex == "f")[:, None]
    >>> leakage_score(H, sex, random_state=0) > 0.95
    True
    >>> leakage_score(rng.normal(size=(300, 5)), sex, random_state=0) < 0.6
    True
    """
    stream = random_stream(random_state)
    attackers = named_attackers(probe)
    attacked = check_attacked_rows(H, sensitive_features, H_test, sensitive_features_test, cv, stream)
    attacks, truth, part = run_attacks(
        attacked, attacked.groups.intersection().indices[:, 0], attackers, stream, n_jobs
    )
    attack = strongest_attack(attacks, truth, part) if len(attacks) > 1 else attacks[attackers[0][0]]
    return float(np.mean(attack.predicted == truth))


def leakage_report(
    H: Any,
    sensitive_features: Any,
    *,
    probe: Any = "pool",
    H_test: Any = None,
    sensitive_features_test: Any = None,
    cv: Any = 5,
    confidence_level: float = 0.95,
    n_jobs: int | None = None,
    random_state: RandomState = None,
) -> pd.DataFrame:
    """Attack a representation with several attackers, and put what they reach beside what guessing reaches.

    Parameters
    ----------
    H : array-like or sparse matrix of shape (n_samples, n_features)
        The representation.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        What the attackers want to know: each column, and with several columns their intersection as well.
    probe : None, str, classifier or list, default="pool"
        The attackers, see :func:`leakage_score`.
    H_test : array-like of shape (n_test, n_features), default=None
        Rows to score; without them the rows of ``H`` are scored in folds.
    sensitive_features_test : array-like, default=None
        Their sensitive features.
    cv : int, splitter or iterable of splits, default=5
        The folds when there are no test rows.
    confidence_level : float, default=0.95
        Level of the intervals.
    n_jobs : int, default=None
        Number of attackers trained at once.
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the folds and of attackers that have none of their own.

    Returns
    -------
    pandas.DataFrame
        One row per attribute and attacker, with the columns

        - ``accuracy``, and its exact binomial interval ``accuracy_lower``, ``accuracy_upper``,
        - ``majority``: share of the largest group among the scored rows; ``advantage``: accuracy minus majority, with
          ``advantage_lower`` and ``advantage_upper``,
        - ``balanced_accuracy``: mean over the groups of the share that is recognised (guessing: 1 / ``n_groups``),
        - ``auc``: area under the ROC curve, for more than two groups the mean of one against the rest
          (guessing: 0.5), with ``auc_lower`` and ``auc_upper`` [1]_; nan for an attacker without scores,
        - ``n_groups`` and ``n_scored``.

        With several attackers the row ``"strongest"`` comes last.

    Notes
    -----
    The largest of several accuracies is optimistic: by chance alone one of them comes out high. The strongest
    attacker is therefore chosen on other rows than those it is scored on: for each fold, by its accuracy on the
    remaining folds; with one test part, for each half of it by the other half (halves with equal shares of each
    group). Its accuracy can so be lower than the largest accuracy in the table. For the AUC the strongest attacker is
    chosen in the same way, by AUC: where accuracy cannot rise above the share of the largest group, it chooses nothing.

    The interval takes the rows as the only chance there is, and the attackers as given.

    Where one group is large, accuracy hides what is read: an attacker may never do better than naming the largest
    group, and still tell who is more likely to belong to another. The AUC shows it.

    **Privacy.** A measurement, not a guarantee; see :func:`leakage_score`.

    References
    ----------
    .. [1] J. Hanley, B. McNeil, "The Meaning and Use of the Area under a Receiver Operating Characteristic (ROC)
       Curve", Radiology 1982.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.metrics import leakage_report
    >>> rng = np.random.default_rng(0)
    >>> H = rng.normal(size=(200, 3))
    >>> hidden = np.where(H[:, 0] * H[:, 1] > 0, "a", "b")
    >>> report = leakage_report(H, hidden, random_state=0).set_index("attacker")
    >>> bool(report.accuracy["linear"] < 0.6 < 0.85 < report.accuracy["strongest"])
    True
    """
    check_confidence_level(confidence_level)
    stream = random_stream(random_state)
    attackers = named_attackers(probe)
    attacked = check_attacked_rows(H, sensitive_features, H_test, sensitive_features_test, cv, stream)
    columns = dict(zip(attacked.groups.names, attacked.groups.indices.T))
    if len(columns) > 1:
        crossed = attacked.groups.intersection()
        columns[crossed.names[0]] = crossed.indices[:, 0]
    table = []
    for attribute, indices in columns.items():
        attacks, truth, part = run_attacks(attacked, indices, attackers, stream, n_jobs)
        if len(attacks) > 1:
            attacks["strongest"] = strongest_attack(attacks, truth, part)
        table += [
            {
                "attribute": attribute,
                "attacker": name,
                **_figures_of_attack(attack, truth, int(indices.max()) + 1, confidence_level),
            }
            for name, attack in attacks.items()
        ]
    return pd.DataFrame(table)


def strongest_attack(attacks: dict[str, Attack], truth: np.ndarray, part: np.ndarray) -> Attack:
    """Compose the answers of the strongest attacker, chosen for each part of the rows by the other parts.

    Its labels are those of the attacker with the highest accuracy there, its scores those of the one with the highest
    area under the curve. Scores of different attackers are on different scales, so they are replaced by ranks within
    their part.
    """
    found = list(attacks.values())
    parts = np.unique(part)
    inside = [part == k for k in parts]
    right = np.array([[np.sum((attack.predicted == truth)[rows]) for rows in inside] for attack in found])
    every_score = [attack.scores for attack in found if attack.scores is not None]
    with_scores = len(every_score) == len(found)
    areas = np.array([[_mean_area(scores[rows], truth[rows]) for rows in inside] for scores in every_score])
    predicted = np.empty_like(truth)
    chosen_scores = np.empty_like(every_score[0]) if with_scores else None
    for k, rows in enumerate(inside):
        others = np.arange(len(parts)) != k
        best = int(right[:, others].sum(axis=1).argmax())
        predicted[rows] = found[best].predicted[rows]
        if chosen_scores is not None:
            known = others & ~np.isnan(areas).any(axis=0)
            best = int(areas[:, known].mean(axis=1).argmax()) if known.any() else best
            chosen_scores[rows] = pd.DataFrame(every_score[best][rows]).rank(pct=True).to_numpy()
    return Attack(predicted, chosen_scores)


def _figures_of_attack(attack: Attack, truth: np.ndarray, n_groups: int, confidence_level: float) -> dict[str, float]:
    right = attack.predicted == truth
    n, hits = len(truth), int(right.sum())
    sizes = np.bincount(truth, minlength=n_groups)
    recognised = np.bincount(truth[right], minlength=n_groups)[sizes > 0] / sizes[sizes > 0]
    low, high = proportion_bounds(hits, n, (1 - confidence_level) / 2)
    majority = sizes.max() / n
    area, area_low, area_high = _area_under_curve(attack.scores, truth, confidence_level)
    return {
        "accuracy": hits / n,
        "accuracy_lower": float(low),
        "accuracy_upper": float(high),
        "majority": majority,
        "advantage": hits / n - majority,
        "advantage_lower": float(low) - majority,
        "advantage_upper": float(high) - majority,
        "balanced_accuracy": float(recognised.mean()),
        "auc": area,
        "auc_lower": area_low,
        "auc_upper": area_high,
        "n_groups": n_groups,
        "n_scored": n,
    }


def _mean_area(scores: np.ndarray, truth: np.ndarray) -> float:
    areas = [area for area, _ in _areas_and_errors(scores, truth)]
    return float(np.mean(areas)) if areas else float("nan")


def _areas_and_errors(scores: np.ndarray, truth: np.ndarray) -> list[tuple[float, float]]:
    """Areas under ROC curves with their standard errors: of the second of two groups, else of each against the rest.

    The standard error is that of Hanley and McNeil.
    """
    n_groups = scores.shape[1]
    ranks = pd.DataFrame(scores).rank().to_numpy()  # -inf marks a group the attacker has never seen
    found = []
    for g in [1] if n_groups == 2 else range(n_groups):
        inside = int(np.sum(truth == g))
        outside = len(truth) - inside
        if not inside or not outside:
            continue
        area = float((ranks[truth == g, g].sum() - inside * (inside + 1) / 2) / (inside * outside))
        more, less = area / (2 - area), 2 * area**2 / (1 + area)
        variance = area * (1 - area) + (inside - 1) * (more - area**2) + (outside - 1) * (less - area**2)
        found.append((area, float(np.sqrt(max(variance, 0.0) / (inside * outside)))))
    return found


def _area_under_curve(
    scores: np.ndarray | None, truth: np.ndarray, confidence_level: float
) -> tuple[float, float, float]:
    """Mean area under the ROC curves, with an interval.

    The half width of a mean is the mean of the half widths, as if all areas erred together.
    """
    found = [] if scores is None else _areas_and_errors(scores, truth)
    if not found:
        return (float("nan"),) * 3
    area, error = (float(mean) for mean in np.mean(found, axis=0))
    half = float(norm.isf((1 - confidence_level) / 2)) * error
    return area, max(area - half, 0.0), min(area + half, 1.0)
