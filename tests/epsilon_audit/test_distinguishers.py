"""Each distinguisher finds the leak it is made for, and none where there is none."""

import numpy as np
import pytest

from skfairdp.epsilon_audit import _distinguishers
from skfairdp.epsilon_audit._certified_bounds import certified_epsilon, choose_event
from skfairdp.epsilon_audit._distinguishers import lowest_bit, train_distinguishers
from skfairdp.random import random_stream

N = 4000


def bounds(draw, x, x_prime):
    """Certified epsilon of each distinguisher, on fresh draws."""
    scores = train_distinguishers(draw(x), draw(x_prime), random_stream(0))
    found = {}
    for name, score in scores.items():
        event, _ = choose_event(score(draw(x)), score(draw(x_prime)), 0.05, 0.0)
        counts = [event.count(score(draw(one))) for one in (x, x_prime)]
        more, less = counts if event.favours_x else counts[::-1]
        found[name.split(" (")[0]] = float(certified_epsilon(np.array(more), np.array(less), N, 0.05, 0.0))
    return found


def test_nothing_is_found_without_a_leak():
    rng = np.random.default_rng(0)
    found = bounds(lambda x: rng.normal(size=(N, 3)), 0, 1)
    assert max(found.values()) < 0.05
    assert bounds(lambda x: x + 5 * rng.normal(size=(N, 3)), 0, 5)["clamped values"] > 0.2


def test_laplace_noise_by_clamped_values():
    """epsilon = 2: the clamped values are the likelihood ratio up to weights."""
    rng = np.random.default_rng(0)
    found = bounds(lambda x: x + rng.laplace(size=(N, 2)).round(2), np.array([1.0, 0.0]), np.array([-1.0, 0.0]))
    assert 1.6 < found["clamped values"] < 2


def test_shared_noise_by_row_centred_values():
    rng = np.random.default_rng(0)
    found = bounds(lambda x: x + rng.laplace(scale=50, size=(N, 1)), np.array([0, 0.1, 1]), np.array([0, 0.9, 1]))
    assert found["scaled and row-centred values"] > 6
    assert found["clamped values"] < 4, "the noise hides much of the values themselves, so this one is the control"


def test_floating_point_noise_by_its_lowest_bits():
    """In double precision x + noise is rounded to a grid that depends on x; on a fixed grid the same attack fails."""
    rng = np.random.default_rng(0)
    found = bounds(lambda x: x + rng.laplace(scale=2.0, size=(N, 1)), 1.0, -1.0)
    assert found["values and their lowest bits"] > 3
    grid = bounds(lambda x: np.round((x + rng.laplace(scale=2.0, size=(N, 1))) * 1024) / 1024, 1.0, -1.0)
    assert grid["values and their lowest bits"] < 1


def test_categories_by_their_frequencies():
    rng = np.random.default_rng(0)
    table = {0: np.array([0.1, 0.4, 0.1, 0.4]), 1: np.array([0.4, 0.1, 0.4, 0.1])}
    found = bounds(lambda x: rng.choice(4, size=(N, 1), p=table[x]).astype(float), 0, 1)
    assert 1.1 < found["exact outputs"] < np.log(4)


def test_strings_by_words_and_by_frequencies():
    rng = np.random.default_rng(0)

    def masked(word):
        noise = rng.integers(0, 10**9, N)
        return np.array([f"{word if rng.random() < 0.1 else '*'} {k}" for k in noise])

    found = bounds(masked, "cat", "dog")
    assert found["words in the output"] > 3
    assert "exact outputs" not in found, "outputs that never repeat have no frequencies"
    assert max(bounds(lambda word: np.array(["", " "] * (N // 2)), "cat", "dog").values()) == 0
    assert bounds(lambda word: np.array([word] * N), "cat", "dog")["exact outputs"] > 6


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_outputs_that_are_not_finite_tell_an_input_apart(bad):
    rng = np.random.default_rng(0)

    def draw(x):
        out = rng.normal(size=(N, 2))
        out[: N // 3 if x else 0, 1] = bad
        return out

    assert max(bounds(draw, 0, 1).values()) > 4


def test_wide_outputs_keep_the_columns_that_differ(monkeypatch):
    monkeypatch.setattr(_distinguishers, "MAX_LINEAR_COLUMNS", 4)
    monkeypatch.setattr(_distinguishers, "_MAX_BOOSTED_COLUMNS", 2)
    rng = np.random.default_rng(0)
    where = np.zeros(60)
    where[57] = 1.0
    found = bounds(lambda x: x * where + rng.laplace(scale=0.5, size=(N, 60)).round(2), 1.0, 0.0)
    assert min(found.values()) > 1


def test_lowest_bit():
    values = np.array([1.0, -6.0, 0.375, 2.0**-1060, 1 + 2.0**-52, 0.0, np.nan, -np.inf])
    assert lowest_bit(values).tolist() == [0, 1, -3, -1060, -52, 64, 128, 128]
