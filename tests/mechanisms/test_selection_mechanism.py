"""The best of a random number of trials: exact probabilities, what is drawn, and faults that an audit finds."""

import math

import numpy as np
import pytest

from skfairdp import audit_epsilon
from skfairdp.accounting import selection_epsilon
from skfairdp.mechanisms import _selection_mechanism, _vote_mechanism, selection_mechanism
from skfairdp.random import RandomStream, random_stream

MECHANISM = selection_mechanism(2.0, 0.0, expected_trials=6.0)
ALIKE = [np.array([math.e, 1.0]) / (1 + math.e), np.array([1.0, math.e]) / (1 + math.e)]  # trials of epsilon 1


def trial_of(probabilities):
    """A trial whose outcome is its score."""
    ends = np.cumsum(probabilities)[:-1]

    def trial(stream):
        outcome = int(np.searchsorted(ends, stream.uint64(1)[0] / 2.0**64, side="right"))
        return outcome, outcome

    return trial


def test_trials_spend_what_the_mechanism_can_afford():
    for epsilon, delta in [(0.1, 0.0), (1.0, 1e-5), (8.0, 1e-6), (40.0, 1e-5)]:
        mechanism = selection_mechanism(epsilon, delta, expected_trials=10.0, eta=0.5)
        assert mechanism.event.epsilon == epsilon
        spent = _selection_mechanism.ReleaseEvent(mechanism.budget.epsilon, mechanism.budget.delta)
        assert selection_epsilon(spent, mechanism.trials, delta) <= epsilon
    assert selection_mechanism(math.inf, 1e-5, expected_trials=2.0).event.delta == 0


def test_room_is_left_for_the_samplers_of_votes():
    assert _vote_mechanism._SHARE <= _selection_mechanism.SAMPLER_SHARE


def test_the_first_of_the_best_is_released():
    trials = iter([(1, "a"), (3, "b"), (3, "c"), (2, "d")] * 50)
    found = {MECHANISM.release(lambda stream: next(trials), random_stream(0))[1] for _ in range(20)}
    assert "d" not in found or "a" in found  # neither wins unless it is alone
    rising = iter(range(1000))
    score, value = MECHANISM.release(lambda stream: (k := next(rising), k), random_stream(1))
    assert score == value == next(rising) - 1


def test_draws_are_as_likely_as_computed():
    stream, trial = random_stream(0), trial_of([0.6, 0.3, 0.1])
    drawn = [MECHANISM.release(trial, stream)[0] for _ in range(1500)]
    expected = MECHANISM.probabilities([0.6, 0.3, 0.1])
    np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 1500, expected, atol=4 * 0.5 / math.sqrt(1500))
    assert abs(expected[2] - 0.1) > 0.2  # one trial alone would be far from it


def test_every_trial_has_a_stream_of_its_own():
    words = []
    MECHANISM.release(lambda stream: (words.append(int(stream.uint64(1)[0])), 0)[::-1], RandomStream())
    drawn = [tuple(int(s.uint64(1)[0]) for s in random_stream(0).spawn(3))]
    assert len(set(words)) == len(words)
    assert len(set(drawn[0])) == 3


def test_worst_pairs_lose_nearly_all():
    mechanism = selection_mechanism(1.0, 0.0, expected_trials=1000.0)
    pairs = mechanism.worst_case_pairs()
    losses = [float(mechanism.log_likelihood_ratio(1, *pair)) for pair in pairs]
    assert losses == sorted(losses, reverse=True)
    assert 0.98 < losses[0] <= 1
    for first, second in pairs:
        assert np.abs(np.log(first / second)).max() <= mechanism.budget.epsilon * (1 + 1e-9)


def test_bad_input_is_named():
    with pytest.raises(TypeError, match="trial"):
        MECHANISM.check([0.5, 0.5])
    with pytest.raises(ValueError, match="mean"):
        selection_mechanism(1.0, 1e-5, expected_trials=1.0)
    with pytest.raises(ValueError, match="epsilon"):
        selection_mechanism(0.0, 1e-5, expected_trials=2.0)


# -- an audit ---------------------------------------------------------------------------------------------------------


def selected(draw):
    """A release whose record is a bit that decides between two alike trials; ``draw`` gives what is shown."""
    probabilities = np.array([trial[1] for trial in ALIKE])
    generator = np.random.default_rng(0)

    def release(rows):
        return np.array([draw(generator, probabilities[int(row[0])]) for row in np.asarray(rows)])

    return release


def honest(generator, chance):
    k = MECHANISM.trials.draw(random_stream(int(generator.integers(2**32))))
    return [float((generator.random(k) < chance).any())]


def fixed_number(generator, chance):
    return [float((generator.random(10) < chance).any())]


def number_shown(generator, chance):
    k = MECHANISM.trials.draw(random_stream(int(generator.integers(2**32))))
    return [float((generator.random(k) < chance).any()), float(k)]


@pytest.mark.parametrize(("draw", "caught"), [(honest, False), (fixed_number, True), (number_shown, True)])
def test_an_audit_finds_selections_that_show_too_much(draw, caught):
    """Ten trials, always, at the price of a random number, or the number shown: the same attack finds both."""
    audit = audit_epsilon(
        selected(draw), [0.0], [1.0], claimed=MECHANISM.epsilon, n_trials=4000, random_state=0, score="trained"
    )
    assert audit.contradicts == caught
    assert audit.epsilon_lower > 0.2
