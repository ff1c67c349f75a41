"""The fast look at rows never says "even" of a table that the strict reader refuses."""

import csv
import io
import random

import pytest

from skfairdp.table_files import _text_table, read_table
from skfairdp.table_files._row_lengths import surely_even


def strictly_even(text, separator, width):
    """What the csv module says, row by row."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True))
    except csv.Error:
        return False
    return all(len(row) in (0, width) for row in rows)


def in_blocks(text, size):
    data = text.encode()
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_even_is_a_promise(separator):
    rng, n_even, n_missed = random.Random(0), 0, 0
    for _ in range(6_000):
        text = "".join(rng.choice('aé""\n\n\r ' + 3 * separator) for _ in range(rng.randint(0, 14))) + rng.choice(
            ["", "\n"]
        )
        text = text.replace("\r", rng.choice(["\r\n", "\r\n", "\r"]))
        width, size = rng.randint(1, 3), rng.choice([1, 2, 3, 7, 1000])
        even = surely_even(in_blocks(text, size), separator, width)
        truth = strictly_even(text, separator, width)
        assert truth or not even, (text, width, size)
        n_even, n_missed = n_even + even, n_missed + (truth and not even)
    assert n_even > 150, "the texts must not all be unsure"


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_ordinary_tables_need_no_second_look(quoted, end):
    rows = [["a", "b", "c"]] + [["x, y" if quoted else "x", 'say ""no""' if quoted else "", str(k)] for k in range(200)]
    text = "".join(",".join(f'"{value}"' if quoted else value for value in row) + end for row in rows) + end
    for size in (10, 64, 1 << 20):
        assert surely_even(in_blocks(text, size), ",", 3)
        for ragged in ("1,2\n", "1,2,3,4\n", '"1,2,3\n', 'a,"b"c,d\n', "1,2,\0\n"):
            assert not surely_even(in_blocks(text + ragged + text, size), ",", 3)


def test_the_fast_look_is_taken(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text('a,b\n"x, y",1\n')
    monkeypatch.setattr(_text_table, "surely_even", lambda blocks, separator, width: looks.append(width) or True)
    looks = []
    read_table(tmp_path / "t.csv")
    assert looks == [2]


def test_a_very_long_value_is_read(tmp_path):
    """The csv module refuses values beyond 131,072 characters; the fast look does not need it."""
    (tmp_path / "t.csv").write_text("a,b\n" + "x" * 1_000_000 + ",1\n" + "y" * 1_000_000 + ",2\n")
    assert read_table(tmp_path / "t.csv")["a"].str.len().tolist() == [1_000_000] * 2
