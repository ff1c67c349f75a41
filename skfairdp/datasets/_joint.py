"""How labels and groups hang together: the joint distribution behind the synthetic data sets."""

from numbers import Real
from typing import Any

import numpy as np


def check_real(value: Any, name: str, minimum: float, maximum: float) -> float:
    """Return a float within its bounds, or say which argument is wrong."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(
            f"{name} must be a number in [{minimum:g}, {maximum:g}]; got {value!r} of type {type(value).__name__}."
        )
    number = float(value)
    if not minimum <= number <= maximum:  # nan fails this comparison
        raise ValueError(f"{name} must be a number in [{minimum:g}, {maximum:g}]; got {value!r}.")
    return number


def joint_distribution(n_classes: int, n_groups: int, label_bias: Any, skew: Any) -> np.ndarray:
    """Return the table ``P(y, z)`` of shape (n_classes, n_groups).

    Groups are equally frequent. The last class, the favourable one, has in group ``g`` the base rate

        P(y = C - 1 | z = g) = 1 / C + label_bias * (g / (G - 1) - 1 / 2),

    and the other classes share the rest equally. ``skew`` then reweights the cells in which label and
    group agree (``y = z`` modulo the smaller of C and G) so that together they weigh ``skew``.
    """
    label_bias = check_real(label_bias, "label_bias", -2 / n_classes, 2 / n_classes)
    position = np.arange(n_groups) / (n_groups - 1) - 0.5
    favourable = 1 / n_classes + label_bias * position
    joint = np.tile((1 - favourable) / (n_classes - 1), (n_classes, 1))
    joint[-1] = favourable
    joint = np.clip(joint, 0, 1) / n_groups
    if skew is None:
        return joint

    skew = check_real(skew, "skew", 0, 1)
    n_kinds = min(n_classes, n_groups)
    agree = np.arange(n_classes)[:, None] % n_kinds == np.arange(n_groups) % n_kinds
    for cells, weight, word in ((agree, skew, "agree"), (~agree, 1 - skew, "disagree")):
        mass = joint[cells].sum()
        if mass > 0:
            joint[cells] *= weight / mass
        elif weight > 0:
            raise ValueError(
                f"skew={skew!r} asks for rows in which label and group {word}, but label_bias={label_bias!r} "
                "leaves none; choose a label_bias nearer to 0."
            )
    return joint


def draw_labels(joint: np.ndarray, n_samples: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw independent pairs (y, z) from their joint distribution."""
    cells = generator.choice(joint.size, size=n_samples, p=joint.ravel() / joint.sum())
    y, z = np.divmod(cells, joint.shape[1])
    return y, z
