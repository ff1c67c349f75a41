"""The two halves of a FEDERATE model: an encoder that releases, and a head that predicts from what was released."""

import copy
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skfairdp._base import SkfairdpEstimator
from skfairdp.accounting import ONE_RELEASE
from skfairdp.mechanisms import CodeMechanism
from skfairdp.release import ReleaseTransformerMixin, find_mixed_rows

COVERS = "transform, predict and predict_proba: the released representation and everything computed from it alone"
_DOES_NOT_COVER = (
    ONE_RELEASE,
    "the training data: they are taken to be public, and the fitted weights may remember them",
    "the number of records, and whether a table was refused as malformed",
    "an encoder that lets records show through others: it was tried on made-up batches, and changing one record left "
    "the others as they were",
)
_OF_TEXT_ENCODER = "what the text encoder learned from the training documents, which it carries"
_COLUMN_STATISTICS = (
    "means, spreads and quantiles of the training columns, smallest and largest values among them, and how much and "
    "where they tell classes apart: the tabular encoder carries these to scale its inputs (encoder='mlp' learns none)"
)


def rows_of_documents(text_encoder: Any, documents: Any) -> np.ndarray:
    """Turn documents into the rows that the network of a text encoder takes."""
    read = getattr(text_encoder, "module_inputs", text_encoder.transform)
    return read(documents)


def not_covered(text_encoder: Any, is_tabular: bool) -> tuple[str, ...]:
    """Name what the guarantee of a released representation leaves out."""
    if text_encoder is not None:
        carried = text_encoder._carried() if hasattr(text_encoder, "_carried") else _OF_TEXT_ENCODER
        return (*_DOES_NOT_COVER, carried)
    return (*_DOES_NOT_COVER, _COLUMN_STATISTICS) if is_tabular else _DOES_NOT_COVER


class EncodedReleases(ReleaseTransformerMixin, TransformerMixin):
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
            rows = rows_of_documents(self.text_encoder_, X)
        else:
            rows = validate_data(self, X, dtype=np.float32, accept_sparse="csr", reset=False)
        return values_to_release(*self._networks, rows)

    def _hand_out(self, released: np.ndarray, values: np.ndarray) -> np.ndarray:
        return np.eye(values.shape[1])[released] if isinstance(self.mechanism_, CodeMechanism) else released

    def _learned_in_clear(self) -> str | None:
        return "the weights of its networks"

    def transform(self, X: Any) -> np.ndarray:
        """Release the private representation: noisy rows, or one-hot codes. One release of each record.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or documents
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_components) or (n_samples, n_codes)
        """
        return self._release(X)


class _Half:
    """A part of a trained model: ``fit`` changes nothing, and a clone is the part itself.

    Like this it can stand in a pipeline that is cloned and fitted, for example in a search over what comes after it.
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Return the part as it is: it has been trained already.

        Parameters
        ----------
        X, y, **params
            Ignored.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        return self

    def __sklearn_clone__(self) -> Any:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "module_")


class FederateEncoder(_Half, EncodedReleases, SkfairdpEstimator):
    """The device's half: encodes records and releases them through the private channel.

    Made by ``FederateClassifier.split``.

    Attributes
    ----------
    mechanism_ : Mechanism
        What draws the noise, frozen.
    privacy_ : PrivacyGuarantee
        What one ``transform`` costs each of its records.
    module_, channel_
        The encoder's network and the channel that it was trained through.

    Notes
    -----
    **Privacy.** That of the ``FederateClassifier`` it was cut from. A copy that is loaded in another process draws
    noise of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import FederateClassifier
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> clf = FederateClassifier(4.0, channel="codes", adversary_weight=0, batch_size=20, random_state=0)
    >>> encoder, head = clf.fit(X, X[:, 0] > 0).split()
    >>> encoder.privacy_.epsilon
    4.0
    >>> encoder.transform(X[:1]).shape  # one of two codes
    (1, 2)
    """

    @classmethod
    def _of(cls, classifier: Any) -> "FederateEncoder":
        part = cls()
        module = classifier.net_.module_
        part.module_, part.channel_ = copy.deepcopy(module.encoder), copy.deepcopy(module.channel)
        part._seal(
            classifier.mechanism_,
            classifier._stream.spawn(1)[0],
            covers=classifier.privacy_.covers,
            does_not_cover=not_covered(getattr(classifier, "text_encoder_", None), classifier._is_tabular),
        )
        if hasattr(classifier, "text_encoder_"):
            part.text_encoder_ = _without_cache(classifier.text_encoder_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(classifier, name):
                setattr(part, name, getattr(classifier, name))
        part._names_out = classifier.get_feature_names_out()
        return part

    @property
    def _networks(self) -> tuple[Any, Any]:
        return self.module_, self.channel_

    def _learned_in_clear(self) -> None:
        return None  # it was trained before, on rows that are taken to be public

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the released columns.

        Parameters
        ----------
        input_features : None
            Ignored.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return self._names_out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.sparse = not hasattr(self, "text_encoder_")
        return tags


class FederateHead(_Half, ClassifierMixin, SkfairdpEstimator):
    """The server's half: predicts from released representations; costs nothing more.

    Made by ``FederateClassifier.split``.

    Attributes
    ----------
    classes_ : ndarray
        Labels.
    n_features_in_ : int
        Width of the released representation.
    module_
        The head's network.

    Notes
    -----
    **Privacy.** What is computed from a release alone costs nothing (post-processing). The head has no noise and
    makes no promise of its own: it must be given what the encoder released.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import FederateClassifier
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> clf = FederateClassifier(4.0, channel="codes", adversary_weight=0, batch_size=20, random_state=0)
    >>> encoder, head = clf.fit(X, X[:, 0] > 0).split()
    >>> head.predict(np.eye(2))  # what it says to each code
    array([False,  True])
    """

    @classmethod
    def _of(cls, classifier: Any) -> "FederateHead":
        part = cls()
        part.module_ = copy.deepcopy(classifier.net_.module_.head)
        part.classes_ = classifier.classes_.copy()
        part.n_features_in_ = classifier._n_features_out
        return part

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of released representations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components) or (n_samples, n_codes)
            What the encoder released.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        from skfairdp.neural import class_probabilities

        check_is_fitted(self)
        X = check_array(X, dtype=np.float64)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X must be {self.n_features_in_} columns wide, as the encoder released it; got {X.shape[1]}."
            )
        return class_probabilities(self.module_, X)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class of released representations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components) or (n_samples, n_codes)
            What the encoder released.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


def _without_cache(text_encoder: Any) -> Any:
    """Return a text encoder that keeps nothing of the documents it reads."""
    return text_encoder._for_device() if hasattr(text_encoder, "_for_device") else text_encoder


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
        apart = _without_cache(text_encoder)  # what is remembered from one trial would look the same in the next
        sizes = getattr(text_encoder, "_batch_sizes_to_try", {})

        def encoded(batch: list[str]) -> np.ndarray:
            rows = rows_of_documents(apart, batch)
            values = encode(encoder, rows)
            # A few outputs may round away what many features show.
            return np.hstack([rows, values]) if rows.dtype.kind == "f" else values

        size = find_mixed_rows(encoded, documents, **sizes)
    if size is not None:
        raise ValueError(
            f"encoder mixes records: changing one of {size} changed what it makes of the others (or it draws at "
            "random), so that a record could be seen through other records and no epsilon would hold. A batch "
            "normalisation must keep running statistics (track_running_stats=True), and attention must not reach "
            "over the batch; batch_size=1 of a TransformersEncoder encodes documents one by one."
        )
