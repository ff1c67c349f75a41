"""PrivateSearchCV: the best of a random number of private fits, at a price that hardly grows with that number."""

import math
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from skfairdp._base import SkfairdpEstimator, restored_on_failure
from skfairdp._sklearn import HasMethods, Interval, check_sample_weight, fit_context, safe_indexing
from skfairdp._validation import check_delta, check_epsilon, check_public_rows, warn_user
from skfairdp.dp import REFUSED_TABLES, REPLACE_ONE, PrivacyGuarantee, ReleaseMixin
from skfairdp.mechanisms import SelectionMechanism, selection_mechanism
from skfairdp.model_selection._private_trials import (
    Outcome,
    Trials,
    check_candidates,
    check_fit_parameters,
    private_step,
)
from skfairdp.random import RandomState, training_and_noise_streams

_COVERS = "the chosen estimator, its parameters and its score, and everything computed from them alone"
_DOES_NOT_COVER = (
    "how long fit takes and what a process monitor shows meanwhile, which tell something of the number of trials",
    "a person with several records, who pays for each",
    REFUSED_TABLES,
)
_PUBLIC_VALIDATION = "the rows of public_validation, which must be public"
_SET_ASIDE = (
    "the features of all rows: without public rows, every trial sets some of X aside as public, and each trial others"
)


def _best_has(method: str) -> Any:
    """Make a check of whether the estimator has a method, the fitted one if there is one."""
    return available_if(lambda self: hasattr(getattr(self, "best_estimator_", self.estimator), method))


class PrivateSearchCV(ReleaseMixin, MetaEstimatorMixin, ClassifierMixin, SkfairdpEstimator):
    r"""Choose among private fits, at a price that hardly grows with their number.

    A grid search over a private estimator is charged for every fit. This search runs a *random* number of trials,
    each with a candidate that is drawn at random, and releases the best alone. Nobody who sees it can tell how many it
    has beaten, and that is why it costs two or three times as much as a trial, however many are expected.

    Parameters
    ----------
    estimator : classifier
        What protects the rows of its ``fit``, such as :class:`~skfairdp.ensemble.PATEClassifier`, or a pipeline with
        one such step. The search sets its ``epsilon``, ``delta`` and ``random_state``.
    param_distributions : dict or list of dict
        Names of parameters, and lists of values or distributions with ``rvs``, as in scikit-learn's searches. Each
        trial draws one candidate, with replacement.
    epsilon : float, default=1.0
        Privacy loss of the whole search. ``inf`` adds no noise.
    delta : float, default=1e-5
        The probability with which the loss may exceed epsilon; 0 asks for trials that are pure. An estimator without a
        ``delta`` of its own is taken to be pure, and so is the best of its fits.
    expected_trials : float, default=10.0
        The mean of the number of trials, above 1. More of them cost a little of what each may spend.
    eta : float, default=1.0
        The shape of their number's distribution, above -1: 1 is geometric (a pure trial may spend a third of epsilon),
        0 logarithmic (a half). The smaller, the more is left to each trial, and the more often there is only one.
    scoring : str or callable, default="accuracy"
        What the best is judged by. On private rows only ``"accuracy"`` is possible, as a noisy count of right
        answers; with ``public_validation`` any scorer of scikit-learn.
    validation_fraction : float, default=0.2
        Share of the rows that trials are scored on, and not trained on.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        ``None`` draws from the operating system's entropy. A seed is for experiments: it makes the guarantee worthless
        against whoever knows it. A Generator or RandomState decides which rows validate, and nothing else.

    Attributes
    ----------
    best_estimator_ : estimator
        The winner. Its ``privacy_`` is that of the search.
    best_params_ : dict
        Its candidate.
    best_score_ : float
        Its score: the noisy share of right answers (which may lie outside of [0, 1]), or the score on public rows.
    privacy_ : PrivacyGuarantee
        What the search has cost, all trials and scores together.
    mechanism_ : SelectionMechanism
        Its ``budget`` is what each trial may spend, and ``trials`` the distribution of their number.
    classes_ : ndarray
        Labels that the winner knows.
    n_features_in_, feature_names_in_
        Of the rows of ``fit``.

    See Also
    --------
    skfairdp.accounting.selection_budget : What a trial may spend.

    Notes
    -----
    **Privacy.** Neighbours are data sets of the same size that differ in one record. Validation rows are chosen by
    their index, once, so that a record is trained on in all trials or scores all of them. In the first case it acts on
    the winner through fits, from which the scores on other people's rows are computed; in the second through counts of
    right answers, which it changes by one. So fit and score of a trial each may spend the whole budget of a trial, and
    a trial costs the larger of both, not their sum. Counts get discrete Laplace noise of the pure budget. ``predict``
    must return one value per row; a candidate that is not known to treat each record alone is called on one record at
    a time, so that a validation row acts on its own count only.

    Of K trials, which are independent and alike, the best is released. K follows a truncated negative binomial
    distribution. Pure trials of epsilon cost :math:`(2 + \eta)\,\varepsilon` together [1]_ [2]_; Gaussian ones, such
    as soft labels of PATE, cost less, by a bound that the guide proves. K itself,
    the losers and their scores are neither shown nor kept, nor do the winner's warnings tell of them: hence no
    ``cv_results_``, no progress bar, and no refit on all rows, which would be one more release. How long ``fit`` takes
    does depend on K.

    The price is charged to active ledgers once, before the first draw; the trials are not charged on top. Before that,
    one candidate is fitted up to the point of its release, so that rows or settings which it refuses cost nothing. An
    error in a later trial ends the search, whose price is then spent: it counts as the best outcome of all, which the
    proof allows. Candidates of which one has a step that learns from the rows without noise (a ``StandardScaler``,
    say) cost infinity, even if others win.

    References
    ----------
    .. [1] J. Liu and K. Talwar, "Private selection from private candidates", STOC 2019.
    .. [2] N. Papernot and T. Steinke, "Hyperparameter tuning with Renyi differential privacy", ICLR 2022.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skfairdp import PATEClassifier, PrivacyLedger, PrivateSearchCV
    >>> X, y = make_classification(3000, n_features=5, class_sep=2.0, random_state=0)
    >>> search = PrivateSearchCV(
    ...     PATEClassifier(LogisticRegression(), n_queries=200),
    ...     {"n_teachers": [5, 50, 200], "student_regularization": [0.001, 0.1]},
    ...     epsilon=2.0,
    ...     expected_trials=5,
    ...     random_state=0,
    ... )
    >>> with PrivacyLedger(budget=2.0, delta=1e-5) as ledger:
    ...     search = search.fit(X[:2000], y[:2000], public=X[2000:2500])
    >>> ledger.total().epsilon, len(ledger)
    (2.0, 1)
    >>> sorted(search.best_params_), bool(search.score(X[2500:], y[2500:]) > 0.9)
    (['n_teachers', 'student_regularization'], True)
    """

    _row_wise_methods: ClassVar[dict] = {
        "predict": ("estimator", "best_estimator_"),
        "predict_proba": ("estimator", "best_estimator_"),
    }

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [HasMethods(["fit", "predict"])],
        "param_distributions": "no_validation",
        "epsilon": [Real],
        "delta": [Real],
        "expected_trials": [Interval(Real, 1, None, closed="neither")],
        "eta": [Interval(Real, -1, None, closed="neither")],
        "scoring": [str, callable],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "random_state": "no_validation",
    }

    #: Whose rows ``privacy_`` is about: those of ``fit``, not those that are predicted.
    _protects_fitted_rows = True

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        expected_trials: float = 10.0,
        eta: float = 1.0,
        scoring: Any = "accuracy",
        validation_fraction: float = 0.2,
        random_state: RandomState = None,
    ):
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.epsilon = epsilon
        self.delta = delta
        self.expected_trials = expected_trials
        self.eta = eta
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        public: Any = None,
        public_validation: Any = None,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> "PrivateSearchCV":
        """Run trials, and keep the best.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Private rows, as the estimator likes them.
        y : array-like of shape (n_samples,)
            Their labels, private as well.
        public : array-like, default=None
            Public rows without labels, which every trial is given, for an estimator that takes them.
        public_validation : tuple of (rows, labels), default=None
            Public rows to score trials on, at no cost and without noise; all of X is trained on then. They are given to
            ``estimator`` as they are: steps in front of the search do not reach them.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
            Groups, for an estimator that takes them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, for an estimator that takes them. Scores do not weigh: a weight would change a count by more
            than one.

        Returns
        -------
        PrivateSearchCV
            This object.
        """
        with restored_on_failure(self):
            best = self._fit(X, y, public, public_validation, sensitive_features, sample_weight)
        for said in best.warnings:  # those of the losers would tell how many there were
            warn_user(str(said.message), said.category)
        return self

    def _fit(
        self, X: Any, y: Any, public: Any, public_validation: Any, sensitive_features: Any, sample_weight: Any
    ) -> Outcome:
        """Run the search, keep the winner, and return what it said."""
        epsilon, delta = check_epsilon(self.epsilon), check_delta(self.delta, allow_zero=True)
        prefix, step = private_step(self.estimator)
        if "delta" not in step.get_params(deep=False):
            delta = 0.0  # its trials are pure, and so is the best of them
        mechanism = selection_mechanism(epsilon, delta, expected_trials=self.expected_trials, eta=self.eta)
        reasons = check_candidates(self.estimator, self.param_distributions, prefix)
        if public_validation is None:
            self._check_private_scoring()
        else:
            self._refuse_unused("public_validation", "validation_fraction")
        rows, labels = self._read_rows(X, y, at_least=2 if public_validation is None else 1)
        if public is not None:
            check_public_rows(X, public)  # the estimator only sees a part of X
        by_row = {"sensitive_features": sensitive_features}
        if sample_weight is not None:
            by_row["sample_weight"] = check_sample_weight(sample_weight, rows, dtype=np.float64)
        given = check_fit_parameters(self.estimator, {"public": public, **by_row})
        check_consistent_length(rows, *(given[name] for name in by_row if name in given))
        split, noise = training_and_noise_streams(self.random_state)
        fitting, validation = np.arange(len(labels)), _read_public_validation(public_validation)
        if validation is None:
            # By index and at random, once for all trials: a split that looked at labels would let a record move others.
            order = split.generator.permutation(len(labels))
            n_held = min(max(1, round(self.validation_fraction * len(labels))), len(labels) - 1)
            held, fitting = np.sort(order[:n_held]), np.sort(order[n_held:])
            validation = (safe_indexing(rows, held), labels[held])
            _check_score_noise(mechanism, n_held)
        trials = Trials(
            self.estimator,
            prefix,
            self.param_distributions,
            mechanism.budget,
            (safe_indexing(rows, fitting), labels[fitting]),
            {name: safe_indexing(one, fitting) if name in by_row else one for name, one in given.items()},
            validation,
            None if public_validation is None else self.scoring,
        )
        rehearsed = trials.rehearse(noise.spawn(1)[0])
        if mechanism.delta == 0 < rehearsed.delta and math.isfinite(mechanism.epsilon):
            raise ValueError(
                f"delta={self.delta!r} asks for pure trials, and {rehearsed.mechanism} has a delta of its own; give "
                "the search a delta above 0."
            )
        if math.isinf(rehearsed.epsilon) and math.isfinite(mechanism.epsilon):
            reasons.append(rehearsed.does_not_cover[0])
        trials.open = bool(reasons) or math.isinf(mechanism.epsilon)
        set_aside = public is None and _sets_rows_aside(self.estimator)
        guarantee = self._receipt(mechanism, rehearsed, public_validation, set_aside).with_seed(noise.identity)
        guarantee = guarantee.undone(reasons)
        self._freeze(mechanism, noise, guarantee)
        score, best = self._release(trials)
        # The winner's own receipt knows nothing of the search that chose it.
        private_step(best.estimator)[1].privacy_ = guarantee
        self.best_estimator_, self.best_params_ = best.estimator, best.parameters
        self.best_score_ = float(score if public_validation is not None else score / len(validation[1]))
        return best

    def _check_private_scoring(self) -> None:
        if not isinstance(self.scoring, str) or self.scoring != "accuracy":
            raise ValueError(
                f"scoring={self.scoring!r} has no bounded sensitivity: one private record could change it by any "
                "amount, and no noise would hide that. Take scoring='accuracy', or give "
                "public_validation=(rows, labels)."
            )

    def _read_rows(self, X: Any, y: Any, *, at_least: int) -> tuple[Any, np.ndarray]:
        """Check rows and labels as far as that can be done for any estimator."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None.")
        tags = get_tags(self.estimator).input_tags
        if hasattr(X, "columns"):
            validate_data(self, X, skip_check_array=True)
        elif tags.string and getattr(X, "ndim", 1) == 1:
            X = indexable(X)[0]
        else:
            X = validate_data(
                self,
                X,
                dtype=None if tags.string or tags.categorical else "numeric",
                accept_sparse=("csr",) if tags.sparse else False,
                ensure_all_finite=not tags.allow_nan,
                ensure_min_samples=at_least,
            )
        check_consistent_length(X, y)
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        if len(labels) < at_least:
            raise ValueError(f"X must have at least {at_least} rows, one of them to score on; n_samples={len(labels)}.")
        return X, labels

    def _receipt(
        self, mechanism: SelectionMechanism, trial: PrivacyGuarantee, public_validation: Any, set_aside: bool
    ) -> PrivacyGuarantee:
        """Write the receipt, with what a trial does not cover."""
        own = mechanism.guarantee()
        relations = [own.neighbours]
        if trial.neighbours not in (own.neighbours, REPLACE_ONE):  # which adds that one teacher holds the record
            relations.append(trial.neighbours)
        scope = (
            *_DOES_NOT_COVER,
            *((_PUBLIC_VALIDATION,) if public_validation is not None else ()),
            *((_SET_ASIDE,) if set_aside else ()),
            *trial.does_not_cover,
        )
        return mechanism.guarantee(
            mechanism=f"{mechanism.name} among {trial.mechanism.partition(', undone')[0]}",
            unit=trial.unit,
            neighbours=relations[0] if len(relations) == 1 else f"pairs that are all of: {'; '.join(relations)}",
            covers=_COVERS,
            does_not_cover=tuple(dict.fromkeys(scope)),
        )

    # -- what the winner can do ---------------------------------------------------------------------------------------

    @property
    def classes_(self) -> np.ndarray:
        """Labels that the winner knows."""
        check_is_fitted(self)
        return self.best_estimator_.classes_

    def predict(self, X: Any) -> np.ndarray:
        """Predict by the winner; no further privacy cost where it has none.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @_best_has("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities by the winner.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        if inner.classifier_tags is not None:
            tags.classifier_tags = inner.classifier_tags
        tags.non_deterministic = True
        return tags


def _read_public_validation(given: Any) -> tuple[Any, np.ndarray] | None:
    if given is None:
        return None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ValueError(f"public_validation must be a pair of rows and labels; got {type(given).__name__}.")
    rows, labels = given
    check_consistent_length(rows, labels)
    return rows, column_or_1d(labels)


def _check_score_noise(mechanism: SelectionMechanism, n_rows: int) -> None:
    """Refuse a budget whose noise would leave nothing of a score; known before any row is looked at."""
    each = mechanism.budget.epsilon
    if each * n_rows < 1:
        raise ValueError(
            f"epsilon={mechanism.epsilon!r} is too small for one trial: it may spend {each:.3g}, so that noise of "
            f"scale {1 / each:.3g} would be added to the number of right answers among {n_rows} validation rows. Raise "
            "epsilon, give more rows, or score on public_validation."
        )


def _sets_rows_aside(estimator: Any) -> bool:
    """Whether the private step takes some of X for public rows when it gets none."""
    return "public_fraction" in private_step(estimator)[1].get_params(deep=False)
