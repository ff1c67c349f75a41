"""Which two inputs to attack: the neighbours between which a mechanism loses most."""

import warnings
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from skfairdp._validation import check_count
from skfairdp.exceptions import OverclaimedPrivacyWarning
from skfairdp.preprocessing import GaussianPrivatizer, LaplacePrivatizer
from skfairdp.random import RandomState, RandomStream, random_stream

Pair = tuple[np.ndarray, np.ndarray]


def worst_case_pair(estimator: Any, n_features: int | None = None) -> Pair:
    """Return two inputs between which a mechanism loses its whole epsilon: the first of :func:`worst_case_pairs`.

    Parameters
    ----------
    estimator : LaplacePrivatizer, GaussianPrivatizer, OMEEncoder, a mechanism, or an estimator of your own
        As in :func:`worst_case_pairs`.
    n_features : int, optional
        The width of the inputs; by default the ``n_features_in_`` of a fitted estimator.

    Returns
    -------
    x, x_prime : ndarray of shape (n_features,)
        In the units that ``transform`` takes.

    Notes
    -----
    **Privacy.** For noise on normalised rows the pair is the one whose normalised rows are farthest apart, in the
    L1 norm for Laplace noise and in the L2 norm for Gaussian noise. For randomised bits it is the row of bits whose
    losses, the larger one of each bit, add up, and its complement.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import LaplacePrivatizer
    >>> from skfairdp.epsilon_audit import worst_case_pair
    >>> x, x_prime = worst_case_pair(LaplacePrivatizer(epsilon=1.0, norm="minmax"), n_features=4)
    >>> x, x_prime
    (array([0., 1., 1., 1.]), array([1., 0., 0., 0.]))
    """
    return worst_case_pairs(estimator, n_features)[0]


def worst_case_pairs(
    estimator: Any, n_features: int | None = None, *, random_state: RandomState | RandomStream = None
) -> list[Pair]:
    """Return pairs of inputs between which a mechanism loses much, the first of them its whole epsilon.

    One pair shows whether an epsilon is exact. Several show whether an implementation keeps it everywhere: a
    coordinate that got no noise is seen only where it moves.

    Parameters
    ----------
    estimator : LaplacePrivatizer, GaussianPrivatizer, OMEEncoder, a mechanism, or an estimator of your own
        Asked in this order: the ``mechanism_`` of a fitted estimator, which is what it releases with, whatever
        ``set_params`` was told later; a method ``worst_case_pairs()`` of its own, or ``_worst_case_pair(n_features)``
        for a single pair. An estimator that is not fitted is fitted, as a clone, on a row of zeros.
    n_features : int, optional
        The width of the inputs; by default the ``n_features_in_`` of a fitted estimator.
    random_state : int, Generator, RandomState or None
        For the pairs that are drawn at random.

    Returns
    -------
    list of (x, x_prime)
        Rows of shape (n_features,), in the units that ``transform`` takes.

    See Also
    --------
    skfairdp.mechanisms.farthest_pairs : The pairs for noise on normalised rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import LaplacePrivatizer
    >>> from skfairdp.epsilon_audit import worst_case_pairs
    >>> privatizer = LaplacePrivatizer(epsilon=1.0).fit(np.zeros((1, 3)))
    >>> [abs(x - x_prime).sum().round(6).item() for x, x_prime in worst_case_pairs(privatizer)]
    [2.0, 2.0, 2.0, 2.0]
    """
    pairs = _known_pairs(estimator, n_features, random_stream(random_state))
    return [(read_record(x, "x"), read_record(x_prime, "x_prime")) for x, x_prime in pairs]


def _known_pairs(estimator: Any, n_features: int | None, stream: RandomStream) -> list[Pair]:
    width = getattr(estimator, "n_features_in_", None)
    mechanism = getattr(getattr(estimator, "mechanism_", None), "worst_case_pairs", None)
    # a model in front of the mechanism turns inputs into something else, and the mechanism's pairs are of that
    if mechanism is not None and not hasattr(estimator, "predict"):
        pairs = _ask_for_pairs(mechanism, stream)
        if width is None or np.size(pairs[0][0]) == width:
            return _check_fitted_width(pairs, n_features)
    own = getattr(estimator, "worst_case_pairs", None)
    if own is not None:
        return _check_fitted_width(_ask_for_pairs(own, stream), n_features)
    one = getattr(estimator, "_worst_case_pair", None)
    if one is not None:
        return [one(_check_width(width if n_features is None else n_features))]
    if not isinstance(estimator, LaplacePrivatizer | GaussianPrivatizer):
        raise TypeError(
            f"The worst-case neighbours of {type(estimator).__name__} are not known. Give x and x_prime yourself, or "
            "give the class a method worst_case_pairs() that returns a list of them; audit the last step of a pipeline."
        )
    width = _check_width(n_features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverclaimedPrivacyWarning)  # the clone releases nothing
        fitted = clone(estimator).fit(np.zeros((1, width)))
    return _known_pairs(fitted, width, stream)


def _ask_for_pairs(method: Callable, stream: RandomStream) -> list[Pair]:
    """Ask for pairs, and lend our stream to a method that draws some of them."""
    return method(stream=stream) if "stream" in signature(method).parameters else method()


def pair_differing_in_column(pairs: list[Pair], column: int) -> Pair | None:
    """Return a pair that differs in the given column alone: one of the pairs, with two columns exchanged.

    Normalisations do not depend on the order of the columns, so this pair is as far apart. None if no pair differs in
    a single column.
    """
    for x, x_prime in pairs:
        if isinstance(x, str) or x.ndim != 1 or column >= x.size:
            return None
        moving = np.flatnonzero(x != x_prime)
        if len(moving) == 1:
            order = np.arange(x.size)
            order[[column, moving[0]]] = order[[moving[0], column]]
            return x[order], x_prime[order]
    return None


def _check_width(n_features: Any) -> int:
    if n_features is None:
        raise ValueError("n_features is missing: give it, or fit the estimator first.")
    return check_count(n_features, "n_features")


def _check_fitted_width(pairs: list[Pair], n_features: int | None) -> list[Pair]:
    width = np.size(pairs[0][0])
    if n_features is not None and _check_width(n_features) != width:
        raise ValueError(f"n_features must be {width}, as in fit; got {n_features!r}.")
    return pairs


def read_record(x: Any, name: str) -> Any:
    """Return one record: a string (a document), or the values of one row as an array."""
    if isinstance(x, str):
        return x
    if x is None:
        raise ValueError(f"{name} is missing: give both x and x_prime, or neither (the worst case is then used).")
    row = x.to_numpy() if hasattr(x, "to_numpy") else x.toarray() if sparse.issparse(x) else np.asarray(x)
    if row.ndim == 2 and row.shape[0] == 1:
        row = row[0]
    row = np.atleast_1d(row)
    if row.ndim != 1 or row.size == 0:
        raise ValueError(f"{name} must be one record (a row of values, or a document); got shape {row.shape}.")
    return row
