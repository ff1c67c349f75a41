"""Where randomness comes from.

``random_state=None`` means the operating system's entropy, and never the global
stream of NumPy or torch. An int, ``SeedSequence``, ``Generator`` or
``RandomState`` gives a reproducible stream, which is for tests and experiments:
noise protects nobody from a person who knows the seed.

A stream belongs to one process. A seeded stream that wakes up in another one (a
fork, or a pickle sent to a worker) starts a stream of its own, because two
workers with the same noise give away the difference of their rows. Inside one
process a pickled copy continues where the original stood.
"""

import os
import threading
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

RandomState: TypeAlias = int | np.integer | np.random.SeedSequence | np.random.Generator | np.random.RandomState | None

_process_token = os.urandom(16)


_waking = threading.Lock()


def _renew_process_token() -> None:
    global _process_token, _waking
    _process_token = os.urandom(16)
    _waking = threading.Lock()  # another thread of the parent may have held it, and is not here to let go


if hasattr(os, "register_at_fork"):  # absent on Windows, which does not fork
    os.register_at_fork(after_in_child=_renew_process_token)


def _entropy_words() -> list[int]:
    return [int(word) for word in np.frombuffer(os.urandom(16), dtype=np.uint32)]


class RandomStream:
    """A source of random words that is never rewound.

    Parameters
    ----------
    seed_sequence : numpy.random.SeedSequence or None
        ``None`` reads the operating system; a seed sequence makes the stream reproducible.

    Attributes
    ----------
    secure : bool
        Whether the words come from the operating system, so that nobody can replay them.
    """

    def __init__(self, seed_sequence: np.random.SeedSequence | None = None):
        self.secure = seed_sequence is None
        self._token = _process_token
        self._generator = np.random.Generator(np.random.PCG64DXSM(seed_sequence))

    @property
    def generator(self) -> np.random.Generator:
        """A NumPy generator on this stream, for draws that protect nobody (initial weights, shuffling)."""
        if self._token != _process_token:
            with _waking:
                if self._token != _process_token:  # the first thread to come here has not done it yet
                    own = np.random.SeedSequence([self._generator.bit_generator.random_raw(), *_entropy_words()])
                    self._generator = np.random.Generator(np.random.PCG64DXSM(own))
                    self._token = _process_token
        return self._generator

    def uint32(self, n: int) -> np.ndarray:
        """Draw ``n`` independent uniform 32-bit words; the array may be read-only."""
        return self._words(n, np.uint32)

    def uint64(self, n: int) -> np.ndarray:
        """Draw ``n`` independent uniform 64-bit words; the array may be read-only."""
        return self._words(n, np.uint64)

    def _words(self, n: int, dtype: type[np.unsignedinteger]) -> np.ndarray:
        if self.secure:
            return np.frombuffer(os.urandom(n * np.dtype(dtype).itemsize), dtype=dtype)
        return self.generator.integers(0, np.iinfo(dtype).max, size=n, dtype=dtype, endpoint=True)

    def seed(self) -> int:
        """Draw a seed for a library that wants an int below 2**32 (scikit-learn, torch)."""
        return int(self.uint32(1)[0])

    def spawn(self, n: int) -> list["RandomStream"]:
        """Make ``n`` streams, independent of each other and of this one: one for each worker."""
        if self.secure:
            return [RandomStream() for _ in range(n)]
        words = self.uint64(4 * n).reshape(n, 4)
        return [RandomStream(np.random.SeedSequence([int(word) for word in row])) for row in words]


def random_stream(random_state: "RandomState | RandomStream" = None) -> RandomStream:
    """Turn a ``random_state`` into a stream.

    A ``Generator`` or ``RandomState`` is advanced, so that two objects which are
    given the same one draw different noise.
    """
    if isinstance(random_state, RandomStream):
        return random_state
    if random_state is None:
        return RandomStream()
    if isinstance(random_state, np.random.SeedSequence):
        return RandomStream(random_state)
    if isinstance(random_state, np.random.Generator):
        return RandomStream(np.random.SeedSequence([int(w) for w in random_state.integers(0, 2**32, size=4)]))
    if isinstance(random_state, np.random.RandomState):
        words = random_state.randint(0, 2**32, size=4, dtype=np.uint64)
        return RandomStream(np.random.SeedSequence([int(w) for w in words]))
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return RandomStream(np.random.SeedSequence(int(random_state)))
    raise ValueError(
        "random_state must be None (operating-system entropy), a non-negative int, a numpy Generator, "
        f"SeedSequence or RandomState; got {random_state!r}."
    )


def spawn(random_state: "RandomState | RandomStream", n: int) -> list[RandomStream]:
    """Make ``n`` independent streams from a ``random_state``, one for each worker."""
    return random_stream(random_state).spawn(n)


def clone_with_seed(estimator: Any, seed: int, *, overwrite: bool = False) -> Any:
    """Clone an estimator, and give the seed to every ``random_state`` in it that is None.

    Parameters
    ----------
    estimator : estimator
        It may hold others, as pipelines do.
    seed : int
        Below 2**32.
    overwrite : bool, default=False
        Give it also to those that have a seed already: models that are to differ from each other would
        else all use the one that the user wrote.

    Returns
    -------
    estimator
    """
    copy = clone(estimator)
    names = [
        name
        for name, value in copy.get_params().items()
        if (name == "random_state" or name.endswith("__random_state")) and (overwrite or value is None)
    ]
    return copy.set_params(**dict.fromkeys(names, seed))
