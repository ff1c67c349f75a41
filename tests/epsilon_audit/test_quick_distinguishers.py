"""Each quick score finds the fault it is made for, where the others do not."""

import numpy as np
import pytest

from skfairdp.epsilon_audit._certified_bounds import certified_epsilon, choose_event
from skfairdp.epsilon_audit._distinguishers import least_varying_column, train_quick
from skfairdp.random import random_stream

N = 3000
DENSE = np.full(20, 0.05)


def bounds(draw):
    """Certified epsilon of each quick score, between x and -x, on fresh draws."""
    scores = train_quick(draw(1.0), draw(-1.0), random_stream(0))
    found = {}
    for name, score in scores.items():
        event, _ = choose_event(score(draw(1.0)), score(draw(-1.0)), 0.05, 0.0)
        counts = [event.count(score(draw(sign))) for sign in (1.0, -1.0)]
        more, less = counts if event.favours_x else counts[::-1]
        found[name.split(" (")[0]] = float(certified_epsilon(np.array(more), np.array(less), N, 0.05, 0.0))
    return found


def laplace(rng, shape=(N, 20)):
    return np.round(rng.laplace(0, 2.0, shape) * 1024) / 1024


def test_right_noise_shows_nothing_to_any_of_them():
    """The rows are 1/16 apart from 0, which is on the grid of the noise."""
    rng = np.random.default_rng(0)
    assert max(bounds(lambda sign: sign * np.full(20, 1 / 16) + laplace(rng)).values()) < 1.25


@pytest.mark.parametrize("column", [0, 7, 19])
def test_a_value_without_noise(column):
    rng = np.random.default_rng(0)

    def draw(sign):
        y = sign * DENSE + laplace(rng)
        y[:, column] = sign * DENSE[column]
        return y

    found = bounds(draw)
    assert found["one value"] > 6
    assert found["direction"] > 6


def test_a_direction_without_noise():
    """Every value has its noise; only a sum of all, with weights that nobody knows, has none."""
    rng = np.random.default_rng(0)
    direction = np.random.default_rng(1).normal(size=20)
    direction /= np.linalg.norm(direction)

    def draw(sign):
        noise = laplace(rng)
        return sign * DENSE + noise - np.outer(noise @ direction, direction)

    found = bounds(draw)
    assert found["direction"] > 6
    assert found["one value"] < 1


def test_floating_point_noise_in_one_value_and_in_many():
    rng = np.random.default_rng(0)
    one = bounds(lambda sign: np.array([sign, 0, 0]) + rng.laplace(0, 2.0, (N, 3)))
    assert one["one value's exponent and lowest bit"] > 3
    many = bounds(lambda sign: sign + rng.laplace(0, 40.0, (N, 20)))
    assert many["exponents and lowest bits"] > 2
    assert many["one value's exponent and lowest bit"] < many["exponents and lowest bits"]


def test_more_columns_than_rows_do_no_harm():
    rng = np.random.default_rng(0)
    scores = train_quick(rng.normal(size=(5, 300)), rng.normal(size=(5, 300)), random_stream(0))
    assert all(np.isfinite(score(rng.normal(size=(4, 300)))).all() for score in scores.values())


def test_words_have_frequencies_only():
    words = np.array(["a", "b"] * 50)
    assert list(train_quick(words, words, random_stream(0))) == ["exact outputs (frequencies)"]
    different = np.array([str(i) for i in range(100)])
    assert train_quick(different[:50], different[50:], random_stream(0)) == {}


@pytest.mark.parametrize("column", [0, 3])
def test_the_column_that_varies_least(column):
    y = np.random.default_rng(0).laplace(size=(200, 4))
    y[:, column] /= 3
    y[0, column] = np.nan
    assert least_varying_column(y) == column
