"""Attacks that once worked on whole programs: copies, wrong arguments, encoders that mix rows, changed parameters."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from skfairdp import (
    BagOfEmbeddingsEncoder,
    FederateClassifier,
    GaussianPrivatizer,
    LaplacePrivatizer,
    OMEEncoder,
    PATEClassifier,
    PrivacyLedger,
    PrivateScaler,
    WordDropout,
    audit_epsilon,
)
from skfairdp.accounting import PrivacyGuarantee, compose
from skfairdp.mechanisms import code_mechanism, laplace_mechanism, vote_mechanism
from skfairdp.random import random_stream

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_clones_of_a_generator_draw_different_noise(make):
    """Without noise of its own in each clone, the difference of two releases is the difference of the rows."""
    secret, mine = RNG.normal(size=(200, 4)), RNG.normal(size=(200, 4))
    base = LaplacePrivatizer(0.1, norm="clip", random_state=make())
    difference = clone(base).fit_transform(secret) - clone(base).fit_transform(mine)
    assert np.abs(difference - (secret - mine)).mean() > 20  # noise of scale 80 on both sides
    assert not clone(base).fit(mine).privacy_.reproducible


def test_an_integer_seed_reproduces_and_costs_infinity_twice():
    rows = RNG.normal(size=(50, 4))
    first, second = (LaplacePrivatizer(0.1, random_state=7).fit(rows) for _ in range(2))
    assert np.array_equal(first.transform(rows), second.transform(rows))
    assert compose([first.privacy_, second.privacy_]).epsilon == math.inf
    assert any("anybody who sees two releases" in sentence for sentence in first.privacy_.does_not_cover)
    with PrivacyLedger() as ledger:
        first.transform(rows)
        first.transform(rows)
        assert ledger.total().epsilon == pytest.approx(0.2)
        second.transform(rows)
        assert ledger.total().epsilon == math.inf


# -- a wrong argument burns no budget ---------------------------------------------------------------------------------


class Refuses(LogisticRegression):
    """A student that fails whatever it is given."""

    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("this student cannot learn")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # what was learned does not matter here
@pytest.mark.parametrize(("student", "error"), [(KNeighborsClassifier(), "sample_weight"), (Refuses(), "cannot learn")])
def test_bad_student_fails_before_the_price_is_paid(student, error):
    X = RNG.normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    model = PATEClassifier(
        LogisticRegression(), n_teachers=10, epsilon=8.0, student=student, labels="soft", random_state=0
    )
    with PrivacyLedger() as ledger:
        with pytest.raises((ValueError, RuntimeError), match=error):
            model.fit(X[:200], y[:200], public=X[200:])
        assert len(ledger) == 0
    hard = clone(model).set_params(student=KNeighborsClassifier(), labels="hard")
    assert hard.fit(X[:200], y[:200], public=X[200:]).score(X, y) > 0.5


# -- encoders that let records show through others --------------------------------------------------------------------


def network(*layers):
    """An encoder of three columns, made of torch layers by name."""

    def make(n_features):
        torch = pytest.importorskip("torch")
        built = [torch.nn.Linear(n_features, 4), *(layer(torch) for layer in layers), torch.nn.Linear(4, 2)]
        return torch.nn.Sequential(*built)

    return make


def batch_norm(torch):
    return torch.nn.BatchNorm1d(4, track_running_stats=False)


def running_batch_norm(torch):
    return torch.nn.BatchNorm1d(4)


def centred(torch):
    class Centred(torch.nn.Module):
        def forward(self, x):
            return x - x.mean(dim=0)

    return Centred()


def fit_federate(encoder, **params):
    X = RNG.normal(size=(120, 3))
    clf = FederateClassifier(0.5, encoder=encoder, adversary_weight=0, max_epochs=2, batch_size=20, **params)
    return clf.fit(X, (X[:, 0] > 0).astype(int))


@pytest.mark.parametrize("channel", ["laplace", "codes"])
def test_an_encoder_that_mixes_records_is_called_on_one_at_a_time(channel):
    clf = fit_federate(network(centred), channel=channel)
    X = RNG.normal(size=(20, 3)).astype(np.float32)
    changed = X.copy()
    changed[0] = 50.0
    assert np.array_equal(clf._values(X)[1:], clf._values(changed)[1:])
    # The planted fault: a user who vouches for it gets the whole batch through it. Codes may hide that.
    clf._row_wise = True
    if channel == "laplace":
        assert np.abs(clf._values(X)[1:] - clf._values(changed)[1:]).max() > 0.1


def test_encoders_of_known_layers_get_the_batch():
    clf = fit_federate(network(running_batch_norm))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skfairdp.adversarial._federate_halves.call_row_by_row", None)
        assert clf._values(np.ones((5, 3))).shape[0] == 5
    assert any("one record at a time" in line for line in clf.privacy_.does_not_cover)


def test_mixing_is_no_fault_where_nothing_is_promised():
    X = RNG.normal(size=(120, 3))
    y = (X[:, 0] > 0).astype(int)
    clf = FederateClassifier(math.inf, encoder=network(batch_norm), adversary_weight=0, max_epochs=1).fit(X, y)
    assert clf.privacy_.epsilon == math.inf


# -- parameters that change after fit ---------------------------------------------------------------------------------


def test_masks_stay_what_amplify_says_they_are():
    dropout = WordDropout(rate=0.5).fit()
    before = dropout.amplify(PrivacyGuarantee(1.0, mechanism="laplace")).epsilon
    dropout.set_params(mask_token="", tokenizer=list)
    text = " ".join(["word"] * 200)
    assert len(dropout.transform([text])[0].split()) == 200  # the length does not tell what was masked
    assert "[MASK]" in dropout.transform([text])[0]
    assert dropout.amplify(PrivacyGuarantee(1.0, mechanism="laplace")).epsilon == before


def test_the_auditor_attacks_what_was_fitted():
    privatizer = LaplacePrivatizer(1.0, norm="minmax").fit(np.zeros((1, 4)))
    pairs = privatizer.mechanism_.worst_case_pairs()
    privatizer.set_params(norm="l1", epsilon=1000.0)
    again = privatizer.mechanism_.worst_case_pairs()
    assert all(np.array_equal(a, b) for one, other in zip(pairs, again) for a, b in zip(one, other))
    assert audit_epsilon(privatizer, n_trials=20_000, random_state=0).epsilon_lower > 0.5


# -- mechanisms know their own likelihood -----------------------------------------------------------------------------


def test_codes_attain_epsilon_and_never_exceed_it():
    mechanism = code_mechanism(4, 1.5)
    for x, x_prime in mechanism.worst_case_pairs():
        ratios = mechanism.log_likelihood_ratio(np.arange(4), x[None], x_prime[None])
        assert np.abs(ratios).max() == pytest.approx(1.5, rel=1e-9)
    frequencies = np.bincount(mechanism.release(np.tile([0.7, 0.3, 0, 0], (100_000, 1)), random_stream(0))) / 100_000
    exact = np.exp(mechanism._log_weights(np.array([[0.7, 0.3, 0, 0]]))[0]) / 2.0**63
    assert np.abs(frequencies - exact).max() < 0.01


@pytest.mark.parametrize("labels", ["soft", "hard", "confident"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_likelihood_ratios_of_votes_average_to_one(labels, n_classes):
    """Under x' the mean of the likelihood ratio of x to x' is 1: an identity that a wrong likelihood breaks."""
    mechanism = vote_mechanism(
        labels,
        epsilon=2.0,
        delta=1e-5,
        noise_scale=None,
        n_asked=3,
        n_answered=3,
        n_classes=n_classes,
        n_voting=30,
        threshold=18.0,
    )
    x, x_prime = mechanism.worst_case_pairs()[0]
    stream, known = random_stream(0), {}

    def ratio_of_a_release(given):
        released = mechanism.release(given, stream)
        # Hard labels have few outcomes: the integral of each is computed once.
        outcome = tuple(np.asarray(part).tobytes() for part in released)
        if outcome not in known:
            known[outcome] = math.exp(mechanism.log_likelihood_ratio(released, x, x_prime).sum())
        return known[outcome]

    ratios = [ratio_of_a_release(x_prime) for _ in range(1500)]
    error = 5 * np.std(ratios) / math.sqrt(len(ratios))  # exceeded by chance less than once in a million runs
    assert np.mean(ratios) == pytest.approx(1.0, abs=error)
    assert np.mean([ratio_of_a_release(x) for _ in range(1500)]) > 1 + error  # the test has power


def test_a_mechanism_releases_no_more_than_was_paid_for():
    mechanism = vote_mechanism(
        "soft", epsilon=1.0, delta=1e-5, noise_scale=None, n_asked=5, n_answered=5, n_classes=2, n_voting=9
    )
    with pytest.raises(ValueError, match="at most 5 queries"):
        mechanism.release(np.full((6, 2), 4), random_stream(0))
    with pytest.raises(ValueError, match=r"shape \(n_samples, 3\)"):
        laplace_mechanism(1.0, "l1", 3).release(np.ones((2, 4)), random_stream(0))


# -- receipts say what is left out ------------------------------------------------------------------------------------


def test_receipts_say_that_broken_tables_are_refused():
    for estimator in (LaplacePrivatizer(), GaussianPrivatizer(), OMEEncoder()):
        scope = estimator.fit(np.ones((3, 2)) * [[1.0], [2.0], [3.0]]).privacy_.does_not_cover
        assert any("whether a table was refused" in sentence and "nan" in sentence for sentence in scope)


def test_shipped_encoder_names_its_training_words():
    documents = ["a good film", "a bad film", "good book", "bad book"] * 10
    labels = ["yes", "no"] * 20
    clf = FederateClassifier(4.0, encoder=BagOfEmbeddingsEncoder(8), adversary_weight=0, max_epochs=1)
    encoder, _ = clf.fit(documents, labels).split()
    assert encoder.text_encoder_.vocabulary_
    assert any("words of the training documents" in sentence for sentence in encoder.privacy_.does_not_cover)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # what was learned does not matter here
def test_prices_that_are_bounds_are_called_so():
    X = RNG.normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int)
    for labels, exact in (("soft", True), ("hard", False), ("confident", False)):
        model = PATEClassifier(LogisticRegression(), n_teachers=5, labels=labels, epsilon=9.0)
        model.set_params(threshold=-99.0 if labels == "confident" else None)
        said = str(model.fit(X[:150], y[:150], public=X[150:]).privacy_)
        assert ("an upper bound" in said) != exact


def test_a_network_in_training_mode_does_not_mix_records():
    X = RNG.normal(size=(120, 3))
    clf = FederateClassifier(4.0, encoder=network(running_batch_norm), adversary_weight=0, max_epochs=2, batch_size=20)
    clf.fit(X, (X[:, 0] > 0).astype(int))
    clf.net_.module_.train()
    changed = X.copy()
    changed[0] = 50.0
    assert np.array_equal(clf._values(X)[1:], clf._values(changed)[1:])


@pytest.mark.parametrize("epsilon", [1e-12, 1e12])
def test_a_scaler_that_cannot_draw_its_noise_charges_nothing(epsilon):
    with PrivacyLedger() as ledger:
        with pytest.raises(ValueError, match="epsilon"):
            PrivateScaler(epsilon, bounds=(-1, 1)).fit(RNG.normal(size=(20, 2)))
        mixed = pd.DataFrame(RNG.normal(size=(20, 2)), columns=[1, "a"])
        with pytest.raises(TypeError, match="string"):
            PrivateScaler(1.0, bounds=(-1, 1)).fit(mixed)
        assert len(ledger) == 0


def test_teachers_that_know_all_rows_are_refused():
    X = RNG.normal(size=(100, 3))
    y = (X[:, 0] > 0).astype(int)
    everything = FrozenEstimator(LogisticRegression().fit(X, y))
    for estimator in (everything, make_pipeline(everything)):
        with PrivacyLedger() as ledger:
            with pytest.raises(ValueError, match="teachers must learn from their own rows"):
                PATEClassifier(estimator, n_teachers=5).fit(X[:60], y[:60], public=X[60:])
            assert len(ledger) == 0
