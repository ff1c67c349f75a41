"""What all our estimators share: their base class, and how rows that may be sparse are read."""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from skfairdp import __version__

#: Values that are worked on at a time: 8 MB in double precision, which processors still hold near.
BLOCK_VALUES = 1 << 20


class SkfairdpEstimator(BaseEstimator):
    """Base of every estimator.

    scikit-learn's HTML view links it to our documentation, and parameters that nothing reads are refused.
    """

    _doc_link_module: ClassVar[str] = "skfairdp"

    @property
    def _doc_link_template(self) -> str:
        version = "dev" if "dev" in __version__ else __version__
        return f"https://skfairdp.readthedocs.io/en/{version}/generated/{{estimator_module}}.{{estimator_name}}.html"

    def _refuse_unused(self, setting: str, *names: str) -> None:
        """Raise for a parameter that was changed from its default although nothing reads it in the given setting.

        Parameters
        ----------
        setting : str
            What makes the parameters useless, as the user would write it (``"labels='hard'"``).
        *names : str
            The parameters.
        """
        parameters = signature(type(self).__init__).parameters
        for name in names:
            value, default = getattr(self, name), parameters[name].default
            if value is not default and value != default:
                raise ValueError(
                    f"{name}={value!r} does nothing with {setting}: leave {name} at its default, {default!r}, or "
                    "choose another setting."
                )


@contextmanager
def restored_on_failure(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was before if what is done in this block fails or is interrupted."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:  # also Ctrl-C: whole or not at all
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def dense(X: Any) -> np.ndarray:
    """Return sparse rows as an array, and an array as it is."""
    return X.toarray() if sparse.issparse(X) else X


def dense_blocks(X: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """Read rows as arrays, some at a time: what is computed from them then takes memory by the block.

    Parameters
    ----------
    X : ndarray or sparse matrix in CSR form
        Rows; they may lie in a file (:class:`numpy.memmap`).

    Yields
    ------
    slice, ndarray
        Which rows, and what they hold.
    """
    n_rows, n_columns = X.shape
    step = max(1, BLOCK_VALUES // max(n_columns, 1))
    for start in range(0, n_rows, step):
        part = slice(start, min(start + step, n_rows))
        yield part, dense(X[part])
