"""The parameters of synthetic data: closed forms of base rates, distances and the best attacker's accuracy."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from skfairdp.datasets import make_biased_classification, make_biased_text
from skfairdp.datasets._biased_classification import joint_distribution

MAKERS = [make_biased_classification, make_biased_text]


def probe_accuracy(train, test, key="sensitive_features"):
    """Accuracy of a linear attacker that learns on one sample and is tested on another of the same world."""
    X, X_test = train.data, test.data
    if X.dtype == object:
        words = CountVectorizer()
        X, X_test = words.fit_transform(X), words.transform(X_test)
    return LogisticRegression(max_iter=500).fit(X, train[key]).score(X_test, test[key])


def within_binomial(successes, n, probability, alarm=1e-7):
    """Whether a count is plausible; a true statement fails with probability `alarm` at most."""
    low, high = binom.ppf([alarm / 2, 1 - alarm / 2], n, probability)
    return low <= successes <= high


# The joint distribution


@given(
    n_classes=st.integers(2, 5),
    n_groups=st.integers(2, 5),
    bias=st.floats(-1, 1),
    skew=st.none() | st.floats(0.01, 0.99),
)
def test_joint_distribution_has_the_stated_rates(n_classes, n_groups, bias, skew):
    label_bias = 2 / n_classes * bias * 0.99
    joint = joint_distribution(n_classes, n_groups, label_bias, skew)
    assert joint.min() >= 0
    np.testing.assert_allclose(joint.sum(), 1)
    if skew is None:
        np.testing.assert_allclose(joint.sum(axis=0), 1 / n_groups)
        np.testing.assert_allclose(joint.sum(axis=1), 1 / n_classes)
        rates = joint[-1] / joint.sum(axis=0)
        np.testing.assert_allclose(rates[-1] - rates[0], label_bias, atol=1e-12)
    else:
        kinds = min(n_classes, n_groups)
        agreement = sum(joint[y, z] for y in range(n_classes) for z in range(n_groups) if y % kinds == z % kinds)
        np.testing.assert_allclose(agreement, skew)


@pytest.mark.parametrize("kinds", [2, 3, 4])
def test_skew_keeps_the_margins_uniform(kinds):
    joint = joint_distribution(kinds, kinds, 0.0, 0.8)
    np.testing.assert_allclose(joint.sum(axis=0), 1 / kinds)
    np.testing.assert_allclose(joint.sum(axis=1), 1 / kinds)


@pytest.mark.parametrize("make", MAKERS)
def test_skew_gives_the_design_of_elazar_and_goldberg(make):
    knobs = {"label_bias": 0.0}
    np.testing.assert_allclose(make(10, skew=0.8, **knobs).joint, [[0.4, 0.1], [0.1, 0.4]])
    np.testing.assert_allclose(make(10, skew=0.5, **knobs).joint, make(10, **knobs).joint)


@settings(max_examples=25, deadline=None)
@given(
    maker=st.sampled_from(MAKERS),
    n_classes=st.integers(2, 3),
    n_groups=st.integers(2, 4),
    label_bias=st.floats(-0.6, 0.6),
    skew=st.none() | st.floats(0.1, 0.9),
    seed=st.integers(0, 2**32 - 1),
)
def test_samples_follow_their_joint_distribution(maker, n_classes, n_groups, label_bias, skew, seed):
    made = maker(600, n_classes=n_classes, n_groups=n_groups, label_bias=label_bias, skew=skew, random_state=seed)
    if maker is make_biased_text:
        groups = np.array([made.group_names.index(name) for name in made.sensitive_features])
    else:
        groups = made.sensitive_features
    for y in range(n_classes):
        for z in range(n_groups):
            count = np.sum((made.target == y) & (groups == z))
            assert within_binomial(count, 600, made.joint[y, z])


def test_the_binomial_bound_rejects_a_wrong_rate():
    made = make_biased_classification(20_000, label_bias=0.3, random_state=0)
    favourable = made.target[made.sensitive_features == 1]
    assert within_binomial(favourable.sum(), len(favourable), 0.65)
    assert not within_binomial(favourable.sum(), len(favourable), 0.6)


# Features


@pytest.mark.parametrize(("n_classes", "n_groups", "n_features"), [(2, 2, 2), (2, 2, 10), (4, 3, 5), (3, 5, 12)])
def test_class_and_group_means_are_orthogonal(n_classes, n_groups, n_features):
    made = make_biased_classification(
        200_000,
        n_features,
        n_classes=n_classes,
        n_groups=n_groups,
        class_sep=3.0,
        group_shift=1.5,
        label_bias=0.0,
        random_state=1,
    )
    y, z = made.target, made.sensitive_features
    class_means = np.array([made.data[y == k].mean(axis=0) for k in range(n_classes)])
    group_means = np.array([made.data[z == g].mean(axis=0) for g in range(n_groups)])
    between_classes = [class_means[a] - class_means[b] for a, b in combinations(range(n_classes), 2)]
    between_groups = [group_means[a] - group_means[b] for a, b in combinations(range(n_groups), 2)]
    np.testing.assert_allclose(np.linalg.norm(between_classes, axis=1), 3.0, atol=0.05)
    np.testing.assert_allclose(np.linalg.norm(between_groups, axis=1), 1.5, atol=0.05)
    np.testing.assert_allclose(np.array(between_classes) @ np.array(between_groups).T, 0, atol=0.1)
    residual = (
        made.data
        - np.array([[made.data[(y == k) & (z == g)].mean(axis=0) for g in range(n_groups)] for k in range(n_classes)])[
            y, z
        ]
    )
    np.testing.assert_allclose(np.cov(residual.T), np.eye(n_features), atol=0.02)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_no_bias_and_no_shift_give_a_probe_at_chance(n_groups):
    knobs = {"n_groups": n_groups, "label_bias": 0.0, "group_shift": 0.0}
    train = make_biased_classification(4000, random_state=0, **knobs)
    test = make_biased_classification(20_000, random_state=1, **knobs)
    assert abs(probe_accuracy(train, test) - 1 / n_groups) < 0.02


@pytest.mark.parametrize("leak", [{"label_bias": 0.5}, {"group_shift": 0.5}, {"skew": 0.8}])
def test_each_knob_alone_lifts_the_probe_above_chance(leak):
    knobs = {"label_bias": 0.0, "group_shift": 0.0} | leak
    train = make_biased_classification(4000, random_state=0, **knobs)
    test = make_biased_classification(20_000, random_state=1, **knobs)
    assert probe_accuracy(train, test) > 0.55


@pytest.mark.parametrize("distance", [0.5, 1.0, 2.0, 3.0])
def test_best_attacker_matches_the_normal_law(distance):
    knobs = {"label_bias": 0.0, "group_shift": distance, "class_sep": distance}
    train = make_biased_classification(10_000, random_state=2, **knobs)
    test = make_biased_classification(40_000, random_state=3, **knobs)
    for key in ("sensitive_features", "target"):
        assert abs(probe_accuracy(train, test, key) - norm.cdf(distance / 2)) < 0.01


def test_every_feature_carries_label_and_group():
    made = make_biased_classification(50_000, 8, label_bias=0.0, random_state=0)
    for key in ("target", "sensitive_features"):
        correlation = np.corrcoef(made.data.T, made[key])[-1, :-1]
        assert np.all(np.abs(correlation) > 0.03)


def test_a_second_call_samples_the_same_world():
    train = make_biased_classification(10_000, group_shift=3.0, random_state=0)
    test = make_biased_classification(10_000, group_shift=3.0, random_state=1)
    assert not np.array_equal(train.data, test.data)
    assert probe_accuracy(train, test) > 0.92


# Documents


def majority_of_three(signal):
    q = signal + (1 - signal) / 2
    return q**3 + 3 * q**2 * (1 - q)


@pytest.mark.parametrize(("signal", "task"), [(0.0, "sentiment"), (0.8, "sentiment"), (0.4, "topic"), (1.0, "topic")])
def test_the_best_reader_is_as_good_as_three_votes(signal, task):
    knobs = {"task": task, "label_bias": 0.0, "group_signal": signal, "label_signal": signal}
    train = make_biased_text(4000, random_state=0, **knobs)
    test = make_biased_text(10_000, random_state=1, **knobs)
    for key in ("sensitive_features", "target"):
        assert abs(probe_accuracy(train, test, key) - majority_of_three(signal)) < 0.02


def test_text_without_signal_is_at_chance():
    knobs = {
        "task": "topic",
        "n_classes": 5,
        "n_groups": 4,
        "label_bias": 0.0,
        "group_signal": 0.0,
        "label_signal": 1.0,
    }
    train = make_biased_text(4000, random_state=0, **knobs)
    test = make_biased_text(10_000, random_state=1, **knobs)
    assert abs(probe_accuracy(train, test) - 0.25) < 0.02
    assert probe_accuracy(train, test, "target") == 1.0


def test_the_label_gives_the_author_away_when_they_are_tied():
    knobs = {"label_bias": 0.0, "skew": 0.9, "group_signal": 0.0, "label_signal": 1.0}
    train = make_biased_text(1000, random_state=0, **knobs)
    test = make_biased_text(10_000, random_state=1, **knobs)
    assert abs(probe_accuracy(train, test) - 0.9) < 0.02


def test_content_words_of_classes_and_markers_are_disjoint():
    from skfairdp.datasets._biased_text import GRAMMARS, MARKERS

    markers = [word for kind in MARKERS.values() for word in kind]
    for grammar in GRAMMARS.values():
        words = [word for content in grammar.classes.values() for word in content] + markers
        words += [word for subject in grammar.subjects for word in subject.split()]
        assert len(words) == len(set(words))
        assert len({len(content) for content in grammar.classes.values()}) == 1


def test_twenty_eight_occupations():
    knobs = {"task": "occupation", "n_classes": 28, "label_bias": 0.0, "skew": 0.8, "label_signal": 1.0}
    train = make_biased_text(2000, random_state=0, **knobs)
    test = make_biased_text(20_000, random_state=1, **knobs)
    assert len(test.target_names) == 28
    assert probe_accuracy(train, test, "target") == 1.0
    # Every second occupation is held mostly by one region: 4 of 5 of its rows.
    east = pd.Series(test.sensitive_features == "east").groupby(test.target).mean()
    assert np.allclose(east, np.tile([0.2, 0.8], 14), atol=0.06)
    with pytest.raises(ValueError, match="label_bias"):
        make_biased_text(10, task="occupation", n_classes=28)


def test_documents_are_sentences():
    made = make_biased_text(50, n_sentences=2, random_state=0)
    for document in made.data:
        sentences = document.split(". ")
        assert len(sentences) == 2
        assert document.endswith(".")
        assert all(sentence[0].isupper() for sentence in sentences)


# Both


@pytest.mark.parametrize("make", MAKERS)
def test_seeds_repeat_and_entropy_does_not(make):
    def rows(random_state):
        return make(200, random_state=random_state).data

    np.testing.assert_array_equal(rows(5), rows(5))
    assert not np.array_equal(rows(5), rows(6))
    assert not np.array_equal(rows(None), rows(None))
    generator = np.random.default_rng(0)
    assert not np.array_equal(rows(generator), rows(generator))


@pytest.mark.parametrize("make", MAKERS)
def test_the_global_stream_is_left_alone(make):
    np.random.seed(0)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    make(200, random_state=None)
    assert np.random.random() == expected  # noqa: NPY002


@pytest.mark.parametrize("make", MAKERS)
def test_containers(make):
    plain = make(20, random_state=0)
    frame = make(20, random_state=0, as_frame=True)
    assert isinstance(plain.data, np.ndarray)
    assert plain.frame is None
    assert isinstance(frame.frame, pd.DataFrame)
    for key in ("data", "target", "sensitive_features"):
        assert isinstance(frame[key], pd.DataFrame | pd.Series)
        assert np.array_equal(frame[key].to_numpy(), plain[key])
        assert len(plain[key]) == 20
    X, y = make(20, random_state=0, return_X_y=True)
    assert np.array_equal(X, plain.data)
    assert np.array_equal(y, plain.target)
    assert str(20) in plain.DESCR
    assert set(plain.target) <= set(range(len(plain.target_names)))
    assert len(plain.group_names) == 2


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    "bad",
    [
        {"n_samples": 0},
        {"n_samples": True},
        {"n_classes": 1},
        {"n_groups": 1},
        {"label_bias": 1.1},
        {"label_bias": "much"},
        {"label_bias": float("nan")},
        {"skew": -0.1},
        {"skew": 1.5},
        {"random_state": "seed"},
        {"as_frame": "yes"},
        {"return_X_y": 1},
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_bad_arguments_are_named(make, bad):
    with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        make(**bad)


@pytest.mark.parametrize(
    ("make", "bad"),
    [
        (make_biased_classification, {"n_features": 1}),
        (make_biased_classification, {"n_features": 3, "n_groups": 5}),
        (make_biased_classification, {"group_shift": -1.0}),
        (make_biased_classification, {"class_sep": float("inf")}),
        (make_biased_classification, {"skew": 0.5, "label_bias": 1.0}),
        (make_biased_text, {"group_signal": 1.2}),
        (make_biased_text, {"label_signal": None}),
        (make_biased_text, {"n_sentences": 0}),
        (make_biased_text, {"n_groups": 5}),
        (make_biased_text, {"n_classes": 4}),
        (make_biased_text, {"task": "weather"}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_bad_knobs_are_named(make, bad):
    with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
        make(**bad)
