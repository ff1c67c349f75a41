"""Warnings and errors of the package."""

from sklearn.exceptions import UndefinedMetricWarning

__all__ = [
    "BudgetExceededError",
    "ContinuousSensitiveFeatureWarning",
    "MissingSensitiveFeaturesWarning",
    "OverclaimedPrivacyWarning",
    "PrivacyLeakWarning",
    "SensitiveFeaturesNotRoutedError",
    "SmallGroupWarning",
    "UndefinedGroupMetricWarning",
]


class OverclaimedPrivacyWarning(UserWarning):
    """A published calibration was asked for whose epsilon does not hold.

    The message names the published epsilon and the exact one.

    Examples
    --------
    >>> import warnings
    >>> from skfairdp import LaplacePrivatizer
    >>> from skfairdp.exceptions import OverclaimedPrivacyWarning
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = LaplacePrivatizer(norm="l2", calibration="published").fit([[1.0, 2.0], [2.0, 1.0]])
    >>> caught[0].category is OverclaimedPrivacyWarning
    True
    """


class PrivacyLeakWarning(UserWarning):
    """Something outside the guarantee was learned from private rows, or a guarantee does not cover them.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skfairdp import PATEClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y = make_biased_classification(600, random_state=0, return_X_y=True)
    >>> pate = PATEClassifier(DecisionTreeClassifier(max_depth=2), n_teachers=20, random_state=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     pate = pate.fit(X, y)  # without public rows
    >>> [warning.category.__name__ for warning in caught]
    ['PrivacyLeakWarning']
    """


class BudgetExceededError(RuntimeError):
    """A release was refused because it would have spent more than the budget allows.

    Nothing has been released, and nothing has been recorded, when this is raised.

    Examples
    --------
    >>> from skfairdp import LaplacePrivatizer, PrivacyLedger
    >>> from skfairdp.exceptions import BudgetExceededError
    >>> try:
    ...     with PrivacyLedger(budget=1.0):
    ...         _ = LaplacePrivatizer(epsilon=8.0).fit_transform([[1.0, 2.0], [2.0, 1.0]])
    ... except BudgetExceededError:
    ...     print("refused")
    refused
    """


class MissingSensitiveFeaturesWarning(UserWarning):
    """An estimator that exists for fairness was fitted without ``sensitive_features``.

    It works, and does what it can without them; the message says what that is.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skfairdp import FairPrivateClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y = make_biased_classification(300, random_state=0, return_X_y=True)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = FairPrivateClassifier(LogisticRegression(), random_state=0).fit(X, y)
    >>> [warning.category.__name__ for warning in caught]
    ['MissingSensitiveFeaturesWarning']
    """


class ContinuousSensitiveFeatureWarning(UserWarning):
    """A sensitive column holds many different numbers, such as ages, and each would be a group of its own.

    The message says how to bin them.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skfairdp import tpr_gap
    >>> rng = np.random.default_rng(0)
    >>> y, age = rng.integers(0, 2, 5000), rng.integers(18, 90, 5000)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     gap = tpr_gap(y, y, sensitive_features=age)
    >>> [warning.category.__name__ for warning in caught]
    ['ContinuousSensitiveFeatureWarning']
    """


class SmallGroupWarning(UserWarning):
    """A sensitive group has too few rows of a class for its rates to be known, and so to be made equal.

    The message names the groups and their numbers of rows.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skfairdp import FairPrivateClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> X, y = make_biased_classification(300, random_state=0, return_X_y=True)
    >>> group = np.where(np.arange(300) < 12, "few", "many")
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = FairPrivateClassifier(LogisticRegression(), random_state=0).fit(X, y, sensitive_features=group)
    >>> "SmallGroupWarning" in {warning.category.__name__ for warning in caught}
    True
    """


class SensitiveFeaturesNotRoutedError(RuntimeError, ValueError):
    """A fairness scorer was asked for a score, and the sensitive features could not reach it.

    scikit-learn raises ``RuntimeError`` for a metadata request while routing is off, and ``ValueError``
    for metadata that it cannot pass on; code that expects either of them catches this one.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skfairdp import make_fairness_scorer, tpr_gap
    >>> from skfairdp.exceptions import SensitiveFeaturesNotRoutedError
    >>> model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    >>> try:
    ...     make_fairness_scorer(tpr_gap, greater_is_better=False)(model, [[0.0], [1.0]], [0, 1])
    ... except SensitiveFeaturesNotRoutedError as error:
    ...     print("needs sensitive_features" in str(error))
    True
    """


class UndefinedGroupMetricWarning(UndefinedMetricWarning):
    """A rate of a group has nothing to be computed from (0 of 0), and is nan.

    The message names the rate, the class and the group.

    Examples
    --------
    >>> import warnings
    >>> from skfairdp import tpr_gap
    >>> from skfairdp.exceptions import UndefinedGroupMetricWarning
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     gap = tpr_gap([1, 1, 0], [1, 0, 0], sensitive_features=["a", "a", "b"])
    >>> caught[0].category is UndefinedGroupMetricWarning
    True
    """
