"""PrivatePipeline: a pipeline that knows, and charges, the price of the whole program."""

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_memory

from skfairdp._row_wise import RowByRow, why_rows_mix
from skfairdp.dp import ChargingMixin, PrivacyGuarantee
from skfairdp.pipeline._guarantee import (
    draws_in_fit,
    pipeline_guarantee,
    private_parts,
    reasons_for_infinity,
    runs_by_row,
)


def _charged(method: str, describe: str) -> Any:
    """Make a method of PrivatePipeline that charges what its call draws, where Pipeline has the method."""

    def call(self: "PrivatePipeline", X: Any, *arguments: Any, **params: Any) -> Any:
        self._charge_broken_guarantee(fitting=False)
        return getattr(super(PrivatePipeline, self._with_steps_by_row()), method)(X, *arguments, **params)

    call.__name__ = method
    call.__qualname__ = f"PrivatePipeline.{method}"
    call.__doc__ = f"""{describe}

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or documents
            Records.
        *arguments, **params
            As in :class:`sklearn.pipeline.Pipeline`.

        Returns
        -------
        ndarray, sparse matrix or DataFrame
            As the last step returns it.
        """
    return available_if(_pipeline_has(method))(call)


def _pipeline_has(method: str) -> Callable[[Any], bool]:
    def has(self: Any) -> bool:
        getattr(super(PrivatePipeline, self), method)  # raises scikit-learn's own AttributeError
        return True

    return has


class PrivatePipeline(ChargingMixin, Pipeline):
    """A pipeline that knows the price of the whole program, and charges it.

    Parameters
    ----------
    steps : list of (str, estimator)
        As in :class:`sklearn.pipeline.Pipeline`.
    transform_input : list of str, optional
        As in :class:`sklearn.pipeline.Pipeline`.
    memory : str or object with the joblib.Memory interface, optional
        Caches fitted steps, but never a step that draws at random. It stores the rows that steps return, clean ones
        included, on disk.
    verbose : bool, default=False
        As in :class:`sklearn.pipeline.Pipeline`.
    rows : {None, "new"}, default=None
        ``"new"`` states that calls after ``fit`` are only given records that ``fit`` has not seen, and so cost
        ``privacy_``. By default they cost the larger of ``privacy_`` and ``training_privacy_``.
    row_wise : sequence of str, default=()
        Names of steps of which you know that they treat each record alone. Other steps in front of the noise are
        called on the whole batch only if they are known to; the rest are called on one record at a time, which is slow.

    Attributes
    ----------
    privacy_ : PrivacyGuarantee
        What a new record pays that passes the pipeline once. Infinite, with the reason in ``does_not_cover``, where a
        step breaks the guarantee.
    training_privacy_ : PrivacyGuarantee
        What a record pays that the pipeline was fitted on.

    Notes
    -----
    **Privacy.** Steps charge what they state, as in a plain ``Pipeline``. In addition, whatever makes the whole
    infinite (a step that learns from the rows without noise, or passes columns on without noise) is found on
    the steps before anything is drawn, and infinity is charged to the open ledgers; a budget refuses there. What only
    fitted steps show is charged before ``fit`` returns. A call pays for what it draws: ``fit`` of a pipeline
    whose last step is a privatizer draws nothing and is free. A plain ``Pipeline`` charges only what its private steps
    state, however the rows in front of them were prepared.

    See Also
    --------
    pipeline_guarantee : The same price for any pipeline.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skfairdp import LaplacePrivatizer, PrivacyLedger, PublicScaler
    >>> from skfairdp.pipeline import make_private_pipeline
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = make_private_pipeline(PublicScaler(bounds=(-4, 4)), LaplacePrivatizer(1.0), LogisticRegression())
    >>> with PrivacyLedger() as ledger:
    ...     model = model.fit(X, X[:, 0] > 0)
    >>> model.privacy_.epsilon, ledger.total().epsilon
    (1.0, 1.0)

    A scaler that is fitted on the same rows breaks the guarantee for them:

    >>> broken = make_private_pipeline(StandardScaler(), LaplacePrivatizer(1.0))
    >>> with PrivacyLedger() as ledger:
    ...     noisy = broken.fit_transform(X)
    >>> ledger.total().epsilon, broken.privacy_.epsilon
    (inf, 1.0)
    """

    steps: list[tuple[str, Any]]

    #: Walks of other files know it by this, because a subclass by others may run its steps in another way.
    _is_private_pipeline = True

    def __init__(
        self,
        steps: list[tuple[str, Any]],
        *,
        transform_input: list[str] | None = None,
        memory: Any = None,
        verbose: bool = False,
        rows: str | None = None,
        row_wise: Sequence[str] = (),
    ):
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.rows = rows
        self.row_wise = row_wise

    def __getitem__(self, ind: Any) -> Any:
        part = super().__getitem__(ind)
        if isinstance(ind, slice):
            names = {name for name, _ in part.steps}
            part.rows = self.rows
            part.row_wise = [name for name in self.row_wise if name.partition("__")[0] in names]
        return part

    @property
    def privacy_(self) -> PrivacyGuarantee:
        """What a new record pays that passes the pipeline once."""
        return pipeline_guarantee(self, rows="new")

    @property
    def training_privacy_(self) -> PrivacyGuarantee:
        """What a record pays that the pipeline was fitted on."""
        return pipeline_guarantee(self, rows="fitted")

    def fit(self, X: Any, y: Any = None, **params: Any) -> "PrivatePipeline":
        """Fit all steps; every private step that the rows pass charges what it states.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or documents
            Records.
        y : array-like, optional
            Their labels.
        **params : dict
            Further arguments, as in :class:`sklearn.pipeline.Pipeline`.

        Returns
        -------
        self : PrivatePipeline
        """
        self._fit_by("fit", X, y, params)
        return self

    @available_if(_pipeline_has("fit_transform"))
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit all steps, and release the same rows.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or documents
            Records.
        y : array-like, optional
            Their labels.
        **params : dict
            Further arguments, as in :class:`sklearn.pipeline.Pipeline`.

        Returns
        -------
        ndarray, sparse matrix or DataFrame
            As the last step returns it.
        """
        return self._fit_by("fit_transform", X, y, params)

    @available_if(_pipeline_has("fit_predict"))
    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit all steps, and predict for the same rows.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or documents
            Records.
        y : array-like, optional
            Their labels.
        **params : dict
            Further arguments, as in :class:`sklearn.pipeline.Pipeline`.

        Returns
        -------
        ndarray
            As the last step returns it.
        """
        return self._fit_by("fit_predict", X, y, params)

    transform = _charged("transform", "Release records; every call draws fresh noise and is charged again.")
    predict = _charged("predict", "Predict from released records.")
    predict_proba = _charged("predict_proba", "Predict probabilities from released records.")
    predict_log_proba = _charged("predict_log_proba", "Predict logarithms of probabilities from released records.")
    decision_function = _charged("decision_function", "Compute decision values from released records.")
    score_samples = _charged("score_samples", "Score released records.")
    score = _charged("score", "Score predictions from released records.")

    def _fit_by(self, method: str, X: Any, y: Any, params: dict[str, Any]) -> Any:
        if self.rows not in (None, "new"):
            raise ValueError(f"rows must be None or 'new'; got {self.rows!r}.")
        self._validate_row_wise()
        self._check_public_rows_pass_the_steps(params)
        charged = self._charge_broken_guarantee(fitting=True, method=method)
        runner = self._with_steps_by_row()
        result = getattr(super(PrivatePipeline, runner), method)(X, y, **params)
        self.steps = [(name, step.estimator_ if isinstance(step, RowByRow) else step) for name, step in runner.steps]
        if not charged:
            self._charge_broken_guarantee(fitting=True, method=method)
        return result

    def _validate_row_wise(self) -> None:
        names = {name for name, _ in self.steps}
        unknown = [name for name in self.row_wise if name.partition("__")[0] not in names]
        if isinstance(self.row_wise, str) or unknown:
            raise ValueError(
                f"row_wise must name steps of the pipeline, {', '.join(map(repr, sorted(names)))}; got "
                f"{self.row_wise!r}."
            )

    def _check_public_rows_pass_the_steps(self, params: dict[str, Any]) -> None:
        """Refuse public rows that would reach a step as they came, while X has passed other steps."""
        for name in params:
            step, _, argument = name.rpartition("__")
            place = [other for other, _ in self.steps].index(step) if step in self.named_steps else len(self.steps) - 1
            before = [other for other, part in self.steps[:place] if part is not None and part != "passthrough"]
            if argument == "public" and before and "public" not in (self.transform_input or ()):
                raise ValueError(
                    f"public would reach {self.steps[place][0]!r} as it came, while X has passed "
                    f"{', '.join(map(repr, before))}. Build the pipeline with transform_input=['public'], switch "
                    "routing on by sklearn.set_config(enable_metadata_routing=True), request the rows by "
                    "set_fit_request(public=True) of that step (and by False in other steps that know them), and call "
                    "fit(X, y, public=...)."
                )

    def _charge_broken_guarantee(self, *, fitting: bool, method: str = "transform") -> bool:
        """Charge infinity if the call draws noise that does not protect; return whether that was done."""
        if fitting:
            # fit does not pass rows through the last step.
            draws = draws_in_fit(self) if method == "fit" else bool(private_parts(self))
        else:
            parts = private_parts(self)  # what PATE or a private scaler draws has been drawn in fit
            draws = not all(getattr(part, "_protects_fitted_rows", False) for part in parts)
        if not draws:
            return False
        whose = ("fitted",) if fitting else ("new",) if self.rows == "new" else ("fitted", "new")
        reasons = [reason for rows in whose for reason in reasons_for_infinity(self, rows)]
        if not reasons:
            return False
        receipt = PrivacyGuarantee(math.inf, mechanism="pipeline, undone", does_not_cover=tuple(dict.fromkeys(reasons)))
        self._charge(receipt)
        return True

    def _with_steps_by_row(self) -> "PrivatePipeline":
        """Return a shallow copy that calls unknown steps in front of a private step on one record at a time."""
        runner = copy.copy(self)
        steps = []
        for place, (name, step) in enumerate(self.steps):
            by_row = name not in self.row_wise and hasattr(step, "transform") and runs_by_row(self.steps, place)
            if by_row and why_rows_mix(step, "transform") is not None:
                step = RowByRow(step)
            steps.append((name, step))
        runner.steps = steps
        if self.memory is not None:
            runner.memory = _MemoryOfFixedSteps(self.memory)
        return runner


class _MemoryOfFixedSteps:
    """A cache of fitted steps that leaves out those that draw: noise that is replayed would serve two releases."""

    def __init__(self, memory: Any):
        self._memory = check_memory(memory)
        self.location = getattr(self._memory, "location", "")

    def cache(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        cached = self._memory.cache(function, **options)

        def call(step: Any, *arguments: Any, **params: Any) -> Any:
            draws = hasattr(step, "__sklearn_tags__") and get_tags(step).non_deterministic
            return (function if draws or private_parts(step) else cached)(step, *arguments, **params)

        return call


def make_private_pipeline(
    *steps: Any,
    memory: Any = None,
    transform_input: list[str] | None = None,
    verbose: bool = False,
    rows: str | None = None,
    row_wise: Sequence[str] = (),
) -> PrivatePipeline:
    """Build a :class:`PrivatePipeline` from steps, which are named after their classes.

    Parameters
    ----------
    *steps : estimator
        The steps.
    memory : str or object with the joblib.Memory interface, optional
        As in :class:`PrivatePipeline`.
    transform_input : list of str, optional
        As in :class:`PrivatePipeline`.
    verbose : bool, default=False
        As in :class:`PrivatePipeline`.
    rows : {None, "new"}, default=None
        As in :class:`PrivatePipeline`.
    row_wise : sequence of str, default=()
        As in :class:`PrivatePipeline`.

    Returns
    -------
    PrivatePipeline

    Examples
    --------
    >>> from skfairdp import LaplacePrivatizer, PublicScaler
    >>> from skfairdp.pipeline import make_private_pipeline
    >>> [name for name, _ in make_private_pipeline(PublicScaler(bounds=(0, 1)), LaplacePrivatizer()).steps]
    ['publicscaler', 'laplaceprivatizer']
    """
    from sklearn.pipeline import make_pipeline

    return PrivatePipeline(
        make_pipeline(*steps).steps,
        transform_input=transform_input,
        memory=memory,
        verbose=verbose,
        rows=rows,
        row_wise=row_wise,
    )
