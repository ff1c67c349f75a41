"""What a pipeline costs: the number of its private step, unless another step tells what the noise was to hide.

A scaler that was fitted on the rows which are released has told every one of them to all others: the noise behind it
hides a row, but not what the row did to the mean. So the steps are walked, and each is asked what it has learned
from its rows without noise, and whether it keeps rows apart.
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skfairdp.accounting import PrivacyGuarantee, ReleaseEvent, compose
from skfairdp.release._rows import find_mixed_rows

_ROWS = ("fitted", "new")
_LABELS = "the labels y that steps behind the noise were fitted with"
_LEARNED = "what it learned in fit"
_NOT_A_STEP = (None, "passthrough", "drop")


def pipeline_guarantee(pipeline: Any, *, rows: str = "fitted") -> PrivacyGuarantee:
    """Say what a fitted pipeline as a whole costs a row that passes it once.

    Parameters
    ----------
    pipeline : Pipeline or estimator
        Fitted. Pipelines, column transformers and feature unions are looked into.
    rows : {"fitted", "new"}, default="fitted"
        Whose loss: that of the rows that the pipeline was fitted on, or that of rows which no step has seen in ``fit``.

    Returns
    -------
    PrivacyGuarantee
        Infinite, with the reason in ``does_not_cover``, where a step breaks the guarantee of the private step: it has
        learned from these rows without noise, it mixes rows, or it hands columns on beside the noise.

    Notes
    -----
    **Privacy.** Several private steps that read the same rows are composed. Of two that stand one behind the other the
    smaller epsilon holds for what comes out at the end. What stands behind a private step works on released values
    and costs nothing. These steps learn nothing from the rows: those that need no ``fit``;
    ``OneHotEncoder`` and ``OrdinalEncoder`` with given ``categories``; ``SimpleImputer`` with a constant;
    :class:`~skfairdp.preprocessing.PublicScaler`; and a ``FrozenEstimator``, whose rows are taken to be public because
    it was fitted before. Functions and estimators from elsewhere are tried on made-up rows: changing one must leave
    the others as they were.

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
    >>> pipeline_guarantee(broken).epsilon, pipeline_guarantee(broken, rows="new").epsilon
    (inf, 1.0)
    """
    if rows not in _ROWS:
        raise ValueError(f"rows must be one of {_ROWS}; got {rows!r}.")
    check_is_fitted(pipeline)
    found = _walk(pipeline, type(pipeline).__name__, rows)
    paid = [*found.of_fitted_rows, *([] if found.of_given_rows is None else [found.of_given_rows])]
    if not paid:
        whose = "the rows that it was fitted on" if rows == "fitted" else "rows that it is given"
        return PrivacyGuarantee(
            math.inf, mechanism="none", does_not_cover=(f"anything: no step makes {whose} private",)
        )
    price = compose(paid)
    if found.reasons:
        return without_protection(price, found.reasons)
    scope = tuple(dict.fromkeys((*price.does_not_cover, *found.conditions)))
    return replace(price, does_not_cover=scope)


def without_protection(guarantee: PrivacyGuarantee, reasons: list[str]) -> PrivacyGuarantee:
    """Write the receipt of a release whose guarantee something else has broken."""
    event = ReleaseEvent(math.inf)
    seeds = tuple(
        (replace(e, epsilon=0.0, delta=0.0, gaussian_mu=None), n) for e, n in guarantee.events or () if e.seed
    )
    return replace(
        guarantee,
        epsilon=math.inf,
        delta=0.0,
        events=((event, 1), *seeds),
        does_not_cover=tuple(dict.fromkeys((*reasons, *guarantee.does_not_cover))),
        mechanism=f"{guarantee.mechanism}, undone: {'; '.join(reasons)}",
    )


def price_in_program(estimator: Any, guarantee: PrivacyGuarantee, learned: str | None) -> PrivacyGuarantee:
    """Return what a release costs in the pipelines that are being fitted around it.

    Parameters
    ----------
    estimator : estimator
        What releases.
    guarantee : PrivacyGuarantee
        Its own price.
    learned : str or None
        What it has itself learned without noise from the rows that it is about to release.

    Returns
    -------
    PrivacyGuarantee
    """
    reasons = [] if learned is None else [_fitted_on_the_same(type(estimator).__name__, learned)]
    for pipeline, method in _enclosing_pipelines():
        if "fit" in method:
            reasons += _walk_in_a_row(_steps_before(pipeline, estimator), "fitted").reasons
    return without_protection(guarantee, list(dict.fromkeys(reasons))) if reasons else guarantee


def check_public_rows_are_prepared(estimator: Any, argument: str) -> None:
    """Refuse rows that a pipeline around the estimator hands on without the preparation that X has passed.

    Parameters
    ----------
    estimator : estimator
        What is being fitted.
    argument : str
        The name of the rows' argument in ``fit``.
    """
    for pipeline, method in _enclosing_pipelines():
        before = [name for name, step in _steps_before(pipeline, estimator) if not _is_nothing(step)]
        if "fit" in method and before and argument not in (pipeline.transform_input or ()):
            kind = type(estimator).__name__
            raise ValueError(
                f"{argument} would reach {kind} as it came, while X has passed {', '.join(map(repr, before))}. Build "
                f"the pipeline with Pipeline(steps, transform_input=[{argument!r}]), switch routing on by "
                f"sklearn.set_config(enable_metadata_routing=True), ask for the rows by "
                f"{kind}(...).set_fit_request({argument}=True), and call fit(X, y, {argument}=...)."
            )


@dataclass
class _Findings:
    """What walking a step has found.

    Attributes
    ----------
    of_given_rows : PrivacyGuarantee or None
        The price of rows that pass, where everything that comes out is private.
    of_fitted_rows : list of PrivacyGuarantee
        What the rows of ``fit`` have paid.
    reasons : list of str
        Why no guarantee holds.
    conditions : list of str
        What has to be true and cannot be seen.
    """

    of_given_rows: PrivacyGuarantee | None = None
    of_fitted_rows: list[PrivacyGuarantee] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)


def _walk(step: Any, name: str, rows: str) -> _Findings:
    if _is_nothing(step):
        return _Findings()
    if isinstance(step, Pipeline):
        return _walk_in_a_row(step.steps, rows)
    if isinstance(step, ColumnTransformer | FeatureUnion):
        return _walk_side_by_side(_branches(step), rows)
    privacy = getattr(step, "privacy_", None)
    found = _Findings()
    if isinstance(privacy, PrivacyGuarantee):
        if getattr(step, "_protects_fitted_rows", False):
            found.of_fitted_rows = [privacy] if rows == "fitted" else []
        else:
            found.of_given_rows = privacy
    if rows == "fitted":
        learned = _learned(step)
        if learned is not None:
            found.reasons.append(_fitted_on_the_same(name, learned))
    if isinstance(step, FrozenEstimator):
        found.conditions.append(f"the rows that {name!r} was fitted on before it was frozen: they must be public")
    if found.of_given_rows is None and not found.of_fitted_rows:
        found.reasons += _mixing(step, name)
    return found


def _walk_in_a_row(steps: list[tuple[str, Any]], rows: str) -> _Findings:
    total = _Findings()
    for name, step in steps:
        found = _walk(step, name, rows)
        if total.of_given_rows is None:
            total.reasons += found.reasons
            total.conditions += found.conditions
            total.of_fitted_rows += found.of_fitted_rows
            total.of_given_rows = found.of_given_rows
        elif found.of_given_rows is not None and found.of_given_rows.epsilon < total.of_given_rows.epsilon:
            total.of_given_rows = found.of_given_rows  # each holds for what comes out at the end
        elif hasattr(step, "predict"):
            total.conditions.append(_LABELS)
    return total


def _walk_side_by_side(branches: list[tuple[str, Any]], rows: str) -> _Findings:
    """Every branch sees the same records, so their prices add up; a branch without noise leaves nothing private."""
    total = _Findings()
    private = []
    for name, branch in branches:
        found = _walk(branch, name, rows)
        total.reasons += found.reasons
        total.conditions += found.conditions
        total.of_fitted_rows += found.of_fitted_rows
        private.append(found.of_given_rows)
    if private and all(price is not None for price in private):
        total.of_given_rows = compose([price for price in private if price is not None])
    return total


def _branches(step: Any) -> list[tuple[str, Any]]:
    if isinstance(step, FeatureUnion):
        return [(name, part) for name, part in step.transformer_list if not _is_dropped(part)]
    fitted = getattr(step, "transformers_", step.transformers)
    return [(name, part) for name, part, columns in fitted if not _is_dropped(part) and not _is_empty(columns)]


def _is_dropped(part: Any) -> bool:
    return isinstance(part, str) and part == "drop"


def _is_empty(columns: Any) -> bool:
    return hasattr(columns, "__len__") and not isinstance(columns, str) and len(columns) == 0


def _is_nothing(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step in _NOT_A_STEP)


def _fitted_on_the_same(name: str, learned: str) -> str:
    return f"{name} was fitted on the same rows ({learned})"


def _learned(step: Any) -> str | None:
    """Name what a step has learned from the rows of its fit without noise; ``None`` if nothing."""
    own = getattr(step, "_learned_in_clear", None)
    if own is not None:
        return own()
    if isinstance(step, FrozenEstimator):
        return None
    if isinstance(step, OneHotEncoder | OrdinalEncoder):
        given = not isinstance(step.categories, str) and step.min_frequency is None and step.max_categories is None
        return None if given and getattr(step, "drop", None) is None else "categories"
    if isinstance(step, SimpleImputer):
        constant = step.strategy == "constant" and step.keep_empty_features and not step.add_indicator
        return None if constant else f"the {step.strategy} of every column, or which columns have gaps"
    if isinstance(step, CountVectorizer) and step.vocabulary is not None and not hasattr(step, "idf_"):
        return None
    if hasattr(step, "transform") and not get_tags(step).requires_fit:
        return None
    return _LEARNED


def _mixing(step: Any, name: str) -> list[str]:
    """Say whether a step lets rows show through other rows; what scikit-learn and we wrote ourselves does not."""
    step = step.estimator if isinstance(step, FrozenEstimator) else step
    if not hasattr(step, "transform"):
        return []
    known = type(step).__module__.split(".")[0] in ("sklearn", "skfairdp")
    if known and not isinstance(step, FunctionTransformer):
        return []
    width: Any = getattr(step, "n_features_in_", None)
    names = getattr(step, "feature_names_in_", None)
    generator = np.random.default_rng(0)

    def made_up(n: int) -> Any:
        values = generator.normal(scale=3.0, size=(n, width))
        return values if names is None else pd.DataFrame(values, columns=names)

    def transform(X: Any) -> Any:
        out = step.transform(X)
        return out.toarray() if hasattr(out, "toarray") else out

    try:
        size = None if width is None else find_mixed_rows(transform, made_up)
    except Exception:  # a function of somebody else may fail on made-up rows in any way
        width = None
    if width is None:
        return [f"nobody has checked that {name} keeps rows apart ({type(step).__name__})"]
    return [] if size is None else [f"{name} mixes rows: changing one of {size} changes what comes out for others"]


def _enclosing_pipelines() -> Iterator[tuple[Pipeline, str]]:
    """Find the pipelines whose methods are running around the caller, the innermost first, with the method's name.

    scikit-learn tells a step nothing about the pipeline that it stands in, and the price of a release depends on it.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, Pipeline):
            caller = frame.f_back.f_locals.get("self") if frame.f_back is not None else None
            if caller is not owner:  # the outermost method of this pipeline: what the user, or a search, has called
                yield owner, frame.f_code.co_name
        frame = frame.f_back


def _steps_before(pipeline: Pipeline, estimator: Any) -> list[tuple[str, Any]]:
    """Return the steps whose output reaches the estimator, which may be a clone of a step or a part of one."""
    for same in (_holds_itself, _holds_its_kind):
        for place, (_, step) in enumerate(pipeline.steps):
            if same(step, estimator):
                return pipeline.steps[:place]
    return pipeline.steps[:-1]


def _holds_itself(step: Any, estimator: Any) -> bool:
    return any(part is estimator for part in _parts(step))


def _holds_its_kind(step: Any, estimator: Any) -> bool:
    return any(type(part) is type(estimator) for part in _parts(step))


def _parts(step: Any) -> list[Any]:
    return [step, *step.get_params(deep=True).values()] if hasattr(step, "get_params") else [step]
