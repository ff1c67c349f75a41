"""What the tests of all estimators share: the list of estimators, and data to fit them on."""

from skfairdp import (
    INLPEraser,
    LEACEEraser,
)

#: One instance per configuration that scikit-learn's checks run on. An estimator that is not here fails
#: ``test_public_api.py``.
ESTIMATORS: list = [
    INLPEraser(n_iterations=2),
    LEACEEraser(),
]
