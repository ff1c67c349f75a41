"""Inner steps of FairPrivateClassifier: beliefs of models that have not seen the row, multipliers that level rates."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from skfairdp.postprocessing._beliefs import ANY_CLASS, BeliefModel, Beliefs, TrainingRows, cross_fit
from skfairdp.postprocessing._fair_multipliers import (
    adjustments,
    cell_shares,
    rates_of,
    ratio_or_zero,
    solve_multipliers,
)


@pytest.mark.parametrize("condition", [ANY_CLASS, 1])
def test_beliefs_are_of_models_that_have_not_seen_the_row(condition):
    """Nothing can be learned here, so that whoever knows class or group has seen the row before."""
    rng = np.random.default_rng(0)
    X, y, z = rng.normal(size=(300, 3)), rng.integers(2, size=300), rng.integers(2, size=300)
    rows = TrainingRows(X, y, z[:, None], (2,), None, np.array([0, 1]))
    folds = [(np.flatnonzero(np.arange(300) % 3 != k), np.flatnonzero(np.arange(300) % 3 == k)) for k in range(3)]
    model = BeliefModel(KNeighborsClassifier(1), KNeighborsClassifier(1), (condition,))
    found = cross_fit(model, rows, folds, 0, None)
    asked = np.ones(300, dtype=bool) if condition == ANY_CLASS else y == condition
    assert np.mean(found.classes.argmax(axis=1) == y) < 0.6
    assert np.mean(found.groups[condition].argmax(axis=1)[asked] == z[asked]) < 0.65
    seen = model.fit(rows, 0).believe(X)  # the planted fault
    assert np.array_equal(seen.classes.argmax(axis=1), y)
    assert np.array_equal(seen.groups[condition].argmax(axis=1)[asked], z[asked])


@pytest.mark.parametrize("offset", [-0.1, 0.0, 0.1])
@pytest.mark.parametrize("n", [600, 20_000])
def test_measured_rates_are_levelled_not_believed_ones(offset, n):
    """Where a group's rate was measured to be larger than believed, the believed one ends as much below the others."""
    rng = np.random.default_rng(1)
    positive, second = rng.random(n), rng.random(n)
    classes, groups = np.column_stack([1 - positive, positive]), np.column_stack([1 - second, second])
    beliefs = Beliefs(classes, {1: groups})
    rates, weight = rates_of("equal_opportunity", 2, 1), np.ones(n)
    offsets = np.array([[0.0, offset]])
    found = solve_multipliers(beliefs, rates, np.zeros(2, dtype=int), np.zeros((1, 2)), offsets, weight, 0)
    shares = cell_shares(beliefs, rates, weight)
    answers = (classes - adjustments(beliefs, rates, ratio_or_zero(found, shares))).argmax(axis=1)
    believed = (answers == 1) @ beliefs.joint((1,)) / n / shares[0]
    assert believed[0] == pytest.approx(believed[1] + offset, abs=0.01)
