"""What a fitted FEDERATE model answers; every answer is a release."""

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skfairdp.adversarial._encoded import EncodedReleases
from skfairdp.adversarial._split import FederateEncoder, FederateHead


class PrivateAnswers(EncodedReleases, ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """``transform``, ``predict_proba`` and ``predict`` of a model that holds a net."""

    net_: Any
    classes_: np.ndarray
    encoder: Any

    @property
    def _reads_text(self) -> bool:
        return hasattr(self.encoder, "make_module")

    @property
    def _networks(self) -> tuple[Any, Any]:
        return self.net_.module_.encoder, self.net_.module_.channel

    def transform(self, X: Any) -> np.ndarray:
        """Release the private representation: noisy rows, or one-hot codes. One release of each record.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or documents
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_components) or (n_samples, n_codes)
        """
        return self._release(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities from what the channel releases. One release of each record.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or documents
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        from skfairdp.neural import class_probabilities

        released = self._release(X)
        return class_probabilities(self.net_.module_.head, released)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class from what the channel releases. One release of each record.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or documents
            Records.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def split(self) -> tuple[Any, Any]:
        """Cut the model in two: an encoder for the device of a person, and a head for the server.

        The encoder adds the noise and alone carries the guarantee. The head has never seen, and cannot ask for, a
        clean representation. Both pickle on their own and hold weights, no training rows and no losses.

        Returns
        -------
        encoder : FederateEncoder
            A transformer; ``encoder.privacy_`` is what one ``transform`` costs each record.
        head : FederateHead
            A classifier on what the encoder releases.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.pipeline import make_pipeline
        >>> from skfairdp import FederateClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = np.where(X[:, 0] > 0, "yes", "no")
        >>> clf = FederateClassifier(channel="codes", adversary_weight=0.0, batch_size=20, random_state=0).fit(X, y)
        >>> encoder, head = clf.split()
        >>> codes = encoder.transform(X)  # on the device
        >>> bool((head.predict(codes) == y).mean() > 0.9)  # on the server
        True
        """
        check_is_fitted(self)
        return FederateEncoder._of(self), FederateHead._of(self)
