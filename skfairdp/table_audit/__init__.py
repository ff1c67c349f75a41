"""The audit of a table: comparison of methods, and a report to read."""

from skfairdp.table_audit._audit_table import audit_table
from skfairdp.table_audit._fail_conditions import FailCondition
from skfairdp.table_audit._table_audit import TableAudit
from skfairdp.table_audit._terminal_summary import printable

__all__ = [
    "FailCondition",
    "TableAudit",
    "audit_table",
    "printable",
]
