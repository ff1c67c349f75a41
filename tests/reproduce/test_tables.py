"""Cells are named once, and tables put what was measured beside what was published."""

import importlib
import math

import numpy as np
import pandas as pd
import pytest

from benchmarks.reproduce import _federate, dpnr, ome, pate
from benchmarks.reproduce.__main__ import TABLES, reproduce
from benchmarks.reproduce._journal import Journal, key_of
from benchmarks.reproduce._tables import frame_of, markdown, number, spread, write_tables


@pytest.mark.parametrize("mode", ["quick", "full"])
@pytest.mark.parametrize("name", TABLES)
def test_every_cell_has_a_name_of_its_own(name, mode):
    cells = importlib.import_module(f"benchmarks.reproduce.{name.replace('-', '_')}").cells(mode)
    keys = [key_of(cell) for cell in cells]
    assert len(cells) > 0
    assert len(set(keys)) == len(keys)
    assert all("seed" in cell for cell in cells)


def test_full_has_what_the_papers_have():
    settings = {
        (c["protocol"], c["epsilon"], c["factor"]) for c in ome.cells("full") if c["calibration"] == "published"
    }
    assert settings == {key for key in ome.PUBLISHED if key[0] != "none"}
    assert {(c["epsilon"]) for c in dpnr.cells("full") if c["noise"] == "iid" and c["rate"] == 0} == set(dpnr.EPSILONS)
    assert {c["rate"] for c in dpnr.cells("full")} == {0.0, *dpnr.RATES}
    for data in ("adult", "celeba"):
        named = {c["method"].split(",")[0] for c in _federate.cells_of(data, "full")}
        assert set(_federate.PUBLISHED[data]) <= named
    assert {c["data"] for c in pate.cells("full")} == set(pate.DATA)


def test_mean_and_deviation():
    assert spread([1.0, 2.0, 3.0]) == "2.0 ± 1.0"
    assert spread([2.0]) == "2.0"
    assert [number(v) for v in (math.inf, math.nan, None, 6902.8, 0.05)] == ["∞", "-", "-", "6,903", "0.05"]


def test_markdown_and_csv(tmp_path):
    table = pd.DataFrame({"method": ["a", "b"], "accuracy": ["1.0 ± 0.1", "-"]})
    text = write_tables({"one": table}, tmp_path, "paper")
    assert "| a | 1.0 ± 0.1 |" in text
    assert text == (tmp_path / "paper.md").read_text(encoding="utf-8")
    assert pd.read_csv(tmp_path / "paper-one.csv").equals(table)
    assert markdown(table).count("\n") == 3
    write_tables({"two": table}, tmp_path, "paper", tmp_path / "elsewhere")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["paper-two.csv"]


def test_ome_puts_three_numbers_side_by_side():
    rows = []
    for calibration, factor, accuracy, exact in (("published", 100, 60.0, 6902.8), ("exact", None, 50.0, 1.0)):
        for seed in range(2):
            cell = {"data": "yelp", "protocol": "ome", "epsilon": 1.0, "factor": factor, "calibration": calibration}
            result = {"accuracy": accuracy + seed, "exact_epsilon": exact, "majority": 51.0}
            rows.append({"cell": {**cell, "seed": seed}, "result": result})
    line = ome.tables(frame_of(rows))["accuracy"].iloc[0]
    assert line["Yelp"] == "66.73 / 60.5 ± 0.7 / 50.5 ± 0.7"
    assert (line["claimed ε"], line["exact ε"]) == ("1", "6,903")


def federate_rows(gaps):
    """Settings that differ by a third of a point in accuracy, and in their gap on validation rows."""
    for i, gap in enumerate(gaps):
        cell = {"stage": "grid", "data": "adult", "method": "Adversarial", "settings": {"epsilon": math.inf, "w": i}}
        result = {"valid": (84 - i / 3, gap), "test": (80.0 + i, 5.0 + i), "exact_epsilon": math.inf, "majority": 67.0}
        cost = {"peak_mb": 500.0, "cpu_seconds": 1.0}
        yield {"cell": {**cell, "max_epochs": 20, "seed": 0}, "result": {**result, **cost}}


def test_federate_chooses_on_validation_rows_within_one_point():
    # The fairest of all is the fifth, which is too inaccurate; within one point it is the third.
    frame = frame_of(list(federate_rows([9.0, 8.0, 3.0, 7.0, 1.0])))
    (cell,) = _federate.follow_up(frame)
    assert cell["stage"] == "chosen"
    assert cell["settings"]["w"] == 2
    line = _federate.tables(frame)["methods"].iloc[0]
    assert line["accuracy"] == "83.14 / 82.0"
    assert line["leakage"] == "78.2 / -"


def test_dpnr_mask_is_no_word():
    from benchmarks.reproduce._text import words

    assert "mask" in words("[MASK] home")  # the trap: brackets are no part of words
    assert words("The dog's home.") == ["the", "dog's", "home"]


@pytest.mark.data
def test_masked_words_do_not_count(data_home):
    from benchmarks.reproduce._text import mean_vectors

    rows = mean_vectors(["good film", "good [MASK]", "good", "xyzzyx"])
    np.testing.assert_array_equal(rows[1], rows[2])
    assert np.abs(rows[0] - rows[2]).max() > 0.1
    assert not rows[3].any()


def test_a_report_of_nothing_says_so(tmp_path):
    assert "no finished cell" in reproduce("ome", "quick", tmp_path, report=True)
    assert not Journal(tmp_path / "ome-quick.jsonl").path.exists()
