"""What an audit found, in numbers and in words."""

import html
import math
from dataclasses import dataclass, field
from typing import Any


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
        level = f"epsilon is at least {self.epsilon_lower:.4g}" + (
            f" at delta = {self.delta:.3g}" if self.delta else ""
        )
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
