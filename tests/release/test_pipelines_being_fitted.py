"""Pipelines that are being fitted are known in every thread, and scikit-learn's methods stay what they were."""

import inspect
import math
import multiprocessing
import pickle
import threading

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skfairdp import LaplacePrivatizer, PrivacyLedger
from skfairdp.release import _pipeline_guarantee, _pipelines_being_fitted
from skfairdp.release._pipelines_being_fitted import pipelines_of_other_threads, pipelines_of_this_thread

X = np.random.default_rng(0).normal(size=(60, 2))
Y = X[:, 0] > 0


def seen_from_another_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(pipelines_of_other_threads()))
    thread.start()
    thread.join()
    return list(found[0].values())


class Witness(FunctionTransformer):
    """Keeps which pipelines are seen while it is fitted."""

    def fit(self, X, y=None):
        self.here_ = list(pipelines_of_this_thread().values())
        self.elsewhere_ = list(pipelines_of_other_threads().values())
        self.from_another_thread_ = seen_from_another_thread()
        return super().fit(X, y)

    def fit_predict(self, X, y=None):
        return self.fit(X, y).transform(X)


@pytest.mark.parametrize("method", ["fit", "fit_transform", "fit_predict"])
def test_a_running_fit_is_seen_from_every_thread(method):
    witness = Witness()
    inner = Pipeline([("witness", witness)])
    outer = Pipeline([("inner", inner)])
    getattr(outer, method)(X)
    assert witness.here_ == [inner, outer]
    assert witness.elsewhere_ == []
    assert witness.from_another_thread_ == [outer, inner]
    assert seen_from_another_thread() == []


def test_a_fit_that_fails_is_over():
    def fail(X):
        raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"):
        make_pipeline(FunctionTransformer(fail)).fit_transform(X)
    assert seen_from_another_thread() == []


def test_answering_is_not_fitting():
    witnessed = []
    look = FunctionTransformer(lambda X: [witnessed.extend(seen_from_another_thread()), X][1])
    pipeline = make_pipeline(look).fit(X)
    witnessed.clear()
    pipeline.transform(X)
    assert witnessed == []


class OwnFit(Pipeline):
    def fit(self, X, y=None):
        self.steps[0][1].fit(X, y)
        return self


def test_a_class_with_its_own_fit_is_seen_on_the_stack():
    pipeline = OwnFit([("witness", Witness())])
    assert pipeline.fit(X).steps[0][1].here_ == [pipeline]


@pytest.mark.parametrize("method", ["fit", "fit_transform", "fit_predict"])
def test_methods_of_scikit_learn_stay_as_they_were(method):
    pipeline = make_pipeline(StandardScaler(), Witness())
    true, bound = getattr(Pipeline, method), getattr(pipeline, method)
    assert bound.__name__ == method
    assert bound.__doc__ == true.__doc__
    assert list(inspect.signature(bound).parameters) == list(inspect.signature(true).parameters)[1:]


def test_a_method_that_the_last_step_lacks_is_missing():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    assert not hasattr(pipeline, "fit_transform")
    assert not hasattr(pipeline, "fit_predict")
    assert hasattr(make_pipeline(StandardScaler()), "fit_transform")


def test_bound_methods_can_be_pickled():
    fit = pickle.loads(pickle.dumps(make_pipeline(StandardScaler(), LogisticRegression()).fit))
    assert fit(X, Y).score(X, Y) > 0.9


def test_wrapping_twice_changes_nothing():
    before = dict(vars(Pipeline))
    _pipelines_being_fitted._note_calls(Pipeline)
    assert dict(vars(Pipeline)) == before


def fork_and_look(queue):
    process = multiprocessing.get_context("fork").Process(
        target=lambda: queue.put([len(seen_from_another_thread()), len(pipelines_of_other_threads())])
    )
    process.start()
    process.join()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_forgets_the_threads_of_its_parent():
    queue = multiprocessing.get_context("fork").SimpleQueue()
    make_pipeline(FunctionTransformer(lambda X: [fork_and_look(queue), X][1])).fit_transform(X)
    assert queue.get() == [0, 0]


def charged_in_threads():
    parts = [("a", LaplacePrivatizer(1.0)), ("b", LaplacePrivatizer(1.0, norm="l2"))]
    with joblib.parallel_config(backend="threading"), PrivacyLedger() as ledger:
        make_pipeline(StandardScaler(), FeatureUnion(parts, n_jobs=2)).fit_transform(X)
    return ledger.total().epsilon


def test_steps_in_threads_are_charged_for_earlier_steps():
    assert charged_in_threads() == math.inf


def test_without_the_list_too_little_is_charged(monkeypatch):
    monkeypatch.setattr(_pipeline_guarantee, "pipelines_of_other_threads", dict)
    assert charged_in_threads() == 2.0
