r"""What ``"auto"`` means in PATE: teachers, queries, kind of labels and penalty, from numbers that are public anyway.

No function here is given a row, a label or a vote, so the choice tells nothing about them and costs no privacy.

The numbers are n private rows, q public ones, p features, c classes, and :math:`\mu` of the Gaussian mechanism that all
labels together may be, which (epsilon, delta) says. With k teachers and m queries the noise on a share of votes has
variance :math:`2m/(\mu k)^2`, and a student with p parameters per class averages over m of them. Its excess risk, in
nats, is about

.. math:: R(k, m) = \frac{c(c-1)p}{(\mu k)^2} + \frac{(c-1)p}{8m} + \beta\,\frac{pk}{2n}

The first term is the noise, :math:`\frac12\mathrm{tr}(H\,\mathrm{Var}\,\theta)` with the curvature :math:`1/c` of a
softmax at equal probabilities: m has cancelled. The second is the same for what a linear student cannot fit of the
shares, whose variance is taken as a quarter of a label's at equal probabilities. The third is the part of a teacher's
own excess risk (p/2 over its n/k rows, for the two classes between which it decides) that voting does not average
out.
"""

import math

#: beta, the part of a teacher's own risk that its vote keeps. This and the next were measured (docs/guide/pate.md).
LASTING_RISK = 1 / 10
#: Variance that log odds between two classes are taken to have, before anything is known.
SIGNAL_VARIANCE = 1 / 2
#: A teacher with one row votes for its class, whatever it is asked.
LEAST_ROWS = 3
#: Where hardly any noise is needed the rule would end with one teacher; shares of so few votes are coarse.
FEWEST_TEACHERS = 20
#: The student's own sampling variance is at most this part of the variance that noise gives it.
QUERY_SHARE = 0.1
#: Queries per feature, so that the rows of the student determine its coefficients.
QUERIES_PER_FEATURE = 20
#: Queries of the papers: for labels that are right one by one or not at all, and where every query adds to the price.
FEW_QUERIES = 200
#: Noise on a share of votes that a student bears which does not average over rows.
BEARABLE_NOISE = 0.25


def choose_n_teachers(n_private: int, n_classes: int, mu: float) -> int:
    r"""Return the number of teachers at which the risk by noise and the risk by few rows are least together.

    The derivative of R is zero at :math:`k^3 = 4c(c-1)n / (\beta\mu^2)`: the number of features cancels.

    Parameters
    ----------
    n_private, n_classes : int
        Private rows and classes.
    mu : float
        Of the Gaussian mechanism that the budget allows; ``inf`` for no noise.

    Returns
    -------
    int
        At least 1, at most a third of the private rows.

    Examples
    --------
    >>> from skfairdp.accounting import gaussian_mu
    >>> from skfairdp.ensemble._budget_rule import choose_n_teachers
    >>> [choose_n_teachers(30_000, 2, gaussian_mu(epsilon, 1e-5)) for epsilon in (0.5, 1.0, 3.0, 8.0)]
    [491, 322, 167, 95]
    """
    most = max(1, n_private // LEAST_ROWS)
    pairs = 4 * n_classes * max(1, n_classes - 1)
    best = (pairs * n_private / LASTING_RISK) ** (1 / 3) / mu ** (2 / 3)  # no overflow where mu is tiny
    return min(most, max(FEWEST_TEACHERS, round(min(best, most))))


def choose_n_queries(
    n_public: int, n_features: int, n_classes: int, n_teachers: int, mu: float, *, averages: bool
) -> int:
    r"""Return how many public rows are asked about.

    A logistic student averages over its rows, so more queries cost nothing; beyond :math:`m = (\mu k)^2/(8c)` over
    ``QUERY_SHARE`` they bring nothing either. Another student learns the noise of single rows, and is asked so few that
    this noise stays a part ``BEARABLE_NOISE`` of the votes, but not fewer than in the papers.

    Parameters
    ----------
    n_public, n_features, n_classes, n_teachers : int
        Public rows, features, classes and teachers.
    mu : float
        Of the Gaussian mechanism that the budget allows; ``inf`` for no noise.
    averages : bool
        Whether the student averages over its rows.

    Returns
    -------
    int
        At most all public rows.

    Examples
    --------
    >>> from skfairdp.ensemble._budget_rule import choose_n_queries
    >>> [choose_n_queries(n_public, 50, 2, 300, 0.268, averages=True) for n_public in (900, 10_000)]
    [900, 4041]
    """
    votes = min(mu * n_teachers, 1e9) ** 2
    if averages:
        wanted = max(QUERIES_PER_FEATURE * (n_features + 1), votes / (8 * n_classes * QUERY_SHARE))
    else:
        wanted = max(FEW_QUERIES, votes * BEARABLE_NOISE**2 / 2)
    return int(min(n_public, math.ceil(wanted)))


def choose_penalty(n_features: int, n_classes: int, n_teachers: int, n_queries: int, mu: float) -> float:
    r"""Return the strength of a logistic student's penalty: variance of its gradient over variance of its coefficients.

    The best :math:`2\lambda` of a ridge is noise over curvature and signal. The signal is taken to be log odds between
    two classes with a variance of ``SIGNAL_VARIANCE``, spread evenly over p features. The loss of two classes has one
    vector of coefficients, their difference, and that of more classes has one each, which makes a factor of two.

    Parameters
    ----------
    n_features, n_classes, n_teachers, n_queries : int
        Features, classes, teachers and queries.
    mu : float
        Of the Gaussian mechanism that all labels are; ``inf`` for no noise.

    Returns
    -------
    float

    Examples
    --------
    >>> from skfairdp.ensemble._budget_rule import choose_penalty
    >>> round(choose_penalty(50, 2, 300, 4000, 0.268), 4)
    0.0347
    """
    noise = n_classes / max(mu * n_teachers, 1e-9) ** 2
    strength = (n_features + 1) * (noise + 1 / (8 * n_queries)) / SIGNAL_VARIANCE
    return strength if n_classes == 2 else 2 * strength


def choose_labels(student_weighs_rows: bool) -> str:
    """Return soft labels, or hard ones for a student that cannot weigh rows and so cannot learn from shares.

    Noisy shares tell more than their winner: the noise on them has mean zero and averages out, where the winner of a
    noisy vote is pulled towards chance. Hard labels of two classes are cheaper, by about as much as they tell less.

    Parameters
    ----------
    student_weighs_rows : bool
        Whether the student can learn from weighted rows.

    Returns
    -------
    {"soft", "hard"}

    Examples
    --------
    >>> from skfairdp.ensemble._budget_rule import choose_labels
    >>> choose_labels(True), choose_labels(False)
    ('soft', 'hard')
    """
    return "soft" if student_weighs_rows else "hard"
