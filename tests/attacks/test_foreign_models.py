"""Models of strangers inside FairPrivateClassifier, PrivateSearchCV, PATEClassifier and FederateClassifier."""

from contextlib import suppress

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.tree import DecisionTreeClassifier

from skfairdp import FairPrivateClassifier, FederateClassifier, PATEClassifier, PrivateScaler, PrivateSearchCV
from skfairdp.dp import TrialBudget
from skfairdp.model_selection._private_trials import Trials
from skfairdp.random import random_stream
from tests.attacks._certify import certify
from tests.attacks._strangers import (
    BatchMajority,
    BatchNormalising,
    ColumnPredict,
    Drawing,
    Filled,
    ListPredict,
    RunningMean,
)

_HAS_TEMPERATURE = "temperature" in str(CalibratedClassifierCV._parameter_constraints["method"][0])

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(200, 2))
LABELS = (ROWS[:, 0] > 0).astype(int)

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:The default value of:FutureWarning"
)


def filling():
    return make_pipeline(Filled(), LogisticRegression())


_MODELS = {
    "plain": filling,
    "voting": lambda: VotingClassifier([("a", filling())], voting="soft"),
    "search": lambda: GridSearchCV(filling(), {"logisticregression__C": [1.0]}, cv=2),
    "calibrated": lambda: CalibratedClassifierCV(filling(), cv=2),
    "bagging": lambda: BaggingClassifier(filling(), n_estimators=2, random_state=0),
    "stacking": lambda: StackingClassifier([("a", filling())], LogisticRegression(), cv=2),
    "one vs rest": lambda: OneVsRestClassifier(filling()),
    "threshold": lambda: FixedThresholdClassifier(filling(), threshold=0.5, response_method="predict_proba"),
    "frozen": lambda: FrozenEstimator(filling().fit(ROWS, LABELS)),
    "frozen in voting": lambda: VotingClassifier([("a", FrozenEstimator(filling().fit(ROWS, LABELS)))], voting="soft"),
    "batch normalising": BatchNormalising,
    "running mean": RunningMean,
    "drawing": Drawing,
    "frozen running mean": lambda: FrozenEstimator(RunningMean().fit(ROWS, LABELS)),
    "column predict": lambda: VotingClassifier([("a", ColumnPredict())], voting="soft"),
}


@pytest.mark.parametrize("model", _MODELS)
def test_f4_one_record_sees_no_other(model):
    """The mechanism takes the same values for a record, to the last bit, whatever the other records are."""
    fair = FairPrivateClassifier(_MODELS[model](), epsilon=0.5, fairness=None, random_state=0).fit(ROWS, LABELS)
    gap = np.nan if "normalising" not in model and model not in ("running mean", "drawing") else 0.1
    record = [gap if "Filled" in repr(fair.estimator) else 0.1, 0.3]
    high, low = (np.vstack([[value, 0.0], record, *[[value, 0.0]] * 30]) for value in (5.0, -5.0))
    assert np.array_equal(fair._values(high)[1], fair._values(low)[1])
    assert fair.privacy_.epsilon == 0.5


@pytest.mark.slow
def test_f4_certified_from_the_answers_of_others():
    """The mean-filling pipeline: thirty people with a gap answer for one with an extreme value."""
    high, low = (np.vstack([[value, 0.0], *[[np.nan, 0.0]] * 200]) for value in (300.0, -300.0))
    released = FairPrivateClassifier(_MODELS["voting"](), epsilon=0.5, fairness=None).fit(ROWS, LABELS)
    certified = certify(lambda X: released.predict(X)[1:].mean(), high, low, lambda mean: mean > 0.5, 40)
    assert certified <= released.privacy_.epsilon


@pytest.mark.slow
@pytest.mark.skipif(not _HAS_TEMPERATURE, reason="temperature scaling is new in scikit-learn 1.8")
def test_temperature_scaling_asks_the_whole_batch_whether_it_holds_probabilities():
    """A record for which no tree votes sums to 0, and all others are calibrated without a logarithm then.

    One such record turns the answers of a hundred others: certified from what they are answered.
    """
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 2))
    marks = np.digitize(rows[:, 0] + 0.3 * rng.normal(size=300), [-0.5, 0.5])
    asked = rng.normal(size=(2000, 2))
    trees = OneVsRestClassifier(DecisionTreeClassifier(random_state=0))
    model = CalibratedClassifierCV(trees, method="temperature", cv=2)
    fair = FairPrivateClassifier(model, epsilon=0.5, fairness=None, random_state=0).fit(rows, marks)
    parts = fair._model.class_model_.calibrated_classifiers_
    sums = np.array([part.estimator.predict_proba(asked).sum(axis=1) for part in parts])
    usual, odd = asked[(sums == 1).all(axis=0)], asked[(sums[0] == 0) & (sums[1] == 1)][:1]
    assert len(odd)
    before, after = (fair._values(np.vstack([usual, last]))[:-1] for last in (usual[:1], odd))
    turned = np.flatnonzero((before != after).any(axis=1))
    if len(turned) == 0:
        return
    others = np.repeat(usual[turned[:1]], 400, axis=0)
    labels = fair.classes_[[before[turned[0]].argmax(), after[turned[0]].argmax()]]
    certified = certify(
        lambda X: np.subtract(*((fair.predict(X)[:-1] == label).mean() for label in labels)),
        np.vstack([others, usual[:1]]),
        np.vstack([others, odd]),
        lambda difference: difference > 0,
    )
    assert certified <= fair.privacy_.epsilon


@pytest.mark.parametrize("model", [BatchNormalising, RunningMean])
def test_student_of_a_stranger_behind_another_model(model):
    """The student of PATE is looked into, and so is what a pipeline holds."""
    pate = PATEClassifier(LogisticRegression(), n_teachers=5, epsilon=50.0, labels="hard", student=model())
    pate.fit(ROWS, LABELS, public=ROWS + 0.01)
    fair = FairPrivateClassifier(pate, epsilon=0.5, cv="prefit", fairness=None).fit(ROWS, LABELS)
    record = [0.1, 0.3]
    high, low = (np.vstack([[value, 0.0], record, *[[value, 0.0]] * 30]) for value in (5.0, -5.0))
    assert np.array_equal(fair._values(high)[1], fair._values(low)[1])


def test_f4_vouched_model_is_named_by_the_receipt():
    fair = FairPrivateClassifier(BatchNormalising(), epsilon=0.5, fairness=None, row_wise=True).fit(ROWS, LABELS)
    assert any("row_wise" in said or "word" in said for said in fair.privacy_.does_not_cover)


# -- searches ---------------------------------------------------------------------------------------------------------


def _search(student):
    """Search over frozen students: the only private thing in front of the score is the scaler."""
    frozen = FrozenEstimator(student.fit(ROWS))
    pipeline = Pipeline([("scale", PrivateScaler(bounds=(-3, 3))), ("student", frozen)])
    return PrivateSearchCV(pipeline, {"student": [frozen]}, epsilon=1.0, expected_trials=1.01)


@pytest.mark.parametrize("student", [BatchMajority, ColumnPredict, ListPredict])
def test_f1_count_of_right_answers_moves_by_one(student):
    """One record that changes, label included, changes the count by one at most, whatever the student returns."""
    rows = np.column_stack([np.where(np.arange(51) < 26, -1.0, 1.0), np.zeros(51)])
    labels = np.arange(51) % 2
    moved, flipped = rows.copy(), labels.copy()
    moved[0, 0], flipped[0] = 1.0, 1 - flipped[0]
    frozen, counts = FrozenEstimator(student().fit(ROWS)), []
    for given in ((rows, labels), (moved, labels), (rows, flipped), (moved, flipped)):
        trials = Trials(frozen, "", {}, TrialBudget(np.inf, 0.0, 0.0), (rows, labels), {}, given, None)
        with suppress(ValueError):  # shapes are public
            counts.append(trials._score(frozen, random_stream(0)))
    assert not counts or (len(counts) == 4 and max(counts) - min(counts) <= 1)


@pytest.mark.parametrize("student", [BatchMajority, ListPredict])
def test_f1_best_score_of_a_search_is_a_share(student):
    search = _search(student())
    with suppress(ValueError):  # shapes are public
        search.fit(np.full((400, 2), 2.5), np.ones(400, dtype=int))
    assert abs(getattr(search, "best_score_", 0.0)) < 5  # noise of scale 3 on 80 right answers, as a share of 80


# -- PATE -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", ["values", "ones"])
def test_f2_weights_of_one_record_move_one_teacher(labels):
    """A weight that changes from 1 to 1.1 must not change how all other teachers are trained."""
    rows, marks = RNG.normal(size=(600, 2)), RNG.integers(0, 2, size=600)
    public = RNG.normal(size=(100, 2))
    teachers = BaggingClassifier(DecisionTreeClassifier(max_depth=3), n_estimators=2, max_samples=0.5)
    pate = PATEClassifier(teachers, n_teachers=30, epsilon=1.0, n_queries=50, random_state=0)
    weights = np.ones(600) if labels == "ones" else np.full(600, 2.0)
    other = weights.copy()
    other[0] = 1.1
    tables = []
    for given in (weights, other):
        fitted = clone(pate).fit(rows, marks, public=public, sample_weight=given)
        tables.append(fitted.teacher_votes(public))
    moved = np.abs(tables[0] - tables[1])
    assert moved.max() <= 1  # one vote for one class less, and for another one more
    assert np.linalg.norm(moved) <= np.sqrt(2 * len(public))
    assert fitted.privacy_.epsilon == 1.0


def test_f2_zero_weights_and_replaced_rows_move_one_teacher():
    rows, marks = RNG.normal(size=(600, 2)), RNG.integers(0, 2, size=600)
    public = RNG.normal(size=(100, 2))
    pate = PATEClassifier(
        DecisionTreeClassifier(max_depth=3, random_state=0),
        n_teachers=30,
        n_queries=50,
        class_weight="balanced",
        random_state=0,
        classes=[0, 1],
    )
    base = clone(pate).fit(rows, marks, public=public, sample_weight=np.ones(600)).teacher_votes(public)
    for weight, value, mark in ((0.0, rows[0], marks[0]), (1e6, rows[0], marks[0]), (5.0, [9.0, -9.0], 1 - marks[0])):
        weights, changed, changed_marks = np.ones(600), rows.copy(), marks.copy()
        weights[0], changed[0], changed_marks[0] = weight, value, mark
        moved = clone(pate).fit(changed, changed_marks, public=public, sample_weight=weights).teacher_votes(public)
        assert np.abs(moved - base).sum(axis=1).max() <= 2


# -- FEDERATE ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("channel", ["laplace", "codes"])
@pytest.mark.parametrize("kind", ["centred", "batch normalised", "remembering"])
def test_encoder_of_a_stranger_that_mixes_rows(kind, channel):
    torch = pytest.importorskip("torch")

    class Centred(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 3)
            self.seen = None

        def forward(self, X):
            hidden = self.layer(X)
            if kind == "remembering" and not self.training:
                self.seen = hidden.detach()[:1] if self.seen is None else self.seen
                return hidden * 0 + self.seen
            return hidden - hidden.mean(dim=0, keepdim=True) * (0.5 if self.training else 1.0)

    if kind == "batch normalised":
        encoder = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3, track_running_stats=False))
    else:
        encoder = Centred()
    model = FederateClassifier(
        4.0, channel=channel, adversary_weight=0, batch_size=50, max_epochs=1, encoder=encoder, random_state=0
    )
    if kind == "batch normalised":  # it cannot do without a batch
        with pytest.raises(ValueError, match="encoder must encode records one at a time"):
            model.fit(ROWS, LABELS)
        return
    model.fit(ROWS, LABELS)
    record = np.array([0.1, 0.3])
    high, low = (np.vstack([[value, 0.0], record, *[[value, 0.0]] * 5]) for value in (5.0, -5.0))
    for part in (model, model.split()[0]):
        assert np.array_equal(part._values(high)[1], part._values(low)[1])
