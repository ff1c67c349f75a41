"""The guarantee of a pipeline: steps that break it are named, and steps that keep it pass."""

import itertools
import math

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import NMF
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

from skfairdp import (
    FederateClassifier,
    LaplacePrivatizer,
    OMEEncoder,
    PATEClassifier,
    PrivacyLedger,
    PrivateScaler,
    PublicScaler,
    audit_epsilon,
    pipeline_guarantee,
)
from skfairdp.datasets import make_biased_classification
from skfairdp.exceptions import BudgetExceededError
from skfairdp.pipeline import make_private_pipeline

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
Y = (X[:, 0] > 0).astype(int)
BOUNDS = (-4, 4)


def centre_on_the_batch(X):
    return X - np.asarray(X).mean(axis=0)


class Bare:
    """A transformer that has only the methods of scikit-learn: no tags, no parameters."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X

    def __sklearn_is_fitted__(self):
        return True


class Foreign(TransformerMixin, BaseEstimator):
    """Somebody else's transformer, which learns nothing and may or may not keep rows apart."""

    def __init__(self, mixes=False):
        self.mixes = mixes

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return centre_on_the_batch(X) if self.mixes else np.tanh(X)


# -- the attack: a row is seen through the other rows -----------------------------------------------------------------


def seen_through_other_rows(make):
    """Audit what the releases of bystanders tell of a row of the same table; nobody looks at that row's own release."""
    seeds = itertools.count()
    bystanders = np.array([[1.0, 1.0]] * 200 + [[-5.0, -5.0]] * 40)

    def release(rows):
        table = np.vstack([rows, bystanders])
        return np.asarray(make(next(seeds)).fit_transform(table))[1:201].reshape(1, -1)

    def points_up(outputs):
        return outputs.sum(axis=1)

    pair = [0.0, 0.0], [1e6, 1e6]
    return audit_epsilon(release, *pair, claimed=0.5, n_trials=300, rows_per_call=1, score=points_up, random_state=0)


def test_a_scaler_fitted_on_the_released_rows_tells_of_them():
    audit = seen_through_other_rows(
        lambda seed: make_pipeline(StandardScaler(), LaplacePrivatizer(0.5, random_state=seed))
    )
    assert audit.epsilon_lower > 2.0
    assert audit.contradicts
    broken = make_pipeline(StandardScaler(), LaplacePrivatizer(0.5)).fit(X)
    guarantee = pipeline_guarantee(broken, rows="fitted")
    assert guarantee.epsilon == math.inf
    assert "standardscaler was fitted on the same rows" in str(guarantee)
    assert pipeline_guarantee(broken, rows="new").epsilon == 0.5


def test_public_bounds_tell_nothing_of_other_rows():
    audit = seen_through_other_rows(
        lambda seed: make_pipeline(PublicScaler(BOUNDS), LaplacePrivatizer(0.5, random_state=seed))
    )
    assert not audit.contradicts


def test_learned_statistics_of_bits_are_named():
    encoder = OMEEncoder(8.0).fit(X)
    assert pipeline_guarantee(encoder, rows="fitted").epsilon == math.inf
    assert pipeline_guarantee(encoder, rows="new").epsilon == pytest.approx(8.0)
    with PrivacyLedger() as ledger:
        encoder.transform(X)
        assert ledger.total().epsilon == pytest.approx(8.0)
        OMEEncoder(8.0).fit_transform(X)
        assert ledger.total().epsilon == math.inf
    assert pipeline_guarantee(OMEEncoder(8.0, standardize=(0, 1)).fit(X)).epsilon == pytest.approx(8.0)


# -- steps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        PublicScaler(BOUNDS),
        FrozenEstimator(StandardScaler().fit(RNG.normal(size=(20, 2)))),
        Normalizer(),
        SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
        FunctionTransformer(np.tanh),
        "passthrough",
        None,
        make_pipeline(Normalizer(), PublicScaler(BOUNDS)),
        make_union(Normalizer(), PublicScaler(BOUNDS)),
        ColumnTransformer([("a", PublicScaler(BOUNDS), [0])], remainder="passthrough"),
    ],
    ids=lambda step: type(step).__name__,
)
def test_steps_that_learn_nothing_from_the_rows_pass(step):
    pipeline = Pipeline([("first", step), ("noise", LaplacePrivatizer(1.0)), ("last", LogisticRegression())])
    assert pipeline_guarantee(pipeline.fit(X, Y)).epsilon == 1.0


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (StandardScaler(), "first was fitted on the same rows"),
        (SimpleImputer(), "the mean of every column"),
        (FunctionTransformer(centre_on_the_batch), "first may mix records"),
        (Foreign(), "first was fitted on the same rows"),
        (Bare(), "first was fitted on the same rows"),
        (make_pipeline(Normalizer(), StandardScaler()), "standardscaler was fitted on the same rows"),
        (ColumnTransformer([("scaled", StandardScaler(), [0])], remainder="passthrough"), "scaled was fitted"),
        (FeatureUnion([("a", Normalizer()), ("b", StandardScaler())]), "b was fitted on the same rows"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_steps_that_tell_of_the_rows_are_named(step, reason):
    pipeline = Pipeline([("first", step), ("noise", LaplacePrivatizer(1.0)), ("last", LogisticRegression())])
    guarantee = pipeline_guarantee(pipeline.fit(X, Y), rows="fitted")
    assert guarantee.epsilon == math.inf
    assert reason in guarantee.does_not_cover[0]


@pytest.mark.parametrize("mixes", [False, True])
def test_steps_of_others_need_the_word_of_the_user(mixes):
    pipeline = make_pipeline(Foreign(mixes), LaplacePrivatizer(1.0)).fit(X)
    assert pipeline_guarantee(pipeline, rows="new").epsilon == math.inf
    vouched = pipeline_guarantee(pipeline, rows="new", row_wise=["foreign"])
    assert vouched.epsilon == 1.0
    assert any("word that 'foreign' treats" in sentence for sentence in vouched.does_not_cover)


def test_categories_must_be_given():
    colours = pd.DataFrame({"colour": ["red", "blue"] * 20})
    for encoder, epsilon in (
        (OneHotEncoder(sparse_output=False), math.inf),
        (OneHotEncoder(categories=[["blue", "red"]], sparse_output=False), 1.0),
    ):
        pipeline = make_pipeline(encoder, LaplacePrivatizer(1.0)).fit(colours)
        assert pipeline_guarantee(pipeline, rows="fitted").epsilon == epsilon


def test_what_stands_behind_the_noise_costs_nothing():
    pipeline = make_pipeline(PublicScaler(BOUNDS), LaplacePrivatizer(1.0), StandardScaler(), LogisticRegression())
    assert pipeline_guarantee(pipeline.fit(X, Y)).epsilon == 1.0
    labelled = make_pipeline(LaplacePrivatizer(1.0), LogisticRegression()).fit(X, Y)
    assert any("Labels y" in sentence for sentence in pipeline_guarantee(labelled).does_not_cover)


def test_smaller_epsilon_needs_rows_kept_apart():
    apart = make_pipeline(LaplacePrivatizer(8.0), Normalizer(), LaplacePrivatizer(0.3)).fit(X)
    assert pipeline_guarantee(apart).epsilon == 0.3
    between = make_pipeline(LaplacePrivatizer(8.0), StandardScaler(), LaplacePrivatizer(0.3)).fit(X)
    assert pipeline_guarantee(between, rows="fitted").epsilon == 8.0  # the scaler carries rows over to other rows
    assert pipeline_guarantee(between, rows="new").epsilon == 0.3
    paid = make_pipeline(LaplacePrivatizer(8.0), PrivateScaler(0.5, bounds=BOUNDS), LaplacePrivatizer(0.3)).fit(X)
    assert pipeline_guarantee(paid, rows="fitted").epsilon == 8.0
    learned = make_pipeline(LaplacePrivatizer(8.0), OMEEncoder(0.3)).fit(X)
    assert pipeline_guarantee(learned, rows="fitted").epsilon == 8.0


TABLE = pd.DataFrame(np.where(RNG.random((60, 2)) < 0.2, np.nan, RNG.integers(0, 5, (60, 2))), columns=["a", "b"])


@pytest.mark.parametrize(
    "function",
    [
        lambda d: d.fillna(d.mean()),
        lambda d: d.ffill().fillna(0.0),
        lambda d: d.assign(a=d.a.map(d.a.value_counts())).fillna(0.0),
        lambda d: d.assign(b=d.groupby("a").b.transform("mean")).fillna(0.0),
        lambda d: (d * (30 / max(30, np.nanmax(np.abs(d.to_numpy()))))).fillna(0.0),
    ],
    ids=["fill by mean", "fill forwards", "frequencies", "group means", "shrink by maximum"],
)
def test_mixing_functions_are_found(function):
    pipeline = make_pipeline(FunctionTransformer(function), LaplacePrivatizer(1.0)).fit(TABLE)
    assert pipeline_guarantee(pipeline, rows="new").epsilon == math.inf


def test_looking_at_a_pipeline_evaluates_nothing():
    private = LaplacePrivatizer(1.0).fit(X)
    with PrivacyLedger() as ledger:
        asked = make_pipeline(FunctionTransformer(private.transform), LaplacePrivatizer(1.0)).fit(X)
        spent = len(ledger)
        assert pipeline_guarantee(asked).epsilon == math.inf
        assert len(ledger) == spent


@pytest.mark.parametrize(
    "step",
    [
        FrozenEstimator(make_pipeline(FunctionTransformer(centre_on_the_batch)).fit(X)),
        FrozenEstimator(ColumnTransformer([("m", FunctionTransformer(centre_on_the_batch), [0, 1])]).fit(X)),
        FrozenEstimator(NMF(2, init="random", tol=0.1).fit(np.abs(X))),
    ],
    ids=["pipeline", "columns", "NMF"],
)
def test_freezing_does_not_hide_mixing(step):
    pipeline = Pipeline([("frozen", step), ("noise", LaplacePrivatizer(1.0))]).fit(np.abs(X))
    assert pipeline_guarantee(pipeline, rows="new").epsilon == math.inf


def test_a_frozen_model_was_trained_on_other_rows():
    network = FederateClassifier(2.0, adversary_weight=0, max_epochs=1).fit(X, Y)
    assert pipeline_guarantee(FrozenEstimator(network)).epsilon == 2.0


def test_columns_chosen_by_looking_at_the_rows_are_named():
    frame = pd.DataFrame(X, columns=["a", "b"])

    def large(table):
        return list(table.columns[table.max() > -100])

    chosen = ColumnTransformer([("noise", LaplacePrivatizer(1.0), large)]).fit(frame)
    assert pipeline_guarantee(chosen, rows="fitted").epsilon == math.inf
    by_type = ColumnTransformer([("noise", LaplacePrivatizer(1.0), make_column_selector(dtype_include="number"))])
    # One gap in one record changes the dtype of a column, and with it the width of all output.
    assert pipeline_guarantee(by_type.fit(frame), rows="fitted").epsilon == math.inf
    assert pipeline_guarantee(by_type, rows="new").epsilon == 1.0


def test_public_rows_must_be_other_rows():
    with pytest.raises(ValueError, match="public holds the same rows as X"):
        PublicScaler().fit(X, public=X[:])
    with pytest.raises(ValueError, match="public"):
        PATEClassifier(LogisticRegression()).fit(X, Y, public=X)
    scaled = make_pipeline(PublicScaler(BOUNDS), LaplacePrivatizer(1.0)).fit(X)
    assert any("The bounds of 'publicscaler'" in line for line in pipeline_guarantee(scaled).does_not_cover)


def test_prices_of_steps_that_read_the_same_rows_add_up():
    pipeline = make_pipeline(PrivateScaler(0.5, bounds=BOUNDS), LaplacePrivatizer(2.0)).fit(X)
    assert pipeline_guarantee(pipeline, rows="fitted").epsilon == 2.5
    assert pipeline_guarantee(pipeline, rows="new").epsilon == 2.0
    union = make_union(LaplacePrivatizer(1.0), LaplacePrivatizer(2.0, norm="l2")).fit(X)
    assert pipeline_guarantee(union).epsilon == 3.0


def test_columns_beside_the_noise_are_not_private():
    half = ColumnTransformer([("noise", LaplacePrivatizer(1.0), [0])], remainder="passthrough").fit(X)
    assert pipeline_guarantee(half).epsilon == math.inf
    whole = ColumnTransformer([("noise", LaplacePrivatizer(1.0), [0, 1])]).fit(X)
    assert pipeline_guarantee(whole).epsilon == 1.0


def test_models_that_are_not_private_say_so():
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    for rows in ("fitted", "new"):
        guarantee = pipeline_guarantee(plain, rows=rows)
        assert (guarantee.epsilon, guarantee.mechanism) == (math.inf, "none")
    assert pipeline_guarantee(Bare(), rows="new").mechanism == "none"
    network = FederateClassifier(2.0, adversary_weight=0, max_epochs=1).fit(X, Y)
    assert pipeline_guarantee(network, rows="fitted").epsilon == math.inf  # it was trained on them
    assert pipeline_guarantee(network, rows="new").epsilon == 2.0


def test_arguments_are_named():
    with pytest.raises(ValueError, match=r"^rows\b"):
        pipeline_guarantee(LaplacePrivatizer().fit(X), rows="old")
    with pytest.raises(sklearn.exceptions.NotFittedError):
        pipeline_guarantee(make_pipeline(LaplacePrivatizer()))


# -- the ledger sees the program --------------------------------------------------------------------------------------


def programs(tmp_path):
    noise = LaplacePrivatizer(0.5)
    return {
        "plain": make_private_pipeline(StandardScaler(), noise),
        "with a memory": make_private_pipeline(StandardScaler(), noise, memory=str(tmp_path)),
        "nested": make_private_pipeline(StandardScaler(), make_pipeline(Normalizer(), noise)),
        "in columns": make_private_pipeline(StandardScaler(), ColumnTransformer([("noise", noise, [0, 1])])),
        "before a model": make_private_pipeline(StandardScaler(), noise, LogisticRegression()),
    }


@pytest.mark.parametrize("name", ["plain", "with a memory", "nested", "in columns", "before a model"])
def test_ledger_charges_infinity_for_a_fitted_scaler(name, tmp_path):
    pipeline = programs(tmp_path)[name]
    with PrivacyLedger() as ledger:
        pipeline.fit(X, Y)
        if hasattr(pipeline, "predict"):
            assert "pipeline" in ledger.entries["mechanism"][0]
        else:
            pipeline.fit_transform(X)
    assert ledger.total().epsilon == math.inf
    with (
        PrivacyLedger(budget=1.0),
        pytest.raises(BudgetExceededError, match="pipeline"),
    ):
        pipeline.fit_transform(X, Y) if not hasattr(pipeline, "predict") else pipeline.fit(X, Y)


def test_ledger_charges_epsilon_without_learning():
    pipeline = make_pipeline(PublicScaler(BOUNDS), LaplacePrivatizer(0.5), StandardScaler(), LaplacePrivatizer(0.25))
    with PrivacyLedger() as ledger:
        pipeline.fit_transform(X)
    assert ledger.total().epsilon == 0.75  # two releases; what stands between them saw noisy rows only
    fitted = make_private_pipeline(StandardScaler(), LaplacePrivatizer(0.5), rows="new").fit(X)
    with PrivacyLedger() as ledger:
        fitted.transform(RNG.normal(size=(5, 2)))  # rows that the scaler has not seen
    assert ledger.total().epsilon == 0.5


@pytest.mark.parametrize("backend", [pytest.param("loky", marks=pytest.mark.slow), "threading"])
@pytest.mark.parametrize("union", ["FeatureUnion", "ColumnTransformer"])
def test_workers_are_charged_for_earlier_steps(backend, union):
    parts = [("a", LaplacePrivatizer(1.0)), ("b", LaplacePrivatizer(1.0, norm="l2"))]
    if union == "FeatureUnion":
        step = FeatureUnion(parts, n_jobs=2)
    else:
        step = ColumnTransformer([(name, part, [0, 1]) for name, part in parts], n_jobs=2)
    with joblib.parallel_config(backend=backend):
        with PrivacyLedger() as ledger:
            make_private_pipeline(StandardScaler(), step).fit_transform(X)
        assert ledger.total().epsilon == math.inf
        assert len(ledger) == 3
        with PrivacyLedger() as ledger:
            make_private_pipeline(PublicScaler(BOUNDS), step).fit_transform(X)
        assert ledger.total().epsilon == 2.0


def test_a_search_is_charged_for_what_its_pipelines_learn():
    pipeline = make_private_pipeline(StandardScaler(), LaplacePrivatizer(5.0), LogisticRegression())
    with PrivacyLedger() as ledger:
        GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert ledger.total().epsilon == math.inf


# -- PATE: private rows, and public rows that pass the same steps -----------------------------------------------------


@pytest.fixture(scope="module")
def people():
    data = make_biased_classification(n_samples=3000, n_features=4, random_state=0)
    rows = data.data * np.array([1.0, 100.0, 0.01, 10.0]) + 50.0
    return rows[:2000], data.target[:2000], rows[2000:2500], rows[2500:], data.target[2500:]


def pate(**params):
    return PATEClassifier(LogisticRegression(), n_teachers=20, epsilon=8.0, **params)


def test_public_rows_that_skip_the_preparation_are_refused(people):
    rows, y, public, _, _ = people
    pipeline = make_private_pipeline(StandardScaler(), pate())
    with PrivacyLedger() as ledger:
        with pytest.raises(
            ValueError, match=r"public would reach 'pateclassifier' as it came.*transform_input=\['public'\]"
        ):
            pipeline.fit(rows, y, pateclassifier__public=public)
        assert len(ledger) == 0


def test_public_rows_pass_the_steps_by_transform_input(people):
    rows, y, public, test, y_test = people
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = FrozenEstimator(StandardScaler().fit(public))
        model = pate(random_state=0).set_fit_request(public=True)
        pipeline = Pipeline([("scaler", scaler), ("pate", model)], transform_input=["public"])
        with PrivacyLedger(delta=1e-5) as ledger:
            pipeline.fit(rows, y, public=public)
    straight = pate(random_state=0).fit(scaler.transform(rows), y, public=scaler.transform(public))
    assert pipeline.score(test, y_test) == straight.score(scaler.transform(test), y_test) > 0.7
    assert ledger.total().epsilon == pytest.approx(8.0)
    guarantee = pipeline_guarantee(pipeline, rows="fitted")
    assert guarantee.epsilon == 8.0
    assert any("'scaler' was fitted on before it was frozen" in sentence for sentence in guarantee.does_not_cover)
    assert pipeline_guarantee(pipeline, rows="new").epsilon == math.inf  # PATE protects the rows of fit


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning")
def test_a_scaler_fitted_on_private_rows_undoes_pate(people):
    rows, y, *_ = people
    with PrivacyLedger() as ledger:
        pipeline = make_private_pipeline(StandardScaler(), pate()).fit(rows, y)
    assert pipeline_guarantee(pipeline, rows="fitted").epsilon == math.inf
    assert ledger.total().epsilon == math.inf
