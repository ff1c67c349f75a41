"""Synthetic features in which a sensitive attribute is encoded as strongly as one asks, and its joint law with y."""

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.fft import idct
from scipy.linalg import helmert

from skfairdp._validation import check_count
from skfairdp.datasets._bunch import make_bunch
from skfairdp.random import RandomState, random_stream


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


def make_biased_classification(
    n_samples: int = 1000,
    n_features: int = 10,
    *,
    n_classes: int = 2,
    n_groups: int = 2,
    class_sep: float = 2.0,
    label_bias: float = 0.3,
    group_shift: float = 2.0,
    skew: float | None = None,
    return_X_y: bool = False,
    as_frame: bool = False,
    random_state: RandomState = None,
) -> Any:
    """Make a classification problem whose features give away a sensitive attribute.

    Rows are independent. First a pair of label ``y`` and group ``z`` is drawn, then features that are
    Gaussian with unit variance around ``mean(y) + mean(z)``.

    The world is fixed by the knobs and the sizes; only the rows are random. A second call with another
    ``random_state`` therefore gives fresh rows of the same world, for instance a test set, and a second
    call with another ``skew`` gives the same world sampled in another way.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    n_features : int, default=10
        Number of features, at least ``(n_classes - 1) + (n_groups - 1)``. Label and group are spread over all
        of them.
    n_classes : int, default=2
        Number of classes, at least 2. The last one is the favourable outcome.
    n_groups : int, default=2
        Number of groups, at least 2, equally frequent unless `skew` says otherwise.
    class_sep : float, default=2.0
        Distance between the means of any two classes, in standard deviations of the features.
    label_bias : float, default=0.3
        How unequal the base rates are: ``P(y = last | z = last) - P(y = last | z = 0)``, exactly. Groups in
        between lie in between. From ``-2 / n_classes`` to ``2 / n_classes``; at 0, label and group are
        independent.
    group_shift : float, default=2.0
        How strongly the features encode the group beyond the label: the distance between the means of any
        two groups, in standard deviations of the features, in directions orthogonal to the label's. With two
        groups and `label_bias` 0, no attacker can guess the group better than ``Phi(group_shift / 2)``.
    skew : float, optional
        Sampling bias as in [1]_: rows in which label and group agree are drawn with probability `skew`. With
        two classes, two groups and `label_bias` 0, ``skew=0.8`` is the 40/10/10/40 training set and
        ``skew=0.5`` (or None) the balanced test set. ``None`` samples without skew. If the numbers of
        classes and groups differ, they agree when they are equal modulo the smaller number.
    return_X_y : bool, default=False
        Return ``(data, target)``, without the sensitive attribute, instead of a Bunch.
    as_frame : bool, default=False
        Give pandas objects.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        ``None`` draws from the operating system's entropy.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the keys `data` (of shape (n_samples, n_features)), `target` and `sensitive_features` (ints),
        `feature_names`, `target_names`, `group_names`, `joint` (the probability of each pair of label and group, of
        shape (n_classes, n_groups)), `frame` (all columns, with ``as_frame=True``) and `DESCR`.

    (data, target) : tuple
        With ``return_X_y=True``.

    Notes
    -----
    With two equally frequent classes no classifier is better than ``Phi(class_sep / 2)`` when it looks at the
    label's direction only. Where label and group are not independent, the group's direction helps to predict
    the label, and the label's direction to predict the group: this is what fair methods trade away.

    References
    ----------
    .. [1] Y. Elazar and Y. Goldberg. Adversarial removal of demographic attributes from text data. EMNLP 2018.

    Examples
    --------
    A skewed training set, and a balanced test set of the same world:

    >>> from skfairdp.datasets import make_biased_classification
    >>> knobs = {"label_bias": 0.0, "group_shift": 2.5}
    >>> train = make_biased_classification(2000, skew=0.8, random_state=0, **knobs)
    >>> test = make_biased_classification(2000, skew=None, random_state=1, **knobs)
    >>> print(train.joint.round(3))
    [[0.4 0.1]
     [0.1 0.4]]

    A model that learns from the skewed rows prefers a group, also where the labels do not:

    >>> from sklearn.linear_model import LogisticRegression
    >>> predicted = LogisticRegression().fit(train.data, train.target).predict(test.data)
    >>> group = test.sensitive_features
    >>> print(f"{predicted[group == 1].mean() - predicted[group == 0].mean():.1f}")
    0.2
    """
    n_samples = check_count(n_samples, "n_samples", 1)
    n_classes = check_count(n_classes, "n_classes", 2)
    n_groups = check_count(n_groups, "n_groups", 2)
    n_features = check_count(n_features, "n_features", 1)
    needed = n_classes + n_groups - 2
    if n_features < needed:
        raise ValueError(
            f"n_features={n_features} leaves no room for orthogonal directions: {n_classes} classes and {n_groups} "
            f"groups need n_features of at least {needed}."
        )
    class_sep = check_real(class_sep, "class_sep", 0, 1e6)
    group_shift = check_real(group_shift, "group_shift", 0, 1e6)
    joint = joint_distribution(n_classes, n_groups, label_bias, skew)

    generator = random_stream(random_state).generator
    y, z = draw_labels(joint, n_samples, generator)
    X = generator.standard_normal((n_samples, n_features))
    X[:, : n_classes - 1] += class_sep * _simplex_corners(n_classes)[y]
    X[:, n_classes - 1 : needed] += group_shift * _simplex_corners(n_groups)[z]
    # The cosine transform is orthogonal: the noise stays white and distances stay as stated, while every
    # feature carries a part of the label and of the group.
    X = idct(X, axis=1, norm="ortho")

    description = f"""\
Synthetic biased classification
-------------------------------
{n_samples} independent rows, {n_features} features, {n_classes} classes, {n_groups} groups.

Features are Gaussian with unit variance around mean(label) + mean(group). The means of any two classes are
{class_sep:g} standard deviations apart, those of any two groups {group_shift:g}, in orthogonal directions.
label_bias={label_bias:g}, skew={skew}. Nobody is described by these rows.
"""
    return make_bunch(
        pd.DataFrame(X, columns=[f"x{j}" for j in range(n_features)]),
        pd.Series(y, name="target"),
        pd.Series(z, name="group"),
        as_frame=as_frame,
        return_X_y=return_X_y,
        target_names=[f"class_{k}" for k in range(n_classes)],
        group_names=[f"group_{g}" for g in range(n_groups)],
        joint=joint,
        DESCR=description,
    )


def _simplex_corners(n: int) -> np.ndarray:
    """Return ``n`` points in ``n - 1`` dimensions with mean zero, every two of them at distance 1."""
    # Helmert's matrix is an orthonormal basis of the vectors that sum to zero.
    return (np.eye(n) - 1 / n) / np.sqrt(2) @ -helmert(n).T
