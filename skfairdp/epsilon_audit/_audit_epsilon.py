"""Attack a release with many trials, certify what was found, and say it in numbers and in words."""

import html
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from skfairdp._validation import check_count, check_delta, check_epsilon
from skfairdp.dp import PrivacyGuarantee
from skfairdp.epsilon_audit._attack import Attack, Draws, Scoring, is_mechanism, most_promising, release_function
from skfairdp.epsilon_audit._certified_bounds import certified_epsilon, choose_event, largest_certifiable
from skfairdp.epsilon_audit._row_dependence import find_dependence
from skfairdp.epsilon_audit._worst_case_pairs import read_record, worst_case_pairs
from skfairdp.random import RandomState, random_stream


@dataclass(frozen=True, repr=False)
class EpsilonAudit:
    """A certified lower bound on the epsilon of a release, and what it says about the claim.

    Attributes
    ----------
    epsilon_lower : float
        With probability at least ``confidence_level`` the release loses at least this much between the two inputs
        (at the given ``delta``). It says nothing from above: only a proof does.
    delta : float
        The delta at which epsilon was bounded.
    confidence_level : float
        The probability with which the bound holds.
    claimed_epsilon : float or None
        The epsilon that the release claims, or None if nothing was claimed.
    contradicts : bool
        Whether the claim is false, at the stated confidence: because ``epsilon_lower`` is above it, or because the
        outputs of different rows depend on each other, which no claim for each row survives.
    cap : float
        The largest bound that this many trials could have certified. A result close to it says "this much
        or more": take more trials to see further.
    event : str
        The event that was counted, in words, with its counts.
    score : str
        Where the score came from: "likelihood ratio", "given function", or the trained distinguisher's name.
    n_trials : int
        Releases drawn on either side, of x and of x_prime, over all pairs.
    n_certified : int
        Those among them, of each input, that were counted for the bound; the others chose the event.
    count_more, count_less : int
        How often the event happened among them at the input that favours it, and at the other one.
    dependence : str or None
        What depends on what, if outputs of different rows or calls do; the trials were then no independent trials,
        and ``epsilon_lower`` is only a count, not a certificate. None if nothing was found.
    n_pairs : int
        How many pairs of inputs were tried.
    x, x_prime : ndarray or str
        The pair that was counted.

    Examples
    --------
    A release that adds no noise to a bit contradicts every claim.

    >>> from skfairdp import audit_epsilon
    >>> audit = audit_epsilon(lambda X: X.copy(), [0], [1], claimed=1.0, random_state=0)
    >>> audit.contradicts, audit.epsilon_lower > 1.0
    (True, True)
    """

    epsilon_lower: float
    delta: float
    confidence_level: float
    claimed_epsilon: float | None
    contradicts: bool
    cap: float
    event: str
    score: str
    n_trials: int
    n_certified: int
    count_more: int
    count_less: int
    dependence: str | None = None
    n_pairs: int = 1
    x: Any = field(default=None, compare=False)
    x_prime: Any = field(default=None, compare=False)

    def __repr__(self) -> str:
        claim = "None" if self.claimed_epsilon is None else f"{self.claimed_epsilon:.6g}"
        return (
            f"EpsilonAudit(epsilon_lower={self.epsilon_lower:.4g}, confidence_level={self.confidence_level:g}, "
            f"claimed_epsilon={claim}, contradicts={self.contradicts}, cap={self.cap:.4g})"
        )

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        at_delta = f" at delta = {self.delta:.3g}" if self.delta else ""
        level = f"epsilon is at least {self.epsilon_lower:.4g}{at_delta}"
        held = f"with {100 * self.confidence_level:g} % confidence"
        reach = f"{self.n_trials} trials could have certified at most {self.cap:.4g}"
        if self.dependence is not None:
            claim = "nothing was claimed for them"
            if self.claimed_epsilon is not None:
                claim = f"the claim of epsilon = {self.claimed_epsilon:.6g} for each row is false"
                if not self.contradicts:
                    claim = "the release claims no protection"
            return (
                f"Rows are not released independently, so that one output can give another one away; {claim}: "
                f"{self.dependence}, {held}."
            )
        if self.claimed_epsilon is None:
            return f"{level}, {held}; nothing was claimed ({reach})."
        if self.contradicts:
            return f"The claim of epsilon = {self.claimed_epsilon:.6g} is false: {level}, {held} ({reach})."
        if math.isinf(self.claimed_epsilon):
            return f"{level}, {held}; the release claims no protection ({reach})."
        weak = " The claim is beyond the reach of so few trials." if self.claimed_epsilon >= self.cap else ""
        return f"Nothing against the claim of epsilon = {self.claimed_epsilon:.6g}: {level}, {held} ({reach}).{weak}"

    def __str__(self) -> str:
        return f"{self.verdict} Event: {self.event}."

    def _repr_html_(self) -> str:
        claim = "none" if self.claimed_epsilon is None else f"{self.claimed_epsilon:.6g}"
        rows = {
            "epsilon, at least": f"{self.epsilon_lower:.4g}",
            "confidence": f"{100 * self.confidence_level:g} %",
            "delta": f"{self.delta:g}",
            "claimed epsilon": claim,
            "claim contradicted": "yes" if self.contradicts else "no",
            "most that could be certified": f"{self.cap:.4g}",
            "event": self.event,
            "score": self.score,
            "trials of each input": f"{self.n_trials} ({self.n_certified} of them counted)",
            "pairs of inputs tried": f"{self.n_pairs}",
            "dependent outputs": "none found" if self.dependence is None else self.dependence,
        }
        body = "".join(
            f"<tr><th scope='row'>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in rows.items()
        )
        return f"<table><caption>{html.escape(self.verdict)}</caption><tbody>{body}</tbody></table>"


_MIN_TRIALS = 200
#: The part of the allowed error that goes to the test of independence. Shared noise leaves no doubt, so that little is
#: enough, and the bound on epsilon keeps nearly all.
_DEPENDENCE_SHARE = 0.01


def audit_epsilon(
    release: Any,
    x: Any = None,
    x_prime: Any = None,
    *,
    n_trials: int = 20_000,
    confidence_level: float = 0.95,
    claimed: PrivacyGuarantee | float | str | None = None,
    delta: float | None = None,
    score: str | Callable[[np.ndarray], np.ndarray] = "auto",
    rows_per_call: int | None = None,
    random_state: RandomState = None,
) -> EpsilonAudit:
    """Certify a lower bound on the epsilon of any randomised release.

    The release is run many times on two inputs. One half of the trials chooses a pair of inputs and an event that
    happens more often for one of the two; the other half counts it, and Clopper-Pearson bounds turn the counts
    into an epsilon below which the release does not stay. The same trials are tested for noise that rows or calls
    share, which a single output never shows.

    Parameters
    ----------
    release : fitted estimator, mechanism or callable
        A transformer (its ``transform``), a classifier (its ``transform``, else its ``predict_proba``), a mechanism
        (its ``release``, with a stream from the operating system), or a function that takes rows and returns one
        output per row: numbers, categories, or strings. The rows of one call, and of different calls, must be
        released independently of each other; if they are not, the audit says so.
    x, x_prime : array-like of shape (n_features,) or str, optional
        Two neighbouring inputs: one row, or one document, each. Without them several pairs are tried: all of
        :func:`worst_case_pairs`, and the one that moves only the coordinate which is found to vary least.
    n_trials : int, default=20000
        Releases on either side, of x and of x_prime. One half is counted, all of it on one pair; the other half
        chooses, and is shared by the pairs if there are several. So the cost does not depend on their number. The
        bound cannot exceed about ``ln(n_trials / 7.4)``.
    confidence_level : float, default=0.95
        The probability with which the bound holds, and with which independent rows are not called dependent.
    claimed : PrivacyGuarantee, float or "published", optional
        The claim to test. By default the ``privacy_`` of the release, or of the only step of a pipeline that has
        one, or the ``guarantee()`` of a mechanism; ``"published"`` takes the epsilon that the paper behind a published
        calibration states.
    delta : float, optional
        The delta at which epsilon is bounded; by default that of the claim, else 0.
    score : {"auto", "likelihood", "trained", "all"} or callable, default="auto"
        What orders the outputs. ``"likelihood"`` asks the release (``log_likelihood_ratio(y, x, x_prime)``),
        which is the strongest score there is if the release does what it says; ``"trained"`` learns
        distinguishers from a third part of the trials and believes nothing; ``"all"`` takes whichever of
        both promises more. ``"auto"`` learns as well if the release cannot answer; if it can, its answer competes with
        what is learned quickly from outputs that do not fit it: values or directions without noise, and the
        lowest bits of floating-point numbers. A function gets the outputs and returns one number for each.
    rows_per_call : int, optional
        How many rows to hand over in one call; 1 for functions whose rows share something on purpose, so that only
        calls are compared with each other. By default as many as fit into a block of moderate size.
    random_state : int, Generator, RandomState or None
        For random pairs, and for the training of distinguishers. The noise of the release is its own.

    Returns
    -------
    EpsilonAudit
        The bound, the event, and whether it contradicts the claim.

    Notes
    -----
    **Privacy.** An audit releases its two inputs ``n_trials`` times each: run it on made-up worst-case records,
    never on a person's. Inside an active :class:`~skfairdp.accounting.PrivacyLedger` every call of the release
    is charged like any other. An audit can show that a claim is false; it cannot show that one is true.

    An honest release is contradicted with probability at most ``1 - confidence_level``, whatever the score: pair,
    event, its direction and the distinguisher are chosen on trials that are not counted, so that only one pair of
    proportions is bounded, each with half of the allowed error. One hundredth of that error is set aside for the
    test of independence, which is exact whatever the outputs are, ties included (Fisher's exact test on outputs cut
    in two at their median). It pairs outputs 1 to 4 rows apart, at one more distance at which they look alike,
    and at the same place in different calls.

    A claim for each row presumes that each has noise of its own: if two rows share theirs, the difference of
    their outputs is the difference of their records. So dependence contradicts any finite claim. What rows may
    share without harm, such as public randomness that is added to noise of their own, cannot be told from what they
    may not; audit such a release with ``rows_per_call=1``.

    Scores are used as they come, without rounding. Noise added in floating point gives itself away by the last
    bits of the output, and rounding would hide that.

    Examples
    --------
    Randomised response that keeps a bit with probability 3/4 has epsilon = ln 3 = 1.0986.

    >>> import numpy as np
    >>> from skfairdp.epsilon_audit import audit_epsilon
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
    n_trials = check_count(n_trials, "n_trials", _MIN_TRIALS)
    if rows_per_call is not None:
        rows_per_call = check_count(rows_per_call, "rows_per_call", 1)
    if isinstance(confidence_level, bool) or not isinstance(confidence_level, Real) or not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be a number in (0, 1), such as 0.95; got {confidence_level!r}.")
    claimed_epsilon, delta = _read_claim(release, claimed, delta)
    function = release_function(release)
    scoring = Scoring.read(score, release)
    stream = random_stream(random_state)
    names = getattr(release, "feature_names_in_", None)
    draws_of = partial(Draws, function, rows_per_call=rows_per_call, columns=None if names is None else list(names))
    attack_on = partial(Attack, draws_of, scoring=scoring)
    if x is None and x_prime is None:
        attacks = [attack_on(*pair) for pair in worst_case_pairs(release, random_state=stream)]
    else:
        attacks = [attack_on(read_record(x, "x"), read_record(x_prime, "x_prime"))]

    alpha = 1 - float(confidence_level)
    alpha_dependence = _DEPENDENCE_SHARE * alpha
    alpha -= alpha_dependence
    n_certified = n_trials // 2
    n_choosing = n_trials - n_certified
    attack, n_pairs = attacks[0], 1
    if len(attacks) > 1:
        # Pair, score and event are chosen by trials that are not counted. Only the chosen pair is counted, so that it
        # has all of the allowed error and all of the trials. Counting every pair would split both: with five pairs the
        # bounds would be about as wide as with a fifth of the trials. The price is that a fault may be missed that is
        # too rare to show in a tenth of the choosing trials, in a pair that shows nothing else.
        attack, n_pairs, n_used = most_promising(attacks, attack_on, n_choosing // 2, stream, alpha, delta)
        n_choosing -= n_used

    scores, n_training = attack.learn(n_choosing, stream)
    chosen, early_runs = attack.score_draws(n_choosing - n_training, scores)
    offers = {name: choose_event(chosen[0][name], chosen[1][name], alpha, delta) for name in scores}
    name = max(offers, key=lambda key: offers[key][1])
    event = offers[name][0]

    certified, runs = attack.score_draws(n_certified, {name: scores[name]})
    counts = [event.count(values[name]) for values in certified]
    more, less = counts if event.favours_x else counts[::-1]
    bound = float(certified_epsilon(np.array(more), np.array(less), n_certified, alpha, delta))
    dependence = find_dependence([*early_runs, *runs], alpha_dependence)
    favoured, other = ("x", "x_prime") if event.favours_x else ("x_prime", "x")
    return EpsilonAudit(
        epsilon_lower=bound,
        delta=delta,
        confidence_level=float(confidence_level),
        claimed_epsilon=claimed_epsilon,
        contradicts=claimed_epsilon is not None
        and (bound > claimed_epsilon or (dependence is not None and claimed_epsilon < math.inf)),
        cap=largest_certifiable(n_certified, alpha, delta),
        event=f"{event}: {more} of {n_certified} releases of {favoured}, {less} of {n_certified} of {other}",
        score=name,
        n_trials=n_trials,
        n_certified=n_certified,
        count_more=more,
        count_less=less,
        dependence=dependence,
        n_pairs=n_pairs,
        x=attack.x,
        x_prime=attack.x_prime,
    )


def _read_claim(release: Any, claimed: Any, delta: float | None) -> tuple[float | None, float]:
    """Return the claimed epsilon (or None) and the delta to audit at."""
    guarantee = _receipt_of_release(release) if claimed is None or isinstance(claimed, str) else claimed
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


def _receipt_of_release(release: Any) -> Any:
    """Return the guarantee of the release, or of the only step of a pipeline that has one."""
    steps = [step for _, step in release.steps] if hasattr(release, "steps") else []
    if is_mechanism(release) and callable(getattr(release, "guarantee", None)):
        return release.guarantee()
    found = [one.privacy_ for one in [release, *steps] if hasattr(one, "privacy_")]
    return found[0] if len(found) == 1 or hasattr(release, "privacy_") else None
