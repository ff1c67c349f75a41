"""Which estimators treat each record alone, and how to call the others one record at a time.

A guarantee per record needs code whose output for one record depends on that record and on the fitted estimator only.
Trials cannot show this: a function may mix rows for some values only. Unless the user vouches for an estimator, there
are two ways:

- :func:`why_rows_mix` looks an estimator up in a table of classes and methods, by exact type, through all estimators
  that it runs. Known pairs are called on the whole batch.
- :func:`call_row_by_row` calls anything else on one record at a time, so that it never sees another one.

**What the table claims.** In exact arithmetic, row i of the output is a function of row i of the input. In floating
point, a library may add up the terms of one row in an order that depends on the number of rows and on the place of
the row in the batch, both of which are public; documented BLAS behaviour gives no dependence on the values of other
rows. Classes whose computation has a shape that other rows decide (a sub-batch of the rows that have a gap, padding to
the longest document) are left out where matrix products are taken over that shape.

**What counts as public**: the number of rows, the container and its dtypes, and whether a call raises an error.

**Against whom.** Code that is careless about its batch; not code that hides what it has seen in globals or files.
"""

import copy
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skfairdp._validation import warn_user

# -- the table --------------------------------------------------------------------------------------------------------

_PREDICTIONS = ("predict", "predict_proba", "decision_function", "predict_log_proba")
_ALL = (*_PREDICTIONS, "transform", "inverse_transform")
_ANY_PREDICTION, _ANY = " ".join(_PREDICTIONS), " ".join(_ALL)

#: (package that exports the classes, methods, classes). The comment says why a row of the output depends on its own row
#: of the input alone. Methods that a class lacks do no harm.
_ROW_WISE: tuple[tuple[str, str, str], ...] = (
    # each value is mapped by numbers of its column that fit has learned
    (
        "sklearn.preprocessing",
        "transform inverse_transform",
        "StandardScaler MinMaxScaler MaxAbsScaler RobustScaler QuantileTransformer PowerTransformer",
    ),
    # each value is looked up among categories, bins or knots that fit has learned; they fix the width
    (
        "sklearn.preprocessing",
        "transform",
        "OneHotEncoder OrdinalEncoder TargetEncoder KBinsDiscretizer SplineTransformer",
    ),
    # norms, thresholds, products and sums are taken within a row
    ("sklearn.preprocessing", "transform", "Normalizer Binarizer PolynomialFeatures KernelCenterer"),
    # words are counted by document; vocabulary and weights of words come from fit
    (
        "sklearn.feature_extraction.text",
        "transform",
        "CountVectorizer HashingVectorizer TfidfVectorizer TfidfTransformer",
    ),
    # each record is read by itself into columns fixed by fit or by a hash
    ("sklearn.feature_extraction", "transform", "DictVectorizer FeatureHasher"),
    # gaps are filled with, or marked in, columns that fit has learned
    ("sklearn.impute", "transform", "SimpleImputer MissingIndicator"),
    # columns are chosen by a mask that depends on what fit has learned
    (
        "sklearn.feature_selection",
        "transform",
        "VarianceThreshold SelectKBest SelectPercentile SelectFpr SelectFdr SelectFwe GenericUnivariateSelect "
        "SelectFromModel SequentialFeatureSelector RFE RFECV",
    ),
    # a row, or its kernel with rows of fit, is multiplied by a fixed matrix
    ("sklearn.decomposition", "transform", "PCA IncrementalPCA TruncatedSVD FactorAnalysis FastICA KernelPCA"),
    # the E-step loops over documents, from the same start and to convergence of each
    ("sklearn.decomposition", "transform", "LatentDirichletAllocation"),
    # a row is centred by means of fit and multiplied by a fixed matrix
    ("sklearn.cross_decomposition", "transform predict", "PLSRegression PLSCanonical CCA PLSSVD"),
    # linear or quadratic functions of a row
    ("sklearn.discriminant_analysis", _ANY, "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis"),
    # a row is multiplied by a fixed matrix
    ("sklearn.neighbors", "transform", "NeighborhoodComponentsAnalysis"),
    # a sigmoid of a row times a fixed matrix
    ("sklearn.neural_network", "transform", "BernoulliRBM"),
    # a row is multiplied by a fixed matrix
    ("sklearn.random_projection", "transform", "GaussianRandomProjection SparseRandomProjection"),
    # a row is mapped by weights, hashes or kernels with rows of fit
    (
        "sklearn.kernel_approximation",
        "transform",
        "Nystroem RBFSampler SkewedChi2Sampler AdditiveChi2Sampler PolynomialCountSketch",
    ),
    # a row is compared with centres that fit has learned
    ("sklearn.cluster", "transform predict", "KMeans MiniBatchKMeans MeanShift"),
    # densities of fixed components
    ("sklearn.mixture", _ANY_PREDICTION, "GaussianMixture BayesianGaussianMixture"),
    # a fixed function of a row times fixed coefficients
    (
        "sklearn.linear_model",
        _ANY_PREDICTION,
        "LogisticRegression LogisticRegressionCV RidgeClassifier RidgeClassifierCV SGDClassifier Perceptron "
        "LinearRegression Ridge RidgeCV Lasso LassoCV LassoLars LassoLarsCV LassoLarsIC "
        "Lars LarsCV ElasticNet ElasticNetCV MultiTaskLasso MultiTaskLassoCV MultiTaskElasticNet "
        "MultiTaskElasticNetCV BayesianRidge ARDRegression HuberRegressor QuantileRegressor TheilSenRegressor "
        "SGDRegressor OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV "
        "PoissonRegressor GammaRegressor TweedieRegressor",
    ),
    # sums of kernels between a row and support vectors
    ("sklearn.svm", _ANY_PREDICTION, "SVC NuSVC SVR NuSVR OneClassSVM LinearSVC LinearSVR"),
    # sums of kernels between a row and rows of fit
    ("sklearn.kernel_ridge", "predict", "KernelRidge"),
    # mean and variance at a row, given rows of fit
    ("sklearn.gaussian_process", "predict predict_proba", "GaussianProcessClassifier GaussianProcessRegressor"),
    # an entry depends on its two rows alone
    (
        "sklearn.gaussian_process.kernels",
        "__call__",
        "RBF Matern RationalQuadratic ExpSineSquared DotProduct ConstantKernel WhiteKernel Sum Product Exponentiation",
    ),
    # a row is compared with rows or centres of fit; ties are broken by their order in fit
    ("sklearn.neighbors", _ANY_PREDICTION, "KNeighborsClassifier KNeighborsRegressor NearestCentroid"),
    # a row walks down a fixed tree
    (
        "sklearn.tree",
        _ANY_PREDICTION,
        "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor",
    ),
    # a row walks down fixed trees
    (
        "sklearn.ensemble",
        _ANY,
        "RandomForestClassifier RandomForestRegressor ExtraTreesClassifier ExtraTreesRegressor IsolationForest "
        "HistGradientBoostingClassifier HistGradientBoostingRegressor RandomTreesEmbedding",
    ),
    # likelihoods of a row under fixed parameters
    ("sklearn.naive_bayes", _ANY_PREDICTION, "GaussianNB MultinomialNB BernoulliNB ComplementNB CategoricalNB"),
    # fixed layers, one row at a time
    ("sklearn.neural_network", _ANY_PREDICTION, "MLPClassifier MLPRegressor"),
    # rows are not read
    ("sklearn.dummy", _ANY_PREDICTION, "DummyClassifier DummyRegressor"),
    # interpolation between fixed points
    ("sklearn.isotonic", "predict transform", "IsotonicRegression"),
    # rows are not read
    ("sklearn.multiclass", _ANY_PREDICTION, "_ConstantPredictor"),
    # what some of the above hold: losses with their links, and interpolation between fixed points, value by value
    (
        "sklearn._loss.loss",
        "__call__",
        "HalfSquaredError AbsoluteError PinballLoss HuberLoss HalfPoissonLoss HalfGammaLoss HalfTweedieLoss "
        "HalfTweedieLossIdentity HalfBinomialLoss HalfMultinomialLoss ExponentialLoss",
    ),
    ("scipy.interpolate", "__call__", "interp1d"),
    # a row walks down fixed trees
    ("xgboost", "predict predict_proba", "XGBClassifier XGBRegressor XGBRFClassifier XGBRFRegressor"),
    # a row walks down fixed trees
    ("lightgbm", "predict predict_proba", "LGBMClassifier LGBMRegressor"),
    # a row walks down fixed trees
    ("catboost", "predict predict_proba predict_log_proba", "CatBoostClassifier CatBoostRegressor"),
    # Layers in evaluation mode. Left out: layers that read a table of two dimensions as one record (Conv1d, LSTM,
    # MaxPool1d, InstanceNorm1d), and attention, which reaches over the batch unless batch_first is set.
    (
        "torch.nn",
        "forward",
        "Identity Linear Dropout AlphaDropout ReLU ReLU6 LeakyReLU PReLU RReLU ELU SELU CELU GELU SiLU Mish Tanh "
        "Sigmoid LogSigmoid Softplus Softsign Hardtanh Hardsigmoid Hardswish Hardshrink Softshrink Tanhshrink "
        "Threshold LayerNorm RMSNorm GroupNorm BatchNorm1d Softmax LogSoftmax Softmin GLU Flatten Embedding "
        "EmbeddingBag Sequential ModuleList ModuleDict",
    ),
    # Encoders that attend within a document, without experts that have a capacity for the whole batch.
    (
        "transformers",
        "forward",
        "AlbertModel BertModel CamembertModel DebertaModel DebertaV2Model DistilBertModel ElectraModel MPNetModel "
        "ModernBertModel RobertaModel XLMRobertaModel",
    ),
)

#: Attributes that hold the fitted parts of an estimator that runs others, parameters that hold the unfitted ones, and
#: which method of a part is run: None for some of the predictions that it has, so that all of them must be known.
_ONE, _EACH = ("estimator_", "estimator base_estimator", None), ("estimators_", "estimator base_estimator", None)
_SEARCHED = ("best_estimator_", "estimator", "same")
_VOTING = ("estimators_", "estimators", None)
_STACKED = ("estimators_ final_estimator_", "estimators final_estimator", None)
_BOOSTED = ("init_", "init", None)
_CALIBRATED = ("calibrated_classifiers_", "estimator", None)
_PREDICT_OR_TRANSFORM = f"{_ANY_PREDICTION} transform"

#: Estimators that run others, as above, and what they hold.
_META: tuple[tuple[str, str, str, tuple[str, str, str | None]], ...] = (
    ("sklearn.model_selection", _ANY, "GridSearchCV RandomizedSearchCV", _SEARCHED),
    ("sklearn.model_selection", _ANY, "HalvingGridSearchCV HalvingRandomSearchCV", _SEARCHED),
    ("sklearn.model_selection", _ANY_PREDICTION, "TunedThresholdClassifierCV FixedThresholdClassifier", _ONE),
    ("sklearn.frozen", _ANY, "FrozenEstimator", ("estimator", "estimator", "same")),
    ("sklearn.pipeline", "transform", "FeatureUnion", ("transformer_list", "transformer_list", "same")),
    ("sklearn.ensemble", _PREDICT_OR_TRANSFORM, "VotingClassifier VotingRegressor", _VOTING),
    ("sklearn.ensemble", _PREDICT_OR_TRANSFORM, "StackingClassifier StackingRegressor", _STACKED),
    ("sklearn.ensemble", _ANY_PREDICTION, "BaggingClassifier BaggingRegressor", _EACH),
    ("sklearn.ensemble", _ANY_PREDICTION, "AdaBoostClassifier AdaBoostRegressor", _EACH),
    # its trees are always scikit-learn's own
    ("sklearn.ensemble", _ANY_PREDICTION, "GradientBoostingClassifier GradientBoostingRegressor", _BOOSTED),
    ("sklearn.multiclass", _ANY_PREDICTION, "OneVsRestClassifier OneVsOneClassifier OutputCodeClassifier", _EACH),
    ("sklearn.multioutput", _ANY_PREDICTION, "MultiOutputClassifier MultiOutputRegressor", _EACH),
    ("sklearn.multioutput", _ANY_PREDICTION, "ClassifierChain RegressorChain", _EACH),
    # what maps scores to probabilities is a fixed function of the scores of a row
    ("sklearn.calibration", _ANY_PREDICTION, "CalibratedClassifierCV", _CALIBRATED),
    ("sklearn.semi_supervised", _ANY_PREDICTION, "SelfTrainingClassifier", _ONE),
    ("sklearn.linear_model", "predict", "RANSACRegressor", _ONE),
    ("sklearn.feature_selection", _ANY_PREDICTION, "RFE RFECV", _ONE),
)

#: Pairs whose rows are known to mix, for a reason that says more than "not known".
_MIXES = {
    ("sklearn.decomposition", "NMF", "transform"): "solves for all records together",
    ("sklearn.decomposition", "MiniBatchNMF", "transform"): "solves for all records together",
    # the distances of all records with a gap are one matrix product, whose last digits decide between donors
    ("sklearn.impute", "KNNImputer", "transform"): "multiplies by one matrix of all records that have a gap",
    # transform returns early where *all* values of *all* rows are missing
    ("sklearn.impute", "IterativeImputer", "transform"): "treats an empty record by whether others are empty, too",
}

#: Parameters that only ``fit`` calls, or that get no rows: the fitted estimator, or names of columns.
_USED_IN_FIT = {
    "scoring",
    "score_func",
    "importance_getter",
    "feature_names_out",
    "feature_name_combiner",
    "eval_metric",
}
#: What an instance may hold by identity although it is callable.
_KNOWN_FUNCTIONS = (str.split, str.lower)

#: Options of skorch's loader that neither order nor drop nor combine rows.
_LOADER_OPTIONS = {"batch_size", "num_workers", "pin_memory"}


def _by_class(rows: tuple[Any, ...]) -> dict[tuple[str, str], list[Any]]:
    """Index rows of a table by the name of the class and of its package's root."""
    found: dict[tuple[str, str], list[Any]] = {}
    for package, methods, classes, *rest in rows:
        for name in classes.split():
            found.setdefault((package.partition(".")[0], name), []).append((package, methods.split(), *rest))
    return found


_ROW_WISE_BY_CLASS, _META_BY_CLASS = _by_class(_ROW_WISE), _by_class(_META)


def _is_from(cls: type, package: str) -> bool:
    """Whether this is the very class that a package exports under its name; nothing is imported to find out."""
    if package == "transformers":  # exports a name on first access only; the file of a model always holds it
        package = cls.__module__
    return vars(sys.modules.get(package, object)).get(cls.__name__) is cls


def _declared(cls: type) -> Mapping[str, tuple[str, ...]] | None:
    """Return what a class of skfairdp declares; what others declare is for the user to vouch for."""
    return vars(cls).get("_row_wise_methods") if cls.__module__.partition(".")[0] == "skfairdp" else None


def _entry(table: dict[tuple[str, str], list[Any]], cls: type, method: str) -> Any:
    """Return the row of a table for a class and a method, or None."""
    rows = table.get((cls.__module__.partition(".")[0], cls.__name__), ())
    return next((row for row in rows if method in row[1] and _is_from(cls, row[0])), None)


# -- why rows mix -----------------------------------------------------------------------------------------------------


def why_rows_mix(estimator: Any, method: str = "transform") -> str | None:
    """Say why the output of a method for one record may depend on other records of the batch.

    Parameters
    ----------
    estimator : estimator, torch module, skorch net, None or "passthrough"
        Fitted, or not: then its structure is looked at, and what ``fit`` decides counts as unknown.
    method : str
        Of the estimator: "transform", "predict", "predict_proba", "predict_log_proba", "decision_function" or
        "inverse_transform". Torch modules are taken to be called in evaluation mode, whatever the method.

    Returns
    -------
    str or None
        None if the output for a record depends on that record and on the fitted estimator alone, by the table;
        otherwise one clause that names the class and where it is.

    Notes
    -----
    Classes of skfairdp declare their methods in ``_row_wise_methods``, a mapping of method to the (dotted) names of
    attributes that hold estimators or modules which it runs. The mapping must be the class's own: a subclass may
    override the method, and does not inherit the claim.

    Examples
    --------
    >>> from sklearn.decomposition import NMF
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import FunctionTransformer, StandardScaler
    >>> why_rows_mix(make_pipeline(StandardScaler(), NMF()))
    'NMF.transform solves for all records together (in step nmf of Pipeline)'
    >>> why_rows_mix(make_pipeline(StandardScaler(), FunctionTransformer())) is None
    True
    """
    if estimator is None or isinstance(estimator, str):  # "passthrough", "drop", a default that is known
        return None
    cls = type(estimator)
    if _is_module(estimator):
        return _why_module_mixes(estimator)
    if (shadowed := shadowed_method(estimator)) is not None:
        return f"{cls.__name__}.{shadowed} was replaced on the instance by a function"
    for (package, name, known), reason in _MIXES.items():
        if (name, known) == (cls.__name__, method) and _is_from(cls, package):
            return f"{name}.{method} {reason}"
    for package, name, special in _SPECIAL:
        if name == cls.__name__ and _is_from(cls, package):
            return special(estimator, method)
    if (declared := _declared(cls)) is not None:
        return _why_declared_mixes(estimator, method, declared)
    if (meta := _entry(_META_BY_CLASS, cls, method)) is not None:
        if cls.__name__ == "CalibratedClassifierCV" and _scales_by_temperature(estimator):
            return f"CalibratedClassifierCV.{method} takes logarithms if all records of the batch hold probabilities"
        fitted, unfitted, runs = meta[2]
        names = fitted if all(hasattr(estimator, name) for name in fitted.split()) else unfitted
        parts = [(name, part) for attribute in names.split() for name, part in _estimators_in(estimator, attribute)]
        return _first_reason(estimator, parts, (method,) if runs == "same" else ())
    if _entry(_ROW_WISE_BY_CLASS, cls, method) is None:
        return f"{cls.__name__}.{method} is not known to treat each record alone"
    return _why_settings_mix(estimator, method)


def _scales_by_temperature(calibrated: Any) -> bool:
    parts = getattr(calibrated, "calibrated_classifiers_", ())
    kinds = {type(calibrator).__name__ for part in parts for calibrator in part.calibrators}
    return calibrated.method == "temperature" or not kinds <= {"IsotonicRegression", "_SigmoidCalibration"}


def _first_reason(estimator: Any, parts: list[tuple[str, Any]], methods: tuple[str, ...] = ()) -> str | None:
    """Return the first reason among the parts of an estimator; without methods, all predictions are looked at."""
    for name, part in parts:
        if _is_module(part) or isinstance(part, str) or part is None:
            called: tuple[str, ...] = ("forward",)
        else:
            called = methods or tuple(found for found in _PREDICTIONS if hasattr(part, found)) or ("predict",)
        for method in called:
            if (reason := why_rows_mix(part, method)) is not None:
                return _inside(reason, name, estimator)
    return None


def _inside(reason: str, name: str, estimator: Any) -> str:
    """Add to a reason in which part of which estimator it was found."""
    place = f"in {name} of {type(estimator).__name__}"
    return f"{reason[:-1]}, {place})" if reason.endswith(")") and " (in " in reason else f"{reason} ({place})"


def _estimators_in(estimator: Any, attribute: str) -> Iterator[tuple[str, Any]]:
    """Yield the estimators that an attribute holds: one, several, pairs with their names, or none."""
    try:
        held = attrgetter(attribute)(estimator)
    except AttributeError:
        return
    if isinstance(held, Mapping):
        held = list(held.values())
    if isinstance(held, np.ndarray):
        held = held.ravel().tolist()
    if not isinstance(held, list | tuple):
        held = [held]
    for part in held:
        name = attribute.rstrip("_")
        if isinstance(part, tuple):  # (name, estimator)
            name, part = f"step {part[0]}", part[1]
        if type(part).__name__ == "_CalibratedClassifier":
            part = part.estimator
        # An array stands for what was learned without an estimator, a class for what fit will make of it: neither runs.
        if not isinstance(part, np.ndarray | type):
            yield name, part


def shadowed_method(estimator: Any) -> str | None:
    """Name a method of the class that the instance has replaced by a function of its own."""
    for name, value in getattr(estimator, "__dict__", {}).items():
        if callable(value) and callable(getattr(type(estimator), name, None)):
            return name
        # FrozenEstimator looks methods up in the estimator that it holds, unless the instance has one.
        if type(estimator) is FrozenEstimator and name in (*_ALL, "fit_transform") and callable(value):
            return name
    return None


def _why_settings_mix(estimator: Any, method: str, besides: tuple[str, ...] = ()) -> str | None:
    """Look for functions among parameters and fitted attributes, which may do anything with a batch."""
    # catboost keeps its parameters elsewhere than in the instance
    parameters = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    for name, value in (vars(estimator) | parameters).items():
        # A function may hide one level down in a parameter, as in metric_params={"func": f}.
        held = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        held = held if name in parameters else ()
        if name in _USED_IN_FIT or name in besides:
            continue
        if any(callable(part) and not _is_known_function(part) for part in (value, *held)):
            return f"{type(estimator).__name__}.{method} runs a function, {name}={value!r}"
    return None


def _is_known_function(value: Any) -> bool:
    """Whether a callable is a dtype, a function of single values, or an object that the table knows."""
    if isinstance(value, type):
        return issubclass(value, np.generic) or value in (bool, int, float, complex, str, object)
    if any(value is function for function in _KNOWN_FUNCTIONS) or _is_elementwise(value):
        return True
    # A tokenizer reads each document alone, unless it is asked to pad; a module is known by its layers.
    if type(value).__module__.partition(".")[0] in ("transformers", "tokenizers"):
        return not _is_module(value) or why_rows_mix(value) is None
    if (entry := _entry(_ROW_WISE_BY_CLASS, type(value), "__call__")) is None:
        return False
    return entry[0].startswith("scipy") or _why_settings_mix(value, "__call__") is None


def _is_elementwise(function: Any) -> bool:
    """Whether this is a ufunc of one argument that NumPy or SciPy export, which maps value by value."""
    if type(function) is not np.ufunc or function.nin != 1 or function.signature is not None:
        return False
    return any(getattr(sys.modules.get(m), function.__name__, None) is function for m in ("numpy", "scipy.special"))


def _why_declared_mixes(estimator: Any, method: str, declared: Mapping[str, tuple[str, ...]]) -> str | None:
    """Check the parts that a class of skfairdp declares, and its settings."""
    if method not in declared:
        return f"{type(estimator).__name__}.{method} is not known to treat each record alone"
    # Parameters that hold unfitted parts count until there are fitted ones.
    fitted = [attribute for attribute in declared[method] if _is_fitted_name(attribute)]
    if not any(True for attribute in fitted for _ in _estimators_in(estimator, attribute)):
        fitted = [attribute for attribute in declared[method] if not _is_fitted_name(attribute)]
    parts = [(name, part) for attribute in fitted for name, part in _estimators_in(estimator, attribute)]
    for name, part in parts:
        methods = tuple(found for found in _ALL[:-1] if hasattr(part, found))
        if (reason := _first_reason(estimator, [(name, part)], methods)) is not None:
            return reason
    besides = tuple(attribute.partition(".")[0] for attribute in declared[method]) if parts else ()
    return _why_settings_mix(estimator, method, besides)


def _is_fitted_name(attribute: str) -> bool:
    first = attribute.partition(".")[0]
    return first.startswith("_") or first.endswith("_")


# -- estimators with rules of their own -------------------------------------------------------------------------------


def _why_pipeline_mixes(pipeline: Any, method: str) -> str | None:
    last = len(pipeline.steps) - 1
    for i, (name, step) in enumerate(pipeline.steps):
        called = method if i == last or method == "inverse_transform" else "transform"
        if (reason := why_rows_mix(step, called)) is not None:
            return _inside(reason, f"step {name}", pipeline)
    return None


def _why_columns_mix(transformer: Any, method: str) -> str | None:
    if method != "transform":
        return f"ColumnTransformer.{method} is not known to treat each record alone"
    fitted = hasattr(transformer, "transformers_")  # then the columns of each part are fixed
    if not fitted and (reason := chooses_columns_by_rows(transformer)) is not None:
        return reason
    parts = transformer.transformers_ if fitted else [*transformer.transformers, ("remainder", transformer.remainder)]
    return _first_reason(transformer, [(f"step {part[0]}", part[1]) for part in parts], ("transform",))


def why_not_trusted(estimator: Any) -> str | None:
    """Say why a private estimator may not treat each record alone; None if its class declares that it does.

    Parameters
    ----------
    estimator : estimator
        Its class declares in ``_row_wise_methods`` that it treats each record alone, and takes care of the estimators
        that it runs. A subclass does not inherit the claim, because it may override what is proved.

    Returns
    -------
    str or None
    """
    cls = type(estimator)
    if "_row_wise_methods" not in vars(cls):
        return f"{cls.__name__} does not declare that it treats each record alone (_row_wise_methods)"
    if (name := shadowed_method(estimator)) is not None:
        return f"{cls.__name__}.{name} was replaced on the instance by a function"
    return None


def chooses_columns_by_rows(transformer: Any) -> str | None:
    """Say which part of a ColumnTransformer chooses its columns in ``fit``; None if all are named.

    One gap in one record can change the dtype of a column, hence what ``make_column_selector`` chooses, hence the
    width of the output of every record.

    Parameters
    ----------
    transformer : ColumnTransformer
        Fitted or not.

    Returns
    -------
    str or None
    """
    for name, _, columns in transformer.transformers:
        if callable(columns):
            return f"step {name} of ColumnTransformer chooses its columns by the rows of fit ({columns!r})"
    return None


def _why_function_mixes(transformer: Any, method: str) -> str | None:
    inverse = "inverse_" if method == "inverse_transform" else ""
    function, arguments = (
        getattr(transformer, f"{inverse}func"),
        getattr(transformer, "inv_kw_args" if inverse else "kw_args"),
    )
    if method not in ("transform", "inverse_transform"):
        return f"FunctionTransformer.{method} is not known to treat each record alone"
    if function is None or (_is_elementwise(function) and not arguments):  # where= and out= reach over rows
        return None
    return f"FunctionTransformer.{method} runs a function, {function!r}"


def _why_target_mixes(regressor: Any, method: str) -> str | None:
    """TransformedTargetRegressor: a regressor, then the inverse of a transformer or of a function."""
    if method != "predict":
        return f"TransformedTargetRegressor.{method} is not known to treat each record alone"
    fitted = hasattr(regressor, "regressor_")
    inner = regressor.regressor_ if fitted else regressor.regressor
    if (reason := _first_reason(regressor, [("regressor", inner)], ("predict",))) is not None:
        return reason
    if not fitted and regressor.inverse_func is not None:
        function = regressor.inverse_func
        return (
            None if _is_elementwise(function) else f"TransformedTargetRegressor.predict runs a function, {function!r}"
        )
    transformer = regressor.transformer_ if fitted else regressor.transformer
    return _first_reason(regressor, [("transformer", transformer)], ("inverse_transform",))


def _why_net_mixes(net: Any, method: str) -> str | None:
    """skorch: its loader must hand on the rows as they come, and its module must be known."""
    name = type(net).__name__
    if method not in ("predict", "predict_proba"):
        return f"{name}.{method} is not known to treat each record alone"
    torch = sys.modules["torch"]
    if not _is_from(net.dataset, "skorch.dataset") or net.iterator_valid is not torch.utils.data.DataLoader:
        return f"{name}.{method} reads rows by a dataset or an iterator of its own"
    options = {option for option in vars(net) if option.startswith(("iterator_valid__", "dataset__"))}
    if others := {option for option in options if option.partition("__")[2] not in _LOADER_OPTIONS}:
        return f"{name}.{method} reads rows with {min(others)}"
    if callable(net.predict_nonlinearity):
        return f"{name}.{method} runs a function, predict_nonlinearity={net.predict_nonlinearity!r}"
    module = getattr(net, "module_", net.module)
    if not _is_module(module):
        return f"{name}.{method} runs a module that is made in fit"
    return _first_reason(net, [("module", module)])


_SPECIAL: tuple[tuple[str, str, Callable[[Any, str], str | None]], ...] = (
    ("sklearn.pipeline", "Pipeline", _why_pipeline_mixes),
    ("skfairdp.pipeline", "PrivatePipeline", _why_pipeline_mixes),
    ("sklearn.compose", "ColumnTransformer", _why_columns_mix),
    ("sklearn.preprocessing", "FunctionTransformer", _why_function_mixes),
    ("sklearn.compose", "TransformedTargetRegressor", _why_target_mixes),
    ("skorch", "NeuralNet", _why_net_mixes),
    ("skorch", "NeuralNetClassifier", _why_net_mixes),
    ("skorch", "NeuralNetBinaryClassifier", _why_net_mixes),
    ("skorch", "NeuralNetRegressor", _why_net_mixes),
)


# -- networks ---------------------------------------------------------------------------------------------------------


def _is_module(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _why_module_mixes(module: Any, *, in_transformer: bool = False) -> str | None:
    """Walk a torch module: every layer must be known, and nothing may be hooked into it."""
    cls, package = type(module), type(module).__module__.partition(".")[0]
    if shadowed_method(module) is not None:
        return f"{cls.__name__}.{shadowed_method(module)} was replaced on the instance by a function"
    if module._forward_hooks or module._forward_pre_hooks:
        return f"{cls.__name__} has a forward hook"
    if "forward" in (_declared(cls) or ()):
        pass
    elif _entry(_ROW_WISE_BY_CLASS, cls, "forward") is not None:
        if (reason := _why_layer_mixes(module)) is not None:
            return reason
        in_transformer = in_transformer or package == "transformers"
    elif not (in_transformer and package == "transformers"):  # the parts of a known model are those of its package
        return f"{cls.__name__} is not known to treat each record alone"
    for name, child in module.named_children():
        if (reason := _why_module_mixes(child, in_transformer=in_transformer)) is not None:
            return _inside(reason, name, module)
    return None


def _why_layer_mixes(layer: Any) -> str | None:
    """Check the settings with which a known layer would reach over the first dimension, that of the records."""
    name = type(layer).__name__
    if name == "BatchNorm1d" and layer.running_mean is None:
        return "BatchNorm1d keeps no running statistics, and uses those of the batch"
    if name in ("LayerNorm", "RMSNorm") and len(layer.normalized_shape) != 1:
        return f"{name} normalises {len(layer.normalized_shape)} dimensions, which may include that of the records"
    if name in ("Softmax", "LogSoftmax", "Softmin", "GLU") and layer.dim not in (1, -1):
        return f"{name} with dim={layer.dim} may reach over records"
    if name == "Flatten" and layer.start_dim < 1:
        return f"Flatten with start_dim={layer.start_dim} may join records"
    if name in ("Embedding", "EmbeddingBag") and layer.max_norm is not None:
        return f"{name} with max_norm changes its weights while it reads records"
    return None


# -- what fit learns from rows ----------------------------------------------------------------------------------------

_LEARNED = "what it learned in fit"


def learns_from_rows(estimator: Any) -> str | None:
    """Name what ``fit`` of a transformer learns from its rows without noise, besides their width and names.

    Parameters
    ----------
    estimator : transformer, None or "passthrough"
        Fitted or not.

    Returns
    -------
    str or None
        None if nothing, because its class is known or declares so (``_learned_without_noise``, or the
        tag ``requires_fit=False``).

    Examples
    --------
    >>> from sklearn.preprocessing import Normalizer, OneHotEncoder
    >>> learns_from_rows(OneHotEncoder()), learns_from_rows(OneHotEncoder(categories=[["a", "b"]]))
    ('categories', None)
    >>> learns_from_rows(Normalizer()) is None
    True
    """
    if estimator is None or isinstance(estimator, str):
        return None
    cls = type(estimator)
    if hasattr(estimator, "_learned_without_noise"):
        return estimator._learned_without_noise()
    for package, name, rule in _LEARNING:
        if name == cls.__name__ and _is_from(cls, package):
            return rule(estimator)
    # A subclass inherits the tag and may learn all the same.
    if _is_known(cls) and not get_tags(estimator).requires_fit:
        return None
    return _LEARNED


def _is_known(cls: type) -> bool:
    """Whether scikit-learn or skfairdp export this very class."""
    package, _, _ = cls.__module__.partition("._")
    return package.partition(".")[0] in ("sklearn", "skfairdp") and _is_from(cls, package)


def _parts_learn(parts: list[Any]) -> str | None:
    return next((reason for part in parts if (reason := learns_from_rows(part)) is not None), None)


def _columns_learned(transformer: Any) -> str | None:
    if (reason := chooses_columns_by_rows(transformer)) is not None:
        return reason
    return _parts_learn([*(part for _, part, _ in transformer.transformers), transformer.remainder])


def _categories_learned(encoder: Any) -> str | None:
    given = not isinstance(encoder.categories, str) and encoder.min_frequency is None and encoder.max_categories is None
    return None if given and getattr(encoder, "drop", None) is None else "categories"


def _fillings_learned(imputer: Any) -> str | None:
    constant = imputer.strategy == "constant" and imputer.keep_empty_features and not imputer.add_indicator
    return None if constant else f"the {imputer.strategy} of every column, or which columns have gaps"


_LEARNING: tuple[tuple[str, str, Callable[[Any], str | None]], ...] = (
    ("sklearn.pipeline", "Pipeline", lambda pipeline: _parts_learn([step for _, step in pipeline.steps])),
    ("sklearn.pipeline", "FeatureUnion", lambda union: _parts_learn([part for _, part in union.transformer_list])),
    ("sklearn.compose", "ColumnTransformer", _columns_learned),
    ("sklearn.frozen", "FrozenEstimator", lambda frozen: None),  # it was fitted before, on other rows
    ("sklearn.preprocessing", "OneHotEncoder", _categories_learned),
    ("sklearn.preprocessing", "OrdinalEncoder", _categories_learned),
    ("sklearn.impute", "SimpleImputer", _fillings_learned),
    (
        "sklearn.feature_extraction.text",
        "CountVectorizer",
        lambda vectorizer: None if vectorizer.vocabulary is not None else "the vocabulary",
    ),
)


# -- one row at a time ------------------------------------------------------------------------------------------------

#: After so many rows the time of all is estimated; longer than so many seconds is worth a warning.
_TIMED_ROWS, _LONG = 20, 30.0


def evaluate_rows(
    estimator: Any, method: str, X: Any, *, row_wise: bool = False, verbose: bool = False, name: str | None = None
) -> Any:
    """Call a method so that the output for a record depends on that record alone.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    method : str
        Of the estimator.
    X : array-like, sparse matrix, DataFrame or documents
        Records.
    row_wise : bool, default=False
        The user vouches for the estimator: call it on the batch, whatever it is.
    verbose : bool, default=False
        Show a progress bar where records are passed one by one.
    name : str, optional
        What messages call the estimator; its class by default.

    Returns
    -------
    ndarray, sparse matrix, DataFrame or list
        As the method returns it; a row per record.
    """
    if row_wise or why_rows_mix(estimator, method) is None:
        found = getattr(estimator, method)(X)
        _check_shape(found, _n_rows(X), method, name or type(estimator).__name__)
        return found
    return call_row_by_row(estimator, method, X, verbose=verbose, name=name)


def call_row_by_row(estimator: Any, method: str, X: Any, *, verbose: bool = False, name: str | None = None) -> Any:
    """Call a method on one record at a time, so that it cannot see another one.

    Every record is passed to a fresh copy of the estimator, so that nothing is carried over. An estimator that draws
    from a stream of its own may therefore draw the same numbers for every record.

    Parameters
    ----------
    estimator : estimator
        Fitted; it is left as it is.
    method : str
        Of the estimator.
    X : array-like, sparse matrix, DataFrame or documents
        Records; each is passed in a container of the same kind.
    verbose : bool, default=False
        Show a progress bar on a terminal.
    name : str, optional
        What messages call the estimator; its class by default.

    Returns
    -------
    ndarray, sparse matrix, DataFrame or list
        The outputs of all records, in one container of the kind that the method returns.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> ranks = FunctionTransformer(lambda X: X.argsort(axis=0))
    >>> call_row_by_row(ranks, "transform", np.array([[3.0], [1.0], [2.0]])).ravel()
    array([0, 0, 0])
    """
    name = type(estimator).__name__ if name is None else name
    rows, n_rows = _sliceable(X), _n_rows(X)
    if n_rows == 0:
        return getattr(copy.deepcopy(estimator), method)(X)
    from tqdm import tqdm

    found: list[Any] = []
    start = time.perf_counter()
    for i in tqdm(range(n_rows), desc=f"{name}.{method}", unit="row", leave=False, disable=None if verbose else True):
        # Copies of both: an estimator may remember a record (a running mean), and code that writes into its input could
        # leave there what it knows of earlier rows.
        output = getattr(copy.deepcopy(estimator), method)(copy.deepcopy(rows[i : i + 1]))
        _check_shape(output, 1, method, name)
        found.append(output)
        if i + 1 == _TIMED_ROWS:
            _warn_if_long((time.perf_counter() - start) / _TIMED_ROWS * n_rows, n_rows, method, name)
    return _joined(found, method, name)


def _warn_if_long(seconds: float, n_rows: int, method: str, name: str) -> None:
    if seconds > _LONG:
        message = (
            f"{name}.{method} is called on one record at a time, because nothing shows that it treats each record "
            f"alone: {n_rows} records will take about {seconds:.0f} s. If you know that it does, say so by row_wise=."
        )
        warn_user(message, UserWarning)


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _sliceable(X: Any) -> Any:
    """Return something whose slices are rows in a container of the same kind."""
    if sparse.issparse(X):
        return X.tocsr() if X.format not in ("csr", "lil", "csc", "dok") else X
    if isinstance(X, pd.DataFrame | pd.Series):
        return X.iloc
    return X


def _check_shape(found: Any, n_rows: int, method: str, name: str) -> None:
    """Raise unless a method returned a row per record, and ``predict`` one value per record."""
    if not hasattr(found, "__len__") and not hasattr(found, "shape"):
        raise ValueError(f"{name}.{method} must return a row per record; it returned {type(found).__name__}.")
    if hasattr(found, "shape"):
        shape = tuple(found.shape)
    else:  # a list of lists is an array of two dimensions to the code that compares it with labels
        shape = np.asarray(found).shape if method == "predict" else (len(found),)
    if not shape or shape[0] != n_rows or (method == "predict" and len(shape) != 1):
        wanted = f"({n_rows},)" if method == "predict" else f"({n_rows}, ...)"
        raise ValueError(f"{name}.{method} must return shape {wanted} for {n_rows} records; it returned shape {shape}.")


def _joined(outputs: list[Any], method: str, name: str) -> Any:
    """Put outputs of one row each under each other; they must be alike, or one record would change all others."""
    first = outputs[0]
    for output in outputs:
        if type(output) is not type(first) or _form(output) != _form(first):
            raise ValueError(
                f"{name}.{method} must return outputs of one form for all records; it returned "
                f"{_described(first)} for the first and {_described(output)} for another."
            )
    if sparse.issparse(first):
        return sparse.vstack(outputs, format=first.format)
    if isinstance(first, pd.DataFrame | pd.Series):
        return pd.concat(outputs)
    if isinstance(first, np.ndarray):
        return np.concatenate(outputs)
    if isinstance(first, list | tuple):
        return type(first)(part for output in outputs for part in output)
    if hasattr(first, "vstack"):  # polars' DataFrame
        return sys.modules["polars"].concat(outputs)
    if "torch" in sys.modules and isinstance(first, sys.modules["torch"].Tensor):
        return sys.modules["torch"].cat(outputs)
    raise TypeError(f"{name}.{method} returned {type(first).__name__}; give arrays, sparse matrices, tables or lists.")


def _form(output: Any) -> Any:
    """Width, names and dtypes of an output; strings may differ in length."""
    dtype = getattr(output, "dtype", None)
    kind = dtype.kind if isinstance(dtype, np.dtype) and dtype.kind in "US" else str(dtype)
    dtypes = [str(part) for part in output.dtypes] if isinstance(output, pd.DataFrame) else []
    columns = list(output.columns) if hasattr(output, "columns") else []
    return tuple(getattr(output, "shape", (1,)))[1:], kind, dtypes, columns


def _described(output: Any) -> str:
    return f"{type(output).__name__} of shape {getattr(output, 'shape', (len(output),))} and type {_form(output)[1:3]}"


class RowByRow(MetaEstimatorMixin, BaseEstimator):
    """Run an estimator one record at a time: nothing it does to a batch can mix records.

    ``fit`` is the estimator's own and sees all rows; ``fit_transform`` fits, and then transforms row by row.

    Parameters
    ----------
    estimator : estimator
        Any; a fitted one is used as it is until ``fit`` is called.
    verbose : bool, default=False
        Show progress bars.

    Attributes
    ----------
    estimator_ : estimator
        The fitted clone.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> centred = FunctionTransformer(lambda X: X - X.mean(axis=0))
    >>> RowByRow(centred).fit_transform(np.array([[3.0], [1.0]])).ravel()
    array([0., 0.])
    """

    _row_wise_methods: ClassVar[dict[str, tuple[str, ...]]] = dict.fromkeys(_ALL, ())

    def __init__(self, estimator: Any, *, verbose: bool = False):
        self.estimator = estimator
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, **params: Any) -> "RowByRow":
        """Fit a clone of the estimator on all rows.

        Parameters
        ----------
        X, y, **params
            As the estimator takes them.

        Returns
        -------
        self : RowByRow
        """
        self.estimator_ = clone(self.estimator).fit(X, y, **params)
        return self

    def __getattr__(self, name: str) -> Any:
        # classes_, n_features_in_, get_feature_names_out: what the fitted estimator holds or computes without rows
        if name.startswith("__") or name in ("estimator", "estimator_", *_ALL, "fit_transform", "fit_predict"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name.endswith("_") or name == "get_feature_names_out":
            return getattr(self._fitted, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def _fitted(self) -> Any:
        return self.__dict__.get("estimator_", self.__dict__.get("estimator"))

    def _call(self, method: str, X: Any) -> Any:
        check_is_fitted(self)
        return call_row_by_row(self._fitted, method, X, verbose=self.verbose)

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit on all rows, then transform them one by one.

        Parameters
        ----------
        X, y, **params
            As the estimator's ``fit`` takes them.

        Returns
        -------
        ndarray, sparse matrix or DataFrame
        """
        return self.fit(X, y, **params).transform(X)

    def set_output(self, *, transform: str | None = None) -> "RowByRow":
        """Choose the container of the estimator's output.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            As in scikit-learn.

        Returns
        -------
        self : RowByRow
        """
        for held in (self.estimator, getattr(self, "estimator_", None)):
            if held is not None and hasattr(held, "set_output"):
                held.set_output(transform=transform)
        return self

    def get_metadata_routing(self) -> Any:
        """Pass on what the estimator requests.

        Returns
        -------
        MetadataRequest or MetadataRouter
        """
        return self.estimator.get_metadata_routing()

    def __sklearn_is_fitted__(self) -> bool:
        try:
            check_is_fitted(self._fitted)
        except (NotFittedError, TypeError):  # TypeError: no estimator of scikit-learn's kind
            return hasattr(self, "estimator_")
        return True

    def __sklearn_tags__(self) -> Any:
        return copy.deepcopy(get_tags(self.estimator))


def _delegated(method: str) -> Callable[..., Any]:
    """Make a method of RowByRow that exists where the estimator has it."""

    def call(self: RowByRow, X: Any) -> Any:
        return self._call(method, X)

    call.__name__ = method
    call.__doc__ = f"""Call ``{method}`` of the estimator on one record at a time.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame or documents
            Records.

        Returns
        -------
        ndarray, sparse matrix or DataFrame
        """
    return call


def _has(method: str) -> Callable[[Any], bool]:
    return lambda self: hasattr(self._fitted, method)


for _method in _ALL:
    setattr(RowByRow, _method, available_if(_has(_method))(_delegated(_method)))
