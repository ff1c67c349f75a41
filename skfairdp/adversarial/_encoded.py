"""Encode records, and let a mechanism release the encoding."""

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

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
_VOCABULARY = "words of the training documents: the text encoder carries them as its vocabulary"


def not_covered(reads_text: bool) -> tuple[str, ...]:
    """Name what the guarantee of a released representation leaves out."""
    return (*_DOES_NOT_COVER, _VOCABULARY) if reads_text else _DOES_NOT_COVER


class EncodedReleases(ReleaseTransformerMixin):
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
