"""Say fast that all rows of a text table have the same number of values; what is unsure is left to a slower reader."""

from collections.abc import Iterable

import numpy as np

_LINE, _QUOTE, _SPACE = ord("\n"), ord('"'), ord(" ")
_LONGEST_REST = 1 << 26  # bytes without the end of a row: such a table is strange enough for the slow reader
_MOST_LINES_OF_A_ROW = 100  # the same


def surely_even(blocks: Iterable[bytes], separator: str, width: int) -> bool:
    """Say whether all rows surely have ``width`` values, with every quote in its place.

    True is a promise: the csv module, strict and skipping spaces after separators, reads such a text without an error,
    each row with ``width`` values. False says nothing: lone carriage returns, zero bytes, quotes in odd places
    and ragged rows are all left to that reader, which also knows the number of the line.

    Parameters
    ----------
    blocks : iterable of bytes
        The text in UTF-8 or in any other encoding that writes ASCII as ASCII, and nothing else with its bytes.
    separator : str
        One character.
    width : int
        Number of values.
    """
    if not separator.isascii() or separator in ' "\r\n':
        return False
    rest = b""
    for block in blocks:
        text = rest + block
        end = _end_of_rows(text)
        if len(text) - end > _LONGEST_REST:
            return False
        rest = text[end:]
        if not _rows_are_even(text[:end], ord(separator), width):
            return False
    return _rows_are_even(rest if rest.endswith(b"\n") or not rest else rest + b"\n", ord(separator), width)


def _end_of_rows(text: bytes) -> int:
    """Return where the last whole row ends: after the last line break that is in no quotes. 0 if there is none."""
    end = text.rfind(b"\n") + 1
    for _ in range(_MOST_LINES_OF_A_ROW):
        if text.count(b'"', 0, end) % 2 == 0:
            return end
        end = text.rfind(b"\n", 0, end - 1) + 1
    return 0


def _rows_are_even(rows: bytes, separator: int, width: int) -> bool:
    if not rows:
        return True
    if b"\r" in rows:
        rows = rows.replace(b"\r\n", b"\n")
    if b"\r" in rows or b"\0" in rows:
        return False
    values = np.frombuffer(rows, np.uint8)
    has_quotes = b'"' in rows
    divides = (values == separator) | (values == _LINE)
    places = np.flatnonzero(divides | (values == _QUOTE) if has_quotes else divides)
    signs = values[places]
    if has_quotes:
        is_quote = signs == _QUOTE
        quotes = places[is_quote]
        if len(quotes) % 2 or not _quotes_are_in_place(values, quotes[::2], quotes[1::2], separator):
            return False
        # The number of quotes so far is odd inside of quotes; a quote that is written twice changes it twice.
        outside = ~is_quote & (np.cumsum(is_quote, dtype=np.uint32) % 2 == 0)
        places, signs = places[outside], signs[outside]
    is_line = signs == _LINE
    n_separators = np.diff(np.flatnonzero(is_line), prepend=-1) - 1
    is_whole = n_separators == width - 1
    return bool(is_whole.all()) or bool((is_whole | (np.diff(places[is_line], prepend=-1) == 1)).all())


def _quotes_are_in_place(values: np.ndarray, opening: np.ndarray, closing: np.ndarray, separator: int) -> bool:
    """Say whether every value in quotes begins and ends with them. The text ends with a line break."""
    before = np.where(opening > 0, values[opening - 1], _LINE)
    two_before = np.where(opening > 1, values[opening - 2], _LINE)
    begins = (before == separator) | (before == _LINE)
    begins |= (before == _SPACE) & ((two_before == separator) | (two_before == _LINE))
    # A quote after a quote is one of two that stand for one.
    begins |= (before == _QUOTE) & (opening > 0)
    after = values[closing + 1]
    return bool(begins.all() and ((after == separator) | (after == _LINE) | (after == _QUOTE)).all())
