"""What a fitted FEDERATE model answers; every answer is a release."""

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skfairdp.accounting import ONE_RELEASE
from skfairdp.mechanisms import CodeMechanism
from skfairdp.release import ReleaseMixin, find_mixed_rows

COVERS = "transform, predict and predict_proba: the released representation and everything computed from it alone"
_DOES_NOT_COVER = (
    ONE_RELEASE,
    "the training data: they are taken to be public, and the fitted weights may remember them",
    "the number of records, and whether a table was refused as malformed",
    "an encoder that lets records show through others: it was tried on made-up batches, and changing one record left "
    "the others as they were",
)
_VOCABULARY = "words of the training documents: the text encoder carries them as its vocabulary"


def not_covered(reads_text: bool) -> tuple[str, ...]:
    """Name what the guarantee of a released representation leaves out."""
    return (*_DOES_NOT_COVER, _VOCABULARY) if reads_text else _DOES_NOT_COVER


class EncodedReleases(ReleaseMixin):
    """What the classifier and its encoder half share: rows are encoded, and the mechanism releases the encoding."""

    text_encoder_: Any
    n_features_in_: int

    @property
    def _networks(self) -> tuple[Any, Any]:
        """The encoder's network, and the channel behind it."""
        raise TypeError(f"{type(self).__name__} must say which networks encode (_networks).")

    def _values_to_release(self, X: Any) -> np.ndarray:
        from skfairdp.neural import values_to_release

        if hasattr(self, "text_encoder_"):
            rows = self.text_encoder_.transform(X)
        else:
            rows = validate_data(self, X, dtype=np.float32, reset=False)
        return values_to_release(*self._networks, rows)

    def _hand_out(self, released: np.ndarray, values: np.ndarray) -> np.ndarray:
        return np.eye(values.shape[1])[released] if isinstance(self.mechanism_, CodeMechanism) else released

    def _learned_in_clear(self) -> str | None:
        return "the weights of its networks"


def check_records_stay_apart(encoder: Any, n_features: int, text_encoder: Any, seed: int) -> None:
    """Refuse an encoder through which a record could be seen in the encodings of others.

    Parameters
    ----------
    encoder : torch.nn.Module
        In evaluation mode.
    n_features : int
        Width of the rows; unused for documents.
    text_encoder : transformer or None
        Turns documents into rows.
    seed : int
        Of the made-up records.
    """
    from skfairdp.neural import encode

    generator = np.random.default_rng(seed)

    def rows(n: int) -> np.ndarray:
        return generator.normal(scale=3.0, size=(n, n_features)).astype(np.float32)

    def documents(n: int) -> list[str]:
        words = list(getattr(text_encoder, "vocabulary_", ())) or ["a", "good", "word", "and", "another"]
        return [" ".join(generator.choice(words, generator.integers(1, 30))) for _ in range(n)]

    if text_encoder is None:
        size = find_mixed_rows(lambda batch: encode(encoder, batch), rows)
    else:
        size = find_mixed_rows(lambda batch: encode(encoder, text_encoder.transform(batch)), documents)
    if size is not None:
        raise ValueError(
            f"encoder mixes records: changing one of {size} changed what it makes of the others (or it draws at "
            "random), so that a record could be seen through other records and no epsilon would hold. A batch "
            "normalisation must keep running statistics (track_running_stats=True), and attention must not reach "
            "over the batch."
        )


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
        from skfairdp.adversarial._split import FederateEncoder, FederateHead

        check_is_fitted(self)
        return FederateEncoder._of(self), FederateHead._of(self)
