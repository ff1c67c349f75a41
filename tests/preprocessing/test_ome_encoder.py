"""OMEEncoder: an epsilon that enumeration confirms, bits that decode without bias, and no quiet overclaim."""

import itertools
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp import OMEEncoder
from skfairdp.accounting import PrivacyLedger
from skfairdp.exceptions import OverclaimedPrivacyWarning
from skfairdp.mechanisms import BitMechanism, _fixed_point_bits, decode_bits, encode_bits, largest_randomization_factor

PROTOCOLS = ["ome", "oue", "sue", "optimal"]
SETTINGS = [*({"protocol": name} for name in PROTOCOLS), {"protocol": "optimal", "objective": "posterior"}]


def normal(n_samples=200, n_features=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n_samples, n_features))


def enumerated_epsilon(encoder):
    """Largest log-likelihood ratio over all outputs and all pairs of inputs of a small encoder, from p and q."""
    p, q = encoder.keep_probability_, encoder.flip_probability_
    codes = np.array(list(itertools.product((0, 1), repeat=len(p))))
    one = np.where(codes[:, None, :] == 1, p, q)  # inputs x 1 x bits
    likelihood = np.where(codes[None, :, :] == 1, one, 1 - one)
    log_likelihood = np.log(likelihood).sum(axis=-1)  # inputs x outputs
    return float((log_likelihood.max(axis=0) - log_likelihood.min(axis=0)).max())


# The guarantee


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 9.0])
@pytest.mark.parametrize("parameters", SETTINGS, ids=str)
def test_epsilon_is_the_one_found_by_enumeration(parameters, epsilon):
    encoder = OMEEncoder(epsilon, n_integer_bits=1, n_fraction_bits=1, **parameters).fit(normal(n_features=2))
    assert encoder.privacy_.epsilon == pytest.approx(enumerated_epsilon(encoder), abs=1e-9)
    assert epsilon * (1 - 1e-9) < encoder.privacy_.epsilon <= epsilon
    assert encoder.bit_epsilon_.sum() == pytest.approx(encoder.privacy_.epsilon, rel=1e-12)
    # Planted fault: a mechanism that keeps ones a little better than it says.
    encoder.keep_probability_ = encoder.keep_probability_ * 0.98 + 0.02
    assert abs(encoder.privacy_.epsilon - enumerated_epsilon(encoder)) > 1e-3


def test_guarantee_says_what_it_does_not_cover():
    privacy = OMEEncoder(2.0).fit(normal()).privacy_
    assert privacy.pure
    assert privacy.unit == "record"
    assert privacy.releases == 1
    assert privacy.published_epsilon is None
    assert not privacy.reproducible
    assert any("rows given to fit" in sentence for sentence in privacy.does_not_cover)
    for public in (False, (0.0, 1.0)):
        privacy = OMEEncoder(2.0, standardize=public).fit(normal()).privacy_
        assert not any("rows given to fit" in sentence for sentence in privacy.does_not_cover)
    assert OMEEncoder(2.0, random_state=0).fit(normal()).privacy_.reproducible


@pytest.mark.parametrize(
    ("parameters", "exact"),
    [
        ({"randomization_factor": 100}, 3451.390307),
        ({}, 3451.390307),  # the paper's best factor
        ({"randomization_factor": 2}, 447.939867),
        ({"protocol": "sue"}, 5.0),
        ({"protocol": "oue"}, 2.506250),
    ],
    ids=str,
)
def test_published_rates_warn_with_the_exact_epsilon(parameters, exact):
    encoder = OMEEncoder(1.0, calibration="published", **parameters)
    with pytest.warns(
        OverclaimedPrivacyWarning, match=f"claim epsilon=1; the exact epsilon of 500 bits is {exact:.6g}"
    ):
        encoder.fit(normal(n_features=50))
    assert encoder.privacy_.epsilon == pytest.approx(exact, abs=5e-7)
    assert encoder.privacy_.published_epsilon == 1.0


def test_published_rate_that_claims_too_little():
    encoder = OMEEncoder(1.0, calibration="published", randomization_factor=1).fit(normal(n_features=50))
    assert encoder.privacy_.epsilon == pytest.approx(0.500250, abs=5e-7)


def test_refuses_infeasible_factor():
    largest = largest_randomization_factor(1.0, 500)
    with pytest.raises(ValueError, match=f"the largest feasible factor is {largest}"):
        OMEEncoder(1.0, randomization_factor=100).fit(normal(n_features=50))
    encoder = OMEEncoder(1.0, randomization_factor=largest).fit(normal(n_features=50))
    np.testing.assert_array_equal(
        encoder.keep_probability_, OMEEncoder(1.0).fit(normal(n_features=50)).keep_probability_
    )


def test_a_fit_that_fails_leaves_the_last_one_as_it_was():
    encoder = OMEEncoder(epsilon=1.0, randomization_factor=2.0)
    with pytest.raises(ValueError, match="factor"):
        encoder.fit(normal())
    with pytest.raises(NotFittedError):
        encoder.transform(normal())
    encoder.set_params(randomization_factor=None).fit(normal(n_features=2)).set_params(randomization_factor=2.0)
    with pytest.raises(ValueError, match="factor"):
        encoder.fit(normal())
    assert encoder.transform(normal(n_features=2)).shape == (200, 20)


def test_every_release_is_charged_before_it_is_made():
    X = normal()
    encoder = OMEEncoder(2.0).fit(X)
    with PrivacyLedger() as ledger:
        encoder.transform(X)
        encoder.transform(X)
        encoder.decode(np.zeros((1, 30)))  # post-processing is free
    assert ledger.total().epsilon == pytest.approx(4.0)


# Likelihoods and worst-case neighbours, for auditors


@pytest.mark.parametrize("parameters", SETTINGS, ids=str)
@pytest.mark.parametrize("epsilon", [1.0, 20.0])
def test_worst_pair_reaches_epsilon(parameters, epsilon):
    encoder = OMEEncoder(epsilon, n_integer_bits=1, n_fraction_bits=1, random_state=0, **parameters).fit(
        7 + 3 * normal(n_features=2)
    )
    x, x_prime = encoder.mechanism_.worst_case_pairs()[0]
    outputs = np.array(list(itertools.product((0, 1), repeat=6)))
    ratios = encoder.log_likelihood_ratio(outputs, x, x_prime)
    assert ratios.max() == pytest.approx(encoder.privacy_.epsilon, rel=1e-9)
    assert ratios.min() >= -encoder.privacy_.epsilon
    # It is a log ratio of two distributions: both sum to one.
    p, q, code = encoder.keep_probability_, encoder.flip_probability_, encoder.mechanism_.encode(x[None])[0]
    one = np.where(code == 1, p, q)
    likelihood = np.where(outputs == 1, one, 1 - one).prod(axis=1)
    assert likelihood.sum() == pytest.approx(1)
    assert (likelihood * np.exp(-ratios)).sum() == pytest.approx(1)


def test_worst_pair_of_the_published_protocol_alternates():
    with pytest.warns(OverclaimedPrivacyWarning):
        encoder = OMEEncoder(calibration="published").fit(normal(n_features=4))
    x, x_prime = encoder.mechanism_.worst_case_pairs()[0]
    np.testing.assert_array_equal(encoder.mechanism_.encode(x[None])[0], [1, 0] * 20)
    np.testing.assert_array_equal(encoder.mechanism_.encode(x_prime[None])[0], [0, 1] * 20)


def test_likelihood_ratio_of_rows_and_of_clean_bits():
    X = normal(5)
    encoder = OMEEncoder(3.0).fit(X)
    bits = encoder.transform(X)
    rows = encoder.log_likelihood_ratio(bits, X, X[::-1])
    assert rows.shape == (5,)
    assert rows[2] == 0
    assert rows[0] == pytest.approx(encoder.log_likelihood_ratio(bits[0], X[0], X[-1])[0])
    clean = OMEEncoder(math.inf).fit(X)
    y = clean.transform(X)
    assert clean.log_likelihood_ratio(y[:2], X[0], X[1]).tolist() == [math.inf, -math.inf]
    with pytest.raises(ValueError, match="x_prime"):
        encoder.log_likelihood_ratio(bits, X[0], X[0, :2])


# Bits


def test_clean_bits_are_the_code():
    X = normal()
    encoder = OMEEncoder(math.inf).fit(X)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_array_equal(encoder.transform(X), encode_bits(Z, 4, 5, bit_format="sign-magnitude"))
    assert encoder.privacy_.epsilon == math.inf
    assert np.isinf(encoder.bit_epsilon_).all()
    np.testing.assert_allclose(encoder.decode(encoder.transform(X)), X, atol=X.std() * 2.0**-5)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_frequencies_of_released_bits(protocol):
    """Every column at p or q; false-alarm rate 24 * 2 * Phi(-5.5), below 1e-6."""
    encoder = OMEEncoder(
        30.0, n_integer_bits=1, n_fraction_bits=2, protocol=protocol, standardize=False, random_state=1
    )
    X = np.tile([[-1.3, 0.4, 9.0]], (100_000, 1))
    bits = encoder.fit(X).transform(X)
    code = encoder.mechanism_.encode(X[:1])[0]
    rates = np.where(code == 1, encoder.keep_probability_, encoder.flip_probability_)

    def score(rates):
        return np.abs((bits.mean(axis=0) - rates) / np.sqrt(rates * (1 - rates) / len(bits))).max()

    assert score(rates) < 5.5
    # Planted fault: p and q of the next bit.
    assert score(np.where(np.roll(code, 1) == 1, encoder.keep_probability_, encoder.flip_probability_)) > 5.5


def test_blocks_change_nothing_but_the_memory(monkeypatch):
    X = normal(1000, 7)
    clean = OMEEncoder(math.inf).fit(X).transform(X)
    sizes = []
    respond = BitMechanism.draw
    monkeypatch.setattr(_fixed_point_bits, "BLOCK_BITS", 500)
    monkeypatch.setattr(BitMechanism, "draw", lambda *a: sizes.append(a[1].size) or respond(*a))
    np.testing.assert_array_equal(OMEEncoder(math.inf).fit(X).transform(X), clean)
    noisy = OMEEncoder(5000.0, protocol="sue", random_state=0).fit(X).transform(X)
    assert max(sizes) <= 500
    assert sum(sizes) == noisy.size
    assert (noisy != clean).mean() < 1e-3  # each row met its own code


def test_two_releases_have_different_noise():
    X = normal()
    encoder = OMEEncoder(1.0, random_state=0).fit(X)
    assert (encoder.transform(X) != encoder.transform(X)).any()
    np.testing.assert_array_equal(clone(encoder).fit(X).transform(X), clone(encoder).fit(X).transform(X))
    secure = OMEEncoder(1.0)
    assert (secure.fit_transform(X) != secure.fit_transform(X)).any()


def test_differences_of_bits_do_not_wrap():
    bits = OMEEncoder().fit_transform(normal())
    assert bits.dtype == np.int8
    assert (bits[:-1] - bits[1:]).min() == -1


# Decoding


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_decoding_is_unbiased(protocol):
    """Mean of 2e5 estimates within 5 standard errors of the code; false-alarm rate below 3 * 6e-7."""
    row = np.array([[-1.3, 0.4, 3.9]])
    encoder = OMEEncoder(
        40.0, n_integer_bits=2, n_fraction_bits=2, protocol=protocol, standardize=(1.0, 2.0), random_state=2
    )
    X = np.tile(row, (200_000, 1))
    estimates = encoder.fit(X).decode(encoder.transform(X))
    code = "offset" if protocol == "optimal" else "sign-magnitude"
    truth = 1 + 2 * decode_bits(encode_bits((row - 1) / 2, 2, 2, bit_format=code), 2, 2, bit_format=code)[0]

    def score(values):
        return np.abs((values.mean(axis=0) - truth) / (values.std(axis=0) / math.sqrt(len(values)))).max()

    assert score(estimates) < 5
    # Planted fault: the noisy bits read as if they were clean.
    assert score(1 + 2 * decode_bits(encoder.transform(X), 2, 2, bit_format=code)) > 5


@pytest.mark.parametrize("n_features", [1, 50])
def test_errors_of_the_optimal_protocol(n_features):
    """The measured error is the one that the division promises, and less than that of equal shares."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(20_000, n_features))
    errors = {}
    for protocol in ("optimal", "sue"):
        encoder = OMEEncoder(
            50.0, n_integer_bits=0, n_fraction_bits=9, protocol=protocol, standardize=False, random_state=0
        )
        errors[protocol] = ((encoder.fit(X).decode(encoder.transform(X)) - X) ** 2).mean()
    if n_features == 50:
        assert errors["optimal"] == pytest.approx(19.0483, rel=0.01)
    assert errors["optimal"] < errors["sue"] / 2


@pytest.mark.parametrize(
    ("epsilon", "uniform", "normal_error"),
    [(1, 0.332265, 0.997281), (8, 0.321733, 0.970460), (50, 0.260510, 0.814558)],
)
def test_errors_of_the_posterior_objective(epsilon, uniform, normal_error):
    rng = np.random.default_rng(1)
    parameters = {"protocol": "optimal", "objective": "posterior", "random_state": 0}
    X = rng.uniform(-1, 1, size=(40_000, 50))
    encoder = OMEEncoder(epsilon, n_integer_bits=0, n_fraction_bits=9, standardize=False, **parameters).fit(X)
    served = encoder.bit_epsilon_.reshape(50, 10) > 0
    assert not served[:, 1:].any()
    # Over so many values the mean squared error has a standard error below 0.0004.
    assert ((encoder.decode(encoder.transform(X)) - X) ** 2).mean() == pytest.approx(uniform, abs=0.002)
    X = rng.normal(size=(40_000, 50))
    encoder = OMEEncoder(epsilon, standardize=(0.0, 1.0), **parameters).fit(X)
    # The default range of 16 does no harm: the prior knows that standardised values are small.
    assert ((encoder.decode(encoder.transform(X)) - X) ** 2).mean() == pytest.approx(normal_error, abs=0.006)


def test_served_features_do_not_depend_on_the_data():
    parameters = {"protocol": "optimal", "objective": "posterior"}
    first, second = (
        OMEEncoder(8.0, random_state=3, **parameters).fit(X) for X in (normal(20, 50), 5 * normal(30, 50, seed=9))
    )
    np.testing.assert_array_equal(first.bit_epsilon_, second.bit_epsilon_)
    others = OMEEncoder(8.0, random_state=4, **parameters).fit(normal(20, 50))
    assert (others.bit_epsilon_ != first.bit_epsilon_).any()


def test_bits_that_tell_nothing_cannot_be_decoded():
    encoder = OMEEncoder(1e-18, protocol="sue").fit(normal())
    assert encoder.privacy_.epsilon == 0
    with pytest.raises(ValueError, match="leaves bits that tell nothing"):
        encoder.decode(encoder.transform(normal()))


def test_decode_refuses_what_is_no_bits():
    encoder = OMEEncoder().fit(normal())
    with pytest.raises(ValueError, match="B must have 30 columns, 10 bits for each of 3 features; got 29"):
        encoder.decode(np.zeros((2, 29)))
    with pytest.raises(ValueError, match="B must hold zeros and ones only"):
        encoder.decode(np.full((2, 30), 0.5))


# Standardisation


def test_statistics_are_learned_given_or_left_out():
    X = 5 + 3 * normal()
    learned = OMEEncoder().fit(X)
    np.testing.assert_allclose(learned.mean_, X.mean(axis=0))
    np.testing.assert_allclose(learned.scale_, X.std(axis=0))
    given = OMEEncoder(standardize=([1.0, 2.0, 3.0], 2)).fit(X)
    assert given.mean_.tolist() == [1, 2, 3]
    assert given.scale_.tolist() == [2, 2, 2]
    plain = OMEEncoder(standardize=False).fit(X)
    assert plain.mean_.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "standardize", [(1.0,), ("a", 1.0), ([1.0, 2.0], 1.0), (0.0, 0.0), (math.nan, 1.0), (0.0, -1.0)]
)
def test_bad_statistics_are_refused(standardize):
    with pytest.raises(ValueError, match="standardize must"):
        OMEEncoder(standardize=standardize).fit(normal())


@given(exponent=st.integers(-1070, 1020), constant=st.booleans())
@settings(max_examples=40, deadline=None)
def test_huge_tiny_and_constant_columns(exponent, constant):
    X = np.ldexp(np.array([[1.0], [1.0], [1.5 - constant / 2], [1.0]]), exponent)
    encoder = OMEEncoder(math.inf).fit(X)
    bits = encoder.transform(X)
    assert np.isfinite(encoder.mean_).all()
    assert (encoder.scale_ > 0).all()
    if constant:
        assert len(np.unique(bits, axis=0)) == 1
    elif exponent > -1060:
        assert len(np.unique(bits, axis=0)) == 2


def test_values_beyond_the_range_saturate():
    encoder = OMEEncoder(math.inf, standardize=False).fit(normal(n_features=1))
    ends = encoder.decode(encoder.transform([[1e300], [-1e300], [16.0], [15.97]]))
    np.testing.assert_array_equal(ends[:, 0], [16 - 2**-5, -16 + 2**-5, 16 - 2**-5, 16 - 2**-5])


# Manners


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"n_integer_bits": 2.5}, "n_integer_bits"),
        ({"n_fraction_bits": -1}, "n_fraction_bits"),
        ({"n_integer_bits": 0, "n_fraction_bits": 0}, "n_integer_bits . n_fraction_bits must be from 1 to 52"),
        ({"protocol": "gray"}, "protocol"),
        ({"randomization_factor": 0.5}, "randomization_factor"),
        ({"randomization_factor": 2, "protocol": "sue"}, "randomization_factor"),
        ({"objective": "posterior"}, "objective"),
        ({"calibration": "published", "protocol": "optimal"}, "optimal"),
        ({"objective": "map"}, "objective"),
        ({"random_state": "x"}, "random_state"),
    ],
    ids=str,
)
def test_refuses_bad_parameters(parameters, message):
    encoder = OMEEncoder(**parameters)
    with pytest.raises(ValueError, match=message):
        encoder.fit(normal())
    assert not hasattr(encoder, "privacy_")


def test_names_through_pandas_and_polars():
    X = pd.DataFrame(normal(4, 2), columns=["age", "income"])
    encoder = OMEEncoder(n_integer_bits=2, n_fraction_bits=1).set_output(transform="pandas")
    out = encoder.fit_transform(X)
    assert list(out.columns[:5]) == ["age_sign", "age_int1", "age_int0", "age_frac1", "income_sign"]
    assert encoder.decode(out).shape == (4, 2)
    out = OMEEncoder().set_output(transform="polars").fit_transform(pl.from_pandas(X))
    assert out.columns[13] == "income_int1"
    assert OMEEncoder().fit(normal()).get_feature_names_out()[[0, 7]].tolist() == ["x0_sign", "x0_frac3"]


def test_pickle_pipeline_and_search():
    X = normal(300, 2)
    y = (X[:, 0] > 0).astype(int)
    encoder = pickle.loads(pickle.dumps(OMEEncoder(5.0).fit(X)))
    assert encoder.transform(X).shape == (300, 20)
    pipeline = make_pipeline(
        StandardScaler(),
        make_column_transformer((OMEEncoder(protocol="optimal", random_state=0), [0, 1])),
        LogisticRegression(),
    )
    grid = {"columntransformer__omeencoder__epsilon": [0.01, 20.0]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_ == {"columntransformer__omeencoder__epsilon": 20.0}
    assert search.best_score_ > 0.8


@pytest.mark.parametrize("protocol", ["sue", "optimal"])
def test_parameters_that_change_after_fit_change_nothing(protocol):
    X = np.random.default_rng(0).normal(size=(300, 3))
    encoder, same = (OMEEncoder(60.0, protocol=protocol, random_state=0).fit(X) for _ in range(2))
    encoder.set_params(
        epsilon=1.0, n_integer_bits=2, n_fraction_bits=1, protocol="oue", objective="posterior", standardize=False
    )
    bits = encoder.transform(X)
    np.testing.assert_array_equal(bits, same.transform(X))
    np.testing.assert_array_equal(encoder.decode(bits), same.decode(bits))
    assert encoder.get_feature_names_out().tolist() == same.get_feature_names_out().tolist()
    assert encoder.privacy_.epsilon == same.privacy_.epsilon
