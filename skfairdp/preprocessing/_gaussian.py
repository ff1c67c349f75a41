"""GaussianPrivatizer: normalise rows in L2, add Gaussian noise."""

from numbers import Real
from typing import Any, ClassVar

from skfairdp._sklearn import fit_context
from skfairdp.mechanisms import gaussian_mechanism
from skfairdp.preprocessing._privatizer import RowPrivatizer


class GaussianPrivatizer(RowPrivatizer):
    r"""Privatise rows by giving them one L2 norm and adding Gaussian noise.

    Parameters
    ----------
    epsilon : float, default=1.0
        The privacy loss of one release of a row. ``inf`` returns the normalised rows as they are.
    delta : float, default=1e-5
        The probability, in (0, 1), with which the loss may exceed epsilon.
    clip_norm : float, default=1.0
        The L2 norm that every row is given. A public constant: do not choose it by looking at private rows.
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
    >>> privatizer = GaussianPrivatizer(epsilon=8.0, delta=1e-5).fit(H)
    >>> privatizer.transform(H).shape
    (1000, 64)
    >>> round(privatizer.noise_scale_, 2)  # 0.600229 times the sensitivity 2
    1.2
    """

    _parameter_constraints: ClassVar[dict] = {
        "epsilon": [Real],
        "delta": [Real],
        "clip_norm": [Real],
        "random_state": "no_validation",
    }

    def __init__(self, epsilon: float = 1.0, delta: float = 1e-5, *, clip_norm: float = 1.0, random_state: Any = None):
        self.epsilon = epsilon
        self.delta = delta
        self.clip_norm = clip_norm
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
        d = self._width(X)
        self._finish(X, gaussian_mechanism(self.epsilon, self.delta, d, clip_norm=self.clip_norm))
        return self
