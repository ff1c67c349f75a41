"""Estimators that treat each record alone: the table is true, other code is found, rows can be passed one by one."""

import importlib
import pickle
import sys
import types
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import NMF, PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import RFE, SelectKBest, f_classif
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, PairwiseKernel, WhiteKernel
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, RANSACRegressor
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC

import skfairdp
from skfairdp import _row_wise
from skfairdp._row_wise import RowByRow, call_row_by_row, evaluate_rows, learns_from_rows, why_rows_mix

N = 24
RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 2.0, size=(N, 4))
Y = np.tile([0, 1, 2], N // 3)
BINARY = (X[:, 0] > np.median(X[:, 0])).astype(int)
DOCUMENTS = np.array(
    [" ".join(RNG.choice(["red", "green", "blue", "grey"], 1 + i % 5)) for i in range(N)], dtype=object
)
RECORDS = [{"a": float(x[0]), "b": "even" if i % 2 else "odd"} for i, x in enumerate(X)]

#: Estimators that need more than their defaults, by class: made here, the rows they read, and their target.
SETTINGS = {
    "SelectKBest": {"k": 2},
    "GenericUnivariateSelect": {"mode": "k_best", "param": 2},
    "SelectFromModel": {"estimator": LogisticRegression()},
    "SequentialFeatureSelector": {"estimator": LogisticRegression(), "n_features_to_select": 2, "cv": 2},
    "RFE": {"estimator": LogisticRegression()},
    "LogisticRegressionCV": {"Cs": 2, "cv": 2},
    "RFECV": {"estimator": LogisticRegression(), "cv": 2},
    "KernelPCA": {"kernel": "rbf"},
    "GaussianRandomProjection": {"n_components": 2},
    "SparseRandomProjection": {"n_components": 2},
    "Nystroem": {"n_components": 5},
    "LatentDirichletAllocation": {"n_components": 2, "max_iter": 2},
    "KMeans": {"n_clusters": 3},
    "MiniBatchKMeans": {"n_clusters": 3, "batch_size": 256},
    "PLSSVD": {"n_components": 1},
    "CCA": {"n_components": 1},
    "PLSCanonical": {"n_components": 1},
    "QuantileTransformer": {"n_quantiles": 10},
    "KBinsDiscretizer": {"n_bins": 3},
    "TargetEncoder": {"cv": 2},
    "IsolationForest": {"n_estimators": 5},
    "RandomForestClassifier": {"n_estimators": 5},
    "RandomForestRegressor": {"n_estimators": 5},
    "ExtraTreesClassifier": {"n_estimators": 5},
    "ExtraTreesRegressor": {"n_estimators": 5},
    "RandomTreesEmbedding": {"n_estimators": 5},
    "HistGradientBoostingClassifier": {"max_iter": 3, "min_samples_leaf": 2},
    "HistGradientBoostingRegressor": {"max_iter": 3, "min_samples_leaf": 2},
    "MLPClassifier": {"max_iter": 5},
    "MLPRegressor": {"max_iter": 5},
    "TheilSenRegressor": {"max_subpopulation": 20},
    "NuSVC": {"nu": 0.2},
    "SGDClassifier": {"loss": "modified_huber"},
    "GaussianProcessRegressor": {"alpha": 0.1},  # a smaller one makes weights that magnify rounding to 1e-7
    "HashingVectorizer": {"n_features": 16},
    "FeatureHasher": {"n_features": 16},
    "SkewedChi2Sampler": {"skewedness": 0.01},
}


def _leaves():
    found = {}
    for package, methods, classes in _row_wise._ROW_WISE:
        if package.startswith("sklearn") and methods != "__call__":
            for name in classes.split():
                if not name.startswith("_"):
                    found.setdefault((package, name), []).extend(methods.split())
    return [pytest.param(*key, methods, id=key[1]) for key, methods in found.items()]


def _data(name):
    if name in ("CountVectorizer", "HashingVectorizer", "TfidfVectorizer"):
        return DOCUMENTS
    if name in ("DictVectorizer", "FeatureHasher"):
        return RECORDS
    if name in ("TfidfTransformer", "OneHotEncoder", "OrdinalEncoder", "TargetEncoder", "LatentDirichletAllocation"):
        return np.round(3 * X)
    if name == "KernelCenterer":
        return X @ X.T
    if name == "CategoricalNB":
        return np.round(X)
    if name in ("SimpleImputer", "KNNImputer", "MissingIndicator"):
        return np.where(RNG.random(X.shape) < 0.3, np.nan, X)
    return X[:, :1] if name == "IsotonicRegression" else X


def _fitted(cls, rows):
    name = cls.__name__
    estimator = cls(**SETTINGS.get(name, {}))
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    chooses = name.startswith(("Select", "Generic", "RFE", "Sequential", "Neighb", "Target"))
    target = Y if chooses or issubclass(cls, ClassifierMixin) else X[:, :2] if "MultiTask" in name else X[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations
        return estimator.fit(rows, target)


def _values(found):
    if isinstance(found, list):  # several outputs
        found = np.hstack(found)
    return found.toarray() if sparse.issparse(found) else np.asarray(found)


def _take(rows, chosen):
    return [rows[i] for i in chosen] if isinstance(rows, list) else rows[chosen]


def check_rows_apart(estimator, method, rows, rtol=1e-9):
    """Alone, and among other rows that are repeated or extreme, a row must have the output that it has in the batch."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        whole = _values(getattr(estimator, method)(rows))
        assert len(whole) == len(rows)
        for i in range(0, len(rows), 8):
            batches = [_take(rows, [i]), _take(rows, [i] + [(i + 1) % len(rows)] * 6)]
            if isinstance(rows, np.ndarray) and rows.dtype == float:
                batches.append(np.vstack([rows[i : i + 1], 1e3 * np.nan_to_num(rows[1:5], nan=1.0)]))
            for batch in batches:
                try:
                    found = _values(getattr(estimator, method)(batch))
                except (
                    ValueError,
                    IndexError,
                ):  # unknown categories, values beyond bounds: refused, which is no output
                    assert batch is batches[-1]
                    continue
                if whole.dtype.kind in "OU":
                    assert np.array_equal(found[0], whole[i])
                else:
                    np.testing.assert_allclose(found[0], whole[i], rtol=rtol, atol=1e-11)


@pytest.mark.parametrize(("package", "name", "methods"), _leaves())
def test_table_is_true(package, name, methods):
    """What the table says of a class of scikit-learn holds on random rows, whatever the other rows are."""
    rows = _data(name)
    estimator = _fitted(getattr(importlib.import_module(package), name), rows)
    for method in methods:
        if hasattr(estimator, method):  # entries of the table share their methods
            assert why_rows_mix(clone(estimator), method) is None
            assert why_rows_mix(estimator, method) is None
            check_rows_apart(estimator, method, estimator.transform(rows) if method == "inverse_transform" else rows)


def test_table_names_exist():
    """A class that scikit-learn drops or moves must not stay in the table unseen."""
    pytest.importorskip("torch")
    for package, _, classes in _row_wise._ROW_WISE:
        if package.startswith(("sklearn", "scipy", "torch")):
            module = importlib.import_module(package)
            assert not [name for name in classes.split() if not hasattr(module, name)]
    for package, _, classes, _ in _row_wise._META:
        module = importlib.import_module(package)
        assert not [name for name in classes.split() if not hasattr(module, name)]


def test_table_is_exact_about_type():
    class Scaler(StandardScaler):
        def transform(self, X, copy=None):
            return X - X.mean(axis=0)

    assert "Scaler.transform is not known" in why_rows_mix(Scaler().fit(X))
    Scaler.__name__, Scaler.__module__ = "StandardScaler", "sklearn.preprocessing._data"
    assert "StandardScaler.transform is not known" in why_rows_mix(Scaler().fit(X))


def test_boosted_trees_are_known_by_their_package(monkeypatch):
    """xgboost, lightgbm and catboost: known where the package exports the very class, and only there."""

    class XGBClassifier(BaseEstimator):
        def __init__(self, objective=None):
            self.objective = objective

    assert "not known" in why_rows_mix(XGBClassifier(), "predict")
    XGBClassifier.__module__ = "xgboost.sklearn"
    assert "not known" in why_rows_mix(XGBClassifier(), "predict")
    package = types.ModuleType("xgboost")
    package.XGBClassifier = XGBClassifier
    monkeypatch.setitem(sys.modules, "xgboost", package)
    assert why_rows_mix(XGBClassifier(), "predict_proba") is None
    assert "runs a function" in why_rows_mix(XGBClassifier(lambda y, p: (p, y)), "predict")
    assert "not known" in why_rows_mix(XGBClassifier(), "transform")


# -- planted faults ---------------------------------------------------------------------------------------------------


class MeanFiller(TransformerMixin, BaseEstimator):
    """Fills gaps by the mean of the batch."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return np.where(np.isnan(X), np.nanmean(X, axis=0), X)


def mean_filling(classifier=None):
    return make_pipeline(MeanFiller(), LogisticRegression() if classifier is None else classifier)


METAS = {
    "plain": lambda model: model,
    "voting": lambda model: VotingClassifier([("a", LogisticRegression()), ("b", model)], voting="soft"),
    "stacking": lambda model: StackingClassifier([("a", model)], cv=2),
    "stacking on top": lambda model: StackingClassifier([("a", LogisticRegression())], model, cv=2),
    "search": lambda model: GridSearchCV(model, {}, cv=2),
    "halving": lambda model: HalvingGridSearchCV(model, {}, cv=2),
    "calibrated": lambda model: CalibratedClassifierCV(model, cv=2),
    "calibrated isotonic": lambda model: CalibratedClassifierCV(model, cv=2, method="isotonic", ensemble=False),
    "frozen": lambda model: FrozenEstimator(model.fit(X, BINARY)),
    "frozen and calibrated": lambda model: CalibratedClassifierCV(FrozenEstimator(model.fit(X, BINARY)), cv=2),
    "bagging": lambda model: BaggingClassifier(model, 2),
    "one vs rest": OneVsRestClassifier,
    "one vs one": OneVsOneClassifier,
    "output code": lambda model: OutputCodeClassifier(model, random_state=0),
    "self training": SelfTrainingClassifier,
    "fixed threshold": FixedThresholdClassifier,
    "tuned threshold": lambda model: TunedThresholdClassifierCV(model, cv=2),
    "recursive": lambda model: RFE(model, importance_getter=lambda fitted: np.arange(fitted[-1].n_features_in_)),
    "in two": lambda model: VotingClassifier([("a", GridSearchCV(CalibratedClassifierCV(model, cv=2), {}, cv=2))]),
}


@pytest.mark.parametrize("kind", METAS)
def test_meta_estimators_are_looked_into(kind):
    """A step that fills gaps by the mean of the batch is found in every estimator around it, fitted or not (F4)."""
    for step, expected in ((MeanFiller(), "MeanFiller.transform is not known"), (StandardScaler(), None)):
        meta = METAS[kind](make_pipeline(step, LogisticRegression()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # y without unlabelled rows
            fitted = clone(meta).fit(X, BINARY)
        for model in (meta, fitted):
            for method in ("predict", "predict_proba"):
                if hasattr(model, method):
                    reason = why_rows_mix(model, method)
                    assert reason is None if expected is None else expected in reason, (model, method, reason)
        if expected is None:
            check_rows_apart(fitted, "predict", X)


def test_meta_estimators_of_several_outputs():
    targets = np.column_stack([BINARY, Y > 0])
    for meta in (MultiOutputClassifier, ClassifierChain):
        known = meta(LogisticRegression()).fit(X, targets)
        assert why_rows_mix(known, "predict") is None
        check_rows_apart(known, "predict", X)
        assert "MeanFiller" in why_rows_mix(meta(mean_filling()).fit(X, targets), "predict")


def test_meta_estimators_of_numbers():
    class Centring(RegressorMixin, BaseEstimator):
        def fit(self, X, y, sample_weight=None):
            return self

        def predict(self, X):
            return X[:, 0] - X[:, 0].mean()

    numbers = X[:, 1]
    metas = [
        lambda model: VotingRegressor([("a", model)]),
        lambda model: StackingRegressor([("a", model)], cv=2),
        lambda model: RANSACRegressor(model, random_state=0, min_samples=0.5, residual_threshold=9.0),
        lambda model: TransformedTargetRegressor(model),
        lambda model: GradientBoostingRegressor(init=model, n_estimators=2),
    ]
    for meta in metas:
        for model in (meta(LinearRegression()), clone(meta(LinearRegression())).fit(X, numbers)):
            assert why_rows_mix(model, "predict") is None
        # Boosting passes rows on in single precision, in which the sums of its first model are rounded.
        check_rows_apart(model, "predict", X, rtol=1e-6)
        for model in (meta(Centring()), clone(meta(Centring())).fit(X, numbers)):
            assert "Centring.predict" in why_rows_mix(model, "predict")
    for model in (AdaBoostClassifier(n_estimators=2), GradientBoostingClassifier(n_estimators=2)):
        assert why_rows_mix(model, "predict") is None
        check_rows_apart(model.fit(X, Y), "predict_proba", X)


def test_transformed_target_runs_its_inverse():
    known = TransformedTargetRegressor(LinearRegression(), func=np.log, inverse_func=np.exp)
    ranks = TransformedTargetRegressor(
        LinearRegression(), func=lambda y: y, inverse_func=lambda y: y - y.mean(), check_inverse=False
    )
    for model in (known, clone(known).fit(X, X[:, 1])):
        assert why_rows_mix(model, "predict") is None
    for model in (ranks, clone(ranks).fit(X, X[:, 1])):
        assert "runs a function" in why_rows_mix(model, "predict")


def test_column_transformer_by_its_columns():
    known = ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", "passthrough", [2])], remainder=PCA(1))
    assert why_rows_mix(known) is None
    assert why_rows_mix(known.fit(X)) is None
    check_rows_apart(known, "transform", X)
    assert "MeanFiller" in why_rows_mix(ColumnTransformer([("a", MeanFiller(), [0])]))
    assert "MeanFiller" in why_rows_mix(ColumnTransformer([("a", MeanFiller(), [0])]).fit(X))
    assert "MeanFiller" in why_rows_mix(ColumnTransformer([("a", "drop", [0])], remainder=MeanFiller()))


def test_column_selector_learns_from_rows():
    """One gap turns a column of integers into one of floats, and all records change their width (F7)."""
    by_dtype = ColumnTransformer([("a", "passthrough", make_column_selector(dtype_include=np.int64))])
    table = pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, 3]})
    with_gap = table.astype({"b": object}).replace({"b": {3: None}}).convert_dtypes().astype({"a": int, "b": float})
    assert clone(by_dtype).fit_transform(table).shape != clone(by_dtype).fit_transform(with_gap).shape
    assert "chooses its columns" in why_rows_mix(by_dtype)
    assert "chooses its columns" in why_rows_mix(make_pipeline(by_dtype, StandardScaler()))
    assert "chooses its columns" in learns_from_rows(make_pipeline(by_dtype))
    fitted = by_dtype.fit(table)
    assert why_rows_mix(fitted) is None  # its columns are fixed now
    assert "chooses its columns" in learns_from_rows(fitted)


@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (KNeighborsClassifier(metric=lambda a, b: abs(a - b).sum()), "predict"),
        (KNeighborsClassifier(weights=lambda distances: distances), "predict"),
        (SVC(kernel=lambda a, b: a @ b.T), "predict"),
        (CountVectorizer(analyzer=lambda text: text.split()), "transform"),
        (CountVectorizer(preprocessor=str.strip), "transform"),
        (FunctionTransformer(lambda X: X), "transform"),
        (FunctionTransformer(np.cumsum), "transform"),
        (FunctionTransformer(np.add.accumulate), "transform"),
        (FunctionTransformer(np.log1p, kw_args={"where": X > 1}), "transform"),
        (FunctionTransformer(np.frompyfunc(lambda x: x, 1, 1)), "transform"),
        (GaussianProcessRegressor(PairwiseKernel()), "predict"),
    ],
)
def test_functions_make_a_class_unknown(estimator, method):
    assert "runs a function" in why_rows_mix(estimator, method)


@pytest.mark.parametrize(
    ("estimator", "method"),
    [
        (OneHotEncoder(dtype=np.float64), "transform"),
        (CountVectorizer(dtype=np.int64), "transform"),
        (FunctionTransformer(), "transform"),
        (FunctionTransformer(np.log1p, np.expm1), "transform"),
        (SelectKBest(f_classif), "transform"),
        (GaussianProcessClassifier(2.0 * RBF() + WhiteKernel()), "predict"),
        (FeatureUnion([("a", PCA()), ("b", "passthrough")]), "transform"),
        (Pipeline([("a", None), ("b", "passthrough")]), "transform"),
        (GridSearchCV(LogisticRegression(), {}, scoring=lambda model, X, y: 1.0), "predict"),
    ],
)
def test_dtypes_and_functions_of_fit_are_harmless(estimator, method):
    assert why_rows_mix(estimator, method) is None


def test_shadowed_method_makes_an_instance_unknown():
    scaler = StandardScaler().fit(X)
    scaler.transform = lambda rows: rows - rows.mean(axis=0)
    assert "StandardScaler.transform was replaced" in why_rows_mix(scaler)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, BINARY)
    pipeline.predict_proba = lambda rows: rows
    assert "Pipeline.predict_proba was replaced" in why_rows_mix(pipeline, "predict_proba")


def test_factorisation_and_iterative_imputer_mix_rows():
    """Two classes of scikit-learn whose transform is a function of the whole batch."""
    nmf = NMF(2, solver="mu", max_iter=1000, random_state=0).fit(X)
    other = X[:2].copy()
    other[1] = 100 * other[1] ** 3
    assert np.abs(nmf.transform(X[:2])[0] - nmf.transform(other)[0]).max() > 1e-9
    assert "solves for all records together" in why_rows_mix(nmf)
    related = X[:, :1] + 0.1 * X
    gaps = np.where(RNG.random(X.shape) < 0.2, np.nan, related)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imputer = IterativeImputer(max_iter=3, random_state=0).fit(gaps)
    empty, half = np.full(4, np.nan), np.array([2.0, np.nan, 2.0, 2.0])
    alone, in_company = imputer.transform(np.array([empty, empty]))[0], imputer.transform(np.array([empty, half]))[0]
    assert np.abs(alone - in_company).max() > 1e-6
    assert "IterativeImputer.transform" in why_rows_mix(imputer)


def test_parts_without_fit_are_looked_into():
    """What an estimator runs need not be an estimator: it must not be passed over."""

    class Part:
        def predict(self, X):
            return X[:, 0] - X[:, 0].mean()

    model = VotingRegressor([("a", LinearRegression())]).fit(X, X[:, 0])
    model.estimators_[0] = Part()
    assert "Part.predict" in why_rows_mix(model, "predict")
    model.estimators_[0] = lambda rows: rows
    assert "not known" in why_rows_mix(model, "predict")


def test_reason_names_the_place():
    model = VotingClassifier([("a", Pipeline([("fill", MeanFiller()), ("model", LogisticRegression())]))])
    assert why_rows_mix(model, "predict") == (
        "MeanFiller.transform is not known to treat each record alone (in step fill of Pipeline, in step a of "
        "VotingClassifier)"
    )


# -- networks ---------------------------------------------------------------------------------------------------------


def test_networks_of_known_layers():
    nn = pytest.importorskip("torch").nn
    known = nn.Sequential(
        nn.Linear(4, 6), nn.LayerNorm(6), nn.ReLU(), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.GLU(), nn.Softmax(dim=1)
    ).eval()
    assert why_rows_mix(known) is None
    rows = X.astype(np.float32)
    run = FunctionTransformer(lambda batch: known(batch_of(batch)).detach().numpy().astype(float))

    def batch_of(batch):
        return importlib.import_module("torch").tensor(batch)

    whole = run.transform(rows)
    np.testing.assert_allclose([run.transform(rows[i : i + 1])[0] for i in range(N)], whole, atol=1e-6)

    class Centred(nn.Module):
        def forward(self, x):
            return x - x.mean(dim=0)

    class Wide(nn.Linear):
        pass

    mixing = [
        Centred(),
        Wide(4, 4),
        nn.BatchNorm1d(4, track_running_stats=False),
        nn.LayerNorm((N, 4)),
        nn.Softmax(dim=0),
        nn.Softmax(),
        nn.Flatten(0),
        nn.LSTM(4, 4),
        nn.Conv1d(4, 4, 1),
        nn.TransformerEncoderLayer(4, 2),
        nn.Embedding(3, 4, max_norm=1.0),
    ]
    for layer in mixing:
        reason = why_rows_mix(nn.Sequential(nn.Linear(4, 4), nn.Sequential(layer)))
        assert type(layer).__name__ in reason
    hooked = nn.Sequential(nn.Linear(4, 4))
    hooked[0].register_forward_hook(lambda module, args, out: out - out.mean(dim=0))
    assert "forward hook" in why_rows_mix(hooked)
    replaced = nn.Sequential(nn.Linear(4, 4))
    replaced[0].forward = lambda x: x - x.mean(dim=0)
    assert "was replaced" in why_rows_mix(replaced)


def test_networks_of_skfairdp():
    torch = pytest.importorskip("torch")
    from skfairdp.neural import BagOfEmbeddings, TabularEncoder, column_statistics

    encoder = TabularEncoder(column_statistics(X.astype(np.float32), BINARY), (5,), 2).eval()
    assert why_rows_mix(encoder) is None
    bag = BagOfEmbeddings(5, 3, (4,)).eval()
    assert why_rows_mix(bag) is None
    with torch.no_grad():
        whole = encoder(torch.tensor(X, dtype=torch.float32))
        alone = torch.cat([encoder(row[None]) for row in torch.tensor(X, dtype=torch.float32)])
    assert torch.allclose(whole, alone, atol=1e-6)

    class Centred(torch.nn.Module):
        def forward(self, x):
            return x - x.mean(dim=0)

    encoder.linear = Centred()
    assert "Centred" in why_rows_mix(encoder)

    class Changed(BagOfEmbeddings):
        pass

    assert "Changed" in why_rows_mix(Changed(5, 3))


@pytest.mark.slow  # imports transformers
def test_networks_of_transformers():
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    bert = transformers.BertModel(transformers.BertConfig(vocab_size=8, **sizes)).eval()
    assert why_rows_mix(bert) is None
    bert.encoder.layer[0].output.dense.register_forward_hook(lambda module, args, out: out)
    assert "forward hook" in why_rows_mix(bert)


def test_skorch_nets_by_their_module():
    torch, skorch = pytest.importorskip("torch"), pytest.importorskip("skorch")
    rows = X.astype(np.float32)

    def net(*layers, **params):
        module = torch.nn.Sequential(torch.nn.Linear(4, 3), *layers)
        params = {"criterion": torch.nn.CrossEntropyLoss, "max_epochs": 1, "verbose": 0, "train_split": None} | params
        return skorch.NeuralNetClassifier(module, **params)

    fitted = net(torch.nn.BatchNorm1d(3)).fit(rows, Y.astype(np.int64))
    for model in (net(), fitted, make_pipeline(StandardScaler(), net())):
        assert why_rows_mix(model, "predict_proba") is None
    np.testing.assert_allclose(call_row_by_row(fitted, "predict_proba", rows), fitted.predict_proba(rows), atol=1e-6)
    without_statistics = net(torch.nn.BatchNorm1d(3, track_running_stats=False))
    assert "BatchNorm1d keeps no running" in why_rows_mix(without_statistics, "predict")
    assert "iterator_valid__shuffle" in why_rows_mix(net(iterator_valid__shuffle=True), "predict")
    assert "predict_nonlinearity" in why_rows_mix(net(predict_nonlinearity=lambda out: out), "predict")
    assert "made in fit" in why_rows_mix(skorch.NeuralNetClassifier(torch.nn.Linear), "predict")


# -- estimators of skfairdp -------------------------------------------------------------------------------------------


def _public_estimators():
    for name in skfairdp.__all__:
        value = getattr(skfairdp, name)
        if isinstance(value, type) and issubclass(value, BaseEstimator):
            yield value


#: Public estimators without the tag, and why.
NOT_DECLARED = {
    "PrivatePipeline": "looked into, step by step",
}


def test_public_estimators_declare_their_methods():
    for cls in _public_estimators():
        declared = vars(cls).get("_row_wise_methods")
        assert (declared is None) == (cls.__name__ in NOT_DECLARED), cls
        for method in declared or ():
            assert callable(getattr(cls, method))


def test_estimators_of_skfairdp_are_row_wise():
    groups = Y % 2
    noiseless = [
        skfairdp.LaplacePrivatizer(np.inf),
        skfairdp.GaussianPrivatizer(np.inf),
        skfairdp.OMEEncoder(np.inf),
        skfairdp.PublicScaler(bounds=(0, 2)),
        skfairdp.PrivateScaler(bounds=(0, 2), random_state=0),
    ]
    erasers = [skfairdp.LEACEEraser(), skfairdp.INLPEraser()]
    for estimator in [e.fit(X) for e in noiseless] + [e.fit(X, sensitive_features=groups) for e in erasers]:
        assert why_rows_mix(estimator) is None
        check_rows_apart(estimator, "transform", X)
    dropout = skfairdp.WordDropout(0.0).fit()
    assert why_rows_mix(dropout) is None
    check_rows_apart(dropout, "transform", DOCUMENTS)
    assert "runs a function" in why_rows_mix(skfairdp.WordDropout(0.0, tokenizer=lambda text: text.split()).fit())


def test_claims_of_skfairdp_are_not_inherited():
    class Centring(skfairdp.PublicScaler):
        def transform(self, X):
            return X - X.mean(axis=0)

    assert "Centring.transform is not known" in why_rows_mix(Centring(bounds=(0, 2)).fit(X))
    Centring._row_wise_methods = {"transform": ()}
    assert "Centring.transform is not known" in why_rows_mix(Centring(bounds=(0, 2)).fit(X))


def test_models_of_skfairdp_are_looked_into():
    fair = skfairdp.FairPrivateClassifier
    assert why_rows_mix(fair(), "predict") is None
    assert why_rows_mix(fair(RandomForestClassifier()), "predict") is None
    assert "MeanFiller" in why_rows_mix(fair(VotingClassifier([("a", mean_filling())])), "predict")
    assert "MeanFiller" in why_rows_mix(fair(RandomForestClassifier(), group_estimator=mean_filling()), "predict")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # groups with few rows
        fitted = fair(LogisticRegression(), cv=2, random_state=0).fit(X, BINARY, sensitive_features=Y > 0)
    assert why_rows_mix(fitted, "predict") is None
    assert why_rows_mix(skfairdp.PATEClassifier(), "predict") is None
    search = skfairdp.PrivateSearchCV
    assert why_rows_mix(search(skfairdp.PATEClassifier(), {}), "predict") is None
    assert "MeanFiller" in why_rows_mix(search(mean_filling(), {}), "predict")
    assert "MeanFiller" in why_rows_mix(skfairdp.PATEClassifier(student=mean_filling()), "predict_proba")


@pytest.mark.parametrize("student", ["logistic", "network"])
def test_students_are_row_wise(student):
    """The students that PATE trains on public rows, with their scaler."""
    if student == "network":
        pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 3))
    model = skfairdp.PATEClassifier(epsilon=8.0, delta=1e-3, student=student, n_teachers=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows, (rows[:, 0] > 0).astype(int), public=rng.normal(size=(60, 3)))
    for method in ("predict", "predict_proba"):
        assert why_rows_mix(model, method) is None
        check_rows_apart(model, method, rows[:40], rtol=1e-5)
    model.student_.steps.insert(0, ("fill", MeanFiller()))
    assert "MeanFiller" in why_rows_mix(model, "predict")


def test_federate_halves_are_looked_into():
    torch = pytest.importorskip("torch")

    class Centred(torch.nn.Module):
        def __init__(self, n_features):
            super().__init__()
            self.layer = torch.nn.Linear(n_features, 3)

        def forward(self, x):
            return self.layer(x)

    model = skfairdp.FederateClassifier(
        4.0, channel="codes", adversary_weight=0, batch_size=8, max_epochs=1, random_state=0
    )
    assert why_rows_mix(model, "predict") is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, BINARY)
    encoder, head = model.split()
    for part, method in ((model, "transform"), (model, "predict_proba"), (encoder, "transform"), (head, "predict")):
        assert why_rows_mix(part, method) is None, (part, method)
    assert "Centred" in why_rows_mix(skfairdp.FederateClassifier(encoder=Centred), "transform")
    made = skfairdp.FederateClassifier(encoder=lambda n: torch.nn.Linear(n, 3))
    assert "runs a function" in why_rows_mix(made, "transform") or "not known" in why_rows_mix(made, "transform")
    assert "Centred" in why_rows_mix(skfairdp.FederateClassifier(encoder=Centred(4)), "transform")


# -- what fit learns --------------------------------------------------------------------------------------------------


def test_learning_from_rows():
    nothing = [
        None,
        "passthrough",
        Normalizer(),
        FunctionTransformer(),
        OneHotEncoder(categories=[["a"]]),
        SimpleImputer(strategy="constant", fill_value=0, keep_empty_features=True),
        CountVectorizer(vocabulary=["a"]),
        skfairdp.PublicScaler(bounds=(0, 1)),
        FrozenEstimator(StandardScaler().fit(X)),
        make_pipeline(Normalizer(), FunctionTransformer()),
        ColumnTransformer([("a", Normalizer(), [0])]),
        FeatureUnion([("a", Normalizer())]),
    ]
    assert [learns_from_rows(step) for step in nothing] == [None] * len(nothing)
    something = [StandardScaler(), OneHotEncoder(), SimpleImputer(), CountVectorizer(), MeanFiller()]
    for step in something:
        for around in (step, make_pipeline(step), ColumnTransformer([("a", step, [0])]), FeatureUnion([("a", step)])):
            assert learns_from_rows(around) is not None


# -- one row at a time ------------------------------------------------------------------------------------------------


class Unknown(TransformerMixin, BaseEstimator):
    """Runs a function on batches."""

    def __init__(self, function=None):
        self.function = function

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        self.classes_ = np.array([0, 1])
        return self

    def transform(self, X):
        return X if self.function is None else self.function(X)

    predict = predict_proba = transform


def centre(rows):
    return rows - rows.mean(axis=0)


CONTAINERS = {
    "array": lambda: X,
    "csr": lambda: sparse.csr_array(X),
    "csc": lambda: sparse.csc_array(X),
    "coo": lambda: sparse.coo_array(X),
    "frame": lambda: pd.DataFrame(X, index=np.arange(N) + 7, columns=list("abcd")),
    "frame of categories": lambda: pd.DataFrame({"a": pd.Categorical(Y.astype(str)), "b": Y}),
    "series": lambda: pd.Series(DOCUMENTS, index=np.arange(N) + 7),
    "list": lambda: list(DOCUMENTS),
    "documents": lambda: DOCUMENTS,
    "polars": lambda: pytest.importorskip("polars").DataFrame({"a": X[:, 0], "b": list(DOCUMENTS)}),
}


@pytest.mark.parametrize("kind", CONTAINERS)
def test_call_row_by_row_keeps_the_container(kind):
    rows = CONTAINERS[kind]()
    seen = []

    class Spy(BaseEstimator):
        def transform(self, batch):
            seen.append((type(batch), batch.shape[0] if hasattr(batch, "shape") else len(batch)))
            return batch

    found = call_row_by_row(Spy(), "transform", rows)
    assert set(seen) == {(type(rows) if kind != "coo" else sparse.csr_array, 1)}
    if isinstance(rows, pd.DataFrame | pd.Series):
        assert found.equals(rows)
        assert found.index.equals(rows.index)
    elif kind == "polars":
        assert found.equals(rows)
    else:
        assert (_values(found) == _values(rows)).all() if kind != "list" else found == rows


def test_call_row_by_row_hides_other_rows():
    alone = call_row_by_row(Unknown(centre).fit(X), "transform", X)
    assert (alone == 0).all()
    np.testing.assert_array_equal(evaluate_rows(Unknown(centre).fit(X), "transform", X), alone)
    np.testing.assert_array_equal(evaluate_rows(Unknown(centre), "transform", X, row_wise=True), centre(X))
    scaler = StandardScaler().fit(X)
    np.testing.assert_array_equal(evaluate_rows(scaler, "transform", X), scaler.transform(X))


def test_call_row_by_row_carries_nothing_over():
    """An estimator that remembers rows, in attributes or in arrays, forgets them before the next one."""

    class Running(BaseEstimator):
        def __init__(self):
            self.mean_, self.buffer_, self.n_ = 0.0, np.zeros(4), 0

        def transform(self, batch):
            self.n_ += 1
            if self.n_ > 1:
                self.mean_ = 0.5 * self.mean_ + batch.mean()
            self.buffer_ += batch.sum(axis=0)
            return batch - self.buffer_ - self.mean_

    class Late(Running):
        def transform(self, batch):
            if batch[0, 0] == X[10, 0]:
                self.mean_ = 5.0
            return batch + self.mean_

    class Writing(Running):
        def transform(self, batch):
            batch += self.mean_
            self.mean_ += 1.0
            return batch

    before = X.copy()
    for model in (Running(), Late(), Writing()):
        alone = np.concatenate([type(model)().transform(X[i : i + 1].copy()) for i in range(N)])
        np.testing.assert_array_equal(call_row_by_row(model, "transform", X), alone)
        np.testing.assert_array_equal(X, before)
        assert model.n_ == 0
        assert model.mean_ == 0


def test_call_row_by_row_draws_for_every_row():
    class Draws(BaseEstimator):
        def __init__(self):
            self.stream = np.random.default_rng(0)

        def transform(self, batch):
            return batch + self.stream.normal(size=batch.shape)

    swapped = X.copy()
    swapped[:3] = 100
    model = Draws()
    first, second = (call_row_by_row(model, "transform", rows) for rows in (X, swapped))
    np.testing.assert_array_equal(first[3:], second[3:])


@pytest.mark.parametrize(
    ("method", "function"),
    [
        ("predict", lambda rows: rows[:, :1]),  # (n, 1): F1
        ("predict", lambda rows: rows),
        ("predict", lambda rows: rows[0, 0]),
        ("predict", lambda rows: 1.0),
        ("transform", lambda rows: np.vstack([rows, rows])),
        ("transform", lambda rows: rows[:, : 1 + int(rows[0, 0] > 1)]),
        ("transform", lambda rows: rows.astype(int) if rows[0, 0] > 1 else rows),
        ("predict_proba", lambda rows: rows[:0]),
        ("predict_proba", lambda rows: None),
    ],
)
def test_call_row_by_row_refuses_other_shapes(method, function):
    model = Unknown(function).fit(X)
    with pytest.raises(ValueError, match=f"student.{method}"):
        call_row_by_row(model, method, X, name="student")
    with pytest.raises(ValueError, match=f"Unknown.{method}"):
        evaluate_rows(model, method, X)


def test_known_predict_has_one_value_per_row():
    two = LinearRegression().fit(X, X[:, :1])
    with pytest.raises(ValueError, match=r"LinearRegression.predict must return shape \(24,\)"):
        evaluate_rows(two, "predict", X)


def test_call_row_by_row_warns_when_it_takes_long(monkeypatch):
    ticks = iter(range(0, 100_000, 40))
    monkeypatch.setattr(_row_wise.time, "perf_counter", lambda: next(ticks))
    with pytest.warns(UserWarning, match="row_wise=") as seen:
        call_row_by_row(Unknown().fit(X), "transform", X)
    assert seen[0].filename == __file__
    ticks = iter(range(N + 1))
    call_row_by_row(Unknown().fit(X), "transform", X)  # warnings are errors


def test_call_row_by_row_of_no_rows():
    assert call_row_by_row(Unknown().fit(X), "transform", X[:0]).shape == (0, 4)


def test_row_by_row_estimator():
    wrapped = RowByRow(Unknown(centre))
    assert why_rows_mix(wrapped) is None
    assert why_rows_mix(make_pipeline(wrapped, StandardScaler())) is None
    assert (wrapped.fit_transform(X) == 0).all()
    assert (clone(wrapped).fit(X).transform(X) == 0).all()
    assert (pickle.loads(pickle.dumps(wrapped)).transform(X) == 0).all()
    assert wrapped.get_params()["estimator__function"] is centre
    assert wrapped.set_params(estimator__function=None).fit(X).transform(X)[0, 0] == X[0, 0]
    assert wrapped.n_features_in_ == 4
    assert not hasattr(wrapped, "decision_function")
    fitted = RowByRow(StandardScaler().fit(X))  # used as it is
    np.testing.assert_allclose(fitted.transform(X), StandardScaler().fit_transform(X))


def test_row_by_row_estimator_passes_metadata_on():
    weight = np.where(BINARY, 10.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        found = make_pipeline(Normalizer(), RowByRow(inner)).fit(X, BINARY, sample_weight=weight).predict_proba(X)
        wanted = make_pipeline(Normalizer(), inner).fit(X, BINARY, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(found, wanted)


def test_row_by_row_estimator_in_a_pipeline():
    table = pd.DataFrame(X, columns=list("abcd"))
    model = make_pipeline(RowByRow(StandardScaler()), PCA(2)).set_output(transform="pandas")
    found = model.fit_transform(table)
    assert list(found.columns) == ["pca0", "pca1"]
    assert list(model[:1].get_feature_names_out()) == list("abcd")
    np.testing.assert_allclose(found, make_pipeline(StandardScaler(), PCA(2)).fit_transform(X), atol=1e-12)
    classifier = RowByRow(LogisticRegression()).fit(X, BINARY)
    assert list(classifier.classes_) == [0, 1]
    np.testing.assert_allclose(classifier.predict_proba(X), LogisticRegression().fit(X, BINARY).predict_proba(X))
    assert CalibratedClassifierCV(RowByRow(LogisticRegression()), cv=2).fit(X, BINARY).predict(X).shape == (N,)
