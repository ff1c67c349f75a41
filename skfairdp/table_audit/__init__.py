"""The audit of a table: comparison of methods, and a report to read."""

from skfairdp.table_audit._files import check_writable
from skfairdp.table_audit._guards import Guard
from skfairdp.table_audit._read import read_table
from skfairdp.table_audit._result import TableAudit
from skfairdp.table_audit._run import audit_table
from skfairdp.table_audit._stream import load_privatizer, make_privatizer, parse_bounds, privatize_file
from skfairdp.table_audit._terminal import has_colour, printable, summary

__all__ = [
    "Guard",
    "TableAudit",
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
