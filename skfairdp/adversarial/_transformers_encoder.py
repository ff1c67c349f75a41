"""A text encoder for FederateClassifier: a pretrained transformer, frozen or trained with everything else."""

import copy
from collections.abc import Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skfairdp._base import SkfairdpEstimator
from skfairdp._sklearn import Interval, StrOptions, fit_context
from skfairdp._validation import check_documents
from skfairdp.adversarial._feature_cache import cached_features


class TransformersEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SkfairdpEstimator):
    """Turn documents into vectors by a transformer of the package transformers, such as BERT.

    By itself it is a transformer of scikit-learn that gives frozen features. Given to
    ``FederateClassifier(encoder=...)``, its last layers or all of them can be trained end to end with channel, head and
    adversaries, with the noise that the releases will have. Needs ``pip install 'skfairdp[text]'``.

    Parameters
    ----------
    model : str, path or transformer, default="bert-base-uncased"
        The name of a model on the hub, a folder that ``save_pretrained`` has made, or a model object, which is copied.
        Weights are loaded as data; code that comes with a model is never run.
    tokenizer : str, path, tokenizer or None, default=None
        None takes that of ``model``; a model object needs one.
    pooling : {"mean", "cls"}, default="mean"
        One vector per document: the mean over its tokens, or the vector of its first token.
    max_length : int, default=128
        Tokens of a document that are read.
    trainable : {"none", "last", "all"} or int, default="none"
        What ``FederateClassifier`` trains of the model: nothing, so that features are computed once; the last layer;
        the last so many layers; or all, with the embeddings.
    learning_rate : float, default=5e-5
        Step size of the model's own layers; all that stands behind them has that of the classifier.
    hidden_sizes : sequence of int, default=(50,)
        Layers behind the vector in ``FederateClassifier``; ``transform`` gives the vector itself.
    dropout : float, default=0.1
        Share of these layers' units that are dropped in training.
    mask_token : str, default="[MASK]"
        Stands for a masked word, as in ``WordDropout``; the model reads its own mask token there, or its token for
        unknown words if it has none.
    batch_size : int, default=32
        Documents of equal length that are encoded together. With 1, a document is encoded by itself whatever the
        libraries below do. A release encodes one document at a time unless the encoder is known to keep documents apart
        or the user vouches for it.
    cache : "memory", path or None, default="memory"
        Where frozen features are kept, so that no document is encoded twice: by this process, in a file that several
        processes may share (SQLite), or not at all.
    device : str or torch.device, default="cpu"
        Where frozen features are computed; layers that are trained are on the device of the classifier.
    mixed_precision : "auto" or bool, default="auto"
        Compute in bfloat16; ``"auto"`` does so on a GPU that can.
    local_files_only : bool, default=False
        Never ask the hub.
    verbose : int, default=0
        1 shows a progress bar over documents.

    Attributes
    ----------
    tokenizer_ : tokenizer
        From text to ids.
    vocabulary_ : dict
        Token to id, as the model brought it; nothing of the documents enters it.
    network_ : torch.nn.Module
        The frozen model; only with ``trainable="none"``.

    See Also
    --------
    BagOfEmbeddingsEncoder : Mean word vectors, learned from scratch or from given ones.
    WordDropout : Masks words, which amplifies the guarantee for single words.

    Notes
    -----
    **Privacy.** None by itself. ``fit`` learns nothing from the documents; the weights and the vocabulary that come
    with the model are taken to be public, and whoever trained them may have used anything. Each document is encoded by
    itself: documents are put together by length and never padded, so that none shows through others. A cache holds
    clean features under hashes of the documents: whoever reads it reads the documents nearly as well, and can tell
    whether a given one is among them. It belongs where the documents are; the device's half of a split model has none.
    How long encoding takes tells how long a document is.

    Examples
    --------
    >>> from transformers import BertConfig, BertModel, BertTokenizer
    >>> from skfairdp.adversarial import TransformersEncoder
    >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "bad", "film"]
    >>> tokenizer = BertTokenizer({word: i for i, word in enumerate(words)})
    >>> tiny = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    >>> encoder = TransformersEncoder(BertModel(tiny), tokenizer=tokenizer).fit()
    >>> encoder.transform(["a good film", "bad"]).shape
    (2, 8)
    """

    _row_wise_methods: ClassVar[dict] = {"transform": ("network_",), "module_inputs": ("network_",)}

    _parameter_constraints: ClassVar[dict] = {
        "model": "no_validation",  # read by neural, which alone knows what a transformer is
        "tokenizer": "no_validation",
        "pooling": [StrOptions({"mean", "cls"})],
        "max_length": [Interval(Integral, 1, None, closed="left")],
        "trainable": [StrOptions({"none", "last", "all"}), Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "hidden_sizes": ["array-like"],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "mask_token": [str],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "cache": [str, PathLike, None],
        "device": "no_validation",
        "mixed_precision": [StrOptions({"auto"}), "boolean"],
        "local_files_only": ["boolean"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        model: Any = "bert-base-uncased",
        *,
        tokenizer: Any = None,
        pooling: str = "mean",
        max_length: int = 128,
        trainable: str | int = "none",
        learning_rate: float = 5e-5,
        hidden_sizes: Sequence[int] = (50,),
        dropout: float = 0.1,
        mask_token: str = "[MASK]",
        batch_size: int = 32,
        cache: str | PathLike | None = "memory",
        device: Any = "cpu",
        mixed_precision: str | bool = "auto",
        local_files_only: bool = False,
        verbose: int = 0,
    ):
        self.model = model
        self.tokenizer = tokenizer
        self.pooling = pooling
        self.max_length = max_length
        self.trainable = trainable
        self.learning_rate = learning_rate
        self.hidden_sizes = hidden_sizes
        self.dropout = dropout
        self.mask_token = mask_token
        self.batch_size = batch_size
        self.cache = cache
        self.device = device
        self.mixed_precision = mixed_precision
        self.local_files_only = local_files_only
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any = None, y: Any = None) -> "TransformersEncoder":
        """Load the tokenizer, and the model if it stays frozen; nothing is learned from the documents.

        Parameters
        ----------
        X : iterable of str or None
            Not used.
        y : None
            Not used.

        Returns
        -------
        self : TransformersEncoder
        """
        from skfairdp.neural import load_tokenizer, transformer_fingerprint

        if self._is_frozen:
            self._refuse_unused("trainable='none'", "learning_rate")
        else:
            self._refuse_unused(f"trainable={self.trainable!r}", "cache", "device", "verbose")
        given = self.tokenizer
        if given is None:
            if not isinstance(self.model, str | PathLike):
                raise ValueError(
                    f"tokenizer must be given with a model object; got model={type(self.model).__name__} alone."
                )
            given = self.model
        tokenizer = load_tokenizer(given, self.local_files_only)
        network = self._make_network(()) if self._is_frozen else None
        self.tokenizer_ = tokenizer
        self.vocabulary_ = dict(tokenizer.get_vocab())
        if network is not None:
            settings = (self.pooling, self.max_length, self.mask_token, self.mixed_precision, str(self.device))
            self._fingerprint = transformer_fingerprint(network, tokenizer, *settings)
            self.network_ = network
            self._n_features_out = network.n_outputs
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Encode documents by the frozen model.

        Parameters
        ----------
        X : iterable of str
            Documents.

        Returns
        -------
        ndarray of shape (n_documents, width of the model), float32
        """
        check_is_fitted(self)
        if not self._is_frozen:
            raise ValueError(
                f"transform gives features of a frozen model, and trainable={self.trainable!r} asks for one that is "
                "trained: give it to FederateClassifier(encoder=...), or set trainable='none'."
            )
        return cached_features(check_documents(X), self._fingerprint, self._encode, self.cache)

    def module_inputs(self, X: Any) -> np.ndarray:
        """Return what the network of :meth:`make_module` takes: frozen features, or token ids if layers are trained.

        Parameters
        ----------
        X : iterable of str
            Documents.

        Returns
        -------
        ndarray of shape (n_documents, width)
        """
        check_is_fitted(self)
        return self.transform(X) if self._is_frozen else self._token_ids(check_documents(X))

    def make_module(self, n_features: int) -> Any:
        """Make the network that is trained; ``FederateClassifier`` calls this.

        Parameters
        ----------
        n_features : int
            Width of the inputs, which counts for frozen features only.

        Returns
        -------
        torch.nn.Module
        """
        from skfairdp.neural import layers_behind

        check_is_fitted(self)
        sizes = tuple(int(width) for width in self.hidden_sizes)
        return layers_behind(n_features, sizes, self.dropout) if self._is_frozen else self._make_network(sizes)

    @property
    def _is_frozen(self) -> bool:
        return isinstance(self.trainable, str) and self.trainable == "none"

    def _make_network(self, hidden_sizes: tuple[int, ...]) -> Any:
        from skfairdp.neural import TransformerNetwork, load_transformer

        transformer = load_transformer(self.model, self.local_files_only)
        most = getattr(transformer.config, "max_position_embeddings", None)
        if most is not None and self.max_length > most:
            raise ValueError(f"max_length={self.max_length} is more than the {most} tokens that the model can read.")
        trainable = 1 if self.trainable == "last" else self.trainable
        return TransformerNetwork(
            transformer,
            self.pooling,
            hidden_sizes,
            self.dropout,
            trainable,
            batch_size=self.batch_size,
            mixed_precision=self.mixed_precision,
        )

    def _token_ids(self, documents: list[str]) -> np.ndarray:
        from skfairdp.neural import token_ids

        mask = getattr(self.tokenizer_, "mask_token", None) or getattr(self.tokenizer_, "unk_token", None) or ""
        if self.mask_token and self.mask_token != mask:
            documents = [document.replace(self.mask_token, mask) for document in documents]
        return token_ids(self.tokenizer_, documents, self.max_length)

    def _encode(self, documents: list[str]) -> np.ndarray:
        from skfairdp.neural import frozen_features

        ids = self._token_ids(documents)
        return frozen_features(self.network_, ids, self.device, show_progress=bool(self.verbose))

    def _parameter_groups(self) -> list[tuple[str, dict[str, float]]]:
        """Settings of the optimiser for parts of the network, as skorch takes them."""
        return [] if self._is_frozen else [("encoder*.transformer.*", {"lr": float(self.learning_rate)})]

    def _for_device(self) -> "TransformersEncoder":
        """Return a copy that keeps no features, and no weights besides those that encode."""
        part = copy.copy(self)
        part.cache = None
        part.model = None
        return part

    def _carried(self) -> str:
        return (
            "the vocabulary and the pretrained weights that came with the model: the text encoder carries them, and "
            "they are taken to be public"
        )

    def _taken_as_public(self) -> str:
        return "the pretrained weights and the vocabulary"

    def _learned_without_noise(self) -> None:
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.requires_fit = True
        return tags
