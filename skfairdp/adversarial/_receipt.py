"""What a release of a FEDERATE model costs."""

import math

from skfairdp.accounting import PrivacyGuarantee

_COVERS = "transform, predict and predict_proba: the released representation and everything computed from it alone"
_DOES_NOT_COVER = (
    "one release of each record; releasing the same record again costs again",
    "the training data: they are taken to be public, and the fitted weights may remember them",
    "the number of records, and whether a table was refused as malformed",
)


def federate_guarantee(
    channel: str, epsilon: float, n_outputs: int, norm: str, calibration: str, *, reproducible: bool
) -> PrivacyGuarantee:
    """The guarantee of one release of each record.

    Parameters
    ----------
    channel : {"laplace", "codes"}
        The mechanism; an infinite epsilon switches it off.
    epsilon : float
        The epsilon that was asked for.
    n_outputs : int
        Width of the representation, or number of codes.
    norm, calibration : str
        Of the Laplace channel. L2 rows differ by up to ``2 sqrt(n_outputs)`` in L1 norm, so that the published
        noise of scale ``2 / epsilon`` really costs ``sqrt(n_outputs) * epsilon``.
    reproducible : bool
        Whether the noise comes from a seed.

    Returns
    -------
    PrivacyGuarantee
    """
    exact, published = epsilon, None
    mechanism = channel
    if math.isinf(epsilon):
        mechanism = "none"
    elif channel == "codes":
        from skfairdp.mechanisms import code_weights

        exact = code_weights(n_outputs, epsilon).epsilon
    else:
        from skfairdp.mechanisms import plan_laplace

        exact = plan_laplace(epsilon, norm, n_outputs, calibration=calibration).epsilon
        published = None if exact == epsilon else epsilon
    return PrivacyGuarantee(
        exact,
        mechanism=mechanism,
        published_epsilon=published,
        reproducible=reproducible,
        covers=_COVERS,
        does_not_cover=_DOES_NOT_COVER,
    )
