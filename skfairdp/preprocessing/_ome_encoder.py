"""Fixed-point bits with randomised response, and an epsilon that is the sum over all of them."""

import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import check_array, gen_batches
from sklearn.utils.validation import FLOAT_DTYPES, check_is_fitted, validate_data

from skfairdp._base import SkfairdpEstimator, dense
from skfairdp._sklearn import Interval, StrOptions, check_feature_names_in, fit_context
from skfairdp._validation import check_epsilon, warn_user
from skfairdp.dp import ONE_RELEASE, REFUSED_TABLES, TRAINING_DATA, ReleaseMixin
from skfairdp.exceptions import OverclaimedPrivacyWarning
from skfairdp.mechanisms import (
    BLOCK_BITS,
    BitMechanism,
    FixedPointBits,
    allocate_posterior,
    allocate_unbiased,
    allocated_bit_mechanism,
    bit_names,
    bit_weights,
    check_bit_counts,
    ome_mechanism,
    oue_mechanism,
    posterior_estimate,
    published_bit_mechanism,
    sue_mechanism,
)
from skfairdp.preprocessing._scalers import read_pair
from skfairdp.random import noise_stream

_STATISTICS = "the rows given to fit, whose mean and scale shape every bit (give standardize public ones instead)"


class OMEEncoder(ReleaseMixin, TransformerMixin, SkfairdpEstimator):
    """Private fixed-point bits: optimised multiple encoding, and related protocols.

    Each feature is standardised and written as a sign, integer bits and fraction bits;
    the bits of a record are merged and each goes through randomised response.

    Parameters
    ----------
    epsilon : float, default=8.0
        Privacy budget of one record: the loss of all its bits together. ``inf`` gives the clean bits.
    n_integer_bits : int, default=4
        Bits before the binary point. Larger values saturate.
    n_fraction_bits : int, default=5
        Bits after the binary point.
    protocol : {"ome", "oue", "sue", "optimal"}, default="ome"
        How the bits are randomised:

        * ``"sue"``: symmetric, the same budget for each bit;
        * ``"oue"``: a 1 is replaced by a fair coin, zeros are kept with a higher probability;
        * ``"ome"``: as ``"oue"``, with ones kept more often on even bits and less often on odd ones;
        * ``"optimal"``: symmetric, with the budget divided over the bits so that the error of :meth:`decode` is least.
          The code is offset binary, whose sign bit is 1 for numbers of 0 or more; the other protocols write sign
          and magnitude, with a sign bit of 1 for negative numbers.
    randomization_factor : float or None, default=None
        The factor of ``"ome"``, at least 1; refused with other protocols. ``None`` is the largest feasible one with
        ``calibration="exact"`` (just above 1, unless epsilon is as large as the number of bits) and 100 with
        ``"published"``. With ``"exact"``, a feasible factor keeps its ``p`` and gets the ``q`` that spends epsilon, and
        an infeasible one is refused.
    standardize : bool or (mean, scale), default=True
        ``True`` learns mean and standard deviation in ``fit``, from rows that the guarantee does not cover. A pair of
        numbers or arrays (public, or privately estimated) is used as it is. ``False`` encodes the values as they come.
    calibration : {"exact", "published"}, default="exact"
        ``"exact"`` makes epsilon the worst-case loss of the bits that are released. ``"published"`` uses the rates of
        [1]_, whose loss is larger by up to thousands, and warns with the exact number.
    objective : {"unbiased", "posterior"}, default="unbiased"
        For ``"optimal"`` alone: which estimate :meth:`decode` makes, and the budget is divided for. ``"unbiased"``
        serves every bit. ``"posterior"`` serves the leading bits of few features, drawn at random in ``fit``, and the
        others become fair coins: far less error, and a bias towards the mean.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        ``None`` uses the operating system's entropy, and so do a Generator and a RandomState, whose copies in clones
        would repeat the noise. Seeded noise protects nobody who knows the seed or sees two releases that start from it.

    Attributes
    ----------
    mechanism_ : Mechanism
        What writes and randomises the bits, frozen.
    privacy_ : PrivacyGuarantee
        What one release costs a row that ``fit`` has not seen; with ``standardize=True`` nothing protects the rows
        of ``fit`` themselves.
    bit_epsilon_ : ndarray of shape (n_features * n_bits,)
        Exact loss of each released bit; they add up to ``privacy_.epsilon``.
    keep_probability_, flip_probability_ : ndarray of shape (n_features * n_bits,)
        The probabilities ``p`` that a 1 stays 1, and ``q`` that a 0 becomes 1.
    mean_, scale_ : ndarray of shape (n_features,)
        What is subtracted, and what the difference is divided by.
    n_bits_ : int
        Bits per feature, sign included.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where they had names.

    Notes
    -----
    **Privacy.** Any two records are neighbours (local differential privacy, delta = 0). Every bit is randomised
    independently and may differ between two records, so the losses add:
    ``epsilon = sum_b max(|log p_b / q_b|, |log (1 - p_b) / (1 - q_b)|)``, taken from the integers (counts out of
    ``2**64``) that are compared with random words. Theorem 1 of [1]_ multiplies a factor below 1 of the odd bits with
    one above 1 of the even bits; an adversary takes the other direction on the odd bits. The loss of the printed rates
    is ``(n / 2) log(lam**3 - lam**2 + lam)`` on ``n`` bits, whatever the epsilon.

    Not covered: the rows that mean and scale were learned from; a second release of the same record.

    References
    ----------
    .. [1] L. Lyu, Y. Li, X. He and T. Xiao, "Towards Differentially Private Text Representations", SIGIR 2020,
       Equations 2 and 3 (OME), Section 2.2 (SUE, OUE).

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import OMEEncoder
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> encoder = OMEEncoder(epsilon=30.0, n_integer_bits=1, n_fraction_bits=2, protocol="optimal", random_state=0)
    >>> bits = encoder.fit_transform(X)
    >>> bits.shape
    (1000, 12)
    >>> encoder.get_feature_names_out()[:4].tolist()
    ['x0_sign', 'x0_int0', 'x0_frac1', 'x0_frac2']
    >>> bool(np.corrcoef(encoder.decode(bits)[:, 0], X[:, 0])[0, 1] > 0.8)
    True
    """

    _row_wise_methods: ClassVar[dict] = {"transform": ()}

    _parameter_constraints: ClassVar[dict] = {
        "epsilon": [Real],
        "n_integer_bits": [Interval(Integral, 0, None, closed="left")],
        "n_fraction_bits": [Interval(Integral, 0, None, closed="left")],
        "protocol": [StrOptions({"ome", "oue", "sue", "optimal"})],
        "randomization_factor": [Interval(Real, 1, None, closed="left"), None],
        "standardize": ["boolean", tuple, list],
        "calibration": [StrOptions({"exact", "published"})],
        "objective": [StrOptions({"unbiased", "posterior"})],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        epsilon=8.0,
        *,
        n_integer_bits=4,
        n_fraction_bits=5,
        protocol="ome",
        randomization_factor=None,
        standardize=True,
        calibration="exact",
        objective="unbiased",
        random_state=None,
    ):
        self.epsilon = epsilon
        self.n_integer_bits = n_integer_bits
        self.n_fraction_bits = n_fraction_bits
        self.protocol = protocol
        self.randomization_factor = randomization_factor
        self.standardize = standardize
        self.calibration = calibration
        self.objective = objective
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn mean and scale (unless given), and calibrate the noise.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows that the guarantee does not cover, if ``standardize=True``; otherwise only their width is used.
        y : None
            Not used.

        Returns
        -------
        self : OMEEncoder
        """
        epsilon = check_epsilon(self.epsilon)
        n_bits = check_bit_counts(self.n_integer_bits, self.n_fraction_bits)
        self._check_combination()
        stream = noise_stream(self.random_state)
        rows = dense(check_array(X, dtype=FLOAT_DTYPES, accept_sparse="csr", estimator=self, input_name="X"))
        mean, scale = _read_statistics(self.standardize, rows)
        bit_mechanism = None if math.isinf(epsilon) else self._calibrate(epsilon, rows.shape[1], n_bits, stream)
        validate_data(self, X, skip_check_array=True)  # number and names of the features, once nothing can fail
        mechanism = FixedPointBits(
            mean,
            scale,
            int(self.n_integer_bits),
            int(self.n_fraction_bits),
            "offset" if self.protocol == "optimal" else "sign-magnitude",
            bit_mechanism,
            self.protocol,
            epsilon if self.calibration == "published" else None,
        )
        self.n_bits_, self.mean_, self.scale_ = n_bits, mean, scale
        self._learned = self.standardize is True
        prior = "uniform" if self.standardize is False else "normal"
        self._prior = prior if self._shrinks() else None
        size = rows.shape[1] * n_bits
        self.bit_epsilon_ = np.full(size, np.inf) if bit_mechanism is None else bit_mechanism.bit_epsilon
        self.keep_probability_ = np.ones(size) if bit_mechanism is None else bit_mechanism.p
        self.flip_probability_ = np.zeros(size) if bit_mechanism is None else bit_mechanism.q
        self._freeze(
            mechanism,
            stream,
            covers="the released bits and everything computed from them alone",
            does_not_cover=(ONE_RELEASE, _STATISTICS if self._learned else TRAINING_DATA, REFUSED_TABLES),
        )
        self._warn_of_overclaiming(epsilon)
        return self

    def transform(self, X):
        """Release the noisy bits of each row; every call spends the budget again.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        bits : ndarray of int8 of shape (n_samples, n_features * n_bits)
            Dense, because random bits are. Zeros and ones; signed, so that differences of bits do not wrap round.
        """
        return self._release(self._values(X))

    def fit_transform(self, X, y=None):
        """Fit, then release the same rows at the price of rows that ``fit`` was given.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : None
            Not used.

        Returns
        -------
        bits : ndarray of int8 of shape (n_samples, n_features * n_bits)
            The noisy bits.
        """
        values = self.fit(X)._values(X)
        return self._release(values, self.training_privacy_)

    def _values(self, X):
        check_is_fitted(self)
        # The array is smaller than the bits that it becomes.
        return dense(validate_data(self, X, dtype=FLOAT_DTYPES, accept_sparse="csr", reset=False))

    def _learned_without_noise(self):
        learned = getattr(self, "_learned", self.standardize is True)  # asked of steps that are not fitted yet, too
        return "mean and scale of every column; give standardize public ones" if learned else None

    def decode(self, B):
        """Estimate the real values from released bits; this is post-processing and costs nothing.

        Parameters
        ----------
        B : array-like of shape (n_samples, n_features * n_bits)
            Zeros and ones, as :meth:`transform` returns them.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The unbiased estimate of the values as they were coded (rounded and saturated). With
            ``objective="posterior"`` the posterior mean, for a standard normal prior of standardised values and a
            uniform one otherwise.
        """
        check_is_fitted(self)
        B = self._check_bits(B, "B")
        values = np.empty((len(B), self.n_features_in_))
        for part in gen_batches(len(B), max(1, BLOCK_BITS // B.shape[1])):
            values[part] = self._decode(B[part])
        return values

    def log_likelihood_ratio(self, y, x, x_prime):
        """Return ``log P(y | x) - log P(y | x_prime)``, exactly, for an auditor.

        Parameters
        ----------
        y : array-like of shape (n_samples, n_features * n_bits) or (n_features * n_bits,)
            Released bits.
        x, x_prime : array-like of shape (n_features,) or (n_samples, n_features)
            Two records, in the units that ``transform`` takes.

        Returns
        -------
        ratio : ndarray of shape (n_samples,)
            Never beyond ``privacy_.epsilon`` in absolute value.
        """
        check_is_fitted(self)
        y = self._check_bits(np.atleast_2d(np.asarray(y)), "y")
        rows = []
        for name, row in (("x", x), ("x_prime", x_prime)):
            row = check_array(np.atleast_2d(np.asarray(row, dtype=np.float64)), input_name=name)
            if row.shape[1] != self.n_features_in_ or len(row) not in (1, len(y)):
                raise ValueError(
                    f"{name} must be one record of {self.n_features_in_} features, or one for each of the {len(y)} "
                    f"rows of y; got shape {row.shape}."
                )
            rows.append(row)
        return self.mechanism_.log_likelihood_ratio(y, *rows)

    def get_feature_names_out(self, input_features=None):
        """Name the bits: ``x3_sign``, ``x3_int2`` (of weight ``2**2``), ``x3_frac1`` (of weight ``2**-1``).

        Parameters
        ----------
        input_features : array-like of str or None
            Names of the features; those seen in ``fit`` by default.

        Returns
        -------
        names : ndarray of str objects of shape (n_features * n_bits,)
        """
        check_is_fitted(self)
        names = check_feature_names_in(self, input_features)
        suffixes = bit_names(self.mechanism_.n_integer_bits, self.mechanism_.n_fraction_bits)
        return np.array([f"{name}_{suffix}" for name in names for suffix in suffixes], dtype=object)

    def _check_combination(self) -> None:
        setting = f"protocol={self.protocol!r}"
        if self.protocol != "ome":
            self._refuse_unused(setting, "randomization_factor")
        if self.protocol != "optimal":
            self._refuse_unused(setting, "objective")
        if self.calibration == "published" and self.protocol == "optimal":
            raise ValueError(
                "calibration='published' needs protocol 'ome', 'oue' or 'sue': 'optimal' was not published."
            )

    def _calibrate(self, epsilon: float, n_features: int, n_bits: int, stream: Any) -> BitMechanism:
        size = n_features * n_bits
        if self.calibration == "published":
            factor = 100.0 if self.randomization_factor is None else self.randomization_factor
            return published_bit_mechanism(
                self.protocol, epsilon, n_features=n_features, n_bits=size, randomization_factor=factor
            )
        if self.protocol == "ome":
            return ome_mechanism(epsilon, size, self.randomization_factor)
        if self.protocol == "optimal":
            allocate = allocate_posterior if self._shrinks() else allocate_unbiased
            division = allocate(epsilon, n_features, bit_weights(self.n_integer_bits, self.n_fraction_bits))
            if self._shrinks():  # which features get the budget must not depend on the data
                division = division[stream.generator.permutation(n_features)]
            return allocated_bit_mechanism(division, epsilon)
        return (sue_mechanism if self.protocol == "sue" else oue_mechanism)(epsilon, size)

    def _warn_of_overclaiming(self, claimed: float) -> None:
        exact = self.privacy_.epsilon
        if self.calibration == "published" and exact > claimed * (1 + 1e-9):
            warn_user(
                f"The published rates of protocol={self.protocol!r} claim epsilon={claimed:.6g}; the exact epsilon of "
                f"{len(self.bit_epsilon_)} bits is {exact:.6g}. calibration='exact' keeps the epsilon it is given.",
                OverclaimedPrivacyWarning,
            )

    def _shrinks(self) -> bool:
        return self.protocol == "optimal" and self.objective == "posterior"

    def _decode(self, bits: np.ndarray) -> np.ndarray:
        """Estimate the values of one block."""
        mechanism, bit_mechanism = self.mechanism_, self.mechanism_.bit_mechanism
        if bit_mechanism is None:
            return mechanism.decode(bits)
        if self._prior is not None:
            gains = bit_mechanism.gain.reshape(self.n_features_in_, self.n_bits_)
            values = posterior_estimate(bits, gains, mechanism.n_integer_bits, self._prior)
            return values * self.scale_ + self.mean_
        if not bit_mechanism.gain.all():
            raise ValueError(
                f"epsilon={self.privacy_.epsilon:g} leaves bits that tell nothing, so no unbiased estimate exists; "
                "raise epsilon, lower the number of bits, or use protocol='optimal' with objective='posterior'."
            )
        return mechanism.decode((bits - bit_mechanism.q) / bit_mechanism.gain)

    def _check_bits(self, bits: Any, name: str) -> np.ndarray:
        bits = check_array(bits, dtype="numeric", input_name=name)
        if bits.shape[1] != len(self.bit_epsilon_):
            raise ValueError(
                f"{name} must have {len(self.bit_epsilon_)} columns, {self.n_bits_} bits for each of "
                f"{self.n_features_in_} features; got {bits.shape[1]}."
            )
        if not ((bits == 0) | (bits == 1)).all():
            raise ValueError(f"{name} must hold zeros and ones only.")
        return bits.astype(np.int8, copy=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = True
        tags.transformer_tags.preserves_dtype = []  # bits are bytes, whatever the numbers were
        return tags


def _read_statistics(standardize: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and scale of each column, as ``standardize`` says.

    Parameters
    ----------
    standardize : bool or (mean, scale)
        ``True`` learns them from ``X``, ``False`` gives 0 and 1, a pair is used as it is.
    X : ndarray of float of shape (n_samples, n_features)

    Returns
    -------
    mean, scale : ndarray of shape (n_features,)
    """
    n_features = X.shape[1]
    if isinstance(standardize, tuple | list):
        wanted = f"standardize must be True, False or a pair (mean, scale) of numbers or of {n_features} numbers each"
        mean, scale = read_pair(standardize, n_features, wanted)
        if not (np.isfinite(mean).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise ValueError("standardize must hold finite means and finite scales greater than 0.")
        return mean, scale
    if not standardize:
        return np.zeros(n_features), np.ones(n_features)
    # In units of the largest value of a column, so that huge and tiny columns neither overflow nor vanish.
    largest = np.abs(X).max(axis=0).astype(np.float64)
    unit = 2.0 ** np.clip(np.frexp(np.where(largest > 0, largest, 1.0))[1], -1000, 1000)
    scaled = X / unit
    mean, deviation = scaled.mean(axis=0), scaled.std(axis=0)
    constant = deviation <= 10 * np.finfo(X.dtype).eps * np.abs(mean)
    return mean * unit, np.where(constant, 1.0, deviation) * np.where(constant, 1.0, unit)
