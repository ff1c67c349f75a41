"""Drawing many releases of two inputs, scoring them, and telling which pair of inputs promises most.

One call with many equal rows is as many independent releases, which is what makes an audit fast.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from skfairdp.epsilon_audit._certified_bounds import choose_event
from skfairdp.epsilon_audit._distinguishers import Score, least_varying_column, train_distinguishers, train_quick
from skfairdp.epsilon_audit._row_dependence import MAX_ROWS, Run, describe_outputs
from skfairdp.epsilon_audit._worst_case_pairs import pair_differing_in_column
from skfairdp.random import RandomStream, random_stream

# -- drawing releases -------------------------------------------------------------------------------------------------


#: Values per call; keeps a block of inputs small enough for the cache and for wide outputs.
_VALUES_PER_CALL = 400_000


def release_function(release: Any) -> Callable[[Any], Any]:
    """Find what an object releases: its ``transform``, its ``predict_proba``, or what it returns when called.

    A mechanism, which has a method ``release(X, stream)``, draws from the operating system.
    """
    for method in ("transform", "predict_proba"):
        if callable(getattr(release, method, None)):
            return getattr(release, method)
    if is_mechanism(release):
        stream = random_stream(None)
        return lambda X: release.release(X, stream)
    if callable(release):
        return release
    raise TypeError(
        "release must be a fitted transformer, a classifier with transform or predict_proba, a mechanism, or a "
        f"function of rows; got {release!r} of type {type(release).__name__}."
    )


def is_mechanism(release: Any) -> bool:
    """Whether this is the mechanism itself, which draws from a stream it is given, rather than an estimator."""
    return all(callable(getattr(release, name, None)) for name in ("release", "log_likelihood_ratio"))


def check_different(x: Any, x_prime: Any) -> None:
    """Refuse a pair that cannot show anything."""
    if isinstance(x, str) != isinstance(x_prime, str):
        raise ValueError("x and x_prime must both be documents, or both be rows of values.")
    if not isinstance(x, str) and x.shape != x_prime.shape:
        raise ValueError(f"x and x_prime must have equally many values; got {x.size} and {x_prime.size}.")
    pairs = [(x, x_prime)] if isinstance(x, str) else zip(x.tolist(), x_prime.tolist())
    if all(a == b or (a != a and b != b) for a, b in pairs):
        raise ValueError("x and x_prime are equal: no release can tell them apart. Give two different records.")


class Draws:
    """Independent releases of one record.

    Parameters
    ----------
    function : callable
        Rows in, one output per row.
    record : str or ndarray of shape (n_features,)
        What is released again and again.
    rows_per_call : int or None
        How many rows to hand over in one call; ``None`` for as many as fit into a block.
    columns : list of str or None
        The feature names that the release was fitted with.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        record: Any,
        rows_per_call: int | None = None,
        columns: list[str] | None = None,
    ):
        self._function = function
        self._record = record
        size = len(record.split()) + 1 if isinstance(record, str) else record.size
        self.rows_per_call = rows_per_call or max(1, _VALUES_PER_CALL // size)
        self._columns = columns

    def blocks(self, n: int) -> Iterator[np.ndarray]:
        """Yield ``n`` releases in blocks, as arrays of shape (rows, n_values), or (rows,) of strings."""
        while n > 0:
            rows = min(n, self.rows_per_call)
            yield read_outputs(self._function(self._inputs(rows)), rows)
            n -= rows

    def take(self, n: int) -> np.ndarray:
        """Return ``n`` releases in one array."""
        return np.concatenate(list(self.blocks(n)))

    def _inputs(self, rows: int) -> Any:
        if isinstance(self._record, str):
            return [self._record] * rows
        tiled = np.repeat(self._record[np.newaxis], rows, axis=0)
        return tiled if self._columns is None else pd.DataFrame(tiled, columns=self._columns)


def _is_tokens(row: Any) -> bool:
    return isinstance(row, list | tuple) and all(isinstance(token, str) for token in row)


def read_outputs(outputs: Any, rows: int) -> np.ndarray:
    """Turn what a release returned into float64 rows, or into one string for each row."""
    if sparse.issparse(outputs):
        outputs = outputs.toarray()
    elif hasattr(outputs, "to_numpy"):
        outputs = outputs.to_numpy()
    elif isinstance(outputs, list) and outputs and all(_is_tokens(row) for row in outputs):
        outputs = [" ".join(row) for row in outputs]
    array = np.asarray(outputs)
    if array.ndim == 0 or len(array) != rows:
        shape = array.shape
        raise ValueError(f"release must return one output per row: {rows} rows were given, shape {shape} came back.")
    array = array.reshape(rows, -1)
    if array.dtype.kind == "c":
        array = np.concatenate([array.real, array.imag], axis=1)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind == "O" and all(isinstance(value, int | float | np.number) for value in array[0]):
        return array.astype(np.float64)
    if array.shape[1] == 1:
        return array[:, 0].astype(str)
    # several categories in a row: each becomes a token that tells its column
    return np.array([" ".join(f"{j}={value}" for j, value in enumerate(row)) for row in array.tolist()], dtype=str)


# -- one pair of inputs under attack ----------------------------------------------------------------------------------


_SCORES = ("auto", "likelihood", "trained", "all")
#: A distinguisher is trained on at most this many releases of each input, and this many values in all.
_MAX_TRAINING_ROWS = 60_000
_MAX_TRAINING_VALUES = 6_000_000
_MIN_TRAINING_ROWS = 50
#: Quick scores learn no more from more rows than this, and pairs are compared by no more.
_MAX_QUICK_ROWS = 4000


@dataclass(frozen=True)
class Scoring:
    """What orders the outputs.

    Attributes
    ----------
    given : callable or None
        A function of the outputs alone.
    ratio : callable or None
        The release's own ``log_likelihood_ratio(y, x, x_prime)``.
    learns : {"nothing", "quick", "everything"}
        Which scores are learned from releases.
    """

    given: Score | None
    ratio: Callable[[np.ndarray, Any, Any], np.ndarray] | None
    learns: str

    @classmethod
    def read(cls, score: Any, release: Any) -> "Scoring":
        """Read the argument ``score`` of an audit of this release."""
        if callable(score):
            return cls(score, None, "nothing")
        if score not in _SCORES:
            raise ValueError(f"score must be a function of the outputs or one of {_SCORES}; got {score!r}.")
        ratio = getattr(release, "log_likelihood_ratio", None)
        if is_mechanism(release):  # its ratio takes tables, not single rows
            ratio = _of_tables(release.log_likelihood_ratio)
        if score == "likelihood" and ratio is None:
            raise ValueError(
                "score='likelihood' needs a release with log_likelihood_ratio(y, x, x_prime); "
                f"{type(release).__name__} has none. Use score='trained', or give a function of the outputs."
            )
        if score == "trained" or ratio is None:
            return cls(None, None, "everything")
        return cls(None, ratio, {"likelihood": "nothing", "auto": "quick", "all": "everything"}[score])


class Attack:
    """Two neighbouring inputs, and independent releases of each.

    Parameters
    ----------
    draws_of : callable
        The draws of a record.
    x, x_prime : str or ndarray of shape (n_features,)
        The two inputs.
    scoring : Scoring
        What orders the outputs.
    """

    def __init__(self, draws_of: Callable[[Any], Draws], x: Any, x_prime: Any, scoring: Scoring):
        check_different(x, x_prime)
        self.x, self.x_prime = x, x_prime
        self._scoring = scoring
        self._form: Any = None  # shape and type of the outputs
        self._draws = [draws_of(x), draws_of(x_prime)]

    def take(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Release both inputs ``n`` times."""
        at_x, at_x_prime = (draws.take(n) for draws in self._draws)
        self._see(at_x)
        self._see(at_x_prime)
        return at_x, at_x_prime

    def room(self) -> int:
        """Return how many releases to keep at once, after a draw of each input if the width is unknown."""
        if self._form is None:
            self.take(1)
        return max(_MIN_TRAINING_ROWS, _MAX_TRAINING_VALUES // max((1, *self._form[0])))

    def _see(self, outputs: np.ndarray) -> None:
        form = outputs.shape[1:], outputs.dtype.kind
        if self._form is None:
            self._form = form
        if form != self._form:
            raise ValueError(
                f"release gave outputs of different shape or type for x and x_prime ({self._form} and {form}): their "
                "shape alone tells them apart, so no epsilon holds."
            )

    def score_draws(self, n: int, scores: dict[str, Score]) -> tuple[list[dict[str, np.ndarray]], list[Run]]:
        """Release both inputs ``n`` times and score them block by block, so that wide outputs need not be kept."""
        found, runs = [], []
        for record, draws in enumerate(self._draws):
            parts: dict[str, list[np.ndarray]] = {name: [] for name in scores}
            described: list[np.ndarray] = []
            n_described = 0
            for outputs in draws.blocks(n):
                self._see(outputs)
                for name, function in scores.items():
                    parts[name].append(_apply_score(function, outputs, name))
                if n_described < MAX_ROWS:
                    described.append(describe_outputs(outputs[: MAX_ROWS - n_described]))
                    n_described += len(described[-1])
            found.append({name: np.concatenate(part) for name, part in parts.items()})
            runs.append(Run(record, np.concatenate(described), draws.rows_per_call))
        return found, runs

    def learn(self, n: int, stream: RandomStream) -> tuple[dict[str, Score], int]:
        """Learn scores from some of ``n`` releases of each input; return them, and how many releases it took."""
        if self._scoring.learns == "nothing":
            return self._fixed_scores(), 0
        if self._scoring.learns == "quick":
            n_training = min(n // 4, _MAX_QUICK_ROWS, self.room())
            learned = train_quick(*self.take(n_training), stream)
        else:
            n_training = min(3 * n // 5, _MAX_TRAINING_ROWS, self.room())
            learned = train_distinguishers(*self.take(n_training), stream)
        return {**self._fixed_scores(), **learned}, n_training

    def promise(self, n: int, stream: RandomStream, alpha: float, delta: float) -> tuple[float, np.ndarray]:
        """Return the bound that ``n`` releases of each input suggest, by quick scores alone, and the releases of x."""
        at_x, at_x_prime = outputs = self.take(n)
        scores = self._fixed_scores()
        if self._scoring.learns != "nothing":
            scores.update(train_quick(at_x[: n // 2], at_x_prime[: n // 2], stream))
            at_x, at_x_prime = at_x[n // 2 :], at_x_prime[n // 2 :]
        bounds = [
            choose_event(_apply_score(score, at_x, name), _apply_score(score, at_x_prime, name), alpha, delta)[1]
            for name, score in scores.items()
        ]
        return max(bounds, default=0.0), outputs[0]

    def _fixed_scores(self) -> dict[str, Score]:
        """Scores that need no releases to learn from."""
        if self._scoring.given is not None:
            return {"given function": self._scoring.given}
        ratio = self._scoring.ratio
        if ratio is None:
            return {}
        return {"likelihood ratio": lambda outputs: _finite_ratio(ratio, outputs, self.x, self.x_prime)}


def most_promising(
    attacks: list[Attack], again: Callable[[Any, Any], Attack], n: int, stream: RandomStream, alpha: float, delta: float
) -> tuple[Attack, int, int]:
    """Compare attacks by a few releases each.

    One more pair is added on the way: the one that moves only the coordinate whose released value varies least.
    With many coordinates no fixed list has a pair for each, and a small noise shows only where it is alone.

    Parameters
    ----------
    attacks : list of Attack
        What to compare.
    again : callable
        Makes an attack on another pair.
    n : int
        Releases of each input that the comparison may use.
    stream : RandomStream
        For scores that are learned.
    alpha, delta : float
        As in :func:`certified_epsilon`.

    Returns
    -------
    attack : Attack
    n_pairs : int
        How many were compared.
    n_used : int
        Releases of each side that were used.
    """
    n_each = min(n // (len(attacks) + 1), 2 * _MAX_QUICK_ROWS, attacks[0].room())
    first, outputs = attacks[0].promise(n_each, stream, alpha, delta)
    promises = [first, *(one.promise(n_each, stream, alpha, delta)[0] for one in attacks[1:])]
    suspect = _pair_in_least_varying_column(attacks, outputs)
    if suspect is not None:
        attacks = [*attacks, again(*suspect)]
        promises.append(attacks[-1].promise(n_each, stream, alpha, delta)[0])
    return attacks[int(np.argmax(promises))], len(attacks), n_each * len(attacks)


def _pair_in_least_varying_column(attacks: list[Attack], outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the pair that differs in the least varying column alone; None if there is none, or it is there already."""
    pairs = [(one.x, one.x_prime) for one in attacks]
    if outputs.dtype.kind != "f" or outputs.shape[1] != np.size(pairs[0][0]):
        return None
    pair = pair_differing_in_column(pairs, least_varying_column(outputs))
    return None if pair is None or any(np.array_equal(pair[0], x) for x, _ in pairs) else pair


def _of_tables(ratio: Callable) -> Callable:
    return lambda outputs, x, x_prime: ratio(outputs, x[np.newaxis], x_prime[np.newaxis])


def _apply_score(function: Score, outputs: np.ndarray, name: str) -> np.ndarray:
    values = np.asarray(function(outputs), dtype=float).reshape(-1)
    if len(values) != len(outputs):
        raise ValueError(
            f"score ({name}) must return one number per output: {len(outputs)} outputs were given, {len(values)} "
            "numbers came back."
        )
    # Outputs that cannot be scored (nan) come first in the order, so that an event can be made of them too.
    missing = np.isnan(values)
    return np.where(missing, -np.inf, values) if missing.any() else values


def _finite_ratio(ratio: Callable, outputs: np.ndarray, x: Any, x_prime: Any) -> np.ndarray:
    """Ask the release about the outputs it can know; one with nan or infinity in it is a fault, and scored as nan."""
    known = np.isfinite(outputs).all(axis=1) if outputs.dtype.kind == "f" else np.ones(len(outputs), dtype=bool)
    if known.all():
        return ratio(outputs, x, x_prime)
    scores = np.full(len(outputs), np.nan)
    if known.any():
        scores[known] = ratio(outputs[known], x, x_prime)
    return scores
