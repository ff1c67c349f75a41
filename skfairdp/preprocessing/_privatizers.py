"""LaplacePrivatizer and GaussianPrivatizer: normalise each row, add noise to every entry."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skfairdp._base import SkfairdpEstimator, restored_on_failure
from skfairdp._sklearn import StrOptions, fit_context
from skfairdp._validation import check_epsilon, warn_user
from skfairdp.dp import ONE_RELEASE, REFUSED_TABLES, TRAINING_DATA, ReleaseMixin
from skfairdp.exceptions import OverclaimedPrivacyWarning
from skfairdp.mechanisms import gaussian_mechanism, laplace_mechanism
from skfairdp.random import noise_stream

_DTYPES = (np.float64, np.float32)
_DOES_NOT_COVER = (ONE_RELEASE, TRAINING_DATA, REFUSED_TABLES)


class RowPrivatizer(ReleaseMixin, OneToOneFeatureMixin, TransformerMixin, SkfairdpEstimator):
    """Base of transformers that normalise each row and add noise to every entry."""

    radius: float
    random_state: Any
    noise_scale_: float
    sensitivity_: float
    n_features_in_: int

    def transform(self, X: Any) -> np.ndarray:
        """Release noisy rows; every call draws fresh noise and spends the budget again.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Dense, because noise is.
        """
        values = self._values(X)
        return self._release(values).astype(values.dtype, copy=False)

    def log_likelihood_ratio(self, y: Any, x: Any, x_prime: Any) -> np.ndarray:
        """Compute ``log p(y | x) - log p(y | x_prime)``, the score that an auditor separates two records by.

        Parameters
        ----------
        y : array-like of shape (n_samples, n_features) or (n_features,)
            Released rows.
        x, x_prime : array-like of shape (n_features,) or (n_samples, n_features)
            Two records, in the units that ``transform`` takes.

        Returns
        -------
        ndarray of shape (n_samples,)
            With the continuous density around the normalised record. The noise is rounded to a grid, so the exact
            ratio differs by less than a grid step over the noise scale; any score gives a valid audit.
        """
        check_is_fitted(self)
        y = self._rows(y, "y")
        rows = [self._rows(row, name) for name, row in (("x", x), ("x_prime", x_prime))]
        for name, row in zip(("x", "x_prime"), rows):
            if len(row) not in (1, len(y)):
                raise ValueError(
                    f"{name} must be one record, or one for each of the {len(y)} rows of y; got {len(row)} records."
                )
        return self.mechanism_.log_likelihood_ratio(y, *rows)

    def _values(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, dtype=_DTYPES, accept_sparse="csr", reset=False)

    def _rows(self, rows: Any, name: str) -> np.ndarray:
        rows = check_array(np.atleast_2d(np.asarray(rows, dtype=np.float64)), input_name=name)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"{name} must have {self.n_features_in_} features, as in fit; got {rows.shape[1]}.")
        return rows

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class LaplacePrivatizer(RowPrivatizer):
    r"""Privatise rows by normalising them and adding Laplace noise.

    Parameters
    ----------
    epsilon : float, default=8.0
        The privacy loss of one release of a row. ``inf`` returns the normalised rows as they are.
    norm : {"l1", "l2", "minmax", "clip"}, default="l1"
        How rows are bounded, and with it the L1 sensitivity :math:`\Delta`, for D features and C = ``radius``:

        - ``"l1"``: each row is scaled to an L1 norm of C, however long it was; :math:`\Delta = 2C`.
        - ``"l2"``: each row is scaled to an L2 norm of C; :math:`\Delta = 2 C \sqrt{D}`.
        - ``"minmax"``: each row is mapped onto [0, C] by its own least and largest value; :math:`\Delta = C D`.
        - ``"clip"``: each value is cut to [-C, C], and smaller values stay as they are; :math:`\Delta = 2 C D`.
    radius : float, default=1.0
        The size that normalised rows are given. Only ``"clip"`` compares rows with it; under the other norms it
        scales rows and noise alike, and changes the units of the output. A public constant: do not choose it by
        looking at private rows.
    calibration : {"exact", "published"}, default="exact"
        ``"exact"`` adds noise of scale :math:`\Delta / \varepsilon`. ``"published"`` adds what papers print:
        :math:`\mathrm{Lap}(2/\varepsilon)` for ``"l1"`` (Equation 3 of FEDERATE [1]_, which holds) and for ``"l2"``
        (its public code, whose exact loss is :math:`\sqrt{D} \varepsilon`), and :math:`\mathrm{Lap}(1/\varepsilon)` for
        ``"minmax"`` (DPNR [2]_, whose exact loss is :math:`D \varepsilon`), each times C; it warns where the exact
        epsilon is larger.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        ``None`` draws from the operating system's entropy, and so do a Generator and a RandomState, whose copies in
        clones would repeat the noise. A seed is for experiments: it makes the guarantee worthless against whoever
        knows it or sees two releases that start from it, which ``privacy_`` then says.

    Attributes
    ----------
    mechanism_ : Mechanism
        What draws the noise, frozen.
    privacy_ : PrivacyGuarantee
        What one call of ``transform`` costs each of its rows.
    noise_scale_ : float
        The scale of the Laplace noise in the output, 0 for an infinite epsilon.
    sensitivity_ : float
        The largest L1 distance between two normalised rows.
    n_features_in_, feature_names_in_ : int, ndarray
        As everywhere in scikit-learn.

    See Also
    --------
    GaussianPrivatizer : Less noise in many dimensions, for a small delta.
    OMEEncoder : Randomised bits instead of added noise.

    Notes
    -----
    **Privacy.** One release is pure epsilon-DP for any two rows (local differential privacy, record level), and so is
    everything computed from it. Releasing a row twice costs twice. Nothing is learned from the rows in ``fit``;
    whatever was learned before (a scaler, an encoder) is not covered, nor are running time and the number of rows;
    :func:`~skfairdp.pipeline.pipeline_guarantee` says what a whole pipeline costs.
    Rows without a direction (all zeros, or constant under ``"minmax"``) become the zero vector and are covered as well.
    The noise is drawn in integers and exact, so that floating-point rounding tells nothing about the rows [3]_. Rows
    are rounded to the integer grid without bias, and the rounding is part of the proof; for ``"l2"`` it costs up to
    one per cent more noise.

    References
    ----------
    .. [1] G. Maheshwari, P. Denis, M. Keller, A. Bellet, "Fair NLP models with differentially private text encoders",
           Findings of EMNLP 2022.
    .. [2] L. Lyu, X. He, Y. Li, "Differentially private representation for NLP: formal guarantee and an empirical
           study on privacy and fairness", Findings of EMNLP 2020.
    .. [3] I. Mironov, "On significance of the least significant bits for differential privacy", CCS 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import LaplacePrivatizer
    >>> H = np.random.default_rng(0).normal(size=(1000, 8))
    >>> privatizer = LaplacePrivatizer().fit(H)
    >>> privatizer.transform(H).shape
    (1000, 8)
    >>> privatizer.privacy_
    PrivacyGuarantee(epsilon=8.0, delta=0.0, unit="record", releases=1, mechanism="laplace",
                     published_epsilon=None)
    >>> round(privatizer.noise_scale_, 6)
    0.25
    """

    _row_wise_methods: ClassVar[dict] = {"transform": ()}

    _parameter_constraints: ClassVar[dict] = {
        "epsilon": [Real],
        "norm": [StrOptions({"l1", "l2", "minmax", "clip"})],
        "radius": [Real],
        "calibration": [StrOptions({"exact", "published"})],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        epsilon: float = 8.0,
        *,
        norm: str = "l1",
        radius: float = 1.0,
        calibration: str = "exact",
        random_state: Any = None,
    ):
        self.epsilon = epsilon
        self.norm = norm
        self.radius = radius
        self.calibration = calibration
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "LaplacePrivatizer":
        """Count the features and choose the noise; nothing is learned from the values of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Only its width and its column names are used.
        y : ignored
            Here for the sake of pipelines.

        Returns
        -------
        LaplacePrivatizer
            This object.
        """
        with restored_on_failure(self):
            n_features = validate_data(self, X, dtype=_DTYPES, accept_sparse="csr").shape[1]
            radius = check_epsilon(self.radius, name="radius", allow_inf=False)
            mechanism = laplace_mechanism(
                self.epsilon, self.norm, n_features, clip_norm=radius, calibration=self.calibration
            )
            self.sensitivity_, self.noise_scale_ = mechanism.sensitivity, mechanism.noise_scale
            self._freeze(mechanism, noise_stream(self.random_state), does_not_cover=_DOES_NOT_COVER)

        if mechanism.published_epsilon is not None:
            warn_user(
                f"calibration='published' with norm={self.norm!r} claims epsilon={mechanism.published_epsilon:g}, but "
                f"its exact worst case over {n_features} features is epsilon={mechanism.epsilon:.6g}. Use "
                "calibration='exact' for noise that keeps the claim.",
                OverclaimedPrivacyWarning,
            )
        return self


class GaussianPrivatizer(RowPrivatizer):
    r"""Privatise rows by giving them one L2 norm and adding Gaussian noise.

    Parameters
    ----------
    epsilon : float, default=8.0
        The privacy loss of one release of a row. ``inf`` returns the normalised rows as they are.
    delta : float, default=1e-5
        The probability, in (0, 1), with which the loss may exceed epsilon.
    radius : float, default=1.0
        The L2 norm that every row is scaled to, however long it was; rows and noise are scaled alike. A public
        constant: do not choose it by looking at private rows.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        ``None`` draws from the operating system's entropy, and so do a Generator and a RandomState, whose copies in
        clones would repeat the noise. A seed is for experiments: it makes the guarantee worthless against whoever
        knows it or sees two releases that start from it, which ``privacy_`` then says.

    Attributes
    ----------
    mechanism_ : Mechanism
        What draws the noise, frozen.
    privacy_ : PrivacyGuarantee
        What one call of ``transform`` costs each of its rows.
    noise_scale_ : float
        The standard deviation of the noise in the output, 0 for an infinite epsilon.
    sensitivity_ : float
        The largest L2 distance between two normalised rows.
    n_features_in_, feature_names_in_ : int, ndarray
        As everywhere in scikit-learn.

    See Also
    --------
    LaplacePrivatizer : No delta; better in few dimensions.

    Notes
    -----
    **Privacy.** One release is (epsilon, delta)-DP for any two rows (local differential privacy, record level), and so
    is everything computed from it. The noise scale is the least that the exact profile of the Gaussian mechanism [1]_
    allows, up to one per cent for rounding rows to an integer grid; rounding and the error of the noise tables are part
    of the proof. Several releases compose as one Gaussian release through ``privacy_.gaussian_mu``. Nothing is learned
    from the rows in ``fit``; whatever was learned before is not covered, nor are running time and the number of rows.
    Zero rows stay zero before the noise, and are covered.

    References
    ----------
    .. [1] B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy: analytical calibration and
           optimal denoising", ICML 2018, Theorem 8.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import GaussianPrivatizer
    >>> H = np.random.default_rng(0).normal(size=(1000, 64))
    >>> privatizer = GaussianPrivatizer().fit(H)
    >>> privatizer.transform(H).shape
    (1000, 64)
    >>> round(privatizer.noise_scale_, 2)  # 0.600229 times the sensitivity 2
    1.2
    """

    _row_wise_methods: ClassVar[dict] = {"transform": ()}

    _parameter_constraints: ClassVar[dict] = {
        "epsilon": [Real],
        "delta": [Real],
        "radius": [Real],
        "random_state": "no_validation",
    }

    def __init__(self, epsilon: float = 8.0, delta: float = 1e-5, *, radius: float = 1.0, random_state: Any = None):
        self.epsilon = epsilon
        self.delta = delta
        self.radius = radius
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "GaussianPrivatizer":
        """Count the features and choose the noise; nothing is learned from the values of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Only its width and its column names are used.
        y : ignored
            Here for the sake of pipelines.

        Returns
        -------
        GaussianPrivatizer
            This object.
        """
        with restored_on_failure(self):
            n_features = validate_data(self, X, dtype=_DTYPES, accept_sparse="csr").shape[1]
            radius = check_epsilon(self.radius, name="radius", allow_inf=False)
            mechanism = gaussian_mechanism(self.epsilon, self.delta, n_features, clip_norm=radius)
            self.sensitivity_, self.noise_scale_ = mechanism.sensitivity, mechanism.noise_scale
            self._freeze(mechanism, noise_stream(self.random_state), does_not_cover=_DOES_NOT_COVER)
        return self
