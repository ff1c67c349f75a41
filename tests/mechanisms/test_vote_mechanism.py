"""Noisy votes: the noise that was asked for, and post-processing that keeps what it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kstest, norm

from skfairdp.mechanisms import binary_labels, hard_labels, noisy_votes, soft_labels, vote_mechanism
from skfairdp.mechanisms._vote_mechanism import binary_slack, vote_slack
from skfairdp.random import random_stream

VOTES = np.tile([100, 40, 10], (20_000, 1))


@pytest.mark.parametrize("sigma", [0.5, 1.9, 74.6, 3000.0])
def test_noise_is_gaussian_of_the_scale_asked_for(sigma):
    noise = noisy_votes(VOTES, sigma, random_stream(0)) - VOTES
    z = (noise / sigma).ravel()
    # False alarm once in a thousand; noise that is 10 % too small is refused by the same test.
    assert kstest(z, norm.cdf).pvalue > 1e-3
    assert kstest(0.9 * z, norm.cdf).pvalue < 1e-12
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.03


def test_a_table_of_its_own_gives_the_same_distribution():
    noise = noisy_votes(VOTES, 1.9, random_stream(0), one_table=True) - VOTES
    assert kstest((noise / 1.9).ravel(), norm.cdf).pvalue > 1e-3


def test_grid_does_not_depend_on_the_votes():
    for votes in (VOTES, VOTES + 1):
        noisy = noisy_votes(votes, 50.0, random_stream(None), one_table=True)
        assert np.array_equal(noisy * 32, np.rint(noisy * 32))
        grid = np.floor(
            2304 * np.sqrt(1 + 128**2 + 128**4 + 128**6) / 50.0
        )  # the least sum with 2**20 steps to one sigma
        steps = noisy_votes(votes, 50.0, random_stream(None)) * grid
        np.testing.assert_allclose(steps, np.rint(steps), rtol=1e-15, atol=1e-6)


@pytest.mark.parametrize("votes", [[90, 60], [60, 90], [75, 75], [150, 0]])
def test_binary_labels_follow_noisy_counts(votes):
    n = 200_000
    label = binary_labels(np.tile(votes, (n, 1)), 50.0, random_stream(1))
    p = norm.cdf((votes[1] - votes[0]) / (np.sqrt(2) * 50))
    # Five standard deviations; noise that is 10 % too small is refused where the vote is not tied.
    assert abs(label.mean() - p) < 5 * np.sqrt(p * (1 - p) / n)
    if votes[0] != votes[1]:
        wrong = norm.cdf((votes[1] - votes[0]) / (np.sqrt(2) * 45))
        assert abs(label.mean() - wrong) > 5 * np.sqrt(wrong * (1 - wrong) / n)
    counts = hard_labels(noisy_votes(np.tile(votes, (n, 1)), 50.0, random_stream(2)))
    assert abs(counts.mean() - label.mean()) < 7 * np.sqrt(p * (1 - p) / n)


def test_binary_labels_keep_a_least_probability():
    label = binary_labels(np.tile([10_000, 0], (4_000_000, 1)), 0.01, random_stream(0))
    assert 1 <= label.sum() <= 20  # 3.8 expected
    assert binary_labels(np.array([[3, 3], [2, 5]]), 0.0, random_stream(0)).tolist() == [0, 1]
    with pytest.raises(ValueError, match="classes"):
        binary_labels(VOTES, 1.0, random_stream(0))


def test_two_calls_differ_and_a_seed_reproduces():
    stream = random_stream(0)
    first, second = noisy_votes(VOTES, 5.0, stream), noisy_votes(VOTES, 5.0, stream)
    assert (first != second).mean() > 0.9
    assert np.array_equal(first, noisy_votes(VOTES, 5.0, random_stream(0)))


def test_no_noise_returns_the_counts():
    assert np.array_equal(noisy_votes(VOTES, 0.0, random_stream(0)), VOTES)


@pytest.mark.parametrize("sigma", [-1.0, np.nan, np.inf, 1e-6])
def test_bad_noise_scale_is_refused(sigma):
    with pytest.raises(ValueError, match="noise_scale"):
        noisy_votes(VOTES, sigma, random_stream(0))


def test_votes_that_are_no_counts_are_refused():
    with pytest.raises(ValueError, match="whole numbers"):
        noisy_votes(np.array([[0.5, 0.5]]), 1.0, random_stream(0))


@given(arrays(float, (4, 3), elements=st.floats(-200, 300)))
def test_postprocessing_keeps_what_it_says(noisy):
    shares = soft_labels(noisy, 100, "none")
    affine, simplex, clip = (soft_labels(noisy, 100, how) for how in ("affine", "simplex", "clip"))
    for labels in (affine, simplex, clip):
        np.testing.assert_allclose(labels.sum(axis=1), 1, atol=1e-9)
    # Affine moves all classes of a row alike.
    np.testing.assert_allclose(np.ptp(affine - shares, axis=1), 0, atol=1e-9)
    assert simplex.min() >= 0
    # No probability vector is nearer than the projection: try the corners and the centre.
    for corner in [*np.eye(3), np.full(3, 1 / 3)]:
        assert (np.square(simplex - shares).sum(1) <= np.square(corner - shares).sum(1) + 1e-9).all()


def test_clean_votes_are_their_own_soft_labels():
    votes = np.array([[60, 30, 10], [0, 100, 0]])
    for how in ("affine", "simplex", "clip", "none"):
        np.testing.assert_allclose(soft_labels(votes, 100, how), votes / 100)
    assert hard_labels(votes).tolist() == [0, 1]
    with pytest.raises(ValueError, match="postprocess"):
        soft_labels(votes, 100, "softmax")


def test_slack_is_negligible_and_not_zero():
    for sigma in (2.0, 5000.0):
        for one_table in (False, True):
            epsilon, delta = vote_slack(10_000, sigma, 1.0, one_table=one_table)
            assert 0 <= epsilon < 1e-12
            assert 0 < delta < 1e-12
    assert 0 < binary_slack(10_000) < 1e-8


@pytest.mark.parametrize("labels", ["soft", "hard", "confident"])
@pytest.mark.parametrize("epsilon", [0.0, -1.0])
def test_epsilon_must_be_positive(labels, epsilon):
    sizes = {"n_asked": 10, "n_answered": 5, "n_classes": 2, "n_voting": 30}
    with pytest.raises(ValueError, match="epsilon"):
        vote_mechanism(labels, epsilon=epsilon, delta=1e-5, noise_scale=None, **sizes)
