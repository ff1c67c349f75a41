"""The page about scaling shows what the shipped measurements say."""

import json

import pandas as pd
import pytest

from benchmarks import growth
from benchmarks._growth_operations import OPERATIONS, measured
from tests._checks import assert_same_document

PAGE = " ".join((growth.FOLDER.parent / "docs" / "guide" / "scaling_out.md").read_text(encoding="utf-8").split())
ROWS = {(row["operation"], row["rows"]): row for row in json.loads(growth.JOURNAL.read_text())["rows"]}


def microseconds(operation, rows):
    row = ROWS[operation, rows]
    return 1e6 * row["seconds"] / row["rows"]


def test_table_and_figure_are_made_from_the_measurements(tmp_path):
    table = growth.write_documents(tmp_path)
    for name in ("growth.csv", "growth.svg"):
        assert_same_document(tmp_path / name, growth.FOLDER / name)
    named = table.loc[table["holds"] == "no", "operation"]
    assert all(OPERATIONS[name].reason for name in named), "what grows has a reason"


def test_growth_is_found():
    rows = [{"operation": "o", "rows": n, "seconds": s, "megabytes": 1.0} for n, s in [(10, 1), (100, 5), (1000, 100)]]
    (line,) = growth.summary(pd.DataFrame(rows)).to_dict("records")
    assert (line["growth"], line["holds"]) == ("2.00", "no")  # from 0.05 to 0.1; the first decade is start-up
    rows[-1]["seconds"] = 50
    assert growth.summary(pd.DataFrame(rows))["holds"].tolist() == ["yes"]


def test_an_operation_is_measured():
    found = measured("transform_in_blocks, Laplace, from disk to disk", 1_000)
    assert found["seconds"] > 0
    assert 0 <= found["megabytes"] < 100


@pytest.mark.parametrize(
    ("words", "operation"),
    [
        ("release_to_parquet: {:.1f} microseconds", "dask: release_to_parquet, Laplace, from disk to disk"),
        ("group counts: {:.2f}", "GroupCounts, 50 groups, blocks of 50,000"),
    ],
)
def test_the_estimate_starts_from_what_was_measured(words, operation):
    assert words.format(microseconds(operation, 10**6)) in PAGE
