"""The audit of a table: comparison of methods, and a report to read."""

from skfairdp.report._files import check_writable
from skfairdp.report._guards import Guard
from skfairdp.report._read import read_table
from skfairdp.report._result import AuditResult
from skfairdp.report._run import audit_table
from skfairdp.report._stream import load_privatizer, make_privatizer, parse_bounds, privatize_file
from skfairdp.report._terminal import has_colour, printable, summary

__all__ = [
    "AuditResult",
    "Guard",
    "audit_table",
    "check_writable",
    "has_colour",
    "load_privatizer",
    "make_privatizer",
    "parse_bounds",
    "printable",
    "privatize_file",
    "read_table",
    "summary",
]
