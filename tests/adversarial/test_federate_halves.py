"""The encoder and the head that ``split`` cuts a model into."""

import io
import pickle

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skfairdp import FederateClassifier, PrivacyLedger


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=503)
    X = rng.normal(size=(503, 4)) + 3.0 * y[:, None]
    clf = FederateClassifier(8.0, channel="codes", adversary_weight=0.0, batch_size=50, max_epochs=10, random_state=0)
    return clf.fit(X, np.array(["no", "yes"])[y]), X, np.array(["no", "yes"])[y]


def reload(part):
    file = io.BytesIO()
    joblib.dump(part, file)
    file.seek(0)
    assert repr(joblib.load(file)) == repr(part)
    return pickle.loads(pickle.dumps(part))


@pytest.mark.parametrize("channel", ["laplace", "codes"])
def test_halves_pickle_apart_and_work_together(model, channel):
    clf, X, y = model
    clf = clone(clf).set_params(channel=channel).fit(X, y)
    encoder, head = (reload(part) for part in clf.split())
    released = encoder.transform(X)
    assert (head.predict(released) == y).mean() > 0.85
    assert head.predict_proba(released).sum(axis=1) == pytest.approx(np.ones(len(X)))
    pipeline = make_pipeline(encoder, head)
    assert (pipeline.predict(X) == y).mean() > 0.85
    refitted = make_pipeline(encoder, LogisticRegression()).fit(X, y)
    assert refitted.score(X, y) > 0.85
    assert clone(encoder).transform(X).shape == released.shape
    assert encoder.set_output(transform="pandas").transform(X).columns[0] == "federateclassifier0"


def test_encoder_alone_carries_guarantee(model):
    clf, X, _ = model
    encoder, head = clf.split()
    assert encoder.mechanism_ is clf.mechanism_
    assert encoder.privacy_.epsilon == clf.privacy_.epsilon
    assert not hasattr(head, "privacy_")
    with PrivacyLedger() as ledger:
        head.predict(encoder.transform(X))
    assert ledger.total().epsilon == pytest.approx(8.0)


def test_halves_hold_no_training_data(model):
    clf, X, _ = model
    encoder, head = clf.split()
    n_own = sum(p.numel() for p in encoder.module_.parameters())
    small = {len(pickle.dumps(part)) for part in (encoder, head)}
    assert max(small) < 4 * n_own + 20_000  # weights and little else: 503 rows of 4 doubles alone are 16,096 bytes
    for part in (encoder, head):
        blob = pickle.dumps(part)
        for row in (X[0], X[0].astype(np.float32)):
            assert row.tobytes() not in blob
    assert not hasattr(head, "channel_")
    assert next(head.module_.parameters()).data_ptr() != next(clf.net_.module_.head.parameters()).data_ptr()


def test_halves_say_what_is_wrong(model):
    clf, X, _ = model
    encoder, head = clf.split()
    with pytest.raises(ValueError, match="as the encoder released"):
        head.predict(X)
    with pytest.raises(ValueError, match="features"):
        encoder.transform(X[:, :2])
    with pytest.raises(sklearn.exceptions.NotFittedError):
        type(encoder)().transform(X)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        FederateClassifier().split()


def test_encoder_noise_is_its_own(model):
    clf, X, _ = model
    laplace = clone(clf).set_params(channel="laplace").fit(X, model[2])
    first, second = laplace.split()[0], laplace.split()[0]
    assert not np.array_equal(first.transform(X), second.transform(X))
