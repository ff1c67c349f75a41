"""What a pipeline costs: the price of its private step, unless another step reveals what the noise was to hide.

A scaler that was fitted on the rows which are released lets every row act on all others: the noise behind it hides a
row, but not what the row did to the mean. So the steps are walked one by one, and two questions are asked of each: what
it learns from its rows without noise, and whether its output for one row depends on other rows (``_row_wise.py``).
Nothing is evaluated: both answers come from the structure of the pipeline.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from skfairdp._row_wise import (
    chooses_columns_by_rows,
    learns_from_rows,
    shadowed_method,
    why_not_trusted,
    why_rows_mix,
)
from skfairdp._validation import check_option
from skfairdp.dp import PrivacyGuarantee, ReleaseMixin, compose, fitted_on_the_same

_LABELS = "Labels y that later steps were fitted with."
_OPEN_BRANCH = "a branch passes rows on without noise"
_UNFITTED = PrivacyGuarantee(0.0, mechanism="not fitted")


def pipeline_guarantee(pipeline: Any, *, rows: str | None = None, row_wise: Sequence[str] = ()) -> PrivacyGuarantee:
    """Compute what a pipeline as a whole costs a record that passes it once.

    Parameters
    ----------
    pipeline : Pipeline or estimator
        Fitted, or not: then only the reasons for an infinite price can be found. Pipelines, column transformers and
        feature unions are looked into.
    rows : {"fitted", "new"}, optional
        Whose loss: that of the records that the pipeline was fitted on, or that of records which no step has seen in
        ``fit``. Needed where a step learns from its rows.
    row_wise : sequence of str, default=()
        Names of steps (``outer__inner`` for nested ones) of which you know that they treat each record alone. The
        receipt repeats them.

    Returns
    -------
    PrivacyGuarantee
        Infinite, with the reason in ``does_not_cover``, where a step breaks the guarantee of the private step: it has
        learned from these rows without noise, its output for one record may depend on others, or it passes columns on
        without noise.

    Notes
    -----
    **Privacy.** Several private steps that read the same rows are composed. Steps behind a private step work on
    released values and cost nothing; if one of them is private, too, the smaller epsilon holds for the final output, as
    long as nothing between them has learned from the released rows or mixes them.

    These steps learn nothing from the rows: those that need no ``fit``; ``OneHotEncoder`` and ``OrdinalEncoder`` with
    given ``categories``; ``SimpleImputer`` with a constant; :class:`~skfairdp.preprocessing.PublicScaler`; and a
    ``FrozenEstimator``, whose rows are assumed to be public because it was fitted before. Steps that are not known to
    treat each record alone make the price infinite, unless you vouch for them; in a
    :class:`~skfairdp.pipeline.PrivatePipeline` they are called on one record at a time. The threat model is code that
    is careless about its batch, not code that hides state in globals.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skfairdp import LaplacePrivatizer, PublicScaler, pipeline_guarantee
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> pipeline_guarantee(make_pipeline(PublicScaler(bounds=(-4, 4)), LaplacePrivatizer(1.0)).fit(X)).epsilon
    1.0
    >>> broken = make_pipeline(StandardScaler(), LaplacePrivatizer(1.0)).fit(X)
    >>> pipeline_guarantee(broken, rows="fitted").epsilon, pipeline_guarantee(broken, rows="new").epsilon
    (inf, 1.0)
    """
    if rows is None:
        learned = _what_is_learned(pipeline, type(pipeline).__name__)
        if learned is not None:
            raise ValueError(
                f"rows must be 'new' or 'fitted', because {learned} depends on the rows of fit: 'new' for records that "
                "no step has seen in fit, 'fitted' for those that it was fitted on."
            )
        rows = "new"
    return price_and_releases(pipeline, rows, row_wise)[0]


def price_and_releases(
    pipeline: Any, rows: str, row_wise: Sequence[str] = ()
) -> tuple[PrivacyGuarantee, tuple[PrivacyGuarantee, ...]]:
    """Return what a pipeline as a whole costs, and what each private step that rows pass spends for itself."""
    check_option(rows, "rows", ("fitted", "new"))
    found = _Walk(rows, frozenset(row_wise)).of_step(pipeline, type(pipeline).__name__)
    releases = tuple(found.releases)
    paid = [*found.of_fitted_rows, *([] if found.of_given_rows is None else [found.of_given_rows])]
    if not paid:
        whose = "the rows that it was fitted on" if rows == "fitted" else "rows that it is given"
        nothing = (f"Anything: no step makes {whose} private.",)
        return PrivacyGuarantee(math.inf, mechanism="none", does_not_cover=nothing), releases
    price = compose(paid)
    if found.reasons:
        return price.undone(found.reasons), releases
    if any(release is _UNFITTED for release in (*paid, *releases)):
        raise NotFittedError(
            f"{type(pipeline).__name__} is not fitted, so that the price of its private steps is not known yet. Call "
            "fit first."
        )
    scope = tuple(dict.fromkeys((*price.does_not_cover, *found.conditions)))
    return replace(price, does_not_cover=scope), releases


def reasons_for_infinity(pipeline: Any, rows: str, row_wise: Sequence[str] = ()) -> list[str]:
    """Name what breaks the guarantee of a pipeline, fitted or not; empty if nothing does, or if nothing is private."""
    found = _Walk(rows, frozenset(row_wise)).of_step(pipeline, type(pipeline).__name__)
    reasons = list(dict.fromkeys(found.reasons))
    if found.is_private and found.of_given_rows is None and not found.of_fitted_rows:
        reasons.append(_OPEN_BRANCH)
    return reasons


def private_parts(step: Any) -> list[Any]:
    """Return the private estimators in a step: those that release rows, and those that release what they learn."""
    if type(step) is FrozenEstimator:
        return private_parts(step.estimator)
    if (parts := parts_of(step)) is not None:
        return [part for _, inner in parts for part in private_parts(inner)]
    if isinstance(step, ReleaseMixin) or hasattr(step, "_protects_fitted_rows"):
        return [step]
    # An estimator of others may hold private ones, as a search does or an ensemble.
    held = step.get_params(deep=True).values() if hasattr(step, "get_params") and not isinstance(step, type) else ()
    return [part for part in held if isinstance(part, ReleaseMixin) or hasattr(part, "_protects_fitted_rows")]


def draws_in_fit(step: Any) -> bool:
    """Whether ``fit`` of a step draws noise: by what it learns, or because it passes rows through a private part."""
    if is_pipeline(step):
        return any(private_parts(part) for _, part in step.steps[:-1]) or draws_in_fit(step.steps[-1][1])
    if type(step) is FeatureUnion:
        return any(draws_in_fit(part) for _, part in step.transformer_list)
    parts = private_parts(step)
    # fit of a ColumnTransformer, and of estimators of others, may well transform.
    return bool(parts) and (parts != [step] or getattr(step, "_protects_fitted_rows", False))


def parts_of(step: Any) -> list[tuple[str, Any]] | None:
    """Return the named parts of a pipeline, a column transformer or a feature union, by exact type; None of others."""
    kind = type(step)
    if is_pipeline(step):
        return list(step.steps)
    if kind is FeatureUnion:
        return [(name, part) for name, part in step.transformer_list if part != "drop"]
    if kind is ColumnTransformer:
        given = [*step.transformers, ("remainder", step.remainder, slice(None))]
        fitted = getattr(step, "transformers_", given)
        return [(name, part) for name, part, columns in fitted if _reads(part, columns)]
    return None


def is_pipeline(step: Any) -> bool:
    """Whether this is a pipeline of scikit-learn or ours, and no subclass of a stranger's."""
    return type(step) is Pipeline or is_private_pipeline(step) or "_runs_steps_as_pipeline" in vars(type(step))


def is_private_pipeline(step: Any) -> bool:
    """Whether this is a PrivatePipeline, and no subclass, which may run its steps in another way."""
    return "_is_private_pipeline" in vars(type(step))


def _reads(part: Any, columns: Any) -> bool:
    empty = hasattr(columns, "__len__") and not isinstance(columns, str) and len(columns) == 0
    return not empty and not (isinstance(part, str) and part == "drop")


def _is_nothing(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step in ("passthrough", "drop"))


def _what_is_learned(step: Any, name: str) -> str | None:
    """Name a step whose fit looks at the values of its rows; behind the noise it does no harm."""
    if _is_nothing(step) or type(step) is FrozenEstimator:
        return None
    if type(step) is ColumnTransformer and chooses_columns_by_rows(step) is not None:
        return f"{name!r}"
    if is_pipeline(step):
        for inner, part in step.steps:
            if (learned := _what_is_learned(part, inner)) is not None:
                return learned
            if private_parts(part):
                return None
        return None
    if (parts := parts_of(step)) is not None:
        return next((found for inner, part in parts if (found := _what_is_learned(part, inner)) is not None), None)
    if getattr(step, "_protects_fitted_rows", False) or learns_from_rows(step) is not None:
        return f"{name!r}"
    return None


@dataclass
class _Findings:
    """What walking a step has found.

    Attributes
    ----------
    of_given_rows : PrivacyGuarantee or None
        The price of rows that pass, where everything that comes out is private.
    of_fitted_rows : list of PrivacyGuarantee
        What the rows of ``fit`` have paid.
    releases : list of PrivacyGuarantee
        What every private step that rows pass spends for itself, also where the price of another one holds for all.
    reasons : list of str
        Why no guarantee holds.
    conditions : list of str
        What has to be true and cannot be seen.
    is_private : bool
        Whether there is a private step at all.
    """

    of_given_rows: PrivacyGuarantee | None = None
    of_fitted_rows: list[PrivacyGuarantee] = field(default_factory=list)
    releases: list[PrivacyGuarantee] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    is_private: bool = False

    def add(self, other: "_Findings", *, reasons: bool = True) -> None:
        """Take over what another step has cost, and whatever breaks the guarantee."""
        self.releases += other.releases
        self.is_private |= other.is_private
        if reasons:
            self.of_fitted_rows += other.of_fitted_rows
            self.reasons += other.reasons
            self.conditions += other.conditions


@dataclass(frozen=True)
class _Walk:
    """A walk through the steps, for rows of ``fit`` or new ones; the user vouches for steps in ``row_wise``."""

    rows: str
    row_wise: frozenset[str]

    def of_step(self, step: Any, name: str, *, path: str = "", alone: bool = False) -> _Findings:
        """Walk a step; ``alone`` if it only ever sees one record, or if the user vouches for what it is a part of."""
        if _is_nothing(step):
            return _Findings()
        if path in self.row_wise and not alone:
            found = self.of_step(step, name, path=path, alone=True)
            found.conditions.append(f"The user's word that {path!r} treats each record alone.")
            return found
        if is_pipeline(step) or type(step) is FrozenEstimator or parts_of(step) is not None:
            found = self._of_composite(step, name, path, alone)
            if (replaced := shadowed_method(step)) is not None:
                found.reasons.append(f"{name} may mix records: {replaced} was replaced on the instance by a function")
            return found
        return self._of_estimator(step, name, alone)

    def _of_composite(self, step: Any, name: str, path: str, alone: bool) -> _Findings:
        if is_pipeline(step):
            return self._in_a_row(step, path, alone)
        if type(step) is FrozenEstimator:
            found = replace(self, rows="new").of_step(step.estimator, name, path=path, alone=alone)
            found.conditions.append(f"Rows that {name!r} was fitted on before it was frozen: they must be public.")
            return found
        found = self._side_by_side(parts_of(step) or [], path, alone)
        if self.rows == "fitted" and type(step) is ColumnTransformer and chooses_columns_by_rows(step) is not None:
            found.reasons.append(fitted_on_the_same(name, "which columns it takes"))
        return found

    def _of_estimator(self, step: Any, name: str, alone: bool) -> _Findings:
        found = _Findings(is_private=bool(private_parts(step)))
        if hasattr(step, "_is_private_pipeline"):
            found.reasons.append(f"{name} is a subclass of PrivatePipeline, which may run its steps in another way")
            return found
        is_private = private_parts(step) == [step]
        privacy = getattr(step, "privacy_", _UNFITTED if is_private else None)
        if isinstance(privacy, PrivacyGuarantee):
            if getattr(step, "_protects_fitted_rows", False):
                found.of_fitted_rows = [privacy] if self.rows == "fitted" else []
            else:
                found.of_given_rows = privacy
                found.releases = [privacy]
        if self.rows == "fitted" and (learned := learns_from_rows(step)) is not None:
            found.reasons.append(fitted_on_the_same(name, learned))
        if hasattr(step, "_taken_as_public"):
            source = step._taken_as_public()
            found.conditions.append(f"{source[0].upper()}{source[1:]} of {name!r}: must not come from protected rows.")
        if found.of_given_rows is not None:
            reason = why_not_trusted(step)
        elif not found.of_fitted_rows and hasattr(step, "transform"):
            reason = why_rows_mix(step, "transform")
        else:
            reason = None
        if reason is not None and not alone:
            found.reasons.append(f"{name} may mix records: {reason}")
        return found

    def _in_a_row(self, pipeline: Any, path: str, alone: bool) -> _Findings:
        own = frozenset(_joined(path, name) for name in getattr(pipeline, "row_wise", ()))
        walk = replace(self, row_wise=self.row_wise | own)
        total = _Findings()
        apart = True  # whether every released row is still a function of that row alone
        for place, (name, step) in enumerate(pipeline.steps):
            inner = _joined(path, name)
            by_row = is_private_pipeline(pipeline) and runs_by_row(pipeline.steps, place) and inner not in walk.row_wise
            found = walk.of_step(step, name, path=inner, alone=alone or by_row)
            if by_row and hasattr(step, "transform") and why_rows_mix(step, "transform") is not None:
                found.conditions.append(
                    f"State that {name!r} hides in globals or files: it is called on one record at a time."
                )
            if total.of_given_rows is None:
                total.add(found)
                total.of_given_rows = found.of_given_rows
                continue
            total.add(found, reasons=False)
            apart = apart and not found.reasons and not found.of_fitted_rows
            if apart and found.of_given_rows is not None and found.of_given_rows.epsilon < total.of_given_rows.epsilon:
                total.of_given_rows = found.of_given_rows  # each holds for what comes out at the end
            if hasattr(step, "__sklearn_tags__") and get_tags(step).target_tags.required:
                total.conditions.append(_LABELS)
        return total

    def _side_by_side(self, parts: list[tuple[str, Any]], path: str, alone: bool) -> _Findings:
        """Every part sees the same records, so their prices add up; a part without noise leaves nothing private."""
        total = _Findings()
        private = []
        for name, part in parts:
            found = self.of_step(part, name, path=_joined(path, name), alone=alone)
            total.add(found)
            private.append(found.of_given_rows)
        if private and all(price is not None for price in private):
            total.of_given_rows = compose([price for price in private if price is not None])
        elif any(price is not None for price in private):
            total.reasons.append(_OPEN_BRANCH)
        return total


def runs_by_row(steps: list[tuple[str, Any]], place: int) -> bool:
    """Whether a PrivatePipeline calls a step on one record at a time where it is not known to treat each alone."""
    return not private_parts(steps[place][1]) and any(private_parts(step) for _, step in steps[place + 1 :])


def _joined(path: str, name: str) -> str:
    return f"{path}__{name}" if path else name
