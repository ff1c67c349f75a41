"""One trial of a private search: draw a candidate, fit it within the trial's budget, and score it privately."""

import inspect
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.pipeline import Pipeline

from skfairdp._row_wise import evaluate_rows
from skfairdp._sklearn import validate_parameters
from skfairdp.dp import PrivacyGuarantee, ReleaseEvent, TrialBudget, compose, paying
from skfairdp.mechanisms import discrete_laplace, laplace_scale
from skfairdp.pipeline import pipeline_guarantee, reasons_for_infinity
from skfairdp.postprocessing import FairPrivateClassifier
from skfairdp.random import RandomStream

#: Names that the search sets in the private step, so that no candidate may.
_SET_BY_THE_SEARCH = ("epsilon", "delta", "random_state")
#: So many candidates of a grid are looked at before anything is paid for.
_MOST_LOOKED_AT = 1000
#: Noise on a count of right answers is at most an eighth of an answer from here on, and needs no more epsilon.
_MOST_SCORE_EPSILON = 8.0


# -- what is searched -------------------------------------------------------------------------------------------------


def private_step(estimator: Any) -> tuple[str, Any]:
    """Find what protects the rows of ``fit``: the prefix of its parameters, and the estimator or step itself."""
    if isinstance(estimator, Pipeline):
        inside = [(f"{name}__", step) for name, step in estimator.steps]
    else:
        inside = [("", estimator)]
    found = [(prefix, step) for prefix, step in inside if getattr(step, "_protects_fitted_rows", False)]
    if len(found) > 1:
        names = ", ".join(prefix.removesuffix("__") for prefix, _ in found)
        raise ValueError(
            f"estimator has several private steps ({names}), and the search sets the epsilon of one. Put the others in "
            "front of the search, where they are fitted and paid for once: make_pipeline(scaler, PrivateSearchCV(...))."
        )
    if not found:
        last = inside[-1][1]
        hint = ""
        if isinstance(last, FairPrivateClassifier):
            hint = (
                " Search over its inner estimator, such as PATEClassifier, and give the fitted search to "
                "FairPrivateClassifier(search, cv='prefit') with public rows."
            )
        raise ValueError(
            f"estimator: {type(last).__name__} has no receipt (privacy_) that protects the rows it is fitted on, so "
            f"that the best of its fits protects nobody. PATEClassifier has one.{hint}"
        )
    prefix, step = found[0]
    if "epsilon" not in step.get_params(deep=False):
        raise ValueError(f"estimator: {type(step).__name__} has no parameter epsilon, which the search must set.")
    return prefix, step


def check_candidates(estimator: Any, distributions: Any, prefix: str) -> list[str]:
    """Check what candidates may be drawn, and name the steps of any that learn from rows without noise.

    Parameters
    ----------
    estimator : estimator
        What is searched.
    distributions : dict or list of dict
        Names of parameters, and lists of values or distributions.
    prefix : str
        Of the private step's parameters.

    Returns
    -------
    list of str
        Whatever of these a trial may draw, it could break the guarantee: so one candidate is enough.
    """
    groups = [distributions] if isinstance(distributions, Mapping) else distributions
    if not isinstance(groups, Sequence) or not all(isinstance(group, Mapping) for group in groups):
        raise TypeError(
            "param_distributions must be a dict of parameter names and lists or distributions, or a list of such "
            f"dicts; got {distributions!r}."
        )
    if not any(groups):
        raise ValueError("param_distributions holds no candidates: name a parameter, and the values to choose from.")
    for group in groups:
        for name, values in group.items():
            if name in {prefix + one for one in _SET_BY_THE_SEARCH}:
                raise ValueError(
                    f"param_distributions must not hold {name!r}: the search sets it, so that all trials stay within "
                    "its budget and draw noise of their own."
                )
            if not hasattr(values, "rvs") and (isinstance(values, str) or not hasattr(values, "__len__")):
                raise TypeError(f"param_distributions[{name!r}] must be a list or a distribution; got {values!r}.")
            if not hasattr(values, "rvs") and len(values) == 0:
                raise ValueError(f"param_distributions[{name!r}] holds no candidates: give at least one value.")
    reasons = reasons_for_infinity(estimator, "fitted")
    for candidate in _first_candidates(groups):
        model = with_parameters(estimator, candidate)
        validate_parameters(model)
        reasons += reasons_for_infinity(model, "fitted")
    return list(dict.fromkeys(reasons))


def _first_candidates(groups: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """List candidates without a random draw: those of grids, and one for each distribution."""
    for group in groups:
        lists = {name: [] if hasattr(values, "rvs") else list(values) for name, values in group.items()}
        grid = ParameterGrid({name: values for name, values in lists.items() if values})
        yield from (grid[i] for i in range(min(len(grid), _MOST_LOOKED_AT)))


def with_parameters(estimator: Any, candidate: Mapping[str, Any]) -> Any:
    """Clone an estimator and give it the parameters of a candidate."""
    return clone(estimator).set_params(**{name: clone(value, safe=False) for name, value in candidate.items()})


def check_fit_parameters(estimator: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given, if the estimator takes it; a pipeline says itself what it can pass on."""
    present = {name: value for name, value in given.items() if value is not None}
    if not isinstance(estimator, Pipeline):
        taken = inspect.signature(estimator.fit).parameters
        for name in present:
            if name not in taken:
                raise ValueError(f"{name} was given, and {type(estimator).__name__}.fit does not take it.")
    return present


# -- trials -----------------------------------------------------------------------------------------------------------


class _Rehearsed(BaseException):
    """Raised in place of the first release of a rehearsal."""


class _TooDear(BaseException):
    """Raised in place of a release that spends more than a trial may."""


@dataclass(frozen=True)
class Outcome:
    """What a trial found.

    Attributes
    ----------
    parameters : dict
        The candidate.
    estimator : estimator
        Fitted.
    warnings : list
        What was said while it was fitted.
    """

    parameters: dict[str, Any]
    estimator: Any
    warnings: list[warnings.WarningMessage]


@dataclass
class Trials:
    """What the trials of one search have in common.

    Attributes
    ----------
    estimator : estimator
        What each trial fits a clone of.
    prefix : str
        Of the private step's parameters.
    distributions : dict or list of dict
        What candidates are drawn from.
    budget : TrialBudget
        What a trial may spend.
    training : tuple
        Rows and labels to fit on.
    fit_parameters : dict
        What else ``fit`` is given.
    validation : tuple
        Rows and labels to score on, disjoint from those of ``training``.
    scoring : str, callable or None
        For public validation rows; ``None`` for private ones, whose right answers are counted with noise.
    open : bool
        Whether the search has been priced at infinity, so that a trial may spend anything.
    """

    estimator: Any
    prefix: str
    distributions: Any
    budget: TrialBudget
    training: tuple[Any, Any]
    fit_parameters: dict[str, Any]
    validation: tuple[Any, Any]
    scoring: Any
    open: bool = field(default=False)

    def __call__(self, stream: RandomStream) -> tuple[Any, Outcome]:
        """Run one trial; the score comes first."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            candidate = self._draw(stream)
            fitted = self._fit(candidate, stream)
            score = self._score(fitted, stream)
        return score, Outcome(candidate, fitted, caught)

    def rehearse(self, stream: RandomStream) -> PrivacyGuarantee:
        """Fit one candidate up to its first release and stop there: what fails until then has cost nothing.

        Returns
        -------
        PrivacyGuarantee
            What the release would have cost, in the pipelines that surround it.
        """
        received: list[PrivacyGuarantee] = []

        def receive(guarantee: PrivacyGuarantee) -> None:
            received.append(guarantee)
            raise _Rehearsed

        model = self._model(self._draw(stream), stream, gaussian=False)
        try:
            with warnings.catch_warnings(), paying(receive):
                warnings.simplefilter("ignore")
                model.fit(*self.training, **self.fit_parameters)
        except _Rehearsed:
            return received[0]
        raise ValueError(
            f"estimator: {type(private_step(model)[1]).__name__} was fitted without a release that anybody could see, "
            "so that there is no receipt of what it spent."
        )

    def _draw(self, stream: RandomStream) -> dict[str, Any]:
        return next(iter(ParameterSampler(self.distributions, 1, random_state=stream.seed())))

    def _model(self, candidate: Mapping[str, Any], stream: RandomStream, *, gaussian: bool) -> Any:
        model = with_parameters(self.estimator, candidate)
        known = private_step(model)[1].get_params(deep=False)
        wanted: dict[str, Any] = {"epsilon": self.budget.gaussian_epsilon if gaussian else self.budget.epsilon}
        if "delta" in known and self.budget.delta > 0:
            wanted["delta"] = self.budget.delta
        if "random_state" in known:  # one seed for all trials would give them the same noise
            wanted["random_state"] = None if stream.secure else stream.seed()
        return model.set_params(**{self.prefix + name: value for name, value in wanted.items()})

    def _fit(self, candidate: Mapping[str, Any], stream: RandomStream) -> Any:
        """Fit within the budget: as a Gaussian trial, which may spend more, or as any other."""
        if self.budget.gaussian_mu > 0 and math.isfinite(self.budget.epsilon):
            try:
                return self._fit_within_budget(self._model(candidate, stream, gaussian=True))
            except _TooDear:
                pass  # it is none; that was said before its noise was drawn, and depends on no record
        try:
            return self._fit_within_budget(self._model(candidate, stream, gaussian=False))
        except _TooDear as error:
            raise ValueError(
                f"the candidate {candidate!r} spends more than a trial may, {error}; it must follow the epsilon and "
                "delta that the search gives it."
            ) from None

    def _fit_within_budget(self, model: Any) -> Any:
        received: list[PrivacyGuarantee] = []

        def receive(guarantee: PrivacyGuarantee) -> None:
            received.append(guarantee)
            self._check_spent(compose(received))

        with paying(receive):
            model.fit(*self.training, **self.fit_parameters)
        if not self.open:
            self._check_spent(pipeline_guarantee(model, rows="fitted"))
        return model

    def _check_spent(self, spent: PrivacyGuarantee) -> None:
        """Raise if a trial has spent more than it may; it has not drawn its noise yet."""
        if self.open:
            return
        if math.isinf(spent.epsilon) and math.isfinite(self.budget.epsilon):
            raise ValueError(f"a candidate breaks the guarantee of the search: {spent.does_not_cover[0]}.")
        event = ReleaseEvent(spent.epsilon, spent.delta, spent.gaussian_mu, spent.sampling_error)
        if not self.budget.covers(event):
            raise _TooDear(f"epsilon={spent.epsilon:g} at delta={spent.delta:g}")

    def _score(self, fitted: Any, stream: RandomStream) -> Any:
        """Score a fitted candidate: a noisy count of right answers on private rows, anything on public ones."""
        rows, labels = self.validation
        with paying(lambda guarantee: None):  # answers stay here, and only their count leaves
            if self.scoring is not None:
                score = float(check_scoring(fitted, self.scoring)(fitted, rows, labels))
                return -math.inf if math.isnan(score) else score
            # One record must change the count by one at most: it may reach no other prediction, and no second one.
            predicted = np.asarray(evaluate_rows(fitted, "predict", rows))
            if predicted.shape != labels.shape:
                raise ValueError(
                    f"estimator: predict of {type(fitted).__name__} must return one label per record; it returned "
                    f"shape {predicted.shape} for {len(labels)} records."
                )
            right = int(np.count_nonzero(predicted == labels))
        if math.isinf(self.budget.epsilon):
            return right
        scale = laplace_scale(1.0, min(self.budget.epsilon, _MOST_SCORE_EPSILON), 1)
        return right + int(discrete_laplace(1, scale, stream)[0])
