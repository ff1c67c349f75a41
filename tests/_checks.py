"""What the tests of all estimators share: the list of estimators, and data to fit them on."""

from skfairdp import (
    GaussianPrivatizer,
    INLPEraser,
    LaplacePrivatizer,
    LEACEEraser,
    OMEEncoder,
    WordDropout,
)

#: One instance per configuration that scikit-learn's checks run on. An estimator that is not here fails
#: ``test_public_api.py``.
ESTIMATORS: list = [
    GaussianPrivatizer(epsilon=8.0),
    LaplacePrivatizer(epsilon=8.0),
    LaplacePrivatizer(epsilon=8.0, norm="minmax", random_state=0),
    INLPEraser(n_iterations=2),
    LEACEEraser(),
    OMEEncoder(),
    OMEEncoder(epsilon=30.0, protocol="optimal", random_state=0),
    OMEEncoder(epsilon=30.0, protocol="optimal", objective="posterior"),
    WordDropout(),
]
