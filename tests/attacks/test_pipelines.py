"""Programs that try to lose more than the receipt of their pipeline says."""

import math

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from skfairdp import (
    LaplacePrivatizer,
    PrivacyLedger,
    PrivatePipeline,
    PrivateScaler,
    PublicScaler,
    WordDropout,
    pipeline_guarantee,
)
from skfairdp.accounting import compose
from skfairdp.exceptions import BudgetExceededError
from skfairdp.pipeline import make_private_pipeline, word_guarantee
from tests.attacks._certify import certify
from tests.attacks._strangers import (
    Alarm,
    CentredPipeline,
    FirstRow,
    FirstRowPrivatePipeline,
    FirstRowPrivatizer,
    LearningFunction,
    OwnFitTransform,
    Remembering,
    Shared,
)

#: Two data sets that differ in the first record alone.
ROWS = np.where(np.arange(200) % 2, 1.0, -1.0)[:, None]
NEIGHBOUR = np.vstack([[1.0], ROWS[1:]])
LABELS = np.arange(200) % 2


def noise(epsilon=1.0):
    return LaplacePrivatizer(epsilon, norm="clip")


def certified_release(make, *, n=60, columns=slice(0, 1)):
    """Certify fit_transform of a pipeline whose fault copies the first record, or a part of it, to all others."""

    def program(rows):
        return make().fit_transform(rows)[:, columns].mean()

    return certify(program, NEIGHBOUR, ROWS, lambda mean: mean > 0, n)


def claims(make, rows=ROWS):
    """Return what the receipt of a fitted pipeline says, and what the ledger has charged for fit_transform."""
    pipeline = make()
    with PrivacyLedger() as ledger:
        pipeline.fit_transform(rows)
    return pipeline.training_privacy_.epsilon, ledger.total().epsilon


# -- steps that mix their rows ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: PrivatePipeline([("mix", FirstRow()), ("noise", noise())]),
        lambda: PrivatePipeline([("mix", OwnFitTransform()), ("noise", noise())]),
        lambda: PrivatePipeline([("mix", FrozenEstimator(FirstRow().fit(ROWS))), ("noise", noise())]),
        lambda: PrivatePipeline([("mix", FeatureUnion([("a", FirstRow())])), ("noise", noise())]),
        lambda: PrivatePipeline([("mix", ColumnTransformer([("a", FirstRow(), [0])])), ("noise", noise())]),
        lambda: PrivatePipeline([("mix", ColumnTransformer([], remainder=FirstRow())), ("noise", noise())]),
        lambda: PrivatePipeline([("in", PrivatePipeline([("mix", FirstRow()), ("noise", noise())]))]),
        lambda: PrivatePipeline([("in", make_pipeline(FirstRow(), noise()))]),
        lambda: PrivatePipeline([("in", FeatureUnion([("a", make_pipeline(FirstRow(), noise()))]))]),
        lambda: PrivatePipeline([("in", CentredPipeline([("copy", FirstRow())])), ("noise", noise())]),
        pytest.param(
            lambda: PrivatePipeline([("in", PrivateScaler(1.0, bounds=(-1, 1))), ("mix", FirstRow()), ("n", noise())]),
            id="behind a private scaler",
        ),
        pytest.param(
            lambda: PrivatePipeline(
                [
                    ("half", FeatureUnion([("raw", "passthrough"), ("noise", noise(50.0))])),
                    ("mix", FirstRow()),
                    ("noise", noise()),
                ]
            ),
            id="behind an open branch",
        ),
        pytest.param(
            lambda: PrivatePipeline([("dear", noise(8.0)), ("mix", FirstRow()), ("cheap", noise())]),
            id="between two privatizers",
        ),
        pytest.param(
            lambda: PrivatePipeline([("mix", Remembering()), ("noise", noise())]),
            id="state not pickled",
        ),
        pytest.param(
            lambda: PrivatePipeline([("mix", Shared()), ("noise", noise())]),
            id="copy is the same object",
        ),
        pytest.param(lambda: FirstRowPrivatePipeline([("noise", noise())]), id="subclass of PrivatePipeline"),
        pytest.param(
            lambda: PrivatePipeline([("noise", FirstRowPrivatizer(1.0, norm="clip"))]),
            id="subclass of noise",
        ),
    ],
)
def test_step_that_mixes_rows(make):
    receipt, charged = claims(make)
    certified = certified_release(make)
    assert certified <= receipt
    assert certified <= charged


def test_alarm_of_one_record_reaches_the_next_record():
    """The state that a record leaves is used up by the next one, so that none is left in the end."""
    seen = {}
    for name, first in (("quiet", 0.0), ("loud", 1.0)):
        rows = np.array([[0.0], [first], [0.0], [0.0]])
        pipeline = PrivatePipeline([("mix", Alarm()), ("noise", noise(1e6))])
        assert pipeline.fit(rows).privacy_.epsilon == 1e6
        seen[name] = pipeline.transform(rows)[2, 0].round()
    assert seen["quiet"] == seen["loud"]


def test_learned_maximum_behind_tags_that_deny_it():
    """The subclass of a stateless transformer inherits its tags, and learns all the same."""

    def make():
        return PrivatePipeline([("learn", LearningFunction()), ("noise", noise())])

    low, high = np.zeros((200, 1)), np.zeros((200, 1))
    high[0, 0] = 2.0
    certified = certify(lambda rows: make().fit_transform(rows)[:, 0].mean(), low, high, lambda mean: mean > -0.5)
    receipt, charged = claims(make)
    assert certified <= receipt
    assert certified <= charged


def test_f3_function_that_mixes_realistic_values_only():
    """Ages between 25 and 64 are counted: random numbers never are."""
    function = FunctionTransformer(lambda X: X + np.mean((X[:, :1] >= 25) & (X[:, :1] <= 64)))
    young, old = np.full((50, 1), 30.0), np.full((50, 1), 30.0)
    old[0] = 70.0
    plain = make_pipeline(function, LaplacePrivatizer(0.5, norm="clip")).fit(young)
    assert pipeline_guarantee(plain).epsilon == math.inf
    private = PrivatePipeline([("f", function), ("noise", LaplacePrivatizer(1e9, norm="clip"))]).fit(young)
    assert np.allclose(private.transform(young)[1:], private.transform(old)[1:], atol=1e-5)


@pytest.mark.parametrize("kind", ["pipeline", "union", "columns", "leaf", "frozen"])
def test_method_replaced_on_the_instance(kind):
    step = {
        "pipeline": lambda: make_pipeline(FunctionTransformer()),
        "union": lambda: FeatureUnion([("a", FunctionTransformer())]),
        "columns": lambda: ColumnTransformer([("a", FunctionTransformer(), [0])]),
        "leaf": FunctionTransformer,
        "frozen": lambda: FrozenEstimator(FunctionTransformer().fit(ROWS)),
    }[kind]()
    plain = Pipeline([("step", step), ("noise", noise())]).fit(ROWS)
    step.transform = lambda X: np.tile(np.asarray(X)[:1], (len(X), 1))
    moved = not np.array_equal(plain[:1].transform(ROWS)[1:], plain[:1].transform(NEIGHBOUR)[1:])
    assert moved
    assert pipeline_guarantee(plain, rows="new").epsilon == math.inf


def test_method_replaced_on_a_privatizer():
    pipeline = PrivatePipeline([("noise", noise())]).fit(ROWS)
    step = pipeline.named_steps["noise"]
    release = step.transform
    step.transform = lambda X: release(np.tile(X[:1], (len(X), 1)))
    certified = certify(lambda X: pipeline.transform(X)[:, 0].mean(), NEIGHBOUR, ROWS, lambda mean: mean > 0)
    assert certified <= pipeline.privacy_.epsilon


def test_imputer_that_multiplies_only_the_records_with_gaps():
    """A tie between two donors falls by the last digit, which depends on how many records have a gap."""
    rng = np.random.default_rng(0)
    moved = 0
    for _ in range(50):
        middle, step = rng.normal(size=(2, 17))
        donors = np.vstack([[*(middle + step), -1.0], [*(middle - step), 1.0]])
        rows = np.vstack([[*middle, np.nan], np.zeros((19, 18))])
        neighbour = rows.copy()
        neighbour[15, 3] = np.nan
        plain = Pipeline([("fill", FrozenEstimator(KNNImputer(n_neighbors=1).fit(donors))), ("noise", noise())])
        moved += not np.array_equal(plain[:1].transform(rows)[0], plain[:1].transform(neighbour)[0])
    assert moved == 0 or pipeline_guarantee(plain.fit(rows), rows="new").epsilon == math.inf


# -- vouching ---------------------------------------------------------------------------------------------------------


def test_word_for_one_step_is_not_taken_for_another_of_the_same_name():
    """make_pipeline names steps after their class: the name of an outer step is that of inner ones."""

    def make():
        return make_private_pipeline(
            FunctionTransformer(lambda X: 1.0 * X),
            make_pipeline(FunctionTransformer(lambda X: np.tile(X[:1], (len(X), 1))), noise()),
            row_wise=["functiontransformer"],
        )

    receipt, _ = claims(make)
    assert certified_release(make) <= receipt


def test_word_for_a_composite_is_repeated_by_the_receipt():
    pipeline = PrivatePipeline([("union", FeatureUnion([("a", FirstRow())])), ("noise", noise())], row_wise=["union"])
    pipeline.fit_transform(ROWS)
    assert pipeline.privacy_.epsilon == math.inf or any("union" in said for said in pipeline.privacy_.does_not_cover)


# -- what fit learns, and what is drawn in it -------------------------------------------------------------------------

_LAST_STEPS = {
    "pipeline": lambda: make_pipeline(noise(), LogisticRegression()),
    "nested": lambda: make_pipeline(make_pipeline(noise(), FunctionTransformer()), LogisticRegression()),
    "bagging": lambda: BaggingClassifier(make_pipeline(noise(), LogisticRegression()), n_estimators=2),
    "voting": lambda: VotingClassifier([("a", make_pipeline(noise(), LogisticRegression()))]),
    "search": lambda: GridSearchCV(
        make_pipeline(noise(), LogisticRegression()), {"logisticregression__C": [1.0]}, cv=2
    ),
}


@pytest.mark.parametrize(
    "last",
    [name if "pipeline" in name or "nested" in name else pytest.param(name) for name in _LAST_STEPS],
)
def test_scaler_in_front_of_a_last_step_that_draws_in_fit(last):
    """The scaler has learned from the rows; that the noise is drawn inside the last step does not help."""
    pipeline = PrivatePipeline([("scale", StandardScaler()), ("model", _LAST_STEPS[last]())])
    rng = np.random.default_rng(0)
    with PrivacyLedger() as ledger:
        pipeline.fit(rng.normal(size=(200, 1)), LABELS)
    assert pipeline.training_privacy_.epsilon == math.inf
    assert ledger.total().epsilon == math.inf


@pytest.mark.slow
def test_maximum_that_a_last_step_sees_costs_what_is_certified():
    """One record moves all others by the maximum that was learned, and the last step sees them all."""

    class Mean(LogisticRegression):
        def fit(self, X, y):
            self.mean_ = X[:, 0].mean()
            return super().fit(X, y)

    def program(rows):
        model = PrivatePipeline([("scale", MinMaxScaler()), ("model", make_pipeline(noise(), Mean()))])
        return model.fit(rows, LABELS)[-1][-1].mean_

    rows = np.ones((200, 1))
    rows[::2] = 0.0
    outlier = rows.copy()
    outlier[0] = 50.0
    certified = certify(program, rows, outlier, lambda mean: mean > 0.25, 40)
    with PrivacyLedger() as ledger:
        program(rows)
    assert certified <= ledger.total().epsilon


def test_open_branch_in_front_of_a_private_scaler():
    """Raw columns leave fit_transform; a scaler behind them that protects its own statistics does not change that."""
    noisy_half = ColumnTransformer([("noise", noise(), [0])], remainder="passthrough")
    pipeline = PrivatePipeline([("half", noisy_half), ("scale", PrivateScaler(1.0, bounds=(-9, 9)))])
    rows = np.random.default_rng(0).uniform(-1, 1, size=(50, 2))
    with PrivacyLedger() as ledger:
        released = pipeline.fit_transform(rows)
    assert abs(np.corrcoef(released[:, 1], rows[:, 1])[0, 1]) > 1 - 1e-12  # the raw column is there
    assert pipeline.training_privacy_.epsilon == math.inf
    assert ledger.total().epsilon == math.inf


@pytest.mark.parametrize(
    "branch",
    [
        FeatureUnion([("noise", noise()), ("raw", "passthrough")]),
        ColumnTransformer([("noise", noise(), [0])], remainder="passthrough"),
        FeatureUnion([("a", FeatureUnion([("noise", noise()), ("raw", FunctionTransformer())]))]),
    ],
)
def test_open_branch(branch):
    pipeline, wide = PrivatePipeline([("branch", branch)]), np.zeros((10, 2))
    with PrivacyLedger(budget=5.0), pytest.raises(BudgetExceededError, match="refused"):
        pipeline.fit_transform(wide)
    assert claims(lambda: PrivatePipeline([("branch", clone(branch))]), wide) == (math.inf, math.inf)


@pytest.mark.parametrize("kind", [Pipeline, PrivatePipeline])
def test_f7_columns_chosen_by_a_gap(kind):
    """One gap makes a column of floats of a column of integers, and changes the width of everybody's output."""
    table = pd.DataFrame({"a": np.arange(40), "b": np.arange(40)})
    gap = table.astype({"b": float})
    gap.loc[0, "b"] = np.nan

    def make():
        chosen = ColumnTransformer([("ints", "passthrough", make_column_selector(dtype_include="int64"))])
        return kind([("columns", chosen), ("noise", LaplacePrivatizer(0.5))])

    assert make().fit_transform(table).shape != make().fit_transform(gap).shape  # certified: infinity
    assert pipeline_guarantee(make().fit(table), rows="fitted").epsilon == math.inf
    nested = kind([("union", FeatureUnion([("in", make()[:1])])), ("noise", LaplacePrivatizer(0.5))])
    assert pipeline_guarantee(nested.fit(table), rows="fitted").epsilon == math.inf
    if kind is PrivatePipeline:
        with PrivacyLedger() as ledger:
            make().fit_transform(table)
        assert ledger.total().epsilon == math.inf


def test_slices_and_parameters_that_change_keep_the_reasons():
    pipeline = PrivatePipeline([("scale", StandardScaler()), ("mix", FirstRow()), ("noise", noise())])
    rows = np.random.default_rng(0).normal(size=(30, 1))
    pipeline.fit(rows)
    with PrivacyLedger() as ledger:
        pipeline[:].transform(rows)
    assert ledger.total().epsilon == math.inf
    shorter = pipeline[1:]
    shorter.set_params(mix=FirstRow().fit(rows))
    a, b = (
        PrivatePipeline([*shorter.steps[:1], ("noise", noise(1e9).fit(rows))]).transform(x) for x in (ROWS, NEIGHBOUR)
    )
    assert np.allclose(a[1:], b[1:], atol=1e-5)
    pipeline.set_params(noise__epsilon=0.1)
    assert pipeline.privacy_.epsilon == 1.0


def test_rows_of_different_width_are_an_error():
    ragged = FunctionTransformer(lambda X: np.zeros((len(X), 1 + int(np.asarray(X)[0, 0]))))
    with PrivacyLedger() as ledger, pytest.raises(ValueError, match="one form"):
        PrivatePipeline([("ragged", ragged), ("noise", noise())]).fit_transform(np.arange(3.0)[:, None])
    assert ledger.total().epsilon == 0


def test_rows_that_reach_a_later_step_by_transform_input():
    """What is passed along goes through the same steps: row by row, with noise, and at a price."""

    class Model(LogisticRegression):
        def fit(self, X, y, X_val=None):
            self.seen_ = X_val
            return super().fit(X, y)

    def fit(rows, *steps, epsilon=1.0):
        model = Model().set_fit_request(X_val=True)
        pipeline = PrivatePipeline([*steps, ("noise", noise(epsilon)), ("model", model)], transform_input=["X_val"])
        with PrivacyLedger() as ledger:
            pipeline.fit(ROWS, LABELS, X_val=rows)
        return pipeline.named_steps["model"].seen_, ledger.total().epsilon

    with sklearn.config_context(enable_metadata_routing=True):
        assert fit(ROWS, ("scale", StandardScaler()))[1] == math.inf
        assert fit(ROWS, ("scale", PublicScaler(bounds=(-1, 1))))[1] == 2.0
        (a, _), (b, _) = (fit(rows, ("mix", FirstRow()), epsilon=1e9) for rows in (ROWS, NEIGHBOUR))
    assert np.allclose(a[1:], b[1:], atol=1e-5)


# -- masks of words ---------------------------------------------------------------------------------------------------

DOCUMENTS = ["alpha beta gamma delta epsilon zeta eta theta iota kappa lambda omicron"] * 3


def _masking(kind, folder, **mask):
    read = HashingVectorizer(n_features=256, alternate_sign=False)
    return kind([("mask", WordDropout(0.5, **mask)), ("read", read), ("noise", noise(1e6))], memory=folder)


@pytest.mark.parametrize("kind", [Pipeline, PrivatePipeline])
def test_f8_cached_mask(kind, tmp_path):
    """One mask that serves several releases amplifies none of them."""
    pipeline = _masking(kind, str(tmp_path))
    first, second = pipeline.fit_transform(DOCUMENTS), clone(pipeline).fit_transform(DOCUMENTS)
    same = np.allclose(first, second, atol=0.02)
    assert not same or word_guarantee(pipeline.fit(DOCUMENTS), rows="fitted").epsilon == math.inf


@pytest.mark.parametrize("wrap", ["pipeline", "union"])
def test_nested_mask_is_not_cached_under_a_word_guarantee(wrap, tmp_path):
    inner = make_pipeline(WordDropout(0.5), HashingVectorizer(n_features=256, alternate_sign=False))
    step = inner if wrap == "pipeline" else FeatureUnion([("a", inner)])
    pipeline = PrivatePipeline([("in", step), ("noise", noise(1e6))], memory=str(tmp_path)).fit(DOCUMENTS)
    with pytest.raises(ValueError, match="WordDropout"):
        word_guarantee(pipeline)


def test_masks_from_one_seed_do_not_compose():
    first, second = (_masking(Pipeline, None, random_state=0).fit(DOCUMENTS) for _ in range(2))
    assert np.allclose(first.transform(DOCUMENTS), second.transform(DOCUMENTS), atol=0.02)
    assert compose([word_guarantee(first), word_guarantee(second)]).epsilon == math.inf
