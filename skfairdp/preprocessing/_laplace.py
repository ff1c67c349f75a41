"""LaplacePrivatizer: normalise rows, add Laplace noise."""

import warnings
from numbers import Real
from typing import Any, ClassVar

from skfairdp._sklearn import StrOptions, fit_context
from skfairdp.exceptions import OverclaimedPrivacyWarning
from skfairdp.mechanisms import laplace_mechanism
from skfairdp.preprocessing._privatizer import RowPrivatizer


class LaplacePrivatizer(RowPrivatizer):
    r"""Privatise rows by normalising them and adding Laplace noise.

    Parameters
    ----------
    epsilon : float, default=1.0
        The privacy loss of one release of a row. ``inf`` returns the normalised rows as they are.
    norm : {"l1", "l2", "minmax", "clip"}, default="l1"
        How rows are bounded, and with it the L1 sensitivity :math:`\Delta`, for D features and C = ``clip_norm``:

        - ``"l1"``: each row over its L1 norm, times C; :math:`\Delta = 2C`.
        - ``"l2"``: each row over its L2 norm, times C; :math:`\Delta = 2 C \sqrt{D}`.
        - ``"minmax"``: each row mapped onto [0, C] by its own least and largest value; :math:`\Delta = C D`.
        - ``"clip"``: each value cut to [-C, C]; :math:`\Delta = 2 C D`.
    clip_norm : float, default=1.0
        The radius of the sphere or box, or the length of the interval. A public constant: do not choose it by
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
    :func:`~skfairdp.release.pipeline_guarantee` says what a whole pipeline costs.
    Rows without a direction (all zeros, or constant under ``"minmax"``) become the zero vector and are covered as well.
    The noise is drawn in integers and exact, so that floating-point rounding opens no side door [3]_. Rows are
    rounded to the integer grid without bias, and the rounding is part of the proof; for ``"l2"`` it costs up to one
    per cent more noise.

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
    >>> privatizer = LaplacePrivatizer(epsilon=8.0).fit(H)
    >>> privatizer.transform(H).shape
    (1000, 8)
    >>> privatizer.privacy_
    PrivacyGuarantee(epsilon=8.0, delta=0.0, unit="record", releases=1, mechanism="laplace",
                     published_epsilon=None)
    >>> round(privatizer.noise_scale_, 6)
    0.25
    """

    _parameter_constraints: ClassVar[dict] = {
        "epsilon": [Real],
        "norm": [StrOptions({"l1", "l2", "minmax", "clip"})],
        "clip_norm": [Real],
        "calibration": [StrOptions({"exact", "published"})],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        norm: str = "l1",
        clip_norm: float = 1.0,
        calibration: str = "exact",
        random_state: Any = None,
    ):
        self.epsilon = epsilon
        self.norm = norm
        self.clip_norm = clip_norm
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
        d = self._width(X)
        mechanism = laplace_mechanism(
            self.epsilon, self.norm, d, clip_norm=self.clip_norm, calibration=self.calibration
        )
        self._finish(X, mechanism)
        if mechanism.published_epsilon is not None:
            warnings.warn(
                f"calibration='published' with norm={self.norm!r} claims epsilon={mechanism.published_epsilon:g}, but "
                f"its exact worst case over {d} features is epsilon={mechanism.epsilon:.6g}. Use calibration='exact' "
                "for noise that keeps the claim.",
                OverclaimedPrivacyWarning,
                stacklevel=2,
            )
        return self
