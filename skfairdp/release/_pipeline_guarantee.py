"""What a pipeline costs: the price of its private step, unless another step reveals what the noise was to hide.

A scaler that was fitted on the rows which are released lets every row act on all others: the noise behind it hides a
row, but not what the row did to the mean. So the steps are walked one by one, and each is asked two questions: what it
has learned from its rows without noise, and whether its output for one row depends on other rows
(:func:`find_mixed_rows`).
"""

import math
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skfairdp._base import dense
from skfairdp._validation import check_option
from skfairdp.accounting import PrivacyGuarantee, ReleaseEvent, as_one_event, compose
from skfairdp.release._pipelines_being_fitted import pipelines_of_other_threads, pipelines_of_this_thread

_ROWS = ("fitted", "new")
_LABELS = "the labels y that steps behind the noise were fitted with"
_LEARNED = "what it learned in fit"
_MIXES = "mixes rows"
_ON_THE_SAME_ROWS = "was fitted on the same rows"
#: Transformers of scikit-learn whose ``transform`` looks at all rows together.
_KNOWN_TO_MIX = {"NMF", "MiniBatchNMF"}
#: Whether a step is being tried on made-up rows, which are no release.
_on_trial: ContextVar[bool] = ContextVar("on_trial", default=False)


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
    **Privacy.** Several private steps that read the same rows are composed. What stands behind a private step works on
    released values and costs nothing; if that is another private step, the smaller epsilon holds for what comes out at
    the end, as long as nothing between them has learned from the released rows or mixes them.

    These steps learn nothing from the rows: those that need no ``fit``; ``OneHotEncoder`` and ``OrdinalEncoder`` with
    given ``categories``; ``SimpleImputer`` with a constant; :class:`~skfairdp.preprocessing.PublicScaler`; and a
    ``FrozenEstimator``, whose rows are taken to be public because it was fitted before. Functions and estimators from
    elsewhere are tried on made-up rows, in batches of up to 1,000: changing one must leave the others as they were. The
    walk looks at the steps as they are now; ``set_params`` on a fitted pipeline can make it speak of another one.

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
    return price_and_releases(pipeline, rows)[0]


def price_and_releases(pipeline: Any, rows: str) -> tuple[PrivacyGuarantee, tuple[PrivacyGuarantee, ...]]:
    """Return what a fitted pipeline as a whole costs, and what each private step that rows pass spends for itself."""
    check_option(rows, "rows", _ROWS)
    if hasattr(pipeline, "__sklearn_tags__"):  # others cannot be asked whether they are fitted
        check_is_fitted(pipeline)
    found = _walk_steps(pipeline, type(pipeline).__name__, rows)
    releases = tuple(found.releases)
    paid = [*found.of_fitted_rows, *([] if found.of_given_rows is None else [found.of_given_rows])]
    if not paid:
        whose = "the rows that it was fitted on" if rows == "fitted" else "rows that it is given"
        nothing = (f"anything: no step makes {whose} private",)
        return PrivacyGuarantee(math.inf, mechanism="none", does_not_cover=nothing), releases
    price = compose(paid)
    if found.reasons:
        return without_protection(price, found.reasons), releases
    scope = tuple(dict.fromkeys((*price.does_not_cover, *found.conditions)))
    return replace(price, does_not_cover=scope), releases


def without_protection(guarantee: PrivacyGuarantee, reasons: list[str]) -> PrivacyGuarantee:
    """Write the receipt of a release whose guarantee something else has broken."""
    return replace(
        guarantee,
        epsilon=math.inf,
        delta=0.0,
        events=as_one_event(ReleaseEvent(math.inf), guarantee.events),
        does_not_cover=tuple(dict.fromkeys((*reasons, *guarantee.does_not_cover))),
        mechanism=f"{guarantee.mechanism}, undone: {'; '.join(reasons)}",
    )


def price_in_program(
    estimator: Any, guarantee: PrivacyGuarantee, learned: str | None, undone: Sequence[str] = ()
) -> PrivacyGuarantee:
    """Return what a release costs in the pipelines that are being fitted around it.

    Parameters
    ----------
    estimator : estimator
        What releases.
    guarantee : PrivacyGuarantee
        Its own price.
    learned : str or None
        What it has itself learned without noise from the rows that it is about to release.
    undone : sequence of str
        What the pipelines of the process that sent it here have undone.

    Returns
    -------
    PrivacyGuarantee
    """
    if _on_trial.get():
        raise RuntimeError("a release was asked for on made-up rows, to see whether a step keeps rows apart.")
    reasons = [] if learned is None else [_fitted_on_the_same(type(estimator).__name__, learned)]
    reasons += [*undone, *undone_by(estimator)]
    return without_protection(guarantee, list(dict.fromkeys(reasons))) if reasons else guarantee


def undone_by(estimator: Any) -> list[str]:
    """Name the steps that have learned from the rows which an estimator is given by the pipelines around it."""
    reasons = []
    for pipeline in _enclosing_pipelines(estimator):
        reasons += _walk_in_a_row(_steps_before(pipeline, estimator), "fitted").reasons
    return reasons


def steps_that_mix_rows(estimator: Any) -> list[str]:
    """Name the steps of a fitted estimator through which rows show in others, known ones and those found by trial."""
    return [reason for reason in _walk_steps(estimator, type(estimator).__name__, "new").reasons if _MIXES in reason]


def steps_that_learn_in_clear(estimator: Any) -> list[str]:
    """Name the steps of an estimator, fitted or not, that learn from the rows of their fit without noise."""
    found = _walk_steps(estimator, type(estimator).__name__, "fitted").reasons
    return [reason for reason in found if _ON_THE_SAME_ROWS in reason]


def check_public_rows(estimator: Any, X: Any, public: Any) -> None:
    """Refuse public rows that are the protected rows, or that did not pass the steps that X has passed.

    Parameters
    ----------
    estimator : estimator
        What is being fitted.
    X, public : array-like
        The rows to protect, and those that everybody may know.
    """
    if public is X or (np.shape(public) == np.shape(X) and _equal_tables(public, X)):
        raise ValueError("public holds the same rows as X, which are to be protected; give rows that are public.")
    for pipeline in _enclosing_pipelines(estimator):
        before = [name for name, step in _steps_before(pipeline, estimator) if not _is_nothing(step)]
        if before and "public" not in (pipeline.transform_input or ()):
            kind = type(estimator).__name__
            raise ValueError(
                f"public would reach {kind} as it came, while X has passed {', '.join(map(repr, before))}. Build the "
                "pipeline with Pipeline(steps, transform_input=['public']), switch routing on by "
                f"sklearn.set_config(enable_metadata_routing=True), ask for the rows by "
                f"{kind}(...).set_fit_request(public=True) (and by False in other steps that know them), and call "
                "fit(X, y, public=...)."
            )


def _equal_tables(first: Any, second: Any) -> bool:
    """Whether two tables of the same shape hold the same values; either may be sparse."""
    if sparse.issparse(first) and sparse.issparse(second):
        return (first != second).nnz == 0
    return np.array_equal(dense(first), dense(second))


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
    """

    of_given_rows: PrivacyGuarantee | None = None
    of_fitted_rows: list[PrivacyGuarantee] = field(default_factory=list)
    releases: list[PrivacyGuarantee] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)


def _walk_steps(step: Any, name: str, rows: str) -> _Findings:
    if _is_nothing(step):
        return _Findings()
    if isinstance(step, Pipeline):
        return _walk_in_a_row(step.steps, rows)
    if isinstance(step, ColumnTransformer | FeatureUnion):
        found = _walk_side_by_side(_branches_of_step(step), rows)
        if rows == "fitted" and _chooses_columns_by_rows(step):
            found.reasons.append(_fitted_on_the_same(name, "which columns it takes"))
        return found
    if isinstance(step, FrozenEstimator):
        found = _walk_steps(step.estimator, name, "new")  # it was fitted before, on other rows
        found.conditions.append(f"the rows that {name!r} was fitted on before it was frozen: they must be public")
        return found
    privacy = getattr(step, "privacy_", None)
    found = _Findings()
    if isinstance(privacy, PrivacyGuarantee):
        if getattr(step, "_protects_fitted_rows", False):
            found.of_fitted_rows = [privacy] if rows == "fitted" else []
        else:
            found.of_given_rows = privacy
            found.releases = [privacy]
    if rows == "fitted" and (learned := _learned_without_noise(step)) is not None:
        found.reasons.append(_fitted_on_the_same(name, learned))
    if hasattr(step, "_taken_as_public"):
        found.conditions.append(f"{step._taken_as_public()} of {name!r}: they must not come from the protected rows")
    if found.of_given_rows is None and not found.of_fitted_rows:
        found.reasons += _mixes_rows(step, name)
    return found


def _walk_in_a_row(steps: list[tuple[str, Any]], rows: str) -> _Findings:
    total = _Findings()
    apart = True  # whether every released row is still a function of that row alone
    for name, step in steps:
        found = _walk_steps(step, name, rows)
        total.releases += found.releases
        if total.of_given_rows is None:
            total.reasons += found.reasons
            total.conditions += found.conditions
            total.of_fitted_rows += found.of_fitted_rows
            total.of_given_rows = found.of_given_rows
            continue
        apart = apart and not found.reasons and not found.of_fitted_rows
        if apart and found.of_given_rows is not None and found.of_given_rows.epsilon < total.of_given_rows.epsilon:
            total.of_given_rows = found.of_given_rows  # each holds for what comes out at the end
        if hasattr(step, "__sklearn_tags__") and get_tags(step).target_tags.required:
            total.conditions.append(_LABELS)
    return total


def _walk_side_by_side(branches: list[tuple[str, Any]], rows: str) -> _Findings:
    """Every branch sees the same records, so their prices add up; a branch without noise leaves nothing private."""
    total = _Findings()
    private = []
    for name, branch in branches:
        found = _walk_steps(branch, name, rows)
        total.releases += found.releases
        total.reasons += found.reasons
        total.conditions += found.conditions
        total.of_fitted_rows += found.of_fitted_rows
        private.append(found.of_given_rows)
    if private and all(price is not None for price in private):
        total.of_given_rows = compose([price for price in private if price is not None])
    return total


def _branches_of_step(step: Any) -> list[tuple[str, Any]]:
    if isinstance(step, FeatureUnion):
        return [(name, part) for name, part in step.transformer_list if part != "drop"]
    fitted = getattr(step, "transformers_", step.transformers)
    return [(name, part) for name, part, columns in fitted if part != "drop" and not _is_empty(columns)]


def _is_empty(columns: Any) -> bool:
    return hasattr(columns, "__len__") and not isinstance(columns, str) and len(columns) == 0


def _is_nothing(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step in ("passthrough", "drop"))


def _fitted_on_the_same(name: str, learned: str) -> str:
    return f"{name} {_ON_THE_SAME_ROWS} ({learned})"


def _learned_without_noise(step: Any) -> str | None:
    """Name what a step has learned from the rows of its fit without noise; ``None`` if nothing."""
    if hasattr(step, "_learned_in_clear"):
        return step._learned_in_clear()
    if isinstance(step, OneHotEncoder | OrdinalEncoder):
        given = not isinstance(step.categories, str) and step.min_frequency is None and step.max_categories is None
        return None if given and getattr(step, "drop", None) is None else "categories"
    if isinstance(step, SimpleImputer):
        constant = step.strategy == "constant" and step.keep_empty_features and not step.add_indicator
        return None if constant else f"the {step.strategy} of every column, or which columns have gaps"
    if isinstance(step, CountVectorizer) and step.vocabulary is not None and not hasattr(step, "idf_"):
        return None
    if hasattr(step, "__sklearn_tags__") and hasattr(step, "transform") and not get_tags(step).requires_fit:
        return None
    return _LEARNED


def _chooses_columns_by_rows(step: Any) -> bool:
    given = step.transformers if isinstance(step, ColumnTransformer) else ()
    return any(callable(columns) and not isinstance(columns, make_column_selector) for _, _, columns in given)


def _mixes_rows(step: Any, name: str) -> list[str]:
    """Say whether a step lets rows show through other rows; few of those that scikit-learn and we wrote do."""
    if not hasattr(step, "transform"):
        return []
    if type(step).__name__ in _KNOWN_TO_MIX:
        return [f"{name} {_MIXES}: it solves for all of them together"]
    known = type(step).__module__.split(".")[0] in ("sklearn", "skfairdp")
    if known and not isinstance(step, FunctionTransformer):
        return []
    trial = _on_trial.set(True)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            size = _tried_on_made_up_rows(step)
    except Exception:  # a function of somebody else may fail on made-up rows in any way
        return [f"nobody has checked that {name} keeps rows apart ({type(step).__name__})"]
    finally:
        _on_trial.reset(trial)
    return [] if size is None else [f"{name} {_MIXES}: changing one of {size} changes what comes out for others"]


def _tried_on_made_up_rows(step: Any) -> int | None:
    """Try numbers of all sizes, numbers that repeat, and gaps: each is where some functions look at other rows."""
    generator = np.random.default_rng(0)
    names = getattr(step, "feature_names_in_", None)

    def made_up(values: np.ndarray) -> Any:
        return values if names is None else pd.DataFrame(values, columns=names)

    def continuous(n: int) -> Any:
        return made_up(generator.normal(scale=3.0, size=(n, step.n_features_in_)))

    def repeating(n: int) -> Any:
        return made_up(generator.integers(0, 4, size=(n, step.n_features_in_)).astype(float))

    def with_gaps(n: int) -> Any:
        values = generator.normal(scale=3.0, size=(n, step.n_features_in_))
        return made_up(np.where(generator.random(values.shape) < 0.3, np.nan, values))

    def transform(X: Any) -> Any:
        return dense(step.transform(X))

    found = [find_mixed_rows(transform, continuous), find_mixed_rows(transform, repeating)]
    with suppress(ValueError, TypeError):  # a step that refuses gaps cannot fill them from other rows
        found.append(find_mixed_rows(transform, with_gaps))
    return next((size for size in found if size is not None), None)


def _enclosing_pipelines(estimator: Any) -> list[Pipeline]:
    """Return the pipelines that are being fitted around an estimator.

    A step that runs in a thread of a pool is looked for in the pipelines of the other threads.
    """
    here = pipelines_of_this_thread()
    same = _holds_itself if here else _holds_its_kind
    elsewhere = [
        pipeline
        for key, pipeline in pipelines_of_other_threads().items()
        if key not in here and any(same(step, estimator) for _, step in pipeline.steps)
    ]
    return [*here.values(), *elsewhere]


def _steps_before(pipeline: Pipeline, estimator: Any) -> list[tuple[str, Any]]:
    """Return the steps whose output reaches the estimator, which may be a clone of a step or a part of one."""
    for same in (_holds_itself, _holds_its_kind):
        for place in reversed(range(len(pipeline.steps))):
            if same(pipeline.steps[place][1], estimator):
                return pipeline.steps[:place]
    return pipeline.steps[:-1]


def _holds_itself(step: Any, estimator: Any) -> bool:
    return any(part is estimator for part in _step_and_parameters(step))


def _holds_its_kind(step: Any, estimator: Any) -> bool:
    return any(type(part) is type(estimator) for part in _step_and_parameters(step))


def _step_and_parameters(step: Any) -> list[Any]:
    return [step, *step.get_params(deep=True).values()] if hasattr(step, "get_params") else [step]


# -- rows that show through other rows ------------------------------------------------------------------------------

#: Functions that mix rows may do so only in batches of some sizes, such as full blocks of 16 or parts of them.
_BATCH_SIZES = (2, 3, 16, 67, 1000)


def find_mixed_rows(
    function: Callable[[Any], Any],
    make_rows: Callable[[int], Sequence[Any] | np.ndarray],
    batch_sizes: Sequence[int] = _BATCH_SIZES,
) -> int | None:
    """Look for a batch in which changing one row changes what comes out for another.

    Parameters
    ----------
    function : callable
        Rows in, one output per row.
    make_rows : callable
        Takes a number and returns as many made-up rows, others in every call; never rows of people.
    batch_sizes : sequence of int
        How many rows are given at once.

    Returns
    -------
    int or None
        The size of a batch whose rows are mixed; ``None`` if there is none among those tried. Outputs of the
        unchanged rows must be equal to the last bit.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.release._pipeline_guarantee import find_mixed_rows
    >>> rows = np.random.default_rng(0)
    >>> find_mixed_rows(np.tanh, lambda n: rows.normal(size=(n, 3))) is None
    True
    >>> find_mixed_rows(lambda X: X - X.mean(axis=0), lambda n: rows.normal(size=(n, 3)))
    2
    """
    for size in batch_sizes:
        rows = make_rows(size)
        before = np.asarray(function(rows))
        for changed in (0, size // 2, size - 1):
            others = np.arange(size) != changed
            row: Any = make_rows(1)
            # A row that is far from all others shows in a maximum as well as in a mean.
            for other in [row] if isinstance(row, list) else [row, 1000 * row]:
                after = np.asarray(function(_with_row_replaced(rows, changed, other)))
                if not np.array_equal(before[others], after[others], equal_nan=before.dtype.kind == "f"):
                    return size
    return None


def _with_row_replaced(rows: Any, place: int, row: Any) -> Any:
    if isinstance(rows, list):
        return [*rows[:place], row[0], *rows[place + 1 :]]
    changed = rows.copy()
    if hasattr(rows, "iloc"):
        changed.iloc[place] = row.iloc[0]
    else:
        changed[place] = row[0]
    return changed
