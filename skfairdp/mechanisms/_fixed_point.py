"""Rows as randomised bits: standardise, write in fixed point, randomise every bit."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skfairdp.accounting import PrivacyGuarantee, ReleaseEvent
from skfairdp.mechanisms._bits import decode_bits, encode_bits
from skfairdp.mechanisms._mechanism import Mechanism, check_columns, equality_ratio
from skfairdp.mechanisms._randomised_response import BLOCK_BITS, BinaryChannel
from skfairdp.random import RandomStream, SeedIdentity, random_stream


@dataclass(frozen=True, eq=False)
class FixedPointBits(Mechanism):
    """Fixed-point bits of standardised rows, each through a channel of its own.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_features,)
        What is subtracted, and what the difference is divided by.
    n_integer_bits, n_fraction_bits : int
        Bits before and after the binary point.
    code : {"offset", "sign-magnitude"}
        How numbers are written.
    channel : BinaryChannel or None
        What the bits of a row pass; ``None`` releases them as they are.
    protocol : str
        The name of the protocol, for the receipt.
    published_epsilon : float or None
        What a paper claims for this channel.
    """

    mean: np.ndarray
    scale: np.ndarray
    n_integer_bits: int
    n_fraction_bits: int
    code: str
    channel: BinaryChannel | None
    protocol: str = "bits"
    published_epsilon: float | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        """The protocol."""
        return f"{self.protocol} randomised response"

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return len(self.mean)

    @property
    def n_bits(self) -> int:
        """Bits per feature, sign included."""
        return 1 + self.n_integer_bits + self.n_fraction_bits

    @property
    def event(self) -> ReleaseEvent:
        """The losses of all bits, added."""
        return ReleaseEvent(math.inf if self.channel is None else self.channel.epsilon)

    def guarantee(self, *, seed: SeedIdentity | None = None, **words: Any) -> PrivacyGuarantee:
        """Write the receipt, with the published epsilon beside the exact one."""
        return super().guarantee(seed=seed, **{"published_epsilon": self.published_epsilon, **words})

    def check(self, X: np.ndarray) -> None:
        """Check the number of columns and that values are numbers: a nan has no bits."""
        check_columns(X, self.n_features)
        if not np.isfinite(X).all():
            raise ValueError("X must hold finite numbers; got nan or infinity.")

    def encode(self, X: np.ndarray) -> np.ndarray:
        """Return the clean bits of each row."""
        with np.errstate(over="ignore"):  # what overflows saturates
            values = (X - self.mean) / self.scale
        return encode_bits(values, self.n_integer_bits, self.n_fraction_bits, code=self.code)

    def decode(self, bits: np.ndarray) -> np.ndarray:
        """Return the values that bits, or estimates of them, stand for."""
        values = decode_bits(bits, self.n_integer_bits, self.n_fraction_bits, code=self.code)
        return values * self.scale + self.mean

    def release(self, X: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Write each row in bits and randomise them.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        stream : RandomStream
            Where the random bits come from.

        Returns
        -------
        ndarray of int8 of shape (n_samples, n_features * n_bits)
            Zeros and ones; signed, so that differences of bits do not wrap round.
        """
        self.check(X)
        bits = np.empty((len(X), self.n_features * self.n_bits), dtype=np.int8)
        step = max(1, BLOCK_BITS // bits.shape[1])
        for start in range(0, len(X), step):
            block = self.encode(X[start : start + step])
            bits[start : start + step] = block if self.channel is None else self.channel.release(block, stream)
        return bits

    def log_likelihood_ratio(self, y: np.ndarray, x: np.ndarray, x_prime: np.ndarray) -> np.ndarray:
        """Return ``log P(y | x) - log P(y | x_prime)``, exactly.

        Parameters
        ----------
        y : ndarray of shape (n_samples, n_features * n_bits)
            Released bits.
        x, x_prime : ndarray of shape (1, n_features) or (n_samples, n_features)
            Two records.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = self.encode(x), self.encode(x_prime)
        return equality_ratio(y, *codes) if self.channel is None else self.channel.log_likelihood_ratio(y, *codes)

    def worst_case_pairs(self, stream: RandomStream | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return records whose codes differ in every bit, and records that differ in one feature alone."""
        size = self.n_features * self.n_bits
        worst = np.ones(size, dtype=np.uint8) if self.channel is None else self.channel.worst_code()
        random = (stream or random_stream(0)).generator.integers(0, 2, size, dtype=np.uint8)
        pairs = [self._records(worst, 1 - worst), self._records(random, 1 - random)]
        for feature in dict.fromkeys((0, self.n_features - 1)):
            other = worst.copy()
            other[feature * self.n_bits : (feature + 1) * self.n_bits] ^= 1
            pairs.append(self._records(worst, other))
        return pairs

    def _records(self, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two records with these codes."""
        codes = np.stack([first, second])
        values = decode_bits(codes, self.n_integer_bits, self.n_fraction_bits, code=self.code)
        if self.code == "sign-magnitude":  # a negative number that rounds to 0
            negative = codes[:, :: self.n_bits] == 1
            values[negative & (values == 0)] = -(2.0 ** -(self.n_fraction_bits + 2))
        one, other = values * self.scale + self.mean
        return one, other
