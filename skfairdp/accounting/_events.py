"""What ran, as far as its price depends on it.

An event says nothing in words and adds nothing up. ``_composition`` computes the price of
several of them, and :class:`~skfairdp.accounting.PrivacyGuarantee` tells it to people.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from skfairdp._validation import check_delta, check_epsilon
from skfairdp.random import SeedIdentity

_NUMBERS = ("epsilon", "delta", "gaussian_mu", "sampling_error")


@dataclass(frozen=True)
class ReleaseEvent:
    """One run of one mechanism.

    Parameters
    ----------
    epsilon : float
        With ``delta``: a point of the privacy profile that is proved; ``inf`` when nothing is protected.
    delta : float, default=0.0
        The probability with which the loss may exceed ``epsilon``.
    gaussian_mu : float or None
        Sensitivity over noise scale of a Gaussian mechanism, which tells its whole profile.
    sampling_error : float, default=0.0
        Total variation distance between the sampler that ran and the Gaussian that ``gaussian_mu``
        describes. It is part of ``delta`` already, and is told apart because it composes by addition.
    seed : SeedIdentity or None
        Where seeded noise came from; ``None`` for noise that nobody can replay.

    Examples
    --------
    >>> from skfairdp.accounting import ReleaseEvent, gaussian_epsilon
    >>> ReleaseEvent(gaussian_epsilon(1e-5, 0.1), 1e-5, gaussian_mu=0.1).gaussian_mu
    0.1
    """

    epsilon: float
    delta: float = 0.0
    gaussian_mu: float | None = None
    sampling_error: float = 0.0
    seed: SeedIdentity | None = None

    def __post_init__(self) -> None:
        keep = object.__setattr__  # the only way to normalise a field of a frozen dataclass
        keep(self, "epsilon", check_epsilon(self.epsilon, allow_zero=True))
        keep(self, "delta", check_delta(self.delta, allow_zero=True))
        if self.gaussian_mu is not None:
            keep(self, "gaussian_mu", check_epsilon(self.gaussian_mu, name="gaussian_mu", allow_zero=True))
        keep(self, "sampling_error", check_delta(self.sampling_error, name="sampling_error", allow_zero=True))
        if self.seed is not None and not isinstance(self.seed, SeedIdentity):
            raise TypeError(f"seed must be the identity of a stream, or None; got {self.seed!r}.")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values that JSON knows."""
        return {name: "inf" if value == math.inf else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "ReleaseEvent":
        """Read back what :meth:`to_dict` wrote."""
        read = {name: None if values[name] is None else float(values[name]) for name in _NUMBERS}
        seed = values["seed"]
        return cls(**read, seed=None if seed is None else SeedIdentity(**seed))  # type: ignore[arg-type]


Events = tuple[tuple[ReleaseEvent, int], ...]


def merge_events(counted: Iterable[tuple[Events, int]]) -> Counter[ReleaseEvent]:
    """Add up how often each event occurs, given lists of events and how often each list occurs."""
    total: Counter[ReleaseEvent] = Counter()
    for events, times in counted:
        for event, n in events:
            total[event] += n * times
    return total


def repeated_seeds(events: Iterable[ReleaseEvent]) -> set[str]:
    """Return the seeds from which more than one stream was started, so that the same noise was drawn twice."""
    streams: dict[str, set[str]] = {}
    for event in events:
        if event.seed is not None:
            streams.setdefault(event.seed.seed, set()).add(event.seed.stream)
    return {seed for seed, started in streams.items() if len(started) > 1}


def repeats_noise(events: Iterable[ReleaseEvent]) -> bool:
    """Tell whether two of the events drew the same noise."""
    return bool(repeated_seeds(events))


def with_seed(events: Events, seed: SeedIdentity | None) -> Events:
    """Say of every event that its noise came from this seed."""
    return tuple((replace(event, seed=seed), n) for event, n in events)
