"""What ``fit`` reads from its parameters and its labels."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from skfairdp._validation import check_count
from skfairdp.ensemble._teachers import NetworkSettings
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.random import RandomStream

#: Noise on a vote share up to which centred labels of any size serve a logistic student better than clipped ones.
MODERATE_NOISE = 0.5

_LABEL_SET = "which class labels occur (classes_ was read from y; give classes to fix them beforehand)"


def encode_labels(y: Any, classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return class labels, and each row's class as 0, 1, ..."""
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    if classes is None:
        return np.unique(y, return_inverse=True)
    allowed = np.unique(np.asarray(classes))
    known = np.isin(y, allowed)
    if not known.all():
        strangers = np.unique(y[~known])[:5].tolist()
        raise ValueError(f"y must hold the labels named in classes, {allowed.tolist()}; it also holds {strangers}.")
    return allowed, np.searchsorted(allowed, y)


def set_aside(n_rows: int, fraction: float, stream: RandomStream) -> tuple[np.ndarray, np.ndarray]:
    """Choose rows that stand in for public ones, and say that they are not protected; returns these and the rest."""
    n_aside = min(max(1, round(fraction * n_rows)), n_rows - 1)
    order = stream.generator.permutation(n_rows)
    warnings.warn(
        f"no public rows were given: {n_aside} of the {n_rows} rows of X are set aside as public, and their "
        "features are not protected. Give public rows to fit(X, y, public=...).",
        PrivacyLeakWarning,
        stacklevel=4,  # past fit and the wrapper that validates parameters
    )
    return np.sort(order[:n_aside]), np.sort(order[n_aside:])


def not_covered(classes: Any, n_aside: int, n_rows: int) -> tuple[str, ...]:
    """Name what the guarantee leaves out because of how ``fit`` was called."""
    missing: list[str] = [] if classes is not None else [_LABEL_SET]
    if n_aside:
        missing.append(f"the features of {n_aside} of the {n_rows} rows, which were set aside as public")
    return tuple(missing)


def read_networks(
    hidden_sizes: Sequence[int], max_epochs: int, batch_size: int, learning_rate: float
) -> NetworkSettings:
    """Read how networks are trained."""
    sizes = tuple(check_count(size, f"hidden_sizes[{i}]") for i, size in enumerate(hidden_sizes))
    return NetworkSettings(sizes, int(max_epochs), int(batch_size), float(learning_rate))


def check_postprocess(postprocess: str, student: Any, labels: str) -> None:
    """Refuse negative weights where they cannot be learned from."""
    if not isinstance(student, str) and labels == "soft" and postprocess not in ("auto", "simplex"):
        raise ValueError(
            f"postprocess={postprocess!r} gives negative weights, which a classifier as student cannot take; "
            "use 'simplex' (or 'auto'), or student='logistic'."
        )


def choose_postprocess(postprocess: str, student: Any, noise_share: float) -> str:
    """Choose how noisy shares become soft labels, by the noise on a share, which is no secret."""
    if postprocess != "auto":
        return postprocess
    if not (isinstance(student, str) and student == "logistic"):
        return "simplex"
    return "affine" if noise_share <= MODERATE_NOISE else "clip"


def read_regularization(regularization: float | None, student: Any) -> float:
    """Choose the strength of the student's penalty."""
    if regularization is not None:
        return float(regularization)
    return 0.1 if isinstance(student, str) and student == "logistic" else 0.001
