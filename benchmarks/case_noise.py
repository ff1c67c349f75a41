"""Speed of safe noise against NumPy's floating-point noise, and against packages whose noise is meant to be safe."""

import numpy as np

from benchmarks import Peer, Timings, case
from skfairdp import GaussianPrivatizer, LaplacePrivatizer
from skfairdp.mechanisms import discrete_laplace, rounded_gaussian
from skfairdp.random import random_stream

SHAPE = (100_000, 100)
N_VALUES = SHAPE[0] * SHAPE[1]
EPSILON = 8.0
_PEER_VALUES = 10_000


def _rows() -> np.ndarray:
    return np.random.default_rng(0).normal(size=SHAPE)


@case("noise", "Laplace noise, 100,000 x 100, operating-system entropy, against numpy", ratio_at_most=1.5)
def laplace_against_numpy():
    stream, rng = random_stream(None), np.random.default_rng()
    discrete_laplace(1, 700.0, stream)  # the table is made once per process
    return Timings(
        ours=lambda: discrete_laplace(SHAPE, 700.0, stream),
        other=lambda: rng.laplace(scale=700.0, size=SHAPE),
    )


@case("noise", "LaplacePrivatizer.transform, 100,000 x 100, against normalise-and-add in numpy", ratio_at_most=2.0)
def privatizer_against_numpy():
    X, rng = _rows(), np.random.default_rng()
    privatizer = LaplacePrivatizer(epsilon=EPSILON).fit(X)
    privatizer.transform(X[:1])

    def plain():
        return X / np.abs(X).sum(axis=1, keepdims=True) + rng.laplace(scale=2 / EPSILON, size=SHAPE)

    return Timings(ours=lambda: privatizer.transform(X), other=plain)


@case("noise", "Gaussian noise, 100,000 x 100, operating-system entropy, against numpy", ratio_at_most=2.0)
def gaussian_against_numpy():
    stream, rng = random_stream(None), np.random.default_rng()
    rounded_gaussian(1, 2304.0, stream)
    return Timings(
        ours=lambda: rounded_gaussian(SHAPE, 2304.0, stream),
        other=lambda: rng.normal(scale=2304.0, size=SHAPE),
    )


@case("noise", "GaussianPrivatizer.transform, 100,000 x 100, against normalise-and-add in numpy", ratio_at_most=3.0)
def gaussian_privatizer_against_numpy():
    X, rng = _rows(), np.random.default_rng()
    privatizer = GaussianPrivatizer(epsilon=EPSILON).fit(X)
    privatizer.transform(X[:1])
    scale = privatizer.noise_scale_

    def plain():
        return X / np.linalg.norm(X, axis=1, keepdims=True) + rng.normal(scale=scale, size=SHAPE)

    return Timings(ours=lambda: privatizer.transform(X), other=plain)


def _against(peer: Peer) -> Timings:
    stream = random_stream(None)
    discrete_laplace(1, 700.0, stream)
    return Timings(
        ours=lambda: discrete_laplace(SHAPE, 700.0, stream),
        other=peer,
        ours_work=N_VALUES,
        other_work=_PEER_VALUES,
    )


@case("noise", "Laplace noise per value, against diffprivlib", speedup_at_least=100)
def laplace_against_diffprivlib():
    return _against(
        Peer(
            "diffprivlib",
            ["diffprivlib==0.6.6", "scikit-learn==1.5.2"],  # later ones have moved what it imports
            setup="from diffprivlib.mechanisms import Laplace\nmechanism = Laplace(epsilon=8.0, sensitivity=2.0)",
            run=f"for _ in range({_PEER_VALUES}):\n    mechanism.randomise(0.5)",
        )
    )


@case("noise", "Laplace noise per value, against OpenDP (whole vectors)", speedup_at_least=100)
def laplace_against_opendp():
    return _against(
        Peer(
            "opendp",
            ["opendp==0.16.0"],
            setup=(
                "import opendp.prelude as dp\n"
                "dp.enable_features('contrib')\n"
                "space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)\n"
                "mechanism = space >> dp.m.then_laplace(scale=0.25)\n"
                f"values = [0.5] * {_PEER_VALUES}"
            ),
            run="mechanism(values)",
        )
    )
