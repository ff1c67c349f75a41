"""Tasks side by side through joblib, whatever its backend does to them."""

from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from joblib import Parallel

_ATTEMPTS = 3


def parallel_results(make_tasks: Callable[[], Iterable[Any]], n_jobs: int | None, verbose: int = 0) -> list[Any]:
    """Run tasks through joblib, and all of them again where a worker of a cluster took the data of others with it.

    joblib sends large arguments to single workers of a Dask cluster. If such a worker is lost, so are they, and all
    tasks that need them are cancelled.

    Parameters
    ----------
    make_tasks : callable
        Returns the tasks, each made by ``joblib.delayed``. They must give the same result each time: seeds are drawn
        before, and nothing is released that the account would not see twice.
    n_jobs, verbose : int
        Of joblib.

    Returns
    -------
    list
        The results, in the order of the tasks.
    """
    for _ in range(_ATTEMPTS - 1):
        with suppress(CancelledError):
            return Parallel(n_jobs=n_jobs, verbose=verbose)(make_tasks())
    return Parallel(n_jobs=n_jobs, verbose=verbose)(make_tasks())
