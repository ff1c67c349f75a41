"""What a case is, and the list of them."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks._peer import Peer


@dataclass
class Timings:
    """Two callables to be timed in turn; ``*_work`` is the amount of work one call does."""

    ours: Callable[[], object]
    other: "Callable[[], object] | Peer"
    ours_work: float = 1.0
    other_work: float = 1.0
    repeats: int = 5


@dataclass
class Quantities:
    """Two measured numbers (an accuracy, an error), larger is better; ``other`` may be absent."""

    ours: float
    other: float | None = None


@dataclass
class Case:
    topic: str
    title: str
    make: Callable[[], Timings | Quantities]
    kind: str
    target: float


CASES: list[Case] = []

_KINDS = ("ratio_at_most", "speedup_at_least", "shortfall_at_most", "at_most", "at_least")


def case(topic: str, title: str, **target: float) -> Callable:
    """Register a case; exactly one of the targets named in the package's docstring is given."""
    (kind, value), *rest = target.items()
    if rest or kind not in _KINDS:
        raise TypeError(f"give exactly one target of {_KINDS}; got {sorted(target)}")

    def register(make: Callable[[], Timings | Quantities]) -> Callable:
        CASES.append(Case(topic, title, make, kind, float(value)))
        return make

    return register
