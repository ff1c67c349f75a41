"""The audit of a table: comparison of methods, and a report to read."""

from skfairdp.table_audit._audit_comparison import AuditComparison, compare_audits
from skfairdp.table_audit._audit_table import audit_table
from skfairdp.table_audit._existing_decisions import load_model
from skfairdp.table_audit._fail_conditions import FailCondition
from skfairdp.table_audit._methods_compared import method_names
from skfairdp.table_audit._table_audit import TableAudit
from skfairdp.table_audit._terminal_summary import printable
from skfairdp.table_audit._verdict import Verdict
from skfairdp.table_audit._worker_processes import declare_process_ours

# What is imported and not listed here is for other folders of skfairdp.
__all__ = [
    "AuditComparison",
    "FailCondition",
    "TableAudit",
    "Verdict",
    "audit_table",
    "compare_audits",
]
