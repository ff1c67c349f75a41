"""From what a user gives to the arrays that a net is trained on."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.class_weight import compute_class_weight

from skfairdp._sklearn import check_sample_weight
from skfairdp._validation import SensitiveGroups, check_sensitive_features
from skfairdp.adversarial._rows import merge_rows
from skfairdp.exceptions import MissingSensitiveFeaturesWarning
from skfairdp.mechanisms import Mechanism


@dataclass
class TrainingTable:
    """Encoded training data: equal rows are merged, and ``weight`` is None when all rows weigh the same."""

    x: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None
    weight: np.ndarray | None
    classes: np.ndarray
    sensitive: SensitiveGroups | None

    @property
    def n_groups(self) -> tuple[int, ...]:
        """Groups of each sensitive column."""
        return () if self.sensitive is None else self.sensitive.n_groups

    def chance_loss(self) -> float:
        """Cross-entropy, in nats, of an adversary that knows nothing but how frequent the groups are."""
        if self.groups is None:
            return float("nan")
        entropies = []
        for j, n in enumerate(self.n_groups):
            share = np.bincount(self.groups[:, j], weights=self.weight, minlength=n)
            share = share[share > 0] / share.sum()
            entropies.append(-(share * np.log(share)).sum())
        return float(np.mean(entropies))


def prepare(
    x: np.ndarray, y: np.ndarray, sensitive_features: Any, sample_weight: Any, class_weight: Any
) -> TrainingTable:
    """Encode labels, groups and weights, and merge equal rows.

    Parameters
    ----------
    x : ndarray of shape (n_samples, n_features)
        Validated rows.
    y : ndarray of shape (n_samples,)
        Labels of any type.
    sensitive_features, sample_weight, class_weight
        As in ``FederateClassifier``.

    Returns
    -------
    TrainingTable
    """
    weight = check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    sensitive = None
    if sensitive_features is not None:
        sensitive = check_sensitive_features(sensitive_features, len(x), min_groups=2)
    groups = None if sensitive is None else sensitive.indices
    kept = weight > 0
    if not kept.all():
        x, y, weight = x[kept], y[kept], weight[kept]
        groups = None if groups is None else groups[kept]
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "y must hold at least two classes in rows of positive weight; "
            f"got {len(classes)} class: {classes.tolist()}."
        )
    if class_weight is not None:
        weight = weight * _class_weights(class_weight, classes, y, codes, weight)[codes]
    x, codes, groups, weight = merge_rows(x, codes, groups, weight)
    weight = weight * (len(weight) / weight.sum())
    equal = bool(np.all(weight == weight[0]))
    return TrainingTable(x, codes, groups, None if equal else weight, classes, sensitive)


def _class_weights(
    class_weight: Any, classes: np.ndarray, y: np.ndarray, codes: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    if class_weight == "balanced":
        return weight.sum() / (len(classes) * np.bincount(codes, weights=weight))
    return compute_class_weight(class_weight, classes=classes, y=y)


def refuse_without_groups(estimator: Any) -> None:
    """Raise if a fairness term was asked for and no groups were given; warn if it is only left out by default.

    Parameters
    ----------
    estimator : FederateClassifier
        Whose parameters count.
    """
    asked = {
        "adversary_weight": (estimator.adversary_weight or 0) > 0,
        "fairness_penalty": estimator.fairness_penalty > 0,
        "n_adversaries": estimator.n_adversaries > 1 and estimator.adversary_weight != 0,
    }
    wanted = [f"{name}={getattr(estimator, name)!r}" for name, is_asked in asked.items() if is_asked]
    if wanted:
        raise ValueError(
            f"{' and '.join(wanted)} asks for a fairness term, and sensitive_features are missing. Give "
            "fit(X, y, sensitive_features=...); in a pipeline or a search, "
            "sklearn.set_config(enable_metadata_routing=True) and route_sensitive_features pass them on. To train "
            "without groups, set adversary_weight=0 and fairness_penalty=0."
        )
    if estimator.adversary_weight is None:
        warnings.warn(
            "FederateClassifier was fitted without sensitive_features: it is trained without a fairness term. Give "
            "fit(X, y, sensitive_features=...), or say adversary_weight=0.",
            MissingSensitiveFeaturesWarning,
            stacklevel=4,
        )


def history_table(history: list[dict[str, Any]], chance_loss: float) -> pd.DataFrame:
    """One row per epoch; ``adversary_advantage`` is how much better than chance the adversary is, in nats."""
    left_out = ("batches", "train_batch_count")
    rows = [{name: value for name, value in epoch.items() if name not in left_out} for epoch in history]
    table = pd.DataFrame(rows).rename(columns={"dur": "seconds"})
    table["epoch"] = np.arange(1, len(table) + 1)
    if "adversary_loss" in table:
        table["adversary_advantage"] = chance_loss - table["adversary_loss"]
    return table.set_index("epoch")


# Parameters that go to the net as the user gave them.
_AS_GIVEN = (
    "dropout",
    "adversary_schedule",
    "n_adversaries",
    "orthogonality",
    "fairness",
    "max_epochs",
    "batch_size",
    "lr",
    "optimizer",
    "validation_fraction",
    "device",
    "callbacks",
)


def make_settings(estimator: Any, mechanism: Mechanism, n_outputs: int, table: TrainingTable) -> Any:
    """Collect what the net is built and trained by; without groups there is no fairness term.

    Parameters
    ----------
    estimator : FederateClassifier
        Whose parameters count.
    mechanism : Mechanism
        What will release the representation.
    n_outputs : int
        Width of the representation, or number of codes.
    table : TrainingTable
        What it will be trained on.

    Returns
    -------
    skfairdp.neural.FederateSettings
    """
    from skfairdp.neural import FederateSettings

    sizes = {}
    for name in ("encoder_hidden_sizes", "classifier_hidden_sizes", "adversary_hidden_sizes"):
        sizes[name] = tuple(int(width) for width in getattr(estimator, name))
        if any(width < 1 for width in sizes[name]):
            raise ValueError(f"{name} must hold layer widths of at least 1; got {getattr(estimator, name)!r}.")
    has_groups, weight = table.sensitive is not None, estimator.adversary_weight
    reads_text = hasattr(estimator.encoder, "make_module")
    return FederateSettings(
        mechanism=mechanism,
        n_outputs=n_outputs,
        encoder=estimator.text_encoder_.make_module if reads_text else estimator.encoder,
        adversary_weight=(1.0 if weight is None else float(weight)) if has_groups else 0.0,
        fairness_penalty=float(estimator.fairness_penalty) if has_groups else 0.0,
        patience=estimator.n_iter_no_change if estimator.early_stopping else None,
        verbose=int(estimator.verbose),
        n_classes=len(table.classes),
        n_groups=table.n_groups,
        **sizes,
        **{name: getattr(estimator, name) for name in _AS_GIVEN},
    )
