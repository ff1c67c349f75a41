"""Defaults that adapt to the data: how accurate they are, what they choose, and when they warn."""

import math
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skfairdp import FederateClassifier
from skfairdp.metrics import tpr_gap
from skfairdp.release import pipeline_guarantee


def peers(X, y, train, test):
    """Accuracy of logistic regression on scaled rows and of boosted trees."""
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    trees = HistGradientBoostingClassifier(random_state=0)
    return [model.fit(X[train], y[train]).score(X[test], y[test]) for model in (linear, trees)]


def cost_of_the_channel(accuracy, epsilon, n_classes):
    """What randomised response over the classes takes from an accuracy."""
    keep = 1 / (1 + (n_classes - 1) * math.exp(-epsilon))
    return accuracy - (keep * accuracy + (1 - keep) * (1 - accuracy) / (n_classes - 1))


@pytest.mark.parametrize("epsilon", [8.0, math.inf])
@pytest.mark.parametrize(
    ("load", "n_splits", "chance"),
    [
        (load_wine, 2, 0.02),
        pytest.param(load_wine, 5, 0.01, marks=pytest.mark.slow),
        pytest.param(load_digits, 1, 0.01, marks=pytest.mark.slow),
        pytest.param(load_breast_cancer, 5, 0.01, marks=pytest.mark.slow),
    ],
)
def test_near_the_better_peer(load, n_splits, chance, epsilon):
    X, y = load(return_X_y=True)  # unscaled
    splits = StratifiedShuffleSplit(n_splits, test_size=0.3, random_state=0).split(X, y)
    theirs, ours = [], []
    for train, test in splits:
        theirs.append(peers(X, y, train, test))
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            clf = FederateClassifier(epsilon, adversary_weight=0.0, random_state=len(ours)).fit(X[train], y[train])
        ours.append(clf.score(X[test], y[test]))
    best = np.mean(theirs, axis=0).max()
    # One point, and what chance does with so few test rows: about one standard error of the mean.
    allowed = 0.01 + cost_of_the_channel(best, epsilon, len(clf.classes_)) + chance
    assert np.mean(ours) > best - allowed


def adult():
    from skfairdp.datasets import fetch_adult

    bunch = fetch_adult(as_frame=True)
    words = bunch.data.select_dtypes(exclude="number").columns
    coded = OneHotEncoder(sparse_output=False).fit_transform(bunch.data[words].astype(object).fillna("?").astype(str))
    X = np.hstack([bunch.data.drop(columns=words).to_numpy(float), coded])
    return X, np.unique(bunch.target, return_inverse=True)[1], bunch.sensitive_features["sex"].to_numpy()


def credit_default():
    from skfairdp.datasets import fetch_credit_default

    X, y = fetch_credit_default(return_X_y=True)
    return X.astype(float), y, None


def bank_marketing():
    from skfairdp.datasets import fetch_bank_marketing

    bunch = fetch_bank_marketing(as_frame=True)
    words = bunch.data.select_dtypes(exclude="number").columns
    coded = OneHotEncoder(sparse_output=False).fit_transform(bunch.data[words].astype(str))
    return np.hstack([bunch.data.drop(columns=words).to_numpy(float), coded]), np.asarray(bunch.target), None


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("load", [adult, credit_default, bank_marketing])
def test_near_the_better_peer_on_real_tables(load):
    X, y, _ = load()
    train, test = train_test_split(np.arange(len(y)), test_size=0.25, random_state=0, stratify=y)
    best = max(peers(X, y, train, test))
    for epsilon in (8.0, math.inf):
        clf = FederateClassifier(epsilon, adversary_weight=0.0, random_state=0).fit(X[train], y[train])
        # One point, and what one seed and 10,000 test rows may differ by.
        assert clf.score(X[test], y[test]) > best - 0.013


@pytest.mark.slow
@pytest.mark.data
def test_default_fairness_term_narrows_the_gap():
    X, y, z = adult()
    gaps, scores = [], []
    for settings in ({"fairness_penalty": 0.0, "adversary_weight": 0.0}, {}):
        for seed in range(3):
            train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=y)
            clf = FederateClassifier(**settings, random_state=seed).fit(X[train], y[train], sensitive_features=z[train])
            answers = clf.predict(X[test])
            gaps.append(tpr_gap(y[test], answers, sensitive_features=z[test]))
            scores.append(np.mean(answers == y[test]))
    assert np.mean(gaps[3:]) < 0.7 * np.mean(gaps[:3])
    assert np.mean(scores[3:]) > np.mean(scores[:3]) - 0.007


def noisy(n, seed=0, n_features=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, (rng.random(n) < 1 / (1 + np.exp(0.8 - X[:, 0]))).astype(int)


def test_does_not_overfit_a_small_noisy_table():
    X, y = noisy(4000)
    behind = []
    for seed in range(3):
        rows = slice(300 * seed, 300 * seed + 300)
        clf = FederateClassifier(math.inf, adversary_weight=0.0, random_state=seed).fit(X[rows], y[rows])
        linear = LogisticRegression().fit(X[rows], y[rows])
        behind.append(linear.score(X[2000:], y[2000:]) - clf.score(X[2000:], y[2000:]))
        assert clf.score(X[rows], y[rows]) < 0.85
    assert np.mean(behind) < 0.015


def test_columns_of_noise_do_not_hide_the_others():
    X, y = make_classification(1500, 150, n_informative=4, n_redundant=0, random_state=0)
    train, test = np.arange(300), np.arange(300, 1500)
    clf = FederateClassifier(adversary_weight=0.0, random_state=0).fit(X[train], y[train])
    linear, _ = peers(X, y, train, test)
    # Trees stay several points ahead where 4 of 150 columns matter and 300 rows must tell which; a network that sees
    # all columns alike is no better than the linear model.
    assert clf.score(X[test], y[test]) > linear + 0.15


def test_fifteen_classes():
    X, y = make_classification(
        2000, 20, n_informative=10, n_redundant=0, n_classes=15, n_clusters_per_class=1, random_state=0
    )
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(X[:1000], y[:1000])
    clf = FederateClassifier(adversary_weight=0.0, random_state=0).fit(X[:1000], y[:1000])
    assert clf.score(X[1000:], y[1000:]) > linear.score(X[1000:], y[1000:]) + 0.05


@pytest.mark.parametrize(
    ("n_classes", "settings", "sizes"),
    [
        (10, {}, (100, 50)),
        (11, {}, (256, 128)),
        (11, {"encoder": "mlp"}, (100, 50)),
        (11, {"encoder_hidden_sizes": np.array([7, 5])}, (7, 5)),
    ],
)
def test_widths_of_hidden_layers(n_classes, settings, sizes):
    X, _ = noisy(60)
    clf = FederateClassifier(adversary_weight=0.0, max_epochs=1, **settings).fit(X, np.arange(60) % n_classes)
    encoder = clf.net_.module_.encoder
    layers = getattr(encoder, "hidden", encoder)
    assert (layers[0].out_features, layers[3].out_features) == sizes


@pytest.mark.parametrize(
    ("epsilon", "channel", "taken"),
    [(8.0, "auto", "codes"), (math.inf, "auto", "none"), (8.0, "laplace", "laplace"), (math.inf, "codes", "none")],
)
def test_channel_says_what_was_taken(epsilon, channel, taken):
    X, y = noisy(60)
    clf = FederateClassifier(epsilon, channel=channel, adversary_weight=0.0, max_epochs=1, random_state=0).fit(X, y)
    assert clf.channel_ == clf.privacy_.mechanism == taken


@pytest.mark.parametrize(
    ("n_rows", "batch_size", "max_epochs"), [(40, 16, 200), (400, 32, 160), (1300, 128, 197), (6000, 256, 86)]
)
def test_batch_size_and_epochs_follow_the_rows(n_rows, batch_size, max_epochs):
    X, y = noisy(n_rows, n_features=2)
    clf = FederateClassifier(adversary_weight=0.0, n_iter_no_change=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the training is cut short on purpose
        clf.fit(X, y)
    assert (clf.batch_size_, clf.max_epochs_) == (batch_size, max_epochs)
    assert ("valid_loss" in clf.history_) == (n_rows >= 100)
    given = FederateClassifier(adversary_weight=0.0, batch_size=7, max_epochs=2).fit(X[:50], y[:50])
    assert (given.batch_size_, given.max_epochs_) == (7, 2)


@pytest.mark.parametrize(("n_rows", "share"), [(300, 0.2), (1250, 0.16), (5000, 0.1)])
def test_share_of_validation_rows(n_rows, share):
    X, y = noisy(n_rows)
    settings = {"encoder": "mlp", "adversary_weight": 0.0, "max_epochs": 1, "random_state": 0}
    clf = FederateClassifier(**settings).fit(X, y)
    assert clf.net_.train_split.validation_fraction == pytest.approx(share)
    given = FederateClassifier(**settings, validation_fraction=0.3).fit(X[:100], y[:100])
    assert given.net_.train_split.validation_fraction == 0.3


def test_validation_rows_are_stratified():
    from skfairdp.neural._federate_net import HoldOut, RowsDataset

    y = np.r_[np.zeros(90), np.ones(10), 2].astype(int)
    train, valid = HoldOut(0.2)(RowsDataset(np.zeros((101, 1), np.float32), y))
    assert np.bincount(valid.y, minlength=3).tolist() == [18, 2, 0]
    assert np.bincount(train.y).tolist() == [72, 8, 1]


@pytest.mark.parametrize(
    ("settings", "weight", "penalty"),
    [
        ({}, 0.0, 0.2),  # two codes tell the answer and no more
        ({"epsilon": math.inf}, 1.0, 0.2),
        ({"channel": "laplace"}, 1.0, 0.2),
        ({"n_codes": 3, "channel": "codes"}, 1.0, 0.2),
        ({"n_adversaries": 2}, 1.0, 0.2),
        ({"adversary_weight": 0.5}, 0.5, 0.0),
        ({"fairness_penalty": 0.5}, 0.0, 0.5),
        ({"adversary_weight": 0.0}, 0.0, 0.0),
    ],
)
def test_fairness_weights(settings, weight, penalty):
    X, y = noisy(60)
    clf = FederateClassifier(**settings, max_epochs=1, random_state=0).fit(X, y, sensitive_features=y)
    assert (clf.adversary_weight_, clf.fairness_penalty_) == (weight, penalty)


def test_penalty_on_weights_is_per_record():
    X, y = noisy(80)
    settings = {"adversary_weight": 0.0, "max_epochs": 1, "random_state": 0}
    groups = FederateClassifier(**settings).fit(X, y).net_.optimizer_.param_groups
    assert [group["weight_decay"] for group in groups] == pytest.approx([3.0 / 80, 0.0])
    own = FederateClassifier(**settings, optimizer__weight_decay=0.5).fit(X, y).net_.optimizer_.param_groups
    assert [group["weight_decay"] for group in own] == [0.5]
    twice = FederateClassifier(**settings).fit(np.r_[X, X], np.r_[y, y]).net_.optimizer_.param_groups
    assert twice[0]["weight_decay"] == pytest.approx(3.0 / 160)


def test_warns_when_nothing_was_learned():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), (rng.random(300) < 0.1).astype(int)
    with pytest.warns(ConvergenceWarning, match="no more than if it answered 0 about everybody"):
        clf = FederateClassifier(math.inf, adversary_weight=0.0, random_state=0).fit(X, y)
    assert (clf.predict(X) == 0).all()


def test_warns_when_the_loss_still_falls():
    X, y = load_digits(return_X_y=True)
    settings = {"adversary_weight": 0.0, "random_state": 0, "learning_rate": 1e-4}
    with pytest.warns(ConvergenceWarning, match="in the last 3 of 12 epochs the loss fell"):
        FederateClassifier(**settings, max_epochs=12).fit(X[:500], y[:500])


def test_scaling_is_named_on_the_receipt():
    X, y = noisy(60)
    settings = {"adversary_weight": 0.0, "max_epochs": 1, "random_state": 0}
    clf = FederateClassifier(**settings).fit(X, y)
    encoder, _ = clf.split()
    for receipt in (clf.privacy_, encoder.privacy_):
        assert any("quantiles of the training columns" in line for line in receipt.does_not_cover)
    plain = FederateClassifier(**settings, encoder="mlp").fit(X, y)
    assert not any("quantiles" in line for line in plain.privacy_.does_not_cover)
    assert pipeline_guarantee(make_pipeline(clf), rows="new").epsilon == pytest.approx(8.0)
    own = pipeline_guarantee(make_pipeline(clf), rows="fitted")
    assert own.epsilon == math.inf
    assert "statistics of its columns" in own.mechanism


def test_warm_start_keeps_the_scaling():
    X, y = noisy(200)
    clf = FederateClassifier(adversary_weight=0.0, max_epochs=2, warm_start=True, random_state=0).fit(X, y)
    before = clf.net_.module_.encoder.mean.clone()
    clf.fit(X + 5.0, y)
    assert clf.n_iter_ == 4
    assert clf.net_.module_.encoder.mean.equal(before)


def test_more_records_than_rows():
    # 8 different rows stand for 1000 records: the penalty must not treat them as 8.
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(1000, 3)).astype(float)
    y = (rng.random(1000) < np.where(X[:, 0] == X[:, 1], 0.9, 0.1)).astype(int)
    clf = FederateClassifier(math.inf, adversary_weight=0.0, random_state=0).fit(X, y)
    assert clf.score(X, y) > 0.85


def test_small_groups_leave_the_default_penalty_out():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 3)), rng.integers(2, size=2000)
    X[:, 0] += 2 * y
    groups = np.where(np.arange(2000) < 20, "few", "many")
    with pytest.warns(UserWarning, match="penalty is left out: of group 'few' a batch of"):
        clf = FederateClassifier(max_epochs=2, random_state=0).fit(X, y, sensitive_features=groups)
    assert clf.fairness_penalty_ == 0
    clf = FederateClassifier(max_epochs=2, fairness_penalty=0.2, random_state=0).fit(X, y, sensitive_features=groups)
    assert clf.fairness_penalty_ == 0.2
    even = FederateClassifier(max_epochs=2, random_state=0).fit(X, y, sensitive_features=np.arange(2000) % 2)
    assert even.fairness_penalty_ == 0.2
