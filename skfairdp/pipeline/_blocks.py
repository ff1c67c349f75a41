"""Rows that are released in several blocks and paid for once, since each of them is in one block only."""

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from skfairdp._base import BLOCK_VALUES
from skfairdp._validation import check_count
from skfairdp.dp import PrivacyGuarantee, ReleaseMixin, charge, paying
from skfairdp.pipeline._guarantee import price_and_releases


@dataclass(frozen=True)
class PriceOfRows:
    """What rows cost that an estimator is given, as it is now.

    Attributes
    ----------
    guarantee : PrivacyGuarantee
        The price of each row, for all steps together.
    releases : tuple of PrivacyGuarantee
        What each private step spends for itself when the rows pass once.
    """

    guarantee: PrivacyGuarantee
    releases: tuple[PrivacyGuarantee, ...]


def price_of_new_rows(estimator: Any) -> PriceOfRows | None:
    """Return what an estimator or a pipeline costs each row that it is given; ``None`` if it makes nothing private."""
    guarantee, releases = price_and_releases(estimator, "new")
    return None if guarantee.mechanism == "none" else PriceOfRows(guarantee, releases)


@contextmanager
def paid_before(price: PriceOfRows) -> Iterator[None]:
    """Let the code within release rows whose price has been charged already, each of them once.

    Between the charge and the draw another thread may have refitted a step or changed its epsilon. So only the releases
    that the price was computed from are let through, each once; any other is refused.
    """
    left = Counter(_what_runs(release) for release in price.releases)

    def refuse_others(release: PrivacyGuarantee) -> None:
        left[_what_runs(release)] -= 1
        if left[_what_runs(release)] < 0:
            raise RuntimeError(
                f"{price.guarantee} was paid for these rows, and no step was to release them by {release}: the "
                "estimator has changed since, in another thread perhaps. Rows of this block were not released."
            )

    with paying(refuse_others):
        yield


def _what_runs(release: PrivacyGuarantee) -> Hashable:
    """Describe a release without the stream of its noise, which is another one in every worker."""
    return release.with_seed(None).events


def transform_in_blocks(estimator: Any, X: Any, out: Any, *, block_rows: int | None = None) -> PrivacyGuarantee | None:
    """Transform rows that do not fit into memory, from one array on disk into another.

    Parameters
    ----------
    estimator : transformer
        Fitted: a privatizer, an encoder, an eraser, or a pipeline of such.
    X : array of shape (n_samples, n_features)
        Anything that has a ``shape`` and whose rows can be sliced: :class:`numpy.memmap`, arrays of Zarr or HDF5, CSR
        matrices.
    out : array of shape (n_samples, n_features_out)
        Where rows are written, such as ``numpy.lib.format.open_memmap(path, "w+", numpy.float64, shape)``.
    block_rows : int, optional
        Rows in memory at a time; by default as many as hold a million values.

    Returns
    -------
    PrivacyGuarantee or None
        What the release costs each row, charged once; ``None`` if the transformer releases nothing.

    Notes
    -----
    **Privacy.** Every row is in one block, and every block draws noise of its own, so that all blocks together cost
    each row what one block does. The rows are read twice: they are checked to the last one, then the release is
    charged, and then noise is drawn. If writing fails midway, what has been written was released.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import LaplacePrivatizer, PrivacyLedger
    >>> from skfairdp.pipeline import transform_in_blocks
    >>> X, out = np.ones((10, 3)), np.empty((10, 3))
    >>> with PrivacyLedger() as ledger:
    ...     guarantee = transform_in_blocks(LaplacePrivatizer(2.0).fit(X), X, out, block_rows=4)
    >>> guarantee.epsilon, ledger.total().epsilon, len(ledger)
    (2.0, 2.0, 1)
    """
    price = price_of_new_rows(estimator)
    n_rows, n_columns = X.shape
    if len(getattr(out, "shape", ())) != 2 or out.shape[0] != n_rows:
        raise ValueError(f"out must be an array with {n_rows} rows, as X; got shape {getattr(out, 'shape', None)}.")
    if isinstance(X, np.ndarray) and isinstance(out, np.ndarray) and np.may_share_memory(X, out):
        raise ValueError("out must not share memory with X: rows that are written would be read again.")
    step = max(1, BLOCK_VALUES // max(n_columns, out.shape[1], 1))
    step = step if block_rows is None else check_count(block_rows, "block_rows")
    parts = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]
    if price is None:
        for part in parts:
            out[part] = estimator.transform(X[part])
        return None
    if isinstance(estimator, ReleaseMixin):
        for part in parts:
            estimator.mechanism_.check(estimator._values(X[part]))
    charge(price.guarantee, source=type(estimator).__name__)
    for part in parts:
        with paid_before(price):
            released = estimator.transform(X[part])
        out[part] = released
    return price.guarantee
