"""Tables in files: read them, write them whole or not at all, and privatise them block by block."""

from skfairdp.table_files._privatize_file import load_privatizer, make_privatizer, parse_bounds, privatize_file
from skfairdp.table_files._read_table import read_table
from skfairdp.table_files._table_address import shown_address
from skfairdp.table_files._whole_file import check_writable, file_digest, write_text

# What is imported and not listed here is for other folders of skfairdp.
__all__ = [
    "check_writable",
    "load_privatizer",
    "make_privatizer",
    "parse_bounds",
    "privatize_file",
    "read_table",
    "shown_address",
    "write_text",
]
