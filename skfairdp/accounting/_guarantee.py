"""The receipt of a release: what it cost, whom it protects, and what it does not cover."""

import html
import math
from dataclasses import KW_ONLY, dataclass, fields

from skfairdp._validation import check_delta, check_epsilon

ONE_RELEASE = "one release of each record; releasing the same record again costs again"
TRAINING_DATA = "the rows that anything before the mechanism was fitted on"
KNOWN_SEED = "anybody who knows the seed: seeded noise can be replayed and subtracted"


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
    reproducible : bool, default=False
        Whether the noise came from a seed; if so, it protects nobody who knows the seed.
    gaussian_mu : float or None
        Sensitivity over noise scale of a Gaussian release; lets Gaussian releases compose exactly.
    covers, does_not_cover : str, tuple of str
        The scope, in words.

    Examples
    --------
    >>> from skfairdp.accounting import PrivacyGuarantee
    >>> PrivacyGuarantee(8.0, mechanism="laplace")
    PrivacyGuarantee(epsilon=8.0, delta=0.0, unit="record", releases=1, mechanism="laplace",
                     published_epsilon=None)
    """

    epsilon: float
    delta: float = 0.0
    _: KW_ONLY
    mechanism: str
    unit: str = "record"
    neighbours: str = "any two records"
    releases: int = 1
    published_epsilon: float | None = None
    reproducible: bool = False
    gaussian_mu: float | None = None
    covers: str = "the released values and everything computed from them alone"
    does_not_cover: tuple[str, ...] = (ONE_RELEASE, TRAINING_DATA)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon, allow_zero=True)
        check_delta(self.delta, allow_zero=True)
        if self.unit not in ("record", "word"):
            raise ValueError(f"unit must be 'record' or 'word'; got {self.unit!r}.")
        if self.releases < 1:
            raise ValueError(f"releases must be at least 1; got {self.releases!r}.")
        if self.reproducible and KNOWN_SEED not in self.does_not_cover:
            object.__setattr__(self, "does_not_cover", (*self.does_not_cover, KNOWN_SEED))

    @property
    def pure(self) -> bool:
        """Whether the loss never exceeds epsilon (delta is 0)."""
        return self.delta == 0

    def __repr__(self) -> str:
        shown = ["epsilon", "delta", "unit", "releases", "mechanism", "published_epsilon"]
        if self.reproducible:
            shown.append("reproducible")
        return f"PrivacyGuarantee({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    def __str__(self) -> str:
        level = f"epsilon = {self.epsilon:.6g}" + ("" if self.pure else f", delta = {self.delta:.3g}")
        if math.isinf(self.epsilon):
            level = "no protection (epsilon = infinity)"
        claim = "" if self.published_epsilon is None else f" (published as {self.published_epsilon:.6g})"
        return f"{level}{claim} for {self.neighbours}, {self.releases} release(s), by {self.mechanism}"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th scope='row'>{html.escape(field.name)}</th><td>{html.escape(self._cell(field.name))}</td></tr>"
            for field in fields(self)
        )
        return f"<table><caption>{html.escape(str(self))}</caption><tbody>{rows}</tbody></table>"

    def _cell(self, name: str) -> str:
        value = getattr(self, name)
        return "; ".join(value) if isinstance(value, tuple) else str(value)
