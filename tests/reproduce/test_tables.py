"""Cells are named once, and tables put what was measured beside what was published."""

import importlib
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.reproduce import _federate, _federate_tables, dpnr, ome, pate
from benchmarks.reproduce.__main__ import TABLES, reproduce
from benchmarks.reproduce._journal import Journal, key_of
from benchmarks.reproduce._tables import NOTHING, PLUS_MINUS, frame_of, markdown, number, spread, write_tables


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
    assert {c["seed"] for c in ome.cells("full") if c["data"] in ome.REVIEWS} == set(range(20))
    assert {(c["epsilon"]) for c in dpnr.cells("full") if c["noise"] == "iid" and c["rate"] == 0} == set(dpnr.EPSILONS)
    assert {c["rate"] for c in dpnr.cells("full")} == {0.0, *dpnr.RATES}
    assert {c["seed"] for c in dpnr.cells("full")} == set(range(5))
    assert {c["data"] for c in pate.cells("full")} == set(pate.DATA)
    assert {c["student"] for c in pate.cells("full") if c["figure"] == "sweep"} == {"logistic", "network"}


@pytest.mark.parametrize("data", ["adult", "celeba"])
def test_federate_runs_the_papers_methods_weights_and_seeds(data):
    cells = _federate.cells_of(data, "full")
    assert set(_federate_tables.PUBLISHED[data]) <= {c["method"].split(",")[0] for c in cells}
    assert {c["seed"] for c in cells} == set(range(5))
    for calibration in ("published", "exact"):
        mine = [c["settings"] for c in cells if c["method"] == f"FEDERATE, {calibration}"]
        weights = {s["adversary_weight"] for s in mine if s["epsilon"] == 8.0}
        assert sorted(weights) == pytest.approx([0.1 + 0.2 * i for i in range(15)])
        assert {s["epsilon"] for s in mine} == set(_federate.EPSILONS)
        assert {s.get("norm", "l1") for s in mine} == {"l2" if calibration == "published" else "l1"}


def test_mean_and_deviation():
    assert spread([1.0, 2.0, 3.0]).replace(PLUS_MINUS, " ± ") == "2.0 ± 1.0"
    assert spread([2.0]) == "2.0"
    assert [number(v) for v in (math.inf, math.nan, None, 6902.8, 0.05)] == ["∞", NOTHING, NOTHING, "6,903", "0.05"]


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
    line, guess = ome.tables(frame_of(rows))["accuracy"].to_dict("records")
    shown = {name: value.replace(PLUS_MINUS, " ± ") for name, value in line.items()}
    assert shown == {
        "data": "Yelp",
        "protocol": "OME, λ\u00a0=\u00a0100",
        "claimed ε": "1",
        "published": "66.73",
        "exact ε": "6,903",
        "published rates": "60.5 ± 0.7",
        "claimed ε kept": "50.5 ± 0.7",
        "optimal at the exact ε": NOTHING,
        "runs": "2",
    }
    assert guess["claimed ε kept"].replace(PLUS_MINUS, " ± ") == "51.0 ± 0.0"


def federate_row(accuracy, gap, test=(80.0, 5.0), *, seed=0, method="Adversarial", **settings):
    """A finished cell with these numbers on its validation rows."""
    names = {"stage": "grid", "data": "adult", "method": method, "settings": settings, "training": {}, "seed": seed}
    result = {"valid": (accuracy, gap), "test": test, "exact_epsilon": math.inf, "majority": 67.0}
    return {"cell": names, "result": {**result, "peak_mb": 500.0, "cpu_seconds": 1.0}}


def test_federate_chooses_on_validation_rows_within_one_point():
    # The fairest of all is the fifth, which is too inaccurate; within one point it is the third.
    gaps = [9.0, 8.0, 3.0, 7.0, 1.0]
    rows = [federate_row(84 - i / 3, gap, (80.0 + i, 5.0 + i), w=i) for i, gap in enumerate(gaps)]
    (cell,) = _federate.follow_up(frame_of(rows))
    assert cell["stage"] == "chosen"
    assert cell["settings"]["w"] == 2
    line = _federate_tables.tables(frame_of(rows))["methods"].iloc[0]
    assert line["accuracy"] == "83.14 / 82.0"
    assert line["leakage"] == f"78.2 / {NOTHING}"
    assert (line["seeds"], line["settings"]) == ("1", "5")
    # What was measured afterwards belongs to the chosen setting, whatever else was measured.
    for leakage, w in ((70.0, 2), (90.0, 1)):
        after = {**rows[w]["cell"], "stage": "chosen"}
        rows.append({"cell": after, "result": {"leakage": leakage, "mdl": 15.0, "peak_mb": 500.0, "cpu_seconds": 1.0}})
    assert _federate_tables.tables(frame_of(rows))["methods"].iloc[0]["leakage"] == "78.2 / 70.0"


def test_federate_chooses_among_all_epsilons_and_at_each():
    method = "FEDERATE, exact"
    rows = [federate_row(83.0 + e / 8, gap, method=method, epsilon=e) for e, gap in ((8.0, 4.0), (16.0, 9.0))]
    frame = frame_of(rows)
    found = {(name, epsilon): picks for name, epsilon, picks in _federate.selections(frame)}
    assert [pick["settings"]["epsilon"] for pick in found[method, None]] == [8.0]
    assert [pick["settings"]["epsilon"] for pick in found[method, 16.0]] == [16.0]
    assert len(_federate.follow_up(frame)) == 2  # the choice among all is one of the two
    lines = _federate_tables.tables(frame)["methods"]
    assert lines["claimed ε"].tolist()[:2] == ["8 to 16", "8"]


def test_figure_3_takes_the_least_gap_of_an_interval_for_each_seed():
    rows = [federate_row(84.2, 5.0, w=0), federate_row(83.9, 3.0, w=1), federate_row(82.0, 1.0, w=2)]
    rows += [federate_row(84.0, 7.0, seed=1, w=0), federate_row(86.0, 9.0, seed=2, w=0)]
    curve = _federate_tables.best_gaps(frame_of(rows))
    assert curve.to_dict() == {84.0: 5.0}  # the mean of 3 and 7; one of three seeds is too few for the others


def test_dpnr_trains_with_its_noise_and_releases_without_it():
    import torch

    from benchmarks.reproduce._robust import RobustEncoder

    torch.manual_seed(0)
    rows = torch.randn(50, 7)
    for one_draw in (False, True):
        encoder = RobustEncoder(7, 4, scale=10.0, one_draw=one_draw)
        clean = encoder.eval()(rows)
        assert torch.equal(clean, encoder(rows))
        assert torch.equal(clean.amin(dim=1), torch.zeros(50))
        assert torch.allclose(clean.amax(dim=1), torch.ones(50))
        noisy = encoder.train()(rows)
        assert (noisy - clean).abs().max() > 5
        # One draw for a row leaves the differences of its coordinates as they were, but for the dropout.
        encoder.layers[2].p = encoder.layers[5].p = 0.0
        shift = encoder(rows) - clean
        assert bool((shift.std(dim=1) < 1e-4).all()) is one_draw
    assert dpnr._training_scale("exact", 0.5) == pytest.approx(64 * dpnr._training_scale("iid", 0.5))
    assert dpnr._training_scale("none", math.inf) == 0


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


DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_documentation_shows_every_table_and_figure_that_it_has():
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"reproduction/([\w.-]+\.(?:csv|svg))", page))
    assert shown == {path.name for path in (DOCS / "reproduction").iterdir()}


@pytest.mark.parametrize("data", ["adult", "celeba"])
def test_documented_tables_of_federate_follow_the_protocol(data):
    table = pd.read_csv(DOCS / "reproduction" / f"federate-{data}-full-methods.csv", keep_default_na=False)
    lines = table[table["method"] != "largest group"]
    assert set(lines["method"]) == set(_federate.methods(data))
    assert set(lines["seeds"].astype(str)) == {"5"}
    # Settings are those of the harness as it is: a table of an earlier grid would be found out here.
    counts = {method: len(grid) for method, grid in _federate.methods(data).items()}
    assert lines["settings"].astype(int).groupby(lines["method"]).max().to_dict() == counts
