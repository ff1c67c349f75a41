"""Attacking a release: statistical lower bounds on the epsilon of anything that can be run many times."""

from skfairdp.epsilon_audit._audit_epsilon import EpsilonAudit, audit_epsilon
from skfairdp.epsilon_audit._worst_case_pairs import worst_case_pair, worst_case_pairs

__all__ = ["EpsilonAudit", "audit_epsilon", "worst_case_pair", "worst_case_pairs"]
