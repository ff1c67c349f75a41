"""The receipt of a release: what it cost, whom it protects, and what it does not cover."""

import html
import json
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any

from skfairdp._validation import check_count, check_delta, check_epsilon

ONE_RELEASE = "one release of each record; releasing the same record again costs again"
TRAINING_DATA = "the rows that anything before the mechanism was fitted on"
KNOWN_SEED = "anybody who knows the seed: seeded noise can be replayed and subtracted"

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
    reproducible : bool, default=False
        Whether the noise came from a seed; if so, it protects nobody who knows the seed.
    gaussian_mu : float or None
        Sensitivity over noise scale of a Gaussian release; lets Gaussian releases compose exactly.
    sampling_error : float, default=0.0
        Total variation distance between the sampler that ran and the Gaussian that ``gaussian_mu``
        describes. It is part of ``delta`` already, and is told apart because it composes by addition.
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
    reproducible: bool = False
    gaussian_mu: float | None = None
    sampling_error: float = 0.0
    covers: str = "the released values and everything computed from them alone"
    does_not_cover: tuple[str, ...] = (ONE_RELEASE, TRAINING_DATA)

    def __post_init__(self) -> None:
        self._keep("epsilon", check_epsilon(self.epsilon, allow_zero=True))
        self._keep("delta", check_delta(self.delta, allow_zero=True))
        if self.published_epsilon is not None:
            published = check_epsilon(self.published_epsilon, name="published_epsilon", allow_zero=True)
            self._keep("published_epsilon", published)
        if self.gaussian_mu is not None:
            self._keep("gaussian_mu", check_epsilon(self.gaussian_mu, name="gaussian_mu", allow_zero=True))
        self._keep("sampling_error", check_delta(self.sampling_error, name="sampling_error", allow_zero=True))
        for name in ("mechanism", "neighbours", "covers"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be a str; got {getattr(self, name)!r}.")
        if self.unit not in ("record", "word"):
            raise ValueError(f"unit must be 'record' or 'word'; got {self.unit!r}.")
        self._keep("releases", check_count(self.releases, "releases"))
        if isinstance(self.does_not_cover, str):
            raise TypeError(f"does_not_cover must be a tuple of sentences; got one str {self.does_not_cover!r}.")
        scope = tuple(self.does_not_cover)
        self._keep("reproducible", bool(self.reproducible))
        self._keep("does_not_cover", (*scope, KNOWN_SEED) if self.reproducible and KNOWN_SEED not in scope else scope)

    def _keep(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # the only way to normalise a field of a frozen dataclass

    @property
    def pure(self) -> bool:
        """Whether the loss never exceeds epsilon (delta is 0)."""
        return self.delta == 0

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
        from skfairdp.accounting._composition import compose

        return compose([self] * check_count(times, "times"))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as values that JSON knows; an infinite epsilon becomes the string ``"inf"``."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["does_not_cover"] = list(values["does_not_cover"])
        return {name: str(v) if isinstance(v, float) and math.isinf(v) else v for name, v in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "PrivacyGuarantee":
        """Read back what :meth:`to_dict` wrote."""
        numbers = ("epsilon", "delta", "published_epsilon", "gaussian_mu", "sampling_error")
        read: dict[str, Any] = {k: float(v) if k in numbers and v is not None else v for k, v in values.items()}
        read["does_not_cover"] = tuple(read["does_not_cover"])
        return cls(**read)

    def __repr__(self) -> str:
        shown = (*_SHOWN, "reproducible") if self.reproducible else _SHOWN
        return f"PrivacyGuarantee({', '.join(f'{name}={_shown(getattr(self, name))}' for name in shown)})"

    def __str__(self) -> str:
        level = f"epsilon = {self.epsilon:.6g}" + ("" if self.pure else f", delta = {self.delta:.3g}")
        if math.isinf(self.epsilon):
            level = "no protection (epsilon = infinity)"
        claim = "" if self.published_epsilon is None else f" (published as {self.published_epsilon:.6g})"
        count = "1 release" if self.releases == 1 else f"{self.releases} releases"
        return f"{level}{claim} for {self.neighbours}, {count}, by {self.mechanism}"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th scope='row'>{field.name}</th><td>{html.escape(self._cell(field.name))}</td></tr>"
            for field in fields(self)
        )
        return f"<table><caption>{html.escape(str(self))}</caption><tbody>{rows}</tbody></table>"

    def _cell(self, name: str) -> str:
        value = getattr(self, name)
        return "; ".join(value) if isinstance(value, tuple) else str(value)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
