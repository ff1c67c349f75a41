"""Warnings and errors of the package."""

__all__ = ["BudgetExceededError", "OverclaimedPrivacyWarning", "PrivacyLeakWarning"]


class OverclaimedPrivacyWarning(UserWarning):
    """A published calibration was asked for whose epsilon does not hold.

    The message names the published epsilon and the exact one.
    """


class PrivacyLeakWarning(UserWarning):
    """Something outside the guarantee was learned from private rows, or a guarantee does not cover them."""


class BudgetExceededError(RuntimeError):
    """A release was refused because it would have spent more than the budget allows.

    Nothing has been released, and nothing has been recorded, when this is raised.
    """
