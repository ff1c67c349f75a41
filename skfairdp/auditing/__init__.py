"""Attacking a release: statistical lower bounds on the epsilon of anything that can be run many times."""

from skfairdp.auditing._audit import audit_epsilon
from skfairdp.auditing._result import EpsilonAudit
from skfairdp.auditing._worst_case import worst_case_pair, worst_case_pairs

__all__ = ["EpsilonAudit", "audit_epsilon", "worst_case_pair", "worst_case_pairs"]
