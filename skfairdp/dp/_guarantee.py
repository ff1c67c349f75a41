"""The receipt of a release: what it cost, whom it protects, and what it does not cover.

What ran is described and priced in ``_composition``; here are the words.
"""

import html
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any

from skfairdp._validation import check_count, check_delta, check_epsilon
from skfairdp.dp._composition import Events, ReleaseEvent, composed_price, repeated_seeds
from skfairdp.random import SeedIdentity

ONE_RELEASE = "one release of each record; releasing the same record again costs again"
TRAINING_DATA = "the rows that anything before the mechanism was fitted on"
REPLACE_ONE_RECORD = "two data sets of the same size that differ in one record"
REFUSED_TABLES = "the number of records, and whether a table was refused as malformed (nan and infinity are)"
KNOWN_SEED = (
    "anybody who knows the seed, and anybody who sees two releases that start from it: seeded noise can be replayed "
    "and subtracted"
)
REPEATED_NOISE = (
    "anything: two releases started from the same seed and carry the same noise, so that their difference is the "
    "difference of the records"
)

_SHOWN = ("epsilon", "delta", "unit", "releases", "mechanism", "published_epsilon")


@dataclass(frozen=True, repr=False)
class PrivacyGuarantee:
    """What a release is proved to cost in the worst case.

    Parameters
    ----------
    epsilon : float
        The exact worst-case privacy loss of what was released; ``inf`` when nothing is protected.
    delta : float, default=0.0
        The probability with which the loss may exceed ``epsilon``; 0 means never.
    mechanism : str
        The name of the mechanism that ran.
    unit : {"record", "word"}, default="record"
        What two neighbouring inputs differ in.
    neighbours : str
        The neighbouring relation in words.
    releases : int, default=1
        How many releases of the same record this guarantee pays for.
    published_epsilon : float or None
        The epsilon that a paper claims for this noise, where it differs from the exact one.
    events : tuple of (ReleaseEvent, int), optional
        What ran, and how often: several guarantees are composed by their events. By default one event that
        is described by ``epsilon`` and ``delta`` alone.
    covers, does_not_cover : str, tuple of str
        The scope, in words.

    Examples
    --------
    >>> from skfairdp.accounting import PrivacyGuarantee
    >>> guarantee = PrivacyGuarantee(8.0, mechanism="laplace")
    >>> guarantee
    PrivacyGuarantee(epsilon=8.0, delta=0.0, unit="record", releases=1, mechanism="laplace",
                     published_epsilon=None)
    >>> guarantee.repeat(3).epsilon
    24.0
    """

    epsilon: float
    delta: float = 0.0
    _: KW_ONLY
    mechanism: str
    unit: str = "record"
    neighbours: str = "any two records"
    releases: int = 1
    published_epsilon: float | None = None
    events: Events = ()
    covers: str = "the released values and everything computed from them alone"
    does_not_cover: tuple[str, ...] = (ONE_RELEASE, TRAINING_DATA)

    def __post_init__(self) -> None:
        keep = object.__setattr__  # the only way to normalise a field of a frozen dataclass
        keep(self, "epsilon", check_epsilon(self.epsilon, allow_zero=True))
        keep(self, "delta", check_delta(self.delta, allow_zero=True))
        if self.published_epsilon is not None:
            published = check_epsilon(self.published_epsilon, name="published_epsilon", allow_zero=True)
            keep(self, "published_epsilon", published)
        if not self.events:
            keep(self, "events", ((ReleaseEvent(self.epsilon, self.delta), 1),))
        for name in ("mechanism", "neighbours", "covers"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a str; got {getattr(self, name)!r}.")
        if self.unit not in ("record", "word"):
            raise ValueError(f"unit must be 'record' or 'word'; got {self.unit!r}.")
        keep(self, "releases", check_count(self.releases, "releases"))
        if isinstance(self.does_not_cover, str):
            raise TypeError(f"does_not_cover must be a tuple of sentences; got one str {self.does_not_cover!r}.")
        scope = tuple(self.does_not_cover)
        if self.reproducible and KNOWN_SEED not in scope:
            scope = (*scope, KNOWN_SEED)
        keep(self, "does_not_cover", scope)

    @classmethod
    def of(cls, event: ReleaseEvent, **words: Any) -> "PrivacyGuarantee":
        """Write the receipt of one event; ``words`` are the other fields.

        Parameters
        ----------
        event : ReleaseEvent
            What was released, as far as its price depends on it.
        **words : dict
            The other fields of the receipt.

        Examples
        --------
        >>> from skfairdp.accounting import PrivacyGuarantee, ReleaseEvent
        >>> PrivacyGuarantee.of(ReleaseEvent(1.0, 1e-5, gaussian_mu=0.268), mechanism="gaussian").gaussian_mu
        0.268
        """
        return cls(event.epsilon, event.delta, events=((event, 1),), **words)

    def with_seed(self, seed: SeedIdentity | None) -> "PrivacyGuarantee":
        """Return the same receipt for noise from another stream.

        Parameters
        ----------
        seed : SeedIdentity or None
            Of the stream; ``None`` for noise that nobody can replay.

        Returns
        -------
        PrivacyGuarantee
        """
        scope = tuple(sentence for sentence in self.does_not_cover if sentence != KNOWN_SEED)
        events = tuple((replace(event, seed=seed), n) for event, n in self.events)
        return replace(self, events=events, does_not_cover=scope)

    @property
    def pure(self) -> bool:
        """Whether the loss never exceeds epsilon (delta is 0)."""
        return self.delta == 0

    @property
    def reproducible(self) -> bool:
        """Whether noise came from a seed; if so, it protects nobody who knows the seed."""
        return any(event.seed is not None for event, _ in self.events)

    @property
    def gaussian_mu(self) -> float | None:
        """Sensitivity over noise scale of all events together, where all of them are Gaussian."""
        mus = [(event.gaussian_mu, n) for event, n in self.events]
        return None if any(mu is None for mu, _ in mus) else math.sqrt(math.fsum(n * mu**2 for mu, n in mus))  # type: ignore[operator]

    @property
    def sampling_error(self) -> float:
        """Total variation distance between the samplers that ran and the Gaussians of ``gaussian_mu``."""
        return min(math.fsum(n * event.sampling_error for event, n in self.events), math.nextafter(1, 0))

    def repeat(self, times: int) -> "PrivacyGuarantee":
        """Price ``times`` such releases of the same records, each with fresh noise.

        Parameters
        ----------
        times : int
            How often; at least 1.

        Returns
        -------
        PrivacyGuarantee
            Exact for Gaussian releases (at the same delta), the sum of epsilons otherwise.
        """
        return compose([self] * check_count(times, "times"))

    def undone(self, reasons: Sequence[str]) -> "PrivacyGuarantee":
        """Return the receipt of a release whose guarantee something else has broken.

        Parameters
        ----------
        reasons : sequence of str
            What has broken it. If there is none, the receipt stays as it is.

        Returns
        -------
        PrivacyGuarantee
            Of an infinite epsilon, with the reasons first in ``does_not_cover``.

        Examples
        --------
        >>> from skfairdp.accounting import PrivacyGuarantee
        >>> PrivacyGuarantee(1.0, mechanism="laplace").undone(["StandardScaler was fitted on the same rows"]).epsilon
        inf
        """
        if not reasons:
            return self
        return replace(
            self,
            epsilon=math.inf,
            delta=0.0,
            events=as_one_event(ReleaseEvent(math.inf), self.events),
            does_not_cover=tuple(dict.fromkeys((*reasons, *self.does_not_cover))),
            mechanism=f"{self.mechanism}, undone: {'; '.join(reasons)}",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values that JSON knows; an infinite epsilon becomes the string ``"inf"``."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["does_not_cover"] = list(values["does_not_cover"])
        values["events"] = [{**event.to_dict(), "times": n} for event, n in self.events]
        values["reproducible"] = self.reproducible  # said by the events too; here for people who read the file
        return {name: str(v) if isinstance(v, float) and math.isinf(v) else v for name, v in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "PrivacyGuarantee":
        """Read back what :meth:`to_dict` wrote.

        Parameters
        ----------
        values : mapping
            The fields, by name.
        """
        numbers = ("epsilon", "delta", "published_epsilon")
        read: dict[str, Any] = {k: float(v) if k in numbers and v is not None else v for k, v in values.items()}
        del read["reproducible"]
        read["does_not_cover"] = tuple(read["does_not_cover"])
        read["events"] = tuple((ReleaseEvent.from_dict(event), event["times"]) for event in values["events"])
        return cls(**read)

    def __repr__(self) -> str:
        shown = (*_SHOWN, "reproducible") if self.reproducible else _SHOWN
        return f"PrivacyGuarantee({', '.join(f'{name}={_shown_value(getattr(self, name))}' for name in shown)})"

    def __str__(self) -> str:
        level = f"epsilon = {self.epsilon:.6g}" + ("" if self.pure else f", delta = {self.delta:.3g}")
        if math.isinf(self.epsilon):
            level = "no protection (epsilon = infinity)"
        claim = "" if self.published_epsilon is None else f" (published as {self.published_epsilon:.6g})"
        count = "1 release" if self.releases == 1 else f"{self.releases} releases"
        return f"{level}{claim} for {self.neighbours}, {count}, by {self.mechanism}"

    def _repr_html_(self) -> str:
        names = (*_SHOWN, "reproducible", "neighbours", "covers")
        told = {**{name: str(getattr(self, name)) for name in names}, "does_not_cover": "; ".join(self.does_not_cover)}
        rows = "".join(f"<tr><th scope='row'>{k}</th><td>{html.escape(v)}</td></tr>" for k, v in told.items())
        return f"<table><caption>{html.escape(str(self))}</caption><tbody>{rows}</tbody></table>"


def _shown_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def compose(guarantees: Iterable[PrivacyGuarantee], *, delta: float | None = None) -> PrivacyGuarantee:
    """Price several releases of the same records together.

    Parameters
    ----------
    guarantees : iterable of PrivacyGuarantee
        The releases; later ones may have been chosen after looking at earlier ones.
    delta : float, optional
        The delta at which the total is wanted. By default the deltas of all releases that are not
        Gaussian, added, plus the largest delta of those that are.

    Returns
    -------
    PrivacyGuarantee
        Pure releases cost the sum of their epsilons, or less where ``delta`` is given. Gaussian releases are
        one Gaussian release, priced exactly. Anything else costs the least that its description proves.

    Notes
    -----
    **Privacy.** The total holds for pairs of inputs that are neighbours under every relation that
    occurs. A record-level guarantee also holds word by word, so that a mixture of units holds for words. Two
    releases that started from the same seed carry the same noise and cost infinity together.

    References
    ----------
    Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", 2017.
    Zhu, Dong and Wang, "Optimal accounting of differential privacy via characteristic function", 2022.

    Examples
    --------
    >>> from skfairdp.accounting import PrivacyGuarantee, compose
    >>> laplace = PrivacyGuarantee(0.1, mechanism="laplace")
    >>> compose([laplace] * 100).epsilon
    10.0
    >>> round(compose([laplace] * 100, delta=1e-6).epsilon, 3)
    4.775
    """
    counts = Counter(guarantees)
    if not counts:
        raise ValueError("guarantees is empty; give at least one PrivacyGuarantee.")
    for guarantee in counts:
        if not isinstance(guarantee, PrivacyGuarantee):
            raise TypeError(f"guarantees must hold PrivacyGuarantee objects; got {guarantee!r}.")
    first = next(iter(counts))
    if counts.total() == 1 and delta in (None, first.delta):
        return first
    return compose_counts(counts, delta=delta)


def compose_counts(counts: Counter[PrivacyGuarantee], *, delta: float | None = None) -> PrivacyGuarantee:
    """Compose guarantees that are given with how often each occurred."""
    events = events_of(counts)
    return _composed_receipt(
        list(counts),
        *composed_price(events, delta),
        tuple(events.items()),
        releases=sum(g.releases * n for g, n in counts.items()),
        claim=math.fsum(_claimed_epsilon(g) * n for g, n in counts.items()),
    )


def events_of(counts: Counter[PrivacyGuarantee]) -> Counter[ReleaseEvent]:
    """Return what ran, and how often, behind guarantees that are given with how often each occurred."""
    total: Counter[ReleaseEvent] = Counter()
    for guarantee, times in counts.items():
        for event, n in guarantee.events:
            total[event] += n * times
    return total


def as_one_event(event: ReleaseEvent, others: Iterable[tuple[ReleaseEvent, int]]) -> Events:
    """Let one event stand for others; their seeds are kept, because noise that is drawn twice gives records away."""
    seeds = dict.fromkeys(other.seed for other, _ in others if other.seed is not None)
    return ((event, 1), *((ReleaseEvent(0.0, seed=seed), 1) for seed in seeds))


def _composed_receipt(
    every: Sequence[PrivacyGuarantee],
    epsilon: float,
    delta: float,
    events: Events,
    *,
    releases: int,
    claim: float,
) -> PrivacyGuarantee:
    """Write the receipt of several releases."""
    neighbours = list(dict.fromkeys(g.neighbours for g in every))
    scope = [sentence for g in every for sentence in g.does_not_cover]
    if repeated_seeds(event for event, _ in events):
        epsilon, delta = math.inf, 0.0
        scope.append(REPEATED_NOISE)
    return PrivacyGuarantee(
        epsilon,
        delta,
        mechanism=" + ".join(dict.fromkeys(g.mechanism for g in every)),
        unit="word" if any(g.unit == "word" for g in every) else "record",
        neighbours=neighbours[0] if len(neighbours) == 1 else "pairs that are all of: " + "; ".join(neighbours),
        releases=releases,
        published_epsilon=None if all(g.published_epsilon is None for g in every) else claim,
        events=events,
        covers="; ".join(dict.fromkeys(g.covers for g in every)),
        does_not_cover=tuple(dict.fromkeys(scope)),
    )


def compose_parallel(guarantees: Iterable[PrivacyGuarantee]) -> PrivacyGuarantee:
    """Price releases of disjoint sets of records: each record pays for its own set alone.

    Parameters
    ----------
    guarantees : iterable of PrivacyGuarantee
        One for each set. That no record is in two sets is the caller's knowledge; nothing here can check it.

    Returns
    -------
    PrivacyGuarantee
        The largest epsilon and the largest delta.

    Examples
    --------
    >>> from skfairdp.accounting import PrivacyGuarantee, compose_parallel
    >>> compose_parallel([PrivacyGuarantee(e, mechanism="laplace") for e in (1.0, 3.0)]).epsilon
    3.0
    """
    every = list(dict.fromkeys(guarantees))
    if not every:
        raise ValueError("guarantees is empty; give at least one PrivacyGuarantee.")
    if len(every) == 1:
        return every[0]
    worst = max(every, key=lambda g: g.epsilon)
    highest = max(g.delta for g in every)
    # One event of the worst point stands for all sets, unless a single kind of Gaussian tells more.
    mus = [g.gaussian_mu for g in every if g.gaussian_mu is not None]
    event = ReleaseEvent(
        worst.epsilon,
        highest,
        gaussian_mu=max(mus) if len(mus) == len(every) else None,
        sampling_error=max(g.sampling_error for g in every),
    )
    return _composed_receipt(
        every,
        worst.epsilon,
        highest,
        as_one_event(event, events_of(Counter(every)).items()),
        releases=max(g.releases for g in every),
        claim=max(_claimed_epsilon(g) for g in every),
    )


def _claimed_epsilon(guarantee: PrivacyGuarantee) -> float:
    return guarantee.epsilon if guarantee.published_epsilon is None else guarantee.published_epsilon
