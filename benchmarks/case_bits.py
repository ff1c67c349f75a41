"""Speed of randomised response on bits: 100,000 rows of 50 features, 10 bits each."""

import numpy as np

from benchmarks import Peer, Timings, case
from skfairdp import OMEEncoder
from skfairdp.mechanisms import encode_bits, oue_mechanism, randomised_response
from skfairdp.random import random_stream

_ROWS, _FEATURES, _BITS = 100_000, 50, 10


def _data():
    return np.random.default_rng(0).normal(size=(_ROWS, _FEATURES))


def _straightforward(X, p, q, rng):
    """What one would write in NumPy: bit by bit, with a float for each; neither secure nor exact."""
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    steps = np.minimum(np.rint(np.abs(Z) * 32), 511).astype(np.int64)
    columns = [Z < 0, *((steps >> k) & 1 for k in range(8, -1, -1))]
    bits = np.stack(columns, axis=-1).reshape(len(X), -1)
    return (rng.random(bits.shape) < np.where(bits == 1, p, q)).astype(np.int8)


@case(
    "bits",
    "OMEEncoder.transform, 100,000 x 50 x 10 bits, against straightforward NumPy",
    speedup_at_least=3.0,
    reason="two fifths of it are random bytes of the operating system, where NumPy has a generator of its own; NumPy's "
    "side allocates gigabytes, which takes from one second to fifteen",
)
def encoder_against_numpy():
    X = _data()
    encoder = OMEEncoder(epsilon=8.0, protocol="oue").fit(X)
    p, q, rng = encoder.keep_probability_, encoder.flip_probability_, np.random.default_rng()
    return Timings(ours=lambda: encoder.transform(X), other=lambda: _straightforward(X, p, q, rng), repeats=3)


_OUE = "multi-freq-ldpy==0.2.5"


@case(
    "bits", "OMEEncoder.transform (oue), per bit, against multi-freq-ldpy's compiled OUE client", speedup_at_least=1.0
)
def encoder_against_multi_freq_ldpy():
    X = _data()
    encoder = OMEEncoder(epsilon=8.0, protocol="oue").fit(X)
    return Timings(
        ours=lambda: encoder.transform(X),
        other=_peer(_FEATURES * _BITS, 20_000),
        ours_work=_ROWS * _FEATURES * _BITS,
        other_work=20_000 * _FEATURES * _BITS,
    )


@case("bits", "randomised response on words of 10 bits, per bit, against multi-freq-ldpy's OUE", speedup_at_least=10.0)
def response_against_multi_freq_ldpy():
    """Its client takes one value at a time, so ten bits are one call."""
    bits = encode_bits(_data()[:20_000], 4, 5, bit_format="sign-magnitude").reshape(-1, _BITS)
    mechanism, stream = oue_mechanism(8.0, _BITS), random_stream(None)
    return Timings(
        ours=lambda: randomised_response(bits, mechanism, stream),
        other=_peer(_BITS, 200_000),
        ours_work=bits.size,
        other_work=200_000 * _BITS,
    )


def _peer(n_bits, n_values):
    """multi-freq-ldpy's OUE on one-hot rows with as many bits; called once, and so compiled, before it is timed."""
    return Peer(
        "multi-freq-ldpy",
        [_OUE],
        setup=(
            "from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client\n"
            f"values = [v % {n_bits} for v in range({n_values})]\n"
            f"UE_Client(0, {n_bits}, 8.0, True)"
        ),
        run=f"for v in values: UE_Client(v, {n_bits}, 8.0, True)",
    )
