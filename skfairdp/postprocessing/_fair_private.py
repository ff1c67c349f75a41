"""FairPrivateClassifier: the answers of any classifier, as fair as asked and private by proof."""

import math
import warnings
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import ClassifierMixin, MetaEstimatorMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import assert_all_finite, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from skfairdp._base import SkfairdpEstimator, restored_on_failure
from skfairdp._sklearn import HasMethods, Interval, StrOptions, check_sample_weight, fit_context
from skfairdp._validation import check_epsilon, check_number, check_sensitive_features, warn_user
from skfairdp.dp import PrivacyGuarantee, ReleaseMixin
from skfairdp.exceptions import MissingSensitiveFeaturesWarning, SmallGroupWarning
from skfairdp.postprocessing._beliefs import LEAST_ROWS, BeliefModel, TrainingRows, cross_fit
from skfairdp.postprocessing._fair_multipliers import FAIRNESS, adjustments, conditions_of, rates_of
from skfairdp.postprocessing._tradeoff_curve import Groups, TradeoffCurve, choose_point
from skfairdp.random import RandomState, training_and_noise_streams

_COVERS = "the released answer and everything computed from it alone"
_DOES_NOT_COVER = (
    "a second release of the same record: two calls cost twice",
    "an error that the estimator raises about a record: it tells that the record has a value which is refused",
    "the training rows: the inner models and the multipliers have learned from them without noise",
)
_CARELESS = (
    "Models that hide what they have seen in globals or files: a model that is not known to treat each record alone is "
    "called on one record at a time, which protects from carelessness only."
)
_VOUCHED = "Models whose output for one record depends on other records: row_wise=True states that there are none."
_GAP_NAMES = {
    "equal_opportunity": "tpr_gap",
    "equalized_odds": "equalized_odds_gap",
    "demographic_parity": "demographic_parity_gap",
}
_LEARNED = "groups and multipliers are learned without noise"
#: Rows of a group in a class below which its rate is mostly that of all groups, and a warning says so.
_FEW_ROWS = 50


class FairPrivateClassifier(ReleaseMixin, MetaEstimatorMixin, ClassifierMixin, SkfairdpEstimator):
    """Answers of any classifier, as fair as asked and as accurate as an epsilon allows.

    The inner classifier is trained as it is, on the columns as they are. What leaves is one answer per record. The best
    answer is decided by what the classifier believes about the class, corrected by what is believed about the groups so
    that their rates become equal. What is released is drawn by the mechanism that is the best, for these beliefs, among
    all that keep epsilon. The groups are needed to train and never to predict.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Anything with ``predict_proba``; None is ``HistGradientBoostingClassifier(categorical_features="from_dtype")``.
        With ``cv="prefit"`` it is fitted.
    epsilon : float, default=8.0
        Exact privacy loss of one answer about one record. Infinity answers without noise.
    fairness : {"equal_opportunity", "equalized_odds", "demographic_parity"} or None, default="equal_opportunity"
        Whose rates are made equal between the groups: true positive rates, true and false positive rates, or
        selection rates. With two classes those of ``pos_label``, with more those of every class.
    max_gap : float or None, default=None
        The largest difference of two groups' rates among *released* answers, on rows that the models have not seen. The
        most accurate answers within it are taken.
    relaxation : float, default=0.01
        Without ``max_gap``: how much accuracy may be given up. Within it the answers whose gap is expected to be the
        smallest are taken; where the plain classifier's gap may be chance, these are its own.
    cv : int, cross-validation splitter or "prefit", default=3
        Folds in which beliefs about rows are formed by models that have not seen them. ``"prefit"`` takes the estimator
        as it is, and the rows of ``fit`` (which it must not have seen) as calibration rows.
    group_estimator : classifier or None, default=None
        What learns the groups of a class; None takes ``estimator``, or boosted trees with ``cv="prefit"``.
    pos_label : label or None, default=None
        The class whose rates are compared; None is the larger of two, and all of more.
    row_wise : bool, default=False
        State that the models treat each record alone. Otherwise a model that is not known to do so (see
        :func:`~skfairdp.pipeline.pipeline_guarantee`) is called on one record at a time, which is slow.
    n_jobs : int or None, default=None
        Folds that are trained at the same time.
    random_state : int, Generator, RandomState or None, default=None
        None draws from the operating system. A seed makes the noise reproducible, so that it protects nobody who knows
        it or sees two releases that start from it; ``privacy_`` says so. A Generator or RandomState decides the
        training, while the noise still comes from the operating system.

    Attributes
    ----------
    classes_ : ndarray
        Labels, sorted.
    mechanism_ : AnswerMechanism
        What draws the answers, frozen: ``answers`` that are given at all, ``floors`` and ``ceilings`` in units of
        ``2**-63``, ``expected_accuracy``, and ``accuracy_bound``, which no mechanism of this epsilon that gives the
        groups the same rates can exceed for these beliefs.
    privacy_ : PrivacyGuarantee
        What one call of ``predict`` or ``predict_proba`` costs each of its records.
    training_privacy_ : PrivacyGuarantee
        What the training rows have paid: infinity, unless the estimator came fitted and is itself private.
    tradeoff_ : DataFrame
        The curve: ``strength``, ``accuracy``, the gap under its own name (``tpr_gap``, ...), and 95 % intervals, of
        released answers on rows that the models have not seen. ``tpr_gap_expected`` (...) is the mean of what the true
        gap may be, given that rates are estimated; without ``max_gap`` it decides.
    epsilon_, max_gap_ : float
        What the mechanism was made for: the parameters, until :meth:`set_epsilon` or :meth:`set_max_gap` is called.
    strength_ : float
        The point of the curve that was taken: 0 is the plain classifier, 1 makes estimated rates equal (of two groups;
        of more, nearly).
    multipliers_ : DataFrame
        What each group's rate costs, by rate and group; empty without groups.
    sensitive_groups_ : dict
        Group labels of each sensitive column; empty without sensitive features.
    n_features_in_, feature_names_in_
        Of the training data.

    Notes
    -----
    **Privacy.** Any two records are neighbours, and the guarantee is pure (delta = 0). Answer a is drawn with an
    integer weight between ``floors[a]`` and ``ceilings[a]`` out of ``2**63``, whatever the record and the models, so
    that the loss is at most the largest ``ln(ceilings[a] / floors[a])``. With two answers this is randomised response
    [1]_, or one answer for everybody where that is more accurate; with more it is the optimum over all mechanisms of
    this epsilon (compare [2]_). ``predict_proba`` is computed from the drawn answer alone. Each call is one release of
    each record. The training rows are not protected.

    **Fairness.** Under a bound on the difference of rates, the best answer maximises ``P(y = a | x)`` minus multipliers
    times ``P(y = 1, z = g | x)`` [3]_ [4]_ [5]_. The multipliers come from a linear program on out-of-fold beliefs (one
    rate of two groups needs none), and how far to go from out-of-fold labels and groups. Estimated rates are off by
    chance: without ``max_gap``, a gap is closed as far as it is more than that, much as empirical Bayes estimates do
    [6]_. Several sensitive columns are corrected each by itself. Rates of groups with few rows are shrunk towards what
    the models believe of them, which for a group that they cannot tell is the rate of all groups; a group with fewer
    than ten rows of a class is left out of its rate. Both are named in a ``SmallGroupWarning``. The gap is controlled
    on average over rows like those of ``fit``: measure it on rows of your own.

    A fitted object keeps the out-of-fold beliefs, labels and groups in memory for :meth:`set_max_gap` and
    :meth:`frontier`. They are not in its pickles and copies, which hold no training rows beyond what the estimator
    itself keeps (nearest neighbours keep all of theirs).

    References
    ----------
    .. [1] S. L. Warner (1965). Randomized response. JASA 60.
    .. [2] P. Kairouz, S. Oh, P. Viswanath (2014). Extremal mechanisms for local differential privacy. NeurIPS.
    .. [3] A. K. Menon, R. C. Williamson (2018). The cost of fairness in binary classification. FAT*.
    .. [4] R. Xian, H. Zhao (2024). A unified post-processing framework for group fairness in classification.
    .. [5] W. Chen, Y. Klochkov, Y. Liu (2024). Post-hoc bias scoring is optimal for fair classification. ICLR.
    .. [6] B. Efron, C. Morris (1973). Stein's estimation rule and its competitors. JASA 68.

    Examples
    --------
    >>> from skfairdp import FairPrivateClassifier, tpr_gap
    >>> from skfairdp.datasets import make_biased_classification
    >>> data = make_biased_classification(n_samples=2000, label_bias=0.3, random_state=0)
    >>> X, y, z = data.data, data.target, data.sensitive_features
    >>> clf = FairPrivateClassifier(epsilon=4.0, random_state=0).fit(X[:1500], y[:1500], sensitive_features=z[:1500])
    >>> clf.privacy_.epsilon
    4.0
    >>> clf.mechanism_.accuracy_bound - clf.mechanism_.expected_accuracy < 1e-6
    True
    >>> plain = FairPrivateClassifier(epsilon=4.0, fairness=None, random_state=0).fit(X[:1500], y[:1500])
    >>> gaps = [tpr_gap(y[1500:], model.predict(X[1500:]), sensitive_features=z[1500:]) for model in (plain, clf)]
    >>> gaps[1] < gaps[0]
    True
    """

    _row_wise_methods: ClassVar[dict] = {
        "predict": ("estimator", "group_estimator", "_model.class_model_", "_model.group_models_")
    }

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        "epsilon": [Interval(Real, 0, None, closed="right")],
        "fairness": [StrOptions(set(FAIRNESS)), None],
        "max_gap": [Interval(Real, 0, 1, closed="both"), None],
        "relaxation": [Interval(Real, 0, 1, closed="both")],
        "cv": ["cv_object", StrOptions({"prefit"})],
        "group_estimator": [HasMethods(["fit", "predict_proba"]), None],
        "pos_label": "no_validation",
        "row_wise": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        epsilon: float = 8.0,
        fairness: str | None = "equal_opportunity",
        max_gap: float | None = None,
        relaxation: float = 0.01,
        cv: Any = 3,
        group_estimator: Any = None,
        pos_label: Any = None,
        row_wise: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ):
        self.estimator = estimator
        self.epsilon = epsilon
        self.fairness = fairness
        self.max_gap = max_gap
        self.relaxation = relaxation
        self.cv = cv
        self.group_estimator = group_estimator
        self.pos_label = pos_label
        self.row_wise = row_wise
        self.n_jobs = n_jobs
        self.random_state = random_state

    # -- training -----------------------------------------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> "FairPrivateClassifier":
        """Train the inner models, and find the multipliers and the mechanism; releases nothing.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Training rows, as the estimator likes them; the guarantee does not cover them.
        y : array-like of shape (n_samples,)
            Labels of any type; two classes or more.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            Groups. None trains without a fairness term, with a warning, and is refused with ``max_gap``.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, for the inner models and for every rate.

        Returns
        -------
        self : FairPrivateClassifier
        """
        with restored_on_failure(self):
            return self._fit(X, y, sensitive_features, sample_weight)

    def _fit(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> "FairPrivateClassifier":
        epsilon = check_epsilon(self.epsilon)
        if self.fairness is None:
            self._refuse_unused("fairness=None", "max_gap", "relaxation", "group_estimator", "pos_label")
        if self.max_gap is not None:
            self._refuse_unused("a max_gap", "relaxation")
        training, noise = training_and_noise_streams(self.random_state)
        rows, weight, names = self._training_rows(X, y, sensitive_features, sample_weight)
        self.classes_, self.sensitive_groups_ = rows.labels, names
        self._fairness = self.fairness if names else None
        positive = _positive_class(rows.labels, self.pos_label)
        self._rates = rates_of(self._fairness, len(rows.labels), positive) if self._fairness else []
        model, folds = self._plan(rows, conditions_of(self._rates), training)
        beliefs = cross_fit(model, rows, folds, training.seed(), self.n_jobs)
        if not np.isfinite(beliefs.classes).all():
            raise ValueError(f"estimator: predict_proba of {type(model.class_model).__name__} gives nan or infinity.")
        if not all(np.isfinite(groups).all() for groups in beliefs.groups.values()):
            inner = type(model.group_model).__name__
            raise ValueError(f"group_estimator: predict_proba of {inner} gives nan or infinity.")
        self._model = model.fit(rows, training.seed())
        groups = Groups(rows.groups, rows.n_groups) if self._fairness else None
        self._curve = TradeoffCurve(beliefs, rows.y, groups, self._rates, weight, training.generator)
        self._prices = self._curve.prices
        labels = [f"{name}={label}" for name, known in names.items() for label in known]
        if len(set(labels)) < len(labels):  # 1 and "1"
            labels = [f"{name}={label!r}" for name, known in names.items() for label in known]
        rate_names = pd.Index([rate.describe(rows.labels) for rate in self._rates], name="rate")
        self.multipliers_ = pd.DataFrame(self._curve.multipliers, index=rate_names, columns=labels)
        self._noise = noise
        self._take_point(epsilon, self.max_gap)
        self._training_privacy = _price_of_training(model)
        self._warn_of_surprises()
        return self

    def _training_rows(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
    ) -> tuple[TrainingRows, np.ndarray, dict[str, Any]]:
        """Check what was given; also return row weights, and the labels of the groups that are compared."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None.")
        X = self._as_estimator_likes(X, reset=True)
        check_consistent_length(X, y)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        if pd.isna(y).any():
            raise ValueError(f"y has missing values, the first at row {int(np.argmax(pd.isna(y)))}. Drop these rows.")
        check_classification_targets(y)
        weight = None
        if sample_weight is not None:
            weight = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        groups, n_groups, names = None, (), {}
        if self.fairness is not None and sensitive_features is None:
            if self.max_gap is not None:
                raise ValueError(
                    f"max_gap={self.max_gap!r} asks for fairness, and sensitive_features are missing. Give "
                    "fit(X, y, sensitive_features=...); in a pipeline or a search, "
                    "sklearn.set_config(enable_metadata_routing=True) and route_sensitive_features pass them on."
                )
            warn_user(
                "FairPrivateClassifier was fitted without sensitive_features: it is as fair as its estimator. Give "
                "fit(X, y, sensitive_features=...), or say fairness=None.",
                MissingSensitiveFeaturesWarning,
            )
        elif self.fairness is not None:
            sensitive = check_sensitive_features(sensitive_features, len(y), min_groups=2)
            groups, n_groups = sensitive.indices, sensitive.n_groups
            names = dict(zip(sensitive.names, sensitive.labels))
        labels = np.unique(y)
        if self.cv == "prefit":
            labels = self._labels_of_fitted_estimator(labels)
        if len(labels) < 2:
            raise ValueError(f"y must hold at least two classes; it holds one class: {labels.tolist()}.")
        rows = TrainingRows(X, np.searchsorted(labels, y), groups, n_groups, weight, labels)
        kept = None if weight is None else np.flatnonzero(weight > 0)
        if kept is not None and len(kept) < len(y):
            rows = rows.take(kept)
            if len(np.unique(rows.y)) < 2:
                raise ValueError("y must hold at least two classes among rows of positive sample_weight; it holds one.")
        return rows, np.ones(len(rows)) if rows.weight is None else rows.weight, names

    def _labels_of_fitted_estimator(self, labels: np.ndarray) -> np.ndarray:
        if self.estimator is None:
            raise ValueError("cv='prefit' takes a fitted estimator; estimator is None.")
        check_is_fitted(self.estimator)
        known = np.unique(self.estimator.classes_)
        unknown = np.setdiff1d(labels, known)
        if len(unknown):
            raise ValueError(
                f"y must hold classes that the fitted estimator knows, {known.tolist()}; it holds {unknown.tolist()}."
            )
        return known

    def _plan(self, rows: TrainingRows, conditions: tuple[int, ...], training: Any) -> tuple[BeliefModel, list[Any]]:
        """Choose the models, and the folds in which beliefs are formed."""
        trees = HistGradientBoostingClassifier(categorical_features="from_dtype")
        prefit = isinstance(self.cv, str)
        estimator = trees if self.estimator is None else self.estimator
        group_estimator = self.group_estimator
        if group_estimator is None:
            group_estimator = trees if prefit else estimator
        if prefit:
            estimator = deepcopy(estimator)  # what the user trains it on later must not reach this one
        model = BeliefModel(estimator, group_estimator, conditions, prefit)
        seed = training.seed()
        # Folds hold equal shares of every class in every group, as far as there are enough rows.
        strata = rows.y.copy()
        for column, n_groups in enumerate(rows.n_groups):
            strata = np.unique(strata * n_groups + rows.groups[:, column], return_inverse=True)[1]  # type: ignore[index]
        n_folds = 3 if prefit else self.cv
        if isinstance(n_folds, Integral):
            if n_folds < 2 or n_folds > len(rows):
                raise ValueError(
                    f"cv must be at least 2 and at most the number of rows, n_samples={len(rows)}; got {n_folds}."
                )
            splitter: Any = StratifiedKFold(int(n_folds), shuffle=True, random_state=seed)
            if np.bincount(strata).max() < n_folds:
                strata = np.zeros(len(rows), dtype=int)
        else:
            splitter = check_cv(n_folds, rows.y, classifier=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
            folds = list(splitter.split(np.zeros((len(rows), 1)), strata))
        folds = [(np.arange(len(rows))[train], np.arange(len(rows))[test]) for train, test in folds]
        tested = np.sort(np.concatenate([test for _, test in folds]))
        if not np.array_equal(tested, np.arange(len(rows))):
            raise ValueError(
                f"cv must test every row once, of the {len(rows)} whose weight is positive; this splitter leaves rows "
                "out or tests them twice."
            )
        return model, folds

    def _as_estimator_likes(self, X: Any, *, reset: bool) -> Any:
        """Check the shape of rows and leave everything else to the estimator: text, categories, missing values."""
        if _are_documents(X):
            return indexable(X)[0]
        if hasattr(X, "columns"):
            validate_data(self, X, skip_check_array=True, reset=reset)
            if reset and self.estimator is None:
                _refuse_text_columns(X)
            return X
        if isinstance(X, list | tuple):
            # NumPy would choose the type of a list by all of its rows: one gap in one record would change all others.
            if reset:
                self._list_dtype = _dtype_of_list(X)
            X = np.asarray(X, dtype=getattr(self, "_list_dtype", object))
        formats = ("csr",) if get_tags(self).input_tags.sparse else False
        return validate_data(self, X, reset=reset, dtype=None, accept_sparse=formats, ensure_all_finite=False)

    # -- the point of the curve ---------------------------------------------------------------------------------------

    def _take_point(self, epsilon: float, max_gap: float | None) -> None:
        """Choose a point of the curve and seal its mechanism."""
        curve = self._curve
        table = curve.table(epsilon)
        strength = float(table["strength"][choose_point(table, curve.majority(), max_gap, self.relaxation)])
        mechanism = curve.best_mechanism(epsilon, strength, tuple(self.classes_.tolist()))
        self._posterior = curve.posterior(mechanism.probabilities(curve.utilities(strength)))
        self.tradeoff_, self.strength_ = self._named(table), strength
        self.epsilon_, self.max_gap_ = epsilon, max_gap
        scope = (*_DOES_NOT_COVER, _VOUCHED) if self.row_wise else (*_DOES_NOT_COVER, _CARELESS)
        self._freeze(mechanism, self._noise, covers=_COVERS, does_not_cover=scope)

    def _named(self, table: pd.DataFrame) -> pd.DataFrame:
        """Give the gap its own name."""
        name = _GAP_NAMES.get(self._fairness or "", "gap")
        ends = ("", "_lower", "_upper", "_expected")
        return table.rename(columns={f"gap{end}": f"{name}{end}" for end in ends})

    def set_max_gap(self, max_gap: float | None) -> "FairPrivateClassifier":
        """Move along the curve, without training anything again; the parameters stay as they are.

        Parameters
        ----------
        max_gap : float or None
            As the parameter; None takes the answers of the smallest expected gap within ``relaxation``.

        Returns
        -------
        self : FairPrivateClassifier
        """
        curve = self._kept_curve("set_max_gap")
        if not curve.rates:
            raise ValueError("set_max_gap needs groups: this estimator was fitted without sensitive_features.")
        if max_gap is not None:
            max_gap = check_number(max_gap, "max_gap", "between 0 and 1, or None", lambda gap: 0 <= gap <= 1)
        return self._move(self.epsilon_, max_gap)

    def set_epsilon(self, epsilon: float) -> "FairPrivateClassifier":
        """Take the best mechanism of another epsilon, without training anything again; the parameters stay as they are.

        Answers that were released before keep the price that they had.

        Parameters
        ----------
        epsilon : float
            As the parameter.

        Returns
        -------
        self : FairPrivateClassifier
        """
        self._kept_curve("set_epsilon")
        return self._move(check_epsilon(epsilon), self.max_gap_)

    def _move(self, epsilon: float, max_gap: float | None) -> "FairPrivateClassifier":
        with restored_on_failure(self):
            self._take_point(epsilon, max_gap)
            self._warn_of_surprises()
        return self

    def frontier(self, epsilons: Iterable[float]) -> pd.DataFrame:
        """Tell accuracy and gap at other epsilons, without training anything again.

        Parameters
        ----------
        epsilons : iterable of float
            Greater than 0; infinity is without noise.

        Returns
        -------
        DataFrame
            One row per epsilon: the point that ``fit`` would take there, ``accuracy`` and gap of released answers on
            rows that the models have not seen, and ``expected_accuracy`` and ``accuracy_bound`` of its mechanism.
        """
        curve = self._kept_curve("frontier")
        rows = []
        for epsilon in [check_epsilon(e, name="epsilons") for e in np.atleast_1d(np.asarray(epsilons, dtype=object))]:
            table = curve.table(epsilon)
            chosen = table.iloc[choose_point(table, curve.majority(), self.max_gap_, self.relaxation)]
            mechanism = curve.best_mechanism(epsilon, chosen["strength"], tuple(self.classes_.tolist()))
            figures = curve.judge(mechanism.probabilities(curve.utilities(chosen["strength"])))
            rows.append(
                {
                    "epsilon": epsilon,
                    "strength": chosen["strength"],
                    **figures,
                    "n_answers": len(mechanism.answers),
                    "expected_accuracy": mechanism.expected_accuracy,
                    "accuracy_bound": mechanism.accuracy_bound,
                }
            )
        if not rows:
            raise ValueError("epsilons is empty; give at least one.")
        return self._named(pd.DataFrame(rows))

    def _kept_curve(self, method: str) -> TradeoffCurve:
        check_is_fitted(self)
        if not hasattr(self, "_curve"):
            raise ValueError(
                f"{method} needs the out-of-fold beliefs of the training rows, which copies and pickles do not hold. "
                "Call it where the estimator was fitted."
            )
        return self._curve

    def _warn_of_surprises(self) -> None:
        """Say what nobody expects: few rows of a group, a gap that is not reached, one answer for everybody."""
        few = [
            f"{group} ({rate}: {rows:.0f})"
            for rate, counts in zip(self.multipliers_.index, self._curve.rows)
            for group, rows in zip(self.multipliers_.columns, counts)
            if rows < _FEW_ROWS
        ]
        if few:
            shown = ", ".join(few[:8]) + (f" and {len(few) - 8} more" if len(few) > 8 else "")
            warn_user(
                f"sensitive_features: groups with few rows: {shown}. Their rates are shrunk towards what is "
                f"believed of all groups, and left out below {LEAST_ROWS} rows: nothing is promised for them.",
                SmallGroupWarning,
            )
        gap_name = _GAP_NAMES.get(self._fairness or "", "gap")
        gap = self.tradeoff_.loc[self.tradeoff_["strength"] == self.strength_, gap_name].iloc[0]
        if self.max_gap_ is not None and not gap <= self.max_gap_:
            warn_user(
                f"max_gap={self.max_gap_:g} was not reached: the smallest {gap_name} on rows that the models have not "
                f"seen is {gap:.3f}.",
                ConvergenceWarning,
            )
        if len(self.mechanism_.answers) == 1:
            warn_user(
                f"everybody is answered {self.mechanism_.answers[0]!r}: at epsilon={self.epsilon_:g} no mechanism is "
                "more accurate. Raise epsilon, or give features that tell more.",
                ConvergenceWarning,
            )

    # -- answers ------------------------------------------------------------------------------------------------------

    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        # Without noise there is no guarantee per record that other records could break.
        row_wise = self.row_wise or math.isinf(self.epsilon_)
        beliefs = self._model.believe(self._as_estimator_likes(X, reset=False), row_wise=row_wise)
        taken = adjustments(beliefs, self._rates, self._prices)
        return self.mechanism_.shares(beliefs.classes - self.strength_ * taken)

    def _learned_without_noise(self) -> str:
        return "its inner models and multipliers"

    @property
    def training_privacy_(self) -> PrivacyGuarantee:
        """What the training rows pay, which is another question than what an answer costs."""
        check_is_fitted(self)
        return self._training_privacy

    def predict(self, X: Any) -> np.ndarray:
        """Answer each record once. One release of each record.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        answers = self._release(self._values(X))
        return self.classes_[answers]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities given the released answer, and nothing else. One release of each record.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            At most as many different rows as there are answers.
        """
        answers = self._release(self._values(X))
        return self._posterior[answers]

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("_curve", None)  # labels and groups of training rows stay where the estimator was fitted
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(HistGradientBoostingClassifier() if self.estimator is None else self.estimator)
        tags.input_tags = inner.input_tags
        tags.non_deterministic = True
        return tags


def _dtype_of_list(X: Any) -> Any:
    """Return float64 for rows of numbers, and object for any others."""
    try:
        return np.asarray(X, dtype=np.float64).dtype
    except (TypeError, ValueError):
        return object


def _are_documents(X: Any) -> bool:
    """Whether rows are strings, for a pipeline that reads text."""
    if sparse.issparse(X) or getattr(X, "ndim", 1) != 1 or not hasattr(X, "__len__") or len(X) == 0:
        return False
    return isinstance(X.iloc[0] if hasattr(X, "iloc") else X[0], str)


def _positive_class(labels: np.ndarray, pos_label: Any) -> int | None:
    """Return the index of the class whose rates are compared; None for all of more than two."""
    if pos_label is None:
        return 1 if len(labels) == 2 else None
    found = np.flatnonzero(labels == pos_label)
    if len(found) != 1:
        raise ValueError(f"pos_label must be one of the classes {labels.tolist()}; got {pos_label!r}.")
    return int(found[0])


def _refuse_text_columns(X: Any) -> None:
    """Refuse columns of text, which the default trees do not take, and say what to do."""
    frame = X.head(1).to_pandas() if hasattr(X, "to_pandas") else X.head(1)
    text = [
        name for name in frame.columns if frame[name].dtype == object or isinstance(frame[name].dtype, pd.StringDtype)
    ]
    if text:
        raise ValueError(
            f"X: the columns {', '.join(map(repr, text[:5]))} hold text. Make them categories, "
            f"X.astype({{{text[0]!r}: 'category'}}), or give an estimator that takes text."
        )


def _price_of_training(model: BeliefModel) -> PrivacyGuarantee:
    """Write the receipt of the training rows, which has nothing to do with that of the answers."""
    inner = model.class_model_
    if not getattr(inner, "_protects_fitted_rows", False):
        reason = "anything: the models have learned from the training rows without noise"
        return PrivacyGuarantee(math.inf, mechanism="none", does_not_cover=(reason,))
    if not model.prefit:
        return inner.privacy_.undone([f"FairPrivateClassifier was fitted on the same rows ({_LEARNED})"])
    scope = tuple(
        dict.fromkeys((*inner.privacy_.does_not_cover, f"the calibration rows, which must be public: {_LEARNED}"))
    )
    return replace(inner.privacy_, does_not_cover=scope)
