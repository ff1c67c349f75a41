"""Empirical privacy: one minus what an attacker reaches."""

from typing import Any

import numpy as np

from skfairdp.metrics._attackers import check_attacked_rows, named_attackers, run_attacks
from skfairdp.metrics._leakage import strongest_attack
from skfairdp.random import RandomState, random_stream


def empirical_privacy_score(
    H: Any,
    sensitive_features: Any,
    *,
    kind: str = "attributes",
    probe: Any = "pool",
    H_test: Any = None,
    sensitive_features_test: Any = None,
    cv: Any = 5,
    n_jobs: int | None = None,
    random_state: RandomState = None,
) -> float:
    """One minus the success of attackers who read private variables from a representation.

    Larger is more private. Each variable is read by an attacker of its own. ``probe="majority"`` gives what
    an attacker leaves who does not look at the representation, which is the value to come close to.

    Parameters
    ----------
    H : array-like or sparse matrix of shape (n_samples, n_features)
        The representation.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The private variables. For ``kind="entities"`` a table of zeros and ones (or False and True) with one
        column per entity: is it mentioned in the text?
    kind : {"attributes", "entities"}, default="attributes"
        ``"attributes"``: :math:`1 - X`, where X is the mean over the columns of the attackers' accuracies.
        ``"entities"``: :math:`1 - F`, where F is the F1 score of presence, counted over all rows and entities
        together (micro average): twice the mentions that were found, divided by mentions plus claims.
    probe : None, str, classifier or list, default="pool"
        The attacker, see :func:`leakage_score`. Of several, the strongest is taken for each variable: that with the
        highest accuracy, or the highest F1 score of presence, on other rows than those it is scored on.
    H_test : array-like of shape (n_test, n_features), default=None
        Rows to score; without them the rows of ``H`` are scored in folds.
    sensitive_features_test : array-like, default=None
        Their private variables.
    cv : int, splitter or iterable of splits, default=5
        The folds when there are no test rows.
    n_jobs : int, default=None
        Number of attackers trained at once.
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the folds and of attackers that have none of their own.

    Returns
    -------
    float

    Notes
    -----
    The paper does not say how F1 is averaged. Its value for the majority guess on AG news, 49.34, is reached
    by the micro average of presence, and not by the macro average.

    Where no entity is mentioned and none is claimed, F1 is not defined; nothing was found, so F counts as 0.

    **Privacy.** A measurement, not a guarantee; see :func:`leakage_score`.

    References
    ----------
    Lyu, He and Li (2020), "Differentially private representation for NLP: formal guarantee and an empirical study
    on privacy and fairness", section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.metrics import empirical_privacy_score
    >>> rng = np.random.default_rng(0)
    >>> mentioned = rng.random((500, 3)) < 0.3
    >>> H = mentioned @ rng.normal(size=(3, 8)) + 0.1 * rng.normal(size=(500, 8))
    >>> empirical_privacy_score(H, mentioned, kind="entities", probe="linear", random_state=0) < 0.05
    True
    >>> empirical_privacy_score(H, mentioned, kind="entities", probe="majority", random_state=0)
    1.0
    """
    if kind not in ("attributes", "entities"):
        raise ValueError(f"kind must be 'attributes' or 'entities'; got {kind!r}.")
    stream = random_stream(random_state)
    attackers = named_attackers(probe)
    attacked = check_attacked_rows(
        H, sensitive_features, H_test, sensitive_features_test, cv, stream, min_groups=2 if kind == "attributes" else 1
    )
    groups = attacked.groups
    if kind == "entities":
        present = [_labels_of_presence(labels, name) for labels, name in zip(groups.labels, groups.names)]
    accuracies, found, mentions, claims = [], 0, 0, 0
    for j, indices in enumerate(groups.indices.T):
        attacks, truth, part = run_attacks(attacked, indices, attackers, stream, n_jobs)
        if kind == "attributes":
            accuracies.append(np.mean(strongest_attack(attacks, truth, part).predicted == truth))
        else:
            there = present[j][truth]
            said = _strongest_claims([present[j][attack.predicted] for attack in attacks.values()], there, part)
            found, mentions, claims = found + np.sum(there & said), mentions + np.sum(there), claims + np.sum(said)
    if kind == "attributes":
        return float(1 - np.mean(accuracies))
    return float(1 - 2 * found / (mentions + claims)) if mentions + claims else 1.0


def _strongest_claims(claims: list[np.ndarray], there: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Take, for each part of the rows, what the attacker says whose F1 score is highest on the other parts."""
    said = np.empty_like(there)
    for k in np.unique(part):
        inside = part == k
        scores = [np.sum(one & there & ~inside) / max(np.sum((one + 0 + there)[~inside]), 1) for one in claims]
        said[inside] = claims[int(np.argmax(scores))][inside]
    return said


def _labels_of_presence(labels: tuple, column: str) -> np.ndarray:
    """Which of a column's labels means that the entity is there."""
    strange = [label for label in labels if label not in (0, 1)]
    if strange:
        raise ValueError(
            "with kind='entities' sensitive_features must be zeros and ones, or False and True; "
            f"column {column!r} holds {strange[0]!r}."
        )
    return np.array([label == 1 for label in labels])
