"""The auditor: attack a release with many trials, and certify what was found."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np

from skfairdp._rng import RandomState, random_stream
from skfairdp._validation import check_delta, check_epsilon
from skfairdp.accounting import PrivacyGuarantee
from skfairdp.auditing._bounds import certified_epsilon, choose_event, largest_certifiable
from skfairdp.auditing._distinguishers import Score, train_distinguishers
from skfairdp.auditing._draws import Draws, check_different, read_record, release_function
from skfairdp.auditing._result import EpsilonAudit
from skfairdp.auditing._worst_case import worst_case_pair

_SCORES = ("auto", "likelihood", "trained", "all")
_MIN_TRIALS = 200
#: A distinguisher is trained on at most this many releases of each input, and this many values in all.
_MAX_TRAINING_ROWS = 60_000
_MAX_TRAINING_VALUES = 6_000_000


def audit_epsilon(
    release: Any,
    x: Any = None,
    x_prime: Any = None,
    *,
    n_trials: int = 20_000,
    confidence: float = 0.95,
    claimed: PrivacyGuarantee | float | str | None = None,
    delta: float | None = None,
    score: str | Callable[[np.ndarray], np.ndarray] = "auto",
    rows_per_call: int | None = None,
    random_state: RandomState = None,
) -> EpsilonAudit:
    """Certify a lower bound on the epsilon of any randomised release.

    The release is run many times on ``x`` and on ``x_prime``. One half of the trials chooses an event that
    happens more often for one of the two; the other half counts it, and Clopper-Pearson bounds turn the counts
    into an epsilon below which the release does not stay.

    Parameters
    ----------
    release : fitted estimator or callable
        A transformer (its ``transform``), a classifier (its ``transform``, else its ``predict_proba``), or a
        function that takes rows and returns one output per row: numbers, codes, or strings. The rows of one
        call must be released independently of each other.
    x, x_prime : array-like of shape (n_features,) or str, optional
        Two neighbouring inputs: one row, or one document, each. Without them, :func:`worst_case_pair` of the
        release.
    n_trials : int, default=20000
        Releases of each of the two inputs. The bound cannot exceed about ``ln(n_trials / 7.4)``.
    confidence : float, default=0.95
        The probability with which the bound holds.
    claimed : PrivacyGuarantee, float or "published", optional
        The claim to test. By default the ``privacy_`` of the release, or of the only step of a pipeline that has
        one; ``"published"`` takes the epsilon that the paper behind a published calibration states.
    delta : float, optional
        The delta at which epsilon is bounded; by default that of the claim, else 0.
    score : {"auto", "likelihood", "trained", "all"} or callable, default="auto"
        What orders the outputs. ``"likelihood"`` asks the release (``log_likelihood_ratio(y, x, x_prime)``),
        which is the strongest score there is if the release does what it says; ``"trained"`` learns
        distinguishers from a third part of the trials and believes nothing; ``"all"`` takes whichever of
        both promises more; ``"auto"`` asks the release if it can answer, and learns otherwise. A function gets
        the outputs and returns one number for each.
    rows_per_call : int, optional
        How many rows to hand over in one call; 1 for functions whose rows share anything. By default as many
        as fit into a block of moderate size.
    random_state : int, Generator, RandomState or None
        For the training of distinguishers. The noise of the release is its own.

    Returns
    -------
    EpsilonAudit
        The bound, the event, and whether it contradicts the claim.

    Notes
    -----
    **Privacy.** An audit releases its two inputs ``n_trials`` times each: run it on made-up worst-case records,
    never on a person's. Inside an active :class:`~skfairdp.accounting.PrivacyLedger` every call of the release
    is charged like any other. An audit can show that a claim is false; it cannot show that one is true.

    An honest release is contradicted with probability at most ``1 - confidence``, whatever the score: the event,
    its direction and the distinguisher are chosen on trials that are not counted, so that only one pair of
    proportions is bounded, each with half of the allowed error.

    Scores are used as they come, without rounding. Noise added in floating point gives itself away by the last
    bits of the output, and rounding would hide that.

    Examples
    --------
    Randomised response that keeps a bit with probability 3/4 has epsilon = ln 3 = 1.0986.

    >>> import numpy as np
    >>> from skfairdp.auditing import audit_epsilon
    >>> rng = np.random.default_rng(0)
    >>> def respond(X):
    ...     return np.where(rng.random(X.shape) < 0.75, X, 1 - X)
    >>> audit = audit_epsilon(respond, [0], [1], claimed=1.1, random_state=0)
    >>> audit.contradicts
    False
    >>> bool(0.9 < audit.epsilon_lower <= 1.0986)
    True
    >>> audit_epsilon(respond, [0], [1], claimed=0.5, random_state=0).contradicts
    True
    """
    n_trials = _check_count(n_trials, "n_trials", _MIN_TRIALS)
    if rows_per_call is not None:
        rows_per_call = _check_count(rows_per_call, "rows_per_call", 1)
    if isinstance(confidence, bool) or not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ValueError(f"confidence must be a number in (0, 1), such as 0.95; got {confidence!r}.")
    claimed_epsilon, delta = _read_claim(release, claimed, delta)
    function = release_function(release)
    if x is None and x_prime is None:
        x, x_prime = worst_case_pair(release)
    x, x_prime = read_record(x, "x"), read_record(x_prime, "x_prime")
    check_different(x, x_prime)

    columns = getattr(release, "feature_names_in_", None)
    columns = None if columns is None else list(columns)
    draws = [Draws(function, record, rows_per_call, columns) for record in (x, x_prime)]
    n_certified = n_trials // 2
    n_choosing = n_trials - n_certified
    scores, n_training = _scores(release, x, x_prime, score, draws, n_choosing, random_state)

    alpha = 1 - float(confidence)
    chosen = [_score_draws(one, n_choosing - n_training, scores) for one in draws]
    offers = {name: choose_event(chosen[0][name], chosen[1][name], alpha, delta) for name in scores}
    name = max(offers, key=lambda key: offers[key][1])
    event = offers[name][0]

    certified = [_score_draws(one, n_certified, {name: scores[name]})[name] for one in draws]
    counts = [event.count(values) for values in certified]
    more, less = counts if event.favours_x else counts[::-1]
    bound = float(certified_epsilon(np.array(more), np.array(less), n_certified, alpha, delta))
    favoured, other = ("x", "x_prime") if event.favours_x else ("x_prime", "x")
    return EpsilonAudit(
        epsilon_lower=bound,
        delta=delta,
        confidence=float(confidence),
        claimed_epsilon=claimed_epsilon,
        contradicts=claimed_epsilon is not None and bound > claimed_epsilon,
        cap=largest_certifiable(n_certified, alpha, delta),
        event=f"{event}: {more} of {n_certified} releases of {favoured}, {less} of {n_certified} of {other}",
        score=name,
        n_trials=n_trials,
        n_certified=n_certified,
        count_more=more,
        count_less=less,
    )


def _scores(
    release: Any, x: Any, x_prime: Any, score: Any, draws: list[Draws], n_choosing: int, random_state: RandomState
) -> tuple[dict[str, Score], int]:
    """Collect the scores that compete, and how many of the choosing trials their training used up."""
    if callable(score):
        return {"given function": score}, 0
    if score not in _SCORES:
        raise ValueError(f"score must be a function of the outputs or one of {_SCORES}; got {score!r}.")
    ratio = getattr(release, "log_likelihood_ratio", None)
    if score == "likelihood" and ratio is None:
        raise ValueError(
            f"score='likelihood' needs a release with log_likelihood_ratio(y, x, x_prime); {type(release).__name__} "
            "has none. Use score='trained', or give a function of the outputs."
        )
    found: dict[str, Score] = {}
    if ratio is not None and score != "trained":
        found["likelihood ratio"] = lambda outputs: _finite_ratio(ratio, outputs, x, x_prime)
        if score != "all":
            return found, 0
    first = [one.take(1) for one in draws]
    width = max(1, *(row.size if row.dtype.kind == "f" else 1 for row in first))
    n_training = min(3 * n_choosing // 5, _MAX_TRAINING_ROWS, max(_MIN_TRIALS // 4, _MAX_TRAINING_VALUES // width))
    outputs = [one.take(n_training) for one in draws]
    if outputs[0].shape[1:] != outputs[1].shape[1:] or outputs[0].dtype.kind != outputs[1].dtype.kind:
        raise ValueError(
            "release gave outputs of different shape or type for x and x_prime "
            f"({outputs[0].shape[1:]} {outputs[0].dtype} and {outputs[1].shape[1:]} {outputs[1].dtype}): "
            "their shape alone tells them apart, so no epsilon holds."
        )
    found.update(train_distinguishers(outputs[0], outputs[1], random_stream(random_state)))
    return found, n_training


def _finite_ratio(ratio: Callable, outputs: np.ndarray, x: Any, x_prime: Any) -> np.ndarray:
    """Ask the release about the outputs it can know; one with nan or infinity in it is a fault, and scored as nan."""
    if outputs.dtype.kind != "f":
        return ratio(outputs, x, x_prime)
    known = np.isfinite(outputs).all(axis=1)
    if known.all():
        return ratio(outputs, x, x_prime)
    scores = np.full(len(outputs), np.nan)
    if known.any():
        scores[known] = ratio(outputs[known], x, x_prime)
    return scores


def _score_draws(draws: Draws, n: int, scores: dict[str, Score]) -> dict[str, np.ndarray]:
    """Draw ``n`` releases and score them block by block, so that wide outputs need not be kept."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in scores}
    for outputs in draws.blocks(n):
        for name, function in scores.items():
            values = np.asarray(function(outputs), dtype=float).reshape(-1)
            if len(values) != len(outputs):
                raise ValueError(
                    f"score ({name}) must return one number per output: {len(outputs)} outputs were given, "
                    f"{len(values)} numbers came back."
                )
            parts[name].append(values)
    return {name: _order_nan_last(np.concatenate(part)) for name, part in parts.items()}


def _order_nan_last(values: np.ndarray) -> np.ndarray:
    """Give nan a place in the order, so that an output that cannot be scored is an event like any other."""
    missing = np.isnan(values)
    return np.where(missing, -np.inf, values) if missing.any() else values


def _read_claim(release: Any, claimed: Any, delta: float | None) -> tuple[float | None, float]:
    """Return the claimed epsilon (or None) and the delta to audit at."""
    guarantee = _receipt(release) if claimed is None or isinstance(claimed, str) else claimed
    if isinstance(claimed, str):
        if claimed != "published":
            raise ValueError(f"claimed must be a PrivacyGuarantee, a number, or 'published'; got {claimed!r}.")
        published = getattr(guarantee, "published_epsilon", None)
        if guarantee is None or published is None:
            raise ValueError(
                "claimed='published' needs a release whose privacy_ names a published_epsilon; "
                f"{type(release).__name__} has none. Give the number instead."
            )
        claim, claim_delta = published, guarantee.delta
    elif guarantee is None:
        claim, claim_delta = None, 0.0
    elif isinstance(guarantee, PrivacyGuarantee):
        claim, claim_delta = guarantee.epsilon, guarantee.delta
    else:
        claim, claim_delta = check_epsilon(guarantee, name="claimed", allow_zero=True), 0.0
    if delta is None:
        return claim, claim_delta
    delta = check_delta(delta, allow_zero=True)
    if claim is not None and delta < claim_delta:
        raise ValueError(
            f"delta must be at least the claimed one, {claim_delta:g}, because the claim says nothing about smaller "
            f"ones; got {delta:g}."
        )
    return claim, delta


def _receipt(release: Any) -> Any:
    """Return the guarantee of the release, or of the only step of a pipeline that has one."""
    steps = [step for _, step in release.steps] if hasattr(release, "steps") else []
    found = [one.privacy_ for one in [release, *steps] if hasattr(one, "privacy_")]
    return found[0] if len(found) == 1 or hasattr(release, "privacy_") else None


def _check_count(value: Any, name: str, smallest: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < smallest:
        raise ValueError(f"{name} must be a whole number of at least {smallest}; got {value!r}.")
    return int(value)
