"""What all our estimators share: the link to their documentation, nothing else."""

from typing import ClassVar

from sklearn.base import BaseEstimator

from skfairdp import __version__


class SkfairdpEstimator(BaseEstimator):
    """Base of every estimator; scikit-learn's HTML view links it to our documentation."""

    _doc_link_module: ClassVar[str] = "skfairdp"

    @property
    def _doc_link_template(self) -> str:
        version = "dev" if "dev" in __version__ else __version__
        return f"https://skfairdp.readthedocs.io/en/{version}/generated/{{estimator_module}}.{{estimator_name}}.html"
