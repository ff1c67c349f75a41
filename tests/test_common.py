"""Every estimator, as it is by default and in other settings, against every scikit-learn check."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from skfairdp import FederateClassifier
from tests._checks import (
    DEFAULT_ESTIMATORS,
    ESTIMATORS,
    OTHER_ESTIMATORS,
    RepeatingFederateClassifier,
    as_the_check_wants_it,
    expected_failures,
    told_the_groups,
)

pytestmark = [
    # Some checks skip themselves, by warning, for the tags of some estimators.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
    # scikit-learn's checks know nothing of sensitive features.
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.MissingSensitiveFeaturesWarning"),
    # Nor of public rows: some of X are set aside then, with a warning.
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning"),
    # Nor of noise: on a few rows, which are all they give, it leaves nothing to learn, and a warning says so.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def with_checks(estimators):
    """Parametrise by the checks of estimators. They feed matrices; estimators of text have tests of their own."""
    return parametrize_with_checks(
        [told_the_groups(e) for e in estimators if get_tags(e).input_tags.two_d_array],
        expected_failed_checks=expected_failures,
    )


#: The checks that ask what a classifier learned. The others ask the same of a training of two epochs.
ASK_WHAT_WAS_LEARNED = {"check_classifiers_train", "check_classifiers_classes", "check_class_weight_classifiers"}


def shortened(estimator, check):
    """Shorten the training where the claim of a check is the same: its default is long, and some checks fit often."""
    if not isinstance(estimator, FederateClassifier):
        return estimator
    if check.func.__name__ not in ASK_WHAT_WAS_LEARNED:
        return clone(estimator).set_params(max_epochs=2)
    if check.keywords:  # the same rows again, in another array
        return clone(estimator).set_params(max_epochs=15)
    return estimator


@with_checks(DEFAULT_ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(as_the_check_wants_it(shortened(estimator, check), check))


@pytest.mark.slow
@with_checks([FederateClassifier(), *OTHER_ESTIMATORS])
def test_scikit_learn_checks_in_other_settings(estimator, check):
    check(as_the_check_wants_it(estimator, check))


@pytest.mark.parametrize(("classifier", "alike"), [(FederateClassifier, False), (RepeatingFederateClassifier, True)])
def test_only_the_repeating_classifier_agrees_with_itself(classifier, alike):
    X = np.random.default_rng(0).normal(size=(300, 2))
    noisy = classifier(channel="laplace", epsilon=1.0, max_epochs=2, random_state=0).fit(X, X[:, 0] > 0)
    assert np.array_equal(noisy.predict(X), noisy.predict_proba(X)[:, 1] > 0.5) == alike


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_clone_and_pickle_keep_the_parameters(estimator):
    for copy in (clone(estimator), pickle.loads(pickle.dumps(estimator))):
        assert copy is not estimator
        assert repr(copy) == repr(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_documentation_link_is_ours(estimator):
    link = estimator._get_doc_link()
    assert "skfairdp" in link
    assert type(estimator).__name__ in link
