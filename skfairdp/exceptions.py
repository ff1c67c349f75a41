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
    """Something outside the guarantee was learned from private rows, or a guarantee does not cover them."""


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
    """


class ContinuousSensitiveFeatureWarning(UserWarning):
    """A sensitive column holds many different numbers, such as ages, and each would be a group of its own.

    The message says how to bin them.
    """


class SmallGroupWarning(UserWarning):
    """A sensitive group has too few rows of a class for its rates to be known, and so to be made equal.

    The message names the groups and their numbers of rows.
    """


class SensitiveFeaturesNotRoutedError(RuntimeError, ValueError):
    """A fairness scorer was asked for a score, and the sensitive features could not reach it.

    scikit-learn raises ``RuntimeError`` for a metadata request while routing is off, and ``ValueError``
    for metadata that it cannot pass on; code that expects either of them catches this one.
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
