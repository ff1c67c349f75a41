"""Are the outputs of equal rows independent of each other?

A guarantee for each row counts on noise of its own for each row. If two rows share theirs, the difference of the two
outputs is the difference of the two records, however large the noise is. Single outputs do not show this, so it
is asked of the releases that an audit has drawn anyway.

**The test.** Releases of equal rows are independent and alike, so given the values that came out every order of
them is equally likely. Describe each output by a few numbers, cut each number near its middle into a bit, and pair
outputs that stand some way apart, or at the same place in two calls. Given how many bits of the first members are 1,
and how many of the second members, the number of pairs in which both are 1 is hypergeometric: no matter what the
law of the outputs is, and with ties. The probabilities f(k) of that law fall ever faster to both sides, so that its
tail is at most a geometric series,

    P(k or more) <= f(k) / (1 - f(k + 1) / f(k)),

and likewise to the other side. All tests share the allowed error equally.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from skfairdp.epsilon_audit._distinguishers import finite_outputs

#: Rows that share noise usually stand close together; one more distance is looked for in the data.
_LAGS = (1, 2, 3, 4)
#: More rows of each input than this hardly let the tests see more.
MAX_ROWS = 10_000
_MAX_COLUMNS = 24
_TEXT_COLUMNS = 24
#: Fewer pairs than this cannot show dependence at any usual confidence.
_MIN_PAIRS = 16


@dataclass(frozen=True)
class Run:
    """Descriptions of equal rows, in the order in which they were released.

    Attributes
    ----------
    record : int
        Which input it was; runs of the same one are comparable.
    rows : ndarray of shape (n, k)
        What :func:`describe` made of the outputs.
    rows_per_call : int
        How many rows one call released at most.
    """

    record: int
    rows: np.ndarray
    rows_per_call: int


def describe_outputs(outputs: np.ndarray) -> np.ndarray:
    """Describe each output by a few numbers, by a rule that does not depend on the outputs.

    Parameters
    ----------
    outputs : ndarray of shape (n, n_values) of float, or (n,) of str

    Returns
    -------
    ndarray of shape (n, k)
        Some of the values, first and last among them, and the sum of all, which a row that was copied in another
        order keeps; for strings, how many words fall into each of some classes.
    """
    if outputs.dtype.kind == "U":
        counts = np.zeros((len(outputs), _TEXT_COLUMNS))
        for row, text in zip(counts, outputs.tolist()):
            for word in text.split():
                row[zlib.crc32(word.encode()) % _TEXT_COLUMNS] += 1
        return counts
    n_values = outputs.shape[1]
    if n_values == 1:
        return finite_outputs(outputs)
    columns = np.unique(np.linspace(0, n_values - 1, min(n_values, _MAX_COLUMNS)).astype(int))
    with np.errstate(invalid="ignore"):  # infinities of both signs
        return finite_outputs(np.column_stack([outputs[:, columns], outputs.sum(axis=1)]))


def find_dependence(runs: list[Run], alpha: float) -> str | None:
    """Test whether the rows of all runs were released independently.

    Parameters
    ----------
    runs : list of Run
        Runs of two inputs, the last two of them one of each.
    alpha : float
        The probability, at most, with which an independent release is accused.

    Returns
    -------
    str or None
        What depends on what, in words; None if nothing was found.
    """
    found = [(reason, independence_bounds(first, second)) for reason, first, second in _questions_of_independence(runs)]
    reason, smallest = min(((reason, float(bounds.min())) for reason, bounds in found), key=lambda item: item[1])
    p = sum(bounds.size for _, bounds in found) * smallest
    return f"{reason} (p <= {max(p, 1e-300):.1g})" if p <= alpha else None


def _questions_of_independence(runs: list[Run]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield a reason, and bits of paired outputs as arrays of shape (k, n_pairs)."""
    bits = [_bits_above_median(_with_magnitude(run.rows)) for run in runs]
    for i, run in list(enumerate(runs))[-2:]:
        unit = "call" if run.rows_per_call == 1 else "row"
        lags = [(lag, f"{lag} {unit}{'s' if lag > 1 else ''} apart") for lag in _LAGS]
        lags.append((run.rows_per_call, "at the same place in successive calls"))
        if i == len(runs) - 1:  # the other run, which is independent of this one, says where to look
            lag = _likely_lag(bits[i - 1])
            lags.append((lag, f"{lag} {unit}s apart"))
        for lag, where in lags:
            for first, second in _pairs_at(bits[i], lag):
                yield f"outputs {where} depend on each other", first, second
    for i in range(len(runs)):
        for j in range(i):
            n = min(bits[i].shape[1], bits[j].shape[1])
            yield "outputs at the same place in two calls depend on each other", bits[j][:, :n], bits[i][:, :n]
            if runs[i].record == runs[j].record:
                both = _bits_above_median(np.concatenate([runs[j].rows, runs[i].rows]))
                later = np.arange(both.shape[1]) >= len(runs[j].rows)
                yield "later outputs differ from earlier ones of the same row", later[np.newaxis], both


def _pairs_at(bits: np.ndarray, lag: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs that stand ``lag`` apart, in two lots within which no output occurs twice.

    A lot may be empty. It is a test all the same: their number must not depend on a distance found in the data.
    """
    first = np.arange(max(0, bits.shape[1] - lag))
    for lot in (0, 1):
        chosen = first[first // lag % 2 == lot]
        yield bits[:, chosen], bits[:, chosen + lag]


def _with_magnitude(rows: np.ndarray) -> np.ndarray:
    """Append how far each row lies from the middle: noise that is copied with random signs shows there only."""
    return np.column_stack([rows, np.abs(rows - np.median(rows, axis=0)).sum(axis=1)])


def _bits_above_median(rows: np.ndarray) -> np.ndarray:
    """Cut every column at its median, ties on the side that leaves the halves more equal; shape (k, n)."""
    columns = np.ascontiguousarray(rows.T)
    median = np.partition(columns, columns.shape[1] // 2, axis=1)[:, columns.shape[1] // 2][:, np.newaxis]
    above, at_least = columns > median, columns >= median
    n = columns.shape[1]
    strict = np.abs(2 * np.count_nonzero(above, axis=1) - n) <= np.abs(2 * np.count_nonzero(at_least, axis=1) - n)
    return np.where(strict[:, np.newaxis], above, at_least)


def _likely_lag(bits: np.ndarray) -> int:
    """The distance, beyond the fixed ones, at which outputs resemble each other most: autocorrelation of some bits."""
    some = bits[np.unique(np.linspace(0, len(bits) - 1, 4).astype(int))].astype(float)
    n = some.shape[1]
    some -= some.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(some, 2 * n, axis=1)) ** 2
    lags = np.arange(max(_LAGS) + 1, max(max(_LAGS) + 2, n - _MIN_PAIRS))
    alike = np.abs(np.fft.irfft(power, 2 * n, axis=1)[:, lags])
    return int(lags[np.argmax((alike / np.sqrt(np.maximum(n - lags, 1))).max(axis=0))])


def independence_bounds(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Bound the probability that independent bits agree, or disagree, as often as these or more.

    Parameters
    ----------
    first, second : ndarray of bool of shape (k, n_pairs); ``first`` may have shape (1, n_pairs)

    Returns
    -------
    ndarray of shape (k,)
        Valid for both directions together.
    """
    n = second.shape[1]
    both = np.count_nonzero(first & second, axis=1).astype(float)
    ones, others = np.count_nonzero(first, axis=1) + 0 * both, np.count_nonzero(second, axis=1)
    cells = np.array([both, ones - both, others - both, n - ones - others + both])
    margins = np.array([ones, n - ones, others, n - others])
    log_f = gammaln(margins + 1).sum(axis=0) - gammaln(cells + 1).sum(axis=0) - gammaln(n + 1)
    yes, no = cells[0] * cells[3], cells[1] * cells[2]
    # f(k + 1) / f(k) and f(k - 1) / f(k); where a ratio is 1 or more the other side is the tail
    ratios = np.array([no / ((cells[0] + 1) * (cells[3] + 1)), yes / ((cells[1] + 1) * (cells[2] + 1))])
    smaller = ratios.min(axis=0)
    with np.errstate(divide="ignore"):
        log_tail = log_f - np.log(np.maximum(1 - smaller, 0.0))
    return np.minimum(1.0, 2 * np.exp(np.minimum(log_tail, 0.0)))
