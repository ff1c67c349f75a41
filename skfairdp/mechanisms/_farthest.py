"""Rows that a normalisation puts as far apart as it can: where an added noise hides least."""

import numpy as np

from skfairdp.mechanisms._normalise import check_clip_norm, check_norm
from skfairdp.random import RandomStream, random_stream

Pair = tuple[np.ndarray, np.ndarray]


def farthest_pairs(
    norm: str,
    n_features: int,
    *,
    noise: str = "laplace",
    clip_norm: float = 1.0,
    stream: RandomStream | None = None,
) -> list[Pair]:
    """Several pairs of rows that are hard to hide, the first of them as far apart as the normalisation allows.

    One pair is enough to know the sensitivity, not to look for faults: a coordinate that an implementation forgot
    shows only where it moves. So there are pairs in which the first, the last, or every coordinate moves, and
    some are drawn at random, so that no fault can hide from them for good.

    Parameters
    ----------
    norm : {"l1", "l2", "minmax", "clip"}
        The normalisation.
    n_features : int
        The number of columns D.
    noise : {"laplace", "gaussian"}, default="laplace"
        Whether distance is meant in the L1 or in the L2 norm.
    clip_norm : float, default=1.0
        The radius of the sphere or box, or the length of the min-max interval.
    stream : RandomStream, optional
        Draws the random pairs; without it they are always the same.

    Returns
    -------
    list of (x, x_prime)
        Rows of shape (n_features,), already normalised. In short, with unit vectors e and signs s:

        - ``"l1"``: e_1, e_D, s/D and a random point of the sphere, each against its negative. For Laplace noise all
          are equally far apart; for Gaussian noise only the first two are at the largest distance.
        - ``"l2"``, Laplace: 1/sqrt(D) and s/sqrt(D) at the largest distance, e_1 and e_D nearer, against their
          negatives.
        - ``"l2"``, Gaussian: e_1, e_D, s/sqrt(D) and a random unit vector, against their negatives.
        - ``"minmax"``: 0/1 patterns against their complements.
        - ``"clip"``: the corners 1 and s at the largest distance, e_1 and e_D nearer, against their negatives.

    Notes
    -----
    **Privacy.** Laplace noise of scale b on each coordinate loses ``sum |x - x_prime| / b`` between two rows, Gaussian
    noise an amount that grows with the L2 distance over sigma. So the farthest rows lose the whole epsilon.
    Pairs that are nearer lose less if the noise is right, and may lose most if it is not.

    Examples
    --------
    >>> from skfairdp.mechanisms import farthest_pairs
    >>> farthest_pairs("l1", 3)[:2]
    [(array([1., 0., 0.]), array([-1.,  0.,  0.])), (array([0., 0., 1.]), array([ 0.,  0., -1.]))]
    >>> all(abs(x - x_prime).sum() == 4 for x, x_prime in farthest_pairs("minmax", 4))
    True
    """
    radius = check_clip_norm(clip_norm)
    if noise not in ("laplace", "gaussian"):
        raise ValueError(f"noise must be 'laplace' or 'gaussian'; got {noise!r}.")
    if check_norm(norm) == "minmax" and n_features == 1:
        raise ValueError("n_features must be at least 2 for norm='minmax': a single value always becomes 0.")
    random = (random_stream(0) if stream is None else stream).generator
    signs = random.choice([-1.0, 1.0], n_features)
    first, last = np.zeros((2, n_features))
    first[0] = last[-1] = 1.0
    root = np.sqrt(n_features)
    if norm == "minmax":
        pattern = (signs + 1) / 2
        pattern[random.choice(n_features, 2, replace=False)] = 0.0, 1.0  # a constant row has no direction
        return _distinct([(radius * row, radius * (1 - row)) for row in (1 - first, 1 - last, pattern)])
    if norm == "l1":
        rows = [first, last, signs / n_features, signs * random.dirichlet(np.ones(n_features))]
    elif norm == "clip":
        rows = [np.ones(n_features), signs, first, last]
    elif noise == "laplace":
        rows = [np.ones(n_features) / root, signs / root, first, last]
    else:
        direction = random.normal(size=n_features)
        rows = [first, last, signs / root, direction / np.linalg.norm(direction)]
    return _distinct([(radius * row, 0.0 - radius * row) for row in rows])


def _distinct(pairs: list[Pair]) -> list[Pair]:
    """Leave out what is there already, in either order: with one feature there is only one pair."""
    kept: list[Pair] = []
    for x, x_prime in pairs:
        if not any(np.allclose(x, known) for pair in kept for known in pair):
            kept.append((x, x_prime))
    return kept
