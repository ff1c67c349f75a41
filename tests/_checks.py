"""What the tests of all estimators share: the list of estimators, and data to fit them on."""

#: One instance per configuration that scikit-learn's checks run on. An estimator that is not here fails
#: ``test_public_api.py``.
ESTIMATORS: list = []
