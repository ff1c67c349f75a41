"""Where randomness comes from.

``random_state=None`` means the operating system's entropy, and never the global
stream of NumPy or torch. An int or ``SeedSequence`` gives a reproducible stream, which is
for tests and experiments: noise protects nobody from a person who knows the seed, nor from
one who sees two releases that start from it. A ``Generator`` or ``RandomState`` decides what
is trained and how rows are split, but never the noise of a release: scikit-learn's ``clone``
copies it, and two copies would draw the same noise.

A stream draws its words once. In another process (a fork, or a pickle sent to a worker) it
reads the operating system instead, because two holders of the same noise give away the
difference of their rows. A copy of a seeded stream in the same process continues where the
original stood, as seeds promise, and has an identity of its own: releases of both together
cost infinity.
"""

import hashlib
import os
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from skfairdp._process import ProcessLock, process_token

__all__ = ["RandomState", "RandomStream", "SeedIdentity", "noise_stream", "random_stream"]

RandomState: TypeAlias = int | np.integer | np.random.SeedSequence | np.random.Generator | np.random.RandomState | None

_waking = ProcessLock()


@dataclass(frozen=True)
class SeedIdentity:
    """Tells whether two releases drew the same noise.

    Attributes
    ----------
    seed : str
        A fingerprint of the seed.
    stream : str
        Which stream that was started from it, by default a new one: one stream never draws a word twice, and two
        streams from the same seed draw the same words.

    Examples
    --------
    >>> from skfairdp.random import random_stream
    >>> first, second = random_stream(0), random_stream(0)
    >>> first.identity.seed == second.identity.seed, first.identity.stream == second.identity.stream
    (True, False)
    """

    seed: str
    stream: str = field(default_factory=lambda: os.urandom(8).hex())


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
    identity : SeedIdentity or None
        Of a reproducible stream.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.random import RandomStream
    >>> RandomStream().secure
    True
    >>> RandomStream(np.random.SeedSequence(0)).uint32(2).shape
    (2,)
    """

    def __init__(self, seed_sequence: np.random.SeedSequence | None = None):
        self.secure = seed_sequence is None
        self.identity = None if seed_sequence is None else SeedIdentity(_seed_fingerprint(seed_sequence))
        self._token = process_token()
        self._generator = np.random.Generator(np.random.PCG64DXSM(seed_sequence))

    def __reduce__(self) -> tuple:
        self._wake()
        if self.identity is None:
            return RandomStream, ()
        return _copy_of_stream, (self.identity.seed, self._token, self._generator)

    def _wake(self) -> None:
        """Start anew in a forked child: its parent goes on with the words that both remember."""
        if self._token != process_token():
            with _waking:
                if self._token != process_token():  # the first thread to come here has not done it yet
                    self.secure, self.identity = True, None
                    self._generator = np.random.Generator(np.random.PCG64DXSM())
                    self._token = process_token()

    @property
    def generator(self) -> np.random.Generator:
        """A NumPy generator on this stream, for draws that protect nobody (initial weights, shuffling)."""
        self._wake()
        return self._generator

    def uint32(self, n: int) -> np.ndarray:
        """Draw ``n`` independent uniform 32-bit words; the array may be read-only.

        Parameters
        ----------
        n : int
            How many.
        """
        return self._words(n, np.uint32)

    def uint64(self, n: int) -> np.ndarray:
        """Draw ``n`` independent uniform 64-bit words; the array may be read-only.

        Parameters
        ----------
        n : int
            How many.
        """
        return self._words(n, np.uint64)

    def _words(self, n: int, dtype: type[np.unsignedinteger]) -> np.ndarray:
        self._wake()
        if self.secure:
            return np.frombuffer(os.urandom(n * np.dtype(dtype).itemsize), dtype=dtype)
        return self._generator.integers(0, np.iinfo(dtype).max, size=n, dtype=dtype, endpoint=True)

    def seed(self) -> int:
        """Draw a seed for a library that wants an int below 2**32 (scikit-learn, torch)."""
        return int(self.uint32(1)[0])

    def spawn(self, n: int) -> list["RandomStream"]:
        """Make ``n`` streams, independent of each other and of this one: one for each worker.

        Parameters
        ----------
        n : int
            How many.
        """
        self._wake()
        if self.secure:
            return [RandomStream() for _ in range(n)]
        words = self.uint64(4 * n).reshape(n, 4)
        return [RandomStream(np.random.SeedSequence(row)) for row in words.tolist()]


def _copy_of_stream(seed: str, token: bytes, generator: np.random.Generator) -> RandomStream:
    """Make the copy of a seeded stream: it goes on in the same process, and starts anew in another one."""
    stream = RandomStream()
    if token == process_token():
        stream.secure, stream.identity, stream._generator = False, SeedIdentity(seed), generator
    return stream


def random_stream(random_state: "RandomState | RandomStream" = None) -> RandomStream:
    """Turn a ``random_state`` into a stream for draws that protect nobody.

    A ``Generator`` or ``RandomState`` is advanced, so that two objects which are
    given the same one draw different words.

    Parameters
    ----------
    random_state : int, SeedSequence, Generator, RandomState, RandomStream or None, default=None
        None reads the operating system. A stream is returned as it is.

    Returns
    -------
    RandomStream

    Examples
    --------
    >>> from skfairdp.random import random_stream
    >>> random_stream(0).seed() == random_stream(0).seed()
    True
    """
    if isinstance(random_state, RandomStream):
        return random_state
    if random_state is None or isinstance(random_state, np.random.SeedSequence):
        return RandomStream(random_state)
    if isinstance(random_state, np.random.Generator):
        return RandomStream(np.random.SeedSequence(random_state.integers(0, 2**32, size=4).tolist()))
    if isinstance(random_state, np.random.RandomState):
        words = random_state.randint(0, 2**32, size=4, dtype=np.uint64)
        return RandomStream(np.random.SeedSequence(words.tolist()))
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return RandomStream(np.random.SeedSequence(int(random_state)))
    raise ValueError(
        "random_state must be None (operating-system entropy), a non-negative int, a numpy Generator, "
        f"SeedSequence or RandomState; got {random_state!r}."
    )


def noise_stream(random_state: "RandomState | RandomStream" = None) -> RandomStream:
    """Turn a ``random_state`` into a stream for the noise of a release.

    A ``Generator`` or ``RandomState`` gives the operating system's entropy: whoever passes one has not asked for
    noise that repeats, and its copies in clones would repeat it.

    Parameters
    ----------
    random_state : int, SeedSequence, Generator, RandomState, RandomStream or None, default=None
        Only an int, a SeedSequence or a seeded stream make noise that can be reproduced.

    Returns
    -------
    RandomStream

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.random import noise_stream
    >>> noise_stream(np.random.default_rng(0)).secure, noise_stream(0).secure
    (True, False)
    """
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return RandomStream()
    return random_stream(random_state)


def training_and_noise_streams(random_state: "RandomState | RandomStream" = None) -> tuple[RandomStream, RandomStream]:
    """Turn a ``random_state`` into a stream to train by, and one for the noise of releases."""
    noise = noise_stream(random_state)
    fresh_noise = isinstance(random_state, np.random.Generator | np.random.RandomState)
    return (random_stream(random_state) if fresh_noise else noise), noise


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
    if names:
        copy.set_params(**dict.fromkeys(names, seed))
    for value in copy.get_params().values():
        # A splitter (cv=KFold(shuffle=True)) is no estimator. Without a seed it draws from NumPy's global stream, which
        # all models of a process would share. clone has copied it, so that the user's own stays as it is.
        if hasattr(value, "split") and hasattr(value, "random_state") and (overwrite or value.random_state is None):
            value.random_state = seed
    return copy


def _seed_fingerprint(seed_sequence: np.random.SeedSequence) -> str:
    """Name a seed by the words that it leads to: equal for an int and for a sequence made from it."""
    return hashlib.sha256(seed_sequence.generate_state(8).tobytes()).hexdigest()[:16]
