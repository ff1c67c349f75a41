"""The skorch net of FederateClassifier: how it reads rows, how it is trained, and what it encodes.

This is the door through which estimators enter: they need no torch of their own.
"""

import copy
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from scipy import sparse
from skorch import NeuralNetClassifier
from skorch.callbacks import (
    BatchScoring,
    Callback,
    EarlyStopping,
    EpochScoring,
    EpochTimer,
    PassthroughScoring,
    PrintLog,
    ProgressBar,
)
from skorch.dataset import Dataset
from skorch.utils import to_tensor
from torch import nn

from skfairdp.neural._federate_loss import FederateLoss, Targets
from skfairdp.neural._federate_module import LaplaceChannel, Outputs, make_federate_module
from skfairdp.neural._torch_state import resolve_device, threads_for, torch_seed

# What passes a network at once when nothing is learned: so many rows, and so many values of dense rows (64 MB). This
# bounds the memory, not the result.
_ROWS_AT_ONCE, _VALUES_AT_ONCE = 65_536, 1 << 24

_OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}


#: Documents, as ids of their words, that are worked on at a time.
_ROWS_OF_IDS = 1024


def _rows_at_once(n_features: int) -> int:
    return max(1, min(_ROWS_AT_ONCE, _VALUES_AT_ONCE // max(n_features, 1)))


def _column(values: Any) -> Any:
    """Bring values into the form that batches are cut from: a tensor, or sparse rows; floats in single precision."""
    if sparse.issparse(values):
        return sparse.csr_array(values, dtype=np.float32)
    # A tensor shares memory with its array, and torch warns when it must not be written to: such an array is copied.
    tensor = values if isinstance(values, torch.Tensor) else torch.as_tensor(np.require(values, requirements="W"))
    return tensor.float() if tensor.is_floating_point() else tensor


def _take(column: Any, rows: Any) -> Any:
    """Choose rows; sparse ones stay sparse."""
    if not sparse.issparse(column):
        return column[rows]
    return column[rows.cpu().numpy() if isinstance(rows, torch.Tensor) else rows]


def _dense(column: Any) -> torch.Tensor:
    return torch.from_numpy(column.toarray()) if sparse.issparse(column) else column


class RowsDataset(Dataset):
    """Rows, with the groups and weights that the loss needs beside them.

    Parameters
    ----------
    X : array, tensor, sparse matrix, or mapping
        The rows, or a mapping with the rows under ``"x"`` and, where there are any, ``"groups"`` of shape
        (n, n_columns), ``"weight"`` of shape (n,), and ``"copies"`` of shape (n,): how often :meth:`draws` names a row.
    y : array or tensor of shape (n,), optional
        Class indices.
    """

    def __init__(self, X: Any, y: Any = None):
        columns = {name: _column(values) for name, values in (X if isinstance(X, Mapping) else {"x": X}).items()}
        self.copies = columns.pop("copies", None)
        super().__init__(columns, None if y is None else _column(y))
        if self.copies is not None:
            self._weight_of_draw = columns.get("weight", torch.ones_like(self.copies)) / self.copies

    def __getitem__(self, rows: Any) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Return a batch; only here do sparse rows become dense."""
        if sparse.issparse(self.X["x"]) and isinstance(rows, int | np.integer):
            X, y = self[[rows]]
            return {name: values[0] for name, values in X.items()}, y[0]
        X = {name: _dense(_take(values, rows)) for name, values in self.X.items()}
        # skorch wants a target also where there is none to be had, as in predict.
        y = torch.zeros(len(X["x"]), dtype=torch.int64) if self.y is None else self.y[rows]
        return X, y

    def draws(self) -> torch.Tensor:
        """Return the rows of an epoch, each as often as it has copies."""
        rows = torch.arange(len(self))
        return rows if self.copies is None else rows.repeat_interleave(self.copies.cpu())

    def drawn(self, rows: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Return a batch of draws: the copies of a row share its weight."""
        X, y = self[rows]
        if self.copies is not None:
            X["weight"] = self._weight_of_draw[rows]
        return X, y

    def part(self, rows: torch.Tensor, copies: torch.Tensor | None = None) -> "RowsDataset":
        """Return some of the rows, or some of their copies, as a dataset of their own."""
        X = {name: _take(values, rows) for name, values in self.X.items()}
        if self.copies is not None:
            X["copies"] = self.copies[rows] if copies is None else copies
            X["weight"] = self._weight_of_draw[rows] * X["copies"]
        return RowsDataset(X, None if self.y is None else self.y[rows])


class TensorBatches:
    """A skorch iterator that cuts whole batches out of a dataset by one indexing each, instead of row by row.

    Parameters
    ----------
    dataset : RowsDataset
        What ``dataset[rows]`` gives is a batch.
    batch_size : int
        Rows of a batch; the last one may be smaller.
    shuffle : bool
        Draw a new order for every pass, from torch's global generator, of all copies of the rows; else every row comes
        once, with its whole weight.
    drop_last : bool
        Leave out a last batch that is smaller than the others.
    """

    def __init__(self, dataset: Any, batch_size: int, shuffle: bool = False, drop_last: bool = False):
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last

        # A part that another train_split than ours has cut has no copies: its rows come once, with their whole weight.
        has_copies = shuffle and getattr(dataset, "copies", None) is not None
        self._draws = dataset.draws() if has_copies else torch.arange(len(dataset))
        self._batch = dataset.drawn if has_copies else dataset.__getitem__

    def __len__(self) -> int:
        whole, rest = divmod(len(self._draws), self.batch_size)
        return whole if self.drop_last else whole + (rest > 0)

    def __iter__(self) -> Iterator[tuple[dict[str, torch.Tensor], torch.Tensor]]:
        order = self._draws[torch.randperm(len(self._draws))] if self.shuffle else None
        for i in range(len(self)):
            rows = slice(i * self.batch_size, (i + 1) * self.batch_size)
            yield self._batch(rows if order is None else order[rows])


class HoldOut:
    """Keep a share of the rows of each class out of training; a ``train_split`` of skorch.

    torch's global generator chooses them. One row of every class stays, however large the share. The copies of a row go
    to one side together, so that nothing is validated on that was trained on, unless the share of them is one or more:
    a row of so many copies is divided, for without it the training would see its class too rarely.

    Parameters
    ----------
    validation_fraction : float
        The share; at least one row.
    """

    def __init__(self, validation_fraction: float):
        self.validation_fraction = validation_fraction

    def __call__(self, dataset: RowsDataset, y: Any = None, **params: Any) -> tuple[RowsDataset, RowsDataset]:
        """Return the rows to train on and the rows to validate on."""
        n_rows, share = len(dataset), self.validation_fraction
        if max(1, round(share * n_rows)) >= n_rows:
            raise ValueError(f"validation_fraction={share!r} leaves no row of {n_rows} to train on.")
        copies = getattr(dataset, "copies", None)
        copies = torch.ones(n_rows, dtype=torch.int64) if copies is None else copies.cpu()
        order = torch.randperm(n_rows)
        labels = torch.zeros(n_rows) if dataset.y is None else dataset.y.cpu()[order]
        divided = share * copies[order] >= 1
        valid = torch.zeros(n_rows, dtype=torch.bool)
        for label in labels.unique():
            rows = torch.nonzero((labels == label) & ~divided)[:, 0]
            kept = 0 if (divided & (labels == label)).any() else 1
            valid[rows[: min(round(share * len(rows)), len(rows) - kept)]] = True
        if not valid.any() and not divided.any():
            valid[0] = True
        if not divided.any():
            return dataset.part(order[~valid]), dataset.part(order[valid])
        copies = copies[order]
        to_valid = torch.where(divided, (share * copies).round().long(), torch.where(valid, copies, 0))
        return tuple(  # type: ignore[return-value]
            dataset.part(order[some > 0], some[some > 0].to(dataset.copies.device))
            for some in (copies - to_valid, to_valid)
        )


class AdversarySchedule(Callback):
    """Let the adversary's weight rise over the epochs of a training, and record it as ``adversary_weight``.

    Parameters
    ----------
    weight : float
        lambda, at the end of the schedule.
    schedule : {"sigmoid", "linear", "constant"}
        With p rising from 0 in the first epoch to 1 in the last, the share of the weight is
        ``2 / (1 + exp(-10 p)) - 1``, p, or 1.

    Examples
    --------
    >>> from skfairdp.neural import AdversarySchedule
    >>> schedule = AdversarySchedule(2.0)
    >>> [round(schedule.share(progress), 2) for progress in (0.0, 0.1, 0.5, 1.0)]
    [0.0, 0.46, 0.99, 1.0]
    """

    def __init__(self, weight: float, schedule: str = "sigmoid"):
        self.weight = weight
        self.schedule = schedule

    def share(self, progress: float) -> float:
        """Share of the weight at a progress from 0 to 1.

        Parameters
        ----------
        progress : float
            0 in the first epoch, 1 in the last.
        """
        if self.schedule == "constant":
            return 1.0
        return progress if self.schedule == "linear" else 2.0 / (1.0 + math.exp(-10.0 * progress)) - 1.0

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **kwargs: Any) -> None:
        """Remember where a continued training starts.

        Parameters
        ----------
        net, X, y, **kwargs : object
            As skorch passes them.
        """
        self.first_epoch_ = len(net.history)

    def on_epoch_begin(self, net: Any, dataset_train: Any = None, dataset_valid: Any = None, **kwargs: Any) -> None:
        """Set the weight of this epoch.

        Parameters
        ----------
        net, dataset_train, dataset_valid, **kwargs : object
            As skorch passes them.
        """
        epoch = len(net.history) - 1 - self.first_epoch_
        net.module_.reversal = self.weight * self.share(epoch / max(net.max_epochs - 1, 1))
        net.history.record("adversary_weight", net.module_.reversal)


class FederateNet(NeuralNetClassifier):
    """A skorch net for ``FederateClassifier``; callbacks, ``set_params`` and ``fit`` work as in any skorch net.

    Labels are class indices. Groups and weights travel with the rows, as ``{"x": rows, "groups": ..., "weight": ...}``.

    Parameters
    ----------
    module : callable
        Returns a ``FederateModule``; its arguments are ``module__*``.
    criterion : callable
        Returns a ``FederateLoss``; its arguments are ``criterion__*``.
    adversary_weight : float
        lambda, at the end of the schedule.
    adversary_schedule : {"sigmoid", "linear", "constant"}
        How lambda rises over the epochs.
    **kwargs
        What ``skorch.NeuralNetClassifier`` takes. The default ``verbose=1`` shows a bar, 2 a table, 0 nothing.

    Notes
    -----
    **Privacy.** ``forward``, ``predict_proba`` and ``predict`` answer from one noisy draw of the channel, as in
    training. That noise is torch's, in floating point: it carries no guarantee, writes no receipt and is charged to no
    ledger. They are for looking at a training; values leave through the estimator that holds the net. Whoever holds a
    net also holds its encoder, and can compute clean encodings.

    Examples
    --------
    >>> from skfairdp import FederateClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.neural import FederateNet
    >>> data = make_biased_classification(200, random_state=0)
    >>> model = FederateClassifier(max_epochs=1, random_state=0)
    >>> model = model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> isinstance(model.net_, FederateNet)
    True
    """

    def __init__(
        self,
        module: Any = make_federate_module,
        *args: Any,
        criterion: Any = FederateLoss,
        adversary_weight: float = 0.0,
        adversary_schedule: str = "sigmoid",
        dataset: Any = RowsDataset,
        iterator_train: Any = TensorBatches,
        iterator_train__shuffle: bool = True,
        iterator_valid: Any = TensorBatches,
        predict_nonlinearity: Any = torch.exp,
        train_split: Any = None,
        **kwargs: Any,
    ):
        self.adversary_weight = adversary_weight
        self.adversary_schedule = adversary_schedule
        self.iterator_train__shuffle = iterator_train__shuffle
        super().__init__(
            module,
            *args,
            criterion=criterion,
            dataset=dataset,
            iterator_train=iterator_train,
            iterator_valid=iterator_valid,
            predict_nonlinearity=predict_nonlinearity,
            train_split=train_split,
            **kwargs,
        )

    @property
    def _default_callbacks(self) -> list[tuple[str, Callback]]:
        parts = ("classifier_loss", "adversary_loss", "fairness_gap")
        callbacks: list[tuple[str, Callback]] = [
            ("epoch_timer", EpochTimer()),
            ("adversary_schedule", AdversarySchedule(self.adversary_weight, self.adversary_schedule)),
            ("train_loss", PassthroughScoring("train_loss", on_train=True)),
            ("valid_loss", PassthroughScoring("valid_loss")),
            *((name, PassthroughScoring(name, lower_is_better=None, on_train=True)) for name in parts),
        ]
        if self.verbose == 1:
            callbacks.append(("progress_bar", ProgressBar()))
        elif self.verbose > 1:
            callbacks.append(("print_log", PrintLog()))
        return callbacks

    def on_epoch_begin(self, net: Any, dataset_train: Any = None, dataset_valid: Any = None, **kwargs: Any) -> None:
        """Note that an epoch is under way: an interrupt in it comes from a person.

        Parameters
        ----------
        net, dataset_train, dataset_valid, **kwargs : object
            As skorch passes them.
        """
        super().on_epoch_begin(net, dataset_train=dataset_train, dataset_valid=dataset_valid, **kwargs)
        self.interrupted_ = True

    def on_epoch_end(self, net: Any, dataset_train: Any = None, dataset_valid: Any = None, **kwargs: Any) -> None:
        """Note that the epoch is whole: callbacks end a training by an interrupt after this.

        Parameters
        ----------
        net, dataset_train, dataset_valid, **kwargs : object
            As skorch passes them.
        """
        super().on_epoch_end(net, dataset_train=dataset_train, dataset_valid=dataset_valid, **kwargs)
        self.interrupted_ = False

    def infer(self, x: Any, **fit_params: Any) -> Outputs:
        """Run a batch through every branch of the module; for training, as the outputs hold clean values too.

        Parameters
        ----------
        x : Tensor or mapping
            The rows, or a mapping that holds them as ``x``.
        **fit_params : dict
            As skorch passes them.
        """
        rows = x["x"] if isinstance(x, Mapping) else x
        return self.module_(to_tensor(rows, device=self.device), **fit_params)

    def get_loss(self, y_pred: Outputs, y_true: Any, X: Any = None, training: bool = False) -> torch.Tensor:
        """Loss of a batch; in validation without the adversary, whose success or failure is no reason to stop.

        Parameters
        ----------
        y_pred : Outputs
            What :meth:`infer` returned.
        y_true : Tensor or ndarray of shape (n_samples,)
            Indices of the classes.
        X : mapping or None, default=None
            Holds ``groups`` and ``weight`` of the rows, where there are any.
        training : bool, default=False
            Whether the net is being trained.
        """
        beside = X if isinstance(X, Mapping) else {}
        groups, weight = (
            None if values is None else to_tensor(values, device=self.device)
            for values in (beside.get("groups"), beside.get("weight"))
        )
        loss = self.criterion_(y_pred, Targets(to_tensor(y_true, device=self.device), groups, weight))
        if not training:
            return self.criterion_.selection_loss()
        for name, value in self.criterion_.parts.items():
            if name != "belief_loss":  # it stands in valid_loss
                self.history.record_batch(name, value.item())
        return loss

    def evaluation_step(self, batch: Any, training: bool = False) -> torch.Tensor:
        """Log-probabilities of the classes from one noisy draw, without a guarantee; see the notes of the class.

        Parameters
        ----------
        batch : tuple
            As skorch passes it.
        training : bool, default=False
            Whether layers such as dropout act as in training.
        """
        return super().evaluation_step(batch, training=training).answer


def train_net(
    params: Mapping[str, Any],
    x: Any,
    y: np.ndarray,
    groups: np.ndarray | None,
    weight: np.ndarray | None,
    copies: np.ndarray | None = None,
    *,
    seed: int,
    n_iter_no_change: int | None = None,
    validation_fraction: float = 0.1,
    previous: FederateNet | None = None,
) -> FederateNet:
    """Build a net and train it; raises ``KeyboardInterrupt`` when a person ends the training.

    Parameters
    ----------
    params : mapping
        Parameters of ``FederateNet``. The optimiser may be a name, the device "auto"; callbacks are copied.
    x : ndarray or CSR array of shape (n_samples, n_features)
        Rows: floats, or integer token ids for a text encoder.
    y : ndarray of shape (n_samples,)
        Class indices.
    groups : ndarray of shape (n_samples, n_columns) or None
        Group indices.
    weight : ndarray of shape (n_samples,) or None
        Row weights.
    copies : ndarray of int of shape (n_samples,) or None
        How often each row is drawn in an epoch; its draws share its weight.
    seed : int
        Decides initial weights, order of rows, dropout, and the noise of training.
    n_iter_no_change : int or None
        Stop after so many epochs without a better loss on rows kept out, and go back to the best weights.
    validation_fraction : float
        Share of the rows to keep out, for early stopping and for callbacks that look at validation rows.
    previous : FederateNet or None
        A net of the same shape to continue from; it is left as it was.

    Returns
    -------
    FederateNet

    Examples
    --------
    :class:`~skfairdp.FederateClassifier` writes the parameters and calls it.

    >>> from skfairdp import FederateClassifier
    >>> from skfairdp.datasets import make_biased_classification
    >>> data = make_biased_classification(200, random_state=0)
    >>> model = FederateClassifier(max_epochs=2, early_stopping=False, random_state=0)
    >>> model = model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> len(model.net_.history)
    2
    """
    device = resolve_device(params["device"])
    optimizer = params["optimizer"]
    callbacks = copy.deepcopy(params["callbacks"] or [])
    if n_iter_no_change is not None:
        stopping = EarlyStopping(patience=n_iter_no_change, threshold=0.0, load_best=True)
        # Last, so that the callbacks of a user have seen the epoch when this one ends the training.
        callbacks.append(("early_stopping", stopping))
    defaults: dict[str, Any] = {"iterator_valid__batch_size": _rows_at_once(x.shape[1])}
    if isinstance(optimizer, str) and device.type in ("cpu", "cuda") and "optimizer__foreach" not in params:
        defaults["optimizer__fused"] = True  # one pass over the weights of all layers, which saves a tenth of the time
    given = {
        **defaults,
        **params,
        "device": device,
        "optimizer": _OPTIMIZERS[optimizer] if isinstance(optimizer, str) else optimizer,
        "callbacks": callbacks,
    }
    X = {"x": x if sparse.issparse(x) else torch.as_tensor(x, device=device)}
    if groups is not None:
        X["groups"] = torch.as_tensor(groups, dtype=torch.int64, device=device)
    if weight is not None:
        X["weight"] = torch.as_tensor(weight, dtype=torch.float32, device=device)
    if copies is not None:
        X["copies"] = torch.as_tensor(copies, dtype=torch.int64, device=device)
    with torch_seed(seed, device):
        net = FederateNet(**given).initialize()
        if any(_looks_at_validation_rows(callback) for _, callback in net.callbacks_):
            net.train_split = HoldOut(validation_fraction)
        if previous is not None:
            _continue_from(net, previous)
        with threads_for(net.module_):
            net.partial_fit(X, torch.as_tensor(y, dtype=torch.int64, device=device))
    if net.interrupted_:
        raise KeyboardInterrupt("training was interrupted; the estimator is as it was before fit")
    if not math.isfinite(net.history[-1]["train_loss"]):
        raise ValueError(
            f"training diverged: the loss is {net.history[-1]['train_loss']} after {len(net.history)} epochs with "
            f"learning_rate={net.lr!r}; use a smaller learning_rate, or scale the features."
        )
    net.module_.eval()
    return net


def _looks_at_validation_rows(callback: Callback) -> bool:
    """Whether a callback has nothing to do without validation rows, like ``EpochScoring`` or ``EarlyStopping``."""
    if isinstance(callback, EpochScoring | BatchScoring):
        return not callback.on_train
    monitor = getattr(callback, "monitor", None)
    return isinstance(monitor, str) and monitor.startswith("valid")


def _continue_from(net: FederateNet, previous: FederateNet) -> None:
    """Take over weights, the optimiser's memory and the history of another net."""
    step_sizes = [group["lr"] for group in net.optimizer_.param_groups]
    try:
        net.module_.load_state_dict(previous.module_.state_dict())
        net.optimizer_.load_state_dict(copy.deepcopy(previous.optimizer_.state_dict()))
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            "warm_start=True continues the training of the same network, but its shape has changed since the last "
            f"fit (classes, groups, features, or layer sizes); use warm_start=False. torch says: {error}"
        ) from None
    for group, step_size in zip(net.optimizer_.param_groups, step_sizes):
        group["lr"] = step_size
    net.history.extend(copy.deepcopy(list(previous.history)))


def encode(encoder: nn.Module, x: Any) -> np.ndarray:
    """The encoder's clean output, which must not leave the device.

    Parameters
    ----------
    encoder : torch.nn.Module
        Of a trained ``FederateModule``.
    x : ndarray or CSR array of shape (n_samples, n_features)
        Rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.neural import encode, mlp
    >>> encode(mlp(3, (), 2), np.zeros((4, 3), dtype=np.float32)).shape
    (4, 2)
    """
    return _run(encoder, x)


def values_to_release(encoder: nn.Module, channel: Any, x: Any) -> np.ndarray:
    """Encode rows and return what the mechanism takes; nothing is noisy yet, and it must not leave the device.

    Parameters
    ----------
    encoder, channel : torch.nn.Module
        Of a trained ``FederateModule``.
    x : ndarray or CSR array of shape (n_samples, n_features)
        Rows; sparse ones are made dense part by part.

    Returns
    -------
    ndarray of shape (n_samples, n_outputs)

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.neural import OpenChannel, mlp, values_to_release
    >>> values_to_release(mlp(5, (), 3), OpenChannel(), np.ones((4, 5), dtype=np.float32)).shape
    (4, 3)
    """
    return channel.values(encode(encoder, x))


def noiseless_answers(module: Any, x: Any) -> np.ndarray:
    """Class indices that a trained module would answer if its channel added no noise; they must not leave the device.

    Parameters
    ----------
    module : FederateModule
        After training.
    x : ndarray or CSR array of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.neural import FederateModule, OpenChannel, mlp, noiseless_answers
    >>> module = FederateModule(mlp(5, (), 3), OpenChannel(), mlp(3, (), 2))
    >>> noiseless_answers(module, np.ones((4, 5), dtype=np.float32)).shape
    (4,)
    """
    values = values_to_release(module.encoder, module.channel, x)
    if isinstance(module.channel, LaplaceChannel):
        order = 1 if module.channel.norm == "l1" else 2
        length = np.linalg.norm(values, ord=order, axis=1, keepdims=True)
        values = values / np.where(length > 0, length, 1.0)
    return class_probabilities(module.head, values).argmax(axis=1)


def class_probabilities(head: nn.Module, released: np.ndarray) -> np.ndarray:
    """Class probabilities of released rows; post-processing, which costs nothing.

    Parameters
    ----------
    head : torch.nn.Module
        Of a trained ``FederateModule``.
    released : ndarray of shape (n_samples, n_components)
        What the channel released.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.neural import class_probabilities, mlp
    >>> class_probabilities(mlp(3, (), 2), np.zeros((4, 3))).sum(axis=1).round(6)
    array([1., 1., 1., 1.])
    """
    logits = _run(head, released.astype(np.float32)).astype(np.float64)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def _run(module: nn.Module, x: Any) -> np.ndarray:
    module.eval()  # in training mode a batch normalisation would mix the rows, whoever switched it on
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    # Ids of words are as wide as the longest document, which must not decide how rows are cut into blocks.
    step = _rows_at_once(x.shape[1]) if x.dtype.kind == "f" else _ROWS_OF_IDS
    found = []
    with torch.no_grad(), threads_for(module):
        for start in range(0, max(x.shape[0], 1), step):
            part = x[start : start + step]
            part = part.toarray() if sparse.issparse(part) else part
            found.append(module(torch.tensor(part, device=device)).cpu().numpy())
    return np.concatenate(found)
