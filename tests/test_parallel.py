"""Tasks whose data went with a worker are run again, and others are not."""

from concurrent.futures import CancelledError

import pytest
from joblib import delayed

from skfairdp._parallel import parallel_results


def failing(times, error):
    """Tasks of which the first rounds are cancelled, and how many rounds there were."""
    rounds = []

    def task(x):
        if x == 0:
            rounds.append(x)
            if len(rounds) <= times:
                raise error
        return 2 * x

    return (lambda: (delayed(task)(x) for x in range(3))), rounds


@pytest.mark.parametrize("times", [0, 1, 2])
def test_cancelled_tasks_are_run_again(times):
    make_tasks, rounds = failing(times, CancelledError("the worker is gone"))
    assert parallel_results(make_tasks, None) == [0, 2, 4]
    assert len(rounds) == times + 1


def test_what_never_ends_well_is_told():
    make_tasks, rounds = failing(10, CancelledError("the worker is gone"))
    with pytest.raises(CancelledError, match="the worker is gone"):
        parallel_results(make_tasks, None)
    assert len(rounds) == 3


def test_other_errors_are_not_tried_again():
    make_tasks, rounds = failing(1, ValueError("a mistake"))
    with pytest.raises(ValueError, match="a mistake"):
        parallel_results(make_tasks, None)
    assert len(rounds) == 1
