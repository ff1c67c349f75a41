"""A PrivatePipeline knows the price of the whole program, and charges it before anything is drawn."""

import math
import os
import pickle
import tempfile

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skfairdp
from skfairdp import (
    LaplacePrivatizer,
    PATEClassifier,
    PrivacyLedger,
    PrivateScaler,
    PublicScaler,
    WordDropout,
    pipeline_guarantee,
)
from skfairdp.accounting import compose
from skfairdp.exceptions import BudgetExceededError
from skfairdp.pipeline import PrivatePipeline, make_private_pipeline

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
PUBLIC = PublicScaler(bounds=(-5, 5))


def private(*steps, **settings):
    return make_private_pipeline(*steps, **settings)


def charged(call):
    """What a call is charged: the composed receipt, and the number of charges."""
    with PrivacyLedger() as ledger:
        call()
    return ledger.total().epsilon, len(ledger)


class Centred(TransformerMixin, BaseEstimator):
    """Learns nothing, and mixes the rows of its batch."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X - X.mean(axis=0)


# -- charges ----------------------------------------------------------------------------------------------------------


def test_charges_of_one_call_compose_to_its_receipt():
    """The theorem: fit and fit_transform cost the training price, later calls the larger of the two."""
    pipelines = [
        private(PUBLIC, LaplacePrivatizer(1.0)),
        private(StandardScaler(), LaplacePrivatizer(1.0)),
        private(LaplacePrivatizer(1.0), StandardScaler()),
        private(LaplacePrivatizer(1.0), LaplacePrivatizer(0.5)),
        private(PrivateScaler(0.5, bounds=(-5, 5)), LaplacePrivatizer(1.0)),
        private(FeatureUnion([("a", LaplacePrivatizer(1.0)), ("b", LaplacePrivatizer(2.0))])),
        private(ColumnTransformer([("a", LaplacePrivatizer(1.0), [0])], remainder="passthrough")),
        private(Pipeline([("inner", Pipeline([("scale", StandardScaler()), ("noise", LaplacePrivatizer(1.0))]))])),
    ]
    for pipeline in pipelines:
        spent, _ = charged(lambda pipeline=pipeline: pipeline.fit_transform(X))
        # Noise behind noise makes the whole cheaper than its steps, and the ledger has every step.
        assert spent >= pipeline.training_privacy_.epsilon
        if "laplaceprivatizer-2" not in pipeline.named_steps:
            assert spent == pipeline.training_privacy_.epsilon
        later, _ = charged(lambda pipeline=pipeline: pipeline.transform(X))
        larger = max(pipeline.privacy_.epsilon, pipeline.training_privacy_.epsilon)
        assert later >= larger or "privatescaler" in pipeline.named_steps


def test_prices_of_a_learned_scaler():
    pipeline = private(StandardScaler(), LaplacePrivatizer(1.0), rows="new").fit(X)
    assert pipeline.privacy_.epsilon == 1.0
    assert pipeline.training_privacy_.epsilon == math.inf
    assert "standardscaler was fitted on the same rows" in pipeline.training_privacy_.does_not_cover[0]
    assert charged(lambda: pipeline.transform(X + 1)) == (1.0, 1)
    assert charged(lambda: private(StandardScaler(), LaplacePrivatizer(1.0)).fit(X).transform(X)) == (math.inf, 2)


def test_fit_of_a_privatizer_draws_nothing_and_is_free():
    assert charged(lambda: private(StandardScaler(), LaplacePrivatizer(1.0)).fit(X)) == (0.0, 0)
    assert charged(lambda: private(StandardScaler(), LaplacePrivatizer(1.0), LogisticRegression()).fit(X, Y)) == (
        math.inf,
        2,
    )


def test_budget_refuses_before_anything_is_drawn():
    pipeline = private(StandardScaler(), LaplacePrivatizer(1.0))
    with PrivacyLedger(budget=10.0) as ledger, pytest.raises(BudgetExceededError, match="pipeline"):
        pipeline.fit_transform(X)
    assert len(ledger) == 0
    assert not hasattr(pipeline[0], "mean_")


def test_plain_pipeline_charges_what_its_steps_state():
    """The same two steps, in a pipeline or on two lines: one price, however they are spelled."""
    together, _ = charged(lambda: make_pipeline(StandardScaler(), LaplacePrivatizer(1.0)).fit_transform(X))
    apart, _ = charged(lambda: LaplacePrivatizer(1.0).fit_transform(StandardScaler().fit_transform(X)))
    assert together == apart == 1.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # five teachers under noise teach little
def test_models_that_protect_their_training_rows():
    pipeline = private(PUBLIC, PATEClassifier(n_teachers=5, epsilon=4.0))
    with pytest.warns(skfairdp.exceptions.PrivacyLeakWarning, match="public"):
        spent, n_charges = charged(lambda: pipeline.fit(X, Y))
    assert (spent, n_charges) == (pipeline.training_privacy_.epsilon, 1)
    assert charged(lambda: pipeline.predict(X)) == (0.0, 0)
    broken = private(StandardScaler(), PATEClassifier(n_teachers=5, epsilon=4.0))
    with pytest.warns(skfairdp.exceptions.PrivacyLeakWarning, match="public"):
        assert charged(lambda: broken.fit(X, Y))[0] == math.inf


MODELS = [
    lambda model, n_jobs: BaggingClassifier(model, n_estimators=2, n_jobs=n_jobs, random_state=0),
    lambda model, n_jobs: VotingClassifier([("a", model), ("b", clone(model))], n_jobs=n_jobs),
    lambda model, n_jobs: OneVsRestClassifier(model, n_jobs=n_jobs),
]


@pytest.mark.parametrize("make", MODELS, ids=["bagging", "voting", "one-vs-rest"])
@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_price_is_the_same_in_threads_and_workers(make, backend):
    """With n_jobs=2 the same program was once charged 1.0 or 1.5 instead of infinity."""
    y = np.arange(len(X)) % 3
    for first, wanted in ((PUBLIC, 3.0), (StandardScaler(), math.inf)):
        model = private(first, LaplacePrivatizer(1.0), LogisticRegression())
        with joblib.parallel_config(backend):
            serial, _ = charged(lambda model=model: make(model, 1).fit(X, y))
            parallel, _ = charged(lambda model=model: make(model, 2).fit(X, y))
        assert serial == parallel <= wanted
        assert math.isinf(serial) == math.isinf(wanted)


# -- steps of others --------------------------------------------------------------------------------------------------


def test_unknown_step_is_called_one_row_at_a_time():
    noise = LaplacePrivatizer(1e6, norm="clip", radius=10.0)
    pipeline = private(Centred(), noise).fit(X)
    assert pipeline.privacy_.epsilon == pytest.approx(1e6)
    first = pipeline.transform(X)
    # The mean of one row is that row: nothing of other rows is left.
    np.testing.assert_allclose(first, 0.0, atol=0.01)
    vouched = private(Centred(), noise, row_wise=["centred"]).fit(X)
    np.testing.assert_allclose(vouched.transform(X), X - X.mean(axis=0), atol=0.01)
    assert any("centred" in sentence for sentence in vouched.privacy_.does_not_cover)
    # The planted fault: a plain pipeline calls it on the batch, so that no epsilon holds.
    plain = make_pipeline(Centred(), noise).fit(X)
    assert pipeline_guarantee(plain, rows="new").epsilon == math.inf
    assert pipeline_guarantee(plain, rows="new", row_wise=["centred"]).epsilon == pytest.approx(1e6)


@pytest.mark.parametrize(
    "function",
    [
        lambda X: X - X.mean(axis=0),
        # Mixes rows for realistic values only; a trial on synthetic rows let it pass.
        lambda X: np.where(((X > 25) & (X < 64)).sum() > 1, X + 1, X),
        np.sort,
    ],
)
def test_functions_are_never_trusted(function):
    plain = make_pipeline(FunctionTransformer(function), LaplacePrivatizer(1.0)).fit(X)
    assert pipeline_guarantee(plain).epsilon == math.inf
    own = private(FunctionTransformer(function), LaplacePrivatizer(1.0)).fit(X)
    assert own.privacy_.epsilon == 1.0


def test_bad_row_wise_and_rows_are_named():
    with pytest.raises(ValueError, match="row_wise"):
        private(Centred(), LaplacePrivatizer(), row_wise=["nothing"]).fit(X)
    with pytest.raises(ValueError, match="row_wise"):
        private(Centred(), LaplacePrivatizer(), row_wise="centred").fit(X)
    with pytest.raises(ValueError, match="rows"):
        private(LaplacePrivatizer(), rows="old").fit(X)
    with pytest.raises(ValueError, match="rows must be 'new' or 'fitted'"):
        pipeline_guarantee(private(StandardScaler(), LaplacePrivatizer()).fit(X))


def test_columns_that_rows_choose():
    """One gap in one record changes the dtype of a column, and with it the width of everybody's output."""
    frame = pd.DataFrame(X, columns=list("abc"))
    chosen = ColumnTransformer([("a", LaplacePrivatizer(1.0), make_column_selector(dtype_include="number"))])
    pipeline = private(chosen).fit(frame)
    assert pipeline.training_privacy_.epsilon == math.inf
    assert charged(lambda: private(clone(chosen)).fit_transform(frame))[0] == math.inf


# -- scikit-learn -----------------------------------------------------------------------------------------------------


def test_importing_changes_nothing_outside(tmp_path):
    code = (
        "import os, sys, tempfile\n"
        "from sklearn.pipeline import Pipeline\n"
        "before = dict(Pipeline.__dict__), dict(os.environ), sorted(os.listdir(tempfile.gettempdir()))\n"
        "import skfairdp, skfairdp.dp, skfairdp.pipeline, skfairdp.preprocessing, skfairdp.ensemble\n"
        "from multiprocessing.reduction import ForkingPickler\n"
        "assert not any(kind.__module__.startswith('skfairdp') for kind in ForkingPickler._extra_reducers)\n"
        "after = dict(Pipeline.__dict__), dict(os.environ), sorted(os.listdir(tempfile.gettempdir()))\n"
        "assert before == after\n"
    )
    import subprocess
    import sys

    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert os.listdir(tmp_path) == []


def test_clones_searches_and_nested_parameters():
    pipeline = private(PUBLIC, LaplacePrivatizer(1.0), LogisticRegression(), rows="new", row_wise=["publicscaler"])
    copy = clone(pipeline)
    assert (copy.rows, copy.row_wise) == ("new", ["publicscaler"])
    grid = {"laplaceprivatizer__epsilon": [1.0, 2.0], "logisticregression__C": [0.1, 1.0]}
    found = GridSearchCV(pipeline, grid, cv=2).fit(X, Y)
    assert found.best_estimator_.privacy_.epsilon == found.best_params_["laplaceprivatizer__epsilon"]
    loaded = pickle.loads(pickle.dumps(found.best_estimator_))
    assert loaded.privacy_.epsilon == found.best_estimator_.privacy_.epsilon


def test_slices_keep_what_the_user_stated():
    pipeline = private(Centred(), LaplacePrivatizer(1.0), LogisticRegression(), rows="new", row_wise=["centred"])
    part = pipeline.fit(X, Y)[:-1]
    assert isinstance(part, PrivatePipeline)
    assert (part.rows, list(part.row_wise)) == ("new", ["centred"])
    assert part.privacy_.epsilon == 1.0
    assert pipeline["laplaceprivatizer"] is pipeline[1]


def test_methods_are_those_of_the_last_step():
    pipeline = private(PUBLIC, LaplacePrivatizer(1.0), LogisticRegression()).fit(X, Y)
    assert hasattr(pipeline, "predict_proba")
    assert not hasattr(pipeline, "transform")
    assert not hasattr(pipeline, "fit_predict")
    assert pipeline.predict(X).shape == (60,)
    assert pipeline.predict_proba(X).shape == (60, 2)
    assert 0 <= pipeline.score(X, Y) <= 1
    assert charged(lambda: pipeline.score(X, Y)) == (1.0, 1)
    assert "LaplacePrivatizer" in repr(pipeline)


def test_set_output_names_columns():
    frame = pd.DataFrame(X, columns=list("abc"))
    pipeline = private(PUBLIC, LaplacePrivatizer(1.0)).set_output(transform="pandas")
    assert list(pipeline.fit_transform(frame).columns) == list("abc")
    by_row = private(Centred(), LaplacePrivatizer(1.0)).fit(frame)
    assert by_row.transform(frame).shape == (60, 3)


def test_routing_passes_public_rows_through_the_steps():
    public = X + 0.5
    with sklearn.config_context(enable_metadata_routing=True):
        pate = PATEClassifier(n_teachers=5, epsilon=8.0).set_fit_request(public=True)
        scaler = clone(PUBLIC).set_fit_request(public=False)
        pipeline = private(scaler, pate, transform_input=["public"]).fit(X, Y, public=public)
    assert pipeline.predict(X).shape == (60,)


def test_memory_never_caches_a_step_that_draws():
    """A cached mask would serve several releases: three word guarantees said 4.30, and 4.53 was certified."""
    texts = np.array(["a good film", "a very long book", "nothing new here"] * 5, dtype=object)
    with tempfile.TemporaryDirectory() as folder:
        from sklearn.feature_extraction.text import HashingVectorizer

        pipeline = private(WordDropout(0.5), HashingVectorizer(n_features=8), LaplacePrivatizer(1.0), memory=folder)
        drawn = []
        with pytest.MonkeyPatch.context() as patch:
            real = WordDropout.transform
            patch.setattr(WordDropout, "transform", lambda self, X: drawn.append(len(X)) or real(self, X))
            for _ in range(2):
                pipeline.fit_transform(texts)
        assert len(drawn) == 2
        plain = Pipeline(pipeline.steps, memory=folder)
        assert skfairdp.pipeline.word_guarantee(plain).epsilon == math.inf
        assert skfairdp.pipeline.word_guarantee(pipeline).epsilon < 1.0


def test_smaller_price_of_two_private_steps():
    pipeline = private(LaplacePrivatizer(2.0), LaplacePrivatizer(0.5)).fit(X)
    assert pipeline.privacy_.epsilon == 0.5
    assert charged(lambda: pipeline.transform(X)) == (2.5, 2)
    union = private(FeatureUnion([("a", LaplacePrivatizer(1.0)), ("b", LaplacePrivatizer(2.0))])).fit(X)
    parts = [step.privacy_ for _, step in union[0].transformer_list]
    assert union.privacy_.epsilon == compose(parts).epsilon == 3.0


def test_subclass_of_a_stranger_is_not_looked_into():
    class Shuffled(Pipeline):
        def transform(self, X):
            return super().transform(X[::-1])

    inner = Shuffled([("noise", LaplacePrivatizer(1.0))]).fit(X)
    assert pipeline_guarantee(inner, rows="new").epsilon == math.inf
