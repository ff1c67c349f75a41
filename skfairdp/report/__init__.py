"""The audit of a table: comparison of methods, and a report to read."""

from skfairdp.report._result import AuditResult
from skfairdp.report._run import audit_table

__all__ = ["AuditResult", "audit_table"]
