"""The picture of a training."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp import FederateClassifier
from skfairdp.inspection import TrainingHistoryDisplay


@pytest.fixture(autouse=True)
def _no_window():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    yield
    plt.close("all")


def test_lines_are_the_history():
    rng = np.random.default_rng(0)
    X, y, z = rng.normal(size=(60, 3)), rng.integers(2, size=60), rng.integers(2, size=60)
    settings = {"adversary_weight": 1.0, "max_epochs": 4, "early_stopping": True, "random_state": 0}
    clf = FederateClassifier(**settings).fit(X, y, sensitive_features=z)
    display = TrainingHistoryDisplay.from_estimator(clf)
    lines = {line.get_label(): line.get_ydata() for line in display.ax_.get_lines()}
    assert set(lines) == {"classifier", "validation", "adversary", "adversary at chance"}
    assert np.array_equal(lines["adversary"], clf.history_["adversary_loss"])
    assert display.figure_ is display.ax_.figure


def test_pipeline_without_groups_and_unfitted():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    pipeline = make_pipeline(StandardScaler(), FederateClassifier(max_epochs=2, adversary_weight=0.0)).fit(X, y)
    lines = [line.get_label() for line in TrainingHistoryDisplay.from_estimator(pipeline).ax_.get_lines()]
    assert lines == ["classifier"]
    with pytest.raises(ValueError, match="LogisticRegression"):
        TrainingHistoryDisplay.from_estimator(LogisticRegression())
