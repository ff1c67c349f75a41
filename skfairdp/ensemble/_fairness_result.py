"""What the fairness analysis of PATE found."""

from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True, repr=False)
class PATEFairness:
    r"""What noise on teachers' votes does to whom.

    Made by :func:`pate_fairness`. Everything in it was computed from votes without noise: it is private, for those
    who may see the private rows, and must not be published with the student.

    Attributes
    ----------
    groups : DataFrame
        One line per group: ``risk`` (excessive risk on the labels that the teachers give), ``standard_error``,
        ``count``, and the group's mean ``flipping_probability``, ``norm`` and ``closeness``. Where true labels
        were given, also ``label_risk`` and ``label_standard_error`` (the same on true labels), and ``accuracy`` and
        ``cross_entropy`` with noise and, as ``clean_...``, without.
    rows : DataFrame
        One line per row: ``group``, ``risk``, ``standard_error``, ``flipping_probability``, ``norm`` of the
        scaled row, ``closeness`` of the clean student to its boundary, ``gradient_norm`` of the clean student's
        loss, and Theorem 3's ``risk_bound`` with the bounds on the model sensitivity and
        ``risk_bound_measured`` with its measured moments (nan where neither student nor labels have one).
    sensitivity : Series
        ``mean``, ``standard_error``, ``mean_square`` and ``bias`` of how far noise moves the student's
        parameters, and bounds: ``bound`` on the mean, ``square_bound`` on the mean square, ``triangle``
        (Theorem 1), ``published_bound`` and ``published_square_bound`` (Corollaries 1 and 2 as printed; the
        latter does not hold).
    norm_bins : DataFrame
        For five ranges of input norm: the mean ``norm``, and ``sensitivity``, ``standard_error`` and ``bound`` of
        logistic students trained on the rows of that range alone; empty for other students.
    correlations : DataFrame
        Spearman's rank correlation (``rho``) and its ``p_value`` for pairs of columns of ``rows``.
    performance : DataFrame
        ``accuracy`` and ``cross_entropy`` on true labels: ``private`` with ``standard_error``, and ``clean``. Empty
        without true labels.
    gap, gap_standard_error : float
        Largest difference of ``risk`` between two groups.
    label_gap, label_gap_standard_error : float
        The same for ``label_risk``; nan without true labels.
    labels : str
        What was released of the votes.
    epsilon, delta, noise_scale : float
        The price and the noise.
    n_teachers, n_queries, n_repeats : int
        Teachers that vote, rows that students are trained on, and repetitions.
    regularization : float
        Strength of the student's penalty.
    publishable : bool
        Always False.
    """

    groups: pd.DataFrame
    rows: pd.DataFrame
    sensitivity: pd.Series
    norm_bins: pd.DataFrame
    correlations: pd.DataFrame
    performance: pd.DataFrame
    gap: float
    gap_standard_error: float
    label_gap: float
    label_gap_standard_error: float
    labels: str
    epsilon: float
    delta: float
    noise_scale: float
    n_teachers: int
    n_queries: int
    n_repeats: int
    regularization: float
    publishable: bool = False

    def __repr__(self) -> str:
        return (
            f"PATEFairness(labels={self.labels!r}, epsilon={self.epsilon:.4g}, noise_scale={self.noise_scale:.4g}, "
            f"n_teachers={self.n_teachers}, n_repeats={self.n_repeats}, gap={self.gap:.4g} +- "
            f"{self.gap_standard_error:.2g}, publishable=False)"
        )
