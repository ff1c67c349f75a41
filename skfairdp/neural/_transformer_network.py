"""Pretrained transformers as encoders: the only file that imports transformers, and only when one is loaded.

Documents of equal length are encoded together when nothing is trained, in batches of one fixed size: padding to the
longest document, or a batch of another size, may change the last digits of a row, and a record could then be seen,
however faintly, in the encodings of others. In training, the rows of a batch are padded to the longest of them and the
mask keeps padding out.
"""

import copy
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from skfairdp.neural._networks import mlp
from skfairdp.neural._torch_state import limit_threads, resolve_device

#: Stands where a document has no token; no vocabulary has it.
NO_TOKEN = -1


def load_tokenizer(source: Any, local_files_only: bool = False) -> Any:
    """Load a tokenizer by name or folder; an object is handed back as it is.

    Parameters
    ----------
    source : str, path or tokenizer
        What the user gave.
    local_files_only : bool
        Never ask the hub.

    Returns
    -------
    transformers tokenizer

    Examples
    --------
    >>> from transformers import BertTokenizer
    >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film"]
    >>> tokenizer = BertTokenizer({word: i for i, word in enumerate(words)})
    >>> from skfairdp.neural import load_tokenizer
    >>> load_tokenizer(tokenizer) is tokenizer
    True
    """
    if not _is_address(source):
        return source
    with _quiet_transformers() as transformers, _helpful_errors(source, "tokenizer"):
        return transformers.AutoTokenizer.from_pretrained(str(source), local_files_only=local_files_only)


def load_transformer(source: Any, local_files_only: bool = False) -> nn.Module:
    """Load a transformer by name or folder, in single precision; a module is copied.

    Parameters
    ----------
    source : str, path or torch.nn.Module
        What the user gave.
    local_files_only : bool
        Never ask the hub.

    Returns
    -------
    torch.nn.Module
        What turns token ids into hidden states; of an encoder with a decoder, the encoder.

    Examples
    --------
    >>> from transformers import BertConfig, BertModel
    >>> from skfairdp.neural import load_transformer
    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    >>> bert = BertModel(BertConfig(vocab_size=8, **sizes))
    >>> load_transformer(bert) is bert  # a copy, whose training leaves yours alone
    False
    """
    if _is_address(source):
        with _quiet_transformers() as transformers, _helpful_errors(source, "model"):
            model, report = transformers.AutoModel.from_pretrained(
                str(source), local_files_only=local_files_only, dtype=torch.float32, output_loading_info=True
            )
            missing = sorted(name for name in report["missing_keys"] if not name.startswith("pooler."))
            if missing:
                raise ValueError(f"the weights {', '.join(missing[:3])} are missing in its files")
    elif isinstance(source, nn.Module):
        model = copy.deepcopy(source)
    else:
        raise TypeError(
            f"model must be the name of a model, a folder that holds one, or a transformer of the package "
            f"transformers; got {type(source).__name__}."
        )
    if getattr(model.config, "is_encoder_decoder", False):
        model = model.get_encoder()
    if hasattr(model, "pooler"):
        model.pooler = None  # a layer that no vector of ours passes; many files lack it, and it would start at random
    return model


def token_ids(tokenizer: Any, documents: Sequence[str], max_length: int) -> np.ndarray:
    """Token ids of documents, cut off at ``max_length``, short ones filled with ``NO_TOKEN``.

    Parameters
    ----------
    tokenizer : transformers tokenizer
        With its special tokens.
    documents : sequence of str
        Documents.
    max_length : int
        Tokens of a document that are read.

    Returns
    -------
    ndarray of shape (n_documents, length), int64

    Examples
    --------
    >>> from transformers import BertTokenizer
    >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film"]
    >>> tokenizer = BertTokenizer({word: i for i, word in enumerate(words)})
    >>> from skfairdp.neural import token_ids
    >>> token_ids(tokenizer, ["good film", "bad"], 10).tolist()
    [[2, 5, 7, 3], [2, 6, 3, -1]]
    """
    found = tokenizer(list(documents), truncation=True, max_length=max_length, return_attention_mask=False)["input_ids"]
    ids = np.full((len(found), max([1, *map(len, found)])), NO_TOKEN, dtype=np.int64)
    for row, tokens in zip(ids, found):
        row[: len(tokens)] = tokens
    return ids


class TransformerNetwork(nn.Module):
    """A transformer, one vector per document, and linear layers behind it.

    Parameters
    ----------
    transformer : torch.nn.Module
        Token ids to hidden states.
    pooling : {"mean", "cls"}
        The mean over the tokens of a document, or the vector of its first one.
    hidden_sizes : sequence of int
        Widths of the layers behind; the last one is the output. None gives the pooled vector itself.
    dropout : float
        Share of these layers' units that are dropped in training.
    trainable : {"none", "all"} or int
        Which layers of the transformer learn: the last so many of them, or all, with the embeddings.
    batch_size : int
        Documents of equal length that are encoded at once in evaluation.
    mixed_precision : {"auto"} or bool
        Compute in bfloat16; "auto" does so on a GPU that can.

    Examples
    --------
    >>> from transformers import BertConfig, BertModel, BertTokenizer
    >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film"]
    >>> tokenizer = BertTokenizer({word: i for i, word in enumerate(words)})
    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    >>> bert = BertModel(BertConfig(vocab_size=8, **sizes))
    >>> import torch
    >>> from skfairdp.neural import TransformerNetwork, token_ids
    >>> ids = token_ids(tokenizer, ["good film", "bad"], 10)
    >>> TransformerNetwork(bert, hidden_sizes=(5,))(torch.as_tensor(ids)).shape
    torch.Size([2, 5])
    """

    _row_wise_methods: ClassVar[dict] = {"forward": ()}

    def __init__(
        self,
        transformer: nn.Module,
        pooling: str = "mean",
        hidden_sizes: Sequence[int] = (),
        dropout: float = 0.0,
        trainable: int | str = "none",
        batch_size: int = 32,
        mixed_precision: bool | str = "auto",
    ):
        super().__init__()
        self.transformer: Any = transformer
        self.pooling = pooling
        self.batch_size = batch_size
        self.mixed_precision = mixed_precision
        self.n_outputs = _width(transformer)
        self.behind: nn.Module = layers_behind(self.n_outputs, hidden_sizes, dropout)
        self.n_outputs = hidden_sizes[-1] if hidden_sizes else self.n_outputs
        _choose_trainable(transformer, trainable)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Encode documents.

        Parameters
        ----------
        ids : torch.Tensor of shape (n_documents, length)
            Token ids, as ``token_ids`` gives them.

        Returns
        -------
        torch.Tensor of shape (n_documents, n_outputs)
            A document without tokens gives the vector of zeros.
        """
        return self.behind(self._padded(ids) if self.training else self._by_length(ids))

    def _padded(self, ids: torch.Tensor) -> torch.Tensor:
        """Encode a batch of training at once."""
        longest = max(int(_lengths(ids).max()), 1)
        return self._pool(ids[:, :longest])

    def _by_length(self, ids: torch.Tensor, tell: Callable[[int], Any] = lambda n_rows: None) -> torch.Tensor:
        """Encode documents of equal length together, so that nothing but its own tokens enters the sums of a row."""
        lengths, parts, places = _lengths(ids), [], []
        with limit_threads(1) if ids.device.type == "cpu" else nullcontext():
            for length in lengths.unique().tolist():
                for rows in torch.nonzero(lengths == length)[:, 0].split(self.batch_size):
                    # Always batch_size documents, the first one repeated: sums are then cut up in the same way, however
                    # many other documents are of this length.
                    filled = torch.cat([rows, rows[:1].expand(self.batch_size - len(rows))])
                    parts.append(self._pool(ids[filled, : max(length, 1)])[: len(rows)])
                    places.append(rows)
                    tell(len(rows))
        if not parts:
            return torch.zeros(0, _width(self.transformer), device=ids.device)
        return torch.cat(parts)[torch.cat(places).argsort()]

    def _pool(self, ids: torch.Tensor) -> torch.Tensor:
        known = ids != NO_TOKEN
        padding = getattr(self.transformer.config, "pad_token_id", None)
        tokens = torch.where(known, ids, 0 if padding is None else padding)
        # A mask of ones is left out: without it torch takes the faster way, and the same one for every length.
        mask = None if bool(known.all()) else known.long()
        with self._precision(ids.device.type):
            hidden = self.transformer(input_ids=tokens, attention_mask=mask).last_hidden_state
        hidden = hidden.float()
        if self.pooling == "cls":
            return hidden[:, 0] * known[:, :1]
        weight = known.float() / known.sum(dim=1, keepdim=True).clamp_min(1)
        return (hidden * weight[:, :, None]).sum(dim=1)

    def _precision(self, device: str) -> Any:
        mixed = self.mixed_precision
        if isinstance(mixed, str):
            mixed = device == "cuda" and torch.cuda.is_bf16_supported()
        return torch.autocast(device, dtype=torch.bfloat16, enabled=bool(mixed))


def layers_behind(n_inputs: int, hidden_sizes: Sequence[int], dropout: float) -> nn.Module:
    """Make linear layers that end in a ReLU; none if there are no sizes.

    Parameters
    ----------
    n_inputs : int
        Width of what comes in.
    hidden_sizes : sequence of int
        Width of each layer.
    dropout : float
        Share of the units that are dropped in training.

    Returns
    -------
    torch.nn.Module

    Examples
    --------
    >>> from skfairdp.neural import layers_behind
    >>> layers_behind(8, (), 0.0)
    Identity()
    """
    if not hidden_sizes:
        return nn.Identity()
    *hidden, width = hidden_sizes
    return nn.Sequential(mlp(n_inputs, hidden, width, dropout), nn.ReLU())


def frozen_features(network: TransformerNetwork, ids: np.ndarray, device: Any, *, show_progress: bool) -> np.ndarray:
    """Encode token ids without learning anything.

    Parameters
    ----------
    network : TransformerNetwork
        Its layers behind are none.
    ids : ndarray of shape (n_documents, length)
        As ``token_ids`` gives them.
    device : str or torch.device
        Where to compute.
    show_progress : bool
        Show a bar.

    Returns
    -------
    ndarray of shape (n_documents, n_outputs), float32

    Examples
    --------
    >>> from transformers import BertConfig, BertModel, BertTokenizer
    >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film"]
    >>> tokenizer = BertTokenizer({word: i for i, word in enumerate(words)})
    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    >>> bert = BertModel(BertConfig(vocab_size=8, **sizes))
    >>> from skfairdp.neural import TransformerNetwork, frozen_features, token_ids
    >>> ids = token_ids(tokenizer, ["good film", "bad"], 10)
    >>> frozen_features(TransformerNetwork(bert), ids, "cpu", show_progress=False).shape
    (2, 8)
    """
    from tqdm import tqdm

    network = network.to(resolve_device(device)).eval()
    place = next(network.parameters()).device
    with torch.no_grad(), tqdm(total=len(ids), unit="document", disable=not show_progress) as bar:
        return network._by_length(torch.as_tensor(ids, device=place), bar.update).cpu().numpy()


def transformer_fingerprint(network: TransformerNetwork, tokenizer: Any, *settings: Any) -> bytes:
    """Hash all that features of a document depend on besides the document: weights, vocabulary and settings.

    Parameters
    ----------
    network : TransformerNetwork
        Its weights count.
    tokenizer : transformers tokenizer
        Its vocabulary and its rules count.
    *settings
        Whatever else makes a difference.

    Returns
    -------
    bytes

    Examples
    --------
    >>> from transformers import BertConfig, BertModel, BertTokenizer
    >>> words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film"]
    >>> tokenizer = BertTokenizer({word: i for i, word in enumerate(words)})
    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    >>> bert = BertModel(BertConfig(vocab_size=8, **sizes))
    >>> from skfairdp.neural import TransformerNetwork, transformer_fingerprint
    >>> network = TransformerNetwork(bert)
    >>> transformer_fingerprint(network, tokenizer, "mean") == transformer_fingerprint(network, tokenizer, "cls")
    False
    """
    found = hashlib.sha256(repr(settings).encode())
    for name, weights in sorted(network.transformer.state_dict().items()):
        values = weights.detach().cpu().contiguous()
        found.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        found.update(values.flatten().view(torch.uint8).numpy().tobytes() if values.numel() else b"")
    found.update(json.dumps(sorted(tokenizer.get_vocab().items())).encode())
    if hasattr(tokenizer, "backend_tokenizer"):
        rules = json.loads(tokenizer.backend_tokenizer.to_str())
        # Where the last call cut off or filled up says nothing about the tokenizer.
        found.update(json.dumps({k: v for k, v in rules.items() if k not in ("truncation", "padding")}).encode())
    return found.digest()


def _lengths(ids: torch.Tensor) -> torch.Tensor:
    return (ids != NO_TOKEN).sum(dim=1)


def _width(transformer: Any) -> int:
    return int(transformer.config.hidden_size)


def _choose_trainable(transformer: Any, trainable: int | str) -> None:
    """Let some layers learn and hold the others."""
    transformer.requires_grad_(trainable == "all")
    if isinstance(trainable, str):
        return
    layers = _layers(transformer)
    if trainable > len(layers):
        raise ValueError(f"trainable={trainable} asks for more layers than the {len(layers)} that the model has.")
    for layer in layers[len(layers) - trainable :]:
        layer.requires_grad_(True)


def _layers(transformer: Any) -> list[nn.Module]:
    """Layers from the first to the last."""
    n_layers = getattr(transformer.config, "num_hidden_layers", None)
    for module in transformer.modules():
        if isinstance(module, nn.ModuleList) and len(module) == n_layers:
            return list(module)
    raise ValueError(
        f"the layers of {type(transformer).__name__} were not found, so that trainable must be 'none' or 'all'."
    )


def _is_address(source: Any) -> bool:
    return isinstance(source, str) or hasattr(source, "__fspath__")


@contextmanager
def _quiet_transformers() -> Iterator[Any]:
    """Import transformers, and keep its bars and reports off the screen inside the block."""
    try:
        import transformers
        from transformers.utils import logging
    except ImportError as error:
        raise ImportError(
            "TransformersEncoder needs the package transformers: pip install 'skfairdp[text]'."
        ) from error
    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # it reports weights that we do without; those that we need raise
    try:
        yield transformers
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()


@contextmanager
def _helpful_errors(source: Any, parameter: str) -> Iterator[None]:
    """Say what to do about a name that leads nowhere."""
    try:
        yield
    except (OSError, ValueError) as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise OSError(
            f"{parameter}={str(source)!r} could not be loaded: it is no folder that holds a {parameter}, it is not in "
            "the cache of this machine, and the hub did not give it. Check the name. Without network, load it where "
            f"there is one (AutoModel.from_pretrained({str(source)!r}).save_pretrained('folder'), and the same with "
            f"AutoTokenizer), copy the folder here, and give {parameter}='folder'; or copy the cache and let HF_HOME "
            f"name it. transformers says: {first}"
        ) from error
