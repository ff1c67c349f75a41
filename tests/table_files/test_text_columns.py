"""Numbers in other notations become numbers, and it is told; what can be two numbers stays text."""

import numpy as np
import pandas as pd
import pytest

from skfairdp.table_files import read_table
from skfairdp.table_files._text_columns import numbers_in_other_notations


def convert(*values, **columns):
    frame, notes = numbers_in_other_notations(pd.DataFrame({"x": list(values), **columns}))
    return frame["x"].tolist(), " ".join(notes)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["3,14", "-2,5", "7"], [3.14, -2.5, 7]),
        (["1.234,50", "12,5", "1.000.000"], [1234.5, 12.5, 1_000_000]),
        (["0,123", "0,456"], [0.123, 0.456]),  # no thousands begin with zero
        (["1,234,567", "12", "1,234.5"], [1_234_567, 12, 1234.5]),
        (["1.234.567", "12"], [1_234_567, 12]),
        (["1 234", "12", "5 000 000"], [1234, 12, 5_000_000]),
        (["1\u202f234,5", "12"], [1234.5, 12]),
        (["1'234.50", "12"], [1234.5, 12]),
        (["$1,200.50", "-$3", "$ 4"], [1200.5, -3, 4]),
        (["1.200,50 €", "3 €"], [1200.5, 3]),
        (["45%", "3.5 %"], [45, 3.5]),
        (["45%", "3,5%"], [45, 3.5]),
    ],
)
def test_other_notations_become_numbers(values, expected):
    numbers, note = convert(*values)
    np.testing.assert_allclose(numbers, expected)
    assert note.startswith("Read as numbers with ")
    assert "'x'" in note


@pytest.mark.parametrize(
    "values",
    [
        ["3,14", "2.5"],  # two notations
        ["1,2,3", "4,5,6"],
        ["2020.01.02", "2021.01.02"],
        ["10.0.0.1", "10.0.0.2"],
        ["030 123 456", "040 123 456"],  # a telephone
        ["45%", "0.45"],  # with and without the unit
        ["$5", "€5"],
        ["007", "123"],
        ["m", "f"],
        ["--5", "4"],
        ["1-2", "3-4"],
    ],
)
def test_what_is_no_number_stays_text(values):
    assert convert(*values)[0] == values


def test_what_can_be_two_numbers_stays_text():
    values, note = convert("1,234", "2,500", "7")
    assert values == ["1,234", "2,500", "7"]
    assert "Left as text, because '1,234' can be two numbers: 'x'" in note


def test_other_columns_decide_what_is_unclear():
    assert convert("1,234", "2,500", y=["3,14", "2,7"])[0] == [1.234, 2.5]
    assert convert("1,234", "2,500", y=["1,000,000", "2,7"])[0] == ["1,234", "2,500"]
    assert convert("1,234", "2,500", y=["1,000,000", "2"])[0] == [1234, 2500]


def test_missing_values_stay_missing():
    frame, _ = numbers_in_other_notations(pd.DataFrame({"x": ["3,14", None, "2,5", np.nan]}))
    np.testing.assert_array_equal(frame["x"], [3.14, np.nan, 2.5, np.nan])


def test_rows_that_prevent_a_number_are_told():
    values, note = convert(*["12"] * 9, "unknown")
    assert values[-1] == "unknown"
    assert "although most of it is numbers: 'x', because of 1 row such as 'unknown'" in note
    assert convert(*["12"] * 5, *["unknown"] * 5)[1] == ""


def test_formulas_are_told():
    values, note = convert("=1+2", "=HYPERLINK(...)")
    assert values[0] == "=1+2"
    assert note == "Formulas are read as text, and are not computed: 'x'."


def test_a_semicolon_table_with_decimal_commas(tmp_path):
    (tmp_path / "t.csv").write_text("height;income;points;sex\n1,70;1.200,5;1.200;f\n1,85;900;12.500;m\n")
    frame = read_table(tmp_path / "t.csv")
    assert frame["height"].tolist() == [1.7, 1.85]
    assert frame["income"].tolist() == [1200.5, 900]
    assert frame["sex"].tolist() == ["f", "m"]
    first, second = frame.attrs["notes"]
    assert first == "Read as numbers with a decimal comma ('1,70' is 1.7): 'height', 'income'."
    assert "Read with a decimal point, although other columns have a decimal comma: 'points'" in second


def test_ordinary_tables_have_no_notes(tmp_path):
    (tmp_path / "t.csv").write_text("height,sex,when,zip\n1.70,f,2020-01-02,00501\n1.85,m,2021-01-02,00502\n")
    assert read_table(tmp_path / "t.csv").attrs["notes"] == ()


def test_many_columns_are_one_note():
    frame = pd.DataFrame({f"c{k}": ["1,5", "2,5"] for k in range(100)})
    frame, notes = numbers_in_other_notations(frame)
    assert (frame.dtypes == np.float64).all()
    assert len(notes) == 1
    assert "and 90 more" in notes[0]
