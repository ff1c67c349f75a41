"""The example that needs real data runs; the gallery runs the others."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import sklearn

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.usefixtures("data_home")
def test_search_on_adult(monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: None)
    with sklearn.config_context(enable_metadata_routing=False):  # the example switches it on
        names = runpy.run_path(str(EXAMPLES / "search_adult.py"))
    plt.close("all")
    chosen = names["rule"].explain(names["search"].cv_results_).query("chosen")
    assert chosen["accuracy"].item() > 0.8
    assert (
        names["search"].best_estimator_["privatize"].privacy_.epsilon
        == names["search"].best_params_["privatize__epsilon"]
    )
