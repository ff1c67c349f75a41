"""The two halves of a FEDERATE model: an encoder that releases, and a head that predicts from what was released."""

import copy
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skfairdp._base import SkfairdpEstimator
from skfairdp._row_wise import call_row_by_row, why_rows_mix
from skfairdp.dp import ONE_RELEASE, PrivacyGuarantee, ReleaseMixin
from skfairdp.mechanisms import CodeMechanism

COVERS = "transform, predict and predict_proba: the released representation and everything computed from it alone"
_DOES_NOT_COVER = (
    ONE_RELEASE,
    "the training data: they are taken to be public, and the fitted weights may remember them",
    "the number of records, and whether a table was refused as malformed",
    "Encoders that hide what they have seen in globals or files: an encoder that is not known to treat each record "
    "alone is called on one record at a time (or row_wise=True states that it does).",
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


@dataclass(frozen=True)
class Encoding:
    """From records to the values that the mechanism takes."""

    encoder: Any
    channel: Any
    text_encoder: Any

    def transform(self, X: Any) -> np.ndarray:
        from skfairdp.neural import values_to_release

        rows = X if self.text_encoder is None else rows_of_documents(self.text_encoder, X)
        return values_to_release(self.encoder, self.channel, rows)

    def why_rows_mix(self) -> str | None:
        """Say why the values of one record may depend on other records; None if they do not."""
        read = "module_inputs" if hasattr(self.text_encoder, "module_inputs") else "transform"
        return why_rows_mix(self.encoder, "forward") or why_rows_mix(self.text_encoder, read)

    def check_single_records(self, n_features: int) -> None:
        """Raise if the encoder cannot encode one record alone."""
        try:
            self.transform(np.zeros((1, n_features), dtype=np.float32))
        except Exception as error:
            raise ValueError(
                "encoder must encode records one at a time, because nothing shows that it treats each of a batch alone "
                f"({self.why_rows_mix()}), and it cannot: {error} A batch normalisation must keep running statistics "
                "(track_running_stats=True)."
            ) from error


class EncodedReleases(ReleaseMixin, TransformerMixin):
    """What the classifier and its encoder half share: rows are encoded, and the mechanism releases the encoding."""

    text_encoder_: Any
    n_features_in_: int
    _row_wise: bool  # whether the user vouches for the encoder

    @property
    def _networks(self) -> tuple[Any, Any]:
        """The encoder's network, and the channel behind it."""
        raise TypeError(f"{type(self).__name__} must say which networks encode (_networks).")

    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        text_encoder = getattr(self, "text_encoder_", None)
        rows = X
        if text_encoder is None:
            rows = validate_data(self, X, dtype=np.float32, accept_sparse="csr", reset=False)
        encoding = Encoding(*self._networks, text_encoder)
        # Without noise there is no guarantee per record that other records could break.
        if self._row_wise or math.isinf(self.mechanism_.epsilon) or encoding.why_rows_mix() is None:
            return encoding.transform(rows)
        if text_encoder is not None:
            rows = list(rows)
            encoding = replace(encoding, text_encoder=_without_cache(text_encoder))
        return call_row_by_row(encoding, "transform", rows, name=type(self).__name__)

    def _release_encoded(self, X: Any, receipt: PrivacyGuarantee | None = None) -> np.ndarray:
        """Release each record once: noisy rows, or one-hot codes."""
        values = self._values(X)
        released = self._release(values, receipt)
        return np.eye(values.shape[1])[released] if isinstance(self.mechanism_, CodeMechanism) else released

    def _learned_without_noise(self) -> str | None:
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
        return self._release_encoded(X)


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

    _row_wise_methods: ClassVar[dict] = {"transform": ("text_encoder_", "module_", "channel_")}

    @classmethod
    def _of(cls, classifier: Any) -> "FederateEncoder":
        part = cls()
        part._charge_as(classifier)
        module = classifier.net_.module_
        part._row_wise = classifier._row_wise
        part.module_, part.channel_ = copy.deepcopy(module.encoder), copy.deepcopy(module.channel)
        part._freeze(
            classifier.mechanism_,
            classifier._frozen.stream.spawn(1)[0],
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

    def _learned_without_noise(self) -> None:
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

    _row_wise_methods: ClassVar[dict] = {"predict": ("module_",), "predict_proba": ("module_",)}

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
