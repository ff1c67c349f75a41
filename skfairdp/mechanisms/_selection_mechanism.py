"""Private selection as a mechanism: run a random number of trials, and release the best.

A trial is a function that draws an outcome; a finite one can also be described by the probabilities of its outcomes,
from the worst to the best, and then everything about the best of K trials is known exactly.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skfairdp._validation import check_delta, check_epsilon
from skfairdp.dp import (
    REPLACE_ONE_RECORD,
    Mechanism,
    PrivacyGuarantee,
    ReleaseEvent,
    TrialBudget,
    TruncatedNegativeBinomial,
    selection_budget,
)
from skfairdp.random import RandomStream

#: A trial draws with a stream of its own, and returns a score and what is released if no other trial scores higher.
Trial = Callable[[RandomStream], tuple[Any, Any]]

# The samplers of vote noise stay closer than this share of their delta to the Gaussians of their proof.
SAMPLER_SHARE = 1e-6


@dataclass(frozen=True)
class SelectionMechanism(Mechanism):
    """Release the best of a random number of trials; made by :func:`selection_mechanism`.

    Attributes
    ----------
    epsilon, delta : float
        Of the best trial, which is all that is released.
    trials : TruncatedNegativeBinomial
        The distribution of the number of trials; the number itself is told to nobody.
    budget : TrialBudget
        What each trial may spend, its score included.

    Examples
    --------
    >>> from skfairdp.mechanisms import selection_mechanism
    >>> from skfairdp.random import random_stream
    >>> mechanism = selection_mechanism(1.0, 0.0, expected_trials=1000.0)
    >>> best, _ = mechanism.release(lambda stream: (stream.seed() % 10, None), random_stream(0))
    >>> best
    9
    """

    epsilon: float
    delta: float
    trials: TruncatedNegativeBinomial
    budget: TrialBudget
    name = "private selection"

    @cached_property
    def event(self) -> ReleaseEvent:
        """The release of the best."""
        return ReleaseEvent(self.epsilon, self.delta)

    def guarantee(self, **words: Any) -> PrivacyGuarantee:
        """Write the receipt; neighbours differ in one record.

        Parameters
        ----------
        **words : dict
            Fields of the receipt, see :meth:`Mechanism.guarantee`.
        """
        return super().guarantee(**{"neighbours": REPLACE_ONE_RECORD, **words})

    def check(self, trial: Trial) -> None:
        """Check that there is something to run.

        Parameters
        ----------
        trial : callable
            What :meth:`draw` runs.
        """
        if not callable(trial):
            raise TypeError(f"trial must be a function that takes a stream; got {trial!r}.")

    def draw(self, trial: Trial, stream: RandomStream) -> tuple[Any, Any]:
        """Run trials and return the best.

        Parameters
        ----------
        trial : callable
            Takes a stream of its own, and returns a score and what is released with it. Trials must be alike, and
            independent of each other. An error that one raises ends the selection and stands for its result: errors
            rank above all scores.
        stream : RandomStream
            Where the number of trials comes from, and the streams of the trials.

        Returns
        -------
        score, value
            Of the first of the best trials.
        """
        best = trial(stream.spawn(1)[0])
        for _ in range(self.trials.draw(stream) - 1):
            found = trial(stream.spawn(1)[0])
            if found[0] > best[0]:
                best = found
        return best

    def probabilities(self, trial: Any) -> np.ndarray:
        """Compute how likely each outcome of a finite trial is to be the best.

        Parameters
        ----------
        trial : array-like of shape (n_outcomes,)
            The probabilities of one trial's outcomes, from the worst to the best.

        Returns
        -------
        ndarray of shape (n_outcomes,)
        """
        reached = np.concatenate([[0.0], np.cumsum(np.asarray(trial, dtype=float))[:-1], [1.0]])
        return np.diff(self.trials.generating_function(reached))

    def log_likelihood_ratio(self, y: Any, x: Any, x_prime: Any) -> np.ndarray:
        """Compute ``log p(y | x) - log p(y | x_prime)`` for outcomes y of finite trials x and x_prime.

        Parameters
        ----------
        y : int or ndarray of int
            Outcomes, as positions in the trials.
        x, x_prime : array-like of shape (n_outcomes,)
            Two finite trials, see :meth:`probabilities`.
        """
        return np.log(self.probabilities(x)[y]) - np.log(self.probabilities(x_prime)[y])

    def worst_case_pairs(self, stream: RandomStream | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return finite trials of the pure budget, the middle outcome of which loses nearly all of epsilon.

        It is rare. So are better ones, and how rare they are differs as much as the budget allows.

        Parameters
        ----------
        stream : RandomStream or None, default=None
            Not needed: the pairs are always the same.
        """
        grow = math.exp(self.budget.epsilon)
        pairs = []
        for better in np.geomspace(1e-9, 1 / (1 + grow), 60):
            middle = 1e-3 * better
            first, second = np.array([middle * grow, better]), np.array([middle, better * grow])
            pair = [np.array([1 - rare.sum(), *rare]) for rare in (first, second)]
            if 1 / grow <= pair[0][0] / pair[1][0] <= grow:
                pairs.append((pair[0], pair[1]))
        return sorted(pairs, key=lambda pair: -float(self.log_likelihood_ratio(1, *pair)))[:3]


def selection_mechanism(
    epsilon: float, delta: float, *, expected_trials: float, eta: float = 0.0
) -> SelectionMechanism:
    """Choose what each of a random number of trials may spend.

    Parameters
    ----------
    epsilon : float
        Of the best trial; ``inf`` is no limit.
    delta : float
        Of the best trial; 0 asks for pure trials.
    expected_trials : float
        The mean number of trials, above 1.
    eta : float, default=0.0
        The shape of the distribution of their number, above -1.

    Returns
    -------
    SelectionMechanism

    Examples
    --------
    >>> from skfairdp.mechanisms import selection_mechanism
    >>> mechanism = selection_mechanism(1.0, 0.0, expected_trials=10.0)
    >>> round(mechanism.budget.epsilon, 6), mechanism.guarantee().epsilon
    (0.5, 1.0)
    >>> mechanism.probabilities([0.5, 0.5]).round(3)  # of two candidates that are equally likely in each trial
    array([0.184, 0.816])
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta, allow_zero=True)
    trials = TruncatedNegativeBinomial.with_mean(expected_trials, eta)
    hidden = SAMPLER_SHARE * trials.each_may_fail(delta)
    return SelectionMechanism(
        epsilon,
        0.0 if math.isinf(epsilon) else delta,
        trials,
        selection_budget(epsilon, delta, trials, sampling_error=hidden),
    )
