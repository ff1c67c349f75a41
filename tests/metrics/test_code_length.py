"""Online code length: hand-computed prices, each block paid once, finite whatever the probe says."""

import math

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from skfairdp.metrics import CodeLength, online_code_length
from skfairdp.metrics._code_length import FRACTIONS, REFERENCE_FRACTIONS, _block_bits, block_ends


class Constant(ClassifierMixin, BaseEstimator):
    """Gives the first of its classes probability p, and shares the rest among the others."""

    def __init__(self, p=0.5):
        self.p = p

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        rest = (1 - self.p) / (len(self.classes_) - 1)
        return np.tile([self.p] + [rest] * (len(self.classes_) - 1), (len(X), 1))

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class Memory(Constant):
    """Knows the rows it was trained on, and guesses at others."""

    def fit(self, X, y):
        super().fit(X, y)
        self.known_ = dict(zip(X[:, 0], np.searchsorted(self.classes_, y)))
        return self

    def predict_proba(self, X):
        uniform = np.full(len(self.classes_), 1 / len(self.classes_))
        sure = np.eye(len(self.classes_))
        return np.array([sure[self.known_[x]] if x in self.known_ else uniform for x in X[:, 0]])


def rows(n, groups=2):
    return np.arange(float(n))[:, None], np.arange(n) % groups


@pytest.mark.parametrize(("n", "kbits"), [(16000, 15.6250), (137713, 134.4854), (56727, 55.3975), (12662, 12.3652)])
def test_uniform_code_is_n_log2_c(n, kbits):
    length = online_code_length(*rows(n), probe=Constant(0.5), n_orders=1, random_state=0)
    assert length.uniform_bits == n
    assert length.bits == pytest.approx(n, rel=1e-3)
    assert length.uniform_bits / 1024 == pytest.approx(kbits, abs=5e-5)


@pytest.mark.parametrize(("n", "kbits"), [(16000, 31.2812), (137713, 269.2344), (56727, 110.90), (12662, 24.75)])
def test_reference_counts_the_uniform_code_twice(n, kbits):
    """The published value for random labels on 16,000 rows is 31.3, which the equation (15.6) cannot give."""
    length = online_code_length(*rows(n), probe=Constant(0.5), n_orders=1, reference_compatible=True, random_state=0)
    assert length.kbits == pytest.approx(kbits, abs=0.04)
    assert length.uniform_bits / 1024 == pytest.approx(kbits, abs=5e-3)
    assert length.uniform_bits / n == pytest.approx(2.002, abs=1e-3)


def test_memory_shortens_the_reference_and_not_the_equation():
    """The reference prices rows that the probe was trained on: learning noise by heart pays off there."""
    H, z = rows(2000)
    once = online_code_length(H, z, probe=Memory(), n_orders=1, random_state=0)
    again = online_code_length(H, z, probe=Memory(), n_orders=1, reference_compatible=True, random_state=0)
    assert once.compression == pytest.approx(1, abs=0.01), "new rows are not in the memory"
    assert again.compression > 1.9, "the fault: half of what is priced is in the memory"


def test_a_hand_computed_length():
    """Ten rows, ends at 2, 5, 10: 2 bits, then eight labels at 3/4 or 1/4, mixed with a hundredth of the coin."""
    H, z = rows(10)
    length = online_code_length(
        H, z, probe=Constant(0.75), fractions=[0.2, 0.5, 1], smoothing=0.01, n_orders=40, random_state=0
    )
    price = [-math.log2(0.99 * 0.75 + 0.005), -math.log2(0.99 * 0.25 + 0.005)]
    possible = set()
    for zeros in range(9):
        possible.add(round(2 + zeros * price[0] + (8 - zeros) * price[1], 9))
        for block_zeros in range(4):  # the first two labels were equal, so three rows go by the rule of succession
            for first in (block_zeros, 3 - block_zeros):
                same = -math.log2(3 / 4) * first - math.log2(1 / 4) * (3 - first)
                possible |= {round(2 + same + k * price[0] + (5 - k) * price[1], 9) for k in range(6)}
    assert all(round(bits, 9) in possible for bits in length.bits_per_order)
    assert length.bits == pytest.approx(np.mean(length.bits_per_order))
    assert len(set(length.bits_per_order)) > 1


def test_block_prices():
    labels = np.array([0, 1, 1, 0, 2])
    H = np.zeros((5, 1))
    known, block = np.array([0, 1, 2]), np.array([3, 4])
    bits = _block_bits(Constant(0.9), H, labels, 3, known, block, 0.001)
    assert bits == pytest.approx(-math.log2(0.999 * 0.9 + 0.001 / 3) - math.log2(0.001 / 3)), "the unseen class"
    one_class = _block_bits(Constant(), H, labels, 3, np.array([1, 2]), block, 0.001)
    assert one_class == pytest.approx(-2 * math.log2(1 / 5)), "rule of succession: two of class 1, none of 0 and 2"


def test_classes_are_mapped_by_name_and_not_by_position():
    """Only classes 1 and 2 are known; a probe column taken for its class number would price the wrong class."""
    labels = np.array([1, 2, 1])
    bits = _block_bits(Constant(0.9), np.zeros((3, 1)), labels, 3, np.array([0, 1]), np.array([2]), 1e-3)
    assert bits == pytest.approx(-math.log2(0.999 * 0.9 + 0.001 / 3))


def test_certain_and_wrong_costs_a_finite_price():
    H, z = rows(100)
    length = online_code_length(H, z, probe=Constant(1.0), fractions=[0.1, 1], n_orders=1, random_state=0)
    assert math.isfinite(length.bits)
    wrong = -math.log2(0.0005)
    assert length.bits == pytest.approx(10 + 45 * wrong, abs=10 * wrong)


def test_every_label_is_priced_once():
    """A probe that gives 1/2 to everything: the length is n bits for any fractions, and 2n would be the fault."""
    H, z = rows(1000)
    for fractions in (FRACTIONS, [0.5, 1], [1.0], [0.013, 0.4, 1]):
        length = online_code_length(H, z, probe=Constant(0.5), fractions=fractions, n_orders=2, random_state=0)
        assert length.bits == pytest.approx(1000, abs=8), "short prefixes of one class deviate by a few bits"


def test_block_ends():
    assert block_ends(FRACTIONS, 16000) == [16, 32, 64, 128, 256, 512, 1000, 2000, 4000, 8000, 16000]
    assert block_ends(REFERENCE_FRACTIONS, 16000)[6] == 1024
    assert block_ends(FRACTIONS, 100) == [1, 3, 6, 12, 25, 50, 100]
    assert block_ends([0.29, 1], 100) == [29, 100]
    assert block_ends(FRACTIONS, 2) == [1, 2]


def test_signal_is_shorter_than_noise_and_control():
    rng = np.random.default_rng(0)
    n = 1000
    z = rng.choice(["f", "m"], p=[0.3, 0.7], size=n)
    H = rng.normal(size=(n, 8)) + 1.5 * (z == "f")[:, None]
    clear = online_code_length(H, z, n_orders=2, control=True, random_state=0)
    nothing = online_code_length(rng.normal(size=(n, 8)), z, n_orders=2, random_state=0)
    entropy = -n * sum(p * math.log2(p) for p in (np.mean(z == "f"), np.mean(z == "m")))
    assert clear.compression > 4
    assert abs(nothing.bits - clear.control_bits) < 0.03 * n, "random labels are as hard as a useless representation"
    assert 0.98 * entropy < nothing.bits < 1.06 * entropy
    assert nothing.bits < nothing.uniform_bits == n


def test_several_columns_are_sent_as_their_intersection():
    table = pd.DataFrame({"a": np.arange(80) % 2, "b": np.arange(80) // 40})
    length = online_code_length(np.zeros((80, 1)), table, probe=Constant(0.25), random_state=0)
    assert (length.n_groups, length.uniform_bits, length.n_samples) == (4, 160.0, 80)


def test_labels_of_any_type_cost_the_same():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 200)
    H = rng.normal(size=(200, 2)) + codes[:, None]
    lengths = {
        online_code_length(H, [names[c] for c in codes], probe=LogisticRegression(), random_state=0).bits
        for names in ("abc", (1.5, 2.5, 9.0), [("x", 1), ("x", 2), ("y", 1)])
    }
    assert len(lengths) == 1


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_a_seed_decides_everything_also_in_other_workers(backend):
    rng = np.random.default_rng(0)
    H, z = rng.normal(size=(120, 3)), rng.integers(0, 2, 120)
    first = online_code_length(H, z, n_orders=2, control=True, random_state=1)
    with parallel_config(backend):
        assert first == online_code_length(H, z, n_orders=2, control=True, random_state=1, n_jobs=2)
    assert first.bits != online_code_length(H, z, n_orders=2, random_state=2).bits
    assert float(first) == first.bits == 1024 * first.kbits


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sensitive_features": ["a"] * 20}, "sensitive_features"),
        ({"sensitive_features": [0, 1]}, "sensitive_features"),
        ({"fractions": [0.5]}, "fractions must increase"),
        ({"fractions": [0.5, 0.5, 1]}, "fractions must increase"),
        ({"fractions": [0, 1]}, "fractions must increase"),
        ({"fractions": []}, "fractions must increase"),
        ({"n_orders": 0}, "n_orders"),
        ({"n_orders": True}, "n_orders"),
        ({"smoothing": 0}, "smoothing must be greater than 0"),
        ({"smoothing": 1.5}, "smoothing must be greater than 0"),
        ({"probe": LinearSVC()}, "a code needs probabilities"),
        ({"probe": "pool"}, "probe"),
        ({"H": np.full((20, 1), np.inf)}, "H contains infinity"),
    ],
)
def test_bad_input_is_named(arguments, message):
    good = {"H": np.zeros((20, 1)), "sensitive_features": [0, 1] * 10, "probe": "linear"}
    with pytest.raises(ValueError, match=message):
        online_code_length(**{**good, **arguments})


def test_result_cannot_be_changed():
    length = CodeLength(1.0, (1.0,), 2.0, None, 2, 2)
    with pytest.raises(AttributeError):
        length.bits = 0.0
